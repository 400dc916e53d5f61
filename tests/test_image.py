"""`mx.image`: functions and augmenters give real MXNet's numbers for the same seeds; iterators over images."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from tests.image_cases import AUGMENTERS, DET, FUNCTIONS, picture, run_augmenter, run_det, run_function

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "image.json").read_text())


def check(have: Any, want: Any, tolerance: float) -> None:
    """Compares nested lists; numbers may differ by so many of 256 levels."""
    if isinstance(want, list):
        assert len(have) == len(want)
        for h, w in zip(have, want, strict=True):
            check(h, w, tolerance)
    elif isinstance(want, float):
        assert abs(have - want) <= tolerance, (have, want)
    else:
        assert have == want


@pytest.mark.parametrize("name", AUGMENTERS)
def test_augmenters(name: str) -> None:
    says, results = run_augmenter(mx, np, name)
    assert says == GOLDEN["augmenters"][name][0]
    # other versions of OpenCV round 8-bit interpolation otherwise
    check(results, GOLDEN["augmenters"][name][1], 1.01 if "size" in str(says) else 1e-3)


@pytest.mark.parametrize("name", DET)
def test_augmenters_of_boxes(name: str) -> None:
    says, results = run_det(mx, np, name)
    assert says == GOLDEN["det"][name][0]
    check(results, GOLDEN["det"][name][1], 0.05 if name == "list" else 1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(run_function(mx, np, name), GOLDEN["functions"][name], 1.01 if "resize" in name or "crop" in name else 1e-4)


@pytest.mark.parametrize("name", ["list", "sized", "normalize", "contrast"])
def test_numpy_images_give_the_same(name: str) -> None:
    from tests import image_cases

    made = []
    for convert in (np.asarray, lambda a: mx.nd.array(a, dtype=a.dtype)):
        random.seed(1)
        np.random.seed(1)
        image = picture(np) if name in ("list", "sized") else picture(np).astype(np.float32)
        out = image_cases._augmenters(mx.image, np)[name](convert(image))
        made.append(out if isinstance(out, np.ndarray) else out.asnumpy())
    np.testing.assert_array_equal(*made)


def write_images(folder: Path, count: int, labels: Any = float) -> tuple[str, str, str]:
    """A record file with its index, image files and a list of them."""
    rec, idx, lst = (str(folder / f"a.{e}") for e in ("rec", "idx", "lst"))
    writer, lines = mx.recordio.MXIndexedRecordIO(idx, rec, "w"), []
    for i in range(count):
        image = np.full((20 + i, 24, 3), 10 * i, np.uint8)
        label = labels(i)
        record = mx.recordio.pack_img((0, label, i, 0), image, img_fmt=".png", quality=3)
        writer.write_idx(i, record)
        (folder / f"{i}.png").write_bytes(mx.recordio.unpack(record)[1])
        lines.append("\t".join([str(i), *(str(v) for v in np.ravel(label)), f"{i}.png"]))
    writer.close()
    Path(lst).write_text("\n".join(lines) + "\n")
    return rec, idx, lst


def values(batch: Any) -> list[float]:
    return [float(v) for v in batch.data[0].asnumpy()[:, 0, 0, 0]]


@pytest.mark.parametrize("source", ["rec", "rec+idx", "lst", "list"])
@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
def test_sources_and_last_batches(tmp_path: Path, source: str, handle: str) -> None:
    rec, idx, lst = write_images(tmp_path, 5)
    args: dict[str, Any] = {
        "rec": {"path_imgrec": rec}, "rec+idx": {"path_imgrec": rec, "path_imgidx": idx},
        "lst": {"path_imglist": lst, "path_root": str(tmp_path)},
        "list": {"imglist": [[float(i), f"{i}.png"] for i in range(5)], "path_root": str(tmp_path)},
    }[source]  # fmt: skip
    it = mx.image.ImageIter(2, (3, 16, 16), last_batch_handle=handle, **args)
    assert it.provide_data == [("data", (2, 3, 16, 16))] and it.provide_label == [("softmax_label", (2,))]
    epochs = []
    for _ in range(2):
        epochs.append([(b.pad, b.label[0].asnumpy().tolist()) for b in it])
        it.reset()
    if handle == "pad":
        assert epochs == [[(0, [0, 1]), (0, [2, 3]), (1, [4, 0])]] * 2
    elif handle == "discard":
        assert epochs == [[(0, [0, 1]), (0, [2, 3])]] * 2
    else:
        assert epochs == [[(0, [0, 1]), (0, [2, 3])], [(1, [4, 0]), (0, [1, 2]), (0, [3, 4])]]
    it.hard_reset()
    first = it.next()
    assert first.data[0].dtype == np.float32 and values(first) == [0, 10]


def test_parts_shuffle_and_labels(tmp_path: Path) -> None:
    rec, idx, lst = write_images(tmp_path, 6, labels=lambda i: [i, i / 2])
    args: dict[str, Any] = {"path_imgrec": rec, "path_imgidx": idx, "label_width": 2}
    seen = []
    for part in range(2):
        it = mx.image.ImageIter(3, (3, 16, 16), part_index=part, num_parts=2, **args)
        assert it.provide_label[0].shape == (3, 2)
        seen += it.next().label[0].asnumpy().tolist()
    assert seen == [[i, i / 2] for i in range(6)]
    random.seed(0)
    it = mx.image.ImageIter(6, (3, 16, 16), shuffle=True, **args)
    orders = []
    for _ in range(3):
        orders.append(it.next().label[0].asnumpy()[:, 0].tolist())
        it.reset()
    assert len({tuple(o) for o in orders}) == 3 and all(sorted(o) == list(range(6)) for o in orders)
    assert mx.image.ImageIter(6, (3, 16, 16), path_imglist=lst, path_imgrec=rec, path_imgidx=idx,
                              label_width=2).next().label[0].shape == (6, 2)
    few = mx.image.ImageIter(20, (3, 16, 16), **args).next()
    assert few.pad == 14 and values(few) == [10 * (i % 6) for i in range(20)]


def test_users_augmenters_get_ndarrays(tmp_path: Path) -> None:
    rec, _, _ = write_images(tmp_path, 2)
    kinds = []

    class Mine(mx.image.Augmenter):
        def __call__(self, src: Any) -> Any:
            kinds.append(type(src))
            return src + 1

    augs = [mx.image.CenterCropAug((16, 16)), Mine(), mx.image.CastAug()]
    batch = mx.image.ImageIter(2, (3, 16, 16), path_imgrec=rec, aug_list=augs).next()
    assert values(batch) == [1, 11] and set(kinds) == {mx.nd.NDArray}


def test_wrong_sources(tmp_path: Path) -> None:
    rec, _, lst = write_images(tmp_path, 2)
    shape = (3, 16, 16)
    with pytest.raises(AssertionError, match="path_imgrec"):
        mx.image.ImageIter(2, shape)
    with pytest.raises(AssertionError, match="path_imgidx"):
        mx.image.ImageIter(2, shape, path_imgrec=rec, shuffle=True)
    with pytest.raises(ValueError, match="3 channels"):
        mx.image.ImageIter(2, (1, 16, 16), path_imgrec=rec)
    (tmp_path / "1.png").write_bytes(b"no image")
    with pytest.raises(RuntimeError, match=r"Broken image filename: 1\.png"):
        mx.image.ImageIter(2, shape, path_imglist=lst, path_root=str(tmp_path)).next()
    Path(lst).write_text("x\t0\tname\n")
    with pytest.raises(mx.MXNetError, match="line 1"):
        mx.image.ImageIter(2, shape, path_imglist=lst)
    with pytest.raises(ValueError, match="bytes"):
        mx.image.imdecode("text")


def test_reading_and_decoding(tmp_path: Path) -> None:
    write_images(tmp_path, 3)
    path = str(tmp_path / "2.png")
    image = mx.image.imread(path)
    assert image.shape == (22, 24, 3) and image.dtype == np.uint8
    for buf in (Path(path).read_bytes(), np.frombuffer(Path(path).read_bytes(), np.uint8)):
        np.testing.assert_array_equal(mx.image.imdecode(buf).asnumpy(), image.asnumpy())
    assert mx.img.imdecode(Path(path).read_bytes(), flag=0).shape == (22, 24, 1)
    out = mx.nd.zeros((5, 6, 3), dtype="uint8")
    assert mx.image.imresize(image, 6, 5, out=out) is out and int(out[0, 0, 0].asscalar()) == 20


def test_resizing_without_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    want = mx.image.imresize(picture(np), 20, 15, 1)
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert abs(mx.image.imresize(picture(np), 20, 15, 1).astype(int) - want).max() <= 1


def boxes(i: int) -> list[float]:
    return [2, 5, *(v for k in range(i % 3 + 1) for v in (k, 0.1, 0.2, 0.5 + 0.1 * k, 0.9))]


def test_batches_with_boxes(tmp_path: Path) -> None:
    rec, idx, lst = write_images(tmp_path, 5, labels=boxes)
    it = mx.image.ImageDetIter(2, (3, 16, 16), path_imgrec=rec, path_imgidx=idx)
    assert it.label_shape == (3, 5) and it.provide_label == [("label", (2, 3, 5))]
    batches = list(it)
    assert [b.pad for b in batches] == [0, 0, 1]
    label = batches[0].label[0].asnumpy()
    np.testing.assert_allclose(label[0], [[0, 0.1, 0.2, 0.5, 0.9], [-1] * 5, [-1] * 5], rtol=1e-6)
    np.testing.assert_allclose(label[1, 1], [1, 0.1, 0.2, 0.6, 0.9], rtol=1e-6)
    other = mx.image.ImageDetIter(2, (3, 16, 16), imglist=[[boxes(0), "0.png"]], path_root=str(tmp_path))
    assert other.label_shape == (1, 5)
    assert it.sync_label_shape(other) is other and other.label_shape == (3, 5)
    other.reshape(data_shape=(3, 8, 8))
    assert other.next().data[0].shape == (2, 3, 8, 8)
    with pytest.raises(ValueError, match="reduce label count from 3 to 1"):
        other.reshape(label_shape=(1, 5))
    it.reset()
    drawn = list(it.draw_next(color=(255, 0, 0), id2labels={0: "zero"}))
    assert len(drawn) == 5 and drawn[0].dtype == np.uint8 and (drawn[0] == [0, 0, 255]).all(-1).any()
    # every augmenter keeps boxes inside the image
    augmented = mx.image.ImageDetIter(5, (3, 16, 16), path_imglist=lst, path_root=str(tmp_path), rand_crop=0.8,
                                      rand_pad=0.8, rand_mirror=True, brightness=0.2)
    for _ in range(3):
        label = augmented.next().label[0].asnumpy()
        found = label[label[:, :, 0] >= 0]
        assert len(found) and (found[:, 1:5] >= 0).all() and (found[:, 1:5] <= 1).all()
        augmented.reset()


def test_invalid_boxes(tmp_path: Path) -> None:
    rec, _, _ = write_images(tmp_path, 2, labels=lambda i: [2, 5, 0, 0.5, 0.5, 0.1, 0.1])
    with pytest.raises(RuntimeError, match="no valid label"):
        mx.image.ImageDetIter(2, (3, 16, 16), path_imgrec=rec)
    rec, _, _ = write_images(tmp_path, 2, labels=lambda i: [2, 0, 0, 0.5, 0.5, 0.1, 0.1])
    with pytest.raises(RuntimeError, match="inconsistent"):
        mx.image.ImageDetIter(2, (3, 16, 16), path_imgrec=rec)
    with pytest.warns(UserWarning, match="invalid area_range"):
        mx.image.DetRandomPadAug(area_range=(1.0, 0.5))
