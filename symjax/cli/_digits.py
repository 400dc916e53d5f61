"""The demo's classifier: `symjax.lower`, `jax.jit` and Optax around a symbol that MXNet wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import symjax as mx

LEARNING_RATE = 2e-3


class Classifier:
    """A symbol with its parameters, run and trained by compiled functions.

    Args:
      symbol: a network with the input `data` and a `SoftmaxOutput` whose label is `softmax_label`.
      args, auxs: its parameters and auxiliary states.
    """

    def __init__(self, symbol: Any, args: Any, auxs: Any) -> None:
        fn, self.params, self.aux = mx.lower(symbol, args, auxs)
        optimizer = optax.adam(LEARNING_RATE)
        self._state = optimizer.init(self.params)
        self._key = jax.random.key(0)

        def loss(params: Any, aux: Any, key: Any, images: Any, labels: Any) -> Any:
            (scores,), new_aux = fn(params, aux, key=key, train=True, data=images, softmax_label=labels)
            likelihood = jnp.take_along_axis(scores, labels.astype(jnp.int32)[:, None], axis=1)
            # SoftmaxOutput's gradient is that of the cross entropy, whatever is done with its output afterwards
            return scores.sum(), (-jnp.log(likelihood + 1e-12).mean(), new_aux)

        def step(params: Any, aux: Any, state: Any, key: Any, images: Any, labels: Any) -> Any:
            grads, (value, aux) = jax.grad(loss, has_aux=True)(params, aux, key, images, labels)
            grads = jax.tree.map(lambda g: g / len(labels), grads)
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), aux, state, value

        self._predict = jax.jit(lambda params, aux, images: fn(params, aux, data=images)[0][0])
        self._step = jax.jit(step, donate_argnums=(0, 1, 2))

    @classmethod
    def load(cls, prefix: str, epoch: int) -> Classifier:
        """Reads a checkpoint."""
        return cls(*mx.model.load_checkpoint(prefix, epoch))

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        """(n, 8, 8) uint8 images -> (n, 10) float32."""
        return np.asarray(self._predict(self.params, self.aux, as_input(images)))

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The share of (n, 8, 8) images that are classified right."""
        return float((self.probabilities(images).argmax(1) == labels).mean())

    def train(self, images: np.ndarray, labels: np.ndarray) -> float:
        """One optimizer step on a batch; returns its loss."""
        self._key, key = jax.random.split(self._key)
        self.params, self.aux, self._state, value = self._step(
            self.params, self.aux, self._state, key, as_input(images), labels.astype(np.float32)
        )
        return float(value)


def as_input(images: np.ndarray) -> np.ndarray:
    """(n, 8, 8) pixels 0..16 as the network's input, (n, 1, 8, 8) float32."""
    return images[:, None].astype(np.float32)


def batches(images: np.ndarray, labels: np.ndarray, size: int, epochs: int,
            seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Shuffled batches whose images are moved at random, `epochs` times over."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield moved(images[chosen], rng.integers(-1, 2, (size, 2))), labels[chosen]


def moved(images: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Images (n, 8, 8), each moved by its (down, right) in -1..1; empty pixels come in."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    height, width = images.shape[1:]
    return np.stack([p[1 - dy : 1 - dy + height, 1 - dx : 1 - dx + width]
                     for p, (dy, dx) in zip(padded, offsets, strict=True)])  # fmt: skip


def moved_everywhere(images: np.ndarray) -> np.ndarray:
    """Images (n, 8, 8), each moved by one pixel, in the eight directions in turn."""
    around = np.array([(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)])
    return moved(images, around[np.arange(len(images)) % len(around)])
