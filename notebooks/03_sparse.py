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
# # Sparse data and large tables
#
# Click-through prediction, recommendation, text: data with a million columns of which a row has forty, and tables of
# which a batch touches a few thousand rows. This notebook reads such data from a libsvm file and trains a linear
# model, a factorization machine, a wide and deep network and a matrix factorization. What a step costs follows the
# batch, not the table.

# %%
import functools
import math
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from tqdm import tqdm

import symjax as mx
from symjax.sparse import lazy, sharding

jax.config.update("jax_num_cpu_devices", 4)  # for the last section

plt.rcParams.update({"figure.dpi": 110, "axes.spines.top": False, "axes.spines.right": False})
print("running on", jax.devices()[0].device_kind)

# %% [markdown]
# ## Two kinds of sparse arrays
#
# A **csr** array is a matrix of data: the stored values row by row, their columns, and where each row begins. It is
# made of these three, of coordinates, of a dense array, or of a scipy matrix, and goes back to any of them.

# %%
dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 3]], np.float32)
x = mx.nd.sparse.csr_matrix(scipy.sparse.csr_matrix(dense))
for part in ("data", "indices", "indptr"):
    print(f"{part:8}", getattr(x, part).asnumpy())
print(x[1:3].asnumpy(), x.asscipy().nnz, x.tostype("default").stype)

# %% [markdown]
# A **row_sparse** array is a table of which some rows are stored, of any rank: a gradient, or a weight.

# %%
g = mx.nd.sparse.row_sparse_array(([[1, 1], [5, 5], [9, 9]], [1, 5, 9]), shape=(10, 2))
print("rows", g.indices.asnumpy(), "of", g.shape)
kept = mx.nd.sparse.retain(g, mx.nd.array([5, 6]))
print("kept", kept.indices.asnumpy(), kept.data.asnumpy())

# %% [markdown]
# A product with a transposed csr matrix has rows where the matrix has columns. This is the gradient of a linear
# model, and why it is sparse.

# %%
product = mx.nd.sparse.dot(x, mx.nd.ones((3, 2)), transpose_a=True)
print(product.stype, product.indices.asnumpy())

# %% [markdown]
# ## A file of clicks
#
# 100 000 rows of a million columns: 13 numbers, and one column each of 26 categories, some with twenty values and one
# with 300 000, the first ones far more frequent than the last. Whether there is a click depends on the numbers, on the
# frequent columns, and on which of these meet in a row.

# %%
FEATURES, NUMBERS, FIELDS, ROWS, BATCH = 1_000_000, 13, 26, 100_000, 500
rng = np.random.default_rng(0)
sizes = np.geomspace(20, 300_000, FIELDS).astype(int)
sizes[-1] += FEATURES - NUMBERS - sizes.sum()
first = NUMBERS + np.concatenate([[0], np.cumsum(sizes)[:-1]])
ids = first + (sizes * rng.uniform(size=(ROWS, FIELDS)) ** 12).astype(int)
numbers = rng.exponential(size=(ROWS, NUMBERS)).round(2)

frequent = (first[:, None] + np.arange(12)).ravel()
own, partner = np.zeros(FEATURES), np.zeros((FEATURES, 2))
own[frequent], partner[frequent] = rng.normal(0, 0.4, len(frequent)), rng.normal(0, 0.5, (len(frequent), 2))
own[:NUMBERS] = rng.normal(0, 0.3, NUMBERS)
met = partner[ids].sum(1)
score = own[ids].sum(1) + (numbers - 1) @ own[:NUMBERS] + (met**2 - (partner[ids] ** 2).sum(1)).sum(1) / 2 - 1
chance = 1 / (1 + np.exp(-score))
clicks = rng.uniform(size=ROWS) < chance

path = Path(tempfile.mkdtemp()) / "clicks.libsvm"
with path.open("w") as file:
    for click, values, columns in zip(clicks.tolist(), numbers.tolist(), ids.tolist(), strict=True):
        entries = [f"{k}:{v}" for k, v in enumerate(values)] + [f"{k}:1" for k in columns]
        file.write(f"{click:d} {' '.join(entries)}\n")
with path.open() as file:
    print(file.readline()[:120], "…")

# %% [markdown]
# `LibSVMIter` reads it in blocks, ahead of what is asked for, and gives csr batches.

# %%
rows = mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(FEATURES,), batch_size=BATCH)
begin = time.perf_counter()
n = sum(len(batch.label[0]) for batch in rows)
seconds, megabytes = time.perf_counter() - begin, path.stat().st_size / 1e6
print(f"{n} rows, {megabytes:.1f} MB in {seconds:.2f} s: {megabytes / seconds:.0f} MB/s")

