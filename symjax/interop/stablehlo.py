"""Symbols as StableHLO: one file that any JAX, with or without symjax, calls on CPU, CUDA, ROCm or TPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.export
import jax.numpy as jnp

from symjax._files import atomic_write
from symjax.functional import lower
from symjax.lowering.errors import BindError, GraphFormatError, MissingLoweringError
from symjax.lowering.graph import Entry
from symjax.lowering.infer import infer_types

if TYPE_CHECKING:
    from symjax.symbol import Symbol

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
Shape = Sequence[int | str]


def export(
    symbol: Symbol,
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    *,
    platforms: Sequence[str] = PLATFORMS,
    dtypes: Mapping[str, Any] | None = None,
    freeze: bool = True,
    shapes: Mapping[str, Shape] | None = None,
    **more_shapes: Shape,
) -> jax.export.Exported:
    """Exports the prediction of a symbol.

        exported = stablehlo.export(net, args, auxs, data=("batch", 3, 224, 224))
        (probabilities,) = exported.call({"data": images})

    Args:
      symbol: the symbol.
      arg_params: values of parameters by name.
      aux_params: values of auxiliary states by name.
      platforms: "cpu", "cuda", "rocm", "tpu": where it will run; the machine that exports needs none of them.
      dtypes: dtypes of inputs by name; by default what the graph infers from the parameters, else float32.
      freeze: keep the parameters inside. Otherwise the call is `exported.call(params, aux, inputs)`.
      shapes: shapes of the inputs by name. A text is a dimension of any size (an expression, as
        `jax.export.symbolic_shape` takes it); equal texts are equal sizes. Labels of loss heads are not inputs.
      **more_shapes: the same, as keywords.

    Returns:
      The exported function. `mlir_module()` is its StableHLO text, `serialize()` and `save` its bytes.

    Raises:
      ValueError: a name is unknown, a parameter has no value, or the graph draws random numbers in prediction.
    """
    known = {**(shapes or {}), **more_shapes}
    fn, params, aux = lower(symbol, arg_params, aux_params, inputs=list(known))
    scope = jax.export.SymbolicScope()
    types = {**_inferred(symbol, {**params, **aux}), **(dtypes or {})}
    unknown = [n for n in dtypes or {} if n not in known]
    if unknown:
        raise BindError(f"dtypes: {unknown[0]!r} is not an input; inputs are {', '.join(known)}")
    with jax.enable_x64(True):
        inputs = {
            n: jax.ShapeDtypeStruct(
                jax.export.symbolic_shape(", ".join(map(str, s)), scope=scope), jnp.dtype(types.get(n) or "float32")
            )
            for n, s in known.items()
        }

        def frozen(inputs: Mapping[str, Any]) -> list[jax.Array]:
            return fn(params, aux, inputs)[0]

        def open_(params: Mapping[str, Any], aux: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[jax.Array]:
            return fn(params, aux, inputs)[0]

        avals = () if freeze else jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), (params, aux))
        try:
            return jax.export.export(jax.jit(frozen if freeze else open_), platforms=platforms)(*avals, inputs)
        except NotImplementedError as e:
            host = [f"{n.name!r} ({n.op.name})" for n in symbol._graph.nodes if n.op is not None and n.op.host]
            if not host or isinstance(e, MissingLoweringError):
                raise
            raise MissingLoweringError(
                f"node {host[0]} runs Python on the host, which an exported function cannot hold: give its "
                f"CustomOpProp a create_jax_operator (see docs/custom.md)"
            ) from e


def save(path: str | os.PathLike[str], exported: jax.export.Exported) -> None:
    """Writes an exported function to a file, atomically."""
    contents = exported.serialize()
    with atomic_write(path) as file:
        file.write(contents)


def load(path: str | os.PathLike[str]) -> jax.export.Exported:
    """Reads what `save` wrote.

    Raises:
      MXNetError: the file holds no exported function.
      OSError: the file cannot be opened.
    """
    with open(path, "rb") as file:
        contents = file.read()
    try:
        return jax.export.deserialize(bytearray(contents))
    except Exception as e:  # whatever flatbuffers and the version checks raise
        raise GraphFormatError(f"{os.fspath(path)}: not an exported function: {e}") from e


def _inferred(symbol: Symbol, values: Mapping[str, jax.Array]) -> dict[str, str | None]:
    graph = symbol._graph
    found = infer_types(graph, {n: values[n.name].dtype.name for n in graph.inputs if n.name in values})
    return {n.name: found[Entry(n, 0)] for n in graph.arguments}
