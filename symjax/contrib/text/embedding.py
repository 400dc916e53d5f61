"""Word vectors from files, and their use for a vocabulary."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax import registry
from symjax.contrib.text import vocab
from symjax.lowering.errors import DataFormatError, MXNetError
from symjax.ndarray import NDArray

__all__ = ["CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names",
           "register"]  # fmt: skip


class _TokenEmbedding(vocab.Vocabulary):
    """A vocabulary with a vector for each token."""

    _vec_len = 0
    _idx_to_vec: Any = None
    pretrained_file_names: tuple[str, ...] = ()

    @property
    def vec_len(self) -> int:
        """The length of a vector."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> Any:
        """The vectors in the order of the tokens' numbers: an NDArray (tokens, vec_len)."""
        return self._idx_to_vec

    def _load(self, path: str, delimiter: str, init_unknown: Callable[..., Any], encoding: str) -> None:
        """Reads lines of a token and its numbers."""
        path = os.path.expanduser(path)
        if not os.path.isfile(path):
            raise ValueError(f"`pretrained_file_path` must be a valid path to the pre-trained token embedding file: "
                             f"there is no file {path}")
        logging.info("Loading pre-trained token embedding vectors from %s", path)
        vectors: dict[str, list[float]] = {}
        with open(path, encoding=encoding) as f:
            for number, line in enumerate(f, 1):
                where = f"At line {number} of the pre-trained token embedding file {path}"
                token, vector = _parse(line, delimiter, where)
                if token in vectors:
                    warnings.warn(f"{where}: the embedding vector for token {token} has been loaded and a duplicate "
                                  f"embedding for the same token is seen and skipped.", stacklevel=4)
                elif len(vector) == 1:
                    warnings.warn(f"{where}: token {token} with 1-dimensional vector {vector} is likely a header and "
                                  f"is skipped.", stacklevel=4)
                else:
                    n = len(next(iter(vectors.values()), vector))
                    assert len(vector) == n, (
                        f"{where}: the dimension of token {token} is {len(vector)} but the dimension of previous "
                        f"tokens is {n}. Dimensions of all the tokens must be the same.")  # fmt: skip
                    vectors[token] = vector
        if not vectors:
            raise DataFormatError(f"{path} holds no vectors")
        self._idx_to_token += [t for t in vectors if t not in self._token_to_idx]
        self._token_to_idx.update((t, i) for i, t in enumerate(self._idx_to_token))
        self._vec_len = len(next(iter(vectors.values())))
        if self.unknown_token not in vectors:
            vectors[self.unknown_token] = init_unknown(shape=(self._vec_len,)).asnumpy()
        none = [0.0] * self._vec_len  # of a reserved token that is not in the file
        self._idx_to_vec = nd.array(np.array([vectors.get(t, none) for t in self._idx_to_token]))

    def _use(self, vocabulary: vocab.Vocabulary, embeddings: Sequence[_TokenEmbedding]) -> None:
        """Takes over the tokens of a vocabulary, with their vectors in the embeddings side by side."""
        tokens = vocabulary.idx_to_token
        parts = [np.concatenate([e.idx_to_vec.asnumpy()[:1], e.get_vecs_by_tokens(tokens[1:]).asnumpy()])
                 if len(tokens) > 1 else e.idx_to_vec.asnumpy()[:1] for e in embeddings]  # fmt: skip
        self._idx_to_vec = nd.array(np.concatenate(parts, axis=1))
        self._vec_len = sum(e.vec_len for e in embeddings)
        self._token_to_idx, self._idx_to_token = dict(vocabulary.token_to_idx), list(tokens)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = None if vocabulary.reserved_tokens is None else list(vocabulary.reserved_tokens)

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> Any:
        """Returns the vector of a token, or the matrix for a list; unknown ones have the unknown token's.

        Args:
          tokens: a token, or a list.
          lower_case_backup: look for the token in lower case if it is not there as it is.
        """
        many = tokens if isinstance(tokens, list) else [tokens]
        known = self._token_to_idx
        at = [known[t] if t in known else known.get(t.lower(), vocab.UNKNOWN) if lower_case_backup else vocab.UNKNOWN
              for t in many]  # fmt: skip
        found = nd.take(self._idx_to_vec, nd.array(at, dtype="int32"))
        return found if isinstance(tokens, list) else found[0]

    def update_token_vectors(self, tokens: Any, new_vectors: Any) -> None:
        """Replaces vectors.

        Args:
          tokens: a token, or a list.
          new_vectors: an NDArray (tokens, vec_len), or (vec_len,) for one token.

        Raises:
          ValueError: a token is unknown; the unknown token itself may be given.
          AssertionError: the shapes do not fit.
        """
        assert self._idx_to_vec is not None, "The property `idx_to_vec` has not been properly set."
        many = tokens if isinstance(tokens, list) else [tokens]
        assert isinstance(new_vectors, NDArray) and (new_vectors.ndim == 2 or (len(many) == 1 == new_vectors.ndim)), (
            "`new_vectors` must be a 2-D NDArray; it may be 1-D if `tokens` is a singleton.")  # fmt: skip
        assert new_vectors.size == len(many) * self.vec_len and new_vectors.shape[-1] == self.vec_len, (
            f"`new_vectors` must have shape {(len(many), self.vec_len)}, got {new_vectors.shape}")  # fmt: skip
        for t in many:
            if t not in self._token_to_idx:
                raise ValueError(f"Token {t} is unknown. To update the embedding vector for an unknown token, please "
                                 f"specify it explicitly as the `unknown_token` {self.unknown_token} in `tokens`. "
                                 f"This is to avoid unintended updates.")
        values = self._idx_to_vec.asnumpy()
        values[[self._token_to_idx[t] for t in many]] = new_vectors.asnumpy().reshape(len(many), -1)
        self._idx_to_vec[:] = values


