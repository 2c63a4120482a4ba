r"""The demo and its command line."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from botorch_lse import Observations, Pool
from botorch_lse.__main__ import check, main, parse
from botorch_lse.cli import demo


@pytest.mark.filterwarnings("error::botorch_lse.surrogate.remarks.DataWarning")
def test_the_demo_prints_a_table_and_writes_picture_and_answer(
    tmp_path, capsys, monkeypatch
):
    written, drawn = [], demo.write_figure
    monkeypatch.setattr(
        demo, "write_figure", lambda f, *a, **k: (written.append(f), drawn(f, *a, **k))
    )
    arguments = ["--out", str(tmp_path), "--budget", "60", "--methods", "lse", "random"]
    assert main([*arguments, "--batch", "20"]) == 0
    printed = capsys.readouterr().out
    assert "4,841 rows; level 100" in printed
    assert "lse ended after 60 soundings: the budget is used up; " in printed
    said = r"\d+ % of the last \d+ values lay within the 95 % intervals"
    assert len(re.findall(said, printed)) == 1  # once, also where they failed
    for picture in ("level_set.png", "calibration.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
    labels = [ax.get_xlabel() for figure in written for ax in figure.axes]
    assert labels[0] == "east (km)"
    assert labels[-1].startswith("depth (m): predicted")
    table = pd.read_csv(tmp_path / "level_set.csv")
    assert len(table) == 4841
    assert set(table["side"]) <= {"above", "below", "undecided"}
    assert table["soundings"].sum() == 60
    assert table["true_value"].between(0, 1300).all()


@pytest.mark.slow
def test_another_pool_comes_from_a_file(tmp_path, capsys):
    grid = pd.DataFrame({"x": range(30)})
    grid["height"] = (grid["x"] - 12.0).abs()
    grid.to_csv(tmp_path / "pool.csv", index=False)
    options = ["--pool", str(tmp_path / "pool.csv"), "--threshold", "6"]
    options += [
        "--noise",
        "0.1",
        "--epsilon",
        "0.5",
        "--budget",
        "80",
        "--methods",
        "lse",
    ]
    assert main([*options, "--out", str(tmp_path)]) == 0
    assert "lse ended after" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "level_set.csv")
    far = table["true_value"] - 6
    assert ((table["side"] == "above") == (far > 0))[far.abs() > 0.5].all()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("decided", "every row is decided"),
        ("audited", "rows drawn at random confirmed"),
        ("not confirmed", "rows drawn at random did not confirm"),
        ("none found", "no row was clearly above the level"),
        ("all above so far", "no row was clearly below the level"),
        ("budget", "the budget is used up"),
        ("rows exhausted", "no row is left"),
        ("out of reach", "no row that may be measured decides more"),
    ],
)
def test_the_end_is_told_whatever_its_reason(reason, words):
    x = torch.linspace(0, 1, 5, dtype=torch.float64)
    survey = demo.Survey(Pool(x.unsqueeze(-1)), x, "a line", "m")
    options = parse([])
    state = replace(
        demo.strategy_for("lse", survey, options).init(), stop_reason=reason
    )
    told = demo.how_it_ended("lse", state, survey, options)
    assert told.startswith(f"lse ended after 0 soundings: {words}")
    assert told.endswith("Nothing was predicted before it was measured.")
    now = "now" if reason in ("decided", "audited") else "-"
    assert demo.foreseen(state) == (now, 0)


def test_a_method_that_took_less_is_named_with_its_reason():
    x = torch.linspace(0, 1, 9, dtype=torch.float64)
    survey, options = demo.Survey(Pool(x.unsqueeze(-1)), x, "a line", "m"), parse([])
    options.threshold, options.methods = 0.45, ["default", "straddle"]
    end = demo.strategy_for("default", survey, options).init()
    other = demo.strategy_for("straddle", survey, options)
    done = other.tell(other.init(), Observations(torch.arange(8), x[:8]))
    done = replace(done, stop_reason="decided")
    longer = replace(end, history=Observations(torch.arange(9), x))
    said = demo.sooner("default", longer, {"straddle": done}, survey, options)
    assert said == (
        "straddle took 8 soundings: it decides at 1.96 standard deviations, not 3, and "
        "nobody checks; 0.0% of its rows are wrong."
    )
    # Not one that took more, nor one that has no answer.
    assert demo.sooner("default", end, {"straddle": done}, survey, options) == ""
    open_end = replace(done, stop_reason="budget")
    assert demo.sooner("default", longer, {"lse": open_end}, survey, options) == ""


@pytest.mark.slow
def test_the_answer_of_the_first_method_is_audited(tmp_path, capsys):
    grid = pd.DataFrame({"x": range(60)})
    grid["height"] = (grid["x"] - 22.0).abs()
    grid.to_csv(tmp_path / "pool.csv", index=False)
    given = ["--pool", str(tmp_path / "pool.csv"), "--threshold", "6", "--noise", "0.1"]
    given += ["--epsilon", "0.5", "--budget", "400", "--methods", "default", "straddle"]
    assert main([*given, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "rows drawn at random confirmed what was decided" in printed
    assert printed.count(" decided\n") == 1  # of the other one, which is not audited


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,name\n1,a\n", "a last column of numbers"),
        (b"x\n1\n", "a last column of numbers"),
        (b"x,y\n1,2\n2,\n", "--pool, column 'y'` to be finite, but entry 1 is nan"),
        (b"x,y\n,2\n2,1\n", "`X` to be complete, but column 'x'"),
        (b"", "cannot be read: No columns"),
        (bytes(range(256)), "cannot be read"),
        (None, "cannot be read: .*No such file"),
        ("folder", "cannot be read: .*Is a directory"),
    ],
)
def test_a_pool_that_is_no_table_ends_in_one_line(content, message, tmp_path, capsys):
    path = tmp_path / "pool.csv"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    assert main(["--pool", str(path), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("python -m botorch_lse: error: ")
    assert re.search(message, said)
    assert len(said.splitlines()) == 1


def test_a_file_as_folder_ends_in_one_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["level_set.png", "calibration.png", "level_set.csv", "report.html"]
)
def test_a_file_that_cannot_be_written_is_found_before_the_run(name, tmp_path, capsys):
    (tmp_path / name).touch(mode=0o444)
    before = {path.name for path in tmp_path.iterdir()}
    assert main(["--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{name}: cannot be written (its rights forbid writing). Change its" in (
        said.err
    )
    assert {path.name for path in tmp_path.iterdir()} == before
    (tmp_path / name).chmod(0o644)
    check(parse(["--out", str(tmp_path)]))


@pytest.mark.parametrize("option", ["--noise", "--batch", "--budget"])
def test_numbers_that_cannot_be_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        parse([option, "0"])
    assert f"{option}: expected a positive number" in capsys.readouterr().err


def test_numbers_are_read_as_those_of_tables_are(tmp_path, capsys):
    assert parse(["--threshold", "65,5"]).threshold == 65.5
    for given in ("nan", "inf", "many"):
        with pytest.raises(SystemExit):
            parse(["--noise", given])
        assert f"expected a number, but got '{given}'" in capsys.readouterr().err
    assert main(["--out", str(tmp_path), "--epsilon", "1,000"]) == 2
    assert "--epsilon: expected a number that can be read in one way, but got " in (
        said := capsys.readouterr().err
    )
    assert "1,000; write 1000 or 1.0." in said
    check(parse(["--out", str(tmp_path), "--epsilon", "1.000"]))


FORECASTS = {100: 277, 200: 396, 400: 619, 600: 637}
"""What LSE foresees on the sea bed after so many soundings; it ends after 680."""


def estimates(budget, clock, seconds, ends):
    r"""What is told in a run whose work is ``seconds(method, n)``, and the truth."""
    time_left, told = demo.TimeLeft([*ends], budget), []
    for method, end in ends.items():
        for n in range(10, end + 1, 10):
            clock.now += seconds(method, n) - seconds(method, n - 10)
            time_left.done[method] = n
            if n == end:
                time_left.expect(method, end)
            elif method == "lse" and n in FORECASTS:
                time_left.expect(method, FORECASTS[n])
            if time_left.is_known:
                told.append((clock.now, time_left.seconds()))
    return [(estimate, clock.now - now) for now, estimate in told]


@pytest.mark.parametrize("speed", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("lse_end", [620, 680, 800])
def test_the_time_left_is_right_within_a_factor_of_two(speed, lse_end, monkeypatch):
    r"""On slow and fast machines, and where baselines cost other than thought."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(demo, "perf_counter", lambda: clock.now)

    def seconds(method, n):
        if method == "lse":
            return speed * (0.04 * n + 2e-5 * n**2)
        return speed * (0.003 * n + 1.2e-5 * n**2)

    ends = {"lse": lse_end, "straddle": 520, "random": 800}
    told = estimates(800, clock, seconds, ends)
    assert len(told) > 150
    for estimate, truth in told:
        if truth > 5 * speed:
            assert truth / 2 <= estimate <= 2 * truth


