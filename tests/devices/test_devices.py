r"""Strategies compute elsewhere what they compute on the CPU."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.stats import norm
from torch import Tensor

from botorch_lse import History, Observations, Pool
from botorch_lse.models.fitted import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_single_task_gp,
)
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.kernels import LearntKernel, TanimotoKernel
from botorch_lse.papers import PALStrategy
from botorch_lse.rules import lookahead
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    AlternatingRules,
    Ambiguity,
    Below,
    Between,
    Binary,
    ContentVariance,
    ContourEntropy,
    Counts,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    GEGELinearStrategy,
    GEGEStrategy,
    HRAGELinearStrategy,
    HRAGEStrategy,
    Levels,
    LSEStrategy,
    MELKLinearStrategy,
    MinimumU,
    MisclassificationProbability,
    MutualInformation,
    OptimalDesign,
    Ordinal,
    ParetoByDifferences,
    Random,
    RandomizedStraddle,
    RanjanImprovement,
    ShareOfMax,
    State,
    Straddle,
    StraddleStrategy,
    Strategy,
    SwitchingRule,
    TargetedVariance,
    TruncatedVariance,
    TruVaRStrategy,
    UFunction,
    Variance,
    Width,
    extended,
)
from botorch_lse.surrogate import draws as content
from research.benchmark import speed_rows
from tests.covering import more_in_full
from tests.devices.conftest import Device
from tests.registry import BUDGETED, CONFIDENT, PLAYED, REHEARSED, StrategyCase
from tests.strategies import pareto_runs, runs
from tests.strategies.test_forecast import MEANS, confident

FIELDS = (*runs.FIELDS, "contradicted")
GP = GPPrior.from_kernel(runs.GP.kernel())
LINE = torch.linspace(0, 10, 21, dtype=torch.float64).unsqueeze(-1)
WAVES = torch.cat((LINE.sin(), (LINE / 2).cos()), dim=-1)
HALF = WAVES[::2]
RBF = RBFKernel().double()

pytestmark = [
    # GPyTorch's kernel of tasks multiplies by sparse matrices, of which torch warns.
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
]


# --- two runs side by side ------------------------------------------------------------

Values = Callable[[Tensor, State], Any]
r"""The values of a batch's rows in a state."""


def of_table(table: Tensor, std: float = 0.02) -> Values:
    def values(rows: Tensor, state: State) -> Tensor:
        generator = torch.Generator().manual_seed(state.round)
        shape = (len(rows), *table.shape[1:])
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        return table[rows] + std * noise

    return values


def assert_on_cpu(record: Any) -> None:
    for part in vars(record).values():
        assert not isinstance(part, Tensor) or part.device.type == "cpu"


def assert_alike(here: State, there: State, error: float | None = None) -> None:
    r"""The same answer, up to a share ``error``; default up to rounding."""
    a, b = here.classification, there.classification
    assert_on_cpu(b)
    alike = partial(torch.testing.assert_close, rtol=error, atol=error)
    for name in FIELDS:
        alike(getattr(b, name), getattr(a, name))
    for mine, other in zip(a.outputs, b.outputs, strict=True):
        assert_on_cpu(other)
        alike(other.mean, mine.mean)
        alike(other.levels, mine.levels)
    assert (a.classes is None) == (b.classes is None)
    assert a.classes is None or torch.equal(a.classes, b.classes)
    assert a.guarantee == b.guarantee
    assert a.pool is None or len(b.pool) == len(a.pool)
    assert there.stop_reason == here.stop_reason
    assert_on_cpu(there.observations)


def side_by_side(
    strategy: Strategy,
    device: Device,
    values: Values,
    rounds: int = 3,
    seed: int = 0,
    error: float | None = None,
) -> tuple[State, State]:
    r"""Runs on both devices, which ask for the same rows and give the same answers.

    Args:
        error: By which share answers may differ on a GPU, whose rounding ends the
            search for hyperparameters elsewhere on a flat likelihood; default: none.
    """
    error = error if device.name == "cuda" else None
    states, batches, told = [strategy.init(seed)], [], []
    while not states[-1].is_done and len(told) < rounds:
        batches.append(strategy.ask(states[-1]))
        told.append(values(batches[-1].order, states[-1]))
        states.append(strategy.tell(states[-1], batches[-1].observe(told[-1])))
    with device as place:
        other = replace(strategy, pool=strategy.pool.to(place))
        there = other.init(seed)
        assert_alike(states[0], there)
        for here, asked, y in zip(states[1:], batches, told, strict=True):
            batch = other.ask(there)
            assert torch.equal(asked.order, batch.order)
            assert batch.X.device == place
            torch.testing.assert_close(batch.X.cpu(), asked.X)
            # What a user's function gives lives where its points do.
            y = torch.as_tensor(y).to(place)
            there = other.tell(there, batch.observe(y))
            assert_alike(here, there, error)
    return states[-1], there


