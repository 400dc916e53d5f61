"""Compare a result with MXNet's: every difference as a line of text, and the worst error in units of the tolerance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.parity.arrays import fill
from tests.parity.case import Case
from tests.parity.golden import Kept, keep, statistics, thin
from tests.parity.runner import Result

# dtype: (rtol, atol as a factor of the array's largest finite magnitude); whole numbers must be equal.
TOLERANCE = {"float64": (1e-7, 1e-9), "float32": (1e-4, 1e-5), "float16": (2e-3, 2e-3), "bfloat16": (1e-2, 1e-2)}
LEAST_SCALE = 1e-2  # so that rounding around an exact 0 is no difference


@dataclass
class Verdict:
    """What differs, and how near to the tolerance the rest is (1.0 = at it)."""

    problems: list[str] = field(default_factory=list)
    worst: float = 0.0

    def say(self, text: str) -> None:
        self.problems.append(text)


def compare(case: Case, golden: Result, got: Result) -> Verdict:
    """Names, inferred shapes and types, status and arrays of `got` against a loaded golden."""
    verdict = Verdict()
    failed = golden["status"] != "ok"
    if case.better and not failed:
        verdict.say("MXNet runs this case: better=True is wrong")
    _status(verdict, case, golden, got)
    for kind, names in golden["names"].items():
        if got["names"] and got["names"].get(kind) != names:
            verdict.say(f"{kind} are named {got['names'].get(kind)}, expected {names}")
    for i, (want, have) in enumerate(zip(golden["queries"], got["queries"], strict=False)):
        _query(verdict, case, _sound(case, golden["names"].get("args", []), i, want), have, failed)
    _arrays(verdict, case, golden, got)
    return verdict


def explain(case: Case, problems: list[str]) -> str:
    """The failure message: the case, its ops and parameters, then every difference."""
    return "\n  ".join([f"{case.id} [{case.dtype}]", case.json[:1200], *problems])


def _status(verdict: Verdict, case: Case, golden: Result, got: Result) -> None:
    error = got.get("error") or {}
    if golden["status"] == "ok" or case.better:
        if got["status"] != "ok":
            verdict.say(f"{got['stage']} raised {error.get('type')}: {error.get('text')}")
    elif got["status"] == "ok":
        theirs = (golden.get("error") or {}).get("text", "")
        verdict.say(f"must raise: MXNet {golden['status']} at {golden['stage'] or 'some stage'}: {theirs}")
    elif error:
        _clear(verdict, got["stage"], golden.get("error"), error)


def _clear(verdict: Verdict, where: str, want: dict[str, Any] | None, have: dict[str, Any]) -> None:
    if not have["mxnet"] and (want is None or want["mxnet"] or want["type"] != have["type"]):
        verdict.say(f"{where} raised {have['type']}, which is no MXNetError: {have['text']}")


def _sound(case: Case, names: list[str], i: int, answer: Result) -> Result:
    """The answer i with the shapes that arguments were given, where MXNet's inference claims others."""
    known = set(case.infer_from or [*case.inputs][:1]) if i == 0 else set(names)
    if i not in (0, 2) or not answer.get("answer") or answer["answer"][0] is None:
        return answer
    shapes, *rest = answer["answer"]
    given = [case.inputs[n].shape if n in known else None for n in names]
    if all(not s or g is None or _fits(s, g) for s, g in zip(shapes, given, strict=True)):
        return answer
    right = [s if g is None else list(g) for s, g in zip(shapes, given, strict=True)]
    return {**answer, "answer": [right, *rest]}


def _query(verdict: Verdict, case: Case, want: Result, have: Result, failed: bool) -> None:
    where = f"infer_{want['kind']}"
    if "error" in want:
        # MXNet's type inference refuses some graphs whose types are not all given; leaving them unknown is as good.
        if case.better or (want["kind"] == "type" and not failed and "answer" in have):
            return
        if "error" not in have:
            verdict.say(f"{where} gave {have['answer']}, must raise: {want['error']['text']}")
        else:
            _clear(verdict, where, want["error"], have["error"])
    elif "error" in have and failed and not case.better:
        _clear(verdict, where, None, have["error"])  # what MXNet finds when it runs may be found here
    elif "error" in have:
        verdict.say(f"{where} raised {have['error']['type']}: {have['error']['text']}, expected {want['answer']}")
    elif want["answer"] != have["answer"] and not (case.infers_more and _refines(want["answer"], have["answer"])):
        verdict.say(f"{where} gave {have['answer']}, expected {want['answer']}")


def _refines(want: list[Any], have: list[Any]) -> bool:
    """Whether `have` keeps all that `want` knows: None, [], 0 and -1 are unknown."""
    if all(part is None for part in want):
        return all(part is not None for part in have)
    return all(not w or _fits(w, h)
               for mine, yours in zip(want, have, strict=True) for w, h in zip(mine, yours, strict=True))


def _fits(partial: Any, shape: Any) -> bool:
    return len(partial) == len(shape) and all(a in (0, -1, b) for a, b in zip(partial, shape, strict=True))


