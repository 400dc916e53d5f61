"""Memory that was freed stays with the process."""

from __future__ import annotations

import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import symjax as mx
from symjax.lowering import memory
from symjax.lowering.memory import drop_code, keep_memory
from tests.compiles import compiles

FAULTS = """
import resource, symjax as mx
x = mx.nd.zeros((2500, 2500))
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        (x + 1).wait_to_read()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(min(faults() for _ in range(5)))  # now and then the heap grows by one: something small lies between
"""


LARGE = """
import symjax as mx
x = mx.nd.zeros((4096, 4096))
(x + 1).wait_to_read()
print(sum(int(line.split()[1]) for line in open("/proc/self/smaps") if line.startswith("AnonHugePages:")))
"""

RETURNED = """
import numpy as np, symjax as mx
from symjax.lowering import memory
memory._KEPT = 2**27

def taken():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
net.simple_bind(mx.cpu(), data=(1, 2)).forward()
loaded = np.ones(2**26)
bound = mx.nd.array(np.ones(1000))  # lies beyond what was loaded
del loaded
before = taken()
net.simple_bind(mx.cpu(), data=(1, 2)).forward()
print((before - taken()) // 2**20)
"""


def glibc() -> bool:
    return sys.platform == "linux" and (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")


@pytest.mark.parametrize("name", ["SYMJAX_KEEP_MEMORY", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_of_the_user_stand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "0")
    assert not keep_memory()


def test_large_results_take_no_new_pages() -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "SYMJAX_KEEP"))}
    run = subprocess.run([sys.executable, "-c", FAULTS], env={**env, "JAX_PLATFORMS": "cpu"}, capture_output=True,
                         text=True, check=True)  # fmt: skip
    pages = 20 * 2500 * 2500 * 4 // 4096
    assert int(run.stdout) < (pages // 20 if glibc() else 2 * pages)


def test_the_heap_takes_large_pages() -> None:
    setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not glibc() or not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("needs a Linux with glibc that has transparent large pages")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "SYMJAX_KEEP"))}
    run = subprocess.run([sys.executable, "-c", LARGE], env={**env, "JAX_PLATFORMS": "cpu"}, capture_output=True,
                         text=True, check=True)  # fmt: skip
    assert int(run.stdout) > 64 * 1024  # kB, of the two arrays' 128 MB


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33 or later")
def test_much_freed_memory_is_returned_when_an_executor_first_runs() -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "SYMJAX_KEEP"))}
    run = subprocess.run([sys.executable, "-c", RETURNED], env={**env, "JAX_PLATFORMS": "cpu"}, capture_output=True,
                         text=True, check=True)  # fmt: skip
    assert int(run.stdout) > 480  # MB, of 512


def test_compiled_code_is_dropped_near_the_limit() -> None:
    x = mx.nd.array([[1.0, -2.0]])
    ex = (mx.sym.relu(mx.sym.var("x")) * 3).bind(mx.cpu(), {"x": x})
    assert ex.forward()[0].asnumpy().tolist() == [[3, 0]]
    assert not drop_code(1.0)
    if not drop_code(0.0):
        pytest.skip("the system has no limit of mappings (/proc/sys/vm/max_map_count)")
    with compiles() as again:
        assert ex.forward()[0].asnumpy().tolist() == [[3, 0]]
    assert again.n
    with compiles() as none:
        ex.forward()[0].asnumpy()
    assert not none.n


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_executors_of_many_shapes_stay_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_read", lambda path, read=memory._read: "2000" if "max_map" in path else read(path))
    net = mx.sym.softmax(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3))
    most = 0
    for n in range(1, 120):
        out = net.simple_bind(mx.cpu(), x=(n, 2)).forward()[0]
        assert out.shape == (n, 3)
        most = max(most, memory._read("/proc/self/maps").count("\n"))
    assert most < 1800
