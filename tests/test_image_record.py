"""Iterators over image records, against what real MXNet gives; order, parts, threads, broken files; `im2rec`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symjax as mx
from symjax.cli import main
from symjax.lowering.errors import MissingLoweringError
from tests.image_record_cases import CASES, LABELS, run, write

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "image_record.json").read_text())
# of 256 levels; versions of OpenCV round differently where they interpolate
TOLERANCE = {"rotated": 9.0, "scaled": 1.5, "enlarged": 1.5, "crop_size": 1.0, "mirrored": 1.0}


@pytest.mark.parametrize("name", CASES)
def test_batches_are_mxnets(name: str, tmp_path: Path) -> None:
    have, want = run(mx, np, tmp_path, name), GOLDEN[name]
    assert have[:2] == want[:2] and len(have) == len(want)
    for (pad, label, images), (w_pad, w_label, w_images) in zip(have[2:], want[2:], strict=True):
        assert pad == w_pad
        np.testing.assert_allclose(label, w_label, rtol=1e-6)
        np.testing.assert_allclose(images, w_images, atol=TOLERANCE.get(name, 1.0 if "det" in name else 1e-4))
        np.testing.assert_allclose(np.array(images)[:, 0], np.array(w_images)[:, 0], atol=0.1)  # the means


def make(folder: Path, count: int = 9, kind: str = "one", **args: Any) -> Any:
    rec, idx = write(mx, np, folder, kind, count)
    if args.pop("indexed", False):
        args["path_imgidx"] = idx
    return mx.io.ImageRecordIter(**{"path_imgrec": rec, "data_shape": (3, 16, 16), "batch_size": 3, **args})


def labels(it: Any) -> list[float]:
    found = [v for batch in it for v in batch.label[0].asnumpy()[:3 - batch.pad].tolist()]
    it.reset()
    return found


@pytest.mark.parametrize("indexed", [False, True])
def test_shuffling_and_parts(tmp_path: Path, indexed: bool) -> None:
    it = make(tmp_path, shuffle=True, seed=3, indexed=indexed)
    first, second = labels(it), labels(it)
    assert sorted(first) == sorted(second) == list(range(9)) and first != second != sorted(second)
    assert labels(make(tmp_path, shuffle=True, seed=3, indexed=indexed)) == first
    assert labels(make(tmp_path, shuffle=True, seed=4, indexed=indexed)) != first
    parts = [labels(make(tmp_path, num_parts=4, part_index=i, indexed=indexed, round_batch=False)) for i in range(4)]
    assert [v for part in parts for v in part] == list(range(9))


RANDOM = {"rand_crop": True, "rand_mirror": True, "max_rotate_angle": 20, "max_shear_ratio": 0.1, "brightness": 0.2,
          "contrast": 0.2, "saturation": 0.2, "pca_noise": 0.1, "random_h": 10, "random_s": 10, "random_l": 10,
          "max_random_contrast": 0.1, "max_random_illumination": 5, "min_random_scale": 0.9, "max_random_scale": 1.2}


def test_augmentation_does_not_depend_on_threads(tmp_path: Path) -> None:
    def all_of(**args: Any) -> np.ndarray:
        it = make(tmp_path, **{**RANDOM, **args})
        return np.concatenate([b.data[0].asnumpy() for b in it])

    one = all_of(preprocess_threads=1, prefetch_buffer=0)
    np.testing.assert_array_equal(one, all_of(preprocess_threads=4))
    assert (one != all_of(seed=1)).any() and (one != all_of(seed_aug=7)).any()
    assert np.isfinite(one).all() and one.std() > 10


def test_augmentation_differs_between_epochs_and_areas_are_cut(tmp_path: Path) -> None:
    it = make(tmp_path, random_resized_crop=True, min_random_area=0.2, max_random_area=0.9, min_aspect_ratio=0.75,
              max_aspect_ratio=1.33)
    epochs = []
    for _ in range(2):
        epochs.append(np.concatenate([b.data[0].asnumpy() for b in it]))
        it.reset()
    assert epochs[0].shape == (9, 3, 16, 16) and (epochs[0] != epochs[1]).any()


def test_a_mean_image_is_made_and_used(tmp_path: Path) -> None:
    mean = str(tmp_path / "mean.nd")
    plain = np.concatenate([b.data[0].asnumpy() for b in make(tmp_path)])
    for _ in range(2):  # computed, then read
        less = np.concatenate([b.data[0].asnumpy() for b in make(tmp_path, mean_img=mean)])
        np.testing.assert_allclose(less, plain - plain.mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_other_types(tmp_path: Path, dtype: str) -> None:
    want = make(tmp_path).next().data[0].asnumpy()
    have = make(tmp_path, dtype=dtype).next().data[0]
    assert np.dtype(have.dtype).name == dtype
    np.testing.assert_allclose(have.asnumpy().astype(np.float32), want, rtol=1e-2)


def test_batches_stay_what_they_are(tmp_path: Path) -> None:
    """Memory is used again, but never that of a batch that somebody holds, and changing a batch changes no other."""
    it = make(tmp_path, prefetch_buffer=1)
    want = [b.data[0].asnumpy() for b in it]
    for _ in range(3):
        it.reset()
        held = []
        for batch in it:
            held.append((batch.data[0], batch.data[0] * 2))
            batch.data[0].copy()[:] = -1
        for (data, twice), expected in zip(held, want, strict=True):
            np.testing.assert_array_equal(data.asnumpy(), expected)
            np.testing.assert_array_equal(twice.asnumpy(), 2 * expected)
        for data, _ in held:
            data += 1
    it.reset()
    np.testing.assert_array_equal(np.concatenate([b.data[0].asnumpy() for b in it]), np.concatenate(want))


def test_a_list_gives_other_labels(tmp_path: Path) -> None:
    (tmp_path / "a.lst").write_text("".join(f"{i + 100}\t{10 * i}\tname\n" for i in range(9)))
    assert labels(make(tmp_path, path_imglist=str(tmp_path / "a.lst"))) == [10.0 * i for i in range(9)]


def test_boxes_stay_with_their_objects(tmp_path: Path) -> None:
    rec, _ = write(mx, np, tmp_path, "boxes", 6)
    it = mx.io.ImageDetRecordIter(
        path_imgrec=rec, data_shape=(3, 16, 16), batch_size=6, rand_crop_prob=0.9, num_crop_sampler=2,
        min_crop_scales=(0.4, 0.6), max_crop_scales=(0.9, 1), min_crop_overlaps=(0.1, 0.2), max_crop_trials=(40, 40),
        crop_emit_mode="overlap", rand_pad_prob=0.5, max_pad_scale=2, rand_mirror_prob=0.5, max_random_hue=10,
        random_hue_prob=0.5, max_random_contrast=0.2, random_contrast_prob=0.5)
    kinds = set()
    for _ in range(5):
        label = it.next().label[0].asnumpy()
        it.reset()
        for row in label:
            found = row[6:4 + int(row[3])].reshape(-1, 5)
            assert len(found) and (found[:, 1:] >= 0).all() and (found[:, 1:] <= 1).all()
            assert (found[:, 3] > found[:, 1]).all() and (found[:, 4] > found[:, 2]).all()
            kinds |= set(found[:, 0].tolist())
    assert kinds == {0, 1, 2}
    with pytest.raises(ValueError, match="longest label, 17"):
        mx.io.ImageDetRecordIter(path_imgrec=rec, data_shape=(3, 16, 16), batch_size=2, label_pad_width=5)


def broken_image(path: Path) -> None:
    writer = mx.recordio.MXRecordIO(str(path), "w")
    writer.write(mx.recordio.pack((0, 1.0, 77, 0), b"no image"))
    writer.close()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize(("damage", "text"), [(broken_image, "image 77"), (cut, "at byte")])
def test_broken_files(tmp_path: Path, damage: Callable[[Path], None], text: str) -> None:
    it = make(tmp_path)
    path = tmp_path / "one.rec"
    damage(path)
    it = mx.io.ImageRecordIter(path_imgrec=str(path), data_shape=(3, 16, 16), batch_size=1)
    with pytest.raises(mx.MXNetError, match=r"one\.rec") as e:
        list(it)
    assert text in str(e.value)


def test_wrong_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data_shape": (2, 4, 4)}, "channels"), ({"num_parts": 2, "part_index": 2}, "part_index=2"),
        ({"aug_seq": "mine"}, "aug_default"), ({"batch_size": 0}, "batch_size")]  # fmt: skip
    for args, text in wrong:
        with pytest.raises(ValueError, match=text):
            make(tmp_path, **args)
    with pytest.raises(mx.MXNetError, match=r"nope\.rec"):
        make(tmp_path, path_imgrec=str(tmp_path / "nope.rec"))
    with pytest.raises(mx.MXNetError, match="2 labels, expected 1"):
        make(tmp_path, kind="two").next()
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingLoweringError, match="install"):
        make(tmp_path)


def test_all_kinds_of_labels_are_used() -> None:
    assert {kind for _, kind, _ in CASES.values()} == set(LABELS)


def images(folder: Path) -> Path:
    root = folder / "images"
    for kind in ("cat", "dog"):
        (root / kind).mkdir(parents=True)
        for i in range(3):
            record = mx.recordio.pack_img((0, 0, 0, 0), np.full((20, 30 + i, 3), 40 * i, np.uint8), img_fmt=".png",
                                          quality=3)
            (root / kind / f"{i}.png").write_bytes(mx.recordio.unpack(record)[1])
    (root / "notes.txt").write_text("no image")
    return root


def test_im2rec(tmp_path: Path) -> None:
    root, prefix = images(tmp_path), str(tmp_path / "set")
    made = CliRunner().invoke(main, ["im2rec", "--list", "--recursive", "--no-shuffle", prefix, str(root)])
    assert made.exit_code == 0, made.output
    lines = [line.split("\t") for line in Path(f"{prefix}.lst").read_text().splitlines()]
    assert [(n, float(v), Path(p).as_posix()) for n, v, p in lines] == [
        (str(3 * k + i), float(k), f"{kind}/{i}.png") for k, kind in enumerate(("cat", "dog")) for i in range(3)]
    how = ["--resize", "16", "--center-crop", "--num-thread", "2"]
    made = CliRunner().invoke(main, ["im2rec", *how, prefix, str(root)])
    assert made.exit_code == 0, made.output
    it = mx.io.ImageRecordIter(path_imgrec=f"{prefix}.rec", path_imgidx=f"{prefix}.idx", data_shape=(3, 16, 16),
                               batch_size=6)
    batch = it.next()
    assert batch.label[0].asnumpy().tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(batch.data[0].asnumpy()[:, 0, 8, 8], [0, 40, 80] * 2, atol=2)


def test_im2rec_parts_and_failures(tmp_path: Path) -> None:
    root, prefix = images(tmp_path), str(tmp_path / "set")
    made = CliRunner().invoke(main, ["im2rec", "--list", "--recursive", "--train-ratio", "0.5", prefix, str(root)])
    assert made.exit_code == 0, made.output
    counts = {p.name: len(p.read_text().splitlines()) for p in tmp_path.glob("*.lst")}
    assert counts == {"set_train.lst": 3, "set_val.lst": 3}
    (tmp_path / "bad.lst").write_text("0\t1\t2\tcat/0.png\n1\t3\t4\tnotes.txt\n")
    made = CliRunner().invoke(main, ["im2rec", "--pack-label", str(tmp_path / "bad.lst"), str(root)])
    assert made.exit_code == 1 and "notes.txt" in made.output
    reader = mx.recordio.MXRecordIO(str(tmp_path / "bad.rec"), "r")
    record = reader.read()
    assert record is not None and reader.read() is None
    assert mx.recordio.unpack(record)[0].label.tolist() == [1, 2]
    made = CliRunner().invoke(main, ["im2rec", "--pass-through", str(tmp_path / "bad.lst"), str(root)])
    assert made.exit_code == 0
    assert CliRunner().invoke(main, ["im2rec", str(tmp_path / "none"), str(root)]).exit_code == 2
