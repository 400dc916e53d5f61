"""MXNet's iterators over image record files, which symjax does not read: each says so, and what to do instead."""

from __future__ import annotations

from typing import Any, NoReturn

from symjax.lowering.errors import MissingLoweringError

__all__ = ["ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordIter_v1",
           "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1"]


def _refuse(name: str) -> NoReturn:
    raise MissingLoweringError(
        f"mx.io.{name} is not supported yet: image record files cannot be read. Decode the images with any library "
        f"(Pillow, OpenCV, tf.data, …) and give the arrays to mx.io.NDArrayIter, or write a subclass of mx.io.DataIter")


def ImageRecordIter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageRecordIter")


def ImageRecordIter_v1(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageRecordIter_v1")


def ImageRecordUInt8Iter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageRecordUInt8Iter")


def ImageRecordUInt8Iter_v1(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageRecordUInt8Iter_v1")


def ImageRecordInt8Iter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageRecordInt8Iter")


def ImageDetRecordIter(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported yet: raises MissingLoweringError."""
    _refuse("ImageDetRecordIter")
