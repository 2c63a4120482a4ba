r"""What is known, as a table and a picture."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from matplotlib.axes import Axes

from botorch_lse.__main__ import command
from botorch_lse.cli import answers, commands, demo
from botorch_lse.cli.answers import draw_answer
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import USUAL_AUDIT, settings
from botorch_lse.confidence.calibration import ANOTHER_MODEL, Calibration
from botorch_lse.data.pool import Pool
from botorch_lse.plotting.axes import axes_of
from botorch_lse.strategies.algorithm import (
    ALL_ABOVE,
    AUDITED,
    BUDGET,
    DECIDED,
    EXHAUSTED,
    NONE_FOUND,
    NOT_CONFIRMED,
    OUT_OF_REACH,
)
from botorch_lse.strategies.criteria.audit import USUAL
from tests.cli.lab import HILL, NEXT, Lab, hill

KNOWN = "x,y\n" + "".join(f"{x},{hill({'x': str(x)})}\n" for x in range(0, 20, 2))
"""Half of the candidates, measured before anybody asked for a sheet."""


@pytest.mark.slow
def test_the_answer_is_the_table_with_sides_in_its_own_order(lab: Lab) -> None:
    header, *lines = HILL.splitlines()
    lab.write("candidates.csv", "\n".join([header, *reversed(lines)]))
    lab.write("results.csv", f"{KNOWN}19,n/a\n")
    lab.call(f"{NEXT} --first 10 --noise-std 0.7")
    before = lab.contents()
    said = lab.call("answer")
    assert "20 candidates: 10 measured, 1 not measurable." in said
    assert " until all is decided." in said  # the forecast
    assert "are so by a model learnt from your values; check a few, or" in said
    for jargon in ("theorem", "hyper-parameter", "probability", "guarantee"):
        assert jargon not in said
    more = lab.call("answer --details")
    assert "Nothing was predicted before it was measured." in more  # the calibration
    assert "No guarantee if the function varies faster elsewhere" in more
    assert "check a few" not in more
    table = lab.read("answer.csv")
    assert [line["name"] for line in table] == [f"n{x:02d}" for x in range(19, -1, -1)]
    assert table[0]["side"] == "n/a"
    assert table[0]["mean"] == ""
    sides = [line["side"] for line in table[1:]]
    assert set(sides) <= {"above", "below", "undecided"}
    found = {side: sides.count(side) for side in ("above", "below", "undecided")}
    assert ", ".join(f"{n} {side}" for side, n in found.items()) in said
    for line in table[1:]:
        truth, far = float(hill(line)), abs(float(hill(line)) - 7) > 0.5
        assert not far or line["side"] in (
            "undecided",
            "above" if truth > 7 else "below",
        )
        assert line["n_observations"] == ("1" if int(line["x"]) % 2 == 0 else "0")
        assert "e-" not in line["probability_above"]
    assert (lab.folder / "answer.png").stat().st_size > 10_000
    after = lab.contents()
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_answers_follow_the_files_notation(lab: Lab) -> None:
    lab.write("candidates.csv", HILL.replace(",", ";"), "utf-8-sig")
    lab.write("results.csv", KNOWN.replace(",", ";").replace(".", ","))
    lab.call(f"{NEXT} --decimal , --noise-std 0.1")
    lab.call("answer --table found.csv --picture found.pdf")
    lines = lab.read("found.csv", ";")
    assert len(lines) == 20
    assert "," in lines[0]["mean"]
    assert (lab.folder / "found.pdf").exists()


def test_before_a_model_is_learnt_the_answer_has_no_bounds(lab: Lab) -> None:
    said = lab.call(NEXT.replace("next", "answer"))  # the first call may be this one
    assert "20 candidates: 0 measured." in said
    assert (lab.folder / "botorch-lse.toml").exists()
    line = lab.read("answer.csv")[0]
    assert (line["side"], line["lower"], line["upper"]) == ("undecided", "", "")


@pytest.mark.slow
def test_the_picture_says_what_is_asked(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write("results.csv", KNOWN.replace("x,y", "x,y (MPa)"))
    lab.call(NEXT.replace("--above", "--below"))
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    drawn = list[Axes]()

    def keep(*arguments: object, **options: object) -> Axes:
        drawn.append(plot(*arguments, **options))
        return drawn[0]

    plot = answers.plot_level_set
    monkeypatch.setattr(answers, "plot_level_set", keep)
    draw_answer(run, Path("answer.png"))
    assert drawn[0].get_title() == "y: below 7 MPa?"
    assert drawn[0].get_ylabel() == "y (MPa)"
    with pytest.raises(ValueError, match=r"the picture cannot be written"):
        draw_answer(run, Path("answer.xyz"))


def test_answers_never_replace_what_they_rest_on(lab: Lab) -> None:
    lab.call(NEXT)
    assert "results.csv is one of the tables" in lab.refused(
        "answer --table results.csv"
    )


@pytest.mark.slow
def test_the_state_is_that_of_the_same_rounds_told_one_by_one(lab: Lab) -> None:
    lab.write("results.csv", KNOWN)
    lab.call(NEXT)
    lab.fill("sheet.csv", hill)
    lab.call("next")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    told = run.state.observations
    # What no sheet asked for may have been looked at value by value: ten looks.
    assert told.round.tolist() == [10] * 10 + [11] * 4
    direct = run.strategy.replay(told, seed=0).classification
    assert direct.side.tolist() == run.state.classification.side.tolist()
    torch.testing.assert_close(direct.mean, run.state.classification.mean)


def test_predictions_that_fail_are_said_in_words_of_tables() -> None:
    r"""Who has a table and no code can measure more, and gives no `model`."""
    ahead = torch.full((8,), 5.0).double()
    said = str(Calibration(ahead, ahead, ahead))
    assert ANOTHER_MODEL in said
    words = commands._in_table_words(said)
    assert words.endswith("typed or measured wrongly, or measure more.")


@pytest.mark.slow
def test_numbers_stand_where_they_are_and_words_by_name(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[Axes]()

    def keep(*arguments: object, **options: object) -> Axes:
        drawn.append(plot(*arguments, **options))
        return drawn[-1]

    plot = answers.plot_level_set
    monkeypatch.setattr(answers, "plot_level_set", keep)
    depths = [0.5, 1, 2, 5, 10, 20, 50, 100]
    lines = [f"{depth},{word}" for depth in depths for word in ("yes", "no")]
    lab.write("candidates.csv", "\n".join(["depth [m],dry", *lines, ""]))
    lab.call("next candidates.csv --above 40 --column y")
    lab.call("answer")
    assert drawn[0].get_xlabel() == "depth [m]"
    assert drawn[0].get_xlim()[1] > 100  # not the eighth of eight words
    assert [label.get_text() for label in drawn[0].get_yticklabels()] == ["no", "yes"]
    one = "\n".join(["depth [m]", *map(str, depths), ""])
    for file in ("candidates.csv", "botorch-lse.toml", "sheet.csv"):
        (lab.folder / file).unlink()
    lab.write("candidates.csv", one)
    lab.call("next candidates.csv --above 40 --column y")
    lab.call("answer")
    ticks = [label.get_text() for label in drawn[1].get_xticklabels()]
    assert drawn[1].get_xlim()[1] > 100
    assert len(ticks) < 9 or "5" not in ticks  # round numbers, not one for each row


def test_doses_count_by_their_logarithm(lab: Lab) -> None:
    depths = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
    lines = [f"{depth},{heat}" for depth in depths for heat in (20, 40)]
    lab.write("candidates.csv", "\n".join(["dose [mg],heat", *lines, ""]))
    given = ["next", "candidates.csv", "--above", "40", "--column", "y"]
    assert command([*given, "--logs", "dose [mg]"]) == 0
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    dose = run.candidates.frame["dose [mg]"]
    assert run.pool.X[:, 0].tolist() == pytest.approx(dose.map(math.log10).tolist())
    axis = axes_of(Pool(run.pool.X, names=run.pool.names, table=run.candidates.frame))
    assert [part.is_log for part in axis] == [True, False]
    lab.call("answer")
    lab.write("candidates.csv", "\n".join(["dose [mg],heat", *lines, "0,20", ""]))
    said = lab.refused("next")
    assert "line 22, column dose [mg]: expected a number above 0" in said
    (lab.folder / "botorch-lse.toml").unlink()
    lab.write("candidates.csv", "dose,wood\n1,oak\n9,ash\n4,oak\n")
    said = lab.refused("next candidates.csv --above 4 --column y --logs wood")
    assert "`logs` to name inputs that are numbers, but 'wood' is none" in said


def test_large_values_with_small_differences_are_told_apart(lab: Lab) -> None:
    def high(line: Mapping[str, str]) -> str:
        return f"{10000000 + float(hill(line)):.2f}"

    known = "".join(f"{x},{high({'x': str(x)})}\n" for x in range(0, 20, 2))
    lab.write("results.csv", f"x,y\n{known}")
    call = NEXT.replace("--above 7", "--above 10000007.5")
    said = lab.call(f"{call} --first 10 --noise-std 0.3")
    assert "y against 10000007.5: " in said
    lab.call("answer")
    lines = lab.read("answer.csv")
    for name in ("mean", "lower", "upper"):
        assert len({line[name] for line in lines}) > 12
        assert all("e" not in line[name] for line in lines)
    for line in lines:
        sigma = float(line["sigma"])
        assert len(line["sigma"].lstrip("0.")) <= 2
        assert len(line["mean"].partition(".")[2]) <= 1 - math.floor(math.log10(sigma))


def test_what_lies_on_one_side_is_said_as_it_is(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    r"""Values below the level by no more than the noise that was learnt."""
    lab.write("results.csv", KNOWN)
    lab.call(f"{NEXT} --first 10 --noise-std 0.7")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    below = int((run.state.observations.y < 7).sum())
    assert 0 < below < 10
    ended = dataclasses.replace(run.state, stop_reason=ALL_ABOVE)
    monkeypatch.setitem(run.__dict__, "state", ended)
    said = commands.summary(run)
    assert "No candidate was clearly below the level, so far." in said
    assert f"{below} of 10 values were below it, but by no more than the noise" in said
    monkeypatch.setitem(
        run.__dict__, "state", dataclasses.replace(ended, stop_reason=NONE_FOUND)
    )
    said = commands.summary(run)
    assert f"above the level, so far. {10 - below} of 10 values were above it" in said


@pytest.mark.parametrize(
    ("lowest", "said"),
    [
        (9.0, "Every value so far lies above the level, so nothing is decided."),
        (6.9, "1 of 10 measured candidates lies below the level, none of them by more"),
    ],
)
def test_while_all_lies_on_one_side_the_forecast_says_what_is_true(
    lab: Lab, lowest: float, said: str
) -> None:
    values = [f"{x},{9 + 0.1 * x if x else lowest}" for x in range(0, 20, 2)]
    lab.write("results.csv", "\n".join(["x,y", *values, ""]))
    told = lab.call(f"{NEXT} --first 8 --noise-std 0.7")
    assert said in told
    assert "New candidates come first, 10 are left. To end earlier, set budget" in told
    assert " row" not in told
    file = lab.folder / "botorch-lse.toml"
    file.write_text(file.read_text().replace("# budget = 100", "budget = 10"))
    assert "No candidate was clearly below the level, so far." in lab.call("next")


def test_a_budget_changes_what_is_foreseen(lab: Lab) -> None:
    lab.write("results.csv", KNOWN)
    call = f"{NEXT} --first 10 --noise-std 0.7"
    more = re.search(r"About (\d+) more", lab.call(call))
    assert more is not None
    n = int(more[1])
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    file.write_text(text.replace("# budget = 100", f"budget = {10 + n}"))
    said = lab.call("next")
    wanted = f"About {n} more measurements until all is decided; the budget leaves {n}"
    assert wanted in said
    file.write_text(text.replace("# budget = 100", f"budget = {10 + n - 1}"))
    said = lab.call("next")
    assert (
        f"The budget leaves {n - 1} measurement{'s' * (n != 2)}; about {n} would "
        "decide all, so that some candidates may stay undecided." in said
    )


def test_an_audit_without_numbers_is_the_usual_one(lab: Lab) -> None:
    assert USUAL_AUDIT == USUAL
    lab.call(f"{NEXT} --audit")
    stored = Path("botorch-lse.toml")
    assert "audit = [0.05, 0.05]" in stored.read_text()
    stored.write_text(stored.read_text().replace("[0.05, 0.05]", "true"))
    assert settings(stored, {}).audit == USUAL_AUDIT


@pytest.mark.slow
def test_the_line_that_the_answer_suggests_has_candidates_checked(lab: Lab) -> None:
    lab.write("results.csv", KNOWN)
    lab.call(f"{NEXT} --first 10 --noise-std 0.1 --epsilon 1")
    while lab.read("sheet.csv"):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    said = lab.call("answer")
    (line,) = re.findall(r"add the line `(.*)` to botorch-lse.toml", said)
    stored = Path("botorch-lse.toml")
    stored.write_text(f"{stored.read_text()}{line}\n")
    lab.call("next")
    assert lab.read("sheet.csv")


@pytest.mark.slow
def test_an_audit_that_was_asked_for_is_told_in_the_end(lab: Lab) -> None:
    lab.write("results.csv", KNOWN)
    lab.call(f"{NEXT} --first 10 --noise-std 0.1 --audit 0.3,0.3 --epsilon 0.6")
    for _ in range(20):
        if not lab.read("sheet.csv"):
            break
        lab.fill("sheet.csv", hill)
        lab.call("next")
    said = lab.call("answer")
    assert "candidates drawn at random confirmed it." in said
    assert "Audited: with probability at least 0.7 over the random draws" in said
    assert "Gotovos" not in said
    assert "check a few" not in said


def test_every_end_has_a_sentence() -> None:
    kinds = (BUDGET, DECIDED, AUDITED, NOT_CONFIRMED, NONE_FOUND, ALL_ABOVE)
    assert {*commands.ENDS} == {*demo.ENDS} == {*kinds, EXHAUSTED, OUT_OF_REACH}


def test_a_run_of_equal_values_says_why_it_ended(lab: Lab) -> None:
    lab.write("results.csv", "name,y\n" + "".join(f"n{x:02d},7\n" for x in range(20)))
    said = lab.call(
        "next candidates.csv --above 7 --column y --key name --max-repeats 1"
    )
    assert "0 above, 0 below, 20 undecided" in said
    why = (
        "All values are equal, so that measuring a candidate again tells nothing more."
    )
    assert f"No candidate is left to measure.\n{why}\n" in said
    assert lab.call("answer --details").count("All values are equal") == 1
