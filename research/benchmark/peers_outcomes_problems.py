r"""Published problems of answers yes and no: latent functions, levels, mean errors.

Problems and errors are those of Letham et al. (2022), "Look-ahead acquisition functions
for Bernoulli level set estimation". The mean Brier scores were read off the vector
graphics that the authors keep beside their code (error about 0.001).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

CSF = Path(__file__).with_name("contrast_sensitivity.json")
"""The values of a fit, and what they are interpolated with."""
ROUNDING = 1e-6
"""The noise of these values, in units of the kernel's scale; they have three digits."""


@dataclass(frozen=True)
class Problem:
    r"""A latent function of the unit cube, and the level of its probability.

    Args:
        d: The number of inputs.
        level: The probability.
        latent: From ``n x d`` points to ``n`` latent values.
        published: For each method its mean Brier scores after 100, 250 and 500 trials,
            where the authors show them.
        chance: The share of answers that are right by chance, as whoever made the
            experiment knows; the published methods were not told.
    """

    d: int
    level: float
    latent: Callable[[Tensor], Tensor]
    published: dict[str, tuple[float | None, ...]]
    chance: float = 0.0


def low_dimensional(u: Tensor) -> Tensor:
    r"""Discrimination of a stimulus by its intensity and a context."""
    context, intensity = (2 * u - 1).unbind(dim=-1)
    slope = 0.05 + 0.4 * (0.2 * context - 1).square() * context.square()
    return (intensity + 1) / slope


def hartmann(u: Tensor) -> Tensor:
    r"""The Hartmann function of six inputs, shifted and scaled."""
    rates = [[8, 3, 10, 3.5, 1.7, 6], [0.5, 8, 10, 1, 6, 9],
             [3, 3.5, 1.7, 8, 10, 6], [10, 6, 0.5, 8, 1, 9]]  # fmt: skip
    centres = [[1312, 1696, 5569, 124, 8283, 5886],
               [2329, 4135, 8307, 3736, 1004, 9991],
               [2348, 1451, 3522, 2883, 3047, 6650],
               [4047, 8828, 8732, 5743, 1091, 381]]  # fmt: skip
    A, P = (torch.tensor(x, dtype=u.dtype) for x in (rates, centres))
    weights = torch.tensor([0.2, 0.22, 0.28, 0.3], dtype=u.dtype)
    far = (A * (u.unsqueeze(1) - 1e-4 * P).square()).sum(dim=-1)
    return -30 * ((-far).exp() @ weights - 0.1) - 2


def high_dimensional(u: Tensor) -> Tensor:
    r"""Discrimination with eight inputs and a guess rate of one half."""
    low = torch.tensor([-1, -1, 0.5, 0.05, 0.05, 0, 0, 0.5], dtype=u.dtype)
    high = torch.tensor([1, 1, 1.5, 0.15, 0.2, 0.9, 1.57, 2], dtype=u.dtype)
    x = (low + (high - low) * u).unbind(dim=-1)
    amplitude, frequency, scale, shift, spread, skew, phase, period = x
    wave = torch.cos(0.6 * math.pi * period * frequency + phase)
    tilt = 2 - skew - skew * torch.sin(0.3 * math.pi * period * frequency + phase)
    k = (-scale / 2 * wave + scale / 2 + shift) * tilt - 1
    z = (amplitude - k) / (2 * spread + spread * k)
    p = (0.5 + torch.special.ndtr(z) / 2).clamp(0.5, 1 - 1e-5)
    return torch.special.ndtri(p)


