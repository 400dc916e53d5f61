"""Indexing, sequences, matrices, creation."""

from __future__ import annotations

import math
from typing import Any

from tests.parity.arrays import distinct, randint, signed, spd, uniform
from tests.parity.case import Case
from tests.parity.draw import FEW, FLOATS, SINGLE, Draw, draws


@draws("take", dtypes=FEW)
def take(d: Draw) -> Case:
    shape = d.shape(high=3)
    axis = d.axis(len(shape))
    mode = d.of(("clip", "wrap"))  # "raise" on this kernel's CPU checks nothing in symbols
    return d.case(
        [d.x(shape), d.index(d.shape(1, 2), shape[axis], True)],
        {"axis": axis, "mode": mode},
        grads=["a"] if d.is_float else (),
    )


@draws("pick", dtypes=FLOATS)
def pick(d: Draw) -> Case:
    shape = d.shape(high=4)
    axis, keep = d.axis(len(shape)), d.maybe()
    rest = (
        tuple(1 if i == axis % len(shape) else n for i, n in enumerate(shape))
        if keep or len(shape) == 1
        else tuple(n for i, n in enumerate(shape) if i != axis % len(shape))
    )
    return d.case(
        [d.x(shape), d.index(rest, shape[axis], True)],
        {"axis": axis, "keepdims": keep, "mode": d.of(("clip", "wrap"))},
        grads=["data"],
    )


@draws("gather_nd", "scatter_nd", dtypes=FLOATS)
def gather(d: Draw) -> Case:
    shape = d.shape(high=4)
    depth, batch = d.whole(1, len(shape)), d.shape(1, 2, 3)
    least = min(shape[:depth])
    index = d.index((depth, *batch), least)
    if d.name == "gather_nd":
        return d.case([d.x(shape), index], grads=["data"])
    # MXNet: of several values for one place any may win, so places are distinct
    shape, n = (d.whole(1, 5), *shape[1:]), 1
    n = d.whole(1, shape[0])
    return d.case(
        [d.x((n, *shape[1:])), distinct((1, n), 0, n - 1, "int32") if n > 1 else randint((1, 1), 0, 1, "int32")],
        {"shape": shape},
        grads=["data"],
    )


@draws("one_hot", dtypes=("float32", "int32", "int64"))
def one_hot(d: Draw) -> Case:
    depth = d.whole(1, 5)
    return d.case(
        [d.index(d.shape(1, 3), depth, True, (d.dtype,))],
        d.params(
            depth=depth,
            on_value=d.of((1.0, 3.0)),
            off_value=d.of((0.0, -1.0)),
            dtype=d.of(("float32", "float64", "float16", "int32", "int64")),
        ),
        grads=(),
    )


@draws("batch_take", dtypes=SINGLE)
def batch_take(d: Draw) -> Case:
    shape = d.shape(2, 2)
    return d.case([d.x(shape), d.index(shape[:1], shape[1], True, ("int32",))], grads=())


@draws("SequenceMask", "SequenceLast", "SequenceReverse", dtypes=FLOATS)
def sequence(d: Draw) -> Case:
    shape = d.shape(2, 4)
    axis = 0 if d.name == "SequenceReverse" else d.whole(0, 1)
    used = d.maybe(0.7)
    given = {"value": d.real(-2, 2)} if d.name == "SequenceMask" else {}
    length = [randint((shape[1 - axis],), 1, shape[axis] + 1)] if used else []
    return d.case([d.x(shape), *length], d.params(axis=axis, use_sequence_length=used, **given), grads=["data"])


@draws("dot", dtypes=SINGLE)
def dot(d: Draw) -> Case:
    ta, tb = d.maybe(), d.maybe()
    a, b = list(d.shape(1, 3)), list(d.shape(1, 3))
    ta, tb = ta and len(a) > 1, tb and len(b) > 1
    b[-1 if tb else 0] = a[0 if ta else -1]
    return d.case([d.x(tuple(a)), d.x(tuple(b))], {"transpose_a": ta, "transpose_b": tb})


@draws("batch_dot", dtypes=SINGLE)
def batch_dot(d: Draw) -> Case:
    ta, tb, batch, m, k, n = d.maybe(), d.maybe(), d.size(3), d.size(), d.size(), d.size()
    return d.case(
        [d.x((batch, k, m) if ta else (batch, m, k)), d.x((batch, n, k) if tb else (batch, k, n))],
        {"transpose_a": ta, "transpose_b": tb},
    )


@draws("_linalg_gemm2", "_linalg_gemm", dtypes=("float32", "float64"))
def gemm(d: Draw) -> Case:
    batch = d.shape(1, 2, 2) if d.maybe() else ()
    ta, tb, m, k, n = d.maybe(), d.maybe(), d.size(), d.size(), d.size()
    three = [(k, m) if ta else (m, k), (n, k) if tb else (k, n), (m, n)]
    arrays = [d.x((*batch, *s)) for s in three]
    more = {"beta": d.real(-1, 2)} if d.name == "_linalg_gemm" else {}
    return d.case(
        arrays if more else arrays[:2], {"transpose_a": ta, "transpose_b": tb, "alpha": d.real(-1, 2), **more}
    )


