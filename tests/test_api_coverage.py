"""How much of MXNet 1.9.1's Python interface there is, by names and parameter names."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

SURFACE = Path(__file__).resolve().parents[2] / "shared" / "mxnet-1.9.1" / "api_surface.json"

# MXNet module -> (symjax module, class or None, names that are left out on purpose)
_C_INTERFACE = {"CachedOp", "MXCallbackList", "NDArrayBase", "c2pyerror", "c_array", "c_array_buf", "c_handle_array",
                "c_str_array", "check_call", "ctypes2buffer", "ctypes2numpy_shared", "get_last_ffi_error", "mx_float_p"}
PARTS: dict[str, tuple[str, str | None, set[str]]] = {
    "ndarray": ("symjax.ndarray", None, _C_INTERFACE),
    "ndarray.NDArray": ("symjax.ndarray", "NDArray", set()),
    "ndarray.sparse": ("symjax.ndarray.sparse", None, _C_INTERFACE | {"gs_retain"}),
    "ndarray.sparse.BaseSparseNDArray": ("symjax.ndarray.sparse", "BaseSparseNDArray", set()),
    "ndarray.sparse.CSRNDArray": ("symjax.ndarray.sparse", "CSRNDArray", set()),
    "ndarray.sparse.RowSparseNDArray": ("symjax.ndarray.sparse", "RowSparseNDArray", set()),
    "ndarray.random": ("symjax.ndarray.random", None, set()),
    "ndarray.linalg": ("symjax.ndarray.linalg", None, set()),
    "ndarray.image": ("symjax.ndarray.image", None, set()),
    "ndarray.utils": ("symjax.ndarray.utils", None, _C_INTERFACE | {"c_str", "py_str"}),
    "symbol": ("symjax.symbol", None, _C_INTERFACE | {"SymbolBase", "SymbolHandle"}),
    "symbol.Symbol": ("symjax.symbol", "Symbol", set()),
    "symbol.op": ("symjax.symbol.op", None, set()),
    "symbol.random": ("symjax.symbol.random", None, set()),
    "symbol.linalg": ("symjax.symbol.linalg", None, set()),
    "symbol.image": ("symjax.symbol.image", None, set()),
    "symbol.contrib": (
        "symjax.symbol.contrib", None, _C_INTERFACE | {"uniform", "backward_gradientmultiplier", "backward_hawkesll",
                                                       "backward_index_copy", "backward_quadratic"}),
    "symbol.sparse": ("symjax.symbol.sparse", None, set()),
    "executor": ("symjax.executor", None, _C_INTERFACE | {"py_str"}),
    "executor.Executor": ("symjax.executor", "Executor", set()),
    "name": ("symjax.name", None, {"classproperty", "with_metaclass"}),
    "attribute": ("symjax.attribute", None, {"classproperty", "with_metaclass"}),
    "context": ("symjax.context", None, {"check_call", "classproperty", "with_metaclass"}),
    "random": ("symjax.random", None, {"check_call"}),
    "autograd": ("symjax.autograd", None, _C_INTERFACE | {"Symbol"}),
    "base": ("symjax.base", None, _C_INTERFACE),
    "optimizer": ("symjax.optimizer", None, set()),
    "lr_scheduler": ("symjax.lr_scheduler", None, set()),
    "initializer": ("symjax.initializer", None, set()),
    "registry": ("symjax.registry", None, set()),
    "metric": ("symjax.metric", None, set()),
    "callback": ("symjax.callback", None, set()),
    "monitor": ("symjax.monitor", None, {"py_str"}),
    "engine": ("symjax.engine", None, {"check_call"}),
    "log": ("symjax.log", None, set()),
    "runtime": ("symjax.runtime", None, {"check_call"}),
    # for Gluon and symbols of mx.np
    "test_utils": ("symjax.test_utils", None, {"check_gluon_hybridize_consistency", "np_symbol"}),
    "profiler": ("symjax.profiler", None, {"c_str", "c_str_array", "check_call", "py_str"}),
    "libinfo": ("symjax.libinfo", None, set()),
    "contrib.io": ("symjax.contrib.io", None, set()),
    "visualization": ("symjax.visualization", None, set()),
    "kvstore": ("symjax.kvstore", None, set()),
    "module": ("symjax.module", None, set()),
    **{f"module.{cls}": ("symjax.module", cls, set()) for cls in (
        "BaseModule", "BucketingModule", "Module", "PythonLossModule", "PythonModule", "SequentialModule")},
    "model": ("symjax.model", None, set()),
    "model.FeedForward": ("symjax.model", "FeedForward", set()),
    "executor_manager": ("symjax.executor_manager", None, set()),
    **{f"executor_manager.{cls}": ("symjax.executor_manager", cls, set()) for cls in (
        "DataParallelExecutorGroup", "DataParallelExecutorManager")},
    "operator": ("symjax.operator", None, _C_INTERFACE | {
        "OpHandle", "NDArrayHandle", "Structure", "Lock", "NDArray", "c_str", "is_np_array", "py_str"}),
    "operator.CustomOp": ("symjax.operator", "CustomOp", set()),
    "operator.CustomOpProp": ("symjax.operator", "CustomOpProp", set()),
    "operator.PythonOp": ("symjax.operator", "PythonOp", set()),
    "operator.NumpyOp": ("symjax.operator", "NumpyOp", set()),
    "operator.NDArrayOp": ("symjax.operator", "NDArrayOp", set()),
    "rnn": ("symjax.rnn", None, set()),
    "image": ("symjax.image", None, {"is_np_array"}),
    "recordio": ("symjax.recordio", None, {"c_str", "check_call"}),
    "kvstore.KVStore": ("symjax.kvstore", "KVStore", set()),
    "kvstore.KVStoreBase": ("symjax.kvstore", "KVStoreBase", set()),
    "numpy": ("symjax.numpy", None, set()),
    "numpy.ndarray": ("symjax.numpy", "ndarray", set()),
    "numpy.random": ("symjax.numpy.random", None, set()),
    "numpy.linalg": ("symjax.numpy.linalg", None, set()),
    "numpy_extension": ("symjax.numpy_extension", None, {"check_call", "classproperty", "with_metaclass"}),
    "numpy_extension.random": ("symjax.numpy_extension.random", None, set()),
    "symbol.numpy": ("symjax.symbol.numpy", None, set()),
    "symbol.numpy_extension": ("symjax.symbol.numpy_extension", None, set()),
    "util": ("symjax.util", None, {"check_call", "np_ufunc_legal_option", "wrap_np_binary_func", "wrap_np_unary_func"}),
}

# Names that are known to be missing still. Nothing else may be.
LATER: dict[str, set[str]] = {
    "ndarray": {"cast_storage"},
    "symbol": {"cast_storage"},
    "symbol.op": {"cast_storage"},
    "symbol.sparse": {"cast_storage", "retain"},
    "symbol.contrib": {"adamw_update", "mp_adamw_update"},
}

def parameters(signature: str) -> list[str]:
    """The parameter names of a signature as text."""
    text = re.sub(r"=<class '[^']*'>", "=0", signature)
    names, depth, start = [], 0, 1
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if (c == "," and depth == 1) or (c == ")" and depth == 0):
            names.append(text[start:i].split("=")[0].strip())
            start = i + 1
    return [n for n in names if n and n not in ("*", "/")]


def missing_parameters(have: Any, signature: str) -> list[str]:
    try:
        mine = inspect.signature(have).parameters
    except (TypeError, ValueError):
        return []
    wanted = [n for n in parameters(signature) if n not in ("self", "handle")]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in mine.values())
    names = set(mine)
    stars = {n for n in wanted if n.startswith("*")}
    plain = [n for n in wanted if n not in stars]
    # Generated operator functions have **kwargs in MXNet too: their named parameters must be there by name.
    lost = [n for n in plain if n not in names and not (takes_any and not _is_generated(have))]
    return lost + [s for s in stars if s.startswith("**") and not takes_any]


def _is_generated(function: Any) -> bool:
    return hasattr(function, "__signature__")


def compare(part: str, surface: dict[str, Any]) -> tuple[int, list[str], list[str]]:
    """(names looked for, names missing, functions whose parameters are incomplete)."""
    path, cls, without = PARTS[part]
    owner = importlib.import_module(path)
    expected = surface[part.removesuffix(f".{cls}")] if cls else surface[part]
    if cls:
        owner, expected = getattr(owner, cls), expected[cls]["methods"]
    absent, incomplete, looked = [], [], 0
    for name, what in sorted(expected.items()):
        if name in without:
            continue
        looked += 1
        try:
            have = getattr(owner, name)
        except AttributeError:
            absent.append(name)
            continue
        if isinstance(what, str) and what.startswith("("):
            lost = missing_parameters(have, what)
            if lost:
                incomplete.append(f"{name}: {', '.join(lost)}")
    return looked, absent, incomplete


@pytest.fixture(scope="module")
def surface() -> dict[str, Any]:
    if not SURFACE.exists():
        pytest.skip("the list of MXNet's interface lies outside the repository (shared/mxnet-1.9.1/api_surface.json)")
    return json.loads(SURFACE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS)
def test_coverage(part: str, surface: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    looked, absent, incomplete = compare(part, surface)
    with capsys.disabled():
        print(f"\n{part}: {looked - len(absent)} of {looked} names, {len(incomplete)} with parameters missing")
        for title, items in (("missing", absent), ("parameters", incomplete)):
            if items:
                print(f"  {title}: {'; '.join(items)}")
    assert set(absent) <= LATER.get(part, set())
    assert not incomplete


@pytest.mark.parametrize("module", ["optimizer", "lr_scheduler", "initializer", "metric", "callback", "monitor"])
def test_methods_and_defaults(module: str, surface: dict[str, Any]) -> None:
    """Every method of every class has MXNet's parameters, in its order and with its defaults."""
    owner, wrong = importlib.import_module(f"symjax.{module}"), []
    for cls, what in surface[module].items():
        if cls == "NDArray" or not isinstance(what, dict):
            continue
        for name, text in what["methods"].items():
            have = inspect.getattr_static(getattr(owner, cls), name, None) or getattr(getattr(owner, cls), name)
            if text == "property":
                assert isinstance(have, property), f"{cls}.{name}"
                continue
            theirs = inspect.signature(eval(f"lambda {text[1:-1]}: 0")).parameters.values()
            mine = inspect.signature(getattr(have, "__func__", have)).parameters.values()
            if [(p.name, p.default, p.kind) for p in mine] != [(p.name, p.default, p.kind) for p in theirs]:
                wrong.append(f"{cls}.{name}: {', '.join(map(str, mine))} instead of {text}")
    assert not wrong
