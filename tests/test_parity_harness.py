"""The parity harness itself: it must see what differs, and survive what kills MXNet."""

from __future__ import annotations

import copy
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.parity import arrays, golden, oracle
from tests.parity.case import Case, graph_case, graph_json, op_case
from tests.parity.compare import compare
from tests.parity.record import missing
from tests.parity.runner import Result, run_case

CASE = op_case("exp", {"data": (2, 3)})


def result(case: Case = CASE, **changes: object) -> Result:
    names = {"args": ["data"], "aux": [], "outputs": ["op_output"]}
    data = arrays.fill(case.id, "data", case.inputs["data"], "float32")
    query = {"kind": "shape", "answer": [[[2, 3]], [[2, 3]], []]}
    found = {"out0": np.exp(data), "train0": np.exp(data), "grad:data": 2 * np.exp(data)}
    return {"status": "ok", "stage": "", "names": names, "queries": [query], "arrays": found, "unstable": [], **changes}


def problems(got: Result, want: Result | None = None, case: Case = CASE) -> list[str]:
    return compare(case, golden.thinned(copy.deepcopy(want or result())), got).problems


def error(kind: str, mxnet: bool) -> Result:
    return result(status="error", stage="forward", error={"type": kind, "mxnet": mxnet, "text": "no"}, arrays={})


def test_equal_results_pass() -> None:
    assert problems(result()) == []


def with_array(key: str, change: object) -> Result:
    got = result()
    got["arrays"] = {**got["arrays"], key: change(got["arrays"][key].copy())}  # type: ignore[operator]
    return got


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda a: a * np.float32(1.001), "times the tolerance"),
        (lambda a: a.astype("float64"), "dtype float64"),
        (lambda a: a.reshape(3, 2), "shape (3, 2)"),
        (lambda a: np.where(a == a.max(), np.float32("nan"), a), "nan or inf"),
    ],
    ids=["value", "dtype", "shape", "nan"],
)
@pytest.mark.parametrize("key", ["out0", "train0", "grad:data"])
def test_a_difference_is_seen(key: str, change: object, text: str) -> None:
    (found,) = problems(with_array(key, change))
    assert found.startswith(key) and text in found


def test_missing_and_extra_arrays_are_seen() -> None:
    got = result()
    got["arrays"]["grad:other"] = got["arrays"].pop("grad:data")
    assert problems(got) == ["grad:data is missing", "grad:other is not among MXNet's results"]


def test_names_and_queries_are_seen() -> None:
    got = result(names={"args": ["x"], "aux": [], "outputs": ["op_output"]},
                 queries=[{"kind": "shape", "answer": [[[3, 2]], [[2, 3]], []]}])  # fmt: skip
    assert len(problems(got)) == 2


def test_errors_must_match() -> None:
    theirs, internal = error("MXNetError", True), error("TypeError", False)
    assert problems(theirs, theirs) == []
    assert "must raise" in problems(result(), theirs)[0]
    assert "no MXNetError" in problems(internal, theirs)[0]
    assert problems(internal, internal) == []
    assert "raised MXNetError" in problems(theirs, result())[0]


def test_inference_may_be_more_lenient_or_earlier() -> None:
    refused = {"type": "MXNetError", "mxnet": True, "text": "no"}
    unknown, raised = {"kind": "type", "answer": [None, None, None]}, {"kind": "type", "error": refused}
    assert problems(result(queries=[unknown]), result(queries=[raised])) == []
    shape = {"kind": "shape", "error": refused}
    assert "must raise" in problems(result(), result(queries=[shape]))[0]
    failed = error("MXNetError", True)
    assert problems({**failed, "queries": [shape]}, failed) == []
    assert "infer_shape raised" in problems(result(queries=[shape]), result())[0]


class Unwritten:
    """An implementation whose backward pass leaves the gradient alone."""

    def __init__(self) -> None:
        self.sym = self.nd = self.base = self
        self.MXNetError = ValueError
        self.aux_dict: dict[str, object] = {}

    def __getattr__(self, name: str) -> object:
        lists = {"list_arguments": ["data"], "list_auxiliary_states": [], "list_outputs": ["o"]}
        return lambda *a, **k: lists.get(name, self)

    def array(self, value: np.ndarray, dtype: object = None) -> object:
        return type("Array", (), {"asnumpy": lambda _: value, "shape": value.shape, "dtype": value.dtype})()

    def infer_shape(self, **known: object) -> object:
        return [[(2, 3)], [(2, 3)], []]

    infer_shape_partial = infer_shape

    def infer_type(self, **known: object) -> object:
        return [[np.float32], [np.float32], []]

    def forward(self, is_train: bool) -> object:
        return [self.array(np.zeros((2, 3), "float32"))]


def test_an_unwritten_gradient_counts_as_zero() -> None:
    got = run_case(Unwritten(), CASE)
    assert got["status"] == "ok" and not got["arrays"]["grad:data"].any()
    start = run_case(Unwritten(), op_case("exp", {"data": (2, 3)}, grad_req="add"))["arrays"]["grad:data"]
    assert start.any()


