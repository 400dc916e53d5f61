"""What MXNet changes in a symbol file written by an older version, when it reads it."""

from __future__ import annotations

from symjax.lowering.errors import MXNetError
from symjax.lowering.graph import Entry, Node
from symjax.symbol._compose import HIDDEN_KEYS, hide, implicit_variable


def upgrade_node(n: Node, version: int) -> None:
    """Upgrades one node of a file written by `version` (10 000 * major + 100 * minor + patch) in place."""
    _hide_keys(n)
    if n.op is None or n.op.source == "unregistered":
        return
    if version < 905 and n.op.name in ("argmax", "argmin") and n.attrs.get("axis") == "-1":
        # MXNet: axis -1 meant a reduction over all axes before 0.9.5.
        del n.attrs["axis"]
        n._params = None
    if version < 900:
        _add_missing_inputs(n)
    if version < 904:
        _set_initialisers(n)


def _hide_keys(n: Node) -> None:
    """Stores plain hidden keys as `__key__` and moves `<input>_<key>` to that input variable."""
    for key in HIDDEN_KEYS:
        if key in n.attrs:
            n.attrs[hide(key)] = n.attrs.pop(key)
    if n.op is None:
        return
    # all of them leave the attributes first: the names of the inputs come from parameters, which know no such key
    moving = [(key, hidden) for key in n.attrs for hidden in HIDDEN_KEYS if key.endswith("_" + hidden)]
    values = [n.attrs.pop(key) for key, _ in moving]
    for (key, hidden), value in zip(moving, values, strict=True):
        _move_to_input(n, key, value, key[: -len(hidden) - 1], hidden)


def _move_to_input(n: Node, key: str, value: str, input_name: str, hidden: str) -> None:
    try:
        position = n.input_names.index(input_name)
    except (ValueError, MXNetError):
        n.attrs[f"__{key}__"] = value  # MXNet keeps the plain key, and then refuses the file that it writes
        return
    if position < len(n.inputs) and n.inputs[position].node.is_variable:
        n.inputs[position].node.attrs.setdefault(hide(hidden), value)


def _add_missing_inputs(n: Node) -> None:
    """Files before 0.9.0 do not list auxiliary states."""
    if n.op is None or n.op.variadic is not None:
        return
    try:
        names = n.input_names
    except MXNetError:
        return
    if len(n.inputs) < len(names):
        n.inputs += [Entry(implicit_variable(n, name), 0) for name in names[len(n.inputs) :]]


def _set_initialisers(n: Node) -> None:
    if n.op is None or not n.op.input_attrs:
        return
    for name, e in zip(n.input_names, n.inputs, strict=False):
        if e.node.is_variable:
            for k, v in n.op.input_attrs.get(name, {}).items():
                e.node.attrs.setdefault(k, v)
