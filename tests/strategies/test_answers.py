r"""No answer contradicts itself, whatever comes in."""

import dataclasses
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse import Pool
from botorch_lse.confidence import confidence_regions
from botorch_lse.confidence.classify import classify
from botorch_lse.confidence.regions import EmptyRegionWarning, Regions
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import PALStrategy
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    GEGELinearStrategy,
    HRAGEStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    MELKLinearStrategy,
    MELKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from tests.registry import EXPLICIT, GAUSSIAN, IMPLICIT, PLAYED_GP

from . import pareto_runs
from .runs import GP, LEVEL, NOISE_STD, grid, make

jumps = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([-9.0, -1.0, 0.0, 1.0, 9.0])),
    min_size=2,
    max_size=8,
)


def small(of, **options):
    return make(of, pool=Pool(grid(3)), **options)


def states_after(strategy, told):
    r"""Each value a round of its own, whatever the stated noise says to it."""
    state = strategy.init()
    yield state
    for row, value in told:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = strategy.tell(state, Observations([row], [value]))
        yield state


@pytest.mark.some(1)
@pytest.mark.parametrize("case", IMPLICIT)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(told=jumps)
def test_no_interval_is_turned_around_whatever_is_told(case, told):
    for state in states_after(small(case, epsilon=0.05), told):
        assert (state.classification.lower <= state.classification.upper).all()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "case", [case for case in EXPLICIT if not case.has_lasting_sides]
)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(told=jumps)
def test_sides_agree_with_their_intervals_whatever_is_told(case, told):
    for state in states_after(small(case, epsilon=0.05), told):
        answer = state.classification
        assert (answer.lower <= answer.upper).all()
        assert (answer.lower[answer.above] > LEVEL - 0.05).all()
        assert (answer.upper[answer.below] <= LEVEL + 0.05).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("case", [case for case in EXPLICIT if case.has_lasting_sides])
@settings(max_examples=6, deadline=None, derandomize=True)
@given(told=jumps)
def test_lasting_sides_are_possible_in_their_intervals(case, told):
    for state in states_after(small(case, epsilon=0.05), told):
        answer = state.classification
        assert (answer.lower <= answer.upper).all()
        assert (answer.upper[answer.above] > LEVEL - 0.05).all()
        assert (answer.lower[answer.below] <= LEVEL + 0.05).all()


# As far apart as the stated noise allows: values beyond it would refute the noise.
HIGH, LOW = LEVEL + NOISE_STD, LEVEL - NOISE_STD
FLIP = [(4, HIGH)] * 30 + [(4, LOW)] * 200
CONTRADICTING = [LSEStrategy, MaxVarianceStrategy, MELKStrategy, TruVaRStrategy]


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("cls", [*CONTRADICTING, HRAGEStrategy, MELKLinearStrategy])
def test_a_row_that_turns_out_otherwise_changes_its_side(cls):
    strategy = small(cls)
    start = [(row, LEVEL) for row in range(9)]  # so that linear features are spanned
    first, *_, last = states_after(strategy, start + FLIP[:30])
    assert not bool(first.classification.above[4])
    assert bool(last.classification.above[4])
    *_, last = states_after(strategy, start + FLIP)
    answer = last.classification
    assert bool(answer.below[4])
    assert bool(answer.contradicted[4])
    assert f"{int(answer.contradicted.sum())} row" in answer.guarantee
    assert "contradict each other" in answer.guarantee
    assert bool(answer.to_frame()["contradicted"][4])


@pytest.mark.some(0, slow=6)
@pytest.mark.parametrize("case", [case for case in PLAYED_GP if case.is_implicit])
def test_so_it_is_with_an_implicit_level(case):
    strategy = small(case)
    told = [(4, 9.0)] * 6 + [(0, 2.0)] * 6 + [(4, -9.0)] * 60
    *_, last = states_after(strategy, told)
    assert bool(last.classification.below[4])


@pytest.mark.slow
def test_so_it_is_with_rectangles_of_several_outputs():
    X = torch.cartesian_prod(*[torch.linspace(0, 1, 3).double()] * 2)
    kernels = (GP.kernel(), GP.kernel())
    strategy = PALStrategy(
        Pool(X), maximize=(True, True), model=kernels, noise_std=NOISE_STD, beta=4.0
    )
    state = strategy.init()
    for value in [HIGH] * 6 + [LOW] * 60:
        state = strategy.tell(state, Observations([4], [[value, value]]))
    answer = state.classification
    assert bool(answer.contradicted[4])
    assert not bool(answer.above[4])
    estimate = strategy.estimate(state)
    assert (estimate.lower <= estimate.upper).all()
    assert (answer.lower <= answer.upper).all()


