"""Records with the magic number in every place, and headers: for real MXNet and for symjax."""

from __future__ import annotations

MAGIC = bytes.fromhex("0a23d7ce")
RECORDS = [b"", b"abc", MAGIC, MAGIC + MAGIC, b"abcd" + MAGIC + b"ef", b"a" + MAGIC, b"xyzw" + MAGIC, MAGIC + b"q",
           b"12345678" + MAGIC + MAGIC + b"zz" + MAGIC, b"hello" * 10, bytes(range(256))]
HEADERS = [(5, 3, 7, 2), (0, [1, 2.5], 7, 0), (0, [[1, 2], [3, 4]], 2**40, 0), (0, 0.1, 2**64 - 1, 1)]
