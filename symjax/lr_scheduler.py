"""Learning rates that change with the number of updates (MXNet's `mx.lr_scheduler`)."""

from __future__ import annotations

import logging
import math

from symjax.lowering.errors import ArgumentError

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """Base class: a callable `(num_update) -> learning rate`, with a warm-up in the first `warmup_steps` updates.

    `num_update` is the largest number of updates that any weight has had.

    Args:
      base_lr: the rate before any decay.
      warmup_steps: how many updates the warm-up takes.
      warmup_begin_lr: the rate at its beginning.
      warmup_mode: "linear" (rises to `base_lr` in equal steps) or "constant" (stays at `warmup_begin_lr`).

    Raises:
      ValueError: `warmup_begin_lr` is above `base_lr`, `warmup_steps` negative, or the mode unknown.
    """

    def __init__(self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear") -> None:
        self.base_lr = base_lr
        if not isinstance(warmup_steps, int):
            raise ArgumentError(f"warmup_steps must be an int, got {warmup_steps!r}")
        self.warmup_steps = warmup_steps
        # MXNet: the warm-up aims at this rate even where an optimizer's learning_rate replaces `base_lr` later.
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        if warmup_begin_lr > base_lr:
            raise ValueError("Base lr has to be higher than warmup_begin_lr")
        if warmup_steps < 0:
            raise ValueError("Warmup steps has to be positive or 0")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError("Supports only linear and constant modes of warmup")
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """Returns the rate of an update within the warm-up."""
        if num_update >= self.warmup_steps:
            raise ArgumentError(f"update {num_update} is not in the warm-up of {self.warmup_steps} steps")
        if self.warmup_mode == "linear":
            rise = (self.warmup_final_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
            return self.warmup_begin_lr + rise
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        raise ValueError(f"Invalid warmup mode {self.warmup_mode}")

    def __call__(self, num_update: int) -> float:
        """Returns the learning rate of an update."""
        raise NotImplementedError("must override this")


def _check_step(step: int) -> None:
    if step < 1:
        raise ValueError("Schedule step must be greater or equal than 1 round")


def _check_factor(factor: float) -> None:
    if factor > 1.0:
        raise ValueError("Factor must be no more than 1 to make lr reduce")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` after every `step` updates.

    MXNet: the rate changes when `num_update` exceeds a multiple of `step`, not when it reaches it.

    Args:
      step: updates between two changes.
      factor: at most 1.
      stop_factor_lr: the rate does not fall below it.
      base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.

    Raises:
      ValueError: `step` is below 1 or `factor` above 1.
    """

    def __init__(self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear") -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        _check_step(step)
        _check_factor(factor)
        self.step, self.factor, self.stop_factor_lr, self.count = step, factor, stop_factor_lr, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:  # several at once, when training goes on from a checkpoint
            self.count += self.step
            self.base_lr *= self.factor
            if self.base_lr < self.stop_factor_lr:
                self.base_lr = self.stop_factor_lr
                logging.info("Update[%d]: now learning rate arrived at %0.5e, will not change in the future",
                             num_update, self.base_lr)
            else:
                logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` after each of the given numbers of updates.

    Args:
      step: increasing list of update numbers; the rate changes when one is exceeded.
      factor: at most 1.
      base_lr, warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.

    Raises:
      ValueError: the list does not increase or has a number below 1, or `factor` is above 1.
    """

    def __init__(self, step: list[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear") -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not (isinstance(step, list) and step):
            raise ArgumentError(f"step must be a list of at least one int, got {step!r}")
        for i, s in enumerate(step):
            if i and s <= step[i - 1]:
                raise ValueError("Schedule step must be an increasing integer list")
            _check_step(s)
        _check_factor(factor)
        self.step, self.cur_step_ind, self.factor, self.count = step, 0, factor, 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _UntilMax(LRScheduler):
    """A rate that goes from `base_lr` to `final_lr` between the warm-up and `max_update`, and stays there."""

    def __init__(self, max_update: int, base_lr: float, final_lr: float, warmup_steps: int, warmup_begin_lr: float,
                 warmup_mode: str) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int):
            raise ArgumentError(f"max_update must be an int, got {max_update!r}")
        if max_update < 1:
            raise ValueError("maximum number of updates must be strictly positive")
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def _share(self, num_update: int) -> float:
        """What is left of the way to `final_lr`, from 1 to 0."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._share(num_update)
        return self.base_lr


class PolyScheduler(_UntilMax):
    """final_lr + (base_lr - final_lr) (1 - n / N)^pwr, with n and N counted from the end of the warm-up.

    Args:
      max_update: the update that reaches `final_lr`.
      base_lr, final_lr: the rates at the beginning and at the end.
      pwr: the power.
      warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.

    Raises:
      ValueError: `max_update` is below 1.
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear") -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _share(self, num_update: int) -> float:
        return pow(1 - float(num_update - self.warmup_steps) / float(self.max_steps), self.power)


class CosineScheduler(_UntilMax):
    """final_lr + (base_lr - final_lr) (1 + cos(pi n / N)) / 2, with n and N counted from the end of the warm-up.

    Args:
      max_update: the update that reaches `final_lr`.
      base_lr, final_lr: the rates at the beginning and at the end.
      warmup_steps, warmup_begin_lr, warmup_mode: see `LRScheduler`.

    Raises:
      ValueError: `max_update` is below 1.
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear") -> None:
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _share(self, num_update: int) -> float:
        return (1 + math.cos(math.pi * (num_update - self.warmup_steps) / self.max_steps)) / 2
