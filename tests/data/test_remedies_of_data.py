r"""Every remedy that a message about pools, tables and results names, executed.

They are those of ``data/``; those of ``data/arguments.py`` stand with the strategies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm, uniform

from botorch_lse import (
    Above,
    Batch,
    Below,
    Between,
    GaussianProcess,
    History,
    Observations,
    Pool,
    Strategy,
    data,
)
from botorch_lse.data.classification import SIDES
from tests.data.joint import Joint, WithoutDensity
from tests.remedies import Remedies

ROOM = Path(data.__file__).parent
FILES = [path for path in ROOM.glob("*.py") if path.stem != "arguments"]
REMEDIES = Remedies(FILES)
TABLE = pd.DataFrame({"heat": [10.0, 20.0, 30.0], "soil": ["clay", "sand", "clay"]})
NAMED = TABLE.set_axis(["a", "b", "c"])
POOL = Pool(TABLE)
BARE = Pool(torch.arange(3, dtype=torch.float64).unsqueeze(-1))
BATCH = Batch(BARE, torch.tensor([2, 0, 2]), 0)
SHEET = Batch(POOL, torch.tensor([1]), 0).to_frame().assign(y=1.5)
none: Any = None
ANSWER = Strategy(BARE, Above(0.7)).init().classification


def case(
    site: str, call: Callable[[], Any], says: str, *remedies: Callable[[], Any]
) -> None:
    r"""Register a place: a call that it refuses, what it says, and that done."""

    def steps(_: Path) -> Generator[Any, str, None]:
        yield call
        for remedy in remedies:
            assert remedy() is not False

    REMEDIES.cases[site, says] = (steps, says)


def test_each_place_that_raises_has_a_case() -> None:
    REMEDIES.check_all_there({})


@pytest.mark.parametrize("key", REMEDIES.cases, ids=", ".join)
def test_what_the_message_says_can_be_done(key: Any, tmp_path: Path) -> None:
    REMEDIES.play(key, tmp_path)


# --- answers ------------------------------------------------------------------------


case(
    "classification:Classification.__post_init__#1",
    lambda: replace(ANSWER, above=~ANSWER.above),
    "to partition the rows, but row 0 is in 2 of them",
    lambda: replace(ANSWER, above=~ANSWER.above, undecided=ANSWER.above),
)
case(
    "classification:refuse_crossed#1",
    lambda: replace(ANSWER, lower=ANSWER.upper, upper=ANSWER.lower),
    "no entry of `lower` to be above that of `upper`",
    lambda: replace(ANSWER, lower=ANSWER.upper),
)
case(
    "classification:Classification.with_limits#1",
    lambda: (
        Strategy(BARE, Between(0.0, 1.0)).init().classification.with_limits([], [], "x")
    ),
    "Expected an answer of the values above one level, or below it",
    lambda: len(ANSWER.with_limits([], [], "below")) == 3,
)


@pytest.mark.parametrize("goal", [Above(0.7), Below(0.7)])
def test_limits_decide_their_rows_and_bound_them(goal: Any) -> None:
    strategy = Strategy(BARE, goal, model=GaussianProcess(noise_std=0.1))
    state = strategy.exclude(strategy.init(), [0, 2])
    found = state.classification.with_limits([0], [0.5], "below")
    found = found.with_limits([2, 2], [0.9, 0.8], "above")
    sides = ["below", "undecided", "above"]
    assert found.to_frame()["side"].tolist() == sides
    assert found.to_frame()["probability_above"].tolist()[::2] == [0.0, 1.0]
    assert float(found.upper[0]) == 0.5
    assert float(found.lower[2]) == 0.9  # the sharper one of two limits
    assert [int(getattr(found, side).sum()) for side in SIDES] == [1, 1, 1]


# --- limits among results -----------------------------------------------------------


@pytest.mark.parametrize("cell", ["<0.5", " \u2264 0.5", "ND", "n.d."])
def test_a_limit_among_results_is_left_out_and_decides(cell: str) -> None:
    frame = pd.DataFrame({"heat": [10.0, 20.0], "y": [cell, 1.5]})
    for call in (
        lambda: Observations.from_frame(frame, "y", pool=POOL),
        lambda: Observations([0, 1], frame["y"]),
        lambda: History([[1.0], [2.0]], [cell, 1.5]),
    ):
        with pytest.raises(ValueError, match=r"A limit is no value: leave its line"):
            call()
    strategy = Strategy(POOL, Above(0.7), model=GaussianProcess(noise_std=0.1))
    state = strategy.exclude(strategy.init(), [0])
    told = Observations.from_frame(frame.drop(index=0), "y", pool=POOL)
    found = strategy.tell(state, told).classification.with_limits([0], [0.5], "below")
    assert found.side[0] == "below"


case(
    "observations:Observations._count_successes#1",
    lambda: Observations([0], [1], counts=2, trials=2),
    "Expected `trials` to come alone",
    lambda: Observations([0], [1], trials=2),
)
case(
    "observations:Observations._count_successes#2",
    lambda: Observations([0], [1], trials=0),
    "Expected `trials` to be one number of at least 1 per entry (1)",
    lambda: Observations([0], [1], trials=1),
)
case(
    "observations:Observations._count_successes#3",
    lambda: Observations([0], [3], trials=2),
    "whole numbers of successes, at most `trials`, but got 3 of 2",
    lambda: Observations([0], [2], trials=2),
)
case(
    "observations:_results#1",
    lambda: Observations([0], ["> 30"]),
    "`state.classification.with_limits(rows, limits, side)`",
    lambda: ANSWER.with_limits([0], [30.0], "above").side[0] == "above",
)


# --- distributions and boxes --------------------------------------------------------


def drawn(marginals: Any, **options: Any) -> Pool:
    return Pool.from_distribution(marginals, 4, **options)


MARGINALS = "Write `[scipy.stats.norm(0, 1), scipy.stats.uniform(2, 3)]`"
for number, wrong in enumerate(([], [3.0], [norm(0, np.nan)]), 1):
    case(
        f"distributions:marginals_of#{number}",
        lambda wrong=wrong: drawn(wrong),
        MARGINALS,
        lambda: drawn([norm(0, 1), uniform(2, 3)]),
    )
case(
    "distributions:marginals_of#2",
    lambda: drawn([Joint(), Joint()]),
    "Join them by `openturns.JointDistribution([...])`",
    lambda: drawn(Joint()),  # joined: see tests/integrations/test_openturns.py
)
case(
    "distributions:copula_factor#1",
    lambda: drawn([norm(0, 2), norm()], correlation=[[4.0, 1.0], [1.0, 1.0]]),
    "the correlation of the normal numbers behind the inputs, not their covariance",
    lambda: drawn([norm(0, 2), norm()], correlation=[[1.0, 0.5], [0.5, 1.0]]),
)
case(
    "distributions:distribution_of#1",
    lambda: drawn(Joint(), correlation=[[1.0, 0.5], [0.5, 1.0]]),
    "Give the distribution a copula, such as `NormalCopula(correlation)`",
    lambda: drawn(Joint()),  # which has one: see tests/integrations/test_openturns.py
)
for joint in (Joint(is_continuous=False), WithoutDensity()):
    case(
        "distributions:distribution_of#2",
        lambda joint=joint: drawn(joint),
        "Smooth it, for example by `KernelSmoothing().build(...)`",
        lambda: drawn(Joint()),
    )
case(
    "pool:Pool.from_distribution#1",
    lambda: drawn([norm(), norm()], sampling=[norm()]),
    "`sampling` to have one distribution per marginal (2)",
    lambda: drawn([norm(), norm()], sampling=[norm(0, 2), norm(0, 2)]),
)
case(
    "pool:Pool.from_distribution#2",
    lambda: drawn([uniform()], sampling=[uniform(5, 1)]),
    "Expected `sampling` to cover the distribution, but got one that never draws of it",
    lambda: drawn([uniform()], sampling=[uniform(-0.5, 2)]),
)
case(
    "pool:Pool.from_box#1",
    lambda: Pool.from_box([[0.0, 30.0], [1.0, 10.0]], 4),
    "the upper row of `bounds` to be above the lower one",
    lambda: Pool.from_box([[0.0, 10.0], [1.0, 30.0]], 4),
)
DRAWN = drawn([norm()])
case(
    "pool:Pool.extended#1",
    lambda: BARE.extended(2, at=[0]),
    "Make it by `Pool.from_distribution`, without `sampling`",
    lambda: len(DRAWN.extended(2, at=[0])) == 6,
)
case(
    "pool:Pool.extended#2",
    lambda: replace(DRAWN, costs=torch.ones(4)).extended(2, at=[0]),
    "but it has costs, which are not known for new rows. Leave it out",
    lambda: len(DRAWN.extended(2, at=[0])) == 6,
)
case(
    "pool:Pool.extended#3",
    lambda: DRAWN.extended(3, at=[0, 1]),
    "to be a multiple of the 2 rows in `at`",
    lambda: len(DRAWN.extended(4, at=[0, 1])) == 8,
)


# --- tables -------------------------------------------------------------------------


def column(*cells: Any) -> pd.Series:
    return pd.Series(cells, name="x")


def of(x: pd.Series) -> Pool:
    return Pool(x.to_frame())


DAYS = column(*pd.to_datetime(["2024-01-01", "2024-01-03"]))
GAPS = pd.DataFrame({"x": [1.0, np.nan, 3.0]})
ML = column("800 ml", "900 ml", "1000 ml")
DOUBTFUL = column("1.000", "2.500")
NAMES = column(*(f"recipe {chr(97 + i)}" for i in range(26)))
case(
    "encoding:encode#1",
    lambda: Pool(pd.DataFrame({"x": []})),
    "`X` to have at least one row",
    lambda: Pool(pd.DataFrame({"x": [1.0]})),
)
case(
    "encoding:_encoded#1",
    lambda: Pool(GAPS),
    "first in rows [1]. Fill or drop them",
    lambda: Pool(GAPS.dropna()),
    lambda: Pool(GAPS.fillna(2.0)),
)
case(
    "encoding:_encoded#2",
    lambda: of(DAYS),
    "`(t - t.min()) / pd.Timedelta(days=1)`, or give it in `table=` only",
    lambda: of((DAYS - DAYS.min()) / pd.Timedelta(days=1)).X.tolist() == [[0.0], [2.0]],
    lambda: Pool([[0.0], [1.0]], table=DAYS.to_frame()),
)
case(
    "encoding:_as_numbers#1",
    lambda: of(column("1", "2", "3", "l4")),
    'Write a number or drop the row; if they are labels, say `astype("category")`',
    lambda: of(column("1", "2", "3", "4")),
    lambda: of(column("1", "2", "3")),
    lambda: of(column("1", "2", "3", "l4").astype("category")).d == 4,
)
case(
    "encoding:_one_per_level#1",
    lambda: of(NAMES),
    "set it as the index, `X.set_index('x')`, or leave it out of `X`",
    lambda: Pool(NAMES.to_frame().assign(heat=range(26)).set_index("x")),
    lambda: Pool(torch.rand(26, 1), table=NAMES.to_frame()),
)


def _codes(said: str) -> list[str]:
    return re.findall(r"`(pd\.to_numeric\(.*?\))`", said)


def _of_words(_: Path) -> Generator[Any, str, None]:
    said = yield lambda: of(ML)
    values = [eval(code, {"pd": pd, "column": ML}) for code in _codes(said)]
    assert [list(value) for value in values] == [[800, 900, 1000]]
    assert of(ML.astype("category")).d == 3


def _of_marks(_: Path) -> Generator[Any, str, None]:
    said = yield lambda: of(DOUBTFUL)
    first, second = (eval(c, {"pd": pd, "column": DOUBTFUL}) for c in _codes(said))
    assert of(first).X.view(-1).tolist() == [1.0, 2.5]
    assert of(second).X.view(-1).tolist() == [1000.0, 2500.0]


REMEDIES.case("encoding:_ask_about_words#1", 'say `astype("category")`')(_of_words)
REMEDIES.case("encoding:_ask_about_marks#1", "if it is one of thousands")(_of_marks)


# --- names --------------------------------------------------------------------------


def told(frame: pd.DataFrame, pool: Pool = POOL) -> list[int]:
    return Observations.from_frame(frame, "y", pool=pool).indices.tolist()


TWICE = Pool(TABLE[["soil"]])
case(
    "names:Rows.find#1",
    lambda: told(pd.DataFrame({"y": [1.5]})),
    "Keep the columns of the sheet beside the results",
    lambda: told(SHEET) == [1],
)
OFF = SHEET.assign(heat=25.0)
case(
    "names:Rows.find#2",
    lambda: told(OFF),
    "or leave the line out, `frame.drop(index=...)`, and tell the model of it by",
    lambda: told(OFF.assign(heat=20.0)) == [1],
    lambda: told(OFF, Pool(pd.concat([TABLE, OFF[["heat", "soil"]]]))) == [3],
    lambda: told(pd.concat([SHEET, OFF], ignore_index=True).drop(index=[1])) == [1],
    lambda: Strategy(POOL, Above(0.7)).with_history(History(OFF, OFF["y"])).init(),
)
CLAY = pd.DataFrame({"soil": ["clay"], "y": [1.5]})
case(
    "names:Rows.find#3",
    lambda: told(CLAY, TWICE),
    "Let a column of the pool's table, or its named index, tell the rows apart",
    lambda: told(CLAY.assign(heat=30.0)) == [2],
    lambda: (
        told(
            CLAY.assign(bag=30.0),
            Pool(TABLE[["soil"]].set_index(TABLE["heat"].rename("bag"))),
        )
        == [2]
    ),
)
case(
    "names:Inputs.of#1",
    lambda: POOL.points(TABLE[["heat", "heat", "soil"]], "x"),
    "to have the column 'heat' once, but it has several. Drop the others",
    lambda: len(POOL.points(TABLE, "x")) == 3,
)
RENAMED = TABLE.rename(columns={"heat": "T"})
case(
    "names:Inputs.of#2",
    lambda: POOL.points(RENAMED, "x"),
    "Rename them, or give bare numbers in the order of `pool.names`",
    lambda: torch.equal(
        POOL.points(RENAMED.rename(columns={"T": "heat"}), "x"), POOL.X
    ),
    lambda: POOL.nearest([10.0, 1.0, 0.0]) == 0,
)
OTHER = Pool([[3.0], [1.0], [2.0]], names=["heat"], table=TABLE)
case(
    "names:Inputs._read#1",
    lambda: OTHER.points(TABLE, "x"),
    "Give what the model takes, in the columns of `pool.X`",
    lambda: OTHER.nearest([3.0]) == 0,
)
case(
    "names:Inputs._check#1",
    lambda: POOL.points(TABLE.assign(soil="loam"), "x"),
    "to hold one of 'clay', 'sand' in the column 'soil', but line 0 has 'loam'. The",
    lambda: len(POOL.points(TABLE.assign(soil="clay"), "x")) == 3,
)
COSTS = pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])
OF_ROWS = {"costs": COSTS, "labels": POOL.labels}
LOC = "Write `costs.loc[labels]` with the labels of these rows if the labels count"


def _in_order(_: Path) -> Generator[Any, str, None]:
    said = yield lambda: Pool(TABLE, costs=COSTS)
    ways = [eval(code, OF_ROWS) for code in re.findall(r"`(costs\..*?)`", said)]
    costs = [Pool(TABLE, costs=way).costs.tolist() for way in ways]
    assert costs == [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]


REMEDIES.case("names:in_order#1", LOC)(_in_order)
SOME = pd.Series([1.0, 2.0], index=["a", "b"])
case(
    "names:in_order#2",
    lambda: Pool(NAMED, costs=SOME),
    "to have a value for each of the rows of the pool, but got none for 'c'",
    lambda: Pool(NAMED, costs=pd.Series([1.0, 2.0, 3.0], index=["c", "b", "a"])),
    lambda: Pool(NAMED[:2], costs=SOME.to_numpy()),
)
BOX = pd.DataFrame({"T": [0.0, 1.0], "p": [1.0, 2.0]})
case(
    "names:places_of#1",
    lambda: Pool.from_box(BOX, 4, names=["p", "heat"]),
    "Rename them, or give bare numbers in this order",
    lambda: Pool.from_box(BOX.rename(columns={"T": "heat"}), 4, names=["p", "heat"]),
    lambda: Pool.from_box([[1.0, 0.0], [2.0, 1.0]], 4, names=["p", "heat"]),
)


# --- results ------------------------------------------------------------------------


def read(frame: pd.DataFrame, y: Any = "y", yvar: Any = None) -> Observations:
    return Observations.from_frame(frame, y, yvar)


PLAIN = SHEET.drop(columns=["heat", "soil"])
BOTH = pd.concat([PLAIN, PLAIN.assign(round=np.nan)], ignore_index=True)
VALUES = Observations([0, 1], [1.0, 2.0])
case(
    "observations:Observations.__post_init__#1",
    lambda: Observations(BATCH.order, BATCH.X.squeeze(-1)),
    "compute it from `pool.X[batch.order]`",
    lambda: len(Observations(BATCH.order, BARE.X[BATCH.order].squeeze(-1))) == 3,
)
case(
    "observations:Observations.__post_init__#2",
    lambda: Observations([0, 1], [1.0, 2.0], round=[0, -1]),
    "Count from 0, or leave it out.",
    lambda: len(Observations([0, 1], [1.0, 2.0], round=[0, 1])) == 2,
    lambda: len(Observations([0, 1], [1.0, 2.0])) == 2,
)
case(
    "observations:Observations.from_frame#1",
    lambda: read(PLAIN, []),
    "`y` to name the columns of the results, each once",
    lambda: len(read(PLAIN, ["y"])) == 1,
)
case(
    "observations:Observations.from_frame#2",
    lambda: read(PLAIN, ["y"], ["y", "round"]),
    "`yvar` to name one column for each column of `y`",
    lambda: read(PLAIN.assign(v=0.1), ["y"], ["v"]).yvar is not None,
)
case(
    "observations:Observations.from_frame#3",
    lambda: read(BOTH),
    "line 1 has none. Tell rows measured elsewhere apart",
    lambda: len(read(BOTH[:1])) == len(read(BOTH[1:])) == 1,
)


def _sorted_since(_: Path) -> Generator[Any, str, None]:
    turned = Pool(TABLE[::-1].reset_index(drop=True).assign(heat=[30.0, 25.0, 10.0]))
    sheet = Batch(POOL, torch.tensor([0]), 0).to_frame().assign(y=1.5)
    said = yield lambda: read(sheet).check_rows(turned)
    assert "`Observations.from_frame(..., pool=pool)`" in said
    assert told(sheet, turned) == [2]


REMEDIES.case("observations:Observations.check_rows#1", "was sorted or changed since")(
    _sorted_since
)
case(
    "observations:Observations.append#1",
    lambda: VALUES.append(replace(VALUES, yvar=torch.ones(2))),
    "Give every measurement a variance, or none and let the model learn it",
    lambda: len(VALUES.append(VALUES)) == 4,
    lambda: replace(VALUES, yvar=0.1).append(replace(VALUES, yvar=0.2)),
)
TWO = Observations([0], [[1.0, 2.0]])
case(
    "observations:Observations.append#2",
    lambda: VALUES.append(TWO),
    "`y` with shape n x () as before",
    lambda: len(VALUES.append(TWO.output(0))) == 3,
)
case(
    "observations:Observations.append#3",
    lambda: VALUES.append(VALUES.at_round(0)),
    "Expected `round` for all observations or for none",
    lambda: len(VALUES.at_round(1).append(VALUES.at_round(0))) == 4,
)
case(
    "observations:_check_columns#1",
    lambda: read(PLAIN, "z"),
    "to have the columns ['pool_index', 'z'], but it has",
    lambda: len(read(PLAIN, "y")) == 1,
)
DOUBLE = pd.concat([PLAIN, PLAIN[["y"]]], axis=1)
case(
    "observations:_check_columns#2",
    lambda: read(DOUBLE),
    "got it 2 times. Rename or drop the others",
    lambda: len(read(DOUBLE.set_axis([*PLAIN.columns, "z"], axis=1))) == 1,
    lambda: len(read(DOUBLE.iloc[:, :-1])) == 1,
)
case(
    "observations:_variances#1",
    lambda: Observations([0, 1], [1.0, 2.0], [0.1, np.nan]),
    "Give every measurement a variance, or none and let the model learn it",
    lambda: Observations([0, 1], [1.0, 2.0], [0.1, 0.2]),
    lambda: Observations([0, 1], [1.0, 2.0]),
)
case(
    "observations:_variances#2",
    lambda: Observations([0, 1], [1.0, 2.0], [0.1, 0.2, 0.3]),
    "`yvar` to have the shape of `y`, (2,)",
    lambda: Observations([0, 1], [1.0, 2.0], [0.1, 0.2]),
)
OLD = History(TABLE, [1.0, 2.0, 3.0])
case(
    "observations:History.append#2",
    lambda: OLD.append(History([[1.0, 0.0, 1.0]], [1.0])),
    "Write `history.on(pool)`, which puts them into the pool's order",
    lambda: len(OLD.on(POOL).append(History([[1.0, 0.0, 1.0]], [1.0]))) == 4,
)
case(
    "observations:History.append#3",
    lambda: History([[1.0]], [1.0]).append(History([[1.0, 2.0]], [1.0])),
    "Expected a `history` of the same columns and outputs",
    lambda: len(History([[1.0]], [1.0]).append(History([[1.0]], [1.0]))) == 2,
)
case(
    "observations:History.append#4",
    lambda: History([[1.0]], [1.0]).append(History([[1.0]], [1.0], [0.1])),
    "but one part has it. Give it everywhere, or nowhere",
    lambda: len(History([[1.0]], [1.0]).append(History([[1.0]], [1.0]))) == 2,
    lambda: History([[1.0]], [1.0], 0.1).append(History([[1.0]], [1.0], 0.1)),
)
ROUND = pd.DataFrame({"round": [1.0, 2.0]})
case(
    "observations:Batch.to_frame#1",
    lambda: Batch(Pool(ROUND), torch.tensor([0]), 0).to_frame(),
    "leave the column 'round' to the batch. Rename the table's column",
    lambda: (
        Batch(Pool(ROUND.rename(columns={"round": "lap"})), torch.tensor([0]), 0)
        .to_frame()["lap"]
        .tolist()
        == [1.0]
    ),
)
case(
    "observations:Batch.observe#1",
    lambda: BATCH.observe([1.0, 2.0], means=True),
    "For k replicates of noise variance v it is v / k",
    lambda: BATCH.observe([1.0, 2.0], [0.1, 0.1 / 2], means=True).n_measured == 3,
)
case(
    "observations:Batch.observe#2",
    lambda: BATCH.observe([1.0, 2.0]),
    "For one mean per row say `means=True`. If `y` was computed from `batch.X`, which",
    lambda: BATCH.observe([1.0, 2.0], [0.1, 0.1 / 2], means=True).n_measured == 3,
    lambda: BATCH.observe(BARE.X[BATCH.order].squeeze(-1)).y.tolist() == [2, 0, 2],
)
SWAPPED = Batch(BARE, torch.tensor([2, 0, 1]), 0)
BY_LABEL = pd.Series([1.0, 2.0, 3.0], index=[1, 0, 2])
case(
    "observations:Batch._in_order#1",
    lambda: SWAPPED.observe(BY_LABEL),
    "Write `y.to_numpy()` in the order `.order`",
    lambda: SWAPPED.observe(BY_LABEL.to_numpy()).y.tolist() == [1.0, 2.0, 3.0],
)


# --- pools --------------------------------------------------------------------------


case(
    "pool:Pool.__post_init__#1",
    lambda: replace(BARE, weights=[0.0, 0.0, 0.0]),
    "Leave `weights` out if all rows count the same",
    lambda: replace(BARE, weights=none),
)
case(
    "pool:Pool.__post_init__#2",
    lambda: replace(BARE, table=TABLE[:2]),
    "`table` to have one row per row of `X` (3)",
    lambda: replace(BARE, table=TABLE),
)
case(
    "pool:Pool.rows#1",
    lambda: Pool(NAMED).rows(["d"]),
    "Give the numbers of the rows, from 0",
    lambda: Pool(NAMED).rows([2]).tolist() == [2],
)
case(
    "pool:Pool.row_of#1",
    lambda: POOL.row_of({"heat": 10.0}),
    "`values` to have 'soil'",
    lambda: POOL.row_of({"heat": 10.0, "soil": "clay"}) == 0,
)
PRICED = replace(BARE, costs=torch.ones(3))
case(
    "pool:Pool.at_noise_levels#1",
    lambda: PRICED.at_noise_levels([0.1, 0.2], [2.0, 1.0]),
    "but it has costs already. Leave it out",
    lambda: len(BARE.at_noise_levels([0.1, 0.2], [2.0, 1.0])) == 6,
)
case(
    "pool:Pool._once_for_each#1",
    lambda: BARE.at_outputs(["p"], [1.0]),
    "`outputs` to name at least two outputs",
    lambda: len(BARE.at_outputs(["p", "q"], [1.0, 2.0])) == 6,
)
case(
    "pool:Pool._once_for_each#2",
    lambda: PRICED.at_outputs(2, [1.0, 2.0]),
    "but it has costs already. Leave it out",
    lambda: len(BARE.at_outputs(2, [1.0, 2.0])) == 6,
)
MESHES = BARE.at_sources(["coarse", "fine"], [1.0, 2.0])
case(
    "pool:Pool._check_target#1",
    lambda: replace(BARE, target=0),
    "Write `pool.at_sources(...)`",
    lambda: BARE.at_sources(["coarse", "fine"], [1.0, 2.0]).target == 1,
)
case(
    "pool:Pool.at_source#1",
    lambda: History([[0.1]], [1.0], source="fine").on(BARE),
    "Write `pool.at_sources(...)` first",
    lambda: len(History([[0.1]], [1.0], source="fine").on(MESHES)) == 1,
)
case(
    "pool:Pool.at_source#2",
    lambda: History([[0.1]], [1.0], source="medium").on(MESHES),
    "`history.source` to be a source of the pool, ['coarse', 'fine']",
    lambda: len(History([[0.1]], [1.0], source="fine").on(MESHES)) == 1,
)
LEVELS = BARE.at_sources([0.5, 1.0], [1.0, 2.0])
case(
    "pool:Pool.at_source#2",
    lambda: History([[0.1]], [1.0], source="fine").on(LEVELS),
    "to be a source of the pool, ['0.5', '1.0'], or another number, but got 'fine'",
    lambda: len(History([[0.1]], [1.0], source=0.37).on(LEVELS)) == 1,
)
case(
    "observations:History.__post_init__#1",
    lambda: History([[0.1], [0.2]], [1.0, 2.0], source=[0.5]),
    "`source` to be one, or one for each of 2 points",
    lambda: len(History([[0.1], [0.2]], [1.0, 2.0], source=[0.5, 0.7]).on(LEVELS)) == 2,
)
case(
    "observations:History.append#1",
    lambda: OF_FINE.append(OF_COARSE),
    "Write `history.on(pool)` of both",
    lambda: len(OF_FINE.on(MESHES).append(OF_COARSE.on(MESHES))) == 2,
)
OF_FINE, OF_COARSE = (History([[0.1]], [1.0], source=s) for s in ("fine", "coarse"))
case(
    "pool:_check_names#1",
    lambda: replace(BARE, names=["x", "y"]),
    "`names` to name each of the 1 columns of `X`",
    lambda: replace(BARE, names=["x"]),
)
case(
    "pool:_check_names#2",
    lambda: Pool(torch.rand(3, 2), names=["x", "x"]),
    "`names` to differ",
    lambda: Pool(torch.rand(3, 2), names=["x", "y"]),
)
