"""`LibSVMIter`: sparse rows from libsvm text files."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symjax.io._files import BLOCK, Segment, before, find_files, partition, read_blocks
from symjax.io._libsvm_text import LibSVMFormat, compiled_reader
from symjax.io._reader import Parsed, worker_count
from symjax.io._rows import CsrRows, RowStream
from symjax.io.description import DataDesc
from symjax.io.file_iterator import FileParams, MXDataIter, RowBatches, read_params
from symjax.lowering.errors import ParamError
from symjax.lowering.params import Shape, param

__all__ = ["LibSVMIter"]


class LibSVMParams(FileParams):
    """Parameters of `LibSVMIter`."""

    data_libsvm: str = param(doc="Path of the data.")
    data_shape: Shape = param(ge=1, doc="Shape of one example, (columns,).")
    label_libsvm: str | None = param(None, doc="Path of the labels.", aliases={"NULL": None})
    label_shape: Shape = param((1,), ge=1, doc="Shape of one label.")
    num_parts: int = param(1, doc="Number of parts that the data is divided into.")
    part_index: int = param(0, doc="Which of the parts is read.")


class LibSVMIter(MXDataIter):
    """Walks the rows of libsvm files: csr batches of constant shape, and labels.

    A line is `label column:value column:value …`, columns counted from 0 and in any order; a column alone has the
    value 1, `# …` is a comment, `qid:n` and a weight after the label (`label:weight`) are passed over. The files are
    read in blocks, ahead of what is asked for; memory depends on the size of a batch, not on that of the files.

    The last batch is filled up from the first rows of the file (`pad` of them), and the next epoch then begins behind
    these. With `round_batch=False` it is filled up with empty rows of label 0 instead.

    Args:
      data_libsvm: a file, a directory, or several of them with ";" between. "file?indexing_mode=1" counts columns
        from 1.
      data_shape: (columns,).
      label_libsvm: files with the labels, in the same form: the columns of their rows are the label, and the first
        number of every line is passed over. By default the label is the first number of each line of the data.
      label_shape: (columns,) of the labels in `label_libsvm`.
      batch_size: rows of a batch.
      round_batch: see above.
      num_parts, part_index: read one of `num_parts` parts, equal in bytes up to whole lines.
      prefetch_buffer: how many batches are read ahead; 0 does without threads.
      dtype: type of the values, float32 by default.
      data_name, label_name: names in `provide_data` and `provide_label`.
      ctx: a Context, where the batches go; the current context by default.

    Gives:
      Batches of `data[0]`, a CSRNDArray (batch_size, columns), and `label[0]`, an NDArray (batch_size,), or a
      CSRNDArray (batch_size, label columns) if there is `label_libsvm`.

    Raises:
      ParamError: an argument is missing or wrong.
      FileError: a file is missing, empty, or cannot be read.
      DataFormatError: (by `next`) a line is not libsvm text or has a column beyond the shape; says file and line.
      MXNetError: (by `next`) there are fewer rows than `batch_size`.

    Example:
      >>> import pathlib, tempfile
      >>> import symjax as mx
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.libsvm"
      >>> _ = path.write_text("1 0:0.5 2:1.25\\n0\\n1 1:2\\n")
      >>> rows = mx.io.LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=2)
      >>> for batch in rows:
      ...     print(batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist(), batch.pad)
      [[0.5, 0.0, 1.25], [0.0, 0.0, 0.0]] [1.0, 0.0] 0
      [[0.0, 2.0, 0.0], [0.5, 0.0, 1.25]] [1.0, 1.0] 1
    """

    def __init__(self, **kwargs: Any) -> None:
        params = read_params(LibSVMParams, "LibSVMIter", kwargs)
        _check(params)
        source = _Source(params)
        rows = params.batch_size
        label = (rows,) if params.label_libsvm is None else (rows, params.label_shape[0])
        kind = params.kind.type
        handle = RowBatches("LibSVMIter", params, source.open, source.pack,
                            DataDesc("", (rows, *params.data_shape), kind), DataDesc("", label, kind))
        super().__init__(handle, params.data_name, params.label_name, kwargs.get("ctx"))


def _check(p: LibSVMParams) -> None:
    if len(p.data_shape) != 1:
        raise ParamError(f"LibSVMIter: data_shape must have one dimension, the number of columns, got {p.data_shape}")
    if p.label_libsvm is None and math.prod(p.label_shape) != 1:
        raise ParamError(f"LibSVMIter: label_shape must be (1,) unless label_libsvm is given, got {p.label_shape}")
    if p.label_libsvm is not None and (len(p.label_shape) != 1 or p.label_shape[0] < 2):
        raise ParamError(f"LibSVMIter: label_shape must be (columns,), at least 2, with label_libsvm, got "
                         f"{p.label_shape}")


_COMPILED_BLOCK = 1 << 19
_WORTH_COMPILING = 4 << 20
"""Bytes from which on text is read by compiled code: to load that takes as long as reading about so much without."""


def _read(uri: str, argument: str, columns: int, dtype: np.dtype) -> tuple[list[Any], LibSVMFormat]:
    files, options = find_files(uri, argument)
    mode, form = options.pop("indexing_mode", "0"), options.pop("format", "libsvm")
    if mode not in ("0", "1") or form != "libsvm" or options:
        raise ParamError(f"LibSVMIter: {argument}={uri!r}: of the options only format=libsvm and indexing_mode=0 or 1 "
                         f"(columns from 0 or from 1) are supported")
    compiled = sum(f.size for f in files) >= _WORTH_COMPILING and compiled_reader() is not None
    return files, LibSVMFormat(columns, dtype, int(mode), compiled)


class _Source:
    """The files of a `LibSVMIter` as streams of rows."""

    def __init__(self, p: LibSVMParams) -> None:
        self.p = p
        self.workers = worker_count() if p.prefetch_buffer else 0
        self.files, self.format = _read(p.data_libsvm, "data_libsvm", p.data_shape[0], p.kind)
        self.segments = partition(self.files, p.num_parts, p.part_index)
        self.labels: list[Segment] = []
        if p.label_libsvm is not None:
            files, self.label_format = _read(p.label_libsvm, "label_libsvm", p.label_shape[0], p.kind)
            self.labels = partition(files, 1, 0)

    def open(self) -> list[RowStream]:
        rows = functools.partial(_rows, self.format, self.segments, self.workers)
        if self.p.label_libsvm is None:
            return [RowStream(rows)]
        return [RowStream(rows), RowStream(self._label_rows)]

    def _label_rows(self) -> Iterator[CsrRows]:
        # MXNet: divides the label files by their bytes too, so that labels and rows of a part do not belong together
        skip = self._rows_before
        for piece in _rows(self.label_format, self.labels, self.workers):
            if skip < len(piece):
                yield piece[skip:]
            skip = max(skip - len(piece), 0)

    @functools.cached_property
    def _rows_before(self) -> int:
        lines = (block.data.splitlines() for block in read_blocks(before(self.files, self.segments)))
        return sum(1 for line in itertools.chain.from_iterable(lines) if line.partition(b"#")[0].strip())

    def pack(self, taken: list[list[CsrRows]]) -> tuple[Any, Any]:
        """Makes the containers of a batch."""
        size = self.p.batch_size
        rows = CsrRows.join(taken[0])
        data = rows.matrix(size, self.p.data_shape[0])
        if self.p.label_libsvm is None:
            return data, rows.column(size)
        return data, CsrRows.join(taken[1]).matrix(size, self.p.label_shape[0])


def _rows(form: LibSVMFormat, segments: Sequence[Segment], workers: int) -> Iterator[CsrRows]:
    return Parsed(form.parse, read_blocks(segments, _COMPILED_BLOCK if form.compiled else BLOCK), workers)
