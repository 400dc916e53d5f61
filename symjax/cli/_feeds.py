"""From the files of --input to arrays by argument."""

from __future__ import annotations

import dataclasses
import os
import zipfile
from typing import Any

import click
import numpy as np

from symjax.cli._images import Preprocessing, is_image, load_image
from symjax.cli._model import Model, entry, infer, parameter_nodes
from symjax.cli._source import Source
from symjax.cli._state import Unreadable
from symjax.lowering.errors import did_you_mean
from symjax.lowering.infer import is_complete
from symjax.symbol import _roles


class Feeds:
    """Collects arrays for the inputs of a model."""

    def __init__(self, model: Model, source: Source, how: Preprocessing) -> None:
        self.model, self.source, self.how = model, source, how
        self.names = [n.name for n in model.graph.inputs]
        weights, labels = parameter_nodes(model), _roles.labels(model.graph)
        self.free = [n.name for n in model.graph.arguments if n not in weights and n not in labels]
        self.arrays: dict[str, np.ndarray] = {}
        self.batches: dict[str, list[np.ndarray]] = {}
        self.fills: dict[str, float] = {}

    def add(self, text: str) -> None:
        """Takes `FILE` or `NAME=FILE`."""
        name, equals, path = text.partition("=")
        if equals and not os.path.isfile(text):
            self._check(name)
        else:
            name, path = "", text
        if is_image(path):
            name = name or self._only_free(path)
            self.batches.setdefault(name, []).append(load_image(path, self._fitted(name)))
            return
        found = _load(path)
        if isinstance(found, np.ndarray):
            self.arrays[name or self._only_free(path)] = found
        else:
            self._add_archive(name, path, found)

    def _add_archive(self, name: str, path: str, found: dict[str, np.ndarray]) -> None:
        if name:
            if name in found or len(found) == 1:
                self.arrays[name] = found.get(name, next(iter(found.values())))
                return
            raise click.UsageError(f"--input {name}={path}: it holds {', '.join(found)}, none of them called {name}")
        named = {k: v for k, v in found.items() if k in self.names}
        if not named and len(found) == 1:
            named = {self._only_free(path): next(iter(found.values()))}
        if not named:
            raise click.UsageError(f"--input {path}: its arrays ({', '.join(found)}) are not called as inputs of the "
                                   f"model ({', '.join(self.free)}); write NAME={path}")  # fmt: skip
        self.arrays.update(named)

    def fill(self, name: str, value: float) -> None:
        self._check(name)
        self.fills[name] = value

    def finish(self) -> dict[str, np.ndarray]:
        """The arrays, in the dtypes that the model takes.

        Raises:
          Problem, MXNetError: shapes do not fit.
        """
        for name, images in self.batches.items():
            shapes = {i.shape for i in images}
            if len(shapes) > 1:
                raise click.UsageError(f"images of {name} differ in size: {shapes}; give --size")
            self.arrays[name] = np.concatenate(images)
        known = {**self.source.shapes, **{k: v.shape for k, v in self.arrays.items()}}
        shapes, types = infer(self.model, dataclasses.replace(self.source, shapes=known))
        types.check()
        shapes.check()
        nodes = {n.name: n for n in self.model.graph.inputs}
        for name, value in self.fills.items():
            shape = shapes[entry(nodes[name])]
            if shape is None or not is_complete(shape):
                raise click.UsageError(f"--fill {name}: its shape is not known; give --shape {name}=DIMS")
            self.arrays[name] = np.full(shape, value)
        out = {}
        for name, value in self.arrays.items():
            wanted = types[entry(nodes[name])] or "float32"
            out[name] = value.astype("float32" if wanted == "bfloat16" else wanted)
        return out

    def _check(self, name: str) -> None:
        if name not in self.names:
            near = did_you_mean(name, self.names)
            raise click.UsageError(
                f"--input {name}: the model has no such argument.{near} Its inputs: {', '.join(self.free)}."
            )

    def _only_free(self, path: str) -> str:
        rest = [n for n in self.free if n not in self.arrays]
        if len(rest) != 1:
            raise click.UsageError(f"--input {path}: which input is it for? Write NAME={path} with one of: "
                                   f"{', '.join(rest) or 'none left'}")  # fmt: skip
        return rest[0]

    def _fitted(self, name: str) -> Preprocessing:
        """The preprocessing with size and channels of the input, where its shape is known."""
        node = next(n for n in self.model.graph.inputs if n.name == name)
        shape: Any = self.source.shapes.get(name) or infer(self.model, self.source)[0][entry(node)]
        if shape is None or len(shape) != 4:
            return self.how if self._takes(name, self.how.channels) else dataclasses.replace(self.how, channels=1)
        channels, *size = (shape[1], *shape[2:]) if self.how.layout == "NCHW" else (shape[3], *shape[1:3])
        fitted = self.how
        if channels in (1, 3):
            fitted = dataclasses.replace(fitted, channels=channels)
        if fitted.size is None and all(size):
            fitted = dataclasses.replace(fitted, size=(size[0], size[1]))
        return fitted

    def _takes(self, name: str, channels: int) -> bool:
        """Whether the parameters agree with images of so many channels."""
        shape = (1, channels, 0, 0) if self.how.layout == "NCHW" else (1, 0, 0, channels)
        known = {**self.source.shapes, name: shape}
        return not infer(self.model, dataclasses.replace(self.source, shapes=known))[0].problems


def _load(path: str) -> np.ndarray | dict[str, np.ndarray]:
    try:
        found: Any = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {k: found[k] for k in found.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as e:
        raise Unreadable(f"{path}: neither an .npz or .npy file of plain arrays, nor an image ({e})") from None
