"""Compositions that decide the storage of a weight's gradient: an op whose result goes into ``dot(csr, ·)``, and
several uses of one weight."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from tests.parity.arrays import Array, signed, uniform, values
from tests.parity.storage.case import CSR, DEFAULT, ROWS, StorageCase, Stored
from tests.parity.storage.families.scalar import SCALAR
from tests.parity.storage.families.unary import UNARY, numbers

X = Stored(CSR, signed((4, 7), 0.2, 0.9), only=(0, 3, 5))
Z = Stored(CSR, signed((4, 7), 0.2, 0.9), pattern=1, only=(1, 3))
W = signed((7, 3), 0.2, 0.9)
IDS, MORE = values([1, 4, 4, 6], "float32"), values([4, 2, 2, 0], "float32")
TABLE = {"input_dim": 7, "output_dim": 3}
PAIRS = tuple(itertools.product((DEFAULT, ROWS), repeat=2))
Node = tuple[str, str, dict[str, Any], tuple[str, ...]]


def chain(label: str, nodes: Sequence[Node], inputs: dict[str, Stored], grads: Sequence[str] = ("w",),
          heads: Sequence[str] = (), **options: Any) -> StorageCase:
    """A graph of several ops, named by what it does; the last node is the output."""
    kinds = ",".join(f"{k}={v.stype}" + ("" if v.some == "some" else f":{v.some}") for k, v in inputs.items()
                     if k in grads)
    return StorageCase(f"{label}({kinds})", tuple(nodes), tuple(heads) or (nodes[-1][0],), inputs, tuple(grads),
                       **options)


def weight(stype: str, array: Array = W, pattern: int = 0, some: str = "some") -> Stored:
    return Stored(stype, array, some if stype == ROWS else "some", pattern)


def into_dot(label: str, op: str, params: dict[str, Any], inputs: dict[str, Stored], grads: Sequence[str] = ("w",),
             **options: Any) -> StorageCase:
    """``dot(x, op(inputs))``."""
    nodes = [("f", op, params, tuple(inputs)), ("op", "dot", {}, ("x", "f"))]
    return chain(f"{label}>dot", nodes, {**inputs, "x": X}, grads, **options)


def _elementwise() -> Iterator[StorageCase]:
    for op, stype in itertools.product(UNARY, (DEFAULT, ROWS)):
        yield into_dot(op, op, {}, {"w": weight(stype, numbers(op, (7, 3)))})
    for op, value, stype in itertools.product(SCALAR, (2.0, 0.0), (DEFAULT, ROWS)):
        if (op, value) == ("_div_scalar", 0.0):
            continue
        yield into_dot(f"{op}[{value}]", op, {"scalar": value}, {"w": weight(stype, uniform((7, 3), 0.2, 0.9))})
    for stype in (DEFAULT, ROWS):
        yield into_dot("clip", "clip", {"a_min": -0.5, "a_max": 0.5}, {"w": weight(stype)})
        yield into_dot("make_loss", "make_loss", {}, {"w": weight(stype)})
        yield into_dot("Cast", "Cast", {"dtype": "float32"}, {"w": weight(stype)})
        yield into_dot("Activation", "Activation", {"act_type": "relu"}, {"w": weight(stype)})
        yield into_dot("transpose", "transpose", {}, {"w": weight(stype, signed((3, 7), 0.2, 0.9))})
        yield into_dot("reshape", "reshape", {"shape": (7, 3)}, {"w": weight(stype, signed((21, 1), 0.2, 0.9))})
        yield into_dot("slice", "slice", {"begin": (1,), "end": (8,)}, {"w": weight(stype, signed((9, 3), 0.2, 0.9))})
        yield into_dot("softmax", "softmax", {}, {"w": weight(stype)})
        for cast in (DEFAULT, ROWS):
            yield into_dot(f"cast_storage[{cast}]", "cast_storage", {"stype": cast}, {"w": weight(stype)})
    for label, ids in (("ascending", [0, 2, 5]), ("order", [5, 0, 2]), ("absent", [1, 3])):
        retained = {"w": weight(ROWS), "ids": Stored(DEFAULT, values(ids, "int64"))}
        yield into_dot(f"retain[{label}]", "_sparse_retain", {}, retained)
        nodes = [("f", "_sparse_retain", {}, ("w", "ids")),
                 ("op", "_square_sum", {"axis": 1, "keepdims": True}, ("f",))]
        yield chain(f"retain[{label}]>_square_sum", nodes, retained)
        nodes = [("f", "_sparse_retain", {}, ("w", "ids")), ("op", "sum", {"axis": 0}, ("f",))]
        yield chain(f"retain[{label}]>sum", nodes, retained)


def _two() -> Iterator[StorageCase]:
    ops = ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_maximum", "_minimum", "_hypot",
           "broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_maximum", "_grad_add",
           "_equal")  # fmt: skip
    for op, (a, b) in itertools.product(ops, PAIRS):
        yield into_dot(op, op, {}, {"w": weight(a), "v": weight(b, pattern=1)}, ("w", "v"))
    for a, b in PAIRS:
        two = {"w": weight(a), "v": weight(b, pattern=1)}
        yield into_dot("add_n", "add_n", {"num_args": 2}, two, ("w", "v"))
        half = {k: weight(s.stype, signed((7, 2), 0.2, 0.9), n) for n, (k, s) in enumerate(two.items())}
        yield into_dot("Concat", "Concat", {"num_args": 2, "dim": 1}, half, ("w", "v"))
        yield into_dot("where", "where", {}, {"c": Stored(DEFAULT, values([1, 0, 1, 1, 0, 0, 1], "float32")), **two},
                       ("w", "v"))
        nodes = [("e", "Embedding", {**TABLE, "sparse_grad": True}, ("ids", "w")), ("g", "dot", {}, ("x", "v")),
                 ("op", "elemwise_add", {}, ("e", "g"))]  # fmt: skip
        yield chain("Embedding+dot", nodes, {"ids": Stored(DEFAULT, IDS), "w": weight(a, some="all"), "x": X,
                                             "v": weight(b, pattern=1)}, ("w", "v"))


def _uses(stype: str) -> dict[str, list[Node]]:
    """Uses of the weight w, each giving (4, 3)."""
    return {
        "lookup": [("{0}", "Embedding", {**TABLE, "sparse_grad": True}, ("ids", "w"))],
        "lookup2": [("{0}", "Embedding", {**TABLE, "sparse_grad": True}, ("more", "w"))],
        "plain": [("{0}", "Embedding", TABLE, ("more", "w"))],
        "dot": [("{0}", "dot", {}, ("x", "w"))],
        "dot2": [("{0}", "dot", {}, ("z", "w"))],
        "square dot": [("{0}s", "square", {}, ("w",)), ("{0}", "dot", {}, ("x", "{0}s"))],
        "slice": [("{0}", "slice", {"begin": (0,), "end": (4,)}, ("w",))],
        "take": [("{0}", "take", {}, ("w", "ids"))],
    }


MIXES = (
    ("lookup", "lookup2"), ("lookup", "lookup"), ("lookup", "plain"), ("lookup", "dot"), ("dot", "dot2"),
    ("dot", "dot"),
    ("dot", "slice"), ("lookup", "slice"), ("dot", "square dot"), ("lookup", "square dot"), ("dot", "take"),
    ("lookup", "take"), ("lookup", "lookup2", "dot"), ("dot", "dot2", "square dot"), ("lookup", "dot", "slice"),
    ("lookup", "lookup2", "lookup"), ("dot", "dot2", "dot"), ("dot",), ("lookup",), ("square dot",),
)  # fmt: skip


def _renamed(nodes: Sequence[Node], name: str) -> list[Node]:
    return [(n.format(name), o, p, tuple(i.format(name) for i in ins)) for n, o, p, ins in nodes]


def _mixes() -> Iterator[StorageCase]:
    """Sums of several uses of one weight, by elemwise_add, by add_n and as several heads."""
    every = {"ids": Stored(DEFAULT, IDS), "more": Stored(DEFAULT, MORE), "x": X, "z": Z}
    for mix, stype, join in itertools.product(MIXES, (DEFAULT, ROWS), ("add", "add_n", "heads")):
        if len(mix) == 1 and join != "heads":
            continue
        some = "all" if {"lookup", "lookup2", "plain"} & set(mix) else "some"
        nodes = [n for i, u in enumerate(mix) for n in _renamed(_uses(stype)[u], f"u{i}")]
        ends = [f"u{i}" for i in range(len(mix))]
        if join == "add":
            total = ends[0]
            for i, e in enumerate(ends[1:]):
                nodes.append((f"t{i}", "elemwise_add", {}, (total, e)))
                total = f"t{i}"
            heads = [total]
        elif join == "add_n":
            nodes.append(("t", "add_n", {"num_args": len(ends)}, tuple(ends)))
            heads = ["t"]
        else:
            heads = ends
        used = {i for _, _, _, ins in nodes for i in ins}
        inputs = {"w": weight(stype, some=some), **{k: v for k, v in every.items() if k in used}}
        reqs = ("write", "add") if join != "add_n" else ("write",)
        for req in reqs:
            label = f"{'+'.join(mix)}[{join}]{'' if req == 'write' else '[grad_req=add]'}"
            yield chain(label, nodes, inputs, heads=heads, grad_req=req)


def _models() -> Iterator[StorageCase]:
    x = {"x": X}
    label = {"label": Stored(DEFAULT, values([[0], [1], [1], [0]], "float32"))}
    for a, b in PAIRS:
        w, v = weight(a, signed((7, 1), 0.2, 0.9)), weight(b, pattern=1)
        factor: list[Node] = [
            ("l", "dot", {}, ("x", "w")), ("xv", "dot", {}, ("x", "v")), ("xv2", "square", {}, ("xv",)),
            ("x2", "square", {}, ("x",)), ("v2", "square", {}, ("v",)), ("x2v2", "dot", {}, ("x2", "v2")),
            ("d", "elemwise_sub", {}, ("xv2", "x2v2")), ("s", "sum", {"axis": 1, "keepdims": True}, ("d",)),
            ("h", "_mul_scalar", {"scalar": 0.5}, ("s",)), ("y", "broadcast_add", {}, ("l", "bias")),
            ("o", "elemwise_add", {}, ("y", "h")), ("op", "LogisticRegressionOutput", {}, ("o", "label")),
        ]  # fmt: skip
        bias = Stored(DEFAULT, signed((1,), 0.2, 0.9))
        yield chain("factorization machine", factor, {**x, "w": w, "v": v, "bias": bias, **label}, ("w", "v", "bias"),
                    head="none")
    for stype in (DEFAULT, ROWS):
        w = weight(stype, signed((7, 1), 0.2, 0.9))
        linear: list[Node] = [("l", "dot", {}, ("x", "w")), ("y", "broadcast_add", {}, ("l", "bias")),
                              ("op", "LinearRegressionOutput", {}, ("y", "label"))]
        yield chain("linear", linear, {**x, "w": w, "bias": Stored(DEFAULT, signed((1,), 0.2, 0.9)), **label},
                    ("w", "bias"), head="none")
        for cast in (CSR, ROWS):
            pipeline: list[Node] = [
                ("e", "Embedding", {**TABLE, "sparse_grad": True}, ("ids", "w")),
                ("d", "dot", {"transpose_b": True}, ("e", "e")), ("c", "cast_storage", {"stype": cast}, ("d",)),
                ("q", "square", {}, ("c",)), ("m", "mean", {}, ("q",)), ("op", "make_loss", {}, ("m",)),
            ]  # fmt: skip
            yield chain(f"embedding pipeline[{cast}]", pipeline, {"ids": Stored(DEFAULT, IDS), "w": weight(
                stype, some="all")}, head="none")
        two_dots: list[Node] = [("i", "dot", {}, ("x", "w")), ("op", "dot", {"transpose_a": True}, ("x", "i"))]
        yield chain("dot>dot(x.T)", two_dots, {**x, "w": weight(stype)})
        two_dots = [("i", "dot", {"transpose_a": True}, ("x", "w")), ("op", "dot", {}, ("x", "i"))]
        yield chain("dot(x.T)>dot", two_dots, {**x, "w": weight(stype, signed((4, 3), 0.2, 0.9))})
        two_dots = [("i", "dot", {"transpose_a": True}, ("x", "w")), ("op", "elemwise_add", {}, ("i", "v"))]
        yield chain("dot(x.T)>elemwise_add", two_dots, {**x, "w": weight(stype, signed((4, 3), 0.2, 0.9)), "v": weight(
            ROWS, pattern=1)}, ("w", "v"))
        yield chain("dot>BlockGrad", [("f", "BlockGrad", {}, ("w",)), ("g", "dot", {}, ("x", "f")), ("h", "dot", {},
                    ("x", "w")), ("op", "elemwise_add", {}, ("g", "h"))], {**x, "w": weight(stype)})
        for forward in (CSR, ROWS, DEFAULT):
            nodes = [("d", "dot", {"forward_stype": forward}, ("x", "w")), ("op", "square", {}, ("d",))]
            yield chain(f"dot[{forward}]>square", nodes, {**x, "w": weight(stype)})
        for deep in (("abs", "negative"), ("square", "_copy"), ("sqrt", "negative"), ("_copy", "sqrt")):
            nodes = [("f", deep[0], {}, ("w",)), ("g", deep[1], {}, ("f",)), ("op", "dot", {}, ("x", "g"))]
            yield chain(">".join(deep) + ">dot", nodes, {**x, "w": weight(stype, uniform((7, 3), 0.2, 0.9))})


CASES = [*_elementwise(), *_two(), *_mixes(), *_models()]
