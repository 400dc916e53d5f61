"""Updater: an optimizer with the states of all weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from symjax.ndarray import NDArray
from symjax.optimizer import _states
from symjax.optimizer._base import Index, Optimizer


class Updater:
    """A callable `(index, gradient, weight)` that updates weights in place and keeps their states.

    Args:
      optimizer: what updates; its `param_dict`, multipliers and counts are used.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Index, Any] = {}
        self.states_synced: dict[Index, bool] = {}
        self.aggregate_updates = optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Updates one weight, or lists of weights.

        Args:
          index: the index of the weight (an int or a str), or a list of them.
          grad: its gradient, or a list.
          weight: the weight, or a list.

        Raises:
          TypeError: a weight or gradient is no NDArray.
        """
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        index = [i.decode() if isinstance(i, bytes) else i for i in index]
        if weight:
            self.optimizer._set_current_context(weight[0].context.device_id)
        for i, w in zip(index, weight, strict=True):
            if not self.states_synced.get(i, False):
                self._prepare(i, w)
        update: Any = self.optimizer.update_multi_precision
        if not self.aggregate_updates:
            for i, g, w in zip(index, grad, weight, strict=True):
                update(i, w, g, self.states[i])
        else:  # one that aggregates takes lists
            for group in [(index, weight, grad)] if len(index) == 1 else self._groups(index, grad, weight):
                update(*group, [self.states[i] for i in group[0]])

    def _prepare(self, index: Index, weight: NDArray) -> None:
        """Makes the state of a weight, or brings a loaded one to the weight's device."""
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
        else:
            self.states[index] = self.sync_state_context(self.states[index], weight.context)
        self.states_synced[index] = True

    def _groups(self, index: Any, grad: Any, weight: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Yields (indices, weights, gradients) of up to `aggregate_num` weights of one dtype."""
        by_type: dict[Any, list[Any]] = {}
        for item in zip(index, weight, grad, strict=True):
            by_type.setdefault(item[1]._dtype, []).append(item)
        n = self.optimizer.aggregate_num
        for items in by_type.values():
            for k in range(0, len(items), n):
                indices, weights, grads = zip(*items[k : k + n], strict=True)
                yield indices, weights, grads

    def sync_state_context(self, state: Any, context: Any) -> Any:
        """Returns a state with its arrays on the device of `context`."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)([self.sync_state_context(s, context) for s in state])
        return state

    def set_states(self, states: bytes) -> None:
        """Restores what `get_states` returned, with the optimizer if it is in there, or states that MXNet pickled.

        Raises:
          ValueError: the bytes are something else, or a pickle of more than arrays, which could run any code.
        """
        self.states, optimizer = _states.loads(states)
        if optimizer is not None:
            self.optimizer = optimizer
            self.aggregate_updates = optimizer.aggregate_num > 0
        self.states_synced = dict.fromkeys(self.states, False)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Returns all states as bytes (a `.params` file with a JSON text; MXNet pickles them).

        Args:
          dump_optimizer: include the optimizer: its hyper-parameters, scheduler and counts.

        Raises:
          TypeError: the optimizer has an attribute that cannot be written, such as a function.
        """
        return _states.dumps(self.states, self.optimizer if dump_optimizer else None)


def get_updater(optimizer: Optimizer) -> Updater:
    """Returns an `Updater` of an optimizer."""
    return Updater(optimizer)
