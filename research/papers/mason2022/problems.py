r"""Problems and contestants of Figures 2b, 2c, 3, 4 and 5 of Mason et al. (2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior, factorize
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    GaussianProcess,
    LSEStrategy,
    MELKStrategy,
    Strategy,
    TruVaRStrategy,
)
from research.papers.problems import NUGGET, Problem, grid

BETA, BATCH = 3.0**2, 10
POINTS, FINE_POINTS, SIDE = 200, 700, 25
RARE, COMMON = 0.1, 0.3


@dataclass(frozen=True)
class Panel:
    r"""One function family with one lengthscale and one noise.

    Args:
        figures: The figures it belongs to.
        function: ``"gp"``, ``"cos"`` or ``"cos sin"``.
        lengthscale: Of the model's kernel.
        noise_std: Of a measurement; also known to the model.
    """

    figures: tuple[str, ...]
    function: str
    lengthscale: float
    noise_std: float

    @property
    def key(self) -> str:
        r"""Short name, in tables and files."""
        return f"{self.function}, l {self.lengthscale:g}, sigma {self.noise_std:g}"

    def problem(self, seed: int) -> Problem:
        r"""The problem of one seed: another function (gp), else other noise."""
        pool = pools()[self.function]
        prior = rbf_prior(self.lengthscale)
        share = RARE if self.function == "gp" else COMMON
        truth = self._truth(pool, seed)
        threshold = float(truth.quantile(1.0 - share))
        omega = threshold / float(truth.max())
        return Problem(pool, truth, self.noise_std, threshold, omega, prior, seed)

    def _truth(self, pool: Pool, seed: int) -> Tensor:
        if self.function == "cos":
            return (8 * math.pi * pool.X[:, 0]).cos()
        if self.function == "cos sin":
            x, y = (2 * math.pi * pool.X).unbind(dim=-1)
            return x.cos() * y.sin()
        generator = torch.Generator().manual_seed(2 * seed)
        white = torch.randn(len(pool), generator=generator, dtype=torch.float64)
        return _factor(self.lengthscale) @ white


@lru_cache(maxsize=1)
def pools() -> dict[str, Pool]:
    r"""The pool of each function family."""
    return {
        "gp": Pool(_line(POINTS)),
        "cos": Pool(_line(FINE_POINTS)),
        "cos sin": Pool(grid(SIDE)),
    }


def _line(n: int) -> Tensor:
    return torch.linspace(0.0, 1.0, n, dtype=torch.float64).unsqueeze(-1)


@lru_cache(maxsize=8)
def rbf_prior(lengthscale: float) -> GPPrior:
    r"""``exp(-|x - x'|^2 / (2 l^2))``, zero mean."""
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return GPPrior.from_kernel(kernel)


@lru_cache(maxsize=4)
def _factor(lengthscale: float) -> Tensor:
    X = pools()["gp"].X
    with torch.no_grad():
        covariance = rbf_prior(lengthscale).covariance(X, X)
    return factorize(covariance, torch.full((len(X),), NUGGET, dtype=torch.float64))


def _panels(
    function: str, figure: str, scales: tuple[float, float], also: Panel | None = None
) -> list[Panel]:
    every = [Panel((figure,), function, s, noise) for s in scales for noise in (0.2, 1)]
    return [also if also is not None and p.key == also.key else p for p in every]


PANELS = (
    *_panels("gp", "3", (0.05, 0.1), Panel(("2b", "3"), "gp", 0.05, 1.0)),
    *_panels("cos", "4", (0.05, 0.1), Panel(("2c", "4"), "cos", 0.1, 0.2)),
    *_panels("cos sin", "5", (0.1, 0.2)),
)


def current_lse(
    pool: Pool,
    threshold: float,
    *,
    model: GPPrior,
    batch_size: int,
    noise_std: float,
    beta: float,
    max_observations: int,
) -> Strategy:
    r"""LSE on the current interval instead of the intersection of all so far.

    Arguments: see ``GPStrategy``.

    Source:
        Mason et al. (2022), Appendix F.1, their ``Q_t``.
    """
    found: Strategy = Strategy(
        pool,
        Above(threshold),
        model=GaussianProcess(model, noise_std),
        rule=Ambiguity(intersects=False),
        batch_size=batch_size,
        beta=beta,
        max_observations=max_observations,
    )
    return found


@dataclass(frozen=True)
class Method:
    r"""One contestant.

    Args:
        name: In tables and figures.
        kind: The strategy.
        batch: Measurements per round.
        options: Further arguments.
        main_only: Whether it runs in Figure 2b's setting only.
    """

    name: str
    kind: Callable[..., Strategy]
    batch: int = BATCH
    options: Mapping[str, Any] = field(default_factory=dict)
    main_only: bool = False

    def build(self, problem: Problem, n: int) -> Strategy:
        r"""The strategy for a problem and ``n`` measurements."""
        return self.kind(
            problem.pool,
            problem.threshold,
            model=problem.prior,
            batch_size=self.batch,
            noise_std=problem.noise_std,
            beta=BETA,
            max_observations=n,
            **self.options,
        )


METHODS = (
    Method("MELK", MELKStrategy, options={"rounding": "quota"}),
    Method("MELK i.i.d.", MELKStrategy, options={"rounding": "sample"}, main_only=True),
    Method("MELK F.1", MELKStrategy, options={"rounding": "sample", "design": "prior"}),
    Method("VR", TruVaRStrategy, options={"eta": 0.0}),
    Method("LSE", LSEStrategy, batch=1),
    Method("LSE F.1", current_lse, batch=1, main_only=True),
    Method("LSE, B = 10", LSEStrategy),
)
