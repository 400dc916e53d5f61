"""The command line: exit codes, streams, formats, and what each command says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import symjax as mx
from symjax.cli import COMMANDS, main
from symjax.cli import demo as demo_command

ROOT = Path(__file__).resolve().parents[1]
PREFIX = str(ROOT / "symjax" / "data" / "digits")
SYMBOL = f"{PREFIX}-symbol.json"
IMAGE = "data=1,1,8,8"


def symjax(*args: str, code: int = 0, stdin: str | bytes | None = None, **env: str) -> Result:
    result = CliRunner().invoke(main, list(args), input=stdin, env={"NO_COLOR": "1", **env})
    assert result.exit_code == code, (result.exit_code, result.stdout[-2000:], result.stderr[-2000:])
    assert "Traceback" not in result.stdout + result.stderr
    return result


def as_json(*args: str, code: int = 0, **kwargs: Any) -> Any:
    return json.loads(symjax(*args, "--format", "json", code=code, **kwargs).stdout)


@pytest.fixture
def digits() -> dict[str, np.ndarray]:
    with np.load(f"{PREFIX}.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.fixture
def feed(digits: dict[str, np.ndarray], tmp_path: Path) -> str:
    path = tmp_path / "images.npz"
    np.savez(path, data=digits["test_images"][:4, None].astype(np.float32))
    return str(path)


@pytest.fixture
def unknown(tmp_path: Path) -> str:
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "Convolutionn", "name": "c1", "attrs": {"kernel": "(3, 3)"}, "inputs": [[0, 0, 0]]},
        {"op": "Convolutionn", "name": "c2", "inputs": [[1, 1, 0]]},
        {"op": "relu", "name": "r", "inputs": [[2, 0, 0]]},
    ]
    path = tmp_path / "odd-symbol.json"
    path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[3, 0, 0]]}))
    return str(path)


# ---- the command itself


def test_help_loads_neither_jax_nor_numpy() -> None:
    code = (
        "import sys, runpy\nsys.argv = ['symjax', '--help']\n"
        "try: runpy.run_module('symjax', run_name='__main__')\n"
        "except SystemExit as e: assert not e.code\n"
        "loaded = {m.split('.')[0] for m in sys.modules} & {'jax', 'jaxlib', 'numpy', 'flax', 'matplotlib'}\n"
        "print('LOADED', sorted(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("LOADED []"), done.stdout
    for name, text in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", done.stdout, flags=re.MULTILINE)


def test_help_is_fast() -> None:
    code = "import resource, sys\nfrom symjax.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stderr.split()[-1]) < 0.3  # processor time: other tests run at the same time


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    text = symjax(name, "--help").stdout
    assert text.startswith(f"Usage: main {name}")
    assert "--traceback" in text


def test_version() -> None:
    assert mx.__version__ in symjax("--version").stdout


def test_python_m_symjax_and_interrupt() -> None:
    code = "import symjax.cli.doctor as d, symjax._environment as e\ndef f(): raise KeyboardInterrupt\n"
    code += "e.environment_info = f\nfrom symjax.cli import main\nmain(['doctor'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stdout.strip() == ""
    assert "Interrupted" in done.stderr and "Traceback" not in done.stderr


def test_completion_is_there() -> None:
    env = {**os.environ, "_MAIN_COMPLETE": "bash_complete", "COMP_WORDS": "symjax s", "COMP_CWORD": "1"}
    code = "from symjax.cli import main\nmain(prog_name='main')"
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert sorted(line.split(",")[1] for line in done.stdout.split()) == ["show", "summary"]


# ---- wrong calls and files


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["frobnicate"], "No such command"),
        (["check"], "Missing argument"),
        (["check", "no-such-model"], "neither a file 'no-such-model' nor a checkpoint"),
        (["check", PREFIX, "99"], "digits-0010.params"),
        (["check", PREFIX, "10", "--params", "x"], "give one"),
        (["check", PREFIX, "10", "--epoch", "11"], "given twice"),
        (["check", f"{PREFIX}-0010.params"], "name it with --params"),
        (["check", SYMBOL, "--params", "nowhere.params"], "nowhere.params"),
        (["check", SYMBOL, "--params", SYMBOL], "JSON"),
        (["infer", SYMBOL, "--shape", "data"], "is not a shape"),
        (["infer", SYMBOL, "--shape", "dta=1,1,8,8"], "Did you mean 'data'"),
        (["infer", SYMBOL, "--dtype", "data=float31"], "float31"),
        (["summary", SYMBOL, "--format", "svg"], "svg"),
        (["run", SYMBOL, "--input", "nowhere.npz"], "nowhere.npz"),
        (["run", PREFIX, "10"], "no value for the input data"),
        (["run", SYMBOL, "--fill", "data=0", "--shape", IMAGE], "no --params given for the parameters conv1_weight"),
        (["run", PREFIX, "10", "--output", "x.txt"], ".npz or .npy"),
        (["run", PREFIX, "10", "--mean", "a"], "not a number"),
    ],
)
def test_wrong_calls_and_unreadable_files_are_code_2(args: list[str], said: str) -> None:
    result = symjax(*args, code=2)
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"nodes": 3}', '{"nodes": [{}], "heads": []}', "\ufeff[1]"])
@pytest.mark.parametrize("command", ["check", "summary", "show"])
def test_a_file_that_is_no_symbol_is_code_2(command: str, text: str) -> None:
    result = symjax(command, "-", stdin=text, code=2)
    assert "standard input" in result.stderr


def test_a_loop_without_a_body_is_code_2() -> None:
    attrs = {"num_args": "2", "num_outputs": "1", "num_out_data": "1", "in_state_locs": "()", "in_data_locs": "(0,)"}
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "_foreach", "name": "loop", "attrs": {**attrs, "remain_locs": "()"}, "inputs": [[0, 0, 0]]},
    ]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    assert "node 'loop' (_foreach)" in symjax("summary", "-", stdin=text, code=2).stderr


def test_bytes_that_are_no_text_are_code_2() -> None:
    assert "not UTF-8" in symjax("check", "-", stdin=b"\xff\xfe\x00", code=2).stderr


def test_traceback_on_demand() -> None:
    result = CliRunner().invoke(main, ["check", "-", "--traceback"], input="{")
    assert type(result.exception).__name__ == "GraphFormatError"


def test_quiet_and_verbose(feed: str) -> None:
    assert "parameters: " in symjax("run", PREFIX, "--input", feed).stderr
    assert symjax("run", PREFIX, "--input", feed, "-q").stderr == ""
    assert "compiled and ran in" in symjax("run", PREFIX, "--input", feed, "-v").stderr


def test_colour() -> None:
    def out(*more: str, no_color: str = "") -> str:
        return CliRunner().invoke(main, ["check", SYMBOL, *more], env={"NO_COLOR": no_color}, color=True).stdout

    assert "\x1b[" in out("--color", "always", no_color="1")
    assert "\x1b[" not in out() + out("--color", "never")


# ---- check


def test_check_of_a_good_model() -> None:
    found = as_json("check", PREFIX, "10")
    assert found["ok"] is True and found["problems"] == [] and found["nodes"] == 14
    assert found["params"] == {"file": f"{PREFIX}-0010.params", "missing": [], "unexpected": [], "wrong_kind": []}
    rows = {row["name"]: row for row in found["operators"]}
    expected = {"name": "Convolution", "count": 2, "first_node": "conv1", "supported": True, "nearest": None}
    assert rows["Convolution"] == expected
    assert "good" in symjax("check", SYMBOL).stdout


def test_check_from_standard_input() -> None:
    assert as_json("check", "-", "--shape", IMAGE, stdin=Path(SYMBOL).read_text())["ok"] is True


def test_check_of_unknown_operators(unknown: str) -> None:
    found = as_json("check", unknown, code=1)
    row = found["operators"][0]
    assert row == {"name": "Convolutionn", "count": 2, "first_node": "c1", "supported": False, "nearest": "Convolution"}
    assert found["ok"] is False
    text = symjax("check", unknown, code=1)
    assert re.search(r"Convolutionn +2 +NO +Convolution +c1", text.stdout)
    assert "1 of 2 operators are not supported" in text.stdout


def test_check_names_wrong_parameters_of_an_operator() -> None:
    text = Path(SYMBOL).read_text().replace('"kernel": "(3, 3)"', '"kernle": "(3, 3)"')
    found = as_json("check", "-", stdin=text, code=1)
    assert any("kernle" in p and "Did you mean 'kernel'" in p for p in found["problems"])
    assert len(found["operators"]) == 9


def test_check_reports_parameters_that_do_not_fit(tmp_path: Path) -> None:
    from symjax.serialization import read_params, write_params

    records, names = read_params(f"{PREFIX}-0010.params")
    arrays: dict[str, Any] = dict(zip(names, records, strict=True))
    del arrays["arg:fc2_bias"]
    arrays["arg:fc9_bias"] = np.zeros(3, np.float32)
    arrays["arg:bn1_moving_var"] = arrays.pop("aux:bn1_moving_var")
    arrays["arg:fc2_weight"] = np.zeros((10, 47), np.float32)
    path = tmp_path / "wrong.params"
    write_params(path, list(arrays.values()), list(arrays))
    found = as_json("check", SYMBOL, "--params", str(path), "--shape", IMAGE, code=1)
    assert found["params"]["missing"] == ["fc2_bias"]
    assert found["params"]["unexpected"] == ["fc9_bias"]
    assert found["params"]["wrong_kind"] == ["bn1_moving_var"]
    assert any("fc2_weight" in p and "(10, 47)" in p for p in found["problems"])


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    nodes = [
        {"op": "null", "name": "x\x1b[2J", "inputs": []},
        {"op": "relu", "name": "\x1b]0;r\x07", "inputs": [[0, 0, 0]]},
    ]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    for command in ("check", "summary", "show"):
        assert "\x1b" not in symjax(command, "-", stdin=text).stdout


# ---- summary, infer


def test_summary_counts_as_the_file_does() -> None:
    found = as_json("summary", PREFIX, "10", "--shape", IMAGE)
    records = {k: v.shape for k, v in mx.nd.load(f"{PREFIX}-0010.params").items()}
    total = sum(int(np.prod(s)) for s in records.values())
    aux = sum(int(np.prod(s)) for k, s in records.items() if k.startswith("aux:"))
    assert found["totals"] == {"parameters": total, "auxiliary": aux, "bytes": 4 * total, "of_unknown_shape": 0}
    rows = {row["name"]: row for row in found["nodes"]}
    assert rows["conv2"]["shapes"] == [[1, 32, 8, 8]] and rows["conv2"]["parameters"] == 32 * 16 * 9
    assert rows["conv2"]["inputs"] == ["relu1"] and rows["data"]["operator"] is None
    text = symjax("summary", PREFIX, "10", "--shape", IMAGE).stdout
    assert re.search(r"^conv2 +Convolution +1×32×8×8 +float32 +4,608$", text, flags=re.MULTILINE)
    assert "30,058 parameters" in text


def test_summary_without_shapes() -> None:
    text = symjax("summary", SYMBOL).stdout
    assert re.search(r"^conv1 +Convolution +\? +float32 +\?$", text, flags=re.MULTILINE)
    assert "give --shape or --params" in text


def test_summary_opens_unknown_operators(unknown: str) -> None:
    assert re.search(r"^c1 +Convolutionn +\?, \?", symjax("summary", unknown).stdout, flags=re.MULTILINE)


def test_infer_agrees_with_the_symbol() -> None:
    found = as_json("infer", SYMBOL, "--shape", "data=5,1,8,8", "--dtype", "data=float16")
    net = mx.sym.load(SYMBOL)
    args, outs, aux = net.infer_shape(data=(5, 1, 8, 8))
    assert [(r["name"], tuple(r["shape"])) for r in found["arguments"]] == list(
        zip(net.list_arguments(), args, strict=True)
    )
    assert [tuple(r["shape"]) for r in found["outputs"]] == outs
    assert [tuple(r["shape"]) for r in found["auxiliary_states"]] == aux
    assert found["complete"] is True and found["outputs"][0]["dtype"] == "float16"


def test_infer_says_what_stays_open() -> None:
    result = symjax("infer", SYMBOL, code=1)
    assert "cannot be decided" in result.stderr and "--shape" in result.stderr
    assert re.search(r"^argument +data +\? ", result.stdout, flags=re.MULTILINE)


def test_infer_of_contradicting_shapes() -> None:
    result = symjax("infer", PREFIX, "10", "--shape", "data=1,3,8,8", code=1)
    assert "conv1" in result.stderr and "(16, 1, 3, 3)" in result.stderr


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    result = symjax("infer", SYMBOL, "--shape", IMAGE, "--format", "json", "-o", str(path))
    assert result.stdout == "" and json.loads(path.read_text())["complete"] is True


# ---- run


def test_run_gives_what_mxnet_gave(feed: str, digits: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    result = symjax("run", PREFIX, "10", "--input", feed, "-o", str(path))
    with np.load(path) as file:
        np.testing.assert_allclose(file["softmax_output"], digits["test_probabilities"][:4], rtol=1e-4, atol=1e-5)
    best = digits["test_probabilities"][:4].argmax(1)
    assert re.findall(r"^softmax_output\[\d\]: (\d)", result.stdout, flags=re.MULTILINE) == [str(b) for b in best]
    assert "saved softmax_output" in result.stderr


def test_run_with_class_names_as_json(feed: str, digits: dict[str, np.ndarray], tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("zero one two three four five six seven eight nine".replace(" ", "\n"))
    (out,) = as_json("run", PREFIX, "10", "--input", feed, "--labels", str(names), "--top", "2")["outputs"]
    assert (out["shape"], out["dtype"], out["not_finite"]) == ([4, 10], "float32", 0)
    first = out["top"][0][0]
    assert len(out["top"]) == 4 and len(out["top"][0]) == 2
    assert first["label"] == names.read_text().split()[digits["test_probabilities"][0].argmax()]
    assert first["score"] == pytest.approx(float(digits["test_probabilities"][0].max()), rel=1e-4)


def test_run_on_npy_and_images(digits: dict[str, np.ndarray], tmp_path: Path) -> None:
    from PIL import Image

    array, paths = digits["test_images"][:2], []
    np.save(tmp_path / "x.npy", array[:, None])
    for i, pixels in enumerate(array):
        paths += ["--input", str(tmp_path / f"{i}.png")]
        Image.fromarray(pixels * 10).save(paths[-1])
    for given in (["--input", str(tmp_path / "x.npy")], [*paths, "--scale", "0.1"]):
        target = tmp_path / "y.npy"
        symjax("run", PREFIX, "10", *given, "-o", str(target))
        np.testing.assert_allclose(np.load(target), digits["test_probabilities"][:2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("without_opencv", [False, True])
def test_images_are_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_opencv: bool) -> None:
    from PIL import Image

    from symjax.cli._images import Preprocessing, load_image

    if without_opencv:
        monkeypatch.setitem(sys.modules, "cv2", None)
    path = tmp_path / "red.png"
    Image.fromarray(np.full((6, 4, 3), (255, 128, 0), np.uint8)).save(path)
    how = Preprocessing(size=(2, 3), scale=1 / 255, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    got = load_image(str(path), how)
    assert got.shape == (1, 3, 2, 3) and got.dtype == np.float32
    np.testing.assert_allclose(got[0, :, 0, 0], [1, 128 / 127.5 - 1, -1], atol=1e-6)
    bgr = load_image(str(path), Preprocessing(layout="NHWC", bgr=True))
    assert bgr.shape == (1, 6, 4, 3) and bgr[0, 0, 0].tolist() == [0, 128, 255]


def test_run_refuses_pickles_and_misshapen_inputs(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    symjax("run", PREFIX, "10", "--input", str(tmp_path / "objects.npy"), code=2)
    np.save(tmp_path / "rgb.npy", np.zeros((1, 3, 8, 8)))
    assert "conv1" in symjax("run", PREFIX, "10", "--input", str(tmp_path / "rgb.npy"), code=1).stderr


# ---- ops, show, doctor


def test_ops_lists_and_explains() -> None:
    from symjax.lowering import registry

    assert {row["name"] for row in as_json("ops")} == {op.name for op in registry.all_ops()}
    assert all("conv" in (row["name"] + str(row["aliases"])).lower() for row in as_json("ops", "CONV"))
    one = as_json("ops", "Softmax")
    assert one["name"] == "SoftmaxOutput" and one["inputs"] == ["data", "label"] and one["loss"] is True
    scale = next(p for p in one["parameters"] if p["name"] == "grad_scale")
    assert (scale["type"], scale["default"], scale["required"]) == ("float", "1.0", False) and scale["doc"]
    text = symjax("ops", "Convolution").stdout
    assert "kernel: Shape(tuple), required" in text and "mx.sym.Convolution" in text
    assert "Did you mean 'Convolution'" in symjax("ops", "Convolutoin", code=1).stderr


def test_show_formats(tmp_path: Path, unknown: str) -> None:
    assert "conv1 = Convolution(_divscalar0, conv1_weight, kernel=(3, 3)" in symjax("show", SYMBOL).stdout
    svg = symjax("show", PREFIX, "10", "--shape", IMAGE, "--format", "svg").stdout
    assert svg.startswith("<svg ") and "1×32×8×8" in svg
    assert symjax("show", SYMBOL, "--format", "mermaid").stdout.startswith("flowchart TD\n")
    assert symjax("show", SYMBOL, "--format", "json").stdout.strip() == mx.sym.load(SYMBOL).tojson()
    symjax("show", SYMBOL, "-o", str(tmp_path / "net.dot"))
    assert (tmp_path / "net.dot").read_text().startswith("digraph symbol {")
    assert 'class="unknown"' in symjax("show", unknown, "--format", "svg").stdout


def test_mermaid_and_dot_escape_names() -> None:
    nodes = [{"op": "null", "name": 'a"]; evil', "inputs": []}, {"op": "relu", "name": 'b"\\', "inputs": [[0, 0, 0]]}]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]})
    mermaid = symjax("show", "-", "--format", "mermaid", stdin=text).stdout
    assert 'n0(["a#34;#93;#59; evil"])' in mermaid
    assert 'label="relu\\nb\\"\\\\"' in symjax("show", "-", "--format", "dot", stdin=text).stdout


def test_doctor_tells_versions_and_keeps_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_API_TOKEN", "hunter2")
    monkeypatch.setenv("MXNET_ENGINE_TYPE", "NaiveEngine")
    found = as_json("doctor")
    assert found["symjax"]["version"] == mx.__version__ and found["packages"]["jax"]
    assert found["jax"]["compiles and runs"].startswith("yes") and found["jax"]["devices"]
    assert found["variables"]["MXNET_ENGINE_TYPE"] == "NaiveEngine" and "hunter2" not in str(found)
    assert "devices: " in symjax("doctor").stdout


def test_print_environment_info(capsys: pytest.CaptureFixture[str]) -> None:
    mx.print_environment_info()
    assert capsys.readouterr().out.startswith(f"symjax:\n  version: {mx.__version__}\n")


# ---- demo


def test_demo(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    result = symjax("demo", "--epochs", "2", "--picture", str(path))
    assert "agrees" in result.stdout and "DIFFERS" not in result.stdout
    before, after = (
        tuple(float(v) for v in re.findall(r"([\d.]+)%", line))
        for line in result.stdout.splitlines()
        if line.startswith("accuracy")
    )
    assert before[0] > 97 and after[0] > 95 and after[1] > before[1] + 10
    assert "fine-tuning: 100%" in result.stderr and "fine-tuning" not in result.stdout
    assert path.read_bytes()[:4] == b"\x89PNG" and 20_000 < path.stat().st_size < 150_000


def test_demo_fails_when_outputs_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_command, "TOLERANCE", -1.0)
    monkeypatch.setattr(demo_command, "_fine_tune", lambda *_: ([2.0, 1.0], 1))
    result = symjax("demo", "-q", "--picture", str(tmp_path / "p.png"), code=1)
    assert "DIFFERS" in result.stdout and result.stderr == ""
