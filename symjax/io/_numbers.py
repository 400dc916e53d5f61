"""Decimal numbers read from text by array arithmetic, eight digits at a time.

Eight bytes are one 64-bit word; its digits are combined in three steps, to 2, 4 and 8 digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

MARGIN = 24
"""Bytes that must lie before the first number of a text, since words are read from their ends."""

_LONGEST = 19  # digits that always fit 64 bits
_MAX_TOKEN = 4096
_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|infinity|nan))")
_TENS = np.array([10**i for i in range(_LONGEST + 1)], np.uint64)
_TENS_FLOAT = _TENS.astype(np.float64)
_ZERO = np.uint8(ord("0"))
_EXACT = np.uint64(1 << 53)
_U = np.uint64
_LAST_BYTES = np.array([2**64 - 2 ** (8 * (8 - n)) for n in range(9)], np.uint64)
"""What keeps the last n bytes of a word."""
_DIGIT_ZERO, _SEVENS, _HIGH = _U(0x3030303030303030), _U(0x7676767676767676), _U(0x8080808080808080)
_STEPS = ((_U(10 * 2**8 + 1), _U(8), _U(0x00FF00FF00FF00FF)), (_U(100 * 2**16 + 1), _U(16), _U(0x0000FFFF0000FFFF)),
          (_U(10000 * 2**32 + 1), _U(32), _U(0x00000000FFFFFFFF)))


def unsigned(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reads integers without a sign.

    Args:
      text: uint8, with `MARGIN` bytes before the first number.
      starts, ends: int64, where the numbers lie in it. An empty one is 0.

    Returns:
      The numbers, uint64, and what is not 0 where there is something else than digits or more than 19 of them.
    """
    length = ends - starts
    words = np.ndarray((max(len(text) - 7, 0),), "<u8", text, 0, (1,))
    out = words[ends - 8]
    out ^= _DIGIT_ZERO
    out &= _LAST_BYTES.take(length, mode="clip")
    bad = out + _SEVENS
    bad |= out
    bad &= _HIGH
    for factor, down, mask in _STEPS:
        out *= factor
        out >>= down
        out &= mask
    if length.size and length.max() > 8:
        at = np.flatnonzero(length > 8)
        more, wrong = unsigned(text, np.maximum(starts[at], ends[at] - _LONGEST), ends[at] - 8)
        out[at] += more * _TENS[8]
        bad[at] |= wrong | (length[at] > _LONGEST)
    return out, bad


def decimals(
    text: np.ndarray, starts: np.ndarray, dots: np.ndarray, ends: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Reads decimal numbers, "12", "1.5", ".5", "2.", without sign or exponent.

    Args:
      text: as for `unsigned`.
      starts, dots, ends: where the numbers, and in them the points, lie; the end where there is no point.
      dtype: what the numbers will be rounded to: float32, or a type that float64 is precise enough for.

    Returns:
      The numbers, float64, and the positions in `starts` of those that must be read in another way (`exact`).
    """
    places = ends - dots
    places -= 1
    np.maximum(places, 0, out=places)
    length = dots - starts
    if (length == 1).all():  # the usual case, 0.… and single digits
        digit = text[starts]
        digit -= _ZERO
        digits, odd = digit.astype(np.uint64), digit > 9
    else:
        digits, bad = unsigned(text, starts, dots)
        odd = bad != 0
    length += places
    length -= 1
    odd |= length.view(np.uint64) >= _U(_LONGEST)  # no digit at all counts as very many
    if places.any():
        after, bad = unsigned(text, ends - places, ends)
        np.minimum(places, _LONGEST, out=places)
        digits *= _TENS[places]
        digits += after
        odd |= bad != 0
    value = digits.astype(np.float64)
    value /= _TENS_FLOAT[places]
    odd |= _unsure(value) if dtype == np.float32 else digits >= _EXACT
    return value, np.flatnonzero(odd)


def _unsure(value: np.ndarray) -> np.ndarray:
    """Which float64 numbers lie so near to the middle of two float32 that rounding twice could be wrong."""
    bits = value.view(np.uint64) - _U(0x10000000 - 2)
    bits &= _U(0x1FFFFFFF)
    return bits <= _U(4)


def exact(tokens: Sequence[bytes], dtype: np.dtype) -> np.ndarray:
    """Reads numbers of every form, one after another, rounded correctly to float32 if that is the dtype.

    Raises:
      ValueError: a token is not a number.
    """
    for token in tokens:
        if len(token) > _MAX_TOKEN or not _NUMBER.fullmatch(token):
            raise ValueError(f"{shorten(token)} is not a number")
    value = np.array(list(map(float, tokens)), np.float64)
    if dtype == np.float32:
        for i in np.flatnonzero(np.isfinite(value)).tolist():
            value[i] = _nearest(tokens[i], value[i])
    return value


def _nearest(token: bytes, value: np.float64) -> np.float64:
    """Returns the float32 nearest to a decimal, where `value` is the float64 nearest to it."""
    with np.errstate(over="ignore"):
        one = np.float32(value)
        if not np.isfinite(one) or np.float64(one) == value:
            return value
        other = np.nextafter(one, np.float32(np.inf if value > one else -np.inf), dtype=np.float32)
    if not np.isfinite(other) or np.float64(one) + np.float64(other) != 2 * value:
        return value
    true = Fraction(token.decode())
    if true == Fraction(float(value)):
        return value
    return np.float64(max(one, other) if true > Fraction(float(value)) else min(one, other))


def shorten(token: bytes) -> str:
    """Returns a token for a message."""
    return repr(token[:40].decode("latin-1")) + ("…" if len(token) > 40 else "")
