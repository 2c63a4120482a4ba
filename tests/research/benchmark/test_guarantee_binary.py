from functools import partial

import pytest
import torch

from botorch_lse.strategies import Binary, Straddle
from research.benchmark import __main__ as command_line
from research.benchmark import guarantee_binary
from research.benchmark.__main__ import main
from research.benchmark.guarantee import Form, simulate
from research.benchmark.guarantee_binary import (
    DELTA,
    EPSILON,
    OUTCOMES,
    build,
    by_answers,
    held,
    problem,
)
from research.benchmark.registry import Options


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_the_theorem_promises_answers_what_it_promises_values(outcome) -> None:
    found = build(outcome, None, problem(outcome, 0, 4), 1.0)
    assert "With probability 0.9" in found.guarantee
    assert "were the posteriors of latent functions normal" in found.guarantee
    for narrow in (
        build(outcome, None, problem(outcome, 0, 4), 3.0),
        build(outcome, Straddle(), problem(outcome, 0, 4), 1.0),
    ):
        assert "No confidence is claimed" in narrow.guarantee


def test_latent_functions_have_the_variance_of_the_process_that_is_given() -> None:
    outcome = Binary(guess=0.5, lapse=0.04)
    drawn = [outcome.latent(problem(outcome, k, 4).truth) for k in range(400)]
    prior = problem(outcome, 0, 4).prior
    F = prior.features(problem(outcome, 0, 4).pool.X)
    found, wanted = torch.stack(drawn).var(dim=0).mean(), prior.variance(F).mean()
    torch.testing.assert_close(found, wanted, rtol=0.1, atol=0.0)


def test_answers_say_yes_as_often_as_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantee_binary, "LIMIT", 300)
    off = variance = 0.0
    for seed in range(3):
        instance = problem(Binary(guess=0.5), seed, 2)
        strategy = build(Binary(guess=0.5), None, instance, 1.0)
        told = by_answers(strategy, instance, seed).observations
        chance = instance.truth[told.indices]
        off += float((told.y - chance).sum())
        variance += float((chance * (1 - chance)).sum())
    assert abs(off) < 4 * variance**0.5 < 0.1 * 900


def test_whole_widths_are_never_wrong_and_a_sixth_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarantee_binary, "LIMIT", 200)
    form = Form("default", partial(build, Binary(), None))
    drawn = partial(problem, Binary(), size=4)
    whole, narrow = (
        simulate(form, drawn, Options(runs=6), by, DELTA, EPSILON, by_answers)
        for by in (1.0, 6.0)
    )
    assert whole.wrong.wrong == 0
    assert narrow.wrong.verdict == "violated"


@pytest.mark.parametrize("learnt", [False, True])
def test_intervals_of_a_whole_run_are_counted(
    learnt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee_binary, "SIZE", 4)
    monkeypatch.setattr(guarantee_binary, "AT", (25, 50))
    shares = torch.tensor([held(Binary(), learnt, seed) for seed in range(4)])
    assert shares.shape == (4, 2)
    # A process that is learnt from 25 answers is too sure of itself.
    assert (0.6 if learnt else 0.85) < float(shares.mean()) <= 1.0


def test_both_kinds_of_answers_stand_in_the_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_binary, "LIMIT", 100)
    monkeypatch.setattr(guarantee_binary, "SIZE", 3)
    monkeypatch.setattr(guarantee_binary, "AT", (25,))
    monkeypatch.setattr(command_line, "QUICK_RUNS", 2)
    assert main(["guarantee", "binary", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "| guess 0.5, lapse 0.04, LSE" in printed
    assert "Power check: all widths divided by 3" in printed
    assert "Rows that intervals of 95 % hold" in printed
    assert "| guess 0.5, lapse 0.04, learnt | 2 " in printed
