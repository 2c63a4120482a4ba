r"""The widths of Theorem 1 where each result is learnt from as it comes."""

from __future__ import annotations

import heapq
from functools import partial

import torch

from botorch_lse.confidence import UnionBeta
from botorch_lse.data.observations import Observations
from botorch_lse.rules.base import Rule
from botorch_lse.strategies import Above, Ambiguity, GaussianProcess, State, Strategy
from research.benchmark.guarantee import Form, ScaledBeta, guarantee_report
from research.benchmark.guarantee_lse import DELTA, LIMIT, NOISE, explicit_problem
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem
from research.report import Report

WORKERS = 8
SLOW, TIMES = 0.1, 20.0
"""The share of measurements that take long, and how much longer."""
EPSILON = 0.2

NOTES = (
    "f drawn from a zero-mean Gaussian process of unit variance (Matern-5/2, "
    "lengthscale 0.25) on a grid of 16 x 16 rows, exact hyper-parameters, noise "
    f"standard deviation {NOISE:g}, level 0.5, epsilon = {EPSILON:g}, delta = "
    f"{DELTA:g}; run k uses seed k.",
    f"{WORKERS} workers are never idle: as soon as one has ended, its result is told "
    "and a further row is planned in the knowledge of the others. One measurement in "
    f"{1 / SLOW:g} takes {TIMES:g} times as long, whatever its value, so that results "
    "come in another order than they were asked for.",
    "A run is wrong if any decided row lies on the other side of the level by more "
    f"than epsilon. It ends when all rows are decided, or after {LIMIT} measurements.",
)


@entry("guarantee", "asynchronous", "results learnt from as they come, with stragglers")
def guarantee_asynchronous(options: Options) -> Report:
    r"""How often the widths are wrong where results come in any order."""
    forms = [form("LSE", Ambiguity()), form("the default", None)]
    return guarantee_report(
        "guarantee asynchronous",
        NOTES,
        forms,
        explicit_problem,
        options,
        DELTA,
        EPSILON,
        as_they_come,
    )


def form(name: str, rule: Rule | None) -> Form:
    r"""A rule with the theorem's widths, one measurement at a time."""
    return Form(name, partial(_build, rule))


def _build(rule: Rule | None, problem: Problem, divisor: float) -> Strategy:
    beta = None
    if divisor != 1.0:
        beta = ScaledBeta(UnionBeta(len(problem.pool), DELTA), divisor)
    return Strategy(
        problem.pool,
        Above(problem.threshold, EPSILON),
        model=GaussianProcess(problem.prior, noise_std=problem.noise_std),
        rule=rule,
        delta=DELTA,
        beta=beta,
        max_observations=LIMIT,
    )


def as_they_come(
    strategy: Strategy, problem: Problem, seed: int, workers: int = WORKERS
) -> State:
    r"""A run on workers of which none waits for another.

    Args:
        strategy: One without ``batch_size``.
        problem: What is measured.
        seed: Of the run; it also says how long each measurement takes.
        workers: How many measure at the same time.
    """
    state, noise = strategy.init(seed), problem.noise_generator()
    times = torch.Generator().manual_seed(1_000_003 + seed)
    clock, n_started = 0.0, 0
    out: list[tuple[float, int, int]] = []  # when it ends, its number, its row
    while True:
        while not state.is_done and len(out) < workers:
            pending = torch.tensor([row for *_, row in out], dtype=torch.long)
            if strategy.room(state, pending) == 0:
                break
            row = int(strategy.ask(state, pending).order[0])
            long, takes = torch.rand(2, generator=times, dtype=torch.float64).tolist()
            takes = (0.5 + takes) * (TIMES if long < SLOW else 1.0)
            heapq.heappush(out, (clock + takes, n_started, row))
            n_started += 1
        if not out or state.is_done:
            return state
        clock, _, row = heapq.heappop(out)
        y = problem.measure(torch.tensor([row]), noise)
        state = strategy.tell(state, Observations(torch.tensor([row]), y))
