"""Runs that end once the share above is known well enough."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.data.excursion_volume import Content
from botorch_lse.goals.regions import Region
from botorch_lse.strategies import (
    Above,
    Below,
    ContentKnown,
    GaussianProcess,
    LSEStrategy,
    MinimumU,
    ParetoByDifferences,
    ShareOfMax,
    Straddle,
    Strategy,
    UFunction,
)
from botorch_lse.strategies.algorithm import Step
from botorch_lse.strategies.criteria.content import Course

GRID = torch.linspace(0, 1, 12, dtype=torch.float64)
CELLS = torch.cartesian_prod(GRID, GRID)
POOL = Pool(CELLS)
F = (5 * CELLS[:, 0]).sin() + CELLS[:, 1] - 0.6
LEVEL = 0.2
KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.3
SHARE = float((F > LEVEL).double().mean())


def played(content_tol, pool: Pool = POOL, most: int = 120, **options):
    """A run on exact values, and the state after each round."""
    given = {"model": GaussianProcess(KERNEL, noise_std=0.0), "rule": Straddle()}
    strategy = Strategy(
        pool, Above(LEVEL), content_tol=content_tol, **{**given, **options}
    )
    states = [strategy.init(seed=0)]
    while not states[-1].is_done and states[-1].n_used < most:
        order = strategy.ask(states[-1]).order
        told = Observations(order, F[order], round=states[-1].round)
        states.append(strategy.tell(states[-1], told))
    return states


def test_a_share_of_rows_that_all_are_decided_is_known() -> None:
    low = F < 0  # rows near the level do not count
    pool = Pool(CELLS, weights=low.double())
    state = played(0.1, pool)[-1]
    assert state.stop_reason == "content known"
    assert state.content().upper == 0


RULES = [
    ContentKnown(0.1),
    ContentKnown(0.03, relative=False, settled=2),
    ContentKnown(0.2, by="decided"),
    ContentKnown(0.2, confidence=0.8, times=1, settled=0),
    MinimumU(),
]


def half(rule: ContentKnown, state) -> float:
    content = state.content(rule.confidence)
    ends = content.posterior
    if rule.by == "decided":
        ends = content.lower, content.upper
    if ends is None:
        return math.inf
    width = max(ends[1] - content.estimate, content.estimate - ends[0])
    scale = content.estimate if rule.relative else 1
    return width / scale if scale > 0 else math.inf


def drifts_of(rule: ContentKnown, estimates: list[float]) -> list[float]:
    found = []
    for i, now in enumerate(estimates):
        window = max(rule.settled, (i + 1) // 10) if rule.settled else 0
        recent = estimates[max(0, i - window) : i]
        scale = now if rule.relative else 1
        is_known = i >= window and scale > 0
        far = max((abs(now - e) for e in recent), default=0.0)
        found.append(far / scale if is_known else math.inf)
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("rule", RULES[:4], ids=str)
def test_a_run_ends_once_the_interval_is_narrow_enough(rule: ContentKnown) -> None:
    states = played(rule)
    assert states[-1].stop_reason == "content known"
    assert bool(states[-1].classification.undecided.any())
    halves = [half(rule, state) for state in states[1:]]
    drifts = drifts_of(rule, [state.content().estimate for state in states[1:]])
    narrow = [h + d <= rule.tol for h, d in zip(halves, drifts, strict=True)]
    # So many in a row at the end, and nowhere before.
    assert all(narrow[-rule.times :])
    runs = "".join("x" if n else "-" for n in narrow[:-1])
    assert "x" * rule.times not in runs
    content = states[-1].content()
    assert abs(content.estimate - SHARE) <= 2 * rule.tol * SHARE
    assert 4 < states[-1].n_used < 60


@pytest.mark.slow
def test_what_the_estimate_moved_by_widens_the_interval() -> None:
    # A tolerance that is never reached, so that a tenth of the rounds is more than two.
    rules = (ContentKnown(1e-9, settled=2, times=99), 2), (MinimumU(), 5)
    for (rule, least), most in zip(rules, (45, 30), strict=True):
        states = played(rule, most=most)
        assert len(states) == most + 1 or states[-1].is_done
        estimates = [state.content().estimate for state in states[1:]]
        for i, state in enumerate(states[1:]):
            rounds = max(least, (i + 1) // 10)
            content, recent = state.content(), estimates[max(0, i - rounds) : i]
            if i < rounds:
                assert content.widened is None
                continue
            moved = max(abs(estimates[i] - e) for e in recent)
            low, high = content.posterior
            wanted = max(0.0, low - moved), min(1.0, high + moved)
            assert content.widened == pytest.approx(wanted, abs=1e-12)
            assert "moved by lately" in str(content)
    assert played(None, most=20)[-1].content().widened is None


def test_what_is_told_after_the_end_widens_the_interval_too() -> None:
    state = played(ContentKnown(0.1))[-1]
    order = state.classification.undecided.nonzero().view(-1)[:3]
    # Values far on the other side of where the model has these rows.
    y = LEVEL - 0.5 * (state.classification.mean[order] - LEVEL).sign()
    told = Observations(order, y, round=torch.full((3,), state.round))
    later = state.strategy.tell(state, told)
    before, content = state.content(), later.content()
    moved = abs(content.estimate - before.estimate)
    assert moved > 0
    course = state.run.notes[0].course
    wanted = content.posterior[1] + moved + course.moved(5)
    assert content.widened[1] == pytest.approx(wanted)


def test_with_noise_more_rounds_are_looked_at_until_they_are_worth_as_much() -> None:
    estimates = tuple(0.5 + 0.01 * k for k in range(20))
    exact = Course(estimates, (1.0,) * 20, n_rounds=20)
    assert exact.moved(5) == exact.moved_so_far(5) == pytest.approx(0.05)
    assert exact.moved(0) == 0.0
    half = replace(exact, worth=(0.5,) * 20)
    assert half.moved(5) == pytest.approx(0.1)
    assert replace(exact, worth=(8.0,) * 20).moved(5) == exact.moved(5)
    # What came before the first estimate does not count: nothing moved then.
    late = replace(exact, worth=(9.0, *(0.0,) * 15, *(1.0,) * 4))
    assert late.moved(4) == pytest.approx(0.04)
    assert late.moved(5) == math.inf
    assert late.moved_so_far(5) == pytest.approx(0.19)
    # Not before there are as many rounds at all, and a tenth of those before them.
    few = Course(estimates[:5], (1.0,) * 5, n_rounds=5)
    assert few.moved(5) == few.moved_so_far(5) == math.inf
    tenth = replace(exact, n_rounds=120)
    assert tenth.moved(5) == pytest.approx(0.12)
    assert replace(exact, n_rounds=200).moved_so_far(5) == math.inf


def as_if_learnt(noise_std: float) -> GaussianProcess:
    """A model that counts as learnt, though nothing is fitted."""

    def made(X, y, yvar) -> SingleTaskGP:
        kernel = deepcopy(KERNEL)
        return SingleTaskGP(
            X, y, yvar, covar_module=kernel, outcome_transform=None
        ).eval()

    return GaussianProcess(made, noise_std=noise_std, n_initial=5, refit=10**6)


@pytest.mark.parametrize("noise", [0.0, 0.05, 2.0])
def test_a_round_is_worth_what_it_takes_off_its_rows(noise: float) -> None:
    model = as_if_learnt(noise)
    strategy = Strategy(POOL, Above(LEVEL), model=model, batch_size=5)
    parts, belief = strategy.parts, strategy.init().belief
    # Far from each other, so that no row tells of another; some several times.
    for rows in ([5, 60, 77, 83, 138], [0, 0, 0, 143], [0, 11, 11, 132]):
        order = torch.tensor(rows)
        told = Observations(order, F[order], round=torch.zeros(len(rows)).long())
        after = parts.learn(belief, Step(told, told, 0))
        found = parts.worth(belief, told)
        each = sorted(set(rows))
        sigma = belief.posterior.sigma[each], after.posterior.sigma[each]
        left = (sigma[1] / sigma[0]).square() * (sigma[0] > 1e-4)
        if belief.fits.is_informed:
            assert found == pytest.approx(len(each) - float(left.sum()), abs=6e-3)
        assert (found == len(each)) == (noise == 0 or not belief.fits.is_informed)
        belief = after
    # A model that is given does not learn how wrong it is.
    given = GaussianProcess(KERNEL, noise_std=noise)
    parts = Strategy(POOL, Above(LEVEL), model=given, beta=4.0).parts
    assert parts.worth(parts.start(0), told) == len(each)


@pytest.mark.slow
def test_a_noisy_run_does_not_take_rest_for_knowledge() -> None:
    # Noise as large as the values' deviation.
    states = played(ContentKnown(0.5), model=as_if_learnt(0.6), most=60)
    assert states[-1].stop_reason == "content known"
    assert len(states[-1].run.notes[0].course.worth) > 11  # worth less than half each
    for state in states[1:]:
        worth = state.run.notes[0].course.worth[1:]
        assert sum(worth) >= 5 or state.run.notes[0].held == 0
        has_looked = len(worth) >= 5
        assert (state.content().widened is None) == (not has_looked)


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", [Above(0.0), Below(0.0)])
def test_a_row_at_the_level_does_not_keep_a_run_from_its_end(goal: Region) -> None:
    # It can never be decided, and measuring it again moves nothing: all others are.
    X = torch.linspace(-0.5, 0.5, 101, dtype=torch.float64).unsqueeze(-1)
    model = GaussianProcess(noise_std=0.01)
    strategy = Strategy(Pool(X), goal, model=model, content_tol=0.05, batch_size=5)
    state = strategy.init()
    while not state.is_done and len(state.observations) < 80:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(X[batch.order, 0]))
    assert state.stop_reason == "content known"
    content = state.content()
    assert content.lower <= 0.5 <= content.upper


def test_the_smallest_number_of_deviations_ends_where_it_says() -> None:
    rule = UFunction()  # as theirs, it decides few rows before it ends
    states = played(MinimumU(), rule=rule)
    answer = states[-1].classification
    assert states[-1].stop_reason == "minimum U"
    ratio = (answer.mean - LEVEL).abs() / answer.sigma.clamp_min(1e-300)
    assert float(ratio.min()) >= 2
    before = states[-2].classification
    assert float(((before.mean - LEVEL).abs() / before.sigma).min()) < 2


@pytest.mark.slow
def test_the_same_data_stop_a_replayed_run_in_the_same_place() -> None:
    for rule in (ContentKnown(0.1), MinimumU()):
        state = played(rule)[-1]
        again = state.strategy.replay(state.observations, seed=0)
        assert (again.stop_reason, again.round) == (state.stop_reason, state.round)
        assert again.run.notes[0].course == state.run.notes[0].course


@pytest.mark.slow
def test_a_number_is_a_share_of_the_estimate_by_the_posterior() -> None:
    number, rule = played(0.1), played(ContentKnown(0.1))
    assert number[-1].n_used == rule[-1].n_used


def test_a_run_without_it_chooses_the_same_rows() -> None:
    watched, plain = played(1e-6, most=20), played(None, most=20)
    assert torch.equal(watched[-1].observations.indices, plain[-1].history.indices)


@pytest.mark.slow
def test_a_learnt_model_waits_for_both_sides() -> None:
    # All values of the initial design lie on one side: nothing is known of the number.
    far = replace(POOL, is_sample=True)
    strategy = Strategy(
        far,
        Above(float(F.max()) + 5),
        model=GaussianProcess(noise_std=0.0, n_initial=6),
        content_tol=0.5,
        max_observations=12,
    )
    state = strategy.init()
    while not state.is_done:
        order = strategy.ask(state).order
        state = strategy.tell(state, Observations(order, F[order], round=state.round))
    assert state.stop_reason == "none found"
    assert state.content().posterior is None


def content(**changes) -> Content:
    given = {
        "estimate": 0.1,
        "expected": 0.1,
        "lower": 0.08,
        "upper": 0.13,
        "guarantee": "",
        "n_rows": 100,
        "effective_size": 100.0,
        "is_sample": True,
        "sampling_error": 0.01,
        "population": (0.05, 0.18),
        "sampled": (0.06, 0.15),
        "posterior": (0.09, 0.12),
        "design": (0.0, 0.2),
    }
    return Content(**{**given, **changes})


def test_half_widths_go_to_the_farther_side() -> None:
    assert ContentKnown(by="posterior").half_width(content()) == pytest.approx(0.02)
    assert ContentKnown(by="decided").half_width(content()) == pytest.approx(0.03)
    assert ContentKnown(by="design").half_width(content()) == pytest.approx(0.1)
    assert ContentKnown(by="design").half_width(content(design=None)) == math.inf
    # The sample's own error reaches 0.05 beyond the upper end, 0.03 beyond the lower.
    rule = ContentKnown(by="posterior", sampling=True)
    assert rule.half_width(content()) == pytest.approx(0.07)


@pytest.mark.slow
def test_the_draws_of_an_audit_can_be_what_counts() -> None:
    rule = ContentKnown(0.12, relative=False, by="design", times=1, settled=0)
    states = played(rule, audit=(0.02, 0.05), batch_size=4, most=140)
    assert states[-1].stop_reason == "content known"
    found = states[-1].content().design
    assert found is not None
    assert found[0] <= SHARE <= found[1]
    assert ContentKnown(by="design").half_width(states[-1].content()) <= 0.12


@pytest.mark.parametrize("rule", [0.1, *RULES], ids=str)
def test_rules_are_stored(rule) -> None:
    strategy = LSEStrategy(
        POOL, LEVEL, model=KERNEL, noise_std=0.1, beta=4.0, content_tol=rule
    )
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    assert decode_strategy(stored, POOL).content_tol == rule


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"content_tol": 5}, "`tol`.*0.05 for 5 %"),
        ({"content_tol": "narrow"}, "`content_tol` to be a number or a rule"),
        ({"content_tol": ContentKnown}, "`content_tol` to be a number or a rule"),
        ({"content_tol": 0.1, "audit": (0.1, 0.1)}, "Expected no `audit` with"),
        ({"content_tol": ContentKnown(by="design")}, "Expected an `audit` for"),
        ({"content_tol": 0.1, "goal": ShareOfMax(0.5)}, "stated level"),
    ],
)
def test_what_does_not_fit_is_refused(change, message: str) -> None:
    given = {"goal": Above(LEVEL), "model": GaussianProcess(KERNEL, noise_std=0.1)}
    with pytest.raises(ValueError, match=message):
        Strategy(POOL, **{**given, **change})


def test_a_pareto_set_has_no_share_that_is_meant() -> None:
    goal = ParetoByDifferences((True, True))
    with pytest.raises(ValueError, match="no share of the pool is asked for"):
        Strategy(
            POOL, goal, model=GaussianProcess(KERNEL, noise_std=0.1), content_tol=0.1
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ContentKnown(0.0), "`tol`"),
        (lambda: ContentKnown(by="guess"), "`by`"),
        (lambda: ContentKnown(times=0), "`times`"),
        (lambda: ContentKnown(confidence=95), "`confidence`"),
        (lambda: ContentKnown(settled=-1), "`settled`"),
        (lambda: MinimumU(-1), "`limit`"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
