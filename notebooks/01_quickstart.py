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
# # symjax in ten minutes
#
# MXNet's symbolic graphs on JAX: build one, look at it, infer its shapes, bind it to arrays, differentiate it, train
# it. Code written for MXNet needs one changed line, the import.

# %%
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import symjax as mx

plt.rcParams.update({"figure.dpi": 110, "axes.spines.top": False, "axes.spines.right": False})

# %% [markdown]
# ## A graph of one variable
#
# Operators on variables build a graph; nothing is computed yet.

# %%
x = mx.sym.Variable("x")
wave = mx.sym.sin(3 * x) * mx.sym.exp(-mx.sym.square(x) / 2)
wave

# %% [markdown]
# `gradient` returns another graph, which computes the derivative. (MXNet has the call, but it never worked there.)

# %%
slope = wave.gradient(["x"])
points = mx.nd.array(np.linspace(-3, 3, 301))
(values,) = wave.eval(x=points)
(slopes,) = slope.eval(x=points)

fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.axhline(0, color="#d0d7de", linewidth=0.8, zorder=0)
ax.plot(points.asnumpy(), values.asnumpy(), label=r"$\sin(3x)\,e^{-x^2/2}$")
ax.plot(points.asnumpy(), slopes.asnumpy(), label="its gradient", linestyle="--")
ax.set(xlabel="x", xlim=(-3, 3))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## A network
#
# Layers make the variables for their weights. The output operator `SoftmaxOutput` is a loss head: forwards it gives
# probabilities, backwards the gradient of the cross entropy with its label.

# %%
data = mx.sym.Variable("data")
body = mx.sym.FullyConnected(data, num_hidden=32, name="fc1")
body = mx.sym.Activation(body, act_type="tanh", name="tanh1")
body = mx.sym.FullyConnected(body, num_hidden=32, name="fc2")
body = mx.sym.Activation(body, act_type="tanh", name="tanh2")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(body, num_hidden=3, name="fc3"), name="softmax")
net

# %% [markdown]
# From the shape of the data all others follow.

# %%
arg_shapes, out_shapes, _ = net.infer_shape(data=(300, 2))
for name, shape in zip(net.list_arguments() + net.list_outputs(), arg_shapes + out_shapes, strict=True):
    print(f"{name:15} {shape}")

# %% [markdown]
# What does not fit is explained: the node, where the shapes came from, and what to do.

# %%
try:
    net.infer_shape(data=(300, 2), fc2_weight=(32, 31))
except mx.base.MXNetError as error:
    print(error)

# %% [markdown]
# ## Binding and training
#
# Three arms of a spiral are the classes.

# %%
rng = np.random.default_rng(0)
label = np.arange(300) % 3
radius = rng.uniform(0.1, 1, 300)
angle = 2 * np.pi * label / 3 + 3.5 * radius + rng.normal(0, 0.12, 300)
spiral = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)

# %% [markdown]
# `simple_bind` allocates arguments and gradients, and compiles forward and backward into one function. The arrays in
# `arg_dict` are used in place: what an optimizer writes into them, the next `forward` sees.

# %%
learned = [n for n in net.list_arguments() if n.endswith(("weight", "bias"))]
exe = net.simple_bind(mx.cpu(), data=spiral.shape, grad_req=dict.fromkeys(learned, "write"))
weights = {n: exe.arg_dict[n] for n in learned}
for name, array in weights.items():
    if name.endswith("weight"):
        array[:] = rng.normal(0, (1 / array.shape[1]) ** 0.5, array.shape)
exe.arg_dict["data"][:] = spiral
exe.arg_dict["softmax_label"][:] = label
momenta = {n: mx.nd.zeros(a.shape) for n, a in weights.items()}

losses = []
for _ in range(400):
    (probabilities,) = exe.forward(is_train=True)
    exe.backward()
    for name, array in weights.items():
        mx.nd.sgd_mom_update(array, exe.grad_dict[name], momenta[name], out=array,
                             lr=0.1, momentum=0.9, rescale_grad=1 / 300)  # fmt: skip
    losses.append(-np.log(probabilities.asnumpy()[np.arange(300), label]).mean())
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")

# %% [markdown]
# ## The same graph as a JAX function
#
# `lower` gives a pure function of dicts. `jit`, `grad`, `vmap` and sharding work on it; here it colours the plane.

# %%
fn, params, aux = mx.lower(net, weights)
side = np.linspace(-1.15, 1.15, 200, dtype=np.float32)
plane = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
(scores,), _ = jax.jit(fn)(params, aux, data=plane)

colours = np.array([[0x3F, 0x78, 0xBF], [0xD9, 0x8A, 0x1F], [0x3F, 0x95, 0x55]]) / 255
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained", width_ratios=[1.25, 1])
left.plot(losses)
left.set(xlabel="step", ylabel="cross entropy", title="training", ylim=0, xlim=(0, 400))
shades = (np.asarray(scores) @ (0.55 * colours + 0.45)).reshape(200, 200, 3)
right.imshow(shades, extent=(-1.15, 1.15, -1.15, 1.15), origin="lower")
right.scatter(*spiral.T, c=colours[label], s=12, edgecolors="white", linewidths=0.5)
right.set(title="what the network says")
right.axis("off")
plt.show()

# %% [markdown]
# The executor's gradient is the one JAX takes of the lowered function. A loss head ignores what happens to its
# output, so the sum of the outputs is the thing to differentiate.


# %%
def total(params):
    (out,), _ = fn(params, aux, train=True, data=spiral.astype("float32"), softmax_label=label.astype("float32"))
    return out.sum()


exe.forward(is_train=True)
exe.backward()
grads = jax.grad(total)({n: a.asnumpy() for n, a in weights.items()})
for name, grad in grads.items():
    np.testing.assert_allclose(grad, exe.grad_dict[name].asnumpy(), rtol=1e-3, atol=1e-4)
    print(f"{name:10} norm of the gradient {jnp.linalg.norm(grad):.5f}")

# %% [markdown]
# ## Files
#
# A checkpoint is a `-symbol.json` and a `.params` file. MXNet 1.9.1 reads what symjax writes, and the other way
# round; the [next notebook](02_port_symbol_json.ipynb) begins with files that MXNet wrote.

# %%
folder = Path(tempfile.mkdtemp())
mx.model.save_checkpoint(f"{folder}/spiral", 400, net, weights, {})
print(*(f"{f.name}: {f.stat().st_size} bytes" for f in sorted(folder.iterdir())), sep="\n")
