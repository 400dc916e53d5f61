"""Text files as blocks of whole lines: which files a path means, which bytes are a part, and reading them.

A path is a file, a directory (its files, not those of folders below), a pattern for the last component (a regular
expression), or several of these separated by ";". Options follow a "?", as in "train.txt?indexing_mode=1".
"""

from __future__ import annotations

import bisect
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from symjax.lowering.errors import FileError, MissingFileError, ParamError

BLOCK = 1 << 17
"""Bytes of a read block. What is computed from one then lies in the cache of one core."""

MAX_LINE = 1 << 26
"""Bytes of the longest line that is read."""


class TextFile(NamedTuple):
    """A file and its size in bytes."""

    path: str
    size: int


class Segment(NamedTuple):
    """The bytes `begin` to `end` of a file, whole lines."""

    path: str
    begin: int
    end: int


class Block(NamedTuple):
    """Whole lines of a file, from byte `offset` on."""

    path: str
    offset: int
    data: bytes

    def line_number(self, at: int) -> int:
        """Returns the number, from 1, of the line in the file that holds byte `at` of the block."""
        newlines = returns = 0
        with open(self.path, "rb") as f:
            for chunk in _chunks(f, self.offset + at):
                newlines += chunk.count(b"\n")
                returns += chunk.count(b"\r")
        return 1 + (newlines or returns)


def find_files(uri: str, argument: str) -> tuple[list[TextFile], dict[str, str]]:
    """Returns the files that a path means, empty ones left out, and its options.

    Args:
      uri: the path, see the module.
      argument: what the path was given for, for messages.

    Raises:
      MissingFileError: there is no such file.
      FileError: no file has any content.
    """
    path = uri
    options: dict[str, str] = {}
    if "?" in uri and not os.path.exists(uri):
        path, _, text = uri.partition("?")
        for item in text.split("&"):
            key, _, options[key] = item.partition("=")
    files = [f for part in path.split(";") if part for f in _expand(part.removeprefix("file://"), argument)]
    if not files:
        raise FileError(f"{argument}={uri!r}: no file there has any content")
    return files, options


def _expand(path: str, argument: str) -> list[TextFile]:
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    elif os.path.exists(path):
        return [TextFile(path, size)] if (size := os.path.getsize(path)) else []
    else:
        found = _matching(path)
        if not found:
            raise MissingFileError(f"{argument}: there is no file or directory {path!r}")
    return [TextFile(f, size) for f in found if os.path.isfile(f) and (size := os.path.getsize(f))]


def _matching(path: str) -> list[str]:
    folder, pattern = os.path.split(path)
    try:
        wanted = re.compile(pattern)
        return [os.path.join(folder, n) for n in sorted(os.listdir(folder or ".")) if wanted.fullmatch(n)]
    except (re.error, OSError):
        return []


def partition(files: Sequence[TextFile], num_parts: int, part_index: int) -> list[Segment]:
    """Returns part `part_index` of the lines of files: parts are equal in bytes, but for whole lines.

    A part begins with the first line that begins after its first byte; it is MXNet's part.
    """
    if num_parts < 1 or not 0 <= part_index < num_parts:
        raise ParamError(f"part_index must be in 0 … num_parts - 1, got part_index={part_index} and "
                         f"num_parts={num_parts}")
    offsets = [0, *itertools.accumulate(f.size for f in files)]
    step = -(-offsets[-1] // num_parts)
    nominal = [min(step * i, offsets[-1]) for i in (part_index, part_index + 1)]
    if nominal[0] == nominal[1]:
        return []
    begin, end = (_line_start(files, offsets, at) for at in nominal)
    cut = ((f.path, max(begin - o, 0), min(end - o, f.size)) for f, o in zip(files, offsets, strict=False))
    return [Segment(*c) for c in cut if c[1] < c[2]]


def before(files: Sequence[TextFile], segments: Sequence[Segment]) -> list[Segment]:
    """Returns what comes before a part, given as its segments."""
    out = []
    for f in files:
        if segments and f.path == segments[0].path:
            return [*out, Segment(f.path, 0, segments[0].begin)]
        out.append(Segment(f.path, 0, f.size))
    return out


def _line_start(files: Sequence[TextFile], offsets: list[int], at: int) -> int:
    i = bisect.bisect_right(offsets, at) - 1
    if at == offsets[i]:
        return at
    seen = False  # whether the end of the line that `at` lies in was passed
    with open(files[i].path, "rb") as f:
        f.seek(at - offsets[i])
        while chunk := f.read(1 << 16):
            for m in re.finditer(rb"[^\r\n]" if seen else rb"[\r\n]+", chunk):
                if seen or m.end() < len(chunk):
                    return at + (m.start() if seen else m.end())
                seen = True
            at += len(chunk)
    return at


def read_blocks(segments: Sequence[Segment], size: int = BLOCK) -> Iterator[Block]:
    """Yields the lines of segments as blocks of about `size` bytes. A line is never divided.

    Raises:
      FileError: a file cannot be read, ends early, or has a line of more than `MAX_LINE` bytes.
    """
    for segment in segments:
        try:
            yield from _blocks_of(segment, size)
        except OSError as e:
            if isinstance(e, FileError):
                raise
            raise FileError(f"{segment.path}: {e.strerror or e}") from e


def _blocks_of(segment: Segment, size: int) -> Iterator[Block]:
    path, offset, end = segment
    with open(path, "rb") as f:
        f.seek(offset)
        held: list[bytes] = []
        room, left = MAX_LINE, end - offset
        for chunk in _chunks(f, left, size):
            left -= len(chunk)
            cut = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1 if left else len(chunk)
            if not cut:
                held.append(chunk)
                room -= len(chunk)
                if room < 0:
                    raise FileError(f"{path}: the line at byte {offset} has more than {MAX_LINE} bytes")
                continue
            data = b"".join([*held, memoryview(chunk)[:cut]])
            yield Block(path, offset, data)
            offset += len(data)
            held, room = [chunk[cut:]], MAX_LINE - len(chunk) + cut
        if left:
            raise FileError(f"{path}: the file ends {left} bytes early; it was changed while it was read")


def _chunks(f: BinaryIO, total: int, size: int = 1 << 20) -> Iterator[bytes]:
    while total and (chunk := f.read(min(size, total))):
        total -= len(chunk)
        yield chunk
