"""The connectionist temporal classification loss, `CTCLoss`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import argmax
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op

# The log of probability 0 in the recursion: finite, so that gradients of impossible paths are 0 and not NaN.
_IMPOSSIBLE = -1e30


class CTCLossParams(Params):
    use_data_lengths: bool = param(False, doc="Whether there is an input of the sequences' lengths.")
    use_label_lengths: bool = param(False, doc="Whether there is an input of the labels' lengths; else padding ends "
                                               "a label (0 with blank first, -1 with blank last).")
    blank_label: Literal["first", "last"] = param("first", doc="Whether class 0 or class C-1 is the blank.")


def _input_names(p: CTCLossParams) -> tuple[str, ...]:
    return ("data", "label", *(["data_lengths"] if p.use_data_lengths else []),
            *(["label_lengths"] if p.use_label_lengths else []))


def _infer_inputs(p: CTCLossParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    data, label = ins[0], ins[1]
    batch = data[1] if data is not None and len(data) == 3 else label[0] if label else 0
    known: list[ShapeLike] = [None if data is None else (data[0], batch, data[2]) if len(data) == 3 else data,
                              (batch, label[1] if label is not None and len(label) == 2 else 0)]
    return [*known, *[(batch,)] * (len(ins) - 2)]


def _infer_types(p: CTCLossParams, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                           Sequence[str | None]]:
    known = ins[0] or outs[0] or outs[1]
    return [known, *ins[1:]], [known, known]


def _label_lengths(labels: Array, padding: int) -> Array:
    """Entries before the first padding of each row of (N, L)."""
    is_padding = labels == padding
    first = argmax(is_padding, axis=1)
    return jnp.where(jnp.any(is_padding, axis=1), first, labels.shape[1]).astype(jnp.int32)


def _paths(labels: Array, blank: int) -> tuple[Array, Array]:
    """Labels (N, L) with blanks between and around, (N, 2L+1), and where a path may skip the blank before."""
    n, length = labels.shape
    extended = jnp.full((n, 2 * length + 1), blank, jnp.int32).at[:, 1::2].set(labels)
    before = jnp.pad(extended, ((0, 0), (2, 0)), constant_values=blank)[:, :-2]
    return extended, (extended != blank) & (extended != before)


def ctc_loss(data: Array, labels: Array, data_lengths: Array, label_lengths: Array, blank: int) -> Array:
    """Negative log likelihood of each labelling, summed over all alignments.

    With y the softmax of `data` and l' the label with blanks around each entry, of length S = 2L+1:
    a_t(s) = y_t(l'_s) (a_{t-1}(s) + a_{t-1}(s-1) + [may skip] a_{t-1}(s-2)), loss = -log(a_T(S) + a_T(S-1)).

    Args:
      data: (T, N, C) unnormalised scores.
      labels: (N, L) int32 class indices; entries behind a label's length do not matter.
      data_lengths: (N,) int32 valid steps.
      label_lengths: (N,) int32 valid label entries.
      blank: class index of the blank.

    Returns:
      (N,) losses in float32 or wider.
    """
    wide = jnp.float32 if jnp.dtype(data.dtype).itemsize < 4 else data.dtype
    logs = jax.nn.log_softmax(data.astype(wide), axis=-1)
    extended, may_skip = _paths(jnp.clip(labels, 0, data.shape[2] - 1), blank)
    scores = jnp.take_along_axis(logs, extended[None], axis=2)

    def shifted(a: Array, by: int) -> Array:
        return jnp.pad(a, ((0, 0), (by, 0)), constant_values=_IMPOSSIBLE)[:, :a.shape[1]]

    def step(alpha: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        score, t = at
        skip = jnp.where(may_skip, shifted(alpha, 2), _IMPOSSIBLE)
        new = score + jax.nn.logsumexp(jnp.stack([alpha, shifted(alpha, 1), skip]), axis=0)
        return jnp.where((t < data_lengths)[:, None], jnp.maximum(new, _IMPOSSIBLE), alpha), None

    place = jnp.arange(extended.shape[1], dtype=jnp.int32)
    start = jnp.where(place[None] < 2, scores[0], _IMPOSSIBLE)
    alpha, _ = lax.scan(step, start, (scores[1:], jnp.arange(1, data.shape[0], dtype=jnp.int32)))
    last = 2 * label_lengths[:, None]
    at_blank = jnp.take_along_axis(alpha, last, axis=1)[:, 0]
    at_label = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), axis=1)[:, 0]
    total = jnp.where(label_lengths > 0, jnp.logaddexp(at_blank, at_label), at_blank)
    # MXNet: a label that does not fit into the steps costs nothing and has no gradient.
    inner = jnp.arange(1, max(labels.shape[1], 1), dtype=jnp.int32)
    repeats = jnp.sum((labels[:, 1:] == labels[:, :-1]) & (inner[None, :labels.shape[1] - 1] < label_lengths[:, None]),
                      axis=1) if labels.shape[1] > 1 else jnp.zeros_like(label_lengths)
    return jnp.where(label_lengths + repeats <= data_lengths, -total, 0)


def _check(p: CTCLossParams, shapes: list[tuple[int, ...]]) -> None:
    data, label = shapes[0], shapes[1]
    if len(data) != 3 or len(label) != 2 or data[1] != label[0]:
        raise ShapeError(f"data must be (time, batch, class) and label (batch, length), got {data} and {label}")
    if data[0] < label[1]:
        raise ShapeError(f"label of shape {label} is longer than the {data[0]} steps of data {data}")
    for name, shape in zip(_input_names(p)[2:], shapes[2:], strict=True):
        if shape != (data[1],):
            raise ShapeError(f"{name} must have shape ({data[1]},), got {shape}")


def _output_shapes(p: CTCLossParams, ins: list[ShapeLike]) -> list[ShapeLike]:
    # Tracing the recursion and its gradient only to learn these two shapes would cost a second.
    if ins[0] is None:
        return [None, None]
    if all(s and 0 not in s for s in ins):
        _check(p, [s for s in ins if s])
    return [ins[0][1:2], ins[0]]


@op("CTCLoss", aliases=("_contrib_CTCLoss", "_contrib_ctc_loss", "ctc_loss"), params=CTCLossParams,
    inputs=_input_names, all_inputs=("data", "label", "data_lengths", "label_lengths"), outputs=2, num_visible=1,
    infer_inputs=_infer_inputs, infer_types=_infer_types,
    infer_outputs=_output_shapes)
def ctc(p: CTCLossParams, *inputs: Array) -> tuple[Array, Array]:
    """The CTC loss of each sequence; softmax is applied to the data inside.

    data (T, N, C), label (N, L) of class indices, data_lengths and label_lengths (N,). Output (N,); the second, hidden
    output (T, N, C) is the gradient of the summed loss. `blank_label` first: class 0 is the blank, labels count from 1,
    0 pads; last: class C-1 is the blank, labels count from 0, -1 pads.
    """
    _check(p, [x.shape for x in inputs])
    named = dict(zip(_input_names(p), inputs, strict=True))
    data, labels = named["data"], named["label"].astype(jnp.int32)
    blank, padding = (0, 0) if p.blank_label == "first" else (data.shape[2] - 1, -1)
    lengths = named["data_lengths"].astype(jnp.int32) if p.use_data_lengths else jnp.full(
        data.shape[1:2], data.shape[0], jnp.int32)
    label_lengths = named["label_lengths"].astype(jnp.int32) if p.use_label_lengths else _label_lengths(
        labels, padding)

    def loss(scores: Array) -> Array:
        return ctc_loss(scores, labels, lengths, label_lengths, blank).astype(data.dtype)

    gradient = jax.grad(lambda x: jnp.sum(loss(x)))(lax.stop_gradient(data))
    return loss(data), gradient
