r"""The algorithms of Gotovos et al. (2013), point by point, with the errata 2 to 7.

The errata stand in ``papers/gotovos2013/errata.md``.
Loops over points and sets of Python ints; shares no code with the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.reference.dense_gp import DenseGP

TIE = 1e-9


@dataclass
class Trace:
    r"""What happened: the rows chosen and the sets after each classification."""

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    H: list[set[int]] = field(default_factory=list)
    L: list[set[int]] = field(default_factory=list)
    U: list[set[int]] = field(default_factory=list)
    Z: list[set[int]] = field(default_factory=list)


def lowest_best(scores: dict[int, float], scale: float) -> int:
    best = max(scores.values())
    return min(i for i, score in scores.items() if score >= best - TIE * scale)


@dataclass
class Replay:
    r"""What all replays share: the process, the pool and the measurements."""

    gp: DenseGP
    X: np.ndarray
    noise_var: float
    measure: Callable[[int, int], float]
    """From the row and the number of measurements before it to a value."""

    def moments(
        self, rows: list[int], values: list[float], seen: int
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Mean from the first ``seen`` rows, standard deviation from all of them."""

        def at(rows: list[int], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            noise = np.full(len(rows), self.noise_var)
            return self.gp.moments(self.X, self.X[rows], values, noise)

        mean, _ = at(rows[:seen], np.asarray(values[:seen]))
        _, sigma = at(rows, np.zeros(len(rows)))
        return mean, sigma

    @property
    def scale(self) -> float:
        return math.sqrt(self.gp.outputscale)


def lse(
    replay: Replay,
    threshold: float,
    epsilon: float,
    beta: Callable[[int], float],
    steps: int,
    batch_size: int = 1,
) -> Trace:
    r"""Algorithm 1, and with ``batch_size > 1`` Algorithm 3 to the letter."""
    trace = Trace()
    H: set[int] = set()
    L: set[int] = set()
    U = set(range(len(replay.X)))
    low = dict.fromkeys(U, -math.inf)
    high = dict.fromkeys(U, math.inf)
    t = 1
    while U:
        mean, sigma = replay.moments(trace.rows, trace.values, len(trace.values))
        for i in sorted(U):
            half = math.sqrt(beta(t)) * sigma[i]
            low[i] = max(low[i], mean[i] - half)
            high[i] = min(high[i], mean[i] + half)
            if low[i] + epsilon > threshold:
                H.add(i)
            elif high[i] - epsilon <= threshold:
                L.add(i)
        U = U - H - L
        trace.H.append(set(H))
        trace.L.append(set(L))
        trace.U.append(set(U))
        if not U or len(trace.rows) >= steps:
            break
        ambiguity = {i: min(high[i] - threshold, threshold - low[i]) for i in U}
        trace.rows.append(lowest_best(ambiguity, replay.scale))
        if t % batch_size == 0:
            for i in range(len(trace.values), len(trace.rows)):
                trace.values.append(replay.measure(trace.rows[i], i))
        t += 1
    return trace


def lse_implicit(
    replay: Replay,
    omega: float,
    epsilon: float,
    beta: Callable[[int], float],
    steps: int,
    drop_maximisers: bool,
) -> Trace:
    r"""Algorithm 2; ``drop_maximisers`` is the text's reading of the M sets."""
    trace = Trace()
    H: set[int] = set()
    L: set[int] = set()
    MH: set[int] = set()
    ML: set[int] = set()
    U = set(range(len(replay.X)))
    Z = set(U)
    low = dict.fromkeys(U, -math.inf)
    high = dict.fromkeys(U, math.inf)
    t = 1
    while U:
        mean, sigma = replay.moments(trace.rows, trace.values, len(trace.values))
        for i in Z:
            half = math.sqrt(beta(t)) * sigma[i]
            low[i] = max(low[i], mean[i] - half)
            high[i] = min(high[i], mean[i] + half)
        h_opt = omega * max(high[i] for i in Z)
        f_pes = max(low[i] for i in Z)
        for i in sorted(U):
            if low[i] + epsilon >= h_opt:
                (H if high[i] < f_pes else MH).add(i)
            elif high[i] - epsilon <= omega * f_pes:
                (L if high[i] < f_pes else ML).add(i)
        U = U - H - L - MH - ML
        if drop_maximisers:
            for M, decided in ((MH, H), (ML, L)):
                gone = {i for i in M if high[i] < f_pes}
                M -= gone
                decided |= gone
        Z = U | MH | ML
        trace.H.append(H | MH)
        trace.L.append(L | ML)
        trace.U.append(set(U))
        trace.Z.append(set(Z))
        if not U or len(trace.rows) >= steps:
            break
        width = {i: high[i] - low[i] for i in Z}
        row = lowest_best(width, replay.scale)
        trace.values.append(replay.measure(row, len(trace.rows)))
        trace.rows.append(row)
        t += 1
    return trace


def lse_rounds(
    replay: Replay,
    threshold: float,
    epsilon: float,
    beta: Callable[[int], float],
    rounds: int,
    batch_size: int,
) -> Trace:
    r"""LSE_batch as erratum 6 has it; ``t`` counts rounds.

    Inside a batch the old mean with the shrunken ``sigma`` only chooses; regions are
    intersected and points classified after feedback.
    """
    trace = Trace()
    H: set[int] = set()
    L: set[int] = set()
    U = set(range(len(replay.X)))
    low = dict.fromkeys(U, -math.inf)
    high = dict.fromkeys(U, math.inf)
    for t in range(1, rounds + 2):
        mean, sigma = replay.moments(trace.rows, trace.values, len(trace.values))
        for i in sorted(U):
            half = math.sqrt(beta(t)) * sigma[i]
            low[i] = max(low[i], mean[i] - half)
            high[i] = min(high[i], mean[i] + half)
            if low[i] + epsilon > threshold:
                H.add(i)
            elif high[i] - epsilon <= threshold:
                L.add(i)
        U = U - H - L
        trace.H.append(set(H))
        trace.L.append(set(L))
        trace.U.append(set(U))
        if not U or t == rounds + 1:
            break
        chosen: list[int] = []
        for _ in range(batch_size):
            mean, sigma = replay.moments(
                trace.rows + chosen, trace.values, len(trace.values)
            )
            ambiguity = {}
            for i in U:
                half = math.sqrt(beta(t)) * sigma[i]
                top, bottom = min(high[i], mean[i] + half), max(low[i], mean[i] - half)
                ambiguity[i] = min(top - threshold, threshold - bottom)
            chosen.append(lowest_best(ambiguity, replay.scale))
        for row in sorted(chosen):
            trace.values.append(replay.measure(row, len(trace.rows)))
            trace.rows.append(row)
    return trace


def greedy(
    replay: Replay,
    rows: list[int],
    values: list[float],
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: int,
) -> list[int]:
    r"""``q`` rows, each the best given the data and the planned rows before it."""
    chosen: list[int] = []
    for _ in range(q):
        mean, sigma = replay.moments(rows + chosen, values, len(values))
        scores = dict(enumerate(score(mean, sigma)))
        chosen.append(lowest_best(scores, replay.scale))
    return chosen
