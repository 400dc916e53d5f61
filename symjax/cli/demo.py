"""`symjax demo`: a classifier that MXNet trained, from its files to a fine-tuned model and a picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from symjax.cli._state import State, common_options

EPOCH = 10
BATCH = 64
TOLERANCE = 1e-4
"""Largest difference from MXNet's probabilities that still counts as agreement."""


@click.command("demo")
@click.option(
    "--epochs", type=click.IntRange(min=1, max=1000), default=8, show_default=True, help="Epochs of fine-tuning."
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False),
    default="symjax-demo.png",
    show_default=True,
    metavar="FILE",
    help="Where to save the picture (.png, .svg or .pdf).",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of shuffling, shifts and dropout.")
@common_options
@click.pass_obj
def command(state: State, epochs: int, picture: str, seed: int) -> int:
    """Load a digit classifier that MXNet 1.9.1 wrote, check its outputs, fine-tune it, and draw the result.

    The images are scikit-learn's handwritten digits. MXNet trained on centred digits; fine-tuning teaches the model
    digits that are moved by a pixel.
    """
    import numpy as np

    from symjax.cli import _digits

    folder = Path(__file__).resolve().parents[1] / "data"
    prefix = os.path.relpath(folder / "digits") if folder.is_relative_to(Path.cwd()) else str(folder / "digits")
    with np.load(folder / "digits.npz", allow_pickle=False) as file:
        digits = {name: file[name] for name in file.files}
    model = _digits.Classifier.load(prefix, EPOCH)
    state.emit(_summary(state, prefix))

    probabilities = model.probabilities(digits["test_images"])
    difference = float(np.abs(probabilities - digits["test_probabilities"]).max())
    moved = _digits.moved_everywhere(digits["test_images"])
    before = model.accuracy(digits["test_images"], digits["test_labels"]), model.accuracy(moved, digits["test_labels"])
    agrees = difference <= TOLERANCE
    verdict = state.paint("agrees", fg="green") if agrees else state.paint("DIFFERS", fg="red")
    state.emit(
        f"\n{len(digits['test_labels'])} held-out digits: largest difference from MXNet's recorded probabilities "
        f"{difference:.1e}: {verdict}"
    )
    state.emit(_scores("as MXNet trained it", before))

    losses, per_epoch = _fine_tune(state, model, digits, epochs, seed)
    after = model.accuracy(digits["test_images"], digits["test_labels"]), model.accuracy(moved, digits["test_labels"])
    state.emit(_scores(f"after {epochs} epochs", after))
    _save_picture(state, picture, model, digits, (losses, per_epoch, (before[1], after[1])))
    return 0 if agrees else 1


def _summary(state: State, prefix: str) -> str:
    from symjax.cli._model import open_model
    from symjax.cli._source import Source
    from symjax.cli.summary import as_text, summarize

    source = Source(prefix, EPOCH, None, {"data": (1, 1, 8, 8)}, {})
    return as_text(state, summarize(open_model(source, state), source))


def _scores(when: str, accuracy: tuple[float, float]) -> str:
    return (
        f"accuracy {when + ':':22} {accuracy[0]:6.1%} on held-out digits, {accuracy[1]:6.1%} on the same digits moved"
    )


def _fine_tune(state: State, model: Any, digits: dict[str, Any], epochs: int, seed: int) -> tuple[list[float], int]:
    """Trains with a progress bar on standard error; returns the loss of each step and the steps per epoch."""
    from tqdm import tqdm

    from symjax.cli import _digits

    steps = len(digits["train_labels"]) // BATCH
    losses: list[float] = []
    batches = _digits.batches(digits["train_images"], digits["train_labels"], BATCH, epochs, seed)
    bar = tqdm(total=epochs * steps, unit="step", desc="fine-tuning", file=sys.stderr, disable=state.verbosity < 0,
               dynamic_ncols=True)  # fmt: skip
    with bar:
        for images, labels in batches:
            losses.append(model.train(images, labels))
            bar.update()
            if len(losses) % steps == 0:
                mean = sum(losses[-steps:]) / steps
                bar.set_postfix_str(f"epoch {len(losses) // steps}, loss {mean:.3f}")
    return losses, steps


def _save_picture(state: State, path: str, model: Any, digits: dict[str, Any], training: tuple[Any, ...]) -> None:
    try:
        import matplotlib
    except ImportError:
        state.note("no picture: it needs matplotlib (pip install matplotlib)")
        return
    matplotlib.use("Agg")
    from symjax.cli import _digits_picture

    figure = _digits_picture.draw(digits["test_images"], digits["test_labels"],
                                  model.probabilities(digits["test_images"]), *training)  # fmt: skip
    figure.savefig(path)
    state.emit(f"picture: {path}")
