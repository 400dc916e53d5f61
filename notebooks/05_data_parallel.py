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
# # Training on many devices
#
# A list of contexts is a device mesh: the batch is divided, parameters are on every device, and a step is still one
# compiled call. The numbers are those of one device. This notebook makes eight devices of the CPU, which is how such a
# program is tried out without eight accelerators.

# %%
import logging
import os
import sys
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax
import matplotlib.pyplot as plt
import numpy as np

import symjax as mx

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout, force=True)
print(jax.devices())
digits = np.load(Path(mx.__file__).parent / "data" / "digits.npz")
images = {k: digits[f"{k}_images"].reshape(-1, 64).astype("float32") / 16 for k in ("train", "test")}
labels = {k: digits[f"{k}_labels"].astype("float32") for k in ("train", "test")}

# %%
net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=64, name="fc1")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")
net

# %% [markdown]
# ## The same `fit` on one device and on eight


# %%
def fit(context, epochs=4):
    mx.random.seed(1)
    np.random.seed(1)
    train = mx.io.NDArrayIter(images["train"], labels["train"], 96, shuffle=True, last_batch_handle="discard")
    test = mx.io.NDArrayIter(images["test"], labels["test"], 96)
    module, losses = mx.mod.Module(net, context=context), []

    def loss(param):
        losses.append(dict(param.eval_metric.get_name_value())["cross-entropy"])
        param.eval_metric.reset()

    start = time.perf_counter()
    module.fit(train, eval_data=test, optimizer="sgd", optimizer_params={"learning_rate": 0.3, "momentum": 0.9},
               initializer=mx.init.Xavier(), eval_metric=["ce"], batch_end_callback=loss, num_epoch=epochs)  # fmt: skip
    accuracy = dict(module.score(test, "acc"))["accuracy"]
    print(f"{context}: {len(losses)} steps in {time.perf_counter() - start:.1f} s, accuracy {accuracy:.3f}")
    return module, np.array(losses)


one, losses_of_one = fit(mx.cpu(0))
eight, losses_of_eight = fit([mx.cpu(i) for i in range(8)])
assert np.allclose(losses_of_one, losses_of_eight, rtol=1e-2, atol=1e-4)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.plot(losses_of_one, lw=4, alpha=0.4, label="one device")
left.plot(losses_of_eight, "k--", lw=1, label="eight devices")
left.set(xlabel="step", ylabel="cross-entropy", yscale="log")
left.legend()
right.semilogy(np.abs(losses_of_one - losses_of_eight) + 1e-9)
right.set(xlabel="step", ylabel="difference", title="float32 sums in another order")
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Where things are

# %%
for name, array in zip(eight._exec_group.param_names, eight._exec_group.param_arrays, strict=True):
    print(f"{name:12} {array[0].shape!s:10} {array[0].context}  {array[0]._data.sharding.spec}")
parts = eight.get_outputs(merge_multi_context=False)[0]
print("outputs:", [(p.shape, str(p.context)) for p in parts[:3]], "…")

# %% [markdown]
# ## Parameters that are divided too
#
# `__sharding__` says which mesh axes divide a variable. Give the mesh as the context: its axis "data" divides the
# batch.

# %%
wide = mx.sym.FullyConnected(
    mx.sym.Variable("data"),
    mx.sym.Variable("fc1_weight", __sharding__="model, None"),
    mx.sym.Variable("fc1_bias", __sharding__="model"),
    num_hidden=64,
    name="fc1",
)
wide = mx.sym.Activation(wide, act_type="relu")
weight = mx.sym.Variable("fc2_weight", __sharding__="None, model")
wide = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(wide, weight, num_hidden=10, name="fc2"), name="softmax")

mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
net = wide
both, losses_of_both = fit(mesh)
for name, array in zip(both._exec_group.param_names, both._exec_group.param_arrays, strict=True):
    value = array[0]._data
    each = value.sharding.shard_shape(value.shape)
    print(f"{name:12} {value.shape!s:10} {value.sharding.spec!s:16} each device: {each}")
assert np.allclose(losses_of_one, losses_of_both, rtol=1e-2, atol=1e-4)

# %%
held = both._exec_group.execs[0].arg_dict["fc1_weight"]._data
figure, axes = plt.subplots(2, 4, figsize=(9, 2.4), sharex=True, sharey=True)
for shard in held.addressable_shards:
    axis = axes.flat[shard.device.id]
    part = np.full(held.shape, np.nan)
    part[shard.index] = shard.data
    axis.imshow(part, cmap="coolwarm", vmin=-0.4, vmax=0.4, aspect="auto")
    axis.set_title(f"device {shard.device.id}", fontsize=8)
figure.suptitle("the rows of fc1_weight that each device holds", y=1.05)
plt.show()
