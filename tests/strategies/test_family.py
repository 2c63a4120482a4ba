r"""The default model of numbers: a sum of functions, or one function of all inputs."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse import Above, Below, GaussianProcess, History, Pool, Strategy
from botorch_lse.confidence import UnionBeta
from botorch_lse.models import fit_additive_gp, fit_single_task_gp
from botorch_lse.strategies import LSEStrategy, ShareOfMax, State, Straddle


def rows(n: int, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(d)
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


def added(X: Tensor) -> Tensor:
    return (6 * X).sin().sum(dim=-1)


def test_a_sum_of_functions_is_found_from_few_values() -> None:
    X, new = rows(60, 6), rows(500, 6)
    bounds = torch.tensor([[0.0], [1.0]]).double().expand(2, 6)
    errors = []
    for fit in (fit_additive_gp, fit_single_task_gp):
        model = fit(X, added(X).unsqueeze(-1), None, bounds)
        with torch.no_grad():
            mean = model.posterior(new).mean.squeeze(-1)
        errors.append(float((mean - added(new)).square().mean()))
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.some(1)
@pytest.mark.parametrize("d", [1, 21])
def test_of_one_input_or_many_both_families_are_the_same(d: int) -> None:
    bounds = torch.tensor([[0.0], [1.0]]).double().expand(2, d)
    X = rows(25, d)
    fits = [f(X, added(X).unsqueeze(-1), None, bounds)
            for f in (fit_additive_gp, fit_single_task_gp)]  # fmt: skip
    one, other = (fit.posterior(X).mean for fit in fits)
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("family", ["additive", "single"])
def test_a_strategy_fits_the_family_it_was_given(family: str) -> None:
    pool, old = Pool(rows(50, 3)), rows(20, 3)
    model = GaussianProcess(
        family=family,
        noise_std=0.01,
        level_z=None,
        history=History(old, added(old), torch.full((20,), 1e-4)),
    )
    strategy = Strategy(pool, Above(1.0), model=model, batch_size=4)
    state = strategy.init()
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(added(pool.X[batch.order])))
    X = torch.cat((old, pool.X[state.observations.indices]))
    noise = torch.full((24, 1), 1e-4, dtype=torch.float64)
    fit = fit_additive_gp if family == "additive" else fit_single_task_gp
    found = fit(X, added(X).unsqueeze(-1), noise, pool.bounds)
    with torch.no_grad():
        mean = found.posterior(pool.X).mean.squeeze(-1)
    torch.testing.assert_close(state.classification.mean, mean, rtol=0, atol=1e-5)


def test_a_family_that_is_not_known_or_not_needed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`family`.*additive.*single.*'both'"):
        GaussianProcess(family="both")
    with pytest.raises(ValueError, match="Expected no `family` with a `model`"):
        GaussianProcess(RBFKernel(), family="single")
    assert GaussianProcess(RBFKernel()).model is not None  # left out


# --- the width that decides -------------------------------------------------------


def after(strategy: Strategy, n: int) -> State:
    state = strategy.init()
    while len(state.observations) < n:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(added(strategy.pool.X[batch.order])))
    return state


def test_a_fitted_model_decides_at_four_standard_deviations() -> None:
    model = GaussianProcess(noise_std=0.01)
    state = after(
        Strategy(Pool(rows(50, 2)), Above(1.0), model=model, batch_size=5), 25
    )
    answer = state.classification
    half = (answer.upper - answer.lower) / 2
    torch.testing.assert_close(half, 4 * answer.sigma)
    assert torch.equal(answer.above, answer.lower >= 1.0)
    assert "rows are decided at 4 of its standard deviations" in answer.guarantee
    assert "delta is ignored" in answer.guarantee


@pytest.mark.parametrize(
    ("goal", "model", "options", "words"),
    [
        (Above(1.0), GaussianProcess(RBFKernel(), noise_std=0.1), {}, "probability"),
        (Above(1.0), GaussianProcess(), {"beta": 4.0}, "the width is given"),
        (Above(1.0), GaussianProcess(), {"rule": Straddle()}, "the rule's own"),
        (ShareOfMax(0.6), GaussianProcess(), {}, "With probability 0.95"),
        (Above(1.0) & Below(2.0), GaussianProcess(), {}, "4 of its standard"),
    ],
)
def test_other_widths_are_what_they_were(goal, model, options, words: str) -> None:
    strategy = Strategy(Pool(rows(50, 2)), goal, model=model, **options)
    assert words in strategy.init().classification.guarantee


def test_strategies_named_after_a_paper_keep_its_width() -> None:
    strategy = LSEStrategy(Pool(rows(50, 2)), threshold=1.0)
    assert strategy.algorithm.widths == UnionBeta(50, 0.05)
    assert strategy.guarantee.startswith("With probability 0.95")
