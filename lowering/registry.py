"""The operator registry: one declaration per op, from which every other face is derived.

    class ClipParams(Params):
        a_min: float = param(doc="Lower bound.")
        a_max: float = param(doc="Upper bound.")

    @op("clip", aliases=("_npx_clip",), params=ClipParams, shape=SAME)
    def clip(p: ClipParams, data: Array) -> Array:
        \"\"\"Limits the values of `data` to [a_min, a_max].\"\"\"
        return jnp.clip(data, p.a_min, p.a_max)

The decorated function is the lowering rule: plain JAX, `(params, *inputs) -> output or tuple of outputs`. It may ask,
by keyword-only arguments of these names, for more:

    train       bool, True under `is_train=True` (static)
    key         a JAX random key of its own; no rule makes one itself
    out_shapes  the inferred shapes of the outputs (a tuple of tuples), for ops whose output shape may come from their
                consumers (`_zeros` with a 0 in `shape`). Such an op declares `infer_outputs(p, input shapes)`, which
                inference starts from and imperative calls use directly.
    subgraphs   the node's subgraphs, a tuple of `symjax.lowering.subgraph.Subgraph`: callable, and able to infer. Its
                `infer_inputs` and `infer_types` are then called with `subgraphs=` as well.

An op with auxiliary states returns their new values after its outputs. The symbol and ndarray namespaces, the JSON
loader, shape, type and storage inference, the docs and the registry-driven tests all read the `Op` made here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from symjax.lowering.errors import MXNetError, ParamError, UnknownOpError, did_you_mean
from symjax.lowering.params import NoParams, Params

ShapeLike = tuple[int, ...] | None
"""A shape in inference: None is unknown, a 0 in it is an unknown dimension."""

Names = tuple[str, ...] | Callable[..., tuple[str, ...]]
InferInputs = Callable[..., Sequence[ShapeLike]]
InferTypes = Callable[..., tuple[Sequence[str | None], Sequence[str | None]]]
ShapeTrait = Literal["same", "broadcast"]

SAME: ShapeTrait = "same"
"""All inputs and outputs have one shape; inference fills each from any other."""
BROADCAST: ShapeTrait = "broadcast"
"""The output is the numpy broadcast of the inputs."""

_MAX_OUTPUTS = 65_536
_INPUT_COUNTS = ("num_args", "num_weights", "num_arrays", "num_inputs")
"""Parameters that count inputs, in all operators that have them."""
_MAX_INPUTS = 65_536
_ASKABLE = ("train", "key", "out_shapes", "subgraphs")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A rule that replaces the default one where `when(params, avals)` holds on `platform` (None: any)."""

    rule: Callable[..., Any]
    platform: str | None
    when: Callable[[Any, Sequence[Any]], bool] | None


