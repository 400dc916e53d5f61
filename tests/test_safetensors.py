"""Checkpoints as safetensors files."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import symjax as mx
from symjax.interop import safetensors as st

DIGITS = str(Path(__file__).resolve().parents[1] / "symjax" / "data" / "digits")


def test_checkpoint(tmp_path: Path) -> None:
    net, args, aux = mx.model.load_checkpoint(DIGITS, 10)
    st.save(tmp_path / "digits.safetensors", net, args, aux, metadata={"source": "tests"})
    same, args2, aux2 = st.load(tmp_path / "digits.safetensors")
    assert same is not None and same.tojson() == net.tojson()
    for ours, theirs in ((args2, args), (aux2, aux)):
        assert {k: v.asnumpy().tobytes() for k, v in ours.items()} == {
            k: v.asnumpy().tobytes() for k, v in theirs.items()
        }
    assert st.metadata(tmp_path / "digits.safetensors") == {"source": "tests"}


DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(tmp_path: Path, dtype: str) -> None:
    values = np.arange(6).reshape(2, 3).astype(jnp.dtype(dtype))
    st.save(tmp_path / "x", None, {"a.b/c": values, "turned": values.T, "jax": jnp.ones(3)})
    net, args, aux = st.load(tmp_path / "x")
    assert net is None and not aux
    for name, want in (("a.b/c", values), ("turned", values.T)):
        assert args[name].asnumpy().dtype == values.dtype
        np.testing.assert_array_equal(args[name].asnumpy(), want)


def test_files_of_other_programs(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"arg:w": np.ones(2), "aux:m": np.zeros(2), "b": np.ones(1)}, tmp_path / "x")
    net, args, aux = st.load(tmp_path / "x")
    assert net is None and sorted(args) == ["b", "w"] and list(aux) == ["m"]


def test_errors(tmp_path: Path) -> None:
    w = np.ones(2, "float32")
    with pytest.raises(mx.base.MXNetError, match="'w' is a parameter and an auxiliary state"):
        st.save(tmp_path / "x", None, {"w": w}, {"w": w})
    with pytest.raises(ValueError, match="symjax's own"):
        st.save(tmp_path / "x", None, {"w": w}, metadata={"symjax.aux": "[]"})
    assert not (tmp_path / "x").exists()
    st.save(tmp_path / "x", None, {"w": w})
    whole = (tmp_path / "x").read_bytes()
    for broken in (b"", b"\xff" * 64, whole[:-1], whole + b"more", whole.replace(b"F32", b"F99")):
        (tmp_path / "y").write_bytes(broken)
        with pytest.raises(mx.base.MXNetError, match="y: not a safetensors file"):
            st.load(tmp_path / "y")
    with pytest.raises(FileNotFoundError):
        st.load(tmp_path / "none")
