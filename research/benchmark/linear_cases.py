r"""Small hard instances on which the linear strategies' guarantees are tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
)

DELTA, NOISE, ARMS, RANK, GAP, LEVEL, OMEGA = 0.1, 1.0, 12, 4, 0.01, 0.5, 0.5
LIMIT, BURN_IN_LIMIT = 3000, 5_000_000
BURN_IN_GAP = GAP * (LIMIT / BURN_IN_LIMIT) ** 0.5
"""As near for so many measurements."""
TIES, CLEAR = 4, (0.1, 1.0)
"""In the varied form so many arms are near ties; the others' gaps lie between these."""
GAP_STREAM = 10**6
"""Seeds of the gaps start here: below are those of arms and noise."""
VARIANCES = (0.5, 1.0)
"""Unequal noise: the least and the largest variance."""

Arms = Callable[[int], Tensor]


@dataclass(frozen=True)
class Case:
    r"""One strategy on one kind of instance.

    Args:
        arms: From a seed to ``N x h`` features; the means are the first columns.
        build: From features to the strategy.
        above: From ``N x m`` means to the right answer.
        noise_var: From features to ``N`` noise variances.
    """

    arms: Arms
    build: Callable[[Tensor], LinearStrategy]
    above: Callable[[Tensor], Tensor]
    noise_var: Callable[[Tensor], Tensor] = lambda X: torch.full_like(X[:, 0], NOISE**2)


def near(
    centre: float, first: float | None = None, columns: int = 1, gap: float = GAP
) -> Arms:
    r"""Arms whose first columns are within ``gap`` of ``centre``, the others normal.

    Args:
        centre: What the means are near to.
        first: The mean of the first arm, if it is another.
        columns: How many columns are means.
        gap: How near.
    """

    def arms(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(2 * seed)
        X = torch.randn(ARMS, RANK, generator=generator, dtype=torch.float64)
        spread = torch.rand(ARMS, columns, generator=generator, dtype=torch.float64)
        X[:, :columns] = centre + gap * (2 * spread - 1)
        if first is not None:
            X[0, :columns] = first
        return X

    return arms


def varied(arms: Arms, both_sides: bool, columns: int = 1) -> Arms:
    r"""The same arms, but all except the first ``TIES`` with gaps of many sizes.

    Args:
        arms: Near ties.
        both_sides: Whether every second arm is above; else all are below.
        columns: How many columns are means; all have an arm's gap.
    """

    def moved(seed: int) -> Tensor:
        X, (low, high) = arms(seed), CLEAR
        generator = torch.Generator().manual_seed(GAP_STREAM + seed)
        u = torch.rand(ARMS - TIES, 1, generator=generator, dtype=torch.float64)
        gaps = -low * (high / low) ** u
        if both_sides:
            gaps[::2] *= -1
        X[TIES:, :columns] += gaps
        return X

    return moved


def on_sphere(arms: Arms) -> Arms:
    r"""The same arms with the columns that are no means scaled to length 1."""

    def scaled(seed: int) -> Tensor:
        X = arms(seed)
        return torch.cat((X[:, :1], X[:, 1:] / X[:, 1:].norm(dim=1, keepdim=True)), 1)

    return scaled


def unequal(X: Tensor) -> Tensor:
    r"""``N`` variances ``x' Sigma x`` within ``VARIANCES``, of arms on the sphere."""
    share = torch.linspace(*VARIANCES, X.shape[1] - 1, dtype=torch.float64)
    return X[:, 1:].square() @ share


# --- strategies -----------------------------------------------------------------------


def melk(X: Tensor) -> LinearStrategy:
    r"""Level set, one known noise."""
    return MELKLinearStrategy(
        Pool(X), LEVEL, noise_std=NOISE, delta=DELTA, max_observations=LIMIT
    )


def milk(X: Tensor) -> LinearStrategy:
    r"""Share of the maximum."""
    return MILKLinearStrategy(
        Pool(X), omega=OMEGA, noise_std=NOISE, delta=DELTA, max_observations=LIMIT
    )


def best(X: Tensor) -> LinearStrategy:
    r"""Best arm, one known noise."""
    return HRAGELinearStrategy(
        Pool(X), noise_std=NOISE, delta=DELTA, max_observations=LIMIT
    )


def gege(X: Tensor) -> LinearStrategy:
    r"""GEGE for the Pareto set of two outputs, one known noise."""
    return GEGELinearStrategy(
        Pool(X),
        maximize=(True, True),
        noise_std=NOISE,
        delta=DELTA,
        max_observations=LIMIT,
    )


def known(X: Tensor) -> LinearStrategy:
    r"""Level set, unequal known variances."""
    pool = Pool(X, noise_var=unequal(X))
    return HRAGELinearStrategy(pool, LEVEL, delta=DELTA, max_observations=LIMIT)


def head(threshold: float | None) -> Callable[[Tensor], LinearStrategy]:
    r"""Level set or best arm, variances estimated in a burn-in."""
    return lambda X: HRAGELinearStrategy(
        Pool(X),
        threshold,
        variance_bounds=VARIANCES,
        delta=DELTA,
        max_observations=BURN_IN_LIMIT,
    )


def is_above(means: Tensor) -> Tensor:
    r"""Which rows are above the level: the true answer of that question."""
    return means[:, 0] > LEVEL


def is_best(means: Tensor) -> Tensor:
    r"""Which row has the largest mean: the true answer of that question."""
    return means[:, 0] == means.max()


def _forms(
    arms: Arms,
    build: Callable[[Tensor], LinearStrategy],
    above: Callable[[Tensor], Tensor],
    both_sides: bool,
    columns: int = 1,
) -> dict[str, Case]:
    spread = varied(arms, both_sides, columns)
    return {
        "near ties": Case(arms, build, above),
        "varied gaps": Case(spread, build, above),
    }


def _unequal_forms(
    build: Callable[[Tensor], LinearStrategy],
    above: Callable[[Tensor], Tensor],
    both_sides: bool,
    gap: float = GAP,
) -> dict[str, Case]:
    ties = near(LEVEL, gap=gap)
    spread = varied(ties, both_sides)
    return {
        "near ties": Case(on_sphere(ties), build, above, unequal),
        "varied gaps": Case(on_sphere(spread), build, above, unequal),
    }


CASES = {
    "melk_linear": _forms(near(LEVEL), melk, is_above, True),
    "milk_linear": _forms(
        near(OMEGA, 1.0), milk, lambda means: means[:, 0] > OMEGA * means.max(), False
    ),
    "hrage_linear": _forms(near(LEVEL), best, is_best, False),
    "hrage_linear_level": _unequal_forms(known, is_above, True),
    "hrage_linear_head": _unequal_forms(head(None), is_best, False, BURN_IN_GAP),
    "hrage_linear_head_level": _unequal_forms(head(LEVEL), is_above, True, BURN_IN_GAP),
    "gege_linear": _forms(near(LEVEL, None, 2), gege, pareto_mask, False, 2),
}
