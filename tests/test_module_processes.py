"""Modules in processes of their own: on eight virtual devices, and killed while they write checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import symjax as mx
from tests.module_cases import mlp
from tests.module_tools import data, values

pytestmark = pytest.mark.filterwarnings("ignore:Parameters already initialized")
ROOT = Path(__file__).resolve().parents[1]

EIGHT = """
import jax, numpy as np, symjax as mx
from tests.module_cases import mlp, BATCH
assert len(jax.devices()) == 8
rng = np.random.RandomState(0)
x, y = rng.normal(size=(3 * BATCH, 10)), rng.randint(0, 3, 3 * BATCH)
found = []
for on in ([0], range(8), [5, 3]):
    mx.random.seed(0)
    module = mx.mod.Module(mlp(mx), context=[mx.cpu(i) for i in on])
    module.fit(mx.io.NDArrayIter(x, y, BATCH), num_epoch=4, initializer=mx.init.Xavier(), optimizer="adam")
    places = {d for a in module._exec_group.param_arrays[0] for d in a._data.devices()}
    assert len(places) == len(on), places
    args = {k: a.asnumpy() for k, a in module.get_params()[0].items()}
    found.append((args, module.predict(mx.io.NDArrayIter(x, y, BATCH)).asnumpy()))
(a, p), *others = found
for b, q in others:
    np.testing.assert_allclose(q, p, rtol=1e-4, atol=1e-5)
    for k in a:
        np.testing.assert_allclose(b[k], a[k], rtol=1e-3, atol=1e-4, err_msg=k)
print("same")
"""

WRITER = """
import sys, symjax as mx
from tests.module_tools import data, ready
module = ready("adam")
print("ready", flush=True)
def save(epoch, *_):
    module.save_checkpoint(sys.argv[1], epoch + 1, save_optimizer_states=True)
    print(epoch + 1, flush=True)
module.fit(data(), num_epoch=100000, epoch_end_callback=save)
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **more}


def test_eight_devices_give_the_numbers_of_one() -> None:
    env = environment(XLA_FLAGS="--xla_force_host_platform_device_count=8")
    run = subprocess.run([sys.executable, "-c", EIGHT], cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.stdout.strip() == "same", run.stderr[-3000:]


def test_a_killed_run_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    prefix = str(tmp_path / "net")
    with subprocess.Popen([sys.executable, "-c", WRITER, prefix], cwd=ROOT, env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.strip() == "20":
                break
        time.sleep(0.0137)
        run.send_signal(signal.SIGKILL)
    epochs = sorted(int(p.stem[-4:]) for p in tmp_path.glob("net-*.params"))
    assert epochs[-1] >= 20
    for epoch in (1, epochs[-1]):
        module = mx.mod.Module.load(prefix, epoch, load_optimizer_states=True)
        module.fit(data(), num_epoch=epoch + 1, begin_epoch=epoch, optimizer="adam")
        assert all(np.isfinite(v).all() for v in values(module).values())
        assert len(module._updater.states) == 4 and module.symbol.list_outputs() == mlp(mx).list_outputs()
