"""What the `mx.nd` and `mx.sym` functions of an op have in common: namespace, signature, docstring, argument order.

Everything here is a pure function of an `Op`; the two packages add how the call is carried out.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from symjax.base import _Null
from symjax.lowering import registry
from symjax.lowering.errors import ArgumentError, did_you_mean
from symjax.lowering.registry import Op

_PREFIXES = ("contrib", "linalg", "sparse", "image", "random")
_NUMPY = {
    "_npx__image_": "numpy_extension.image",
    "_npx_": "numpy_extension._op",
    "_npi_": "numpy._internal",
    "_np_": "numpy._op",
}
_PREFIX_OF = {"op": "", "_internal": "", **{p: f"_{p}_" for p in _PREFIXES}, **{v: k for k, v in _NUMPY.items()}}
LISTS = frozenset({"_npi_split", "_npi_hsplit"})
"""numpy operators whose function returns a list even of a single output."""
ND_TAIL = {"out": None, "name": None}
SYM_TAIL = {"name": None, "attr": None, "out": None}


class Place(NamedTuple):
    """The namespace ("op", "_internal", "contrib", …) in which a function stands, and its name there."""

    namespace: str
    name: str


def place(name: str) -> Place:
    """Returns where MXNet puts the function of a registered name."""
    for prefix, namespace in _NUMPY.items():
        if name.startswith(prefix):
            return Place(namespace, name[len(prefix) :])
    for p in _PREFIXES:
        prefix = f"_{p}_"
        # MXNet: `_random_*` are internal, `nd.random` has Python functions over them; only `*_like` are there directly.
        if name.startswith(prefix) and (p != "random" or name.endswith("_like")):
            return Place(p, name[len(prefix) :])
    return Place("_internal" if name.startswith("_") else "op", name)


@functools.cache
def names_in(namespace: str) -> Mapping[str, Op]:
    """Returns the functions of a namespace by their name there, sorted."""
    found = {}
    for name, op in registry.all_names().items():
        where = place(name)
        if where.namespace == namespace:
            found[where.name] = op
    return dict(sorted(found.items()))


def find_in(namespace: str, name: str) -> Op | None:
    """Returns the op of one function without reading the whole namespace; None if there is none."""
    full = full_name(namespace, name)
    op = registry.find(full)
    return op if op is not None and place(full) == Place(namespace, name) else None


def full_name(namespace: str, name: str) -> str:
    """Returns the registered name of the function `name` of a namespace."""
    return f"{_PREFIX_OF[namespace]}{name}"


def is_numpy(module: str) -> bool:
    """Whether a module shows functions of mx.np arrays and symbols."""
    return ".numpy" in module


def refusal(op: Op, name: str, numpy: bool) -> TypeError:
    """Returns the error of a function that is given arrays or symbols of the other kind."""
    wants, got, convert = ("mx.np", "classic", "as_np_ndarray") if numpy else ("classic", "mx.np", "as_nd_ndarray")
    return TypeError(f"Operator `{op.name}`, called as `{name}`, takes {wants} arrays or symbols and was given "
                     f"{got} ones; convert it with .{convert}()")


class Inputs(NamedTuple):
    """The tensor arguments of an op's function."""

    names: tuple[str, ...]
    variadic: str | None  # the name after the star, where any number may be given


def inputs_of(op: Op) -> Inputs:
    """Returns the tensor arguments; all of them optional ones too, in the order of the op."""
    star = next((n for n, q in inspect.signature(op.rule).parameters.items() if q.kind is q.VAR_POSITIONAL), None)
    if op.all_inputs and op.all_inputs[0].startswith("*"):
        return Inputs((), op.all_inputs[0][1:])
    if op.variadic or (star and not op.all_inputs):
        return Inputs((), star or "data")
    return Inputs(op.all_inputs, None)


