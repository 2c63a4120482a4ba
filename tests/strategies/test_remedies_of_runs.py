r"""Every remedy that a message about asking, telling and arguments names, executed.

They are those of ``loop.py``, ``algorithm.py``, ``composed.py``, ``arguments.py``,
``layouts.py`` and ``criteria/audit.py``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import History, Observations, Pool, strategies
from botorch_lse.papers import HRAGEPACStrategy, RAGEPACStrategy
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    Binary,
    GaussianProcess,
    LSEStrategy,
    MELKLinearStrategy,
    ParetoByDifferences,
    Straddle,
    Strategy,
    TruVaRStrategy,
)
from tests.remedies import Remedies

FOLDER = Path(strategies.__file__).parent
NAMES = ("loop", "algorithm", "composed", "criteria/audit")
FILES = [FOLDER / f"{name}.py" for name in NAMES]
FILES.append(FOLDER.parent / "data" / "arguments.py")
FILES.append(FOLDER.parent / "goals" / "layouts.py")
REMEDIES = Remedies(FILES)
case = REMEDIES.case
Going = Generator[Any, str, None]
LINE = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
POOL = Pool(LINE)
ARMS = Pool(LINE, features=torch.eye(6).double())


def lse(pool: Pool = POOL, **options: Any) -> LSEStrategy:
    known = {"model": RBFKernel().double(), "noise_std": 0.1, "beta": 4.0}
    return LSEStrategy(pool, 0.5, **{**known, "batch_size": 2, **options})


def measured(strategy: Strategy, n: int = 1) -> Any:
    state = strategy.init()
    for _ in range(n):
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(batch.order.double() / 5))
    return state


def test_each_place_that_raises_has_a_case() -> None:
    REMEDIES.check_all_there({})


@pytest.mark.parametrize("key", REMEDIES.cases, ids=", ".join)
def test_what_the_message_says_can_be_done(key: Any, tmp_path: Path) -> None:
    REMEDIES.play(key, tmp_path)


# --- arguments ----------------------------------------------------------------------


@case("arguments:check_noise_once#2", "neither `noise_std` nor `pool.noise_var`")
def no_noise(_: Path) -> Going:
    yield lambda: MELKLinearStrategy(ARMS, 0.5)
    assert MELKLinearStrategy(ARMS, 0.5, noise_std=0.1)
    noisy = replace(ARMS, noise_var=torch.full((6,), 0.01))
    assert MELKLinearStrategy(noisy, 0.5)


@case("arguments:check_noise_once#2", "both `noise_std` and `pool.noise_var`")
def the_noise_twice(_: Path) -> Going:
    noisy = replace(ARMS, noise_var=torch.full((6,), 0.01))
    yield lambda: MELKLinearStrategy(noisy, 0.5, noise_std=0.1)
    assert MELKLinearStrategy(noisy, 0.5)


@case("arguments:check_noise_once#3", "give a small scale, such as 1e-3")
def exact_rows(_: Path) -> Going:
    noise = torch.tensor([0.0, *[0.01] * 5])
    yield lambda: MELKLinearStrategy(replace(ARMS, noise_var=noise), 0.5)
    assert MELKLinearStrategy(replace(ARMS, noise_var=noise.clamp_min(1e-6)), 0.5)
    assert LSEStrategy(Pool(LINE, noise_var=noise), 0.5)


@case("arguments:check_noise_once#1", "or the pool before `at_noise_levels`")
def noise_levels_of_linear_features(_: Path) -> Going:
    levels = Pool(ARMS.X).at_noise_levels((0.01, 0.1), (2.0, 1.0))
    yield lambda: MELKLinearStrategy(levels, 0.5)
    assert TruVaRStrategy(levels, 0.5)
    assert MELKLinearStrategy(ARMS, 0.5, noise_std=0.1)


@case("arguments:check_budget#1", "Give a larger budget, a smaller `burn_in`")
def a_budget_below_the_burn_in(_: Path) -> Going:
    bounds = {"variance_bounds": (0.05, 0.1)}
    yield lambda: HRAGEPACStrategy(ARMS, 0.5, max_observations=3, **bounds)
    assert HRAGEPACStrategy(ARMS, 0.5, max_observations=10**7, **bounds)


# --- asking -------------------------------------------------------------------------


@case("loop:Strategy._being_measured#1", "Read `state.classification`")
def a_run_that_has_ended(_: Path) -> Going:
    strategy = lse(max_observations=2)
    state = measured(strategy)
    yield lambda: strategy.ask(state)
    assert len(state.classification) == 6


@case("loop:Strategy._beside#1", "Tell them first")
def rows_that_are_out(_: Path) -> Going:
    strategy = lse(max_observations=2)
    state = strategy.init()
    batch = strategy.ask(state)
    yield lambda: strategy.ask(state, batch.order)
    state = strategy.tell(state, batch.observe([0.1, 0.2]))
    assert state.stop_reason == "budget"


@case("loop:Strategy._check_size#1", "Leave `size` out, or give the strategy no")
def a_size_of_two_kinds(_: Path) -> Going:
    strategy = lse()
    yield lambda: strategy.ask(strategy.init(), size=3)
    assert len(strategy.ask(strategy.init())) == 2
    free = lse(batch_size=None)
    assert len(free.ask(free.init(), size=3)) == 3


@case("loop:check_listable#1", "State `y` in units in which the gaps that matter")
def a_round_of_millions(_: Path) -> Going:
    strategy = RAGEPACStrategy(ARMS, 0.5, noise_std=3e4)
    yield lambda: strategy.ask(strategy.init())
    assert int(strategy.planned_counts(strategy.init()).sum()) > 50_000_000
    in_thousands = RAGEPACStrategy(ARMS, 5e-4, noise_std=0.3)
    assert len(in_thousands.ask(in_thousands.init())) > 0
    anytime = MELKLinearStrategy(ARMS, 0.5, noise_std=3e4)
    assert len(anytime.ask(anytime.init())) > 0


# --- telling ------------------------------------------------------------------------


@case("loop:Strategy.tell#1", "Write `batch.observe(y)`")
def values_without_rows(_: Path) -> Going:
    strategy = lse()
    state = strategy.init()
    batch, y = strategy.ask(state), [0.1, 0.2]
    wrong: Any = y
    yield lambda: strategy.tell(state, wrong)
    assert strategy.tell(state, batch.observe(y)).round == 1


@case("loop:Strategy._abandon#1", "rows of the open round that are missing, [")
def a_row_that_nobody_asked_for(_: Path) -> Going:
    strategy = lse()
    state = strategy.init()
    asked = strategy.ask(state).order.tolist()
    other = next(row for row in range(6) if row not in asked)
    said = yield lambda: strategy.tell(state, None, abandoned=[other])
    rows = eval(said.split("missing, ")[1].split("]")[0] + "]")
    assert strategy.tell(state, None, abandoned=rows).round == 1


@case("loop:Strategy._exclude#1", "Leave them out of the pool")
def a_row_that_the_algorithm_needs(_: Path) -> Going:
    strategy = RAGEPACStrategy(ARMS, 0.5, noise_std=0.3)
    yield lambda: strategy.exclude(strategy.init(), [0])
    rest = Pool(LINE[1:], features=torch.eye(6)[1:].double())
    assert RAGEPACStrategy(rest, 0.5, noise_std=0.3).init().round == 0


@case("loop:check_new#1", "Tell only what is new, or `replay` the whole; leave `round`")
def values_told_twice(_: Path) -> Going:
    strategy = lse()
    state = measured(strategy, 2)
    sheet = state.observations
    yield lambda: strategy.tell(state, sheet)
    new = strategy.ask(state).observe([0.3, 0.4])
    assert strategy.tell(state, new).round == 3
    assert strategy.replay(sheet).round == 2
    again = Observations(sheet.indices, sheet.y)
    assert len(strategy.tell(state, again).observations) == 8


@case("loop:check_state#1", "Take it from `strategy.init()` or `strategy.tell`")
def no_state(_: Path) -> Going:
    strategy = lse()
    nothing: Any = None
    yield lambda: strategy.ask(nothing)
    assert len(strategy.ask(strategy.init())) == 2


@case("loop:check_state#2", "`strategy.replay(state.observations)`")
def a_state_of_another_question(_: Path) -> Going:
    strategy, other = lse(), lse(epsilon=0.3)
    state = measured(other)
    yield lambda: strategy.ask(state)
    assert len(other.ask(state)) == 2
    again = strategy.replay(state.observations)
    assert len(strategy.ask(again)) == 2


# --- replaying ----------------------------------------------------------------------


@case("loop:Strategy.replay#1", "Take `state.observations`, or write `Observations(")
def a_state_to_replay(_: Path) -> Going:
    strategy = lse()
    state: Any = measured(strategy)
    yield lambda: strategy.replay(state)
    assert strategy.replay(state.observations).round == 1
    rows, y = [0, 5], [0.1, 0.9]
    assert len(strategy.replay(Observations(rows, y)).observations) == 2


@case("loop:_by_round#1", "Write `{0: [3, 7]}`")
def rows_without_a_round(_: Path) -> Going:
    strategy, nothing = lse(), Observations.empty()
    rows = strategy.ask(strategy.init()).order.tolist()
    bare: Any = rows
    yield lambda: strategy.replay(nothing, abandoned=bare)
    assert strategy.replay(nothing, abandoned={0: rows}).round == 1
    state = strategy.exclude(strategy.init(), [3])
    for excluded in (state.excluded, [(0, [3])], {0: [3]}):
        again = strategy.replay(nothing, excluded=excluded)
        assert again.excluded_rows.tolist() == [3]


@case("loop:Strategy._check_rounds#1", "Write `Pool(X)`")
def a_matrix_as_pool(_: Path) -> Going:
    X: Any = LINE
    yield lambda: LSEStrategy(X, 0.5)
    assert LSEStrategy(Pool(X), 0.5)


@case("loop:Strategy._check_rounds#2", "Write `Strategy(pool, Above(0.5))`")
def sources_for_a_strategy_that_decides_each_row(_: Path) -> Going:
    meshes = POOL.at_sources(("coarse", "fine"), costs=(1.0, 5.0))
    yield lambda: LSEStrategy(meshes, 0.5)
    state = Strategy(meshes, Above(0.5)).init()
    assert len(state.classification.above) == len(POOL)


@case("loop:Strategy._check_rounds#3", "`batch_size` of at most 6, the pool's 6 rows")
def a_batch_that_is_too_large(_: Path) -> Going:
    yield lambda: lse(batch_size=7, max_repeats=1)
    assert lse(batch_size=6, max_repeats=1)


@case("audit:audits#1", "or `audit=True`, which")
def one_number_for_an_audit(_: Path) -> Going:
    number: Any = 0.05
    yield lambda: lse(audit=number)
    assert lse(audit=(0.05, 0.05))
    assert lse(audit=True)


@case("audit:audits#3", "Give `noise_std`, or leave out `audit`")
def an_audit_of_a_band_by_single_values(_: Path) -> Going:
    band, given = Between(0.2, 0.5), {"audit": (0.2, 0.1), "max_repeats": 1}
    yield lambda: Strategy(POOL, band, **given)
    assert Strategy(POOL, band, model=GaussianProcess(noise_std=0.1), **given)
    assert Strategy(POOL, band, max_repeats=1)


@case("audit:audits#2", "it needs one level or a region")
def an_audit_of_other_rows(_: Path) -> Going:
    region = Above(0.5) & Below(0.9, output=1)
    pool = POOL.at_outputs(2, costs=(1.0, 1.0))
    model = GaussianProcess(noise_std=0.1)
    yield lambda: Strategy(pool, region, model=model, audit=(0.2, 0.1))
    assert Strategy(POOL, region, model=model, audit=(0.2, 0.1))
    assert Strategy(pool, region, model=model)


@case("audit:audits#4", "Give a larger `epsilon`, allow for more repeats")
def an_audit_of_probabilities_by_too_few_trials(_: Path) -> Going:
    model = GaussianProcess(outcome=Binary())
    given: Any = {"model": model, "max_repeats": 2}
    yield lambda: Strategy(POOL, Above(0.75, 0.05), audit=(0.2, 0.1), **given)
    assert Strategy(POOL, Above(0.75, 0.3), audit=(0.2, 0.1), **given)
    assert Strategy(POOL, Above(0.75, 0.05), **given)
    given["max_repeats"] = 3
    assert Strategy(POOL, Above(0.75, 0.05), audit=(0.2, 0.1), **given)


@case("loop:Strategy.with_history#1", "Leave `history` out")
def a_history_of_features(_: Path) -> Going:
    strategy = MELKLinearStrategy(ARMS, 0.5, noise_std=0.1)
    yield lambda: strategy.with_history(History([[0.3]], [0.2]))
    assert measured(strategy).round == 1


@case(
    "composed:ComposedStrategy.__post_init__#1", "Expected `goal` such as `Above(0.5)`"
)
def a_level_as_goal(_: Path) -> Going:
    number: Any = 0.5
    yield lambda: Strategy(POOL, number)
    assert Strategy(POOL, Above(0.5))


@case("composed:ComposedStrategy.__post_init__#1", "`GaussianProcess(kernel, noise_")
def a_kernel_as_model(_: Path) -> Going:
    kernel: Any = RBFKernel()
    yield lambda: Strategy(POOL, Above(0.5), model=kernel)
    assert Strategy(POOL, Above(0.5), model=GaussianProcess(kernel, noise_std=0.1))


@case(
    "composed:ComposedStrategy.__post_init__#1", "Expected `rule` such as `Straddle()`"
)
def a_name_as_rule(_: Path) -> Going:
    name: Any = "straddle"
    yield lambda: Strategy(POOL, Above(0.5), rule=name)
    assert Strategy(POOL, Above(0.5), rule=Straddle())


@case("composed:ComposedStrategy.parts#1", "`outcome` to be `Binary()` where classes")
def counts_of_classes(_: Path) -> Going:
    phases, pool = strategies.Classes(("solid", "gas")), Pool(torch.rand(6, 2))

    def asked(outcome: Any) -> Any:
        model = strategies.GaussianProcess(outcome=outcome)
        return Strategy(pool, phases, model=model).init()

    yield lambda: asked(strategies.Counts())
    assert asked(strategies.Binary())
    assert asked(None)


@case("composed:ComposedStrategy._complete#1", "the `goal` is about one output")
def two_values_for_one_output(_: Path) -> Going:
    strategy = Strategy(POOL, Above(0.5), model=GaussianProcess(noise_std=0.1))
    state = strategy.init()
    batch = strategy.ask(state)
    both = [[0.1, 0.2]]
    yield lambda: strategy.tell(state, batch.observe(both))
    assert strategy.tell(state, batch.observe([0.1])).round == 1
    region = Above(0.5) & Below(0.9, output=1)
    two = Strategy(POOL, region, model=GaussianProcess(noise_std=0.1))
    assert two.tell(two.init(), two.ask(two.init()).observe(both)).round == 1


# --- what only a Gaussian process knows ---------------------------------------------


def linear() -> Any:
    return measured(MELKLinearStrategy(ARMS, 0.5, noise_std=0.1))


@case("loop:State.conservative#1", "Expected a strategy on a Gaussian process")
def a_set_without_joint_draws(_: Path) -> Going:
    yield linear().conservative
    assert measured(lse()).conservative().shape == (6,)


@case("loop:State.calibration#2", "Expected a strategy on a Gaussian process")
def a_calibration_without_predictions(_: Path) -> Going:
    yield linear().calibration
    assert str(measured(lse(), 2).calibration())


@case("loop:State.predict#1", "Expected a strategy on a Gaussian process")
def a_prediction_by_features(_: Path) -> Going:
    yield lambda: linear().predict([[0.3]])
    mean, _sigma = measured(lse()).predict([[0.3]])
    assert mean.shape == (1,)


@case("loop:State.calibration#1", "`output` to be below 1, the number of outputs")
def a_calibration_of_no_output(_: Path) -> Going:
    state = measured(lse(), 2)
    yield lambda: state.calibration(1)
    assert str(state.calibration(0))


@case("arguments:check_labels#1", "Write `threshold.loc[pool.labels]`")
def levels_in_another_order(_: Path) -> Going:
    table = pd.DataFrame({"x": [0.0, 0.5, 1.0]}, index=["a", "b", "c"])
    pool, threshold = Pool(table), pd.Series([3.0, 2.0, 1.0], index=["c", "b", "a"])
    model = GaussianProcess(RBFKernel().double(), noise_std=0.1)
    yield lambda: Strategy(pool, Above(threshold), model=model)
    goal = Strategy(pool, Above(threshold.loc[pool.labels]), model=model).goal
    assert goal == Above((1.0, 2.0, 3.0))


@case("layouts:layout_of#1", "a region as `goal`, such as `Above(1) & Below(2")
def a_front_of_outputs_measured_apart(_: Path) -> Going:
    pool, model = POOL.at_outputs(2, costs=(1.0, 1.0)), GaussianProcess(noise_std=0.1)
    front = ParetoByDifferences(maximize=(True, True))
    yield lambda: Strategy(pool, front, model=model)
    assert Strategy(pool, Above(1.0) & Below(2.0, output=1), model=model)


@case("layouts:layout_of#2", "`pool.at_outputs(...)` with as many outputs")
def rows_of_another_number_of_outputs(_: Path) -> Going:
    region, model = Above(1.0) & Below(2.0, output=1), GaussianProcess(noise_std=0.1)
    yield lambda: Strategy(POOL.at_outputs(3, costs=(1.0,) * 3), region, model=model)
    assert Strategy(POOL.at_outputs(2, costs=(1.0,) * 2), region, model=model)


MESHES = POOL.at_sources(("coarse", "fine"), costs=(1.0, 9.0))


@case("layouts:_from_sources#1", "a region of one output as `goal`")
def several_outputs_of_sources(_: Path) -> Going:
    yield lambda: Strategy(MESHES, Above(1.0) & Below(2.0, output=1))
    assert Strategy(MESHES, Above(1.0))


@case("layouts:_from_sources#2", "to be about the target, 'fine'")
def a_level_of_another_source(_: Path) -> Going:
    yield lambda: Strategy(MESHES, Above(1.0, output="coarse"))
    assert Strategy(MESHES, Above(1.0, output="fine"))


@case("layouts:layout_of#3", "in the order of the `goal`, ('p', 'q')")
def outputs_named_in_another_order(_: Path) -> Going:
    region = Above(1.0, output="p") & Below(2.0, output="q")
    model, costs = GaussianProcess(noise_std=0.1), (1.0, 1.0)
    yield lambda: Strategy(POOL.at_outputs(["q", "p"], costs), region, model=model)
    assert Strategy(POOL.at_outputs(["p", "q"], costs), region, model=model)
