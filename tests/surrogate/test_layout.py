r"""Measurements of one output each: which output next, and in which row."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Observations, Pool
from botorch_lse.functional.class_removal import class_removal
from botorch_lse.papers.kone2025 import Diameter
from botorch_lse.plotting import level_set_frame
from botorch_lse.strategies import (
    Above,
    AlternatingRules,
    Ambiguity,
    Below,
    ExpectedMisclassification,
    FinalRuns,
    GaussianProcess,
    MisclassificationProbability,
    OptimalDesign,
    ParetoByDifferences,
    Random,
    RandomizedStraddle,
    State,
    Straddle,
    Strategy,
    TargetedVariance,
    UFunction,
    Variance,
    Width,
)
from botorch_lse.surrogate.layout import Layout, OneOutputEach, PairCovariances
from tests.strategies.runs import played
from tests.strategies.test_correlated import (
    GIVEN,
    NOISE,
    POOL,
    REGION,
    TRUTH,
    dense,
    in_region,
    is_near,
    learnt,
)
from tests.strategies.test_correlated import N as N_ROWS

M = 2
ASSAYS = POOL.at_outputs(("strength", "leaching"), costs=(1.0, 1.0))


def kernel(sigma: float) -> ScaleKernel:
    found = ScaleKernel(RBFKernel()).double()
    found.outputscale, found.base_kernel.lengthscale = sigma**2, 0.5
    return found


APART = GaussianProcess((kernel(1.0), kernel(15.0)), noise_std=NOISE)
MODELS = {
    "apart": APART,
    "together": GIVEN,
    "learnt": GaussianProcess(noise_std=NOISE),
    "learnt together": GaussianProcess(noise_std=NOISE, correlated=True),
    "nothing known": GaussianProcess(),
}


def value_of(rows: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
    output, row = rows // N_ROWS, rows % N_ROWS
    return TRUTH[row, output] + torch.tensor(NOISE).double()[output] * noise


def strategy_of(model: GaussianProcess = APART, pool: Pool = ASSAYS, **options):
    given = {"batch_size": 4, "max_observations": 200, **options}
    return Strategy(pool, given.pop("goal", REGION), model=model, **given)


def end_of(strategy: Strategy, seed: int = 0) -> State:
    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        return value_of(rows, 100 * seed + state.round)

    return played(strategy, values, seed=seed)[-1]


# --- results of one output alone ------------------------------------------------------


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ["learnt", "learnt together", "nothing known"])
@pytest.mark.parametrize("output", [0, 1])
def test_values_of_one_output_alone_wait_for_those_of_the_other(name, output) -> None:
    strategy = strategy_of(MODELS[name])
    n = strategy.parts.model.n_deciding() + 5
    rows = torch.arange(N_ROWS)[:n] + output * N_ROWS
    rows = rows.repeat(-(-n // len(rows)))[:n]
    state = strategy.tell(strategy.init(), Observations(rows, value_of(rows, 0)))
    assert state.classification.undecided.all()
    assert "fitted" in str(state.forecast())
    assert "equal" not in str(state.forecast())
    # The other output has all that is to be learnt.
    asked = strategy.ask(state).order
    assert bool((asked // N_ROWS != output).any())
    other = (torch.arange(20) + (1 - output) * N_ROWS).repeat(2)
    state = strategy.tell(state, Observations(other, value_of(other, 1)))
    assert torch.isfinite(state.classification.sigma).all()


# --- the pool -------------------------------------------------------------------------


def test_a_pool_at_outputs_has_each_row_once_for_each() -> None:
    frame = ASSAYS.to_frame()
    assert len(ASSAYS) == 2 * N_ROWS
    assert ASSAYS.names == ("x0", "x1", "output")
    assert frame["output"].iloc[[0, N_ROWS - 1, N_ROWS]].tolist() == [
        "strength",
        "strength",
        "leaching",
    ]
    assert ASSAYS.X[N_ROWS:, 2].unique().tolist() == [1.0]
    weighted = Pool(POOL.X, weights=torch.arange(N_ROWS), is_sample=True)
    several = weighted.at_outputs(3, costs=(1, 2, 3), noise_var=(0.1, 0.0, 0.2))
    assert several.costs.tolist()[::N_ROWS] == [1.0, 2.0, 3.0]
    assert several.noise_var.tolist()[::N_ROWS] == [0.1, 0.0, 0.2]
    assert several.to_frame()["output"].iloc[-1] == "y2"
    back = OneOutputEach(several, 3).candidates
    assert back.hash == weighted.hash
    assert OneOutputEach(several, 3).candidates_of(2).noise_var.unique().tolist() == [
        0.2
    ]


@pytest.mark.parametrize(
    ("outputs", "costs", "message"),
    [
        (("a",), (1.0,), r"`outputs` to name at least two outputs, but got"),
        (1, (1.0,), r"`outputs`"),
        (("a", "a"), (1.0, 1.0), r"to differ"),
        (2, (1.0, -1.0), r"`costs` to be non-negative, but entry 1 is -1"),
        (2, (1.0,), r"`costs`"),
    ],
)
def test_outputs_that_make_no_pool_are_refused(outputs, costs, message) -> None:
    with pytest.raises((ValueError, BotorchTensorDimensionError), match=message):
        POOL.at_outputs(outputs, costs)


def test_a_pool_with_costs_or_an_output_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bare points, but it has costs already"):
        Pool(POOL.X, costs=torch.ones(N_ROWS)).at_outputs(2, (1.0, 1.0))
    with pytest.raises(ValueError, match=r"bare points, but it has output already"):
        Pool(POOL.X, names=("x", "output")).at_outputs(2, (1.0, 1.0))


def test_a_strategy_says_what_does_not_fit() -> None:
    three = POOL.at_outputs(3, costs=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"at the 2 outputs of the `goal`.* has 3"):
        strategy_of(pool=three)
    named = Below(-12.0, output="leaching") & Above(0.7, output="strength")
    with pytest.raises(
        ValueError, match=r"the order of the `goal`, \('leaching', 'str"
    ):
        strategy_of(goal=named)
    with pytest.raises(UnsupportedError, match=r"Expected a region as `goal`"):
        strategy_of(goal=ParetoByDifferences(maximize=(True, True)))
    past = History(ASSAYS.X[:2], torch.ones(2, M), torch.ones(2, M))
    known = GaussianProcess(APART.model, noise_std=NOISE, history=past)
    with pytest.raises(UnsupportedError, match=r"no `history` where a measurement"):
        strategy_of(known)
    strategy = strategy_of(rule=OptimalDesign(design="prior"))
    with pytest.raises(UnsupportedError, match=r"design=\"posterior\""):
        strategy.ask(strategy.init())
    strategy = strategy_of()
    batch = strategy.ask(strategy.init())
    several = r"each row of the `pool` is about one output"
    with pytest.raises(BotorchTensorDimensionError, match=several):
        strategy.tell(strategy.init(), batch.observe(torch.ones(4, 2).double()))


def test_one_output_needs_no_pairs() -> None:
    r"""A column that happens to be called so is an input as any other."""
    pool = Pool(torch.rand(10, 2).double(), names=("x", "output"))
    strategy = Strategy(pool, Above(0.0), model=GaussianProcess(kernel(1.0), 0.1))
    assert strategy.init().classification.pool is pool


# --- what is believed -----------------------------------------------------------------


@pytest.mark.parametrize("model", [APART, GIVEN], ids=["apart", "together"])
def test_beliefs_and_covariances_agree_with_dense_algebra(model) -> None:
    if model is GIVEN:
        mean, K = dense(learnt())
    else:
        parts = [k(POOL.X).to_dense().detach() for k in APART.model]
        mean, K = torch.zeros(2 * N_ROWS).double(), torch.block_diag(*parts)
    strategy = strategy_of(model, batch_size=5)
    rows = torch.tensor([3, 40, 41, 70, 3])
    y, noise = value_of(rows, 1), torch.tensor(NOISE).double().square()[rows // N_ROWS]
    fits = strategy.parts.model.start().observing(Observations(rows, y, noise))
    A = K[rows][:, rows] + noise.diag()
    gain = torch.linalg.solve(A, K[rows]).mT
    left = K - gain @ K[rows]
    found = torch.cat([p.mean for p in fits.posteriors])
    torch.testing.assert_close(found, mean + gain @ (y - mean[rows]), atol=1e-6, rtol=0)
    assert fits.measured.sort().values.tolist() == rows.sort().values.tolist()
    pairs = PairCovariances(strategy.layout, fits.posteriors)
    unit = torch.tensor([p.scale for p in fits.posteriors]).repeat_interleave(N_ROWS)
    scale = unit.unsqueeze(-1) * unit
    torch.testing.assert_close(
        pairs.block(slice(None), slice(None)) / scale, left / scale, atol=1e-7, rtol=0
    )
    torch.testing.assert_close(
        pairs.block(rows, slice(2, 50)) / scale[rows, 2:50],
        left[rows, 2:50] / scale[rows, 2:50],
        atol=1e-7,
        rtol=0,
    )
    # Rows that are planned take off what the same rows do when their values come.
    more = torch.tensor([8, 8, 60])
    ahead = fits.expecting(more)
    after = fits.observing(Observations(more, torch.zeros(3), fits.new_noise[more]))
    for one, two in zip(ahead.posteriors, after.posteriors, strict=True):
        torch.testing.assert_close(one.variance, two.variance, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("model", [APART, GIVEN], ids=["apart", "together"])
def test_the_row_and_output_are_the_best_per_cost_by_definition(model) -> None:
    pool = POOL.at_outputs(2, costs=(1.0, 3.0))
    rule = ExpectedMisclassification()
    strategy = strategy_of(model, pool, rule=rule, batch_size=1)
    state = strategy.init(0)
    for _ in range(8):
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(value_of(batch.order, state.round)))
    fits = state.belief.fits
    undecided = state.belief.sides.candidates.nonzero().view(-1)
    mean = [p.mean[undecided] for p in fits.posteriors]
    variance = [p.variance[undecided] for p in fits.posteriors]
    removal = class_removal(REGION.values.cells.at(undecided), mean, variance)
    best = []
    for row in range(2 * N_ROWS):
        after = fits.expecting(torch.tensor([row]))
        gained = [
            (v - p.variance[undecided]).clamp_min(0).unsqueeze(0)
            for v, p in zip(variance, after.posteriors, strict=True)
        ]
        best.append(float(removal.of(gained).sum()) / float(pool.costs[row]))
    chosen = int(strategy.ask(state).indices[0])
    assert best[chosen] == pytest.approx(max(best), rel=1e-6)


def test_of_a_row_of_one_output_the_side_of_the_rectangle_counts() -> None:
    strategy = strategy_of(rule=Diameter(), batch_size=1, beta=9.0)
    state = strategy.init(0)
    for _ in range(5):
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(value_of(batch.order, state.round)))
    belief = state.belief
    sides = [
        (regions.upper - regions.lower) / posterior.scale
        for regions, posterior in zip(
            belief.all_regions, belief.fits.posteriors, strict=True
        )
    ]
    open_ = belief.sides.candidates.repeat(M)
    (row,) = strategy.ask(state).order.tolist()
    found = torch.cat(sides).masked_fill(~open_, 0.0)
    assert bool(open_[row])
    assert float(found[row]) == pytest.approx(float(found.max()), rel=1e-6)


# --- runs -----------------------------------------------------------------------------


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("name", MODELS)
def test_a_region_is_found_by_single_measurements(name) -> None:
    strategy = strategy_of(MODELS[name])
    state = end_of(strategy)
    answer = state.classification
    assert state.stop_reason == "decided"
    wrong = (answer.above & ~in_region()) | (answer.below & in_region())
    assert not bool((wrong & ~is_near()).any())
    assert bool(answer.above.any())
    assert len(answer.above) == N_ROWS
    frame = answer.to_frame()
    assert "output" not in frame
    assert {"strength_lower", "leaching_upper"} <= {*frame}
    with pytest.raises(ValueError, match=r"36 rows.*Give `state.measurements`"):
        level_set_frame(answer, state.observations)
    shown = level_set_frame(answer, state.measurements)
    assert int(shown["n_observations"].sum()) == state.n_used
    assert len(frame) == N_ROWS
    again = strategy.replay(state.observations, seed=0)
    assert torch.equal(again.classification.probability_above, answer.probability_above)
    counts = torch.bincount(state.observations.indices // N_ROWS, minlength=2)
    assert bool((counts > 0).all())
    for j in range(M):
        assert len(state.calibration(j).out) == int(counts[j])
    mean, _ = state.predict(POOL.X)
    for j, output in enumerate(answer.outputs):
        torch.testing.assert_close(output.mean, mean[:, j], atol=1e-6, rtol=1e-6)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "rule",
    [
        ExpectedMisclassification(batch="joint"),
        TargetedVariance(),
        Straddle(),
        Ambiguity(),
        Width(),
        Variance(),
        UFunction(),
        Diameter(),
        Random(),
        MisclassificationProbability(),
        OptimalDesign(),
        OptimalDesign(rounding="quota"),
        AlternatingRules((Straddle(), ExpectedMisclassification())),
    ],
    ids=repr,
)
@pytest.mark.parametrize("model", [APART, GIVEN], ids=["apart", "together"])
def test_every_rule_for_regions_chooses_rows_and_outputs(rule, model) -> None:
    state = end_of(strategy_of(model, rule=rule, max_observations=24))
    rows = state.observations.indices
    assert len(rows.unique()) > 3
    assert set((rows // N_ROWS).tolist()) == {0, 1}


@pytest.mark.slow
def test_a_dear_output_is_measured_less_often() -> None:
    shares = []
    for costs in ((1.0, 8.0), (8.0, 1.0)):
        pool, n = POOL.at_outputs(2, costs=costs), torch.zeros(2)
        for seed in range(3):
            rows = end_of(strategy_of(pool=pool), seed).observations.indices
            n += torch.bincount(rows // N_ROWS, minlength=2)
        shares.append(float(n[0] / n.sum()))
    assert shares[0] > shares[1]


@pytest.mark.slow
def test_it_costs_less_than_measuring_all_outputs_of_each_row() -> None:
    both, single = 0, 0
    for seed in range(3):
        whole = strategy_of(pool=POOL)

        def values(rows: torch.Tensor, state: State, seed=seed) -> torch.Tensor:
            own = [
                value_of(rows + j * N_ROWS, 7 * seed + state.round + j) for j in (0, 1)
            ]
            return torch.stack(own, dim=-1)

        both += 2 * played(whole, values, seed=seed)[-1].n_used
        single += end_of(strategy_of(), seed).n_used
    assert single < both


def test_what_was_measured_exactly_is_not_measured_again() -> None:
    pool = POOL.at_outputs(2, costs=(1.0, 1.0), noise_var=(0.0, NOISE[1] ** 2))
    strategy = strategy_of(GaussianProcess(APART.model), pool, rule=Random())

    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        true = TRUTH[rows % N_ROWS, rows // N_ROWS]
        return torch.where(rows < N_ROWS, true, value_of(rows, state.round))

    state = played(strategy, values)[-1]
    rows = state.observations.indices
    first = rows[rows < N_ROWS]
    assert len(first.unique()) == len(first)
    assert "count as exact" in state.classification.guarantee


def test_pairs_can_be_excluded() -> None:
    strategy = strategy_of()
    state = strategy.init(0)
    none = torch.arange(N_ROWS, 2 * N_ROWS)[::2]
    state = strategy.exclude(state, none)
    while not state.is_done and state.n_used < 40:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(value_of(batch.order, state.round)))
    assert not bool(torch.isin(state.observations.indices, none).any())


@pytest.mark.parametrize(
    "rule",
    [
        Straddle(),
        Ambiguity(),
        MisclassificationProbability(),
        RandomizedStraddle(),
        UFunction(),
        FinalRuns((UFunction(), MisclassificationProbability()), after=4),
    ],
)
def test_an_output_that_is_known_is_not_measured_for_one_that_is_not(rule):
    # By the prior alone no row is in the region, which is not to decide: each output
    # of each row must be known a little. More of one output does not help.
    pool = Pool(torch.linspace(0, 1, 8).double().unsqueeze(-1))
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.2
    region = Above(3.0) | Below(-4.0, output=1)
    model = GaussianProcess(kernel, noise_std=0.3)
    given = {"rule": rule, "batch_size": 1, "beta": 4.0, "max_observations": 24}
    strategy = Strategy(
        pool.at_outputs(2, costs=(1.0, 1.0)), region, model=model, **given
    )
    state = strategy.init()
    while not state.is_done:
        rows = strategy.ask(state).order
        y = (6 * pool.X[rows % 8, 0] + rows // 8).sin()
        state = strategy.tell(state, Observations(rows, y))
    assert state.stop_reason == "decided"
    assert state.history.indices.bincount(minlength=16).max() <= 2
    assert len(state.history) <= 12


LAYOUTS = [
    Layout(Pool([[0.0], [1.0], [2.0]]), 2),
    OneOutputEach(Pool([[0.0], [1.0], [2.0]]).at_outputs(2, (1.0, 1.0)), 2),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["together", "one each"])
def test_a_layout_finds_its_way_from_rows_to_outputs_and_back(layout) -> None:
    rows = torch.arange(len(layout.pool))
    each = layout.split(rows)
    assert [own.tolist() for own in each] == [[0, 1, 2], [0, 1, 2]]
    assert torch.equal(layout.rows(each), rows)
    assert torch.equal(layout.at(rows), rows % 3)
    for j in range(2):
        mine = layout.rows_of(j, torch.tensor([0, 2]))
        assert torch.equal(layout.at(mine), torch.tensor([0, 2]))
        assert bool(torch.isin(mine, rows[layout.places(rows, j)]).all())
    assert len(layout.candidates) == 3
    assert len(layout.by_row(torch.tensor([True, False, True]))) == len(rows)
    assert layout.n_each * 3 == len(rows)


def test_numbers_of_outputs_become_numbers_of_rows() -> None:
    together, one_each = LAYOUTS
    values = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 4.0, 0.0])]
    largest = partial(torch.amax, dim=0)
    assert together.merged(values, largest).tolist() == [5.0, 4.0, 3.0]
    assert one_each.merged(values, largest).tolist() == [1, 2, 3, 5, 4, 0]
    assert together.of_row(None, ("a", "b")) == ("a", "b")
    assert one_each.of_row(4, ("a", "b")) == ("b",)
    assert one_each.of_row(None, ("a", "b")) is None
