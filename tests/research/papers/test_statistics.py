import pytest

from research.statistics import (
    HOLDS,
    OPEN,
    VIOLATED,
    WrongFraction,
)


def test_interval_without_a_wrong_run_has_its_closed_form() -> None:
    low, high = WrongFraction(0, 200, 0.1).interval
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 200), rel=1e-8)


def test_interval_ends_are_the_probabilities_with_tails_of_2_5_percent() -> None:
    from scipy.stats import binom

    low, high = WrongFraction(7, 50, 0.1).interval
    assert binom.sf(6, 50, low) == pytest.approx(0.025, rel=1e-6)
    assert binom.cdf(7, 50, high) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(0, HOLDS), (11, HOLDS), (20, OPEN), (40, VIOLATED)]
)
def test_verdict_asks_for_the_whole_interval(wrong: int, verdict: str) -> None:
    assert WrongFraction(wrong, 200, 0.1).verdict == verdict
