r"""Tables in which several sources give values: whole runs, and what a line says."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import torch

from botorch_lse import (
    Above,
    GaussianProcess,
    History,
    Observations,
    Pool,
    Strategy,
)
from botorch_lse.cli.commands import closing, details
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import settings
from tests.cli.lab import HILL, Lab, Line, goes_on_after_any_interruption, hill
from tests.cli.test_page_without_code import DOCS, played, strength

CALL = (
    "next candidates.csv --above 7 --column y --key name --batch 4 --epsilon 0.5 "
    "--sources coarse,fine --source-costs 1,10"
)
ALONE = CALL.partition(" --sources")[0]
SPREAD = torch.arange(10, dtype=torch.float64) - 4.5  # of no mean, and a large spread


def value(line: Line) -> str:
    r"""What the two sources say of the hill, with errors that are none of chance."""
    x = float(line["x"])
    shift = 0.1 * x + 1 if line["source"] == "coarse" else 0.0
    return f"{float(hill(line)) + shift + 0.05 * ((7 * x) % 5 - 2):.4f}"


def run_of() -> Run:
    return Run.read(settings(Path("botorch-lse.toml"), {}))


def finish(lab: Lab, most: int = 25) -> str:
    for _ in range(most):
        said = lab.call("next")
        if "Nothing more" in said:
            return said
        lab.fill("sheet.csv", value)
    raise AssertionError(said)


def of_python(noise_std: float | None) -> Strategy:
    r"""The same question in Python."""
    cells = [f"n{x:02d}" for x in range(20)]
    x = torch.arange(20, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(x, names=["x"], table=pd.DataFrame({"x": range(20), "name": cells}))
    found = Strategy(
        pool.at_sources(("coarse", "fine"), costs=(1, 10)),
        Above(7.0, epsilon=0.5),
        model=GaussianProcess(noise_std=noise_std),
        batch_size=4,
    )
    assert isinstance(found, Strategy)
    return found


@pytest.mark.parametrize("noise_std", [0.1, None])
def test_a_run_by_commands_is_the_run_in_python(
    noise_std: float | None, lab: Lab
) -> None:
    strategy = of_python(noise_std)
    state = strategy.init(0)
    lab.call(f"{CALL} --noise-std {noise_std}" if noise_std else CALL)
    for _ in range(25):
        sheet = lab.read("sheet.csv")
        if not sheet:
            break
        assert list(sheet[0]) == ["sheet", "x", "name", "source", "repeat", "y"]
        rows = [20 * (s["source"] == "fine") + int(s["x"]) for s in sheet]
        batch = strategy.ask(state)
        assert rows == batch.order.tolist()
        lab.fill("sheet.csv", value)
        y = [float(value(line)) for line in sheet]
        state = strategy.tell(state, Observations(batch.order, torch.tensor(y)))
        said = lab.call("next")
    assert "Every candidate is decided" in said
    assert state.is_done
    rows = state.observations.indices
    n = [int((rows < 20).sum()), int((rows >= 20).sum())]
    assert f"{sum(n)} measured (coarse: {n[0]}, fine: {n[1]})" in said
    assert "8 above, 12 below, 0 undecided" in said
    said = lab.call("answer --details")
    assert "8 above, 12 below, 0 undecided" in said
    answer, lines = state.classification, lab.read("answer.csv")
    assert [line["side"] for line in lines] == [
        "above" if x else "below" for x in answer.above.tolist()
    ]
    mean = torch.tensor([float(line["mean"]) for line in lines], dtype=torch.float64)
    assert bool(((mean - answer.mean).abs() <= 0.06 * answer.sigma + 0.005).all())
    counted = sum(int(line["n_observations"]) for line in lines)
    assert counted == n[1]  # those that decide
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert f"{sum(n)} (coarse: {n[0]}, fine: {n[1]})" in page


def test_an_interrupted_call_is_made_good_by_the_next(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(CALL)
    lab.fill("sheet.csv", value)
    goes_on_after_any_interruption(lab, monkeypatch)


@pytest.mark.slow
def test_each_source_of_a_candidate_fails_and_is_left_out_by_itself(lab: Lab) -> None:
    said = lab.call(CALL)
    assert "Sources: coarse (cost 1), fine (cost 10). What is decided is fine." in said
    first, second, *rest = lab.read("sheet.csv")
    words = {0: "failed", 1: "n/a"}
    words |= {i: value(line) for i, line in enumerate(rest, 2)}
    numbers = iter(range(4))
    lab.fill("sheet.csv", lambda line: words[next(numbers)])
    said = lab.call("next")
    assert "2 measured (coarse: 0, fine: 2), 1 failed, 1 not measurable" in said
    again = lab.read("sheet.csv")[0]
    assert [again[n] for n in ("name", "source")] == [first["name"], first["source"]]
    for _ in range(2):
        numbers = iter(lab.read("sheet.csv"))
        lab.fill(
            "sheet.csv",
            lambda line: "failed" if line["name"] == again["name"] else value(line),
        )
        said = lab.call("next")
    assert f"name {first['name']} (coarse) failed 3 times: write n/a" in said
    lab.fill("sheet.csv", value)
    finish(lab)
    asked = {(line["name"], line["source"]) for line in lab.read("results.csv")[4:]}
    assert (second["name"], second["source"]) not in asked
    lab.call("answer")
    sides = {line["name"]: line["side"] for line in lab.read("answer.csv")}
    assert sides[second["name"]] in ("above", "below")  # another source told it


@pytest.mark.slow
def test_names_of_sources_may_be_written_otherwise_and_notes_stay(lab: Lab) -> None:
    lab.call(CALL)
    sheet = lab.read("sheet.csv")
    lines = [{**s, "y": value(s), "source": f" {s['source'].upper()}"} for s in sheet]
    lines[0]["note"] = "cloudy"
    pd.DataFrame(lines).to_csv("sheet.csv", index=False)
    assert "4 measured (coarse: 2, fine: 2)" in lab.call("next")
    lab.call("answer")
    notes = {line["name"]: line["note"] for line in lab.read("answer.csv")}
    assert notes[lines[0]["name"]] == "cloudy"
    assert sum(map(bool, notes.values())) == 1


@pytest.mark.slow
def test_a_limit_tells_the_side_at_the_target_alone(lab: Lab) -> None:
    lines = "".join(f"n{x:02d},{s},<6\n" for x, s in ((0, "fine"), (1, "coarse")))
    lab.write("results.csv", f"name,source,y\n{lines}")
    said = lab.call(f"{CALL} --noise-std 0.1")
    run = run_of()
    assert {row: entry.side for row, entry in run.measured.known.items()} == {
        20: "below"
    }
    assert {*run.measured.untold} == {1}
    assert {*run.state.excluded[0][1]} == {0, 1, 20}
    lab.fill("sheet.csv", value)
    said = finish(lab)
    assert "8 above, 12 below, 0 undecided" in said
    lab.call("answer")
    assert lab.read("answer.csv")[0]["side"] == "below"


def test_an_audit_may_draw_a_limit_at_the_target(lab: Lab) -> None:
    lab.write("results.csv", "name,source,y\nn00,fine,<6\n")
    lab.call(f"{CALL} --audit")
    assert run_of().state.excluded == ()


def test_values_beside_the_candidates_count_once_their_source_is_named(
    lab: Lab,
) -> None:
    text = HILL.replace("name\n", "name,y\n").replace("3,n03", "3,n03,4")
    lab.write("candidates.csv", text.replace("4,n04", "4,n04,5"))
    lab.write("results.csv", "x,name,y\n3,n03,4\n4,n04,5\n")
    said = lab.refused(CALL)
    assert said.startswith("results.csv: expected the column 'source'")
    assert "things to correct" not in said
    (lab.folder / "results.csv").unlink()
    said = lab.call(CALL)
    assert "2 values of y in candidates.csv do not count. To use them, copy these " in (
        said
    )
    assert "to results.csv, with a column 'source' that says which one measured" in said
    lab.write("results.csv", "x,name,source,y\n3,n03,fine,4\n4,n04,fine,5\n")
    assert "do not count" not in lab.call("next")


def test_logarithms_and_the_noise_of_each_source_reach_the_model(lab: Lab) -> None:
    call = CALL.replace("--above 7", "--above 100").replace("0.5", "1")
    lab.call(f"{call} --log-result --source-noise 0.2,0.1 --target coarse")
    strategy = run_of().strategy
    known = torch.tensor([0.2, 0.1], dtype=torch.float64) / torch.tensor(10.0).log()
    assert strategy.pool.target == 0
    assert strategy.pool.noise_var is not None
    torch.testing.assert_close(
        strategy.pool.noise_var[::20], known.square(), rtol=1e-6, atol=0
    )
    assert strategy.goal.threshold == 2.0


# --- earlier campaigns ----------------------------------------------------------------


OLD = "name,source,X,Y (MPa)\n" + "".join(
    f"old{i},2025,{2 * i + 0.5},{10 - 0.2 * (2 * i - 8) ** 2 + 1:.4f}\n"
    for i in range(10)
)
"""Last year's hill: higher by one, at inputs that no candidate has."""


