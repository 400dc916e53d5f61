"""Tables of text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from symjax.cli._state import State, clean


def table(state: State, header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lays rows out in columns under a bold header.

    Args:
      state: decides about colour.
      header: column titles.
      rows: cells as text.
      right: columns to align to the right.
    """
    rows = [[clean(c).replace("\n", "�") for c in row] for row in rows]
    widths = [max(_width(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [" " * (w - _width(c)) + c if i in right else c + " " * (w - _width(c))
                  for i, (c, w) in enumerate(zip(cells, widths, strict=True))]  # fmt: skip
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * w for w in widths)
    return "\n".join([state.paint(line(header), bold=True), rule, *map(line, rows)])


def dims(shape: Any) -> str:
    """ "1×3×224×224", "?" for what is unknown."""
    from symjax.symbol._diagram import dims

    return dims(shape)


def number(value: int) -> str:
    return f"{value:,}"


def size(n_bytes: int) -> str:
    """Bytes for people."""
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"


def json_shape(shape: Any) -> list[int | None] | None:
    """A shape for JSON: null where unknown."""
    return None if shape is None else [d or None for d in shape]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)
