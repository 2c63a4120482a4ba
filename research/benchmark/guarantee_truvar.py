r"""The guarantees of TruVaR (Bogunovic et al. 2016, Lemma C.1 and Theorem 3.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

from botorch_lse.confidence import UnionBeta
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import TruVaRStrategy
from research.benchmark.guarantee import Form, ScaledBeta, guarantee_report
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem, gp_sample
from research.report import Report

DELTA, NOISE, SIZE = 0.1, 0.1, 12
BATCHES = (1, 10)
LIMIT = 400
EPSILON, EPSILON_MAX = 0.2, 0.1
LENGTHSCALE_MAX = 0.1
"""Short, so that there are many peaks: with few even narrow widths do no harm."""

NOTES = (
    "f drawn from a zero-mean Gaussian process of unit variance (Matern-5/2) on a grid "
    f"of {SIZE} x {SIZE} rows, exact hyper-parameters, noise standard deviation "
    f"{NOISE:g}; run k uses seed k. A run ends when all is decided or after {LIMIT} "
    "measurements.",
    "Widths of Lemma C.1, one for each round (Theorem 3.1's beta_(i) needs the epochs' "
    "lengths beforehand, which are not known). Sets M_t monotone, candidates are the "
    "rows of M_t. 'a = 1' and 'a = 0.5' are the paper's practical widths; they "
    "promise nothing.",
)


@entry("guarantee", "truvar", "TruVaR for level sets with the widths of Lemma C.1")
def guarantee_truvar(options: Options) -> Report:
    r"""Explicit level, B = 1 and 10; costs change nothing about the promise."""
    setting = (
        f"Level 0.5, lengthscale 0.25, epsilon = {EPSILON:g}, delta = {DELTA:g}. A run "
        "is wrong if any decided row lies on the other side of the level by more than "
        "epsilon. With costs: 1 to 3 by column."
    )
    forms = [
        *[Form(f"TruVaR, B = {B}", partial(_build, B)) for B in BATCHES],
        Form("TruVaR with costs, B = 1", partial(_build, 1, costs=True)),
        Form("TruVaR, a = 1", partial(_build, 1, factor=1.0), promises=False),
    ]
    return guarantee_report(
        "guarantee truvar",
        (setting, *NOTES),
        forms,
        level_problem,
        options,
        DELTA,
        EPSILON,
    )


@entry("guarantee", "truvar_max", "TruVaR for the maximiser with Lemma C.1's widths")
def guarantee_truvar_max(options: Options) -> Report:
    r"""Maximiser: what is ruled out and what is accepted."""
    setting = (
        f"Lengthscale {LENGTHSCALE_MAX:g}, epsilon = {EPSILON_MAX:g}, delta = "
        f"{DELTA:g}. A run is wrong if the accepted row is more than epsilon below the "
        "maximum."
    )
    build = partial(_build, goal="maximiser")
    forms = [
        *[Form(f"TruVaR, B = {B}", partial(build, B)) for B in BATCHES],
        Form("TruVaR, a = 0.5", partial(build, 1, factor=0.5), promises=False),
    ]
    return guarantee_report(
        "guarantee truvar_max",
        (setting, *NOTES),
        forms,
        peak_problem,
        options,
        DELTA,
        EPSILON_MAX,
    )


def level_problem(seed: int) -> Problem:
    r"""A draw from the prior with the level 0.5."""
    pool, prior, truth = gp_sample(seed, SIZE, (0.25, 0.25))
    return Problem(pool, truth, NOISE, 0.5, 0.5, prior, seed)


def peak_problem(seed: int) -> Problem:
    r"""A draw from the prior; the level is its maximum.

    Rows "above" are then those accepted, wrong by more than ``epsilon`` if they lie so
    much below the maximum; rows "below" never exceed it, so what is ruled out wrongly
    shows in what is accepted in its place.
    """
    scales = (LENGTHSCALE_MAX, LENGTHSCALE_MAX)
    pool, prior, truth = gp_sample(seed, SIZE, scales)
    return Problem(pool, truth, NOISE, float(truth.max()), 0.5, prior, seed)


def _build(
    batch_size: int,
    problem: Problem,
    divisor: float,
    factor: float | None = None,
    goal: str = "threshold",
    costs: bool = False,
) -> TruVaRStrategy:
    pool = problem.pool
    if costs:
        pool = Pool(pool.X, costs=1.0 + 2.0 * pool.X[:, 0])
    chosen: dict[str, Any] = {"beta_factor": factor}
    if factor is None and divisor != 1.0:
        # A schedule that is given is read when an epoch begins and kept until its end.
        chosen = {"beta": ScaledBeta(UnionBeta(len(pool), DELTA), divisor)}
    return TruVaRStrategy(
        pool,
        problem.threshold if goal == "threshold" else None,
        model=problem.prior,
        batch_size=batch_size,
        noise_std=problem.noise_std,
        delta=DELTA,
        epsilon=EPSILON if goal == "threshold" else EPSILON_MAX,
        max_observations=LIMIT,
        only_open=True,
        **chosen,
    )