def test_better_than_mxnet() -> None:
    better = op_case("exp", {"data": (2, 3)}, better=True)
    assert problems(result(), error("MXNetError", True), better) == []
    assert "better=True is wrong" in problems(result(), result(), better)[0]
    assert "raised" in problems(error("MXNetError", True), error("MXNetError", True), better)[0]


def test_expected_replaces_a_fault() -> None:
    case = op_case("exp", {"data": (2, 3)}, differs="MXNet doubles it", expected=lambda a: {
        "grad:data": np.exp(a["data"])})  # fmt: skip
    right = result()
    right["arrays"]["grad:data"] = right["arrays"]["out0"]
    assert problems(right, result(), case) == []
    assert "grad:data" in problems(result(), result(), case)[0]
    with pytest.raises(ValueError, match="differs needs"):
        op_case("exp", {"data": (2, 3)}, differs="because")


def test_unstable_arrays_keep_their_form() -> None:
    want = result(unstable=["out0"])
    assert problems(with_array("out0", lambda a: a + 1), want) == []
    assert "shape" in problems(with_array("out0", lambda a: a[:1]), want)[0]


def test_integers_are_exact() -> None:
    want, got = result(), result()
    want["arrays"] = {"out0": np.array([2**53, 1])}
    got["arrays"] = {"out0": np.array([2**53 + 1, 1])}
    assert "1 of 2 differ" in problems(got, want)[0]


def test_goldens_round_trip_and_are_deterministic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    large = result()
    large["arrays"] = {"out0": np.arange(10_000, dtype="float32"), "train0": np.zeros((0, 3)), "out1": np.array(True)}
    cases = {"b": {"hash": "1", **golden.thinned(result())}, "a": {"hash": "2", **golden.thinned(large)}}
    golden.save("f", cases)
    first = [(tmp_path / n).read_bytes() for n in ("f.json", "f.npz")]
    loaded = golden.load("f")
    golden.save("f", dict(reversed(loaded.items())))
    assert first == [(tmp_path / n).read_bytes() for n in ("f.json", "f.npz")]
    assert compare(CASE, loaded["b"], result()).problems == []
    assert loaded["a"]["arrays"]["out0"].data.size == golden.LIMIT
    assert loaded["a"]["arrays"]["train0"].shape == (0, 3) and loaded["a"]["arrays"]["out1"].shape == ()
    changed = dict(large["arrays"], out0=large["arrays"]["out0"].copy())
    changed["out0"][1] = 1e6  # not one of the kept elements: the statistics tell
    assert "mean" in compare(CASE, loaded["a"], {**large, "arrays": changed}).problems[0]


def test_a_changed_case_is_missing() -> None:
    known = {CASE.id: {"hash": CASE.hash()}}
    assert missing([CASE], known) == []
    assert missing([op_case("exp", {"data": (3, 3)}, id="")], known) != []
    assert Case.from_spec(CASE.spec()) == CASE


def test_graph_json_chooses_outputs() -> None:
    text = graph_json([("x",), ("s", "split", {"num_outputs": 2}, ["x"]), ("y", "exp", {}, ["s:1"])], ["y", "s:0"])
    case = graph_case("g", text, {"x": (2, 4)})
    assert '"inputs": [[1, 1, 0]]' in case.json and '"heads": [[2, 0, 0], [1, 0, 0]]' in case.json
    assert case.grads == ("x",)


STUB = """#!{python}
import json, os, sys, time
source, sink = sys.argv[-2:]
empty = {{"stage": "", "names": {{}}, "queries": [], "arrays": {{}}, "unstable": []}}
with open(sink, "w", buffering=1) as out:
    for line in open(source):
        number, spec = json.loads(line)
        out.write(json.dumps({{"start": number}}) + "\\n")
        if spec["id"].endswith("die"):
            os.abort()
        if spec["id"].endswith("hang"):
            time.sleep(60)
        status = "onednn" if os.environ["MXNET_MKLDNN_ENABLED"] == "1" else "ok"
        out.write(json.dumps({{"end": number, "result": {{"status": status, **empty}}}}) + "\\n")
"""


def test_crashes_and_hangs_cost_one_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "python"
    stub.write_text(STUB.format(python=sys.executable))
    stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SYMJAX_ORACLE_PYTHON", str(stub))
    monkeypatch.setattr(oracle, "CASE_SECONDS", 1.5)
    cases = [op_case("exp", {"data": (2,)}, id=i) for i in ("a", "die", "b", "hang", "c")]
    cases.append(op_case("exp", {"data": (2,)}, id="d", backend="onednn"))
    assert [r["status"] for r in oracle.run_oracle(cases)] == ["ok", "crashed", "ok", "timeout", "ok", "onednn"]


def test_without_an_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMJAX_ORACLE_PYTHON", str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match="make oracle"):
        oracle.run_oracle([CASE])
