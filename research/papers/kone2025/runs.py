r"""Runs of strategies for several outputs on instances with a known Pareto set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.papers.kone2025 import (
    APEStrategy,
    EGESHStrategy,
    EGESRStrategy,
    GEGEBudgetStrategy,
    GEGEPACStrategy,
    ParetoStrategy,
    RacingStrategy,
    UniformStrategy,
)
from research.papers.kone2025.problems import ParetoInstance

Build = Callable[[ParetoInstance], ParetoStrategy]

STEP = 100
"""Measurements of a row at once in APE and racing, which ask for single ones."""


@dataclass(frozen=True)
class Score:
    r"""What several runs of one method gave.

    Args:
        wrong: Runs whose answer was not the Pareto set.
        runs: All runs.
        samples: Measurements of each run.
        rounds: The rounds of each run.
    """

    wrong: int
    runs: int
    samples: tuple[int, ...]
    rounds: tuple[int, ...]

    @property
    def error(self) -> float:
        r"""The share of wrong runs."""
        return self.wrong / self.runs

    @property
    def typical(self) -> str:
        r"""Smallest, median and largest number of measurements."""
        few, many = min(self.samples), max(self.samples)
        return f"{few:,} / {median(self.samples):,.0f} / {many:,}"

    @property
    def mean_samples(self) -> float:
        r"""The mean number of measurements."""
        return mean(self.samples)


def score(instance: ParetoInstance, build: Build, seeds: int, title: str) -> Score:
    r"""Seeds ``0, ..., seeds - 1`` of one method; rows left open count as wrong."""
    strategy, wrong, samples, rounds = build(instance), 0, [], []
    for seed in tqdm(range(seeds), desc=title, disable=None, leave=False):
        run = strategy.simulate(instance.measure(seed), seed)
        wrong += not torch.equal(run.classification.above, instance.truth)
        samples.append(run.n_used)
        rounds.append(run.rounds)
    return Score(wrong, seeds, tuple(samples), tuple(rounds))


def trace(instance: ParetoInstance, build: Build, seed: int) -> list[Tensor]:
    r"""How often each arm is measured in each round of one run: ``K`` counts each."""
    measure, plans = instance.measure(seed), []

    def noted(rows: Tensor, counts: Tensor) -> Tensor:
        plan = torch.zeros(len(instance.means), dtype=torch.long)
        plan[rows] = counts.long()
        plans.append(plan)
        return measure(rows, counts)

    build(instance).simulate(noted, seed)
    return plans


def budgeted(T: int) -> dict[str, Build]:
    r"""The methods with a fixed budget, by name."""
    kinds: dict[str, Callable[..., ParetoStrategy]] = {
        "GEGE": GEGEBudgetStrategy,
        "EGE-SH": EGESHStrategy,
        "EGE-SR": EGESRStrategy,
        "uniform": UniformStrategy,
    }

    def build(kind: Callable[..., ParetoStrategy]) -> Build:
        return lambda p: kind(p.pool, maximize=p.maximize, max_observations=T)

    return {name: build(kind) for name, kind in kinds.items()}


def confident(
    delta: float, limit: int | None = None, step: int = STEP
) -> dict[str, Build]:
    r"""The methods with a fixed confidence, by name.

    Args:
        delta: The failure probability.
        limit: At most so many samples.
        step: Measurements of a row at once in APE and racing.
    """

    def gege(sample_size: str) -> Build:
        return lambda p: GEGEPACStrategy(
            p.pool,
            maximize=p.maximize,
            noise_std=p.noise_std,
            delta=delta,
            sample_size=sample_size,
            max_observations=limit,
        )

    def stepwise(kind: type[APEStrategy] | type[RacingStrategy]) -> Build:
        return lambda p: kind(
            p.pool,
            maximize=p.maximize,
            noise_std=p.noise_std,
            delta=delta,
            step=step,
            max_observations=limit,
        )

    return {
        "GEGE": gege("corrected"),
        "GEGE, printed t_r": gege("printed"),
        "APE": stepwise(APEStrategy),
        "racing": stepwise(RacingStrategy),
    }


def least_budget(name: str, instance: ParetoInstance) -> int:
    r"""What a method needs to run at all on an instance."""
    K = len(instance.means)
    return {"EGE-SH": K * max(1, (K - 1).bit_length()), "GEGE": 1}.get(name, K)
