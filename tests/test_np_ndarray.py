"""Creation, operators, indexing and numpy's protocols of `mx.np`, against what MXNet gives (`tests/numpy_face`)."""

from __future__ import annotations

import pytest

from tests.numpy_face import compare


@pytest.mark.parametrize(("section", "codes"), compare.params("creation", "operators", "indexing", "protocol"))
def test_as_mxnet(section: str, codes: list[str]) -> None:
    assert not compare.check(section, codes)
