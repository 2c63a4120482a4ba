import functools
import json

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import (
    AdditiveKernel,
    IndexKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.priors import LogNormalPrior

from botorch_lse import History, Pool
from botorch_lse.ax import LevelSetNode, level_set_generation_strategy
from botorch_lse.ax.storage import (
    decode_pool,
    decode_strategy,
    encode_pool,
    encode_strategy,
)
from botorch_lse.confidence import BatchEta, ConstantBeta, UnionBeta
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import LSELiteralBatchStrategy
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    AlternatingRules,
    ComposedStrategy,
    ContentVariance,
    ContourEntropy,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    ImplicitLSEStrategy,
    Maximiser,
    MutualInformation,
    OptimalDesign,
    ParetoByDifferences,
    RandomizedStraddle,
    RanjanImprovement,
    RowCosts,
    ShareOfMax,
    ShareOfMaxByPairs,
    Straddle,
    Strategy,
    SwitchingRule,
    TargetedVariance,
    TruncatedVariance,
    TruVaRStrategy,
    UFunction,
    Variance,
)

from . import fitting
from .worlds import grid_pool, kernel, lse


def through_json(strategy):
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    return decode_strategy(stored, strategy.pool)


def test_the_constructors_arguments_come_back():
    strategy = lse(max_observations=40, max_repeats=2, refit=3, n_initial=5, delta=0.01)
    again = through_json(strategy)
    assert type(again) is type(strategy)
    for name in ("threshold", "omega", "batch_size", "noise_std", "delta", "beta",
                 "epsilon", "max_observations", "max_repeats", "refit", "n_initial",
                 "memory_budget"):  # fmt: skip
        assert getattr(again, name) == getattr(strategy, name)
    assert again.pool.hash == strategy.pool.hash


def test_another_class_and_its_own_arguments_come_back():
    pool = grid_pool()
    implicit = ImplicitLSEStrategy(pool, omega=0.7, drop_maximisers=True)
    assert through_json(implicit).drop_maximisers is True
    literal = LSELiteralBatchStrategy(pool, 0.5, batch_size=2)
    assert type(through_json(literal)) is LSELiteralBatchStrategy


@pytest.mark.parametrize(
    "beta",
    [ConstantBeta(4.0), UnionBeta(36, 0.1), BatchEta(UnionBeta(36, 0.1), 3, 0.5)],
)
def test_schedules_come_back(beta):
    assert through_json(lse(beta=beta)).beta == beta


WALK = RowCosts(grid_pool(), fitting.walk)
COMPOSED = [
    (Above(0.5, 0.1), None),
    (ShareOfMaxByPairs(0.7), OptimalDesign(rounding="quota")),
    (Maximiser(), TruncatedVariance(RowCosts(grid_pool(), fitting.walk), eta=0.5)),
    (Above(0.5), fitting.Nearest()),
    (Above(0.5), UFunction()),
    (Above(0.5), ContourEntropy()),
    (Above(0.5), ExpectedFeasibility(alpha=1.0)),
    (ShareOfMaxByPairs(0.7), RanjanImprovement()),
    (Above(0.5), RandomizedStraddle()),
    (Above(0.5), TargetedVariance(0.3, RowCosts(grid_pool(), fitting.walk))),
    (Above(0.5), ExpectedMisclassification()),
    (Above(0.5), ExpectedMisclassification(batch="joint")),
    (Above(0.5), TargetedVariance(0.3, batch="joint")),
    (ShareOfMax(0.7), MutualInformation(batch="joint")),
    (
        Above(0.5),
        AlternatingRules((Straddle(), ExpectedMisclassification(batch="joint"))),
    ),
    (Above(0.5), AlternatingRules((TargetedVariance(costs=WALK), fitting.Nearest()))),
    (Above(0.5), SwitchingRule((ExpectedMisclassification(), Straddle()), wrong=0.02)),
    (ShareOfMax(0.7), MutualInformation()),
    (Above(0.5), AbsoluteVolumeChange()),
    (Above(0.5), ContentVariance()),
    (ParetoByDifferences((True, False), (0.1, 0.2)), Variance()),
]


@pytest.mark.some(10)
@pytest.mark.parametrize(("goal", "rule"), COMPOSED)
def test_composed_strategies_come_back_with_the_same_batches(goal, rule):
    model = GaussianProcess(kernel(), noise_std=0.3)
    strategy = Strategy(grid_pool(), goal, model=model, rule=rule, batch_size=3)
    again = through_json(strategy)
    assert type(again) is ComposedStrategy
    assert (again.goal, type(again.rule)) == (goal, type(rule))
    kinds = [
        [type(each) for each in getattr(r, "rules", ())] for r in (rule, again.rule)
    ]
    assert kinds[0] == kinds[1]
    for name in ("alpha", "batch"):
        assert getattr(again.rule, name, None) == getattr(rule, name, None)
    batches = [s.ask(s.init()).order.tolist() for s in (strategy, again)]
    assert batches[0] == batches[1]