def test_so_it_is_with_several_outputs_on_linear_features():
    X, _ = pareto_runs.linear_problem()
    strategy = GEGELinearStrategy(Pool(X), maximize=(True, True), noise_std=0.1)
    state = strategy.init()
    for value in (3.0, -3.0):
        rows = torch.arange(len(X)).repeat(20)
        y = value * torch.ones(len(rows), 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = strategy.tell(state, Observations(rows, y))
    estimate = strategy.estimate(state)
    assert (estimate.lower <= estimate.upper).all()
    assert bool(state.classification.contradicted.any())


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["level", "region", "features"])
def test_a_mean_outside_of_its_bounds_is_marked(kind):
    # Of 30 values of 1 and 30 of -1 the mean leaves what the intervals have in common
    # before an interval does.
    strategy, m = small(MELKLinearStrategy if kind == "features" else LSEStrategy), 1
    if kind == "region":
        region = Above(LEVEL) & Below(LEVEL, output=1)
        model = GaussianProcess(GP.kernel(), noise_std=NOISE_STD)
        strategy, m = Strategy(strategy.pool, region, model=model, beta=4.0), 2
    state, marked = strategy.init(), 0
    values = [(row, 0.0) for row in range(9)]
    for row, value in values + [(4, 1.0)] * 30 + [(4, -1.0)] * 30:
        y = [[0.0, value]] if m == 2 else [value]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = strategy.tell(state, Observations([row], y))
        answer = state.classification
        parts = answer.outputs or (answer,)
        slack = [1e-9 * (1 + part.mean.abs()) for part in parts]
        inside = [
            (part.lower - s <= part.mean) & (part.mean <= part.upper + s)
            for part, s in zip(parts, slack, strict=True)
        ]
        outside = ~torch.stack(inside).all(dim=0)
        assert bool(answer.contradicted[outside].all())
        assert answer.guarantee.count("outside of what") <= 1
        is_told = "contradict each other" not in answer.guarantee
        if bool(outside[4]) and is_told:  # the intervals themselves do not
            marked += 1
            assert "outside of what its intervals have in common" in answer.guarantee
            assert bool(answer.to_frame()["contradicted"][4])
            again = dataclasses.replace(answer, pool=None)
            assert again.guarantee == answer.guarantee
    assert marked > 0


def test_no_contradiction_no_column():
    state = list(states_after(small(LSEStrategy), [(4, 0.5)]))[-1]
    assert "contradicted" not in state.classification.to_frame()
    assert "contradict" not in state.classification.guarantee


@pytest.mark.slow
def test_a_contradiction_is_warned_of_once_under_a_theorems_width():
    strategy = dataclasses.replace(small(LSEStrategy), beta=None)
    state = strategy.init()
    heard = 0
    for row, value in FLIP:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            state = strategy.tell(state, Observations([row], [value]))
        of_row_4 = [
            w
            for w in caught
            if w.category is EmptyRegionWarning and "first of row 4" in str(w.message)
        ]
        heard += len(of_row_4)
    assert heard == 1
    assert bool(state.classification.contradicted[4])


@pytest.mark.parametrize("record", [Regions, Classification])
def test_crossed_bounds_are_refused(record):
    low, high = torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0])
    sides = (torch.ones(2).bool(), torch.zeros(2).bool(), torch.zeros(2).bool())
    before = sides if record is Classification else ()
    after = (low, low, low) if record is Classification else (low, low)
    with pytest.raises(ValueError, match=r"`lower` .* row 1 has 2 and 1"):
        record(*before, low, high, *after)


def test_the_path_says_what_the_rounds_say():
    r"""``confidence_regions`` of a model along its data, and the strategy's."""
    from botorch.models import SingleTaskGP

    X, y = grid(3)[[4] * 44], torch.tensor([0.5] * 4 + [0.3] * 40).double()
    model = SingleTaskGP(
        X,
        y.unsqueeze(-1),
        torch.full((44, 1), 0.01).double(),
        covar_module=GP.kernel(),
        outcome_transform=None,
    ).eval()
    pool = Pool(grid(3))
    regions = confidence_regions(model, pool, beta=4.0)
    strategy = LSEStrategy(pool, threshold=0.4, model=model, noise_std=0.1, beta=4.0)
    *_, last = states_after(strategy, [(4, float(value)) for value in y])
    answer = last.classification
    assert regions.contradicted.any()
    assert torch.equal(regions.contradicted, answer.contradicted)
    torch.testing.assert_close(regions.lower, answer.lower, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(regions.upper, answer.upper, rtol=1e-9, atol=1e-9)
    assert (classify(regions, 0.4).below == answer.below).all()


# --- before data ----------------------------------------------------------------------


def far_prior():
    r"""A process whose mean is far from the level of 0.4."""
    from gpytorch.means import ConstantMean

    mean = ConstantMean()
    mean.initialize(constant=20.0)
    return GPPrior.from_kernel(GP.kernel(), mean)


@pytest.mark.parametrize("beta", [0.0, 4.0])
@pytest.mark.parametrize("case", [case for case in PLAYED_GP if not case.is_implicit])
def test_a_given_width_decides_nothing_before_there_are_data(case, beta):
    strategy = make(case, model=far_prior(), beta=beta)
    state = strategy.init()
    assert not state.is_done
    assert state.classification.undecided.all()
    assert len(strategy.ask(state)) == 1


@pytest.mark.parametrize("cls", [LSEStrategy, StraddleStrategy, MELKStrategy])
def test_a_prior_that_is_sure_of_a_row_does_not_decide_it_alone(cls):
    strategy = make(cls, model=far_prior())
    state = strategy.tell(strategy.init(), Observations([0], [19.0]))
    answer = state.classification
    far = (grid() - grid()[0]).norm(dim=-1) > 0.7
    assert answer.undecided[far].all()
    assert answer.above[0]
    assert not state.is_done


def test_a_theorems_width_may_decide_before_there_are_data():
    state = make(LSEStrategy, threshold=100.0, beta=None).init()
    assert state.stop_reason == "decided"
    assert state.classification.below.all()


@pytest.mark.parametrize("case", GAUSSIAN)
def test_with_several_outputs_a_given_width_decides_nothing_before_data(case):
    kernels = (GP.kernel(), GP.kernel())
    strategy = case.make(
        Pool(grid(3)), maximize=(True, True), model=kernels, noise_std=0.3, beta=0.0
    )
    assert strategy.init().classification.undecided.all()
