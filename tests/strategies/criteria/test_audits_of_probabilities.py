r"""Audits where results are yes or no, or grades: rows are tried until clear."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest
import torch
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.confidence.audit import audit_size
from botorch_lse.confidence.judges import TrialsJudge
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    Binary,
    Classes,
    Counts,
    GaussianProcess,
    Ordinal,
    Strategy,
)
from tests.covering import more_in_full
from tests.strategies.criteria.test_audits_of_runs import Claiming, Stubborn
from tests.strategies.test_yes_or_no import kernel, line

GOAL = Above(0.75, 0.05)
AUDIT = (0.2, 0.1)


@dataclass(frozen=True, eq=False)
class Sure(Stubborn):
    r"""An algorithm that claims the same sides of probabilities whatever it is told."""

    def audit_judge(self, belief):
        believed = torch.where(self.side > 0, 1.0, 0.0).double()
        return TrialsJudge(GOAL.values, (Binary(),), (believed,))


@dataclass(frozen=True, eq=False)
class ClaimingOften(Claiming):
    @cached_property
    def algorithm(self):
        return Sure(self.pool, self.side, 1.0, self.batch_size)


def claimed(n_wrong: int, n: int = 200, p: tuple[float, ...] = (0.7, 0.8001)):
    r"""Sides, and probabilities: clear ones, and wrong by next to nothing."""
    pool = Pool(torch.arange(n).double().unsqueeze(-1))
    side = torch.where(torch.arange(n) % 2 == 0, 1, -1).to(torch.int8)
    chance = (side > 0).double()
    wrong = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:n_wrong]
    chance[wrong] = torch.where(side[wrong] > 0, *p).double()
    return pool, side, chance


def played(strategy: Strategy, p: Tensor, seed: int = 0, stop: int | None = None):
    r"""A run; ``p`` are probabilities of a yes, ``N`` or ``N x m``."""
    generator, state = torch.Generator().manual_seed(seed), strategy.init(seed=seed)
    while not state.is_done and (stop is None or state.round < stop):
        rows = strategy.ask(state).order
        drawn = torch.rand(p[rows].shape, generator=generator, dtype=torch.float64)
        state = strategy.tell(state, Observations(rows, (drawn < p[rows]).double()))
    return state


@pytest.mark.slow
def test_a_right_claim_passes_at_the_price_stated_beforehand() -> None:
    pool, side, chance = claimed(0)
    strategy = ClaimingOften(pool, side=side, audit=AUDIT, batch_size=1)
    foreseen = strategy.init().forecast().observations
    state = played(strategy, chance)
    assert state.stop_reason == "audited"
    assert "assumes Gaussian noise" in state.classification.guarantee  # of `Stubborn`
    dear = audit_size(*AUDIT, n_rows=200, level=0.75, epsilon=0.05)
    assert state.n_used <= dear
    assert state.n_used == pytest.approx(foreseen, rel=0.1)


@pytest.mark.slow
def test_the_price_is_that_of_the_dearer_side_and_of_less_clear_rows() -> None:
    few = audit_size(0.1, 0.05, level=0.5, epsilon=0.1)
    assert audit_size(0.1, 0.05, level=0.9, epsilon=0.05) > few
    assert audit_size(0.1, 0.05, level=0.1, epsilon=0.05) > few
    assert audit_size(0.1, 0.05, level=0.5, epsilon=0.1, agreement=0.8) > 1.5 * few
    assert audit_size(0.05, 0.05, level=0.5, epsilon=0.1) > 1.8 * few
    for name, value in (("level", 1.0), ("agreement", 1.1), ("epsilon", -0.1)):
        given = {"level": 0.5, name: value}
        with pytest.raises(ValueError, match=f"Expected `{name}`"):
            audit_size(0.1, 0.05, **given)


@pytest.mark.exhaustive
@pytest.mark.slow
@more_in_full("n_runs", 25, 400)
def test_a_claim_that_is_just_too_wrong_passes_rarely(n_runs) -> None:
    pool, side, chance = claimed(11, 50)
    strategy = ClaimingOften(
        pool, side=side, audit=(0.2, 0.1), batch_size=40, max_observations=2000
    )
    passed = sum(
        played(strategy, chance, seed).stop_reason == "audited"
        for seed in range(n_runs)
    )
    assert passed <= 0.1 * n_runs + 3 * (0.1 * 0.9 * n_runs) ** 0.5


def test_a_claim_that_is_clearly_wrong_is_not_confirmed() -> None:
    pool, side, chance = claimed(100, p=(0.0, 1.0))
    strategy = ClaimingOften(pool, side=side, audit=AUDIT, max_observations=500)
    state = played(strategy, chance)
    assert state.stop_reason == "not confirmed"


def test_pending_trials_are_not_asked_for_again() -> None:
    pool, side, _ = claimed(0)
    strategy = ClaimingOften(pool, side=side, audit=AUDIT, batch_size=6)
    state = strategy.init()
    first = strategy.ask(state)
    more = strategy.ask(state, pending=first.order)
    assert not bool(torch.isin(more.order, first.order).any())
    assert int(first.counts.max()) > 1  # a row above is tried three times at once


def test_trials_may_be_told_as_numbers_of_successes() -> None:
    pool, side, chance = claimed(0)
    strategy = ClaimingOften(pool, side=side, audit=AUDIT, batch_size=10)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        rows, trials = batch.indices, batch.counts
        told = Observations(rows, chance[rows] * trials, trials=trials)
        state = strategy.tell(state, told)
    assert state.stop_reason == "audited"


# --- with a model ---------------------------------------------------------------------


def audited(goal=None, outcome=None, **options) -> Strategy:
    given = {"beta": 4.0, "batch_size": 15, "max_observations": 600, "audit": AUDIT}
    return Strategy(
        line(),
        Above(0.5, epsilon=0.2) if goal is None else goal,
        model=GaussianProcess(
            kernel(variance=9.0), outcome=Binary() if outcome is None else outcome
        ),
        **{**given, **options},
    )


@pytest.mark.slow
def test_a_run_ends_audited_and_replays_to_the_same_state() -> None:
    chance = torch.special.ndtr(16 * line().X[:, 0] - 8)
    strategy = audited()
    state = played(strategy, chance)
    assert state.stop_reason == "audited"
    assert "assumes independent trials" in state.classification.guarantee
    assert "are wrong by more than epsilon" in state.classification.guarantee
    again = strategy.replay(state.history, seed=0)
    assert again.stop_reason == state.stop_reason
    assert torch.equal(again.classification.above, state.classification.above)
    halfway = played(strategy, chance, stop=state.round - 1)
    resumed = strategy.replay(halfway.history, seed=0)
    assert torch.equal(strategy.ask(resumed).order, strategy.ask(halfway).order)


def test_the_forecast_says_what_an_audit_would_take() -> None:
    state = audited().init()
    chance = torch.special.ndtr(16 * line().X[:, 0] - 8)
    generator = torch.Generator().manual_seed(0)
    strategy = audited()
    while state.run.notes[0].claim is None:
        rows = strategy.ask(state).order
        drawn = torch.rand(len(rows), generator=generator, dtype=torch.float64)
        told = Observations(rows, (drawn < chance[rows]).double())
        state = strategy.tell(state, told)
    found = state.forecast()
    assert "The rest of the audit" in found.basis
    rows = len(state.run.notes[0].claim.rows)
    assert found.observations > audit_size(*AUDIT, n_rows=rows)


GRADES = Ordinal(3, at_least=1, cutpoints=(0.0, 3.0))


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    ("goal", "outcome", "results"),
    [
        (Above(0.5, epsilon=0.2), GRADES, "grades"),
        (Below(0.6, epsilon=0.2), Binary(guess=0.2, lapse=0.02), "guessed"),
        (Between(0.2, 0.8, epsilon=0.19), Binary(), "one"),
        (Above(0.5, 0.2) & Above(0.6, 0.2, output=1), Binary(), "two"),
    ],
    ids=["grades", "guessed", "band", "two outputs"],
)
def test_grades_bands_and_regions_are_audited(goal, outcome, results) -> None:
    r"""Of a region each row is tried in all outputs at once."""
    f = 16 * line().X[:, 0] - 8
    given = (outcome,) * goal.n_outputs if goal.n_outputs > 1 else outcome
    strategy = audited(goal, given, audit=(0.4, 0.2), max_observations=1500)
    state, generator = strategy.init(seed=0), torch.Generator().manual_seed(0)
    while not state.is_done:
        rows = strategy.ask(state).order
        shape = (len(rows), goal.n_outputs)
        p = outcome.value(f[rows]).unsqueeze(-1)
        drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
        y = (drawn < p).double()
        if results == "grades":
            y = y * (1 + (drawn < p / 2).double())
        state = strategy.tell(state, Observations(rows, y.squeeze(-1)))
    assert state.stop_reason == "audited"


@pytest.mark.slow
def test_classes_without_an_order_are_audited() -> None:
    kinds, pool = Classes(("dry", "wet")), line(61)
    strategy = Strategy(
        pool,
        kinds,
        model=GaussianProcess(kernel(variance=9.0), outcome=Binary()),
        beta=2.0,
        batch_size=20,
        audit=(0.4, 0.2),
    )
    found = (pool.X[:, 0] > 0.5).long()
    state = strategy.init(seed=0)
    while not state.is_done:
        batch = strategy.ask(state)
        labels = [kinds.names[k] for k in found[batch.order]]
        state = strategy.tell(state, batch.observe(kinds.results(labels)))
    assert state.stop_reason == "audited"
    answer = state.classification
    assert bool((answer.classes == found)[answer.classes >= 0].all())


def test_what_cannot_be_audited_is_refused_with_its_reason() -> None:
    with pytest.raises(ValueError, match="all are yes or no, or grades"):
        audited(Above(5.0), Counts())
    mixed = Above(0.5) & Above(0.75, output=1)
    with pytest.raises(ValueError, match="all are yes or no, or grades"):
        Strategy(
            line(), mixed, model=GaussianProcess(outcome=(None, Binary())), audit=AUDIT
        )
    with pytest.raises(ValueError, match="takes 3 where all agree"):
        audited(GOAL, max_repeats=2)
    assert audited(GOAL, max_repeats=3)
    with pytest.raises(ValueError, match="Give a larger `epsilon`"):
        audited(Above(0.999))
    assert audited(Above(0.999, epsilon=0.02))
