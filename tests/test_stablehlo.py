"""Symbols as StableHLO."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.interop import stablehlo

DIGITS = str(Path(__file__).resolve().parents[1] / "symjax" / "data" / "digits")

WITHOUT_SYMJAX = """
import sys
import jax.export, numpy as np
exported = jax.export.deserialize(bytearray(open({path!r}, "rb").read()))
with np.load({digits!r}) as file:
    images, want = file["test_images"][:9, None].astype("float32"), file["test_probabilities"][:9]
np.testing.assert_allclose(exported.call({{"data": images}})[0], want, rtol=1e-4, atol=1e-5)
assert "symjax" not in sys.modules
"""


def test_any_batch_on_any_platform(tmp_path: Path) -> None:
    net, args, aux = mx.model.load_checkpoint(DIGITS, 10)
    exported = stablehlo.export(net, args, aux, data=("batch", 1, 8, 8))
    assert exported.platforms == ("cpu", "cuda", "rocm", "tpu")
    assert "stablehlo.convolution" in exported.mlir_module()
    stablehlo.save(tmp_path / "digits.bin", exported)
    with np.load(f"{DIGITS}.npz") as file:
        images, want = file["test_images"][:, None].astype("float32"), file["test_probabilities"]
    for n in (3, 7):
        (out,) = stablehlo.load(tmp_path / "digits.bin").call({"data": images[:n]})
        np.testing.assert_allclose(out, want[:n], rtol=1e-4, atol=1e-5)
    program = WITHOUT_SYMJAX.format(path=str(tmp_path / "digits.bin"), digits=f"{DIGITS}.npz")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]


def small() -> mx.sym.Symbol:
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")


def test_parameters_may_stay_outside() -> None:
    weight = np.ones((2, 3))
    exported = stablehlo.export(small(), {"fc_weight": weight}, freeze=False, platforms=["cpu"], data=("n", 3))
    x = np.arange(6.0).reshape(2, 3)
    with jax.enable_x64(True):
        (out,) = exported.call({"fc_weight": 2 * weight}, {}, {"data": x})
    assert out.dtype == "float64", "the dtype that follows from the weight"
    np.testing.assert_array_equal(out, [[6, 6], [24, 24]])


def test_dtypes_of_inputs() -> None:
    net = mx.sym.Embedding(mx.sym.Variable("i"), input_dim=5, output_dim=2, name="e")
    values = {"e_weight": np.arange(10, dtype="float32").reshape(5, 2)}
    exported = stablehlo.export(net, values, platforms=["cpu"], dtypes={"i": "int32"}, i=("n",))
    np.testing.assert_array_equal(exported.call({"i": np.array([4, 0], "int32")})[0], [[8, 9], [0, 1]])


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fc_weight"):
        stablehlo.export(small(), data=("n", 3))
    with pytest.raises(ValueError, match="'dat' is not an argument"):
        stablehlo.export(small(), {"fc_weight": np.ones((2, 3))}, dat=("n", 3))
    with pytest.raises(ValueError, match="random numbers"):
        stablehlo.export(small() + mx.sym.random.normal(shape=(1, 2)), {"fc_weight": np.ones((2, 3))}, data=(1, 3))
    (tmp_path / "x").write_bytes(b"something else")
    with pytest.raises(mx.base.MXNetError, match="not an exported function"):
        stablehlo.load(tmp_path / "x")
