"""Rules of operators for sparse inputs: which there are, which one a call gets, and what happens where there is none.

    @storage_rule("dot", ("csr", "default"), when=lambda p: not p.transpose_a)
    def dot_csr_dense(p, lhs: CSR, rhs: Array) -> Array:
        ...

A storage rule stands beside the op's dense rule: it gets the same parameters, containers in place of the arrays that
are sparse, and gives containers where its `out` says so. Inference (`storage.infer_storage`), tracing and imperative
calls all choose by `decide`. Without a rule the inputs are made dense: a fallback, which is reported.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from symjax.lowering.errors import StorageError, StorageFallbackWarning
from symjax.lowering.registry import Op
from symjax.sparse.csr import CSR, csr_from_dense
from symjax.sparse.row_sparse import RowSparse, row_sparse_from_dense

Stypes = tuple[str, ...]
Outs = str | Callable[[Any, Stypes], Stypes]
Prepare = Callable[[Sequence[Any], Mapping[str, Any]], tuple[dict[int, Any], dict[int, Any]]]

DENSE, CSR_, ROWS = "default", "csr", "row_sparse"
STYPES = (DENSE, CSR_, ROWS)


@dataclasses.dataclass(frozen=True)
class StorageRule:
    """A lowering rule for inputs of some storage types.

    Attributes:
      matches: (params, input storage types) -> whether this is the rule for them.
      out: the storage type of the outputs, or a function of the parameters and the input types giving all of them.
      rule: (params, *inputs) -> outputs, which may ask for `platform` by keyword; None where the combination is an
        error, then `out` is its text.
    """

    matches: Callable[[Any, Stypes], bool]
    out: Outs
    rule: Callable[..., Any] | None

    @functools.cached_property
    def asks_platform(self) -> bool:
        return self.rule is not None and "platform" in inspect.signature(self.rule).parameters

    def outs(self, op: Op, params: Any, stypes: Stypes) -> Stypes:
        """The storage types of the outputs."""
        if self.rule is None:
            raise StorageError(f"operator {op.name}: {self.out}")
        return self.out(params, stypes) if callable(self.out) else (self.out,) * len(op.output_names(params))


_RULES: dict[str, list[StorageRule]] = {}
_BY_VALUE: set[str] = set()
_BY_COLUMN: dict[str, tuple[int, Callable[[Any], bool]]] = {}
_PREPARE: dict[str, Prepare] = {}
_loaded = False


def storage_rule(
    *ops: str,
    stypes: Stypes | Callable[[Any, Stypes], bool],
    out: Outs = DENSE,
    when: Callable[[Any], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: registers a rule for ops (by their canonical names).

    Args:
      ops: the names.
      stypes: the storage types of the inputs, or a predicate (params, types) for ops of variable arity.
      out: the storage types of the outputs, see `StorageRule`.
      when: parameters for which the rule holds; all by default. Rules are tried in the order of registration.
    """

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        add_rule(ops, stypes, out, rule, when)
        return rule

    return register


def refuse(*ops: str, stypes: Stypes, text: str, when: Callable[[Any], bool] | None = None) -> None:
    """Declares a combination of storage types an error with this text, instead of a fallback."""
    add_rule(ops, stypes, text, None, when)


def add_rule(
    ops: Sequence[str], stypes: Any, out: Outs, rule: Callable[..., Any] | None, when: Callable[[Any], bool] | None
) -> None:
    def matches(params: Any, have: Stypes) -> bool:
        fits = stypes(params, have) if callable(stypes) else have == stypes
        return bool(fits) and (when is None or when(params))

    for name in ops:
        _RULES.setdefault(name, []).append(StorageRule(matches, out, rule))


def depends_on_values(*ops: str) -> None:
    """Declares that the storage types of ops depend on parameters that imperative calls otherwise trace."""
    _BY_VALUE.update(ops)


def is_by_value(op: Op) -> bool:
    """Whether the storage type of an op's output depends on the value of a traced parameter."""
    rules()
    return op.name in _BY_VALUE


def by_column(op: str, position: int, when: Callable[[Any], bool]) -> None:
    """Declares that an op goes through its csr input at `position` by columns, so that `CSR.columns` speeds it up."""
    _BY_COLUMN[op] = (position, when)


def column_input(op: Op, params: Any) -> int | None:
    """Returns the position of the csr input that an op goes through by columns, or None."""
    rules()
    found = _BY_COLUMN.get(op.name)
    return found[0] if found is not None and found[1](params) else None


def prepare_call(op: str, prepare: Prepare) -> None:
    """Declares what is to be done before an imperative call of an op that has sparse inputs.

    `prepare(values, attributes)` may look at the values. It returns, by position, containers that replace those of
    inputs for good (the same arrays, with more room), and values that the rule gets in place of inputs in this call.
    """
    _PREPARE[op] = prepare


def preparation(op: Op) -> Prepare | None:
    """Returns what is declared by `prepare_call`, or None."""
    rules()
    return _PREPARE.get(op.name)


def rules() -> dict[str, list[StorageRule]]:
    """Returns all storage rules by op."""
    global _loaded
    if not _loaded:
        _loaded = True
        import symjax.sparse as package

        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            importlib.import_module(f"{package.__name__}.{module}")
    return _RULES


