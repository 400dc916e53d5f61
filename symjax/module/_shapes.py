"""What a batch of other shapes than bound is to be bound to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symjax.io import DataDesc
from symjax.module._checks import require

Shape = tuple[int, ...]


def joined_shapes(batches: Sequence[Any]) -> list[Shape]:
    """The shapes of the data of a batch that comes in parts, one for each device."""
    found = []
    for parts in zip(*[b.data for b in batches], strict=True):
        require(len({tuple(a.shape) for a in parts}) == 1, "All data batches in a list need to have the same shape")
        found.append((len(batches) * parts[0].shape[0], *parts[0].shape[1:]))
    return found


def shapes_of(batch: Any, shapes: Sequence[Shape], in_parts: bool, old_data: Sequence[DataDesc],
              old_labels: Sequence[DataDesc] | None) -> tuple[Any, Any]:
    """Returns descriptions of the data and the labels (None if none are bound) of a batch.

    Args:
      batch: the batch, or the first of its parts.
      shapes: those of the whole data.
      in_parts: whether it comes in parts.
      old_data, old_labels: the descriptions that are bound.
    """
    data, labels = (None, None) if in_parts else (
        getattr(batch, "provide_data", None), getattr(batch, "provide_label", None))
    if not data:
        require(len(shapes) == len(old_data), f"the batch has {len(shapes)} arrays for the inputs "
                f"{', '.join(d.name for d in old_data)}")
        data = [DataDesc(d.name, s, d.dtype, d.layout) for d, s in zip(old_data, shapes, strict=True)]
    given = getattr(batch, "label", None)
    if labels or old_labels is None:
        return data, labels or None
    if given and not in_parts:
        return data, [DataDesc(d.name, tuple(a.shape), d.dtype, d.layout)
                      for d, a in zip(old_labels, given, strict=False)]
    # MXNet: without labels in the batch it fails where the graph has some
    new = data[0][1][_batch_axis(data[0])]
    old = old_data[0].shape[_batch_axis(old_data[0])]
    return data, [_resized(d, new, old) for d in old_labels]


def _batch_axis(d: Any) -> int:
    return max(DataDesc.get_batch_axis(getattr(d, "layout", None)), 0)


def _resized(label: DataDesc, new: int, old: int) -> DataDesc:
    shape, axis = list(label.shape), DataDesc.get_batch_axis(label.layout)
    if axis >= 0:
        shape[axis] = shape[axis] * new // old
    return DataDesc(label.name, tuple(shape), label.dtype, label.layout)
