r"""The guarantee of a theorem's widths under rules that look ahead.

The widths of Gotovos et al. (2013), Theorem 1, hold for all rows and all times at once
whichever rows are measured, as long as these depend on the past alone. So a strategy
may measure where it learns most, by expected misclassification, and decide by the
theorem.
"""

from __future__ import annotations

from functools import partial

from botorch_lse.confidence import UnionBeta
from botorch_lse.strategies import (
    Above,
    AlternatingRules,
    ExpectedMisclassification,
    GaussianProcess,
    Rule,
    Straddle,
    Strategy,
    TargetedVariance,
)
from research.benchmark.guarantee import Form, ScaledBeta, guarantee_report
from research.benchmark.guarantee_lse import DELTA, NOISE, explicit_problem
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem
from research.report import Report

SIZE = 12
EPSILON, LIMIT = 0.2, 400

NOTES = (
    f"Level 0.5, lengthscale 0.25, epsilon = {EPSILON:g}, delta = {DELTA:g}; f drawn "
    "from a zero-mean Gaussian process of unit variance (Matern-5/2) on a grid of "
    f"{SIZE} x {SIZE} rows, exact hyper-parameters, noise standard deviation "
    f"{NOISE:g}; run k uses seed k.",
    "A run is wrong if any decided row lies on the other side of the level by more "
    "than epsilon. Decisions are final. A run ends when all rows are decided or after "
    f"{LIMIT} measurements.",
    "Widths of Theorem 1 (Gotovos et al. 2013), which hold whatever the rule. SUR is "
    "expected misclassification, tIMSE targeted variance; 'joint' leaves the values of "
    "a whole batch open, 'believer' takes them as known. The default learns by joint "
    "SUR and finishes by ambiguity.",
)


@entry("guarantee", "sur", "Theorem 1's widths under rules that look ahead")
def guarantee_sur(options: Options) -> Report:
    r"""How often rules that look ahead are wrong, one at a time and in batches."""
    joint = ExpectedMisclassification(batch="joint")
    forms = [
        form("SUR, B = 1", ExpectedMisclassification(), 1),
        form("SUR, believer, B = 10", ExpectedMisclassification(), 10),
        form("SUR, joint, B = 10", joint, 10),
        form("tIMSE, joint, B = 10", TargetedVariance(batch="joint"), 10),
        form(
            "Straddle and SUR by turns, B = 10",
            AlternatingRules((Straddle(), joint)),
            10,
        ),
        form("the default, B = 1", None, 1),
        form("the default, B = 10", None, 10),
    ]
    problem = partial(explicit_problem, size=SIZE)
    return guarantee_report(
        "guarantee sur", NOTES, forms, problem, options, DELTA, EPSILON
    )


def form(name: str, rule: Rule | None, batch_size: int) -> Form:
    r"""A rule, or the one without a choice, in batches, by the theorem's widths."""
    return Form(name, partial(_build, rule, batch_size))


def _build(
    rule: Rule | None, batch_size: int, problem: Problem, divisor: float
) -> Strategy:
    beta = None
    if divisor != 1.0:
        beta = ScaledBeta(UnionBeta(len(problem.pool), DELTA), divisor)
    return Strategy(
        problem.pool,
        Above(problem.threshold, EPSILON),
        model=GaussianProcess(problem.prior, noise_std=problem.noise_std),
        rule=rule,
        batch_size=batch_size,
        delta=DELTA,
        beta=beta,
        max_observations=LIMIT,
    )
