r"""One value that was typed or measured wrongly: it is named, and decides nothing."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.strategies import Above, Ambiguity, GaussianProcess, Strategy
from botorch_lse.strategies.slips import _Found, _Search
from botorch_lse.surrogate.remarks import (
    DataWarning,
    Slip,
    are_skewed,
    gross,
    on_far_values,
    on_few_levels,
)
from tests.strategies.runs import assert_same

POOL = Pool(torch.linspace(0, 1, 32, dtype=torch.float64).unsqueeze(-1))
TRUTH = 60 + 25 * torch.sin(5 * POOL.X[:, 0])
FIRST = torch.tensor([0, 3, 7, 10, 14, 17, 20, 24, 28, 31])


def measured(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randn(len(rows), generator=generator, dtype=torch.float64)
    return TRUTH[rows] + 1.5 * draws


def strategy_of(**options):
    known = {"rule": Ambiguity(), "batch_size": 2, "beta": 9.0}
    known |= {"model": GaussianProcess(noise_std=2.0)}
    return Strategy(POOL, Above(65.0, epsilon=2.0), **{**known, **options})


def with_slip(place, factor=10.0):
    y = measured(FIRST)
    y[place] *= factor
    return Observations(FIRST, y)


def told(strategy, observations, kinds=("slip",)):
    r"""The first values told, with the remarks that are expected."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DataWarning)
        state = strategy.tell(strategy.init(), observations)
    said = [kind for kind in kinds if kind != "noise"]  # of which nobody is warned
    assert [w.category for w in found] == [DataWarning] * len(said)
    assert tuple(remark.kind for remark in state.remarks) == kinds
    return state


@pytest.mark.some(2)
@pytest.mark.parametrize("place", [0, 4, 9])
@pytest.mark.parametrize("noise_std", [None, 2.0])
def test_a_slip_is_named_and_decides_nothing(place, noise_std) -> None:
    strategy = strategy_of(model=GaussianProcess(noise_std=noise_std, n_initial=9))
    # Ten values, each of another row, do not tell the noise.
    kinds = ("slip",) if noise_std else ("noise", "slip")
    state = told(strategy, with_slip(place), kinds)
    remark, row = state.remarks[-1], int(FIRST[place])
    assert remark.rows == (row,)
    assert f"Row {row} has the value" in str(remark)
    assert str(remark) in state.classification.guarantee
    without = torch.arange(len(FIRST)) != place
    rest = strategy.tell(
        strategy.init(), Observations(FIRST[without], measured(FIRST)[without])
    )
    one, other = state.classification, rest.classification
    assert torch.equal(one.mean, other.mean)
    for name in ("above", "below"):
        expected = getattr(other, name).clone()
        expected[row] = False  # it is asked about
        assert torch.equal(getattr(one, name), expected)
    # An honest value there is no slip.
    honest = strategy.tell(strategy.init(), with_slip(place, 1.0)).remarks
    assert all(remark.kind == "noise" for remark in honest)


def test_its_row_is_measured_again_and_decided_by_that() -> None:
    strategy = strategy_of()
    state = told(strategy, with_slip(4))
    batch = strategy.ask(state)
    assert len(batch) == 2
    assert 14 in batch.order.tolist()
    assert 14 not in strategy.ask(state, pending=[14]).order.tolist()
    while not state.is_done:
        batch = strategy.ask(state)
        y = measured(batch.order, seed=state.round)
        state = strategy.tell(state, batch.observe(y))
    assert state.stop_reason == "decided"
    assert len(state.observations) < 64
    answer = state.classification
    assert (TRUTH[answer.above] > 63).all()
    assert (TRUTH[answer.below] <= 67).all()
    assert "It is left out." in answer.guarantee
    with pytest.warns(DataWarning):
        again = strategy.replay(state.observations)
    assert_same(strategy, again, state)


def test_a_right_value_that_is_told_once_more_counts() -> None:
    strategy = strategy_of()
    state = told(strategy, with_slip(4))
    batch = strategy.ask(state)
    y = measured(batch.order)
    y[batch.order == 14] = with_slip(4).y[4]
    state = strategy.tell(state, batch.observe(y))
    assert state.remarks == ()
    assert bool(state.classification.above[14])
    assert state.classification.mean[14] > 300


def test_the_run_ends_where_its_row_cannot_be_measured_again() -> None:
    strategy = strategy_of(max_repeats=1)
    state = told(strategy, with_slip(4))
    while not state.is_done:
        batch = strategy.ask(state)
        assert 14 not in batch.order.tolist()
        state = strategy.tell(state, batch.observe(TRUTH[batch.order]))
    assert state.stop_reason == "rows exhausted"
    assert bool(state.classification.undecided[14])


