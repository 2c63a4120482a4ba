r"""The posteriors of all outputs after some measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.models import correlated
from botorch_lse.models.gaussian_process import (
    GPPrior,
    PoolPosterior,
)
from botorch_lse.surrogate.layout import Layout

if TYPE_CHECKING:
    from botorch_lse.models.outcomes import Outcome
    from botorch_lse.surrogate.burn_in import BurnInData

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


def _one_process(prior: GPPrior) -> None:
    if prior.batch_shape:
        raise UnsupportedError(
            "Expected `model` to be one GP per output, but got an ensemble of "
            f"{tuple(prior.batch_shape)}. Use one member, or a `SingleTaskGP`."
        )


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""The posteriors of all outputs after the complete rounds.

    Args:
        layout: What a row of the pool measures.
        posteriors: One per output, on the pool followed by items that cannot be
            measured; units and signs of ``y``.
        noise: For each output ``N`` noise variances of new observations.
        is_informed: Whether the posteriors are those of a model that was given or
            fitted, so that they may decide; else they only position first rows.
        fitted_rounds: Rounds in the data at the last fit; -1 before any.
        fitted_values: Measurements at the last fit.
        n_rounds: Complete rounds with data.
        more_looks: Looks at the intervals that there may have been besides one after
            each round.
        burn_in: What the burn-in measured; ``None`` where the noise is known.
        has_known_noise: Whether values come with their noise variances.
        floors: For each output ``N`` noise variances that repeats say there is at
            least, where they refute the stated ones; 0 elsewhere. Empty: none are.
        outcomes: For each output what is measured, if it is not the function plus
            noise, with its learnt parameters. Empty: no output has one.
    """

    layout: Layout
    posteriors: tuple[PoolPosterior, ...]
    noise: tuple[Tensor, ...]
    is_informed: bool = False
    fitted_rounds: int = -1
    fitted_values: int = 0
    n_rounds: int = 0
    more_looks: int = 0
    burn_in: BurnInData | None = None
    has_known_noise: bool = False
    floors: tuple[Tensor, ...] = ()
    outcomes: tuple[Outcome | None, ...] = ()

    @property
    def learns_noise(self) -> bool:
        r"""Whether there is a burn-in that has not ended."""
        return self.burn_in is not None and self.burn_in.variances is None

    @property
    def measured(self) -> Tensor:
        r"""The rows that were measured, replicates included."""
        return self.layout.rows([p.indices for p in self.posteriors])

    @property
    def new_noise(self) -> Tensor:
        r"""Noise variances of new values by row: of its own or the first output."""
        return self.layout.values(self.noise)

    def noise_of(self, new: Observations) -> tuple[Tensor, ...]:
        r"""The noise variances of measurements, given or estimated, for each output."""
        pairs = zip(self.layout.by_output(new), self.noise, strict=True)
        found = [
            noise[own.indices] if own.yvar is None else own.yvar for own, noise in pairs
        ]
        for j, floor in enumerate(self.floors):
            rows = self.layout.by_output(new)[j].indices
            found[j] = torch.maximum(found[j], floor[rows])
        return tuple(found)

    def surprises(self, new: Observations) -> tuple[Tensor, ...]:
        r"""The standardised residuals of values from predictions, for each output."""
        given = self._given(new)
        if self.posteriors[0].is_correlated:
            return correlated.surprises(self.posteriors, *given)
        parts = zip(self.posteriors, *given, strict=True)
        return tuple(p.surprises(*own) for p, *own in parts)

    def observing(self, new: Observations) -> Posterior:
        r"""The posteriors after new values."""
        given = self._given(new)
        if self.posteriors[0].is_correlated:
            found = correlated.observed(self.posteriors, *given)
        else:
            parts = zip(self.posteriors, *given, strict=True)
            found = tuple(p.observe(*own) for p, *own in parts)
        return replace(self, posteriors=found)

    def _given(
        self, new: Observations
    ) -> tuple[list[Tensor], list[Tensor], tuple[Tensor, ...]]:
        each = self.layout.by_output(new)
        return [o.indices for o in each], [o.y for o in each], self.noise_of(new)

    @property
    def log_evidence(self) -> float:
        r"""The log probability density of all values under the processes."""
        # Correlated outputs share one factor, of the values of all.
        is_one = self.posteriors[0].is_correlated
        total = 0.0
        for own in self.posteriors[: 1 if is_one else None]:
            scale = own.L.diagonal().log().sum() + len(own.a) * HALF_LOG_2_PI
            total -= float(0.5 * own.a.square().sum() + scale)
        return total

    def expecting(self, rows: Tensor) -> Posterior:
        r"""The posteriors if ``rows`` were measured as well: variances shrink.

        Args:
            rows: Rows that are being measured or planned, replicates included.
        """
        if len(rows) == 0:
            return self
        each = self.layout.split(rows)
        counted = [own.unique(return_counts=True) for own in each]
        rows_of = [own for own, _ in counted]
        pairs = zip(self.noise, counted, strict=True)
        noise = [noise[own] / counts for noise, (own, counts) in pairs]
        if self.posteriors[0].is_correlated:
            found = correlated.expected(self.posteriors, rows_of, noise)
        else:
            parts = zip(self.posteriors, rows_of, noise, strict=True)
            found = tuple(p.expect_all(*own) if len(own[0]) else p for p, *own in parts)
        return replace(self, posteriors=found)


def row_means(history: Observations, noise_var: Tensor) -> tuple[Tensor, Tensor]:
    r"""The mean of each measured row's values, and its standard error.

    Args:
        history: ``n`` measurements, some of them perhaps means of several.
        noise_var: ``n`` noise variances of these.

    Returns:
        Two tensors with one entry per measured row, units of ``y``.
    """
    rows, position = history.indices.unique(return_inverse=True)
    counts = torch.ones_like(history.y) if history.counts is None else history.counts
    weight = counts.double()
    zero = torch.zeros(rows.numel(), dtype=torch.float64)
    n = zero.index_add(0, position, weight)
    total = zero.index_add(0, position, weight * history.y)
    variance = zero.index_add(0, position, weight.square() * noise_var)
    return total / n, variance.sqrt() / n