@draws("_linalg_syrk", "_linalg_trmm", "_linalg_trsm", "_linalg_extractdiag", "_linalg_makediag",
       "_linalg_extracttrian", "_linalg_potrf", "_linalg_det", "_linalg_inverse", "_linalg_sumlogdiag",
       dtypes=("float32", "float64"))  # fmt: skip
def matrices(d: Draw) -> Case:
    batch, n, k = d.shape(1, 2, 2) if d.maybe() else (), d.whole(1, 4), d.whole(1, 4)
    loose: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-3} if d.dtype == "float32" else {"rtol": 1e-6, "atol": 1e-6}
    if d.name in ("_linalg_trmm", "_linalg_trsm"):
        p = d.params(alpha=d.real(0.5, 2))
        other = (k, n) if d.parsed(p).rightside else (n, k)
        return d.case([signed((*batch, n, n), 0.7, 1.5), d.x((*batch, *other))], p, **loose)
    if d.name == "_linalg_syrk":
        return d.case([d.x((*batch, n, k))], d.params(alpha=d.real(0.5, 2)))
    if d.name == "_linalg_makediag":
        return d.case([d.x((*batch, n))], {"offset": d.whole(-2, 2)})
    if d.name.startswith("_linalg_extract"):
        return d.case([d.x((*batch, n, n))], d.params(offset=d.whole(1 - n, n - 1)))
    return d.case([spd((*batch, n, n))], **loose)


CREATED = ("float16", "float32", "float64", "int32", "int64", "uint8", "int8")


@draws("_zeros", "_ones", "_full", "_arange", "_eye", "_linspace", dtypes=("float32",))
def created(d: Draw) -> Case:
    kind = {"dtype": d.of(CREATED)}
    if d.name == "_eye":
        return d.case([], {"N": d.whole(1, 4), "M": d.whole(0, 4), "k": d.whole(-3, 3), **kind})
    if d.name == "_linspace":
        return d.case(
            [],
            {
                "start": d.whole(-2, 2),
                "stop": d.whole(3, 9),
                "num": d.whole(1, 7),
                "endpoint": d.maybe(),
                "dtype": d.of(CREATED[:3]),
            },
        )
    if d.name == "_arange":
        start = d.whole(0, 3)
        if kind["dtype"] == "float16":  # MXNet: the step is cut to a whole number
            kind["dtype"] = "float32"
        return d.case(
            [],
            {
                "start": start,
                "stop": d.of((None, start + d.whole(1, 6))) if start else 4,
                "step": d.of((1.0, 2.0, 0.5)) if "float" in kind["dtype"] else 1,
                "repeat": d.whole(1, 3),
                **kind,
            },
        )
    return d.case([], {"shape": d.shape(), **kind, **({"value": d.whole(0, 3)} if d.name == "_full" else {})})


@draws("_contrib_arange_like", dtypes=SINGLE)
def arange_like(d: Draw) -> Case:
    shape = d.shape()
    return d.case(
        [d.x(shape)],
        d.params(axis=d.of((None, d.axis(len(shape)))), start=d.real(-1, 1), step=d.real(0.5, 2), repeat=1),
        grads=(),
    )


@draws("_contrib_index_array", dtypes=("float32",))
def index_array(d: Draw) -> Case:
    shape = d.shape()
    return d.case([d.x(shape)], d.params(axes=d.of((None, d.axes(len(shape), 1)))), grads=())


@draws("_ravel_multi_index", "_unravel_index", dtypes=("float32", "int32", "int64"))
def ravel(d: Draw) -> Case:
    shape = d.shape(1, 3)
    if d.name == "_unravel_index":
        return d.case([randint((d.size(),), 0, math.prod(shape))], {"shape": shape}, grads=())
    return d.case([randint((len(shape), d.size()), 0, min(shape))], {"shape": shape}, grads=())


@draws("khatri_rao", dtypes=SINGLE)
def khatri_rao(d: Draw) -> Case:
    n, columns = d.whole(1, 3), d.size()
    return d.case([d.x((d.size(), columns)) for _ in range(n)], {"num_args": n}, grads=())


@draws("_histogram", dtypes=("float32", "float64", "int32"))
def histogram(d: Draw) -> Case:
    low, n = d.whole(-2, 1), d.whole(1, 6)
    # MXNet: edges of whole numbers are cut to whole numbers, and bins that fall together are filled at random
    high = low + (d.whole(1, 4) if d.is_float else n)
    return d.case(
        [uniform(d.shape(1, 2), -3, 3) if d.is_float else randint(d.shape(1, 2), -3, 4)],
        {"bin_cnt": n, "range": (low, high)},
        grads=(),
    )
