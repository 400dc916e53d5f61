"""Opening and replacing files: memory maps, atomic writing, and naming what a foreign file is."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO

from symjax.lowering.errors import FileError, MissingFileError

_NUMPY_REMEDY = "open it with numpy.load(..., allow_pickle=False) and store the arrays with nd.save"
_PICKLE = ("a Python pickle", "optimizer states (.states) are pickles; symjax never unpickles a file")

# first bytes: (what it is, what to do)
_SIGNATURES: dict[bytes, tuple[str, str]] = {
    b"version https://git-lfs": ("a git-LFS pointer, not the data itself", "fetch the real file with `git lfs pull`"),
    b"PK\x03\x04": ("a zip archive (perhaps .npz, as MXNet 2's savez writes)", f"unzip it, or {_NUMPY_REMEDY}"),
    b"PK\x05\x06": ("an empty zip archive", "store the arrays again"),
    b"\x93NUMPY": ("a numpy .npy array", _NUMPY_REMEDY),
    b"\x1f\x8b": ("gzip-compressed data", "decompress it first (gunzip)"),
    b"BZh": ("bzip2-compressed data", "decompress it first (bunzip2)"),
    b"\xfd7zXZ\x00": ("xz-compressed data", "decompress it first (unxz)"),
    b"\x28\xb5\x2f\xfd": ("zstd-compressed data", "decompress it first (unzstd)"),
    b"7z\xbc\xaf\x27\x1c": ("a 7-zip archive", "unpack it first"),
    b"\x89HDF\r\n": ("an HDF5 file (of Keras?)", "convert it to MXNet's format first"),
    b"\x0a\x23\xd7\xce": ("a RecordIO file (.rec)", "read it with recordio or an image iterator"),
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
}


def describe_foreign(head: bytes, size: int) -> tuple[str, str] | None:
    """Recognises a file of another kind by its first bytes.

    Args:
        head: The first bytes, 256 or more where the file has them.
        size: Size of the whole file in bytes.

    Returns:
        (what the file is, what to do about it), or None if the bytes say nothing.
    """
    for prefix, answer in _SIGNATURES.items():
        if head.startswith(prefix):
            return answer
    if len(head) > 9 and head[8:9] == b"{" and struct.unpack_from("<Q", head)[0] <= size - 8:
        return "a safetensors file", "read it with symjax.interop.safetensors"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"{":
        return "JSON text", "a -symbol.json holds the graph: load it with symbol.load, and give the .params file here"
    if text[:5].lower() in (b"<!doc", b"<html", b"<?xml"):
        return "a web page (HTML or XML)", "the download went wrong: fetch the file itself"
    if text and all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in text):
        return "plain text", "give the binary .params file"
    return None


@contextlib.contextmanager
def explained(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Turns an OSError into a `FileError` (MXNet raises MXNetError there) that names the file and what to look at.

    Args:
        path: The file as the caller named it.
        doing: "open" or "write".
    """
    try:
        yield
    except OSError as e:
        if isinstance(e, FileError):
            raise
        path = os.fspath(path)
        folder = os.path.dirname(os.path.abspath(path))
        kind: type[FileError] = FileError
        text = f"cannot {doing} {path!r}: {e.strerror or e}"
        if isinstance(e, FileNotFoundError):
            kind = MissingFileError
            text += "" if os.path.isdir(folder) else f" (there is no folder {folder!r})"
            text += "" if os.path.isabs(path) else f"; the working directory is {os.getcwd()!r}"
        raise kind(text) from e


def open_buffer(path: str) -> memoryview:
    """Maps a file read-only, or reads it where it cannot be mapped (a pipe, an empty file).

    The map lives as long as a view on it does. Replacing the file by `atomic_write` leaves it intact; cutting the
    file short in place does not, as with every memory map.
    """
    with explained(path, "open"), open(path, "rb") as file:
        mode = os.fstat(file.fileno())
        if stat.S_ISREG(mode.st_mode) and mode.st_size > 0:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if stat.S_ISCHR(mode.st_mode) or stat.S_ISBLK(mode.st_mode):
            raise OSError(f"{path} is a device, not a file")
        return memoryview(file.read())


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file for writing that takes the place of `path` only when everything is on the disk.

    The data goes to a temporary file in the same folder, is flushed, and is renamed over the target. After an
    exception, a crash or a full disk the old file is still whole. A symbolic link is followed, the permissions of an
    existing file are kept, a new one gets the usual ones. Pipes and devices are written directly.

    Raises:
        OSError: The folder does not exist or is not writable, or the disk is full.
    """
    target = os.path.realpath(os.fspath(path))
    existing = os.stat(target) if os.path.exists(target) else None
    if existing is not None and not stat.S_ISREG(existing.st_mode):
        with explained(path, "write"), open(target, "wb") as direct:
            yield direct
        return
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(6)}.tmp")
    # os.open lets the process's umask act; tempfile would make the file private to its owner
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with explained(path, "write"):
        descriptor = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if existing is not None:
            os.chmod(temporary, stat.S_IMODE(existing.st_mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Makes a rename durable where the system can (not on Windows)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
