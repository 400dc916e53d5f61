"""One pass of an executor: forward, backward and the optimizer's updates, each run when its results are wanted.

`backward()` right after `forward(is_train=True)` waits too: updates that follow join it, and the pass runs as one
compiled call that writes weights and optimizer states in place. It runs when the last gradient has been used by an
update, or when somebody reads any of what it computes; whoever looks cannot tell.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from symjax import random
from symjax._interrupt import StepGuard
from symjax.lowering.compile import Step, Update
from symjax.lowering.registry import Op
from symjax.lowering.row_gradients import FEW_ROWS
from symjax.ndarray.dispatch import entry_for, operands_of
from symjax.ndarray.donation import MIN_SIZE, holds_alone
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import is_plain, pending_on, work_out_columns
from symjax.ndarray.tape import STATE
from symjax.sparse.exact import add, trimmed
from symjax.sparse.rules import as_stype, decide

if TYPE_CHECKING:
    from symjax.executor import Executor

_UNKNOWN = object()


class Known:
    """An update that has joined a pass: the next pass takes it again without looking at anything twice.

    It is the same one if the op, the arrays and the names of its scalars are, and nobody but that pass has written to
    the tables since, as `versions` tells: what the pass wrote has the shape, dtype and storage that were looked at.
    """

    __slots__ = ("arrays", "ctx", "entry", "names", "op", "operands", "packed", "update", "versions")

    def __init__(self, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any], entry: Any, ctx: Any,
                 update: Update) -> None:
        self.op, self.names, self.entry, self.ctx, self.update = op, tuple(attrs), entry, ctx, update
        self.arrays = [weakref.ref(a) for a in arrays]  # an optimizer's states go when it goes
        self.versions: list[int] | None = None
        self.packed, self.operands = b"", ()

    def is_again(self, op: Op, arrays: Sequence[Any], tables: Sequence[Any], attrs: Mapping[str, Any],
                 targets: Sequence[Any]) -> bool:
        return (
            targets[self.update.grad] is arrays[1] and self.op is op and self.names == tuple(attrs) == self.entry.names
            and len(arrays) == len(self.arrays) and all(r() is a for r, a in zip(self.arrays, arrays, strict=True))
            and [t._version for t in tables] == self.versions
            and set(map(type, attrs.values())) == {float}
        )

    def operands_for(self, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the compiled call takes for scalars, kept as long as they are the same to the bit."""
        packed = struct.pack(f"{len(scalars)}d", *scalars)
        if packed != self.packed:
            self.packed, self.operands = packed, operands_of(self.entry, scalars, self.ctx)
        return self.operands


@dataclasses.dataclass(slots=True, eq=False)
class _Joined:
    """An update that joined a pass: what it is, its tables (weight, then states) with their contents, its scalars."""

    known: Known
    update: Update
    tables: list[NDArray]
    contents: list[Any]
    scalars: tuple[Any, ...]


@dataclasses.dataclass(slots=True, eq=False)
class UpdatingCall:
    """The compiled call of a step with updates.

    In its first calls JAX runs Python code also after the tables are overwritten: Ctrl-C has to wait for these.
    """

    step: Step
    updates: list[Update]
    call: Callable[..., Any]
    in_python: int = 3


