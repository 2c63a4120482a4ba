r"""What the results show, said with lines of files and remedies that a table has."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from linear_operator.utils.warnings import NumericalWarning

from botorch_lse.cli import commands
from botorch_lse.surrogate.remarks import DataWarning
from tests.cli.lab import HILL, NEXT, Lab, Line, hill

FIRST = f"{NEXT} --batch 10 --first 9 --beta 9"


def lines_of(table: str, value: Callable[[int], str], step: int = 2) -> str:
    r"""Results of every so many candidates of a table, as text."""
    lines = (line.split(",") for line in table.splitlines()[1::step])
    told = (f"{x},{name},{value(int(x))}\n" for x, name in lines)
    return "x,name,y\n" + "".join(told)


@pytest.mark.parametrize("options", ["--noise-std 0.3", "--noise-std 0.1 --log-result"])
def test_a_slip_is_named_in_its_file_and_can_be_corrected_there(
    lab: Lab, options: str, recwarn: pytest.WarningsRecorder
) -> None:
    def value(line: Line) -> str:
        return f"{10 + float(line['x']) / 5:.1f}" if "log" in options else hill(line)

    lab.call(f"{FIRST} {options}")
    wrong = lab.read("sheet.csv")[4]
    slip = f"{float(value(wrong)) * 1000:.0f}"
    lab.fill("sheet.csv", lambda line: slip if line == wrong else value(line))
    said = lab.call("next")
    asked = f"results.csv: name {wrong['name']} has the value {slip}, where all others "
    assert f"{asked}predict " in said
    expected = float(said.partition(f"{asked}predict ")[2].split()[0].rstrip("."))
    assert expected == pytest.approx(float(value(wrong)), rel=0.2)
    assert "It does not count until its candidate is measured again." in said
    assert "`" not in said  # nobody is shown a line of Python, nor warned of one
    assert not [found for found in recwarn if issubclass(found.category, DataWarning)]
    assert wrong["name"] in {line["name"] for line in lab.read("sheet.csv")}
    text = (lab.folder / "results.csv").read_text()
    lab.write("results.csv", text.replace(f",{slip}", f",{value(wrong)}"))
    assert "has the value" not in lab.call("next")


@pytest.mark.slow
def test_results_of_two_kinds_are_named(lab: Lab) -> None:
    lab.write("results.csv", lines_of(HILL, lambda x: str(int(x > 8))))
    said = lab.call(f"{FIRST.replace('above 7', 'above 0.5')} --noise-std 0.3")
    assert "The results take only 2 different values (0, 1)." in said
    assert (
        "probabilities and bounds are rough guides. If 1 is yes and 0 is no, " in said
    )
    assert 'set outcome = "yes-no" in botorch-lse.toml, and the level to a' in said
    more = lab.call("answer --details")
    assert more.count("different") == 1  # not in the words of Python once more
    assert "Observations" not in more
    # What is known only by limits is often alike, and no result of two kinds.
    lab.write("results.csv", lines_of(HILL, lambda x: "> 0.6" if x > 8 else "<0.4"))
    assert "different values" not in lab.call("next")


def test_repeats_that_the_stated_noise_does_not_allow_are_named(lab: Lab) -> None:
    text = lines_of(HILL, lambda x: hill({"x": str(x)}))
    lab.write("results.csv", f"{text}8,n08,4.0\n8,n08,16.0\n")
    said = lab.call(f"{FIRST} --noise-std 0.1 --replicates")
    places = "(results.csv, line 6; results.csv, line 12; results.csv, line 13)"
    begin = "Values of one candidate differ by more than noise_std in botorch-lse.toml"
    assert f"{begin} allows {places}" in said
    stored = (lab.folder / "botorch-lse.toml").read_text()
    line = next(x for x in stored.splitlines(True) if x.startswith("noise_std"))
    lab.write("botorch-lse.toml", stored.replace(line, line.replace("0.1", "9.0", 1)))
    assert "differ by more" not in lab.call("next")
    lab.write("botorch-lse.toml", stored.replace(line, ""))
    assert "differ by more" not in lab.call("next")


@pytest.mark.slow
def test_noise_that_is_a_guess_can_be_measured(lab: Lab) -> None:
    text = lines_of(HILL, lambda x: f"{10 - x / 3 + 2 * (-1) ** x * (x % 5):.1f}", 1)
    lab.write("results.csv", text)
    lab.call(FIRST)
    said = lab.call("answer --details")
    assert "so that the noise is a guess and the bounds are wide. If you know" in said
    assert "set replicates = true in botorch-lse.toml" in said
    assert "give `noise_std`" not in said
    stored = (lab.folder / "botorch-lse.toml").read_text()
    assert "replicates = false" in stored
    again = "".join(text.splitlines(True)[1:5])
    lab.write("results.csv", text + again)
    lab.write(
        "botorch-lse.toml", stored.replace("replicates = false", "replicates = true")
    )
    assert "the noise is a guess" not in lab.call("answer --details")


def test_a_step_of_a_fit_that_was_too_long_is_no_news(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def told(*_: object) -> None:
        warnings.warn("A not p.d., added jitter", NumericalWarning, stacklevel=1)

    monkeypatch.setattr(commands, "next_command", told)
    lab.call(FIRST)
    assert not len(recwarn)


def test_a_forecast_beyond_the_table_is_a_symptom(lab: Lab) -> None:
    lab.write("results.csv", lines_of(HILL, lambda x: hill({"x": str(x)})))
    said = lab.call(f"{FIRST.replace('first 9', 'first 10')} --noise-std 2")
    assert "more measurements until" in said
    assert "wrong value" not in said  # the model has not asked for any yet
    (lab.folder / "botorch-lse.toml").unlink()
    (lab.folder / "sheet.csv").unlink()
    said = lab.call(f"{FIRST} --noise-std 2")
    symptom = "That is more than the 20 candidates there are: look for a wrong value. "
    assert f"{symptom}A larger epsilon takes fewer." in said
    stored = (lab.folder / "botorch-lse.toml").read_text()
    lab.write("botorch-lse.toml", stored.replace("# budget = 100", "budget = 18"))
    said = lab.call("next")
    assert f"some candidates may stay undecided. {symptom.strip()}" in said
    lab.write("botorch-lse.toml", stored.replace("noise_std = 2", "noise_std = 0.1"))
    assert "wrong value" not in lab.call("next")
