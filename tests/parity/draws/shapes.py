"""Shapes, joining and slicing, padding, broadcasting."""

from __future__ import annotations

import math
from typing import Any

from tests.parity.case import Case
from tests.parity.draw import ALL, FEW, FLOATS, SINGLE, Draw, Shape, draws


def part(d: Draw, n: int) -> tuple[int | None, int | None, int | None]:
    """A slice that keeps something of an axis of n: begin, end, step, each perhaps None or negative."""
    keep = d.of(range(n))
    if d.maybe(0.25):  # backwards
        begin, end, step = d.whole(keep, n - 1), d.whole(-1, keep - 1), -d.whole(1, 3)
        return begin if d.maybe(0.7) else None, end if end >= 0 else None, step
    begin, end = d.whole(0, keep), d.whole(keep + 1, n)
    first = None if begin == 0 and d.maybe(0.3) else begin - n if d.maybe(0.3) else begin
    last = None if end == n and d.maybe(0.3) else end - n if end < n and d.maybe(0.3) else end
    return first, last, d.of((None, 1, 2, 3))


def parts(d: Draw, shape: Shape) -> dict[str, Any]:
    cut = [part(d, n) for n in shape[: d.whole(1, len(shape))]]
    begin, end, step = (tuple(p[i] for p in cut) for i in range(3))
    return {"begin": begin, "end": end, "step": step if any(s not in (None, 1) for s in step) or d.maybe() else ()}


@draws("slice", "_slice_assign_scalar", dtypes=FEW)
def slices(d: Draw) -> Case:
    shape = d.shape(high=4)
    more = {"scalar": d.whole(-2, 3)} if d.name.endswith("scalar") else {}
    return d.case([d.x(shape)], {**parts(d, shape), **more})


@draws("slice_axis", dtypes=FEW)
def slice_axis(d: Draw) -> Case:
    shape = d.shape(high=4)
    axis = d.axis(len(shape))
    n = shape[axis]
    begin = d.whole(0, n - 1)
    end = d.whole(begin + 1, n)
    return d.case(
        [d.x(shape)],
        {
            "axis": axis,
            "begin": begin - n if d.maybe(0.3) else begin,
            "end": None if end == n and d.maybe() else end - n if end < n and d.maybe(0.3) else end,
        },
    )


@draws("slice_like", dtypes=FEW)
def slice_like(d: Draw) -> Case:
    shape = d.shape(high=4)
    like = tuple(d.whole(1, n) for n in shape)
    # MXNet: without axes the ranks must be equal
    return d.case([d.x(shape), d.x(like)], d.params(axes=d.axes(len(shape))))


@draws("Concat", "stack", "_rnn_param_concat", dtypes=FEW)
def join(d: Draw) -> Case:
    shape, n = d.shape(high=4), d.whole(1, 4)
    if d.name == "stack":
        return d.case([d.x(shape)] * n, {"num_args": n, "axis": d.whole(-len(shape) - 1, len(shape))})
    dim = d.axis(len(shape)) if d.name == "Concat" else 0
    shapes = [(*shape[: dim % len(shape)], d.size(3), *shape[dim % len(shape) + 1 :]) for _ in range(n)]
    return d.case([d.x(s) for s in shapes], {"num_args": n, "dim": dim})


@draws("SliceChannel", dtypes=FEW)
def split(d: Draw) -> Case:
    shape = list(d.shape(high=4))
    axis, n, squeeze = d.axis(len(shape)), d.whole(1, 3), d.maybe(0.3)
    shape[axis] = n if squeeze else n * d.whole(1, 2)
    return d.case([d.x(tuple(shape))], d.params(num_outputs=n, axis=axis, squeeze_axis=squeeze))


