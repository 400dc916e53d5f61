"""Numpy's shape semantics in inference, binding and JSON: 0 is an empty axis, () a scalar, -1 unknown.

Expected values are those of MXNet 1.9.1 under `mx.util.np_shape()`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import symjax as mx
from symjax.lowering.errors import MXNetError

A, B = mx.sym.Variable("a"), mx.sym.Variable("b")


@pytest.mark.parametrize(("graph", "given", "expected"), [
    (A + B, {"a": (0, -1), "b": (-1, 2)}, ([(0, 2), (0, 2)], [(0, 2)])),
    (A + B, {"a": (-1, 2), "b": (3, 2)}, ([(3, 2), (3, 2)], [(3, 2)])),
    (A + B, {"a": ()}, ([(), ()], [()])),
    (A + B, {}, ([None, None], [None])),
    (mx.sym.broadcast_add(A, B), {"a": (0, 1), "b": (3,)}, ([(0, 1), (3,)], [(0, 3)])),
    (mx.sym.FullyConnected(A, num_hidden=3, name="f"), {"a": (0, 2)}, ([(0, 2), (3, 2), (3,)], [(0, 3)])),
    (mx.sym.FullyConnected(A, num_hidden=3, name="f"), {"a": (-1, 2)}, ([(-1, 2), (3, 2), (3,)], [(-1, 3)])),
    (mx.sym.zeros((0, 3)) + A, {}, ([(0, 3)], [(0, 3)])),
    (A + mx.sym.arange(0, infer_range=True), {"a": (3,)}, ([(3,)], [(3,)])),
    (mx.sym.slice(A, begin=(1,), end=(1,)), {"a": (3, 4)}, ([(3, 4)], [(0, 4)])),
    (mx.sym.full((), 2.0), {}, ([], [()])),
    (mx.sym.Variable("s", shape=(0, -1)), {}, ([(0, -1)], [(0, -1)])),
    (mx.sym.Variable("s", shape=()), {}, ([()], [()])),
])
def test_inference(graph: Any, given: dict[str, Any], expected: Any) -> None:
    with mx.util.np_shape():
        assert graph.infer_shape_partial(**given) == (*expected, [])


def test_an_empty_axis_contradicts_a_full_one() -> None:
    with mx.util.np_shape(), pytest.raises(MXNetError, match=r"expected shape \(0, 2\), got \(3, 2\)"):
        (A + B).infer_shape(a=(0, 2), b=(3, 2))
    assert (A + B).infer_shape(a=(0, 2), b=(3, 2))[0] == [(3, 2), (3, 2)]


def test_simple_bind() -> None:
    with mx.util.np_shape():
        assert (A + B).simple_bind(mx.cpu(), a=(), grad_req="null").forward()[0].shape == ()
        assert (A + B).simple_bind(mx.cpu(), a=(0, 3)).forward()[0].shape == (0, 3)
        with pytest.raises(MXNetError, match="-1 means an unknown dimension"):
            (A + B).simple_bind(mx.cpu(), a=(-1, 3))


def test_json_notes_it() -> None:
    with mx.util.np_shape():
        text = (A + B).tojson()
    assert json.loads(text)["attrs"] == {"is_np_shape": ["int", 1], "mxnet_version": ["int", 10901]}
    assert "is_np_shape" not in mx.sym.load_json(text).tojson()
