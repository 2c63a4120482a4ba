r"""Runs whose results are grades in their order."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.plotting.pictures import measured_values
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    Binary,
    GaussianProcess,
    Levels,
    Ordinal,
    Random,
    State,
    Straddle,
    Strategy,
)
from tests.covering import more_in_full

CUTS = (-2.5, 0.0, 1.5)
TRUTH = Ordinal(4, at_least=2, cutpoints=CUTS)
LEARNT = Ordinal(4, at_least=2)


def kernel() -> ScaleKernel:
    found = ScaleKernel(RBFKernel()).double()
    found.base_kernel.lengthscale, found.outputscale = 0.3, 6.0
    return found.requires_grad_(False)


def line(n: int = 31) -> Pool:
    return Pool(torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1))


def rising(pool: Pool) -> Tensor:
    return 8 * pool.X[:, 0] - 4


def graded(f: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(f.shape, generator=generator, dtype=torch.float64)
    return sum((f + noise > cut).double() for cut in CUTS)


def played(strategy: Strategy, f: Tensor, seed: int = 0) -> State:
    generator, state = torch.Generator().manual_seed(seed), strategy.init(seed=seed)
    while not state.is_done:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, graded(f[rows], generator)))
    return state


def test_the_answer_has_numbers_before_the_first_result():
    model = GaussianProcess(outcome=LEARNT)
    answer = Strategy(line(), Above(0.75), model=model).init().classification
    for part in (answer.mean, answer.sigma, answer.lower, answer.upper):
        assert not part.isnan().any()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "outcome"), [(None, LEARNT), (None, TRUTH), (kernel(), TRUTH)],
    ids=["learnt", "cutpoints", "given"],
)  # fmt: skip
def test_a_run_decides_the_rows_far_from_the_level(model, outcome):
    pool = line()
    strategy = Strategy(
        pool,
        Above(0.75, epsilon=0.05),
        model=GaussianProcess(model, outcome=outcome, refit=1.3),
        beta=4.0,
        batch_size=15,
        max_observations=120,
    )
    state = played(strategy, rising(pool))
    answer, p = state.classification, TRUTH.value(rising(pool))
    assert not bool((answer.above & (p < 0.7)).any())
    assert not bool((answer.below & (p > 0.8)).any())
    assert int(answer.above.sum()) > 5
    assert int(answer.below.sum()) > 5
    assert bool(((answer.lower >= 0) & (answer.upper <= 1)).all())
    assert bool(
        (answer.lower <= answer.mean).all() & (answer.mean <= answer.upper).all()
    )
    assert not state.calibration().has_failed
    mean, sigma = state.predict(pool.X)
    assert torch.allclose(mean, answer.mean, atol=1e-6)
    assert torch.allclose(sigma, answer.sigma, atol=1e-6)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "outcome"), [(None, LEARNT), (kernel(), TRUTH)], ids=["learnt", "given"]
)
def test_a_replay_gives_the_same_answer_and_the_same_rows(model, outcome):
    pool, settings = line(), GaussianProcess(model, outcome=outcome)
    strategy = Strategy(pool, Above(0.75), model=settings, max_observations=40)
    f, generator = rising(pool), torch.Generator().manual_seed(1)
    state = strategy.init(seed=3)
    for _ in range(6):
        rows = strategy.ask(state, size=4).order
        y = graded(f[rows], generator)
        for part in (slice(2, 4), slice(0, 2)):  # in parts, out of order
            state = strategy.tell(state, Observations(rows[part], y[part]))
    again = strategy.replay(state.history, seed=3)
    assert torch.equal(again.classification.mean, state.classification.mean)
    assert torch.equal(strategy.ask(again).order, strategy.ask(state).order)


def test_cutpoints_are_learnt_during_a_run():
    pool = line()
    model = GaussianProcess(outcome=LEARNT)
    strategy = Strategy(
        pool, Above(0.75), model=model, rule=Random(), batch_size=90,
        max_observations=180,
    )  # fmt: skip
    outcome = played(strategy, rising(pool)).belief.posterior.prior.outcome
    assert isinstance(outcome, Ordinal)
    assert outcome.cutpoints == pytest.approx(CUTS, abs=0.8)


def test_grades_on_one_side_teach_no_model_and_new_rows_come():
    pool = line()
    strategy = Strategy(
        pool, Above(0.75), model=GaussianProcess(outcome=LEARNT), batch_size=6
    )
    state = strategy.init(seed=0)
    for _ in range(3):  # good and excellent are both reached
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, 2.0 + (rows % 2)))
    assert bool(state.classification.undecided.all())
    assert "No model is fitted yet" in state.classification.guarantee
    rows = strategy.ask(state).order
    state = strategy.tell(state, Observations(rows, 3.0 * (rows != rows[0])))
    assert "No model is fitted yet" not in state.classification.guarantee


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "goal",
    [Below(0.3), Between(0.3, 0.8, epsilon=0.05), Levels((0.25, 0.75)), ~Above(0.5)],
    ids=lambda goal: type(goal).__name__,
)
def test_any_region_of_probabilities_is_decided(goal):
    pool, f = line(), rising(line())
    strategy = Strategy(
        pool, goal, model=GaussianProcess(kernel(), outcome=TRUTH), rule=Straddle(),
        beta=9.0, batch_size=30, max_observations=120,
    )  # fmt: skip
    answer = played(strategy, f).classification
    p = TRUTH.value(f)
    truth = goal.values.cells.agreed(goal.values.allowed([p], [p], strictly=False))
    inside = truth == goal.values.n_classes - 1
    assert not bool((answer.above & ~inside).any())
    assert not bool((answer.below & inside).any())
    assert int(answer.undecided.sum()) < len(pool)


@pytest.mark.slow
def test_one_output_may_be_a_number_and_the_other_a_grade():
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(0)).double()
    pool, strength, f = Pool(X), 3 * X[:, 0], 8 * X[:, 1] - 4
    goal = Above(1.5, epsilon=0.1) & Above(0.75, output=1)
    model = GaussianProcess(noise_std=(0.1, None), outcome=(None, LEARNT))
    strategy = Strategy(pool, goal, model=model, batch_size=20, max_observations=60)
    generator, state = torch.Generator().manual_seed(0), strategy.init(seed=0)
    while not state.is_done:
        rows = strategy.ask(state).order
        noise = 0.1 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
        y = torch.stack((strength[rows] + noise, graded(f[rows], generator)), dim=-1)
        state = strategy.tell(state, Observations(rows, y))
    answer, p = state.classification, TRUTH.value(f)
    assert not bool((answer.above & ((strength < 1.4) | (p < 0.75))).any())
    assert int(answer.below.sum()) > 5
    assert [float(level) for level in answer.outputs[1].levels] == pytest.approx([0.75])


def test_pictures_show_the_share_that_reached_the_grade():
    strategy = Strategy(line(), Above(0.75), model=GaussianProcess(outcome=LEARNT))
    told = Observations([0, 0, 5, 5], [0.0, 1.0, 1.0, 3.0])
    state = strategy.tell(strategy.init(seed=0), told)
    assert measured_values(state.measurements)["y"].tolist() == [0.0, 0.5]
    assert state.observations.y.tolist() == told.y.tolist()


def test_a_model_of_ones_own_needs_cutpoints():
    model = GaussianProcess(kernel(), outcome=LEARNT)
    with pytest.raises(ValueError, match="to have its `cutpoints` with a `model`"):
        Strategy(line(), Above(0.75), model=model)
    for model in (
        GaussianProcess(kernel(), outcome=TRUTH),
        GaussianProcess(outcome=LEARNT),
    ):
        Strategy(line(), Above(0.75), model=model)


@pytest.mark.some(0, slow=2)
@more_in_full("runs", 3, 30)
def test_grades_decide_more_than_their_sides_alone(runs):
    pool, errors = line(41), {"grades": 0.0, "sides": 0.0}
    f = 3 * (6 * pool.X[:, 0]).sin()
    p = TRUTH.value(f)
    for seed in range(runs):
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randint(len(pool), (80,), generator=generator)
        grades = graded(f[rows], generator)
        for name, outcome, y in (
            ("grades", LEARNT, grades),
            ("sides", Binary(), LEARNT.as_quantity(grades)),
        ):
            strategy = Strategy(
                pool, Above(0.5), model=GaussianProcess(outcome=outcome)
            )
            state = strategy.tell(strategy.init(seed=0), Observations(rows, y))
            off = (state.classification.mean - p).square().mean().sqrt()
            errors[name] += float(off) / runs
    assert errors["grades"] < errors["sides"]
