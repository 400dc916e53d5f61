"""Checking symbols: outputs and gradients against numbers and finite differences."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax import symbol as sym_module
from symjax.context import Context
from symjax.ndarray import NDArray
from symjax.symbol import Symbol
from symjax.test_utils._compare import assert_almost_equal, default_numeric_eps, get_tolerance
from symjax.test_utils._random import create_sparse_array, default_context

_FLOATS = (np.float16, np.float32, np.float64)
Arrays = Mapping[str, Any] | Sequence[Any]


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """Runs a symbol once.

    Args:
      sym: the symbol.
      ctx: where.
      is_train: training mode.
      inputs: numpy arrays by argument name.

    Returns:
      The outputs as a list of numpy arrays; the array itself if there is one.
    """
    ex = sym.bind(ctx or default_context(), args={k: nd.array(v) for k, v in inputs.items()})
    ex.forward(is_train=is_train)
    outputs = [x.asnumpy() for x in ex.outputs]
    return outputs[0] if len(outputs) == 1 else outputs


def _check_dtype(dtype: Any, also: tuple[Any, ...] = ()) -> None:
    assert dtype in _FLOATS or dtype in also, f"dtype must be float16, float32 or float64, got {dtype}"


def _to_nd(value: Any, ctx: Context, dtype: Any) -> Any:
    """A numpy array as an NDArray; an NDArray as it is. `dtype` "asnumpy" keeps the type."""
    if isinstance(value, NDArray):
        return value
    value = np.asarray(value)
    return nd.array(value, ctx=ctx, dtype=value.dtype if isinstance(dtype, str) else dtype)


def _location(sym: Symbol, location: Arrays, ctx: Context, dtype: Any) -> dict[str, Any]:
    assert isinstance(location, (dict, list, tuple)), f"location must be a dict or list, got {type(location).__name__}"
    names = sym.list_arguments()
    if not isinstance(location, Mapping):
        location = dict(zip(names, location, strict=False))
    elif set(location) != set(names):
        raise ValueError(f"Symbol arguments and keys of the given location do not match.symbol args:{set(names)}, "
                         f"location.keys():{set(location)}")
    return {k: _to_nd(location[k], ctx, dtype) for k in sorted(location)}


def _aux_states(sym: Symbol, aux_states: Arrays | None, ctx: Context, dtype: Any) -> dict[str, Any] | None:
    if aux_states is None:
        return None
    names = sym.list_auxiliary_states()
    if not isinstance(aux_states, Mapping):
        aux_states = dict(zip(names, aux_states, strict=False))
    elif set(aux_states) != set(names):
        raise ValueError(f"Symbol aux_states names and given aux_states do not match.symbol aux_names:{set(names)}, "
                         f"aux_states.keys:{set(aux_states)}")
    return {k: nd.array(v, ctx=ctx, dtype=v.dtype if isinstance(dtype, str) else dtype) for k, v in aux_states.items()}


def _requests(sym: Symbol, grad_req: Any) -> dict[str, str]:
    names = sym.list_arguments()
    if isinstance(grad_req, str):
        return dict.fromkeys(names, grad_req)
    return dict(grad_req) if isinstance(grad_req, Mapping) else dict(zip(names, grad_req, strict=False))


def _compare_gradient(request: str, name: str, expected: Any, before: np.ndarray, found: Any, names: tuple[str, str],
                      rtol: Any, atol: Any, equal_nan: bool = False) -> None:
    """Compares a gradient with what `request` makes of it and of what the array held before."""
    if request == "add":
        found = found.asnumpy() - before
    elif request == "null":
        expected = before
    elif request != "write":
        raise ValueError(f"Invalid grad_req {request} for argument {name}")
    assert_almost_equal(expected, found, rtol, atol, names, equal_nan=equal_nan)


def numeric_grad(executor: Any, location: dict[str, Any], aux_states: Mapping[str, Any] | None = None,
                 eps: float = 1e-4, use_forward_train: bool = True, dtype: Any = np.float32) -> dict[str, Any]:
    """Central differences of the sum of an executor's first output: (f(x + eps/2) - f(x - eps/2)) / eps.

    Args:
      executor: the executor; its arguments are changed, and put back.
      location: the arguments as numpy arrays by name. Those of floating type are moved.
      aux_states: auxiliary states, set again before each pass.
      eps: the step.
      use_forward_train: run in training mode.
      dtype: of the differences.

    Returns:
      Numpy arrays by name.
    """
    _check_dtype(dtype)

    def put(name: str, value: np.ndarray) -> None:
        array = executor.arg_dict[name]
        array[:] = nd.array(value, dtype=dtype).tostype(array.stype)

    def total() -> Any:
        for k, v in (aux_states or {}).items():
            array = executor.aux_dict[k]
            array[:] = nd.array(v, dtype=dtype).tostype(array.stype)
        executor.forward(is_train=use_forward_train)
        return executor.outputs[0].asnumpy()

    arrays = {k: np.array(v, order="C") for k, v in location.items()}
    location.update(arrays)
    for k, v in arrays.items():
        put(k, v)
    grads = {k: np.zeros(v.shape, dtype) for k, v in arrays.items()}
    for k, v in arrays.items():
        if v.dtype.kind != "f":
            continue
        flat, grad = v.reshape(-1), grads[k].reshape(-1)
        for i, x in enumerate(flat.copy()):
            flat[i] = x + eps / 2.0
            put(k, v)
            above = total()
            flat[i] = x - eps / 2.0
            put(k, v)
            grad[i] = (above - total()).sum() / eps
            flat[i] = x
        put(k, v)
    return grads


def check_numeric_gradient(sym: Symbol, location: Arrays, aux_states: Arrays | None = None,
                           numeric_eps: Any = None, rtol: Any = None, atol: Any = None, grad_nodes: Any = None,
                           use_forward_train: bool = True, ctx: Context | None = None,
                           grad_stype_dict: Mapping[str, str] | None = None, dtype: Any = np.float32) -> None:
    """Raises AssertionError unless a symbol's gradients are those of finite differences.

    The output is multiplied with random numbers and summed, so that every element counts differently.

    Args:
      sym: a symbol of one output.
      location: arguments as numpy arrays, a list or dict.
      aux_states: auxiliary states, a list or dict.
      numeric_eps: the step; what suits the type if None.
      rtol: relative tolerance.
      atol: absolute tolerance.
      grad_nodes: the arguments to check: names, or grad_req by name; all if None.
      use_forward_train: take differences in training mode.
      ctx: where.
      grad_stype_dict: storage types of gradient arrays by name.
      dtype: float16, float32 or float64.
    """
    _check_dtype(dtype)
    ctx = ctx or default_context()
    given = _location(sym, location, ctx, dtype)
    aux = _aux_states(sym, aux_states, ctx, dtype)
    plain_aux = None if aux is None else {k: v.asnumpy() for k, v in aux.items()}
    if grad_nodes is not None and not isinstance(grad_nodes, (list, tuple, dict)):
        raise ValueError(f"grad_nodes must be a list or dict, got {type(grad_nodes).__name__}")
    requests = dict(grad_nodes) if isinstance(grad_nodes, dict) else dict.fromkeys(
        sym.list_arguments() if grad_nodes is None else grad_nodes, "write")
    _, out_shape, _ = sym.infer_shape(**{k: v.shape for k, v in given.items()})
    out = sym_module.make_loss(sym * sym_module.Variable("__random_proj"))
    weights = nd.array(np.random.rand(*out_shape[0]) + 0.1, ctx=ctx, dtype=dtype)
    before = {k: np.random.normal(0, 0.01, size=given[k].shape) for k in requests}
    before["__random_proj"] = np.random.normal(0, 0.01, size=out_shape[0])
    grads = {k: nd.array(v, ctx=ctx, dtype=dtype) for k, v in before.items()}
    for k, stype in (grad_stype_dict or {}).items():
        if k in grads and stype != "default":
            grads[k] = nd.zeros(grads[k].shape, ctx, grads[k].dtype, stype=stype)
    plain = {k: v.asnumpy() for k, v in given.items()}
    ex = out.bind(ctx, grad_req=requests, args={**given, "__random_proj": weights}, args_grad=grads, aux_states=aux)
    assert len(ex.outputs) == 1, f"check_numeric_gradient needs one output, got {len(ex.outputs)}"
    ex.forward(is_train=True)
    eps = get_tolerance(ex.outputs[0], numeric_eps, default_numeric_eps())
    assert dtype == np.float64 or eps >= 1e-5, f"numeric_eps {eps} is too small for {np.dtype(dtype).name}"
    ex.backward()
    found = {k: v.copy() for k, v in ex.grad_dict.items() if v is not None}
    numeric = numeric_grad(ex, plain, plain_aux, eps=eps, use_forward_train=use_forward_train, dtype=dtype)
    for name, request in requests.items():
        _compare_gradient(request, name, numeric[name], before[name], found.get(name, grads[name]),
                          (f"NUMERICAL_{name}", f"BACKWARD_{name}"), rtol, atol)


def check_symbolic_forward(sym: Symbol, location: Arrays, expected: Arrays, rtol: Any = None, atol: Any = None,
                           aux_states: Arrays | None = None, ctx: Context | None = None, equal_nan: bool = False,
                           dtype: Any = np.float32) -> list[Any]:
    """Raises AssertionError unless a symbol's outputs are those expected.

    Args:
      sym: the symbol.
      location: arguments as numpy arrays, a list or dict.
      expected: outputs as numpy arrays, a list or dict.
      rtol: relative tolerance.
      atol: absolute tolerance.
      aux_states: auxiliary states, a list or dict.
      ctx: where.
      equal_nan: whether NaN equals NaN.
      dtype: float16, float32, float64, or "asnumpy" for the types of the arrays given.

    Returns:
      The outputs.
    """
    _check_dtype(dtype, ("asnumpy",))
    ctx = ctx or default_context()
    given = _location(sym, location, ctx, dtype)
    if isinstance(expected, Mapping):
        expected = [expected[k] for k in sym.list_outputs()]
    grads = {k: nd.zeros(v.shape, ctx=ctx, dtype=v.dtype if isinstance(dtype, str) else dtype)
             for k, v in given.items()}
    ex = sym.bind(ctx=ctx, args=given, args_grad=grads, aux_states=_aux_states(sym, aux_states, ctx, dtype))
    ex.forward(is_train=False)
    for name, want, have in zip(sym.list_outputs(), expected, ex.outputs, strict=False):
        assert_almost_equal(want, have, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan=equal_nan)
    return ex.outputs


def check_symbolic_backward(sym: Symbol, location: Arrays, out_grads: Any, expected: Arrays, rtol: Any = None,
                            atol: Any = None, aux_states: Arrays | None = None, grad_req: Any = "write",
                            ctx: Context | None = None, grad_stypes: Mapping[str, str | None] | None = None,
                            equal_nan: bool = False, dtype: Any = np.float32) -> dict[str, Any]:
    """Raises AssertionError unless a symbol's gradients are those expected.

    Args:
      sym: the symbol.
      location: arguments as numpy arrays, a list or dict.
      out_grads: head gradients, a list or dict; None for losses.
      expected: gradients as numpy arrays, a list or dict.
      rtol: relative tolerance.
      atol: absolute tolerance.
      aux_states: auxiliary states, a list or dict.
      grad_req: "write", "add" or "null" for all, or a list or dict.
      ctx: where.
      grad_stypes: storage types of gradient arrays by name.
      equal_nan: whether NaN equals NaN.
      dtype: float16, float32, float64, or "asnumpy" for the types of the arrays given.

    Returns:
      The gradient arrays by name.
    """
    _check_dtype(dtype, ("asnumpy",))
    ctx = ctx or default_context()
    given = _location(sym, location, ctx, dtype)
    if not isinstance(expected, Mapping):
        expected = dict(zip(sym.list_arguments(), expected, strict=False))
    before = {k: np.random.normal(size=expected[k].shape) for k in sorted(expected)}
    grads = {k: nd.array(v, ctx=ctx, dtype=expected[k].dtype if isinstance(dtype, str) else dtype)
             for k, v in before.items()}
    for k, stype in (grad_stypes or {}).items():
        if k in grads and stype is not None and stype != "default":
            grads[k] = create_sparse_array(before[k].shape, stype, density=0.0)
    requests = _requests(sym, grad_req)
    ex = sym.bind(ctx=ctx, args=given, args_grad=grads, aux_states=_aux_states(sym, aux_states, ctx, dtype),
                  grad_req=requests)
    ex.forward(is_train=True)
    if isinstance(out_grads, Mapping):
        out_grads = {k: _to_nd(v, ctx, dtype) for k, v in out_grads.items()}
    elif out_grads is not None:
        out_grads = [_to_nd(v, ctx, dtype) for v in out_grads]
    ex.backward(out_grads)
    for name in expected:
        _compare_gradient(requests[name], name, expected[name], before[name], grads[name],
                          (f"EXPECTED_{name}", f"BACKWARD_{name}"), rtol, atol, equal_nan)
    return grads


def check_speed(sym: Symbol, location: Mapping[str, Any] | None = None, ctx: Context | None = None, N: int = 20,
                grad_req: Any = None, typ: str = "whole", **kwargs: Any) -> float:
    """Times a symbol.

    Args:
      sym: the symbol.
      location: arguments as numpy arrays by name; random ones if None.
      ctx: where.
      N: how often it is run, after once for compilation.
      grad_req: "write" if None.
      typ: "whole" (forward and backward) or "forward".
      kwargs: shapes by name, if there is no `location`.

    Returns:
      Seconds of one pass.
    """
    ctx, grad_req = ctx or default_context(), grad_req or "write"
    if typ not in ("whole", "forward"):
        raise ValueError('typ can only be "whole" or "forward".')
    assert location is None or isinstance(location, dict), f'Expect dict, get "location"={location}'
    shapes = kwargs if location is None else {k: v.shape for k, v in location.items()}
    ex = sym.simple_bind(grad_req=grad_req, ctx=ctx, **shapes)
    if location is None:
        location = {k: np.random.normal(size=a.shape) for k, a in ex.arg_dict.items()}
    for name, value in location.items():
        ex.arg_dict[name][:] = value.astype(ex.arg_dict[name].dtype)

    def once() -> None:
        ex.forward(is_train=typ == "whole")
        if typ == "whole":
            ex.backward(out_grads=ex.outputs)

    once()
    nd.waitall()
    begin = time.time()
    for _ in range(N):
        once()
    nd.waitall()
    return (time.time() - begin) / N
