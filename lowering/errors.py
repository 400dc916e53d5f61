"""The exceptions of symjax.

Every error symjax raises on purpose is an `MXNetError`, so `except mx.base.MXNetError` of ported code keeps working,
and each leaf is also the builtin that a Python user would expect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MXNetError(RuntimeError):
    """Base class of all errors raised by symjax (MXNet's name, so that ported `except` clauses work)."""

    def __str__(self) -> str:
        # KeyError, a base of some leaves, would print the repr of the message.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


SymjaxError = MXNetError


class UnknownOpError(MXNetError, KeyError):
    """A graph or a call names an operator that is not registered."""


class ParamError(MXNetError, ValueError):
    """An operator parameter is unknown, missing, unreadable or out of range."""


class ShapeError(MXNetError, ValueError):
    """Shapes of a graph contradict each other, or an operator refuses them."""


class DTypeError(MXNetError, TypeError):
    """Data types of a graph contradict each other, or an operator refuses them."""


class StorageError(MXNetError, TypeError):
    """A storage type (csr, row_sparse, default) is not supported where it stands."""


class GraphFormatError(MXNetError, ValueError):
    """A symbol JSON text is corrupt or not a graph."""


class GraphParamError(GraphFormatError, ParamError):
    """A symbol JSON text is a graph, but operators in it have parameters that do not fit."""


class ParamsFormatError(MXNetError, ValueError):
    """A `.params` file is corrupt or not a `.params` file."""


class BindError(MXNetError, ValueError):
    """Arrays given to an executor do not fit the graph."""


class ArgumentError(MXNetError, TypeError, AssertionError):
    """An operator function is given something else than arrays or symbols (MXNet asserts)."""


class DataFormatError(MXNetError, ValueError):
    """A data file (libsvm, csv, …) holds something that its format does not allow."""


class FileError(MXNetError, OSError):
    """A file cannot be opened or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file, or the folder that a file should go to, does not exist."""


class DeviceError(MXNetError, ValueError):
    """A context names a device that this machine does not have."""


class MissingLoweringError(MXNetError, NotImplementedError):
    """An operator is known, but what was asked of it is not supported."""


class StorageFallbackWarning(UserWarning):
    """A sparse array was made dense because the operator has no rule for its storage type."""


def did_you_mean(name: str, known: Iterable[str], n: int = 3) -> str:
    """Returns " Did you mean …?" with the nearest of `known`, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=n, cutoff=0.6)
    if not near:
        folded: dict[str, str] = {}
        for k in known:
            folded.setdefault(k.lower().strip("_"), k)
        hit = folded.get(name.lower().strip("_"))
        near = [hit] if hit else []
    return f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
