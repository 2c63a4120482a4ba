r"""Results whose ratios count are learnt by logarithms, and come back in units."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from matplotlib.axes import Axes

from botorch_lse.cli import answers
from botorch_lse.cli.answers import draw_answer
from botorch_lse.cli.runs import Run
from botorch_lse.cli.scale import Scale
from botorch_lse.cli.settings import settings
from botorch_lse.cli.simulated import truth_of
from tests.cli.lab import HILL, NEXT, Lab, Line, hill


def power(line: Line) -> str:
    r"""What is measured: the hill's height as the power of two, over four decades."""
    return f"{2.0 ** float(hill(line)):.6g}"


KNOWN = [x for x in range(20) if x % 2 == 0 or x in (5, 11)]
RESULTS = "x,y\n" + "".join(f"{x},{power({'x': str(x)})}\n" for x in KNOWN)
CALL = f"{NEXT} --first 12 --log-result --noise-std 0.02".replace("above 7", "above 90")
CALL = CALL.replace("--epsilon 0.5", "--epsilon 20")


def test_what_is_promised_by_logarithms_holds_in_the_units_of_results() -> None:
    scale = Scale(is_log=True)
    for level, epsilon in ((90.0, 20.0), (0.001, 0.0005), (5e6, 1.0)):
        inner = scale.accuracy(epsilon, level)
        ends = [scale.level(level) - inner, scale.level(level) + inner]
        low, high = scale.outward(torch.tensor(ends, dtype=torch.float64)).tolist()
        assert level - epsilon < low < level < high <= level + epsilon * (1 + 1e-9)
        assert high - level > 0.99 * epsilon
    assert scale.noise(0.1) == pytest.approx(math.log10(math.exp(0.1)))
    assert Scale().accuracy(3.0, 90.0) == 3.0
    assert scale.accuracy(0.0, 90.0) == 0.0


@pytest.mark.slow
def test_the_answer_is_that_of_the_logarithms_in_the_units_of_results(lab: Lab) -> None:
    lab.write("results.csv", RESULTS)
    said = lab.call(CALL)
    assert "y against 90: " in said
    assert "with log_result" not in said  # no hint at what is done already
    lab.call("answer --table logs.csv")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    inner, outer = run.state.classification, run.answer
    assert run.strategy.goal.threshold == pytest.approx(math.log10(90))
    torch.testing.assert_close(outer.mean, 10.0**inner.mean)
    torch.testing.assert_close(outer.lower, 10.0**inner.lower)
    torch.testing.assert_close(outer.upper, 10.0**inner.upper)
    for line in lab.read("logs.csv"):
        truth = float(power(line))
        if abs(truth - 90) > 20:
            assert line["side"] in ("undecided", "above" if truth > 90 else "below")
        assert 0 < float(line["lower"]) < float(line["mean"]) < float(line["upper"])
        if int(line["x"]) in KNOWN:
            assert float(line["mean"]) == pytest.approx(truth, rel=0.1)
    # The same as by hand, in a table of logarithms.
    logs = [f"{x},{math.log10(float(power({'x': str(x)})))!r}" for x in KNOWN]
    lab.write("results.csv", "\n".join(["x,y", *logs, ""]))
    for name in ("botorch-lse.toml", "sheet.csv"):
        (lab.folder / name).unlink()
    by_hand = CALL.replace("--log-result ", "")
    by_hand = by_hand.replace("above 90", f"above {math.log10(90)!r}")
    by_hand = by_hand.replace("epsilon 20", f"epsilon {run.epsilon!r}")
    lab.call(by_hand.replace("0.02", repr(0.02 / math.log(10))))
    hand = Run.read(settings(Path("botorch-lse.toml"), {}))
    assert hand.answer.side.tolist() == outer.side.tolist()
    torch.testing.assert_close(hand.answer.mean, inner.mean, atol=1e-4, rtol=0)
    assert hand.state.content().estimate == run.state.content().estimate


