r"""Covariances that are kept while a batch is planned, against those computed anew."""

from __future__ import annotations

import pytest
import torch

from botorch_lse import Pool
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.lookahead import LookAhead, Reductions
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    ExpectedMisclassification,
    GaussianProcess,
    Strategy,
    TruncatedVariance,
)

X = torch.rand(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
Q = 6
CASES = {
    "a level": (Above(0.5), ExpectedMisclassification(), {}),
    "jointly": (Above(0.5), ExpectedMisclassification(batch="joint"), {}),
    "each row once": (Above(0.5), ExpectedMisclassification(), {"max_repeats": 1}),
    "a width": (Above(0.5), TruncatedVariance(), {}),
    "a share": (Above(0.5), AbsoluteVolumeChange(), {}),
    "two outputs": (
        Above(0.5) & Above(0.2, output=1),
        ExpectedMisclassification(),
        {"max_repeats": 1},
    ),
}


def values(rows: torch.Tensor, n: int) -> torch.Tensor:
    y = torch.stack([(6 * X[rows] + k).sin().sum(dim=-1) for k in range(n)], dim=-1)
    return y if n > 1 else y.squeeze(-1)


def planned(name: str, patched, **of_model) -> tuple[list[torch.Tensor], list[int]]:
    r"""The scores of each row of a batch by the model, and the rows."""
    goal, rule, options = CASES[name]
    found: list[torch.Tensor] = []
    scores = LookAhead.scores

    def noted(self, context, *given):
        assert not context.is_initial
        found.append(scores(self, context, *given))
        return found[-1]

    model = GaussianProcess(noise_std=0.2, n_initial=Q, **of_model)
    strategy = Strategy(Pool(X), goal, model=model, rule=rule, batch_size=Q, **options)
    state = strategy.init(seed=0)
    first = strategy.ask(state)
    n_outputs = 2 if name == "two outputs" else 1
    state = strategy.tell(state, first.observe(values(first.order, n_outputs)))
    patched.setattr(LookAhead, "scores", noted)
    return found, strategy.ask(state).order.tolist()


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_covariances_computed_anew(name, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        found, order = planned(name, patched)
    with monkeypatch.context() as patched:
        patched.setattr(Reductions, "_kept_with", lambda *given: None)
        anew, rows = planned(name, patched)
    assert order == rows
    assert len(found) == Q
    for one, other in zip(found, anew, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["a level", "each row once", "two outputs"])
def test_covariances_are_computed_once_for_a_batch(name, monkeypatch) -> None:
    calls = []
    between = PoolPosterior.covariance_between

    def counted(self, *given, **named):
        calls.append(self)
        return between(self, *given, **named)

    monkeypatch.setattr(PoolPosterior, "covariance_between", counted)
    planned(name, monkeypatch)
    assert len(calls) == (2 if name == "two outputs" else 1)


def test_little_memory_keeps_nothing_and_changes_nothing(monkeypatch) -> None:
    found = []
    for budget in (2**20, 2**14):
        asked = []
        with monkeypatch.context() as patched:
            kept_with = Reductions._kept_with

            def noted(self, *given, asked=asked, kept_with=kept_with):
                asked.append(given)
                return kept_with(self, *given)

            patched.setattr(Reductions, "_kept_with", noted)
            found.append(planned("a level", patched, memory_budget=budget)[1])
        assert bool(asked) == (budget == 2**20)
    assert found[0] == found[1]