rows.reset()
batch = next(rows)
rows.reset()
print(batch.data[0], batch.label[0].shape)

# %% [markdown]
# ## Linear classification
#
# A variable says how it is stored; the graph tells what follows from it. The product of the csr data with the weight
# is dense, and so is all behind it.

# %%
data, label = mx.sym.Variable("x", stype="csr", shape=(BATCH, FEATURES)), mx.sym.Variable("label")
weight = mx.sym.Variable("w_weight", stype="row_sparse", shape=(FEATURES, 1))
bias = mx.sym.Variable("bias", shape=(1,))
linear_score = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), bias)
linear = mx.sym.LogisticRegressionOutput(linear_score, label, name="click")
linear

# %% [markdown]
# A step, as in MXNet: forward, backward, and an optimizer that changes the weights in place. The gradient holds the
# columns that occur in the batch, and no others; the update (`lazy_update`, MXNet's default) changes these rows of the
# weight and of the optimizer's states.


# %%
def bind(net, weights, **shapes):
    """An executor with these first weights, gradients for them, and arguments of these shapes."""
    req = {name: "write" if name in weights else "null" for name in net.list_arguments()}
    exe = net.simple_bind(mx.cpu(), grad_req=req, **shapes)
    for name, value in weights.items():
        exe.arg_dict[name][:] = mx.nd.array(value)
    return exe


def normal(*shape, scale=0.01):
    return rng.normal(0, scale, shape).astype(np.float32)


exe = bind(linear, {"w_weight": normal(FEATURES, 1), "bias": np.zeros(1)}, label=(BATCH, 1))
exe.forward(is_train=True, x=batch.data[0], label=batch.label[0].reshape((BATCH, 1)))
exe.backward()
gradient = exe.grad_dict["w_weight"]
print(f"{gradient.stype} gradient {gradient.shape}: {len(gradient.indices)} rows, {gradient.data.size * 4} bytes")
occurring = np.unique(batch.data[0].indices.asnumpy())
assert (gradient.indices.asnumpy() == occurring).all()

# %% [markdown]
# The loop for all models: one pass over the file. A loss is taken before the update, of rows that were never seen; so
# its curve tells how well the model predicts.


# %%
def log_loss(probability, clicked):
    p = probability.astype(np.float64)
    return -np.log(np.where(clicked > 0, p, 1 - p)).mean()


def plain(batch):
    return {"x": batch.data[0], "label": batch.label[0].reshape((BATCH, 1))}


