"""Initializers: exact ones and JSON against MXNet's recorded results, random ones by their distributions."""

from __future__ import annotations

import builtins
import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import MXNetError
from tests.training_cases import run_initializers

GOLDEN = json.loads((Path(__file__).parent / "golden" / "training.json").read_text())["initializers"]
FACTS = run_initializers(mx)


def compare(got: Any, want: Any, where: str) -> None:
    if isinstance(want, dict) and "raises" in want:
        builtin = next(n for n in want["raises"] if hasattr(builtins, n))
        assert isinstance(got, dict) and builtin in got["raises"], f"{where}: {got}"
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            compare(got[k], want[k], f"{where} {k}")
    else:
        assert got == want, where


@pytest.mark.parametrize("part", [k for k in GOLDEN if k != "legacy"])
def test_as_mxnet(part: str) -> None:
    compare(FACTS[part], GOLDEN[part], part)


def test_legacy_names() -> None:
    compare(FACTS["legacy"], GOLDEN["legacy"], "legacy")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        mx.init.Zero()("a_weight", mx.nd.ones(2))


def filled(init: Any, shape: tuple[int, ...], dtype: str = "float32", name: str = "a_weight") -> np.ndarray:
    mx.random.seed(4)
    a = mx.nd.zeros(shape, dtype=dtype)
    init(mx.init.InitDesc(name), a)
    assert a.dtype == np.dtype(dtype)
    return a.asnumpy().astype("float64")


def scale(factor: float, magnitude: float = 3.0) -> float:
    return math.sqrt(magnitude / factor)


BIG = (40, 30, 5, 4)
IN, OUT = 30 * 20, 40 * 20
UNIFORM = {
    "uniform": (mx.init.Uniform(), 0.07), "uniform0.5": (mx.init.Uniform(0.5), 0.5),
    "xavier": (mx.init.Xavier(), scale((IN + OUT) / 2)),
    "xavier_in": (mx.init.Xavier(factor_type="in", magnitude=2), scale(IN, 2)),
    "xavier_out": (mx.init.Xavier(factor_type="out"), scale(OUT)),
}
NORMAL = {
    "normal": (mx.init.Normal(), 0.01), "normal2": (mx.init.Normal(2), 2.0),
    "xavier": (mx.init.Xavier("gaussian"), scale((IN + OUT) / 2)),
    "prelu": (mx.init.MSRAPrelu(), scale((IN + OUT) / 2, 2 / (1 + 0.25**2))),
    "prelu_out": (mx.init.MSRAPrelu("out", 0), scale(OUT, 2)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", UNIFORM)
def test_uniform(name: str, dtype: str) -> None:
    init, bound = UNIFORM[name]
    x = filled(init, BIG, dtype)
    assert np.abs(x).max() <= bound * 1.001 and np.abs(x).max() > 0.99 * bound
    assert abs(x.mean()) < 0.02 * bound and x.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", NORMAL)
def test_normal(name: str, dtype: str) -> None:
    init, sigma = NORMAL[name]
    x = filled(init, BIG, dtype)
    assert abs(x.mean()) < 0.03 * sigma and x.std() == pytest.approx(sigma, rel=0.02)
    assert (np.abs(x) < sigma).mean() == pytest.approx(0.683, abs=0.02) and np.abs(x).max() > 3 * sigma


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (6, 2, 3)])
def test_orthogonal(shape: tuple[int, ...], kind: str) -> None:
    x = filled(mx.init.Orthogonal(scale=2.0, rand_type=kind), shape).reshape(shape[0], -1)
    x = x if x.shape[0] <= x.shape[1] else x.T
    np.testing.assert_allclose(x @ x.T, 4 * np.eye(len(x)), atol=1e-5)
    with pytest.raises(ValueError, match="rand_type"):
        filled(mx.init.Orthogonal(rand_type="other"), shape)


def test_quantized_weight_is_an_int8() -> None:
    x = filled(mx.init.Zero(), (3, 2), "int8", "fc_weight_quantize")
    assert -127 <= x.min() <= x.max() < 127 and len(np.unique(x)) == 1