def _parse(line: str, delimiter: str, where: str) -> tuple[str, list[float]]:
    token, *numbers = line.rstrip().split(delimiter)
    assert numbers, f"{where}: the data format is unexpected: {line[:50]!r}"
    try:
        return token, [float(x) for x in numbers]
    except ValueError as e:
        raise DataFormatError(f"{where}: {e}") from None


register = registry.get_register_func(_TokenEmbedding, "token embedding")
create = registry.get_create_func(_TokenEmbedding, "token embedding")


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """Returns the names of the files that an embedding is known to have; a dict of all embeddings' if None.

    Raises:
      KeyError: there is no such embedding.
    """
    names = {k: list(c.pretrained_file_names) for k, c in registry.get_registry(_TokenEmbedding).items()}
    if embedding_name is None:
        return names
    if embedding_name not in names:
        raise KeyError(f"Cannot find `embedding_name` {embedding_name}. There are {', '.join(names)}.")
    return names[embedding_name]


class CustomEmbedding(_TokenEmbedding):
    """Vectors from a file of the user's: a token and its numbers in each line.

    Args:
      pretrained_file_path: the file.
      elem_delim: what lies between token and numbers.
      encoding: of the file.
      init_unknown_vec: `(shape=) -> NDArray`, the vector of the unknown token if the file has none.
      vocabulary: keep its tokens only.
      kwargs: see `Vocabulary`.

    Raises:
      ValueError: there is no such file, or it holds something else.
    """

    def __init__(self, pretrained_file_path: str, elem_delim: str = " ", encoding: str = "utf8",
                 init_unknown_vec: Callable[..., Any] = nd.zeros, vocabulary: vocab.Vocabulary | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._load(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        if vocabulary is not None:
            _check_vocabulary(vocabulary)
            self._use(vocabulary, [self])


def _check_vocabulary(vocabulary: Any) -> None:
    assert isinstance(vocabulary, vocab.Vocabulary), (
        "The argument `vocabulary` must be an instance of contrib.text.vocab.Vocabulary.")  # fmt: skip


class _Published(CustomEmbedding):
    """Vectors from a published file, which is not fetched."""

    _default = ""

    def __init__(self, pretrained_file_name: str | None = None,
                 embedding_root: str = os.path.join("~", ".mxnet", "embeddings"),
                 init_unknown_vec: Callable[..., Any] = nd.zeros, vocabulary: vocab.Vocabulary | None = None,
                 **kwargs: Any) -> None:
        kind, name = type(self).__name__, pretrained_file_name or self._default
        path = os.path.join(os.path.expanduser(embedding_root), kind.lower(), name)
        if not os.path.isfile(path):
            raise MXNetError(f"{kind} is not fetched from the network: put {name} at {path}, or use CustomEmbedding "
                             f"with a file of yours")
        super().__init__(path, init_unknown_vec=init_unknown_vec, vocabulary=vocabulary, **kwargs)


@register
class GloVe(_Published):
    """GloVe's vectors, from a file below `embedding_root`.

    Args:
      pretrained_file_name: the file's name; glove.840B.300d.txt if None.
      embedding_root: the folder; the file is in its subfolder glove.
      init_unknown_vec: `(shape=) -> NDArray`, the vector of the unknown token.
      vocabulary: keep its tokens only.
      kwargs: see `Vocabulary`.

    Raises:
      MXNetError: the file is not there.
    """

    _default = "glove.840B.300d.txt"
    pretrained_file_names = ("glove.42B.300d.txt", *(f"glove.6B.{n}d.txt" for n in (50, 100, 200, 300)),
                             "glove.840B.300d.txt", *(f"glove.twitter.27B.{n}d.txt" for n in (25, 50, 100, 200)))


@register
class FastText(_Published):
    """FastText's vectors, from a file below `embedding_root`, in its subfolder fasttext.

    Args:
      pretrained_file_name: the file's name; wiki.simple.vec if None. There is one for each language of Wikipedia.
      embedding_root: the folder.
      init_unknown_vec: `(shape=) -> NDArray`, the vector of the unknown token.
      vocabulary: keep its tokens only.
      kwargs: see `Vocabulary`.

    Raises:
      MXNetError: the file is not there.
    """

    _default = "wiki.simple.vec"
    pretrained_file_names = ("wiki.simple.vec", "wiki.en.vec", "crawl-300d-2M.vec")


class CompositeEmbedding(_TokenEmbedding):
    """The vectors of several embeddings side by side, for the tokens of a vocabulary.

    Args:
      vocabulary: the vocabulary.
      token_embeddings: an embedding, or a list.
    """

    def __init__(self, vocabulary: vocab.Vocabulary, token_embeddings: Any) -> None:
        _check_vocabulary(vocabulary)
        many = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        for e in many:
            assert isinstance(e, _TokenEmbedding), f"`token_embeddings` must be embeddings, got {type(e).__name__}"
        super().__init__()
        self._use(vocabulary, many)