@dataclasses.dataclass(eq=False, repr=False)
class Op:
    """A registered operator. Calling it calls its lowering rule.

    Attributes:
      name: MXNet's registered name, used in symbol JSON.
      aliases: further names under which it loads and shows in the namespaces.
      params: the parameter class.
      rule: the lowering rule.
      input_names: parameters -> names of all inputs, auxiliary states last.
      output_names: parameters -> suffixes of all outputs ("output", or "output0", "output1", or named).
      aux_names: parameters -> names of the inputs that the op updates (auxiliary states).
      num_visible: parameters -> how many outputs a user sees (hidden ones keep their place in JSON).
      variadic: the parameter that counts a variable number of inputs ("num_args"), or None.
      shape: SAME, BROADCAST or None.
      infer_inputs: (params, input shapes, output shapes) -> input shapes, for what forward evaluation cannot know.
      infer_types: (params, input dtypes, output dtypes) -> both; None: all are one type.
      is_loss: whether its gradient ignores the head gradient, so that `backward()` needs none for it; or a function of
        the parameters that says so (see `Node.is_loss`).
      input_attrs: hidden attributes that an implicitly created input variable gets, by input name.
      eager: the result's shape depends on values, so graphs with it run node by node instead of compiled.
      num_subgraphs: how many subgraphs a node of it has.
      named_by_subgraphs: its inputs are those of its subgraphs: `input_names` and `aux_names` take the node's subgraphs
        (graphs) after the parameters.
      infer_outputs: (params, input shapes) -> output shapes, only where the shape depends on values or is costly to
        evaluate; None: the rule is evaluated abstractly. A -1 in them is unknown; a 0 is so too, except that numpy's
        shape semantics read it as an empty axis where the op has no inputs and its parameters say it.
      aux_in_forward: its auxiliary states change with every forward pass (optimizer updates), not with a backward one.
      host: its work is done by Python on the host (user's code, image files), so it needs one beside every device.
      origin: "" for MXNet's own operators, otherwise the fork or plug-in that has it.
      unregistered: (attribute text of a node) -> what the node names that nobody registered, or None.
    """

    name: str
    aliases: tuple[str, ...]
    params: type[Params]
    rule: Callable[..., Any]
    input_names: Callable[..., tuple[str, ...]]
    output_names: Callable[[Any], tuple[str, ...]]
    aux_names: Callable[..., tuple[str, ...]]
    num_visible: Callable[[Any], int]
    variadic: str | None
    shape: ShapeTrait | None
    infer_inputs: InferInputs | None
    infer_types: InferTypes | None
    is_loss: bool | Callable[[Any], bool]
    input_attrs: Mapping[str, Mapping[str, str]]
    infer_outputs: Callable[[Any, list[ShapeLike]], Sequence[ShapeLike]] | None
    all_inputs: tuple[str, ...]
    source: str
    asks: frozenset[str]
    variants: list[Variant] = dataclasses.field(default_factory=list)
    aux_in_forward: bool = False
    eager: bool = False
    num_subgraphs: int = 0
    named_by_subgraphs: bool = False
    host: bool = False
    origin: str = ""
    unregistered: Callable[[Mapping[str, str]], str | None] | None = None

    def __call__(self, params: Any, *inputs: Any, **asked: Any) -> Any:
        return self.rule(params, *inputs, **asked)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.rule.__doc__ or "")

    def variant(
        self, *, platform: str | None = None, when: Callable[[Any, Sequence[Any]], bool] | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: adds a rule for one platform and/or for some parameters and static shapes."""

        def add(rule: Callable[..., Any]) -> Callable[..., Any]:
            self.variants.append(Variant(rule, platform, when))
            return rule

        return add

    def rule_for(self, params: Any, avals: Sequence[Any], platform: str | None) -> Callable[..., Any]:
        """Chooses the rule for static shapes and a platform ("cpu", "cuda", "rocm", "tpu"; None: portable)."""
        for v in self.variants:
            if v.platform in (None, platform) and (v.when is None or v.when(params, avals)):
                return v.rule
        return self.rule


_OPS: dict[str, Op] = {}
_loaded = False


def op(
    name: str,
    *,
    aliases: Sequence[str] = (),
    params: type[Params] = NoParams,
    inputs: Names | None = None,
    aux: Names = (),
    outputs: Names | int | Callable[[Any], int] = ("output",),
    num_visible: int | Callable[[Any], int] | None = None,
    variadic: str | None = None,
    shape: ShapeTrait | None = None,
    infer_inputs: InferInputs | None = None,
    infer_types: InferTypes | None = None,
    is_loss: bool | Callable[[Any], bool] = False,
    input_attrs: Mapping[str, Mapping[str, str]] | None = None,
    infer_outputs: Callable[[Any, list[ShapeLike]], Sequence[ShapeLike]] | None = None,
    all_inputs: Sequence[str] | None = None,
    source: str | None = None,
    aux_in_forward: bool = False,
    eager: bool = False,
    num_subgraphs: int = 0,
    named_by_subgraphs: bool = False,
    host: bool = False,
    origin: str = "",
    unregistered: Callable[[Mapping[str, str]], str | None] | None = None,
) -> Callable[[Callable[..., Any]], Op]:
    """Registers the decorated lowering rule as an operator; see the module's text and `Op`.

    `inputs` defaults to the rule's positional argument names after `params` (auxiliary states included); a function of
    the parameters where their number varies (`no_bias`); so may be `aux`. `outputs` is a tuple of suffixes, a count
    (names "output0", "output1", …; "output" for one), or a function of the parameters giving either. `all_inputs` lists
    every input name there can be, for signatures; needed only where `inputs` is a function and not variadic. It is
    `("*data",)` where any number of inputs is given by position and no parameter counts them all.

    Raises:
      MXNetError: a name is taken; the message names both places.
    """

    def register(rule: Callable[..., Any]) -> Op:
        sig = inspect.signature(rule)
        positional = [n for n, q in sig.parameters.items() if q.kind is q.POSITIONAL_OR_KEYWORD][1:]
        names = tuple(positional) if inputs is None else inputs
        every = (
            tuple(all_inputs)
            if all_inputs is not None
            else (
                names
                if isinstance(names, tuple)
                else tuple(positional) or tuple(n for n, q in sig.parameters.items() if q.kind is q.VAR_POSITIONAL)
            )
        )
        code = rule.__code__ if hasattr(rule, "__code__") else None
        made = Op(
            name=name,
            aliases=tuple(aliases),
            params=params,
            rule=rule,
            input_names=_input_names(names, params, variadic),
            output_names=_output_names(outputs),
            aux_names=_as_names(aux),
            num_visible=lambda p: 0,
            variadic=variadic,
            shape=shape,
            infer_inputs=infer_inputs,
            infer_types=infer_types,
            is_loss=is_loss,
            input_attrs=input_attrs or {},
            infer_outputs=infer_outputs,
            all_inputs=every,
            source=source or (f"{code.co_filename}:{code.co_firstlineno}" if code else "?"),
            asks=frozenset(n for n in _ASKABLE if n in sig.parameters),
            aux_in_forward=aux_in_forward,
            eager=eager,
            num_subgraphs=num_subgraphs,
            named_by_subgraphs=named_by_subgraphs,
            host=host,
            origin=origin,
            unregistered=unregistered,
        )
        if bool(num_subgraphs) != ("subgraphs" in made.asks):
            raise MXNetError(f"operator {name!r}: num_subgraphs is {num_subgraphs}, but its rule asks for "
                             f"{'' if 'subgraphs' in made.asks else 'no '}subgraphs")
        made.num_visible = _count(num_visible, made)
        for n in (name, *made.aliases):
            if n in _OPS:
                raise MXNetError(f"operator {n!r} is registered twice: at {_OPS[n].source} and at {made.source}")
        for n in (name, *made.aliases):
            _OPS[n] = made
        return made

    return register


def _as_names(names: Names) -> Callable[..., tuple[str, ...]]:
    if callable(names):
        return names
    return lambda p, *_: names


def _input_names(names: Names, params: type[Params], variadic: str | None) -> Callable[..., tuple[str, ...]]:
    given = _as_names(names)
    counts = [n for n in params.__specs__ if n in _INPUT_COUNTS or n == variadic]
    if not counts:
        return given

    def checked(p: Any, *more: Any) -> tuple[str, ...]:
        # a file may claim any number; no names are made for one that no graph can have
        for name in counts:
            count = getattr(p, name) or 0
            if count > _MAX_INPUTS:
                raise ParamError(f"{name} is {count}, more than the {_MAX_INPUTS} inputs that a node can have")
        return given(p, *more)

    return checked


def _output_names(outputs: Any) -> Callable[[Any], tuple[str, ...]]:
    def names(p: Any) -> tuple[str, ...]:
        out = outputs(p) if callable(outputs) else outputs
        if isinstance(out, int):
            if out > _MAX_OUTPUTS:
                raise ParamError(f"{out} outputs are more than the {_MAX_OUTPUTS} that a node can have")
            return ("output",) if out == 1 else tuple(f"output{i}" for i in range(out))
        return out

    return names


def _count(num_visible: int | Callable[[Any], int] | None, made: Op) -> Callable[[Any], int]:
    if num_visible is None:
        return lambda p: len(made.output_names(p))
    if callable(num_visible):
        return num_visible
    return lambda p: num_visible


def load_ops() -> None:
    """Imports every op family, once. Looking an op up does so by itself."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    import symjax.lowering.ops as package

    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")


def find(name: str) -> Op | None:
    """Returns the op of that name or alias, or None."""
    hit = _OPS.get(name)
    if hit is None and not _loaded:
        load_ops()
        hit = _OPS.get(name)
    return hit


def lacking(name: str, attrs: Mapping[str, str]) -> str | None:
    """What a node of these attributes would need and is not registered: its operator, or what that refers to."""
    hit = find(name)
    if hit is None:
        return name
    part = hit.unregistered(attrs) if hit.unregistered is not None else None
    return f"{name} with {part}" if part else None


def get(name: str) -> Op:
    """Returns the op of that name or alias.

    Raises:
      UnknownOpError: there is none; the message names the nearest.
    """
    hit = find(name)
    if hit is None:
        raise UnknownOpError(f"operator {name!r} is not registered.{did_you_mean(name, _OPS)}")
    return hit


def all_names() -> dict[str, Op]:
    """Returns every name and alias with its op, sorted."""
    load_ops()
    return dict(sorted(_OPS.items()))


def all_ops() -> Iterator[Op]:
    """Yields every op once, by name."""
    load_ops()
    for n, o in sorted(_OPS.items()):
        if n == o.name:
            yield o


# ---- data type rules that many ops share


def output_dtype(default: str, param_name: str = "dtype") -> InferTypes:
    """The outputs' type is the parameter `param_name` (or `default`); inputs are unconstrained."""

    def infer(
        p: Any, ins: list[str | None], outs: list[str | None]
    ) -> tuple[Sequence[str | None], Sequence[str | None]]:
        value = getattr(p, param_name, None) or default
        return ins, [value] * len(outs)

    return infer


def first_input_dtype(
    p: Any, ins: list[str | None], outs: list[str | None]
) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """The outputs and the first input have one type; other inputs (indices, lengths) are free."""
    known = ins[0] or next((o for o in outs if o), None)
    return [known, *ins[1:]], [known] * len(outs)