def signature(op: Op, tail: Mapping[str, Any]) -> inspect.Signature:
    """Returns MXNet's signature: `(data=None, act_type=_Null, out=None, name=None, **kwargs)`, or `(*data, **kwargs)`.

    Args:
      op: the op.
      tail: the keywords after the parameters, `ND_TAIL` or `SYM_TAIL`.
    """
    p = inspect.Parameter
    ins = inputs_of(op)
    rest = [p("kwargs", p.VAR_KEYWORD)]
    if ins.variadic:
        return inspect.Signature([p(ins.variadic, p.VAR_POSITIONAL), *rest])
    given = {**dict.fromkeys(ins.names), **dict.fromkeys(op.params.__specs__, _Null)}
    given.update({k: v for k, v in tail.items() if k not in given})
    return inspect.Signature(
        [*(p(n, p.POSITIONAL_OR_KEYWORD, default=d) for n, d in given.items() if n != "kwargs"), *rest]
    )


def docstring(op: Op, tensor: str, name: str | None = None) -> str:
    """Returns the docstring of an op's function.

    Args:
      op: the op.
      tensor: "NDArray" or "Symbol".
      name: the name that the function is called by, if not the op's own.
    """
    ins = inputs_of(op)
    lines = [op.doc or f"Operator {op.name}.", "", "Args:"]
    if ins.variadic:
        lines.append(f"  *{ins.variadic} ({tensor}): the inputs, any number.")
    for n in ins.names:
        lines.append(f"  {n} ({tensor}): input.")
    for n, spec in op.params.__specs__.items():
        lines.append(f"  {n} ({spec.describe()}): {spec.field.doc}".rstrip())
    if tensor == "NDArray":
        lines.append("  out (NDArray or list of NDArray, optional): written in place of a new result.")
        lines += ["", "Returns:", "  NDArray or list of NDArray: one per visible output."]
    else:
        lines.append("  name (str, optional): name of the node.")
        lines.append("  attr (dict of str to str, optional): hidden attributes (`__key__`) of the node.")
        lines += ["", "Returns:", "  Symbol: the result."]
    aliases = [a for a in (op.name, *op.aliases) if a != name and not a.startswith("_np")]
    if name and aliases:
        lines += ["", f"Also called {', '.join(aliases)}."]
    return "\n".join(lines)


class Bound(NamedTuple):
    """The arguments of a call: tensors in the op's order (None where one was left out), and everything else.

    Where the names of the inputs depend on the parameters, those given by name are in `named`.
    """

    inputs: list[Any]
    rest: dict[str, Any]
    named: Mapping[str, Any] = types.MappingProxyType({})


def binder(
    op: Op, tail: Sequence[str], is_tensor: Callable[[Any], bool], tensor: str
) -> Callable[[tuple[Any, ...], dict[str, Any]], Bound]:
    """Returns a function that sorts the arguments of a call into inputs and attributes as MXNet's signature does.

    `rest` holds the parameters, without those left at `_Null`, and whatever keywords of `tail` were given.
    The bound function raises TypeError for a non-tensor where an input belongs and for surplus arguments.
    """
    ins = inputs_of(op)
    count = len(ins.names)
    position = {n: i for i, n in enumerate(ins.names)}
    after = (*op.params.__specs__, *tail)
    by_parameters = op.all_inputs[:1] == ("*data",) and not op.variadic

    def check(values: Sequence[Any]) -> None:
        for i, v in enumerate(values):
            if v is not None and not is_tensor(v):
                which = ins.names[i] if i < count else f"{ins.variadic}[{i}]"
                raise ArgumentError(
                    f"{op.name}: argument {which} must have {tensor} type, but got {' '.join(repr(v).split()):.100} "
                    f"of type {type(v).__name__}"
                )

    def bind_variadic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        check(args)
        tensors = [k for k, v in kwargs.items() if k not in tail and is_tensor(v)]
        named = {k: kwargs.pop(k) for k in tensors}
        rest = {k: v for k, v in kwargs.items() if v is not _Null}
        return Bound(list(args), rest, named) if by_parameters else Bound([*args, *named.values()], rest)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        inputs = list(args[:count])
        if len(args) > count:
            if len(args) - count > len(after):
                raise TypeError(f"{op.name} takes at most {count + len(after)} positional arguments, got {len(args)}")
            for k, v in zip(after, args[count:], strict=False):
                if k in kwargs:
                    raise TypeError(f"{op.name} got multiple values for argument {k!r}")
                kwargs[k] = v
        rest = {}
        for k, v in kwargs.items():
            at = position.get(k)
            if at is None:
                if is_tensor(v) and k not in after:
                    near = did_you_mean(k, ins.names)
                    raise ArgumentError(f"{op.name} has no input {k!r}.{near} Its inputs are {', '.join(ins.names)}")
                if v is not _Null:
                    rest[k] = v
            elif at < len(args):
                raise TypeError(f"{op.name} got multiple values for argument {k!r}")
            else:
                inputs.extend([None] * (at + 1 - len(inputs)))
                inputs[at] = v
        check(inputs)
        return Bound(inputs, rest)

    return bind_variadic if ins.variadic else bind


