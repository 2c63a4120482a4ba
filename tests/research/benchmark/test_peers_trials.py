r"""The trials that batches cost and that a rising input saves: problems and tables."""

from __future__ import annotations

import math

import pytest
import torch

from botorch_lse.strategies import Binary
from research.benchmark import peers_trials
from research.benchmark.peers_outcomes import cube
from research.benchmark.peers_outcomes_problems import PROBLEMS
from research.benchmark.peers_psychometric import (
    ALL,
    AUDIOGRAMS,
    EARS,
    FREQUENCIES,
    FUNCTIONS,
    PUBLISHED,
)
from research.benchmark.peers_trials import (
    ONE,
    RISING,
    TEN,
    Job,
    Run,
    batches_table,
    jobs_of,
    rising_tables,
    run,
    trials,
)
from research.benchmark.registry import Options

LINE = "line, 2-D"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_rise_with_their_first_input_through_the_level(name):
    function = FUNCTIONS[name]
    X = cube(500, function.d, 0)
    higher = X.clone()
    higher[:, 0] = (X[:, 0] + 0.05).clamp_max(1.0)
    is_moved = higher[:, 0] > X[:, 0]
    rise = function.latent(higher) - function.latent(X)
    assert bool((rise[is_moved] > 0).all())
    share = (Binary().value(function.latent(X)) > function.level).double().mean()
    assert 0.02 < float(share) < 0.7


@pytest.mark.parametrize("ear", EARS)
def test_a_tone_at_the_threshold_of_an_ear_is_heard_half_of_the_time(ear):
    u = torch.tensor([(math.log2(f) + 3) / 7 for f in FREQUENCIES])
    loudness = (torch.tensor(EARS[ear]) + 20) / 140
    X = torch.stack([u, loudness], dim=-1).double()
    for spread in (2.0, 0.5):
        latent = ALL[f"audiogram, {ear}, {spread:g} dB"].latent
        assert torch.allclose(latent(X), torch.zeros(8).double(), atol=1e-3)
        louder = X + torch.tensor([0.0, spread / 140])
        assert torch.allclose(latent(louder) - latent(X), torch.ones(8).double())


def test_beyond_the_frequencies_an_audiogram_is_a_line_and_does_not_break():
    latent = ALL["audiogram, sensory, 2 dB"].latent
    u = torch.linspace(0, 1, 20001, dtype=torch.float64)
    values = latent(torch.stack([u, torch.full_like(u, 0.5)], dim=-1))
    assert bool((values.diff().abs() < 0.05).all())
    # The last two thresholds are 62.05 and 66.09 dB at 6 and 8 kHz; 16 kHz is the end.
    expected = (50 - (66.08775286 + 4 * (66.08775286 - 62.0527006))) / 2
    assert float(values[-1]) == pytest.approx(expected, abs=1e-6)


def test_the_error_of_a_threshold_is_how_far_the_crossing_is_off():
    class Shifted:
        """The truth, at intensities that are higher by a tenth."""

        def at(self, X):
            moved = X - torch.tensor([0.0, 0.1])
            mean = ALL["novel detection, 2-D"].latent(moved)
            return mean, torch.ones_like(mean)

    level = Binary().latent(torch.tensor(0.75, dtype=torch.float64))
    error = peers_trials._threshold_error("novel detection, 2-D", Shifted(), level)
    assert float(error) == pytest.approx(0.1, abs=2e-3)
    nothing = peers_trials._threshold_error("Hartmann, 6-D", Shifted(), level)
    assert nothing.isnan()


def test_runs_are_scored_after_their_numbers_of_trials(monkeypatch):
    monkeypatch.setattr(peers_trials, "RISING_AT", (20, 40))
    monkeypatch.setattr(peers_trials, "SINGLE_AT", (10, 12))
    monkeypatch.setattr(peers_trials, "ROWS", 60)
    (known,), (blind,) = (
        run(Job(LINE, method, 0)) for method in ("increasing", "without increasing")
    )
    assert len(known.brier) == len(known.field) == len(known.held) == 2
    assert 0 < known.field[-1] < known.square[-1] < 0.5
    assert 0 < known.threshold[-1] < 0.5
    assert known.brier != blind.brier
    (one,) = run(Job("discrimination, 2-D", ONE, 0))
    assert len(one.brier) == 2
    assert 0 < one.brier[-1] < 0.6


def made(problem: str, method: str, seed: int, brier: tuple[float, ...]) -> Run:
    others = ((x,) * len(brier) for x in (0.1, 0.2, 0.03, 0.9, 0.01))
    return Run(Job(problem, method, seed), brier, *others)


def test_tables_say_how_many_trials_batches_need_and_a_rise_saves():
    runs = []
    for name in PROBLEMS:
        for seed in (0, 1):
            runs.append(made(name, ONE, seed, (0.3, 0.2, 0.1)))
            runs.append(made(name, TEN, seed, (0.3, 0.25, 0.15)))
    (table,) = batches_table(runs)
    assert table.rows[0][2] == "0.300, 0.300 +- 0.000"
    # At 150 batches have not yet the score of 150 single trials.
    assert table.rows[-1][2:] == ("1.00", "1.25", "> 1.00")
    # At 50 they already had a better one, and later a worse one than before.
    few = [made("discrimination, 2-D", ONE, 0, (0.35, 0.2, 0.19))]
    few.append(made("discrimination, 2-D", TEN, 0, (0.3, 0.19, 0.2)))
    (table,) = batches_table(few)
    assert table.rows[-1][2:] == ("< 1.00", "0.95", "1.00")
    rising = [
        made(name, method, 0, (0.4 - i, 0.3 - i, 0.2 - i, 0.1 - i))
        for name in FUNCTIONS
        for i, method in zip((0.0, 0.05, 0.0, 0.0), RISING, strict=True)
    ]
    table, of_field, of_squares, of_thresholds = rising_tables(rising)
    assert table.rows[0][3] == "0.400 (90 %)"
    assert table.rows[1][3] == "0.350 (90 %)"
    assert of_field.rows[1][3] == "0.100 (90 %)"
    assert of_squares.rows[1][3] == "0.200 (90 %)"
    assert of_thresholds.rows[1][3] == "0.030 (90 %)"
    # Eight audiograms are one row, and all published problems another.
    made_up = [
        made(name, method, 0, (0.4, 0.3, 0.2, 0.1))
        for name in PUBLISHED
        for method in RISING
    ]
    names = {row[0] for row in rising_tables(made_up)[0].rows}
    assert names == {*PUBLISHED, "audiograms", "published problems"} - {*AUDIOGRAMS}
    assert table.rows[4][3:7] == ("35", "75", "150", "> 200")
    assert table.rows[5][3:7] == ("20", "50", "100", "200")
    assert batches_table([]) == rising_tables([]) == []


def test_all_runs_are_made_or_those_of_one_problem(monkeypatch):
    assert len(list(jobs_of(2, ()))) == 2 * (
        2 * len(PROBLEMS) + 4 * (len(FUNCTIONS) + 12)
    )
    monkeypatch.setattr(peers_trials, "RISING_AT", (10, 20, 30, 40))
    monkeypatch.setattr(peers_trials, "ROWS", 60)
    found = trials(Options(quick=True, workers=1, only=(LINE,)))
    assert [table.title.split(":")[0] for table in found.tables] == [
        "Rising inputs"
    ] * 4
    assert len(found.data["runs"]) == len(RISING)
    assert torch.tensor([r["brier"] for r in found.data["runs"]]).isfinite().all()
