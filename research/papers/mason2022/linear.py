r"""LSE and LSE_imp on linear features with frequentist widths, many runs at once.

Runs take 10^4 to 10^6 measurements one by one, out of reach for a posterior over the
whole past. Here a run keeps ``A^-1`` (``m x m``) and the moments of its rows, and a
measurement is one rank-one update. All runs step together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED, explicit_sides
from botorch_lse.functional.scores import ambiguity

NOISE_BLOCK = 1024

Width = Callable[[int, Tensor], Tensor]
"""From measurements and ``runs`` realised information to ``runs x 1`` factors."""


@dataclass(frozen=True)
class RKHSWidth:
    r"""``sqrt(beta_t) = B + sigma sqrt(2 (gamma_{t-1} + 1 + log(1 / delta)))``.

    With ``A = lambda I + sum x x'``, ``lambda = 1``, the interval ``x' theta_hat +-
    sqrt(beta_t) |x|_{A^-1}`` holds for all rows and all ``t`` at once with probability
    ``1 - delta``, if ``|theta| <= B``.

    Args:
        dimension: ``d`` of the bound ``gamma_t <= d / 2 log(1 + t / d)``, for rows of
            norm at most 1; ``None``: the information that the run's own measurements
            really gave, which the same proof allows.
        bound: ``B``.
        noise_std: ``sigma``.
        delta: The failure probability.

    Source:
        Chowdhury and Gopalan (2017), Theorem 2, in the limit of its regularisation 1 +
        eta; the bound is Srinivas et al. (2010), Theorem 5, with its constants. With
        ``None``: Abbasi-Yadkori et al. (2011), Theorem 2, up to the added 1.
    """

    dimension: int | None
    bound: float
    noise_std: float
    delta: float

    def __call__(self, n: int, information: Tensor) -> Tensor:
        r"""The factor of the norms after ``n`` measurements, ``runs x 1``.

        Args:
            n: Measurements so far, ``t - 1``.
            information: ``runs`` realised ``1/2 log det A``, nats.
        """
        if self.dimension is not None:
            d = self.dimension
            information = torch.full_like(information, d / 2 * math.log1p(n / d))
        root = (2 * (information + 1 + math.log(1 / self.delta))).sqrt()
        return (self.bound + self.noise_std * root).unsqueeze(-1)


class Ended(NamedTuple):
    r"""How a run ended.

    Args:
        measurements: Until every row was decided; the limit if it was not.
        side: ``N`` codes.
    """

    measurements: int
    side: Tensor


@dataclass(eq=False)
class LinearRuns:
    r"""The running state of ``R`` runs, changed in place.

    Args:
        X: ``R x N x m`` features.
        truth: ``R x N`` values.
        generators: ``R`` noise streams.
        noise_std: The noise standard deviation.
    """

    X: Tensor
    truth: Tensor
    generators: list[torch.Generator]
    noise_std: float

    def __post_init__(self) -> None:
        R, N, m = self.X.shape
        self.n = 0
        self.ids = torch.arange(R)
        self.inverse = torch.eye(m, dtype=self.X.dtype).repeat(R, 1, 1)
        self.mean = torch.zeros(R, N, dtype=self.X.dtype)
        self.norms = self.X.square().sum(dim=-1)
        self.information = torch.zeros(R, dtype=self.X.dtype)
        self.lower = torch.full_like(self.mean, -torch.inf)
        self.upper = torch.full_like(self.mean, torch.inf)
        self.side = torch.zeros(R, N, dtype=torch.int8)
        self.candidates = torch.ones(R, N, dtype=torch.bool)
        self._noise = torch.empty(R, 0, dtype=self.X.dtype)

    def measure(self, rows: Tensor) -> None:
        r"""One more measurement in each run, at ``R`` rows."""
        if self.n % NOISE_BLOCK == 0:
            self._noise = torch.stack([self._draw(g) for g in self.generators])
        noise = self.noise_std * self._noise[:, self.n % NOISE_BLOCK]
        at = rows.unsqueeze(-1)
        x = self.X.gather(1, at.unsqueeze(-1).expand(-1, 1, self.X.shape[-1]))
        u = x @ self.inverse  # R x 1 x m
        cross = (self.X @ u.mT).squeeze(-1)  # R x N
        gain = 1 + cross.gather(1, at)
        y = self.truth.gather(1, at) + noise.unsqueeze(-1)
        step = cross / gain
        self.mean += step * (y - self.mean.gather(1, at))
        self.norms -= step * cross
        self.inverse -= u.mT @ (u / gain.unsqueeze(-1))
        self.information += 0.5 * gain.squeeze(-1).log()
        self.n += 1

    def _draw(self, generator: torch.Generator) -> Tensor:
        return torch.randn(NOISE_BLOCK, generator=generator, dtype=self.X.dtype)

    def intersect(self, width: Width) -> None:
        r"""The regions with the current interval."""
        half = width(self.n, self.information) * self.norms.clamp_min(0.0).sqrt()
        self.lower = torch.maximum(self.lower, self.mean - half)
        self.upper = torch.minimum(self.upper, self.mean + half)

    def keep(self, runs: Tensor) -> None:
        r"""Forget the runs whose entry in the mask ``runs`` is false."""
        for name in (
            *("X", "truth", "ids", "inverse", "mean", "norms", "information"),
            *("lower", "upper", "side", "candidates", "_noise"),
        ):
            setattr(self, name, getattr(self, name)[runs])
        self.generators = [self.generators[int(i)] for i in runs.nonzero()]


@dataclass(frozen=True)
class ExplicitRule:
    r"""LSE: measure the most ambiguous undecided row.

    Args:
        threshold: The level.

    Source:
        Gotovos et al. (2013), Algorithm 1.
    """

    threshold: float

    def decide(self, runs: LinearRuns) -> None:
        r"""Lines 5 to 10."""
        now = explicit_sides(runs.lower, runs.upper, self.threshold, 0.0)
        runs.side = torch.where(runs.candidates, now, runs.side)
        runs.candidates = runs.side == UNDECIDED

    def choose(self, runs: LinearRuns) -> Tensor:
        r"""The next row of each of ``R`` runs."""
        scores = ambiguity(runs.lower, runs.upper, self.threshold)
        return scores.masked_fill_(~runs.candidates, -torch.inf).argmax(dim=-1)


@dataclass(frozen=True)
class ImplicitRule:
    r"""LSE_imp: measure the widest region among undecided rows and maximisers.

    Args:
        omega: The level as a share of the maximum.

    Source:
        Gotovos et al. (2013), Algorithm 2, with erratum 4
        (papers/gotovos2013/errata.md); the rules of
        ``Sides.update_implicit`` for many runs at once.
    """

    omega: float

    def decide(self, runs: LinearRuns) -> None:
        r"""Lines 4 to 15."""
        Z = runs.candidates
        best = runs.upper.masked_fill(~Z, -torch.inf).amax(dim=-1, keepdim=True)
        pessimistic = runs.lower.masked_fill(~Z, -torch.inf).amax(dim=-1, keepdim=True)
        open_ = runs.side == UNDECIDED
        above = open_ & (runs.lower >= self.omega * best)
        below = open_ & ~above & (runs.upper <= self.omega * pessimistic)
        runs.side = runs.side + above.to(torch.int8) - below.to(torch.int8)
        runs.candidates = Z & ~((above | below) & (runs.upper < pessimistic))

    def choose(self, runs: LinearRuns) -> Tensor:
        r"""The next row of each of ``R`` runs."""
        widths = runs.upper - runs.lower
        return widths.masked_fill_(~runs.candidates, -torch.inf).argmax(dim=-1)


def run_linear(
    runs: LinearRuns, rule: ExplicitRule | ImplicitRule, width: Width, limit: int
) -> list[Ended]:
    r"""Measure until every row of every run is decided, or ``limit`` measurements."""
    ended: dict[int, Ended] = {}
    while True:
        runs.intersect(width)
        rule.decide(runs)
        open_ = (runs.side == UNDECIDED).any(dim=-1)
        stop = ~open_ if runs.n < limit else torch.ones_like(open_)
        if bool(stop.any()):
            for i in stop.nonzero().view(-1).tolist():
                ended[int(runs.ids[i])] = Ended(runs.n, runs.side[i].clone())
            runs.keep(~stop)
            if not runs.generators:
                return [ended[i] for i in sorted(ended)]
        runs.measure(rule.choose(runs))


def wrong_rows(side: Tensor, above: Tensor) -> int:
    r"""How many decided rows are on the other side."""
    wrong = ((side == ABOVE) & ~above) | ((side == BELOW) & above)
    return int(wrong.sum())
