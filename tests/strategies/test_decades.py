r"""Numbers over decades: a run told numbers equals one told their logarithms.

``GaussianProcess(outcome=LogNormal())`` keeps levels, values and answers in their
units. The reference is the same run in which a person takes all logarithms.
"""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.data.observations import History, Observations
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    Binary,
    ContentKnown,
    GaussianProcess,
    Levels,
    LogNormal,
    ShareOfMax,
    Strategy,
)

LEVEL = 20.0
close = partial(torch.testing.assert_close, rtol=1e-3, atol=1e-3)


def field(X: torch.Tensor) -> torch.Tensor:
    r"""A plume over three decades."""
    return 6.9 * (-8 * (X - 0.4).square().sum(dim=-1)).exp() - 0.5


def pool_of(n: int = 8) -> Pool:
    t = torch.linspace(0, 1, n, dtype=torch.float64)
    return Pool(torch.cartesian_prod(t, t))


def noise_of(n: int, round_: int, std: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(round_)
    return std * torch.randn(n, generator=generator, dtype=torch.float64)


def played(strategy, std: float, rounds: int, told: bool = False):
    r"""The state after some rounds of numbers."""
    state = strategy.init(seed=0)
    for i in range(rounds):
        if state.is_done:
            break
        batch = strategy.ask(state)
        f = field(strategy.pool.X[batch.order])
        y = (f + noise_of(len(f), i, std)).exp()
        yvar = std**2 * y.square() if told else None
        state = strategy.tell(state, Observations(batch.order, y, yvar))
    return state


def pair(log_goal, goal, n_rounds=6, std=0.05, told=False, model=None, **parts):
    r"""A run, and the state of one that was told the logarithms of its values.

    It is told the same rows: where scores tie, rounding may choose between them.
    """
    log_model, own = {}, {"outcome": LogNormal()}
    for name, value in (model or {}).items():
        log_model[name], own[name] = (value, value)
        if isinstance(value, tuple):
            log_model[name], own[name] = value
    strategy = Strategy(pool_of(), goal, model=GaussianProcess(**own), **parts)
    state = played(strategy, std, n_rounds, told)
    log_model = GaussianProcess(**log_model)
    reference = Strategy(pool_of(), log_goal, model=log_model, **parts)
    found = state.observations
    yvar = None if found.yvar is None else found.yvar / found.y.square()
    logs = replace(found, y=found.y.log(), yvar=yvar)
    return reference.replay(logs, state.seed), state


def check_same(logs, state) -> None:
    reference, found = logs.classification, state.classification
    assert torch.equal(reference.above, found.above)
    assert torch.equal(reference.below, found.below)
    close(found.lower, reference.lower.exp())
    close(found.upper, reference.upper.exp())
    close(found.mean, reference.mean.exp())
    close(found.probability_above, reference.probability_above)
    assert torch.equal(reference.contradicted, found.contradicted)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("noise", ["learnt", "share", "told"])
def test_a_run_equals_one_that_is_told_logarithms(noise: str, batch: int) -> None:
    model = {"noise_std": 0.05} if noise == "share" else None
    logs, state = pair(
        Above(math.log(LEVEL)),
        Above(LEVEL),
        n_rounds=40 // batch,
        told=noise == "told",
        model=model,
        batch_size=batch,
    )
    assert state.classification.above.any()
    assert state.classification.below.any()
    check_same(logs, state)
    forecasts = [s.forecast().observations for s in (logs, state)]
    assert forecasts[0] == forecasts[1]
    mean, sigma = state.predict(state.strategy.pool.X[:3])
    log_mean, log_sigma = logs.predict(state.strategy.pool.X[:3])
    torch.testing.assert_close(mean, log_mean.exp(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(sigma, mean * log_sigma.expm1(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "asked",
    [
        (lambda level, least: Above(level(LEVEL), epsilon=least or 4.0)),
        (lambda level, least: Above(level(LEVEL))),
        (lambda level, least: Between(level(5.0), level(100.0), epsilon=least or 4.0)),
    ],
)
def test_an_audited_run_ends_as_with_logarithms(asked) -> None:
    # Of both levels of the band, and so of neither, 4 are the least share at 100.
    level = 100.0 if asked(float, None).facts.level is None else LEVEL
    logs, state = pair(
        asked(math.log, math.log(1 + 4 / level)),
        asked(float, None),
        n_rounds=60,
        model={"noise_std": 0.05},
        batch_size=8,
        audit=(0.2, 0.2),
    )
    assert state.stop_reason == logs.stop_reason == "audited"
    reference, found = logs.classification, state.classification
    for own in (reference, found):
        assert not own.contradicted.any()
        assert "rule out" not in own.guarantee
    assert torch.equal(reference.above, found.above)
    has_accuracy = "by more than" in reference.guarantee
    assert ("wrong by more than epsilon (" in found.guarantee) == has_accuracy


def test_accuracies_are_said_in_the_units_of_the_level() -> None:
    kernel = ScaleKernel(RBFKernel()).double()
    for outcome, level in ((LogNormal(), LEVEL), (Binary(), 0.5)):
        noise = 0.05 if isinstance(outcome, LogNormal) else None
        model = GaussianProcess(kernel, outcome=outcome, noise_std=noise)
        strategy = Strategy(pool_of(), Above(level, epsilon=0.125), model=model)
        state = strategy.tell(strategy.init(0), Observations([0, 9], [1.0, 1.0]))
        assert "right up to epsilon = 0.125" in state.classification.guarantee


@pytest.mark.slow
def test_learnt_noise_is_audited_as_with_logarithms() -> None:
    logs, state = pair(
        Above(math.log(LEVEL)),
        Above(LEVEL),
        n_rounds=60,
        batch_size=8,
        audit=(0.2, 0.2),
    )
    assert state.stop_reason == logs.stop_reason == "audited"


def test_accuracies_are_those_of_the_level_in_its_units() -> None:
    epsilon = 5.0
    least = math.log((LEVEL + epsilon) / LEVEL)  # the smaller half
    logs, state = pair(
        Above(math.log(LEVEL), epsilon=least),
        Above(LEVEL, epsilon=epsilon),
        batch_size=8,
        model={"noise_std": 0.05},
    )
    check_same(logs, state)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    "asked",
    [
        (lambda level: Below(level(LEVEL))),
        (lambda level: Between(level(5.0), level(100.0))),
        (lambda level: Levels([level(5.0), level(100.0)])),
    ],
)
def test_regions_of_one_output(asked) -> None:
    goals = asked(math.log), asked(float)
    logs, state = pair(*goals, batch_size=8, model={"noise_std": 0.05})
    assert torch.equal(logs.classification.above, state.classification.above)
    assert torch.equal(logs.classification.below, state.classification.below)
    (found,), (reference,) = state.classification.outputs, logs.classification.outputs
    close(found.lower, reference.lower.exp())
    for own, log in zip(found.levels, reference.levels, strict=True):
        torch.testing.assert_close(own, log.exp())


@pytest.mark.slow
def test_old_values_count_as_their_logarithms_do() -> None:
    X = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)).double()
    f = field(X) + noise_of(12, 99, 0.05)
    pasts = History(X, f), History(X, f.exp())
    logs, state = pair(
        Above(math.log(LEVEL)), Above(LEVEL), model={"history": pasts}, batch_size=4
    )
    check_same(logs, state)
    known = torch.full_like(f, 0.05**2)
    pasts = History(X, f, known), History(X, f.exp(), known * f.exp().square())
    model = {"history": pasts, "noise_std": 0.05}
    check_same(*pair(Above(math.log(LEVEL)), Above(LEVEL), model=model, batch_size=4))


@pytest.mark.slow
def test_a_number_beside_a_plain_one_and_an_answer() -> None:
    r"""Each output has its own outcome; the region is one of all."""
    pool = pool_of()
    model = GaussianProcess(outcome=(LogNormal(), None, Binary()))
    goal = Above(LEVEL) & Above(0.2, output=1) & Above(0.5, output=2)
    strategy = Strategy(pool, goal, model=model, batch_size=8)
    state = strategy.init()
    generator = torch.Generator().manual_seed(0)
    for i in range(7):
        batch = strategy.ask(state)
        X = pool.X[batch.order]
        share = torch.rand(len(X), generator=generator, dtype=torch.float64)
        y = torch.stack(
            [
                (field(X) + noise_of(len(X), i, 0.05)).exp(),
                X[:, 0] + noise_of(len(X), i + 50, 0.02),
                (share < X[:, 1]).double(),
            ],
            dim=-1,
        )
        state = strategy.tell(state, Observations(batch.order, y))
    first, second, third = state.classification.outputs
    assert float(first.levels[0].max()) == pytest.approx(LEVEL)
    assert float(first.mean.min()) > 0
    assert float(first.mean.max()) > LEVEL
    assert float(second.levels[0].max()) == 0.2
    assert float(third.lower.min()) >= 0
    assert float(third.upper.max()) <= 1


@pytest.mark.exhaustive
@pytest.mark.slow
def test_correlated_outputs_may_be_logarithms() -> None:
    pool, rows = pool_of(6), torch.arange(0, 36, 2)
    f = field(pool.X[rows])
    y = torch.stack([f, 0.5 * f], dim=-1) + noise_of(36, 0, 0.05).view(-1, 2)
    told = Observations(rows, y.exp(), round=torch.zeros(18, dtype=torch.long))
    found = []
    for level, outcome in ((float, None), (math.exp, LogNormal())):
        goal = Above(level(3.0)) & Above(level(2.0), output=1)
        model = GaussianProcess(correlated=True, outcome=outcome)
        strategy = Strategy(pool, goal, model=model, batch_size=18)
        own = told if outcome else replace(told, y=y)
        found.append(strategy.replay(own, 0).classification.outputs)
    for log, own in zip(*found, strict=True):
        torch.testing.assert_close(own.lower, log.lower.exp(), rtol=0.02, atol=0.02)


def test_limits_of_values_are_logarithms_too() -> None:
    rows = torch.tensor([3, 9])
    logs, state = pair(
        Above(math.log(LEVEL)), Above(LEVEL), batch_size=8, model={"noise_std": 0.05}
    )
    sign = torch.ones(2, dtype=torch.float64)
    means = []
    for one, limits in (
        (logs, torch.tensor([0.0, 1.0])),
        (state, torch.tensor([1, math.e])),
    ):
        algorithm = one.strategy.algorithm
        belief = algorithm.knowing_limits(one.run.belief, rows, limits.double(), sign)
        means.append(belief.posterior.mean)
    close(*means)


@pytest.mark.slow
def test_a_resumed_run_is_the_run() -> None:
    _, state = pair(Above(math.log(LEVEL)), Above(LEVEL), batch_size=8)
    again = state.strategy.replay(state.observations, state.seed)
    assert torch.equal(again.classification.lower, state.classification.lower)
    # Told values stay as they are.
    rows = state.observations.indices
    assert (
        float((state.observations.y.log() - field(pool_of().X[rows])).abs().max()) < 0.3
    )


@pytest.mark.slow
def test_residuals_are_on_the_scale_and_predictions_in_units() -> None:
    logs, state = pair(Above(math.log(LEVEL)), Above(LEVEL), batch_size=8)
    reference, found = logs.calibration(), state.calibration()
    close(found.out, reference.out)
    close(found.predicted, reference.predicted.exp())


@pytest.mark.slow
def test_a_slip_is_found_and_named_as_a_logarithm() -> None:
    pool = pool_of(10)
    strategy = Strategy(
        pool, Above(LEVEL), model=GaussianProcess(outcome=LogNormal()), batch_size=10
    )
    state = strategy.init()
    for i in range(5):
        batch = strategy.ask(state)
        f = field(pool.X[batch.order]) + noise_of(len(batch.order), i, 0.05)
        y = f.exp()
        if i == 3:
            y[0] *= 1e4
        state = strategy.tell(state, Observations(batch.order, y))
    (slip,) = [remark for remark in state.remarks if remark.kind == "slip"]
    assert "0.1 is about 10 %" in slip.text


def test_numbers_over_decades_are_asked_about_and_the_remedy_works() -> None:
    pool = pool_of()
    for outcome in (None, LogNormal()):
        model = GaussianProcess(outcome=outcome)
        strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=30)
        state = strategy.init()
        batch = strategy.ask(state)
        y = field(pool.X[batch.order]).exp()
        state = strategy.tell(state, Observations(batch.order, y))
        texts = {remark.kind: remark.text for remark in state.remarks}
        asks = "outcome=LogNormal()" in texts.get("decades", "")
        assert asks == (outcome is None)