def fit(name, net, weights, optimizer, arguments=plain, **shapes):
    exe = bind(net, weights, label=(BATCH, 1), **shapes)
    updater = mx.optimizer.get_updater(optimizer)
    losses = []
    rows.reset()
    for batch in tqdm(rows, name, ROWS // BATCH, file=sys.stdout, ncols=80, mininterval=1, unit="step"):
        (out,) = exe.forward(is_train=True, **arguments(batch))
        exe.backward()
        for key in weights:
            updater(key, exe.grad_dict[key], exe.arg_dict[key])
        losses.append(log_loss(out.asnumpy()[:, 0], batch.label[0].asnumpy()))
    return exe, losses


runs = {}
runs["linear, adagrad"] = fit("linear", linear, {"w_weight": normal(FEATURES, 1), "bias": np.zeros(1)},
                              mx.optimizer.AdaGrad(learning_rate=0.1, rescale_grad=1 / BATCH))  # fmt: skip

# %% [markdown]
# ## Factorization machine
#
# Each column has eight factors; a pair of columns that meet in a row adds the product of theirs. The sum over pairs
# takes two products with the data, so the weight is used twice, once through its squares: the gradients are merged.

# %%
factors = mx.sym.Variable("v_weight", stype="row_sparse", shape=(FEATURES, 8))
squares = mx.sym._internal._square_sum(factors, axis=1, keepdims=True)
pairs = mx.sym.sum(mx.sym.square(mx.sym.sparse.dot(data, factors)), axis=1, keepdims=True)
pairs = 0.5 * (pairs - mx.sym.sparse.dot(mx.sym.square(data), squares))
machine = mx.sym.LogisticRegressionOutput(linear_score + pairs, label, name="click")
first_weights = {"v_weight": normal(FEATURES, 8, scale=0.02), "w_weight": normal(FEATURES, 1), "bias": np.zeros(1)}
runs["factorization machine, adam"] = fit("factorization machine", machine, first_weights,
                                          mx.optimizer.Adam(learning_rate=5e-3, rescale_grad=1 / BATCH))  # fmt: skip

# %% [markdown]
# ## Wide and deep
#
# A linear model beside a network, whose input are the numbers and the embedded categories of a row. Each row of the
# file has the same number of entries, so the ids of the categories are columns of its batch.

# %%
table = mx.sym.Variable("embed_weight", stype="row_sparse", shape=(FEATURES, 8))
embedded = mx.sym.sparse.Embedding(mx.sym.Variable("ids"), table, input_dim=FEATURES, output_dim=8, sparse_grad=True)
deep = mx.sym.Concat(mx.sym.Flatten(embedded), mx.sym.Variable("numbers"), dim=1)
for i, width in enumerate((64, 32)):
    deep = mx.sym.FullyConnected(deep, num_hidden=width, name=f"fc{i}")
    deep = mx.sym.Activation(deep, act_type="relu", name=f"relu{i}")
deep = mx.sym.FullyConnected(deep, num_hidden=1, name="out")
wide_and_deep = mx.sym.LogisticRegressionOutput(linear_score + deep, label, name="click")

width = FIELDS * 8 + NUMBERS
first_weights = {"w_weight": normal(FEATURES, 1), "bias": np.zeros(1), "embed_weight": normal(FEATURES, 8, scale=0.05)}
for name, (n_out, n_in) in {"fc0": (64, width), "fc1": (32, 64), "out": (1, 32)}.items():
    first_weights |= {f"{name}_weight": normal(n_out, n_in, scale=math.sqrt(2 / n_in)), f"{name}_bias": np.zeros(n_out)}


def by_column(batch):
    x = batch.data[0]
    parts = {"ids": x.indices.reshape((BATCH, -1))[:, NUMBERS:], "numbers": x.data.reshape((BATCH, -1))[:, :NUMBERS]}
    return plain(batch) | parts


runs["wide and deep, adam"] = fit(
    "wide and deep", wide_and_deep, first_weights, mx.optimizer.Adam(learning_rate=6e-3, rescale_grad=1 / BATCH),
    by_column, ids=(BATCH, FIELDS), numbers=(BATCH, NUMBERS),
)  # fmt: skip


# %%
def smooth(values, width=10):
    return np.convolve(values, np.ones(width) / width, "valid")


fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.axhline(log_loss(chance, clicks), color="0.6", linewidth=1, linestyle=":", label="what knows the true chances")
for name, (_, losses) in runs.items():
    ax.plot(smooth(losses), label=name)
ax.set(xlabel="step", ylabel="log loss of unseen rows", xlim=(0, ROWS // BATCH))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Matrix factorization
#
# 200 000 ratings of 20 000 items by 100 000 users: a rating is the product of two rows, one of each table.
# `NDArrayIter` walks what is in memory.

# %%
USERS, ITEMS, RATINGS, RANK = 100_000, 20_000, 200_000, 16
user, item = ((n * rng.uniform(size=RATINGS) ** 4).astype(int) for n in (USERS, ITEMS))
taste, kind = rng.normal(size=(USERS, 2)), rng.normal(size=(ITEMS, 2))
rating = (taste[user] * kind[item]).sum(1) + rng.normal(0, 0.3, RATINGS)


def lookup(name, n, rank=RANK, sparse=True):
    weight = mx.sym.Variable(f"{name}_weight")
    return mx.sym.Embedding(mx.sym.Variable(name), weight, input_dim=n, output_dim=rank, sparse_grad=sparse)


guess = mx.sym.sum(lookup("user", USERS) * lookup("item", ITEMS), axis=1)
factorization = mx.sym.LinearRegressionOutput(guess, label, name="rating")
first_weights = {"user_weight": normal(USERS, RANK, scale=0.3), "item_weight": normal(ITEMS, RANK, scale=0.3)}

exe = bind(factorization, first_weights, user=(1000,), item=(1000,), label=(1000,))
updater = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.02))
ratings = mx.io.NDArrayIter({"user": user, "item": item, "label": rating}, batch_size=1000)
names = [d.name for d in ratings.provide_data]
errors = []
for _ in tqdm(range(4), "matrix factorization", file=sys.stdout, ncols=80, unit="epoch"):
    ratings.reset()
    for batch in ratings:
        (out,) = exe.forward(is_train=True, **dict(zip(names, batch.data, strict=True)))
        exe.backward()
        for key in first_weights:
            updater(key, exe.grad_dict[key], exe.arg_dict[key])
        errors.append(np.square(out.asnumpy() - batch.data[names.index("label")].asnumpy()).mean())

fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
ax.axhline(0.3, color="0.6", linewidth=1, linestyle=":", label="noise in the ratings")
ax.plot(np.sqrt(smooth(errors)), label="matrix factorization, adam")
ax.set(xlabel="step", ylabel="error of a rating (rms)", ylim=0, xlim=(0, len(errors)))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# The tables are dense here; their gradients are row_sparse by `sparse_grad=True`. Without it a gradient is as large as
# its table, and every row of the table is updated.
#
# ## What a step costs
#
# A step of one table of `n` rows of 8 numbers, of which 1000 are looked up: forward, backward, sgd with momentum.


# %%
def cost(n, sparse, steps=15):
    """Milliseconds of a step (the fastest), and megabytes of the gradient."""
    net = mx.sym.make_loss(mx.sym.sum(mx.sym.square(lookup("user", n, 8, sparse))))
    exe = net.simple_bind(mx.cpu(), grad_req={"user_weight": "write"}, user=(1000,))
    exe.arg_dict["user_weight"][:] = 1
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    table, gradient, times = exe.arg_dict["user_weight"], exe.grad_dict["user_weight"], []
    for _ in range(steps):
        exe.arg_dict["user"][:] = rng.integers(0, n, 1000)
        begin = time.perf_counter()
        exe.forward(is_train=True)
        exe.backward()
        updater("user_weight", gradient, table)
        table.wait_to_read()
        times.append(time.perf_counter() - begin)
    values = gradient.data if sparse else gradient
    return 1000 * min(times), values.size * 4 / 1e6


vocabularies = (10**5, 10**6, 10**7)
measured = {True: [cost(n, True) for n in vocabularies], False: [cost(n, False, 5) for n in vocabularies[:2]]}
fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for i, (ax, what) in enumerate(zip(axes, ("ms a step", "MB of gradient"), strict=True)):
    for sparse, points in measured.items():
        values = [p[i] for p in points]
        ax.loglog(vocabularies[: len(values)], values, marker="o", label="row_sparse" if sparse else "dense")
    ax.set(xlabel="rows of the table", ylabel=what)
axes[0].legend(frameon=False)
plt.show()
for n, (ms, mb) in zip(vocabularies, measured[True], strict=True):
    print(f"{n:>10,} rows: {ms:.2f} ms, {mb:.3f} MB")

# %% [markdown]
# ## The same in JAX
#
# `lower` gives a function of arrays. `symjax.sparse.value_and_grad` differentiates it with row_sparse gradients, and
# `symjax.sparse.lazy` makes any Optax optimizer one that changes only their rows. Tables and states are donated to
# the compiled step, which updates them in place.

# %%
fn, params, aux = mx.lower(guess, first_weights)


def loss(params, user, item, rating):
    (out,), _ = fn(params, aux, user=user, item=item)
    return jnp.mean((out - rating) ** 2)


optimizer = lazy.adam(0.02)
state = optimizer.init(params)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(params, state, *batch):
    value, grads = mx.sparse.value_and_grad(loss, tables=list(params))(params, *batch)
    updates, state = optimizer.update(grads, state, params)
    return lazy.apply_updates(params, updates), state, value


arrays = user.astype("int32"), item.astype("int32"), rating.astype("float32")
begin = time.perf_counter()
errors = []
for _ in range(5):
    for i in range(0, RATINGS, 1000):
        params, state, value = step(params, state, *(a[i : i + 1000] for a in arrays))
        errors.append(value)
errors = np.sqrt(jax.device_get(errors))
seconds = time.perf_counter() - begin
print(f"{len(errors)} steps in {seconds:.1f} s: error {errors[0]:.2f} -> {errors[-200:].mean():.2f}")

# %% [markdown]
# ## A table over several devices
#
# A table that is too large for one device lies on all of a mesh, a block of rows on each. The function and its
# gradient stay the same; only the rows that a batch touches move. Here the devices are four parts of the CPU.

# %%
mesh = jax.sharding.Mesh(jax.devices("cpu"), ("rows",))
tables = {name: sharding.shard_table(value, mesh, "rows") for name, value in first_weights.items()}
rule = sharding.adam(lr=0.02)
states = {name: sharding.init_states(table, rule) for name, table in tables.items()}


@functools.partial(jax.jit, donate_argnums=(0, 1))
def sharded_step(tables, states, *batch):
    value, grads = mx.sparse.value_and_grad(loss, tables=list(tables))(tables, *batch)
    new = {name: sharding.update(tables[name], states[name], grads[name], rule) for name in tables}
    return {name: t for name, (t, _) in new.items()}, {name: s for name, (_, s) in new.items()}, value


errors = []
for i in range(0, RATINGS // 4, 1000):
    tables, states, value = sharded_step(tables, states, *(a[i : i + 1000] for a in arrays))
    errors.append(value)
print([f"{s.data.shape} on {s.device}" for s in tables["user_weight"].data.addressable_shards])
print(f"error {errors[0] ** 0.5:.2f} -> {errors[-1] ** 0.5:.2f}")
