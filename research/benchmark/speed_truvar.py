r"""One TruVaR decision, and BoTorch's look-ahead on the same pool and targets."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_lse.acquisition import qTruVaR
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import TruVaRStrategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, Cost, in_fresh_process, measured, target
from research.papers.problems import grid, matern_prior
from research.report import Report, Table

OBSERVATIONS, NOISE = 50, 0.1
SMALL, LARGE = 50, 100
"""Sides of the grids: 2,500 and 10,000 rows, all of them candidates and targets."""
CHUNKS = (1, 4, 16)
SAMPLED = 16
"""Candidates on which BoTorch is timed, spread over the pool; the whole is a multiple
of their time."""
BETA, ETA = 9.0, 0.5
LENGTHSCALES = (0.1, 0.2)


@dataclass(frozen=True)
class Comparison:
    r"""Seconds for all candidates.

    Args:
        ours: ``qTruVaR`` with ``eta = 0``, targets prepared included.
        theirs: BoTorch's, by chunk size, from a sample of candidates.
        apart: The largest relative difference of the two values.
    """

    ours: float
    theirs: dict[int, float]
    apart: float


@entry("speed", "truvar", "one decision on 2,500 and 10,000 rows, and BoTorch's")
def speed_truvar(options: Options) -> Report:
    r"""TruVaR against its targets."""
    rows = []
    for side, seconds, memory in ((SMALL, 0.5, None), (LARGE, 20.0, 1.5)):
        n = f"{side**2:,} x {side**2:,}"
        for name, work in (("qTruVaR", evaluate), ("TruVaRStrategy", decide)):
            cost = in_fresh_process(work, side)
            took = target(f"{cost.seconds:.2f} s", cost.seconds <= seconds)
            peak = f"{cost.peak / MIB:.0f} MiB"
            if memory is not None:
                peak = target(peak, cost.peak <= memory * 1e9)
            limit = f"{seconds:g} s" + (f", {memory:g} GB" if memory else "")
            rows.append((f"{name}, {n}", limit, took, peak))
    found = in_fresh_process(compare, SMALL)
    fastest = min(found.theirs.values())
    ratio = fastest / found.ours
    rows += [
        ("BoTorch's qNegIntegratedPosteriorVariance", "", f"{fastest:.1f} s", ""),
        ("ratio", "tens", target(f"{ratio:.0f}", ratio >= 10.0), ""),
    ]
    details = Table(
        f"BoTorch, seconds for {SMALL**2:,} candidates by candidates per call",
        ("candidates per call", "seconds"),
        [(c, f"{s:.1f}") for c, s in found.theirs.items()],
    )
    notes = [
        f"{OBSERVATIONS} observations, Matern-5/2, every row candidate and target, "
        f"eta = {ETA:g}. One core, a fresh process each; memory above what the "
        "libraries take. The strategy's time is that of `ask`.",
        f"Both on {SMALL**2:,} rows with eta = 0 in one process. BoTorch is timed on "
        f"{SAMPLED} candidates and multiplied; the faster of two calls after a first "
        "one, at the fastest number of candidates per call. Values agree up to a "
        f"relative difference of {found.apart:.1e}.",
    ]
    data = {"botorch_seconds": fastest, "ratio": ratio}
    columns = ("what", "target", "seconds", "peak memory")
    table = Table("TruVaR", columns, rows)
    return Report("speed truvar", notes, [table, details], (), data)


def evaluate(side: int) -> Cost:
    r"""``qTruVaR`` for all rows and targets."""
    model, X = _model(side)
    with measured() as cost, torch.no_grad():
        acqf = qTruVaR(model, X, beta=BETA, eta=ETA, noise_var=NOISE**2)
        acqf(X.unsqueeze(-2)).argmax()
    return cost


def decide(side: int) -> Cost:
    r"""``ask`` with every row a candidate and all in question."""
    pool, prior = Pool(grid(side)), matern_prior(LENGTHSCALES)
    strategy = TruVaRStrategy(
        pool, 0.0, model=prior, noise_std=NOISE, beta=1e6, eta=0.1 * 1e3
    )
    rows = _rows(len(pool))
    told = Observations(rows, torch.zeros(len(rows)))
    state = strategy.tell(strategy.init(), told)
    with measured() as cost:
        strategy.ask(state)
    return cost


def compare(side: int) -> Comparison:
    r"""Ours in full and BoTorch's on some candidates, in this process."""
    model, X = _model(side)
    ours = []
    with torch.no_grad():
        for _ in range(3):
            began = time.perf_counter()
            acqf = qTruVaR(model, X, beta=1.0, noise_var=NOISE**2)
            values = acqf(X.unsqueeze(-2))
            ours.append(time.perf_counter() - began)
        before = float(model.posterior(X.unsqueeze(-2)).variance.mean())
        sample = torch.linspace(0, len(X) - 1, min(SAMPLED, len(X))).long()
        theirs, found = {}, values.new_empty(len(sample))
        for chunk in CHUNKS:
            seconds, found = _botorch(model, X, sample, chunk)
            theirs[chunk] = seconds * len(X) / len(sample)
    same = values[sample] / len(X)
    apart = float(((before + found - same).abs() / same).max())
    return Comparison(min(ours), theirs, apart)


def _botorch(
    model: SingleTaskGP, X: Tensor, rows: Tensor, chunk: int
) -> tuple[float, Tensor]:
    acqf = qNegIntegratedPosteriorVariance(model, mc_points=X)
    candidates = X[rows].unsqueeze(-2)
    acqf(candidates[:chunk])  # fills the caches
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        values = torch.cat([acqf(part) for part in candidates.split(chunk)])
        seconds.append(time.perf_counter() - began)
    return min(seconds), values


def _model(side: int) -> tuple[SingleTaskGP, Tensor]:
    r"""A model with a learned noise, for BoTorch's look-ahead, and the pool."""
    X, prior = grid(side), matern_prior(LENGTHSCALES)
    rows = _rows(len(X))
    model = SingleTaskGP(
        X[rows],
        (6.0 * X[rows].sum(dim=-1, keepdim=True)).sin(),
        covar_module=prior.covar_module,
        mean_module=prior.mean_module,
        outcome_transform=None,
    )
    model.likelihood.noise = NOISE**2
    return model.eval().requires_grad_(False), X


def _rows(n: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(n, generator=generator)[:OBSERVATIONS]
