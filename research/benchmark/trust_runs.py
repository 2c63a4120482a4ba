r"""One run of a strategy that learns its model, and whether its answer is right."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from botorch_lse.data.classification import Classification
from botorch_lse.strategies import (
    Above,
    ComposedStrategy,
    GaussianProcess,
    GPStrategy,
    LSEStrategy,
    MELKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from botorch_lse.strategies.algorithm import AUDITED, BUDGET, DECIDED
from botorch_lse.strategies.loop import State
from research.benchmark.recorded import Recorded
from research.benchmark.trust_problems import FUNCTIONS, Instance

DEFAULT, DEFAULT_BEFORE = "default", "LSE"
"""What users get who choose neither rule nor model, ``Strategy(pool, goal)``, and the
name of the strategy that they got before."""
PRESETS: dict[str, type[GPStrategy]] = {
    kind.__name__.removesuffix("Strategy"): kind
    for kind in (LSEStrategy, StraddleStrategy, TruVaRStrategy, MELKStrategy)
}
STRATEGIES = (DEFAULT, *PRESETS)
"""All strategies under test by name."""
Tested = GPStrategy | ComposedStrategy
BEFORE, NOW, WITH_AUDIT = "before", "default", "audited"
ARMS = (BEFORE, NOW, WITH_AUDIT)
AUDIT = (0.05, 0.05)
BATCHES = (1, 8)
LIMIT_1D, LIMIT = 152, 304
"""Measurements after which a run counts as not decided, on a line and beyond: whole
batches of 8."""
AUDIT_ROOM = 200
"""Further measurements that an audit may take, and learning after it was given up."""
MOST_WRONG, LEAST_FOUND = 0.05, 0.5
"""A decided answer is false if more of the rows are wrong, or less of the region was
found."""
GROWTH = 1.15
"""The model is fitted again once there are so many times as many rounds as at the last
fit: a fit after every round would take most of the time."""


@dataclass(frozen=True)
class Job:
    r"""What to run: a function of these alone.

    Args:
        function: A name in ``FUNCTIONS``.
        strategy: A name in ``STRATEGIES``.
        batch: Measurements per round.
        is_noise_known: Whether the strategy is told the noise.
        seed: Of the function, if it is random, of the noise and of the strategy.
        is_before: Whether the strategy is as it was before its model was mistrusted.
    """

    function: str
    strategy: str
    batch: int
    is_noise_known: bool
    seed: int
    is_before: bool


@dataclass(frozen=True)
class Run(Recorded):
    r"""How a run ended.

    Args:
        job: What was run.
        arm: One of ``ARMS``.
        stop_reason: The strategy's.
        n_used: Measurements made.
        wrong: Share of all rows that were decided wrongly, by more than the accuracy.
        found: Share of the region clearly above the level that was called above.
        along: Share of the decided rows that were wrong, mean over the rounds after
            which some were decided; 0 if that never was so.
        decided_at: Measurements when all rows were decided for the first time.
    """

    job: Job
    arm: str
    stop_reason: str
    n_used: int
    wrong: float
    found: float
    along: float
    decided_at: int | None

    @property
    def is_decided(self) -> bool:
        r"""Whether the run claims to have the whole answer."""
        return self.stop_reason in (DECIDED, AUDITED)

    @property
    def is_right(self) -> bool:
        r"""Whether the answer, claimed or not, is as good as a claimed one must be."""
        return self.wrong <= MOST_WRONG and self.found >= LEAST_FOUND

    @property
    def is_false(self) -> bool:
        r"""Whether the run claims an answer that is not right."""
        return self.is_decided and not self.is_right


def run(job: Job) -> list[Run]:
    r"""Run a job: one run, or for the default two, as it is and with an audit.

    Until all is decided an audited run is the same as one without, so that one run
    gives both.
    """
    instance = FUNCTIONS[job.function].make(job.seed)
    with warnings.catch_warnings():
        # Fits to few data warn by the dozen; what they lead to is what is measured.
        warnings.simplefilter("ignore")
        if job.is_before:
            return [_until_done(job, BEFORE, instance)]
        return _with_and_without_audit(job, instance)


def strategy_of(job: Job, instance: Instance, **options: Any) -> Tested:
    r"""The strategy of a job."""
    limit = LIMIT_1D if instance.pool.d == 1 else LIMIT
    whole = {"batch_size": job.batch, "max_observations": limit, **options}
    learnt: dict[str, Any] = {"refit": refits_after_growth}
    if job.is_noise_known:
        learnt["noise_std"] = instance.noise_std
    if job.is_before:
        learnt |= {"n_initial": 2 * (instance.pool.d + 1), "level_z": None}
        learnt["needs_both_sides"] = False
    pool, level, epsilon = instance.pool, instance.threshold, instance.epsilon
    if job.strategy == DEFAULT:
        model = GaussianProcess(**learnt)
        strategy = Strategy(pool, Above(level, epsilon), model=model, **whole)
        assert isinstance(strategy, ComposedStrategy)  # which ``Strategy(...)`` makes
        return strategy
    preset = PRESETS[job.strategy]
    return preset(pool, threshold=level, epsilon=epsilon, **learnt, **whole)


def refits_after_growth(n_rounds: int) -> bool:
    r"""Whether there are ``GROWTH`` times as many rounds as at the last fit."""
    fit = 1
    while fit < n_rounds:
        fit = max(fit + 1, math.ceil(GROWTH * fit))
    return fit == n_rounds


@dataclass
class Way:
    r"""What is noted while a run is under way.

    Args:
        instance: The truth.
        shares: Of the decided rows, those that are wrong, by round with decided rows.
        decided_at: Measurements when all rows were decided for the first time.
    """

    instance: Instance
    shares: list[float] = field(default_factory=list)
    decided_at: int | None = None

    def note(self, answer: Classification, n_used: int) -> None:
        r"""Note the answer after a round."""
        n_decided = int((~answer.undecided).sum())
        if n_decided:
            self.shares.append(self.wrong(answer) * len(answer.above) / n_decided)
        if n_decided == len(answer.above) and self.decided_at is None:
            self.decided_at = n_used

    def wrong(self, answer: Classification) -> float:
        r"""The share of all rows that are decided wrongly."""
        wrong = (answer.above & self.instance.clearly_below) | (
            answer.below & self.instance.clearly_above
        )
        return float(wrong.double().mean())

    def ended(
        self, job: Job, arm: str, reason: str, answer: Classification, n_used: int
    ) -> Run:
        r"""The record of a run that ended now."""
        region = self.instance.clearly_above
        found = float(answer.above[region].double().mean()) if region.any() else 1.0
        along = sum(self.shares) / max(len(self.shares), 1)
        wrong = self.wrong(answer)
        return Run(job, arm, reason, n_used, wrong, found, along, self.decided_at)


def states_of(strategy: Tested, instance: Instance, seed: int) -> Iterator[State]:
    r"""The states of a run, from that before any measurement to the last one."""
    noise = torch.Generator().manual_seed(2 * seed + 1)
    state = strategy.init(seed)
    yield state
    while not state.is_done:
        batch = strategy.ask(state)
        spread = torch.randn(len(batch), generator=noise, dtype=torch.float64)
        y = instance.truth[batch.order] + instance.noise_std * spread
        state = strategy.tell(state, batch.observe(y))
        yield state


def _until_done(job: Job, arm: str, instance: Instance) -> Run:
    way = Way(instance)
    for state in states_of(strategy_of(job, instance), instance, job.seed):
        way.note(state.classification, state.n_used)
    reason = state.stop_reason or ""
    return way.ended(job, arm, reason, state.classification, state.n_used)


def _with_and_without_audit(job: Job, instance: Instance) -> list[Run]:
    plain = strategy_of(job, instance)
    limit = plain.max_observations or 0
    strategy = replace(plain, audit=AUDIT, max_observations=limit + AUDIT_ROOM)
    way, ended = Way(instance), None
    for state in states_of(strategy, instance, job.seed):
        n_used, answer = state.n_used, state.classification
        way.note(answer, n_used)
        if ended is None:
            inner, algorithm = state.belief, plain.algorithm
            answer = algorithm.answer(inner)
            is_decided = not bool(answer.undecided.any())
            reason = DECIDED if is_decided else state.stop_reason
            if reason is not None:
                ended = way.ended(job, NOW, reason, answer, n_used)
            elif n_used >= limit:
                none_left = torch.zeros(len(instance.pool), dtype=torch.long)
                reason = algorithm.limit(inner, none_left, BUDGET)
                ended = way.ended(job, NOW, reason, answer, n_used)
                return [ended, replace(ended, arm=WITH_AUDIT)]
            elif state.run.notes[0].claim is not None:
                # What the audit says of one-sided data the plain run does not say.
                ended = _until_done(job, NOW, instance)
    assert ended is not None  # the last state has a reason
    reason = state.stop_reason or ""
    last = way.ended(job, WITH_AUDIT, reason, state.classification, state.n_used)
    return [ended, last]
