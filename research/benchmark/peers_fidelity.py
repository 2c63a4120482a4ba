r"""Predictions of a target by levels of a fidelity, of several models of these.

Exact values of functions of two inputs at levels ``t`` up to 1, the target: 12 of each
other level and 6 of the target, at random rows of 128; or 40 from before a run, each at
a level of its own between 0.2 and 0.9, and 6 of the target. The error of a mesh that
falls with its square, sums in place of an integral, Currin's function with a part that
only fine levels have (Xiong, Qian and Wu 2013 have it with two levels), a hill that
moves with the level, and Branin's function with one parameter that does.

The covariance of levels in ``FidelityDiscrepancies`` was chosen by the mesh and by
Currin's function.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression_fidelity import SingleTaskMultiFidelityGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.distributions import Normal

from botorch_lse import Pool
from botorch_lse.models import Autoregressive, Discrepancies, FidelityDiscrepancies
from botorch_lse.models.sources import SourceModel, fit_sources
from research.benchmark.registry import Options, entry
from research.report import Report, Table

ROWS, CHEAP, DEAR, SEEDS, QUICK_SEEDS = 128, 12, 6, 3, 1
LEVELS = ((0.25, 0.5, 1.0), (0.2, 0.4, 0.6, 0.8, 1.0))
OLD, LOW, HIGH = 40, 0.2, 0.9
"""Old values, and between which levels they are."""
LEAST = 1e-6
"""The least deviation by which an error is divided."""

Function = Callable[[Tensor, Tensor], Tensor]


def mesh(X: Tensor, t: Tensor) -> Tensor:
    r"""A function with the error of a mesh, of second order and a smaller one."""
    a, b = X.unbind(dim=-1)
    error = (1 - t).square() * (0.8 * torch.cos(7 * a + 2 * b) + 0.5)
    error += 0.3 * (1 - t) ** 4 * torch.sin(9 * b)
    return torch.sin(5 * a) * torch.cos(4 * b) + a + error


def integral(X: Tensor, t: Tensor) -> Tensor:
    r"""A sum of few terms, or of 32 at the target, in place of an integral."""
    found = []
    for (a, b), level in zip(X.tolist(), t.tolist(), strict=True):
        n = round(2 + 30 * level**2)
        u = torch.arange(n, dtype=torch.float64) / n
        found.append((torch.sin(3 * a + 6 * b * u) * (1 + 2 * a * u)).mean())
    return torch.stack(found)


def currin(X: Tensor, t: Tensor) -> Tensor:
    r"""Currin's exponential function, whose factor is missing at ``t = 0``."""
    a, b = X.unbind(dim=-1)
    above = 2300 * a**3 + 1900 * a**2 + 2092 * a + 60
    below = 100 * a**3 + 500 * a**2 + 4 * a + 20
    return (1 - t * (-1 / (2 * b.clamp_min(1e-6))).exp()) * above / below / 4


def hill(X: Tensor, t: Tensor) -> Tensor:
    r"""A hill on waves, which moves and grows away from ``t = 1``."""
    a, b = X.unbind(dim=-1)
    squared = (a - 0.6 + 0.1 * (1 - t)).square() + (b - 0.4).square()
    found = (3 * a - 1).sin() + (-8 * squared).exp() * (1.5 - 0.5 * t)
    return found + 0.3 * (1 - t) * (4 * b).sin()


def branin(X: Tensor, t: Tensor) -> Tensor:
    r"""Minus the root of Branin's function, the ``b`` of which is less at low ``t``."""
    x, z = 15 * X[:, 0] - 5, 15 * X[:, 1]
    b = 5.1 / (4 * math.pi**2) - 0.1 * (1 - t)
    inner = (z - b * x.square() + 5 / math.pi * x - 6).square()
    found = inner + 10 * (1 - 1 / (8 * math.pi)) * x.cos() + 10
    return -found.clamp_min(0).sqrt()


FUNCTIONS: dict[str, Function] = {
    "mesh": mesh,
    "currin": currin,
    "integral": integral,
    "hill": hill,
    "branin": branin,
}
MODELS: dict[str, SourceModel | None] = {
    "the likeliest of four": None,
    "Discrepancies": Discrepancies(),
    "Autoregressive": Autoregressive(),
    "FidelityDiscrepancies": FidelityDiscrepancies(),
}
OF_ALL: dict[str, SourceModel | None] = {
    "FidelityDiscrepancies": FidelityDiscrepancies()
}
"""The models that take values of any level."""
BOTORCH = {"BoTorch, linear truncated": True, "BoTorch, downsampling": False}


