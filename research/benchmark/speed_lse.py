r"""A whole LSE run against recomputing BoTorch's posterior for every decision."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_lse.functional.scores import straddle
from botorch_lse.strategies import LSEStrategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, target
from research.papers.problems import Problem, gp_sample
from research.report import Report, Table

SAMPLE_SIDE, DECISIONS, NOISE = 100, 300, 0.1
LENGTHSCALES = (0.1, 0.2)
CHUNKS = (64, 256, 1024, 4096)
SIZES = (1, 75, 150, 225, 300)


@dataclass(frozen=True)
class Timing:
    r"""What both ways took.

    Args:
        seconds: Of all our decisions.
        decisions: How many.
        botorch: Seconds of one BoTorch decision, by observations and chunk size.
    """

    seconds: float
    decisions: int
    botorch: dict[int, dict[int, float]]

    def botorch_seconds(self) -> float:
        r"""All decisions by BoTorch, at the fastest chunk size for each size."""
        sizes = sorted(self.botorch)
        fastest = [min(self.botorch[n].values()) for n in sizes]
        return float(np.interp(range(self.decisions), sizes, fastest).sum())


@entry("speed", "lse", "300 decisions on 10,000 rows, ours and BoTorch's posterior")
def speed_lse(options: Options) -> Report:
    r"""LSE against its targets."""
    timing = in_fresh_process(compare, SAMPLE_SIDE, DECISIONS, SIZES, CHUNKS)
    theirs = timing.botorch_seconds()
    ratio = theirs / timing.seconds
    rows = [
        (
            f"{timing.decisions} decisions (ask and tell)",
            "10 s",
            target(f"{timing.seconds:.2f} s", timing.seconds <= 10.0),
        ),
        ("the same with BoTorch's posterior", "", f"{theirs:.1f} s"),
        ("ratio", "20", target(f"{ratio:.0f}", ratio >= 20.0)),
    ]
    chunks = sorted(next(iter(timing.botorch.values())))
    details = Table(
        "BoTorch, milliseconds per decision by observations and rows per chunk",
        ("observations", *[str(c) for c in chunks]),
        [
            (n, *[f"{1e3 * by_chunk[c]:.0f}" for c in chunks])
            for n, by_chunk in sorted(timing.botorch.items())
        ],
    )
    notes = [
        f"{SAMPLE_SIDE**2:,} rows, one core, one process. Ours is measured in full. "
        f"BoTorch is measured at {', '.join(map(str, SIZES))} observations (a "
        "`SingleTaskGP` with fixed hyper-parameters on all data so far, "
        "`model.posterior(X.unsqueeze(-2))` in chunks of rows, straddle score, argmax; "
        "the faster of two), at the fastest chunk size for each, and interpolated "
        "linearly over the decisions.",
    ]
    data = {"seconds": timing.seconds, "botorch_seconds": theirs, "ratio": ratio}
    title = Table("LSE", ("what", "target", "measured"), rows)
    return Report("speed lse", notes, [title, details], (), data)


def compare(
    side: int, decisions: int, sizes: tuple[int, ...], chunks: tuple[int, ...]
) -> Timing:
    r"""Time ours in full and BoTorch's at some sizes, in this process."""
    pool, prior, truth = gp_sample(0, side, LENGTHSCALES)
    threshold = float(truth.quantile(0.7))
    problem = Problem(pool, truth, NOISE, threshold, 0.5, prior, 0)
    seconds, rows, y = _ours(problem, decisions)
    botorch = {
        n: {c: _botorch_decision(problem, rows[:n], y[:n], c) for c in chunks}
        for n in sizes
    }
    return Timing(seconds, len(y), botorch)


def _ours(problem: Problem, decisions: int) -> tuple[float, Tensor, Tensor]:
    strategy = LSEStrategy(
        problem.pool,
        problem.threshold,
        model=problem.prior,
        noise_std=problem.noise_std,
        beta=9.0,
        max_observations=decisions,
    )
    noise = problem.noise_generator()
    began = time.perf_counter()
    state = strategy.init(0)
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(problem.measure(batch.order, noise)))
    seconds = time.perf_counter() - began
    return seconds, state.observations.indices, state.observations.y


def _botorch_decision(problem: Problem, rows: Tensor, y: Tensor, chunk: int) -> float:
    r"""Seconds of the faster of two decisions with ``n`` observations."""
    X, seconds = problem.pool.X, []
    for _ in range(2):
        began = time.perf_counter()
        noise = torch.full((len(y), 1), NOISE**2, dtype=torch.float64)
        model = SingleTaskGP(
            X[rows],
            y.unsqueeze(-1),
            noise,
            covar_module=problem.prior.covar_module,
            mean_module=problem.prior.mean_module,
            outcome_transform=None,
        ).eval()
        scores = []
        with torch.no_grad():
            for part in X.split(chunk):
                posterior = model.posterior(part.unsqueeze(-2))
                mean, variance = posterior.mean, posterior.variance
                scores.append(
                    straddle(mean, variance.sqrt(), problem.threshold, 1.96**2)
                )
            torch.cat(scores).argmax()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