def test_of_several_outputs_each_is_looked_at() -> None:
    goal = Above(65.0, epsilon=2.0) & Above(5.0, output=1)
    strategy = Strategy(
        POOL, goal, model=GaussianProcess(noise_std=[2.0, 1.0]), rule=Ambiguity()
    )
    y = torch.stack((measured(FIRST), measured(FIRST, 1) / 10), dim=-1)
    y[4, 1] *= 10
    state = told(strategy, Observations(FIRST, y))
    (remark,) = state.remarks
    assert (remark.rows, remark.output) == ((14,), 1)
    assert bool(state.classification.undecided[14])
    assays = Strategy(
        POOL.at_outputs(2, costs=(1.0, 1.0)),
        goal,
        model=GaussianProcess(noise_std=[2.0, 1.0]),
        rule=Ambiguity(),
    )
    rows = torch.cat((FIRST, FIRST + len(POOL)))
    state = told(assays, Observations(rows, y.mT.reshape(-1)))
    assert state.remarks[0].rows == (14 + len(POOL),)
    assert bool(state.classification.undecided[14])
    assert 14 + len(POOL) in assays.ask(state).order.tolist()


def test_exact_values_and_given_models_are_left_alone() -> None:
    exact = strategy_of(model=GaussianProcess(noise_std=0.0))
    assert exact.tell(exact.init(), with_slip(4)).remarks == ()
    given = strategy_of(model=GaussianProcess(RBFKernel().double(), noise_std=2.0))
    remarks = given.tell(given.init(), with_slip(4)).remarks
    assert all(remark.kind != "slip" for remark in remarks)


def test_a_region_or_values_over_decades_are_no_slips() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(200, 40, generator=generator, dtype=torch.float64)
    assert not any(len(gross(y)) for y in draws)
    # Log-normal values over five decades: the largest is always far from the median.
    assert not any(len(gross((2.5 * y).exp())) for y in draws)
    y = draws[0].clone()
    y[:2] += 100.0  # values of a region
    assert len(gross(y)) == 0
    y[1] += 1000.0
    assert gross(y).tolist() == [0, 1]
    y[3] = y[0] + 1.0  # which is confirmed
    assert gross(y).tolist() == [1]
    assert len(gross(torch.tensor([0.0] * 9 + [1.0]))) == 0


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, -1e3)])
def test_slips_do_not_depend_on_units(scale, shift) -> None:
    y = scale * with_slip(4).y + shift
    assert gross(y).tolist() == [4]


def test_remarks_keep_the_digits_that_tell_numbers_apart() -> None:
    slip = Slip(0, 7, 10000591.0, 10000059.47, 1.3)
    said = str(slip.remark(is_repeated=False))
    assert "has the value 10000591, where all others predict 10000059.5 with" in said
    y = 1e7 + torch.arange(12, dtype=torch.float64) % 2
    assert "only (10000000, 10000001), and" in str(on_few_levels(y, torch.arange(12)))
    bounds = torch.tensor([[1700000000.0], [1700000010.0]], dtype=torch.float64)
    far = str(on_far_values(bounds[1:] + 15.5, bounds, ["seconds"]))
    assert "has seconds = 1700000025.5 (the pool: 1700000000 to 1700000010)" in far


def test_a_forecast_beyond_the_table_says_what_may_be_wrong() -> None:
    strategy = strategy_of(model=GaussianProcess(noise_std=12.0))
    state = strategy.tell(strategy.init(), Observations(FIRST, measured(FIRST)))
    forecast = state.forecast()
    assert forecast.observations is not None
    assert forecast.observations > 32
    assert "more than the 32 rows there are: look for a wrong value" in str(forecast)
    calm = strategy_of()
    state = calm.tell(calm.init(), Observations(FIRST, measured(FIRST)))
    assert "wrong value" not in str(state.forecast())


