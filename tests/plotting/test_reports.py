r"""The report of a run: every goal, every number, names that are no tags, refusals."""

from __future__ import annotations

import builtins
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from botorch_lse import (
    Above,
    Below,
    Between,
    GaussianProcess,
    Observations,
    Pool,
    Strategy,
)
from botorch_lse.plotting import report, write_report
from botorch_lse.strategies import (
    GEGEStrategy,
    Levels,
    MELKLinearStrategy,
    ShareOfMax,
    StraddleStrategy,
)
from tests.strategies.runs import GP, grid

X = grid(6)
POOL = Pool(X, names=["a", "b"])
F = torch.tensor(GP.sample(X.numpy(), 0))
MODEL = GaussianProcess(GP.kernel(), noise_std=0.1)
ROWS = torch.arange(0, 36, 3)


def inside(text: str) -> dict:
    r"""The data of a page."""
    pattern = r'<script type="application/json" id="data">(.*?)</script>'
    (found,) = re.findall(pattern, text, re.S)
    return json.loads(found)


def frame_of(data: dict) -> pd.DataFrame:
    return pd.DataFrame({one["name"]: one["cells"] for one in data["table"]})


def told(strategy, *outputs):
    values = outputs or (F,)
    y = torch.stack([value[ROWS] for value in values], dim=-1)
    y = y[:, 0] if len(values) == 1 else y
    return strategy.tell(strategy.init(), Observations(ROWS, y))


def sampled():
    pool = Pool.from_distribution({"a": norm(0, 1), "b": norm(0, 1)}, 64)
    return Strategy(pool, Above(1.0), model=GaussianProcess(GP.kernel(), noise_std=0.1))


GOALS = {
    "above": lambda: told(Strategy(POOL, Above(0.3), model=MODEL)),
    "below": lambda: told(Strategy(POOL, Below(0.3), model=MODEL)),
    "between": lambda: told(Strategy(POOL, Between(-0.3, 0.3), model=MODEL)),
    "levels": lambda: told(Strategy(POOL, Levels([-0.3, 0.3]), model=MODEL)),
    "region": lambda: told(
        Strategy(POOL, Above(0.3) & Below(0.2, output=1), model=MODEL), F, -F
    ),
    "share": lambda: told(Strategy(POOL, ShareOfMax(0.5), model=MODEL)),
    "pareto": lambda: told(
        GEGEStrategy(POOL, maximize=(True, False), model=GP.kernel(), noise_std=0.1),
        F,
        F.flip(0),
    ),
    "linear": lambda: told(MELKLinearStrategy(POOL, 0.3, noise_std=0.1), X[:, 0]),
    "preset": lambda: told(
        StraddleStrategy(POOL, 0.3, model=GP.kernel(), noise_std=0.1)
    ),
    "probability": lambda: told(sampled(), 2 * sampled().pool.X[:, 0]),
    "nothing": lambda: Strategy(POOL, Above(0.3)).init(),
}


IN = {"above": "in", "below": "out"}
WORDS = {
    "below": {"above": "below", "below": "above"},
    "between": IN,
    "region": IN,
    "pareto": {"above": "accepted", "below": "rejected", "undecided": "open"},
}


@pytest.mark.slow
def test_several_levels_are_counted_by_class() -> None:
    state = GOALS["levels"]()
    found, classes = report.report_of(state), state.classification.classes
    counts = found.table["side"].value_counts()
    for k in range(3):
        assert counts.get(f"class {k}", 0) == int((classes == k).sum())


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("name", GOALS)
def test_every_goal_has_a_page_whose_numbers_are_those_of_the_state(name, tmp_path):
    state = GOALS[name]()
    state.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = inside(text)
    answer, found = state.classification, frame_of(data)
    assert len(found) == len(answer)
    margin = "margin" if name == "pareto" else "mean"
    shown = found[margin].to_numpy(dtype=float)
    np.testing.assert_allclose(shown, answer.mean, rtol=1e-5, atol=1e-12)
    counts = found["side"].value_counts()
    for side in ("above", "below", "undecided"):
        n = int(getattr(answer, side).sum())
        if name == "levels" and side != "undecided":
            continue
        word = WORDS.get(name, {}).get(side, side)
        assert counts.get(word, 0) == n, side
        assert f"{n} {word}" in data["answer"][0]
    facts, n = dict(data["facts"]), state.observations.n_measured
    assert facts["measurements"] == str(n)
    assert facts["rounds"] == str(min(n, 1))
    assert data["basis"][0] == answer.guarantee
    assert (data["following"] is None) == state.is_done
    if name != "nothing":
        assert [one["title"] for one in data["drawings"]]
        assert data["title"]
    # Nothing but plotly's own code speaks of other places.
    ours = text[: text.index("<script>")] + text[text.rindex("<script>") :]
    assert "http" not in ours
    assert not re.search(r"<(link|img|iframe|script src)", ours)