@entry("peers", "fidelity", "predictions by levels of a fidelity")
def peers_fidelity(options: Options) -> Report:
    r"""Medians over the seeds."""
    seeds = QUICK_SEEDS if options.quick else SEEDS
    rows = []
    for name, function in FUNCTIONS.items():
        for levels in (*LEVELS, None):
            found = [scores(function, levels, seed) for seed in range(seeds)]
            for model in found[0]:
                middle = (
                    torch.tensor([one[model] for one in found]).median(dim=0).values
                )
                n = len(levels) if levels else "any"
                rows.append((name, n, model, *(f"{x:.2f}" for x in middle)))
    first = ("function", "levels", "model", "error", "error by deviation", "loss")
    notes = [
        "The root of the mean squared error by the spread of the target, that of "
        "errors by the model's deviations (1 where it is right), and minus the mean "
        f"log density of the truth; medians of {seeds} seeds.",
    ]
    return Report("peers fidelity", notes, [Table("Predictions", first, rows)], ())


def scores(
    function: Function, levels: tuple[float, ...] | None, seed: int
) -> dict[str, tuple[float, float, float]]:
    r"""The scores of each model.

    Args:
        function: The function.
        levels: The levels of the values; ``None``: each old value has one of its own.
        seed: The seed of rows and levels.
    """
    generator = torch.Generator().manual_seed(seed)
    plan = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], ROWS, seed=seed)
    named = levels or LEVELS[0]
    M = len(named)
    pool = plan.at_sources(named, costs=(1,) * M, noise_var=(0,) * M)
    cheap = CHEAP if levels else 0
    numbers = [DEAR if level == 1 else cheap for level in named]
    rows = torch.cat(
        [
            i * ROWS + torch.randperm(ROWS, generator=generator)[:k]
            for i, k in enumerate(numbers)
        ]
    )
    X, models = pool.X[rows], MODELS
    if levels is None:
        old = torch.rand(OLD, 3, generator=generator, dtype=torch.float64)
        old[:, 2] = LOW + (HIGH - LOW) * old[:, 2]
        X, models = torch.cat((old, X)), OF_ALL
    t = X[:, 2]
    y = function(X[:, :2], t)
    truth = function(plan.X, torch.ones(ROWS, dtype=torch.float64))
    found = {}
    for name, model in models.items():
        prior = fit_sources(model, X, y.unsqueeze(-1), 0 * y.unsqueeze(-1), pool)
        own = prior.given(X, y, torch.full_like(y, 1e-8))
        with torch.no_grad():
            F = own.features(pool.X[pool.of_target])
            found[name] = _score(own.mean(F), own.variance(F).sqrt(), truth)
    for name, is_linear in BOTORCH.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that BoTorch tries again
            found[name] = _botorch(X[:, :2], t, y, plan.X, truth, is_linear)
    return found


def _botorch(
    X: Tensor, t: Tensor, y: Tensor, at: Tensor, truth: Tensor, is_linear: bool
) -> tuple[float, float, float]:
    noise = torch.full_like(y, 1e-6 * float(y.var())).unsqueeze(-1)
    gp = SingleTaskMultiFidelityGP(
        torch.cat((X, t.unsqueeze(-1)), dim=-1),
        y.unsqueeze(-1),
        train_Yvar=noise,
        data_fidelities=[2],
        linear_truncated=is_linear,
        outcome_transform=Standardize(1),
    )
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    except ModelFittingError:
        return (torch.nan,) * 3
    with torch.no_grad():
        post = gp.posterior(torch.cat((at, torch.ones_like(at[:, :1])), dim=-1))
        return _score(post.mean[:, 0], post.variance[:, 0].sqrt(), truth)


def _score(mean: Tensor, sigma: Tensor, truth: Tensor) -> tuple[float, float, float]:
    error, sigma = mean - truth, sigma.clamp_min(LEAST)
    return (
        float(error.square().mean().sqrt() / truth.std()),
        float((error / sigma).square().mean().sqrt()),
        -float(Normal(mean, sigma).log_prob(truth).mean()),
    )