def test_costs_of_another_pool_are_refused():
    rule = TruncatedVariance(RowCosts(Pool(torch.rand(36, 2))))
    with pytest.raises(ValueError, match="own `pool` of 36 rows, but"):
        encode_strategy(Strategy(grid_pool(), Above(0.5), rule=rule))


def test_a_stored_part_must_name_a_part():
    stored = encode_strategy(Strategy(grid_pool(), Above(0.5)))
    stored["arguments"]["goal"]["class"] = "botorch_lse.strategies:LSEStrategy"
    with pytest.raises(ValueError, match="`goal` to name a goal, a rule or a model"):
        decode_strategy(stored, grid_pool())


def test_functions_come_back_by_name():
    strategy = lse(model=fitting.plain_gp, refit=fitting.every_third)
    again = through_json(strategy)
    assert again.model is fitting.plain_gp
    assert again.refit is fitting.every_third


def wild_kernel():
    matern = MaternKernel(2.5, ard_num_dims=2, lengthscale_prior=LogNormalPrior(0, 1))
    rbf = RBFKernel(active_dims=(1,), lengthscale_constraint=GreaterThan(0.025))
    one = ScaleKernel(matern) + ScaleKernel(rbf * PeriodicKernel(active_dims=(0,)))
    two = AdditiveKernel(LinearKernel(), PolynomialKernel(power=2))
    three = ProductKernel(RQKernel(), PiecewisePolynomialKernel(q=1))
    whole = (one + ScaleKernel(two) * three).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in whole.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.1 * noise
    return whole


def as_built():
    r"""As GPyTorch constructs a kernel: in float32, softplus in front."""
    return ScaleKernel(RBFKernel())


@pytest.mark.parametrize(
    "make", [kernel, wild_kernel, lambda: wild_kernel().float(), as_built]
)
def test_kernels_come_back_to_the_last_bit(make):
    given = make()
    again = through_json(lse(model=given)).model
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(20, 2, generator=generator, dtype=torch.float64)
    one, other = (GPPrior.from_kernel(k).covar_module for k in (given, again))
    with torch.no_grad():
        assert torch.equal(one(X, X).to_dense(), other(X, X).to_dense())


def test_kernels_of_rows_with_a_number_of_a_level_or_an_output_are_stored():
    points = grid_pool(3)
    levels = points.at_noise_levels([0.01, 0.1], costs=[3.0, 1.0])
    wanted = {"threshold": 0.5, "model": kernel()}
    again = through_json(TruVaRStrategy(levels, **wanted))
    assert torch.equal(again.model.outputscale, wanted["model"].outputscale)
    assays, both = points.at_outputs(2, (1.0, 1.0)), Above(0) & Above(0, output=1)
    model = GaussianProcess(kernel(), noise_std=0.1)
    again = through_json(Strategy(assays, both, model=model))
    assert torch.equal(again.model.model.outputscale, model.model.outputscale)


