"""Run one case on an implementation of MXNet's API (`mx`): real MXNet in the oracle, symjax here."""

from __future__ import annotations

import contextlib
import re
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.parity.arrays import fill, uniform
from tests.parity.case import Case

Result = dict[str, Any]
UNWRITTEN = 7  # what gradient arrays hold before a backward pass that writes


def run_case(mx: Any, case: Case) -> Result:
    """Run every stage of a case; an error ends it and is recorded with its stage.

    Returns:
        A dict with ``status`` ("ok" or "error"), ``stage``, ``error`` (type, text, whether it is an MXNetError),
        ``names``, ``queries`` (inference results) and ``arrays`` {key: numpy array}.
    """
    run = _Run(mx, case)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with _np_shape(mx, case.np_shape):
                run.load()
                run.infer()
                run.predict()
                run.train()
        except Exception as e:
            run.result.update(status="error", stage=run.stage, error=_error(mx, e), traceback=traceback.format_exc())
    return run.result


class _Run:
    """The stages of one case, in order."""

    def __init__(self, mx: Any, case: Case) -> None:
        self.mx, self.case, self.stage = mx, case, "load"
        self.arrays: dict[str, np.ndarray] = {}
        self.result: Result = {"status": "ok", "stage": "", "names": {}, "queries": [], "arrays": self.arrays}

    def load(self) -> None:
        self.symbol = self.mx.sym.load_json(self.case.json)
        self.args, self.aux = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        self.outputs = self.symbol.list_outputs()
        self.result["names"] = {"args": self.args, "aux": self.aux, "outputs": self.outputs}

    def infer(self) -> None:
        """Shape and type queries (their errors are answers, not the end), then the shapes that inputs lack."""
        self.stage = "infer"
        case, given = self.case, {k: a.shape for k, a in self.case.inputs.items() if a.shape is not None}
        dtypes = {k: np.dtype(a.dtype or case.dtype).type for k, a in case.inputs.items()}
        first = [k for k in case.infer_from or [*case.inputs][:1] if k in given]
        symbol = self.symbol
        queries = self.result["queries"]
        queries.append(self._ask("shape_partial", symbol.infer_shape_partial, {k: given[k] for k in first}))
        queries.append(self._ask("type", symbol.infer_type, {k: dtypes[k] for k in first}))
        queries.append(self._ask("shape", symbol.infer_shape, given))
        queries.extend(self._ask("shape_partial", symbol.infer_shape_partial, dict(q)) for q in case.infer)
        self.inputs = self._inputs(given)

    def _ask(self, kind: str, method: Any, known: dict[str, Any]) -> Result:
        try:
            answer = method(**known)
        except Exception as e:
            return {"kind": kind, "error": _error(self.mx, e)}
        return {"kind": kind, "answer": [_plain(part) for part in answer]}

    def _inputs(self, given: dict[str, Any]) -> dict[str, np.ndarray]:
        shapes: dict[str, Any] = dict(given)
        if len(given) < len(self.case.inputs):
            args, _, aux = self.symbol.infer_shape(**given)
            if args is None:
                raise ValueError("inference leaves shapes unknown: give the case's arrays a shape")
            shapes = {**dict(zip([*self.args, *self.aux], [*args, *aux], strict=True)), **given}
        return {
            k: fill(self.case.id, k, a, self.case.dtype, tuple(shapes[k])) for k, a in self.case.inputs.items()
        }

    def _bind(self, grads: dict[str, Any] | None) -> Any:
        make = {k: self._array(v) for k, v in self.inputs.items()}
        req = {k: self.case.grad_req if k in (grads or {}) else "null" for k in self.args}
        return self.symbol.bind(
            self.mx.cpu(), args={k: make[k] for k in self.args if k in make}, args_grad=grads or None, grad_req=req,
            aux_states={k: make[k] for k in self.aux if k in make} or None,
        )  # fmt: skip

    def _array(self, value: np.ndarray) -> Any:
        return self.mx.nd.array(value, dtype=value.dtype)

    def predict(self) -> None:
        self.stage = "bind"
        executor = self._bind(None)
        self.stage = "forward"
        self._keep("out", executor.forward(is_train=False))
        self._keep_aux("aux_predict", executor)

    def train(self) -> None:
        """Forward in training mode, backward (twice when gradients accumulate), auxiliary states after both."""
        self.stage = "train"
        case = self.case
        start = {k: self._first_grad(k) for k in case.grads}
        grads = {k: self._array(v) for k, v in start.items()}
        executor = self._bind(grads)
        outputs = executor.forward(is_train=True)
        try:
            if grads:
                self.stage = "backward"
                self._backward(executor, outputs)
        finally:
            # Read last: symjax then compiles forward and backward as one function.
            self._keep("train", outputs)
        if grads:
            for k, g in grads.items():
                self.arrays[f"grad:{k}"] = _written(g.asnumpy(), start[k])
        self._keep_aux("aux", executor)

    def _backward(self, executor: Any, outputs: Any) -> None:
        heads = [self._head(i, o) for i, o in enumerate(outputs)]
        for repeat in range(2 if self.case.grad_req == "add" else 1):
            if repeat:
                executor.forward(is_train=True)
            executor.backward(heads) if self.case.head == "fill" else executor.backward()

    def _first_grad(self, name: str) -> np.ndarray:
        value = self.inputs[name]
        if self.case.grad_req == "write":
            return np.full(value.shape, UNWRITTEN, value.dtype)
        return fill(self.case.id, f"grad0:{name}", uniform(value.shape), value.dtype.name)

    def _head(self, i: int, output: Any) -> Any:
        dtype = np.dtype(output.dtype).name
        return self._array(fill(self.case.id, f"head{i}", uniform(output.shape, -1.5, 1.5), dtype))

    def _keep(self, prefix: str, outputs: Any) -> None:
        for i, o in enumerate(outputs):
            self.arrays[f"{prefix}{i}"] = np.array(o.asnumpy())

    def _keep_aux(self, prefix: str, executor: Any) -> None:
        for k in self.aux:
            value = np.array(executor.aux_dict[k].asnumpy())
            if prefix == "aux" or not np.array_equal(value, self.inputs[k]):
                self.arrays[f"{prefix}:{k}"] = value


