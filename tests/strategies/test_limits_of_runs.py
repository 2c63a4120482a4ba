r"""Beliefs that know limits of single values, against numerical integration."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from botorch_lse import Observations, Pool
from botorch_lse.goals.one_sided import OneSided
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import Above, GaussianProcess, State, Strategy
from botorch_lse.strategies.loop import believing
from botorch_lse.surrogate.remarks import Slip
from tests.functional.test_moment_matching import integrated
from tests.strategies.runs import GP

NOISE, VALUE = 0.3, 0.5
X = torch.tensor([[0.0, 0.0], [0.2, 0.1], [0.5, 0.2]], dtype=torch.float64)
LIMITED = torch.tensor([1])


def measured() -> State:
    r"""A run of three rows of which the first was measured."""
    model = GaussianProcess(GPPrior.from_kernel(GP.kernel()), noise_std=NOISE)
    strategy = Strategy(Pool(X), Above(0.2), model=model, batch_size=1, beta=1.0)
    return strategy.tell(strategy.init(), Observations([0], [VALUE]))


def knowing(state: State, limit: float, sign: float) -> State:
    given = torch.tensor([limit]).double(), torch.tensor([sign]).double()
    algorithm = state.strategy.algorithm
    belief = algorithm.knowing_limits(state.belief, LIMITED, *given)
    return believing(state, belief, "Limits.")


@pytest.mark.parametrize(("limit", "sign"), [(-0.5, 1.0), (0.1, 1.0), (1.0, -1.0)])
def test_a_limit_changes_the_belief_as_the_truncated_posterior_says(limit, sign):
    K = torch.from_numpy(GP.covariance(X.numpy(), X.numpy()))
    gain = K[1:, 0] / (K[0, 0] + NOISE**2)
    mean, S = gain * VALUE, K[1:, 1:] - torch.outer(gain, K[0, 1:])
    c, s = torch.tensor([limit]).double(), torch.tensor([sign]).double()
    noise = torch.tensor([NOISE**2]).double()
    wanted, covariance = integrated(mean, S, noise, [0], c, s)
    state = measured()
    found = knowing(state, limit, sign)
    now = found.belief.posterior
    torch.testing.assert_close(now.mean[1:], wanted, rtol=1e-4, atol=1e-4)
    sigma = covariance.diagonal().sqrt()
    torch.testing.assert_close(now.sigma[1:], sigma, rtol=1e-4, atol=1e-4)
    # No look at the intervals is counted, and nothing more was measured.
    assert found.belief.n_intervals == state.belief.n_intervals
    assert found.observations.n_measured == 1
    assert found.classification.guarantee.endswith(" Limits.")
    beyond = found.classification.below if sign > 0 else found.classification.above
    assert bool(beyond[1]) == (abs(float(wanted[0]) - 0.2) > float(sigma[0]))


def test_a_limit_that_says_nothing_changes_nothing():
    state = measured()
    now = knowing(state, 50.0, 1.0).belief.posterior
    assert torch.equal(now.mean, state.belief.posterior.mean)
    assert torch.equal(now.sigma, state.belief.posterior.sigma)


def test_decisions_that_are_held_back_stay_so_but_one_side_ends_by_a_limit():
    state = measured()
    slip = Slip(0, 0, 9.0, 0.0, 1.0)
    for doubt in ({"slips": (slip,)}, {"one_sided": OneSided("below", 0, 1)}):
        held = replace(state.belief, **doubt)
        limit = torch.tensor([-0.5]).double(), torch.tensor([1.0]).double()
        assert state.strategy.algorithm.knowing_limits(held, LIMITED, *limit) is held
    held = replace(state.belief, one_sided=OneSided("above", 0, 1))
    found = state.strategy.algorithm.knowing_limits(held, LIMITED, *limit)
    assert found.one_sided is None
    assert int(found.sides.side[1]) < 0
