"""Random parity cases: what every family's draws have in common.

A function under `draws` is registered for some ops with `@draws("op", …)`. It gets a `Draw` and returns a case; `Draw`
chooses sizes, flags and enum values, and derives the rest (names of inputs, auxiliary states, visible outputs) from the
registry. A corner in which MXNet is at fault is left out where it is drawn, with the reason.
"""

from __future__ import annotations

import random
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from symjax.lowering import registry
from symjax.lowering.params import Params, Spec
from tests.parity.arrays import Array, randint, uniform, values
from tests.parity.case import Case, attr_text, op_case
from tests.parity.coverage import SILENT

FLOATS = ("float32", "float32", "float64", "float16")
SINGLE = ("float32", "float32", "float64")
INTS = ("int32", "int64", "uint8", "int8")
ALL = (*FLOATS, *INTS)
FEW = (*FLOATS, "int32", "int64", "uint8")

# MXNet: the gradient of these is written over, or garbage, where it must be added
NO_ADD = {
    "LRN",
    "clip",
    "mean",
    "_linalg_gelqf",
    "_linalg_gemm",
    "_linalg_trmm",
    "_linalg_trsm",
    "_linalg_inverse",
    "_linalg_syevd",
    "_np_cumsum",
    "_split_v2",
    "SpatialTransformer",
    "_contrib_box_iou",
    "_contrib_box_nms",
    "_contrib_DeformableConvolution",
    "elemwise_add",
    "_grad_add",
}

Shape = tuple[int, ...]
Drawer = Callable[["Draw"], Case]
DRAWS: dict[str, list[tuple[Drawer, tuple[str, ...]]]] = {}


def draws(*ops: str, dtypes: Sequence[str] = SINGLE) -> Callable[[Drawer], Drawer]:
    """Registers a function that draws cases of these ops in one of these dtypes."""

    def register(fn: Drawer) -> Drawer:
        for op in ops:
            DRAWS.setdefault(op, []).append((fn, tuple(dtypes)))
        return fn

    return register


def draw_case(op: str, seed: int, number: int) -> Case:
    """The case with this number of a seed."""
    rng = random.Random(f"{op}/{seed}/{number}")
    fn, dtypes = rng.choice(DRAWS[op])
    return fn(Draw(op, rng, rng.choice(dtypes), f"{seed}.{number}"))


class Draw:
    """Chooses what a case is made of."""

    def __init__(self, op: str, rng: random.Random, dtype: str, label: str) -> None:
        self.name, self.rng, self.dtype, self.label = op, rng, dtype, label
        self.op = registry.get(op)
        self.of: Callable[[Sequence[Any]], Any] = rng.choice

    # ---- numbers and shapes

    def whole(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def maybe(self, p: float = 0.5) -> bool:
        return self.rng.random() < p

    def size(self, high: int = 5) -> int:
        return 1 if self.maybe(0.2) else self.whole(1, high)

    def shape(self, low: int = 1, high: int = 4, size: int = 5) -> Shape:
        """A shape of rank low to high."""
        rank = self.whole(low, high)
        return tuple(self.size(size if rank < 4 else 3) for _ in range(rank))

    def ints(self, n: int, low: int, high: int) -> Shape:
        return tuple(self.whole(low, high) for _ in range(n))

    def axis(self, rank: int) -> int:
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int, least: int = 0) -> Shape:
        """Some distinct axes in any order, any of them counted from the end."""
        chosen = self.rng.sample(range(rank), self.whole(least, rank))
        return tuple(a - rank if self.maybe(0.3) else a for a in chosen)

    def real(self, low: float, high: float) -> float:
        return round(self.rng.uniform(low, high), 3)

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    # ---- arrays

    def x(self, shape: Shape, low: float = -2.0, high: float = 2.0) -> Array:
        """Numbers of the case's dtype: uniform, sometimes with ties; whole for integers."""
        if not self.is_float:
            return randint(shape, 0 if self.dtype == "uint8" else -5, 9)
        if low == -2.0 and self.maybe(0.2):
            return randint(shape, -3, 4)
        return uniform(shape, low, high)

    def index(
        self, shape: Shape, high: int, outside: bool = False, dtypes: Sequence[str] = ("int32", "int64", "float32")
    ) -> Array:
        """Indices below `high`, sometimes outside."""
        low, top = (-high, 2 * high) if outside and self.maybe(0.4) else (0, high)
        return randint(shape, low, max(top, low + 1), self.of(dtypes))

    def edges(self) -> Array:
        """Numbers at which functions have their corners."""
        inner = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1.5, 3.0, -20.0, 20.0]
        return values([*inner, "nan", "inf", "-inf"])

    # ---- parameters and the case

    def params(self, **given: Any) -> dict[str, Any]:
        """The given parameters; flags and enumerations that are not given at random, or left out."""
        out = {k: v for k, v in given.items() if not (self._is_default(k, v) and self.maybe())}
        for name, spec in self.op.params.__specs__.items():
            if name not in given and name not in SILENT and (choices := _choices(spec)) and not self.maybe(0.3):
                out[name] = self.of(choices)
        return out

    def _is_default(self, name: str, value: Any) -> bool:
        spec = self.op.params.__specs__[name]
        return not spec.required and value == spec.default

    def parsed(self, params: Mapping[str, Any]) -> Any:
        return self.op.params.parse({k: attr_text(v) for k, v in params.items()}, self.name)

    def case(self, arrays: Sequence[Any], params: Mapping[str, Any] | None = None, **options: Any) -> Case:
        """A case whose inputs, auxiliary states last, are `arrays` in the op's order."""
        params = dict(params or {})
        p: Params = self.parsed(params)
        names, aux = self.op.input_names(p), self.op.aux_names(p)
        given = dict(zip(names, arrays, strict=True))
        args = {k: v for k, v in given.items() if k not in aux}
        known = tuple(k for k, v in given.items() if v is not None)
        few = len(known) < len(given) and self.maybe()  # what is inferred from the first input alone
        return op_case(
            self.op.name,
            args,
            params,
            aux={k: given[k] for k in names if k in aux},
            outputs=self.op.num_visible(p),
            id=self.label,
            dtype=self.dtype,
            infers_more=True,
            **{**self._gradients(args), "infer_from": known[:1] if few else known, **options},
        )

    def _gradients(self, args: Mapping[str, Any]) -> dict[str, Any]:
        wanted = [
            k
            for k, a in args.items()
            if self.is_float and (not isinstance(a, Array) or not a.dtype or a.dtype.startswith("float"))
        ]
        if len(wanted) > 1 and self.maybe(0.2):
            wanted = self.rng.sample(wanted, self.whole(1, len(wanted)))
        add = self.maybe(0.15) and not self.op.is_loss and self.name not in NO_ADD
        return {"grads": wanted, "grad_req": "add" if add else "write", "head": "none" if self.op.is_loss else "fill"}


def _choices(spec: Spec) -> tuple[Any, ...]:
    """The values of a flag or an enumeration; () for other types."""
    if spec.type is bool:
        return True, False
    options = [spec.type, *typing.get_args(spec.type)] if typing.get_origin(spec.type) is not Literal else [spec.type]
    for option in options:
        if typing.get_origin(option) is Literal:
            return typing.get_args(option)
        if option is bool:
            return True, False
    return ()
