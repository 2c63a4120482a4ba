r"""Tests of trials at one row: what they show, and how many it takes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from botorch_lse.confidence.judges import TrialsJudge, Values
from botorch_lse.confidence.trials import (
    MOST_TRIALS,
    UNFAIR,
    expected_trials,
    least_successes,
    shows_more,
)
from botorch_lse.strategies import Above, Below, Between, Binary, Levels, Ordinal
from tests.covering import more_in_full

LINES = (0.05, 0.3, 0.5, 0.7, 0.95)


def reached_of_all_paths(bounds: list[int], p: float) -> float:
    r"""The probability that a bound is ever reached, by listing all results."""
    found = 0.0
    for results in itertools.product((0, 1), repeat=len(bounds)):
        so_far = list(itertools.accumulate(results))
        if any(s >= b for s, b in zip(so_far, bounds, strict=True)):
            found += p ** sum(results) * (1 - p) ** (len(results) - sum(results))
    return found


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("mistaken", [0.5, 0.05])
def test_a_row_at_the_line_is_shown_to_be_above_it_rarely(line, mistaken) -> None:
    bounds = least_successes(line, mistaken, 12).tolist()
    assert reached_of_all_paths(bounds, line) <= mistaken
    assert reached_of_all_paths(bounds, line / 2) <= mistaken
    assert all(0 <= b - a <= 1 for a, b in itertools.pairwise(bounds))


def test_the_sum_over_paths_gives_less_away_than_villes_inequality() -> None:
    bounds = least_successes(0.7, 0.5, 12).tolist()
    assert bounds[:4] == [2, 3, 3, 4]  # three of three show it
    assert reached_of_all_paths(bounds, 0.7) > 0.4
    # Averaged over probabilities above 0.7 three successes are less than twice as
    # likely as at 0.7, so that Ville's inequality asks for a fourth one.
    over = (1 - 0.7**4) / (4 * 0.3)
    assert over / 0.7**3 < 2


@more_in_full("n", 4_000, 100_000)
@pytest.mark.parametrize("line", [0.2, 0.7])
def test_all_looks_together_rarely_err(line, n) -> None:
    generator = torch.Generator().manual_seed(0)
    results = torch.rand(n, MOST_TRIALS, generator=generator) < line
    reached = results.cumsum(1) >= least_successes(line, 0.5, MOST_TRIALS)
    share = float(reached.any(dim=1).double().mean())
    assert share <= 0.5 + 4 * (0.25 / n) ** 0.5


def test_a_claim_that_cannot_be_wrong_is_shown_at_once_and_one_at_1_never() -> None:
    assert least_successes(-0.1, 0.5, 3).tolist() == [0, 0, 0]
    assert least_successes(1.0, 0.5, 3).tolist() == [2, 3, 4]


def test_further_trials_are_those_that_would_do_if_all_succeed() -> None:
    n, line = torch.arange(13), 0.6
    bounds = [1, *least_successes(line, 0.3, 12).tolist()]
    for s in range(13):
        rows = n[n >= s]
        yes = torch.full_like(rows, s)
        lines = torch.full((len(rows), 1), line).double()
        shown, more = shows_more(yes, rows, lines, 0.3, 12)
        for k, trials in enumerate(rows.tolist()):
            enough = [m for m in range(13 - trials) if s + m >= bounds[trials + m]]
            assert int(more[k, 0]) == min(enough, default=13)
            assert bool(shown[k, 0]) == (trials > 0 and s >= bounds[trials])


def test_of_too_many_trials_the_first_ones_count_as_if_they_had_failed() -> None:
    line = torch.tensor([[0.7]]).double()
    for yes, n in ((300, 300), (251, 300)):
        few = shows_more(
            torch.tensor([yes - 44]), torch.tensor([256]), line, 0.5, MOST_TRIALS
        )
        many = shows_more(
            torch.tensor([yes]), torch.tensor([n]), line, 0.5, MOST_TRIALS
        )
        assert torch.equal(few[0], many[0])


@more_in_full("n", 4_000, 100_000)
def test_expected_trials_are_those_of_simulated_rows(n) -> None:
    generator = torch.Generator().manual_seed(0)
    bounds = least_successes(0.7, 0.5, MOST_TRIALS)
    p = torch.tensor([0.75, 0.85, 1.0]).double()
    foreseen = expected_trials(p, torch.full_like(p, 0.7))
    for chance, expected in zip(p.tolist(), foreseen.tolist(), strict=True):
        results = torch.rand(n, MOST_TRIALS, generator=generator) < chance
        reached = results.cumsum(1) >= bounds
        first = reached.long().argmax(dim=1) + 1
        first = torch.where(reached.any(dim=1), first, MOST_TRIALS).double()
        error = 4 * float(first.std()) / n**0.5
        assert float(first.mean()) == pytest.approx(expected, abs=error + 1e-6)


# --- the judge ------------------------------------------------------------------------


def judged(judge: TrialsJudge, label: int, p: Tensor, n: int) -> tuple[Tensor, Tensor]:
    r"""Verdicts of ``n`` rows of a claim, and their trials, by ask and tell."""
    m, generator = judge.n_outputs, torch.Generator().manual_seed(0)
    labels, yes = torch.full((n,), label), torch.zeros(n, m)
    counts, found = torch.zeros(n).long(), torch.zeros(n, dtype=torch.int8)
    rows = torch.arange(n)
    while len(rows):
        mean = (yes / counts.clamp_min(1).unsqueeze(-1)).double()
        values = Values(mean, torch.zeros(n, m), counts, MOST_TRIALS)
        more = judge.looks(labels, values, 0.5, rows) - counts[rows]
        assert bool((more > 0).all())
        trials = more.float().unsqueeze(-1).expand(-1, m)
        drawn = torch.binomial(trials, p.float().expand(len(rows), -1), generator)
        yes[rows] += drawn
        counts[rows] += more
        mean = (yes / counts.clamp_min(1).unsqueeze(-1)).double()
        values = Values(mean, torch.zeros(n, m), counts, MOST_TRIALS)
        now = judge.verdicts(labels, values, 0.5)
        found[rows] = now[rows]
        rows = (found == 0).nonzero().view(-1)
    return found, counts


BOTH = Above(0.6, 0.1) & Above(0.4, 0.1, output=1)
WORST = [
    (Above(0.75, 0.05), 1, (0.7,)),
    (Above(0.75, 0.05), 0, (0.8001,)),
    (Below(0.2), 1, (0.2001,)),
    (Between(0.3, 0.6), 1, (0.3,)),
    (Between(0.3, 0.6), 1, (0.6001,)),
    (Between(0.45, 0.55), 0, (0.5,)),
    (Levels((0.2, 0.7)), 1, (0.7001,)),
    (BOTH, 1, (0.5, 0.9)),
    (BOTH, 1, (0.9, 0.3)),
    (BOTH, 0, (0.7001, 0.5001)),
]


@pytest.mark.some(1)
@more_in_full("n", 300, 3_000)
@pytest.mark.parametrize(("goal", "label", "p"), WORST, ids=str)
def test_a_row_that_is_wrong_by_next_to_nothing_looks_right_rarely(
    goal, label, p, n
) -> None:
    outcomes = (Binary(),) * goal.n_outputs
    found, _ = judged(TrialsJudge(goal.values, outcomes), label, torch.tensor(p), n)
    right = float((found > 0).double().mean())
    assert right <= 0.5 + 4 * (0.25 / n) ** 0.5


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("goal", "label", "p"),
    [
        (Above(0.75, 0.05), 1, (0.97,)),
        (Above(0.75, 0.05), 0, (0.4,)),
        (Between(0.3, 0.6), 1, (0.45,)),
        (Between(0.3, 0.6), 0, (0.9,)),
        (BOTH, 1, (0.9, 0.9)),
        (BOTH, 0, (0.9, 0.05)),
    ],
    ids=str,
)
def test_clear_rows_are_right_and_the_opposite_claim_is_wrong(goal, label, p) -> None:
    judge = TrialsJudge(goal.values, (Binary(),) * goal.n_outputs)
    found, counts = judged(judge, label, torch.tensor(p), 200)
    assert float((found > 0).double().mean()) > 1 - 2 * UNFAIR
    opposite, _ = judged(judge, 1 - label, torch.tensor(p), 200)
    assert float((opposite < 0).double().mean()) > 0.8
    if goal.n_outputs == 1:
        believed = (torch.full((1,), p[0]).double(),)
        foreseen = TrialsJudge(goal.values, (Binary(),), believed).expected(
            torch.tensor([label]), 0.5
        )
        assert float(counts.double().mean()) == pytest.approx(float(foreseen), rel=0.5)


def test_levels_may_differ_between_rows() -> None:
    judge = TrialsJudge(Above((0.2, 0.9)).values, (Binary(),))
    mean, counts = torch.full((2, 1), 0.6).double(), torch.full((2,), 50)
    values = Values(mean, torch.zeros(2, 1), counts, MOST_TRIALS)
    assert judge.verdicts(torch.tensor([1, 1]), values, 0.5).tolist() == [1, -1]
    assert judge.verdicts(torch.tensor([0, 0]), values, 0.5).tolist() == [-1, 1]


def test_grades_are_judged_by_whether_they_were_reached() -> None:
    judge = TrialsJudge(Above(0.5).values, (Ordinal(4, at_least=2),))
    grades = torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert judge.numbers(grades).tolist() == [0, 0, 1, 1]


def test_what_intervals_rule_out_is_as_for_numbers() -> None:
    judge = TrialsJudge(Above(0.5, 0.1).values, (Binary(),))
    lower, upper = [torch.tensor([0.7, 0.45])], [torch.tensor([0.9, 0.55])]
    assert judge.ruled_out(torch.tensor([0, 0]), lower, upper).tolist() == [True, False]


def test_the_least_number_of_trials_is_that_of_the_dearer_side() -> None:
    judge = TrialsJudge(Above(0.75, 0.05).values, (Binary(),))
    assert judge.least == 3  # three yes show that it is above 0.7, two no below 0.8
    assert judge.strict().up_to == ""
    assert judge.up_to == " by more than epsilon"
