"""Operators that are Python code of the user: `Custom`, and the older `_Native` and `_NDArray`.

In a compiled graph such an operator is a call back to the host, with a gradient that is another. A type may offer a
traceable JAX function instead, which then stays on the device and needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.errors import DTypeError, MXNetError, ParamError, ShapeError, UnknownOpError, did_you_mean
from symjax.lowering.host import INSTANCES, TYPES, HostType, reporting, unregistered
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class CustomParams(Params):
    """`op_type`, and whatever the registered operator takes; texts all of them."""

    op_type: str = param(doc="The name that the operator is registered under (`mx.operator.register`).")

    @classmethod
    def parse(cls, attrs: Mapping[str, str], op: str = "") -> Self:
        given = {k: str(v) for k, v in attrs.items()}
        name = given.pop("op_type", None)
        if not name:
            raise ParamError("operator Custom: required parameter 'op_type' is missing; it names the operator that "
                             "mx.operator.register registered")
        factory = TYPES.get(name)
        if factory is None:
            raise UnknownOpError(
                f"custom operator {name!r} is not registered.{did_you_mean(name, TYPES)} Import the module that does "
                f"@mx.operator.register({name!r}) before the graph is loaded or built")
        self = cls(op_type=name)
        object.__setattr__(self, "kwargs", tuple(sorted(given.items())))
        object.__setattr__(self, "factory", factory)
        try:
            object.__setattr__(self, "host", factory(given))
        except TypeError as e:
            raise ParamError(f"custom operator {name!r} with parameters {given}: {e}") from e
        return self

    def to_attrs(self) -> dict[str, str]:
        return {"op_type": self.op_type, **dict(self.__dict__["kwargs"])}

    def _key(self) -> tuple[Any, ...]:
        return self.op_type, self.__dict__["kwargs"], self.__dict__["factory"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomParams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class ObjectParams(Params):
    """The number under which a `NumpyOp` or `NDArrayOp` object of this process is known."""

    info: str = param(doc="Names the Python object; of use in the process that made the symbol alone.")

    @property
    def host(self) -> HostType:
        try:
            return INSTANCES[self.info]
        except KeyError:
            raise UnknownOpError(
                f"info={self.info!r} is no operator of this process: a NumpyOp or NDArrayOp cannot be loaded from a "
                f"file. Write it as a CustomOp, which is found by its name (mx.operator.register)") from None


class NativeParams(ObjectParams):
    """An object, and what it says about its gradient."""

    need_top_grad: bool = param(True, doc="Whether backward reads the gradients of the outputs.")


# ---- inference


def _inputs(p: Any) -> tuple[str, ...]:
    return (*p.host.arguments, *p.host.aux)


def _shapes(p: Any, ins: Sequence[ShapeLike]) -> tuple[list[Any], list[Any], list[Any]]:
    """Asks the operator; dimensions that are unknown are 0, and a shape that is [] in both is unknown."""
    n = len(p.host.arguments)
    unknown = any(s is None or 0 in s for s in ins[:n])
    try:
        found = p.host.infer_shape([[] if s is None else list(s) for s in ins[:n]])
        return tuple([None if s is None or (unknown and len(s) == 0) else tuple(int(d) for d in s) for s in part]
                     for part in found)  # type: ignore[return-value]
    except Exception as e:
        if unknown:  # the operator's Python may well assume shapes that are not known yet
            return list(ins[:n]), [None] * len(p.host.outputs), [None] * len(p.host.aux)
        if isinstance(e, MXNetError):
            raise
        raise ShapeError(f"infer_shape raised {type(e).__name__}: {e}") from e


def infer_inputs(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    """Shapes of inputs and auxiliary states, from the operator's infer_shape."""
    found, _, aux = _shapes(p, ins)
    return [*found, *aux]


def infer_outputs(p: Any, ins: list[ShapeLike]) -> list[ShapeLike]:
    """Shapes of the outputs, from the operator's infer_shape."""
    return _shapes(p, ins)[1]


def infer_types(p: Any, ins: list[str | None], outs: list[str | None]) -> tuple[list[Any], list[Any]]:
    """Types of everything, from the operator's infer_type; inputs of unknown type are taken to be like the first."""
    n = len(p.host.arguments)
    known = next((t for t in ins[:n] if t), None)
    if known is None and n:
        return ins, outs
    try:
        found = p.host.infer_type([jnp.dtype(t or known).type for t in ins[:n]])
        a, b, c = ([jnp.dtype(t).name for t in part] for part in found)
    except MXNetError:
        raise
    except Exception as e:
        raise DTypeError(f"infer_type raised {type(e).__name__}: {e}") from e
    return [*a, *c], b


# ---- execution


@jax.tree_util.register_static
class _Reqs(tuple[str, ...]):
    """What is to be done with each gradient: "write" or "null"."""


def run(p: Any, data: Sequence[Any], train: bool) -> Any:
    """Applies a user's operator to traced arrays: its JAX function if it has one, else by a call to the host."""
    host: HostType = p.host
    shapes, dtypes = [tuple(x.shape) for x in data], [np.dtype(x.dtype) for x in data]
    native = host.traceable(shapes, dtypes, train)
    if native is not None:
        return native(*data)
    return _on_host(host, getattr(p, "op_type", type(host).__name__), data, shapes, dtypes, train)


