"""Parameters of the iterators over image records."""

from __future__ import annotations

from typing import Any, Literal

from symjax.io.file_iterator import FileParams
from symjax.lowering.errors import ParamError
from symjax.lowering.params import Floats, Shape, param


class RecordParams(FileParams):
    """Where the images come from, in which order, and what is done to their numbers."""

    path_imgrec: str = param("", doc="Path of the record file.")
    path_imgidx: str = param("", doc="Path of its index.")
    path_imglist: str = param("", doc="Path of a list whose labels count instead of those in the records.")
    data_shape: Shape = param(ge=1, doc="(channels, height, width); channels 1 (grey), 3 (RGB) or 4 (RGBA).")
    label_width: int = param(1, doc="Number of labels of an image.")
    preprocess_threads: int = param(4, ge=1, doc="Threads that decode, at most as many as there are processors.")
    verbose: bool = param(True, doc="Whether to log what is read.")
    num_parts: int = param(1, ge=1, doc="Number of parts of about the same size.")
    part_index: int = param(0, ge=0, doc="Which part to read.")
    device_id: int = param(0, doc="Means nothing here.")
    shuffle_chunk_size: int = param(0, ge=0, doc="Means nothing here: shuffling is always over the whole part.")
    shuffle_chunk_seed: int = param(0, doc="Means nothing here.")
    shuffle: bool = param(False, doc="Whether every epoch has another order.")
    seed: int = param(0, doc="Of the order, and of augmentation unless seed_aug is given.")
    seed_aug: int | None = param(None, doc="Of augmentation.")
    resize: int = param(-1, doc="First make the shorter side this long; -1: leave it.")
    fill_value: int = param(255, doc="What is outside of an image.")
    inter_method: int = param(1, doc="0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.")
    mean_img: str = param("", doc="File of a mean image to subtract; it is computed and written where there is none.")
    mean_r: float = param(0.0, doc="Subtracted from red.")
    mean_g: float = param(0.0, doc="Subtracted from green.")
    mean_b: float = param(0.0, doc="Subtracted from blue.")
    mean_a: float = param(0.0, doc="Subtracted from alpha.")
    std_r: float = param(1.0, doc="Red is divided by it.")
    std_g: float = param(1.0, doc="Green is divided by it.")
    std_b: float = param(1.0, doc="Blue is divided by it.")
    std_a: float = param(1.0, doc="Alpha is divided by it.")
    scale: float = param(1.0, doc="All is multiplied by it.")

    def validate(self, name: str) -> None:
        """Raises ParamError for what does not fit together."""
        if len(self.data_shape) != 3 or self.data_shape[0] not in (1, 3, 4):
            raise ParamError(f"{name}: data_shape must be (1, 3 or 4 channels, height, width), got {self.data_shape}")
        if not self.path_imgrec:
            raise ParamError(f"{name}: path_imgrec, the record file, is missing")
        if self.part_index >= self.num_parts:
            raise ParamError(f"{name}: part_index={self.part_index} is not less than num_parts={self.num_parts}")

    @property
    def means(self) -> tuple[float, ...]:
        """For each channel what is subtracted."""
        return (self.mean_r, self.mean_g, self.mean_b, self.mean_a)[: self.data_shape[0]]

    @property
    def stds(self) -> tuple[float, ...]:
        """For each channel what it is divided by; 0 means 1."""
        return tuple(s or 1.0 for s in (self.std_r, self.std_g, self.std_b, self.std_a)[: self.data_shape[0]])


class ImageParams(RecordParams):
    """Parameters of `ImageRecordIter`."""

    aug_seq: str = param("aug_default", doc="Only aug_default.")
    rand_crop: bool = param(False, doc="Cut at a random place instead of the middle.")
    random_resized_crop: bool = param(False, doc="Cut a rectangle of random area and shape, and resize it.")
    max_rotate_angle: int = param(0, doc="Rotate by up to so many degrees either way.")
    max_aspect_ratio: float = param(0.0, doc="Change of the aspect ratio, or its greatest value with min_aspect_ratio.")
    min_aspect_ratio: float | None = param(None, doc="Least aspect ratio of random_resized_crop.")
    max_shear_ratio: float = param(0.0, doc="Shear by up to this either way.")
    max_crop_size: int = param(-1, doc="Greatest side of a square to cut, which is resized.")
    min_crop_size: int = param(-1, doc="Least side of that square.")
    max_random_scale: float = param(1.0, doc="Greatest factor of size.")
    min_random_scale: float = param(1.0, doc="Least factor of size.")
    max_random_area: float = param(1.0, doc="Greatest fraction of the area for random_resized_crop.")
    min_random_area: float = param(1.0, doc="Least fraction of the area.")
    max_img_size: float = param(1e10, doc="Greatest side after scaling.")
    min_img_size: float = param(0.0, doc="Least side after scaling.")
    brightness: float = param(0.0, doc="Change of brightness, as a fraction.")
    contrast: float = param(0.0, doc="Change of contrast.")
    saturation: float = param(0.0, doc="Change of saturation.")
    pca_noise: float = param(0.0, doc="Change of colours along their principal components.")
    random_h: int = param(0, doc="Change of hue, of 180.")
    random_s: int = param(0, doc="Change of saturation, of 255.")
    random_l: int = param(0, doc="Change of lightness, of 255.")
    rotate: int = param(-1, doc="Rotate by this many degrees, if > 0.")
    pad: int = param(0, ge=0, doc="Width of a border around the image.")
    mirror: bool = param(False, doc="Flip all images.")
    rand_mirror: bool = param(False, doc="Flip half of the images.")
    max_random_contrast: float = param(0.0, doc="Change of the factor `scale`.")
    max_random_illumination: float = param(0.0, doc="What is added to all pixels, times scale.")

    def validate(self, name: str) -> None:
        super().validate(name)
        if self.aug_seq != "aug_default":
            raise ParamError(f"{name}: aug_seq={self.aug_seq!r} is not known; there is aug_default, or augment the "
                             f"images yourself with mx.image.ImageIter")
        if self.label_width < 1:
            raise ParamError(f"{name}: label_width must be at least 1, got {self.label_width}")

    @property
    def cuts_rectangles(self) -> bool:
        """Whether random_resized_crop has anything to choose."""
        areas = self.min_random_area != 1 or self.max_random_area != 1
        shapes = self.max_aspect_ratio != 0 if self.min_aspect_ratio is None else (
            self.min_aspect_ratio != 1 or self.max_aspect_ratio != 1)  # fmt: skip
        return self.random_resized_crop and (areas or shapes)

    @property
    def warps(self) -> bool:
        """Whether an image is transformed by a matrix."""
        ratio = self.max_aspect_ratio != 0 and not self.random_resized_crop
        usual: list[Any] = [self.max_rotate_angle, self.max_shear_ratio, max(self.rotate, 0),
                            self.max_random_scale - 1, self.min_random_scale - 1, self.max_img_size - 1e10,
                            self.min_img_size]
        return ratio or any(usual)


