"""Orbax checkpoints: modules, executors and pure parameters, across meshes of eight virtual devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.interop import orbax
from tests.dist_worker import data, net

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning:orbax")
ROOT = Path(__file__).resolve().parents[1]


def trained(epochs: int, module: Any = None, begin: int = 0, optimizer: str = "adam", **fit: Any) -> Any:
    """Fits; a new module starts from parameters that do not depend on anything."""
    x, y = data()
    mod = mx.mod.Module(net()) if module is None else module
    rng = np.random.RandomState(5)
    first = {n: mx.nd.array(rng.normal(size=s)) for n, s in
             (("a_weight", (5, 6)), ("a_bias", (5,)), ("b_weight", (2, 5)), ("b_bias", (2,)))}
    mod.fit(mx.io.NDArrayIter(x, y, 16), num_epoch=begin + epochs, begin_epoch=begin, optimizer=optimizer,
            optimizer_params={"learning_rate": 0.05}, arg_params=None if mod.params_initialized else first, **fit)
    return mod


def bound(**kwargs: Any) -> Any:
    mod = mx.mod.Module(net(), **kwargs)
    mod.bind([("data", (16, 6))], [("softmax_label", (16,))])
    mod.init_params(mx.init.Zero())
    mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.05})
    return mod


def params(mod: Any) -> dict[str, Any]:
    return {k: v.asnumpy() for k, v in mod.get_params()[0].items()}


def same(got: dict[str, Any], want: dict[str, Any]) -> None:
    assert got.keys() == want.keys()
    for k in want:
        np.testing.assert_allclose(got[k], want[k], rtol=1e-5, atol=1e-6, err_msg=k)


@pytest.mark.filterwarnings("ignore:Parameters already initialized", "ignore:optimizer already")
def test_training_goes_on_where_it_stopped(tmp_path: Path) -> None:
    straight = trained(4)
    half = trained(2, epoch_end_callback=None)
    orbax.save(tmp_path / "c", half)
    again = bound()
    orbax.restore(tmp_path / "c", again)
    same(params(again), params(half))
    assert again._optimizer.num_update == half._optimizer.num_update == 8
    same(params(trained(2, again, begin=2)), params(straight))


def test_a_callback_keeps_the_latest(tmp_path: Path) -> None:
    mod = mx.mod.Module(net())
    assert orbax.latest(tmp_path / "run") is None
    trained(4, mod, epoch_end_callback=orbax.module_checkpoint(mod, tmp_path / "run", keep=2))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["0003", "0004"]
    (tmp_path / "run" / "0005.orbax-checkpoint-tmp").mkdir()  # what a killed program leaves
    path, epoch = orbax.latest(tmp_path / "run") or ("", 0)
    assert epoch == 4
    again = bound()
    orbax.restore(path, again)
    same(params(again), params(mod))


KILLED = """
import os, signal, sys, threading
from symjax.interop import orbax
from tests.test_orbax import trained
module = trained(1)
keep = orbax.module_checkpoint(module, sys.argv[1], keep=3)
for epoch in range(1000):
    if epoch == 4:  # nothing is done but saving, so that this ends one in its midst
        threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    keep(epoch, None, None, None)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize("seconds", ["0.005", "0.03"])
def test_a_save_that_is_killed_leaves_the_last_whole(tmp_path: Path, seconds: str) -> None:
    folder = tmp_path / "run"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", KILLED, str(folder), seconds], cwd=ROOT, env=env, capture_output=True)
    assert run.returncode == -signal.SIGKILL, run.stderr[-2000:]
    path, epoch = orbax.latest(folder) or ("", 0)
    assert epoch >= 4
    again = bound()
    orbax.restore(path, again)
    assert again._optimizer.num_update == 4 and all(np.isfinite(v).all() for v in params(again).values())
    keep = orbax.module_checkpoint(again, folder, keep=2)  # what is left of the save that was killed is in nobody's way
    keep(epoch, None, None, None)
    assert orbax.latest(folder) == (str(folder / f"{epoch + 1:04d}"), epoch + 1)


def test_an_executor(tmp_path: Path) -> None:
    ex = net().simple_bind(mx.cpu(), data=(2, 6))
    for i, a in enumerate(ex.arg_arrays):
        a[:] = i + 1
    orbax.save(tmp_path / "c", ex)
    other = net().simple_bind(mx.cpu(), data=(2, 6))
    orbax.restore(tmp_path / "c", other)
    for n, a in ex.arg_dict.items():
        np.testing.assert_array_equal(other.arg_dict[n].asnumpy(), a.asnumpy())


