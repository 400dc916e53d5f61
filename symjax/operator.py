"""Operators written in Python: `register`, `CustomOp`, `CustomOpProp`, and the older `NumpyOp`, `NDArrayOp`.

    @mx.operator.register("scale")
    class ScaleProp(mx.operator.CustomOpProp):
        def __init__(self, factor="1"):  # parameters arrive as text
            super().__init__(need_top_grad=True)
            self.factor = float(factor)

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Scale(self.factor)

    y = mx.sym.Custom(x, op_type="scale", factor=3)      # in a graph, and in its JSON
    y = mx.nd.Custom(array, op_type="scale", factor=3)   # at once

On arrays the Python code is simply called. In a compiled graph it is called back on the host, with NDArrays on the CPU.
A CustomOpProp that overrides `create_jax_operator` gives JAX code instead, which is compiled with the graph, runs where
it runs, and is differentiated by JAX.
"""

from __future__ import annotations

import collections
import itertools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from symjax._python_operators import PropType, PythonType, on_cpu
from symjax.context import Context
from symjax.lowering import host as _custom
from symjax.lowering import registry as _ops
from symjax.lowering.errors import MXNetError
from symjax.ndarray import dispatch as _dispatch
from symjax.ndarray.ndarray import NDArray
from symjax.symbol.symbol import Symbol

__all__ = ["CustomOp", "CustomOpProp", "NDArrayOp", "NumpyOp", "OperatorArguments", "PythonOp",
           "get_all_registered_operators", "get_operator_arguments", "register"]

P = TypeVar("P", bound="type[CustomOpProp]")


class CustomOp:
    """The computation of a custom operator: override `forward` and `backward`."""

    def __init__(self) -> None:
        pass

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray],
                aux: list[NDArray]) -> None:
        """Computes the outputs into `out_data`.

        Args:
          is_train: whether this is a training pass.
          req: for each output "write", "add" or "null"; `assign` heeds it.
          in_data: the inputs.
          out_data: arrays of the inferred shapes and types, to be written.
          aux: the auxiliary states, which may be written.
        """

    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        """Computes the gradients of the inputs into `in_grad`.

        What `declare_backward_dependency` does not name is zeros.

        Args:
          req: for each input "write" or "null" (no gradient is wanted). Sums of gradients are made by the caller.
          out_grad: the gradients of the outputs.
          in_data, out_data: what the forward pass had.
          in_grad: arrays of zeros, to be written.
          aux: the auxiliary states after the forward pass. In a compiled graph a change here is lost.
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Writes `src` to `dst` as `req` says: "write" or "inplace" replaces, "add" adds, "null" does nothing."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """What a custom operator is like: names, shapes, types, and how to make the `CustomOp`.

    Args:
      need_top_grad: whether backward reads the gradients of the outputs; False for a loss, whose `backward()` needs no
        head gradient.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs; a node's output is called `<node>_<name>`."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states, which come after the inputs."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Completes the shapes: [] or a 0 is unknown.

        Returns:
          Shapes of the inputs, of the outputs, and (they may be left out) of the auxiliary states.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Completes the types, NumPy's: returns those of the inputs, the outputs and the auxiliary states."""
        return (in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states()))

    def infer_storage_type(self, in_stype: list[str]) -> Any:
        """Storage types of inputs, outputs and auxiliary states, from those of the inputs.

        Asked when `mx.nd.Custom` is given sparse arrays; one that raises, as this does, gets them dense. In a graph all
        is dense.
        """
        for i, stype in enumerate(in_stype):
            if stype != "default":
                raise MXNetError(f"input {i} has storage type {stype!r}: override infer_storage_type to take it")
        return (in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states()))

    def infer_storage_type_backward(self, ograd_stype: list[str], in_stype: list[str], out_stype: list[str],
                                    igrad_stype: list[str], aux_stype: list[str]) -> Any:
        """Storage types in the backward pass, all "default". Asked for the arrays of `mx.nd.Custom` as above."""
        every = (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype)
        return tuple(["default"] * len(part) for part in every)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads, by the numbers given: what is not named need not be kept."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx: Context, in_shapes: list[list[int]], in_dtypes: list[Any]) -> CustomOp:
        """Makes the operator for inputs (auxiliary states last) of these shapes and types.

        A graph makes one for each node; it lives as long as the graph's compiled code. `mx.nd.Custom` makes one for
        each call. MXNet gives `in_dtypes` as numbers, here they are NumPy's types.
        """
        return CustomOp()

    def create_jax_operator(self, in_shapes: list[list[int]], in_dtypes: list[Any],
                            is_train: bool) -> Callable[..., Any] | None:
        """Not in MXNet: gives the operator as JAX code, which is compiled with the graph and stays on the device.

        Args:
          in_shapes, in_dtypes: shapes and types of the inputs, auxiliary states last.
          is_train: whether this is for a training pass.

        Returns:
          A traceable function `(*inputs, *auxiliary states) -> output, or tuple of outputs and then new auxiliary
          states`. JAX differentiates it; give it a `jax.custom_vjp` for another gradient. None, as here: the `CustomOp`
          is called on the host.
        """
        return None


