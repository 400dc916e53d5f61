"""Fuzz target: `.params` files.

Any input either reads, and then fits the file and survives a round trip, or raises `ParamsFormatError`.
"""

from __future__ import annotations

from tests.fuzz.harness import atheris, fuzz

with atheris.instrument_imports(include=["symjax"]):
    import numpy as np

    from symjax.serialization import CSRRecord, ParamsFormatError, ParamsRecord, RowSparseRecord, dumps, read_params


def blocks(record: ParamsRecord) -> list[np.ndarray]:
    if isinstance(record, CSRRecord):
        return [record.data, record.indptr, record.indices]
    if isinstance(record, RowSparseRecord):
        return [record.data, record.indices]
    return [] if record is None else [record]


def check(data: bytes) -> None:
    try:
        records, names = read_params(data)
    except ParamsFormatError:
        return
    assert len(names) in (0, len(records))
    parts = [part for record in records for part in blocks(record)]
    assert sum(part.nbytes for part in parts) <= len(data), "more data than the file has"
    scalars = any(isinstance(record, np.ndarray) and record.ndim == 0 for record in records)
    sparse = any(isinstance(record, CSRRecord | RowSparseRecord) for record in records)
    if scalars and sparse:
        return  # no version can hold both
    again, names_again = read_params(dumps(records, names, np_shape=scalars))
    assert names_again == names
    for part, copy in zip(parts, [part for record in again for part in blocks(record)], strict=True):
        assert part.shape == copy.shape and (part.tobytes() == copy.tobytes() or part.dtype != copy.dtype)


if __name__ == "__main__":
    fuzz(check)