def test_pure_parameters_with_states_of_every_kind(tmp_path: Path) -> None:
    symbol = mx.sym.BatchNorm(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="a/b.c"), name="bn")
    _, args, aux = mx.lower(symbol, data=(2, 4))
    args: Any = {k: v + 1 for k, v in args.items()}
    args["rows"] = mx.nd.array(np.eye(4)[:, :2]).tostype("row_sparse")
    args["csr"] = mx.nd.array(np.eye(4)[:, :2]).tostype("csr")
    args["none"] = np.zeros((0, 3), "float16")
    args["wide"] = np.arange(3, dtype="int64") + 2**40
    states = {"mu": [args["a/b.c_weight"] * 2], "count": np.int32(3)}
    orbax.save(tmp_path / "c", args, aux, states=states, symbol=symbol)
    found = orbax.load(tmp_path / "c", states=states)
    assert found.symbol is not None and found.symbol.tojson() == symbol.tojson()
    assert found.params.keys() == args.keys() and found.aux.keys() == aux.keys()
    np.testing.assert_array_equal(found.params["a/b.c_weight"], args["a/b.c_weight"])
    for kind in ("rows", "csr"):
        np.testing.assert_array_equal(found.params[kind].todense(), np.eye(4)[:, :2])
    assert found.params["none"].shape == (0, 3) and found.params["none"].dtype == np.float16
    assert found.params["wide"].dtype == np.int64 and int(found.params["wide"][0]) == 2**40
    np.testing.assert_array_equal(found.states["mu"][0], args["a/b.c_weight"] * 2)
    assert int(found.states["count"]) == 3
    assert orbax.load(tmp_path / "c").states is None


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orbax.save(tmp_path / "c", {"w": np.ones(3, "float32")})
    with pytest.raises(FileExistsError, match="is there already"):
        orbax.save(tmp_path / "c", {})
    with pytest.raises(FileNotFoundError, match="no checkpoint folder"):
        orbax.load(tmp_path / "d")
    (tmp_path / "e").mkdir()
    with pytest.raises(mx.MXNetError, match="no checkpoint that"):
        orbax.load(tmp_path / "e")
    with pytest.raises(mx.MXNetError, match=r"arg:a_weight is not in it.*arg:b_bias is not in it"):
        orbax.restore(tmp_path / "c", bound())
    with pytest.raises(TypeError, match="takes a Module, an Executor or arrays"):
        orbax.save(tmp_path / "f", 3)
    with pytest.raises(mx.MXNetError, match=r"0 arrays of states, but the tree given has 1"):
        orbax.load(tmp_path / "c", states=[1])
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with pytest.raises(ImportError, match=r"pip install orbax-checkpoint.*save_checkpoint"):
        orbax.save(tmp_path / "g", {})


MESHES = """
import sys
from pathlib import Path
import jax, numpy as np
from jax.sharding import Mesh
import symjax as mx
from symjax.interop import orbax

assert len(jax.devices()) == 8
w = mx.sym.Variable("w", __sharding__="model, None")
out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), w, num_hidden=8, name="fc"), name="softmax")
rng = np.random.RandomState(0)
x, y = rng.normal(size=(32, 6)).astype("float32"), rng.randint(0, 8, 32).astype("float32")
first = {"w": mx.nd.array(rng.normal(size=(8, 6))), "fc_bias": mx.nd.zeros(8)}

def mesh(rows, columns):
    return Mesh(np.array(jax.devices()[:rows * columns]).reshape(rows, columns), ("data", "model"))

def fit(context, epochs, begin=0, path=None):
    mod = mx.mod.Module(out, context=context)
    train = mx.io.NDArrayIter(x, y, 16)
    mod.bind(train.provide_data, train.provide_label)
    mod.init_params(arg_params=first)
    mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1})
    if path:
        orbax.restore(path, mod)
    for _ in range(epochs):
        train.reset()
        for batch in train:
            mod.forward_backward(batch)
            mod.update()
    return mod

def values(mod):
    return {k: v.asnumpy() for k, v in mod.get_params()[0].items()}

folder = Path(sys.argv[1])
want = values(fit(mx.cpu(0), 4))
half = fit(mesh(2, 4), 2)
held = half._exec_group.execs[0].arg_dict["w"]._data
assert len({str(s.index) for s in held.addressable_shards}) == 4, held.sharding
orbax.save(folder / "c", half)
for context in (mesh(4, 2), mesh(2, 4), mx.cpu(3), mesh(8, 1)):
    mod = fit(context, 2, 2, folder / "c")
    for k, v in values(mod).items():
        np.testing.assert_allclose(v, want[k], rtol=1e-4, atol=1e-5, err_msg=f"{k} {context}")
found = orbax.load(folder / "c", mesh=mesh(1, 8))
assert found.params["w"].sharding.spec[0] == "model" and found.params["w"].addressable_shards[0].data.shape == (1, 6)
np.testing.assert_allclose(found.params["w"], values(half)["w"])
print("GOOD")
"""


def test_other_meshes(tmp_path: Path) -> None:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
           "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    ended = subprocess.run([sys.executable, "-c", MESHES, str(tmp_path)], env=env, cwd=ROOT, text=True,
                           capture_output=True, timeout=300)
    assert ended.returncode == 0 and "GOOD" in ended.stdout, ended.stderr


def test_jax_keeps_its_setting(tmp_path: Path) -> None:
    orbax.save(tmp_path / "c", {"w": np.ones(3)})
    assert orbax.load(tmp_path / "c").params["w"].dtype == np.float64 and jax.numpy.ones(1).dtype == np.float32
