"""`MeshContext`: a device mesh as the context of arrays, and where the variables of a graph go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from symjax.context import Context
from symjax.lowering.errors import ArgumentError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.layout import axes_of, check_divides, fitting, spec_of

DATA = "data"
"""The mesh axis of a list of contexts."""


class MeshContext(Context):
    """All devices of a mesh, and how an array is laid over them.

    For what asks for a single device it is the first. Contexts of one mesh are equal, whatever their arrays' layout.

    Attributes:
      mesh: the mesh.
      spec: which axes divide the dimensions; a shape that they do not divide is copied whole to each device.
    """

    __slots__ = ("mesh", "spec")

    spans = True

    def __init__(self, mesh: Mesh, spec: PartitionSpec | None = None) -> None:
        first = Context.from_jax_device(mesh.devices.flat[0])
        super().__init__(first)
        self.mesh, self.spec = mesh, PartitionSpec() if spec is None else spec
        self._key = hash(mesh)
        self._where = first.platform, NamedSharding(mesh, PartitionSpec())

    def layout(self, shape: Sequence[int]) -> NamedSharding:
        """Returns the sharding of an array of some shape."""
        return fitting(self.mesh, self.spec, shape)

    def put(self, value: Any) -> jax.Array:
        """Returns an array with that sharding; itself if it has it already."""
        there = self.layout(np.shape(value))
        if isinstance(value, jax.Array):
            if value.committed and value.sharding.is_equivalent_to(there, value.ndim):
                return value
            return jax.device_put(value, there, may_alias=False)
        return jax.device_put(value, there)

    def parts(self, value: jax.Array) -> list[jax.Array]:
        """Returns what each device holds of an array, in the order of the mesh."""
        held = {s.device: s.data for s in value.addressable_shards}
        return [held[d] for d in self.mesh.devices.flat]

    def __hash__(self) -> int:
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, MeshContext) and self.mesh == other.mesh)

    def __str__(self) -> str:
        axes = ", ".join(f"{a}={n}" for a, n in self.mesh.shape.items())
        return f"{self.device_type}({axes})"

    __repr__ = __str__


def as_context(ctx: Any) -> Any:
    """Returns a mesh as a context, anything else as it is."""
    return MeshContext(ctx) if isinstance(ctx, Mesh) else ctx


def mesh_of(contexts: Sequence[Context]) -> Mesh | None:
    """Returns the mesh of several contexts, None if some of them are one device or they are of different kinds."""
    devices = [c.jax_device for c in contexts]
    if len(set(devices)) < len(devices) or len({c.platform for c in contexts}) > 1:
        return None
    return Mesh(np.array(devices), (DATA,))


def data_axis(mesh: Mesh, graph: Graph) -> str | None:
    """The mesh axis that divides batches: "data" or "batch", else the first that no attribute of the graph names."""
    for name in (DATA, "batch"):
        if name in mesh.axis_names:
            return name
    used = {a for n in graph.inputs for part in spec_of(n, mesh) or () for a in axes_of(part)}
    return next((a for a in mesh.axis_names if a not in used), None)


class Placement:
    """The context of each variable, and of each operator.

    Args:
      graph: the graph.
      ctx: the context bound to; a MeshContext lays variables out as their `__sharding__` attributes say.
      group2ctx: contexts by the name that `ctx_group` attributes have.
      batch: the batch axis of each input that is divided over a mesh, by name.

    Raises:
      BindError: an attribute does not fit the mesh.
    """

    def __init__(self, graph: Graph, ctx: Context, group2ctx: Mapping[str, Context] | None = None,
                 batch: Mapping[str, int] | None = None) -> None:
        self.graph, self.ctx, self.groups = graph, ctx, dict(group2ctx or {})
        self._found: dict[Node, Context] = {}
        self.data_axis: str | None = None
        for name, c in self.groups.items():
            if not isinstance(c, Context):
                raise ArgumentError(f"group2ctx[{name!r}] must be a Context such as mx.cpu(1), got {c!r:.100}")
        if isinstance(ctx, MeshContext):
            if self.groups:
                raise ArgumentError("group2ctx places parts of the graph on single devices, so it cannot be combined "
                                    "with a mesh of devices; give one context, or use __sharding__ attributes")
            self.data_axis = data_axis(ctx.mesh, graph) if batch else None
            self._lay(ctx, batch or {})

    def _lay(self, ctx: MeshContext, batch: Mapping[str, int]) -> None:
        for n in self.graph.inputs:
            spec = spec_of(n, ctx.mesh)
            axis = batch.get(n.name, -1)
            if spec is None and axis >= 0 and self.data_axis is not None:
                self._found[n] = MeshContext(ctx.mesh, PartitionSpec(*[None] * axis, self.data_axis))
            elif spec is not None:
                self._found[n] = MeshContext(ctx.mesh, spec)

    def __call__(self, n: Node, shape: Sequence[int] | None = None) -> Context:
        """Returns the context of a variable or operator.

        Raises:
          ShapeError: a `__sharding__` attribute does not divide `shape`.
        """
        if self.groups:
            return self.groups.get(n.attrs.get("__ctx_group__", ""), self.ctx)
        found = self._found.get(n, self.ctx)
        if shape is not None and isinstance(found, MeshContext) and n.is_variable:
            spec = spec_of(n, found.mesh)
            if spec is not None:
                check_divides(n, spec, found.mesh, shape)
        return found

    @property
    def devices(self) -> dict[Node, Any] | None:
        """The device of each node, None if all are on one."""
        if not self.groups:
            return None
        found = {n: self(n).jax_device for n in self.graph.nodes}
        return found if len(set(found.values())) > 1 or self.ctx.jax_device not in found.values() else None