def _on_host(host: HostType, name: str, data: Sequence[Any], shapes: list[Any], dtypes: list[Any], train: bool) -> Any:
    n_in, n_out = len(host.arguments), len(host.outputs)
    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in data]
    out_shapes = host.infer_shape([list(s) for s in shapes[:n_in]])[1]
    out_types = host.infer_type([d.type for d in dtypes[:n_in]])[1]
    outs = tuple(jax.ShapeDtypeStruct(tuple(s), jnp.dtype(t)) for s, t in zip(out_shapes, out_types, strict=True))
    needs = host.needs()

    def forward(*values: Any) -> Any:
        with reporting(name, "forward"):
            templates = [np.zeros(o.shape, o.dtype) for o in outs]
            xs = _host(values, dtypes)
            made, aux = host.operator(shapes, dtypes).forward(train, xs[:n_in], xs[n_in:], templates)
            return _checked([*made, *aux], [*outs, *avals[n_in:]])

    def backward(reqs: Sequence[str], positions: Sequence[int], *values: Any) -> Any:
        with reporting(name, "backward"):
            every: list[Any] = [*outs, *avals[:n_in], *outs, *avals[n_in:]]
            given = dict(zip(positions, values, strict=True))
            xs = [np.asarray(given[i], a.dtype) if i in given else np.zeros(a.shape, a.dtype)
                  for i, a in enumerate(every)]
            grads, ins, made, aux = (xs[:n_out], xs[n_out:n_out + n_in], xs[n_out + n_in:2 * n_out + n_in],
                                     xs[2 * n_out + n_in:])
            got = host.operator(shapes, dtypes).backward(reqs, grads, ins, made, aux)
            return _checked([g for g, r in zip(got, reqs, strict=True) if r != "null"],
                            [a for a, r in zip(avals, reqs, strict=False) if r != "null"])

    @jax.custom_vjp
    def f(*xs: Any) -> Any:
        return _call(forward, (*outs, *avals[n_in:]), *xs)

    def fwd(*xs: Any) -> Any:
        values = [x.value for x in xs]
        made = _call(forward, (*outs, *avals[n_in:]), *values)
        reqs = _Reqs("write" if x.perturbed and jnp.issubdtype(x.value.dtype, jnp.inexact) else "null"
                     for x in xs[:n_in])
        kept = [*values[:n_in], *made[:n_out]]
        return made, (reqs, [v if n_out + i in needs else None for i, v in enumerate(kept)], list(made[n_out:]))

    def bwd(residuals: Any, cotangents: Any) -> Any:
        reqs, kept, aux = residuals
        heads = [_dense(c, o) if i in needs else None for i, (c, o) in enumerate(zip(cotangents, outs, strict=False))]
        given = {i: v for i, v in enumerate([*heads, *kept, *aux]) if v is not None}
        wanted = [a for a, r in zip(avals, reqs, strict=False) if r != "null"]
        if not wanted:
            return (None,) * len(avals)
        grads = iter(_call(lambda *v: backward(reqs, tuple(given), *v), tuple(wanted), *given.values()))
        return tuple(None if r == "null" else next(grads) for r in (*reqs, *(["null"] * (len(avals) - n_in))))

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f(*data)


def _dense(cotangent: Any, like: Any) -> Any:
    """A cotangent as an array: what carries no gradient is zeros."""
    if not jnp.issubdtype(like.dtype, jnp.inexact) or isinstance(cotangent, jax.custom_derivatives.SymbolicZero):
        return jnp.zeros(like.shape, like.dtype)
    return cotangent


def _call(callback: Callable[..., Any], outs: tuple[Any, ...], *values: Any) -> Any:
    return jax.pure_callback(callback, outs, *values, vmap_method="sequential") if outs else ()


def _host(values: Sequence[Any], dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
    return [np.asarray(v, d) for v, d in zip(values, dtypes, strict=True)]


def _checked(values: Sequence[Any], avals: Sequence[Any]) -> tuple[np.ndarray, ...]:
    made = tuple(np.asarray(v, a.dtype) for v, a in zip(values, avals, strict=True))
    for v, a in zip(made, avals, strict=True):
        if v.shape != a.shape:
            raise ShapeError(f"it gave an array of shape {v.shape}, infer_shape said {a.shape}")
    return made


def _needs_no_head(p: Any) -> bool:
    return not any(i in p.host.needs() for i in range(len(p.host.outputs)))


_COMMON: dict[str, Any] = {
    "inputs": _inputs, "aux": lambda p: p.host.aux, "outputs": lambda p: p.host.outputs, "all_inputs": ("*data",),
    "infer_inputs": infer_inputs, "infer_outputs": infer_outputs, "infer_types": infer_types,
    "is_loss": _needs_no_head, "aux_in_forward": True, "host": True,
}  # fmt: skip


@op("Custom", aliases=("_npi_Custom",), params=CustomParams, unregistered=unregistered, **_COMMON)
def custom(p: CustomParams, *data: Any, train: bool) -> Any:
    """Runs the operator registered under `op_type`, on the host unless it offers a JAX function.

    Shapes, types, inputs and outputs are those that its `CustomOpProp` gives. Its gradient is its `backward`.
    See `mx.operator`.
    """
    return run(p, data, train)


@op("_Native", params=NativeParams, **_COMMON)
def native(p: NativeParams, *data: Any, train: bool) -> Any:
    """Runs a `mx.operator.NumpyOp` object on NumPy arrays."""
    return run(p, data, train)


@op("_NDArray", params=ObjectParams, **_COMMON)
def ndarray(p: ObjectParams, *data: Any, train: bool) -> Any:
    """Runs a `mx.operator.NDArrayOp` object on NDArrays."""
    return run(p, data, train)
