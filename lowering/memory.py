"""Memory that outlives a computation: what the C library keeps for the next one, and compiled code.

XLA's CPU client takes the arrays of every call from `malloc`. By default glibc returns large ones to the system, so
that each call is given new pages, zeroed one by one: an output of 25 MB then takes six times as long to fill as memory
that is there (7.9 against 1.2 ms on two cores). MXNet and PyTorch keep such memory too.

For a quarter of the machine's memory the kernel is asked for large pages, as NumPy asks for its own arrays: looking up
the addresses of many small ones takes a fifth of a recurrent step's time, and half of that of rows read from a large
table.
"""

from __future__ import annotations

import ctypes
import gc
import os

import jax

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of <malloc.h>
_LARGE_PAGE, _LARGE_PAGES = 2**21, 14  # bytes; MADV_HUGEPAGE of <sys/mman.h>
_KEPT = 2**31  # bytes
_SETTINGS = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


class _Use(ctypes.Structure):
    """`mallinfo2` of glibc 2.33 and later."""

    _fields_ = [(n, ctypes.c_size_t) for n in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                               "uordblks", "fordblks", "keepcost")]  # fmt: skip


_libc: ctypes.CDLL | None = None


def keep_memory() -> bool:
    """Lets the process keep memory that was freed; all threads take it from one place.

    `return_memory` gives back what is too much.

    Nothing is done where `SYMJAX_KEEP_MEMORY=0` or settings of `malloc` are in the environment, or another C library is
    in use.

    Returns:
      Whether it was done.
    """
    global _libc
    if os.environ.get("SYMJAX_KEEP_MEMORY") == "0" or any(k.startswith(_SETTINGS) for k in os.environ):
        return False
    try:
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return False
        libc = ctypes.CDLL(None)
        mallopt = libc.mallopt
    except (AttributeError, OSError, ValueError):  # not Linux, or without glibc
        return False
    wanted = ((_ARENA_MAX, 1), (_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1))
    done = [mallopt(k, v) for k, v in wanted]
    if all(done):
        _prefer_large_pages(libc)
        _libc = libc
    return all(done)


def return_memory() -> None:
    """Returns memory that was freed to the system if it is more than 2 GB.

    It is called where an executor first runs: what parameters and data were loaded with is gone by then.
    """
    if _libc is None or not hasattr(_libc, "mallinfo2"):
        return
    _libc.mallinfo2.restype = _Use
    taken = int(_read("/proc/self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if taken - _libc.mallinfo2().uordblks > _KEPT:
        _libc.malloc_trim(0)


def drop_code(share: float = 0.75) -> bool:
    """Forgets all compiled functions if they are nearly more than the kernel allows; what is called compiles again.

    XLA:CPU takes three or more mappings for a function, which JAX keeps until the process ends. Beyond the kernel's
    limit, 65,530 by default, the process crashes: a network that meets images of many hundred sizes would.

    Args:
      share: the part of the limit that may be in use.

    Returns:
      Whether they were more.
    """
    limit = int(_read("/proc/sys/vm/max_map_count").split()[0])
    if not limit or _read("/proc/self/maps").count("\n") < share * limit:
        return False
    jax.clear_caches()
    gc.collect()
    return True


def _prefer_large_pages(libc: ctypes.CDLL) -> None:
    """Asks for large pages in the next addresses that `malloc` gives out; no page is taken yet."""
    if "2" in _read("/proc/sys/vm/overcommit_memory"):  # addresses count as memory
        return
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.realloc.restype, libc.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    start = libc.malloc(size)
    if start is None:  # the process may not have as many addresses
        return
    first = -(-start // _LARGE_PAGE) * _LARGE_PAGE
    libc.madvise(first, start + size - first, _LARGE_PAGES)
    # `malloc` returns the end of its memory to the system, and forgets what the kernel was asked for: a few bytes that
    # are never freed lie beyond it
    libc.realloc(libc.malloc(2**26), 16)
    libc.free(start)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return "0 0"
