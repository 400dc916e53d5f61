"""Updates in place: weight, gradient and state in each storage, lazily or not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.parity.arrays import signed, uniform
from tests.parity.storage.case import CSR, DEFAULT, ROWS, StorageCase, Stored, make

SHAPE = (7, 3)
COMMON = {"lr": 0.1, "wd": 0.05, "rescale_grad": 0.5}
CLIP = {**COMMON, "clip_gradient": 0.2}
LAZY = ({}, {"lazy_update": True}, {"lazy_update": False})

# op -> (states, of which non-negative, parameters to vary)
OPS: dict[str, tuple[Sequence[str], Sequence[str], Sequence[Mapping[str, Any]]]] = {
    "sgd_update": ((), (), LAZY),
    "sgd_mom_update": (("mom",), (), [{"momentum": 0.9, **z} for z in LAZY]),
    "adam_update": (("mean", "var"), ("var",), [{"beta1": 0.8, "beta2": 0.9, **z} for z in LAZY]),
    "ftrl_update": (("z", "n"), ("n",), [{"lamda1": 0.02, "beta": 1.0}]),
    "_sparse_adagrad_update": (("history",), ("history",), [{"epsilon": 1e-5}]),
    "_contrib_group_adagrad_update": (("history",), ("history",), [{"epsilon": 1e-5}]),
    "nag_mom_update": (("mom",), (), [{"momentum": 0.9}]),
    "rmsprop_update": (("n",), ("n",), [{"gamma1": 0.9}]),
    "signsgd_update": ((), (), [{}]),
    "ftml_update": (("d", "v", "z"), ("d", "v"), [{"t": 2}]),
}
NO_WD = ("_sparse_adagrad_update", "_contrib_group_adagrad_update")


def _inputs(op: str, kinds: Sequence[str], some: Sequence[str]) -> dict[str, Stored]:
    states, positive, _ = OPS[op]
    out = {}
    for i, (name, kind) in enumerate(zip(("weight", "grad", *states), kinds, strict=True)):
        shape = (SHAPE[0], 1) if op == "_contrib_group_adagrad_update" and name == "history" else SHAPE
        array = uniform(shape, 0.1, 0.9) if name in positive else signed(shape, 0.2, 0.9)
        out[name] = Stored(kind, array, some[i] if kind != DEFAULT else "some", 1 if name == "grad" else 0)
    return out


def _update(
    op: str, kinds: Sequence[str], params: Mapping[str, Any], some: Sequence[str], note: str = ""
) -> StorageCase:
    inputs = _inputs(op, kinds, some)
    return make(op, inputs, params, note=note, grads=(), stages=("update",), mutates=tuple(
        k for k in inputs if k != "grad"))


def _params(op: str, extra: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that the op has."""
    fixed = {k: v for k, v in base.items() if op not in NO_WD or k != "wd"}
    if op == "ftml_update" and "clip_gradient" in fixed:
        fixed["clip_grad"] = fixed.pop("clip_gradient")
    return {**fixed, **extra}


def _all() -> Iterator[StorageCase]:
    for op, (states, _, variants) in OPS.items():
        count = 2 + len(states)
        for kinds, extra, base in itertools.product(
                itertools.product((DEFAULT, ROWS), repeat=count), variants, (COMMON, CLIP)):
            for full in ("some", "all"):
                if ROWS not in (kinds[0], *kinds[2:]) and full == "all":
                    continue  # nothing but the gradient is sparse
                some = [full if i != 1 else "some" for i in range(count)]
                yield _update(op, kinds, _params(op, extra, base), some)
        for kinds in itertools.product((DEFAULT, ROWS), (ROWS,), *[(DEFAULT, ROWS)] * len(states)):
            for empty in ("none", "zeros"):
                some = ["all" if i != 1 else empty for i in range(count)]
                yield _update(op, kinds, _params(op, variants[0], COMMON), some, note=f"gradient {empty}")
            yield _update(op, kinds, _params(op, variants[0], COMMON), ["none" if i > 1 else "all" if i == 0 else "some"
                          for i in range(count)], note="first step")
        kinds = [DEFAULT, CSR, *[DEFAULT] * len(states)]
        yield _update(op, kinds, _params(op, variants[0], COMMON), ["some"] * count)
    for kind in ((DEFAULT, DEFAULT, DEFAULT), (ROWS, ROWS, ROWS), (DEFAULT, ROWS, DEFAULT)):
        yield _update("_sparse_adagrad_update", kind, {"lr": 0.1, "epsilon": 1e-5, "wd": 0.1}, ["all", "some", "all"])


def _unique(cases: Iterator[StorageCase]) -> list[StorageCase]:
    return list({c.id: c for c in cases}.values())


CASES = _unique(_all())
