"""What all commands share: the options -q, -v, --color and --traceback, and writing to the right stream."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Problem(click.ClickException):
    """Something is wrong with the model: exit code 1."""

    exit_code = 1


class Unreadable(click.ClickException):
    """A file is not there or not what it should be: exit code 2."""

    exit_code = 2


@dataclasses.dataclass
class State:
    """The common options of this run."""

    verbosity: int = 0
    color: str = "auto"
    traceback: bool = False

    def paint(self, text: str, **style: Any) -> str:
        """Colours a text for standard output, where that is wanted."""
        return click.style(text, **style) if self.colored(sys.stdout) else text

    def colored(self, stream: Any) -> bool:
        if self.color != "auto":
            return self.color == "always"
        return not os.environ.get("NO_COLOR") and stream.isatty()

    def note(self, text: str) -> None:
        """Says something on standard error, unless --quiet."""
        if self.verbosity >= 0:
            click.echo(text, err=True)

    def detail(self, text: str) -> None:
        """Says something on standard error under --verbose."""
        if self.verbosity > 0:
            click.echo(text, err=True)

    def error(self, text: str) -> None:
        word = click.style("Error:", fg="red", bold=True) if self.colored(sys.stderr) else "Error:"
        click.echo(f"{word} {clean(text)}", err=True, color=True)

    def emit(self, text: str, output: str | None = None) -> None:
        """Writes a result to standard output, or to a file."""
        if output and output != "-":
            from symjax._files import atomic_write

            with atomic_write(output) as file:
                file.write((click.unstyle(text).rstrip("\n") + "\n").encode())
        else:
            click.echo(text.rstrip("\n"), color=True)

    def emit_json(self, value: Any, output: str | None = None) -> None:
        import json

        self.emit(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), output)

    def show_warning(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        self.note(f"Warning: {message}")


def clean(text: str) -> str:
    """Names come from files: nothing in them may steer the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            setattr(ctx.ensure_object(State), name, value)

    return callback


def _quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(State).verbosity = -1


def _verbose(ctx: click.Context, _: click.Parameter, value: int) -> None:
    if value:
        import logging

        ctx.ensure_object(State).verbosity = value
        logging.basicConfig(level=logging.INFO if value == 1 else logging.DEBUG, format="%(name)s: %(message)s")


def common_options(command: F) -> F:
    """Adds the options that every command has."""
    for option in (
        click.option("--traceback", is_flag=True, default=None, expose_value=False, callback=_set("traceback"),
                     help="Show Python's traceback of an error."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), expose_value=False,
                     callback=_set("color"), help="Colour the output; auto obeys NO_COLOR."),
        click.option("-v", "--verbose", count=True, expose_value=False, callback=_verbose,
                     help="Say more on standard error."),
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_quiet,
                     help="Say nothing on standard error but errors."),
    ):  # fmt: skip
        command = option(command)
    return command


def format_option(*choices: str) -> Callable[[F], F]:
    """The option --format; the first choice is the default."""
    return click.option("--format", "format_", type=click.Choice(choices), default=choices[0], show_default=True,
                        help="Form of the result.")  # fmt: skip


output_option = click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
                             help="Write the result to a file.")  # fmt: skip