class DetParams(RecordParams):
    """Parameters of `ImageDetRecordIter`."""

    label_width: int = param(-1, doc="Number of labels of an image; -1: any.")
    label_pad_width: int = param(0, doc="Labels are filled up to so many; 0 or -1: to the greatest number there is.")
    label_pad_value: float = param(-1.0, doc="What they are filled up with.")
    aug_seq: str = param("det_aug_default", doc="Only det_aug_default.")
    fill_value: int = param(127, doc="Colour of the padding.")
    std_r: float = param(0.0, doc="Red is divided by it; 0 means 1.")
    std_g: float = param(0.0, doc="Green is divided by it; 0 means 1.")
    std_b: float = param(0.0, doc="Blue is divided by it; 0 means 1.")
    std_a: float = param(0.0, doc="Alpha is divided by it; 0 means 1.")
    rand_crop_prob: float = param(0.0, doc="Probability of cutting.")
    num_crop_sampler: int = param(1, ge=0, doc="Number of ways to cut; the tuples below have one value for each.")
    min_crop_scales: Floats = param((0.0,), doc="Least side of a cut, as a fraction.")
    max_crop_scales: Floats = param((1.0,), doc="Greatest side.")
    min_crop_aspect_ratios: Floats = param((1.0,), doc="Least aspect ratio.")
    max_crop_aspect_ratios: Floats = param((1.0,), doc="Greatest aspect ratio.")
    min_crop_overlaps: Floats = param((0.0,), doc="Least intersection over union with a box.")
    max_crop_overlaps: Floats = param((1.0,), doc="Greatest.")
    min_crop_sample_coverages: Floats = param((0.0,), doc="Least intersection as a fraction of the cut.")
    max_crop_sample_coverages: Floats = param((1.0,), doc="Greatest.")
    min_crop_object_coverages: Floats = param((0.0,), doc="Least intersection as a fraction of a box.")
    max_crop_object_coverages: Floats = param((1.0,), doc="Greatest.")
    crop_emit_mode: Literal["center", "overlap"] = param("center", doc="Which boxes stay: by centre, or by overlap.")
    emit_overlap_thresh: float = param(0.3, doc="Least fraction of a box that stays, for overlap.")
    max_crop_trials: Shape = param((25,), doc="Number of tries.")
    rand_pad_prob: float = param(0.0, doc="Probability of padding.")
    max_pad_scale: float = param(1.0, doc="Greatest side of the padded image, as a multiple.")
    max_random_hue: int = param(0, doc="Change of hue, of 180.")
    random_hue_prob: float = param(0.0, doc="Its probability.")
    max_random_saturation: int = param(0, doc="Change of saturation, of 255.")
    random_saturation_prob: float = param(0.0, doc="Its probability.")
    max_random_illumination: int = param(0, doc="Change of lightness, of 255.")
    random_illumination_prob: float = param(0.0, doc="Its probability.")
    max_random_contrast: float = param(0.0, doc="Change of contrast.")
    random_contrast_prob: float = param(0.0, doc="Its probability.")
    rand_mirror_prob: float = param(0.0, doc="Probability of a flip.")
    resize_mode: Literal["force", "fit", "shrink"] = param(
        "force", doc="force: to data_shape; fit: as large as fits, the rest is 0; shrink: the same, never enlarged.")

    def validate(self, name: str) -> None:
        super().validate(name)
        if self.aug_seq != "det_aug_default":
            raise ParamError(f"{name}: aug_seq={self.aug_seq!r} is not known; there is det_aug_default, or augment the "
                             f"images yourself with mx.image.ImageDetIter")

    def of_sampler(self, i: int) -> dict[str, float]:
        """The values of a way to cut, by name without `crop_` and the plural."""
        names = ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages")
        tuples = {f"{end}_{n}": getattr(self, f"{end}_crop_{n}") for n in names for end in ("min", "max")}
        tuples["trials"] = self.max_crop_trials
        return {n: values[i] if i < len(values) else values[-1] for n, values in tuples.items()}
