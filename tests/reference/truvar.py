r"""Algorithms 1 and 2 of Bogunovic et al. (2016) in dense NumPy, one step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.reference.dense_gp import DenseGP


@dataclass
class TruVaRReplay:
    r"""One row at a time; every posterior from a fresh solve over all data.

    Args:
        gp: The process.
        X: ``N x d`` rows.
        noise_var: ``N`` noise variances.
        value: From row and number of earlier measurements to a value.
        beta: From the first time index of an epoch to its squared width.
        threshold: The level; ``None``: find the maximiser.
        cost: From the row before (or ``None``) and a row to its cost.
    """

    gp: DenseGP
    X: np.ndarray
    noise_var: np.ndarray
    value: Callable[[int, int], float]
    beta: Callable[[int], float]
    threshold: float | None = None
    cost: Callable[[int | None, int], float] = lambda before, row: 1.0
    eta: float = 1.0
    ratio: float = 0.1
    delta_bar: float = 0.0
    monotone: bool = True
    only_open: bool = False
    anticipates: bool = False
    rows: list[int] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def posterior(self, more: list[int]) -> tuple[np.ndarray, np.ndarray]:
        r"""Mean by the data; variance by the data and ``more`` rows besides."""
        seen = self.rows + more
        mean, _ = self.gp.posterior(
            self.X, self.X[self.rows], np.array(self.y), self.noise_var[self.rows]
        )
        blank = np.zeros(len(seen))
        _, C = self.gp.posterior(self.X, self.X[seen], blank, self.noise_var[seen])
        return mean, np.maximum(np.diag(C), 0.0)

    def in_question(self, mean: np.ndarray, sd: np.ndarray, among: set[int]) -> set:
        r"""Eq. (5) or (6)."""
        half = math.sqrt(self.b) * sd
        if self.threshold is not None:
            inside = np.abs(mean - self.threshold) <= half
            return {v for v in among if inside[v]}
        best = max((mean - half)[v] for v in among)
        return {v for v in among if (mean + half)[v] >= best}

    def score(self, row: int) -> float:
        r"""Eq. (3)."""
        mean, now = self.posterior([])
        _, then = self.posterior([row])
        after = self.M
        if self.anticipates:
            after = self.in_question(mean, np.sqrt(then), self.M)
        sums = [
            sum(max(self.b * variance[v], self.eta**2) for v in counted)
            for variance, counted in ((now, self.M), (then, after))
        ]
        before = self.rows[-1] if self.rows else None
        return (sums[0] - sums[1]) / self.cost(before, row)

    def run(self, steps: int) -> list[dict]:
        r"""What holds after 0, 1, ... steps."""
        N = len(self.X)
        self.M, self.H, self.L = set(range(N)), set(), set()
        self.i, self.b, self.spent = 1, self.beta(1), 0.0
        trace = [self.snapshot()]
        for t in range(1, steps + 1):
            candidates = sorted(self.M) if self.only_open else range(N)
            scores = np.array([self.score(x) for x in candidates])
            x = list(candidates)[int((scores >= scores.max() * (1 - 1e-9)).argmax())]
            self.spent += self.cost(self.rows[-1] if self.rows else None, x)
            self.y.append(self.value(x, t - 1))
            self.rows.append(x)
            self.update(t)
            trace.append(self.snapshot())
            if len(self.M) == (0 if self.threshold is not None else 1):
                break
        return trace

    def update(self, t: int) -> None:
        r"""Algorithm 2 and lines 5 and 6 of Algorithm 1."""
        mean, variance = self.posterior([])
        sd = np.sqrt(variance)
        before = self.M if self.monotone else set(range(len(self.X)))
        if not self.monotone:
            self.H, self.L = set(), set()
        half = math.sqrt(self.b) * sd
        if self.threshold is not None:
            self.H |= {v for v in before if (mean - half)[v] > self.threshold}
            self.L |= {v for v in before if (mean + half)[v] < self.threshold}
        self.M = self.in_question(mean, sd, before)
        while self.M and max(math.sqrt(self.b) * sd[v] for v in self.M) <= (
            (1 + self.delta_bar) * self.eta
        ):
            self.i, self.eta, self.b = (
                self.i + 1,
                self.ratio * self.eta,
                self.beta(t + 1),
            )

    def snapshot(self) -> dict:
        r"""A copy of the sets and numbers."""
        return {
            "M": set(self.M),
            "H": set(self.H),
            "L": set(self.L),
            "epoch": self.i,
            "eta": self.eta,
            "beta": self.b,
            "spent": self.spent,
        }
