# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From MXNet's files to JAX, Flax and Optax
#
# A classifier of handwritten digits that MXNet 1.9.1 trained and saved: load it, check it against MXNet's own
# outputs, turn it into a JAX function, then into a Flax module, teach it something new, and save it for either world.

# %%
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

import symjax as mx
from symjax.interop import safetensors
from symjax.interop.flax import SymbolModule

plt.rcParams.update({"figure.dpi": 110, "axes.spines.top": False, "axes.spines.right": False})
print("running on", jax.devices()[0].device_kind)

# %% [markdown]
# ## Load
#
# Replace the prefix by that of your own files. `symjax check FILE` tells beforehand whether all operators are there.

# %%
prefix = Path(mx.__file__).parent / "data" / "digits"
net, args, auxs = mx.model.load_checkpoint(str(prefix), 10)
net

# %% [markdown]
# ## Compare
#
# The numbers beside the model were recorded from MXNet. An executor gives the same.

# %%
with np.load(f"{prefix}.npz") as file:
    digits = {name: file[name] for name in file.files}
images, labels = digits["test_images"][:, None].astype(np.float32), digits["test_labels"]

exe = net.simple_bind(mx.cpu(), data=images.shape, grad_req="null")
exe.copy_params_from(args, auxs)
probabilities = exe.forward(data=images)[0].asnumpy()

difference = np.abs(probabilities - digits["test_probabilities"]).max()
print(f"{len(images)} digits: {(probabilities.argmax(1) == labels).mean():.1%} right, "
      f"largest difference from MXNet {difference:.1e}")  # fmt: skip
assert difference < 1e-4

# %% [markdown]
# ## A JAX function
#
# `lower` returns a pure function and its parameters as dicts of JAX arrays.

# %%
fn, params, aux = mx.lower(net, args, auxs)


@jax.jit
def predict(params, images):
    (probabilities,), _ = fn(params, aux, data=images)
    return probabilities


np.testing.assert_allclose(predict(params, images), digits["test_probabilities"], rtol=1e-4, atol=1e-5)
sum(p.size for p in params.values())

# %% [markdown]
# It is ordinary JAX from here on. Which pixels speak for a digit? The gradient of a logit by the image, for a
# whole batch by `vmap`. (The loss head keeps MXNet's gradient, which ignores ours; its input, the logits, is an
# output of the graph like any other.)

# %%
logits, *_ = mx.lower(net.get_internals()["fc2_output"], args, auxs)


def margin(image):
    """The logit of the likeliest digit, less the mean of all."""
    (scores,), _ = logits(params, aux, data=image[None])
    return scores.max() - scores.mean()


shown = [int(np.flatnonzero(labels == d)[0]) for d in range(10)]
saliency = jax.jit(jax.vmap(jax.grad(margin)))(images[shown])[:, 0]

fig, axes = plt.subplots(2, 10, figsize=(9, 2.1), layout="constrained")
limit = float(jnp.abs(saliency).max())
for i, (top, bottom) in enumerate(axes.T):
    top.imshow(images[shown[i], 0], cmap="Greys")
    bottom.imshow(saliency[i], cmap="RdBu_r", vmin=-limit, vmax=limit)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color="#d0d7de")
axes[0, 0].set_ylabel("digit", fontsize=9)
axes[1, 0].set_ylabel("gradient", fontsize=9)
plt.show()

# %% [markdown]
# ## A Flax module
#
# Parameters become `nnx.Param`, moving statistics `nnx.BatchStat`, dropout takes its keys from `nnx.Rngs`. With
# `outputs="logits"` the loss head makes room for a loss of your choice.

# %%
model = SymbolModule.from_checkpoint(prefix, 10, outputs="logits", rngs=nnx.Rngs(0))
jax.tree.map(jnp.shape, nnx.to_pure_dict(nnx.state(model, (nnx.Param, nnx.BatchStat))))

# %% [markdown]
# ## Fine-tune
#
# The model knows upright digits. Lay them on their side and it is lost; a few epochs of Optax mend that, on whatever
# device JAX found.


# %%
def on_its_side(images):
    return np.rot90(images, axes=(-2, -1))


def accuracy(model, images):
    return float((model(images).argmax(1) == labels).mean())


before = accuracy(model, images), accuracy(model, on_its_side(images))

optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer, images, labels):
    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


rng = np.random.default_rng(0)
train_images, train_labels = digits["train_images"][:, None].astype(np.float32), digits["train_labels"].astype(np.int32)
losses = []
model.train()
for _ in range(6):
    for batch in np.split(rng.permutation(len(train_labels))[:1280], 20):
        turned = rng.random(64) < 0.5
        pixels = np.where(turned[:, None, None, None], on_its_side(train_images[batch]), train_images[batch])
        losses.append(float(step(model, optimizer, pixels, train_labels[batch])))
model.eval()

after = accuracy(model, images), accuracy(model, on_its_side(images))
print(f"upright:     {before[0]:.1%} -> {after[0]:.1%}\non its side: {before[1]:.1%} -> {after[1]:.1%}")
assert after[1] > 0.85 > before[1]

# %%
means = np.reshape(losses, (6, 20)).mean(1)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained", width_ratios=[1.6, 1])
left.plot((np.arange(120) + 0.5) / 20, losses, alpha=0.3, label="each step")
left.plot(np.arange(6) + 0.5, means, color="C0", marker="o", label="epoch mean")
left.set(xlabel="epoch", ylabel="cross entropy", title="fine-tuning", ylim=0, xlim=(0, 6))
left.legend(frameon=False)
place = np.arange(2)
for values, shift, label, colour in ((before, -0.19, "before", "#b6bec9"), (after, 0.19, "after", "C0")):
    bars = right.bar(place + shift, [100 * v for v in values], 0.36, label=label, color=colour)
    right.bar_label(bars, fmt="%.0f", fontsize=9)
right.set(title="held-out digits", ylabel="% right", ylim=(0, 125), yticks=range(0, 101, 25))
right.set(xticks=place, xticklabels=["upright", "on its side"])
right.legend(frameon=False, ncols=2, loc="upper center")
plt.show()

# %% [markdown]
# ## Save
#
# As a checkpoint that MXNet reads too (the loss head is back in its place), as one safetensors file with the graph in
# its metadata, or the state alone with Orbax.

# %%
folder = Path(tempfile.mkdtemp())
model.save_checkpoint(folder / "turned", 6)
safetensors.save(folder / "turned.safetensors", model.symbol, *model.to_params())
with ocp.StandardCheckpointer() as saver:
    saver.save(folder / "orbax", nnx.state(model, (nnx.Param, nnx.BatchStat)))
print(*sorted(f.name for f in folder.iterdir()), sep="\n")

# %% [markdown]
# Each of them comes back as the same model.

# %%
fresh = SymbolModule.from_checkpoint(prefix, 10, outputs="logits")
with ocp.StandardCheckpointer() as saver:
    nnx.update(fresh, saver.restore(folder / "orbax", nnx.state(fresh)))
others = {
    "checkpoint": SymbolModule.from_checkpoint(folder / "turned", 6, outputs="logits"),
    "safetensors": SymbolModule(*safetensors.load(folder / "turned.safetensors"), outputs="logits"),
    "orbax": fresh,
}
for name, other in others.items():
    np.testing.assert_allclose(other(images), model(images), rtol=1e-5, atol=1e-5)
    print(f"{name}: {accuracy(other, on_its_side(images)):.1%} on its side")
