"""What a data iterator hands out: batches, and descriptions of the arrays in them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, Self

from symjax.base import mx_real_t
from symjax.lowering.errors import ArgumentError

__all__ = ["DataBatch", "DataDesc"]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """The name, shape, type and layout of one array of every batch; as a tuple it is (name, shape).

    Args:
      name: the name of the argument that it feeds.
      shape: its shape, the batch axis included.
      dtype: its element type.
      layout: a letter for each axis, "N" for the batch axis.
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Any, dtype: Any = mx_real_t, layout: str | None = "NCHW") -> Self:
        self = super().__new__(cls, name, shape)
        self.dtype, self.layout = dtype, layout
        return self

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Returns the position of the batch axis in a layout: 0 for None, -1 if there is none."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Any, types: Any) -> list[DataDesc]:
        """Returns descriptions from pairs (name, shape) and, unless None, pairs (name, dtype)."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        kinds = dict(types)
        return [DataDesc(name, shape, kinds[name]) for name, shape in shapes]


class DataBatch:
    """The arrays of one batch.

    Args:
      data: list of NDArrays, the inputs.
      label: list of NDArrays, the targets, or None.
      pad: how many examples at the end only fill the batch up.
      index: the numbers of the examples, a numpy array, or None.
      bucket_key: which of several graphs the batch is for (bucketing).
      provide_data: descriptions of `data`, list of DataDesc.
      provide_label: descriptions of `label`, list of DataDesc.

    Raises:
      ArgumentError: data or label is not a list.
    """

    def __init__(
        self,
        data: Sequence[Any] | None,
        label: Sequence[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: list[DataDesc] | None = None,
        provide_label: list[DataDesc] | None = None,
    ) -> None:
        for what, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise ArgumentError(f"DataBatch: {what} must be a list of NDArrays, got {type(arrays).__name__}")
        self.data: Any = data
        self.label: Any = label
        self.pad: Any = pad
        self.index = index
        self.bucket_key, self.provide_data, self.provide_label = bucket_key, provide_data, provide_label

    def __str__(self) -> str:
        data = [a.shape for a in self.data or ()]
        label = [a.shape for a in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"
