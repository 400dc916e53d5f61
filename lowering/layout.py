"""Where the arrays of a graph lie on a device mesh: `__sharding__` attributes, and what a program keeps of them."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from symjax.lowering.errors import BindError, ShapeError, did_you_mean
from symjax.lowering.graph import Graph, Node

KEY = "__sharding__"
"""The attribute of a variable that says which mesh axes divide it."""

_NAME = re.compile(r"^[A-Za-z_]\w*$")


def parse_sharding(text: str, what: str = "a variable") -> PartitionSpec:
    """Reads the text of a `__sharding__` attribute.

    Args:
      text: one part for each dimension from the first on, separated by commas: the name of a mesh axis, None for a
        dimension that is not divided, or several names in parentheses. "model,None", "(None, 'model')",
        "PartitionSpec(('data', 'model'), None)"; the empty text divides nothing.
      what: whose attribute it is, for messages.

    Raises:
      BindError: the text is none of these.
    """
    body = re.sub(r"^(P|PartitionSpec)(?=\()", "", text.strip()).rstrip(",")
    quoted = re.sub(r"(?<!['\"\w])(?!None\b)([A-Za-z_]\w*)(?!['\"\w])", r"'\1'", body)
    parts: tuple[Any, ...] = (0,)
    with contextlib.suppress(ValueError, SyntaxError):
        parts = ast.literal_eval(f"({quoted},)") if body else ()
    if len(parts) == 1 and isinstance(parts[0], tuple):
        parts = parts[0]
    if not all(map(_is_part, parts)):
        raise BindError(f"{what}: {KEY}={text!r} cannot be read; give a mesh axis or None for each dimension, such as "
                        f"\"(None, 'model')\" or \"model,None\"")
    return PartitionSpec(*parts)


def _is_part(part: Any) -> bool:
    if isinstance(part, tuple):
        return bool(part) and all(isinstance(p, str) and _NAME.match(p) for p in part)
    return part is None or (isinstance(part, str) and bool(_NAME.match(part)))


def axes_of(part: Any) -> tuple[str, ...]:
    """The mesh axes that divide one dimension."""
    return () if part is None else part if isinstance(part, tuple) else (part,)


def spec_of(n: Node, mesh: Mesh) -> PartitionSpec | None:
    """Returns what a variable's attribute asks of a mesh, None if it has none.

    Raises:
      BindError: the attribute cannot be read, or names an axis twice, or one that the mesh does not have.
    """
    text = n.attrs.get(KEY)
    if text is None:
        return None
    spec = parse_sharding(text, f"variable {n.name!r}")
    names = [a for part in spec for a in axes_of(part)]
    for a in names:
        if a not in mesh.axis_names:
            raise BindError(f"variable {n.name!r}: {KEY}={text!r} names the mesh axis {a!r}, and the mesh has "
                            f"{', '.join(map(repr, mesh.axis_names))}.{did_you_mean(a, mesh.axis_names)} A list of "
                            f"contexts has the axis 'data' alone; give a jax.sharding.Mesh as the context for others")
        if names.count(a) > 1:
            raise BindError(f"variable {n.name!r}: {KEY}={text!r} names the mesh axis {a!r} twice")
    return spec


def check_divides(n: Node, spec: PartitionSpec, mesh: Mesh, shape: Sequence[int]) -> None:
    """Checks that a variable's shape can be divided as its attribute asks.

    Raises:
      ShapeError: it has fewer dimensions, or one that is not a multiple of the devices along its axes.
    """
    text = n.attrs.get(KEY)
    if len(spec) > len(shape):
        raise ShapeError(f"variable {n.name!r}: {KEY}={text!r} has {len(spec)} parts for the shape {tuple(shape)}; an "
                         f"attribute of an operator or scope counts for all its variables, so give the one that is "
                         f"meant a Variable of its own")
    for i, part in enumerate(spec):
        count = math.prod(mesh.shape[a] for a in axes_of(part))
        if shape[i] % count:
            raise ShapeError(f"variable {n.name!r}: dimension {i} of the shape {tuple(shape)} cannot be divided by the "
                             f"{count} devices of {KEY}={text!r}")


def fitting(mesh: Any, spec: PartitionSpec, shape: Sequence[int]) -> NamedSharding:
    """Returns the sharding of a spec; one of whole copies for a shape that it does not divide."""
    sizes = [math.prod(mesh.shape[a] for a in axes_of(part)) for part in spec]
    fits = len(sizes) <= len(shape) and not any(d % n for d, n in zip(shape, sizes, strict=False))
    return NamedSharding(mesh, spec if fits else PartitionSpec())


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shardings that the arrays of a program keep.

    Attributes:
      args, aux: of the arguments and auxiliary states; gradients and optimizer states lie as their arguments do.
      outs: of the outputs, None where the compiler decides.
    """

    args: tuple[NamedSharding, ...]
    aux: tuple[NamedSharding, ...]
    outs: tuple[NamedSharding | None, ...]

    def results(self, outs: Sequence[Any], aux: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Returns outputs and new auxiliary states, laid out."""
        return list(map(kept, outs, self.outs)), list(map(kept, aux, self.aux))

    def like(self, i: int, value: Any) -> Any:
        """Returns a gradient, weight or state of argument `i`, laid out as the argument if it can be."""
        there = self.args[i]
        return kept(value, fitting(there.mesh, there.spec, value.shape))


def kept(value: Any, sharding: NamedSharding | None) -> Any:
    """Returns a dense array with a sharding; containers of `symjax.sparse` as they are."""
    if sharding is None or hasattr(value, "stype"):
        return value
    return jax.lax.with_sharding_constraint(value, sharding)


def shardings(graph: Graph, mesh: Mesh) -> Mapping[Node, NamedSharding]:
    """Returns the shardings that attributes of the graph's variables ask for.

    Raises:
      BindError: as for `spec_of`.
    """
    found = {n: spec_of(n, mesh) for n in graph.inputs}
    return {n: NamedSharding(mesh, s) for n, s in found.items() if s is not None}