def run_with_slips(strategy, at, by):
    r"""A run to its end whose values numbered ``at`` are off ``by`` so much."""
    state, n = strategy.init(), 0
    while not state.is_done:
        batch = strategy.ask(state)
        y = measured(batch.order, seed=state.round)
        for place, error in zip(at, by, strict=True):
            if n <= place < n + len(batch):
                y[place - n] += error
        n += len(batch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            state = strategy.tell(state, batch.observe(y))
    return state


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("noise_std", [None, 2.0])
@pytest.mark.parametrize("at", [(15, 24), (14, 27), (20, 21)])
def test_later_slips_among_the_other_values_are_found(at, noise_std) -> None:
    # By ten to fifteen times the noise: neither lies beyond all other values.
    model, goal = GaussianProcess(noise_std=noise_std), Above(65.0, epsilon=0.5)
    strategy = Strategy(POOL, goal, model=model, batch_size=4, max_repeats=1)
    state = run_with_slips(strategy, at, (22.0, -25.0))
    assert state.n_used > at[-1]
    wrong = state.observations.indices[list(at)].tolist()
    assert sorted(slip.row for slip in state.belief.slips) == sorted(wrong)
    answer = state.classification
    assert (TRUTH[answer.above] > 64.5).all()
    assert (TRUTH[answer.below] <= 65.5).all()
    for row in wrong:  # which cannot be measured again
        assert f"Row {row} has the value" in answer.guarantee
        assert bool(answer.undecided[row])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        again = strategy.replay(state.observations)
    assert_same(strategy, again, state)
    honest = run_with_slips(strategy, (), ())
    assert honest.belief.slips == ()


def test_a_narrow_peak_is_measured_once_more_and_kept() -> None:
    # Its first value looks like a slip; the second one says that it is none.
    peak = torch.zeros(len(POOL), dtype=torch.float64)
    peak[16] = 40.0
    truth = 60 + 5 * torch.sin(5 * POOL.X[:, 0]) + peak
    strategy = strategy_of(batch_size=4, max_observations=60)
    state, doubted = strategy.init(), False
    while not state.is_done:
        batch = strategy.ask(state)
        noise = torch.randn(
            len(batch), generator=torch.Generator().manual_seed(state.round)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            state = strategy.tell(state, batch.observe(truth[batch.order] + noise))
        doubted |= 16 in state.belief.doubted
    assert doubted
    assert int((state.observations.indices == 16).sum()) >= 2
    assert bool(state.classification.above[16])


def test_values_of_which_none_may_be_a_slip_are_not_fitted_twice() -> None:
    fits = []

    def own(X, y, yvar):
        fits.append(len(X))
        return SingleTaskGP(X, y, 4.0 * torch.ones_like(y))

    model = GaussianProcess(own, noise_std=2.0)
    strategy = strategy_of(model=model, max_observations=24)
    state = run_with_slips(strategy, (15,), (22.0,))
    assert state.belief.slips == ()
    assert fits == sorted(fits)  # nobody's own function is called without a value


@pytest.mark.parametrize(
    ("n", "error", "is_doubted"),
    [(40, 3.4, False), (40, 3.6, True), (1000, 3.6, False), (1000, 4.2, True)],
)
def test_of_many_values_the_largest_error_is_larger(n, error, is_doubted) -> None:
    strategy = strategy_of()
    belief = strategy.tell(strategy.init(), Observations(FIRST, measured(FIRST))).belief
    history = Observations(torch.arange(n) % len(POOL), torch.zeros(n).double())
    out = torch.linspace(-3, 3, n, dtype=torch.float64)
    out[n // 2] = -error
    search = _Search(
        strategy.algorithm.model,
        lambda observations: belief,
        lambda learnt, output: SimpleNamespace(out=out),
        history,
    )
    assert search.doubtful(_Found(belief)).tolist() == [n // 2] * is_doubted


def test_the_evidence_is_the_density_of_all_values() -> None:
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.3
    strategy = strategy_of(model=GaussianProcess(kernel, noise_std=0.5))
    values = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64)
    rows = torch.tensor([2, 9, 9])
    state = strategy.tell(strategy.init(), Observations(rows, values))
    K = kernel(POOL.X[rows]).to_dense().detach() + 0.25 * torch.eye(3).double()
    normal = torch.distributions.MultivariateNormal(torch.zeros(3).double(), K)
    assert state.belief.fits.log_evidence == pytest.approx(
        float(normal.log_prob(values))
    )


@pytest.mark.parametrize(("low", "high", "expected"), [(1, 9, False), (1, 200, True)])
def test_values_over_decades_are_skewed(low, high, expected) -> None:
    y = torch.logspace(math.log10(low), math.log10(high), 20, dtype=torch.float64)
    assert are_skewed(y) is expected
    assert are_skewed(-y) is False
    one = torch.tensor([1e6], dtype=torch.float64)
    assert are_skewed(torch.cat((torch.linspace(5, 9, 20).double(), one))) is False


def test_a_row_in_doubt_that_was_measured_again_is_fitted_at_once() -> None:
    # The next fit would come later; until then the model would lack a right value.
    model = GaussianProcess(noise_std=2.0, refit=lambda n: n == 1)
    strategy = Strategy(POOL, Above(65.0, epsilon=0.1), model=model, batch_size=4)
    rows = torch.arange(0, 32, 2)
    y = measured(rows)
    y[5] += 25.0  # among the values of others
    state = told(strategy, Observations(rows, y))
    assert state.belief.doubted.tolist() == [10]
    batch = strategy.ask(state)
    assert 10 in batch.order.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        state = strategy.tell(state, batch.observe(measured(batch.order, 1)))
    assert state.belief.fits.fitted_rounds == 2
    assert state.belief.doubted.tolist() == []
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(measured(batch.order, 2)))
    assert state.belief.fits.fitted_rounds == 2
