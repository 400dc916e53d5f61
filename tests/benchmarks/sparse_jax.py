"""The sparse workloads as an expert writes them in plain JAX: what symjax is measured against beside MXNet.

Rows that a batch touches are found on the host, gathered, differentiated and scattered back into donated buffers, all
in one compiled call. Products use the fastest of JAX's formulations for their width.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sparse_workloads as w
from jax.experimental import sparse as jsparse

Step = Callable[[], Any]


def product(rows: int, columns: int, entries: int, width: int, transposed: bool) -> Step:
    data, indices, indptr = w.matrix(rows, columns, entries, popular=1)
    row = jnp.asarray(np.repeat(np.arange(rows, dtype=np.int32), np.diff(indptr)))
    values, col, ptr = jnp.asarray(data), jnp.asarray(indices.astype(np.int32)), jnp.asarray(indptr.astype(np.int32))
    rhs = jnp.asarray(w.dense(rows if transposed else columns, width))
    if not transposed and width >= 8:
        bcsr = jsparse.BCSR((values, col, ptr), shape=(rows, columns))
        times = jax.jit(lambda m, d: m @ d)
        return lambda: times(bcsr, rhs).block_until_ready()
    if not transposed:
        gathered = jax.jit(lambda d, c, r, v: jax.ops.segment_sum(
            jnp.take(d, c, axis=0, mode="clip") * v[:, None], r, rows, indices_are_sorted=True))  # fmt: skip
        return lambda: gathered(rhs, col, row, values).block_until_ready()
    found, place = np.unique(indices, return_inverse=True)
    inverse, count = jnp.asarray(place.astype(np.int32)), len(found)
    by_column = jax.jit(lambda d, r, v, i: jax.ops.segment_sum(
        jnp.take(d, r, axis=0, mode="clip") * v[:, None], i, count))  # fmt: skip
    return lambda: by_column(rhs, row, values, inverse).block_until_ready()


def distinct(flat: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids, padded to a ladder of sizes, and where each id is among them."""
    ordered = np.sort(flat)
    keep = np.ones(len(ordered), bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    found = ordered[keep]
    table[found] = np.arange(len(found), dtype=np.int32)
    room = 1 << (len(found) - 1).bit_length()
    room = room * 3 // 4 if len(found) <= room * 3 // 4 else room
    padded = np.full(room, len(table), np.int32)
    padded[: len(found)] = found
    return padded, table[flat]


def rule(name: str) -> tuple[Callable[..., Any], int]:
    def sgd(x: Any, s: Any, g: Any, t: Any) -> Any:
        return x - w.RATE * g, s

    def adagrad(x: Any, s: Any, g: Any, t: Any) -> Any:
        h = s[0] + g * g
        return x - w.RATE * g / jnp.sqrt(h + 1e-7), (h,)

    def adam(x: Any, s: Any, g: Any, t: Any) -> Any:
        m, v = 0.9 * s[0] + 0.1 * g, 0.999 * s[1] + 0.001 * g * g
        rate = w.RATE * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return x - rate * m / (jnp.sqrt(v) + 1e-8), (m, v)

    return {"sgd": (sgd, 0), "adagrad": (adagrad, 1), "adam": (adam, 2)}[name]


def train(optimizer: str, tables: dict[str, Any], rest: dict[str, Any], feeds: list[Any], loss: Any) -> Step:
    """`loss(rows of the tables, inverse, rest, feed)`; feeds are (ids on the host, device arrays)."""
    update, states = rule(optimizer)
    size = next(iter(tables.values())).shape[0]
    lookup = np.zeros(size, np.int32)
    state: list[Any] = [tables, {k: (jnp.zeros_like(v),) * states for k, v in tables.items()}, rest,
                        {k: (jnp.zeros_like(v),) * states for k, v in rest.items()}, jnp.float32(1)]  # fmt: skip
    state = [jax.tree.map(jnp.copy, s) for s in state]

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def call(tables: Any, own: Any, rest: Any, own_rest: Any, t: Any, u: Any, inverse: Any, feed: Any) -> Any:
        def get(a: Any) -> Any:
            return a.at[u].get(mode="fill", fill_value=0)

        rows = {k: get(v) for k, v in tables.items()}
        value, (g_rows, g_rest) = jax.value_and_grad(lambda r, d: loss(r, inverse, d, feed), (0, 1))(rows, rest)
        new, new_own = {}, {}
        for k in tables:
            row, s = update(rows[k], tuple(get(x) for x in own[k]), g_rows[k], t)
            new[k] = tables[k].at[u].set(row, mode="drop")
            new_own[k] = tuple(x.at[u].set(y, mode="drop") for x, y in zip(own[k], s, strict=True))
        pairs = {k: update(rest[k], own_rest[k], g_rest[k], t) for k in rest}
        return value, new, new_own, {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}, t + 1

    count = 0

    def step() -> None:
        nonlocal count
        host_ids, feed = feeds[count % len(feeds)]
        count += 1
        u, inverse = distinct(host_ids, lookup)
        value, *state[:] = call(*state, u, inverse, feed)
        jax.block_until_ready((value, state))

    return step


def embedding(vocabulary: int, optimizer: str) -> Step:
    table = jnp.asarray(w.dense(vocabulary, w.WIDTH) * 0.01)
    feeds = [(x.astype(np.int32), ()) for x in w.ids(vocabulary)]
    return train(optimizer, {"table": table}, {}, feeds, lambda r, i, d, f: jnp.sum(
        jnp.square(jnp.take(r["table"], i, axis=0, mode="clip"))))  # fmt: skip


def click_feeds() -> list[Any]:
    y = jnp.asarray((np.arange(w.BATCH) % 2).astype(np.int32))
    found = []
    for data, indices, indptr in w.batches():
        row = jnp.asarray(np.repeat(np.arange(w.BATCH, dtype=np.int32), np.diff(indptr)))
        found.append((indices.astype(np.int32), (row, jnp.asarray(data), y)))
    return found


def linear(optimizer: str) -> Step:
    def loss(r: Any, i: Any, d: Any, feed: Any) -> Any:
        row, data, y = feed
        products = jnp.take(r["w"], i, axis=0, mode="clip") * data[:, None]
        z = jax.ops.segment_sum(products, row, w.BATCH, indices_are_sorted=True) + d["b"]
        return -jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

    table = jnp.asarray(w.dense(w.COLUMNS, 2) * 0.01)
    return train(optimizer, {"w": table}, {"b": jnp.zeros(2)}, click_feeds(), loss)


def machine(optimizer: str) -> Step:
    def loss(r: Any, i: Any, d: Any, feed: Any) -> Any:
        row, data, y = feed
        total = functools.partial(jax.ops.segment_sum, segment_ids=row, num_segments=w.BATCH, indices_are_sorted=True)
        xv = total(jnp.take(r["v"], i, axis=0, mode="clip") * data[:, None])
        squares = jnp.sum(r["v"] * r["v"], 1)
        z = total(jnp.take(r["w"][:, 0], i, mode="clip") * data) + d["b"][0] + 0.5 * jnp.sum(xv * xv, 1)
        z = z - 0.5 * total(jnp.take(squares, i, mode="clip") * data * data)
        return jnp.sum(jnp.logaddexp(0.0, z) - z * y)

    tables = {"v": jnp.asarray(w.dense(w.COLUMNS, 16) * 0.01), "w": jnp.asarray(w.dense(w.COLUMNS, 1) * 0.01)}
    return train(optimizer, tables, {"b": jnp.zeros(1)}, click_feeds(), loss)


JAX: dict[str, Callable[[], Step]] = {
    **{name: functools.partial(product, *sizes) for name, sizes in w.PRODUCTS.items()},
    **{f"embedding_{o}": functools.partial(embedding, 10**6, o) for o in ("sgd", "adagrad", "adam")},
    **{f"embedding_10e{p}": functools.partial(embedding, 10**p, "sgd") for p in (5, 6, 7)},
    "linear_sgd": functools.partial(linear, "sgd"),
    "linear_adagrad": functools.partial(linear, "adagrad"),
    "machine_adagrad": functools.partial(machine, "adagrad"),
}
