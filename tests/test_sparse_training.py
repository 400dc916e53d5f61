"""Models on sparse data train as in real MXNet: the same losses, weights and storage types.

Measured, losses of all batches differ by 3e-8 of themselves; the bound of 1e-5 leaves room for other machines, where
sums over a batch (float32, 256 rows of 39 entries) are taken in other orders, which the updates carry on.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import StorageFallbackWarning
from tests.compiles import compiles
from tests.sparse_training_cases import MODELS, bound, run_model, step

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "sparse_training.json").read_text())


def test_all_models_are_recorded() -> None:
    assert list(GOLDEN) == list(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_training_is_mxnets(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", StorageFallbackWarning)
        found = run_model(mx, name)
    want = GOLDEN[name]
    np.testing.assert_allclose(found["losses"], want["losses"], rtol=1e-5)
    assert found["losses"][-1] < found["losses"][0]
    assert found["stypes"] == want["stypes"]
    for weight, facts in want["weights"].items():
        have = found["weights"][weight]
        assert (have["changed"], have["rows"]) == (facts["changed"], facts["rows"]), weight
        np.testing.assert_allclose(have["moved"], facts["moved"], rtol=1e-4, err_msg=weight)
        np.testing.assert_allclose(have["values"], facts["values"], rtol=1e-3, atol=1e-6, err_msg=weight)


def test_the_second_epoch_compiles_nothing(tmp_path: Path) -> None:
    """Batches hold other numbers of entries and columns; the steps of an epoch share compiled code by capacity."""
    model = MODELS["factorization_machine"](mx, tmp_path)
    exe = bound(mx, model)
    updater = mx.optimizer.get_updater(model.optimizer)
    for batch in model.batches():
        step(exe, model, updater, batch)
    with compiles() as count:
        for batch in model.batches():
            step(exe, model, updater, batch)
    assert count.n == 0


@pytest.mark.parametrize("read_first", [False, True])
def test_a_step_updates_tables_in_place(tmp_path: Path, read_first: bool) -> None:
    """After backward the executor holds neither weights nor residuals, so that the update takes over their memory."""
    model = MODELS["factorization_machine"](mx, tmp_path)
    exe = bound(mx, model)
    updater = mx.optimizer.get_updater(model.optimizer)
    batches = iter(model.batches())
    step(exe, model, updater, next(batches))  # the first makes the states

    def places() -> list[int]:
        tables = exe.arg_dict["v_weight"], updater.states["v_weight"]
        return [t._data.data.unsafe_buffer_pointer() for t in tables]

    before = places()
    exe.forward(is_train=True, **next(batches))
    if read_first:
        exe.outputs[0].wait_to_read()
    exe.backward()
    updater("v_weight", exe.grad_dict["v_weight"], exe.arg_dict["v_weight"])
    assert places() == before