class Run:
    """One forward pass: the contents it reads, and how far it has got.

    When all is computed it lets go of the arguments, so that an optimizer can update them in place. Another backward
    then reads the arrays as they are, as it does in MXNet.
    """

    __slots__ = ("args", "aux", "done", "ex", "heads", "heads_done", "joined", "key", "new_aux", "old", "outs",
                 "pull", "rows", "targets", "train", "unused", "waiting")  # fmt: skip

    def __init__(self, ex: Executor, train: bool) -> None:
        self.ex, self.train = ex, train
        for a in ex._by_column:
            work_out_columns(a)
        self.args: tuple[Any, ...] | None = tuple([a._data for a in ex.arg_arrays])
        self.aux = tuple([a._data for a in ex.aux_arrays])
        self.key = random.next_key_data(ex._ctx) if ex._program.needs_key else None
        self.outs: Any = None
        self.new_aux: Any = None
        self.pull: Any = None
        self.heads_done = 0
        self.rows: Any = _UNKNOWN
        self.waiting = False
        self.heads: list[Any] | None = None
        self.old: list[Any] = []
        self.joined: list[_Joined] = []
        self.done: list[Any] = []  # what the compiled call made, until it has been handed out
        self.targets: list[Any] = []  # the arrays that the gradients go to
        self.unused: set[int] = set()  # the gradients that no update has used

    @property
    def step(self) -> Step:
        found = self.ex._steps.get(self.train)
        return self._new_step() if found is None else found

    def _new_step(self) -> Step:
        ex = self.ex
        made = ex._steps[self.train] = ex._program.step(ex._wrt, ex._add, self.train, ex._plans)
        return made

    def _contents(self) -> tuple[Any, ...]:
        if self.args is None:
            self.args = tuple([a._data for a in self.ex.arg_arrays])
        return self.args

    def _let_go(self) -> None:
        self.args = self.pull = self.heads = None  # residuals hold arguments too
        self.old, self.joined, self.done = [], [], []
        self.rows = _UNKNOWN

    # ---- forward

    def read(self) -> None:
        """Runs the forward pass alone, unless more is waiting; in training it keeps what the backward pass needs."""
        with self.ex._lock:
            if self.waiting:
                self.flush()
            elif self.outs is None:  # another thread may have been first
                self._read()

    def _read(self) -> None:
        ex, args = self.ex, self._contents()
        with jax.enable_x64(True):
            if self.train and ex._wrt:
                self._find_rows()
                self.outs, self.new_aux, self.pull = self.step.forward(args, self.aux, self.key, self.rows)
            else:
                self.outs, self.new_aux = ex._program.forward(args, self.aux, self.key, self.train)
                self._let_go()
        self._deliver()
        for i in ex._forward_aux:
            ex.aux_arrays[i]._set_data(self.new_aux[i])

    def _find_rows(self) -> None:
        """Finds the rows that lookups touch, once for forward and backward."""
        if self.rows is _UNKNOWN:
            self.rows = self.step.rows(self._contents(), self.aux, self.key)

    def _deliver(self) -> None:
        if self.ex._run is self:
            for o, v in zip(self.ex._outputs, self.outs, strict=True):
                o._set_data(v if o.stype == "default" else trimmed(as_stype(v, o.stype)))

    # ---- backward

    def backward(self, heads: list[Any] | None) -> None:
        """Computes the gradients, or notes that they are wanted."""
        if self.waiting:
            self.flush()
        ex = self.ex
        targets = self.targets = [ex.grad_arrays[i] for i in ex._wrt]
        old = [g._data if a and g.stype == "default" else None for g, a in zip(targets, ex._add, strict=True)]
        if ex._shares_targets:  # each gradient that is added to an array finds there what those before it left
            old = [None if o is None else jnp.zeros_like(o) for o in old]
        changed = [*targets, *ex.aux_arrays] if self.train else targets
        if self._can_wait() and all(map(is_plain, changed)):
            self.waiting, self.heads, self.old = True, heads, old
            self.unused = set(range(len(targets)))
            for a in changed:
                a._set_pending(a.shape, a._dtype, self.flush)
        else:
            self._backward(heads, old)

    def _can_wait(self) -> bool:
        ex = self.ex
        if self.outs is not None or self.heads_done or not ex._wrt or ex._program.eager or ex._program.calls_host:
            return False
        if ex._shares_targets:
            return False
        return not any(a and g.stype != "default" for g, a in zip(self.targets, ex._add, strict=True))

    def _backward(self, heads: list[Any] | None, old: list[Any]) -> None:
        ex, step, args = self.ex, self.step, self._contents()
        with jax.enable_x64(True):
            self._find_rows()
            if self.pull is not None and (not self.heads_done or not self.aux):
                grads = step.backward(self.pull, self.outs, heads, old, args)
            else:
                # MXNet: a second backward moves the auxiliary states once more.
                aux = self.aux if not self.heads_done else tuple([a._data for a in ex.aux_arrays])
                outs, self.new_aux, grads = step.fused(args, aux, self.key, heads, old, self.rows)
                if self.outs is None:
                    self.outs = outs
                    self._deliver()
        for g, value in zip(self.targets, self._finished(grads), strict=True):
            g._set_data(value)
        if self.train:
            for a, value in zip(ex.aux_arrays, self.new_aux, strict=True):
                a._set_data(value)
        self.heads_done += 1
        self._let_go()

    def _finished(self, grads: Sequence[Any]) -> Iterator[Any]:
        """Yields gradients as their arrays take them."""
        ex = self.ex
        for g, value, added, plan in zip(self.targets, grads, ex._add, ex._plans, strict=True):
            # rows found on the host have no room to spare, and to look at few ones would be to wait for them
            if g.stype != "default" and not (plan.way == "rows" and (self.rows or value.capacity <= FEW_ROWS)):
                value = trimmed(value)
            if added and (g.stype != "default" or ex._shares_targets):
                with jax.enable_x64(True):
                    value = add(g._data, value)
            yield value

    # ---- updates

    def join(self, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        """Adds an update of (weight, gradient, states…) to this pass, whose gradient it is; False if it cannot be."""
        with self.ex._lock:
            return self.waiting and not STATE.recording and self._join(op, arrays, attrs)

    def _join(self, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        weight, grad, *states = arrays
        tables = [weight, *states]
        known = self.ex._known.get(id(grad))
        if known is not None and known.is_again(op, arrays, tables, attrs, self.targets):
            scalars = known.operands_for(tuple(attrs.values()))
        else:
            known, scalars = self._look_at(op, arrays, tables, attrs)
            if known is None:
                return False
        assert self.args is not None
        update, contents = known.update, [t._data for t in tables]
        if update.weight is not None and self.args[update.weight] is not contents[0]:
            update = dataclasses.replace(update, weight=None)  # a weight that is not what the pass reads
        self.joined.append(_Joined(known, update, tables, contents, scalars))
        for t in tables:
            owned = t._owned
            t._set_pending(t.shape, t._dtype, self.flush)
            t._owned = owned
        self.unused.discard(update.grad)
        if not self.unused:
            self.flush()
        return True

    def _look_at(self, op: Op, arrays: Sequence[Any], tables: Sequence[NDArray], attrs: Mapping[str, Any]) -> Any:
        """Returns what is known of an update that can join, and its scalars; (None, None) of one that cannot."""
        weight, grad = arrays[:2]
        refused = None, None
        if op.eager or op.host or op.asks:
            return refused
        if any(pending_on(t) is not None or not is_plain(t) for t in tables):
            return refused
        entry, scalars, ctx = entry_for(op, arrays, attrs, weight)
        if ctx != self.ex._ctx or not _fits(op, entry.params, arrays):
            return refused
        number = next((k for k, g in enumerate(self.targets) if g is grad), None)
        if number is None:
            return refused
        place = self.ex._wrt[number]
        large = tuple([t._data.size >= MIN_SIZE for t in tables])
        update = Update(entry.call, number, place if self.ex.arg_arrays[place] is weight else None, large,
                        entry.n_out, entry.aux)
        known = self.ex._known[id(grad)] = Known(op, arrays, attrs, entry, ctx, update)
        return known, operands_of(entry, scalars, ctx)

    def flush(self) -> None:
        """Runs the pass with the updates that joined it.

        Interrupted (Ctrl-C), it goes on with the next reader: nothing is taken from where it was before the call, and
        the call's results are kept before Python looks at signals again.
        """
        with self.ex._lock:
            if not self.waiting:
                return
            if not self.done:
                with jax.enable_x64(True):
                    self._find_rows()
                    if self.joined:
                        self._with_updates()
                    else:
                        made = self.step.fused(
                            self._contents(), self.aux, self.key, self.heads, self.old, self.rows)
                        self.done.append(((), made))
            self._fill_all()

    def _with_updates(self) -> None:
        step, updates = self.step, [j.update for j in self.joined]
        last = self.ex._updating  # telling that the updates are the same objects takes less than to look them up
        if last is None or last.step is not step or last.updates != updates:
            last = self.ex._updating = UpdatingCall(step, updates, step.updating(tuple(updates)))
        args = list(self._contents())
        given, kept = self._tables(args)
        numbers = tuple([j.scalars for j in self.joined])
        operands = (given, kept, args, self.aux, self.key, self.heads, self.old, self.rows, numbers)
        if last.in_python:
            last.in_python -= 1
            with StepGuard() as guard, guard.step():
                self.done.extend(itertools.starmap(last.call, [operands]))
        else:
            self.done.extend(itertools.starmap(last.call, [operands]))

    def _tables(self, args: list[Any]) -> tuple[list[Any], list[Any]]:
        """Returns the contents of all tables that the call may overwrite, and of the others, out of `args`.

        What somebody else holds is copied first: the call always overwrites the same ones, so it compiles once.
        """
        given, kept = [], []
        for j in self.joined:
            places = [j.update.weight, *[None] * (len(j.tables) - 1)]
            for k, (table, large, place) in enumerate(zip(j.tables, j.update.large, places, strict=True)):
                value, holders = j.contents[k], 3  # its list, `value`, and the argument of getrefcount
                if place is not None:
                    args[place], holders = None, 4  # `self.args`
                if not large:
                    kept.append(value)
                    continue
                alone = table._owned and sys.getrefcount(value) == holders
                if not (alone and (table.stype == "default" or holds_alone(value))):
                    value = jax.tree.map(jnp.copy, value)
                given.append(value)
        return given, kept

    def _fill_all(self) -> None:
        """Hands out what the call made."""
        ((results, (self.outs, self.new_aux, grads)),) = self.done
        self._deliver()
        for g, value in zip(self.targets, self._finished(grads), strict=True):
            self._fill(g, value)
        if self.train:
            for a, value in zip(self.ex.aux_arrays, self.new_aux, strict=True):
                self._fill(a, value)
        for j, values in zip(self.joined, results, strict=True):
            filled = [self._fill(t, new, old) for t, new, old in zip(j.tables, values, j.contents, strict=True)]
            j.known.versions = [t._version for t in j.tables] if all(filled) else None
        self.waiting = False
        self.heads_done += 1
        self._let_go()

    def _fill(self, array: NDArray, value: Any, overwritten: Any = None) -> bool:
        """Sets an array to what it waited for; one that was overwritten in the meantime keeps what it has (False).

        Args:
          overwritten: what a table held, which the call may have overwritten.
        """
        if pending_on(array) is not self and (overwritten is None or array._value is not overwritten):
            return False
        array._set_data(value)
        array._owned = overwritten is not None
        return True


def _fits(op: Op, params: Any, arrays: Sequence[Any]) -> bool:
    """Whether an update surely runs: what does not is called at once, for its error to come from the call."""
    weight, grad, *states = arrays
    if any(t.shape != weight.shape for t in arrays[1:]) or grad._dtype != weight._dtype:
        return False
    stypes = tuple([t.stype for t in arrays])
    if set(stypes) == {"default"}:
        return True
    stored = [t._data for t in (weight, *states) if t.stype != "default"]
    if not all(getattr(t, "full", False) for t in stored):
        return False
    return decide(op, params, stypes) is not None


def join_pass(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Adds an update op of (weight, gradient, states…) to the pass that its gradient waits for, if there is one."""
    run = pending_on(arrays[1])
    return isinstance(run, Run) and run.join(op, arrays, attrs)
