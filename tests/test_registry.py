"""Every registered op: declared as in MXNet, typed as it runs, compiled as it runs; its parameters survive as text.

Ops are taken as they stand in parity cases. A seeded sample of them (SYMJAX_SEED) is run, eagerly and compiled; the
marker `slow` runs every case.
"""

from __future__ import annotations

import os
import random
import types
import typing
from typing import Any, Literal

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symjax.lowering.errors import MissingLoweringError
from symjax.lowering.params import Params, Spec, to_text
from symjax.lowering.registry import Op
from tests.registry_cases import (
    DYNAMIC,
    KEY,
    OPERATORS,
    Use,
    default_text,
    enum_values,
    key_data,
    mxnet_operators,
    own_ops,
    same_default,
    spellings,
    uses,
)

SAMPLE = 12
MISDOCUMENTED = {"_linspace", "_npi_norm", "_npi_backward_nan_to_num", "_npi_backward_ediff1d", "_npi_concatenate",
                 "_npi_hsplit_backward", "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", "_contrib_quantized_rnn"}
"""MXNet documents `_arange`'s parameters for the first, but reads num and endpoint, `dim` for _npi_concatenate, which
reads axis; and none for the others."""

OPS = own_ops()
by_name = pytest.mark.parametrize("op", OPS, ids=lambda o: o.name)


# ---- (a) declarations


@by_name
def test_declared_as_in_mxnet(op: Op) -> None:
    if not mxnet_operators():
        pytest.skip(f"{OPERATORS} is not there")
    theirs = mxnet_operators().get(op.name)
    if theirs is None:
        return  # a name that MXNet registers without documenting it
    assert set(theirs["aliases"]) <= {op.name, *op.aliases}
    inputs = [i[0] for i in theirs["inputs"]]
    if "subgraphs" in op.asks:  # MXNet counts the subgraphs as inputs
        inputs = [n for n in inputs if n not in ("fn", "cond", "func", "then_branch", "else_branch")]
    # auxiliary states follow, where MXNet does not list them
    assert inputs == [n.removeprefix("*") for n in op.all_inputs[:len(inputs)]]
    if op.name in MISDOCUMENTED:
        return
    specs = {n: s for n, s in op.params.__specs__.items() if n in theirs["params"] or n != op.variadic}
    assert list(specs) == list(theirs["params"]) or set(specs) == set(theirs["params"])


@by_name
def test_defaults_as_in_mxnet(op: Op) -> None:
    declared = mxnet_operators().get(op.name, {}).get("params", {})
    for name, text in declared.items() if op.name not in MISDOCUMENTED else ():
        spec, default = op.params.__specs__[name], default_text(text)
        assert spec.field.doc, f"{name} has no documentation"
        if enum_values(text):
            assert enum_values(text) <= spellings(spec.type), name
        if default is None:
            assert spec.required == text.endswith("required") or "required" not in text, name
        else:
            assert not spec.required and same_default(spec, default), f"{name}: {spec.default!r}, MXNet {default}"


def test_aliases_are_those_of_mxnet_ops() -> None:
    """No two declarations of MXNet are merged into one op here, and none is split."""
    for theirs in mxnet_operators().values():
        here = {o.name for o in OPS for n in (o.name, *o.aliases) if n in theirs["aliases"]}
        assert len(here) <= 1, f"{theirs['name']} is {here} here"


def test_list_what_is_not_registered(capsys: pytest.CaptureFixture[str]) -> None:
    here = {n for o in OPS for n in (o.name, *o.aliases)}
    lacking = sorted(set(mxnet_operators()) - here)
    with capsys.disabled():
        print(f"\n{len(here & set(mxnet_operators()))} of MXNet's {len(mxnet_operators())} operators are registered; "
              f"not yet: {' '.join(lacking)}")
    assert len(OPS) >= 250


@by_name
def test_documented(op: Op) -> None:
    assert op.doc, f"the rule at {op.source} has no docstring"
    assert op.doc.split("\n\n")[0].rstrip().endswith((".", ":"))


# ---- (b) types, compilation


