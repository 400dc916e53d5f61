"""The distinct rows that a batch touches, and where each lookup finds its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from symjax.sparse.unique import index_on_host


@pytest.mark.parametrize("n", [1, 5, 300, 10**4, 10**6, 1 << 22, (1 << 22) + 1, 10**8, 2**31 + 5])
@pytest.mark.parametrize("count", [0, 1, 7, 3000])
@pytest.mark.parametrize("kind", ["plain", "with padding", "outside"])
def test_index_on_the_host(n: int, count: int, kind: str) -> None:
    """By a table, by looking up, by sorting: distinct ids in order, and the place of each."""
    ids = np.random.RandomState(count).randint(0, n + (kind == "with padding"), count)
    if kind == "outside":
        ids[::2] += n - 1
        ids[1::3] -= n
    meant = np.clip(ids, 0, n - 1) if kind == "outside" else ids
    real = meant < n
    found = index_on_host(ids, n, clip=kind == "outside")
    unique = np.unique(meant[real])
    np.testing.assert_array_equal(found.unique[: len(unique)], unique)
    assert (found.unique[len(unique) :] == n).all()
    np.testing.assert_array_equal(found.unique[found.inverse[real]], meant[real])
    assert (found.inverse[~real] >= len(unique)).all()
    assert found.inverse.dtype == np.int32


def test_index_on_the_host_of_threads() -> None:
    """Each thread has memory of its own."""
    rng = np.random.RandomState(0)
    batches = [rng.randint(0, 10**6, 5000) for _ in range(40)]

    def works(ids: np.ndarray) -> bool:
        found = index_on_host(ids, 10**6)
        return bool((found.unique[found.inverse] == ids).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(works, batches * 5))
