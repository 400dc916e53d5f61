"""A compiled reader of usual libsvm text, for large files. Importing it needs numba (the extra `fast`).

It reads what is common, and gives the rest back: `LibSVMFormat` then reads the block in its own way, which also finds
the errors. Both give the same numbers, rounded correctly. The compiled code is kept beside this file or, where that
cannot be written, in numba's cache of the user.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numba
import numpy as np

_TENS = 10.0 ** np.arange(23)
"""The powers of ten that float64 holds exactly."""
_NEWLINE, _RETURN, _SPACE, _TAB, _COLON, _DOT, _PLUS, _MINUS, _HASH = b"\n\r \t:.+-#"
_ZERO, _E, _LOWER = ord("0"), ord("e"), 0x20
_EXACT = 1 << 53
_MOST_DIGITS = 18  # that fit a signed 64-bit number, whatever they are


_ODD = 1024
"""Numbers of a block that may be read again, one by one."""

_scratch = threading.local()
"""Arrays of a thread that are written block after block: fresh memory would cost as much as the reading."""


class Read(NamedTuple):
    """What was read of a block.

    Attributes:
      labels: float64, one for each line that is not empty. They and `values` hold until the next call of the thread.
      bounds: where the entries of each line begin, int64, (lines + 1,).
      columns: int64.
      values: float64.
      odd: int64, (n, 3): numbers that are not certain to be the nearest: the position in `labels` (-1 - position) or
        `values`, and where their text begins and ends.
    """

    labels: np.ndarray
    bounds: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    odd: np.ndarray


def read(text: np.ndarray, columns: int, base: int, single: bool) -> Read | None:
    """Reads lines of text; releases the interpreter while it does.

    Args:
      text: uint8.
      columns: columns of the matrix.
      base: number of the first column.
      single: whether the numbers will be rounded to float32.

    Returns:
      What was read, or None if there is anything but numbers and columns of the matrix in their common forms.
    """
    labels, bounds, found, values, odd = _room(len(text) // 2 + 2)
    lines, entries, odds = _walk(text, columns, base, single, labels, bounds, found, values, odd)
    if lines < 0:
        return None
    return Read(labels[:lines], bounds[: lines + 1].copy(), found[:entries].copy(), values[:entries], odd[:odds])


def _room(most: int) -> tuple[np.ndarray, ...]:
    """Returns the arrays to write to: labels, bounds, columns, values, odd numbers."""
    arrays = getattr(_scratch, "arrays", None)
    if arrays is None or len(arrays[0]) < most:
        arrays = (np.empty(most), np.empty(most + 1, np.int64), np.empty(most, np.int64), np.empty(most),
                  np.empty((_ODD, 3), np.int64))
        _scratch.arrays = arrays
    return arrays


@numba.njit(nogil=True, cache=True, inline="always")
def _number(text: np.ndarray, at: int, single: bool) -> tuple[int, float, bool]:
    """Reads a decimal number: where it ends (-1: it is none), its value, whether that is surely the nearest."""
    length = len(text)
    negative = False
    if at < length and (text[at] == _MINUS or text[at] == _PLUS):
        negative = text[at] == _MINUS
        at += 1
    digits = places = count = 0
    point = False
    while at < length:
        c = text[at]
        if _ZERO <= c <= _ZERO + 9:
            digits = digits * 10 + (c - _ZERO)
            count += 1
            places += point
        elif c == _DOT and not point:
            point = True
        else:
            break
        at += 1
    if count == 0 or count > _MOST_DIGITS:
        return -1, 0.0, False
    exponent = 0
    if at < length and (text[at] | _LOWER) == _E:
        at += 1
        down = False
        if at < length and (text[at] == _MINUS or text[at] == _PLUS):
            down = text[at] == _MINUS
            at += 1
        first = at
        while at < length and _ZERO <= text[at] <= _ZERO + 9 and at < first + 4:
            exponent = exponent * 10 + (text[at] - _ZERO)
            at += 1
        if at == first:
            return -1, 0.0, False
        if down:
            exponent = -exponent
    exponent -= places
    value = float(digits)
    sure = digits < _EXACT and -22 <= exponent <= 22
    if exponent < 0:
        value /= _TENS[min(-exponent, 22)]
    else:
        value *= _TENS[min(exponent, 22)]
    if single and sure:  # rounding twice is wrong only next to the middle of two float32
        bits = np.float64(value).view(np.int64)
        sure = bool(((bits - 0xFFFFFFE) & 0x1FFFFFFF) > 4)
    return at, -value if negative else value, sure


@numba.njit(nogil=True, cache=True)
def _walk(
    text: np.ndarray,
    columns: int,
    base: int,
    single: bool,
    labels: np.ndarray,
    bounds: np.ndarray,
    found: np.ndarray,
    values: np.ndarray,
    odd: np.ndarray,
) -> tuple[int, int, int]:
    """Reads all lines into the arrays; the numbers of lines, entries and odd numbers, -1 lines if it cannot."""
    length, at = len(text), 0
    lines = entries = odds = 0
    bounds[0] = 0
    while at < length:
        c = text[at]
        if c in (_NEWLINE, _RETURN, _SPACE, _TAB):
            at += 1
            continue
        start = at
        at, value, sure = _number(text, at, single)
        if at < 0:
            return -1, 0, 0
        labels[lines] = value
        if not sure:
            if odds == len(odd):
                return -1, 0, 0
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = -1 - lines, start, at
            odds += 1
        while at < length:
            c = text[at]
            if c in (_NEWLINE, _RETURN):
                break
            if c == _HASH:
                while at < length and text[at] != _NEWLINE and text[at] != _RETURN:
                    at += 1
                break
            if c != _SPACE and c != _TAB:
                return -1, 0, 0
            at += 1
            if at == length or text[at] <= _SPACE or text[at] == _HASH:
                continue
            start, column = at, 0
            while at < length and _ZERO <= text[at] <= _ZERO + 9:
                column = column * 10 + (text[at] - _ZERO)
                at += 1
            column -= base
            if at == start or at - start > _MOST_DIGITS or column < 0 or column >= columns:
                return -1, 0, 0
            value, sure = 1.0, True
            if at < length and text[at] == _COLON:
                start = at + 1
                at, value, sure = _number(text, start, single)
                if at < 0:
                    return -1, 0, 0
            found[entries], values[entries] = column, value
            if not sure:
                if odds == len(odd):
                    return -1, 0, 0
                odd[odds, 0], odd[odds, 1], odd[odds, 2] = entries, start, at
                odds += 1
            entries += 1
        lines += 1
        bounds[lines] = entries
    return lines, entries, odds
