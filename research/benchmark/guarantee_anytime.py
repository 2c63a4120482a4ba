r"""The anytime width alone, under optional stopping."""

from __future__ import annotations

import math

import numpy as np

from botorch_lse.confidence.anytime import FIRST_SCALE, LEVELS, RATIO
from research.benchmark.guarantee import WRONG, Outcome, power_report
from research.benchmark.registry import Options, entry
from research.report import Report
from research.statistics import WrongFraction

DELTA, STEPS, RANKS = 0.1, 100_000, (1, 2, 5)
NOTES = (
    f"Each path makes {STEPS:,} steps, one measurement each, of the axis whose "
    "estimate is at the moment off most: rows chase the noise. W is the identity.",
    "A path is wrong if at any step any direction at all is outside its width: the "
    "noise vector leaves one of the stitched ellipsoids.",
)
COLUMNS = ("rank", *WRONG)


def ever_violated(h: int, paths: int, steps: int, divisor: float, seed: int) -> int:
    r"""How many paths violate the width in some direction at some step.

    Args:
        h: The rank.
        paths: Simulated together, with the noise of one seed.
        steps: Measurements of each.
        divisor: What the widths are divided by.
        seed: Of the noise.
    """
    generator, everyone = np.random.default_rng([seed, h]), np.arange(paths)
    S, V, bad = np.zeros((paths, h)), np.zeros((paths, h)), np.zeros(paths, dtype=bool)
    scales = FIRST_SCALE * RATIO ** np.arange(LEVELS)
    share = 2 * math.log(LEVELS / DELTA)
    for _ in range(steps):
        axis = np.where(V > 0, np.abs(S) / np.maximum(V, 1), np.inf).argmax(axis=1)
        S[everyone, axis] += generator.standard_normal(paths)
        V[everyone, axis] += 1
        # The union bound's smallest width is violated only if that scale's is.
        worst = np.full(paths, -np.inf)
        for scale in scales:
            radius = np.log1p(V / scale).sum(axis=1) + share
            worst = np.maximum(worst, (S**2 / (V + scale)).sum(axis=1) / radius)
        bad |= worst * divisor**2 > 1
    return int(bad.sum())


@entry("guarantee", "anytime", "The anytime width alone, 10^5 steps of each path")
def guarantee_anytime(options: Options) -> Report:
    r"""The width as promised, and the power check."""

    def outcomes(divisor: float) -> list[Outcome]:
        wrong = [ever_violated(h, options.runs, STEPS, divisor, 0) for h in RANKS]
        return [
            Outcome((str(h),), WrongFraction(n, options.runs, DELTA))
            for h, n in zip(RANKS, wrong, strict=True)
        ]

    return power_report("guarantee anytime", NOTES, COLUMNS, outcomes, options)
