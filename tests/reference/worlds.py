r"""What random sequences are drawn from: a maker for each exported name.

A strategy has its row in ``tests/registry.py``, a goal, a rule or a stop has one here;
``tests/reference/test_fuzz.py`` names the exported class that has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from botorch_lse import History, Pool
from botorch_lse import strategies as S
from botorch_lse.strategies import Strategy
from tests.registry import OMEGA, STRATEGIES, StrategyCase

Rng = random.Random
MOST = 24
"""Measurements after which every sequence ends."""


@dataclass(frozen=True)
class World:
    r"""A strategy, and what there is to be measured.

    Args:
        strategy: Who asks.
        F: ``N`` true values of the rows, or ``N x m``.
        std: The standard deviation of the noise.
        gives_noise: Whether each value is told with its noise variance.
        words: What was drawn, for a report.
    """

    strategy: Strategy
    F: Tensor
    std: float
    gives_noise: bool
    words: str


def level_of(rng: Rng) -> float:
    return rng.choice([0.3, -0.2, 0.0, 3.0])


def accuracy_of(rng: Rng) -> float:
    return rng.choice([0.0, 0.05, 0.2])


def above(rng: Rng, output: int = 0) -> Any:
    return S.Above(level_of(rng), accuracy_of(rng), output=output)


def below(rng: Rng, output: int = 0) -> Any:
    return S.Below(level_of(rng), accuracy_of(rng), output=output)


def between(rng: Rng) -> Any:
    low = level_of(rng)
    return S.Between(low, low + rng.choice([0.3, 1.0]), accuracy_of(rng))


def both_directions(rng: Rng) -> tuple[bool, bool]:
    return rng.choice([(True, True), (True, False)])


GOALS: dict[str, Callable[[Rng], Any]] = {
    "Above": above,
    "Below": below,
    "Between": between,
    "Levels": lambda rng: S.Levels(sorted(rng.sample([-0.4, 0.0, 0.4, 0.9], 2))),
    "And": lambda rng: above(rng) & below(rng, rng.choice([0, 1])),
    "Or": lambda rng: above(rng) | below(rng, rng.choice([0, 1])),
    "Not": lambda rng: ~(above(rng) & below(rng, rng.choice([0, 1]))),
    "ShareOfMax": lambda rng: S.ShareOfMax(OMEGA, accuracy_of(rng)),
    "ShareOfMaxByPairs": lambda rng: S.ShareOfMaxByPairs(OMEGA, accuracy_of(rng)),
    "Maximiser": lambda rng: S.Maximiser(accuracy_of(rng)),
    "MaximiserByPairs": lambda rng: S.MaximiserByPairs(accuracy_of(rng)),
    "ParetoByDifferences": lambda rng: S.ParetoByDifferences(
        both_directions(rng), (0.1, 0.1)
    ),
}


def costs_of(rng: Rng, pool: Pool) -> Any:
    return rng.choice([None, S.RowCosts(pool, way)])


def way(previous: int | None, rows: Tensor) -> Tensor:
    r"""The cost of a measurement: one, and the distance in rows of the pool."""
    return 1.0 + (rows - (0 if previous is None else previous)).abs().double()


def pair(rng: Rng, pool: Pool) -> tuple[Any, Any]:
    names = [
        n for n in RULES if n not in ("AlternatingRules", "SwitchingRule", "FinalRuns")
    ]
    return RULES[rng.choice(names)](rng, pool), RULES[rng.choice(names)](rng, pool)


BATCHES = ("believer", "joint")
RULES: dict[str, Callable[[Rng, Pool], Any]] = {
    "Straddle": lambda rng, pool: S.Straddle(),
    "RandomizedStraddle": lambda rng, pool: S.RandomizedStraddle(),
    "Ambiguity": lambda rng, pool: S.Ambiguity(),
    "Width": lambda rng, pool: S.Width(),
    "Variance": lambda rng, pool: S.Variance(),
    "Random": lambda rng, pool: S.Random(),
    "OptimalDesign": lambda rng, pool: S.OptimalDesign(
        rounding=rng.choice(["exchange", "quota"])
    ),
    "UFunction": lambda rng, pool: S.UFunction(),
    "ContourEntropy": lambda rng, pool: S.ContourEntropy(),
    "ExpectedFeasibility": lambda rng, pool: S.ExpectedFeasibility(
        by_weight=rng.random() < 0.5
    ),
    "RanjanImprovement": lambda rng, pool: S.RanjanImprovement(),
    "MisclassificationProbability": lambda rng, pool: S.MisclassificationProbability(),
    "AbsoluteVolumeChange": lambda rng, pool: S.AbsoluteVolumeChange(
        costs_of(rng, pool)
    ),
    "ContentVariance": lambda rng, pool: S.ContentVariance(costs_of(rng, pool)),
    "ExpectedMisclassification": lambda rng, pool: S.ExpectedMisclassification(
        costs=costs_of(rng, pool), batch=rng.choice(BATCHES)
    ),
    "MutualInformation": lambda rng, pool: S.MutualInformation(
        costs_of(rng, pool), rng.choice(BATCHES)
    ),
    "TargetedVariance": lambda rng, pool: S.TargetedVariance(
        0.2, costs_of(rng, pool), rng.choice(BATCHES)
    ),
    "TruncatedVariance": lambda rng, pool: S.TruncatedVariance(costs_of(rng, pool)),
    "AlternatingRules": lambda rng, pool: S.AlternatingRules(pair(rng, pool)),
    "SwitchingRule": lambda rng, pool: S.SwitchingRule(pair(rng, pool)),
    "FinalRuns": lambda rng, pool: S.FinalRuns(pair(rng, pool), after=6),
}

STOPS: dict[str, Callable[[Rng], Any]] = {
    "ContentKnown": lambda rng: S.ContentKnown(
        0.1, by=rng.choice(["posterior", "decided"])
    ),
    "MinimumU": lambda rng: S.MinimumU(1.0),
}


# --- pools and functions --------------------------------------------------------------


def pool_of(rng: Rng) -> Pool:
    r"""A few rows: in words too, some equal, with weights, costs or noise."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    N, d = rng.choice([1, 2, 3, 5, 8, 12, 20]), rng.choice([1, 1, 2, 3])
    X = torch.rand(N, d, generator=generator, dtype=torch.float64)
    X = (X * rng.choice([4, 1000])).round() / rng.choice([4.0, 1000.0, 1e-3])
    options: dict[str, Any] = {}
    for name, chance in (("weights", 0.15), ("costs", 0.15), ("noise_var", 0.1)):
        if rng.random() < chance:
            draws = torch.rand(N, generator=generator, dtype=torch.float64)
            options[name] = 0.01 + draws
    if rng.random() < 0.15:
        table = pd.DataFrame(X.numpy(), columns=[f"x{i}" for i in range(d)])
        table["salt"] = [rng.choice(["a", "b"]) for _ in range(N)]
        if table["salt"].nunique() > 1:
            return Pool(table, **options)
    return Pool(X, **options)


