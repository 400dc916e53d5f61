"""Symbols as Flax NNX modules."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from symjax.functional import function_of, label_nodes, lower
from symjax.interop._initial import Initializer, he_normal, initial_values
from symjax.lowering.errors import BindError, did_you_mean
from symjax.lowering.graph import Entry, Graph
from symjax.lowering.infer import infer_types
from symjax.sparse import CSR, RowSparse
from symjax.symbol.symbol import Symbol

if TYPE_CHECKING:
    from symjax.ndarray import NDArray

Outputs = Literal["symbol", "logits"]


class Constant(nnx.Variable[Any]):
    """A parameter of an integer or bool dtype, which has no gradient."""


class SymbolModule(nnx.Module):
    """A symbol with its parameters as a Flax NNX module.

        model = SymbolModule.from_checkpoint("digits", 10, rngs=nnx.Rngs(0))
        probabilities = model(images)

    Parameters are `nnx.Param` (those of an integer dtype `Constant`), moving statistics and other auxiliary states
    `nnx.BatchStat`, both in dicts by MXNet's names: `model.params["fc1_weight"]`, `model.aux["bn1_moving_mean"]`. It
    works under `nnx.jit`, `nnx.grad` and with `nnx.Optimizer`; `nnx.state(model)` is what Orbax saves.

    A new module predicts. `train()` and `eval()`, its own or those of a module around it, set `deterministic`: in
    training, dropout drops, BatchNorm uses the batch's statistics, and each call updates the moving ones.

    Loss heads (`SoftmaxOutput`, `MakeLoss`, ...) carry a gradient of their own, which ignores the cotangent. There are
    two ways to train:

    * `outputs="symbol"`, MXNet's: pass the labels to the call and differentiate the sum of the outputs. As in MXNet the
      gradient is one summed over the batch, unless the head's `normalization` says otherwise; a factor on the outputs
      does not change it, `optax.scale(1 / batch)` does.
    * `outputs="logits"`: each output that is a loss head is replaced by what it reads. Put any JAX loss on that.

    Args:
      symbol: the symbol.
      arg_params: values of parameters by name (NDArrays or arrays, of their own dtypes); others are ignored.
      aux_params: values of auxiliary states by name.
      outputs: "symbol" or "logits", see above.
      inputs: names of the arguments that calls pass; every other one is a parameter. By default those in `shapes`, the
        labels, and, where parameters are given, what they lack.
      rngs: random streams. "params" initialises parameters without a value, "dropout" is forked for everything random
        in the graph.
      initializer: initialises weights that have no value, as `jax.nn.initializers` do. gamma and moving variances begin
        with 1; bias, beta, moving means and recurrent states with 0. MXNet's `__init__` attributes are not read.
      sharding: where parameters and auxiliary states go, by regular expression on their names; the first match counts.
      shapes: shapes of inputs by name; needed for parameters without a value.
      **more_shapes: the same, as keywords.

    Inputs of another dtype than the graph infers are cast, as MXNet's executor does when it copies them. Parameters
    keep their dtypes, 64-bit ones included; arithmetic outside of the module (a loss, an optimizer) follows JAX, so
    train 64-bit parameters inside `jax.enable_x64(True)`.

    Raises:
      ValueError: a name is unknown, a parameter has no value and no shape can be inferred, or `rngs` is missing where
        parameters must be initialised.
    """

    def __init__(
        self,
        symbol: Symbol,
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        *,
        outputs: Outputs = "symbol",
        inputs: Sequence[str] | None = None,
        rngs: nnx.Rngs | None = None,
        initializer: Initializer = he_normal,
        sharding: Mapping[str, jax.sharding.Sharding] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        **more_shapes: tuple[int, ...],
    ) -> None:
        if outputs not in ("symbol", "logits"):
            raise BindError(f"outputs must be 'symbol' or 'logits', got {outputs!r}")
        run = _without_loss_heads(symbol) if outputs == "logits" else symbol
        gone = set(symbol.list_inputs()) - set(run.list_inputs())
        known = {k: s for k, s in {**(shapes or {}), **more_shapes}.items() if k not in gone}
        feeds = None if inputs is None else [n for n in inputs if n not in gone]
        _, params, aux = lower(run, arg_params, aux_params, inputs=feeds, shapes=known)
        given = {*(arg_params or {}), *(aux_params or {})}
        params, aux = initial_values(run._graph, given, params, aux, initializer, _init_key(rngs))
        place = _placer(sharding or {})
        self._program = _Program(symbol, outputs, [n for n in run.list_arguments() if n not in params])
        self.deterministic = True
        self.params = nnx.data({k: _variable(place(k, v)) for k, v in params.items()})
        self.aux = nnx.data({k: nnx.BatchStat(place(k, v)) for k, v in aux.items()})
        self.rng: nnx.RngStream | None = nnx.data(None if rngs is None else rngs["dropout"].fork())

    @classmethod
    def from_checkpoint(cls, prefix: str | os.PathLike[str], epoch: int, **kwargs: Any) -> SymbolModule:
        """Reads `<prefix>-symbol.json` and `<prefix>-<epoch>.params`; keywords as for the constructor."""
        from symjax.model import load_checkpoint

        return cls(*load_checkpoint(os.fspath(prefix), epoch), **kwargs)

    @classmethod
    def imports(
        cls,
        symbol_file: str | os.PathLike[str],
        input_names: str | Sequence[str] | None = None,
        param_file: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> SymbolModule:
        """Reads a symbol file and a `.params` file, as Gluon's `SymbolBlock.imports` does.

        Args:
          symbol_file: the symbol JSON.
          input_names: names of the inputs; by default what the parameters lack.
          param_file: the parameters, with or without `arg:` and `aux:` before the names.
          **kwargs: as for the constructor.
        """
        from symjax import ndarray, symbol
        from symjax.model import split_params

        net = symbol.load(os.fspath(symbol_file))
        loaded: Any = ndarray.load(os.fspath(param_file)) if param_file is not None else {}
        args, aux = split_params(loaded)
        names = [input_names] if isinstance(input_names, str) else input_names
        return cls(net, {**args, **aux}, {}, inputs=names, **kwargs)

    @property
    def symbol(self) -> Symbol:
        """The symbol that was given, loss heads included."""
        return self._program.symbol

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in the order in which calls take them by position."""
        return self._program.inputs

    def __call__(self, *args: Any, rngs: nnx.Rngs | nnx.RngStream | jax.Array | None = None, **inputs: Any) -> Any:
        """Runs the graph as one compiled function.

        Args:
          *args: inputs in the order of `input_names`.
          rngs: random streams or a key to use instead of the module's own.
          **inputs: inputs by name; labels of loss heads may be left out in prediction.

        Returns:
          The output, or a tuple of them if there are several.

        Raises:
          ValueError: an input is unknown, missing or given twice, or random numbers are needed and there are no `rngs`.
        """
        program, train = self._program, not self.deterministic
        given = program.named(args, inputs, train)
        params = {k: v.get_value() for k, v in self.params.items()}
        aux = {k: v.get_value() for k, v in self.aux.items()}
        given = program.cast(given, {**params, **aux})
        key = self._key(rngs) if program.draws(train) else None
        try:
            with jax.enable_x64(True):
                outs, new = program.run(params, aux, given, key=key, train=train)
        except BindError as e:
            if key is None:
                e.add_note("SymbolModule: make it with rngs=nnx.Rngs(…), or pass rngs= to the call")
            raise
        if train:
            for k, v in new.items():
                self.aux[k].set_value(v)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _key(self, rngs: nnx.Rngs | nnx.RngStream | jax.Array | None) -> jax.Array | None:
        source = self.rng if rngs is None else rngs
        if isinstance(source, nnx.Rngs):
            return source["dropout"]()
        return source() if isinstance(source, nnx.RngStream) else source  # None fails where a rule really draws

    def set_view(self, deterministic: bool | None = None) -> None:
        """Sets the mode; called by `nnx.view`."""
        if deterministic is not None:
            self.deterministic = deterministic

    def to_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Returns (arg_params, aux_params) as NDArrays on the CPU, for `model.save_checkpoint`."""
        from symjax.context import cpu
        from symjax.ndarray import NDArray

        def arrays(values: Mapping[str, Any]) -> dict[str, NDArray]:
            with jax.enable_x64(True):
                return {
                    k: NDArray._from_jax(jax.device_put(np.asarray(v.get_value()), cpu().jax_device), cpu())
                    for k, v in values.items()
                }

        return arrays(self.params), arrays(self.aux)

    def save_checkpoint(self, prefix: str | os.PathLike[str], epoch: int) -> None:
        """Writes `<prefix>-symbol.json` and `<prefix>-<epoch>.params`, which MXNet and symjax load."""
        from symjax.model import save_checkpoint

        save_checkpoint(os.fspath(prefix), epoch, self.symbol, *self.to_params(), remove_amp_cast=False)


class _Program:
    """What a module runs. NNX keeps it as a static attribute: equal programs compute the same function.

    Args:
      symbol: the symbol, loss heads included.
      outputs: "symbol" or "logits".
      inputs: names of the arguments that calls pass.
    """

    def __init__(self, symbol: Symbol, outputs: Outputs, inputs: Iterable[str]) -> None:
        self.symbol = symbol
        self.outputs: Outputs = outputs
        self.inputs = tuple(inputs)
        self._graph = (_without_loss_heads(symbol) if outputs == "logits" else symbol)._graph
        self._labels = {n.name for n in label_nodes(self._graph)}
        self._text = symbol.tojson(remove_amp_cast=False)
        self._dtypes: dict[tuple[Any, ...], dict[str, str]] = {}
        self.run: Callable[..., Any] = jax.jit(function_of(self._graph, set(self.inputs)), static_argnames="train")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Program) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"{self.symbol!r}, inputs {', '.join(self.inputs)}, outputs {self.outputs!r}"

    def __deepcopy__(self, memo: Any) -> _Program:
        return self

    def __reduce__(self) -> Any:
        return _Program, (self.symbol, self.outputs, self.inputs)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self._text, self.outputs, self.inputs

    def named(self, args: Sequence[Any], inputs: Mapping[str, Any], train: bool) -> dict[str, Any]:
        """Gives inputs their names, and checks that all are there."""
        if len(args) > len(self.inputs):
            raise BindError(f"{len(args)} inputs given, the graph has {len(self.inputs)}: {', '.join(self.inputs)}")
        given = dict(zip(self.inputs, args, strict=False))
        for name, value in inputs.items():
            if name not in self.inputs:
                raise BindError(
                    f"{name!r} is not an input; inputs are {', '.join(self.inputs)}.{did_you_mean(name, self.inputs)}"
                )
            if name in given:
                raise BindError(f"input {name!r} is given by position and by name")
            given[name] = value
        missing = [n for n in self.inputs if given.get(n) is None]
        for name in missing:
            if name not in self._labels:
                raise BindError(f"input {name!r} is missing; inputs are {', '.join(self.inputs)}")
            if train:
                raise BindError(
                    f"the label {name!r} is missing, and the gradient of its loss head depends on it: pass it, or "
                    f"make the module with outputs='logits' and use a loss of your own"
                )
        return {n: getattr(v, "_data", v) for n, v in given.items() if n not in missing}

    def cast(self, inputs: Mapping[str, Any], values: Mapping[str, jax.Array]) -> dict[str, Any]:
        """Casts inputs to the dtypes that follow from those of parameters and auxiliary states."""
        have = tuple((k, v.dtype.name) for k, v in values.items())
        if have not in self._dtypes:
            by_name = dict(have)
            found = infer_types(self._graph, {n: by_name[n.name] for n in self._graph.inputs if n.name in by_name})
            self._dtypes[have] = {n.name: t for n in self._graph.arguments if (t := found[Entry(n, 0)])}
        want = self._dtypes[have]
        with jax.enable_x64(True):
            return {k: _as_dtype(v, want.get(k)) for k, v in inputs.items()}

    def draws(self, train: bool) -> bool:
        """Whether a call may draw random numbers."""
        return _draws(self._graph, train)


def _draws(graph: Graph, train: bool) -> bool:
    for n in graph.nodes:
        if n.op is None:
            continue
        if "subgraphs" in n.op.asks:
            if any(_draws(g, train) for g in n.subgraphs):
                return True
        elif "key" in n.op.asks and (train or "train" not in n.op.asks or getattr(n.params, "mode", None) == "always"):
            return True
    return False


def _as_dtype(value: Any, dtype: str | None) -> Any:
    if not isinstance(value, (jax.Array, CSR, RowSparse)):
        value = np.asarray(value)
    if dtype is None or value.dtype.name == dtype:
        return value
    return value.astype(jnp.dtype(dtype))


def _variable(value: jax.Array) -> nnx.Variable[Any]:
    return nnx.Param(value) if jnp.issubdtype(value.dtype, jnp.inexact) else Constant(value)


def _init_key(rngs: nnx.Rngs | None) -> Callable[[], jax.Array]:
    def key() -> jax.Array:
        if rngs is None:
            raise BindError("parameters without values are to be initialised: pass rngs=nnx.Rngs(…), or their values")
        return rngs["params"]()

    return key


def _placer(sharding: Mapping[str, jax.sharding.Sharding]) -> Callable[[str, jax.Array], jax.Array]:
    patterns = [(re.compile(p), s) for p, s in sharding.items()]

    def place(name: str, value: jax.Array) -> jax.Array:
        where = next((s for p, s in patterns if p.search(name)), None)
        return value if where is None else jax.device_put(value, where)

    return place


def _without_loss_heads(symbol: Symbol) -> Symbol:
    """Replaces each output that is a loss head by the head's first input. BlockGrad stays: it is no loss."""

    def below(e: Entry) -> Entry:
        while e.node.op is not None and e.node.is_loss and e.node.op.name != "BlockGrad" and e.node.inputs:
            e = e.node.inputs[0]
        return e

    return Symbol(Graph([below(e) for e in symbol._graph.outputs]))