def contrast_sensitivity(u: Tensor) -> Tensor:
    r"""Sensitivity to contrast by six properties of a grating, fitted to answers.

    The inputs are contrast and pedestal (decadic logarithms, from -1.5 to 0), temporal
    frequency (0 to 20), spatial frequency (0.5 to 7), size (1 to 10) and eccentricity
    (0 to 10); one of two answers is right by chance, so that values are at least 0.

    ``contrast_sensitivity.json`` holds the posterior means of a Gaussian process with a
    squared exponential kernel and a constant mean, by expectation propagation from the
    1,001 answers, with the likeliest lengthscales under BoTorch's priors
    (``GaussianProcess(family="single", outcome=Binary())``), at the first 256
    Sobol points of the cube other than 0. Here they are interpolated by the same
    kernel. On 20,000 other points this differs from the fit by 0.002 (root of the mean
    square), and 99.9 % are on the fit's side of the level.

    Source:
        The answers are ``data/csf_dataset.csv`` in the repository of Letham et al.
        (2022), facebookresearch/bernoulli_lse, MIT licence, copyright Meta Platforms,
        Inc. and affiliates. Deviation: their truth is a variational fit with 100
        inducing points; it is not stored, so ours is another one of the same data.
        AEPsych 0.8.0's model, by default, has 98.5 % of the cube on the same side.
    """
    kernel, mean, points, weights = _csf()
    return (mean + kernel(u, points) @ weights).clamp_min(0.0)


@cache
def _csf() -> tuple[Callable[[Tensor, Tensor], Tensor], float, Tensor, Tensor]:
    r"""A kernel, a mean, ``256 x 6`` points and their weights."""
    stored = json.loads(CSF.read_text())
    lengthscales, values = (
        torch.tensor(stored[name], dtype=torch.float64)
        for name in ("lengthscales", "values")
    )
    n = len(values)
    points = SobolEngine(len(lengthscales)).draw(n + 1, dtype=torch.float64)[1:]

    def kernel(A: Tensor, B: Tensor) -> Tensor:
        far = torch.cdist(A / lengthscales, B / lengthscales)
        return (-0.5 * far.square()).exp()

    K = kernel(points, points) + ROUNDING * torch.eye(n, dtype=torch.float64)
    mean = stored["mean"]
    return kernel, mean, points, torch.linalg.solve(K, values - mean)


PROBLEMS = {
    # The last column is after 490 trials, where their runs end; 250 is not shown.
    "discrimination, 2-D": Problem(
        2,
        0.75,
        low_dimensional,
        {
            "EAVC": (0.059, None, 0.018),
            "GlobalMI": (0.057, None, 0.023),
            "ApproxGlobalSUR": (0.042, None, 0.019),
            "GlobalSUR": (0.050, None, 0.017),
            "Straddle": (0.045, None, 0.015),
            "LocalMI": (0.043, None, 0.017),
            "LocalSUR": (0.057, None, 0.022),
            "quasi-random": (0.067, None, 0.043),
        },
        chance=0.5,
    ),
    "Hartmann, 6-D": Problem(
        6,
        0.5,
        hartmann,
        {
            "EAVC": (0.377, 0.246, 0.187),
            "GlobalMI": (0.360, 0.233, 0.188),
            "ApproxGlobalSUR": (0.366, 0.244, 0.196),
            "GlobalSUR": (0.368, 0.233, 0.190),
            "Straddle": (0.335, 0.255, 0.214),
            "LocalMI": (0.377, 0.321, 0.297),
            "LocalSUR": (0.337, 0.238, 0.201),
            "quasi-random": (0.337, 0.248, 0.206),
        },
    ),
    "contrast sensitivity, 6-D": Problem(
        6,
        0.75,
        contrast_sensitivity,
        {
            "EAVC": (0.450, 0.264, 0.172),
            "GlobalMI": (0.431, 0.245, 0.167),
            "ApproxGlobalSUR": (0.453, 0.270, 0.171),
            "GlobalSUR": (0.491, 0.274, 0.165),
            "Straddle": (0.421, 0.251, 0.204),
            "LocalMI": (0.521, 0.348, 0.265),
            "LocalSUR": (0.527, 0.282, 0.184),
            "quasi-random": (0.436, 0.243, 0.181),
        },
        chance=0.5,
    ),
    "discrimination, 8-D": Problem(
        8,
        0.75,
        high_dimensional,
        {
            "EAVC": (0.429, 0.274, 0.168),
            "GlobalMI": (0.391, 0.233, 0.157),
            "ApproxGlobalSUR": (0.379, 0.236, 0.162),
            "GlobalSUR": (0.410, 0.284, 0.272),
            "Straddle": (0.360, 0.358, 0.247),
            "LocalMI": (0.390, 0.385, 0.348),
            "LocalSUR": (0.399, 0.337, 0.309),
            "quasi-random": (0.350, 0.234, 0.187),
        },
        chance=0.5,
    ),
}