def finder(package: str, make: Callable[[Op, str, str], Callable[..., Any]]) -> Callable[[str, str], Any]:
    """Returns `(namespace, name) -> function`, which makes each function once.

    Args:
      package: the package that shows the functions, "symjax.ndarray" or "symjax.symbol".
      make: (op, name, module) -> the function.

    What is returned raises AttributeError for a name that the registry does not have; the message names the nearest.
    """

    @functools.cache
    def function_in(namespace: str, name: str) -> Callable[..., Any]:
        op = find_in(namespace, name)
        module = f"{package}.{namespace}"
        if op is None:
            shown = {*names_in(namespace), *vars(sys.modules.get(module, object))}
            near = "" if name.startswith("__") else did_you_mean(name, sorted(n for n in shown if n[:2] != "__"))
            raise AttributeError(f"module {module!r} has no operator {name!r}.{near}")
        return make(op, name, module)

    return function_in


def fill(
    namespace: str, own: dict[str, Any], function_in: Callable[[str, str], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module that shows a namespace besides its `own` globals.

    Args:
      namespace: the namespace.
      own: the module's globals; functions made are kept there.
      function_in: (namespace, name) -> the function, or AttributeError.
    """
    hidden = {"annotations", "_functions", "__getattr__", "__dir__"}

    def get(name: str) -> Any:
        if name == "__all__":
            return [n for n in names() if not n.startswith("_") or namespace == "_internal"]
        if name.startswith("__"):
            raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r}")
        made = own[name] = function_in(namespace, name)
        return made

    def names() -> list[str]:
        return sorted({*names_in(namespace), *(n for n in own if n not in hidden)})

    return get, names


def fluent(
    owner: str, module: str, function_in: Callable[[str, str], Any]
) -> Callable[[str], list[Callable[..., Any]]]:
    """Returns a maker of methods that are the operator of the same name with `self` as its first input.

    Args:
      owner: the class that the methods stand in.
      module: "mx.nd" or "mx.sym", for their docstrings.
      function_in: (namespace, name) -> the function.

    The maker takes names separated by spaces and returns one method for each.
    """

    def make(name: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return function_in("op", name)(self, *args, **kwargs)

        method.__name__, method.__qualname__ = name, f"{owner}.{name}"
        method.__doc__ = f"Returns `{module}.{name}` of this {owner}; see there for the other arguments."
        return method

    return lambda names: [make(n) for n in names.split()]


def regroup(flat: Sequence[Any], nesting: Any) -> Any:
    """Puts flattened loop variables back into nested lists.

    Args:
      flat: the arrays or symbols in order.
      nesting: 0 for one of them, n for a list of n, or a list of nestings.
    """
    rest = list(flat)

    def take(f: Any) -> Any:
        if isinstance(f, list):
            return [take(x) for x in f]
        return rest.pop(0) if f == 0 else [rest.pop(0) for _ in range(f)]

    return take(nesting)
