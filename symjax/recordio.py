"""Record files: sequences of bytes, and of images with labels, in one file (MXNet's `mx.recordio`)."""

from __future__ import annotations

import os
import struct
from collections import namedtuple
from collections.abc import Callable
from numbers import Number
from typing import Any, BinaryIO, TextIO

import numpy as np

from symjax._files import explained
from symjax._record_format import RecordFile, encode, local_path, read_index
from symjax.lowering.errors import ArgumentError, DataFormatError, MissingLoweringError, MXNetError, ParamError

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]


class MXRecordIO:
    """A record file, read or written from the beginning on.

    It can be pickled while it is open for reading, and begins with the first record in the process that unpickles it;
    in a forked process, call `reset` first.

    Args:
      uri: path of the file.
      flag: "r" to read it, "w" to write it anew.

    Raises:
      MXNetError: the file cannot be opened.
      ValueError: another flag.
    """

    def __init__(self, uri: str, flag: str) -> None:
        self.uri = os.fspath(uri)
        self.flag = flag
        self.pid: int | None = None
        self.is_open = False
        self.writable = False
        self._reader: RecordFile | None = None
        self._writer: BinaryIO | None = None
        self.open()

    def open(self) -> None:
        """Opens the file; one that is written is emptied."""
        if self.flag not in ("r", "w"):
            raise ParamError(f"Invalid flag {self.flag}")
        self.writable = self.flag == "w"
        if self.writable:
            with explained(self.uri, "write"):
                self._writer = open(local_path(self.uri), "wb")  # noqa: SIM115  # closed by close()
        else:
            self._reader = RecordFile(self.uri)
        self.pid = os.getpid()
        self.is_open = True

    def close(self) -> None:
        """Closes the file. Closing it twice is no error."""
        if not self.is_open:
            return
        file = self._writer if self.writable else self._reader
        self._reader = self._writer = None
        self.is_open, self.pid = False, None
        if file is not None:
            file.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105  # at the end of the interpreter contextlib may be gone
            self.close()
        except Exception:
            pass

    def __getstate__(self) -> dict[str, Any]:
        # MXNet: pickling closes the object, and unpickling empties a file that is written. Here neither.
        if self.writable and self.is_open:
            raise MXNetError(f"{self.uri}: a record file that is being written cannot be pickled: close it first")
        return {**self.__dict__, "_reader": None, "_writer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.is_open:
            self.open()

    def reset(self) -> None:
        """Goes back to the first record; a file that is written is emptied."""
        self.close()
        self.open()

    def _reading(self) -> RecordFile:
        if self.writable:
            raise ArgumentError(f"{self.uri} is open for writing, not for reading")
        self._check_pid()
        assert self._reader is not None
        return self._reader

    def _writing(self) -> BinaryIO:
        if not self.writable:
            raise ArgumentError(f"{self.uri} is open for reading, not for writing")
        self._check_pid()
        assert self._writer is not None
        return self._writer

    def _check_pid(self) -> None:
        if not self.is_open:
            raise MXNetError(f"{self.uri} is closed: call reset() to begin again")
        if self.pid != os.getpid():
            raise MXNetError(f"Forbidden operation in multiple processes: {self.uri} was opened by process {self.pid}; "
                             f"call reset() in this one")

    def write(self, buf: bytes) -> None:
        """Appends a record.

        Raises:
          AssertionError: the file is open for reading.
        """
        file = self._writing()
        with explained(self.uri, "write"):
            file.writelines(encode(buf))

    def read(self) -> bytes | None:
        """Returns the next record, None after the last.

        Raises:
          MXNetError: the file is broken there; the message says at which byte.
          AssertionError: the file is open for writing.
        """
        return self._reading().read()


class MXIndexedRecordIO(MXRecordIO):
    """A record file with an index: each record has a key, and can be read by itself.

    Args:
      idx_path: path of the index file, lines `key, tab, offset`.
      uri: path of the record file.
      flag: "r" or "w".
      key_type: makes a key from its text.

    Attributes:
      idx: offsets by key.
      keys: the keys in the order of the index file.
    """

    def __init__(self, idx_path: str, uri: str, flag: str, key_type: Callable[[Any], Any] = int) -> None:
        self.idx_path = os.fspath(idx_path)
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.key_type = key_type
        self.fidx: TextIO | None = None
        super().__init__(uri, flag)

    def open(self) -> None:
        super().open()
        self.idx, self.keys = {}, []
        if self.writable:
            with explained(self.idx_path, "write"):
                self.fidx = open(local_path(self.idx_path), "w", encoding="utf-8")  # noqa: SIM115  # closed by close()
            return
        for key, offset in read_index(self.idx_path, self.key_type):
            self.idx[key] = offset
            self.keys.append(key)

    def close(self) -> None:
        super().close()
        if self.fidx is not None:
            self.fidx.close()
            self.fidx = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "fidx": None}

    def seek(self, idx: Any) -> None:
        """Goes to the record with a key; in a forked process the file is opened again.

        Raises:
          KeyError: there is no such key.
        """
        if not self.writable and self.is_open and self.pid != os.getpid():
            self.reset()
        reader, offset = self._reading(), self.idx[idx]
        if not 0 <= offset <= reader.size:
            raise DataFormatError(f"{self.idx_path}: key {idx!r} has offset {offset}, but {self.uri} has {reader.size} "
                                  f"bytes")
        reader.position = offset

    def tell(self) -> int:
        """Returns the offset at which the next record will be written."""
        return self._writing().tell()

    def read_idx(self, idx: Any) -> bytes | None:
        """Returns the record with a key. See `seek` and `read` for errors."""
        self.seek(idx)
        return self.read()

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Appends a record with a key."""
        key, offset = self.key_type(idx), self.tell()
        self.write(buf)
        assert self.fidx is not None
        self.fidx.write(f"{key}\t{offset}\n")
        self.idx[key] = offset
        self.keys.append(key)


IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # MXNet prints this name
"""What goes before an image in a record: `flag` is the number of labels (0: one, in the header itself), `label` one
number or an array, `id` the number of the record, `id2` its upper 64 bits."""

_HEADER = struct.Struct("<IfQQ")


def pack(header: Any, s: bytes) -> bytes:
    """Returns a record of a header and bytes.

    Args:
      header: an `IRHeader`, or its four values; the flag is set from the label.
      s: what follows, an image file usually.

    Raises:
      ArgumentError: a value does not fit its field.
    """
    header = IRHeader(*header)
    if isinstance(header.label, Number):
        header = header._replace(flag=0)
    else:
        label = np.asarray(header.label, dtype=np.float32)
        header = header._replace(flag=label.size, label=0)
        s = label.tobytes() + s
    try:
        return _HEADER.pack(*header) + s
    except struct.error as e:
        raise ArgumentError(f"{header} does not fit: {e} (flag is 32 bits, id and id2 64 bits without sign)") from None


def unpack(s: bytes) -> tuple[Any, bytes]:
    """Returns (header, the bytes behind it) of a record.

    Raises:
      DataFormatError: it is too short for its header and labels.
    """
    if len(s) < _HEADER.size:
        raise DataFormatError(f"an image record has a header of {_HEADER.size} bytes, this one is {len(s)} bytes long")
    header = IRHeader(*_HEADER.unpack_from(s))
    at = _HEADER.size
    if header.flag > 0:
        if header.flag * 4 > len(s) - at:
            raise DataFormatError(f"an image record of {len(s)} bytes cannot hold {header.flag} labels")
        header = header._replace(label=np.frombuffer(s, np.float32, header.flag, at))
        at += header.flag * 4
    return header, s[at:]


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[Any, np.ndarray | None]:
    """Returns (header, image) of a record.

    Args:
      s: the record.
      iscolor: 1: three channels, 0: grey, -1: as the file is.

    Returns:
      The image as uint8 (H, W, 3) with channels BGR, or (H, W); None where the bytes are no image.
    """
    header, data = unpack(s)
    try:
        import cv2
    except ImportError:
        return header, _decode_with_pillow(data, iscolor)
    if not data:
        return header, None
    return header, cv2.imdecode(np.frombuffer(data, np.uint8), iscolor)


def _decode_with_pillow(data: bytes, iscolor: int) -> np.ndarray | None:
    from symjax.lowering.ops.opencv import decode

    if iscolor not in (-1, 0, 1):
        raise MissingLoweringError(f"iscolor={iscolor} needs OpenCV: install symjax-mxnet[image]")
    try:
        made = decode(data, int(iscolor != 0), to_rgb=False)
    except DataFormatError:
        return None
    # the file's own number of channels: grey images decode to three equal ones
    grey = iscolor == 0 or (iscolor == -1 and (made == made[:, :, :1]).all())
    return made[:, :, 0] if grey else made


_JPEG, _PNG = (".JPG", ".JPEG"), (".PNG",)


def pack_img(header: Any, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Returns a record of a header and an image.

    Args:
      header: an `IRHeader`.
      img: uint8 (H, W, 3) with channels BGR, or (H, W).
      quality: of a JPEG, 1 to 100; of a PNG, how much it is compressed, 1 to 9.
      img_fmt: ".jpg" or ".png"; with OpenCV others too.
    """
    return pack(header, encode_image(img, quality, img_fmt))


