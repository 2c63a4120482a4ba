r"""The table of everything a run can be made of, and the worlds made from it.

``FACTORS`` has a level for each exported strategy, goal, rule, stop, model and width,
and for what data, budgets, events and hosts may be like; ``NEEDS`` says which levels go
only with which others. ``tests/reference/test_campaign.py`` names what is exported and
has no level. A world is made of one level of each factor and of random numbers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pandas as pd
import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from scipy.stats import norm, uniform
from torch import Tensor

from botorch_lse import History, Pool
from botorch_lse import papers as P
from botorch_lse import strategies as S
from botorch_lse.confidence import ConstantBeta, UnionBeta
from botorch_lse.data.classification import Classification
from botorch_lse.models import (
    Autoregressive,
    Coregionalised,
    Discrepancies,
    FadingDiscrepancies,
    FidelityDiscrepancies,
    GPPrior,
    GramKernel,
    IndependentSources,
    LearntKernel,
    LikeliestSources,
    QuadraticNoise,
    TanimotoKernel,
    fit_heteroscedastic_gp,
    fit_single_task_gp,
    source_kernel,
)
from botorch_lse.strategies import Strategy
from tests.covering import Need, pairwise
from tests.registry import OMEGA, STRATEGIES, StrategyCase, travel

Rng = random.Random
OWN_PART = 0.3
"""The share of a source's values that is its own, not the target's."""
OWN = "own"
"""The level of a factor whose value the strategy itself has, or that it has not."""


# --- goals ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    r"""What goals are drawn from.

    Args:
        rng: Random numbers.
        shift: What is added to all levels.
        epsilon: The accuracy.
        names: The names of the outputs, or their numbers.
        n_rows: How many rows are decided about.
        unit: From levels of functions to those of what is measured.
    """

    rng: Rng
    shift: float
    epsilon: float
    names: tuple[Any, ...]
    n_rows: int
    unit: Callable[[float], float] = float

    def level(self) -> float:
        return self.unit(self.shift + self.rng.choice([0.3, -0.2, 0.0]))

    def above(self, output: int = 0) -> Any:
        return S.Above(self.level(), self.epsilon, output=self.names[output])

    def below(self, output: int = 0) -> Any:
        return S.Below(self.level(), self.epsilon, output=self.names[output])

    def by_row(self) -> Any:
        levels = [self.level() for _ in range(self.n_rows)]
        return S.Above(tuple(levels), self.epsilon, output=self.names[0])

    def between(self) -> Any:
        low = self.shift + self.rng.choice([0.0, -0.5, -0.3])
        high = self.unit(low + self.rng.choice([0.5, 1.0]))
        return S.Between(self.unit(low), high, self.epsilon, output=self.names[0])

    def levels(self) -> Any:
        some = [self.unit(self.shift + x) for x in (-0.4, 0.1, 0.7)]
        return S.Levels(tuple(some), self.epsilon, output=self.names[0])

    def classes(self) -> Any:
        return S.Classes(("f", "g"), min(max(self.level(), 0.5), 0.9), self.epsilon)

    def pareto(self, kind: Any) -> Any:
        ups = self.rng.choice([(True, True), (True, False)])
        return kind(ups, (self.epsilon, self.epsilon))


ONE_CLASS = "Classes, one a row"
"""Classes of which each measurement finds one, as in a table."""
GOALS: dict[str, Callable[[Asked], Any]] = {
    "Above": Asked.above,
    "Above, by row": Asked.by_row,
    "Below": Asked.below,
    "Between": Asked.between,
    "Levels": Asked.levels,
    "Classes": Asked.classes,
    ONE_CLASS: Asked.classes,
    "And": lambda asked: asked.above() & asked.below(1),
    "And, one output": lambda asked: asked.above() & S.Below(
        asked.unit(asked.shift + 0.9), asked.epsilon, output=asked.names[0]
    ),
    "Or": lambda asked: asked.above() | asked.below(1),
    "Not": lambda asked: ~asked.between(),
    "ShareOfMax": lambda asked: S.ShareOfMax(OMEGA, asked.epsilon),
    "ShareOfMaxByPairs": lambda asked: S.ShareOfMaxByPairs(OMEGA, asked.epsilon),
    "Maximiser": lambda asked: S.Maximiser(asked.epsilon),
    "MaximiserByPairs": lambda asked: S.MaximiserByPairs(asked.epsilon),
    "ParetoByDifferences": lambda asked: asked.pareto(S.ParetoByDifferences),
    "ParetoByRectangles": lambda asked: asked.pareto(P.ParetoByRectangles),
}  # fmt: skip
REGIONS = [name for name in GOALS if name in (
    "Above", "Above, by row", "Below", "Between", "Levels", "And", "And, one output",
    "Or", "Not", "Classes", ONE_CLASS,
)]  # fmt: skip
OF_TWO = ("And", "Or", "Classes", ONE_CLASS, "ParetoByDifferences",
          "ParetoByRectangles")  # fmt: skip


# --- rules and stops ------------------------------------------------------------------


def costs_of(rng: Rng, pool: Pool) -> Any:
    if pool.costs is not None:
        return None
    return rng.choice([None, S.RowCosts(pool, travel)])


def pair(rng: Rng, pool: Pool) -> tuple[Any, Any]:
    one, two = rng.sample(TOGETHER, 2)
    return RULES[one](rng, pool), RULES[two](rng, pool)


BATCHES = ("believer", "joint")
TOGETHER = ("Straddle", "Ambiguity", "Width", "Variance", "Random", "UFunction",
            "ExpectedMisclassification", "MisclassificationProbability")  # fmt: skip
"""Rules that may choose by turns for any region."""
RULES: dict[str, Callable[[Rng, Pool], Any]] = {
    "Straddle": lambda rng, pool: S.Straddle(),
    "RandomizedStraddle": lambda rng, pool: S.RandomizedStraddle(),
    "StraddleRank": lambda rng, pool: P.StraddleRank(),
    "Ambiguity": lambda rng, pool: S.Ambiguity(),
    "Width": lambda rng, pool: S.Width(),
    "Diameter": lambda rng, pool: P.Diameter(),
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
    "a number": lambda rng: 0.1,
    "ContentKnown": lambda rng: S.ContentKnown(
        0.1, by=rng.choice(["posterior", "decided"])
    ),
    "MinimumU": lambda rng: S.MinimumU(1.0),
}


# --- pools ----------------------------------------------------------------------------


def scattered(rng: Rng, n: int, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


def in_words(rng: Rng, given: Mapping[str, Any]) -> Pool:
    salt = [rng.choice(["none", "kitchen", "sea"]) for _ in range(24)]
    table = pd.DataFrame({"heat": scattered(rng, 24, 1)[:, 0].numpy(), "salt": salt})
    return Pool(table, **given)


def with_copies(rng: Rng, given: Mapping[str, Any]) -> Pool:
    X = scattered(rng, 6, 2)
    return Pool(X[[rng.randrange(6) for _ in range(18)]], **given)


def of_inputs(rng: Rng, given: Mapping[str, Any]) -> Pool:
    marginals = {"load": norm(5.0, 1.0), "strength": uniform(6.0, 4.0)}
    drawn = Pool.from_distribution(marginals, 32, seed=rng.randrange(99))
    return Pool(drawn.X, names=drawn.names, is_sample=True, **given)


POOLS: dict[str, Callable[[Rng, Mapping[str, Any]], Pool]] = {
    "one number": lambda rng, given: Pool(torch.linspace(20, 30, 21).view(-1, 1),
                                          names=("heat",), **given),
    "two numbers": lambda rng, given: Pool(scattered(rng, 25, 2), **given),
    "few rows": lambda rng, given: Pool(scattered(rng, 5, 1), **given),
    "words": in_words,
    "equal rows": with_copies,
    "other units": lambda rng, given: Pool(
        scattered(rng, 20, 2) * torch.tensor([1e5, 1e-4]) + torch.tensor([3e5, 0.0]),
        **given,
    ),
    "weights": lambda rng, given: Pool(
        scattered(rng, 20, 2), weights=scattered(rng, 20, 1)[:, 0], **given
    ),
    "costs": lambda rng, given: Pool(
        scattered(rng, 20, 2), costs=0.5 + scattered(rng, 20, 1)[:, 0], **given
    ),
    "sample": of_inputs,
    "box": lambda rng, given: Pool.from_box([[0.0, 10.0], [1.0, 30.0]], 16),
    "one output a row": lambda rng, given: Pool(scattered(rng, 12, 2)).at_outputs(
        ("f", "g"), costs=(1.0, 2.0), noise_var=given.get("noise_var") and (0.01, 0.02)
    ),
    "noise levels": lambda rng, given: Pool(scattered(rng, 12, 2)).at_noise_levels(
        [0.01, 0.1], costs=[3.0, 1.0]
    ),
    "sources": lambda rng, given: Pool(scattered(rng, 12, 2)).at_sources(
        SOURCES, costs=(1.0, 4.0), noise_var=given.get("noise_var") and (0.01, 0.01)
    ),
    "fidelity": lambda rng, given: Pool(scattered(rng, 12, 2)).at_sources(
        (0.5, 1.0), costs=(1.0, 4.0), noise_var=given.get("noise_var") and (0.01, 0.01)
    ),
    "row numbers": lambda rng, given: Pool(
        torch.arange(15).view(-1, 1).double(), names=("item",), **given
    ),
    "fingerprints": lambda rng, given: Pool(
        (scattered(rng, 18, 6) < 0.5).double() + torch.eye(18, 6).double(), **given
    ),
    "features": lambda rng, given: Pool(
        torch.nn.functional.normalize(2 * scattered(rng, 9, 3) - 1, dim=-1), **given
    ),
    "own features": lambda rng, given: Pool(
        scattered(rng, 8, 1), features=torch.cat(
            (torch.ones(8, 1).double(), scattered(rng, 8, 1)), dim=-1), **given
    ),
}  # fmt: skip
SOURCES = ("coarse", "fine")
"""What is measured in a pool of sources; the last is the target."""
AT_SOURCES = ("sources", "fidelity")
"""Pools of sources, which have names or numbers."""
TWICE = ("one output a row", "noise levels", *AT_SOURCES)
"""Pools that have each point twice, with a number behind its inputs."""
SIZES = {"one number": 21, "two numbers": 25, "few rows": 5, "words": 24,
         "equal rows": 18, "other units": 20, "weights": 20, "costs": 20, "sample": 32,
         "row numbers": 15, "fingerprints": 18, "features": 9,
         "own features": 8}  # fmt: skip
"""Rows of the pools that may have noise variances of their own."""
LINEAR_POOLS = ("features", "own features")


# --- the table ------------------------------------------------------------------------

NAMED = {
    case.__name__: case for case in STRATEGIES if case.cls is not S.ComposedStrategy
}
OF_LINEAR_REGION, LABELS = "MELKLinearStrategy, region", "LabelAudit"
GAUSSIAN = [name for name, case in NAMED.items() if case.family == "gaussian"]
LINEAR = [name for name, case in NAMED.items() if case.family == "linear"]
OF_PAPERS = [n for n, case in NAMED.items() if case.family in ("confidence", "budget")]
WITHOUT_MODEL = [*LINEAR, *OF_PAPERS, OF_LINEAR_REGION, LABELS]
BY_PAIRS = [name for name, case in NAMED.items() if case.has_several_outputs]

OUTCOMES = ("Binary", "Binary, RBFKernel", "Counts", "Counts, RBFKernel", "Ordinal",
            "Ordinal, RBFKernel")  # fmt: skip
"""Models of a probability, whose results are 1 and 0 or grades, and of counts."""
GRADES = S.Ordinal(4, at_least=2, cutpoints=(-1.0, 0.0, 0.7))
"""The grades of the models of grades."""
OF_SOURCES: dict[str, Callable[[], Any]] = {
    "Discrepancies": Discrepancies,
    "Autoregressive": Autoregressive,
    "Coregionalised": Coregionalised,
    "IndependentSources": IndependentSources,
    "LikeliestSources": lambda: LikeliestSources((Discrepancies(), Coregionalised())),
    "FadingDiscrepancies": FadingDiscrepancies,
    "FidelityDiscrepancies": FidelityDiscrepancies,
}
OF_ALL_NUMBERS = ("FidelityDiscrepancies", "IndependentSources")
"""Models of sources that take old values of any number."""
FIXED = ("RBFKernel", "MaternKernel", "GPPrior", "norm bound", "GramKernel")
FACTORS: dict[str, tuple[str, ...]] = {
    "asks": (*NAMED, *GOALS, OF_LINEAR_REGION, LABELS),
    "rule": (OWN, *RULES),
    "model": (
        OWN,
        "learnt",
        "refit=3",
        "refit=1.5",
        "single",
        *FIXED,
        "SingleTaskGP",
        "fit_single_task_gp",
        "HeteroscedasticGP",
        "LearntKernel",
        "TanimotoKernel",
        "correlated",
        "MultiTaskGP",
        *OUTCOMES,
        "LogNormal",
        *OF_SOURCES,
        "source_kernel",
    ),
    "prior": ("as it is", "level_z=None", "needs_both_sides=False"),
    "history": (
        "none", "on rows", "many on rows", "near", "far", "one typing error",
        "on one side",
    ),
    "noise": ("learnt", "known", "exact", "by row", "told", "burn-in"),
    "pool": tuple(POOLS),
    "batch": ("None", "1", "3", "7", "12"),
    "repeats": ("None", "1", "2"),
    "budget": ("None", "6", "14", "30"),
    "epsilon": ("0", "0.05", "0.3"),
    "audit": ("none", "audited"),
    "content": ("none", *STOPS),
    "width": ("theorem", "delta=0.2", "beta=4", "ConstantBeta", "UnionBeta"),
    "initial": ("None", "0", "2", "8"),
    "variant": ("as it is", "other options"),
    "truth": (
        "smooth", "low", "high", "all equal", "at the level", "rough", "steps", "noisy",
    ),
    "events": (
        "none", "in parts", "abandoned", "excluded", "pending", "unasked", "any",
    ),
    "host": (
        *9 * ("ask and tell",), "Ax", "Ax, asynchronous", "gest-api", "Optuna",
        "command line",
    ),
}  # fmt: skip
"""The levels of each factor; one that stands often is taken more often."""


def but(factor: str, *levels: str) -> list[str]:
    r"""All levels of a factor but some."""
    return [level for level in FACTORS[factor] if level not in levels]


ONE_OUTPUT = [
    name for name in but("asks", *OF_TWO) if name not in BY_PAIRS and name != LABELS
]
NOT_STORED = ["SingleTaskGP", "GPPrior", "fit_single_task_gp", "HeteroscedasticGP",
              "MultiTaskGP"]  # fmt: skip
"""Models that are no kernels and that another process could not import."""
ENGINES = ["gest-api", "Optuna"]
IN_COLUMNS = ["one number", "two numbers", "few rows", "words", "other units", "sample"]
"""Pools whose rows are known by the values of their inputs."""
STATED = [*REGIONS, *(n for n in GAUSSIAN if NAMED[n].goal == "threshold")]
"""What has a level that is stated, on a model: its share above may be asked for."""
OF_ONE_LEVEL = ["AbsoluteVolumeChange", "ContentVariance", "MutualInformation",
                "TruncatedVariance"]  # fmt: skip
"""Rules that are refused for several levels or outputs."""
NEEDS: list[Need] = [
    ("asks", but("asks", *GOALS), "rule", [OWN]),
    ("asks", WITHOUT_MODEL, "model", [OWN]),
    ("asks", [*GAUSSIAN, *GOALS], "model", but("model", OWN)),
    ("asks", [*WITHOUT_MODEL, *BY_PAIRS], "prior", ["as it is"]),
    ("content", list(STOPS), "audit", ["none"]),
    ("content", list(STOPS), "asks", STATED),
    ("content", ["MinimumU"], "asks", [n for n in STATED if n in (*NAMED, "Above")]),
    ("content", list(STOPS), "model", but("model", "correlated", "MultiTaskGP")),
    ("pool", ["costs"], "asks", but("asks", "TruVaRStrategy, costs")),
    ("rule", OF_ONE_LEVEL, "asks", [*NAMED, "Above", "Below", "ShareOfMax",
                                    "ShareOfMaxByPairs", "Maximiser",
                                    "MaximiserByPairs"]),
    ("asks", ["ParetoByDifferences", "ParetoByRectangles"], "rule",
     [OWN, "OptimalDesign", "Variance", "Random", "Diameter"]),
    ("rule", ["Diameter"], "asks", [*NAMED, "ParetoByDifferences",
                                    "ParetoByRectangles"]),
    ("model", NOT_STORED, "host", but("host", "Ax", "Ax, asynchronous")),
    ("host", ENGINES, "events", ["none", "abandoned", "pending", "unasked", "any"]),
    ("host", ENGINES, "noise", but("noise", "told")),
    ("host", ["gest-api"], "asks", REGIONS),
    ("host", ENGINES, "pool", IN_COLUMNS),
    ("host", ["command line"], "pool", [*IN_COLUMNS, *AT_SOURCES]),
    ("host", ["gest-api"], "batch", ["None"]),
    ("host", ["command line"], "asks", ["Above", ONE_CLASS]),
    ("host", ["command line"], "rule", [OWN]),
    ("host", ["command line"], "model", ["learnt", "Binary", "Counts", "Ordinal"]),
    ("host", ["command line"], "prior", ["as it is"]),
    ("host", ["command line"], "history", ["none"]),
    ("host", ["command line"], "noise", ["learnt", "known", "exact"]),
    ("host", ["command line"], "batch", but("batch", "None")),
    ("host", ["command line"], "content", ["none"]),
    ("host", ["command line"], "width", ["theorem", "beta=4"]),
    ("host", ["command line"], "events", but("events", "pending")),
    ("asks", WITHOUT_MODEL, "history", ["none"]),
    ("asks", WITHOUT_MODEL, "initial", ["None"]),
    ("asks", WITHOUT_MODEL, "width", ["theorem", "delta=0.2"]),
    ("asks", [*OF_PAPERS, LABELS], "audit", ["none"]),
    ("asks", OF_PAPERS, "batch", ["None"]),
    ("asks", OF_PAPERS, "repeats", ["None"]),
    ("asks", OF_PAPERS, "budget", ["None"]),
    ("asks", OF_PAPERS, "noise", ["known"]),
    ("asks", OF_PAPERS, "events", ["none", "in parts", "abandoned"]),
    ("asks", OF_PAPERS, "host", but("host", "Ax, asynchronous")),
    ("noise", ["burn-in"], "host", but("host", "Ax, asynchronous")),
    ("asks", [LABELS], "noise", ["known", "exact", "by row"]),
    ("asks", [*LINEAR, OF_LINEAR_REGION], "noise", ["known", "by row", "burn-in"]),
    ("noise", ["burn-in"], "asks", ["HRAGEStrategy", "HRAGELinearStrategy"]),
    ("noise", ["burn-in"], "initial", ["None"]),
    ("noise", ["burn-in"], "history", ["none"]),
    ("noise", ["burn-in"], "budget", ["None", "30"]),
    ("asks", [*LINEAR, *OF_PAPERS, OF_LINEAR_REGION], "pool", LINEAR_POOLS),
    ("asks", [*GAUSSIAN, *GOALS, LABELS], "pool", but("pool", *LINEAR_POOLS)),
    ("pool", ["one output a row"], "asks", ["And", "Or", "Classes"]),
    ("pool", ["one output a row", "noise levels"], "history", ["none"]),
    ("pool", AT_SOURCES, "asks", ["Above", "Below", "Between", "Levels", "Not",
                                  "And, one output"]),
    ("pool", AT_SOURCES, "model", ["learnt", *OF_SOURCES, "source_kernel"]),
    ("model", [*OF_SOURCES, "source_kernel"], "pool", AT_SOURCES),
    ("model", ["FidelityDiscrepancies"], "pool", ["fidelity"]),
    ("model", ["source_kernel"], "pool", ["sources"]),
    ("asks", [ONE_CLASS], "model", [*OUTCOMES[:2]]),
    ("asks", [ONE_CLASS], "history", ["none"]),
    ("model", ["source_kernel"], "prior", ["as it is"]),
    ("model", ["source_kernel"], "noise", ["known", "exact", "by row"]),
    ("pool", ["noise levels"], "asks", ["TruVaRStrategy"]),
    ("pool", ["noise levels"], "noise", ["by row"]),
    ("pool", ["noise levels"], "model", ["learnt", "RBFKernel"]),
    ("noise", ["by row"], "pool", [*SIZES, *TWICE]),
    ("model", [*FIXED, "MultiTaskGP"], "noise", ["known", "exact", "by row"]),
    ("model", ["SingleTaskGP"], "noise", ["learnt"]),
    ("model", ["HeteroscedasticGP"], "noise", ["learnt", "told"]),
    ("model", ["GramKernel"], "pool", ["row numbers"]),
    ("model", ["TanimotoKernel"], "pool", ["fingerprints"]),
    ("model", ["GramKernel", "TanimotoKernel"], "history", ["none", "on rows"]),
    ("model", ["correlated", "MultiTaskGP"], "asks", ["And", "Or",
                                                      "ParetoByDifferences"]),
    ("model", ["correlated", "MultiTaskGP"], "history", ["none"]),
    ("model", ["single"], "asks", [*GOALS]),
    ("model", [*OUTCOMES, "LogNormal"], "asks", REGIONS),
    ("model", ["LogNormal"], "noise", but("noise", "by row")),
    ("model", ["LogNormal"], "content", but("content", "MinimumU")),
    ("model", ["LogNormal"], "truth", but("truth", "low", "high")),
    ("model", OUTCOMES, "noise", ["learnt"]),
    ("model", [*OUTCOMES[2:4]], "audit", ["none"]),
    ("model", OUTCOMES, "content", but("content", "MinimumU")),
    ("model", OUTCOMES, "truth", but("truth", "low", "high")),
    ("model", OUTCOMES[1::2], "prior", ["as it is"]),
    ("model", ["norm bound"], "history", ["none"]),
    ("model", ["norm bound"], "width", ["theorem", "delta=0.2"]),
    ("model", ["norm bound"], "asks", ONE_OUTPUT),
    ("model", [*FIXED, "SingleTaskGP", "MultiTaskGP"], "prior", ["as it is"]),
    ("asks", [*GAUSSIAN, *GOALS], "pool", but("pool", *LINEAR_POOLS)),
    ("truth", ["rough", "steps"], "asks", but("asks", *LINEAR, *OF_PAPERS,
                                              OF_LINEAR_REGION)),
    ("truth", ["at the level"], "asks", but("asks", *OF_PAPERS)),
    ("audit", ["audited"], "noise", but("noise", "burn-in")),
    ("variant", ["other options"], "asks", [
        *LINEAR, *(n for n in NAMED if n.startswith((
            "MELKS", "MILKS", "HRAGES", "TruVaR", "ImplicitLSES"
        )))
    ]),
]  # fmt: skip
"""Which levels go only with which others; all else may meet."""


def cases(seed: int) -> Iterator[dict[str, str]]:
    r"""The cases of a seed, without end: each pair of levels, again and again."""
    return pairwise(FACTORS, NEEDS, Rng(seed))


def case_of(seed: int, number: int) -> dict[str, str]:
    r"""One case of a seed."""
    return next(itertools.islice(cases(seed), number, None))


# --- worlds ---------------------------------------------------------------------------


def side_of(goal: Any, low: Tensor, high: Tensor, slack: float = 0.0) -> Tensor:
    r"""On which side of a region items are for certain: 1 inside, -1 outside, or 0.

    Independent of the package: a leaf is compared with its level, further parts are
    Kleene's logic.

    Args:
        goal: The region.
        low: ``N x m``, the least that each output may be.
        high: ``N x m``, the most.
        slack: What comes to the accuracy of each comparison.
    """
    own = partial(side_of, low=low, high=high, slack=slack)
    if isinstance(goal, S.And):
        return torch.stack([own(part) for part in goal.parts]).amin(dim=0)
    if isinstance(goal, S.Or):
        return torch.stack([own(part) for part in goal.parts]).amax(dim=0)
    if isinstance(goal, S.Not):
        return -own(goal.part)
    j = {"f": 0, "g": 1}.get(goal.output, goal.output)
    accuracy = goal.epsilon + slack

    def above(level: Any) -> Tensor:
        level = torch.as_tensor(level, dtype=torch.float64)
        over = (low[:, j] > level + accuracy).int()
        return over - (high[:, j] <= level - accuracy).int()

    if isinstance(goal, S.Between):
        return torch.minimum(above(goal.low), -above(goal.high))
    if isinstance(goal, S.Below):
        return -above(goal.threshold)
    return above(goal.threshold)


@dataclass(frozen=True)
class World:
    r"""A strategy, and what there is to be measured.

    Args:
        strategy: Who asks.
        goal: What is asked: a goal, ``None`` for labels.
        F: ``N x m`` true values of the rows that can be measured.
        items: ``T x m`` true values of the items that are decided about.
        std: ``N x m`` standard deviations of the noise.
        tells_noise: Whether each value is told with its noise variance.
        claims: Whether what a theorem assumes is so.
        outcome: What results are, if they are no numbers with Gaussian noise.
    """

    strategy: Strategy
    goal: Any
    F: Tensor
    items: Tensor
    std: Tensor
    tells_noise: bool
    claims: bool
    outcome: Any = None

    @cached_property
    def is_one_number(self) -> bool:
        return self.F.shape[1] == 1

    def wrong(self, answer: Classification) -> Tensor | None:
        r"""``T`` bools: rows that are decided, and wrong by more than the accuracy."""
        goal, F = self.goal, self.items
        if goal is None:
            return None
        if isinstance(goal, S.Levels):
            leaves = [S.Above(x, goal.epsilon) for x in goal.levels]
            sides = torch.stack([side_of(leaf, F, F, 1e-9) for leaf in leaves])
            least, most = (sides == 1).sum(dim=0), (sides >= 0).sum(dim=0)
            found = answer.classes
            assert found is not None
            return (found >= 0) & ((found < least) | (found > most))
        if isinstance(goal, S.Classes):
            m = F.shape[1]
            leaves = [S.Above(goal.threshold, goal.epsilon, j) for j in range(m)]
            sides = torch.stack([side_of(leaf, F, F, 1e-9) for leaf in leaves])
            over, under = (sides == 1).sum(dim=0), (sides == -1).sum(dim=0)
            may_be = [(sides[j] >= 0) & (over == (sides[j] == 1)) for j in range(m)]
            may_be.append((over != 1) | (under < m - 1))  # of no class
            found = answer.classes
            assert found is not None
            is_right = torch.stack(may_be).gather(0, found.clamp_min(0).unsqueeze(0))[0]
            return (found >= 0) & ~is_right
        if isinstance(goal, S.Region):
            truth = side_of(goal, F, F, 1e-9)
        elif isinstance(goal, S.ShareOfMax | S.ShareOfMaxByPairs):
            level = goal.omega * float(F.max())
            truth = side_of(S.Above(level, goal.epsilon), F, F, 1e-9)
        elif goal.facts.directions is None:
            best = F[:, 0].max() - goal.epsilon - 1e-9
            truth = -(F[:, 0] < best).int()
            if not bool((answer.above & (truth == 0)).any()):
                truth = torch.where(F[:, 0] == F[:, 0].max(), 1, truth)
        else:
            ups = torch.tensor([1.0 if up else -1.0 for up in goal.facts.directions])
            gaps = (F * ups).unsqueeze(0) - (F * ups).unsqueeze(1)  # of others
            each = torch.as_tensor(goal.tolerances, dtype=torch.float64)
            is_beaten = (gaps > each + 1e-9).all(dim=-1).any(dim=-1)
            is_best = ~(gaps >= -1e-9).all(dim=-1).fill_diagonal_(False).any(dim=-1)
            truth = is_best.int() - is_beaten.int()
        return (answer.above & (truth == -1)) | (answer.below & (truth == 1))


def results_of(
    outcome: Any, F: Tensor, drawn: Tensor, generator: torch.Generator
) -> Tensor:
    r"""Results of an outcome: yes or no, grades, or counts of events.

    Args:
        outcome: The outcome.
        F: Probabilities, or expected counts.
        drawn: Standard normal numbers of the same shape.
        generator: The source of random numbers for counts.
    """
    if outcome == S.Binary():
        return (torch.special.ndtr(drawn) < F).double()
    if isinstance(outcome, S.Ordinal):
        f = torch.special.ndtri(F) + drawn
        reached = [(f > c).double() for c in outcome.cutpoints or ()]
        return torch.stack(reached).sum(dim=0)
    return torch.poisson(F, generator=generator)


class Maker:
    r"""Makes the world of a case.

    Args:
        case: A level of each factor.
        rng: Random numbers.
    """

    def __init__(self, case: Mapping[str, str], rng: Rng) -> None:
        self.case, self.rng = case, rng
        asks, truth = case["asks"], case["truth"]
        self.row = NAMED.get(asks)
        self.m = 2 if asks in (*OF_TWO, *BY_PAIRS) else 1
        self.is_linear = case["pool"] in LINEAR_POOLS
        word = case["model"].partition(",")[0] if case["model"] in OUTCOMES else ""
        known = {"Binary": S.Binary(), "Counts": S.Counts(), "Ordinal": GRADES}
        self.is_log = case["model"] == "LogNormal"
        self.outcome = S.LogNormal() if self.is_log else known.get(word)
        self.epsilon = float(case["epsilon"])
        self.noise = 0.8 if truth == "noisy" else 0.1
        # With a share of the maximum the function itself is shifted.
        self.shifts = asks in (*REGIONS, OF_LINEAR_REGION, LABELS) or (
            self.row is not None and self.row.goal == "threshold"
        )
        self.pool = self.pool_of()
        self.generator = torch.Generator().manual_seed(rng.randrange(2**31))

    def pool_of(self) -> Pool:
        name, given = self.case["pool"], dict[str, Any]()
        if self.case["noise"] == "by row":
            size = SIZES.get(name, 1)
            given["noise_var"] = (
                self.noise**2 * (0.5 + scattered(self.rng, size, 1)[:, 0])
            )  # fmt: skip
        if name in TWICE:
            given = {"noise_var": True} if given else {}
        return POOLS[name](self.rng, given)

    @cached_property
    def points(self) -> Tensor:
        r"""The pool's inputs without the number of an output or a noise level."""
        return self.pool.X[:, :-1] if self.case["pool"] in TWICE else self.pool.X

    @cached_property
    def scale(self) -> Tensor:
        X = self.points
        width = X.amax(dim=0) - X.amin(dim=0)
        return torch.where(width > 0, width, 1.0)

    @cached_property
    def kernel(self) -> Any:
        r"""The process from which functions are drawn, in the units of the inputs."""
        name, d = self.case["model"], self.points.shape[1]
        if name == "GramKernel":
            rows = torch.arange(len(self.pool)).double()
            gaps = (rows.unsqueeze(0) - rows.unsqueeze(1)).abs() / 4
            return GramKernel(1.5 * (-gaps).exp())
        base: Any = RBFKernel(ard_num_dims=d)
        if name == "MaternKernel":
            base = MaternKernel(nu=2.5, ard_num_dims=d)
        found = ScaleKernel(base).double()
        found.base_kernel.lengthscale = 0.35 * self.scale
        found.outputscale = 1.5
        return found

    def drawn(self, X: Tensor) -> Tensor:
        r"""``m`` functions at some points, before shifts: ``n x m``."""
        truth, m = self.case["truth"], self.m
        normal = torch.randn(len(X), m, generator=self.generator, dtype=torch.float64)
        if truth == "all equal":
            return torch.full_like(normal, 0.5)
        if truth == "rough":  # but a function: the same at equal points
            return 1.2 * normal[X.unique(dim=0, return_inverse=True)[1]]
        # Kernels do not look at words as models do, but differ between them.
        with torch.no_grad():
            K = self.kernel(X).to_dense()
        values, vectors = torch.linalg.eigh(K)
        F = vectors * values.clamp_min(0).sqrt() @ normal
        # A function: rounding would tell equal points apart by 1e-8.
        F = F[(X.unsqueeze(1) == X).all(dim=-1).int().argmax(dim=-1)]
        return F.sign() if truth == "steps" else F

    # --- data -------------------------------------------------------------------------

    def past_points(self) -> Tensor:
        r"""Where there are old values."""
        name, rng, X = self.case["history"], self.rng, self.points
        n = {"none": 0, "many on rows": 60, "one typing error": 8}.get(
            name, rng.choice([1, 5, 12])
        )
        H = X[[rng.randrange(len(X)) for _ in range(n)]].clone()
        if name in ("near", "one typing error", "on one side") and n:
            H[:, 0] += 0.3 * self.scale[0] * (scattered(rng, n, 1)[:, 0] - 0.5)
        if name == "far":
            H[:, 0] += rng.choice([20.0, 50.0]) * self.scale[0]
        return H

    def data(self) -> tuple[Tensor, History | None]:
        r"""True values of the rows, and old ones."""
        X, H = self.points, self.past_points()
        if self.is_linear:
            features = self.pool.X if self.pool.features is None else self.pool.features
            w = torch.randn(features.shape[1], self.m, generator=self.generator,
                            dtype=torch.float64)  # fmt: skip
            w = 0 * w if self.case["truth"] == "all equal" else w
            return features @ w, None
        first = X[: len(X) // 2] if self.case["pool"] in TWICE else X
        both = self.drawn(torch.cat((first, H)))
        coarse = both
        if self.case["pool"] in AT_SOURCES:
            coarse = both + OWN_PART * self.drawn(torch.cat((first, H)))
        F, old = both[: len(first)], coarse[len(first) :]
        if self.case["truth"] == "at the level":
            F, old = torch.full_like(F, 0.3), torch.full_like(old, 0.3)
        shift = {"low": -9.0, "high": 9.0}.get(self.case["truth"], 0.0)
        if not self.shifts:
            F, old = F + shift, old + shift
        if self.case["pool"] == "noise levels":
            F = F.repeat(2, 1)
        if self.case["pool"] in AT_SOURCES:
            F = torch.cat((F + coarse[: len(first)] - both[: len(first)], F))
        return F, self.history_of(H, old)

    def history_of(self, H: Tensor, old: Tensor) -> History | None:
        name = self.case["history"]
        if not len(H):
            return None
        if self.outcome is not None and not self.is_log:
            n, trials = 1, None
            if self.outcome == S.Binary() and self.rng.random() < 0.3:
                n = trials = 3
            drawn = torch.randn((n, *old.shape), generator=self.generator).to(old)
            old = self.unit(old.abs() + 1.0 if name == "on one side" else old)
            y = results_of(self.outcome, old.expand(drawn.shape), drawn, self.generator)
            y = y.sum(dim=0)
            return History(H, y if self.m > 1 else y[:, 0], trials=trials)
        std = 0.0 if self.case["noise"] == "exact" else self.noise
        old = old + std * torch.randn(
            old.shape, generator=self.generator, dtype=torch.float64
        )
        if name == "on one side":
            old = old.abs() + 1.0
        if name == "one typing error":
            H[0, 0] *= 100
        old = old.exp() if self.is_log else old
        known = self.case["noise"] in ("told", "by row")
        if self.case["noise"] != "exact" and self.rng.random() < 0.2:
            known = not known  # which a pool of known noise refuses
        yvar = (
            max(std, 0.01) ** 2 * (old.square() if self.is_log else 1)
            if known
            else None
        )
        yvar = yvar[:, 0] if self.is_log and known and self.m == 1 else yvar
        source = self.source_of_history(len(H))
        return History(H, old if self.m > 1 else old[:, 0], yvar, source=source)

    def source_of_history(self, n: int) -> Any:
        r"""The source of old values; of a fidelity also numbers that are no source."""
        if self.case["pool"] != "fidelity":
            return SOURCES[0] if self.case["pool"] == "sources" else None
        takes_all = self.case["model"] in ("learnt", *OF_ALL_NUMBERS)
        numbers = [0.5, 0.8, 1.2] if takes_all else [0.5]
        return [self.rng.choice(numbers) for _ in range(n)]

    # --- strategies -------------------------------------------------------------------

    def asked(self) -> Asked:
        # Functions that lie above a level are the same as levels that lie lower.
        shift = {"low": 9.0, "high": -9.0}.get(self.case["truth"], 0.0)
        if self.case["truth"] == "at the level":
            shift = 0.0
        names = ("f", "g") if self.case["host"] == "gest-api" else (0, 1)
        is_twice = self.case["pool"] in ("one output a row", *AT_SOURCES)
        n = len(self.pool) // (2 if is_twice else 1)
        unit = float if self.outcome is None else self.unit
        shift = shift if self.shifts else 0.0
        return Asked(self.rng, shift, self.epsilon, names, n, unit)

    def unit(self, x: Any) -> Any:
        r"""The probability, count or number for a value of the function."""
        x = torch.as_tensor(x, dtype=torch.float64)
        is_exp = self.is_log or self.outcome == S.Counts()
        y = x.exp() if is_exp else torch.special.ndtr(x)
        return y if y.ndim else float(y)

    def limits(self) -> dict[str, Any]:
        read = {
            "batch_size": self.case["batch"],
            "max_observations": self.case["budget"],
            "max_repeats": self.case["repeats"],
        }
        found = {name: None if x == "None" else int(x) for name, x in read.items()}
        has_results = self.outcome is not None and not self.is_log
        if has_results and self.case["audit"] == "audited":
            found["max_repeats"] = None  # one or two trials show no side
        most, repeats = found["batch_size"], found["max_repeats"]
        if most is not None and repeats is not None:
            found["batch_size"] = min(most, len(self.pool) * repeats)
        return found

    def believed(self, past: History | None) -> dict[str, Any]:
        r"""The model and its noise, by the names that strategies give them."""
        found: dict[str, Any] = {}
        name, noise = self.case["model"], self.case["noise"]
        if name.startswith("refit"):
            found["refit"] = {"refit=3": 3, "refit=1.5": 1.5}[name]
        elif name == "correlated":
            found["correlated"] = True
        elif name == "single":
            found["family"] = "single"
        elif self.outcome is not None:
            found["outcome"] = self.outcome
            if self.is_log:
                pass  # its mean does not rise, and its kernel is the default
            elif name in OUTCOMES[::2]:
                if self.outcome == GRADES:  # cutpoints are learnt as well
                    found["outcome"] = replace(GRADES, cutpoints=None)
                named = self.rng.choice(["increasing", "decreasing"])
                found[named] = self.rng.choice([(), (0,)])
            else:
                found["model"] = self.kernel
        elif name not in (OWN, "learnt"):
            found["model"] = self.model_of(name)
        if noise in ("known", "exact"):
            found["noise_std"] = self.noise if noise == "known" else 0.0
        if self.case["initial"] != "None":
            found["n_initial"] = int(self.case["initial"])
        if past is not None:
            found["history"] = past
        prior = {"level_z=None": {"level_z": None},
                 "needs_both_sides=False": {"needs_both_sides": False}}  # fmt: skip
        return found | prior.get(self.case["prior"], {})

    def model_of(self, name: str) -> Any:
        X, bounds = self.points, Pool(self.points).bounds
        y = torch.randn(len(X), 1, generator=self.generator, dtype=torch.float64)
        if name in OF_SOURCES:
            return OF_SOURCES[name]()
        if name == "source_kernel":
            loadings = [[1.0, OWN_PART], [1.0, 0.0]]
            return source_kernel([self.kernel, self.kernel], loadings, X.shape[1])
        if name == "GPPrior":
            return GPPrior.from_kernel(self.kernel)
        if name == "SingleTaskGP":
            model = SingleTaskGP(X, y, covar_module=self.kernel, outcome_transform=None)
            model.likelihood.noise = self.noise**2
            return model
        if name == "fit_single_task_gp":
            return partial(fit_single_task_gp, bounds=bounds)
        if name == "HeteroscedasticGP":
            noise = QuadraticNoise(0.01 * torch.eye(X.shape[1]), (1e-4, 1.0))
            return partial(fit_heteroscedastic_gp, noise=noise, bounds=bounds)
        if name == "LearntKernel":
            return LearntKernel(self.kernel)
        if name == "TanimotoKernel":
            return LearntKernel(ScaleKernel(TanimotoKernel()))
        if name == "MultiTaskGP":
            number = torch.arange(2).repeat_interleave(len(X)).view(-1, 1)
            long = torch.cat((X.repeat(2, 1), number.to(X)), dim=-1)
            return MultiTaskGP(long, y.repeat(2, 1), task_feature=-1,
                               outcome_transform=None)  # fmt: skip
        return self.kernel

    def width(self) -> dict[str, Any]:
        n = len(self.pool)
        return {
            "theorem": {},
            "delta=0.2": {"delta": 0.2},
            "beta=4": {"beta": 4.0},
            "ConstantBeta": {"beta": ConstantBeta(9.0)},
            "UnionBeta": {"beta": UnionBeta(n, 0.1)},
        }[self.case["width"]]

    def ends(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.case["audit"] == "audited":
            found["audit"] = (0.4, 0.2)
        if self.case["content"] != "none":
            found["content_tol"] = STOPS[self.case["content"]](self.rng)
        return found

    def other_options(self) -> dict[str, Any]:
        if self.case["variant"] == "as it is" or self.row is None:
            return {}
        rng, name, pool = self.rng, self.row.cls.__name__, self.pool
        if name.startswith("HRAGE") and rng.random() < 0.5:
            features = None if pool.features is None else pool.features[::2]
            targets = {"targets": Pool(pool.X[::2], features=features)}
            # With these ends it would be refused, as it is now and then.
            without = dict.fromkeys(self.ends())
            return targets if rng.random() < 0.2 else targets | without
        if self.row.is_linear:
            return {"design": "gaps"}
        if name == "ImplicitLSEStrategy":
            return {"drop_maximisers": True}
        if name != "TruVaRStrategy":
            return rng.choice([
                {"rounding": "quota"}, {"rounding": "sample"},
                {"rounding": "quota", "design": "prior"},
            ])  # fmt: skip
        found = {"eta": 0.5, "eta_ratio": 0.5, "delta_bar": 0.2, "monotone": False,
                 "only_open": True, "prefilter": 9, "anticipates": True}  # fmt: skip
        is_free = self.case["width"] in ("theorem", "delta=0.2")
        if is_free and self.case["model"] != "norm bound":
            found["beta_factor"] = 1.0
        return {name: x for name, x in found.items() if rng.random() < 0.5}

    def world(self) -> World:
        F, past = self.data()
        F = F if self.outcome is None else self.unit(F)
        if self.case["asks"] == ONE_CLASS:
            F = torch.stack((F[:, 0], 1 - F[:, 0]), dim=-1)
        asked, limits = self.asked(), self.limits()
        asks, noise = self.case["asks"], self.case["noise"]
        believed = self.believed(past)
        if self.case["model"] == "norm bound":
            K = self.kernel(self.points).to_dense().detach()
            inverse = torch.linalg.pinv(K, hermitian=True, rtol=1e-9)
            believed["norm_bound"] = max(1.0, 1.1 * float((F.mT @ inverse @ F).sqrt()))
        goal: Any = None
        if asks in GOALS:
            goal = GOALS[asks](asked)
            strategy = self.of_parts(goal, believed, limits)
        elif asks == OF_LINEAR_REGION:
            goal = asked.rng.choice([Asked.between, Asked.by_row, Asked.below])(asked)
            known = {"noise_std": self.noise} if noise == "known" else {}
            strategy = S.MELKLinearStrategy(
                self.pool, goal, **known, **limits, **self.width(), **self.ends()
            )
        elif asks == LABELS:
            strategy = self.of_labels(asked, limits)
        else:
            assert self.row is not None
            goal, strategy = self.of_name(self.row, asked, believed, limits)
        items = F if getattr(strategy, "targets", None) is None else F[::2]
        items = items[len(F) // 2 :] if self.case["pool"] in AT_SOURCES else items
        std = torch.full_like(F, 0.0 if noise == "exact" else self.noise)
        if strategy.n_outputs != self.m:  # a row measures one of the outputs
            F, std = F.T.reshape(-1, 1), std.T.reshape(-1, 1)
        if self.pool.noise_var is not None:
            std = self.pool.noise_var.sqrt().unsqueeze(-1).expand(F.shape)
        told = noise == "told"
        return World(strategy, goal, F, items, std, told, self.claims(), self.outcome)

    def claims(self) -> bool:
        r"""Whether the function and the noise are as a theorem assumes them."""
        case = self.case
        if case["truth"] not in ("smooth", "noisy") or case["asks"] == LABELS:
            return False
        if self.is_linear:
            return True
        is_given = (
            case["model"] in (*FIXED, *OUTCOMES[1::2], "source_kernel")
            and case["history"] != "one typing error"
        )
        return is_given and case["history"] not in ("on one side", "far")

    def of_parts(self, goal: Any, believed: Any, limits: Any) -> Strategy:
        options = self.width() | limits | self.ends()
        if self.case["rule"] != OWN:
            options["rule"] = RULES[self.case["rule"]](self.rng, self.pool)
        model = S.GaussianProcess(**believed)
        return Strategy(self.pool, goal, model=model, **options)

    def of_labels(self, asked: Asked, limits: Any) -> Strategy:
        labels = [self.rng.choice(["above", "below"]) for _ in range(len(self.pool))]
        known = {"exact": 0.0, "known": self.noise}
        region = self.rng.choice([asked.level(), asked.above(), asked.between()])
        std = known.get(self.case["noise"])
        own = {"epsilon": self.epsilon} if isinstance(region, float) else {}
        return S.audit(self.pool, labels, region, 0.3, 0.2, noise_std=std,
                       **own, **limits)  # fmt: skip

    def of_name(
        self, row: StrategyCase, asked: Asked, believed: Any, limits: Any
    ) -> tuple[Any, Strategy]:
        level, noise = asked.level(), self.case["noise"]
        aim: dict[str, Any] = row.aim(level)
        if row.has_several_outputs:
            ups = self.rng.choice([(True, True), (True, False)])
            aim = {"maximize": ups}
        options = dict(self.width())
        if row.family in ("confidence", "budget"):
            options |= dict(row.batches if row.family == "budget" else row.small)
            if row.family == "confidence" and "variance_bounds" not in row.options:
                options = {"noise_std": self.noise} | options
                self.noise = options["noise_std"]  # the noise that the row states
            epsilon = float(options.get("epsilon", 0.0))
        else:
            epsilon = self.epsilon
            options |= limits | self.ends() | {"epsilon": epsilon}
            if row.family == "gaussian":
                options |= believed
            elif noise == "known":
                options["noise_std"] = self.noise
            if noise == "burn-in":
                options |= {"variance_bounds": (0.001, 0.8), "burn_in": 16}
            options |= self.other_options()
        if "cost" in row.options and self.pool.costs is not None:
            row = NAMED["TruVaRStrategy"]
        strategy = row.make(self.pool, **aim, **options)
        if row.has_several_outputs:
            kind = S.ParetoByDifferences
            each = torch.as_tensor(options.get("epsilon", 0.0)).expand(2).tolist()
            return kind(aim["maximize"], tuple(each)), strategy
        if row.goal == "omega":
            return S.ShareOfMax(OMEGA, epsilon), strategy
        if row.goal is None:
            return S.Maximiser(epsilon), strategy
        return S.Above(level, epsilon), strategy


def world_of(case: Mapping[str, str], seed: int, number: int) -> World:
    r"""The world of a case: the same for the same numbers.

    Raises:
        ValueError: If the strategy refuses the case; so do its other errors.
    """
    with torch.random.fork_rng():  # BoTorch's task kernels begin at random
        torch.manual_seed(number)
        return Maker(case, Rng(f"{seed}/{number}")).world()
