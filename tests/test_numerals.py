r"""Numbers keep the digits that say something."""

from __future__ import annotations

import math

import pytest
import torch

from botorch_lse._numerals import significant, written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (40.0, "40"),
        (65.5, "65.5"),
        (10000000.5, "10000000.5"),
        (0.1 + 0.2, "0.3"),
        (1 - 0.05, "0.95"),
        (1e-15, "1e-15"),
        (123456789012.25, "123456789012.25"),
        (-0.0, "0"),
        (math.inf, "inf"),
        (torch.tensor(0.25), "0.25"),
    ],
)
def test_a_given_number_is_written_as_it_was_given(value, text) -> None:
    assert written(value) == text


@pytest.mark.parametrize(
    ("value", "sigma", "text"),
    [
        (57.83219, 0.041, "57.832"),
        (57.83219, 4.1, "57.8"),
        (1234.5678, 310.0, "1235"),  # digits before the mark are kept
        (10000000.4567, 1.3, "10000000.5"),
        (10000012.0, 450.0, "10000012"),
        (0.00012345, 0.00001, "0.000123"),
        (1.2346e-15, 1e-17, "1.235e-15"),
        (9.9999, 0.03, "10"),
        (1e-9, 0.3, "0"),
        (-1e-9, 0.3, "0"),
        (2.5, 0.0, "2.5"),
        (2.5, math.nan, "2.5"),
    ],
)
def test_two_digits_of_the_error_are_shown(value, sigma, text) -> None:
    assert written(value, sigma) == text


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("sigma", [0.011, 0.5, 0.94])
def test_what_is_written_is_near_by_a_twentieth_of_the_error(scale, sigma) -> None:
    for value in torch.linspace(-20, 20, 83, dtype=torch.float64).tolist():
        found = float(written(scale * value, scale * sigma))
        assert abs(found - scale * value) <= 0.0501 * scale * sigma * 10 / 1.1


def test_numbers_of_a_range_are_told_apart() -> None:
    for low, high in ((0.0, 1.0), (1e7, 1e7 + 40), (-3e-9, 5e-9), (1e5, 1e6)):
        digits = significant(low, high, 4)
        step = (high - low) / 500
        texts = {f"{low + k * step:.{digits}g}" for k in range(500)}
        assert len(texts) == 500
        assert digits <= 10
    assert significant(3.0, 3.0, 4) == 15
