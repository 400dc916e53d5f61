"""`symjax.config(exact_mxnet=True)`: MXNet's recorded results, faults included; what it switches is compiled anew."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.habits import all_habits
from symjax.lowering.registry import get
from tests.parity import golden
from tests.parity.check import run_symjax
from tests.parity.compare import compare, explain
from tests.parity.record import family_cases

CASES = {
    "loss": ("SoftmaxOutput-multi_output=True,smooth_alpha=0.3", "SoftmaxOutput-out_grad=True"),
    "activation": ("LeakyReLU-act_type=selu", "LeakyReLU-act_type=selu-float16", "LeakyReLU-edges_selu"),
    "boxes": ("_contrib_bipartite_matching-threshold=-100,topk=2", "_contrib_box_nms-outside",
              "_contrib_MultiBoxTarget-least"),
    "image": ("_image_random_saturation-uint8-4x6x3-0.3-0.3-uint8", "_image_random_saturation-float32-4x6x3-1.5-1.5"),
    "numpy_reduce": ("_np_prod-zeros",),
    "onednn": ("conv-tanh-scaled", "conv-sigmoid-scaled"),
    "optimizer": ("mp_nag_mom_update-mixed-float16",),
    "quantized": ("_contrib_quantized_batch_norm-eps", "_contrib_quantized_batch_norm-fix-gamma"),
    "reduce": ("prod-zeros",),
}  # fmt: skip
"""Parity cases, by family, where symjax differs from MXNet unless it is told not to: the beginnings of their ids."""
WITHOUT_CASE = {"mp_lamb_update_phase2", "nag_mom_update", "nanprod", "_image_random_color_jitter"}
"""The first two show it in place alone (tests below); the others are random, or do as an operator above."""

PAIRS = [(f, start) for f, starts in CASES.items() for start in starts]


@pytest.mark.parametrize(("family", "start"), PAIRS, ids=[s for _, s in PAIRS])
def test_as_recorded(family: str, start: str) -> None:
    """MXNet's own numbers with the switch; the documented ones without it, which are others."""
    cases = [c for c in family_cases(family) if c.id.startswith(start) and c.differs]
    assert cases, f"no case {start}…"
    known = golden.load(family)
    for case in cases:
        plain = case.plain()
        with mx.config(exact_mxnet=True):
            exact = compare(plain, known[case.id], run_symjax(plain)).problems
        assert not exact, explain(case, exact)
        assert compare(plain, known[case.id], run_symjax(plain)).problems, "the switch changes nothing"
        assert not compare(case, known[case.id], run_symjax(case)).problems


def test_every_habit_is_tested() -> None:
    tested = {s.split("-")[0] for s in sum(CASES.values(), ())} - {"conv"} | {"_sg_mkldnn_conv"}
    named = {n for h in all_habits() for n in h.ops}
    assert named - tested == WITHOUT_CASE and not tested - named
    for h in all_habits():
        assert all(get(n).name == n for n in h.ops)
        assert h.text.endswith(".") and h.instead.endswith(".")


def test_nag_in_place() -> None:
    """Numbers of MXNet 1.9.1's call in place: the momentum decays by the new weight."""
    for exact, want in ((False, [0.37, 0.315]), (True, [0.35734999, 0.296325])):
        w, mom = mx.nd.array([1, -2]), mx.nd.array([0.5, 0.25])
        with mx.config(exact_mxnet=exact):
            mx.nd.nag_mom_update(w, mx.nd.array([0.3, 0.1]), mom, lr=0.1, momentum=0.9, wd=0.5, out=w)
        np.testing.assert_allclose(w.asnumpy(), [1.25300002, -1.62649989], rtol=1e-6)
        np.testing.assert_allclose(mom.asnumpy(), want, rtol=1e-6)


def test_mp_lamb_copy() -> None:
    """MXNet's imperative call leaves the float32 copy as it was (checked on MXNet 1.9.1)."""
    for exact in (False, True):
        w, copy = mx.nd.ones(2, dtype="float16"), mx.nd.ones(2)
        with mx.config(exact_mxnet=exact):
            mx.nd.mp_lamb_update_phase2(w, mx.nd.ones(2), mx.nd.ones(1), mx.nd.ones(1), copy, lr=0.5, out=w)
        assert w.asnumpy().tolist() == [0.5, 0.5]
        assert copy.asnumpy().tolist() == ([1, 1] if exact else [0.5, 0.5])


def prod_gradient(call: Any) -> Any:
    """Whether the gradient of a product with a zero is NaN, before, within and after the switch."""
    found = [call()]
    with mx.config(exact_mxnet=True):
        found.append(call())
    return [*found, call()]


def test_switching_reaches_what_was_compiled_before() -> None:
    """Executors, imperative calls, functions compiled by the user: each before, with and after the switch."""
    ex = mx.sym.prod(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    ex.arg_dict["x"][:] = mx.nd.array([0, 3])

    def by_executor() -> bool:
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones(1))
        return bool(np.isnan(ex.grad_dict["x"].asnumpy()).any())

    def by_recording() -> bool:
        x = mx.nd.array([0, 3])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.prod(x)
        y.backward()
        return bool(np.isnan(x.grad.asnumpy()).any())

    op = get("prod")
    compiled = jax.jit(jax.grad(lambda x: op(op.params(), x)[0]))
    for call in (by_executor, by_recording, lambda: bool(jnp.isnan(compiled(jnp.array([0.0, 3.0]))).any())):
        assert prod_gradient(call) == [False, True, False]


def test_it_reaches_other_threads() -> None:
    seen = []
    with mx.config(exact_mxnet=True):
        thread = threading.Thread(target=lambda: seen.append(all_habits()[0]()))
        thread.start()
        thread.join()
    assert seen == [True] and not all_habits()[0]()


def test_bad_value() -> None:
    with pytest.raises(mx.MXNetError, match="exact_mxnet must be True or False"):
        mx.config.update(exact_mxnet="yes")
