"""What all recurrent cells share: their variables, unrolling, packing of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from symjax import ndarray, symbol
from symjax.lowering.errors import ArgumentError, ShapeError
from symjax.ndarray import NDArray
from symjax.symbol import Symbol

Weights = dict[str, NDArray]
States = list[Any]

MODIFIED = ("After applying modifier cells (e.g. DropoutCell) the base cell cannot be called directly. Call the "
            "modifier cell instead.")


def merge_steps(steps: Sequence[Symbol], axis: int) -> Symbol:
    """Joins one symbol per step along a new time axis."""
    return symbol.Concat(*[symbol.expand_dims(s, axis=axis) for s in steps], dim=axis)


def split_steps(inputs: Any, length: int, axis: int) -> list[Symbol]:
    """One symbol per step; a list is taken as it is.

    Raises:
      ArgumentError: a list of another length, or a symbol with several outputs.
    """
    _check(inputs, length)
    if not isinstance(inputs, Symbol):
        return list(inputs)
    if len(inputs.list_outputs()) != 1:
        raise ArgumentError("unroll doesn't allow grouped symbol as input. Please convert to list with list(inputs) "
                            "first or let unroll handle splitting.")
    return list(symbol.split(inputs, axis=axis, num_outputs=length, squeeze_axis=1))


def one_symbol(inputs: Any, length: int, axis: int) -> Symbol:
    """The steps as one symbol; a symbol is taken as it is."""
    _check(inputs, length)
    return inputs if isinstance(inputs, Symbol) else merge_steps(inputs, axis)


def arrange(inputs: Any, length: int, axis: int, merge: bool | None) -> Any:
    """A symbol (`merge` True), one for each step (False), or whatever is there (None)."""
    if merge is None:
        _check(inputs, length)
        return inputs
    return one_symbol(inputs, length, axis) if merge else split_steps(inputs, length, axis)


def _check(inputs: Any, length: int) -> None:
    if inputs is None:
        raise ArgumentError("unroll(inputs=None) has been deprecated. Please create input variables outside unroll.")
    if not isinstance(inputs, Symbol) and length is not None and len(inputs) != length:
        raise ArgumentError(f"unroll got {len(inputs)} inputs for length={length}")


class RNNParams:
    """Variables of cells by name; cells that are given the same `RNNParams` share them.

    Args:
      prefix: what all names begin with.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Returns the variable `prefix + name`, made with `kwargs` (as of `mx.sym.Variable`) the first time."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell:
    """Base class of recurrent cells.

    A subclass defines `state_info` and `__call__(inputs, states)`, one step that returns (output, new states).

    Args:
      prefix: what the names of its nodes begin with, and those of its variables unless `params` is given.
      params: variables to share with other cells.
    """

    _num_hidden: int
    _cells: list[BaseRNNCell]
    _gates: ClassVar[Sequence[str]] = ()
    """Ends of the gates' names, in the order in which they lie in the packed weights."""

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix = prefix
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Starts the numbering of steps and states afresh, for another graph."""
        self._init_counter = -1
        self._counter = -1
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        """Returns the output and the new states of one step.

        Args:
          inputs: symbol of shape (batch, units).
          states: those of the step before, or `begin_state()`.
        """
        raise NotImplementedError

    @property
    def params(self) -> RNNParams:
        """The variables. Whoever has asked for them may have shared them: the cell is no longer their only owner."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[Any]:
        """For each state a dict with its "shape" (0: the batch size) and "__layout__"."""
        raise NotImplementedError

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates

    def _next_step(self) -> str:
        """The beginning of the names of the next step's nodes."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> States:
        """Returns the symbols of the first states.

        Args:
          func: makes one from `name`, `shape` and `__layout__`; `mx.sym.Variable` makes them inputs.
          **kwargs: more arguments for it.

        Raises:
          AssertionError: the cell is wrapped by a modifier cell, which must be called instead.
        """
        self._check_unmodified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **(info or {})}))
        return states

    def _check_unmodified(self) -> None:
        if self._modified:
            raise ArgumentError(MODIFIED)

    def unpack_weights(self, args: Weights) -> Weights:
        """Returns the weights with one array for each gate (`lstm_i2h_f_weight`) instead of one for all.

        Args:
          args: arrays by name, such as `Module.get_params()[0]`; others than this cell's are passed on.
        """
        args = dict(args)
        h = getattr(self, "_num_hidden", 0)
        packed = [(kind, args.pop(name)) for kind, name in self._packed()]
        for group in (packed[:2], packed[2:]):  # MXNet: weight and bias of a gate follow each other in the file
            for i, gate in enumerate(self._gate_names):
                for kind, array in group:
                    args[kind.format(gate)] = array[i * h:(i + 1) * h].copy()
        return args

    def pack_weights(self, args: Weights) -> Weights:
        """Returns the weights with one array for all gates: the reverse of `unpack_weights`."""
        args = dict(args)
        for kind, name in self._packed():
            args[name] = ndarray.concatenate([args.pop(kind.format(gate)) for gate in self._gate_names])
        return args

    def _packed(self) -> list[tuple[str, str]]:
        """(name of a gate's array with a place for the gate, name of the packed array)."""
        if not self._gate_names:
            return []
        return [(f"{self._prefix}{group}{{}}_{what}", f"{self._prefix}{group}_{what}")
                for group in ("i2h", "h2h") for what in ("weight", "bias")]

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        """Returns the outputs and the last states of `length` steps.

        Args:
          length: number of steps.
          inputs: one symbol in the `layout`, or a list of symbols (batch, …), one for each step.
          begin_state: the first states, by default `begin_state()`.
          layout: "NTC": (batch, length, …), "TNC": (length, batch, …).
          merge_outputs: True: one symbol in the `layout`; False: a list; None: what costs least.
        """
        self.reset()
        axis = layout.find("T")
        steps = split_steps(inputs, length, axis)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for i in range(length):
            output, states = self(steps[i], states)
            outputs.append(output)
        return arrange(outputs, length, axis, merge_outputs), states

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        if isinstance(activation, str):
            return symbol.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)


def need_even_split(size: int, used: int) -> None:
    """Raises ShapeError where a fused parameter vector does not have the size that its cell needs."""
    if size != used:
        raise ShapeError(f"Invalid parameters size for FusedRNNCell: {size} numbers, expected {used}")
