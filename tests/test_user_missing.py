"""What an MXNet user meets who asks for something that symjax does not have, or under another name."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symjax as mx
from symjax import _absent

GONE = ["gluon", "contrib.onnx", "contrib.tensorrt"]


@pytest.mark.parametrize("path", GONE)
def test_an_absent_module_says_so_and_what_to_do(path: str) -> None:
    parent, _, leaf = f"symjax.{path}".rpartition(".")
    package = importlib.import_module(parent)
    assert not hasattr(package, leaf)
    with pytest.raises(AttributeError, match=r"MXNet's mx\.[\w.]+ is not (supported|needed)"):
        getattr(package, leaf)


def test_readme_lists_what_comes_later() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    short = {long: f"mx.{alias}" for alias, long in _absent.ALIASES.items()}
    internal = {"kvstore_server", "registry"}
    for name, reason in _absent.ABSENT.items():
        if (
            reason.startswith("not supported yet")
            and "." not in name
            and name not in internal
            and _absent.explain(name)
        ):
            assert f"`mx.{name}`" in readme or f"`{short.get(name)}`" in readme, name


def test_importing_an_absent_module_gives_the_same_sentence() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mx\.gluon is not supported: export the network"):
        importlib.import_module("symjax.gluon.nn")
    with pytest.raises(ModuleNotFoundError, match=r"mx\.gluon is not supported: export the network"):
        from symjax import gluon  # noqa: F401  # type: ignore[attr-defined]


def test_what_mxnet_never_had_is_a_plain_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'symjax' has no attribute 'nodule'$"):
        mx.nodule  # noqa: B018  # type: ignore[attr-defined]
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'symjax.nodule'"):
        importlib.import_module("symjax.nodule")


def test_a_module_that_exists_is_never_reported() -> None:
    for name in mx._MODULES:
        assert _absent.explain(name) is None, name
        assert importlib.import_module(f"symjax.{name}") is getattr(mx, name)
    assert mx.sym is mx.symbol and mx.nd is mx.ndarray


def test_contrib_paths_of_old_programs() -> None:
    assert mx.contrib.sym is mx.contrib.symbol is mx.sym.contrib
    assert mx.contrib.nd is mx.contrib.ndarray is mx.nd.contrib
    assert mx.contrib.symbol.MultiBoxPrior(mx.sym.var("x"), sizes=(0.5,)).name.startswith("multiboxprior")
    assert importlib.import_module("symjax.contrib.ndarray") is mx.nd.contrib


def test_completion_shows_names_for_users_only() -> None:
    shown = {n for n in dir(mx) if not n.startswith("_")}
    assert {"sym", "nd", "cpu", "lower", "contrib", "Context"} <= shown
    assert not shown & {"Any", "TYPE_CHECKING", "annotations", "importlib", "gluon"}


ALIAS = """
import symjax
symjax.install_as_mxnet()
symjax.install_as_mxnet()
import mxnet as mx
from mxnet import nd, sym, autograd
import mxnet.ndarray as F, mxnet.symbol as S, mxnet.contrib.symbol as C
from mxnet.base import MXNetError
from mxnet.ndarray import NDArray
from mxnet.symbol.random import uniform
assert mx.__version__ == "1.9.1" and symjax.__version__ != "1.9.1" and mx.libinfo.__version__ == "1.9.1"
assert F is nd is symjax.nd and S is sym is symjax.sym and C is sym.contrib and NDArray is symjax.NDArray
assert MXNetError is symjax.MXNetError and uniform is symjax.sym.random.uniform and mx.cpu is symjax.cpu
assert symjax.ndarray.__spec__.name == "symjax.ndarray" and "sym" in dir(mx)
for statement in ("from mxnet import gluon", "import mxnet.gluon.nn", "from mxnet.gluon import nn"):
    try:
        exec(statement)
    except ImportError as e:
        assert "mx.gluon is not supported" in str(e), (statement, e)
    else:
        raise AssertionError(statement)
try:
    import mxnet.nonsense
except ModuleNotFoundError as e:
    assert "mxnet.nonsense" in str(e)
"""


def test_install_as_mxnet_in_a_fresh_process() -> None:
    in_a_fresh_process(ALIAS)


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# pickle.dumps([mx.nd.array([[1, 2]], dtype="float16"), mx.cpu(2), mx.sym.var("x") + 1], 2), by MXNet 1.9.1
MXNET_PICKLE = (
    "gAJdcQAoY214bmV0Lm5kYXJyYXkubmRhcnJheQpOREFycmF5CnEBToVxAlJxA31xBFgGAAAAaGFuZGxlcQVjX19idWlsdGluX18KYnl0ZWFycm"
    "F5CnEGY19jb2RlY3MKZW5jb2RlCnEHWDAAAADDicO6wpPDuQAAAAACAAAAAQAAAAAAAAACAAAAAAAAAAEAAAAAAAAAAgAAAAA8AEBxCFgGAAAA"
    "bGF0aW4xcQmGcQpScQuFcQxScQ1zYmNteG5ldC5jb250ZXh0CkNvbnRleHQKcQ4pgXEPfXEQKFgNAAAAZGV2aWNlX3R5cGVpZHERSwFYCQAAAG"
    "RldmljZV9pZHESSwJYCAAAAF9vbGRfY3R4cRNOdWJjbXhuZXQuc3ltYm9sLnN5bWJvbApTeW1ib2wKcRROhXEVUnEWfXEXaAVYXgEAAHsKICAi"
    "bm9kZXMiOiBbCiAgICB7CiAgICAgICJvcCI6ICJudWxsIiwgCiAgICAgICJuYW1lIjogIngiLCAKICAgICAgImlucHV0cyI6IFtdCiAgICB9LC"
    "AKICAgIHsKICAgICAgIm9wIjogIl9wbHVzX3NjYWxhciIsIAogICAgICAibmFtZSI6ICJfcGx1c3NjYWxhcjAiLCAKICAgICAgImF0dHJzIjog"
    "eyJzY2FsYXIiOiAiMSJ9LCAKICAgICAgImlucHV0cyI6IFtbMCwgMCwgMF1dCiAgICB9CiAgXSwgCiAgImFyZ19ub2RlcyI6IFswXSwgCiAgIm"
    "5vZGVfcm93X3B0ciI6IFswLCAxLCAyXSwgCiAgImhlYWRzIjogW1sxLCAwLCAwXV0sIAogICJhdHRycyI6IHsibXhuZXRfdmVyc2lvbiI6IFsi"
    "aW50IiwgMTA5MDFdfQp9cRhzYmUu"
)


def test_pickles_that_mxnet_wrote() -> None:
    out = in_a_fresh_process(
        "import symjax, pickle, base64; symjax.install_as_mxnet(); "
        f"a, c, s = pickle.loads(base64.b64decode({MXNET_PICKLE!r})); "
        "print(a.dtype.__name__, a.asnumpy().tolist(), c, type(c).__module__, s.list_arguments(), s.name)"
    )
    assert out.split("\n")[0] == "float16 [[1.0, 2.0]] cpu(2) symjax.context ['x'] _plusscalar0"


def test_first_use_leaves_numpys_generator_alone() -> None:
    # importing jax 0.10 draws five numbers from it
    out = in_a_fresh_process(
        "import numpy as np, symjax as mx; np.random.seed(1); mx.sym.var('x'); mx.nd.ones(2); print(np.random.rand())"
    )
    assert float(out) == np.random.RandomState(1).rand()


def test_install_as_mxnet_refuses_to_shadow_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mxnet", pickle)
    with pytest.raises(ImportError, match="imported already"):
        mx.install_as_mxnet()
