r"""One run of a rule with a fixed budget, and how many rows are on a wrong side."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    ComposedStrategy,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    Goal,
    MutualInformation,
    Random,
    RandomizedStraddle,
    RowCosts,
    Rule,
    State,
    Straddle,
    Strategy,
    TargetedVariance,
    TruncatedVariance,
    UFunction,
    Variance,
)
from botorch_lse.strategies.composed import default_rule
from research.benchmark.peers_packages import Package, started
from research.benchmark.peers_problems import PROBLEMS, Case
from research.benchmark.recorded import Recorded
from research.benchmark.trust_runs import refits_after_growth

FIRST_PER_INPUT = 10
"""Rows per input, drawn at random, that are measured before any method chooses: as many
as a learnt model's own initial design has."""


@dataclass(frozen=True)
class Method:
    r"""A rule under comparison.

    Args:
        rule: The rule, or what makes it for a pool.
        beta: The squared width that decides; ``None``: the theorem's, or the rule's
            own.
        epsilon: The accuracy of the goal, as a share of the range of the values.
    """

    rule: Rule | Callable[[Pool], Rule]
    beta: float | None = None
    epsilon: float = 0.0

    def on(self, pool: Pool) -> Rule:
        r"""The rule for a pool."""
        return self.rule if isinstance(self.rule, Rule) else self.rule(pool)


def truvar(pool: Pool) -> Rule:
    r"""TruVaR's rule where every row costs the same."""
    return TruncatedVariance(RowCosts(pool))


def default(pool: Pool) -> Rule:
    r"""What users get who choose no rule, on any level."""
    return default_rule(Above(0.0), pool)


DEFAULT = "default"
"""Its name among the methods."""
METHODS: dict[str, Method] = {
    DEFAULT: Method(default),
    "Straddle": Method(Straddle()),
    "LSE": Method(Ambiguity()),
    "LSE, beta 9": Method(Ambiguity(), beta=9.0, epsilon=0.02),
    "TruVaR": Method(truvar),
    "randomised": Method(RandomizedStraddle()),
    "SUR": Method(ExpectedMisclassification()),
    "tIMSE": Method(TargetedVariance()),
    "GlobalMI": Method(MutualInformation()),
    "Bichon": Method(ExpectedFeasibility()),
    "U": Method(UFunction()),
    "variance": Method(Variance()),
    "random": Method(Random()),
}
"""All methods by name: a new one is one line."""


@dataclass(frozen=True)
class Job:
    r"""What to run: a function of these alone.

    Args:
        problem: A name in ``PROBLEMS``.
        method: A name in ``METHODS``, or of a peer's package.
        q: Measurements per round.
        noise: The noise's standard deviation, as a share of the range of the values.
        is_learnt: Whether the model is learnt, or fixed beforehand.
        n_chosen: Measurements that the rule chooses, after the first rows.
        seed: Of the problem, if it is random, of the first rows, and of the noise.
    """

    problem: str
    method: str
    q: int
    noise: float
    is_learnt: bool
    n_chosen: int
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        n_rows: Rows of the pool.
        wrong: How many of them the mean has on the wrong side of the level, after the
            first rows and after each round.
        seconds: What choosing a measurement took, mean over all; for a peer's package
            from the values to the next rows, so that what it does with them counts.
    """

    job: Job
    n_rows: int
    wrong: tuple[int, ...]
    seconds: float

    @property
    def late_error(self) -> float:
        r"""The share of wrong rows, mean over the second half of the rounds."""
        late = self.wrong[(len(self.wrong) + 1) // 2 :]
        return sum(late) / len(late) / self.n_rows


@dataclass(frozen=True, eq=False)
class Measurements:
    r"""Noisy values, the k-th of a row being the same for whatever method asks for it.

    Args:
        truth: ``N`` values.
        noise: ``n x N`` deviations: at most ``n`` measurements of one row.
    """

    truth: Tensor
    noise: Tensor

    @classmethod
    def of_case(cls, case: Case, noise_std: float, n: int, seed: int) -> Measurements:
        r"""The measurements of a seed; more of them begin with the same ones."""
        generator = torch.Generator().manual_seed(2 * seed + 1)
        size = (n, len(case.truth))
        white = torch.randn(size, generator=generator, dtype=torch.float64)
        return cls(case.truth, noise_std * white)

    def of(self, rows: Tensor, before: Tensor) -> Tensor:
        r"""One value for each of the rows.

        Args:
            rows: ``q`` rows, perhaps with replicates.
            before: All rows measured earlier.
        """
        uses = torch.bincount(before, minlength=len(self.truth))
        y = torch.empty(len(rows), dtype=torch.float64)
        for i, row in enumerate(rows.tolist()):
            y[i] = self.truth[row] + self.noise[uses[row], row]
            uses[row] += 1
        return y


def first_rows(case: Case, seed: int) -> Tensor:
    r"""The rows that all methods begin with, drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(case.pool), generator=generator)
    return order[: FIRST_PER_INPUT * case.pool.d]