@pytest.mark.slow
def test_earlier_values_count_as_in_python(lab: Lab) -> None:
    lab.write("2025.csv", OLD)
    call = CALL.partition(" --sources")[0]
    said = lab.call(f"{call} --history 2025.csv --noise-std 0.1")
    assert "10 earlier values of 2025. What is decided is these candidates." in said
    x = torch.arange(20, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(x, names=["x"]).at_sources(("now", "2025"), costs=(1, 1), target="now")
    old = torch.arange(10, dtype=torch.float64).unsqueeze(-1) * 2 + 0.5
    y = 10 - 0.2 * (old[:, 0] - 8.5) ** 2 + 1
    strategy = Strategy(
        pool,
        Above(7.0, epsilon=0.5),
        model=GaussianProcess(noise_std=0.1),
        batch_size=4,
    ).with_history(History(old, y, source="2025"))
    state = strategy.exclude(strategy.init(0), torch.arange(20, 40))
    for _ in range(25):
        sheet = lab.read("sheet.csv")
        if not sheet:
            break
        assert "source" not in sheet[0]  # there is one that measures
        batch = strategy.ask(state)
        assert [int(s["x"]) for s in sheet] == batch.order.tolist()
        lab.fill("sheet.csv", lambda line: value({**line, "source": "fine"}))
        told = [float(value({**line, "source": "fine"})) for line in sheet]
        state = strategy.tell(state, Observations(batch.order, torch.tensor(told)))
        said = lab.call("next")
    assert "(earlier: 10)" in said
    assert "8 above, 12 below, 0 undecided" in said
    lab.call("answer")
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert "SHA-256 of 2025.csv" in page


def test_earlier_values_may_be_of_a_source_that_measures_and_of_words(
    lab: Lab,
) -> None:
    lines = [f"{x},{'ab'[x % 2]},n{x:02d}\n" for x in range(20)]
    lab.write("candidates.csv", "x,kind,name\n" + "".join(lines))
    old = [
        f"{2 * i + 0.5},b,{w},{5 + i / 3:.2f}\n" for i, w in enumerate(["Coarse"] * 4)
    ]
    old += ["3.5,a,trial,6.1\n", "4.5,a,trial,failed\n", "5.5,a,trial,\n"]
    lab.write("old.csv", "x,kind,source,y\n" + "".join(old))
    lab.call(f"{CALL} --inputs x,kind --history old.csv --source-noise 0.2,0.1")
    run = run_of()
    assert run.measured.sources == ("coarse", "fine", "trial")
    history = run.history.on(run.pool)
    assert history.X.tolist() == [
        [0.5, 0.0, 1.0, 0.0],
        [2.5, 0.0, 1.0, 0.0],
        [4.5, 0.0, 1.0, 0.0],
        [6.5, 0.0, 1.0, 0.0],
        [3.5, 1.0, 0.0, 2.0],
    ]
    # The trial's values are as exact as those of the target.
    assert history.yvar.tolist() == pytest.approx([0.04] * 4 + [0.01])
    assert run.pool.costs[::20].tolist() == [1, 10, 10]
    assert {*run.state.excluded[0][1]} == {*range(40, 60)}
    stored = tomllib.loads((lab.folder / "botorch-lse.toml").read_text())
    assert stored["history"] == "old.csv"
    assert stored["source_costs"] == [1, 10]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("call", "noise", "wanted"),
    [
        (f"{CALL} --source-noise 0.2,0.1,0.5", [0.2, 0.1, 0.5], [0.2, 0.5]),
        (f"{CALL} --source-noise 0.2,0.1", [0.2, 0.1, 0.1], [0.2, 0.1]),
        (f"{CALL} --noise-std 0.3", None, None),
        (CALL, None, None),
        (f"{ALONE} --source-noise 0.1,0.5", [0.1, 0.5, 0.5], [0.5, 0.5]),
        (f"{ALONE} --source-noise 0.1", [0.1, 0.1, 0.1], [0.1, 0.1]),
    ],
)
def test_earlier_values_have_the_noise_that_the_call_says(
    call: str, noise: list[float] | None, wanted: list[float] | None, lab: Lab
) -> None:
    lab.write("old.csv", "x,source,y\n2.5,coarse,6.1\n3.5,trial,6.1\n")
    lab.call(f"{call} --history old.csv")
    run = run_of()
    if noise is None:
        assert run.pool.noise_var is None
        assert run.history.yvar is None
        return
    assert run.pool.noise_var[::20].sqrt().tolist() == pytest.approx(noise)
    assert run.history.yvar.sqrt().tolist() == pytest.approx(wanted)


