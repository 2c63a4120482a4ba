r"""Width schedules against their closed forms."""

from __future__ import annotations

import math
import pickle

import pytest

from botorch_lse.confidence import BatchEta, ConstantBeta, UnionBeta, beta_schedule


@pytest.mark.parametrize("t", [1, 2, 17])
def test_union_beta_is_theorem_one(t: int) -> None:
    expected = 2 * math.log(250 * math.pi**2 * t**2 / (6 * 0.1))
    assert math.isclose(UnionBeta(250, 0.1)(t), expected, rel_tol=1e-12)


def test_union_beta_spends_delta_over_all_rounds_and_rows() -> None:
    # Lemma 1: N sum_t exp(-beta_t / 2) = delta.
    beta = UnionBeta(30, 0.2)
    total = 30 * sum(math.exp(-beta(t) / 2) for t in range(1, 200_000))
    assert math.isclose(total, 0.2, rel_tol=1e-4)


def test_batch_eta_keeps_the_width_of_the_last_feedback() -> None:
    beta = UnionBeta(10, 0.1)
    eta = BatchEta(beta, batch_size=3, information=0.25)
    feedback = [0, 0, 0, 3, 3, 3, 6]
    expected = [math.exp(0.5) * beta(fb + 1) for fb in feedback]
    assert [eta(t) for t in range(1, 8)] == pytest.approx(expected, rel=1e-12)


def test_batch_eta_of_single_observations_is_beta() -> None:
    beta = UnionBeta(10, 0.1)
    eta = BatchEta(beta, batch_size=1, information=0.0)
    assert [eta(t) for t in range(1, 6)] == [beta(t) for t in range(1, 6)]


def test_number_becomes_a_constant_schedule() -> None:
    assert [beta_schedule(9.0)(t) for t in (1, 5, 100)] == [9.0] * 3
    union = UnionBeta(3, 0.1)
    assert beta_schedule(union) is union


def twice(t: int) -> float:
    return 2.0 * t


def test_a_schedule_of_ones_own_is_used_as_it_is() -> None:
    schedule = beta_schedule(twice)
    assert [schedule(t) for t in (1, 2, 3)] == [2.0, 4.0, 6.0]
    assert beta_schedule(schedule) is schedule
    assert schedule == beta_schedule(twice) == pickle.loads(pickle.dumps(schedule))
    assert BatchEta(twice, 1, 0.0)(3) == 6.0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (-3.0, r"`beta\(2\)` in \[0, inf\), but got -3. A schedule maps"),
        (math.nan, r"`beta\(2\)` to be finite, but got nan"),
        (math.inf, r"`beta\(2\)` to be finite, but got inf"),
        ("9", r"`beta\(2\)` to be one number, but got the text '9'"),
        (None, r"`beta\(2\)` to be one number, but got None"),
    ],
)
def test_what_a_schedule_returns_is_checked(returned, message: str) -> None:
    for schedule in (beta_schedule(lambda t: returned), lambda t: returned):
        with pytest.raises(ValueError, match=message):
            BatchEta(schedule, 1, 0.0)(2)
    with pytest.raises(ValueError, match=message):
        beta_schedule(lambda t: returned)(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantBeta(-1.0), r"`beta` in \[0, inf\), but got -1"),
        (lambda: beta_schedule(float("nan")), "`beta` to be finite, but got nan"),
        (lambda: UnionBeta(0, 0.1), "`n_rows` to be at least 1"),
        (lambda: UnionBeta(5, 1.0), r"`delta` in \(0, 1\), but got 1"),
        (lambda: UnionBeta(5, 0.0), r"`delta` in \(0, 1\), but got 0"),
        (lambda: BatchEta(UnionBeta(5, 0.1), 0, 0.1), "`batch_size` to be at least 1"),
        (lambda: BatchEta(UnionBeta(5, 0.1), 2, -0.1), "`information` in"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
