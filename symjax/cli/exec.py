"""`symjax exec`: runs a Python program in which `import mxnet` gives symjax."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

import click

from symjax.cli._state import common_options

_OURS = (__file__, runpy.__file__, "<frozen runpy>")


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="PROGRAM is the name of a module, as for python -m.")
@click.argument("program")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@common_options
def command(module: bool, program: str, args: tuple[str, ...]) -> Callable[[], int]:
    """Run PROGRAM, an MXNet script, unchanged: `import mxnet` gives symjax in it.

    PROGRAM is a file, a folder or zip archive with a __main__.py, - for standard input, or with -m a module. All that
    follows goes to it, options too. The exit code is the program's; errors print its own traceback.

    \b
    symjax exec train.py --network lenet --gpus 0
    symjax exec -m my_package.train
    """
    if not module and program != "-" and not os.path.exists(program):
        raise click.UsageError(f"can't open file {program!r}: there is none; -m runs a module by its name")
    return lambda: run(program, args, module)


def run(program: str, args: tuple[str, ...], module: bool) -> int:
    """Runs a program as Python would, and returns the exit code.

    Raises:
      SystemExit: the program raised it.
    """
    from symjax._alias import install_as_mxnet

    install_as_mxnet()
    sys.argv = [program, *args]
    try:
        _start(program, module)
    except SystemExit:
        raise
    except BaseException as e:
        # the program's own traceback, without the frames that lead to it
        sys.excepthook(type(e), e.with_traceback(_theirs(e.__traceback__)), e.__traceback__)
        return 130 if isinstance(e, KeyboardInterrupt) else 1
    return 0


def _start(program: str, module: bool) -> None:
    if module:
        _path(os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif os.path.isdir(program) or (program != "-" and not _is_source(program)):
        runpy.run_path(program, run_name="__main__")
    else:
        _path("" if program == "-" else os.path.dirname(os.path.realpath(program)))
        _run_source(program)


def _path(first: str) -> None:
    """Puts the folder of the program in the place of that of the command `symjax`."""
    if not sys.flags.safe_path:
        sys.path[0] = first


def _is_source(program: str) -> bool:
    with open(program, "rb") as file:
        return file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06")


def _run_source(program: str) -> None:
    name = "<stdin>" if program == "-" else program
    if program == "-":
        source: Any = sys.stdin.read()
    else:
        with open(program, "rb") as file:
            source = file.read()
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __cached__=None)
    if program != "-":
        main.__file__ = program
    sys.modules["__main__"] = main
    exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)


def _theirs(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OURS:
        traceback = traceback.tb_next
    return traceback