def assert_same_outlook(here: State, there: State, device: Device) -> None:
    r"""What may be asked in the middle of a run is the same."""
    strategy, other = here.strategy, there.strategy
    asked, room = strategy.ask(here), strategy.room(here)
    further, forecast = strategy.ask(here, asked.order).order, here.forecast()
    without = strategy.ask(strategy.exclude(here, asked.indices[:1])).order
    with device:
        assert torch.equal(other.ask(there, asked.order).order, further)
        assert other.room(there) == room
        assert there.forecast() == forecast
        excluded = other.exclude(there, asked.indices[:1])
        assert torch.equal(other.ask(excluded).order, without)


# --- every strategy -------------------------------------------------------------------


@pytest.mark.some(0, slow=15)
@pytest.mark.parametrize("case", PLAYED)
def test_every_strategy_asks_and_answers_alike(
    case: StrategyCase, device: Device
) -> None:
    strategy = runs.make(case, batch_size=2)
    values = runs.one_by_one(runs.measure)
    here, there = side_by_side(strategy, device, values)
    assert there.classification.pool is there.strategy.pool
    assert_same_outlook(here, there, device)


@pytest.mark.some(2)
@pytest.mark.parametrize("case", [*BUDGETED, *CONFIDENT, *REHEARSED])
def test_algorithms_of_the_papers_take_any_pool(
    case: StrategyCase, device: Device
) -> None:
    if case in REHEARSED:
        strategy, table = confident(case), MEANS
    else:
        X, table = pareto_runs.linear_problem()
        strategy = pareto_runs.make(case, X)
    side_by_side(strategy, device, of_table(table))


# --- models, goals and rules ----------------------------------------------------------


def given(**options: Any) -> GaussianProcess:
    return GaussianProcess(RBF, noise_std=0.1, **options)


def on_line(goal: Any = None, rule: Any = None, **options: Any) -> Strategy:
    r"""On a line, with a model that is given."""
    goal = Above(0.3) if goal is None else goal
    known = {"model": given(), "rule": rule, "beta": 4.0, "batch_size": 2}
    pool = options.pop("pool", None) or Pool(LINE)
    return Strategy(pool, goal, **{**known, **options})


RULES = [
    AbsoluteVolumeChange(),
    Ambiguity(),
    ContentVariance(),
    ContourEntropy(),
    OptimalDesign(),
    MisclassificationProbability(),
    ExpectedFeasibility(),
    ExpectedMisclassification(),
    ExpectedMisclassification(batch="joint"),
    SwitchingRule((Straddle(), ExpectedMisclassification())),
    MutualInformation(),
    Random(),
    RandomizedStraddle(),
    RanjanImprovement(),
    TargetedVariance(),
    TruncatedVariance(),
    AlternatingRules((Straddle(), Variance())),
    UFunction(),
    Variance(),
    Width(),
]


@pytest.mark.some(2)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_rules_choose_the_same_rows(rule: Any, device: Device) -> None:
    side_by_side(on_line(rule=rule), device, of_table(WAVES[:, 0]))


GOALS = {
    "band": Between(-0.5, 0.3),
    "levels": Levels((-0.5, 0.5)),
    "each row": Above(tuple((0.06 * LINE[::2, 0] - 0.3).tolist())),
    "tensor": Above(0.06 * LINE[::2, 0] - 0.3),
    "and": Above(0.3) & Above(-0.1, output=1),
    "or": Above(0.3) | Below(-0.4, output=1),
    "not": ~Above(0.3),
    "share": ShareOfMax(0.7),
    "Pareto": ParetoByDifferences((True, False), (0.1, 0.1)),
}


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("name", GOALS)
def test_goals_are_decided_alike(name: str, device: Device) -> None:
    goal = GOALS[name]
    table = HALF if goal.facts.n_outputs > 1 else HALF[:, 0]
    strategy = on_line(goal, pool=Pool(LINE[::2]))
    here, there = side_by_side(strategy, device, of_table(table), rounds=2)
    assert_same_outlook(here, there, device)
    if goal.facts.directions is not None:
        with device:
            estimate = there.strategy.estimate(there)
        assert_on_cpu(estimate)
        torch.testing.assert_close(estimate.margin, here.strategy.estimate(here).margin)