def test_earlier_values_hasten_no_decision_before_the_first_of_each_source(
    lab: Lab,
) -> None:
    old = "".join(f"{2 * i + 0.5},trial,{5 + i / 3:.2f}\n" for i in range(9))
    lab.write("old.csv", f"x,source,y\n{old}")
    said = lab.call(f"{CALL} --history old.csv")
    model = run_of().strategy.parts.model
    assert model.wanted_to_decide < model.wanted
    assert model.n_deciding() == model.n_first == 13
    assert "The first 13 measurements are spread" in said
    assert "nothing is decided before, 13 to go." in said


# --- levels of a fidelity -------------------------------------------------------------

AT_LEVELS = CALL.replace("coarse,fine", "0.5,1")
OF_LEVELS = [(2 * i + 0.5, round(0.3 + 0.05 * i, 2)) for i in range(12)]


def at_level(x: float, mesh: float) -> float:
    return 10 - 0.2 * (x - 8) ** 2 + (1 - mesh) * (0.1 * x + 1)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("comma", [False, True])
def test_earlier_values_at_any_level_count_as_in_python(comma: bool, lab: Lab) -> None:
    lines = [f"{x};{mesh:.2f};{at_level(x, mesh):.4f}\n" for x, mesh in OF_LEVELS]
    text = "x;source;y\n" + "".join(lines)
    lab.write("old.csv", text.replace(".", ",") if comma else text.replace(";", ","))
    said = lab.call(f"{AT_LEVELS} --inputs x --history old.csv --source-noise 0,0,0.2")
    assert "Sources: 0.5 (cost 1), 1 (cost 10), 12 earlier values of 0.3 to 0.85." in (
        said
    )
    x = torch.arange(20, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(x, names=["x"]).at_sources((0.5, 1.0), costs=(1, 10), noise_var=(0, 0))
    old, mesh = torch.tensor(OF_LEVELS, dtype=torch.float64).split(1, dim=-1)
    y = torch.tensor([float(f"{at_level(*one):.4f}") for one in OF_LEVELS])
    noise = torch.where(mesh[:, 0] == 0.5, 0.0, 0.04)
    python = Strategy(pool, Above(7.0, epsilon=0.5), batch_size=4).with_history(
        History(old, y.double(), noise, source=mesh[:, 0])
    )
    run = run_of()
    assert torch.equal(run.strategy.model.history.X, python.model.history.X)
    torch.testing.assert_close(run.history.yvar, python.model.history.yvar)
    state = python.init(0)
    for _ in range(4):
        sheet = lab.read("sheet.csv")
        batch = python.ask(state)
        rows = [20 * (s["source"] == "1") + int(s["x"]) for s in sheet]
        assert rows == batch.order.tolist()
        told = [at_level(float(s["x"]), float(s["source"])) for s in sheet]
        values = iter(told)
        lab.fill("sheet.csv", lambda _, values=values: repr(next(values)))
        state = python.tell(state, Observations(batch.order, torch.tensor(told)))
        lab.call("next")
        if state.is_done:
            break
    lab.call("answer")
    said = {line["name"]: line["side"] for line in lab.read("answer.csv")}
    above = state.classification.above.tolist()
    assert [said[f"n{i:02d}"] == "above" for i in range(20)] == above
    lab.call("report")


def test_a_level_may_be_written_otherwise(lab: Lab) -> None:
    lab.call(AT_LEVELS)
    sheet = lab.read("sheet.csv")
    assert {s["source"] for s in sheet} == {"0.5", "1"}
    for s in sheet:  # as a workbook may have them
        s["source"] = {"0.5": "0.50", "1": "1.0"}[s["source"]]
        s["y"] = str(at_level(float(s["x"]), float(s["source"])))
    pd.DataFrame(sheet).to_csv("sheet.csv", index=False)
    n = sum(s["source"] == "0.50" for s in sheet)
    assert f"4 measured (0.5: {n}, 1: {4 - n})" in lab.call("next")
    assert run_of().pool.is_fidelity


@pytest.mark.parametrize("written", ["0,25", "0.25"])
def test_levels_stand_beside_numbers_with_decimal_commas(
    written: str, lab: Lab
) -> None:
    text = "x;name\n" + "".join(f"{x},5;n{x}\n" for x in range(12))
    lab.write("candidates.csv", text)
    lab.call(CALL.replace("coarse,fine", "0.25,1"))
    sheet = lab.folder / "sheet.csv"
    assert ";0,25;" in sheet.read_text()
    header, *lines = sheet.read_text().replace(";0,25;", f";{written};").splitlines()
    sheet.write_text("\n".join([header, *(f"{line}10,375" for line in lines), ""]))
    assert "4 measured (0.25: " in lab.call("next")
    entries = run_of().measured.having("measured")
    assert {entry.value for entry in entries} == {10.375}
    assert {entry.row // 12 for entry in entries} == {0, 1}


# --- the page -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_an_answer(lab: Lab) -> None:
    lab.write("candidates.csv", (DOCS / "no_code" / "candidates.csv").read_text())
    page = (DOCS / "sources.md").read_text(encoding="utf-8")
    text = page.partition("## In a table")[2].partition("\n## ")[0]
    calls = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    assert [shlex.split(call)[1] for call in calls] == [
        "next",
        "next",
        "answer",
        "report",
    ]

    def measured(line: Line) -> str:
        final = float(strength(line))
        return f"{final if line['source'] == '28 days' else 0.62 * final + 4:.1f}"

    said = played(lab, calls[0])
    assert "Sources: 7 days (cost 1), 28 days (cost 4)" in said
    for _ in range(12):
        lab.fill("sheet.csv", measured, "strength (MPa)")
        said = played(lab, calls[1])
        if "Nothing more need be measured" in said:
            break
    assert "Every candidate is decided." in said
    for call, written in zip(calls[2:], ("answer.csv", "report.html"), strict=True):
        played(lab, call)
        assert (lab.folder / written).exists()
    for line in lab.read("answer.csv"):
        true = float(strength(line))
        assert (line["side"] == "above") == (true > 40) or abs(true - 40) <= 2


# --- what else is asked of a run ------------------------------------------------------


@pytest.mark.slow
def test_runs_are_simulated_with_a_truth_of_each_source(lab: Lab) -> None:
    known = [{"x": str(x), "source": "coarse"} for x in range(20)]
    lines = [f"{x['x']},n{x['x']},{value(x)},{hill(x)}\n" for x in known]
    lab.write("candidates.csv", "x,name,low,high\n" + "".join(lines))
    call = CALL.replace("next", "simulate") + " --inputs x --noise-std 0.1 --runs 1"
    said = lab.call(f"{call} --truth low,high")
    assert "Truth: the columns low, high; noise with standard deviation 0.1." in said
    assert "8 above, 0 wrong. Every candidate is decided." in said
    n = int(re.findall(r"run 1: (\d+) measurements", said)[0])
    lab.call(f"{CALL} --inputs x --noise-std 0.1")
    lab.fill("sheet.csv", value)
    finish(lab)
    said = lab.call("simulate --runs 1 --noise 0.1")
    assert "functions drawn from the model that results.csv taught" in said
    assert n < 80


@pytest.mark.slow
def test_a_slip_at_a_source_is_named_with_it(lab: Lab) -> None:
    lab.call(f"{CALL} --first 24 --batch 24".replace("--batch 4 ", ""))
    sheet = lab.read("sheet.csv")
    slip = next(i for i, s in enumerate(sheet) if s["source"] == "coarse" and i > 3)
    lines = [{**s, "y": value(s)} for s in sheet]
    lines[slip]["y"] = str(10 * float(lines[slip]["y"]) + 40)
    pd.DataFrame(lines).to_csv("sheet.csv", index=False)
    said = lab.call("next")
    assert f"name {sheet[slip]['name']} (coarse) has the value" in said
    assert f"results.csv: name {sheet[slip]['name']}" in said or "line" in said


@pytest.mark.slow
def test_an_audit_draws_at_the_target_alone(lab: Lab) -> None:
    lab.call(f"{CALL} --noise-std 0.1 --audit 0.2,0.2")
    lab.fill("sheet.csv", value)
    said = finish(lab, 40)
    assert "candidates drawn at random confirmed it" in said
    state = run_of().state
    assert state.is_done


@pytest.mark.parametrize(
    "audit", [pytest.param("--audit 0.2,0.2", marks=pytest.mark.slow), ""]
)
@pytest.mark.parametrize("is_out", [False, True])
def test_candidates_were_excluded_only_where_somebody_said_so(
    lab: Lab, audit: str, is_out: bool
) -> None:
    lab.write("2025.csv", OLD)
    told = "".join(f"n{x:02d},{hill({'x': str(x)})}\n" for x in range(0, 19, 2))
    lab.write("results.csv", f"name,y\n{told}" + "n19,n/a\n" * is_out)
    lab.call(f"{ALONE} --history 2025.csv --noise-std 0.1 {audit}")
    while audit and lab.read("sheet.csv"):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    run = run_of()
    for said in (closing(run), details(run)) if audit else (details(run),):
        assert ("Audited: " in said) is bool(audit)
        assert ("Candidates were excluded: assumed to be so" in said) is is_out
        assert "Rows were excluded" not in said
    assert (
        "Earlier values count as made before the run: assumed to be of the source that "
        "they name, whose relation to the target is learnt, at points"
    ) in details(run)
