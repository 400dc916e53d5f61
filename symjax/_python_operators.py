"""User-written operators as lowering sees them: `CustomOpProp` and `PythonOp` objects on NumPy arrays."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from symjax.context import Context, cpu
from symjax.lowering.errors import ShapeError
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import to_device

if TYPE_CHECKING:
    from symjax.operator import CustomOp, CustomOpProp, PythonOp


def on_cpu(value: np.ndarray) -> NDArray:
    """A NumPy array as an NDArray on the CPU."""
    return NDArray._from_jax(to_device(value, cpu()), cpu())


def lists(found: Any, what: str, counts: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """The lists that an infer function returns, the last of which may be left out."""
    parts = tuple(found)
    if len(parts) == 2:
        parts = (*parts, [])
    if len(parts) != 3:
        raise ShapeError(f"{what} must return 2 or 3 lists, it returned {len(parts)}")
    for part, n, name in zip(parts, counts, ("inputs", "outputs", "auxiliary states"), strict=True):
        if len(part) != n:
            raise ShapeError(f"{what} returned {len(part)} entries for the {n} {name}")
    return parts


class PropType:
    """A CustomOpProp as lowering sees it."""

    def __init__(self, prop: CustomOpProp, name: str) -> None:
        self.prop, self.name = prop, name
        self.arguments = tuple(prop.list_arguments())
        self.outputs = tuple(prop.list_outputs())
        self.aux = tuple(prop.list_auxiliary_states())
        self._made: dict[Any, HostOp] = {}
        self._lock = threading.Lock()

    @property
    def counts(self) -> tuple[int, int, int]:
        return len(self.arguments), len(self.outputs), len(self.aux)

    def infer_shape(self, ins: list[list[int]]) -> tuple[Any, Any, Any]:
        return lists(self.prop.infer_shape(ins), f"{self.name}: infer_shape", self.counts)

    def infer_type(self, ins: list[Any]) -> tuple[Any, Any, Any]:
        return lists(self.prop.infer_type(ins), f"{self.name}: infer_type", self.counts)

    def needs(self) -> frozenset[int]:
        n_in, n_out, _ = self.counts
        numbers = list(range(2 * n_out + n_in))
        found = self.prop.declare_backward_dependency(numbers[:n_out], numbers[n_out:n_out + n_in],
                                                      numbers[n_out + n_in:])
        return frozenset(int(i) for i in found)

    def create(self, ctx: Context, shapes: Any, dtypes: Any) -> CustomOp:
        """Makes a new CustomOp."""
        with ctx:
            return self.prop.create_operator(ctx, [list(s) for s in shapes], [np.dtype(d).type for d in dtypes])

    def operator(self, shapes: Any, dtypes: Any) -> HostOp:
        key = (tuple(shapes), tuple(dtypes))
        with self._lock:
            if key not in self._made:
                self._made[key] = HostOp(self.create(cpu(), shapes, dtypes))
            return self._made[key]

    def traceable(self, shapes: Any, dtypes: Any, train: bool) -> Callable[..., Any] | None:
        return self.prop.create_jax_operator([list(s) for s in shapes], [np.dtype(d).type for d in dtypes], train)


class HostOp:
    """A CustomOp on NumPy arrays."""

    def __init__(self, made: CustomOp) -> None:
        self.op = made

    def forward(self, train: bool, inputs: Any, aux: Any, outs: Any) -> tuple[list[Any], list[Any]]:
        out_data, states = [on_cpu(o) for o in outs], [on_cpu(a) for a in aux]
        with cpu():
            self.op.forward(is_train=train, req=["write"] * len(outs), in_data=[on_cpu(x) for x in inputs],
                            out_data=out_data, aux=states)
        return [o.asnumpy() for o in out_data], [a.asnumpy() for a in states]

    def backward(self, reqs: Any, out_grads: Any, inputs: Any, outs: Any, aux: Any) -> list[Any]:
        in_grad, states = [on_cpu(np.zeros_like(x)) for x in inputs], [on_cpu(a) for a in aux]
        with cpu():
            self.op.backward(req=list(reqs), out_grad=[on_cpu(g) for g in out_grads],
                             in_data=[on_cpu(x) for x in inputs], out_data=[on_cpu(o) for o in outs], in_grad=in_grad,
                             aux=states)
        if any(not np.array_equal(a, s.asnumpy(), equal_nan=a.dtype.kind == "f")
               for a, s in zip(aux, states, strict=True)):
            warnings.warn(f"{type(self.op).__name__}.backward changes an auxiliary state; in a compiled graph forward "
                          f"alone can", stacklevel=2)
        return [g.asnumpy() for g in in_grad]


class PythonType:
    """A PythonOp as lowering sees it."""

    aux: tuple[str, ...] = ()

    def __init__(self, made: PythonOp, wrap: Callable[[np.ndarray], Any]) -> None:
        self.made, self.wrap = made, wrap
        self.arguments, self.outputs = tuple(made.list_arguments()), tuple(made.list_outputs())

    def infer_shape(self, ins: list[list[int]]) -> tuple[Any, Any, Any]:
        return lists(self.made.infer_shape(ins), f"{type(self.made).__name__}.infer_shape",
                      (len(self.arguments), len(self.outputs), 0))

    def infer_type(self, ins: list[Any]) -> tuple[Any, Any, Any]:
        return ins, [ins[0] if ins else np.float32] * len(self.outputs), []

    def needs(self) -> frozenset[int]:
        n_in, n_out = len(self.arguments), len(self.outputs)
        numbers = list(range(2 * n_out + n_in))
        parts = numbers[:n_out], numbers[n_out:n_out + n_in], numbers[n_out + n_in:]
        declare = getattr(self.made, "declare_backward_dependency", None)
        if declare is not None:
            return frozenset(declare(*parts))
        return frozenset(numbers if self.made.need_top_grad() else numbers[n_out:])

    def operator(self, shapes: Any, dtypes: Any) -> PythonType:
        return self

    def traceable(self, shapes: Any, dtypes: Any, train: bool) -> None:
        return None

    def forward(self, train: bool, inputs: Any, aux: Any, outs: Any) -> tuple[list[Any], list[Any]]:
        made = [self.wrap(o) for o in outs]
        self.made.forward(in_data=[self.wrap(x) for x in inputs], out_data=made)
        return [_numpy(m) for m in made], []

    def backward(self, reqs: Any, out_grads: Any, inputs: Any, outs: Any, aux: Any) -> list[Any]:
        made = [self.wrap(np.zeros_like(x)) for x in inputs]
        self.made.backward(out_grad=[self.wrap(g) for g in out_grads], in_data=[self.wrap(x) for x in inputs],
                           out_data=[self.wrap(o) for o in outs], in_grad=made)
        return [_numpy(m) for m in made]


def _numpy(x: Any) -> np.ndarray:
    return x.asnumpy() if isinstance(x, NDArray) else np.asarray(x)
