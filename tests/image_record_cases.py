"""Record files of images and how iterators walk them, for real MXNet and for symjax.

`tests/golden/image_record.json` holds what MXNet gives (`tests/oracle/record_image_record.py`).
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any


def png(pixels: Any) -> bytes:
    """An image file of uint8 (H, W, 3), RGB, without any library."""
    h, w, _ = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def boxes(i: int) -> list[float]:
    return [2, 5, *(v for k in range(i % 3 + 1) for v in (k, 0.1, 0.2, 0.5 + 0.1 * k, 0.9))]


LABELS = {"one": float, "two": lambda i: [i, i / 2], "boxes": boxes}


def write(mx: Any, np: Any, folder: Path, kind: str, count: int = 5) -> tuple[str, str]:
    """A record file of smooth images (20 + i, 24) with labels, and its index."""
    rec, idx = str(folder / f"{kind}.rec"), str(folder / f"{kind}.idx")
    writer = mx.recordio.MXIndexedRecordIO(idx, rec, "w")
    for i in range(count):
        y, x = np.mgrid[: 20 + i, :24]
        pixels = np.stack([255 - x * 2 - y - i, y * 4, x * 3 + i], -1).clip(0, 255).astype("uint8")
        writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, LABELS[kind](i), i + 100, 0), png(pixels)))
    writer.close()
    return rec, idx


# name: (class, labels, arguments)
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": ("ImageRecordIter", "one", {}),
    "normalized": ("ImageRecordIter", "one", {"mean_r": 100, "mean_g": 50, "mean_b": 10, "std_r": 2, "scale": 0.5}),
    "std": ("ImageRecordIter", "one", {"std_r": 2, "std_g": 4, "std_b": 5}),
    "uint8": ("ImageRecordUInt8Iter", "one", {"mean_r": 100, "scale": 2}),
    "int8": ("ImageRecordInt8Iter", "one", {"mean_r": 200, "mean_g": 50, "mean_b": 10}),
    "v1": ("ImageRecordIter_v1", "one", {}),
    "labels": ("ImageRecordIter", "two", {"label_width": 2}),
    "mirrored": ("ImageRecordIter", "one", {"resize": 18, "mirror": True}),
    "grey": ("ImageRecordIter", "one", {"data_shape": (1, 16, 16)}),
    "enlarged": ("ImageRecordIter", "one", {"data_shape": (3, 30, 30)}),
    "part": ("ImageRecordIter", "one", {"num_parts": 2, "part_index": 1}),
    "rotated": ("ImageRecordIter", "one", {"rotate": 30}),
    "crop_size": ("ImageRecordIter", "one", {"max_crop_size": 12, "min_crop_size": 12}),
    "padded": ("ImageRecordIter", "one", {"pad": 9, "fill_value": 7, "data_shape": (3, 32, 32)}),
    "scaled": ("ImageRecordIter", "one", {"min_random_scale": 1.5, "max_random_scale": 1.5}),
    "whole": ("ImageRecordIter", "one", {"random_resized_crop": True, "min_random_area": 1, "max_random_area": 1,
                                         "min_aspect_ratio": 1.0, "max_aspect_ratio": 1.0}),
    "det": ("ImageDetRecordIter", "boxes", {}),
    "det_wide": ("ImageDetRecordIter", "boxes", {"label_pad_width": 30, "label_pad_value": -3, "mean_r": 10,
                                                 "std_r": 2}),
    "det_mirrored": ("ImageDetRecordIter", "boxes", {"rand_mirror_prob": 1}),
    "det_fit": ("ImageDetRecordIter", "boxes", {"resize_mode": "fit", "fill_value": 9}),
    "det_shrink": ("ImageDetRecordIter", "boxes", {"resize_mode": "shrink", "data_shape": (3, 22, 40)}),
}  # fmt: skip


def run(mx: Any, np: Any, folder: Path, name: str) -> Any:
    """[descriptions, for two epochs every batch's: pad, labels, and of each image the mean and the corners]."""
    cls, kind, args = CASES[name]
    rec, _ = write(mx, np, folder, kind)
    it = getattr(mx.io, cls)(**{"path_imgrec": rec, "data_shape": (3, 16, 16), "batch_size": 2, "verbose": False,
                                "preprocess_threads": 2, **args})
    found: list[Any] = [[d.name, list(d.shape), np.dtype(d.dtype).name] for d in it.provide_data + it.provide_label]
    for _ in range(2):
        for batch in it:
            data = batch.data[0].asnumpy().astype("float64")
            images = [[float(i.mean()), *i[:, 0, 0].tolist(), *i[:, -1, -1].tolist()] for i in data]
            found.append([batch.pad, batch.label[0].asnumpy().tolist(), images])
        it.reset()
    return found
