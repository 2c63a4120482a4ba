r"""When a model is learnt: at first, and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.confidence.schedules import BetaSchedule, beta_schedule
from botorch_lse.posterior import checked_budget
from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies.arguments import places_of
from botorch_lse.strategies.exact import Exactness, repeats_left
from botorch_lse.strategies.process import Process

FIRST_PER_INPUT = 10
"""Rows of the first design per input where a model is learnt: with ``2 (d + 1)`` of
them, a default model said of functions with hidden regions that all is decided in 17 of
40 runs, with ten in 4."""
LEVEL_Z = 1.5
"""Prior standard deviations within which a learnt model must hold the level. Anything
between 1 and 2 serves; it must stay below the width that decides."""


class Learning(ABC):
    r"""What strategies on one and on several Gaussian processes share.

    The attributes are arguments of ``GPStrategy`` and ``GPParetoStrategy``, which
    describe them.
    """

    pool: Pool
    batch_size: int | None
    delta: float
    beta: float | BetaSchedule | None
    max_observations: int | None
    max_repeats: int | None
    refit: int | Callable[[int], bool]
    n_initial: int | None
    memory_budget: int

    def _check_learning(self) -> None:
        whole_number(self.batch_size, "batch_size", 1)
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.beta is not None:
            beta_schedule(self.beta)
        if self.n_initial is not None:
            whole_number(self.n_initial, "n_initial", 0)
        if not callable(self.refit):
            whole_number(self.refit, "refit", 1)
        checked_budget(self.memory_budget, len(self.pool), "one number per row")

    @property
    @abstractmethod
    def processes(self) -> tuple[Process, ...]:
        r"""The model of each output, with its noise."""

    @property
    def is_fixed(self) -> bool:
        r"""Whether all hyper-parameters are fixed."""
        return all(process.fixed is not None for process in self.processes)

    @property
    def wanted_initial(self) -> int:
        r"""Measurements of the first design, if the budget has room for them."""
        if self.n_initial is not None:
            return self.n_initial if self.is_fixed else max(self.n_initial, 1)
        return (
            0 if self.is_fixed else min(FIRST_PER_INPUT * self.pool.d, len(self.pool))
        )

    @property
    def initial_observations(self) -> int:
        r"""Measurements placed by maximal variance at first, at most all of the run."""
        n = self.wanted_initial
        if self.max_observations is not None:
            n = min(n, self.max_observations)
        if self.max_repeats is not None:
            n = min(n, self.max_repeats * len(self.pool))
        return n

    def _can_learn(self, belief: Any, history: Observations) -> bool:
        r"""Whether the models were or can be fitted."""
        if belief.fitted_rounds >= 0:
            return True
        n, none = self.initial_observations, history.indices[:0]
        once = torch.ones(len(self.pool), dtype=torch.long)
        is_all = not bool(self._open_again(belief, history, none, once).any())
        enough = is_all or len(history) >= n
        return enough and self.processes[0].teaches(history, n)

    @abstractmethod
    def _exactness(self, belief: Any, data: Observations) -> tuple[Exactness, ...]:
        r"""Which measurements count as exact, by output."""

    @cached_property
    def places(self) -> Tensor:
        r"""``N`` numbers, equal for the rows of one point."""
        return places_of(self.pool.X)

    def _open_again(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""Nothing that is known exactly, in all outputs, is measured again."""
        m = len(self.processes)
        columns: list[Tensor | None] = [None] * m
        if data.yvar is not None:
            columns = list(data.yvar.view(len(data), m).unbind(dim=-1))
        exact = torch.ones(len(left), dtype=torch.bool)
        told = torch.ones(len(data), dtype=torch.bool)
        for output, yvar in zip(self._exactness(belief, data), columns, strict=True):
            exact &= output.of_rows(len(left))
            told &= output.of_told(data.indices, yvar)
        if not bool(exact.any()) and not bool(told.any()):
            return left
        known = torch.cat((data.indices[told], pending[exact[pending]]))
        return repeats_left(left, exact, known, self.places)

    def _is_due(self, belief: Any, n_rounds: int) -> bool:
        r"""Whether the models are fitted again after so many rounds."""
        if belief.fitted_rounds < 0:
            return True
        if callable(self.refit):
            return bool(self.refit(n_rounds))
        return n_rounds - belief.fitted_rounds >= self.refit
