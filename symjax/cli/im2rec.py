"""`symjax im2rec`: lists of images, and record files of them."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import click

from symjax.cli._images import ENDINGS
from symjax.cli._state import Problem, State, Unreadable, common_options


class Item(NamedTuple):
    """A line of a list: number, labels, path below the root."""

    number: int
    labels: list[float]
    path: str


class Packing(NamedTuple):
    """What is done to an image on its way into the record."""

    root: str
    resize: int
    center_crop: bool
    quality: int
    encoding: str
    color: int
    pass_through: bool
    pack_label: bool


@click.command("im2rec")
@click.argument("prefix")
@click.argument("root", type=click.Path(exists=True, file_okay=False))
@click.option("--list", "make_list", is_flag=True, help="Write PREFIX.lst, the list of the images, and no records.")
@click.option("--recursive", is_flag=True, help="With --list: each folder below ROOT is a class; labels count them.")
@click.option("--exts", default=".jpeg,.jpg,.png", show_default=True, help="With --list: endings of image files.")
@click.option("--chunks", type=click.IntRange(1), default=1, show_default=True, help="With --list: number of lists.")
@click.option("--train-ratio", type=click.FloatRange(0, 1), default=1.0, show_default=True,
              help="With --list: part of the images for PREFIX_train.lst; the others go to PREFIX_val.lst.")
@click.option("--test-ratio", type=click.FloatRange(0, 1), default=0.0, show_default=True,
              help="With --list: part of the images for PREFIX_test.lst.")
@click.option("--shuffle/--no-shuffle", default=True, show_default=True, help="With --list: mix the images.")
@click.option("--pass-through", is_flag=True, help="Take the files as they are, without decoding.")
@click.option("--resize", type=click.IntRange(0), default=0, show_default=True, help="Shorter side in pixels; 0: keep.")
@click.option("--center-crop", is_flag=True, help="Cut a square out of the middle.")
@click.option("--quality", type=click.IntRange(0, 100), default=95, show_default=True,
              help="Of JPEG, 1 to 100; of PNG, its compression 0 to 9.")
@click.option("--encoding", type=click.Choice([".jpg", ".png"]), default=".jpg", show_default=True,
              help="Format of the images in the records.")
@click.option("--image-color", type=click.Choice(["1", "0", "-1"]), default="1", show_default=True,
              help="1: colour, 0: grey, -1: as the file is.")
@click.option("--pack-label", is_flag=True, help="Put all labels of the list into the records, not only the first.")
@click.option("--num-thread", type=click.IntRange(1), default=os.cpu_count() or 1, help="Threads that decode.")
@common_options
@click.pass_obj
def command(state: State, prefix: str, root: str, make_list: bool, recursive: bool, exts: str, chunks: int,
            train_ratio: float, test_ratio: float, shuffle: bool, num_thread: int, image_color: str, **how: Any) -> int:
    """Make lists of the images below ROOT, or pack those of PREFIX.lst into PREFIX.rec and its index PREFIX.idx.

    A line of a list is: number, labels, path below ROOT, with tabs between. PREFIX may also be the .lst file, or the
    beginning of several. The exit code is 1 if an image could not be packed; the others are.
    """
    if make_list:
        endings = {e.strip().lower() for e in exts.split(",")} if exts else set(ENDINGS)
        items = list(find_images(root, recursive, endings))
        if not items:
            raise Problem(f"there are no images ({exts}) in {root}")
        for path, part in split(prefix, items, chunks, train_ratio, test_ratio, shuffle):
            write_list(path, part)
            state.note(f"{path}: {len(part)} images")
        return 0
    failed = 0
    packing = Packing(root=root, color=int(image_color), **how)
    for path in lists_of(prefix):
        failed += pack_list(state, path, packing, num_thread)
    return 1 if failed else 0


def find_images(root: str, recursive: bool, endings: set[str]) -> Iterator[Item]:
    """Yields the images below a folder, in the order of their names; the label is 0, or counts the folders."""
    folders: dict[str, int] = {}
    number = 0
    walk: Iterable[tuple[str, list[str], list[str]]] = os.walk(root, followlinks=True) if recursive else [
        (root, [], os.listdir(root))]  # fmt: skip
    for folder, below, names in walk:
        below.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1].lower() in endings and os.path.isfile(path):
                label = folders.setdefault(folder, len(folders)) if recursive else 0
                yield Item(number, [float(label)], os.path.relpath(path, root))
                number += 1


def split(prefix: str, items: list[Item], chunks: int, train: float, test: float,
          shuffle: bool) -> Iterator[tuple[str, list[Item]]]:
    """Yields the names of lists and what they hold."""
    if train + test > 1:
        raise click.UsageError("--train-ratio and --test-ratio together are more than 1")
    if shuffle:
        random.Random(100).shuffle(items)
    size = -(-len(items) // chunks)
    for i in range(chunks):
        part = items[i * size:(i + 1) * size]
        name = f"{prefix}_{i}" if chunks > 1 else prefix
        if train == 1:
            yield f"{name}.lst", part
            continue
        a, b = int(len(part) * test), int(len(part) * (test + train))
        for kind, rows in (("test", part[:a]), ("train", part[a:b]), ("val", part[b:])):
            if rows:
                yield f"{name}_{kind}.lst", rows


def write_list(path: str, items: list[Item]) -> None:
    """Writes a list file."""
    from symjax._files import atomic_write

    with atomic_write(path) as file:
        for item in items:
            labels = "\t".join(f"{v:f}" for v in item.labels)
            file.write(f"{item.number}\t{labels}\t{item.path}\n".encode())


def lists_of(prefix: str) -> list[str]:
    """The list files that a prefix means."""
    for path in (prefix, f"{prefix}.lst"):
        if os.path.isfile(path) and path.endswith(".lst"):
            return [path]
    folder, base = os.path.split(prefix)
    names = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    found = sorted(os.path.join(folder, n) for n in names if n.startswith(base) and n.endswith(".lst"))
    if not found:
        raise Unreadable(f"there is no list {prefix}.lst; make one with `symjax im2rec --list {prefix} ROOT`")
    return found


def read_list(path: str) -> list[Item]:
    """Reads a list file."""
    found = []
    with open(path, encoding="utf-8") as file:
        for at, line in enumerate(file, 1):
            number, *labels, name = line.rstrip("\n").split("\t")
            try:
                found.append(Item(int(number), [float(v) for v in labels], name))
                if not labels:
                    raise ValueError
            except ValueError:
                raise Unreadable(f"{path}: line {at}: expected a number, labels and a path, separated by tabs, found "
                                 f"{line[:60]!r}") from None
    return found


def pack_list(state: State, path: str, how: Packing, threads: int) -> int:
    """Packs the images of a list, in its order, and returns how many failed."""
    import tqdm

    from symjax import recordio

    items, stem = read_list(path), path.removesuffix(".lst")
    failed = 0
    writer = recordio.MXIndexedRecordIO(f"{stem}.idx", f"{stem}.rec", "w")
    try:
        with ThreadPoolExecutor(threads, "symjax-im2rec") as pool:
            work = _in_order(pool, items, how, 8 * threads)
            for item, future in tqdm.tqdm(work, total=len(items), desc=os.path.basename(stem), unit="image",
                                          disable=None):
                try:
                    writer.write_idx(item.number, future.result())
                except (OSError, ValueError, RuntimeError) as e:
                    failed += 1
                    state.error(f"{os.path.join(how.root, item.path)}: {e}")
    finally:
        writer.close()
    state.note(f"{stem}.rec: {len(items) - failed} images" + (f", {failed} failed" if failed else ""))
    return failed


def _in_order(pool: ThreadPoolExecutor, items: list[Item], how: Packing,
              window: int) -> Iterator[tuple[Item, Future[bytes]]]:
    """Yields items with their records to be, at most `window` of them in memory."""
    coming: deque[tuple[Item, Future[bytes]]] = deque()
    for item in items:
        coming.append((item, pool.submit(record_of, item, how)))
        if len(coming) >= window:
            yield coming.popleft()
    yield from coming


def record_of(item: Item, how: Packing) -> bytes:
    """The record of an image.

    Raises:
      OSError, ValueError: the file cannot be read, or is no image.
    """
    from symjax import recordio

    label: Any = item.labels if how.pack_label and len(item.labels) > 1 else item.labels[0]
    header = recordio.IRHeader(0, label, item.number, 0)
    with open(os.path.join(how.root, item.path), "rb") as file:
        raw = file.read()
    if how.pass_through:
        return recordio.pack(header, raw)
    _, image = recordio.unpack_img(recordio.pack(header, raw), how.color)
    if image is None:
        raise ValueError("it is not an image that can be decoded")
    return recordio.pack_img(header, fitted(image, how), quality=how.quality, img_fmt=how.encoding)


def fitted(image: Any, how: Packing) -> Any:
    """The image cut and resized."""
    from symjax.image._host import resized

    image = image[:, :, None] if image.ndim == 2 else image
    h, w = image.shape[:2]
    if how.center_crop and h != w:
        side = min(h, w)
        image = image[(h - side) // 2:(h - side) // 2 + side, (w - side) // 2:(w - side) // 2 + side]
        h = w = side
    if how.resize:
        new_w, new_h = (how.resize, h * how.resize // w) if h > w else (w * how.resize // h, how.resize)
        image = resized(image, new_w, new_h, 1)
    return image
