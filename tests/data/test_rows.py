r"""Lines of a table belong to the rows that they describe, not to a number."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse.data.observations import History, Observations
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import Above, GaussianProcess, Strategy

GRID = pd.MultiIndex.from_product(
    [np.linspace(60, 180, 8), np.linspace(5, 60, 5).round(2), ["amine", "acid"]],
    names=["heat", "time", "acid"],
).to_frame(index=False)
SHEET = pd.DataFrame(
    {
        "pool_index": [0, 3],
        "heat": [10.0, 20.0],
        "acid": ["a", "b"],
        "dry": [True, False],
        "y": [1.5, 2.5],
    }
)
TABLE = pd.DataFrame(
    {"heat": [10.0, 10.0, 20.0, 20.0], "acid": [*"abab"], "dry": [True, False] * 2}
)


def measured(line: pd.Series) -> float:
    bonus = 1.0 if line["acid"] == "amine" else 0.0
    return float(8 - 3 * ((line["heat"] - 130) / 45) ** 2 - line["time"] / 30 + bonus)


def strategy(table: pd.DataFrame) -> Strategy:
    kernel = ScaleKernel(RBFKernel(ard_num_dims=4)).double()
    kernel.base_kernel.lengthscale = torch.tensor([60.0, 60.0, 1.5, 1.5])
    kernel.outputscale = 16.0
    model = GaussianProcess(kernel, noise_std=0.05)
    question = Above(6.0, epsilon=0.5)
    return Strategy(Pool(table), question, model=model, batch_size=12, beta=4.0)


def answer(table: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    r"""The weekly step of a script: read two files, and say what is known."""
    now = strategy(table)
    told = Observations.from_frame(results, "y", pool=now.pool)
    found = now.replay(told).classification.to_frame()
    return found.sort_values([*GRID]).reset_index(drop=True)


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    r"""Two sheets that came back."""
    now, sheets = strategy(GRID), list[pd.DataFrame]()
    state = now.init()
    for _ in range(2):
        sheet = now.ask(state).to_frame()
        sheets.append(sheet.assign(y=sheet.apply(measured, axis=1)))
        state = now.replay(Observations.from_frame(pd.concat(sheets), "y"))
    return pd.concat(sheets, ignore_index=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table[::-1],
        lambda table: table.sort_values(["acid", "time", "heat"]),
        lambda table: table.sample(frac=1, random_state=0).astype(str),
        lambda table: pd.concat([table.iloc[-3:], table.iloc[:-3]]),
    ],
    ids=["reversed", "sorted", "shuffled, as text", "lines on top"],
)
def test_a_table_in_another_order_gives_the_same_answer(
    results: pd.DataFrame, change: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    wanted = answer(GRID, results)
    changed = change(GRID).reset_index(drop=True)
    found = answer(changed, results).astype({"heat": float, "time": float})
    found = found.sort_values([*GRID], ignore_index=True)
    assert (found["side"] == wanted["side"]).all()
    assert {*wanted["side"]} >= {"above", "below"}
    np.testing.assert_allclose(found["mean"], wanted["mean"], rtol=1e-6)
    # By its numbers alone the same table would be taken for another one.
    now = strategy(changed)
    with pytest.raises(ValueError, match=r"do not: line 0 has .* Say `Obs.*pool=pool"):
        now.replay(Observations.from_frame(results, "y"))
    first = results[results["round"] == 0]
    with pytest.raises(ValueError, match="was sorted or changed since"):
        now.tell(now.init(), Observations.from_frame(first, "y"))


def test_a_table_that_grew_or_lost_a_line_decides_nothing_wrongly(
    results: pd.DataFrame,
) -> None:
    free = sorted({*range(len(GRID))} - {*results["pool_index"]})
    new = GRID.iloc[:5].assign(time=33.0)
    for table in (pd.concat([new, GRID]), GRID.drop(index=free[0])):
        found = answer(table.reset_index(drop=True), results)
        excess = found.apply(measured, axis=1) - 6.0
        above, below = found["side"] == "above", found["side"] == "below"
        assert not ((above & (excess < -0.5)) | (below & (excess > 0.5))).any()
        assert above.sum() > 5
        assert below.sum() > 5


def test_a_line_whose_row_was_lost_is_named_and_its_remedies_work(
    results: pd.DataFrame,
) -> None:
    lost = int(results["pool_index"][4])
    table = GRID.drop(index=lost).reset_index(drop=True)
    with pytest.raises(ValueError, match=r"but line (\d+) has .* the most similar one"):
        answer(table, results)
    # By its numbers alone a table that lost a line may have too few rows.
    last = GRID.iloc[: int(results["pool_index"].max())]
    said = r"has \d+, and the pool has the rows 0 to .* Say `Observations\.from_frame\("
    with pytest.raises(ValueError, match=said):
        strategy(last).replay(Observations.from_frame(results, "y"))
    gone = results.index[results["pool_index"] == lost]
    rest = results.drop(index=gone)
    assert len(answer(table, rest)) == len(table)
    left_out = results.loc[gone]
    now = strategy(table).with_history(History(left_out[[*GRID]], left_out["y"]))
    told = Observations.from_frame(rest, "y", pool=now.pool)
    assert len(now.replay(told).classification) == len(table)


@pytest.mark.parametrize("drop", [[], ["pool_index"], ["dry"], ["heat", "pool_index"]])
def test_rows_are_found_by_what_stands_beside_the_results(drop: list[str]) -> None:
    pool = Pool(TABLE.drop(columns="heat" if "heat" in drop else []).iloc[:4])
    if "heat" in drop:
        pool = Pool(TABLE[["acid", "dry"]].iloc[:2])
    turned = Pool(pool.table[::-1].reset_index(drop=True))  # type: ignore[index]
    sheet = SHEET.drop(columns=drop)
    for one in (pool, turned):
        told = Observations.from_frame(sheet, "y", pool=one)
        there = one.to_frame().iloc[told.indices.tolist()]
        shared = [name for name in there if name in sheet]
        assert there[shared].to_numpy().tolist() == sheet[shared].to_numpy().tolist()
        told.check_rows(one)


def test_words_and_numbers_are_the_same_whatever_way_a_file_writes_them() -> None:
    table = TABLE.assign(acid=["Sa\u0308ure", "b", "c", "3"], heat=[1 / 3, 1, 2, 4])
    pool = Pool(table.rename(columns={"heat": "Wa\u0308rme"}))
    lines = pd.DataFrame(
        {
            "W\u00e4rme": ["0.33333333", "4.0", None],
            "acid": ["S\u00e4ure ", 3.0, "c"],
            "dry": ["TRUE", 0, True],
            "y": [1.0, 2.0, 3.0],
        }
    )
    told = Observations.from_frame(lines, "y", pool=pool)
    assert told.indices.tolist() == [0, 3, 2]


def test_a_named_index_goes_to_the_sheet_and_finds_its_row() -> None:
    table = pd.DataFrame({"x": [1.0, 1.0, 2.0]}, index=["r1", "r2", "r3"])
    pool = Pool(table.rename_axis("recipe"))
    state = (now := Strategy(pool, Above(0.0), batch_size=3)).init()
    sheet = now.ask(state).to_frame()
    assert list(sheet.columns) == ["pool_index", "round", "recipe", "x"]
    told = Observations.from_frame(sheet.assign(y=sheet["x"]), "y")
    told.check_rows(pool)
    turned = Pool(table[::-1].rename_axis("recipe"))
    lines = pd.DataFrame({"recipe": ["r2", "r3"], "y": [1.0, 2.0]})
    assert Observations.from_frame(lines, "y", pool=turned).indices.tolist() == [1, 0]


def test_rows_that_are_alike_go_by_their_number_and_are_else_asked_about() -> None:
    pool = Pool(pd.DataFrame({"x": [1.0, 1.0, 2.0]}))
    lines = pd.DataFrame({"pool_index": [1, 2], "x": [1.0, 2.0], "y": [0.0, 0.0]})
    told = Observations.from_frame(lines, "y", pool=pool)
    assert told.indices.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"line 0 fits rows 0, 1\. Let a column of"):
        Observations.from_frame(lines.drop(columns="pool_index"), "y", pool=pool)
    # The remedy: something that tells them apart.
    named = Pool(pd.DataFrame({"x": [1.0, 1.0, 2.0]}), table=TABLE.iloc[:3])
    one = TABLE.iloc[[1]].assign(y=0.0)
    assert Observations.from_frame(one, "y", pool=named).indices.tolist() == [1]


def test_lines_that_say_too_little_are_not_guessed() -> None:
    pool = Pool(TABLE)
    lines = SHEET[["pool_index", "acid", "y"]]
    with pytest.raises(
        ValueError, match=r"fits rows 0, 2 \(it says nothing of heat, d"
    ):
        Observations.from_frame(lines, "y", pool=pool)
    with pytest.raises(ValueError, match="by the columns heat, acid, dry or some"):
        Observations.from_frame(SHEET[["pool_index", "y"]], "y", pool=pool)
    with pytest.raises(ValueError, match="`pool` to be a Pool"):
        Observations.from_frame(SHEET, "y", pool=TABLE)  # type: ignore[arg-type]


def test_numbers_that_a_spreadsheet_rounded_are_those_of_their_row() -> None:
    pool = Pool([[0.123456], [0.623456], [0.933333]], names=["x"])
    lines = pd.DataFrame({"pool_index": [1], "x": [0.6235], "y": [1.0]})
    assert Observations.from_frame(lines, "y", pool=pool).indices.tolist() == [1]
    strategy = Strategy(pool, Above(0.0), batch_size=1)
    strategy.replay(Observations.from_frame(lines, "y"))
    wrong = lines.assign(pool_index=0)
    told = Observations.from_frame(wrong, "y")
    said = re.escape("1 of 1 do not: line 0 has x 0.6235, and row 0 has 0.123456.")
    with pytest.raises(ValueError, match=said):
        strategy.replay(told)
    with pytest.raises(ValueError, match=r"line 0 has x 0\.6235 where row 1, the most"):
        Observations.from_frame(wrong, "y", pool=pool)
    assert torch.equal(told.select(torch.tensor([0])).indices, told.indices)


def test_times_in_a_table_are_not_compared() -> None:
    days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    table = pd.DataFrame({"name": ["a", "b"], "day": days})
    pool = Pool([[0.0], [1.0]], table=table)
    lines = pd.DataFrame({"name": ["b"], "day": ["2.1.2024"], "y": [1.0]})
    assert Observations.from_frame(lines, "y", pool=pool).indices.tolist() == [1]
