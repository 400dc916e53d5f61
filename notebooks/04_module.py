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
# # Training with the Module API
#
# MXNet's training loop, as scripts have it: iterators, `Module.fit`, metrics, callbacks, checkpoints. Forward, backward
# and the optimizer's update of a step are one compiled call; metrics add up on the device and are fetched when a
# callback asks for them.

# %%
import logging
import sys
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import symjax as mx

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout, force=True)
logging.captureWarnings(True)
digits = np.load(Path(mx.__file__).parent / "data" / "digits.npz")
images = {k: digits[f"{k}_images"][:, None].astype("float32") / 16 for k in ("train", "test")}
labels = {k: digits[f"{k}_labels"].astype("float32") for k in ("train", "test")}


def iterators(batch_size=100):
    return (
        mx.io.NDArrayIter(images["train"], labels["train"], batch_size, shuffle=True),
        mx.io.NDArrayIter(images["test"], labels["test"], batch_size),
    )


# %% [markdown]
# ## A multilayer perceptron, by `fit`

# %%
data = mx.sym.Variable("data")
net = mx.sym.FullyConnected(mx.sym.Flatten(data), num_hidden=64, name="fc1")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
mlp = mx.sym.SoftmaxOutput(net, name="softmax")

mx.random.seed(1)
np.random.seed(1)
train, test = iterators()
module = mx.mod.Module(mlp, context=mx.cpu())
module.fit(
    train,
    eval_data=test,
    optimizer="sgd",
    optimizer_params={"learning_rate": 0.2, "momentum": 0.9},
    initializer=mx.init.Xavier(),
    eval_metric="acc",
    batch_end_callback=mx.callback.Speedometer(100, 10),
    num_epoch=4,
)
print(module.score(test, ["acc", "ce"]))

# %% [markdown]
# ## LeNet, with curves, a schedule and checkpoints


# %%
def lenet():
    x = mx.sym.Variable("data")
    for i, filters in enumerate((16, 32)):
        x = mx.sym.Convolution(x, num_filter=filters, kernel=(3, 3), pad=(1, 1), name=f"conv{i}")
        x = mx.sym.Activation(mx.sym.BatchNorm(x, name=f"norm{i}"), act_type="relu")
        x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=10, name="out"), name="softmax")


curves = {"train": [], "test": []}
prefix = str(Path(mkdtemp()) / "lenet")
module = mx.mod.Module(lenet())
module.fit(
    train,
    eval_data=test,
    eval_metric=mx.metric.CompositeEvalMetric(["acc", "ce"]),
    optimizer="adam",
    optimizer_params={"learning_rate": 0.01, "lr_scheduler": mx.lr_scheduler.FactorScheduler(step=30, factor=0.7)},
    initializer=mx.init.Xavier(magnitude=2),
    batch_end_callback=lambda p: curves["train"].append(dict(p.eval_metric.get_name_value())["accuracy"]),
    eval_end_callback=lambda p: curves["test"].append(dict(p.eval_metric.get_name_value())["accuracy"]),
    epoch_end_callback=mx.callback.module_checkpoint(module, prefix, save_optimizer_states=True),
    num_epoch=6,
)
figure, axis = plt.subplots(figsize=(7, 3))
axis.plot(curves["train"], label="training, in the epoch so far")
axis.plot(np.arange(1, 7) * 13 - 1, curves["test"], "o-", label="test")
axis.set(xlabel="batch", ylabel="accuracy", ylim=(0.5, 1))
axis.legend()
plt.show()

# %% [markdown]
# ## Going on from a checkpoint
#
# A run that was stopped goes on from the last epoch that was written: parameters, auxiliary states, and the
# optimizer's own.

# %%
resumed = mx.mod.Module.load(prefix, 6, load_optimizer_states=True)
resumed.fit(train, eval_data=test, optimizer="adam", optimizer_params={"learning_rate": 0.001}, begin_epoch=6,
            num_epoch=8)  # fmt: skip
accuracy = dict(resumed.score(test, "acc"))["accuracy"]
print(accuracy)
assert accuracy > 0.97

# %% [markdown]
# ## A step by hand
#
# The same by single calls. Nothing runs before it is needed: `update` completes the step, and it is one compiled call.

# %%
module = mx.mod.Module(mlp)
module.bind(train.provide_data, train.provide_label)
module.init_params(mx.init.Xavier())
module.init_optimizer(optimizer="adam")
metric = mx.metric.create("acc")
for _ in range(5):
    train.reset()
    metric.reset()
    for batch in train:
        module.forward(batch, is_train=True)
        module.backward()
        module.update()
        module.update_metric(metric, batch.label)
print(metric.get())
