r"""The level-set experiments of Bogunovic et al. (2016): Figures 2a to 2c and 4b."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.strategies import (
    GPStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    StraddleStrategy,
    TruVaRStrategy,
)
from research.papers.bogunovic2016.problems import (
    LEVELS,
    PRICES,
    PricedProblem,
    lake_problem,
    levels_problem,
    one_level,
    sea_trip,
)
from research.papers.bogunovic2016.runs import PricedRun, run_priced

LSE_BETA, STRADDLE_BETA, FACTOR = 9.0, 1.96**2, 1.0
TARGET = 0.95
LAKE_BUDGET, SEA_BUDGET = 60_000.0, 30_000.0
MIXED = "TruVaR, all levels"


@dataclass(frozen=True)
class Sizes:
    r"""How much is run.

    Args:
        grid: Points per side of the grids.
        lake: Functions on the lake.
        unit: How many of them also at unit cost.
        measurements: At unit cost.
        sea: Noise seeds on the sea bed.
        levels: Functions with three noise levels.
        budget: What each of those may cost.
        peaks: Functions to maximise.
        steps: Measurements of each.
        svm: Starting points on the SVM grid.
        svm_steps: Measurements of each.
    """

    grid: int = 50
    lake: int = 20
    unit: int = 10
    measurements: int = 100
    sea: int = 5
    levels: int = 10
    budget: float = 1500.0
    peaks: int = 50
    steps: int = 100
    svm: int = 3
    svm_steps: int = 60


QUICK = Sizes(25, 4, 2, 60, 1, 3, 600.0, 6, 60, 1, 20)

Runs = dict[str, list[PricedRun]]


def truvar(problem: PricedProblem, **options: Any) -> GPStrategy:
    r"""TruVaR with the paper's settings; candidates are the rows in question."""
    chosen: dict[str, Any] = {"beta_factor": FACTOR, "only_open": True, **options}
    return TruVaRStrategy(
        problem.pool, problem.threshold, model=problem.prior, **chosen
    )


def without_prices(problem: PricedProblem) -> PricedProblem:
    r"""The same problem for strategies that do not look at costs."""
    return replace(problem, pool=replace(problem.pool, costs=None), travel=None)


def rival(kind: type[GPStrategy], beta: float, problem: PricedProblem) -> GPStrategy:
    r"""A strategy that ignores costs."""
    return kind(problem.pool, problem.threshold, model=problem.prior, beta=beta)


RIVALS: dict[str, Callable[[PricedProblem], GPStrategy]] = {
    "LSE": partial(rival, LSEStrategy, LSE_BETA),
    "STR": partial(rival, StraddleStrategy, STRADDLE_BETA),
    "VAR": partial(rival, MaxVarianceStrategy, LSE_BETA),
}


def unit_runs(sizes: Sizes) -> Runs:
    r"""Figure 2a: the lake at unit cost."""
    runs: Runs = {name: [] for name in ("TruVaR", *RIVALS)}
    for seed in progress(sizes.unit, "lake, unit cost"):
        problem = without_prices(lake_problem(seed, sizes.grid))
        for name in runs:
            strategy = RIVALS.get(name, truvar)(problem)
            budget = float(sizes.measurements)
            runs[name].append(run_priced(problem, strategy, budget, unit=True))
    return runs


def travel_runs(
    build: Callable[[int], PricedProblem], n: int, budget: float, name: str
) -> Runs:
    r"""Figure 2b: TruVaR that knows the way's cost, against LSE, to F1 of 0.95."""
    runs: Runs = {"TruVaR": [], "LSE": []}
    for seed in progress(n, name):
        problem = build(seed)
        contestants = {
            "TruVaR": truvar(problem, cost=problem.travel),
            "LSE": RIVALS["LSE"](problem),
        }
        for key, strategy in contestants.items():
            runs[key].append(run_priced(problem, strategy, budget, TARGET))
    return runs


def lake_runs(sizes: Sizes) -> Runs:
    r"""The lake with the boat's costs."""
    build = partial(lake_problem, size=sizes.grid)
    return travel_runs(build, sizes.lake, LAKE_BUDGET, "lake, boat")


def sea_runs(sizes: Sizes) -> Runs:
    r"""The sea bed with the ship's costs."""
    return travel_runs(sea_trip, sizes.sea, SEA_BUDGET, "sea, ship")


def level_runs(sizes: Sizes) -> Runs:
    r"""Figure 2c: TruVaR on all noise levels, LSE on each."""
    runs: Runs = {MIXED: [], **{level_name(k): [] for k in range(len(LEVELS))}}
    for seed in progress(sizes.levels, "noise levels"):
        problem = levels_problem(seed, sizes.grid)
        runs[MIXED].append(run_priced(problem, truvar(problem), sizes.budget))
        for k in range(len(LEVELS)):
            single = one_level(problem, k)
            strategy = RIVALS["LSE"](single)
            runs[level_name(k)].append(run_priced(single, strategy, sizes.budget))
    return runs


def level_name(k: int) -> str:
    r"""LSE at one noise level."""
    return f"LSE, noise {LEVELS[k]:g}"


def spending(runs: list[PricedRun], n_points: int) -> Tensor:
    r"""``K`` mean costs spent on each noise level (Figure 4b)."""
    counts = torch.stack(
        [torch.bincount(r.rows // n_points, minlength=len(LEVELS)) for r in runs]
    )
    return counts.double().mean(dim=0) * torch.tensor(PRICES, dtype=torch.float64)


def progress(n: int, name: str) -> Any:
    r"""Seeds with a progress bar."""
    return tqdm(range(n), desc=name, disable=None, leave=False)
