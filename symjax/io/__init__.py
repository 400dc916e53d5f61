"""Data iterators: MXNet's `mx.io`."""

from __future__ import annotations

from symjax.io.description import DataBatch, DataDesc
from symjax.io.file_iterator import MXDataIter
from symjax.io.iterator import DataIter, PrefetchingIter, ResizeIter
from symjax.io.libsvm import LibSVMIter
