r"""How long all past posteriors take, and one more observation."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.confidence import ConstantBeta
from botorch_lse.confidence.regions import intersect_path, path_betas
from botorch_lse.models.gaussian_process import (
    GPPrior,
    PoolPosterior,
    PosteriorPath,
    row_blocks,
)
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, Cost, in_fresh_process, measured, target
from research.papers.problems import grid, matern_prior
from research.report import Report, Table

SIDE, OBSERVATIONS, NOISE_VAR = 100, 500, 0.01
LENGTHSCALES = (0.1, 0.2)


@entry("speed", "path", "all prefixes of 500 observations on 10,000 rows, and one more")
def speed_path(options: Options) -> Report:
    r"""The posterior path against its targets."""
    path = in_fresh_process(regions_of_all_prefixes, SIDE, OBSERVATIONS)
    more = in_fresh_process(one_more_observation, SIDE, OBSERVATIONS)
    mebibytes = path.peak / MIB
    rows = [
        (
            "factor, moments after every observation, regions",
            "2 s",
            target(f"{path.seconds:.2f} s", path.seconds <= 2.0),
        ),
        (
            "peak memory of that",
            "600 MB",
            target(f"{path.peak / 1e6:.0f} MB", path.peak <= 600e6),
        ),
        (
            f"one more observation (slowest of the last 20 of {OBSERVATIONS})",
            "30 ms",
            target(f"{1e3 * more:.1f} ms", more <= 0.03),
        ),
    ]
    table = Table("Posterior path", ("what", "target", "measured"), rows)
    notes = [
        f"{SIDE**2:,} rows, {OBSERVATIONS} observations, all {OBSERVATIONS + 1} "
        "prefixes in blocks of rows; one core, a fresh process, memory above what the "
        "libraries take.",
    ]
    data = {"seconds": path.seconds, "peak_mib": mebibytes, "one_more_seconds": more}
    return Report("speed path", notes, [table], (), data)


def regions_of_all_prefixes(side: int, n: int) -> Cost:
    r"""Regions ``C_n`` of ``side^2`` rows from all prefixes of ``n`` observations."""
    prior, X, rows, y, noise = _data(side, n)
    betas = path_betas(ConstantBeta(9.0), n)
    with measured() as cost, torch.no_grad():
        path = PosteriorPath.from_data(prior, prior.features(X[rows]), y, noise)
        for block in row_blocks(len(X), n):
            intersect_path(*path.moments(X[block]), betas)
    return cost


def one_more_observation(side: int, n: int) -> float:
    r"""Seconds of the slowest of the last 20 of ``n`` observations, one at a time."""
    prior, X, rows, y, noise = _data(side, n)
    posterior = PoolPosterior.start(prior, X)
    seconds = []
    for i in range(n):
        at = slice(i, i + 1)
        with measured() as cost:
            posterior = posterior.observe(rows[at], y[at], noise[at])
        seconds.append(cost.seconds)
    return max(seconds[-20:])


def _data(side: int, n: int) -> tuple[GPPrior, Tensor, Tensor, Tensor, Tensor]:
    r"""A prior, a pool, and rows, values and noise variances of ``n`` observations."""
    X, generator = grid(side), torch.Generator().manual_seed(0)
    rows = torch.randint(len(X), (n,), generator=generator)
    y = torch.randn(n, generator=generator, dtype=torch.float64)
    noise = torch.full((n,), NOISE_VAR, dtype=torch.float64)
    return matern_prior(LENGTHSCALES), X, rows, y, noise