@pytest.mark.slow
def test_a_share_is_known_as_with_logarithms() -> None:
    logs, state = pair(
        Above(math.log(LEVEL)),
        Above(LEVEL),
        n_rounds=20,
        batch_size=8,
        content_tol=ContentKnown(0.2),
        model={"noise_std": 0.05},
    )
    assert logs.stop_reason == state.stop_reason
    assert logs.content() == state.content()


def test_what_has_no_logarithm_is_refused() -> None:
    model = GaussianProcess(outcome=LogNormal())
    strategy = Strategy(pool_of(), Above(LEVEL), model=model)
    state = strategy.init()
    rows = strategy.ask(state).order
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match=r"`y` to be above 0.*half of the limit"):
            strategy.tell(state, Observations(rows, torch.full((len(rows),), wrong)))
    # The remedy: half of a limit of 2.
    strategy.tell(state, Observations(rows, torch.ones(len(rows))))
    with pytest.raises(ValueError, match=r"`threshold` to be above 0.*Leave `outcome`"):
        Strategy(pool_of(), Above(0.0), model=model).init()
    Strategy(pool_of(), Above(0.0)).init()
    past = History(torch.zeros(1, 2), [-2.0])
    model = GaussianProcess(outcome=LogNormal(), history=past)
    with pytest.raises(ValueError, match="above 0"):
        Strategy(pool_of(), Above(LEVEL), model=model)


def test_variances_of_rows_are_refused_as_they_are_no_shares() -> None:
    pool = Pool(pool_of().X, noise_var=torch.full((64,), 0.01))
    model = GaussianProcess(outcome=LogNormal())
    with pytest.raises(ValueError, match=r"`noise_var` to be left out.*a share"):
        Strategy(pool, Above(LEVEL), model=model).init()
    Strategy(
        pool_of(),
        Above(LEVEL),
        model=GaussianProcess(outcome=LogNormal(), noise_std=0.1),
    ).init()


def test_a_mean_that_rises_is_for_results() -> None:
    with pytest.raises(ValueError, match="`increasing` to be left out"):
        GaussianProcess(outcome=LogNormal(), increasing=(0,))


def test_goals_that_compare_rows_need_the_values_themselves() -> None:
    model = GaussianProcess(outcome=LogNormal())
    with pytest.raises(UnsupportedError, match="with levels"):
        Strategy(pool_of(), ShareOfMax(0.5), model=model).init()