def arms_of(rng: Rng) -> Pool:
    r"""Features of unit length, for functions that are linear in them."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    N, h = rng.choice([4, 6, 9]), rng.choice([2, 3])
    X = torch.randn(N, h, generator=generator, dtype=torch.float64)
    return Pool(X / X.norm(dim=1, keepdim=True))


def function_of(rng: Rng, pool: Pool, m: int, is_linear: bool) -> Tensor:
    r"""``N`` values, or ``N x m``: smooth, linear, all equal, or all on one side."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    X = pool.X if pool.features is None else pool.features
    X = X.double()
    if not is_linear:
        X = X / X.abs().amax().clamp_min(1e-9)
    w = torch.randn(X.shape[1], m, generator=generator, dtype=torch.float64)
    F = X @ w if is_linear else (3 * X @ w).sin()
    shape = "linear" if is_linear else rng.choice(["smooth"] * 5 + ["equal", "high"])
    if shape == "equal":
        F = torch.full_like(F, 0.5)
    elif shape == "high":
        F = F + 9.0
    return F.squeeze(-1) if m == 1 else F


def kernel_of(pool: Pool) -> Any:
    found = ScaleKernel(RBFKernel()).double()
    found.base_kernel.lengthscale = 0.4 * float(pool.X.abs().amax().clamp_min(1e-9))
    found.outputscale = 1.5
    return found


def history_of(rng: Rng, pool: Pool, m: int, noise: float | None) -> History | None:
    if rng.random() > 0.2:
        return None
    n = rng.choice([1, 3, 6])
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    X = pool.X[torch.randint(len(pool), (n,), generator=generator)]
    y = torch.randn(n, m, generator=generator, dtype=torch.float64)
    return History(X, y.squeeze(-1) if m == 1 else y, noise)


# --- strategies -----------------------------------------------------------------------


def limits_of(rng: Rng, N: int) -> dict[str, Any]:
    r"""Batches, the budget and how often a row may be measured."""
    limits: dict[str, Any] = {
        "batch_size": rng.choice([None, 1, 2, 3, 5]),
        "max_observations": rng.choice([3, 8, 14, MOST]),
        "max_repeats": rng.choice([None, None, 1, 2]),
    }
    if limits["batch_size"] is not None and limits["max_repeats"] is not None:
        limits["batch_size"] = min(limits["batch_size"], N * limits["max_repeats"])
    return limits


