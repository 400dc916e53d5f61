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
# # A language model of characters, with buckets
#
# MXNet's recipe for sentences of many lengths: a `BucketSentenceIter` puts each into the smallest bucket that holds it,
# a `BucketingModule` has one graph for each bucket, and all graphs share their weights. Every bucket is compiled once.

# %%
import pydoc_data.topics
import re
import time

import matplotlib.pyplot as plt
import numpy as np

import symjax as mx

mx.random.seed(0)
np.random.seed(0)

# %% [markdown]
# ## The text
#
# Sentences from the manual that Python itself ships. Each is a list of character codes; 0 pads it to its bucket's
# length, and the loss ignores what is padded.

# %%
text = " ".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
text = re.sub(r"[^a-z ,.]", "", re.sub(r"\s+", " ", text.lower()))
sentences = [s.strip() + "." for s in text.split(".") if 15 < len(s) < 63]
letters = " " + "".join(sorted(set("".join(sentences)) - {" "}))
code = {c: i + 1 for i, c in enumerate(letters)}
encoded = [[code[c] for c in s] for s in sentences]
buckets, batch_size = [32, 48, 64], 32
train = mx.rnn.BucketSentenceIter(encoded, batch_size, buckets=buckets, invalid_label=0, layout="TN")
print(len(sentences), "sentences,", len(letters), "characters; for example:", sentences[7])

# %% [markdown]
# ## The model
#
# Two LSTM layers over embedded characters. `sym_gen` makes the graph of a bucket; `RNN` is one compiled loop however
# long the sequence is.

# %%
hidden, layers = 128, 2
lstm = mx.rnn.FusedRNNCell(hidden, num_layers=layers, mode="lstm", prefix="lstm_")


def sym_gen(length):
    data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
    x = mx.sym.Embedding(data, input_dim=len(code) + 1, output_dim=32, name="embed")
    x, _ = lstm.unroll(length, inputs=x, merge_outputs=True, layout="TNC")
    x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, hidden)), num_hidden=len(code) + 1, name="pred")
    label = mx.sym.Reshape(label, shape=(-1,))
    out = mx.sym.SoftmaxOutput(x, label, name="softmax", use_ignore=True, ignore_label=0, normalization="valid")
    return out, ("data",), ("softmax_label",)


sym_gen(buckets[0])[0]

# %%
module = mx.mod.BucketingModule(sym_gen, default_bucket_key=train.default_bucket_key)
curve = []
metric = mx.metric.Perplexity(ignore_label=0)
begin = time.time()
module.fit(
    train,
    eval_metric=metric,
    optimizer="adam",
    optimizer_params={"learning_rate": 0.01, "clip_gradient": 1.0},
    initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
    epoch_end_callback=lambda epoch, *rest: print(f"epoch {epoch:2}: perplexity {metric.get()[1]:6.2f}, "
                                                  f"{time.time() - begin:4.1f} s"),
    batch_end_callback=lambda p: curve.append(p.eval_metric.get()[1]),
    num_epoch=8,
)  # fmt: skip
assert metric.get()[1] < 6

# %%
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
per_epoch = len(curve) // 8
axis.plot(np.arange(len(curve)) / per_epoch, curve, linewidth=1)
axis.set(xlabel="epoch", ylabel="perplexity, in the epoch so far", yscale="log", yticks=[3, 5, 10, 20, 30])
axis.yaxis.set_major_formatter("{x:.0f}")
axis.minorticks_off()
plt.show()

# %% [markdown]
# ## Writing
#
# For one character after the other the fused layers are taken apart into cells, whose weights are the same numbers
# packed otherwise. The graph takes the states as inputs and gives them back as outputs.

# %%
cells = lstm.unfuse()
data = mx.sym.Variable("data")
states = [mx.sym.Variable(f"state{i}") for i in range(2 * layers)]
x = mx.sym.Embedding(data, input_dim=len(code) + 1, output_dim=32, name="embed")
x, states_out = cells(x, states)
x = mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=len(code) + 1, name="pred"))
shapes = {f"state{i}": (1, hidden) for i in range(2 * layers)}
writer = mx.sym.Group([x, *states_out]).simple_bind(mx.cpu(), grad_req="null", data=(1,), **shapes)

arg_params, _ = module.get_params()
arg_params = cells.pack_weights(lstm.unpack_weights(arg_params))
writer.copy_params_from(arg_params, allow_extra_params=True)


def write(start, length=60, temperature=0.5):
    for i in range(2 * layers):
        writer.arg_dict[f"state{i}"][:] = 0
    written = start
    for k in range(length):
        out, *new = writer.forward(data=mx.nd.array([code[written[k]]]))
        for i, state in enumerate(new):
            state.copyto(writer.arg_dict[f"state{i}"])
        if k + 1 == len(written):
            p = out.asnumpy()[0, 1:] ** (1 / temperature)
            written += letters[np.random.choice(len(letters), p=p / p.sum())]
        if written.endswith("."):
            break
    return written


for start in ("the ", "a ", "if ", "when "):
    print(write(start))