def register(reg_name: str) -> Callable[[P], P]:
    """Decorator: makes a `CustomOpProp` the operator `Custom(op_type=reg_name)`.

    Registering a name again replaces the operator in graphs built from then on.

    Raises:
      TypeError: the class is no CustomOpProp.
    """

    def do_register(prop_cls: P) -> P:
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}): expected a subclass of CustomOpProp, got {prop_cls!r}")
        _custom.register_type(reg_name, lambda kwargs: PropType(cast(Any, prop_cls)(**kwargs), reg_name))
        _dispatch.forget(_ops.get("Custom"))
        return prop_cls

    return do_register


# ---- the older classes


class PythonOp:
    """Base class of `NumpyOp` and `NDArrayOp`; write a `CustomOp` instead, which can be saved and loaded.

    Args:
      need_top_grad: what `need_top_grad()` returns.
    """

    _numbers = itertools.count(1)

    def __init__(self, need_top_grad: bool = True) -> None:
        self.info_: str | None = None
        self.need_top_grad_ = need_top_grad
        warnings.warn(f"{type(self).__name__} is a PythonOp, which MXNet has deprecated: write a CustomOp",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Symbol:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object.

        Args:
          *args: input symbols by position; `**kwargs`: by name, and `name`.
        """
        raise NotImplementedError("override NumpyOp or NDArrayOp")

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Writes the outputs."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Writes the gradients of the inputs."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Returns the shapes of the inputs and of the outputs."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether backward reads the gradients of the outputs; False for a loss."""
        return self.need_top_grad_

    def _node(self, op_name: str, wrap: Callable[[np.ndarray], Any], args: Any, kwargs: Any, **attrs: Any) -> Symbol:
        from symjax.symbol import _internal

        self.info_ = format(next(self._numbers), "x")
        _custom.register_instance(self.info_, PythonType(self, wrap))
        return getattr(_internal, op_name)(*args, info=self.info_, **attrs, **kwargs)


class NumpyOp(PythonOp):
    """An operator on NumPy arrays, in graphs of this process alone."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object; see `PythonOp.get_symbol`."""
        return self._node("_Native", np.array, args, kwargs, need_top_grad=self.need_top_grad())


class NDArrayOp(PythonOp):
    """An operator on NDArrays, in graphs of this process alone."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object; see `PythonOp.get_symbol`."""
        return self._node("_NDArray", on_cpu, args, kwargs)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads, by the numbers given."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


# ---- what is registered

OperatorArguments = collections.namedtuple("OperatorArguments", ["narg", "names", "types"])
"""The number of an operator's arguments (inputs, then parameters), their names and types."""


def get_all_registered_operators() -> list[str]:
    """Returns the names of all operators, aliases included."""
    return list(_ops.all_names())


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Returns the inputs and parameters of an operator.

    Raises:
      UnknownOpError: there is none of that name.
    """
    from symjax._op_functions import inputs_of

    op = _ops.get(op_name)
    ins = inputs_of(op)
    names = [*(ins.names or ([ins.variadic] if ins.variadic else [])), *op.params.__specs__]
    kind = "NDArray-or-Symbol[]" if ins.variadic else "NDArray-or-Symbol"
    types = [kind] * (len(names) - len(op.params.__specs__)) + [s.describe() for s in op.params.__specs__.values()]
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)
