"""Orbax checkpoints: arrays that lie on many devices or hosts are written by all of them, and come back on any mesh.

A checkpoint is a folder that appears when it is whole. It holds the arrays by name (`arrays/`, readable with Orbax
alone), and a JSON text with the symbol, storage types and how optimizer states are nested. For one device, files of
`mx.model.save_checkpoint` do as well.

    orbax.save("run/0001", module)            # a Module, with optimizer states, or an Executor
    orbax.restore("run/0001", module)         # into one, whatever mesh it is bound to
    fn, params, aux = mx.lower(net, data=(8, 10))
    orbax.save("run/0002", params, aux, states=opt_state, symbol=net)
    found = orbax.load("run/0002", mesh=mesh, states=opt_state)
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from symjax.lowering.errors import ArgumentError, MissingFileError, ParamsFormatError, ShapeError
from symjax.lowering.layout import fitting, spec_of
from symjax.ndarray.storage import NDArrayBase, class_of
from symjax.optimizer import _states
from symjax.sparse import CSR, RowSparse

if TYPE_CHECKING:
    from symjax.symbol import Symbol

__all__ = ["Checkpoint", "latest", "load", "module_checkpoint", "restore", "save"]
_VERSION = 1
_PARTS = {"csr": (CSR, ("data", "indices", "indptr")), "row_sparse": (RowSparse, ("data", "indices"))}
Layout = Callable[[str, str, tuple[int, ...]], Sharding]


class Checkpoint(NamedTuple):
    """What `load` returns.

    Attributes:
      symbol: the symbol, None if none was saved.
      params, aux: JAX arrays (CSR and RowSparse where sparse) by name.
      states: the pytree of states, None if `load` was given no tree to fill.
    """

    symbol: Symbol | None
    params: dict[str, Any]
    aux: dict[str, Any]
    states: Any


def _orbax() -> Any:
    try:
        import orbax.checkpoint as ocp
    except ImportError as e:
        raise ImportError("symjax.interop.orbax needs Orbax: pip install orbax-checkpoint (or symjax-mxnet with the "
                          "extra `orbax`). Without it, mx.model.save_checkpoint writes files from one device") from e
    return ocp


# ---- saving


def save(path: str | os.PathLike[str], params: Any, aux: Mapping[str, Any] | None = None, *, states: Any = None,
         symbol: Symbol | None = None) -> None:
    """Writes a checkpoint; with several processes, all call this with the same path.

    Args:
      path: the folder to make.
      params: a Module (its parameters, auxiliary states, optimizer states and symbol), an Executor (its arguments,
        auxiliary states and symbol), or arrays by name: NDArrays, JAX arrays or sparse containers.
      aux: auxiliary states by name, with arrays.
      states: a pytree of arrays, such as Optax's.
      symbol: kept with the arrays.

    Raises:
      FileExistsError: the folder is there; nothing is changed. Save to a new one.
      TypeError: `params` is something else.
      ImportError: Orbax is not installed.
    """
    ocp = _orbax()
    target = Path(os.path.abspath(path))
    if target.exists():
        raise FileExistsError(f"{path} is there already; save to a new folder, or remove it first")
    tree: dict[str, dict[str, Any]] = {}
    manifest: dict[str, Any] = {"version": _VERSION, "arrays": {}}
    if isinstance(params, Mapping):
        leaves: list[Any] = jax.tree.leaves(states)
    else:
        symbol, params, aux, leaves = _parts_of(params, manifest)
    if symbol is not None:
        manifest["symbol"] = symbol.tojson()
    numbered = {str(i): x for i, x in enumerate(leaves)}
    for section, arrays in (("arg", params), ("aux", aux or {}), ("state", numbered)):
        for name, value in arrays.items():
            _add(tree, manifest, section, name, value)
    with jax.enable_x64(True), ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as writer:
        writer.save(target, ocp.args.Composite(arrays=ocp.args.StandardSave(tree), symjax=ocp.args.JsonSave(manifest)))


def _parts_of(model: Any, manifest: dict[str, Any]) -> tuple[Any, Mapping[str, Any], Mapping[str, Any], list[Any]]:
    """Returns (symbol, arguments, auxiliary states, arrays of states) of a Module or Executor."""
    from symjax.executor import Executor
    from symjax.module import Module

    if isinstance(model, Executor):
        return model._symbol, model.arg_dict, model.aux_dict, []
    if not isinstance(model, Module):
        raise ArgumentError(f"save takes a Module, an Executor or arrays by name, got {type(model).__name__}")
    _check_bound(model)
    executor, writer = model._exec_group.execs[0], _StateWriter()
    updater = _updater(model)
    if updater is not None:
        keys = {name: keys[0] for name, keys in _keys(model).items() if keys[0] in updater.states}
        manifest["states"] = writer.encode({n: updater.states[k] for n, k in keys.items()}, "states")
        manifest["counts"] = {n: _count(updater.optimizer, k) for n, k in keys.items()}
        manifest["num_update"] = updater.optimizer.num_update
    stored = getattr(model._kvstore, "_values", {}) if model._update_on_kvstore else {}
    args = {n: stored[n] if n in stored and stored[n].stype != "default" else executor.arg_dict[n]
            for n in model._exec_group.param_names}
    return model.symbol, args, executor.aux_dict, writer.arrays


def _check_bound(module: Any) -> None:
    if not (module.binded and module.params_initialized):
        raise ArgumentError("the Module has no parameters on devices; call bind and init_params first")


def _updater(module: Any) -> Any:
    updater = getattr(module._kvstore, "_updater", None) if module._update_on_kvstore else module._updater
    return updater if hasattr(updater, "states") else None


def _keys(module: Any) -> dict[str, list[Any]]:
    """The keys of each parameter in the updater, one for each executor."""
    if module._update_on_kvstore:
        return {name: [name] for name in module._param_names}
    n = len(module._exec_group.execs)
    return {name: [i * n + k for k in range(n)] for name, i in module._param_index.items()}


def _count(optimizer: Any, key: Any) -> int:
    """How often a parameter was updated: bias corrections go by it."""
    return max(counts.get(key, optimizer.begin_num_update) for counts in optimizer._all_index_update_counts.values())


class _StateWriter(_states._Writer):
    """Keeps arrays where they are."""

    def record(self, value: Any) -> Any:
        return value


def _add(tree: dict[str, dict[str, Any]], manifest: dict[str, Any], section: str, name: str, value: Any) -> None:
    data: Any = value._data if isinstance(value, NDArrayBase) else value
    stype = getattr(data, "stype", "default")
    about: dict[str, Any] = {"stype": stype, "shape": list(np.shape(data) if stype == "default" else data.shape)}
    if stype == "default":
        parts = {"": data if isinstance(data, jax.Array) else np.asarray(data)}
    else:
        host = data.host()
        parts = {p: np.asarray(getattr(host, p)) for p in _PARTS[stype][1]}
    about["parts"] = {p: [list(x.shape), x.dtype.name] for p, x in parts.items()}
    manifest["arrays"].setdefault(section, {})[name] = about
    for part, x in parts.items():
        if x.size:  # Orbax does not write empty arrays
            tree.setdefault(section, {})[f"{name}:{part}" if part else name] = x


# ---- loading


def load(path: str | os.PathLike[str], *, mesh: Mesh | None = None,
         shardings: Mapping[str, Sharding] | None = None, states: Any = None) -> Checkpoint:
    """Reads a checkpoint; each device reads its own part of an array.

    Args:
      path: the folder.
      mesh: lay arrays over it: as the `__sharding__` attributes of the saved symbol say, others whole on each device.
      shardings: of parameters and auxiliary states by name; these come before `mesh`. By default everything is on the
        first CPU device.
      states: a pytree like the one that was saved, whose arrays tell the structure and layout.

    Raises:
      FileNotFoundError: there is no such folder.
      MXNetError: it is no checkpoint of symjax, or `states` has another structure.
      ImportError: Orbax is not installed.
    """
    from symjax import symbol
    from symjax.context import cpu

    reader = _Reader(path)
    net = symbol.load_json(reader.manifest["symbol"]) if "symbol" in reader.manifest else None
    attributes = {n.name: spec_of(n, mesh) for n in net._graph.inputs} if net is not None and mesh is not None else {}
    given, like = shardings or {}, jax.tree.leaves(states)
    one = SingleDeviceSharding(cpu().jax_device)

    def layout(section: str, name: str, shape: tuple[int, ...]) -> Sharding:
        if section == "state":
            there = getattr(like[int(name)], "sharding", None) if int(name) < len(like) else None
            return there or (one if mesh is None else NamedSharding(mesh, PartitionSpec()))
        if name in given:
            return given[name]
        return one if mesh is None else fitting(mesh, attributes.get(name) or PartitionSpec(), shape)

    found = reader.read(layout, ("arg", "aux") if states is None else ("arg", "aux", "state"))
    if states is not None:
        leaves = found["state"]
        if len(leaves) != len(like):
            raise ParamsFormatError(f"{path}: {len(leaves)} arrays of states, but the tree given has {len(like)}")
        states = jax.tree.unflatten(jax.tree.structure(states), [leaves[str(i)] for i in range(len(like))])
    return Checkpoint(net, found["arg"], found["aux"], states)


def restore(path: str | os.PathLike[str], target: Any) -> None:
    """Reads a checkpoint into a Module that is bound and has parameters, or into an Executor.

    Arrays come to the devices that the target has, whatever mesh they were saved from. Optimizer states and update
    counts are restored where the target's optimizer is initialised and the checkpoint has them.

    Raises:
      FileNotFoundError, MXNetError, ImportError: as `load`; a name of the target is not in the checkpoint, or has
        another shape there.
    """
    from symjax.executor import Executor
    from symjax.module import Module

    if isinstance(target, Executor):
        executors, names = [target], set(target.arg_dict)
    elif isinstance(target, Module):
        _check_bound(target)
        executors, names = target._exec_group.execs, set(target._exec_group.param_names)
    else:
        raise ArgumentError(f"restore fills a Module or an Executor, got {type(target).__name__}; load returns arrays")
    reader, first = _Reader(path), executors[0]
    here = {"arg": {n: a for n, a in first.arg_dict.items() if n in names}, "aux": first.aux_dict}
    reader.check(here)
    updater = None if isinstance(target, Executor) or "states" not in reader.manifest else _updater(target)
    laid = {a.shape: a.context for a in here["arg"].values()}
    anywhere = next(iter(laid.values()), None)

    def layout(section: str, name: str, shape: tuple[int, ...]) -> Sharding:
        array = here.get(section, {}).get(name)
        context = laid.get(shape, anywhere) if array is None else array.context
        return SingleDeviceSharding(jax.devices()[0]) if context is None else context.layout(shape)

    found = reader.read(layout, ("arg", "aux") if updater is None else ("arg", "aux", "state"), here)
    for executor in executors:
        for section, arrays in (("arg", executor.arg_dict), ("aux", executor.aux_dict)):
            for name in here[section]:
                _fill(arrays[name], found[section][name])
    if not isinstance(target, Executor):
        _restore_module(target, found, updater, reader.manifest, laid, anywhere)


def _restore_module(module: Any, found: dict[str, Any], updater: Any, manifest: dict[str, Any], laid: dict[Any, Any],
                    anywhere: Any) -> None:
    module._params_dirty = True
    if module._kvstore is not None:
        for name, value in found["arg"].items():
            if name in getattr(module._kvstore, "_values", {}):
                _fill(module._kvstore._values[name], value)
    if updater is None:
        return
    executors, optimizer = module._exec_group.execs, updater.optimizer
    updater.states = {}
    optimizer.num_update = manifest["num_update"]
    for k, executor in enumerate(executors):
        with jax.enable_x64(True):  # each executor has states of its own
            states = found["state"] if not k else jax.tree.map(jax.numpy.copy, found["state"])
        arrays = {f"array:{i}": _ndarray(x, laid.get(tuple(x.shape), anywhere)) for i, x in states.items()}
        by_name, keys = _states._decode(manifest["states"], arrays), _keys(module)
        device = next(iter(executor.arg_dict.values())).context.device_id
        counts = optimizer._all_index_update_counts.setdefault(device, {})
        for name, state in by_name.items():
            if k < len(keys.get(name, ())):
                updater.states[keys[name][k]] = state
                counts[keys[name][k]] = manifest["counts"][name]
    updater.states_synced = dict.fromkeys(updater.states, False)


def _ndarray(value: Any, context: Any) -> Any:
    return class_of(getattr(value, "stype", "default"))._from_jax(value, context)


def _fill(array: Any, value: Any) -> None:
    """Replaces the contents of an NDArray, on its own devices."""
    with jax.enable_x64(True):
        if getattr(value, "stype", "default") != array.stype:
            value = _ndarray(value, array.context).tostype(array.stype)._data
        there = array.context.layout(array.shape) if array.stype == "default" else array.context.jax_device
        array._set_data(jax.device_put(value, there, may_alias=False))


class _Reader:
    """An open checkpoint."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.ocp, self.path = _orbax(), Path(os.path.abspath(path))
        if not self.path.is_dir():
            raise MissingFileError(f"there is no checkpoint folder {os.fspath(path)!r}")
        with self.ocp.Checkpointer(self.ocp.CompositeCheckpointHandler()) as reader:
            try:
                self.manifest = reader.restore(self.path, self.ocp.args.Composite(
                    symjax=self.ocp.args.JsonRestore()))["symjax"]
            except (ValueError, KeyError, FileNotFoundError) as e:
                raise ParamsFormatError(f"{os.fspath(path)}: no checkpoint that symjax.interop.orbax wrote ({e})"
                                        ) from None
        if (self.manifest or {}).get("version") != _VERSION:
            raise ParamsFormatError(f"{os.fspath(path)}: not a checkpoint of version {_VERSION} of symjax")

    def check(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises for arrays that are not there, or of other shapes: all of them at once."""
        wrong = []
        for section, arrays in wanted.items():
            have = self.manifest["arrays"].get(section, {})
            for name, array in arrays.items():
                if name not in have:
                    wrong.append(f"{section}:{name} is not in it")
                elif tuple(have[name]["shape"]) != array.shape:
                    wrong.append(f"{section}:{name} has shape {tuple(have[name]['shape'])} there, {array.shape} here")
        if wrong:
            raise ShapeError(f"{self.path} does not fit: {'; '.join(wrong)}")

    def read(self, layout: Layout, sections: tuple[str, ...],
             only: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
        """Returns the arrays of some sections by name."""
        about = {s: {n: a for n, a in self.manifest["arrays"].get(s, {}).items()
                     if only is None or s not in only or n in only[s]} for s in sections}
        wanted: dict[str, Any] = {}
        for section, arrays in about.items():
            for name, a in arrays.items():
                for part, (shape, dtype) in a["parts"].items():
                    if 0 not in shape:
                        there = layout(section, name, tuple(a["shape"])) if not part else SingleDeviceSharding(
                            jax.local_devices()[0])
                        wanted.setdefault(section, {})[f"{name}:{part}" if part else name] = jax.ShapeDtypeStruct(
                            tuple(shape), np.dtype(dtype), sharding=there)
        ocp = self.ocp
        with jax.enable_x64(True), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
            args = ocp.args.PyTreeRestore(item=wanted, partial_restore=True,
                                          restore_args=ocp.checkpoint_utils.construct_restore_args(wanted))
            got = reader.restore(self.path / "arrays", args) if wanted else {}
            return {s: {n: _joined(n, a, got.get(s, {})) for n, a in arrays.items()} for s, arrays in about.items()}


def _joined(name: str, about: dict[str, Any], got: Mapping[str, Any]) -> Any:
    """Returns one array from its parts."""
    parts = {p: got[f"{name}:{p}" if p else name] if 0 not in shape else jax.numpy.zeros(shape, np.dtype(dtype))
             for p, (shape, dtype) in about["parts"].items()}
    if about["stype"] == "default":
        return parts[""]
    container, fields = _PARTS[about["stype"]]
    made = container.from_host(*(np.asarray(parts[f]) for f in fields), shape=tuple(about["shape"]))
    return jax.device_put(made, jax.local_devices()[0])


# ---- one for each epoch


def module_checkpoint(mod: Any, directory: str | os.PathLike[str], period: int = 1, keep: int | None = None
                      ) -> Callable[..., None]:
    """Returns an epoch callback that saves a module to `<directory>/<epoch, four digits>`.

    Args:
      mod: the Module.
      directory: where the checkpoints go.
      period: save every so many epochs.
      keep: how many to keep, the latest ones; None: all.
    """
    period = int(max(1, period))

    def save_epoch(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period:
            return
        path = Path(directory) / f"{iter_no + 1:04d}"
        save(path, mod)
        logging.info('Saved checkpoint to "%s"', path)
        if keep is not None and jax.process_index() == 0:
            for old in _finished(directory)[:-keep]:
                shutil.rmtree(old)

    return save_epoch


def latest(directory: str | os.PathLike[str]) -> tuple[str, int] | None:
    """Returns (path, epoch) of the last whole checkpoint that `module_checkpoint` wrote, None if there is none."""
    found = _finished(directory)
    return (str(found[-1]), int(found[-1].name)) if found else None


def _finished(directory: str | os.PathLike[str]) -> list[Path]:
    folder = Path(directory)
    names = [p for p in folder.iterdir() if re.fullmatch(r"\d+", p.name)] if folder.is_dir() else []
    return sorted(names, key=lambda p: int(p.name))