def strategy_of(job: Job, case: Case) -> ComposedStrategy:
    r"""The strategy of a job; the noise is known to it.

    Where a peer's package chooses the rows, the strategy only judges.
    """
    method = METHODS.get(job.method, METHODS["Straddle"])
    noise_std = job.noise * case.range
    model = GaussianProcess(
        None if job.is_learnt else case.prior,
        noise_std=noise_std,
        refit=refits_after_growth,
    )
    goal = Above(case.threshold, method.epsilon * case.range)
    strategy = Strategy(
        case.pool,
        goal,
        model=model,
        rule=method.on(case.pool),
        batch_size=job.q,
        beta=method.beta,
    )
    assert isinstance(strategy, ComposedStrategy)  # which ``Strategy(...)`` makes
    return strategy


def reopened(state: State, goal: Goal) -> State:
    r"""A state that goes on: all rows are in question again if none was left.

    Some methods would stop long before others, and what is compared is the mean after
    as many measurements.
    """
    if not state.is_done:
        return state
    sides = goal.start(len(state.classification.mean))
    belief = replace(state.belief, sides=sides)
    run = replace(state.run, belief=belief)
    return replace(state, stop_reason=None, run=run)


def run(
    job: Job, data: Path | None = None, commands: Mapping[str, str] | None = None
) -> list[Run]:
    r"""Run a job.

    Args:
        job: What to run.
        data: The folder of files that are not part of the package.
        commands: What starts the packages of peers, by the names of their methods.
    """
    case = PROBLEMS[job.problem].case(job.seed, data)
    rows = first_rows(case, job.seed)
    noise_std, n = job.noise * case.range, len(rows) + job.n_chosen
    measurements = Measurements.of_case(case, noise_std, n, job.seed)
    strategy = strategy_of(job, case)
    first = replace(strategy, batch_size=len(rows))  # which the first round consists of
    wrong, seconds = [], 0.0
    package: AbstractContextManager[Package | None] = nullcontext()
    if job.method not in METHODS:
        command = (commands or {})[job.method]
        package = started(command, case, noise_std**2, job.q, job.seed)
    with warnings.catch_warnings(), package as peer:
        # Fits to few data warn, as do fixed models that do not quite suit; what that
        # leads to is what is measured.
        warnings.simplefilter("ignore")
        y = measurements.of(rows, rows[:0])
        state = first.tell(first.init(job.seed), Observations(rows, y))
        wrong.append(_wrong_rows(state, case))
        for _ in range(job.n_chosen // job.q):
            state = reopened(state, strategy.goal)
            began = time.perf_counter()
            if peer is None:
                batch = strategy.ask(state)
                rows, round = batch.order, torch.tensor(batch.round)
            else:
                rows, round = peer.next(rows, y), None  # a round nobody here planned
            seconds += time.perf_counter() - began
            y = measurements.of(rows, state.observations.indices)
            state = strategy.tell(state, Observations(rows, y, None, round))
            wrong.append(_wrong_rows(state, case))
    chosen = job.q * (len(wrong) - 1)
    return [Run(job, len(case.pool), tuple(wrong), seconds / chosen)]


def _wrong_rows(state: State, case: Case) -> int:
    r"""How many rows the posterior mean has on the wrong side of the level."""
    found = state.classification.mean > case.threshold
    return int((found != case.above).sum())
