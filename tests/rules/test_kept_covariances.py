r"""Covariances that are kept while a batch is planned, against those computed anew."""

from __future__ import annotations

import pytest
import torch

from botorch_lse import Pool
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.lookahead import LookAhead
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


def planned(
    name: str, monkeypatch, is_kept: bool = True, **of_model
) -> tuple[list[torch.Tensor], list[int], int]:
    r"""The scores of each row of a batch, the rows, how many posteriors are kept."""
    goal, rule, options = CASES[name]
    found: list[torch.Tensor] = []
    scores, sizes = LookAhead.scores, []

    def noted(self, context, previous, rows, kept):
        assert not context.is_initial
        found.append(scores(self, context, previous, rows, kept if is_kept else None))
        sizes.append(len(kept))
        return found[-1]

    model = GaussianProcess(noise_std=0.2, n_initial=Q, **of_model)
    strategy = Strategy(Pool(X), goal, model=model, rule=rule, batch_size=Q, **options)
    state = strategy.init(seed=0)
    first = strategy.ask(state)
    n_outputs = 2 if name == "two outputs" else 1
    state = strategy.tell(state, first.observe(values(first.order, n_outputs)))
    with monkeypatch.context() as patched:
        patched.setattr(LookAhead, "scores", noted)
        return found, strategy.ask(state).order.tolist(), sizes[-1]


@pytest.mark.some(2)
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_covariances_computed_anew(name, monkeypatch) -> None:
    found, order, n_kept = planned(name, monkeypatch)
    anew, rows, _ = planned(name, monkeypatch, is_kept=False)
    assert order == rows
    assert len(found) == Q
    assert n_kept == (2 if name == "two outputs" else 1)
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
    _, order, n_kept = planned("a level", monkeypatch, memory_budget=2**20)
    assert n_kept == 1
    _, again, n_kept = planned("a level", monkeypatch, memory_budget=2**14)
    assert n_kept == 0
    assert order == again


def test_outputs_whose_rows_are_all_measured_are_passed_over() -> None:
    X = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(X).at_outputs(2, costs=(1.0, 1.0))
    strategy = Strategy(
        pool,
        Above(0.5) & Above(0.2, output=1),
        model=GaussianProcess(noise_std=0.4, n_initial=2),
        rule=ExpectedMisclassification(),
        batch_size=3,
        max_repeats=1,
    )
    state = strategy.init(seed=0)
    for _ in range(5):
        batch = strategy.ask(state)
        y = (6 * X[batch.order % 12, 0]).sin()
        state = strategy.tell(state, batch.observe(y))
    for of_output in (torch.arange(12), torch.arange(12, 24)):
        left = of_output[state.uses(24)[of_output] == 0]
        assert len(left)
        order = strategy.ask(strategy.exclude(state, left.tolist())).order
        assert len(order)
        assert not set(order.tolist()) & set(of_output.tolist())
