"""Checks that modules share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from symjax.io import DataDesc
from symjax.lowering.errors import ArgumentError
from symjax.module.executor_group import descriptions

_PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


def require(holds: Any, message: str) -> None:
    """Raises ArgumentError (an AssertionError too) unless `holds`."""
    if not holds:
        raise ArgumentError(message)


def as_list(obj: Any) -> list[Any]:
    """Returns a list or tuple as a list, anything else as a list of it."""
    return list(obj) if isinstance(obj, (list, tuple)) else [obj]


def _check_input_names(symbol: Any, names: Sequence[str], typename: str, throw: bool) -> None:
    """Raises ValueError, or warns, if a name is not an argument of the symbol."""
    args = symbol.list_arguments()
    for name in names:
        if name not in args:
            near = "\n\t".join(a for a in args if not a.endswith(_PARAMETER_ENDINGS))
            _tell(f"You created Module with Module(..., {typename}_names={names}) but input with name '{name}' is not "
                  f"found in symbol.list_arguments(). Did you mean one of:\n\t{near}", throw)


def _check_names_match(names: Sequence[str], shapes: Sequence[Any], kind: str, throw: bool) -> None:
    if sorted(names) != sorted(d[0] for d in shapes):
        _tell(f"Data provided by {kind}_shapes don't match names specified by {kind}_names ({shapes} vs. {names})",
              throw)


def _tell(message: str, throw: bool) -> None:
    if throw:
        raise ValueError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def _parse_data_desc(
    data_names: Sequence[str], label_names: Sequence[str], data_shapes: Any, label_shapes: Any
) -> tuple[list[DataDesc], list[DataDesc] | None]:
    """Returns descriptions of data and labels; warns, or raises ValueError, if their names are not those expected."""
    data = descriptions(data_shapes)
    _check_names_match(data_names, data, "data", True)
    labels = None if label_shapes is None else descriptions(label_shapes)
    _check_names_match(label_names, labels or [], "label", False)
    return data, labels
