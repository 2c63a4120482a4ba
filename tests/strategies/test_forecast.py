from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from botorch_lse import Pool
from botorch_lse.strategies import (
    LSEStrategy,
    MELKStrategy,
    MILKStrategy,
)
from botorch_lse.strategies.forecast import observations_needed
from botorch_lse.strategies.gp.forecast import MOST_STEPS, planned_observations
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import make, step


@pytest.mark.parametrize("beta", [9.0, 25.0])
def test_needed_observations_equal_the_closed_form(beta: float) -> None:
    # Unrelated rows of variance v, noise 1: v / (1 + n v) <= gap^2 / width^2 needs
    # n = width^2 / gap^2 - 1 / v of each.
    variance = torch.tensor([1.0, 2.0, 0.5, 1.0]).double()
    gaps = torch.tensor([0.2, 0.5, 0.3, 0.25]).double()
    exact = float((beta / gaps**2 - 1 / variance).sum())
    problem = {"X": variance.sqrt().diag(), "target_weights": gaps**-2.0}
    assert observations_needed(problem, beta) == pytest.approx(exact, rel=0.15)


def test_nothing_is_foreseen_where_nothing_suffices() -> None:
    problem = {"X": torch.eye(2), "target_weights": torch.tensor([1e12, 1.0])}
    assert observations_needed(problem, 9.0) is None


@pytest.mark.parametrize("cls", [LSEStrategy, MELKStrategy, MILKStrategy])
def test_forecast_is_right_within_a_factor_of_two(cls: type) -> None:
    X = np.linspace(0, 1, 40)[:, None]
    gp = DenseGP((0.15,), 1.0, is_rbf=True)
    K = gp.covariance(X, X) + 1e-8 * np.eye(40)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        f = np.linalg.cholesky(K) @ rng.standard_normal(40)
        f = f + (2.0 if cls is MILKStrategy else 0.0)
        strategy = make(
            cls,
            pool=Pool(torch.tensor(X)),
            model=gp.kernel(),
            noise_std=0.5,
            epsilon=0.2,
            beta=9.0,
            batch_size=10,
            max_observations=3000,
        )
        noise = 0.5 * rng.standard_normal(3000)
        state = strategy.init()
        foreseen = {}
        while not state.is_done:
            n = len(state.history)
            if n == 50:
                foreseen[n] = state.forecast().observations
                again = pickle.loads(pickle.dumps(state))
                assert again.forecast() == state.forecast()
            state = step(strategy, state, lambda r, i, f=f, e=noise: float(f[r] + e[i]))
        assert state.stop_reason == "decided"
        assert state.forecast().observations == 0
        assert "has ended: decided" in str(state.forecast())
        for n, more in foreseen.items():
            total = len(state.history)
            assert total / 2 <= n + more <= 2 * total


def test_plan_equals_the_closed_form_for_unrelated_rows() -> None:
    # Variance 1 / (1 + n / s2) of each row, wanted below v: n = ceil(s2 (1 / v - 1)).
    gp = DenseGP((1e-3,), 1.0, is_rbf=True)
    strategy = make(
        LSEStrategy,
        pool=Pool(torch.arange(3.0).unsqueeze(-1)),
        model=gp.kernel(),
        noise_std=0.5,
    )
    posterior = strategy.init().belief.posterior
    wanted, rows = torch.tensor([0.011, 0.021, 2.0]).double(), torch.arange(3)
    noise = torch.tensor([0.25]).double()
    exact = 23 + 12  # 0.25 (1 / 0.011 - 1) = 22.5 and 0.25 (1 / 0.021 - 1) = 11.7
    assert planned_observations(posterior, rows, wanted, noise, 100) == exact
    assert planned_observations(posterior, rows, wanted, noise, exact) == exact
    assert planned_observations(posterior, rows, wanted, noise, exact - 1) is None


def test_forecasts_say_what_they_rest_on() -> None:
    known = make(MELKStrategy).init().forecast()
    assert str(known).startswith(f"About {known.observations} more evaluations until")
    assert "widest interval" in known.basis
    pairs = make(MILKStrategy).init().forecast()
    assert "optimal design" in pairs.basis
    noisy = make(MELKStrategy, noise_std=5.0).init().forecast()
    assert noisy.observations > MOST_STEPS
    assert "optimal design" in noisy.basis
    fresh = make(MELKStrategy, model=None, noise_std=None).init().forecast()
    assert fresh.observations is None
    assert "No model has been fitted yet" in str(fresh)