def encode_image(img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Returns the bytes of an image file. Arguments: see `pack_img`.

    Raises:
      ArgumentError: the image cannot be written in this format.
      MissingLoweringError: neither OpenCV nor Pillow is there.
    """
    kind = img_fmt.upper()
    try:
        import cv2
    except ImportError:
        return _encode_with_pillow(img, quality, kind)
    flags = {**dict.fromkeys(_JPEG, cv2.IMWRITE_JPEG_QUALITY), **dict.fromkeys(_PNG, cv2.IMWRITE_PNG_COMPRESSION)}
    try:
        done, buffer = cv2.imencode(img_fmt, img, [flags[kind], quality] if kind in flags else [])
    except cv2.error as e:
        shape = getattr(img, "shape", None)
        raise ArgumentError(f"failed to encode image of shape {shape} as {img_fmt}: {e}") from None
    if not done:
        raise ArgumentError(f"failed to encode image of shape {img.shape} as {img_fmt}")
    return buffer.tobytes()


def _encode_with_pillow(img: np.ndarray, quality: int, kind: str) -> bytes:
    import io

    try:
        from PIL import Image
    except ImportError:
        raise MissingLoweringError("encoding images needs OpenCV or Pillow: install symjax-mxnet[image]") from None
    if kind not in (*_JPEG, *_PNG):
        raise MissingLoweringError(f"{kind.lower()} images need OpenCV: install symjax-mxnet[image]")
    out = io.BytesIO()
    pixels = np.ascontiguousarray(img[:, :, ::-1] if img.ndim == 3 and img.shape[2] == 3 else img.squeeze())
    made = Image.fromarray(pixels)
    if kind in _JPEG:
        made.save(out, "JPEG", quality=quality)
    else:
        made.save(out, "PNG", compress_level=quality)
    return out.getvalue()
