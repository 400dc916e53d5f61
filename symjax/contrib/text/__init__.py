"""Vocabularies and word vectors (MXNet's `mx.contrib.text`)."""

from symjax.contrib.text import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