def fitted_model() -> SingleTaskGP:
    return fit_single_task_gp(LINE[::3], WAVES[::3, :1], None, LINE[[0, -1]])


def factory(train_X: Tensor, train_Y: Tensor, train_Yvar: Any) -> SingleTaskGP:
    return SingleTaskGP(
        train_X,
        train_Y,
        train_Yvar,
        input_transform=Normalize(train_X.shape[-1]),
        outcome_transform=Standardize(1),
    ).eval()


def correlated_factory(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Any
) -> MultiTaskGP:
    model = MultiTaskGP(train_X, train_Y, task_feature=-1, outcome_transform=None)
    for name, parameter in model.named_parameters():
        if name.endswith(
            ("covar_factor", "raw_var")
        ):  # drawn, by each device otherwise
            parameter.data.fill_(0.5)
    return model.eval()


def noisy_factory(train_X: Tensor, train_Y: Tensor, train_Yvar: Any) -> SingleTaskGP:
    noise = QuadraticNoise([[0.01]], bounds=(1e-4, 0.01))
    return HeteroscedasticGP(train_X, train_Y, noise, train_Yvar).eval()


LEARNT = {"max_observations": 60, "batch_size": 4}
MODELS: dict[str, Callable[[], Strategy]] = {
    "learnt": lambda: LSEStrategy(Pool(LINE), 0.3, n_initial=4, **LEARNT),
    "noise known": lambda: StraddleStrategy(
        Pool(LINE), 0.3, noise_std=0.1, n_initial=4, **LEARNT
    ),
    "fitted": lambda: LSEStrategy(Pool(LINE), 0.3, model=fitted_model()),
    "factory": lambda: LSEStrategy(
        Pool(LINE), 0.3, model=factory, n_initial=4, **LEARNT
    ),
    "history": lambda: LSEStrategy(
        Pool(LINE),
        0.3,
        n_initial=4,
        history=History(LINE[::4], WAVES[::4, 0]),
        **LEARNT,
    ),
    "given history": lambda: on_line(
        model=given(history=History(LINE[::4], WAVES[::4, 0]))
    ),
    "noise predicted": lambda: LSEStrategy(
        Pool(LINE / 10), 0.3, model=noisy_factory, n_initial=4, **LEARNT
    ),
    "kernel learnt": lambda: LSEStrategy(
        Pool(LINE),
        0.3,
        model=LearntKernel(ScaleKernel(RBFKernel())),
        n_initial=4,
        **LEARNT,
    ),
    "little memory": lambda: LSEStrategy(
        Pool(LINE), 0.3, model=RBF, noise_std=0.1, memory_budget=2_000, batch_size=3
    ),
    "norm": lambda: LSEStrategy(
        Pool(LINE), 0.3, model=RBF, noise_std=0.1, norm_bound=2.0
    ),
    "exact": lambda: LSEStrategy(Pool(LINE), 0.3, model=RBF, noise_std=0.0),
    "noise by row": lambda: LSEStrategy(
        Pool(LINE, noise_var=torch.linspace(0.01, 0.04, 21)), 0.3, model=RBF
    ),
    "weights": lambda: Strategy(
        Pool(LINE, weights=torch.linspace(1, 2, 21)),
        Above(0.3),
        model=given(),
        rule=ContentVariance(),
        beta=4.0,
    ),
    "targets": lambda: HRAGEStrategy(
        Pool(LINE), 0.3, model=RBF, noise_std=0.1, targets=Pool(LINE + 0.1)
    ),
    "maximiser": lambda: HRAGEStrategy(
        Pool(LINE), model=RBF, noise_std=0.1, batch_size=3
    ),
    "burn-in": lambda: HRAGEStrategy(
        Pool(LINE / 10),
        0.3,
        model=RBF,
        variance_bounds=(1e-4, 0.1),
        burn_in=16,
        batch_size=8,
    ),
    "noise levels": lambda: TruVaRStrategy(
        Pool(LINE).at_noise_levels((0.01, 0.04), (2.0, 1.0)), 0.3, model=RBF
    ),
    "audit": lambda: LSEStrategy(
        Pool(LINE),
        0.3,
        model=RBF,
        noise_std=0.1,
        epsilon=0.2,
        beta=1.0,
        audit=(0.3, 0.2),
        batch_size=5,
    ),
    "content": lambda: on_line(content_tol=0.05),
    "least doubt": lambda: on_line(rule=UFunction(), content_tol=MinimumU()),
    "linear burn-in": lambda: HRAGELinearStrategy(
        Pool(LINE / 10, features=torch.cat((LINE / 10, 1 - LINE / 10), dim=-1)),
        0.3,
        variance_bounds=(1e-4, 0.1),
        burn_in=16,
        batch_size=8,
    ),
    "linear gaps": lambda: MELKLinearStrategy(
        Pool(LINE / 10, features=torch.cat((LINE / 10, 1 - LINE / 10), dim=-1)),
        0.3,
        noise_std=0.5,
        design="gaps",
        audit=(0.3, 0.2),
        batch_size=8,
    ),
}
TWO: dict[str, Callable[[], Strategy]] = {
    "GEGE": lambda: GEGEStrategy(
        Pool(LINE),
        maximize=(True, False),
        model=(RBF, RBF),
        noise_std=0.1,
        batch_size=3,
    ),
    "GEGE learnt": lambda: GEGEStrategy(
        Pool(LINE), maximize=(True, False), n_initial=4, **LEARNT
    ),
    "GEGE audited": lambda: GEGEStrategy(
        Pool(LINE),
        maximize=(True, True),
        model=(RBF, RBF),
        noise_std=0.1,
        epsilon=0.5,
        beta=1.0,
        audit=(0.3, 0.2),
        batch_size=5,
    ),
    "PAL": lambda: PALStrategy(
        Pool(LINE), maximize=(True, False), model=(RBF, RBF), noise_std=0.1
    ),
    "linear": lambda: GEGELinearStrategy(
        Pool(LINE, features=torch.cat((LINE / 10, 1 - LINE / 10), dim=-1)),
        maximize=(True, False),
        noise_std=0.1,
        batch_size=4,
    ),
    "correlated": lambda: Strategy(
        Pool(LINE),
        Above(0.3) & Above(-0.1, output=1),
        model=GaussianProcess(correlated_factory, n_initial=4, correlated=True),
        rule=Straddle(),
        **LEARNT,
    ),
    "region audited": lambda: on_line(
        Above(0.3, epsilon=0.3) & Above(-0.1, epsilon=0.3, output=1),
        beta=1.0,
        audit=(0.3, 0.2),
        batch_size=5,
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", [*MODELS, *TWO])
def test_models_are_learnt_and_used_alike(name: str, device: Device) -> None:
    strategy = {**MODELS, **TWO}[name]()
    table = WAVES if name in TWO else WAVES[:, 0]
    if len(strategy.pool) > len(table):
        table = table.repeat(2)
    rounds = 2 if strategy.batch_size == LEARNT["batch_size"] else 5
    _, there = side_by_side(strategy, device, of_table(table), rounds)
    if strategy.can_predict:
        assert there.belief.fits.is_informed


@pytest.mark.slow
def test_rows_that_measure_one_output_are_chosen_alike(device: Device) -> None:
    pool = Pool(LINE).at_outputs(2, costs=(1.0, 3.0))
    region = Above(0.3) & Above(-0.1, output=1)
    strategy = Strategy(pool, region, model=given(), beta=4.0, batch_size=3)
    here, there = side_by_side(strategy, device, of_table(WAVES.T.reshape(-1)))
    assert_same_outlook(here, there, device)


@more_in_full("rounds", 1, 3)
def test_words_are_learnt_alike(rounds: int, device: Device) -> None:
    words = torch.eye(3, dtype=torch.float64).repeat(7, 1)
    pool = Pool(torch.cat((LINE, words), dim=-1), names=("x", "s=a", "s=b", "s=c"))
    strategy = LSEStrategy(pool, 0.3, n_initial=8, **LEARNT)
    side_by_side(strategy, device, of_table(WAVES[:, 0]), rounds, error=1e-2)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_correlated_outputs_are_learnt_alike(device: Device) -> None:
    strategy = replace(
        TWO["correlated"](), model=GaussianProcess(correlated=True, n_initial=4)
    )
    side_by_side(strategy, device, of_table(WAVES), error=1e-2)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("given", [False, True], ids=["learnt", "given"])
def test_answers_of_yes_and_no_are_learnt_alike(given: bool, device: Device) -> None:
    kernel = ScaleKernel(RBFKernel()).double() if given else None
    model = GaussianProcess(kernel, outcome=Binary(guess=0.1), n_initial=8)
    strategy = Strategy(Pool(LINE), Above(0.6), model=model, batch_size=4)
    answers = (WAVES[:, 0] > WAVES[:, 0].median()).double()
    side_by_side(strategy, device, of_table(answers, 0.0), error=1e-2)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("given", [False, True], ids=["learnt", "given"])
def test_grades_are_learnt_alike(given: bool, device: Device) -> None:
    kernel = ScaleKernel(RBFKernel()).double() if given else None
    outcome = Ordinal(3, at_least=1, cutpoints=(-0.5, 0.5) if given else None)
    model = GaussianProcess(kernel, outcome=outcome, n_initial=8)
    strategy = Strategy(Pool(LINE), Above(0.6), model=model, batch_size=4)
    third, value = len(LINE) // 3, WAVES[:, 0]
    grades = sum((value > value.sort().values[k * third]).double() for k in (1, 2))
    side_by_side(strategy, device, of_table(grades, 0.0), error=1e-2)


@pytest.mark.parametrize(
    "outcome",
    [Binary(guess=0.1), Ordinal(3, at_least=1, cutpoints=(-0.5, 0.5)), Counts()],
    ids=["answers", "grades", "counts"],
)
def test_exact_scores_of_results_are_alike(outcome: Any, device: Device) -> None:
    kernel = ScaleKernel(RBFKernel()).double()
    model = GaussianProcess(kernel, outcome=outcome, n_initial=8)
    rule = AbsoluteVolumeChange(exact=True)
    strategy = Strategy(Pool(LINE), Above(0.6), model=model, rule=rule, batch_size=4)
    results = (WAVES[:, 0] > WAVES[:, 0].median()).double()
    side_by_side(strategy, device, of_table(results, 0.0), error=1e-2)


@pytest.mark.slow
def test_kernels_of_bits_are_used_alike(device: Device) -> None:
    bits = torch.rand(21, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    kernel = ScaleKernel(TanimotoKernel()).double()
    model = GaussianProcess(kernel, noise_std=0.1)
    strategy = Strategy(Pool(bits.double()), Above(0.3), model=model, batch_size=3)
    side_by_side(strategy, device, of_table(WAVES[:, 0]))


def test_pools_that_grow_do_so_alike(device: Device) -> None:
    pool = Pool.from_distribution([norm()] * 2, 64, method="monte_carlo")
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 5.0, 25.0
    strategy = Strategy(
        pool,
        Above(0.0),
        model=GaussianProcess(kernel, noise_std=0.0),
        rule=Straddle(),
        beta=4.0,
    )

    def values(rows: Tensor, state: State) -> Tensor:
        return state.strategy.pool.X[rows].sum(dim=-1) - 4.0

    here, there = side_by_side(strategy, device, values)
    grown = extended(here, 64)
    with device as place:
        other = extended(there, 64)
        assert torch.equal(grown.strategy.pool.X, other.strategy.pool.X)
        assert other.strategy.pool.device == place
        assert_alike(grown, other)


def test_large_pools_are_drawn_from_alike(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST_EXACT", "MOST_DRAWN"):
        monkeypatch.setattr(content, name, 6)
    monkeypatch.setattr(content, "PIVOTS", 3)
    here, there = side_by_side(on_line(), device, of_table(WAVES[:, 0]))
    with device:
        assert str(there.content()) == str(here.content())
        assert torch.equal(there.conservative(0.8), here.conservative(0.8))


@pytest.mark.slow
def test_maximisers_costs_and_noise_come_back(device: Device) -> None:
    pool = Pool(LINE, costs=torch.linspace(1, 2, 21))
    strategy = TruVaRStrategy(pool, model=RBF, noise_std=0.1)
    here, there = side_by_side(strategy, device, of_table(WAVES[:, 0]))
    with device:
        assert there.strategy.recommend(there) == here.strategy.recommend(here)
        assert there.strategy.spent(there) == here.strategy.spent(here)
    here, there = side_by_side(
        MODELS["burn-in"](), device, of_table(WAVES[:, 0]), rounds=3
    )
    with device:
        found = there.strategy.variances(there)
        assert found.device.type == "cpu"
        torch.testing.assert_close(found, here.strategy.variances(here))


# --- what a state answers -------------------------------------------------------------


@pytest.fixture
def pair(device: Device) -> tuple[State, State]:
    return side_by_side(on_line(), device, of_table(WAVES[:, 0]))


@pytest.mark.slow
def test_questions_to_a_state_have_the_same_answers(
    pair: tuple[State, State], device: Device
) -> None:
    here, there = pair
    X = torch.tensor([[0.05], [3.3]], dtype=torch.float64)
    data = here.history.select(torch.arange(3))

    def answers(state: State) -> list[Any]:
        cautious = state.conservative(0.8), state.classification.conservative()
        middle, error = state.classification.vorobev()
        predicted = *state.predict(X), *state.predict(X, data=data)
        return [*cautious, middle, error, *predicted]

    expected, words = answers(here), (str(here.content()), str(here.calibration()))
    with device as place:
        torch.testing.assert_close(answers(there), expected)
        assert (str(there.content()), str(there.calibration())) == words
        # Points may be on the device, and what is said of them comes back.
        torch.testing.assert_close(there.predict(X.to(place)), here.predict(X))
    frames = [state.classification.to_frame() for state in pair]
    pd.testing.assert_frame_equal(frames[1], frames[0])


@pytest.mark.slow
def test_a_replay_gives_the_same_state(
    pair: tuple[State, State], device: Device
) -> None:
    _, there = pair
    with device:
        assert_alike(there.strategy.replay(there.observations), there)


@pytest.mark.slow
def test_results_may_be_told_in_parts_from_the_device(
    pair: tuple[State, State], device: Device
) -> None:
    _, there = pair
    strategy = there.strategy
    with device as place:
        batch = strategy.ask(there)
        once = strategy.tell(there, batch.observe(WAVES[batch.order, 0]))
        for row in batch.order:
            y = WAVES[row, 0].view(1)
            told = Observations(row.view(1).to(place), y.to(place))
            there = strategy.tell(there, told)
        assert_alike(once, there)


def test_given_models_stay_where_they_are(device: Device) -> None:
    kernel = ScaleKernel(RBFKernel()).double()
    with device as place:
        pool = Pool(LINE, device=place)
        strategy = LSEStrategy(pool, 0.3, model=kernel, noise_std=0.1)
        strategy.ask(strategy.init())
    assert all(p.device.type == "cpu" for p in kernel.parameters())


def test_models_may_live_on_the_device(device: Device) -> None:
    model = fitted_model()
    strategy = on_line(model=GaussianProcess(model))
    here = strategy.init()
    with device as place:
        there = replace(
            strategy,
            pool=Pool(LINE, device=place),
            model=GaussianProcess(model.to(place)),
        )
        assert_alike(here, there.init())


def test_states_on_the_device_can_be_pickled_where_it_is_real(device: Device) -> None:
    if device.name == "pretended":
        pytest.skip("pretended tensors cannot be pickled")
    strategy = on_line(pool=Pool(LINE, device=device.name))
    state = strategy.init()
    again = pickle.loads(pickle.dumps(state))
    assert_alike(state, again.strategy.tell(again, None))


def test_states_of_another_device_are_refused(
    pair: tuple[State, State], device: Device
) -> None:
    here, there = pair
    with device, pytest.raises(ValueError, match=r"the pool on \S+, not \S+\. Go on"):
        here.strategy.ask(there)
    with device, pytest.raises(ValueError, match=r"the pool on cpu, not "):
        there.strategy.ask(here)


def test_costs_are_asked_with_rows_of_the_cpu(device: Device) -> None:
    distances = (LINE - LINE.T).abs() + 1.0

    def cost(previous: int | None, rows: Tensor) -> Tensor:
        return distances[0 if previous is None else previous][rows]

    strategy = TruVaRStrategy(
        Pool(LINE), 0.3, model=RBF, noise_std=0.1, cost=cost, batch_size=2
    )
    side_by_side(strategy, device, of_table(WAVES[:, 0]))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "rule",
    [ExpectedMisclassification(), TargetedVariance(), AbsoluteVolumeChange()],
)
def test_choices_from_a_sample_are_alike(
    rule: Any, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"ALL_PAIRS": 0, "SAMPLE": 6, "SHORTLIST": 4, "FINE": 8, "FINALISTS": 3}
    for name, value in {**values, "MOST_ROWS": 8}.items():
        monkeypatch.setattr(lookahead, name, value)
    side_by_side(on_line(rule=rule), device, of_table(WAVES[:, 0]))


def test_a_decision_is_timed_on_a_device(device: Device) -> None:
    with device as place:
        growth = speed_rows.decide(60, 10, 3, 2**30, str(place))
    assert min(growth.start, growth.decision, growth.one, growth.bare) > 0
