"""Data iterators: MXNet's `mx.io`.

An iterator gives batches for one epoch (`for batch in iterator`) and starts the next at `reset()`. `NDArrayIter` walks
arrays in memory, `LibSVMIter` and `CSVIter` text files that need not fit into it. A `DataIter` of your own defines
`provide_data`, `provide_label` and `next`.
"""

from __future__ import annotations

from symjax.io.csv import CSVIter
from symjax.io.description import DataBatch, DataDesc
from symjax.io.file_iterator import MXDataIter
from symjax.io.iterator import DataIter, PrefetchingIter, ResizeIter
from symjax.io.libsvm import LibSVMIter
from symjax.io.mnist import MNISTIter
from symjax.io.ndarray_iter import NDArrayIter
from symjax.io.records import (
    ImageDetRecordIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    ImageRecordUInt8Iter_v1,
)

__all__ = ["CSVIter", "DataBatch", "DataDesc", "DataIter", "ImageDetRecordIter", "ImageRecordInt8Iter",
           "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1", "LibSVMIter",
           "MNISTIter", "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]
