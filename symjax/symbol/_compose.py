"""Making op nodes: from a call's inputs and parameters to a named node with all its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symjax.attribute import AttrScope
from symjax.base import dtype_name
from symjax.lowering.errors import MXNetError, did_you_mean
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.registry import Op
from symjax.name import NameManager, current

HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")
"""Keys that MXNet stores as `__key__` and shows in both spellings."""


def hide(key: str) -> str:
    """The stored spelling of an attribute key."""
    return f"__{key}__" if key in HIDDEN_KEYS else key


def create_node(
    op: Op,
    inputs: Sequence[Entry],
    named: Mapping[str, Entry],
    attrs: Mapping[str, str],
    name: str | None,
    hint: str,
    attr: Mapping[str, str] | None = None,
    subgraphs: Sequence[Graph] = (),
) -> Node:
    """Makes a node of `op`; inputs that are not given become variables `<name>_<input>`.

    Args:
      op: the operator.
      inputs: entries given by position.
      named: entries given by input name.
      attrs: parameters as text.
      name: the node's name, or None for an automatic one from `hint`.
      attr: further attributes (hidden keys), as the user's `attr=`.

    Raises:
      ParamError: a parameter is unknown, missing or unreadable.
      MXNetError: too many inputs, an unknown input name, or one given twice.
    """
    scope = current(AttrScope).get(attr)
    given = {**attrs, **scope}
    # MXNet: of `lr_mult` and `__lr_mult__`, the plain spelling wins.
    full = {**given, **{hide(k): v for k, v in given.items() if k in HIDDEN_KEYS}}
    for k in HIDDEN_KEYS:
        full.pop(k, None)
    if op.variadic and op.variadic not in full:
        full[op.variadic] = str(len(inputs) + len(named))
    node = Node(op, "", full, (), subgraphs)
    names = node.input_names
    node.name = current(NameManager).get(name, hint)
    node.inputs = _arrange(node, names, inputs, named)
    return node


def _arrange(node: Node, names: tuple[str, ...], inputs: Sequence[Entry], named: Mapping[str, Entry]) -> list[Entry]:
    assert node.op is not None
    if len(inputs) > len(names):
        raise MXNetError(
            f"operator {node.op.name} ({node.name}) takes {len(names)} inputs ({', '.join(names)}), got {len(inputs)}"
        )
    unknown = [k for k in named if k not in names]
    if unknown:
        raise MXNetError(
            f"operator {node.op.name} ({node.name}) has no input {unknown[0]!r}; its inputs are "
            f"{', '.join(names)}.{did_you_mean(unknown[0], names)}"
        )
    out = []
    for i, n in enumerate(names):
        if i < len(inputs):
            if n in named:
                raise MXNetError(f"operator {node.op.name} ({node.name}): input {n!r} is given by position and by name")
            out.append(inputs[i])
        elif n in named:
            out.append(named[n])
        else:
            out.append(Entry(implicit_variable(node, n), 0))
    return out


def implicit_variable(node: Node, input_name: str) -> Node:
    """The variable that stands for an input not given; it inherits the node's whole attribute dictionary."""
    assert node.op is not None
    attrs = {**node.attrs, **node.op.input_attrs.get(input_name, {})}
    return Node(None, f"{node.name}_{input_name}" if node.name else input_name, attrs)


def attr_text(key: str, value: Any) -> str:
    """A parameter value as MXNet's Python front end writes it."""
    return dtype_name(value) if key == "dtype" and value is not None else str(value)