def believed(rng: Rng, pool: Pool, m: int) -> dict[str, Any]:
    r"""The model and its noise, by the names that strategies give them."""
    found: dict[str, Any] = {"n_initial": rng.choice([None, 2, 4])}
    if rng.random() < 0.65:
        found["model"] = kernel_of(pool)
    else:
        found["refit"] = rng.choice([1, 1.5, 3])
    knows = pool.noise_var is not None
    if not knows and ("model" in found or rng.random() < 0.6):
        found["noise_std"] = rng.choice([0.3, 0.1, 0.02, 0.0])
    noise = None if "model" not in found and "noise_std" not in found else 0.01
    if (past := history_of(rng, pool, m, noise)) is not None:
        found["history"] = past
    return found


def width_of(rng: Rng) -> dict[str, Any]:
    return {"beta": rng.choice([None, 4.0, 9.0]), "delta": rng.choice([0.05, 0.2])}


def of_row(rng: Rng, case: StrategyCase) -> tuple[Strategy, int, bool]:
    r"""A strategy with a name of its own, how many outputs it has, if it is linear."""
    m = 2 if case.has_several_outputs else 1
    aim: dict[str, Any] = {"maximize": (True, False)} if m == 2 else case.aim(0.3)
    if case.family != "gaussian":
        options = dict(case.small) | {"delta": 0.2}
        known = case.family in ("budget",) or "noise_std" in case.options
        if case.family == "linear":
            options |= limits_of(rng, 9) | {"noise_std": 0.3}
            options["max_repeats"] = None
        elif not known and "variance_bounds" not in case.options:
            options = {"noise_std": 0.3} | options
        return case.make(arms_of(rng), **aim, **options), m, True
    pool = pool_of(rng)
    options = believed(rng, pool, m) | limits_of(rng, len(pool)) | width_of(rng)
    options["epsilon"] = accuracy_of(rng)
    if "audit" in case.options or rng.random() < 0.1:
        options["audit"] = (0.4, 0.2)
    return case.make(pool, **aim, **options), m, False


def of_parts(rng: Rng) -> tuple[Strategy, int, bool]:
    r"""A strategy of a goal, a rule and a model."""
    goal = GOALS[rng.choice([*GOALS])](rng)
    pool, m = pool_of(rng), goal.n_outputs
    told = believed(rng, pool, m)
    if m > 1 and rng.random() < 0.2 and "model" not in told:
        told["correlated"] = True
        told.pop("history", None)
    options = limits_of(rng, len(pool)) | width_of(rng)
    if m > 1 and rng.random() < 0.2 and pool.costs is None and pool.noise_var is None:
        pool = pool.at_outputs(m, costs=(1.0,) * m)
        told.pop("history", None)
    if rng.random() < 0.75:
        options["rule"] = RULES[rng.choice([*RULES])](rng, pool)
    if rng.random() < 0.15:
        options["audit"] = (0.4, 0.2)
    if rng.random() < 0.15:
        options["content_tol"] = STOPS[rng.choice([*STOPS])](rng)
    model = S.GaussianProcess(**told)
    return Strategy(pool, goal, model=model, **options), m, False


def of_labels(rng: Rng) -> tuple[Strategy, int, bool]:
    r"""An audit of somebody else's labels."""
    pool = pool_of(rng)
    labels = [rng.choice(["above", "below"]) for _ in range(len(pool))]
    noise = None if pool.noise_var is not None else rng.choice([0.0, 0.2])
    limits = limits_of(rng, len(pool))
    limits["batch_size"] = limits["batch_size"] or 1
    region = rng.choice([0.3, above(rng), above(rng) & below(rng, 1)])
    found = S.LabelAudit(pool, labels, region, noise_std=noise, **limits)
    return found, found.n_outputs, False


def world_of(rng: Rng) -> World:
    r"""A strategy and a function, whatever the random numbers say.

    Raises:
        ValueError: If the strategy refuses what was drawn; so do its other errors.
    """
    kind = rng.choices(["row", "parts", "labels"], [9, 10, 1])[0]
    if kind == "row":
        strategy, m, is_linear = of_row(rng, rng.choice(STRATEGIES))
    else:
        strategy, m, is_linear = (of_parts if kind == "parts" else of_labels)(rng)
    pool = strategy.candidates
    F = function_of(rng, pool, m, is_linear)
    if strategy.n_outputs != m:  # a row measures one of the outputs
        F = F.T.reshape(-1)
    knows = strategy.noise_std_of(0)
    std = 0.1 if knows is None else max(float(s) for s in knows)
    gives = not is_linear and kind != "labels" and rng.random() < 0.2
    if knows is None and pool.noise_var is None:
        past = getattr(getattr(strategy, "model", None), "history", None)
        past = getattr(strategy, "history", past)
        # The noise of all values is known, or of none.
        gives = gives if past is None else past.yvar is not None
    return World(strategy, F, std, gives, f"{strategy}")
