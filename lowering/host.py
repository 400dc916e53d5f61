"""Operators that are Python code of the user: what they are to the compiler, and which there are.

What the user registers comes here as a `HostType`, in NumPy terms; `symjax.operator` makes them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

Arrays = Sequence[np.ndarray]
Shapes = Sequence[Any]


class HostOperator(Protocol):
    """An operator that runs on the host, for inputs of certain shapes and types."""

    def forward(self, train: bool, inputs: Arrays, aux: Arrays, outs: Arrays) -> tuple[Arrays, Arrays]:
        """Returns (outputs, new auxiliary states); `outs` gives the shapes and types of the outputs."""
        ...

    def backward(self, reqs: Sequence[str], out_grads: Arrays, inputs: Arrays, outs: Arrays, aux: Arrays) -> Arrays:
        """Returns the gradient of each input; one whose entry of `reqs` is "null" is not read."""
        ...


class HostType(Protocol):
    """An operator with its parameters: names, inference, and how one for given inputs is made."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    aux: tuple[str, ...]

    def infer_shape(self, ins: list[list[int]]) -> tuple[Shapes, Shapes, Shapes]:
        """(input shapes, [] where unknown) -> shapes of inputs, outputs and auxiliary states."""
        ...

    def infer_type(self, ins: list[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Types of the inputs -> types of inputs, outputs and auxiliary states."""
        ...

    def needs(self) -> frozenset[int]:
        """What backward reads, numbered through the output gradients, the inputs and the outputs."""
        ...

    def operator(self, shapes: Shapes, dtypes: Sequence[np.dtype]) -> HostOperator:
        """The operator for these inputs (auxiliary states last), the same one every time."""
        ...

    def traceable(self, shapes: Shapes, dtypes: Sequence[np.dtype], train: bool) -> Callable[..., Any] | None:
        """A JAX function of the inputs that does the work instead, or None."""
        ...


Factory = Callable[[dict[str, str]], HostType]

TYPES: dict[str, Factory] = {}
INSTANCES: dict[str, HostType] = {}
_error: list[tuple[str, Exception]] = []
_error_lock = threading.Lock()


def register_type(name: str, factory: Factory) -> None:
    """Makes `Custom(op_type=name)` an operator; a second registration replaces the first.

    Args:
      name: the op_type.
      factory: (parameters as text) -> the operator's type.
    """
    TYPES[name] = factory


def register_instance(info: str, made: HostType) -> None:
    """Makes `_Native` and `_NDArray` nodes with this `info` the given operator."""
    INSTANCES[info] = made


def type_names() -> list[str]:
    """The op_types that are registered."""
    return sorted(TYPES)


def unregistered(attrs: Mapping[str, str]) -> str | None:
    """What a `Custom` node's attributes name and nobody registered: "op_type 'x'", or None."""
    name = attrs.get("op_type")
    return None if name is None or name in TYPES else f"op_type {name!r}"


def take_error() -> tuple[str, Exception] | None:
    """The last exception of a host operator with the operator's name, once; JAX passes on its text alone."""
    with _error_lock:
        return _error.pop() if _error else None


class reporting:
    """Keeps an exception for `take_error`, with the operator's name."""

    def __init__(self, name: str, what: str) -> None:
        self.name = f"{name}.{what}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, e: Any, trace: Any) -> None:
        if isinstance(e, Exception):
            with _error_lock:
                _error[:] = [(self.name, e)]
