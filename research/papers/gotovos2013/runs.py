r"""Run strategies on problems with a known truth and keep the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.datasets import f1_score
from botorch_lse.strategies import GPStrategy, State
from research.papers.gotovos2013.travel import path_length, visiting_order
from research.papers.problems import Problem


@dataclass(frozen=True, eq=False)
class Run:
    r"""One strategy on one problem, after each of ``k`` rounds.

    Args:
        evaluations: ``k`` numbers of measurements so far.
        f1: ``k`` scores of the strategy's answer; undecided rows count to the side of
            the posterior mean.
        judge_f1: ``k`` scores of the posterior mean alone, for all rows.
        length: ``k`` distances travelled so far; ``nan`` unless asked for.
        rows: ``n`` rows in the order in which they were visited.
    """

    evaluations: Tensor
    f1: Tensor
    judge_f1: Tensor
    length: Tensor
    rows: Tensor


@dataclass(frozen=True, eq=False)
class Curve:
    r"""Several runs of one strategy on a common axis.

    Args:
        evaluations: ``k`` numbers of measurements.
        f1: ``runs x k``; a run that stopped early keeps its last score.
        judge_f1: ``runs x k``.
        length: ``runs x k``.
    """

    evaluations: Tensor
    f1: Tensor
    judge_f1: Tensor
    length: Tensor

    @classmethod
    def of_runs(cls, runs: Sequence[Run], evaluations: Tensor) -> Curve:
        r"""The runs read at given numbers of measurements."""
        parts = []
        for run in runs:
            last = torch.searchsorted(run.evaluations, evaluations, right=True) - 1
            parts.append(torch.stack((run.f1, run.judge_f1, run.length))[:, last])
        f1, judge_f1, length = torch.stack(parts, dim=1)
        return cls(evaluations, f1, judge_f1, length)

    def at(self, evaluations: Tensor) -> Tensor:
        r"""``runs x m`` scores at ``m`` numbers of measurements of this axis."""
        return self.f1[:, torch.searchsorted(self.evaluations, evaluations)]

    def length_to(self, f1: float) -> Tensor:
        r"""``runs`` distances travelled when ``f1`` is first reached; else ``nan``."""
        reached = self.f1 >= f1
        first = reached.to(torch.uint8).argmax(dim=-1, keepdim=True)
        length = self.length.gather(-1, first).squeeze(-1)
        return torch.where(reached.any(dim=-1), length, torch.nan)


def run_strategy(problem: Problem, strategy: GPStrategy, travel: bool = False) -> Run:
    r"""Ask, measure with simulated noise, tell, until the strategy stops.

    Args:
        problem: What is measured.
        strategy: Who asks; needs ``max_observations`` to be sure to stop.
        travel: Whether to plan each batch's path (from the end of the path so far) and
            to add up distances between rows of ``pool.X``.
    """
    state, noise = strategy.init(problem.seed), problem.noise_generator()
    scores: list[tuple[int, float, float]] = []
    visited = torch.empty(0, dtype=torch.long)
    while not state.is_done:
        batch = strategy.ask(state)
        y = problem.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
        visited = torch.cat((visited, _order(problem, batch.order, visited, travel)))
        scores.append((len(visited), *_scores(problem, strategy, state)))
    evaluations, f1, judge_f1 = torch.tensor(scores, dtype=torch.float64).T
    counts = evaluations.long()
    length = torch.full_like(f1, torch.nan)
    if travel:
        length = path_length(problem.pool.X[visited])[counts - 1]
    return Run(counts, f1, judge_f1, length, visited)


def _scores(
    problem: Problem, strategy: GPStrategy, state: State
) -> tuple[float, float]:
    answer = state.classification
    region = strategy.goal.region([answer.mean])
    assert region is not None  # a level, or a share of the maximum
    return (
        f1_score(answer.best_guess, problem.above),
        f1_score(answer.mean > region.level, problem.above),
    )


def _order(problem: Problem, rows: Tensor, visited: Tensor, travel: bool) -> Tensor:
    if not travel or len(rows) == 1:
        return rows
    X = problem.pool.X
    start = X[visited[-1]] if len(visited) else None
    return rows[visiting_order(X[rows], start)]
