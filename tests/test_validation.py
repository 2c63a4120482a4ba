r"""The checks of arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from botorch_lse import Pool
from botorch_lse import _validation as checks
from botorch_lse.confidence import ConstantBeta, UnionBeta


@pytest.mark.parametrize("value", ["0.1", b"0.1", True, np.True_, torch.tensor(True)])
def test_text_and_truth_values_are_no_numbers(value) -> None:
    with pytest.raises(ValueError, match="`delta` to be one number, but got"):
        checks.finite_number(value, "delta")
    with pytest.raises(ValueError, match="`delta` to be one number"):
        checks.in_interval(value, "delta", 0.0, 2.0)
    with pytest.raises(ValueError, match="`n` to be a whole number"):
        checks.whole_number(value, "n", 0)


def test_a_number_as_text_is_refused_where_it_is_given() -> None:
    with pytest.raises(ValueError, match=r"`delta`.*'0\.1'.*without quotes"):
        UnionBeta(5, "0.1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`beta` to be one number"):
        ConstantBeta("9")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.array(2), torch.tensor(2), torch.tensor([2.0])]
)
def test_one_number_may_come_in_any_form(value) -> None:
    assert checks.finite_number(value, "delta") == 2.0


@pytest.mark.parametrize("value", [3, np.int8(3), torch.tensor(3), np.array(3)])
def test_one_whole_number_may_come_in_any_form(value) -> None:
    assert checks.whole_number(value, "n", 1) == 3


def test_a_long_value_is_cut_off() -> None:
    came = f"got {list(range(1000))!r}"
    said = checks.complaint("shade", "to be a word", came, "Name one.")
    assert len(said) < 500
    assert said.startswith("Expected `shade` to be a word, but got [0, 1, ")
    assert said.endswith(" .... Name one.")


def test_the_name_of_a_file_is_read_before_it_is_a_pool() -> None:
    with pytest.raises(ValueError, match=r"Write `pd\.read_csv\('candidates\.csv'\)`"):
        Pool("candidates.csv")
