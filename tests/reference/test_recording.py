r"""Records of runs differ where a digit, a row or a sentence does, and only there."""

import copy
from dataclasses import replace

import pytest
import torch

from tests.reference import recording
from tests.reference.recording import differences, noted

SMALL = torch.linspace(-1, 1, 5, dtype=torch.float64)
MANY = torch.linspace(-1, 1, 1000, dtype=torch.float64)


def record(values, rough=False, **changes):
    event = {
        "ask": [3, 1, 4],
        "stop": None,
        "answer": {"mean": noted(values, rough), "guarantee": noted("It holds.")},
    }
    return {"run #0": [{"rows": 9}, {**event, **changes}]}


@pytest.mark.parametrize("values", [SMALL, MANY])
def test_the_last_bit_of_a_small_pool_counts(values):
    assert differences(record(values), record(values.clone())) == []
    other = values.clone()
    other[3] = torch.nextafter(other[3], torch.tensor(2.0).double())
    assert differences(record(values), record(other)) == [
        "run #0: event 1 of 2: ['answer.mean']"
    ]


def test_only_rounding_is_forgiven_in_a_large_pool():
    old = record(MANY, rough=True)
    assert differences(old, record(MANY * (1 + 1e-12), rough=True)) == []
    assert differences(old, record(MANY + 1e-12, rough=True)) == []
    for other in (MANY * (1 + 1e-7), MANY + 1e-7):
        assert len(differences(old, record(other, rough=True))) == 1
    last = MANY.clone()
    last[1] += 1e-3  # no row of the sample: the sums of all rows tell
    assert len(differences(old, record(last, rough=True))) == 1


@pytest.mark.parametrize("change", [{"ask": [3, 4, 1]}, {"stop": "decided"}])
def test_rows_and_stop_reasons_are_equal_in_every_pool(change):
    for rough in (False, True):
        said = differences(record(MANY, rough), record(MANY, rough, **change))
        assert said == [f"run #0: event 1 of 2: {[*change]}"]
    sides = {"answer": {"above": noted(MANY > 0, rough=True)}}
    other = {"answer": {"above": noted(MANY > 0.1, rough=True)}}
    assert differences(record(MANY, True, **sides), record(MANY, True, **other))


def test_infinite_and_missing_numbers_are_equal_to_themselves():
    values = torch.tensor([torch.inf, -torch.inf, torch.nan, 1.0]).double()
    old = record(values, rough=True)
    assert differences(old, copy.deepcopy(old)) == []
    assert differences(old, record(values.flip(0), rough=True))


def test_other_words_hide_no_other_number():
    old, new = record(SMALL), record(SMALL)
    new["run #0"][1]["answer"]["guarantee"] = noted("It does hold.")
    said = "run #0: in words only, event 1 of 2: ['answer.guarantee']"
    assert differences(old, new) == [said]
    old["run #0"].append({"n": 4})
    new["run #0"].append({"n": 5})
    assert differences(old, new) == ["run #0: event 2 of 3: ['n']"]


def test_runs_and_events_that_one_record_lacks_are_named():
    old, new = record(SMALL), record(SMALL)
    old["other #1"] = []
    new["run #0"].append({"n": 4})
    assert differences(old, new) == ["other #1: only in old", "run #0: 2 and 3 events"]


def test_a_run_of_the_table_is_recorded_again_to_the_last_bit():
    recording.fill()
    name = "LSEStrategy q=3"
    first, again = (recording.recorded(name, 1)[1] for _ in range(2))
    assert "replayed" in first[-1]
    assert differences({name: first}, {name: again}) == []


def test_a_changed_width_is_reported(monkeypatch):
    recording.fill()
    name = "LSEStrategy q=3"
    before, case = recording.recorded(name, 0)[1], recording.CASES[name]

    def wider():
        strategy, *rest = case.make()
        return replace(strategy, beta=4.0 * (1 + 1e-15)), *rest

    monkeypatch.setitem(recording.CASES, name, replace(case, make=wider))
    (said,) = differences({name: before}, {name: recording.recorded(name, 0)[1]})
    assert "answer.lower" in said
