"""`symjax.lower`: a symbol as one pure JAX function of dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from symjax.lowering.errors import BindError, MXNetError, did_you_mean
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.infer import Inferred, infer_shapes, infer_types
from symjax.lowering.layout import check_divides, kept, shardings
from symjax.lowering.mirror import mirrored
from symjax.lowering.trace import lower_graph, needs_shapes
from symjax.sparse.taps import WatchedTable, read_watched
from symjax.util import is_np_shape

if TYPE_CHECKING:
    from symjax.symbol.symbol import Symbol


class Lowered(NamedTuple):
    """What `lower` returns.

    Attributes:
      fn: `fn(params, aux, inputs=None, /, *, key=None, train=False, **inputs) -> (outputs, new_aux)`, pure.
      params: parameters by name.
      aux: auxiliary states by name.
    """

    fn: Callable[..., tuple[list[jax.Array], dict[str, jax.Array]]]
    params: dict[str, jax.Array]
    aux: dict[str, jax.Array]


def lower(
    symbol: Symbol,
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    *,
    dtypes: Mapping[str, Any] | None = None,
    inputs: Sequence[str] | None = None,
    platform: str | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    mesh: Mesh | None = None,
    **more_shapes: tuple[int, ...],
) -> Lowered:
    """Lowers a symbol to a pure function that jit, grad, vmap and sharding work on.

    Args:
      symbol: the symbol.
      arg_params: values of parameters (NDArrays or arrays), as from `model.load_checkpoint`; extra names are ignored.
      aux_params: values of auxiliary states.
      dtypes: dtypes of arguments by name, for parameters that are not given.
      inputs: names of the arguments that calls pass; labels of loss heads that have no value are among them anyway. By
        default those in `shapes`, the labels, and what `arg_params` lacks.
      platform: lower for "cpu", "cuda", "rocm" or "tpu" in particular; None for rules that run everywhere. Those of the
        CPU have no forward-mode derivatives (`jax.jvp`) of LSTM layers and of depthwise and transposed convolutions.
      shapes: shapes of inputs. Parameters that are not given are then made as zeros of the inferred shapes.
      mesh: lay parameters and auxiliary states over a device mesh: as their `__sharding__` attributes say, others whole
        on each device. The function keeps variables with the attribute so, inputs too.
      **more_shapes: the same, as keywords.

    Returns:
      (fn, params, aux). `fn(params, aux, *, key=None, train=False, **inputs)` returns the list of outputs and the dict
      of new auxiliary states (unchanged ones included). `key` is a JAX random key, needed where the graph draws random
      numbers in the mode asked for; `train` is static. Inputs may also come as a dict, third by position: the way for
      those that are called `key` or `train`. Labels of loss heads may be left out: they do not matter to the outputs,
      so zeros stand in.

    Raises:
      ValueError: a name is unknown, or an input is missing in a call.
      MXNetError: shapes contradict each other.

    dtypes are the graph's own, 64-bit ones included, whatever `jax_enable_x64` says.
    """
    graph = _graph_of(symbol)
    names = {n.name for n in graph.inputs}
    shapes = {**(shapes or {}), **more_shapes}
    for k in (*shapes, *(inputs or ()), *(dtypes or {})):
        if k not in names:
            raise BindError(f"lower: {k!r} is not an argument of {symbol!r}.{did_you_mean(k, names)}")
    given = {**(arg_params or {}), **(aux_params or {})}
    fed = _feeds(graph, given, shapes, inputs)
    params, aux = _values(graph, given, fed, shapes, dtypes or {})
    if mesh is not None:
        params, aux = _laid_out(graph, mesh, params), _laid_out(graph, mesh, aux)
    return Lowered(function_of(graph, fed, platform, mesh), params, aux)


def _laid_out(graph: Graph, mesh: Mesh, values: dict[str, Any]) -> dict[str, Any]:
    """Returns values of variables on a mesh."""
    found, asked = {}, shardings(graph, mesh)
    nodes = {n.name: n for n in graph.inputs}
    with jax.enable_x64(True):
        for name, value in values.items():
            there = asked.get(nodes[name])
            if there is not None:
                check_divides(nodes[name], there.spec, mesh, _shape(value))
            found[name] = jax.device_put(value, there or NamedSharding(mesh, PartitionSpec()))
    return found


def _graph_of(symbol: Any) -> Graph:
    graph = getattr(symbol, "_graph", None)
    if not isinstance(graph, Graph):
        remedy = (
            "; read a file with mx.sym.load, a checkpoint with mx.model.load_checkpoint"
            if isinstance(symbol, str)
            else ""
        )
        raise TypeError(f"lower: expected a Symbol, got {type(symbol).__name__}{remedy}")
    return graph


def _feeds(graph: Graph, given: Mapping[str, Any], shapes: Mapping[str, Any], inputs: Sequence[str] | None) -> set[str]:
    labels = {n.name for n in label_nodes(graph) if n.name not in given}
    if inputs is not None:
        return {*inputs, *labels}
    return labels | {n.name for n in graph.arguments if n.name in shapes or (given and n.name not in given)}


def _values(
    graph: Graph,
    given: Mapping[str, Any],
    fed: set[str],
    shapes: Mapping[str, tuple[int, ...]],
    dtypes: Mapping[str, Any],
) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    from symjax.symbol._infer import dtype_name

    have = {n: _array(given[n.name]) for n in graph.inputs if n.name in given and n.name not in fed}
    want = [n for n in graph.inputs if n not in have and n.name not in fed]
    found: Inferred[Any] | None = None
    types: Inferred[str] | None = None
    if want:
        known_types = {n: a.dtype.name for n, a in have.items()}
        known_types.update({n: dtype_name(dtypes[n.name]) for n in graph.inputs if n.name in dtypes})
        types = infer_types(graph, known_types)
        types.check()
        known = {n: tuple(a.shape) for n, a in have.items()}
        known.update({n: tuple(shapes[n.name]) for n in graph.inputs if n.name in shapes})
        found = infer_shapes(graph, known, types, is_np_shape())
        found.check()
    params: dict[str, jax.Array] = {}
    aux: dict[str, jax.Array] = {}
    missing = []
    with jax.enable_x64(True):
        for n in graph.inputs:
            if n.name in fed:
                continue
            value = have.get(n)
            if value is None:
                assert found is not None and types is not None
                shape = found[Entry(n, 0)]
                if not found.is_known(Entry(n, 0)):
                    missing.append(n.name)
                    continue
                value = jnp.zeros(shape, types[Entry(n, 0)] or "float32")
            (aux if n in graph.aux_nodes else params)[n.name] = value
    if missing:
        raise BindError(
            f"lower: no value and no shape for {', '.join(missing)}: give arg_params/aux_params, or shapes "
            f"of the inputs"
        )
    return params, aux


def _array(value: Any) -> Any:
    data = getattr(value, "_data", value)
    if isinstance(data, jax.Array) or hasattr(data, "stype"):  # a container of `symjax.sparse` stays what it is
        return data
    with jax.enable_x64(True):
        return jnp.asarray(np.asarray(data))


def function_of(graph: Graph, fed: AbstractSet[str], platform: str | None = None,
                mesh: Mesh | None = None) -> Callable[..., Any]:
    """The pure function of a graph that is called with the arguments `fed`, as `lower` returns it."""
    arguments, aux_states = graph.arguments, graph.aux_states
    labels = label_nodes(graph)
    shaped = needs_shapes(graph)
    repeated, asked = mirrored(graph), {} if mesh is None else shardings(graph, mesh)
    fixed = None if shaped else lower_graph(graph, platform=platform, mirrored=repeated)

    def fn(
        params: Mapping[str, Any],
        aux: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        key: Any = None,
        train: bool = False,
        **more: Any,
    ) -> tuple[list[jax.Array], dict[str, jax.Array]]:
        if not isinstance(train, bool | np.bool_):
            raise TypeError("train must be a Python bool; under jit it is static: jax.jit(fn, static_argnames='train')")
        inputs = _named(inputs, more, fed)
        values: dict[Node, Any] = {}
        for n in arguments:
            value = inputs.get(n.name) if n.name in fed else _take(params, n.name, "params")
            if value is not None:
                values[n] = kept(_operand(value, n.name), asked.get(n))
        states = [_operand(_take(aux, n.name, "aux"), n.name) for n in aux_states]
        given = {**{n: _watched(v) for n, v in values.items()}, **dict(zip(aux_states, states, strict=True))}
        found: Any = {}
        open_ = [n for n in arguments if n not in values]
        if open_ or fixed is None:
            shapes = _infer_call(graph, given)
            for n in open_:
                values[n] = _stand_in(n, labels, shapes)
            found = {n: tuple(shapes.values[n]) for n in shaped}
            run = fixed or lower_graph(graph, platform=platform, out_shapes=found, mirrored=repeated)
        else:
            run = fixed
        try:
            args, located = [values[n] for n in arguments], {}
            if any(isinstance(x, WatchedTable) for x in args):
                args, located = read_watched(graph, args, states, key, bool(train), found, platform)
            outs, new = run(args, states, key, bool(train), located)
        except (TypeError, ValueError) as e:
            if not isinstance(e, MXNetError):
                _infer_call(
                    graph, given, strict=True
                )  # says what does not fit, and where; the rule knows only that something does not
            raise
        return outs, {n.name: v for n, v in zip(aux_states, new, strict=True)}

    return fn


def _named(inputs: Any, more: Mapping[str, Any], fed: AbstractSet[str]) -> dict[str, Any]:
    if inputs is not None and not isinstance(inputs, Mapping):
        call = f"fn(params, aux, {min(fed, default='data')}=…)"
        raise TypeError(f"inputs come by name, {call} or as a dict, not as {type(inputs).__name__}")
    inputs = {**(inputs or {}), **more}
    for name in sorted(set(inputs) - fed):
        raise BindError(f"{name!r} is not an input; inputs are {', '.join(sorted(fed))}.{did_you_mean(name, fed)}")
    return inputs


def _take(values: Mapping[str, Any] | None, name: str, what: str) -> Any:
    try:
        return (values or {})[name]
    except KeyError:
        have = ", ".join(sorted(values or ())) or "nothing"
        raise BindError(f"{what} lacks {name!r}; it has {have:.300}") from None


_CONVERTERS = {"BCOO": "from_bcoo", "BCSR": "from_bcsr"}


def _operand(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        raise TypeError(f"{name!r} must be an array, got {type(value).__name__}; convert it with jnp.asarray")
    converter = "csr_from_scipy" if hasattr(value, "tocsr") else _CONVERTERS.get(type(value).__name__)
    if converter is not None:
        raise TypeError(f"{name!r} is a sparse matrix of another library ({type(value).__name__}); convert it with "
                        f"symjax.sparse.{converter}")
    return getattr(value, "_data", value)


def _watched(value: Any) -> Any:
    return value.table if isinstance(value, WatchedTable) else value


def _dtype(value: Any) -> Any:
    return value.dtype if hasattr(value, "stype") else jnp.result_type(value)


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if hasattr(value, "stype") else jnp.shape(value)


def _infer_call(graph: Graph, values: Mapping[Node, Any], strict: bool = False) -> Inferred[Any]:
    """Infers the shapes of a call. Dtypes that MXNet refuses are reported when `strict`, or if shapes fail too."""
    with jax.enable_x64(True):
        types = infer_types(graph, {n: _dtype(v).name for n, v in values.items()})
    shapes = infer_shapes(graph, {n: _shape(v) for n, v in values.items()}, types, is_np_shape())
    if strict or shapes.problems:
        types.check()
    shapes.check()
    return shapes


def label_nodes(graph: Graph) -> set[Node]:
    """Variables that only loss heads read, as labels: outputs do not depend on them."""
    readers: dict[Node, list[bool]] = {}
    for n in graph.nodes:
        for i, e in enumerate(n.inputs):
            if e.node.is_variable:
                readers.setdefault(e.node, []).append(n.is_loss and i > 0)
    return {n for n, uses in readers.items() if all(uses)}


def _stand_in(n: Node, labels: set[Node], shapes: Inferred[Any]) -> Any:
    shape = shapes[Entry(n, 0)]
    if n not in labels or not shapes.is_known(Entry(n, 0)):
        raise BindError(f"input {n.name!r} is missing: pass it by name")
    return jnp.zeros(shape, "float32")
