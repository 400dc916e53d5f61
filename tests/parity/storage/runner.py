"""Run one stage of a storage case on an implementation of MXNet's API (`mx`): real MXNet in the oracle, symjax here."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.parity.arrays import fill, uniform
from tests.parity.runner import UNWRITTEN, error_line
from tests.parity.storage.case import CSR, DEFAULT, StorageCase, Stored

Result = dict[str, Any]


def run_stage(mx: Any, case: StorageCase, stage: str) -> Result:
    """Run a stage.

    Stages: "predict" is ``simple_bind`` without gradients and a forward pass; "train" the same with gradients, a
    training pass and a backward pass; "bind" likewise with gradient arrays of default storage; "nd" the imperative
    call; "tape" the imperative call under autograd; "update" the imperative call of an op that writes to its inputs.

    Returns:
        Storage types (``arg``, ``out``, ``grad``) and ``arrays`` {key: numpy array}; ``error`` ends them.
    """
    run = _Stage(mx, case)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            getattr(run, stage)()
        except Exception as e:
            known = isinstance(e, mx.base.MXNetError)
            run.result["error"] = {"at": run.at, "type": type(e).__name__, "mxnet": known, "text": error_line(str(e))}
    return run.result


class _Stage:
    def __init__(self, mx: Any, case: StorageCase) -> None:
        self.mx, self.case, self.at = mx, case, "load"
        self.arrays: dict[str, np.ndarray] = {}
        self.result: Result = {"arrays": self.arrays}

    def predict(self) -> None:
        executor = self._simple_bind("null")
        self.at = "forward"
        self._keep("out", executor.forward(is_train=False))

    def train(self) -> None:
        executor = self._simple_bind(self.case.grad_req)
        self.result["grad"] = {k: executor.grad_dict[k].stype for k in self.case.grads}
        self._passes(executor, executor.grad_dict)

    def bind(self) -> None:
        """Gradient arrays of default storage."""
        self.at = "bind"
        case, mx = self.case, self.mx
        fresh = UNWRITTEN if case.grad_req == "write" else 0
        args = {k: array(mx, k, v) for k, v in case.inputs.items()}
        grads = {k: mx.nd.array(np.full(case.inputs[k].shape, fresh), dtype=case.inputs[k].dtype) for k in case.grads}
        req = {k: case.grad_req if k in grads else "null" for k in args}
        executor = mx.sym.load_json(case.json()).bind(mx.cpu(), args=args, args_grad=grads, grad_req=req)
        self._passes(executor, grads)

    def nd(self) -> None:
        self.at = "call"
        self._keep("out", self._call({k: array(self.mx, k, v) for k, v in self.case.inputs.items()}))

    def tape(self) -> None:
        self.at = "attach_grad"
        inputs = {k: array(self.mx, k, v) for k, v in self.case.inputs.items()}
        for k in self.case.grads:
            inputs[k].attach_grad(grad_req=self.case.grad_req)
        self.result["grad"] = {k: inputs[k].grad.stype for k in self.case.grads}
        for _ in range(2 if self.case.grad_req == "add" else 1):
            self.at = "call"
            with self.mx.autograd.record():
                outputs = self._call(inputs)
            self.at = "backward"
            heads = self._heads(outputs)
            self.mx.autograd.backward(outputs, heads)
        self._keep_grads({k: inputs[k].grad for k in self.case.grads})

    def update(self) -> None:
        """An op that writes to its inputs: what they hold afterwards."""
        self.at = "call"
        inputs = {k: array(self.mx, k, v) for k, v in self.case.inputs.items()}
        _, op, params, names = self.case.nodes[0]
        function(self.mx, op)(*[inputs[n] for n in names], out=inputs[names[0]], **params)
        self.result["grad"] = {k: inputs[k].stype for k in self.case.mutates}
        for k in self.case.mutates:
            self._numbers(f"new:{k}", inputs[k])

    def _simple_bind(self, req: str) -> Any:
        self.at = "bind"
        case = self.case
        symbol = self.mx.sym.load_json(case.json())
        executor = symbol.simple_bind(
            self.mx.cpu(), grad_req={k: req if k in case.grads else "null" for k in case.inputs},
            type_dict={k: v.dtype for k, v in case.inputs.items()}, **{k: v.shape for k, v in case.inputs.items()},
        )  # fmt: skip
        self.result["arg"] = {k: executor.arg_dict[k].stype for k in case.inputs}
        self.at = "set"
        for k, v in case.inputs.items():
            executor.arg_dict[k][:] = array(self.mx, k, v)
        return executor

    def _passes(self, executor: Any, grads: Any) -> None:
        for _ in range(2 if self.case.grad_req == "add" else 1):
            self.at = "forward"
            outputs = executor.forward(is_train=True)
            self._keep("out", outputs)
            if self.case.grads:
                self.at = "backward"
                heads = self._heads(outputs)
                executor.backward(heads) if heads else executor.backward()
        self._keep_grads({k: grads[k] for k in self.case.grads})

    def _keep(self, prefix: str, outputs: Any) -> None:
        self.result[prefix] = [o.stype for o in outputs]
        for i, o in enumerate(outputs):
            self._numbers(f"{prefix}{i}", o)

    def _keep_grads(self, grads: dict[str, Any]) -> None:
        self.at = "gradient"
        for k, g in grads.items():
            self._numbers(f"grad:{k}", g)
            written = self.arrays.get(f"grad:{k}")
            if written is not None and written.size and (written == UNWRITTEN).all():
                # MXNet leaves some zero gradients (of labels) unwritten.
                self.arrays[f"grad:{k}"] = np.zeros_like(written)

    def _numbers(self, key: str, value: Any) -> None:
        if value.stype == DEFAULT:
            self.arrays[key] = np.array(value.asnumpy())
            return
        for part in ("data", "indices", *(("indptr",) if value.stype == CSR else ())):
            self.arrays[f"{key}.{part}"] = np.array(getattr(value, part).asnumpy())

    def _heads(self, outputs: Any) -> list[Any] | None:
        if self.case.head == "none":
            return None
        return [self.mx.nd.array(fill("storage", f"head{i}", uniform(o.shape, -1.5, 1.5), "float32"), dtype=o.dtype)
                for i, o in enumerate(outputs)]  # fmt: skip

    def _call(self, inputs: dict[str, Any]) -> list[Any]:
        """Evaluates the graph node by node; only its heads are returned."""
        values = {k: [v] for k, v in inputs.items()}
        for name, op, params, args in self.case.nodes:
            out = function(self.mx, op)(*[_entry(values, a) for a in args], **params)
            values[name] = list(out) if isinstance(out, (list, tuple)) else [out]
        return [_entry(values, h) for h in self.case.heads]


def _entry(values: dict[str, list[Any]], text: str) -> Any:
    name, _, output = text.partition(":")
    return values[name][int(output or 0)]


def function(mx: Any, op: str) -> Any:
    """The imperative function of an op by its registered name."""
    for prefix, space in (("_contrib_", "contrib"), ("_sparse_", "sparse"), ("_", "_internal")):
        if op.startswith(prefix):
            place = getattr(mx.nd, space)
            return getattr(place, op if space == "_internal" else op.removeprefix(prefix))
    return getattr(mx.nd, op)


def array(mx: Any, name: str, value: Stored) -> Any:
    """The input as an array of its storage."""
    if value.stype == DEFAULT:
        return mx.nd.array(value.dense(name), dtype=value.dtype)
    if value.some == "none":
        return mx.nd.sparse.zeros(value.stype, value.shape, dtype=value.dtype)
    make = mx.nd.sparse.csr_matrix if value.stype == CSR else mx.nd.sparse.row_sparse_array
    return make(value.parts(name), shape=value.shape, dtype=value.dtype)
