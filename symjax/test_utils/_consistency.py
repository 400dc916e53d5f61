"""Checking that contexts, types and optimizers agree."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.symbol import Symbol
from symjax.test_utils._compare import assert_almost_equal, compare_ndarray_tuple, get_tols
from symjax.test_utils._random import default_context, rand_ndarray


def check_consistency(sym: Any, ctx_list: Sequence[Mapping[str, Any]], scale: float = 1.0, grad_req: Any = "write",
                      arg_params: dict[str, Any] | None = None, aux_params: dict[str, Any] | None = None,
                      rtol: Any = None, atol: Any = None, raise_on_err: bool = True,
                      ground_truth: Mapping[str, Any] | None = None, equal_nan: bool = False,
                      use_uniform: bool = False, rand_type: Any = np.float64) -> Mapping[str, Any]:
    """Raises AssertionError unless a symbol gives the same in several contexts and types.

    Args:
      sym: the symbol, or one for each context.
      ctx_list: what `simple_bind` takes, for each: `{"ctx": mx.cpu(), "data": (2, 3), "type_dict": {…}}`.
      scale: standard deviation of random arguments.
      grad_req: "write", "add" or "null".
      arg_params: arguments by name; random where they are missing.
      aux_params: auxiliary states by name; 0 where they are missing.
      rtol: relative tolerance; what suits the less precise of the two types if None.
      atol: absolute tolerance, likewise.
      raise_on_err: raise at the first difference; otherwise print all of them.
      ground_truth: outputs and gradients by name; those of the most precise context if None.
      equal_nan: whether NaN equals NaN.
      use_uniform: draw arguments uniformly, within 0.92 `scale`.
      rand_type: type of random arguments.

    Returns:
      The ground truth.
    """
    assert len(ctx_list) > 1, "check_consistency needs at least two contexts"
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else sym
    assert len(symbols) == len(ctx_list), f"{len(symbols)} symbols for {len(ctx_list)} contexts"
    outputs, arguments = symbols[0].list_outputs(), symbols[0].list_arguments()
    assert all(s.list_arguments() == arguments and s.list_outputs() == outputs for s in symbols), "symbols differ"
    exes = [s.simple_bind(grad_req=grad_req, **c) for s, c in zip(symbols, ctx_list, strict=True)]
    _fill(exes, {} if arg_params is None else arg_params, {} if aux_params is None else aux_params, scale, grad_req,
          use_uniform, rand_type)
    dtypes = [np.dtype(ex.outputs[0].dtype) for ex in exes]
    best = max(range(len(exes)), key=lambda i: (dtypes[i].itemsize, -i))
    for ex in exes:
        ex.forward(is_train=False)
    truth = ground_truth
    if truth is None:
        truth = {**exes[best].output_dict, **(exes[best].grad_dict if grad_req != "null" else {})}

    def compare(kind: str, i: int, names: list[str], arrays: list[Any]) -> None:
        for name, array in zip(names, arrays, strict=True):
            want = truth[name]
            if want is None:
                assert array is None
                continue
            try:
                rt, at = get_tols(_as(array, dtypes[i]), _as(want, dtypes[best]), rtol, atol)
                assert_almost_equal(array, want, rt, at, equal_nan=equal_nan)
            except AssertionError as e:
                print(f"{kind} Err: ctx {i} vs ctx {best} at {name}")
                traceback.print_exc()
                if raise_on_err:
                    raise
                print(e)

    others = [i for i in range(len(exes)) if i != best]
    for i in others:
        compare("Predict", i, outputs, exes[i].outputs)
    if grad_req != "null":
        _train(exes)
        for i in others:
            compare("Train", i, outputs + arguments, [*exes[i].outputs, *exes[i].grad_arrays])
    return truth


def _smaller(a: Any, b: Any) -> np.dtype:
    return min(np.dtype(a), np.dtype(b), key=lambda t: t.itemsize)


def _as(array: Any, dtype: Any) -> Any:
    """An array of the less precise of its type and another, for its tolerance."""
    return np.zeros((), _smaller(array.dtype, dtype)) if _smaller(array.dtype, dtype) != array.dtype else array


def _fill(exes: list[Any], args: dict[str, Any], aux: dict[str, Any], scale: float, grad_req: Any, uniform: bool,
          dtype: Any) -> None:
    for name, a in sorted(exes[0].arg_dict.items()):
        if name not in args:
            draw = np.random.uniform(-0.92 * scale, 0.92 * scale, a.shape) if uniform else np.random.normal(
                size=a.shape, scale=scale)
            args[name] = draw.astype(dtype)
    for name in exes[0].aux_dict:
        aux.setdefault(name, 0)
    for ex in exes:
        for arrays, values in ((ex.arg_dict, args), (ex.aux_dict, aux)):
            for name, a in arrays.items():
                a[:] = values[name]
        if grad_req == "add":
            for g in ex.grad_arrays:
                g[:] = 0


def _train(exes: list[Any]) -> None:
    """Runs all forward and backward, each with the first one's outputs as head gradients."""
    for ex in exes:
        ex.forward(is_train=True)
    heads = []
    for outs in zip(*(ex.outputs for ex in exes), strict=True):
        least = min((np.dtype(o.dtype) for o in outs), key=lambda t: t.itemsize)
        heads.append(outs[0].astype(least).asnumpy())
    for ex in exes:
        ex.backward([nd.array(h, ctx=ex._ctx, dtype=o.dtype).tostype(o.stype)
                     for h, o in zip(heads, ex.outputs, strict=True)])


