"""A training script for MXNet as it was written in 2018; `symjax exec docs/train_digits.py` runs it unchanged."""

import argparse
import logging

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO)

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="symjax/data/digits.npz")
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--num-epochs", type=int, default=3)
parser.add_argument("--kv-store", default="local")
args = parser.parse_args()

mx.random.seed(0)
np.random.seed(0)
digits = np.load(args.data)
train = mx.io.NDArrayIter(digits["train_images"][:, None] / 16.0, digits["train_labels"], 64, shuffle=True)
val = mx.io.NDArrayIter(digits["test_images"][:, None] / 16.0, digits["test_labels"], 64)

data = mx.sym.Variable("data")
conv = mx.sym.Convolution(data, kernel=(3, 3), num_filter=16, name="conv")
pool = mx.sym.Pooling(mx.sym.Activation(conv, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
fc = mx.sym.FullyConnected(mx.sym.Flatten(pool), num_hidden=10, name="fc")
net = mx.sym.SoftmaxOutput(fc, name="softmax")

mod = mx.mod.Module(net, context=mx.cpu())
mod.fit(
    train,
    eval_data=val,
    kvstore=args.kv_store,
    optimizer="sgd",
    optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
    initializer=mx.init.Xavier(),
    batch_end_callback=mx.callback.Speedometer(64, 10),
    num_epoch=args.num_epochs,
)
print("accuracy", mod.score(val, "acc")[0][1])
