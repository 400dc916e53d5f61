"""How the C library keeps memory that a computation has given back, for the next one to take.

XLA's CPU client takes the arrays of every call from `malloc`. By default glibc returns large ones to the system, so
that each call is given new pages, zeroed one by one: an output of 25 MB then takes six times as long to fill as memory
that is there (7.9 against 1.2 ms on two cores). MXNet and PyTorch keep such memory too.

The kernel is also asked for large pages there, as NumPy does for its own arrays: looking up the addresses of many small
ones takes a fifth of a recurrent step's time, and more where rows of a large table are gathered.
"""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of <malloc.h>
_LARGE_PAGE, _LARGE_PAGES = 2**21, 14  # bytes; MADV_HUGEPAGE of <sys/mman.h>
_RESERVED = 2**31 - 2**26  # with more at the end of its memory, malloc returns it to the system
_SETTINGS = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


def keep_memory() -> bool:
    """Lets the process keep up to 2 GB of memory that was freed; all threads take it from one place.

    Nothing is done where `SYMJAX_KEEP_MEMORY=0` or settings of `malloc` are in the environment, or another C library is
    in use.

    Returns:
      Whether it was done.
    """
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
    return all(done)


def _prefer_large_pages(libc: ctypes.CDLL) -> None:
    """Asks for large pages in the next 2 GB of addresses that `malloc` gives out; no page is taken yet."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = libc.malloc(_RESERVED)
    if start is None:  # the process may not have as many addresses
        return
    first = -(-start // _LARGE_PAGE) * _LARGE_PAGE
    libc.madvise(first, start + _RESERVED - first, _LARGE_PAGES)
    libc.free(start)