def _written(gradient: np.ndarray, start: np.ndarray) -> np.ndarray:
    """MXNet leaves some zero gradients (of labels) unwritten: count them as the zeros that simple_bind allocates."""
    untouched = start.size > 0 and np.all(start == UNWRITTEN) and np.array_equal(gradient, start)
    return np.zeros_like(gradient) if untouched else gradient


@contextlib.contextmanager
def _np_shape(mx: Any, active: bool) -> Iterator[None]:
    if active:
        with mx.util.np_shape(True):
            yield
    else:
        yield


def _plain(part: Any) -> Any:
    """Shapes as lists, types as names, None as it is."""
    if part is None:
        return None
    return [None if p is None else [int(d) for d in p] if isinstance(p, (tuple, list)) else np.dtype(p).name
            for p in part]  # fmt: skip


def _error(mx: Any, e: Exception) -> Result:
    known = isinstance(e, mx.base.MXNetError)
    return {"type": type(e).__name__, "mxnet": known, "text": error_line(str(e))}


def error_line(text: str) -> str:
    """The part of a message that says something: no stack trace, time or address."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"\[\d\d:\d\d:\d\d\] ", "", line.strip()).removeprefix("MXNetError: ")
        if line.startswith(("Traceback", "Stack trace", "File ", "[bt]", "c_api")) or not line:
            continue
        lines.append(re.sub(r"0x[0-9a-f]+", "0x", line))
    return " ".join(lines[:2])[:300]