@pytest.mark.slow
def test_pictures_of_logarithms_have_a_log_scale_and_units(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write("results.csv", RESULTS)
    lab.call(CALL)
    run, drawn = Run.read(settings(Path("botorch-lse.toml"), {})), list[Axes]()
    plot = answers.plot_level_set

    def keep(*arguments: object, **options: object) -> Axes:
        drawn.append(plot(*arguments, **options))
        return drawn[0]

    monkeypatch.setattr(answers, "plot_level_set", keep)
    draw_answer(run, Path("answer.png"))
    assert drawn[0].get_yscale() == "log"
    assert drawn[0].get_title() == "y: above 90?"
    low, high = drawn[0].get_ylim()
    assert low < 1.0
    assert high > 500


@pytest.mark.slow
def test_values_over_decades_get_a_hint_that_can_be_followed_or_ended(
    lab: Lab,
) -> None:
    lab.write("results.csv", RESULTS)
    call = CALL.replace(" --log-result", "").replace("--noise-std 0.02", "")
    said = lab.call(call)
    assert "Values go from " in said
    assert (
        "where ratios count, set log_result = true in botorch-lse.toml, and the model "
        "learns their logarithms. (log_result = false in botorch-lse.toml ends" in said
    )
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    for answer, is_log in (("false", False), ("true", True)):
        file.write_text(text.replace("# log_result = true", f"log_result = {answer}"))
        assert "Values go from" not in lab.call("next")
        run = Run.read(settings(Path("botorch-lse.toml"), {}))
        assert run.scale.is_log == is_log
    narrow = "x,y\n" + "".join(f"{x},{hill({'x': str(x)})}\n" for x in KNOWN)
    lab.write("results.csv", narrow)
    file.write_text(text)
    assert "Values go from" not in lab.call("next")


@pytest.mark.slow
def test_noise_that_grows_with_the_results_gets_the_hint_too(lab: Lab) -> None:
    x = [i / 79 for i in range(80)]
    lab.write("candidates.csv", "x\n" + "".join(f"{one:.6f}\n" for one in x))
    draws = torch.randn(80, generator=torch.Generator().manual_seed(1)).tolist()
    pairs = zip(x, draws, strict=True)
    rows = [(one, (1.2 + math.sin(7 * one)) * (1 + 0.1 * z)) for one, z in pairs]
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0)).tolist()
    lines = (f"{rows[i][0]:.6f},{rows[i][1]:.4f}\n" for i in order)
    lab.write("results.csv", "x,y\n" + "".join(lines))
    said = lab.call("next candidates.csv --column y --above 1 --epsilon 0.1")
    assert (
        ", and their noise grows with them: where ratios count, set log_result" in said
    )
    text = (lab.folder / "botorch-lse.toml").read_text()
    lab.write(
        "botorch-lse.toml", text.replace("# log_result = true", "log_result = true")
    )
    assert "Values go from" not in lab.call("next")
    assert Run.read(settings(Path("botorch-lse.toml"), {})).state.remarks == ()


def test_what_has_no_logarithm_is_named(lab: Lab) -> None:
    lab.write("results.csv", "name,y\nn03,0\nn04,-2\nn05,3\n")
    said = lab.refused(CALL)
    assert "2 things to correct" in said
    assert (
        "line 2, column y: expected a number above 0, which has a logarithm, but got "
        "'0'; write the limit below which it lies, such as <0.1; or set" in said
    )
    lab.write("results.csv", "name,y\nn03,<0.1\nn04,<0.1\nn05,3\n")
    assert "3 measured" in lab.call(CALL)
    (lab.folder / "botorch-lse.toml").unlink()
    said = lab.refused(CALL.replace("--above 90", "--above 0"))
    assert "Expected a level above 0, which has a logarithm, with `log_result`" in said


def test_simulated_runs_know_of_logarithms(lab: Lab) -> None:
    rows = [f"{line},{power({'x': line.split(',')[0]})}" for line in HILL.split()[1:]]
    lab.write("candidates.csv", "\n".join(["x,name,y", *rows, ""]))
    call = CALL.replace("next", "simulate")
    said = lab.call(f"{call} --truth y --noise 0.02 --runs 1")
    assert "Truth: the column y; noise of 2 % (standard deviation)." in said
    above = sum(float(row.split(",")[2]) > 90 for row in rows)
    assert f"{above} above, 0 wrong. Every candidate is decided." in said
    lab.write("candidates.csv", HILL)
    said = lab.refused("simulate --between 0,100 --noise 0.1")
    assert "to be numbers above 0, which have logarithms" in said
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    drawn = truth_of(run, 200, None, (1.0, 10000.0), 0.1).values
    # Most of the functions lie between the ends: 0 and 4 by logarithms, seed 0.
    assert float(((drawn > 0) & (drawn < 4)).double().mean()) > 0.85
