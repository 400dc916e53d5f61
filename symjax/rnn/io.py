"""Sentences of words as batches of numbers, in buckets of like length."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from symjax import ndarray
from symjax.io import DataBatch, DataDesc, DataIter
from symjax.lowering.errors import ArgumentError, ParamError

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(
    sentences: Sequence[Sequence[str]], vocab: dict[str, int] | None = None, invalid_label: int = -1,
    invalid_key: str = "\n", start_label: int = 0, unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:  # fmt: skip
    """Replaces words by numbers, and returns (the sentences, the vocabulary).

    Args:
      sentences: lists of words.
      vocab: numbers of words; None makes one from the sentences.
      invalid_label: the number that means no word; no word gets it.
      invalid_key: the word that stands for it in a new vocabulary.
      start_label: the number of the first new word.
      unknown_token: the word that stands for all that are not in the vocabulary.

    Raises:
      AssertionError: a word is not in the given `vocab`, and there is no `unknown_token`.
    """
    made = vocab is None
    known = {invalid_key: invalid_label} if vocab is None else vocab
    label, coded = start_label, []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in known:
                if not (made or unknown_token):
                    raise ArgumentError(f"Unknown token {word}")
                if label == invalid_label:
                    label += 1
                if unknown_token:
                    word = unknown_token
                # MXNet: the unknown token gets a new number each time that it replaces a word
                known[word] = label
                label += 1
            numbers.append(known[word])
        coded.append(numbers)
    return coded, known


class BucketSentenceIter(DataIter):
    """Batches of sentences of one bucket each, for a language model: the label of a word is the next word.

    Every epoch has the batches in another order, and other sentences together. Their number may be less than that of
    the sentences: what does not fill a batch of its bucket is left out in this epoch.

    Args:
      sentences: lists of numbers.
      batch_size: number of sentences in a batch.
      buckets: lengths to fill sentences up to; by default all lengths that fill a batch.
      invalid_label: what sentences are filled up with.
      data_name, label_name: names of the inputs.
      dtype: type of the arrays.
      layout: "NT": (batch_size, length), "TN": (length, batch_size).

    Attributes:
      buckets: the lengths, ascending.
      default_bucket_key: the greatest.
    """

    def __init__(self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: list[int] | None = None,
                 invalid_label: int = -1, data_name: str = "data", label_name: str = "softmax_label",
                 dtype: Any = "float32", layout: str = "NT") -> None:
        super().__init__()
        buckets = sorted(buckets or _lengths(sentences, batch_size))
        if not buckets:
            raise ParamError(f"BucketSentenceIter: no length has {batch_size} sentences; give buckets or a smaller "
                             f"batch_size")
        self.major_axis = layout.find("N")
        if self.major_axis not in (0, 1):
            raise ParamError(f"Invalid layout {layout}: Must by NT (batch major) or TN (time major)")
        filled: list[list[np.ndarray]] = [[] for _ in buckets]
        discarded = 0
        for sentence in sentences:
            at = bisect.bisect_left(buckets, len(sentence))
            if at == len(buckets):
                discarded += 1
                continue
            row = np.full(buckets[at], invalid_label, dtype)
            row[:len(sentence)] = sentence
            filled[at].append(row)
        print(f"WARNING: discarded {discarded} sentences longer than the largest bucket.")
        self.buckets = [b for b, rows in zip(buckets, filled, strict=True) if rows]
        self.data = [np.asarray(rows, dtype) for rows in filled if rows]
        if not self.buckets:
            raise ParamError(f"BucketSentenceIter: no sentence fits into the buckets {buckets}")
        self.batch_size, self.data_name, self.label_name, self.dtype = batch_size, data_name, label_name, dtype
        self.invalid_label, self.layout = invalid_label, layout
        self._labels: list[np.ndarray] = []
        self.default_bucket_key = max(self.buckets)
        shape = (batch_size, self.default_bucket_key)[:: 1 if self.major_axis == 0 else -1]
        self.provide_data = [DataDesc(name=data_name, shape=shape, layout=layout)]
        self.provide_label = [DataDesc(name=label_name, shape=shape, layout=layout)]
        self.idx = [(i, j) for i, rows in enumerate(self.data)
                    for j in range(0, len(rows) - batch_size + 1, batch_size)]
        self.reset()

    def reset(self) -> None:
        """Starts the next epoch, in a new order (of `random` and `numpy.random`)."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self._labels = []
        for rows in self.data:
            np.random.shuffle(rows)
            label = np.full_like(rows, self.invalid_label)
            label[:, :-1] = rows[:, 1:]
            self._labels.append(label)

    @property
    def nddata(self) -> list[Any]:
        """The sentences of each bucket, in the order of this epoch."""
        return [ndarray.array(rows, dtype=self.dtype) for rows in self.data]

    @property
    def ndlabel(self) -> list[Any]:
        """Their labels: each sentence from its second entry on."""
        return [ndarray.array(rows, dtype=self.dtype) for rows in self._labels]

    def next(self) -> DataBatch:
        """Returns the next batch; its `bucket_key` is the length.

        Raises:
          StopIteration: the epoch is over.
        """
        if self.curr_idx == len(self.idx):
            raise StopIteration
        i, j = self.idx[self.curr_idx]
        self.curr_idx += 1
        # cut on the host: what the device cuts comes after the training step that it works on
        rows = [a[i][j:j + self.batch_size] for a in (self.data, self._labels)]
        data, label = (ndarray.array(x if self.major_axis == 0 else x.T, dtype=self.dtype) for x in rows)
        return DataBatch([data], [label], pad=0, bucket_key=self.buckets[i],
                         provide_data=[DataDesc(name=self.data_name, shape=data.shape, layout=self.layout)],
                         provide_label=[DataDesc(name=self.label_name, shape=label.shape, layout=self.layout)])


def _lengths(sentences: Sequence[Sequence[int]], batch_size: int) -> list[int]:
    """The lengths that at least `batch_size` sentences have."""
    counts = np.bincount([len(s) for s in sentences]) if sentences else []
    return [length for length, count in enumerate(counts) if count >= batch_size]
