"""The demo's picture: held-out digits with their predictions, and the loss while fine-tuning."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

_ROWS, _COLUMNS = 5, 8
_INK, _MUTED, _GOOD, _BAD, _LINE = "#1f2328", "#6e7781", "#1a7f37", "#cf222e", "#0969da"


def draw(images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray, losses: list[float], steps: int,
         moved: tuple[float, float]) -> Figure:  # fmt: skip
    """Draws the picture.

    Args:
      images: (n, 8, 8) held-out digits.
      labels: (n,) what they are.
      probabilities: (n, 10) what the model says.
      losses: the loss of each training step.
      steps: steps per epoch.
      moved: accuracy on moved digits before and after.
    """
    figure = Figure(figsize=(10, 4.9), dpi=110, facecolor="white")
    parts: Any = figure.subfigures(1, 2, width_ratios=[1.35, 1])
    left, right = parts
    _draw_digits(left, images, labels, probabilities)
    _draw_loss(right, losses, steps, moved)
    return figure


def _heading(part: Any, x: float, title: str, text: str) -> None:
    part.text(x, 0.93, title, fontsize=12, color=_INK, weight="bold")
    part.text(x, 0.875, text, fontsize=9, color=_MUTED)


def _draw_digits(part: Any, images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    guess = probabilities.argmax(1)
    right = guess == labels
    wrong = int((~right).sum())
    _heading(part, 0.045, f"{len(labels)} held-out digits, {right.mean():.1%} right",
             f"prediction below each; {wrong} wrong, shown in red with (truth)")  # fmt: skip
    axes = part.subplots(_ROWS, _COLUMNS, gridspec_kw={"left": 0.045, "right": 0.98, "top": 0.84, "bottom": 0.075,
                                                       "hspace": 0.42, "wspace": 0.16})  # fmt: skip
    for axis, i in zip(axes.flat, _chosen(right), strict=True):
        colour = _GOOD if right[i] else _BAD
        axis.imshow(images[i], cmap="Greys", vmin=0, vmax=16, interpolation="nearest")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set(color="#d0d7de" if right[i] else _BAD, linewidth=0.8 if right[i] else 2)
        said = f"{guess[i]}" if right[i] else f"{guess[i]} ({labels[i]})"
        axis.set_xlabel(said, color=colour, fontsize=10, weight="bold", labelpad=2)


def _chosen(right: np.ndarray) -> np.ndarray:
    """Which digits to show: the first ones, with up to six wrong ones among them."""
    count = _ROWS * _COLUMNS
    wrong = np.flatnonzero(~right)[:6]
    rest = np.flatnonzero(right)[: count - len(wrong)]
    places = np.linspace(3, count - 4, len(wrong)).round().astype(int) if len(wrong) else np.zeros(0, int)
    chosen = np.empty(count, int)
    free = np.ones(count, bool)
    free[places] = False
    chosen[places], chosen[free] = wrong, rest
    return chosen


def _draw_loss(part: Any, losses: list[float], steps: int, moved: tuple[float, float]) -> None:
    axis = part.subplots(gridspec_kw={"left": 0.14, "right": 0.96, "top": 0.84, "bottom": 0.145})
    _heading(part, 0.14, "Fine-tuning on moved digits", f"accuracy on them {moved[0]:.1%} before, {moved[1]:.1%} after")
    epochs = (np.arange(len(losses)) + 0.5) / steps
    axis.plot(epochs, losses, color=_LINE, alpha=0.25, linewidth=1, label="each step")
    means = np.reshape(losses[: len(losses) // steps * steps], (-1, steps)).mean(1)
    axis.plot(
        np.arange(len(means)) + 0.5, means, color=_LINE, linewidth=2, marker="o", markersize=4, label="epoch mean"
    )
    axis.set_xlabel("epoch", color=_INK)
    axis.set_ylabel("cross entropy", color=_INK)
    axis.set_ylim(bottom=0)
    axis.set_xlim(0, len(losses) / steps)
    axis.grid(axis="y", color="#eaeef2")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=_MUTED, labelsize=9)
    axis.legend(frameon=False, fontsize=9)
