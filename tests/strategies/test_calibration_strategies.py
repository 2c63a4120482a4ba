r"""What a run says of its own predictions."""

from __future__ import annotations

import warnings

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_lse import Observations, Pool
from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.strategies import GEGEStrategy, LSEStrategy, MELKLinearStrategy
from tests.reference.dense_gp import DenseGP

from .runs import grid

STD = 0.1
GP = DenseGP((0.3, 0.3), is_rbf=True)
KERNEL = GP.kernel()
X = grid(6)


def sample(seed: int) -> torch.Tensor:
    return torch.from_numpy(GP.sample(X.numpy(), seed))


def told(strategy, truth, rounds, seed=0):
    state = strategy.init(seed)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(rounds):
        batch = strategy.ask(state)
        noise = STD * torch.randn(len(batch.order), generator=generator).double()
        state = strategy.tell(state, batch.observe(truth[batch.order] + noise))
    return state


def lse(**options):
    known = {"model": KERNEL, "noise_std": STD, "batch_size": 4, "epsilon": 0.01}
    return LSEStrategy(Pool(X), 0.1, **{**known, **options})


def test_residuals_are_those_of_what_was_predicted_before_each_batch() -> None:
    state = told(lse(), sample(0), 4)
    rows, y = state.history.indices, state.history.y
    K = torch.from_numpy(GP.covariance(X.numpy(), X.numpy()))
    noisy = K[rows][:, rows] + STD**2 * torch.eye(len(rows)).double()
    want = torch.linalg.solve(torch.linalg.cholesky(noisy), y)
    found = state.calibration()
    torch.testing.assert_close(found.ahead, want, rtol=1e-8, atol=1e-10)
    precision = torch.linalg.inv(noisy)
    out = (precision @ y) / precision.diagonal().sqrt()
    torch.testing.assert_close(found.out, out, rtol=1e-8, atol=1e-10)
    predicted = y - (precision @ y) / precision.diagonal()
    torch.testing.assert_close(found.predicted, predicted, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_a_learnt_model_is_judged_by_what_it_said_before_it_learnt_more() -> None:
    strategy = lse(model=None, n_initial=8)
    state = told(strategy, sample(1), 6)
    ahead = state.calibration().ahead
    assert len(ahead) == 16  # the initial design is predicted by no model
    again = strategy.replay(state.observations)
    assert torch.equal(again.calibration().ahead, ahead)
    before = told(strategy, sample(1), 5)
    posterior = before.belief.posterior
    batch = state.history.select((state.history.round == 5).nonzero().view(-1))
    noise = torch.full((len(batch),), STD**2).double()
    want = posterior.surprises(batch.indices, batch.y, noise)
    torch.testing.assert_close(ahead[-4:], want)


# The given kernel does not fit the values either, which is said by itself.
NO_FIT = pytest.mark.filterwarnings("ignore:.*noise deviations from what the model")


@NO_FIT
def test_predictions_that_fail_are_said_in_a_warning_and_in_the_answer() -> None:
    rough = 3.0 * torch.randn(36, generator=torch.Generator().manual_seed(0)).double()
    strategy = lse(beta=4.0)
    with pytest.warns(CalibrationWarning, match="too narrow"):
        state = told(strategy, rough, 6)
    assert "the predictions are too narrow" in state.classification.guarantee
    assert state.calibration().has_failed


@pytest.mark.slow
def test_predictions_that_hold_are_not_reported() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        states = [told(lse(), sample(seed), 6, seed) for seed in range(10)]
    inside = [state.calibration().coverage() for state in states]
    assert 0.85 <= sum(inside) / len(inside) <= 1.0
    assert "too narrow" not in states[0].classification.guarantee


@NO_FIT
def test_several_outputs_are_judged_one_by_one() -> None:
    strategy = GEGEStrategy(
        Pool(X), maximize=(True, False), model=KERNEL, noise_std=STD, batch_size=4
    )
    Y = torch.stack((sample(0), 100.0 * sample(1)), dim=-1)
    with pytest.warns(CalibrationWarning):
        state = strategy.tell(strategy.init(), Observations(torch.arange(12), Y[:12]))
    assert not state.calibration(0).has_failed
    assert state.calibration(output=1).has_failed
    with pytest.raises(ValueError, match="`output` to be below 2"):
        state.calibration(2)


def test_before_any_prediction_there_is_nothing_to_judge() -> None:
    state = lse(model=None).init()
    assert str(state.calibration()) == "Nothing was predicted before it was measured."
    rows = torch.arange(3)
    state = lse(model=None).tell(state, Observations(rows, rows.double()))
    assert len(state.calibration().out) == 0


def test_a_strategy_without_a_gaussian_process_says_so() -> None:
    state = MELKLinearStrategy(Pool(X), 0.1, noise_std=STD).init()
    with pytest.raises(UnsupportedError, match="on a Gaussian process"):
        state.calibration()
