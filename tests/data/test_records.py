r"""The records: pools, observations, batches and answers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse import Batch, Classification, Observations, Pool

X = torch.tensor([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]).double()


def answer(pool: Pool) -> Classification:
    N = len(pool)
    none, some = torch.zeros(N, dtype=torch.bool), torch.arange(N).double()
    above = none.clone()
    above[0] = True
    return Classification(
        above, none, ~above, some - 1, some + 1, some, some + 0.5, some / N, pool=pool
    )


# --- pools --------------------------------------------------------------------------


def test_frame_is_encoded_column_by_column() -> None:
    table = pd.DataFrame(
        {
            "depth": [1, 2, 3],
            "wet": [True, False, True],
            "soil": pd.Categorical(["sand", "clay", "sand"]),
        },
        index=["a", "b", "c"],
    )
    pool = Pool(table)
    assert pool.names == ("depth", "wet", "soil=clay", "soil=sand")
    assert pool.X.tolist() == [[1, 1, 0, 1], [2, 0, 1, 0], [3, 1, 0, 1]]
    assert pool.X.dtype == torch.float64
    pd.testing.assert_frame_equal(pool.to_frame(), table)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([20, 30, 40.5], dtype=object),
        pd.Series(["20", "30", "40.5"]),
        pd.Series(["20", 30, " 40.5"], dtype=object),
        pd.Series(["20", "30", "40.5"], dtype="string"),
    ],
)
def test_numbers_in_a_column_of_objects_are_numbers(column) -> None:
    pool = Pool(pd.DataFrame({"heat": column}))
    assert pool.names == ("heat",)
    assert pool.X.squeeze(-1).tolist() == [20.0, 30.0, 40.5]


def test_a_category_of_numbers_keeps_its_levels() -> None:
    column = pd.Series(["20", "30"]).astype("category")
    assert Pool(pd.DataFrame({"heat": column})).names == ("heat=20", "heat=30")


def test_truth_values_in_a_column_of_objects_are_0_and_1() -> None:
    wet = pd.Series([True, False], dtype=object)
    assert Pool(pd.DataFrame({"wet": wet})).X.tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(("levels", "rows"), [(3, 3), (20, 20), (30, 60), (200, 400)])
def test_a_few_words_are_levels(levels: int, rows: int) -> None:
    words = [f"w{i % levels}" for i in range(rows)]
    pool = Pool(pd.DataFrame({"solvent": words}))
    assert pool.d == levels
    assert pool.X.sum(dim=-1).tolist() == [1.0] * rows


@pytest.mark.parametrize(("levels", "rows"), [(21, 21), (30, 59), (201, 4000)])
def test_names_of_rows_are_no_levels(levels: int, rows: int) -> None:
    words = [f"w{i % levels}" for i in range(rows)]
    table = pd.DataFrame({"name": words, "heat": range(rows)})
    with pytest.raises(ValueError, match=r"'name' .*set_index\('name'\).*`table=`"):
        Pool(table)
    if levels == rows:
        assert Pool(table.set_index("name")).names == ("heat",)
        assert "name" in Pool(table[["heat"]], table=table).to_frame()


DAYS = pd.date_range("2026-01-01", periods=2)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(DAYS),
        pd.Series(DAYS.tz_localize("UTC")),
        pd.Series(DAYS, dtype=object),
        pd.Series(DAYS.date),
        pd.Series(DAYS.time),
        pd.Series(DAYS - DAYS[0]),
        pd.Series(DAYS.to_period("D")),
    ],
    ids=lambda column: str(column[0]),
)
def test_times_are_refused(column) -> None:
    with pytest.raises(ValueError, match=r"'when' holds .* Convert it to numbers"):
        Pool(pd.DataFrame({"when": column}))


@pytest.mark.parametrize("cell", ["n/a", "", "12,5"])
def test_a_cell_that_is_no_number_is_named(cell: str) -> None:
    heat = pd.Series(["20", cell, "30"], index=["p", "q", "r"])
    with pytest.raises(ValueError, match=f"'heat' .*row 'q' has '{cell}'.*category"):
        Pool(pd.DataFrame({"heat": heat}))


def test_pool_without_frame_names_its_columns() -> None:
    assert Pool(X).names == ("x0", "x1")
    frame = Pool(X, names=["lon", "lat"]).to_frame()
    assert list(frame.columns) == ["lon", "lat"]
    assert frame["lat"].tolist() == [1.0, 3.0, 2.0]


def test_pool_does_not_change_with_its_callers_array() -> None:
    tensor, array = X.clone(), X.numpy().copy()
    pools = [Pool(tensor), Pool(array), Pool(X, costs=tensor[:, 0])]
    hashes = [Pool(X).hash, Pool(X).hash, Pool(X, costs=X[:, 0]).hash]
    tensor[0, 0] = array[0, 0] = 9.0
    assert [pool.hash for pool in pools] == hashes


def test_pool_does_not_change_with_its_callers_table() -> None:
    table = pd.DataFrame({"depth": [1.0, 2.0, 3.0]})
    pools = [Pool(table), Pool(X, table=table)]
    table["depth"] = 0.0
    table["more"] = "text"
    for pool in pools:
        assert pool.to_frame().to_dict("list") == {"depth": [1.0, 2.0, 3.0]}


def test_bounds_give_constant_inputs_length_one() -> None:
    pool = Pool(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert pool.bounds.tolist() == [[1.0, 4.5], [3.0, 5.5]]


def test_nearest_scales_by_the_bounds() -> None:
    pool = Pool(torch.tensor([[0.0, 0.0], [1.0, 1000.0], [0.0, 600.0]]))
    assert pool.nearest([0.9, 400.0]) == 1
    assert pool.nearest([0.0, 400.0]) == 2


def test_hash_sees_everything_that_changes_an_answer() -> None:
    pools = [
        Pool(X),
        Pool(X + 1e-12),
        Pool(X.T),
        Pool(X, costs=torch.ones(3)),
        Pool(X, noise_var=torch.ones(3)),
        Pool(X, features=torch.ones(3, 1)),
        Pool(X, names=["a", "b"]),
    ]
    assert len({pool.hash for pool in pools}) == len(pools)
    assert Pool(X).hash == Pool(X.clone()).hash


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"X": torch.empty(0, 2)},
            ValueError,
            r"`X` to have at least one row.*\(0, 2\)",
        ),
        ({"X": torch.empty(2, 0)}, ValueError, r"`X` .*one column, but got.*\(2, 0\)"),
        ({"X": X[:, 0]}, BotorchTensorDimensionError, "`X` to be a matrix.*unsqueeze"),
        ({"X": X.log()}, ValueError, r"`X` to be finite, but row 0 is \[-inf, 0.0\]"),
        ({"X": X * torch.nan}, ValueError, "`X` to be finite, but row 0 is"),
        ({"X": "abc"}, ValueError, "`X` to hold numbers, but got str"),
        ({"costs": [1.0, -2.0, 0.0]}, ValueError, "`costs` .*entry 1 is -2"),
        (
            {"costs": [1.0]},
            BotorchTensorDimensionError,
            r"`costs` .*one number per row of `X` \(3\)",
        ),
        ({"noise_var": [1.0, -2.0, 1.0]}, ValueError, "`noise_var` .*entry 1 is -2"),
        ({"noise_var": [1.0, -1.0, 1.0]}, ValueError, "`noise_var` .*non-negative"),
        ({"features": X[:2]}, BotorchTensorDimensionError, "`features` .*row of `X`"),
        ({"names": ["a"]}, ValueError, "`names` to name each of the 2 columns"),
        ({"names": "ab"}, ValueError, "`names` to name each of the 2 columns"),
        ({"names": 5}, ValueError, "`names` to name each of the 2 columns .* got 5"),
        ({"names": ["a", "a"]}, ValueError, "`names` to differ"),
        (
            {"table": ["a", "b", "c"]},
            ValueError,
            "`table` to be a DataFrame .*got list",
        ),
        ({"X": X.to_sparse()}, ValueError, "`X` to hold numbers, but got a sparse"),
        ({"features": X + 1j}, ValueError, "`features` to hold .* torch.complex128"),
        ({"table": pd.DataFrame({"a": [1]})}, ValueError, r"`table` .*\(3\).*has 1"),
        (
            {"X": pd.DataFrame({"a": [1.0, None]}, index=[7, 9])},
            ValueError,
            r"`X` to be complete, but column 'a' misses.*\[9\]. Fill or drop",
        ),
        ({"X": pd.DataFrame(index=[1, 2])}, ValueError, "`X` .*one column"),
        ({"X": pd.DataFrame({"a": []})}, ValueError, "`X` to have at least one row"),
        (
            {"X": pd.DataFrame({"a": pd.Series([], dtype=object)})},
            ValueError,
            "`X` to have at least one row",
        ),
        (
            {"X": pd.DataFrame([[1.0, 2.0], [3.0, None]], columns=["a", "a"])},
            ValueError,
            r"`X` to be complete, but column 'a' misses values, first in rows \[1\]",
        ),
        (
            {"X": pd.DataFrame({"a": ["b", "c"], "a=b": [3.0, 4.0]})},
            ValueError,
            "`names` to differ, but got.*a=b.*a=b",
        ),
    ],
)
def test_bad_pools_are_refused(arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Pool(**{"X": X, **arguments})


# --- answers ------------------------------------------------------------------------


def test_answer_comes_back_as_the_callers_table() -> None:
    index = pd.Index(["n", "e", "s"], name="site")
    pool = Pool(pd.DataFrame({"x": [0.0, 1.0, 2.0], "soil": list("aba")}, index=index))
    frame = answer(pool).to_frame()
    assert frame.index.equals(index)
    assert list(frame.columns) == [
        "x",
        "soil",
        "side",
        "probability_above",
        "mean",
        "sigma",
        "lower",
        "upper",
    ]
    assert frame["side"].tolist() == ["above", "undecided", "undecided"]
    assert frame.loc["s", "upper"] == 3.0


def test_names_already_in_the_table_end_in_lse() -> None:
    pool = Pool(pd.DataFrame({"mean": [7.0, 8.0, 9.0], "side": [1.0, 2.0, 3.0]}))
    frame = answer(pool).to_frame()
    assert frame["mean"].tolist() == [7.0, 8.0, 9.0]
    assert frame["mean_lse"].tolist() == [0.0, 1.0, 2.0]
    assert frame["side_lse"].tolist()[0] == "above"
    assert "lower" in frame
    assert "lower_lse" not in frame


def test_repeated_index_keeps_one_row_per_candidate() -> None:
    pool = Pool(pd.DataFrame({"x": [0.0, 1.0, 2.0]}, index=[5, 5, 5]))
    frame = answer(pool).to_frame()
    assert frame["x"].tolist() == frame["mean"].tolist() == [0.0, 1.0, 2.0]


def test_answer_without_pool_is_a_frame_too() -> None:
    pool = Pool(X)
    bare = answer(pool)
    object.__setattr__(bare, "pool", None)
    assert len(bare.to_frame()) == 3
    assert "1 above, 0 below, 2 undecided" in repr(bare)


def test_sides_must_partition_the_rows() -> None:
    good = answer(Pool(X))
    fields = (good.lower, good.upper, good.mean, good.sigma, good.probability_above)
    with pytest.raises(ValueError, match="partition the rows, but row 0 is in 2"):
        Classification(good.above, good.above, good.undecided, *fields)


# --- observations and batches -------------------------------------------------------


def test_batch_counts_replicates() -> None:
    batch = Batch(Pool(X), torch.tensor([2, 0, 2]), 4)
    assert batch.indices.tolist() == [0, 2]
    assert batch.counts.tolist() == [1, 2]
    assert torch.equal(batch.X, X[[0, 2]])
    assert len(batch) == 3


def test_batch_takes_one_value_per_replicate_in_visiting_order() -> None:
    batch = Batch(Pool(X), torch.tensor([2, 0, 2]), 4)
    told = batch.observe([1.0, 2.0, 3.0])
    assert told.indices.tolist() == [2, 0, 2]
    assert told.y.tolist() == [1.0, 2.0, 3.0]
    assert told.round.tolist() == [4, 4, 4]
    assert told.yvar is None


def test_batch_takes_means_with_their_variances() -> None:
    batch = Batch(Pool(X), torch.tensor([2, 0, 2]), 4)
    told = batch.observe([1.0, 2.0], yvar=[0.1, 0.05], means=True)
    assert told.indices.tolist() == [0, 2]
    assert told.yvar.tolist() == [0.1, 0.05]


@pytest.mark.parametrize(
    "y",
    [
        1.5,
        torch.tensor(1.5),
        np.float64(1.5),
        np.array(1.5),
        [1.5],
        [torch.tensor(1.5)],
        pd.Series([1.5], index=[9]),
        torch.tensor([1.5], dtype=torch.float32),
    ],
)
def test_one_value_may_come_in_any_form(y: object) -> None:
    told = Batch(Pool(X), torch.tensor([1]), 0).observe(y, yvar=0.5)
    assert told.y.tolist() == [1.5]
    assert told.y.dtype == torch.float64
    assert told.yvar.tolist() == [0.5]


def test_rows_may_come_as_a_series_with_its_own_index() -> None:
    series = pd.Series([2, 1], index=[8, 9])
    assert Observations(series, series.astype(float)).indices.tolist() == [2, 1]
    told = Observations([0, 1], series, yvar=series, round=series, counts=series)
    for part in (told.y, told.yvar, told.round, told.counts):
        assert part.tolist() == [2, 1]


@pytest.mark.parametrize(
    "given", [torch.tensor([3, 1, 2]), np.array([3, 1, 2]), pd.Series([3, 1, 2])]
)
def test_records_do_not_change_with_their_callers_arrays(given) -> None:
    told = Observations(given, given, yvar=given, round=given, counts=given)
    batch = Batch(Pool(torch.arange(4.0).unsqueeze(-1)), given, 0)
    given[:] = -5
    parts = (told.indices, told.y, told.yvar, told.round, told.counts, batch.order)
    assert [part.tolist() for part in parts] == [[3, 1, 2]] * 6


def test_observations_keep_their_order_and_labels() -> None:
    first = Observations([3, 1], [1.0, 2.0], round=torch.tensor([0, 0]))
    both = first.append(Observations([2], [5.0], round=1))
    assert both.indices.tolist() == [3, 1, 2]
    assert both.round.tolist() == [0, 0, 1]
    assert both.select(torch.tensor([2, 0])).y.tolist() == [5.0, 1.0]
    assert len(Observations.empty().append(both)) == 3


def test_observations_may_have_several_outputs() -> None:
    told = Observations([0, 1], torch.ones(2, 3), yvar=torch.ones(2, 3))
    assert told.y.shape == told.yvar.shape == (2, 3)


@pytest.mark.parametrize(
    "table",
    [
        [[1, 2], [3, 4]],
        [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])],
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}, index=["p", "q"]),
        np.asfortranarray([[1, 9, 2], [3, 9, 4]])[:, ::2],
    ],
)
def test_several_outputs_may_come_in_any_form(table: object) -> None:
    told = Batch(Pool(X), torch.tensor([2, 0]), 0).observe(table, yvar=table)
    assert told.y.tolist() == told.yvar.tolist() == [[1.0, 2.0], [3.0, 4.0]]


BATCH = Batch(Pool(X), torch.tensor([2, 0, 2]), 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: Observations([0], [float("nan")]),
            ValueError,
            "`y` to be finite, but entry 0 is nan. Leave out what was not measured",
        ),
        (lambda: Observations([0, 1], [1.0]), BotorchTensorDimensionError, "`y` .*2"),
        (lambda: Observations([-1], [1.0]), ValueError, "`indices` .*at least 0.*-1"),
        (lambda: Observations([0.5], [1.0]), ValueError, "`indices` to hold whole"),
        (lambda: Observations(["a"], [1.0]), ValueError, "`indices` to hold whole"),
        (lambda: Observations([True], [1.0]), ValueError, "`indices` to hold whole"),
        (
            lambda: Observations([[0]], [1.0]),
            BotorchTensorDimensionError,
            "`indices` to be a vector of rows",
        ),
        (
            lambda: Observations([0, 1], [1.0, 2.0], yvar=[0.1, None]),
            ValueError,
            "`yvar` for all observations or for none, but entry 1",
        ),
        (
            lambda: Observations([0], [1.0], yvar=[-0.1]),
            ValueError,
            "`yvar` to be non-negative, but entry 0 is -0.1",
        ),
        (
            lambda: Observations([0, 1], [1.0, 2.0], yvar=[0.1]),
            BotorchTensorDimensionError,
            "`yvar` to have the shape of `y`",
        ),
        (
            lambda: Observations([0], [1.0], round=-1),
            ValueError,
            "`round` .*at least 0",
        ),
        (
            lambda: Observations([0], [1.0], round=0.5),
            ValueError,
            "`round` to hold whole numbers, but got 0.5. Round it",
        ),
        (lambda: Observations([0], [1.0], round="a"), ValueError, "`round` to hold"),
        (
            lambda: Observations([0], [1.0], counts=[1.5]),
            ValueError,
            "`counts` to hold whole numbers, but got 1.5",
        ),
        (lambda: Observations([0], [1.0], yvar="a"), ValueError, "`yvar` to hold num"),
        (lambda: Observations([0], None), ValueError, "`y` to hold numbers"),
        (lambda: Observations([0], [[1.0], [1.0, 2.0]]), ValueError, "`y` to hold num"),
        (
            lambda: Observations.from_frame({"y": [1.0]}, "y"),
            ValueError,
            "`frame` to be a DataFrame, but got dict",
        ),
        (
            lambda: Observations.from_frame(pd.DataFrame({"pool_index": [0]}), []),
            ValueError,
            "`y` to name the columns",
        ),
        (
            lambda: Observations([0], [1.0], 0.1).append(Observations([0], [1.0])),
            ValueError,
            "`yvar` for all observations or for none, but earlier ones have it",
        ),
        (
            lambda: Observations([0], [1.0]).append(Observations([0], [[1.0, 2.0]])),
            BotorchTensorDimensionError,
            "`y`",
        ),
        (lambda: Batch(Pool(X), [3], 0), ValueError, r"`order` .*0 to 2, but got 3"),
        (
            lambda: BATCH.observe([1.0, 2.0]),
            BotorchTensorDimensionError,
            "`y` to have 3 values.*but got 2. For one mean per row say `means=True`",
        ),
        (
            lambda: BATCH.observe([1.0]),
            BotorchTensorDimensionError,
            "one per replicate in the order `.order`, but got 1",
        ),
        (
            lambda: BATCH.observe([1.0] * 3, yvar=0.1, means=True),
            BotorchTensorDimensionError,
            "`y` to have 2 values, one per row, but got 3",
        ),
        (
            lambda: BATCH.observe([1.0, 2.0], means=True),
            ValueError,
            "`yvar`, the variance of each mean.*it is v / k",
        ),
        (lambda: BATCH.observe([1.0, None, 2.0]), ValueError, "`y` to hold numbers"),
        (lambda: Pool(X).nearest([1.0]), BotorchTensorDimensionError, "`x` .*column"),
    ],
)
def test_bad_records_are_refused(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("counts", [[1], [0, 2], [1, 1, 1]])
def test_counts_that_cannot_be_are_refused(counts) -> None:
    with pytest.raises(ValueError, match="`counts` to be one number of at least 1"):
        Observations([0, 1], [0.1, 0.2], [0.1, 0.1], counts=counts)


def test_a_box_becomes_evenly_spread_rows() -> None:
    pool = Pool.from_box([[0.0, -5.0], [1.0, 5.0]], 256, names=["t", "dose"])
    assert pool.names == ("t", "dose")
    unit = (pool.X - torch.tensor([0.0, -5.0])) / torch.tensor([1.0, 10.0])
    assert bool(((unit >= 0) & (unit <= 1)).all())
    # A digital net in base 2: every elementary box of volume 1/16 has its 16 points.
    cells = (4 * unit).long().clamp_max(3) @ torch.tensor([4, 1])
    assert cells.bincount(minlength=16).tolist() == [16] * 16
    assert torch.equal(pool.X, Pool.from_box([[0.0, -5.0], [1.0, 5.0]], 256).X)
    other = Pool.from_box([[0.0, -5.0], [1.0, 5.0]], 256, seed=1)
    assert not torch.equal(pool.X, other.X)


@pytest.mark.parametrize(
    ("bounds", "n", "message"),
    [
        ([[0.0], [0.0]], 8, "input 0 has 0 and 0"),
        ([[0.0, 1.0]], 8, "two rows, lower and upper"),
        ([[0.0], [float("nan")]], 8, "`bounds` to be finite"),
        ([[0.0], [1.0]], 0, "`n`"),
    ],
)
def test_a_box_without_volume_is_refused(bounds, n, message) -> None:
    with pytest.raises((ValueError, BotorchTensorDimensionError), match=message):
        Pool.from_box(bounds, n)


@pytest.mark.parametrize("seed", [-1, 0.5, "a"])
def test_the_seed_of_a_box_is_a_whole_number(seed) -> None:
    with pytest.raises(ValueError, match="`seed` to be"):
        Pool.from_box([[0.0], [1.0]], 8, seed=seed)


def _sheet_pool() -> Pool:
    return Pool(pd.DataFrame({"heat": [10.0, 20.0, 30.0], "acid": ["a", "b", "a"]}))


def test_a_batch_goes_to_a_sheet_and_back(tmp_path) -> None:
    batch = Batch(_sheet_pool(), torch.tensor([2, 0, 2]), 4)
    sheet = batch.to_frame()
    assert list(sheet.columns) == ["pool_index", "round", "heat", "acid"]
    assert sheet["heat"].tolist() == [30.0, 10.0, 30.0]
    sheet["yield"] = [1.5, None, 2.5]  # the second is not measured yet
    sheet["var"] = [0.1, None, 0.2]
    sheet.to_csv(tmp_path / "sheet.csv", index=False)
    again = pd.read_csv(tmp_path / "sheet.csv")
    told = Observations.from_frame(again, "yield", yvar="var")
    assert told.indices.tolist() == [2, 2]
    assert told.y.tolist() == [1.5, 2.5]
    assert told.yvar.tolist() == [0.1, 0.2]
    assert told.round.tolist() == [4, 4]
    pair = Observations.from_frame(again, ["yield", "heat"])
    assert pair.y.tolist() == [[1.5, 30.0], [2.5, 30.0]]


def test_lines_without_round_are_measured_elsewhere() -> None:
    frame = pd.DataFrame({"pool_index": [1], "y": [2.0]})
    assert Observations.from_frame(frame, "y").round is None
    assert Observations.from_frame(frame.assign(round=None), "y").round is None
    nothing = Observations.from_frame(frame.assign(y=None), "y")
    assert len(nothing) == 0


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"y": [1.0]}, "'pool_index' is missing"),
        ({"pool_index": [0]}, "'y' is missing"),
        ({"pool_index": [0], "y": ["much"]}, "to hold numbers"),
        (
            {"pool_index": [0.5], "y": [1.0]},
            "`indices` to hold whole numbers, but got 0.5. `Pool.nearest",
        ),
        ({"pool_index": [None], "y": [1.0]}, "`indices` to hold whole .* got nan"),
        ({"pool_index": [0], "y": [1.0], "round": [0.5]}, "`round` to hold whole"),
        (
            {"pool_index": [0, 1], "y": [1.0, 1.0], "round": [0, None]},
            "line 1 has none",
        ),
    ],
)
def test_bad_sheets_are_refused(frame, message) -> None:
    with pytest.raises(ValueError, match=message):
        Observations.from_frame(pd.DataFrame(frame), "y")


def test_a_table_with_the_sheets_columns_is_refused() -> None:
    pool = Pool(pd.DataFrame({"round": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="Rename the table's column"):
        Batch(pool, torch.tensor([0]), 0).to_frame()


SHEET = pd.DataFrame(
    {"pool_index": [0, 1], "round": [0, 0], "a": [1.0, 2.0], "b": [3.0, 4.0],
     "va": [0.1, 0.2], "vb": [0.3, 0.4]}
)  # fmt: skip
DAYS = pd.to_datetime(["2024-01-01", "2024-01-02"])


def test_a_sheet_has_a_variance_for_each_output() -> None:
    told = Observations.from_frame(SHEET, y=["a", "b"], yvar=["va", "vb"])
    assert told.y.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert told.yvar is not None
    assert told.yvar.tolist() == [[0.1, 0.3], [0.2, 0.4]]
    one = Observations.from_frame(SHEET, y="a", yvar=["va"])
    assert one.yvar is not None
    assert one.yvar.tolist() == [0.1, 0.2]


def test_numbers_written_as_text_in_a_sheet_are_numbers() -> None:
    told = Observations.from_frame(SHEET.astype({"a": "string"}), "a")
    assert told.y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("column", ["a", "pool_index", "round", "va"])
@pytest.mark.parametrize(
    ("values", "got"),
    [
        (DAYS, "values of type datetime64"),
        (DAYS - DAYS[0], "values of type timedelta64"),
        ([True, False], "values of type bool"),
        (pd.Series([True, 1], dtype=object), "bool True"),
        ([1j, 2], "values of type complex"),
        (["much", "1"], "str 'much'"),
    ],
)
def test_sheets_of_other_things_than_numbers_are_refused(column, values, got) -> None:
    sheet = SHEET.assign(**{column: values})
    with pytest.raises(ValueError, match=rf"`frame\['{column}'\]` to hold .*{got}"):
        Observations.from_frame(sheet, "a", "va")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": None}, "None is missing"),
        ({"y": 3}, "3 is missing"),
        ({"y": [["a"]]}, r"\['a'\] is missing"),
        ({"y": ["a", "a"]}, "each once, but got"),
        ({"y": ["a", "b"], "yvar": "va"}, "one column for each column of `y`"),
        ({"y": "a", "yvar": ["va", "vb"]}, "one column for each column of `y`"),
        ({"y": "a", "yvar": 3}, "3 is missing"),
    ],
)
def test_columns_that_are_not_there_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Observations.from_frame(SHEET, **arguments)


@pytest.mark.parametrize("column", ["a", "va", "pool_index", "round"])
def test_a_column_that_is_there_twice_is_refused(column) -> None:
    sheet = pd.concat([SHEET, SHEET[[column]]], axis=1)
    with pytest.raises(ValueError, match=f"the column '{column}' once, but got it 2"):
        Observations.from_frame(sheet, "a", "va")


@pytest.mark.parametrize(
    ("values", "got"),
    [
        (["1.5", "2"], "str '1.5'"),
        (np.array(["1.5", "2"]), "values of type <U"),
        ("ab", "str 'ab'"),
        ([True, 1.0], "bool True"),
        (np.array([True, False]), "values of type bool"),
        (torch.tensor([True, False]), "torch.bool"),
        ([torch.tensor(1.0), torch.tensor(True)], "bool True"),
        (pd.Series([True, False]), "values of type bool"),
        ([[True], [False]], "bool True"),
        ([1j, 2.0], "complex 1j"),
        (np.array([1j, 2.0]), "values of type complex"),
        (torch.tensor([1j, 2.0]), "torch.complex"),
        (DAYS, "values of type datetime64"),
        ({1.0, 2.0}, "set {1.0, 2.0}"),
        (torch.eye(2).to_sparse(), r"a sparse tensor. Write `.*to_dense\(\)`"),
        ([10**400, 1], "too large"),
    ],
)
def test_only_real_numbers_are_measured_values(values, got) -> None:
    batch = Batch(Pool([[0.0], [1.0]]), torch.tensor([0, 1]), 0)
    for name, tell in (
        ("y", lambda: Observations([0, 1], values)),
        ("yvar", lambda: Observations([0, 1], [1.0, 2.0], values)),
    ):
        with pytest.raises(ValueError, match=f"`{name}` to hold numbers.*{got}"):
            tell()
    with pytest.raises((ValueError, BotorchTensorDimensionError), match="`y` to h"):
        batch.observe(values)


SERIES = pd.Series([True, False], index=["a", "b"])


@pytest.mark.parametrize(
    "y",
    [
        [True, False],
        [[True], [False]],
        [torch.tensor(True), 0.0],
        np.array([True, False]),
        torch.tensor([True, False]),
        SERIES,
        SERIES.astype("boolean"),
        SERIES.astype("category"),
        SERIES.to_frame(),
        ["yes", "no"],
        np.array(["yes", "no"]),
        SERIES.map({True: "pass", False: "fail"}),
        ["1", "0.0"],
        pd.Series(["1", "0.0"]),
        [["1"], ["0"]],
        pd.DataFrame({"a": ["1", "0"]}),
    ],
)
def test_what_looks_like_numbers_becomes_them_as_is_advised(y) -> None:
    with pytest.raises(ValueError, match="`y` to hold numbers") as raised:
        Observations([0, 1], y)
    code = str(raised.value).split("`")[3]
    told = Observations([0, 1], eval(code, {"np": np, "pd": pd, "y": y}))
    assert told.y.flatten().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("as_rows", [list, np.array, pd.Series, torch.tensor])
def test_marked_rows_become_numbers_of_rows_as_is_advised(as_rows) -> None:
    indices = as_rows([False, True])
    with pytest.raises(ValueError, match="`indices` to hold whole numbers") as raised:
        Observations(indices, [2.5])
    code = str(raised.value).split("`")[3]
    rows = eval(code, {"np": np, "indices": indices})
    assert Observations(rows, [2.5]).indices.tolist() == [1]


@pytest.mark.parametrize(
    "rows",
    [[True, 1], [0, 2**63], [0.0, 2.0**60], np.array([0, 2**63], dtype="uint64")],
)
def test_rows_are_whole_numbers_that_fit(rows) -> None:
    with pytest.raises(ValueError, match="`indices` to hold whole numbers"):
        Observations(rows, [1.0, 2.0])


def test_a_point_may_have_truth_values_where_the_pool_has() -> None:
    pool = Pool(pd.DataFrame({"depth": [1.0, 2.0], "wet": [True, False]}))
    assert pool.nearest([2.0, False]) == 1


def test_a_row_is_found_by_its_inputs() -> None:
    table = pd.DataFrame({"x": [0.0, 0.1, 0.1], "salt": ["a", "a", "b"]})
    pool = Pool(table, weights=[1, 2, 3])
    assert pool.row_of({"x": 0.1 + 1e-12, "salt": "b", "more": 3}) == 2
    assert pool.row_of({"x": 0.2, "salt": "b"}) is None
    with pytest.raises(
        ValueError, match=r"`values` to have 'salt', but it has \['x'\]"
    ):
        pool.row_of({"x": 0.1})


def test_a_pool_is_shown_in_a_line():
    assert repr(Pool(torch.rand(1234, 1))) == "Pool(1,234 rows, input x0)"
    wide = Pool(torch.rand(3, 9), names=tuple("abcdefghi"), noise_var=torch.ones(3))
    assert repr(wide) == "Pool(3 rows, inputs a, b, c, d, e, f, ...; with noise_var)"
    words = Pool(pd.DataFrame({"s": ["u", "v"]}))
    assert repr(words) == "Pool(2 rows, inputs s=u, s=v; with table)"


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["800 ml", "900 ml", "-7.5 ml"], [[800, 900, -7.5]]),
        (["16%", "8%", "0.5%"], [[16, 8, 0.5]]),
        (["1 000", "1 200", "800"], [[1000, 1200, 800]]),
        (["1'000", "1'200'000", "800"], [[1000, 1200000, 800]]),
        (
            ["1\N{NARROW NO-BREAK SPACE}000", "2\N{NO-BREAK SPACE}500", "8.500"],
            [[1000, 2500, 8.5]],
        ),
        (["80,5", "1,25", "-3"], [[80.5, 1.25, -3]]),
        (["1,000", "8,500", "800"], [[1, 8.5, 800], [1000, 8500, 800]]),
        (["1,000,000", "8,500", "800"], [[1000000, 8500, 800]]),
        (["\N{EURO SIGN}1000", "\N{EURO SIGN}80", "70"], [[1000, 80, 70]]),
        ([1000, "~80", "~ 70"], [[1000, 80, 70]]),
        (["1.000,5", "8,5", "7"], []),  # no single repair serves all of them
        (["8:30", "9:15", "7:00"], []),
        (["16%", "8%", "none"], []),
    ],
)
def test_words_that_begin_with_a_number_become_it_as_is_advised(cells, wanted) -> None:
    table = pd.DataFrame({"x": cells, "z": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match="most cells begin with a number") as refused:
        Pool(table)
    assert Pool(table.astype({"x": "category"})).d == 4
    code = re.findall(r"`(pd\.to_numeric\(.*?\))`", str(refused.value))
    found = [eval(one, {"pd": pd, "column": table["x"]}) for one in code]
    assert [column.tolist() for column in found] == wanted
    for column in found:
        assert Pool(table.assign(x=column)).X[:, 0].tolist() == column.tolist()


def test_words_that_are_no_numbers_are_still_levels() -> None:
    table = pd.DataFrame({"x": ["acid", "base 2", "3", "base 4", "lye"]})
    assert Pool(table).d == 5


def test_points_that_may_be_of_thousands_are_asked_about() -> None:
    table = pd.DataFrame({"flow": ["800", "1.000", "3.000"]})
    with pytest.raises(ValueError, match=r"row 1 has the text '1\.000', and every"):
        Pool(table)
    decimal = Pool(table.assign(flow=pd.to_numeric(table["flow"])))
    assert decimal.X[:, 0].tolist() == [800, 1, 3]
    whole = table["flow"].str.replace(".", "")
    assert Pool(table.assign(flow=pd.to_numeric(whole))).X[:, 0].max() == 3000
    assert Pool(pd.DataFrame({"x": ["0.125", "1.000", "2.5"]})).X[2] == 2.5


def test_a_table_says_the_side_of_the_level_where_below_is_asked() -> None:
    values = torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64)
    in_set = torch.tensor([True, False, False])
    answer = Classification(
        above=in_set,
        below=torch.tensor([False, True, False]),
        undecided=torch.tensor([False, False, True]),
        lower=values - 0.1,
        upper=values + 0.1,
        mean=values,
        sigma=torch.full_like(values, 0.05),
        probability_above=torch.tensor([1.0, 0.0, 0.6], dtype=torch.float64),
        meaning="below",
    )
    frame = answer.to_frame()
    assert frame["side"].tolist() == ["below", "above", "undecided"]
    assert frame["probability_above"].tolist() == [0.0, 1.0, 0.4]
    assert answer.side.tolist() == ["above", "below", "undecided"]  # of the set