def _arrays(verdict: Verdict, case: Case, golden: Result, got: Result) -> None:
    want: dict[str, Kept] = dict(golden["arrays"])
    loose = {*golden.get("unstable", ()), *got.get("unstable", ())} | (set(want) if case.random else set())
    if case.expected is not None:
        # MXNet's own numbers are at fault: the formula stands in, with the dtype of what it replaces, if there is one.
        for key, value in case.expected(inputs_of(case, got)).items():
            value = np.asarray(value)
            own = case.dtype if value.dtype.name in ("float64", "int64") else value.dtype.name
            dtype = want[key].dtype if key in want else own
            want[key] = keep(value.astype(dtype))
            loose.discard(key)
    for key, kept in want.items():
        if key in got["arrays"]:
            _array(verdict, case, key, kept, np.asarray(got["arrays"][key]), key in loose)
        elif got["status"] == "ok":
            verdict.say(f"{key} is missing")
    if golden["status"] == "ok":
        for key in got["arrays"].keys() - want.keys():
            verdict.say(f"{key} is not among MXNet's results")


def inputs_of(case: Case, got: Result) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that a case was run with (shapes from inference where the recipe has none)."""
    shapes: dict[str, Any] = {}
    for query in got["queries"]:
        if query["kind"] == "shape" and query.get("answer") and query["answer"][0]:
            args, _, aux = query["answer"]
            shapes = dict(zip([*got["names"]["args"], *got["names"]["aux"]], [*args, *aux], strict=True))
    return {k: fill(case.id, k, a, case.dtype, shapes.get(k)) for k, a in case.inputs.items()}


def _array(verdict: Verdict, case: Case, key: str, want: Kept, have: np.ndarray[Any, Any], loose: bool) -> None:
    if have.dtype.name != want.dtype:
        verdict.say(f"{key} has dtype {have.dtype.name}, expected {want.dtype}")
        return
    if have.shape != want.shape:
        verdict.say(f"{key} has shape {have.shape}, expected {want.shape}")
        return
    if loose or not have.size:
        return
    _values(verdict, case, key, want, thin(have, want.stride))
    if want.stats:
        _statistics(verdict, case, key, want, statistics(have))


def tolerance(case: Case, dtype: str) -> tuple[float, float]:
    """(rtol, atol factor) of a case for a dtype."""
    rtol, atol = TOLERANCE.get(dtype, (0.0, 0.0))
    return case.rtol if case.rtol is not None else rtol, case.atol if case.atol is not None else atol


def _values(verdict: Verdict, case: Case, key: str, want: Kept, have: np.ndarray[Any, Any]) -> None:
    if want.dtype not in TOLERANCE and case.atol is None:
        wrong = np.flatnonzero(want.data != have)
        if wrong.size:
            verdict.worst = float("inf")
            verdict.say(f"{key}: {wrong.size} of {have.size} differ, {_element(want, have, int(wrong[0]))}")
        return
    x, y = have.astype("float64"), want.data.astype("float64")
    finite = np.isfinite(y)
    odd = np.flatnonzero(np.where(finite, ~np.isfinite(x), (x != y) & ~(np.isnan(x) & np.isnan(y))))
    if odd.size:
        verdict.worst = float("inf")
        verdict.say(f"{key}: nan or inf differ at {odd.size} of {x.size}, {_element(want, have, int(odd[0]))}")
        return
    if not finite.any():
        return
    rtol, atol = tolerance(case, want.dtype)
    x, y = np.where(finite, x, 0), np.where(finite, y, 0)
    scale = max(float(np.abs(y).max()), LEAST_SCALE)
    error = np.abs(x - y) / (rtol * np.abs(y) + atol * scale)
    worst = int(error.argmax())
    verdict.worst = max(verdict.worst, float(error[worst]))
    if error[worst] > 1:
        verdict.say(f"{key}: {int((error > 1).sum())} of {x.size} differ, worst {_element(want, have, worst)}, "
                    f"{error[worst]:.3g} times the tolerance (rtol {rtol:g}, atol {atol * scale:.2g})")  # fmt: skip


def _element(want: Kept, have: np.ndarray[Any, Any], at: int) -> str:
    place = tuple(int(i) for i in np.unravel_index(at * want.stride, want.shape)) if want.shape else ()
    return f"at {place}: {have[at]!s}, expected {want.data[at]!s}"


def _statistics(verdict: Verdict, case: Case, key: str, want: Kept, have: tuple[float, ...]) -> None:
    rtol, atol = tolerance(case, want.dtype)
    scale = max(abs(want.stats[2]), abs(want.stats[3]), LEAST_SCALE)
    if want.stats[4] != have[4] or any(
        abs(a - b) > (rtol + atol + 1e-8) * scale for a, b in zip(want.stats[:4], have[:4], strict=True)
    ):
        verdict.say(f"{key}: mean, mean magnitude, min, max, finite are {have}, expected {want.stats}")