def test_a_failure_probability_has_its_index_and_its_likeliest_point() -> None:
    state = GOALS["probability"]()
    facts = report.facts_of(state, state.content())
    p = state.content().estimate
    assert float(facts["reliability index"]) == pytest.approx(-norm.ppf(p), rel=1e-2)
    error = state.content().sampling_error
    share = float(facts["coefficient of variation of the sample"])
    assert share == pytest.approx(error / p, rel=0.1)
    row = int(facts["most likely failure"].split(",")[0].removeprefix("row "))
    fails = state.classification.best_guess
    far = state.strategy.pool.X.norm(dim=1)
    assert fails[row]
    assert float(far[row]) == float(far[fails].min())


def test_names_and_words_cannot_end_the_data() -> None:
    table = pd.DataFrame({"</script><b>": [1.0, math.nan], "side": ["<i>", None]})
    found = report.Report("</script>", ["<script>"], {"<": ">"}, table)
    text = found.html()
    data = inside(text)
    assert data["title"] == "</script>"
    assert data["table"][0]["name"] == "</script><b>"
    assert data["table"][0]["cells"] == [1, None]
    assert data["table"][1]["cells"] == ["<i>", ""]


def test_of_a_long_table_the_most_doubtful_rows_are_listed(monkeypatch) -> None:
    monkeypatch.setattr(report, "MOST_LISTED", 3)
    p = [0.1, 0.49, 0.9, 0.55, 0.2, 0.6]
    table = pd.DataFrame({"row": range(6), "side": "above", "probability_above": p})
    data = inside(report.Report("", [], {}, table).html())
    assert data["leftOut"] == 3
    assert data["table"][0]["cells"] == [1, 3, 5]


def test_of_a_large_pool_pictures_show_measured_rows_and_some_others(monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 10)
    state = GOALS["above"]()
    drawings = report.report_of(state).drawings
    words = {one.title: one.words for one in drawings}
    assert "18 rows that were not measured are left out." in words["Map"]
    answer = state.classification.at(torch.arange(0, 36, 2))
    assert sum(len(t["x"]) for t in drawings[0].figure.data if len(t["x"]) > 1) < 36
    assert len(answer) == 18


def test_notebooks_show_words_and_a_table() -> None:
    table = pd.DataFrame({"<name>": [f"n{i}" for i in range(36)], "a": X[:, 0]})
    pool = Pool(X, names=["a", "b"], table=table)
    state = told(Strategy(pool, Above(0.3), model=MODEL))
    for shown in (pool, state.classification, state):
        html = shown._repr_html_()
        assert html.startswith("<p>")
        assert "&lt;name&gt;" in html
        assert "<name>" not in html
        assert html.count("<tr") < 15  # both ends of the table
    assert "12 measurements: the run goes on." in state._repr_html_()


def test_the_past_is_the_states_that_were_told() -> None:
    strategy = Strategy(POOL, Above(0.3), model=MODEL, batch_size=4)
    states = [strategy.init(3)]
    for _ in range(3):
        batch = strategy.ask(states[-1])
        states.append(strategy.tell(states[-1], batch.observe(F[batch.order])))
    strategy_, last = strategy, states[-1]
    lost = strategy_.ask(last).order[:1]
    open_ = strategy_.tell(last, None, abandoned=lost)
    open_ = strategy_.exclude(open_, [35])
    past = [*open_.past()]
    assert [state.round for state in past] == [state.round for state in states]
    for now, before in zip(past, states, strict=True):
        assert torch.equal(now.classification.mean, before.classification.mean)
        assert torch.equal(now.classification.above, before.classification.above)


def test_an_answer_for_some_rows_is_that_of_these_rows() -> None:
    state = GOALS["region"]()
    whole, rows = state.classification, torch.tensor([30, 2])
    some = whole.at(rows)
    assert torch.equal(some.mean, whole.mean[rows])
    assert torch.equal(some.outputs[1].upper, whole.outputs[1].upper[rows])
    assert some.to_frame()["a"].tolist() == whole.to_frame()["a"][[30, 2]].tolist()


@pytest.mark.slow
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch) -> None:
    state = GOALS["above"]()
    with pytest.raises(
        ValueError, match=r"`metrics` to be a list.*\(1\), but got \['a'"
    ):
        write_report(state, tmp_path / "page.html", metrics=["a", "b"])
    for metrics in ("yield", [1]):
        with pytest.raises(ValueError, match=r"Write `metrics=\['name0'\]`"):
            state.report(tmp_path / "page.html", metrics=metrics)
    with pytest.raises(ValueError, match="`state` to be a State"):
        write_report(None, tmp_path / "page.html")
    with pytest.raises(ValueError, match=r'Write `"report\.html"`'):
        state.report(None)
    with pytest.raises(OSError, match=r"there is no folder .*nowhere"):
        write_report(state, tmp_path / "nowhere" / "page.html")
    real = builtins.__import__

    def without_plotly(name, *rest):
        if name.startswith("plotly"):
            raise ImportError(name)
        return real(name, *rest)

    table = pd.DataFrame({"side": ["above"]})
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without_plotly)
        with pytest.raises(ImportError, match="pip install plotly"):
            report.Report("", [], {}, table).html()
