from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import pytest
import scipy
import torch
from gpytorch.models import ExactGP

from botorch_lse.models import marginal
from botorch_lse.models.fitted import (
    fit_mixed_gp,
    fit_multi_task_gp,
    fit_single_task_gp,
)
from botorch_lse.models.latent import fit_latent_gp
from botorch_lse.models.memory import FitMemory, remembering
from botorch_lse.models.outcomes import Binary, Counts, Ordinal

X = torch.linspace(0, 1, 7).double().unsqueeze(-1)
Y = (6 * X).sin()
BOUNDS = torch.tensor([[0.0], [1.0]]).double()
NOISE = torch.full_like(Y, 0.01)
WORD = (torch.arange(7) % 2).double().unsqueeze(-1)
MIXED = torch.cat((X, WORD, 1 - WORD), dim=-1)
CUBE = torch.tensor([[0.0] * 3, [1.0] * 3]).double()
CASES = {
    "learnt noise": partial(fit_single_task_gp, X, Y, None, BOUNDS),
    "known noise": partial(fit_single_task_gp, X, Y, NOISE, BOUNDS),
    "words": partial(fit_mixed_gp, MIXED, Y, None, CUBE, {1: 2}),
    "outputs": partial(fit_multi_task_gp, torch.cat((X, WORD), -1), Y, None, BOUNDS),
}


@pytest.fixture
def made(monkeypatch) -> list[ExactGP]:
    r"""The models that were fitted, not looked up."""
    given, found = marginal.fit_likelihood, []

    def fit(mll):
        found.append(mll.model)
        return given(mll)

    monkeypatch.setattr(marginal, "fit_likelihood", fit)
    return found


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("name", CASES)
def test_a_remembered_fit_is_the_same_to_the_last_bit(name, made) -> None:
    first, points = FitMemory(), X if name.endswith("noise") else MIXED
    if name == "outputs":
        points = torch.cat((X, WORD), dim=-1)
    torch.manual_seed(0)  # as each fit of a run has it: task kernels are drawn
    with remembering(first):
        model = CASES[name]()
    n = len(made)
    assert n == len(first.used) > 0
    # As a file, or an experiment, has it.
    again = FitMemory(json.loads(json.dumps(first.used)))
    torch.manual_seed(0)
    with remembering(again):
        other = CASES[name]()
    assert len(made) == n
    assert again.used == first.used
    for (key, one), two in zip(
        model.state_dict().items(), other.state_dict().values(), strict=True
    ):
        assert torch.equal(one, two), key
    one, two = model.posterior(points), other.posterior(points)
    assert torch.equal(one.mean, two.mean)
    assert torch.equal(one.variance, two.variance)
    CASES[name]()  # outside of the context nothing is looked up
    assert len(made) == 2 * n


def test_another_question_is_fitted(made) -> None:
    memory = FitMemory()
    with remembering(memory):
        fit_single_task_gp(X, Y, NOISE, BOUNDS)
        fit_single_task_gp(X, Y + 0.1 * X, NOISE, BOUNDS)
        fit_single_task_gp(X, Y, 2 * NOISE, BOUNDS)
        fit_single_task_gp(X, Y, NOISE, 2 * BOUNDS)
        torch.manual_seed(1)  # from which a fit that fails would begin again
        fit_single_task_gp(X, Y, NOISE, BOUNDS)
    assert len(made) == len(memory.used) == 5


@pytest.mark.parametrize("found", [None, 3, [], {"a": 1}, {"a": [0.0, 1.0]}])
def test_what_is_no_memory_is_forgotten(found) -> None:
    assert FitMemory(found).known == {}


def test_a_fit_of_another_form_is_made_again(made) -> None:
    memory = FitMemory()
    with remembering(memory):
        fit_single_task_gp(X, Y, NOISE, BOUNDS)
        (key,) = memory.used
        wrong = FitMemory({key: [0.0, [1.0, 2.0, 3.0]]})
    with remembering(wrong):
        fit_single_task_gp(X, Y, NOISE, BOUNDS)
    assert len(made) == 2
    assert wrong.used == memory.used
    # JSON has numbers that no parameter may have.
    value, *parameters = memory.used[key]
    spoilt = [[math.nan] * len(own) for own in parameters]
    assert FitMemory({key: [value, *spoilt]}).known == {}
    assert FitMemory({key: [math.inf, *parameters]}).known == {}
    assert FitMemory(memory.used).known == memory.used


@pytest.fixture
def searches(monkeypatch) -> list[Any]:
    r"""The searches for the parameters of latent processes."""
    given, found = scipy.optimize.minimize, list[Any]()

    def minimize(*parts, **options):
        found.append(parts)
        return given(*parts, **options)

    monkeypatch.setattr(scipy.optimize, "minimize", minimize)
    return found


ANSWERS = torch.tensor([0, 0, 1, 0, 1, 1, 1]).double()
ONES = torch.ones(7).double()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "outcome", [Binary(guess=0.1), Counts(), Ordinal(3, 1)], ids=str
)
def test_a_remembered_fit_of_an_outcome_is_the_same(outcome, searches) -> None:
    points, first = X[[0, 1, 2, 2, 4, 5, 6]], FitMemory()
    given = points, ANSWERS, ONES, BOUNDS, outcome
    with remembering(first):
        one = fit_latent_gp(*given)
    again = FitMemory(json.loads(json.dumps(first.used)))
    with remembering(again):
        two = fit_latent_gp(*given)
    assert len(searches) == 1
    assert again.used == first.used
    assert one.outcome == two.outcome
    F = one.features(X)
    assert torch.equal(one.mean(F), two.mean(F))
    assert torch.equal(one.covariance(F, F), two.covariance(F, F))
    (key,) = first.used
    wrong = FitMemory({key: [0.0, [1.0]]})
    with remembering(wrong):
        fit_latent_gp(*given)
    assert len(searches) == 2
    assert wrong.used == first.used
    fit_latent_gp(*given)  # outside of the context nothing is looked up
    assert len(searches) == 3


@pytest.mark.slow
def test_another_question_about_answers_is_searched(searches) -> None:
    memory, outcome = FitMemory(), Binary()
    with remembering(memory):
        for n in range(2):
            fit_latent_gp(X, ANSWERS, ONES, BOUNDS, outcome)
            fit_latent_gp(X, 1 - ANSWERS, ONES, BOUNDS, outcome)
            fit_latent_gp(X, ANSWERS, 2 * ONES, BOUNDS, outcome)
            fit_latent_gp(X, ANSWERS, ONES, 2 * BOUNDS, outcome)
            fit_latent_gp(X, ANSWERS, ONES, BOUNDS, Binary(lapse=0.1))
            fit_latent_gp(X, ANSWERS, ONES, BOUNDS, outcome, rising=[0])
            fit_latent_gp(MIXED, ANSWERS, ONES, CUBE, outcome, {1: 2})
            fit_latent_gp(MIXED, ANSWERS, ONES, CUBE, outcome)
            fit_latent_gp(MIXED, ANSWERS, ONES, CUBE, outcome, is_sum=False)
            assert len(searches) == len(memory.used) == 9, n