def compare_optimizer(opt1: Any, opt2: Any, shape: Any, dtype: Any, w_stype: str = "default",
                      g_stype: str = "default", rtol: float = 1e-4, atol: float = 1e-5, compare_states: bool = True,
                      ntensors: int = 1) -> None:
    """Raises AssertionError unless two optimizers make the same of one random update.

    Args:
      opt1: an optimizer, whose weights and gradients are dense.
      opt2: the other.
      shape: the weight's; a list of shapes for an update of several weights at once by `opt2`.
      dtype: the weights' type.
      w_stype: the storage type of the other's weight.
      g_stype: the storage type of the other's gradient.
      rtol: relative tolerance.
      atol: absolute tolerance.
      compare_states: compare the states too.
      ntensors: how many weights there are.
    """
    def pair(stype: str, s: Any, **kwargs: Any) -> tuple[Any, Any]:
        if stype == "default":
            second = nd.random.uniform(shape=s, ctx=default_context(), dtype=dtype)
            return second.copy(), second
        if stype not in ("row_sparse", "csr"):
            raise ValueError(f"type not supported yet: {stype}")
        second = rand_ndarray(s, stype, dtype=dtype, **kwargs)
        return second.copy().tostype("default"), second

    many = isinstance(shape, list)
    assert many or ntensors == 1, "several tensors need a list of shapes"
    shapes = shape if many else [shape]
    weights = [pair("default" if many else w_stype, s, density=1) for s in shapes]
    grads = [pair("default" if many else g_stype, s) for s in shapes]
    n = len(shapes)
    states = [opt2.create_state_multi_precision(i, weights[i][1]) for i in range(n)]
    firsts = [opt1.create_state_multi_precision(i, weights[i][0]) for i in range(n)]
    if many:
        opt2.update_multi_precision(list(range(n)), [w for _, w in weights], [g for _, g in grads], states)
    else:
        opt2.update_multi_precision(0, weights[0][1], grads[0][1], states[0])
    for i in range(n):
        opt1.update_multi_precision(i, weights[i][0], grads[i][0], firsts[i])
        if compare_states:
            compare_ndarray_tuple(firsts[i], states[i], rtol=rtol, atol=atol)
        assert_almost_equal(*weights[i], rtol=rtol, atol=atol)
