"""Stores of several processes: two real ones, started as MXNet's launchers do, against MXNet and one process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax import _launch
from symjax.kvstore._compression import Compression, pack, unpacked_sum
from tests.dist_worker import trained

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = ("DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "XLA_FLAGS")

# What two workers and a server of MXNet 1.9.1 print for the calls of `tests.dist_worker`.
STORES = {"workers": 2, "type": "dist_sync", "init": [1] * 5, "push": [6] * 5, "pushpull": [3] * 5,
          "broadcast": [3] * 5, "half": [3] * 3, "wide": [3e-17] * 3, "steps": [[0.85] * 5, [0.565] * 5]}
ROWS = [[[-1, 0], [0, 1], [4, 5], [3, 4], [8, 9]], [[-2.9, -1.9], [-3.8, -2.8], [4, 5], [-2.7, -1.7], [8, 9]]]
COMPRESSED = [[0, .5, -1, 1, 0], [1, .5, -1, 1, .5], [0, .5, -1, 1, -.5], [1, 1, -1, 1, 0], [1, .5, -1, 1, .5],
              [1, .5, -1, 1, 0]]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(*command: str, **variables: Any) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if k not in LAUNCHER}
    env.update({k: str(v) for k, v in variables.items()}, JAX_PLATFORMS="cpu", PYTHONPATH=str(ROOT))
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def finished(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    try:
        texts = [p.communicate(timeout=100) for p in processes]
    finally:
        for p in processes:
            p.kill()
    return [(p.returncode, *text) for p, text in zip(processes, texts, strict=True)]


@pytest.fixture(scope="module")
def workers() -> list[dict[str, Any]]:
    """What two workers found, in the order of their ranks; server and scheduler ran the same program."""
    place = {"DMLC_NUM_WORKER": 2, "DMLC_NUM_SERVER": 1, "DMLC_PS_ROOT_URI": "127.0.0.1",
             "DMLC_PS_ROOT_PORT": free_port()}
    roles = ("scheduler", "server", "worker", "worker")
    ended = finished([start("-m", "tests.dist_worker", DMLC_ROLE=r, **place) for r in roles])
    for (code, _, err), role in zip(ended, roles, strict=True):
        assert code == 0, f"{role}: {err}"
    assert "a server has nothing to do" in ended[1][2] and not ended[0][1] and not ended[1][1]
    found = [json.loads(out.split("FOUND")[1]) for _, out, _ in ended[2:]]
    return sorted(found, key=lambda f: f["rank"])


def close(got: Any, want: Any) -> None:
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for k in want:
            close(got[k], want[k])
    elif isinstance(want, str):
        assert got == want
    else:
        np.testing.assert_allclose(got, want, rtol=2e-6)


def test_calls_as_mxnet(workers: list[dict[str, Any]]) -> None:
    assert [w["rank"] for w in workers] == [0, 1]
    for w in workers:
        close(w["stores"], STORES)
        close(w["rows"], ROWS)
        close(w["compressed"], COMPRESSED)


@pytest.mark.parametrize("kind", ["sgd", "adam", "sgld", "by themselves"])
def test_both_end_with_the_same_parameters(workers: list[dict[str, Any]], kind: str) -> None:
    assert workers[0][kind] == workers[1][kind]


@pytest.mark.parametrize(("kind", "optimizer", "params"), [
    ("sgd", "sgd", {"momentum": 0.9}), ("by themselves", "sgd", {"momentum": 0.9}), ("adam", "adam", {})])
def test_numbers_are_those_of_one_process(workers: list[dict[str, Any]], kind: str, optimizer: str,
                                          params: dict[str, Any]) -> None:
    alone = trained(None, 0, 1, optimizer, **params)
    for name, value in alone.items():
        np.testing.assert_allclose(workers[0][kind][name], value, rtol=2e-4, atol=2e-5, err_msg=name)


def test_other_calls_than_the_other_worker_are_noticed(workers: list[dict[str, Any]]) -> None:
    for w in workers:
        assert "workers do different things" in w["differs"] and f"worker {1 - w['rank']} is not" in w["differs"]


def test_processes_of_jax_distributed() -> None:
    port = free_port()
    text = ("import sys, jax; jax.distributed.initialize('127.0.0.1:{}', 2, int(sys.argv[1])); import symjax as mx;"
            "kv = mx.kv.create('dist_sync'); kv.init(3, mx.nd.ones(2)); kv.push(3, mx.nd.ones(2) * (kv.rank + 1));"
            "out = mx.nd.zeros(2); kv.pull(3, out); print('GOT', kv.rank, kv.num_workers, out.asnumpy().tolist())")
    ended = finished([start("-c", text.format(port), str(rank)) for rank in (0, 1)])
    for rank, (code, out, err) in enumerate(ended):
        assert code == 0, err
        assert f"GOT {rank} 2 [3.0, 3.0]" in out


def test_a_single_worker_needs_nobody() -> None:
    text = "import symjax as mx; kv = mx.kv.create('dist_sync'); print(kv.rank, kv.num_workers); kv._barrier()"
    (code, out, err), = finished([start("-c", text, DMLC_ROLE="worker", DMLC_NUM_WORKER=1, DMLC_PS_ROOT_URI="nowhere",
                                        DMLC_PS_ROOT_PORT=1)])
    assert (code, out) == (0, "0 1\n"), err


@pytest.mark.parametrize("name", ["dist_sync", "dist_device_sync", "dist_sync_device", "dist"])
def test_without_other_processes(name: str) -> None:
    with pytest.raises(mx.MXNetError, match=rf"kvstore '{name}' needs to know.*initialize.*DMLC_ROLE=worker"):
        mx.kv.create(name)


@pytest.mark.parametrize("name", ["dist_async", "dist_async_device"])
def test_asynchronous_stores_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"kvstore '{name}' is not supported: .*collective.*Use 'dist_sync'"):
        mx.kv.create(name)


def test_a_launchers_variables_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DMLC_ROLE", "scheduler")
    with pytest.raises(ValueError, match="DMLC_PS_ROOT_URI is not set"):
        _launch.start()
    monkeypatch.setenv("DMLC_PS_ROOT_URI", "127.0.0.1")
    monkeypatch.setenv("DMLC_PS_ROOT_PORT", "many")
    with pytest.raises(ValueError, match=r"DMLC_PS_ROOT_PORT is 'many': a number"):
        _launch.start()
    with pytest.raises(SystemExit):
        monkeypatch.setenv("DMLC_ROLE", "server")
        mx.kvstore_server._init_kvstore_server_module()
    assert mx.kvstore_server.KVStoreServer(mx.kv.create()).run() is None


def test_ranks() -> None:
    """Those who wish for a rank get it; the others come in order."""
    assert _launch._ranks([None, None, None]) == [0, 1, 2]
    assert _launch._ranks([2, None, 0]) == [2, 1, 0]
    assert sorted(_launch._ranks([1, 1, 7])) == [0, 1, 2]


# ---- compression in one process


def test_compression_of_a_device_store() -> None:
    """Recorded from MXNet 1.9.1 on cpu(0) and cpu(1)."""
    kv, out, found = mx.kv.create("device"), mx.nd.zeros(5), []
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init("w", out)
    first, second = mx.nd.array([0.3, 0.6, -0.7, 1.2, -0.2]), mx.nd.array([0.3, 0.1, -0.7, 1.2, 0.3])
    for pushed in ([first, second],) * 3 + (first,) * 3:
        kv.push("w", pushed)
        kv.pull("w", out)
        found.append(out.asnumpy().tolist())
    assert found == [[0, .5, -1, 1, 0], [1, .5, -1, 1, .5], [0, .5, -1, 1, -.5], [.5, .5, -.5, .5, 0],
                     [.5, .5, -.5, .5, -.5], [0, .5, -.5, .5, 0]]


def test_nothing_is_lost_in_the_long_run() -> None:
    compression, g = Compression(0.5), np.array([0.123, -0.4, 0.02], np.float32)
    total = sum(np.asarray(compression("w", 0, g)) for _ in range(400))
    np.testing.assert_allclose(total, 400 * g, atol=0.5)


def test_two_bits_a_number() -> None:
    sent = np.array([[0.5, -0.5, 0, 0.5, 0], [0, 0, -0.5, 0.5, 0.5]], np.float32)
    packed = np.stack([np.asarray(pack(row)) for row in sent])
    assert packed.dtype == np.uint8 and packed.shape == (2, 2)
    np.testing.assert_array_equal(unpacked_sum(packed, 0.5, (5,)), sent.sum(0))


@pytest.mark.parametrize(("params", "text"), [
    ({}, "Required parameter type"), ({"threshold": 1}, "Required parameter type"),
    ({"type": "1bit"}, "Unknown type for gradient compression 1bit"), ({"type": "none"}, "Unknown type"),
    ({"type": "2bit", "threshold": 0}, "threshold must be greater than 0"),
    ({"type": "2bit", "threshold": "abc"}, "Invalid Parameter format for threshold")])
def test_wrong_compression(params: dict[str, Any], text: str) -> None:
    with pytest.raises(mx.MXNetError, match=text):
        mx.kv.create("device").set_gradient_compression(params)


def test_what_is_not_compressed() -> None:
    kv = mx.kv.create("device")
    kv.set_gradient_compression({"type": "2bit"})
    kv.init("d", mx.nd.zeros(2, dtype="float64"))
    with pytest.raises(mx.MXNetError, match="key d: gradient compression is for float32, got float64"):
        kv.push("d", mx.nd.ones(2, dtype="float64"))
    rows, out = mx.nd.sparse.row_sparse_array((np.full((1, 2), 0.3, "float32"), [1]), shape=(3, 2)), mx.nd.zeros((3, 2))
    kv.init("s", mx.nd.sparse.zeros("row_sparse", (3, 2)))
    kv.push("s", rows)
    kv.pull("s", out, ignore_sparse=False)
    np.testing.assert_allclose(out.asnumpy(), [[0, 0], [0.3, 0.3], [0, 0]], rtol=1e-6)
    assert mx.kv.create("nccl").type == "nccl"
