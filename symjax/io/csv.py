"""`CSVIter`: dense rows from text files of numbers with commas between."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from symjax.io._files import Block, Segment, find_files, partition, read_blocks
from symjax.io._numbers import shorten
from symjax.io._reader import Parsed, worker_count
from symjax.io._rows import RowStream, filled
from symjax.io.description import DataDesc
from symjax.io.file_iterator import FileParams, MXDataIter, RowBatches, read_params
from symjax.lowering.errors import DataFormatError
from symjax.lowering.params import Shape, param

__all__ = ["CSVIter"]


class CSVParams(FileParams):
    """Parameters of `CSVIter`."""

    data_csv: str = param(doc="Path of the data.")
    data_shape: Shape = param(ge=1, doc="Shape of one example.")
    label_csv: str | None = param(None, doc="Path of the labels.", aliases={"NULL": None})
    label_shape: Shape = param((1,), ge=1, doc="Shape of one label.")


class CSVIter(MXDataIter):
    """Walks the rows of csv files, each reshaped to `data_shape`.

    The files are read in blocks ahead of what is asked for. The last batch is filled up as `LibSVMIter` does.

    Args:
      data_csv: a file, a directory, or several of them with ";" between.
      data_shape: shape of one example; a line has as many numbers as it has elements.
      label_csv: files with the labels; without them labels are 0.
      label_shape: shape of one label.
      batch_size: rows of a batch.
      round_batch: whether to fill up the last batch from the first rows; otherwise it is filled with zeros.
      prefetch_buffer: how many batches are read ahead; 0 does without threads.
      dtype: type of data and labels, float32 by default.
      data_name, label_name: names in `provide_data` and `provide_label`.
      ctx: a Context, where the batches go; the current context by default.

    Gives:
      Batches of `data[0]` (batch_size, *data_shape) and `label[0]` (batch_size, *label_shape), (batch_size,) for
      labels of shape (1,).

    Raises:
      ParamError: an argument is missing or wrong.
      FileError: a file is missing, empty, or cannot be read.
      DataFormatError: (by `next`) a line does not hold the numbers of one example; says file and line.
      MXNetError: (by `next`) there are fewer rows than `batch_size`.
    """

    def __init__(self, **kwargs: Any) -> None:
        p = read_params(CSVParams, "CSVIter", kwargs)
        rows, kind = p.batch_size, p.kind
        label_shape = (rows,) if p.label_shape == (1,) else (rows, *p.label_shape)
        openers = [_opener(p.data_csv, "data_csv", CSVFormat(math.prod(p.data_shape), kind), p)]
        if p.label_csv is not None:
            openers.append(_opener(p.label_csv, "label_csv", CSVFormat(math.prod(p.label_shape), kind), p))

        def pack(taken: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
            data = filled(np.concatenate(taken[0]), rows).reshape(rows, *p.data_shape)
            if len(taken) == 1:
                return data, np.zeros(label_shape, kind)
            return data, filled(np.concatenate(taken[1]), rows).reshape(label_shape)

        handle = RowBatches("CSVIter", p, lambda: [RowStream(o) for o in openers], pack,
                            DataDesc("", (rows, *p.data_shape), kind.type), DataDesc("", label_shape, kind.type))
        super().__init__(handle, p.data_name, p.label_name, kwargs.get("ctx"))


def _opener(uri: str, argument: str, form: CSVFormat, p: CSVParams) -> Any:
    files, _ = find_files(uri, argument)
    return functools.partial(_rows, form, partition(files, 1, 0), worker_count() if p.prefetch_buffer else 0)


def _rows(form: CSVFormat, segments: list[Segment], workers: int) -> Iterator[np.ndarray]:
    return Parsed(form.parse, read_blocks(segments), workers)


@dataclasses.dataclass(frozen=True, slots=True)
class CSVFormat:
    """How to read csv text: `columns` numbers in each line, as `dtype`."""

    columns: int
    dtype: np.dtype

    def parse(self, block: Block) -> np.ndarray:
        """Returns the rows of a block, (rows, columns).

        Raises:
          DataFormatError: a line has other text, or another number of columns.
        """
        lines = block.data.decode("latin-1").splitlines()
        if not any(line.strip() for line in lines):
            return np.empty((0, self.columns), self.dtype)
        try:
            rows = self._read(lines)
        except ValueError:
            rows = None
        if rows is None or rows.shape[1] != self.columns:
            raise DataFormatError(self._explain(block))
        return rows

    def _read(self, lines: list[str]) -> np.ndarray:
        exact = np.dtype(self.dtype if self.dtype.kind in "iu" and self.dtype.itemsize == 8 else np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.loadtxt(lines, exact, comments=None, delimiter=",", ndmin=2).astype(self.dtype)

    def _explain(self, block: Block) -> str:
        at = 0
        for line in block.data.splitlines(keepends=True):
            text = line.decode("latin-1").strip()
            where = f"{block.path}:{block.line_number(at)}"
            at += len(line)
            fields = text.split(",")
            if text and len(fields) != self.columns:
                return f"{where}: {len(fields)} numbers where data_shape or label_shape wants {self.columns}"
            for field in fields if text else ():
                try:
                    self._read([field])
                except ValueError:
                    return f"{where}: {shorten(field.encode('latin-1'))} is not a number"
        return f"{block.path}: the lines are not rows of {self.columns} numbers"
