r"""What an evaluation may return."""

import numpy as np
import pytest
import torch

from botorch_lse.ax.run import by_metric
from botorch_lse.strategies import Binary, Counts


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, 2.0),
        (np.float32(2.0), 2.0),
        (torch.tensor([2.0]), 2.0),
        ((2.0, 0.1), (2.0, 0.1)),
        ([2.0, torch.tensor(0.5)], (2.0, 0.5)),
        ((2.0, None), (2.0, None)),
    ],
)
def test_numbers_of_any_kind_are_taken(value, expected):
    assert by_metric(value, ["y"]) == {"y": expected}


@pytest.mark.parametrize("yes", [True, np.True_, (True, None), {"y": True}])
def test_a_truth_is_an_answer_of_yes_or_no(yes):
    ((found, *_),) = np.atleast_2d(by_metric(yes, ["y"], [Binary()])["y"])
    assert found == 1.0
    with pytest.raises(ValueError, match=r"but got .*True.*Write `float"):
        by_metric(yes, ["y"], [Counts()])


def test_further_entries_are_kept():
    assert by_metric({"y": 1, "cost": 3.0}, ["y"]) == {"y": 1.0, "cost": 3.0}
    tracked = {"y": 1, "cost": (3.0, 0.0)}
    assert by_metric(tracked, ["y"]) == {"y": 1.0, "cost": (3.0, 0.0)}


def test_further_entries_may_be_nan():
    outcome = by_metric({"y": 1, "heat": np.float32("nan"), "time": [2, 0]}, ["y"])
    assert np.isnan(outcome["heat"])
    assert outcome["time"] == (2.0, 0.0)


@pytest.mark.parametrize("sem", [0.0, 1e-12, 1e-300])
def test_exact_values_are_taken(sem):
    assert by_metric((1.0, sem), ["y"]) == {"y": (1.0, sem)}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "a number or `.mean, sem.`, but got None"),
        ("much", "but got 'much' for 'y'"),
        ("1.5", "but got '1.5' for 'y'"),
        (True, r"but got True for 'y'. Write `float\(...\)`"),
        ((1.0, True), "but got .1.0, True. for 'y'"),
        (1j, "but got 1j for 'y'"),
        (torch.tensor(1j), "but got tensor.*for 'y'"),
        ((1.0, 2.0, 3.0), "a number or `.mean, sem.`"),
        (torch.ones(2), "a number or `.mean, sem.`"),
        (float("nan"), "finite numbers, but got nan"),
        ((1.0, -1.0), "of at least 0, but got -1.0 for 'y'. 0 is an exact.*None"),
        ((1.0, float("nan")), "a standard error of at least 0, but got nan"),
        ((1.0, float("inf")), "a standard error of at least 0, but got inf"),
        ({"z": 1.0}, "\\['y'\\] are missing"),
        ({"y": 1.0, "heat": "hot"}, "a number or `.mean, sem.`, but got 'hot' for 'he"),
        ({"y": 1.0, "heat": (1.0, 2.0, 3.0)}, "a number or `.mean, sem.`, but got"),
        ({"y": 1.0, 3: 4.0}, "by the names of metrics, but got the name 3. Write '3'"),
    ],
)
def test_what_is_no_outcome_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        by_metric(value, ["y"])
