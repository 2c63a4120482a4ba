r"""Every strategy and every acquisition class, once: what contract tests run over.

A new class is one row here. The tables of the tests are made of these rows by what the
rows say of themselves; ``tests/test_registry.py`` misses a class that has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_lse import Pool
from botorch_lse import acquisition as A
from botorch_lse import papers as P
from botorch_lse import strategies as S
from botorch_lse.confidence import UnionBeta

OMEGA = 0.6


# --- strategies -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StrategyCase:
    r"""A strategy, and what its tests must know of it.

    Args:
        cls: The class.
        family: What is believed, and so which problems it is tested on: a Gaussian
            process that is given or learnt, linear features with anytime widths, or
            linear features as in a paper, with rounds that the algorithm sizes for a
            confidence or a budget.
        goal: The argument that says what is looked for; ``None``: the maximiser.
        variant: What this row has and others of the class have not.
        has_lasting_sides: Whether what was decided stays so while its interval moves.
        build: Makes one of a pool and the arguments that strategies with names of their
            own take; default: the class.
        options: Arguments that it needs in every problem.
        small: Arguments of a run of about a dozen measurements on four rows.
        batches: Arguments of a run on nine rows whose rounds have replicates.
    """

    cls: type[S.Strategy]
    family: Literal["gaussian", "linear", "confidence", "budget"]
    goal: Literal["threshold", "omega", "maximize"] | None
    variant: str = ""
    has_lasting_sides: bool = False
    build: Callable[..., S.Strategy] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    batches: Mapping[str, Any] = field(default_factory=dict)

    @property
    def __name__(self) -> str:
        r"""The name, under which pytest lists a case."""
        return ", ".join(filter(None, (self.cls.__name__, self.variant)))

    @property
    def is_linear(self) -> bool:
        r"""Whether widths are those of theorems, without a prior."""
        return self.family == "linear"

    @property
    def is_implicit(self) -> bool:
        r"""Whether the level is a share of the maximum."""
        return self.goal == "omega"

    @property
    def has_several_outputs(self) -> bool:
        r"""Whether a measurement gives several numbers."""
        return self.goal == "maximize"

    def aim(self, threshold: float, omega: float = OMEGA) -> dict[str, float]:
        r"""The goal of one output: of a level and a share that of which it is."""
        known = {"threshold": threshold, "omega": omega}
        return {name: known[name] for name in known if name == self.goal}

    def make(self, pool: Pool, **options: Any) -> S.Strategy:
        r"""One of these, with what every problem needs."""
        return (self.build or self.cls)(pool, **{**self.options, **options})


def travel(previous: int | None, rows: Tensor) -> Tensor:
    r"""The cost of a measurement: one, and the distance in rows of the pool."""
    start = rows if previous is None else previous
    return 1.0 + (rows - start).abs().double()


def composed(
    pool: Pool,
    *,
    threshold: float | None = None,
    omega: float | None = None,
    maximize: tuple[bool, ...] | None = None,
    epsilon: float | tuple[float, ...] = 0.0,
    **options: Any,
) -> S.Strategy:
    r"""A strategy of parts, from the arguments of those with names of their own."""
    goal: S.Goal
    if maximize is not None:
        each = epsilon if isinstance(epsilon, tuple) else (epsilon,) * len(maximize)
        goal = S.ParetoByDifferences(maximize, each)
    elif omega is not None:
        goal = S.ShareOfMax(omega, epsilon)
    else:
        goal = S.Above(threshold, epsilon)
    known = {entry.name for entry in fields(S.GaussianProcess)}
    of_model = {name: options.pop(name) for name in known & options.keys()}
    return S.Strategy(pool, goal, model=S.GaussianProcess(**of_model), **options)


FEW = {"max_observations": 12}
BUDGET = {
    "options": {"max_observations": 200},
    "small": FEW,
    "batches": {"max_observations": 90},
}
BOUNDED = {"bound": 1.0, "noise_std": 0.3, "delta": 0.1}
OF_PARTS = {"build": composed}
STEPS = {"noise_std": 0.3, "step": 1, **FEW}

STRATEGIES = (
    StrategyCase(S.LSEStrategy, "gaussian", "threshold"),
    StrategyCase(
        S.LSEStrategy, "gaussian", "threshold", "audited", options={"audit": (0.4, 0.2)}
    ),
    StrategyCase(P.LSELiteralBatchStrategy, "gaussian", "threshold"),
    StrategyCase(S.StraddleStrategy, "gaussian", "threshold"),
    StrategyCase(P.StraddleRankStrategy, "gaussian", "threshold"),
    StrategyCase(S.MaxVarianceStrategy, "gaussian", "threshold"),
    StrategyCase(S.RandomStrategy, "gaussian", "threshold"),
    StrategyCase(S.MELKStrategy, "gaussian", "threshold", has_lasting_sides=True),
    StrategyCase(S.HRAGEStrategy, "gaussian", "threshold", has_lasting_sides=True),
    StrategyCase(S.TruVaRStrategy, "gaussian", "threshold", has_lasting_sides=True),
    StrategyCase(
        S.TruVaRStrategy,
        "gaussian",
        "threshold",
        "costs",
        has_lasting_sides=True,
        options={"cost": travel},
    ),
    StrategyCase(S.ComposedStrategy, "gaussian", "threshold", "level", **OF_PARTS),
    StrategyCase(S.MELKLinearStrategy, "linear", "threshold"),
    StrategyCase(S.HRAGELinearStrategy, "linear", "threshold"),
    StrategyCase(
        S.MELKLinearStrategy,
        "linear",
        "threshold",
        "audited",
        options={"audit": (0.4, 0.2)},
    ),
    StrategyCase(S.ImplicitLSEStrategy, "gaussian", "omega"),
    StrategyCase(P.ImplicitLSELiteralBatchStrategy, "gaussian", "omega"),
    StrategyCase(S.ImplicitStraddleStrategy, "gaussian", "omega"),
    StrategyCase(S.MILKStrategy, "gaussian", "omega"),
    StrategyCase(S.ComposedStrategy, "gaussian", "omega", "share", **OF_PARTS),
    StrategyCase(S.MILKLinearStrategy, "linear", "omega"),
    StrategyCase(P.MELKPACStrategy, "confidence", "threshold", options=BOUNDED),
    StrategyCase(P.MILKPACStrategy, "confidence", "omega", options=BOUNDED),
    StrategyCase(P.RAGEPACStrategy, "confidence", None, options={"noise_std": 0.3}),
    StrategyCase(
        P.RAGEPACStrategy,
        "confidence",
        "threshold",
        "level",
        options={"noise_std": 0.3},
    ),
    StrategyCase(
        P.HRAGEPACStrategy,
        "confidence",
        "threshold",
        options={"variance_bounds": (0.05, 0.1)},
    ),
    StrategyCase(S.GEGEStrategy, "gaussian", "maximize", small=FEW),
    StrategyCase(P.PALStrategy, "gaussian", "maximize", small=FEW),
    StrategyCase(
        S.ComposedStrategy,
        "gaussian",
        "maximize",
        "Pareto",
        options={"level_z": None},  # there is no level: see tests of the class
        small=FEW,
        **OF_PARTS,
    ),
    StrategyCase(P.GEGEBudgetStrategy, "budget", "maximize", **BUDGET),
    StrategyCase(P.EGESHStrategy, "budget", "maximize", **BUDGET),
    StrategyCase(P.EGESRStrategy, "budget", "maximize", **BUDGET),
    StrategyCase(P.UniformStrategy, "budget", "maximize", **BUDGET),
    StrategyCase(
        P.GEGEPACStrategy,
        "confidence",
        "maximize",
        small={"noise_std": 0.01, "epsilon": 0.5, "max_observations": 60},
        batches={"noise_std": 0.01, "epsilon": 0.05, "max_observations": 50_000},
    ),
    StrategyCase(
        P.APEStrategy,
        "confidence",
        "maximize",
        options={"step": 20},
        small=STEPS,
        batches={"noise_std": 0.3, "step": 50, "max_observations": 4000},
    ),
    StrategyCase(
        P.RacingStrategy,
        "confidence",
        "maximize",
        options={"step": 20},
        small=STEPS,
        batches={"noise_std": 0.3, "epsilon": 0.5, "step": 50},
    ),
    StrategyCase(
        S.GEGELinearStrategy,
        "linear",
        "maximize",
        small={"noise_std": 0.1, "batch_size": 4, **FEW},
    ),
)


def case_of(strategy: StrategyCase | type[S.Strategy] | str) -> StrategyCase:
    r"""The row of a name, or the first of a class."""
    if isinstance(strategy, StrategyCase):
        return strategy
    name = strategy if isinstance(strategy, str) else strategy.__name__
    return next(case for case in STRATEGIES if case.__name__ == name)


SINGLE = [case for case in STRATEGIES if not case.has_several_outputs]
r"""Those of one output; of these:"""
EXPLICIT = [
    case for case in SINGLE if case.goal == "threshold" and case.family != "confidence"
]
IMPLICIT = [case for case in SINGLE if case.is_implicit and case.family != "confidence"]
PLAYED = EXPLICIT + IMPLICIT
r"""All whose rounds have the size they are given."""
PLAYED_GP = [case for case in PLAYED if not case.is_linear]
REHEARSED = [case for case in SINGLE if case.family == "confidence"]

SEVERAL = [case for case in STRATEGIES if case.has_several_outputs]
r"""Those of several outputs; of these:"""
GAUSSIAN = [case for case in SEVERAL if case.family == "gaussian"]
BUDGETED = [case for case in SEVERAL if case.family == "budget"]
CONFIDENT = [case for case in SEVERAL if case.family == "confidence"]
LINEAR_SEVERAL = [case for case in SEVERAL if case.is_linear]


# --- acquisition classes --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AcquisitionCase:
    r"""An acquisition class, and what its tests must know of it.

    Args:
        cls: The class.
        kind: What it says: of the moments at a point, of its intervals along the data,
            of what a batch leaves to know of targets, or of an answer of yes or no.
        arguments: What it needs besides the model, from rows that may serve as its pool
            or targets, and a level.
        is_designed: Whether its batches may be relaxed to the weights of a design.
        has_several_outputs: Whether it is for several outputs.
    """

    cls: type[AcquisitionFunction]
    kind: Literal["moments", "intervals", "batch", "answers"]
    arguments: Callable[[Tensor, float], dict[str, Any]]
    is_designed: bool = False
    has_several_outputs: bool = False

    def options(self, rows: Tensor, level: float = 21.0) -> dict[str, Any]:
        r"""What it needs besides the model; a usual value is about 20."""
        return self.arguments(rows, level)


def no_more(rows: Tensor, level: float) -> dict[str, Any]:
    return {}


def a_level(rows: Tensor, level: float) -> dict[str, Any]:
    return {"threshold": level}


def a_schedule(rows: Tensor, level: float) -> dict[str, Any]:
    return {"beta": UnionBeta(len(rows), 0.1)}


def a_share_of_a_pool(rows: Tensor, level: float) -> dict[str, Any]:
    return {"omega": 0.9, "pool": rows}


def targets(rows: Tensor, level: float) -> dict[str, Any]:
    return {"targets": rows}


def targets_and_a_level(rows: Tensor, level: float) -> dict[str, Any]:
    return {"targets": rows, "threshold": level}


def weighted_targets(rows: Tensor, level: float) -> dict[str, Any]:
    weights = torch.linspace(3.0, 0.0, len(rows), dtype=torch.float64)
    return {"targets": rows, "target_weights": weights}


def targets_and_a_share(rows: Tensor, level: float) -> dict[str, Any]:
    return {"targets": rows, "omega": 0.7}


ACQUISITIONS = (
    AcquisitionCase(A.Straddle, "moments", a_level),
    AcquisitionCase(A.UFunction, "moments", a_level),
    AcquisitionCase(A.ContourEntropy, "moments", a_level),
    AcquisitionCase(A.ExpectedFeasibility, "moments", a_level),
    AcquisitionCase(A.RanjanImprovement, "moments", a_level),
    AcquisitionCase(A.ImplicitStraddle, "moments", a_share_of_a_pool),
    AcquisitionCase(A.MaxVariance, "moments", no_more),
    AcquisitionCase(A.LSEAmbiguity, "intervals", a_level),
    AcquisitionCase(A.LSEWidth, "intervals", a_schedule),
    AcquisitionCase(A.qTruVaR, "batch", targets),
    AcquisitionCase(A.qTargetedIMSE, "batch", targets_and_a_level),
    AcquisitionCase(A.qExpectedMisclassification, "batch", targets_and_a_level),
    AcquisitionCase(A.qGlobalMI, "batch", targets_and_a_level),
    AcquisitionCase(A.qEAVC, "batch", targets_and_a_level),
    AcquisitionCase(A.qNegMaxPosteriorVariance, "batch", targets, True),
    AcquisitionCase(A.qMELK, "batch", targets, True),
    AcquisitionCase(A.qHRAGE, "batch", weighted_targets, True),
    AcquisitionCase(A.qMILK, "batch", targets_and_a_share, True),
    AcquisitionCase(A.qGEGE, "batch", targets, True, has_several_outputs=True),
)

ANSWERS = (
    AcquisitionCase(A.BernoulliStraddle, "answers", a_level),
    AcquisitionCase(A.BernoulliGlobalMI, "answers", targets_and_a_level),
    AcquisitionCase(A.BernoulliMisclassification, "answers", targets_and_a_level),
    AcquisitionCase(A.BernoulliEAVC, "answers", targets_and_a_level),
)
r"""Those of models of answers of yes and no, which take no others."""

MOMENTS = [case for case in ACQUISITIONS if case.kind == "moments"]
INTERVALS = [case for case in ACQUISITIONS if case.kind == "intervals"]
ONE_POINT = MOMENTS + INTERVALS
r"""Those of one point at a time."""
BATCHES = [case for case in ACQUISITIONS if case.kind == "batch"]
DESIGNED = [case for case in BATCHES if case.is_designed]
