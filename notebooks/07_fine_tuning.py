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
# # Fine-tuning with frozen layers, twice
#
# A checkpoint that MXNet wrote learns a new task: its layers stay as they are, a new head is trained. First as MXNet
# scripts do it, with `Module` and `fixed_param_names`; then the same graph as a Flax module with Optax. Both draw the
# same curve.

# %%
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import optax
from flax import nnx

import symjax as mx
from symjax.interop.flax import SymbolModule

data = Path(mx.__file__).parent / "data"
digits = np.load(data / "digits.npz")
images = digits["train_images"][:1280, None].astype("float32")
loops = np.isin(digits["train_labels"][:1280], [0, 4, 6, 8, 9]).astype("float32")  # does the digit enclose something?
test_images = digits["test_images"][:, None].astype("float32")
test_loops = np.isin(digits["test_labels"], [0, 4, 6, 8, 9]).astype("float32")

# %% [markdown]
# ## The checkpoint, cut below its head
#
# `get_internals` names every output in the graph; the features are those before the last layer.

# %%
symbol, arg_params, aux_params = mx.model.load_checkpoint(str(data / "digits"), 10)
features = symbol.get_internals()["relu3_output"]
head = mx.sym.FullyConnected(features, num_hidden=2, name="loop")
net = mx.sym.SoftmaxOutput(head, name="softmax")
net

# %% [markdown]
# ## By Module
#
# `fixed_param_names` get no gradient and no update. What the checkpoint lacks, the weights of the head, is added to its
# parameters here, so that both ways begin alike; with `allow_missing=True` the initializer would draw it.

# %%
batch, epochs, rate = 64, 5, 0.01
mx.random.seed(3)
arg_params["loop_weight"], arg_params["loop_bias"] = mx.nd.random.normal(0, 0.1, (2, 48)), mx.nd.zeros(2)
frozen = [n for n in net.list_arguments() if n in arg_params and not n.startswith("loop_")]
module = mx.mod.Module(net, fixed_param_names=frozen)
train = mx.io.NDArrayIter(images, loops, batch)

curve = []


def note(p):
    curve.append(p.eval_metric.get()[1])
    p.eval_metric.reset()


module.fit(
    train,
    arg_params=arg_params,
    aux_params=aux_params,
    eval_metric="ce",
    optimizer="sgd",
    optimizer_params={"learning_rate": rate, "momentum": 0.9},
    batch_end_callback=note,
    epoch_end_callback=lambda epoch, *rest: print(f"epoch {epoch}: cross entropy {np.mean(curve[-20:]):.3f}"),
    num_epoch=epochs,
)
new, _ = module.get_params()
assert all((new[k].asnumpy() == arg_params[k].asnumpy()).all() for k in frozen)
test = mx.io.NDArrayIter(test_images, test_loops, batch)
print("test:", module.score(test, "acc"))

# %% [markdown]
# ## By Flax and Optax
#
# The same symbol as an NNX module. What is differentiated and updated is chosen by name: the parameters of the head.

# %%
model = SymbolModule(net, arg_params, aux_params, outputs="logits")
trainable = nnx.All(nnx.Param, lambda path, value: str(path[-1]).startswith("loop_"))
optimizer = nnx.Optimizer(model, optax.sgd(rate, momentum=0.9), wrt=trainable)


@nnx.jit
def step(model, optimizer, x, y):
    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    value, grads = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, trainable))(model)
    optimizer.update(model, grads)
    return value


model.train()
by_flax = []
for epoch in range(epochs):
    for i in range(0, len(images), batch):
        by_flax.append(step(model, optimizer, images[i : i + batch], loops[i : i + batch].astype("int32")))
    print(f"epoch {epoch}: cross entropy {np.mean(by_flax[-20:]):.3f}")
model.eval()
accuracy = float((np.argmax(model(test_images), 1) == test_loops).mean())
print(f"test: {accuracy:.3f} on {jax.devices()[0].platform}")
np.testing.assert_allclose(by_flax, curve, rtol=1e-3, atol=1e-5)
assert accuracy > 0.9

# %%
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
steps = np.arange(len(curve)) / 20
axis.plot(steps, curve, linewidth=5, alpha=0.3, label="Module")
axis.plot(steps, by_flax, linewidth=1, color="C3", label="Flax and Optax")
axis.set(xlabel="epoch", ylabel="cross entropy of a batch", ylim=0)
axis.legend(frameon=False)
plt.show()