@draws("_split_v2", dtypes=FEW)
def split_v2(d: Draw) -> Case:
    shape = list(d.shape(high=4))
    axis = d.axis(len(shape))
    if d.maybe():
        n, squeeze = d.whole(1, 3), d.maybe(0.3)
        shape[axis] = n if squeeze else n * d.whole(1, 2)
        return d.case([d.x(tuple(shape))], {"indices": (), "sections": n, "axis": axis, "squeeze_axis": squeeze})
    cuts = sorted(d.rng.sample(range(1, shape[axis]), d.whole(0, min(3, shape[axis] - 1))))
    return d.case([d.x(tuple(shape))], {"indices": (0, *cuts), "axis": axis})


@draws("Reshape", dtypes=FEW)
def reshape(d: Draw) -> Case:
    shape = d.shape(high=4)
    codes: list[int] = []
    i, open_axis = 0, False
    while i < len(shape):
        kind = d.of(("keep", "size", "merge", "split", "rest", "one"))
        if kind == "keep":
            codes, i = [*codes, 0], i + 1
        elif kind == "merge" and i + 1 < len(shape):
            codes, i = [*codes, -3], i + 2
        elif kind == "split":
            f = d.of([k for k in range(1, shape[i] + 1) if shape[i] % k == 0])
            codes, i = [*codes, -4, *d.of(((f, shape[i] // f), (-1, f), (f, -1)))], i + 1
        elif kind == "rest":
            codes, i = [*codes, -2], len(shape)
        elif kind == "one":
            codes = [*codes, 1]
            if len(codes) > 9:
                codes, i = [*codes, -2], len(shape)
            else:  # a 1 takes no axis of the input: the rest is given as sizes
                codes, i = [*codes, *shape[i:]], len(shape)
        elif not open_axis and d.maybe():
            codes, i, open_axis = [*codes, -1], i + 1, True
        else:
            codes, i = [*codes, shape[i]], i + 1
    return d.case([d.x(shape)], {"shape": tuple(codes)})


@draws("Reshape", dtypes=FEW)
def reshape_reverse(d: Draw) -> Case:
    shape = d.shape(high=4)
    tail = d.whole(0, len(shape))
    codes = (
        *((-1,) if tail < len(shape) or d.maybe() else ()),
        *(0 if d.maybe() else n for n in shape[len(shape) - tail :]),
    )
    return d.case([d.x(shape)], {"shape": codes or (-1,), "reverse": True})


@draws("reshape_like", dtypes=FLOATS)
def reshape_like(d: Draw) -> Case:
    shape = d.shape(2, 4)
    a = d.whole(0, len(shape) - 1)
    b = d.whole(a + 1, len(shape))
    middle = (math.prod(shape[a:b]),)
    rhs = (*d.shape(1, 2)[:a], *middle, 2)
    at = len(rhs) - 2
    return d.case(
        [d.x(shape), d.x(rhs)],
        {
            "lhs_begin": a - len(shape) if d.maybe(0.3) else a,
            "lhs_end": None if b == len(shape) and d.maybe() else b,
            "rhs_begin": at,
            "rhs_end": at + 1,
        },
        grads=["lhs"],
    )


@draws("transpose", dtypes=ALL)
def transpose(d: Draw) -> Case:
    shape = d.shape(high=6, size=3)
    axes = tuple(d.rng.sample(range(len(shape)), len(shape)))
    return d.case([d.x(shape)], {"axes": axes} if d.maybe(0.8) else {})


@draws("SwapAxis", dtypes=FEW)
def swap(d: Draw) -> Case:
    shape = d.shape(high=5)
    a, b = d.axis(len(shape)), d.axis(len(shape))
    if d.maybe(0.8) and a % len(shape) == b % len(shape):
        b = (a + 1) % len(shape)
    return d.case([d.x(shape)], {"dim1": a, "dim2": b})


@draws("expand_dims", dtypes=FEW)
def expand(d: Draw) -> Case:
    shape = d.shape(high=4)
    return d.case([d.x(shape)], {"axis": d.whole(-len(shape) - 1, len(shape))})


@draws("squeeze", dtypes=FEW)
def squeeze(d: Draw) -> Case:
    shape = tuple(1 if d.maybe() else n for n in d.shape(high=4))
    ones = [i for i, n in enumerate(shape) if n == 1]
    some = tuple(i - len(shape) if d.maybe(0.3) else i for i in d.rng.sample(ones, d.whole(0, len(ones))))
    return d.case([d.x(shape)], {"axis": some} if some else {})


@draws("tile", dtypes=FEW)
def tile(d: Draw) -> Case:
    return d.case([d.x(d.shape(high=3))], {"reps": d.ints(d.whole(1, 4), 1, 3)})


@draws("repeat", dtypes=FEW)
def repeat(d: Draw) -> Case:
    shape = d.shape(high=4)
    return d.case([d.x(shape)], {"repeats": d.whole(1, 3), "axis": d.of((None, d.axis(len(shape))))})


@draws("reverse", dtypes=FEW)
def reverse(d: Draw) -> Case:
    shape = d.shape(high=4)
    # MXNet: a negative axis reads outside
    return d.case([d.x(shape)], {"axis": tuple(d.rng.sample(range(len(shape)), d.whole(1, len(shape))))})


@draws("Pad", dtypes=SINGLE)
def pad(d: Draw) -> Case:
    shape = d.shape(4, 5, 4)
    mode = d.of(("constant", "edge", "reflect"))
    most = [n - 1 if mode == "reflect" else 3 for n in shape[2:]]
    width = (0, 0, 0, 0, *(d.whole(0, m) for m in most for _ in "ab"))
    return d.case([d.x(shape)], d.params(mode=mode, pad_width=width, constant_value=d.of((0.0, 1.5))))


@draws("Crop", dtypes=SINGLE)
def crop(d: Draw) -> Case:
    shape = d.shape(4, 4, 6)
    h, w = d.whole(1, shape[2]), d.whole(1, shape[3])
    center = d.maybe(0.3)
    offset = (0, 0) if center else (d.whole(0, shape[2] - h), d.whole(0, shape[3] - w))
    if d.maybe():
        return d.case([d.x(shape)], d.params(num_args=1, h_w=(h, w), offset=offset, center_crop=center))
    return d.case([d.x(shape), d.x((1, 1, h, w))], d.params(num_args=2, offset=offset, center_crop=center))


@draws("depth_to_space", "space_to_depth", dtypes=FLOATS)
def blocks(d: Draw) -> Case:
    b = d.whole(1, 3)
    n, c, h, w = d.size(2), d.size(2), d.size(3), d.size(3)
    shape = (n, c * b * b, h, w) if d.name.startswith("depth") else (n, c, h * b, w * b)
    return d.case([d.x(shape)], {"block_size": b})


@draws("diag", dtypes=FEW)
def diag(d: Draw) -> Case:
    shape = d.shape(high=4, size=4)
    if len(shape) == 1:
        return d.case([d.x(shape)], {"k": d.whole(-2, 2)})
    a, b = d.rng.sample(range(len(shape)), 2)
    k = d.whole(1 - shape[a], shape[b] - 1)
    return d.case([d.x(shape)], {"k": k, "axis1": a - len(shape) if d.maybe(0.3) else a, "axis2": b})


@draws("broadcast_axis", "broadcast_to", "broadcast_like", dtypes=FEW)
def stretch(d: Draw) -> Case:
    full = d.shape(high=4)
    small = tuple(1 if d.maybe() else n for n in full)
    if d.name == "broadcast_like":
        return d.case([d.x(small), d.x(full)], grads=["lhs"] if d.is_float else ())
    if d.name == "broadcast_to":
        return d.case(
            [d.x(small)], {"shape": tuple(0 if a == b and d.maybe() else b for a, b in zip(small, full, strict=True))}
        )
    axes = [i for i, n in enumerate(small) if n == 1]
    return d.case([d.x(small)], {"axis": tuple(axes), "size": tuple(full[i] for i in axes)})
