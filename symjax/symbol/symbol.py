"""Symbol: MXNet's symbolic graph, built by calls, composed, inspected, inferred, bound and saved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from symjax.lowering import registry
from symjax.lowering.errors import MXNetError, did_you_mean
from symjax.lowering.graph import Entry, Graph, Node, copy_graph
from symjax.symbol import _infer, _inspect, _json
from symjax.symbol._compose import HIDDEN_KEYS, create_node, hide
from symjax.symbol._operators import Operators

if TYPE_CHECKING:
    from symjax.executor import Executor


class Symbol(Operators):
    """One or more outputs of a symbolic graph.

    A symbol is made by `Variable`, by calling an operator of `symjax.sym`, by `Group`, or by `load`. It can be composed
    further, asked for its names, shapes and types, bound to arrays, and saved. Iteration, `len` and indexing go over
    its outputs; `sym["fc1_output"]` finds one by name.
    """

    __slots__ = ("__weakref__", "_graph")
    __array_priority__ = 1000.0
    is_numpy: ClassVar[bool] = False
    """Whether this is an `mx.sym.np._Symbol`, which other operators take."""

    def __init__(self, handle: Graph) -> None:
        self._graph = handle

    @classmethod
    def _of(cls, entries: Sequence[Entry]) -> Symbol:
        return cls(Graph(entries))

    @property
    def handle(self) -> Graph:
        """The graph (MXNet: a pointer to one)."""
        return self._graph

    def _apply(self, op_name: str, others: Sequence[Symbol], attrs: Mapping[str, str]) -> Symbol:
        """Applies an op to this symbol and others."""
        return call(op_name, (self, *others), attrs)

    @property
    def _entry(self) -> Entry:
        """The single output, as an operator's input.

        Raises:
          MXNetError: there are several.
        """
        if len(self._graph.outputs) != 1:
            raise MXNetError(
                f"{self!r} has {len(self._graph.outputs)} outputs ({', '.join(self.list_outputs())}); an "
                f"operator's input takes one: choose by index"
            )
        return self._graph.outputs[0]

    # ---- names and parts

    @property
    def name(self) -> str | None:
        """The name of the node, None for a group of several nodes."""
        nodes = {e.node for e in self._graph.outputs}
        return nodes.pop().name if len(nodes) == 1 else None

    def __repr__(self) -> str:
        name = self.name
        if name is None:
            return f"<{type(self).__name__} group [{', '.join(str(s.name) for s in self)}]>"
        return f"<{type(self).__name__} {name}>"

    def __len__(self) -> int:
        return len(self._graph.outputs)

    def __iter__(self) -> Iterator[Symbol]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int | str | slice) -> Symbol:
        if isinstance(index, slice):
            picked = self._graph.outputs[index]
            return type(self)._of(picked)
        if isinstance(index, str):
            hits = [i for i, n in enumerate(self.list_outputs()) if n == index]
            if len(hits) > 1:
                raise ValueError(f'There are multiple outputs with name "{index}"')
            if not hits:
                near = did_you_mean(index, self.list_outputs())
                raise ValueError(f'Cannot find output that matches name "{index}"{near and "." + near}')
            index = hits[0]
        if not isinstance(index, int):
            raise TypeError("Symbol only support integer index to fetch i-th output")
        if not -len(self) <= index < len(self):
            raise IndexError(f"output {index} of {self!r}: there are {len(self)} (from 0)")
        return type(self)._of((self._graph.outputs[index],))

    def get_internals(self) -> Symbol:
        """All outputs of all nodes, variables included, in topological order."""
        return type(self)._of([e for n in self._graph.nodes for e in n.entries()])

    def get_children(self) -> Symbol | None:
        """The inputs of the output nodes, None for a variable."""
        inputs = [e for node in dict.fromkeys(e.node for e in self._graph.outputs) for e in node.inputs]
        return type(self)._of(inputs) if inputs else None

    def list_arguments(self) -> list[str]:
        """Names of the arguments in depth-first post-order, without auxiliary states."""
        return [n.name for n in self._graph.arguments]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return [n.name for n in self._graph.aux_states]

    def list_inputs(self) -> list[str]:
        """Names of arguments and auxiliary states in one topological order."""
        return [n.name for n in self._graph.inputs]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return [e.output_name for e in self._graph.outputs]

    # ---- attributes

    def attr(self, key: str) -> str | None:
        """The attribute `key` of a single-output symbol, or None."""
        attrs = self._single_node().attrs
        if not isinstance(key, str):
            raise AttributeError(f"{type(key).__name__!r} object has no attribute 'encode'; keys are strings")
        return attrs.get(key, attrs.get(hide(key)))

    def _single_node(self) -> Node:
        nodes = {e.node for e in self._graph.outputs}
        if len(nodes) != 1:
            raise MXNetError(f"{self!r} has several nodes; take one of them by index first")
        return nodes.pop()

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """The attributes of this node; hidden keys show in both spellings."""
        if recursive:
            raise DeprecationWarning(
                "Symbol.list_attr with recursive=True has been deprecated. Please use attr_dict instead."
            )
        return _both_spellings(self._single_node().attrs)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """The attributes of all nodes that have some, by node name."""
        out: dict[str, dict[str, str]] = {}
        for n in self._graph.nodes:
            if n.attrs:
                out.setdefault(n.name, {}).update(_both_spellings(n.attrs))
        return out

    def _set_attr(self, **kwargs: str) -> None:
        """Sets attributes of this node, in place."""
        node = self._single_node()
        for k, v in kwargs.items():
            if not isinstance(v, str):
                raise ValueError(f"Set Attr only accepts string values, but {k} is {type(v).__name__}")
            node.attrs[hide(k)] = v
        node._params = None
        self._graph = Graph(self._graph.outputs)

    # ---- composition

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """Composes: returns a copy in which the given symbols take the place of variables.

        `net(data=x, name="n")` replaces the variable `data` by `x` and names the copy's head `n`.

        Raises:
          TypeError: positional and keyword symbols are mixed, or a value is not a Symbol.
          MXNetError: a keyword is not a variable of this graph, or symbols are given by position.
        """
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise TypeError("compose only accept input Symbols either as positional or keyword arguments, not both")
        for v in (*args, *kwargs.values()):
            if not isinstance(v, Symbol):
                raise TypeError(f"Compose expect `Symbol` as arguments, but got {type(v).__name__}")
        outputs = copy_graph(self._graph.outputs, self._replacements(args, kwargs))
        if name:
            for node in {e.node for e in outputs}:
                node.name = name
        return type(self)._of(outputs)

    def _replacements(self, args: Sequence[Symbol], kwargs: Mapping[str, Symbol]) -> dict[Node, Entry]:
        variables = self._graph.inputs
        if args:
            raise MXNetError(
                f"composing {self!r}: a graph takes symbols by keyword only; its variables are "
                f"{', '.join(n.name for n in variables)}"
            )
        names = [n.name for n in variables]
        for k in kwargs:
            if k not in names:
                raise MXNetError(
                    f"Symbol.Compose: keyword argument name {k} not found.{did_you_mean(k, names)}\n"
                    f"Candidate arguments: {', '.join(names)}"
                )
        return {n: kwargs[n.name]._entry for n in variables if n.name in kwargs}

    def __copy__(self) -> Symbol:
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> Symbol:
        return type(self)._of(copy_graph(self._graph.outputs))

    def __getstate__(self) -> dict[str, str]:
        return {"handle": self.tojson()}

    def __setstate__(self, state: dict[str, str]) -> None:
        self._graph = _json.loads(state["handle"], source="pickled symbol")

    def __reduce__(self) -> Any:
        return (_from_json, (type(self), self.tojson()))

    # ---- inference

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers all shapes from some, given by position (list_arguments order) or by name.

        In classic semantics a 0 is an unknown dimension and None or () an unknown shape.

        Returns:
          (argument shapes, output shapes, auxiliary state shapes) as lists of tuples, or (None, None, None), with a
          warning, if something stays unknown.

        Raises:
          MXNetError: shapes contradict each other (all places are listed), or a keyword names no argument.
          ValueError: positional and keyword shapes are mixed.
        """
        return _infer.infer_shape(self._graph, args, kwargs)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """As `infer_shape`, but returns what is known, with () for unknown shapes and 0 for unknown dimensions."""
        return _infer.infer_shape(self._graph, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers all dtypes from some; (None, None, None) if something stays unknown.

        Returns:
          (argument, output, auxiliary state) dtypes as lists of numpy scalar types.

        Raises:
          MXNetError: dtypes contradict each other.
          ValueError: positional and keyword dtypes are mixed.
        """
        return _infer.infer_type(self._graph, args, kwargs)

    def infer_storage_type(self, *args: str | None, **kwargs: str) -> tuple[list[str], list[str], list[str]]:
        """Infers all storage types from those of the arguments; what is not given is what `Variable(stype=)` says.

        MXNet 1.9.1 has this in its C interface alone.

        Returns:
          (argument, output, auxiliary state) storage types: "default", "csr" or "row_sparse".

        Raises:
          MXNetError: an unknown type, or an operator that refuses a combination.
        """
        return _infer.infer_storage_type(self._graph, args, kwargs)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """As `infer_type`, but returns what is known, with None for the rest."""
        return _infer.infer_type(self._graph, args, kwargs, partial=True)

    # ---- files

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Returns the JSON text, as MXNet 1.9.1 writes it.

        Args:
          remove_amp_cast: leave out the `amp_cast` and `amp_multicast` nodes of mixed precision.
        """
        return _json.dumps(_without_amp_cast(self._graph) if remove_amp_cast else self._graph)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Writes the JSON text to a file, atomically."""
        from symjax._files import atomic_write

        with atomic_write(fname) as f:
            f.write(self.tojson(remove_amp_cast).encode("utf-8"))

    def debug_str(self) -> str:
        """A text listing of the graph, in MXNet's format."""
        return _inspect.debug_str(self._graph)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from symjax.symbol._svg import render

        return {"text/plain": repr(self), "image/svg+xml": render(self._graph)}

    # ---- execution

    def bind(
        self,
        ctx: Any,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Executor:
        """Binds arrays, used in place, and returns an Executor. See `symjax.executor.bind`."""
        from symjax import executor

        return executor.bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)

    def simple_bind(
        self,
        ctx: Any,
        grad_req: Any = "write",
        type_dict: Any = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Any = None,
        shared_buffer: Any = None,
        **kwargs: Any,
    ) -> Executor:
        """Infers everything from the given shapes, allocates zeros, and binds. See `symjax.executor.simple_bind`."""
        from symjax import executor

        return executor.simple_bind(
            self,
            ctx,
            grad_req,
            type_dict,
            stype_dict,
            group2ctx,
            shared_arg_names,
            shared_exec,
            shared_buffer,
            **kwargs,
        )

    def _bind(self, *args: Any, **kwargs: Any) -> Executor:
        return self.bind(*args, **kwargs)

    def _simple_bind(self, *args: Any, **kwargs: Any) -> Executor:
        return self.simple_bind(*args, **kwargs)

    def eval(self, ctx: Any = None, **kwargs: Any) -> Any:
        """Evaluates with the given arrays (predict mode) and returns the list of outputs."""
        from symjax.context import current_context

        return self.bind(ctx or current_context(), kwargs).forward()

    def gradient(self, wrt: Sequence[str]) -> Symbol:
        """The gradient of the sum of the outputs with respect to the named arguments, as a symbol.

        Its outputs follow `wrt`; its arguments are this symbol's. It evaluates, binds, infers, saves and loads.
        Loss heads keep their own gradients.

        # MXNet: the call exists and always fails there.

        Raises:
          ValueError: a name is not an argument of this symbol.
        """
        from symjax.symbol._gradient import gradient

        return gradient(self, wrt)

    def optimize_for(
        self,
        backend: str,
        args: Any = None,
        aux: Any = None,
        ctx: Any = None,
        shape_dict: Any = None,
        type_dict: Any = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """Returns this symbol: XLA optimises the whole graph when it is bound, whatever the backend's name.

        The arguments are accepted for the sake of ported code. Raises ValueError for an empty backend name.
        """
        return _inspect.explain_backend(self, backend)

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Returns this symbol; see `optimize_for`."""
        return _inspect.explain_backend(self, backend)

    # ---- conversions between front ends

    def as_nd_ndarray(self) -> Symbol:
        """Returns this symbol, which is a classic one already."""
        return self

    def as_np_ndarray(self) -> Symbol:
        """Returns a symbol of the same outputs that the functions of `mx.sym.np` take, with numpy's operators."""
        from symjax.symbol.numpy._symbol import _Symbol

        return _Symbol(self._graph)


def call(
    op_name: str,
    inputs: Sequence[Symbol],
    attrs: Mapping[str, str],
    name: str | None = None,
    named: Mapping[str, Symbol] | None = None,
    hint: str | None = None,
    attr: Mapping[str, str] | None = None,
) -> Symbol:
    """Applies a registered op to symbols; the automatic name's hint is the op's name as called."""
    op = registry.get(op_name)
    node = create_node(
        op,
        [s._entry for s in inputs],
        {k: s._entry for k, s in (named or {}).items()},
        attrs,
        name,
        hint or op_name.lower(),
        attr,
    )
    return Symbol._of(node.entries())


def _from_json(cls: type[Symbol], text: str) -> Symbol:
    return cls(_json.loads(text, source="pickled symbol"))


def _both_spellings(attrs: Mapping[str, str]) -> dict[str, str]:
    shown = dict(attrs)
    for key in HIDDEN_KEYS:
        if hide(key) in attrs:
            shown[key] = attrs[hide(key)]
    return shown


def _without_amp_cast(graph: Graph) -> Graph:
    if not any(n.op is not None and n.op.name in ("amp_cast", "amp_multicast") for n in graph.nodes):
        return graph
    new: dict[Entry, Entry] = {}
    for n in graph.nodes:
        if n.op is not None and n.op.name in ("amp_cast", "amp_multicast"):
            for i, e in enumerate(n.inputs):
                new[Entry(n, i)] = new[e]
            continue
        c = n.copy()
        c.inputs = [new[e] for e in n.inputs]
        for i in range(n.num_outputs):
            new[Entry(n, i)] = Entry(c, i)
    return Graph(new[e] for e in graph.outputs)


def load(fname: str | os.PathLike[str]) -> Symbol:
    """Reads a symbol JSON file written by MXNet 0.7 or later, or by symjax.

    Raises:
      FileError: the file cannot be opened (an MXNetError and an OSError).
      GraphFormatError: it is not a graph.
      UnknownOpError: it has unregistered operators; all are listed.
    """
    if not isinstance(fname, (str, os.PathLike)):
        raise TypeError("fname need to be string")
    from symjax._files import explained

    with explained(fname, "open"), open(fname, "rb") as f:
        text = f.read()
    return Symbol(_json.loads(text, source=os.fspath(fname)))


def load_json(json_str: str) -> Symbol:
    """Reads a symbol from JSON text. Raises as `load` does, TypeError if it is not a string."""
    if not isinstance(json_str, str):
        raise TypeError("fname required to be string")
    return Symbol(_json.loads(json_str))


def Group(symbols: Sequence[Symbol], create_fn: Any = Symbol) -> Symbol:
    """Groups the outputs of several symbols, in order; nested groups are flattened.

    Raises:
      TypeError: the list is empty or holds something else than symbols.
    """
    symbols = list(symbols) if symbols else []
    if not symbols or any(not isinstance(s, Symbol) for s in symbols):
        raise TypeError("Expected a list of symbols as input")
    return create_fn(Graph([e for s in symbols for e in s._graph.outputs]))