def stype_of(value: Any) -> str:
    """The storage type of a value: "csr" or "row_sparse" for a container, "default" for any array."""
    return getattr(value, "stype", DENSE)


def decide(op: Op, params: Any, stypes: Stypes) -> StorageRule | None:
    """Returns the storage rule for an op and the types of its inputs; None: the dense rule, of dense inputs."""
    for r in rules().get(op.name, ()):
        if r.matches(params, stypes):
            return r
    return None


def apply(op: Op, params: Any, inputs: Sequence[Any], platform: str | None, asked: dict[str, Any]) -> Any:
    """Applies an op to arrays and containers by the rule for their storage types.

    Raises:
      StorageError: the combination is an error, or fallbacks are (`symjax.config(storage_fallback="error")`).
    """
    if op.name in _RULES or not _loaded:
        stypes = tuple([stype_of(x) for x in inputs])
        rule = decide(op, params, stypes)
        if rule is not None:
            if rule.rule is None:
                rule.outs(op, params, stypes)
            else:
                more = {"platform": platform} if rule.asks_platform else {}
                return rule.rule(params, *inputs, **asked, **more)
    if any(stype_of(x) != DENSE for x in inputs):
        report_fallback(op, tuple(map(stype_of, inputs)))
        inputs = [dense(x) for x in inputs]
    return op.rule_for(params, inputs, platform)(params, *inputs, **asked)


def dense(value: Any) -> Any:
    """Returns a container as a dense array; arrays as they are."""
    return value.todense() if stype_of(value) != DENSE else value


def as_stype(value: Any, stype: str) -> Any:
    """Returns a value in another storage type. Works on traced arrays: a sparse result has room for every element.

    Raises:
      StorageError: csr to row_sparse or back, which MXNet has no conversion for.
    """
    have = stype_of(value)
    if have == stype:
        return value
    if stype == DENSE:
        return value.todense()
    if have != DENSE:
        raise StorageError(f"there is no conversion from {have} to {stype}; go by way of default storage")
    if stype == CSR_:
        if value.ndim != 2:
            raise StorageError(f"csr storage needs a matrix, got shape {value.shape}")
        return csr_from_dense(value)
    if value.ndim < 1:
        raise StorageError("row_sparse storage needs at least one axis")
    return row_sparse_from_dense(value)


# ---- conversions and derivatives

Uncast = Callable[[Any, Stypes], Any]
_UNCAST: dict[str, Uncast] = {}


def converts(op: str, uncast: Uncast) -> None:
    """Declares that an op may end by converting a dense result to sparse storage.

    What is differentiated leaves the conversion out, as no derivative reaches through it to elements that are zero.

    Args:
      op: the name.
      uncast: (params, input storage types) -> the parameters that give the result as it was before.
    """
    _UNCAST[op] = uncast


def is_converter(op: Op) -> bool:
    """Whether an op may end by converting a dense result to sparse storage."""
    rules()
    return op.name in _UNCAST


def without_cast(op: Op, params: Any, stypes: Stypes) -> Any:
    """Returns the parameters with which an op does not convert its dense result."""
    found = _UNCAST.get(op.name)
    return params if found is None else found(params, stypes)


# ---- fallbacks


@dataclasses.dataclass(frozen=True)
class Fallback:
    """An op that runs dense although an input is sparse."""

    op: str
    node: str
    stypes: Stypes

    def text(self, cost: int | None = None) -> str:
        where = f"node {self.node!r} ({self.op})" if self.node else f"operator {self.op}"
        size = "" if cost is None else f", {cost:,} bytes"
        return (f"{where} has no rule for inputs of storage types ({', '.join(self.stypes)}): they are made "
                f"dense{size}. The numbers are the same; time and memory are those of dense arrays")


Policy = Callable[[], str]
_policy: list[Policy] = [lambda: "warn"]
_warned: set[tuple[str, Stypes]] = set()


def set_fallback_policy(policy: Policy) -> None:
    """Sets the function that says "warn", "error" or "allow" when an op falls back."""
    _policy[0] = policy


def report_fallback(op: Op, stypes: Stypes, node: str = "", cost: int | None = None) -> None:
    """Warns of a fallback, once per op and storage types, or raises, as the policy says."""
    policy = _policy[0]()
    if policy == "allow":
        return
    text = Fallback(op.name, node, stypes).text(cost)
    if policy == "error":
        raise StorageError(f"{text}. Use an operator with a sparse rule, make the array dense with "
                           f"cast_storage(stype='default') where that is meant, or allow fallbacks: "
                           f"symjax.config(storage_fallback='warn')")
    if (op.name, stypes) not in _warned:
        _warned.add((op.name, stypes))
        warnings.warn(f"{text}. Silence this with symjax.config(storage_fallback='allow') or "
                      f"MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0", StorageFallbackWarning, stacklevel=2)


# ---- patterns that many rules share


def zeros_where_padding(x: CSR | RowSparse, data: Any) -> Any:
    """Returns `data`, shaped as the stored values, with zeros where `x` is padding."""
    keep = x.valid.reshape(-1, *([1] * (data.ndim - 1)))
    return jnp.where(keep, data, jnp.zeros((), data.dtype))
