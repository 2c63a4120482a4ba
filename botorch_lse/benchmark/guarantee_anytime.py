r"""The anytime width alone, under optional stopping."""

from __future__ import annotations

import math

import numpy as np

from botorch_lse.benchmark.guarantee import POWER
from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.statistics import VIOLATED, WrongFraction
from botorch_lse.confidence.self_normalised import FIRST_SCALE, LEVELS, RATIO

DELTA, STEPS, RANKS = 0.1, 100_000, (1, 2, 5)
NOTES = (
    f"Each path makes {STEPS:,} steps, one measurement each, of the axis whose "
    "estimate is at the moment off most: rows chase the noise. W is the identity.",
    "A path is wrong if at any step any direction at all is outside its width: the "
    "noise vector leaves one of the stitched ellipsoids.",
)
COLUMNS = ("rank", "paths", "ever violated", "95 % Clopper-Pearson", "delta", "verdict")


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
    title = "guarantee anytime"

    def table(divisor: float) -> tuple[Table, str]:
        rows, verdicts = [], set()
        for h in RANKS:
            wrong = ever_violated(h, options.runs, STEPS, divisor, 0)
            found = WrongFraction(wrong, options.runs, DELTA)
            low, high = found.interval
            verdicts.add(found.verdict)
            ends = f"[{low:.3f}, {high:.3f}]"
            cells = (str(h), str(options.runs), f"{found.fraction:.3f}", ends)
            rows.append((*cells, f"{DELTA:g}", found.verdict))
        name = "Whole widths" if divisor == 1 else f"Widths divided by {divisor:g}"
        overall = VIOLATED if VIOLATED in verdicts else " and ".join(sorted(verdicts))
        return Table(name, COLUMNS, rows), overall

    if options.divide_widths is not None:
        scaled, overall = table(options.divide_widths)
        return Report(title, NOTES, [scaled], [f"{scaled.title}: {overall}."])
    (whole, kept), (narrow, broken) = table(1.0), table(POWER)
    verdict = [f"Guarantee: {kept}.", f"Power check: {broken}."]
    return Report(title, NOTES, [whole, narrow], verdict)
