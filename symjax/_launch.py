"""Processes that MXNet's launchers start (`DMLC_ROLE` and its companions), as processes of `jax.distributed`.

MXNet's launchers start one scheduler, servers and workers. Sums go between workers here, so servers end at once, and
the scheduler ends when it has told every worker its rank and where worker 0 listens.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

_OWNER = "SYMJAX_WORKER_PROCESS"
"""A worker's process id: programs that it starts inherit the variables of the launcher, but are no workers."""
_PATIENCE = 300.0


def start() -> None:
    """Does what the launcher's variables ask for; without them, nothing.

    A worker joins the others (JAX must know its peers before it touches a device); a server or scheduler does its part
    and leaves the interpreter, as MXNet's does when it is imported.

    Raises:
      SystemExit: this process is a server or a scheduler.
      ValueError: a variable is missing or no number.
    """
    role = os.environ.get("DMLC_ROLE", "")
    if role == "worker":
        join()
    elif role in ("server", "scheduler"):
        if role == "scheduler":
            schedule(os.environ)
        else:
            print("symjax: a server has nothing to do; gradients are summed between the workers", file=sys.stderr)
        sys.exit(0)


def join() -> None:
    """Makes this process a worker; does nothing if it is one, or a child of one, or if it is alone."""
    import jax

    owner = os.environ.get(_OWNER)
    if jax.distributed.is_initialized() or owner not in (None, str(os.getpid())):
        return
    os.environ[_OWNER] = str(os.getpid())
    address, workers = _address(os.environ), _number(os.environ, "DMLC_NUM_WORKER")
    if workers < 2:
        return
    rank, coordinator = _ask(address, os.environ)
    jax.distributed.initialize(coordinator, workers, rank)


def joined() -> bool:
    """Returns whether the processes are known: by the program's own `jax.distributed.initialize`, or a launcher."""
    import jax

    return jax.distributed.is_initialized() or os.environ.get(_OWNER) == str(os.getpid())


def schedule(environ: Mapping[str, str]) -> None:
    """Gives the workers their ranks: the scheduler's whole work.

    Raises:
      ValueError: a variable is missing or no number.
      OSError: the port is taken.
    """
    (_, port), n = _address(environ), _number(environ, "DMLC_NUM_WORKER")
    if n < 2:
        return
    waiting: list[tuple[Any, dict[str, Any]]] = []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("", port)))
        while len(waiting) < n:
            connection, peer = server.accept()
            stack.enter_context(connection)
            with contextlib.suppress(OSError, ValueError, KeyError):  # somebody else's knock
                connection.settimeout(10)
                asked = json.loads(connection.makefile().readline())
                waiting.append((connection, {"host": asked["host"] or peer[0], "port": int(asked["port"]),
                                             "wish": asked["wish"]}))
        ranks = _ranks([asked["wish"] for _, asked in waiting])
        first = waiting[ranks.index(0)][1]
        for rank, (connection, _) in zip(ranks, waiting, strict=True):
            answer = {"rank": rank, "coordinator": f"{first['host']}:{first['port']}"}
            connection.sendall((json.dumps(answer) + "\n").encode())


def _ranks(wishes: list[int | None]) -> list[int]:
    """Wishes come first, then the order of arrival."""
    n = len(wishes)
    taken = {w for w in wishes if w is not None and 0 <= w < n and wishes.count(w) == 1}
    free = iter(r for r in range(n) if r not in taken)
    return [w if w is not None and w in taken else next(free) for w in wishes]


def _ask(address: tuple[str, int], environ: Mapping[str, str]) -> tuple[int, str]:
    """Returns (rank, where worker 0 listens)."""
    wish = environ.get("DMLC_WORKER_ID")
    with _connected(address) as connection, socket.socket() as probe:
        probe.bind(("", 0))
        question = {"host": environ.get("DMLC_NODE_HOST"), "port": probe.getsockname()[1],
                    "wish": int(wish) if wish else None}
        connection.sendall((json.dumps(question) + "\n").encode())
        connection.settimeout(None)
        line = connection.makefile().readline()
    if not line:
        raise ConnectionError(f"the scheduler at {address[0]}:{address[1]} ended before every worker was there")
    answer = json.loads(line)
    return answer["rank"], answer["coordinator"]


def _connected(address: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection(address, timeout=10)
        except OSError as e:
            if time.monotonic() > end:
                raise ConnectionError(f"no scheduler answers at {address[0]}:{address[1]} (DMLC_PS_ROOT_URI and "
                                      f"DMLC_PS_ROOT_PORT): start a process with DMLC_ROLE=scheduler there, or call "
                                      f"jax.distributed.initialize first and set no DMLC_ROLE ({e})") from e
            time.sleep(0.1)


def _address(environ: Mapping[str, str]) -> tuple[str, int]:
    host = environ.get("DMLC_PS_ROOT_URI")
    if not host:
        raise ValueError(f"DMLC_ROLE is {environ.get('DMLC_ROLE')!r}, but DMLC_PS_ROOT_URI is not set: the address of "
                         f"the scheduler")
    return host, _number(environ, "DMLC_PS_ROOT_PORT")


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except (KeyError, ValueError):
        raise ValueError(f"DMLC_ROLE is {environ.get('DMLC_ROLE')!r}, but {name} is {environ.get(name)!r}: a number is "
                         f"needed") from None