def test_storing_a_kernel_leaves_it_as_it_is():
    given = as_built()
    through_json(lse(model=given))
    assert all(p.dtype == torch.float32 for p in given.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": lambda X, Y, V: None}, "`model` of the strategy.*lambda"),
        ({"model": functools.partial(fitting.plain_gp)}, "`model`.*partial"),
        ({"model": fitting.Fitter()}, "`model`.*Fitter"),
        ({"refit": lambda n: True}, "`refit` of the strategy"),
        ({"beta": lambda t: 4.0}, "`beta` of the strategy"),
        ({"model": GPPrior.from_kernel(kernel())}, "fixed GPPrior is not"),
        (
            {"model": fitting.plain_gp(*fitting.two_points(), None)},
            "fixed SingleTaskGP is not. Give its GPyTorch kernel",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        level_set_generation_strategy(lse(**options))


def test_functions_inside_functions_are_refused():
    def inner(X, Y, V):
        return fitting.plain_gp(X, Y, V)

    with pytest.raises(ValueError, match=r"inner.*top level of a module"):
        LevelSetNode(lse(model=inner))


def test_unknown_kernels_are_refused():
    class Mine(RBFKernel):
        pass

    for bad in (Mine(), ScaleKernel(Mine()), IndexKernel(num_tasks=2)):
        with pytest.raises(ValueError, match=r"made of AdditiveKernel.*but got"):
            LevelSetNode(lse(model=bad.double()))


def test_what_is_not_a_strategy_is_refused():
    with pytest.raises(ValueError, match="Expected `strategy` to be a Strategy"):
        LevelSetNode("lse")
    stored = encode_strategy(lse())
    with pytest.raises(ValueError, match="to name a Strategy"):
        decode_strategy({**stored, "class": "tests.ax.fitting:Fitter"}, grid_pool())


def test_a_function_that_went_away_is_named():
    stored = encode_strategy(lse(model=fitting.plain_gp))
    stored["arguments"]["model"]["name"] = "tests.ax.fitting:gone"
    with pytest.raises(ValueError, match=r"'gone' in module 'tests.ax.fitting'"):
        decode_strategy(stored, grid_pool())


# --- pools ----------------------------------------------------------------------------


def pool_again(pool):
    return decode_pool(json.loads(json.dumps(encode_pool(pool))))


def test_pools_come_back_to_the_last_bit():
    generator = torch.Generator().manual_seed(0)
    draw = functools.partial(torch.rand, generator=generator, dtype=torch.float64)
    X = draw(50, 3) / 3 + 1e-300
    pool = Pool(X, draw(50, 7), draw(50), draw(50) + 0.1, ["a", "b b", "ü"])
    again = pool_again(pool)
    assert again.hash == pool.hash
    assert again.names == pool.names
    for name in ("X", "features", "costs", "noise_var"):
        assert torch.equal(getattr(again, name), getattr(pool, name))


@pytest.mark.parametrize(
    "index",
    [
        None,
        pd.RangeIndex(5, 11, 2, name="id"),
        pd.Index(["a", "b", "c"], name="well"),
        pd.DatetimeIndex(["2024-01-01", "2024-02-01", "2025-01-01"]),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["x", None]),
    ],
)
def test_tables_come_back_with_their_types(index):
    table = pd.DataFrame(
        {
            "float": [0.1, 1 / 3, 1e300],
            "single": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "int": [1, 2**53 + 1, -3],
            "flag": [True, False, True],
            "text": ["ü", "", "null"],
            "old text": pd.Series(["a", "b", "c"], dtype=object),
            "mixed": pd.Series(["a", 1, 2.5], dtype=object),
            "kind": pd.Categorical(["x", "y", "x"], ["z", "y", "x"], ordered=True),
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
            "zoned": pd.to_datetime(["2024-01-01"] * 3).tz_localize("Asia/Tokyo"),
            "gap": pd.timedelta_range("1D", periods=3),
            "whole": pd.array([1, 2, 3], dtype="Int64"),
            7: ["a", "b", "c"],
        },
    )
    if index is not None:
        table.index = index
    pool = Pool(torch.arange(3.0).unsqueeze(-1), table=table)
    again = pool_again(pool).table
    pd.testing.assert_frame_equal(again, table, check_freq=False)


def test_a_table_that_made_the_pool_comes_back():
    table = pd.DataFrame({"depth": [1.0, 2.0, 4.0], "soil": ["clay", "sand", "clay"]})
    pool = Pool(table)
    again = pool_again(pool)
    assert again.names == pool.names
    pd.testing.assert_frame_equal(again.to_frame(), table)
    assert again.hash == pool.hash


def test_objects_in_a_table_are_refused():
    table = pd.DataFrame({"a": pd.Series([{1}, {2}], dtype=object)})
    pool = Pool(torch.arange(2.0).unsqueeze(-1), table=table)
    with pytest.raises(ValueError, match=r"column 'a' of the pool's `table`.*astype"):
        encode_pool(pool)


def test_a_damaged_pool_is_refused():
    stored = encode_pool(grid_pool())
    stored["names"] = ["north", "east"]
    with pytest.raises(ValueError, match="damaged"):
        decode_pool(stored)


def test_a_large_pool_is_stored_once_and_fast():
    generator = torch.Generator().manual_seed(0)
    pool = Pool(torch.rand(100_000, 2, generator=generator, dtype=torch.float64))
    text = json.dumps(encode_pool(pool))
    assert len(text) < 1.4 * 16 * 100_000


def test_strategies_are_stored_at_their_public_address():
    stored = encode_strategy(lse())
    assert stored["class"] == "botorch_lse.strategies:LSEStrategy"
    assert type(decode_strategy(stored, lse().pool)) is type(lse())


def test_old_values_of_a_table_are_stored_as_points_of_the_pool():
    table = pd.DataFrame({"T": [0.0, 1.0, 2.0], "salt": ["a", "b", "a"]})
    y = pd.DataFrame({"cost": [5.0, 6.0], "yield": [1.0, 2.0]})
    old = History(pd.DataFrame({"salt": ["b", "a"], "T": [0.5, 1.5]}), y)
    goal = Above(1.0, output="yield") & Above(4.0, output="cost")
    model = GaussianProcess(RBFKernel().double(), noise_std=0.1, history=old)
    strategy = Strategy(Pool(table), goal, model=model)
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    again = decode_strategy(stored, strategy.pool)
    X, found = strategy.pool.points({"T": [0.2, 1.4], "salt": ["a", "b"]}), []
    for one in (strategy, again):
        found.append(torch.cat(one.init().predict(X)))
    assert torch.equal(*found)
    assert again.model.history.outputs == ("cost", "yield")
