"""`symjax run`: a model on arrays or images."""

from __future__ import annotations

import os
from typing import Any

import click

from symjax.cli._source import PairType, Source, model_options
from symjax.cli._state import Problem, State, Unreadable, format_option


def _floats(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        return tuple(float(v) for v in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number or a list of numbers like 123.7,116.3,103.5") from None


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    parts = value.replace("x", ",").split(",")
    if len(parts) not in (1, 2) or not all(p.isdigit() and int(p) for p in parts):
        raise click.BadParameter(f"{value!r} is not a size like 224 or 480,640 (height, width)")
    return int(parts[0]), int(parts[-1])


@click.command("run")
@model_options
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="An .npz, .npy or image file. An .npz feeds the arguments that its arrays are named after; several "
    "images without NAME make one batch.",
)
@click.option(
    "--fill",
    type=PairType(),
    multiple=True,
    metavar="NAME=VALUE",
    help="Fill an argument of known shape with a number.",
)
@click.option(
    "--size", callback=_size, metavar="H[,W]", help="Resize images. Default: the shape of the input, if known."
)
@click.option(
    "--layout", type=click.Choice(["NCHW", "NHWC"]), default="NCHW", show_default=True, help="Layout of images."
)
@click.option("--bgr", is_flag=True, help="Blue channel first.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Multiply pixels (0 to 255) by this first.")
@click.option(
    "--mean", callback=_floats, default="0", show_default=True, help="Then subtract this; one or per channel."
)
@click.option("--std", callback=_floats, default="1", show_default=True, help="Then divide by this.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="How many of the largest scores to list, for outputs of shape (batch, classes).",
)
@click.option("--labels", type=click.Path(dir_okay=False), metavar="FILE", help="Names of the classes, one a line.")
@format_option("text", "json")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Save the outputs: .npz by name, or .npy if there is one.",
)
@click.pass_obj
def command(state: State, source: Source, inputs: tuple[str, ...], fill: tuple[tuple[str, str], ...], format_: str,
            output: str | None, top: int, labels: str | None, **image: Any) -> None:  # fmt: skip
    """Run MODEL forward (predict mode) and describe its outputs.

    Labels of loss heads need no input: outputs do not depend on them.
    """
    from symjax.cli._model import open_model

    names = _read_lines(labels) if labels else None
    if output and os.path.splitext(output)[1] not in (".npz", ".npy"):
        raise click.UsageError(f"--output {output}: expected a name that ends in .npz or .npy")
    model = open_model(source, state)
    feeds = _gather(model, source, inputs, fill, image)
    results = execute(state, model, source, feeds)
    if output:
        _save(output, results)
        state.note(f"saved {', '.join(results)} to {output}")
    described = [_describe(name, value, top, names) for name, value in results.items()]
    if format_ == "json":
        state.emit_json({"model": model.label, "outputs": described})
    else:
        state.emit(_text(state, described))


