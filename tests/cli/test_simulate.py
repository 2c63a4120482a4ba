r"""How many measurements to expect, from simulated ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from botorch_lse.cli.commands import expected
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import settings
from botorch_lse.cli.simulated import Outcome, simulated, truth_of
from botorch_lse.strategies.algorithm import DECIDED, NONE_FOUND
from tests.cli.lab import HILL, NEXT, Lab, hill

START = NEXT.replace("next ", "simulate ")


def known(lab: Lab) -> None:
    r"""The candidates with a column of true values."""
    header, *lines = HILL.splitlines()
    rows = [f"{line},{hill({'x': line.split(',')[0]})}" for line in lines]
    lab.write("candidates.csv", "\n".join([f"{header},y", *rows]))


@pytest.mark.slow
def test_a_known_column_is_measured_until_its_sides_are_known(lab: Lab) -> None:
    known(lab)
    call = f"{START} --truth y --noise 0.1 --noise-std 0.1 --runs 2"
    said = lab.call(call)
    assert "Truth: the column y; noise with standard deviation 0.1." in said
    assert said.count("8 above, 0 wrong. Every candidate is decided.") == 2
    counts = sorted(int(n) for n in re.findall(r"run \d: (\d+) measurements", said))
    assert f"Expect {counts[1]} measurements" in said
    assert lab.call("simulate --truth y --noise 0.1 --runs 2") in said  # again the same


def test_runs_go_on_from_the_results(lab: Lab) -> None:
    known = "x,y\n" + "".join(f"{x},{hill({'x': str(x)})}\n" for x in range(0, 20, 2))
    lab.write("results.csv", known)
    lab.call(f"{NEXT} --first 10 --noise-std 0.7")
    before = lab.contents()
    said = lab.call("simulate --runs 1 --most 8")
    assert "functions drawn from the model that results.csv taught" in said
    assert re.search(r"run 1: \d measurements? in [12] sheets?", said)
    assert " more" in said
    assert lab.contents() == before
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    truth = truth_of(run, 400, None, None, None)
    assert truth.noise_std == pytest.approx(0.7)
    found, answer = truth.values, run.state.classification
    # 4 standard errors of means and deviations of 400 draws, seed 0.
    off = (found.mean(dim=0) - answer.mean).abs()
    assert bool((off <= 4 * answer.sigma / 20 + 1e-6).all())
    ratio = found.std(dim=0) / answer.sigma
    assert bool(((ratio - 1).abs() <= 4 / (2 * 400) ** 0.5).all())


def test_functions_drawn_before_data_lie_between_the_ends(lab: Lab) -> None:
    lab.call(NEXT)
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    truth = truth_of(run, 400, None, (20.0, 60.0), 1.0)
    # Of 400 independent draws, 4 standard errors, seed 0.
    assert bool(((truth.values.mean(dim=0) - 40).abs() <= 4 * 10 / 20).all())
    spread = truth.values.std(dim=0) / 10
    assert bool(((spread - 1).abs() <= 4 / (2 * 400) ** 0.5).all())
    neighbours = torch.corrcoef(truth.values.T)[0, 1]
    assert float(neighbours) > 0.8  # functions, not noise


def test_wrong_sides_are_counted_beyond_the_accuracy(lab: Lab) -> None:
    lab.call(f"{NEXT} --beta 0.01 --noise-std 3 --budget 12")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    x = torch.arange(20, dtype=torch.float64)
    values = 10 - 0.2 * (x - 8.5) ** 2
    truth = truth_of(run, 1, None, (0.0, 10.0), 3.0)
    truth = type(truth)(values.expand(3, -1), 3.0, truth.state, "")
    outcomes = list(simulated(run, truth, 40))
    assert sum(outcome.wrong for outcome in outcomes) > 0
    assert all(outcome.n <= 12 for outcome in outcomes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "but no model is learnt from results yet. Say between which values"),
        (
            "--between 0,1",
            "nothing says yet, but got none. Give its standard deviation",
        ),
        ("--truth z", "expected the column 'z' of true values, but it has x, name"),
        (
            "--truth x",
            "expected true values in a column that is no input, but x is one",
        ),
        ("--truth name --noise 1", "line 2, column name: expected a number, but got"),
    ],
)
def test_what_cannot_be_simulated_is_said(lab: Lab, options: str, said: str) -> None:
    assert said in lab.refused(f"{START} {options}")


def test_what_to_expect_is_the_middle_run_and_says_what_is_open() -> None:
    noun = "measurement"
    outcomes = [Outcome(n, 2, DECIDED, 3, 0) for n in (20, 35, 50)]
    assert expected(outcomes, 0, noun) == "Expect 35 measurements (from 20 to 50)."
    assert expected(outcomes[:1], 4, noun) == "Expect 20 measurements more."
    outcomes[2] = Outcome(60, 3, NONE_FOUND, 0, 0)
    is_open = "or more: 1 of 3 runs ended before all was decided."
    assert f"{is_open} A larger epsilon takes fewer." in expected(outcomes, 0, noun)
    assert expected(outcomes, 0, noun, are_classes=True).endswith(is_open)