def check_types(use: Use) -> None:
    """The types that the rule gives are those that inference says."""
    with jax.enable_x64(True):
        got = jax.eval_shape(use.function(), KEY, *use.avals)
    assert len(got) >= len(use.types), f"{use.case.id}: {len(got)} outputs, {len(use.types)} declared"
    for i, (want, have) in enumerate(zip(use.types, got, strict=False)):
        assert want is None or have.dtype.name == want, f"{use.case.id}: output {i} is {have.dtype}, inferred {want}"


@by_name
def test_types_are_inferred_as_they_run(op: Op) -> None:
    if op.name not in DYNAMIC:
        for use in uses().get(op.name, []):  # that there is one is test_every_op_has_a_case's business
            check_types(use)


def check_jit(use: Use) -> None:
    """Compiled and step by step give the same numbers."""
    with jax.enable_x64(True):
        inputs, f = use.inputs(), use.function()
        eager, compiled = f(key_data(), *inputs), jax.jit(f)(key_data(), *inputs)
    for a, b in zip(eager, compiled, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        rtol = 2e-2 if a.dtype.name == "bfloat16" else 5e-3 if a.dtype == np.float16 else 1e-5
        a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
        scale = float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * scale, equal_nan=True, err_msg=use.case.id)


def sampled(n: int) -> list[Op]:
    """Some ops, drawn by SYMJAX_SEED."""
    return random.Random(os.environ.get("SYMJAX_SEED", "0")).sample(OPS, min(n, len(OPS)))


@pytest.mark.parametrize("op", sampled(SAMPLE), ids=lambda o: o.name)
def test_compiled_as_eager(op: Op) -> None:
    if op.name not in DYNAMIC:
        for use in uses().get(op.name, [])[:1]:
            check_jit(use)


def test_dynamic_ops_refuse_tracing() -> None:
    for op in OPS:
        # Those of dgl take csr (test_dgl_ops.py); a check has a result in a compiled function too (test_numpy_ops.py).
        # One without inputs reads a file while it is traced.
        if op.name in DYNAMIC and op.all_inputs and "_dgl_" not in op.name and op.name != "_npx_constraint_check":
            params = op.params()
            with pytest.raises(MissingLoweringError, match="depends on the values"):
                jax.eval_shape(lambda *xs, op=op, p=params: op.rule(p, *xs),
                               *[np.zeros(3)] * len(op.input_names(params)))


@pytest.mark.slow
@by_name
def test_every_case(op: Op) -> None:
    """Types and compilation in every case."""
    if op.name not in DYNAMIC:
        for use in uses(10**6).get(op.name, []):
            check_types(use)
            check_jit(use)


# ---- (c) parameters as text


def values_of(tp: Any, spec: Spec) -> st.SearchStrategy[Any]:
    """Values that a parameter of this type can have."""
    f, origin, args = spec.field, typing.get_origin(tp), typing.get_args(tp)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(st.none() if a is type(None) else values_of(a, spec) for a in args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(values_of(args[0], spec), max_size=4).map(tuple)
    if tp is bool:
        return st.booleans()
    if tp is int:
        low = max((b for b in (f.ge, None if f.gt is None else f.gt + 1) if b is not None), default=-(2**62))
        return st.integers(int(low), int(2**62 if f.le is None else f.le))
    if tp is float:
        return st.floats(f.ge if f.gt is None else f.gt, f.le, exclude_min=f.gt is not None, allow_nan=False)
    return st.text(max_size=5).filter(lambda t: t.strip() != "None")


@st.composite
def parameters(draw: st.DrawFn) -> Params:
    """Any op's parameters with any values."""
    specs = draw(st.sampled_from(PARAMS)).__specs__
    cls = next(c for c in PARAMS if c.__specs__ is specs)
    return cls(**{n: draw(values_of(s.type, s)) for n, s in specs.items()})


# what Custom takes is the business of the operator that somebody registered
PARAMS = sorted({o.params for o in OPS if o.name != "Custom"}, key=lambda c: (c.__module__, c.__name__))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parameters())
def test_parameters_survive_text(p: Params) -> None:
    assert type(p).parse(p.to_attrs()) == p
    assert type(p).parse({n: to_text(getattr(p, n)) for n in p.__specs__}) == p
