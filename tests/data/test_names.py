r"""What has names goes by its names, at every door; what has none, by its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.stats import norm
from torch import Tensor

from botorch_lse import Batch, History, Observations, Pool
from botorch_lse.designs import optimal_design
from botorch_lse.estimators.least_squares import weighted_least_squares
from botorch_lse.plotting import progress_frame
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    StraddleStrategy,
    Strategy,
    audit,
)

TABLE = pd.DataFrame(
    {
        "T": np.tile(np.linspace(0.0, 1.0, 4), 4),
        "solv": ["water", "oil", "oil", "water"] * 4,
        "p": np.repeat(np.linspace(0.0, 9.0, 4), 4),
        "dry": [True, False] * 8,
    }
).rename_axis("recipe")
TURNED = TABLE[["dry", "p", "solv", "T"]].assign(operator="Ada")
NAMED = TABLE.set_axis([f"r{i}" for i in range(16)])
CODES = ["T", "solv=oil", "solv=water", "p", "dry"]
Y = TABLE["T"] + (TABLE["solv"] == "oil") + 0.1 * TABLE["p"]


def kernel() -> ScaleKernel:
    own = ScaleKernel(RBFKernel(ard_num_dims=5)).double()
    own.base_kernel.lengthscale = torch.tensor([0.5, 1.0, 1.0, 4.0, 2.0])
    return own


def strategy(pool: Pool, **options: Any) -> Strategy:
    model = GaussianProcess(kernel(), noise_std=0.1, **options)
    return Strategy(pool, Above(0.8), model=model, batch_size=4)


def same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


POINTS = {
    "a table": lambda pool: pool.points(TURNED),
    "a dictionary of columns": lambda pool: pool.points(TURNED.to_dict("list")),
    "dictionaries": lambda pool: pool.points(TURNED.to_dict("records")),
    "series": lambda pool: pool.points([line for _, line in TURNED.iterrows()]),
    "points one by one": lambda pool: torch.cat(
        [pool.points(line) for line in TURNED.to_dict("records")]
    ),
    "text": lambda pool: pool.points(TURNED.astype(str)),
    "its own inputs": lambda pool: pool.points(
        pd.DataFrame(pool.X.numpy(), columns=CODES)[CODES[::-1]]
    ),
    "a named index": lambda pool: pool.points(TURNED.set_index(["p", "solv"])),
    "bare numbers": lambda pool: pool.points(pool.X),
}


@pytest.mark.parametrize("door", POINTS.values(), ids=POINTS)
def test_points_are_read_as_the_table_of_the_pool_is(
    door: Callable[[Pool], Tensor],
) -> None:
    pool = Pool(TABLE)
    assert pool.names == ("T", "solv=oil", "solv=water", "p", "dry")
    same(door(pool), pool.X)


def test_a_table_is_read_in_its_own_units_where_the_model_has_others() -> None:
    raw = pd.DataFrame({"dose": [1.0, 10.0, 100.0], "heat": ["low", "mid", "high"]})
    codes = raw.assign(dose=[0.0, 1.0, 2.0], heat=[0.0, 1.0, 2.0])
    pool = Pool(codes, table=raw)
    same(pool.points(raw[["heat", "dose"]][::-1]), pool.X.flip(0))
    assert pool.points({"dose": 1000.0, "heat": "mid"}).tolist() == [[3.0, 1.0]]
    renamed = Pool(codes.set_axis(["lg", "step"], axis=1), table=raw)
    same(renamed.points(raw[["heat", "dose"]]), pool.X)
    # What a hand-made scale did to a column is not known from its values.
    scaled = Pool(codes.assign(dose=[0.1, 0.7, 0.2]), table=raw)
    with pytest.raises(ValueError, match=r"'dose'.* Give what the model takes, in the"):
        scaled.points(raw)
    same(scaled.points(scaled.X), scaled.X)


def test_levels_that_are_numbers_and_words_in_two_unicode_forms_are_found() -> None:
    table = pd.DataFrame(
        {"lot": pd.Categorical([3, 7, 3]), "s": ["Sa\u0308ure", "b", "b"]}
    )
    pool = Pool(table)
    lines = pd.DataFrame({"s": ["S\u00e4ure", "b"], "lot": [3.0, 7.0]})
    same(pool.points(lines), pool.X[:2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.rename(columns={"p": "pressure"}), "'p' is missing among"),
        (lambda t: t.drop(columns="solv"), "'solv' is missing"),
        (
            lambda t: t.assign(solv="glue"),
            r"one of 'oil', 'water' .*'solv'.* has 'glue'",
        ),
        (lambda t: t.assign(T="warm"), "hold numbers in the column 'T'.* has 'warm'"),
        (lambda t: t.assign(p=np.nan), "hold numbers in the column 'p'.* has nan"),
        (lambda t: pd.concat([t, t[["p"]]], axis=1), "column 'p' once"),
    ],
)
def test_points_under_unknown_names_are_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], said: str
) -> None:
    pool = Pool(TABLE)
    lines = change(TURNED)
    state = strategy(pool).init()
    for door in (
        lambda: pool.points(lines),
        lambda: state.predict(lines),
        lambda: strategy(pool, history=History(lines, Y)),
        lambda: strategy(pool).with_history(History(lines, Y)),
        lambda: pool.nearest(lines.iloc[0]),
    ):
        with pytest.raises(ValueError, match=said):
            door()
    pool.points(pool.X)  # the remedy: bare numbers in the order of `pool.names`


def test_a_state_predicts_a_table_by_its_columns() -> None:
    pool = Pool(TABLE)
    one = strategy(pool)
    state = one.tell(one.init(), Observations([0, 5, 6, 15], Y.iloc[[0, 5, 6, 15]]))
    for own, other in zip(state.predict(TURNED), state.predict(pool.X), strict=True):
        same(own, other)
    with pytest.raises(ValueError, match="'pressure'"):
        state.predict(TABLE.rename(columns={"p": "pressure"}))


def test_old_values_go_by_columns_rows_and_outputs() -> None:
    pool, turned = Pool(TABLE), TURNED.iloc[[9, 2, 14, 7]]
    bare = History(pool.X[[9, 2, 14, 7]], Y.iloc[[9, 2, 14, 7]].to_numpy(), 0.01)
    wanted = strategy(pool).with_history(bare).init().predict(pool.X)
    # The values have labels: those of more rows, in another order.
    old = History(turned, Y[::-1], 0.01 + 0 * Y)
    twice = History(turned[:2], Y, 0.01 + 0 * Y).append(
        History(turned[2:][["T", "p", "dry", "solv"]], Y, 0.01 + 0 * Y)
    )
    straddle = StraddleStrategy(pool, 0.8, model=kernel(), noise_std=0.1)
    for found in (
        strategy(pool).with_history(old),
        strategy(pool, history=old),
        strategy(pool).with_history(twice),
        strategy(pool, history=History(turned[:2], Y, 0.01 + 0 * Y)).with_history(
            History(pool.X[[14, 7]], Y.iloc[[14, 7]].to_numpy(), 0.01)
        ),
        straddle.with_history(old),
    ):
        for own, other in zip(found.init().predict(pool.X), wanted, strict=True):
            same(own, other)
    with pytest.raises(ValueError, match=r"in all parts or .*`history\.on\(pool\)`"):
        old.append(bare)
    assert len(old.on(pool).append(bare)) == 8


def two_outputs(pool: Pool, history: History | None = None) -> Strategy:
    goal = Above(0.8, output="yield") & Below(0.5, output="cost")
    model = GaussianProcess(kernel(), noise_std=0.1, history=history)
    return Strategy(pool, goal, model=model, batch_size=2)


def test_outputs_go_by_their_names() -> None:
    pool, rows = Pool(TABLE), [3, 9]
    values = pd.DataFrame({"cost": [0.1, 0.2], "n": [5, 5], "yield": [1.0, 2.0]})
    bare = values[["yield", "cost"]].to_numpy()
    one = two_outputs(pool)
    wanted = one.tell(one.init(), Observations(rows, bare))
    sheet = Batch(pool, rows, 0).to_frame().assign(**values)
    for told in (
        Observations(rows, values),
        Batch(pool, rows, 0).observe(values),
        Observations.from_frame(sheet, ["cost", "yield"]),
        Observations.from_frame(sheet[:1], ["cost", "yield"]).append(
            Observations.from_frame(sheet[1:], ["yield", "cost"])
        ),
    ):
        for state in (one.tell(one.init(), told), one.replay(told.at_round(0))):
            assert torch.equal(state.observations.y, wanted.observations.y)
        same(one.init().predict(pool.X, data=told)[0], wanted.predict(pool.X)[0])
    past = History(TURNED.iloc[rows], values.set_axis(TURNED.index[rows]))
    other = History(pool.X[rows], bare)
    found, same_one = two_outputs(pool, past), two_outputs(pool, other)
    same(found.init().predict(pool.X)[0], same_one.init().predict(pool.X)[0])
    with_past = one.with_history(past).init().predict(pool.X)
    same(with_past[0], same_one.init().predict(pool.X)[0])
    with pytest.raises(
        ValueError, match=r"outputs 'yield', 'cost', each once.*'price'"
    ):
        one.tell(
            one.init(), Observations(rows, values.rename(columns={"cost": "price"}))
        )
    noise = pd.DataFrame({"yield": [0.1, 0.2], "cost": [0.3, 0.4]})
    told = Observations(rows, values[["cost", "yield"]], noise).of_outputs(["yield"])
    assert told.yvar is not None
    assert told.yvar.tolist() == [0.1, 0.2]


def test_what_belongs_to_rows_goes_by_the_labels_of_the_index() -> None:
    costs = pd.Series(np.arange(1.0, 17.0), index=NAMED.index)
    turned = costs[::-1]
    wanted = torch.arange(1.0, 17.0, dtype=torch.float64)
    for name in ("costs", "noise_var", "weights"):
        for given in (turned, turned.to_dict(), pd.concat([turned, costs[:0]])):
            assert torch.equal(getattr(Pool(NAMED, **{name: given}), name), wanted)
        with pytest.raises(ValueError, match=rf"`{name}` to have a value .*for 'r0'"):
            Pool(NAMED, **{name: costs.rename({"r0": "r16"})})
    features = pd.DataFrame({"f": costs})[::-1]
    assert Pool(NAMED, features=features).features.view(-1).equal(wanted)  # type: ignore
    pool = Pool(NAMED, table=NAMED.assign(name=costs)[::-1])
    assert pool.table is not None
    assert pool.table["name"].tolist() == wanted.tolist()
    # Where nobody has given labels, the place counts.
    assert torch.equal(Pool(NAMED, costs=costs.reset_index(drop=True)).costs, wanted)  # type: ignore
    few = pd.Series([1.0, 2.0], index=[5, 9])
    assert Pool([[0.0], [1.0]], costs=few).costs.tolist() == [1.0, 2.0]  # type: ignore


def test_labels_that_may_be_places_are_asked_about() -> None:
    table = TABLE.sort_values("T")  # its labels are 0, 4, 8, ...
    with pytest.raises(ValueError, match="same labels in another order") as caught:
        Pool(table, costs=TABLE["p"] + 1)
    assert "`costs.loc[labels]`" in str(caught.value)
    assert "`costs.to_numpy()`" in str(caught.value)
    costs, labels = TABLE["p"] + 1, table.index
    by_label = Pool(table, costs=costs.loc[labels]).costs
    by_place = Pool(table, costs=costs.to_numpy()).costs
    assert by_label is not None
    assert by_place is not None
    assert by_label.tolist() == (table["p"] + 1).tolist()
    assert by_place.tolist() == (TABLE["p"] + 1).tolist()
    own = (TABLE["p"] + 1).sort_values(ascending=False, kind="stable")
    assert Pool(table, costs=own).costs.tolist() == by_label.tolist()  # type: ignore


def test_rows_go_by_labels_where_labels_are_given() -> None:
    pool = Pool(NAMED)
    one = strategy(pool)
    excluded = one.exclude(one.init(), ["r3", "r15"]).excluded_rows
    assert excluded.tolist() == [3, 15]
    # A row of the open round that is being measured, by its label.
    state = one.init()
    row = int(one.missing(state)[0])
    label = one.pool.labels[row]
    assert row not in one.missing(state, [label]).tolist()
    assert row not in one.ask(state, pending=[label]).order.tolist()
    assert pool.rows(NAMED.index[[4, 2]]).tolist() == [4, 2]
    assert pool.rows("r7").tolist() == [7]
    assert pool.rows([4, 2]).tolist() == [4, 2]
    # Labels of an index that is numbered in another order are labels all the same.
    turned = Pool(TABLE[::-1])
    assert turned.rows(turned.labels[[0, 3]]).tolist() == [0, 3]
    assert turned.rows([0, 3]).tolist() == [0, 3]
    for given, said in ((["r16"], "'r16' is that of no rows"), (["r1", 2], "whole")):
        with pytest.raises(ValueError, match=said):
            pool.rows(given)
    double = Pool(NAMED.rename({"r1": "r0"}))
    with pytest.raises(ValueError, match="'r0' is that of 2 rows"):
        double.rows("r0")
    assert double.rows([0]).tolist() == [0]
    sample = Pool.from_distribution([norm()], 8)
    more = sample.extended(2, at=pd.Index([3]))
    assert torch.equal(more.X, sample.extended(2, at=[3]).X)


def test_results_of_a_batch_go_by_lines_or_rows() -> None:
    pool = Pool(NAMED)
    batch = Batch(pool, torch.tensor([9, 2, 4]), 0)
    sheet = batch.to_frame()
    wanted = NAMED["T"].iloc[[9, 2, 4]].tolist()
    for given in (
        sheet["T"],
        sheet.sort_values("T")["T"],  # by the lines of the sheet
        NAMED["T"].iloc[[4, 9, 2]],  # by the rows of the pool
        NAMED["T"],  # of all rows
        NAMED["T"].to_dict(),
        wanted,
    ):
        assert batch.observe(given).y.tolist() == wanted
    twice = Batch(pool, torch.tensor([9, 2, 9]), 0).observe(NAMED["T"])
    assert twice.y.tolist() == NAMED["T"].iloc[[9, 2, 9]].tolist()
    with pytest.raises(ValueError, match=r"`y` to have a value .*for 'r2'"):
        batch.observe(NAMED["T"].drop("r2"))
    small = Batch(Pool(TABLE[:3]), torch.tensor([2, 0, 1]), 0)
    with pytest.raises(ValueError, match=r"may be those of lines or of rows.*to_numpy"):
        small.observe(pd.Series([1.0, 2.0, 3.0], index=[1, 0, 2]))
    y = pd.Series([3.0, 1.0], index=["b", "a"])
    told = Observations([0, 1], y, pd.Series({"a": 0.1, "b": 0.3}))
    assert told.yvar is not None
    assert told.yvar.tolist() == [0.3, 0.1]
    rows = pd.Series([5, 6], index=["a", "b"])
    assert Observations(rows, y).y.tolist() == [1.0, 3.0]


def test_levels_labels_and_truths_go_by_the_labels_of_rows() -> None:
    pool, levels = Pool(NAMED), pd.Series(np.arange(16.0), index=NAMED.index)
    model = GaussianProcess(kernel(), noise_std=0.1)
    Strategy(pool, Above(levels), model=model)
    with pytest.raises(ValueError, match=r"Write `threshold\.loc\[pool\.labels\]`"):
        Strategy(pool, Above(levels[::-1]), model=model)
    found = Strategy(pool, Above(levels[::-1].loc[pool.labels]), model=model)
    assert found.goal == Above(tuple(levels))
    claims = pd.Series(Y.to_numpy() > 0.8, index=NAMED.index)
    straight = audit(pool, claims).sides
    assert torch.equal(audit(pool, claims[::-1]).sides, straight)
    one = strategy(pool)
    state = one.tell(one.init(), Observations(pool.rows(["r1", "r6"]), [0.0, 2.0]))
    scores = [
        progress_frame([state], truth)["f1"].tolist()
        for truth in (claims.to_numpy(), claims, claims[::-1])
    ]
    assert scores[0] == scores[1] == scores[2]
    assert 0 < scores[0][0] < 1


def test_nearest_row_of_values_under_names() -> None:
    pool = Pool(TABLE[["T", "p"]])
    point = pd.Series({"p": 0.0, "T": 1.0})
    assert pool.nearest(point) == pool.nearest([1.0, 0.0]) == 3
    assert pool.nearest({"p": 0.0, "T": 1.0, "operator": "Ada"}) == 3
    assert Pool(TABLE).nearest(TURNED.iloc[6]) == 6
    with pytest.raises(BotorchTensorDimensionError, match="`x` to be one point"):
        pool.nearest(TABLE)


def test_designs_and_estimates_go_by_names() -> None:
    X = pd.DataFrame({"a": [1.0, 0.0, 1.0], "b": [0.0, 1.0, 1.0]}, index=list("uvw"))
    noise = pd.Series([3.0, 1.0, 2.0], index=list("wuv"))
    targets = pd.DataFrame({"b": [2.0], "a": [1.0]})
    named = optimal_design(X, targets=targets, noise_var=noise)
    bare = optimal_design(X.to_numpy(), targets=[[1.0, 2.0]], noise_var=[1.0, 2.0, 3.0])
    assert torch.equal(named.weights, bare.weights)
    y = pd.Series([3.0, 1.0, 2.0], index=list("wuv"))
    same(
        weighted_least_squares(X, y).theta,
        weighted_least_squares(X.to_numpy(), [1.0, 2.0, 3.0]).theta,
    )


def test_names_of_inputs_and_outputs_of_pools() -> None:
    box = pd.DataFrame({"p": [0.0, 9.0], "T": [0.0, 1.0]})
    assert Pool.from_box(box, 4).names == ("p", "T")
    same(
        Pool.from_box(box, 4, names=["T", "p"]).X,
        Pool.from_box([[0.0, 0.0], [1.0, 9.0]], 4).X,
    )
    meant = {"a": norm(0, 1), "b": norm(100, 1), "c": norm(7, 1)}
    R = pd.DataFrame(np.eye(3), index=[*"abc"], columns=[*"abc"])
    R.loc["a", "b"] = R.loc["b", "a"] = 0.5
    R.loc["a", "c"] = R.loc["c", "a"] = -0.3
    wide = {"c": norm(7, 2), "a": norm(0, 2), "b": norm(100, 2)}
    options = {"n": 8, "correlation": R.to_numpy()}
    bare = Pool.from_distribution(meant, sampling=[wide[k] for k in "abc"], **options)
    options["correlation"] = R.loc[[*"cab"], [*"bca"]]
    found = Pool.from_distribution(meant, sampling=wide, **options)
    same(found.X, bare.X)
    with pytest.raises(ValueError, match="`sampling` to have the inputs 'a', 'b'"):
        Pool.from_distribution(meant, 8, sampling={"x": norm(), "b": norm()})
    assays = Pool([[0.0], [1.0]]).at_outputs(("a", "b"), costs={"b": 2, "a": 1})
    assert assays.costs.tolist() == [1.0, 1.0, 2.0, 2.0]  # type: ignore[union-attr]
    levels = pd.Series({"fast": 1.0, "slow": 0.1})
    rates = Pool([[0.0]]).at_noise_levels(levels, pd.Series({"slow": 9.0, "fast": 2.0}))
    assert rates.costs.tolist() == [2.0, 9.0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        (["s1", "s2"], {"label": ["s1", "s2"]}),
        (pd.Index([7, 9], name="site"), {"site": [7, 9]}),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), {"label": ["a", "b"]}),
        (None, {}),
    ],
)
def test_labels_of_rows_that_are_repeated_stay_in_the_table(
    index: Any, columns: dict[str, list[Any]]
) -> None:
    pool = Pool(pd.DataFrame({"x": [0.0, 1.0]}, index=index))
    sources = pool.at_sources(("coarse", "fine"), costs=(1, 50))
    outputs, levels = pool.at_outputs(2, (1, 2)), pool.at_noise_levels([1, 2], [2, 1])
    for many in (sources, outputs, levels):
        for name, labels in columns.items():
            assert many.to_frame()[name].tolist() == 2 * labels
        assert many.d == 2
    assert list(sources.once(2).to_frame())[: len(columns)] == list(columns)
    taken = pool.to_frame().assign(label=0)
    if index is not None and taken.index.names == [None]:
        assert "label_lse" in Pool(taken).at_outputs(2, (1, 2)).to_frame()
