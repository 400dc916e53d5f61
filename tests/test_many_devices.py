"""Modules and executors on eight virtual devices: `mesh_cases`, in a process of their own that has as many."""

from __future__ import annotations

import pytest
from jax.sharding import PartitionSpec

from symjax.lowering.errors import BindError
from symjax.lowering.layout import parse_sharding
from tests.eight_devices import results_of
from tests.mesh_cases import CASES


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    return results_of("tests.mesh_cases")


@pytest.mark.parametrize(("text", "spec"), [
    ("model,None", ("model", None)), ("(None, 'model')", (None, "model")), ("", ()), ("None", (None,)),
    ("PartitionSpec(('data', 'model'), None)", (("data", "model"), None)), ("(a, b), c", (("a", "b"), "c")),
])  # fmt: skip
def test_texts(text: str, spec: tuple[object, ...]) -> None:
    assert parse_sharding(text) == PartitionSpec(*spec)
    assert parse_sharding(str(PartitionSpec(*spec))) == PartitionSpec(*spec)


@pytest.mark.parametrize("text", ["3", "model;None", "(1,)", "a,,b", "[a]", "f(x)", "(((a))", "((a, None), b)"])
def test_texts_that_cannot_be_read(text: str) -> None:
    with pytest.raises(BindError, match=r"__sharding__=.* cannot be read; give a mesh axis or None"):
        parse_sharding(text)


@pytest.mark.parametrize("case", CASES)
def test_on_eight_devices(case: str, results: dict[str, str]) -> None:
    assert results[case] == "", results[case]
