"""The command `symjax`. Commands are imported when they run: `symjax --help` loads neither JAX nor numpy.

Exit codes: 0 good, 1 a problem in the model, 2 a wrong call or an unreadable file, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from symjax.cli._state import State, common_options

__all__ = ["main"]

COMMANDS = {
    "demo": "Load, check, fine-tune and draw a classifier that MXNet wrote.",
    "summary": "Nodes, operators, shapes and parameters of a model.",
    "check": "Operators of a model, and whether all of them are supported.",
    "infer": "Shapes and dtypes of arguments, outputs and auxiliary states.",
    "run": "Run a model on arrays or images.",
    "exec": "Run an MXNet script unchanged: import mxnet gives symjax.",
    "ops": "List the operators, or explain one.",
    "doctor": "The environment, for a bug report.",
    "im2rec": "Make lists of images, and record files of them.",
    "show": "The graph as text, SVG, Mermaid or DOT.",
}
PROBLEM, UNREADABLE, INTERRUPTED = 1, 2, 130


class Main(click.Group):
    """The group: imports a command when it is asked for, and turns exceptions into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"symjax.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None,
             standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any) -> Any:  # fmt: skip
        extra.update(complete_var=complete_var, windows_expand_args=windows_expand_args)
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        state = State()
        with warnings.catch_warnings():
            warnings.showwarning = state.show_warning
            code: Any = self._guarded(state, args, prog_name, extra)
        sys.exit(code if isinstance(code, int) else code())

    def _guarded(self, state: State, args: Sequence[str] | None, prog_name: str | None, extra: dict[str, Any]) -> Any:
        """Returns the exit code, or the function that gives it: a program that is none of ours."""
        try:
            result = super().main(args, prog_name, standalone_mode=False, obj=state, **extra)
            return result if isinstance(result, int) or callable(result) else 0
        except click.Abort:
            click.echo("Interrupted.", err=True)
            return INTERRUPTED
        except click.ClickException as e:
            if state.traceback:
                raise
            e.show()
            return e.exit_code
        except Exception as e:
            if state.traceback:
                raise
            return _explain(state, e)


def _explain(state: State, error: Exception) -> int:
    """Prints an exception as one message and returns the exit code."""
    from symjax.lowering.errors import FileError, GraphFormatError, GraphParamError, MXNetError, ParamsFormatError

    if isinstance(error, MXNetError):
        state.error(str(error))
        unreadable = isinstance(error, GraphFormatError | ParamsFormatError | FileError)
        return UNREADABLE if unreadable and not isinstance(error, GraphParamError) else PROBLEM
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        state.error(f"{name}{error.strerror or error}")
        return UNREADABLE
    state.error(
        f"{type(error).__name__}: {error}\nThis is not expected: run again with --traceback, and please report it with "
        f"what `symjax doctor` prints."
    )
    return PROBLEM


@click.command(
    cls=Main,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A MODEL is a -symbol.json file, a checkpoint prefix (with an EPOCH), or - for standard input. Results go "
    "to standard output, everything else to standard error. Exit codes: 0 good, 1 a problem in the model, 2 a wrong "
    "call or an unreadable file.",
)
@click.version_option(package_name="symjax-mxnet", prog_name="symjax")
@common_options
def main() -> None:
    """Run, check and look at Apache MXNet symbol graphs on JAX."""
