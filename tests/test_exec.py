"""`symjax exec`: old programs run unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def execute(*args: str, cwd: Path, stdin: str | None = None, **variables: str) -> tuple[int, str, str]:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **variables}
    ended = subprocess.run([sys.executable, "-m", "symjax", "exec", *args], cwd=cwd, env=env, text=True, input=stdin,
                           capture_output=True, timeout=200)
    return ended.returncode, ended.stdout, ended.stderr


def script(folder: Path, text: str, name: str = "train.py") -> str:
    (folder / name).write_text(text)
    return name


TRAIN = """\
import argparse, sys, warnings, numpy as np
import mxnet as mx, symjax
import mxnet.ndarray as nd
from mxnet import sym, autograd
from mxnet.io import NDArrayIter
from mxnet.module import Module
import mxnet.symbol.contrib
from helper import classes

assert mx.__version__ == "1.9.1"
for path in ("module", "io", "kvstore", "ndarray", "symbol", "metric", "random", "autograd", "model", "rnn"):
    import importlib
    assert importlib.import_module("mxnet." + path) is importlib.import_module("symjax." + path), path
    assert getattr(mx, path) is getattr(symjax, path), path
assert nd is mx.nd and Module is mx.mod.Module is symjax.module.Module
mx.answer = 42
assert symjax.answer == 42
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("-q", action="store_true")
args = parser.parse_args()
if __name__ == "__main__":
    assert __file__ == sys.argv[0] == "train.py" and sys.modules["__main__"].classes == 2
    x = np.random.RandomState(0).normal(size=(64, 5))
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=classes), name="softmax")
    mod = Module(net)
    train = NDArrayIter(x, (x.sum(1) > 0).astype("float32"), 16)
    mod.fit(train, num_epoch=args.epochs, optimizer_params={"learning_rate": 0.5})
    assert args.q
    warnings.warn("as usual")
    print("accuracy", dict(mod.score(train, "acc"))["accuracy"] > 0.8)
"""


def test_a_training_script(tmp_path: Path) -> None:
    script(tmp_path, "classes = 2\n", "helper.py")
    code, out, err = execute(script(tmp_path, TRAIN), "--epochs", "5", "-q", cwd=tmp_path)
    assert (code, out) == (0, "accuracy True\n"), err
    assert "train.py:30: UserWarning: as usual" in err


def test_the_script_of_another_folder_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    script(tmp_path / "a", "x = 3", "beside.py")
    script(tmp_path / "a", "import beside; print(beside.x)")
    assert execute("a/train.py", cwd=tmp_path)[:2] == (0, "3\n")


def test_exit_codes_and_tracebacks(tmp_path: Path) -> None:
    assert execute(script(tmp_path, "import sys; sys.exit(7)"), cwd=tmp_path)[0] == 7
    text = "import mxnet as mx\n\ndef f():\n    mx.nd.ones(2) + mx.nd.ones(3)\n\nf()\n"
    code, out, err = execute(script(tmp_path, text), cwd=tmp_path)
    assert (code, out) == (1, "") and "Error" in err.splitlines()[-1]
    assert err.splitlines()[0] == "Traceback (most recent call last):"
    assert err.splitlines()[1].strip() == 'File "train.py", line 6, in <module>' and "cli" not in err
    code, _, err = execute(script(tmp_path, "def f(:\n"), cwd=tmp_path)
    assert code == 1 and "SyntaxError" in err and "Traceback" not in err
    code, _, err = execute(script(tmp_path, "raise KeyboardInterrupt"), cwd=tmp_path)
    assert code == 130 and err.rstrip().endswith("KeyboardInterrupt")
    code, _, err = execute("none.py", cwd=tmp_path)
    assert code == 2 and "can't open file 'none.py'" in err


def test_what_symjax_lacks(tmp_path: Path) -> None:
    for text, kind in (("import mxnet.gluon", "ModuleNotFoundError"),
                       ("from mxnet import gluon", "ModuleNotFoundError"),
                       ("from mxnet.gluon import nn", "ModuleNotFoundError"),
                       ("import mxnet as mx; mx.gluon", "AttributeError")):
        code, _, err = execute("-", cwd=tmp_path, stdin=text)
        assert code == 1 and f"{kind}: MXNet's mx.gluon is not supported" in err and "export" in err, err
    code, _, err = execute("-", cwd=tmp_path, stdin="import mxnet as mx; mx.nothing_of_the_kind")
    assert code == 1 and "has no attribute 'nothing_of_the_kind' (mxnet is symjax here" in err


def test_modules_folders_archives(tmp_path: Path) -> None:
    said = "import sys, mxnet; print(__name__, sys.argv[1:], mxnet.__version__)"
    (tmp_path / "pack").mkdir()
    for name in ("__init__.py", "__main__.py", "work.py"):
        script(tmp_path / "pack", "" if name == "__init__.py" else said, name)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as z:
        z.writestr("__main__.py", said)
    want = (0, "__main__ ['--m', '-h'] 1.9.1\n")
    for command in (("-m", "pack"), ("-m", "pack.work"), ("pack",), ("all.zip",)):
        assert execute(*command, "--m", "-h", cwd=tmp_path)[:2] == want, command
    code, _, err = execute("-m", "no_such_module", cwd=tmp_path)
    assert code == 1 and "No module named no_such_module" in err


def test_jax_does_not_write_into_the_log_of_the_program(tmp_path: Path) -> None:
    train = """import logging
logging.basicConfig(level=logging.DEBUG)
import mxnet as mx
logging.debug(mx.nd.ones((2,)).sum().asscalar())
"""
    assert execute("-", cwd=tmp_path, stdin=train)[::2] == (0, "DEBUG:root:2.0\n")
    asked = "import logging; logging.getLogger('jax').setLevel('DEBUG')\n"
    code, _, err = execute("-", cwd=tmp_path, stdin=asked + train)
    assert code == 0 and "DEBUG:jax." in err
    code, _, err = execute("-", cwd=tmp_path, stdin="import jax\n" + train)
    assert code == 0 and "DEBUG:jax." in err


def test_help(tmp_path: Path) -> None:
    code, out, _ = execute("--help", cwd=tmp_path)
    assert code == 0 and "import mxnet" in out and "-m" in out


def test_a_scheduler_and_a_server_end(tmp_path: Path) -> None:
    script(tmp_path, "print('trains')")
    variables: dict[str, Any] = {"DMLC_ROLE": "server", "DMLC_NUM_WORKER": "1", "DMLC_PS_ROOT_URI": "127.0.0.1",
                                 "DMLC_PS_ROOT_PORT": "1"}
    assert execute("train.py", cwd=tmp_path, **variables)[:2] == (0, "")
    assert execute("train.py", cwd=tmp_path, **{**variables, "DMLC_ROLE": "scheduler"})[:2] == (0, "")
