"""Mistakes that users make, and what they read: the thing, where, expected and got, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx

nd = mx.nd
DATA = mx.sym.var("data")
FC = mx.sym.FullyConnected(DATA, num_hidden=4, name="fc")


def bound() -> Any:
    return FC.simple_bind(mx.cpu(), data=(2, 3))


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # shapes, imperative: MXNet's terms, not XLA's
    (
        lambda: nd.FullyConnected(nd.ones((2, 3)), nd.ones((4, 5)), nd.ones(4), num_hidden=4),
        ValueError,
        r"FullyConnected: argument 'weight': expected shape \(4, 3\), got \(4, 5\)$",
    ),
    (
        lambda: nd.FullyConnected(nd.ones((2, 3)), nd.ones((4, 3)), nd.ones(1), num_hidden=4),
        ValueError,
        r"argument 'bias': expected shape \(4,\), got \(1,\)$",
    ),
    (
        lambda: nd.ones((2, 3)) + nd.ones((3, 3)),
        ValueError,
        r"shapes \(2, 3\) and \(3, 3\) cannot be broadcast together$",
    ),
    (
        lambda: nd.elemwise_add(nd.ones((2, 3)), nd.ones((1, 3))),
        ValueError,
        r"'rhs': expected shape \(2, 3\), got \(1, 3\)",
    ),
    (lambda: nd.zeros("x"), ValueError, r"a shape must be an int or a tuple of ints, got 'x'$"),
    (lambda: mx.sym.var("a", shape="x"), ValueError, r"a shape must be an int or a tuple of ints, got 'x'$"),
    # parameters
    (
        lambda: mx.sym.Activation(DATA, act_type="relo"),
        ValueError,
        r"^operator Activation: parameter act_type='relo': expected one of relu, .*, tanh\. Did you mean 'relu'\?",
    ),
    (
        lambda: mx.sym.FullyConnected(DATA, num_hidden="x"),
        ValueError,
        r"^operator FullyConnected: parameter num_hidden='x': expected an integer\n",
    ),
    (lambda: nd.Dropout(nd.ones(2), p=2), ValueError, r"^operator Dropout: parameter p='2': must be >= 0 and <= 1\n"),
    # arguments
    (
        lambda: mx.sym.FullyConnected(DATA, weights=DATA, num_hidden=3),
        TypeError,
        r"FullyConnected has no input 'weights'\. Did you mean 'weight'\? Its inputs are data, weight, bias$",
    ),
    (
        lambda: mx.sym.exp(nd.ones(1)),
        TypeError,
        r"argument data must have Symbol type, but got \[1\.\] <NDArray 1 @cpu\(0\)>",
    ),
    (lambda: mx.sym.random.unifor(0), AttributeError, r"has no operator 'unifor'\. Did you mean 'uniform'"),
    (lambda: FC["fc_outptu"], ValueError, r'matches name "fc_outptu"\. Did you mean \'fc_output\'\?$'),
    # binding
    (lambda: FC.simple_bind("cpu", data=(2, 3)), TypeError, r"expected a Context such as mx\.cpu\(\) .*, got 'cpu'$"),
    (lambda: FC.simple_bind(mx.cpu(), dta=(2, 3)), RuntimeError, r"'dta' is not an input\. Did you mean 'data'\?$"),
    (lambda: bound().forward(dat=nd.ones(2)), TypeError, r"Unknown argument dat\. Did you mean 'data'\?$"),
    (
        lambda: bound().copy_params_from({"fc_wight": nd.ones(2)}),
        ValueError,
        r"not in the arguments\. Did you mean 'fc_weight'\?$",
    ),
    # a symbol as a JAX function
    (lambda: mx.lower("net-symbol.json"), TypeError, r"expected a Symbol, got str; read a file with mx\.sym\.load"),  # type: ignore[arg-type]
    (lambda: call(dta=1), ValueError, r"'dta' is not an input; inputs are data\. Did you mean 'data'\?$"),
    (lambda: call(jnp.ones((2, 3))), TypeError, r"inputs come by name, fn\(params, aux, data=…\)"),
    (lambda: call(data=[[1, 2, 3]]), TypeError, r"'data' must be an array, got list"),
    (
        lambda: convolve("float64"),
        TypeError,
        r"conv \(Convolution\): argument 'weight' has dtype float32, but .* float64",
    ),
    (lambda: convolve("uint8"), TypeError, r"'weight' has dtype float32, but the inputs before it have uint8"),
    (
        lambda: call(data=np.ones((2, 5), "float32")),
        ValueError,
        r"argument 'weight' \('fc_weight'\): expected shape \(4, 5\)",
    ),
    (
        lambda: mx.lower(FC, data=(2, 3)).fn({}, {}, data=np.ones((2, 3))),
        ValueError,
        r"params lacks 'fc_weight'; it has nothing",
    ),
    (lambda: jax.jit(mx.lower(FC, data=(2, 3)).fn)({}, {}, train=True), TypeError, r"static_argnames='train'"),
]


def call(*args: Any, **inputs: Any) -> Any:
    fn, params, aux = mx.lower(FC, data=(2, 3))
    return fn(params, aux, *args, **inputs)


def convolve(dtype: str) -> Any:
    fn, params, aux = mx.lower(mx.sym.Convolution(DATA, kernel=(1,), num_filter=2, name="conv"), data=(1, 3, 4))
    return fn(params, aux, data=np.ones((1, 3, 4), dtype))


@pytest.mark.parametrize("case", MISTAKES, ids=lambda c: c[2][:40])
def test_a_mistake_is_explained(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    mistake, kind, message = case
    with pytest.raises(kind, match=message) as caught:
        mistake()
    assert "lax." not in str(caught.value) and "dot_general" not in str(caught.value)


READERS = {"nd": nd.load, "sym": mx.sym.load, "checkpoint": lambda p: mx.model.load_checkpoint(p, 3)}
WRITERS = {"nd": lambda p: nd.save(p, nd.ones(2)), "sym": FC.save}


@pytest.mark.parametrize("read", READERS)
def test_a_missing_file_is_named_and_is_an_mxnet_error(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mx.MXNetError, match=r"cannot open 'nothing.*the working directory is ") as caught:
        READERS[read]("nothing")
    assert isinstance(caught.value, FileNotFoundError) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("write", WRITERS)
def test_a_missing_folder_is_named(write: str, tmp_path: Path) -> None:
    with pytest.raises(mx.MXNetError) as caught:
        WRITERS[write](str(tmp_path / "no" / "x"))
    folder = os.path.realpath(tmp_path / "no")
    assert str(caught.value).startswith(f"cannot write '{tmp_path / 'no' / 'x'}'") and f"no folder {folder!r}" in str(
        caught.value
    )
    assert isinstance(caught.value, FileNotFoundError) and ".tmp" not in str(caught.value)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    for read in (nd.load, mx.sym.load):
        with pytest.raises(mx.MXNetError, match=r"cannot open .*: Is a directory$"):
            read(str(tmp_path))


def test_autograd_grad_gives_a_list_even_for_one_variable() -> None:
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = x * x
    (dx,) = mx.autograd.grad(y, x)
    assert dx.asnumpy().tolist() == [2, 4]


def test_numpy_spellings_of_dtypes() -> None:
    assert nd.array([1], dtype="float").dtype is np.float64
    assert nd.zeros(2, dtype="int").dtype is np.int64 and nd.ones(2, dtype="f2").dtype is np.float16


def test_jax_functions_take_ndarrays() -> None:
    assert jnp.asarray(nd.ones(3)).tolist() == [1, 1, 1]
    fn, params, aux = mx.lower(mx.sym.BatchNorm(DATA, name="bn"), data=(2, 3))
    (y,), _ = fn(
        {k: nd.array(v) for k, v in params.items()}, {k: nd.array(v) for k, v in aux.items()}, data=nd.ones((2, 3))
    )
    assert y.shape == (2, 3)


def test_the_monitor_sees_inputs_of_the_graph_too() -> None:
    exe = mx.sym.Activation(FC, act_type="relu", name="act").simple_bind(mx.cpu(), data=(1, 2))
    seen: list[str] = []
    exe.set_monitor_callback(lambda name, array: seen.append(str(name)), monitor_all=True)
    exe.forward()
    assert sorted(seen) == [
        "act_data",
        "act_output",
        "data",
        "fc_bias",
        "fc_bias",
        "fc_data",
        "fc_output",
        "fc_weight",
        "fc_weight",
    ]
    assert seen.index("data") < seen.index("fc_data") < seen.index("fc_output") < seen.index("act_data")
