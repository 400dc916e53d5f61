"""Habits of MXNet that are faults, and the switch that brings them back: `symjax.config(exact_mxnet=True)`.

symjax computes what MXNet documents, or what the mathematics says. Where models may have been trained with, or depend
on, something else that MXNet does, a rule declares a habit beside it and asks for it:

    _OUT_GRAD = habit("SoftmaxOutput", "With out_grad, the gradient is multiplied by the operator's own output.")
    …
    factor = out if _OUT_GRAD() else head

The answer may differ from one trace to the next: the switch is a part of what JAX's own caches look compiled functions
up by, so that graphs, imperative calls and functions of the user are compiled anew when it changes.
"""

from __future__ import annotations

import dataclasses

import jax

_exact = jax.make_user_context(False)


@dataclasses.dataclass(frozen=True)
class Habit:
    """Something that MXNet does and symjax does only under `exact_mxnet`. Calling it tells whether to.

    Attributes:
      ops: names of the operators.
      text: what MXNet does, as a sentence.
      instead: what symjax does otherwise.
    """

    ops: tuple[str, ...]
    text: str
    instead: str

    def __call__(self) -> bool:
        return _exact.value


_habits: list[Habit] = []


def habit(ops: str | tuple[str, ...], text: str, instead: str) -> Habit:
    """Declares a habit of one or several operators."""
    made = Habit((ops,) if isinstance(ops, str) else ops, text, instead)
    _habits.append(made)
    return made


def all_habits() -> list[Habit]:
    """Every habit, by operator."""
    from symjax.lowering import registry

    registry.load_ops()
    return sorted(_habits, key=lambda h: h.ops)


def set_exact(on: bool) -> None:
    """Turns MXNet's habits on or off in all threads."""
    _exact.set_global(on)