def _gather(model: Any, source: Source, inputs: tuple[str, ...], fill: tuple[tuple[str, str], ...],
            image: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
    """The arrays to feed, by argument."""
    import numpy as np

    from symjax.cli._feeds import Feeds
    from symjax.cli._images import Preprocessing

    feeds = Feeds(model, source, Preprocessing(**image))
    for text in inputs:
        feeds.add(text)
    for name, value in fill:
        try:
            feeds.fill(name, float(value))
        except ValueError:
            raise click.UsageError(f"--fill {name}={value}: expected a number") from None
    return {name: np.ascontiguousarray(value) for name, value in feeds.finish().items()}


def execute(state: State, model: Any, source: Source, feeds: dict[str, Any]) -> dict[str, Any]:
    """Runs the model; returns the outputs by name."""
    import time

    import jax
    import numpy as np

    from symjax import functional, random
    from symjax.cli._model import dense
    from symjax.context import current_context
    from symjax.symbol import Symbol, _roles

    graph = model.graph
    values = {
        n.name: dense(model.params[n.name]) for n in graph.inputs if n.name in model.params and n.name not in feeds
    }
    lost = [
        n.name for n in graph.inputs if n.name not in values and n.name not in feeds and n not in _roles.labels(graph)
    ]
    if lost:
        raise _missing(model, lost)
    arguments = {n.name for n in graph.arguments}
    fed = [n.name for n in graph.arguments if n.name not in values]
    fn, params, aux = functional.lower(
        Symbol(graph), {k: v for k, v in values.items() if k in arguments},
        {k: v for k, v in values.items() if k not in arguments}, inputs=fed,
    )  # fmt: skip
    start = time.perf_counter()
    with jax.enable_x64(True):
        outputs, _ = jax.jit(fn)(params, aux, key=random.next_key(current_context()), **feeds)
        arrays = [np.asarray(o) for o in outputs]
    state.detail(f"compiled and ran in {time.perf_counter() - start:.2f} s")
    return dict(zip([e.output_name for e in graph.outputs], arrays, strict=True))


def _missing(model: Any, lost: list[str]) -> click.ClickException:
    """The error for arguments without a value: a wrong call, or a file that lacks parameters."""
    from symjax.symbol import _roles

    weights = {n.name for n in _roles.parameters(model.graph)}
    parameters = [n for n in lost if n in weights]
    free = [n for n in lost if n not in weights]
    said = []
    if free:
        said.append(f"no value for the input {', '.join(free)}: give --input {free[0]}=FILE, or --fill {free[0]}=0")
    if parameters:
        listed = ", ".join(parameters[:5]) + (f" and {len(parameters) - 5} more" if len(parameters) > 5 else "")
        where = f"{model.params_file} lacks" if model.params_file else "no --params given for"
        said.append(f"{where} the parameters {listed}")
    kind = Problem if model.params_file and parameters else click.UsageError
    return kind("; ".join(said))


def _describe(name: str, value: Any, top: int, names: list[str] | None) -> dict[str, Any]:
    """Shape, dtype, range, and the largest scores of one output, as JSON has them."""
    import numpy as np

    flat = value.astype(np.float64)
    finite = flat[np.isfinite(flat)]
    found: dict[str, Any] = {"name": name, "shape": list(value.shape), "dtype": value.dtype.name,
                             "not_finite": int(flat.size - finite.size)}  # fmt: skip
    found.update({k: float(getattr(np, k)(finite)) if finite.size else None for k in ("min", "mean", "max")})
    if top and value.ndim == 2 and value.shape[1] > 1:
        found["top"] = [[_score(int(i), float(row[i]), names) for i in np.argsort(-row, kind="stable")[:top]]
                        for row in np.nan_to_num(flat[:16])]  # fmt: skip
    if value.size <= 16:
        found["values"] = [float(v) if np.isfinite(v) else str(v) for v in flat.reshape(-1)]
    return found


def _score(index: int, score: float, names: list[str] | None) -> dict[str, Any]:
    return {"class": index, "score": score, **({"label": names[index]} if names and index < len(names) else {})}


def _text(state: State, described: list[dict[str, Any]]) -> str:
    from symjax.cli._table import dims, table

    def figure(v: float | None) -> str:
        return "-" if v is None else f"{v:.6g}"

    rows = [[d["name"], dims(d["shape"]), d["dtype"], figure(d["min"]), figure(d["mean"]), figure(d["max"])]
            for d in described]  # fmt: skip
    parts = [table(state, ["output", "shape", "dtype", "min", "mean", "max"], rows, right=[3, 4, 5])]
    for d in described:
        if d["not_finite"]:
            parts.append(state.paint(f"{d['name']}: {d['not_finite']} values are not finite", fg="red"))
        for i, scores in enumerate(d.get("top", [])):
            best = ", ".join(f"{s.get('label', s['class'])} ({s['score']:.6g})" for s in scores)
            parts.append(f"{d['name']}[{i}]: {best}")
        if "top" not in d and "values" in d:
            parts.append(f"{d['name']}: {' '.join(f'{v:.6g}' if isinstance(v, float) else v for v in d['values'])}")
    return parts[0] + "".join(f"\n{p}" if i else f"\n\n{p}" for i, p in enumerate(parts[1:]))


def _save(path: str, results: dict[str, Any]) -> None:
    import numpy as np

    from symjax._files import atomic_write

    if path.endswith(".npy") and len(results) != 1:
        raise click.UsageError(f"--output {path}: there are {len(results)} outputs ({', '.join(results)}); use .npz")
    with atomic_write(path) as file:
        if path.endswith(".npy"):
            np.save(file, next(iter(results.values())), allow_pickle=False)
        else:
            np.savez(file, **results)


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: not a text file") from None
