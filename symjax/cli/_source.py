"""The arguments that name a model, as text; `_model` reads what they name."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import click

from symjax.cli._state import common_options

_DIMS = re.compile(r"^\(?\s*(\d+(\s*,\s*\d+)*)?\s*,?\s*\)?$")


class ShapeType(click.ParamType):
    """`data=1,3,224,224`; a 0 is an unknown dimension."""

    name = "NAME=DIMS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name or not _DIMS.match(text):
            self.fail(f"{value!r} is not a shape; expected for example data=1,3,224,224", param, ctx)
        return name, tuple(int(d) for d in re.findall(r"\d+", text))


class PairType(click.ParamType):
    """`NAME=VALUE`, both as text."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name or not text:
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return name, text


@dataclasses.dataclass(frozen=True)
class Source:
    """Which model, with which parameters, shapes and dtypes."""

    model: str
    epoch: int | None
    params: str | None
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds MODEL [EPOCH], --epoch, --params, --shape, --dtype and the common options; passes one `Source`."""

    @functools.wraps(function)
    def wrapped(model: str, epoch: int | None, epoch_option: int | None, params: str | None,
                shape: tuple[tuple[str, tuple[int, ...]], ...], dtype: tuple[tuple[str, str], ...],
                **rest: Any) -> Any:  # fmt: skip
        if epoch is not None and epoch_option is not None and epoch != epoch_option:
            raise click.UsageError(f"EPOCH is given twice: {epoch} and {epoch_option}.")
        chosen = epoch if epoch is not None else epoch_option
        if chosen is not None and params is not None:
            raise click.UsageError("EPOCH and --params both name the parameters; give one.")
        return function(source=Source(model, chosen, params, dict(shape), dict(dtype)), **rest)

    for decorate in (
        common_options,
        click.option("--dtype", type=PairType(), multiple=True, metavar="NAME=DTYPE", help="dtype of an argument."),
        click.option("--shape", type=ShapeType(), multiple=True,
                     help="Shape of an argument, e.g. data=1,3,224,224; may be repeated."),
        click.option("--params", type=click.Path(dir_okay=False), metavar="FILE", help="Parameters, a .params file."),
        click.option("--epoch", "epoch_option", type=click.IntRange(min=0), help="The same as the argument EPOCH."),
        click.argument("epoch", type=click.IntRange(min=0), required=False),
        click.argument("model", type=click.Path(allow_dash=True)),
    ):  # fmt: skip
        wrapped = decorate(wrapped)
    return wrapped
