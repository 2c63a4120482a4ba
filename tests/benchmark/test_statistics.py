import pytest
import torch

from botorch_lse.benchmark.statistics import (
    HOLDS,
    OPEN,
    VIOLATED,
    WrongFraction,
    f1_score,
)


def bools(text: str) -> torch.Tensor:
    return torch.tensor([c == "1" for c in text])


@pytest.mark.parametrize(
    ("predicted", "truth", "f1"),
    [
        ("1100", "1100", 1.0),
        ("1110", "1100", 4 / 5),  # TP 2, FP 1, FN 0
        ("1000", "1100", 2 / 3),  # TP 1, FP 0, FN 1
        ("0011", "1100", 0.0),
        ("0000", "0000", 1.0),
        ("0000", "0001", 0.0),
    ],
)
def test_f1_is_that_of_hand_counted_hits(predicted: str, truth: str, f1: float) -> None:
    assert f1_score(bools(predicted), bools(truth)) == pytest.approx(f1, abs=1e-15)


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