def test_fused_rnn_draws_each_gate() -> None:
    init = mx.init.FusedRNN(mx.init.Xavier("gaussian", "in", 1), 50, 1, "lstm")
    x = filled(init, (4 * 50 * (20 + 50 + 2),))
    i2h, h2h, bias = np.split(x, [4 * 50 * 20, 4 * 50 * 70])
    assert i2h.std() == pytest.approx(1 / math.sqrt(20), rel=0.06)
    assert h2h.std() == pytest.approx(1 / math.sqrt(50), rel=0.06)
    assert bias.reshape(2, 4, 50).mean(axis=2).tolist() == [[0, 1, 0, 0]] * 2
    back = mx.init.create(init.dumps())
    assert back == init
    with pytest.raises(MXNetError, match="do not fit an RNN of mode lstm"):
        filled(init, (17,))
    with pytest.raises(ValueError, match="mode"):
        mx.init.FusedRNN(None, 1, 1, "elman")
    with pytest.raises(ValueError, match="no initializer"):
        mx.init.FusedRNN(None, 1, 1, "gru")._init_weight("a", mx.nd.zeros(12))


def test_a_constant_array_survives_its_text() -> None:
    text = mx.init.Constant(mx.nd.array([[1, 2], [3, 4]])).dumps()
    again = mx.init.create(text)
    assert again.dumps() == text and filled(again, (2, 2)).tolist() == [[1, 2], [3, 4]]
    assert mx.init.Constant(np.float32(0.5)).dumps() == '["constant", {"value": 0.5}]'


def test_equal_seeds_give_equal_weights() -> None:
    assert (filled(mx.init.Xavier(), (3, 3)) == filled(mx.init.Xavier(), (3, 3))).all()


def test_a_registered_class_is_found_by_name_and_alias() -> None:
    @mx.init.register
    @mx.init.alias("seven_of_nine")
    class Sevens(mx.init.Initializer):
        def _init_weight(self, name: str, arr: Any) -> None:
            arr[:] = 7

    for text in ("sevens", "Seven_of_Nine", Sevens().dumps()):
        assert filled(mx.init.create(text), (2,)).tolist() == [7, 7]
    x = mx.sym.var("any", init=Sevens())
    a = mx.nd.zeros(2)
    mx.init.Zero()(mx.init.InitDesc("any", x.attr_dict()["any"]), a)
    assert a.asnumpy().tolist() == [7, 7]
    with pytest.warns(UserWarning, match="overriding"):
        mx.init.register(Sevens)
    with pytest.raises(AssertionError, match="subclass of Initializer"):
        mx.init.register(int)


def test_messages() -> None:
    with pytest.raises(ValueError, match="pattern for conv0_state"):
        filled(mx.init.Zero(), (2,), name="conv0_state")
    with pytest.raises(AssertionError, match=r"xavie is not registered.*'xavier'"):
        mx.init.create("xavie")
    with pytest.raises(MXNetError, match="already an instance"):
        mx.init.create(mx.init.Zero(), 1)
    with pytest.raises(ValueError, match=r"Shape mismatch, target \(3,\) vs loaded \(2,\)"):
        mx.init.Load({"arg:a": mx.nd.zeros(2)})("a", mx.nd.zeros(3))


def test_load_reads_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "x.params")
    mx.nd.save(path, {"arg:a_weight": mx.nd.array([1, 2])})
    load = mx.init.Load(path, mx.init.One(), verbose=True)
    with caplog.at_level(logging.INFO):
        assert filled(load, (2,)).tolist() == [1, 2]
        assert filled(load, (2,), name="b_weight").tolist() == [1, 1]
    assert caplog.messages == ["Initialized a_weight by loading", "Initialized b_weight by default"]


def test_verbosity(caplog: pytest.LogCaptureFixture) -> None:
    init = mx.init.One().set_verbosity(True)
    with caplog.at_level(logging.INFO):
        filled(init, (4,))
        filled(init.set_verbosity(True, lambda x: str(x.shape)), (4,), name="a_bias")
        filled(init.set_verbosity(False), (4,))
    assert caplog.messages == ["Initialized a_weight as weight: 1.0", "Initialized a_bias as bias: (4,)"]
