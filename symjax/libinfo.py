"""`mx.libinfo`: the MXNet release whose behaviour symjax has."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "1.9.1"
