"""Symbols as Flax NNX modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import jax
from flax import nnx

from symjax.functional import lower
from symjax.lowering.errors import BindError, did_you_mean
from symjax.lowering.graph import Entry, Graph
from symjax.lowering.trace import needs_key
from symjax.symbol.symbol import Symbol


class SymbolModule(nnx.Module):
    """A symbol with its parameters as a Flax NNX module.

        model = SymbolModule.from_checkpoint("digits", 10, rngs=nnx.Rngs(0))
        probabilities = model(images)

    Parameters are `nnx.Param`, moving statistics (auxiliary states) `nnx.BatchStat`, both in dicts by MXNet's names
    (`model.params["fc1_weight"]`, `model.aux["bn1_moving_mean"]`). `model.train()` and `model.eval()` switch dropout and
    batch statistics; in training mode a call also updates the moving statistics. It works under `nnx.jit`, `nnx.grad`
    and with `nnx.Optimizer`.

    Args:
      symbol: the symbol.
      arg_params: values of parameters by name.
      aux_params: values of auxiliary states by name.
      outputs: "symbol" keeps the graph's outputs and the loss heads' own gradients, which ignore the cotangent (for
        training as MXNet does: differentiate the sum of the outputs, labels given by name); "logits" replaces every
        loss head by its first input, so that any JAX loss can stand on it.
      rngs: random streams; "dropout" is used for everything random in the graph.
      **shapes: shapes of inputs by name, for parameters that are not given (made as zeros).

    Raises:
      ValueError: parameters are missing and their shapes cannot be inferred.
    """

    def __init__(self, symbol: Symbol, arg_params: Mapping[str, Any] | None = None,
                 aux_params: Mapping[str, Any] | None = None, *, outputs: Literal["symbol", "logits"] = "symbol",
                 rngs: nnx.Rngs | None = None, **shapes: tuple[int, ...]) -> None:
        if outputs not in ("symbol", "logits"):
            raise BindError(f"outputs must be 'symbol' or 'logits', got {outputs!r}")
        used = _without_loss_heads(symbol) if outputs == "logits" else symbol
        keep = set(used.list_inputs())
        fn, params, aux = lower(used, arg_params, aux_params, **{k: s for k, s in shapes.items() if k in keep})
        self.symbol = used
        self.input_names = tuple(n for n in used.list_arguments() if n not in params)
        self.training = False
        self.params = nnx.Dict({k: nnx.Param(v) for k, v in params.items()})
        self.aux = nnx.Dict({k: nnx.BatchStat(v) for k, v in aux.items()})
        self.rngs = rngs
        self._draws = needs_key(used._graph)
        self._fn = fn

    @classmethod
    def from_checkpoint(cls, prefix: str | os.PathLike[str], epoch: int, **kwargs: Any) -> SymbolModule:
        """Reads `<prefix>-symbol.json` and `<prefix>-<epoch>.params`; keywords as for the constructor."""
        from symjax.model import load_checkpoint

        return cls(*load_checkpoint(os.fspath(prefix), epoch), **kwargs)

    def train(self, **attributes: Any) -> Any:
        """Switches to training mode."""
        self.training = True
        return super().train(**attributes)

    def eval(self, **attributes: Any) -> Any:
        """Switches to prediction mode."""
        self.training = False
        return super().eval(**attributes)

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        """Runs the graph.

        Args:
          *args: inputs in the order of `input_names`.
          **inputs: inputs by name; labels of loss heads may be left out.

        Returns:
          The output, or a tuple of them if there are several.
        """
        if len(args) > len(self.input_names):
            raise BindError(f"{len(args)} inputs given, the graph has {', '.join(self.input_names)}")
        for name, value in zip(self.input_names, args, strict=False):
            if name in inputs:
                raise BindError(f"input {name!r} is given by position and by name")
            inputs[name] = value
        for name in inputs:
            if name not in self.input_names:
                raise BindError(f"{name!r} is not an input; inputs are {', '.join(self.input_names)}."
                                f"{did_you_mean(name, self.input_names)}")
        params = {k: v[...] for k, v in self.params.items()}
        aux = {k: v[...] for k, v in self.aux.items()}
        outs, new = self._fn(params, aux, key=self._key(), train=self.training, **inputs)
        if self.training:
            for k, v in new.items():
                self.aux[k][...] = v
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _key(self) -> jax.Array | None:
        if not self._draws:
            return None
        return self.rngs.dropout() if self.rngs is not None else None

    def to_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arg_params, aux_params) as NDArrays, for `model.save_checkpoint`."""
        from symjax.ndarray import NDArray

        def arrays(values: Mapping[str, Any]) -> dict[str, Any]:
            return {k: NDArray._from_jax(v[...]) for k, v in values.items()}

        return arrays(self.params), arrays(self.aux)


def _without_loss_heads(symbol: Symbol) -> Symbol:
    """Replaces each output that is a loss head by the head's first input."""

    def below(e: Entry) -> Entry:
        while e.node.op is not None and e.node.op.is_loss and e.node.inputs:
            e = e.node.inputs[0]
        return e

    return Symbol(Graph([below(e) for e in symbol._graph.outputs]))