@pytest.mark.slow
def test_progress_is_told_without_a_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "LINES_APART", 0.0)
    grid = pd.DataFrame({"x": range(30)})
    grid["height"] = (grid["x"] - 12.0).abs()
    grid.to_csv(tmp_path / "pool.csv", index=False)
    options = ["--pool", str(tmp_path / "pool.csv"), "--threshold", "6"]
    options += ["--noise", "0.1", "--epsilon", "0", "--budget", "40"]
    options += ["--methods", "lse", "random", "--out", str(tmp_path)]
    assert main(options) == 0
    printed = capsys.readouterr().out
    line = r"^lse: 40 soundings, \d+ undecided; about \d+ s left in all$"
    assert re.search(line, printed, re.MULTILINE)
    assert re.search(r"^random: \d+ soundings, .* left in all$", printed, re.MULTILINE)


@pytest.mark.slow
def test_a_run_through_ax_and_one_without_ask_for_the_same(tmp_path):
    options = parse(["--budget", "60", "--batch", "10"])
    survey = demo.load_survey("topobathy", raw=False)
    ends = []
    for rounds in (demo.through_ax, demo.by_ask_and_tell):
        strategy = demo.strategy_for("straddle", survey, options)
        *_, state = rounds(strategy, survey, options)
        ends.append(state)
    one, other = (end.observations for end in ends)
    assert one.indices.tolist() == other.indices.tolist()
    assert torch.allclose(one.y, other.y, rtol=1e-10, atol=1e-9)
