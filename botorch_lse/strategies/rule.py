r"""What a strategy defines: its belief, the plan of a round, and the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import plain_number, whole_number
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.state import State


@dataclass(frozen=True)
class Request:
    r"""What a strategy is asked to plan.

    Args:
        size: How many measurements.
        left: ``N`` counts of how often each row may still be measured.
        pending: Rows that are out and not part of the plan.
        seed: The run's seed.
        round: The round planned.
    """

    size: int
    left: Tensor
    pending: Tensor
    seed: int
    round: int


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    r"""The part of a strategy that knows nothing of asking and telling.

    Args:
        pool: The candidates.
        batch_size: Measurements per round; ``None`` where the algorithm says how many.
        max_observations: Stop after so many measurements.
        max_repeats: How often one row may be measured (1 for destructive samples).

    Raises:
        ValueError: If a number is out of range.
    """

    pool: Pool

    batch_size: int | None
    max_observations: int | None
    max_repeats: int | None

    def _check_rounds(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if (number := plain_number(value)) is not value:
                object.__setattr__(self, part.name, number)
        if not isinstance(self.pool, Pool):
            raise ValueError(
                f"Expected `pool` to be a Pool, but got {type(self.pool).__name__}. "
                "Write `Pool(X)`."
            )
        for name in ("batch_size", "max_observations", "max_repeats"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, 1)
        if self.batch_size is None:
            return
        capacity = len(self.pool) * (self.max_repeats or self.batch_size)
        if self.batch_size > capacity:
            raise ValueError(
                f"Expected `batch_size` of at most {capacity}, the pool's "
                f"{len(self.pool)} rows times `max_repeats`, but got {self.batch_size}."
            )

    # --- what may be told -------------------------------------------------------------

    @property
    def takes_means(self) -> bool:
        r"""Whether replicates may be told as their mean, and a value with its noise.

        If not, every value is told by itself, without a noise variance.
        """
        return True

    @property
    def weighs_by_counts(self) -> bool:
        r"""Whether means without a noise variance are weighed by their replicates.

        If not, a mean of several replicates must come with its noise variance, unless
        the strategy was given the noise.
        """
        return False

    # --- what is known ----------------------------------------------------------------

    @abstractmethod
    def _start(self, seed: int) -> Any:
        r"""The belief before any observation."""

    @abstractmethod
    def _learn(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more complete round; ``history`` ends with ``new``."""

    @property
    def _needs_plans(self) -> bool:
        r"""Whether rounds exactly as planned are learnt from in another way."""
        return False

    def _learn_planned(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more round that holds just what was planned for it."""
        return self._learn(belief, new, history, seed)

    def _learns(self, state: State) -> bool:
        r"""Whether what is told in this state changes the answer."""
        return True

    def _complete(self, observations: Observations) -> Observations:
        r"""With what the strategy itself knows about the noise."""
        return observations

    # --- what is planned --------------------------------------------------------------

    def _planning_belief(self, belief: Any) -> Any:
        r"""What the next rows are planned from; default what the answer rests on."""
        return belief

    @abstractmethod
    def _plan(self, belief: Any, request: Request) -> Tensor:
        r"""The rows to measure with replicates; fewer than asked if none is left."""

    def _round_size(self, belief: Any, room: int | None) -> int:
        r"""Measurements of the next round, of which at most ``room`` may be made."""
        assert self.batch_size is not None  # else a subclass says it
        return self.batch_size if room is None else min(self.batch_size, room)

    def _open_rows(self, belief: Any) -> Tensor:
        r"""``N`` bools: the rows the rule may choose from."""
        return torch.ones(len(self.pool), dtype=torch.bool)

    def _open_again(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""``N`` counts of how often each row may still be measured.

        Args:
            belief: What the complete rounds say.
            data: All that was told.
            pending: Rows that are out.
            left: ``N`` counts as ``max_repeats`` leaves them.
        """
        return left

    def _visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order of a batch, ``before`` being visited first; default by row."""
        return rows.sort().values

    # --- what is said -----------------------------------------------------------------

    @abstractmethod
    def _classification(self, belief: Any) -> Classification:
        r"""The answer."""

    @abstractmethod
    def _forecast(self, state: State) -> Forecast:
        r"""About how many more evaluations until everything is decided."""
