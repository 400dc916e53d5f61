"""Vocabularies: numbers for tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["Vocabulary"]

UNKNOWN = 0


class Vocabulary:
    """Numbers tokens: the unknown one 0, then the reserved ones, then those counted, the most frequent first.

    Args:
      counter: how often tokens occur; None for no more than the unknown and reserved ones.
      most_freq_count: how many of the counted tokens at most.
      min_freq: how often a token must occur.
      unknown_token: stands for all tokens that are not in the vocabulary.
      reserved_tokens: further tokens.

    Raises:
      AssertionError: `min_freq` is not positive, reserved tokens repeat, or `counter` is not a Counter.
    """

    def __init__(self, counter: Counter[Any] | None = None, most_freq_count: int | None = None, min_freq: int = 1,
                 unknown_token: Any = "<unk>", reserved_tokens: Sequence[Any] | None = None) -> None:
        assert min_freq > 0, "`min_freq` must be set to a positive value."
        reserved = list(reserved_tokens or ())
        assert unknown_token not in reserved, "`reserved_token` cannot contain `unknown_token`."
        assert len(set(reserved)) == len(reserved), "`reserved_tokens` cannot contain duplicate reserved tokens."
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token = [unknown_token, *reserved]
        if counter is not None:
            assert isinstance(counter, Counter), "`counter` must be an instance of collections.Counter."
            self._add(counter, most_freq_count, min_freq)
        self._token_to_idx = {token: i for i, token in enumerate(self._idx_to_token)}

    def _add(self, counter: Counter[Any], most: int | None, least: int) -> None:
        known = set(self._idx_to_token)
        ranked = sorted(sorted(counter.items()), key=lambda item: -item[1])
        new = [token for token, n in ranked if n >= least and token not in known]
        self._idx_to_token += new[:most]

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The number of each token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The tokens in the order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that stands for others."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The reserved tokens, None if there are none."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """Returns the number of a token, or those of a list; 0 for what is unknown."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(t, UNKNOWN) for t in tokens]
        return self._token_to_idx.get(tokens, UNKNOWN)

    def to_tokens(self, indices: Any) -> Any:
        """Returns the token of a number, or those of a list.

        Raises:
          ValueError: there is no such number.
        """
        many = indices if isinstance(indices, list) else [indices]
        for i in many:
            if not isinstance(i, int) or not 0 <= i < len(self):
                raise ValueError(f"Token index {i} in the provided `indices` is invalid.")
        tokens = [self._idx_to_token[i] for i in many]
        return tokens if isinstance(indices, list) else tokens[0]
