"""`symjax doctor`: the environment, for a bug report."""

from __future__ import annotations

import click

from symjax.cli._state import State, common_options, format_option, output_option


@click.command("doctor")
@format_option("text", "json")
@output_option
@common_options
@click.pass_obj
def command(state: State, format_: str, output: str | None) -> int:
    """Print versions, devices and settings, and whether JAX compiles and runs here.

    Paste it into a bug report. The exit code is 1 if something does not work.
    """
    from symjax._environment import environment_info, format_info

    info = environment_info()
    if format_ == "json":
        state.emit_json(info, output)
    else:
        state.emit(format_info(info), output)
    problems = [facts["problem"] for facts in info.values() if facts.get("problem")]
    for problem in problems:
        state.error(problem)
    return 1 if problems else 0
