r"""Counts of events as outcomes, against sums and integrals of their definition."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import poisson
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.models.expectation import sites_of
from botorch_lse.models.outcomes import Results
from botorch_lse.strategies import Above, Counts, GaussianProcess, Strategy

OUTCOME = Counts()
PAIRS = [(-1.0, 0.25), (0.0, 1.0), (2.0, 0.5), (4.0, 0.1)]
COUNTS = torch.arange(2000, dtype=torch.float64)


def number(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


def grid(mean: float, variance: float) -> tuple[Tensor, Tensor]:
    r"""Latent values and their probabilities, on a fine grid."""
    f = mean + variance**0.5 * torch.linspace(-14, 14, 6001, dtype=torch.float64)
    share = (-0.5 * (f - mean).square() / variance).exp()
    return f, share / share.sum()


def chances(f: Tensor, counts: Tensor) -> Tensor:
    r"""The probabilities of counts at latent values (``len(counts) x len(f)``)."""
    return torch.from_numpy(poisson.pmf(counts.unsqueeze(-1), f.exp()))


@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_moments_are_those_of_the_definition(mean, variance):
    f, share = grid(mean, variance)
    expected = (share * f.exp()).sum()
    spread = (share * (f.exp() - expected).square()).sum().sqrt()
    found = OUTCOME.moments(number(mean), number(variance))
    torch.testing.assert_close(torch.cat(found), torch.stack((expected, spread)))


@pytest.mark.parametrize(("mean", "variance"), PAIRS)
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_the_posterior_of_one_count_has_its_moments(count, mean, variance):
    f, share = grid(mean, variance)
    weight = share * chances(f, number(count))[0]
    evidence = weight.sum()
    m = (weight * f).sum() / evidence
    v = (weight * (f - m).square()).sum() / evidence
    y, trials, K = number(count), torch.ones(1).double(), number(variance).view(1, 1)
    site = sites_of(K, number(mean), OUTCOME, Results(y, trials))
    left = 1 / (1 / variance + site.precision)
    torch.testing.assert_close(left[0], v, rtol=1e-4, atol=0.0)
    found = left * (mean / variance + site.weighted)
    torch.testing.assert_close(found[0], m, rtol=1e-4, atol=1e-4)
    factorial = torch.lgamma(y + 1)
    log = torch.tensor(site.log_evidence).double() - factorial[0]
    torch.testing.assert_close(log, evidence.log(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_quantiles_are_those_of_the_definition(mean, variance):
    f, share = grid(mean, variance)
    each = chances(f, COUNTS[:80]) @ share
    given = torch.ones(80).double(), number(mean), number(variance)
    low, high = OUTCOME.quantiles(COUNTS[:80], *given)
    torch.testing.assert_close(high, each.cumsum(dim=0), rtol=0.0, atol=1e-4)
    torch.testing.assert_close(high - low, each, rtol=0.0, atol=1e-4)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    ("mean", "tolerance"), [(0.0, 0.1), (1.0, 0.1), (3.0, 0.1), (-2.3, 0.34)]
)
def test_a_count_takes_off_about_what_its_noise_says(mean, tolerance):
    f, share = grid(mean, 1.0)
    each = chances(f, COUNTS) * share
    p = each.sum(dim=-1)
    centre = each @ f / p.clamp_min(1e-300)
    taken = float((p * (centre - mean).square()).sum())
    noise = float(OUTCOME.pseudo_noise(number(mean), number(1.0)))
    assert 1 / (1 + noise) == pytest.approx(taken, rel=tolerance)


def test_counts_told_together_are_counts_told_one_by_one():
    K, mean = torch.tensor([[1.0, 0.5], [0.5, 1.0]]).double(), torch.zeros(2).double()
    y, trials = torch.tensor([1.5, 4.0]).double(), torch.tensor([2.0, 1.0]).double()
    both = sites_of(K, mean, OUTCOME, Results(y, trials))
    rows = torch.tensor([0, 0, 1])
    y = torch.tensor([0.0, 3.0, 4.0]).double()
    # The tiny difference has the matrix regular.
    each = sites_of(
        K[rows][:, rows] + 1e-9 * torch.eye(3).double(),
        mean[rows], OUTCOME, Results(y, torch.ones(3).double()),
    )  # fmt: skip
    found = K @ both.residual
    wanted = K[:, rows] @ each.residual
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)


def played(model: GaussianProcess, goal: Above, expected: Tensor, pool: Pool):
    strategy = Strategy(pool, goal, model=model, batch_size=12, max_observations=72)
    generator, state = torch.Generator().manual_seed(0), strategy.init(seed=0)
    while not state.is_done:
        rows = strategy.ask(state).order
        y = torch.poisson(expected[rows], generator=generator)
        state = strategy.tell(state, Observations(rows, y))
    return state


@pytest.mark.slow
def test_a_run_decides_levels_of_an_expected_count():
    pool = Pool(torch.linspace(0, 1, 31, dtype=torch.float64).unsqueeze(-1))
    expected = (4 * pool.X[:, 0] - 0.5).exp()  # 0.6 to 33
    state = played(GaussianProcess(outcome=OUTCOME), Above(5.0), expected, pool)
    answer = state.classification
    assert not bool((answer.above & (expected <= 5)).any())
    assert not bool((answer.below & (expected > 5)).any())
    assert int(answer.above.sum()) > 3
    assert int(answer.below.sum()) > 3
    assert bool((answer.lower >= 0).all())
    assert torch.equal(answer.above, answer.lower > 5)
    inside = (answer.lower <= expected) & (expected <= answer.upper)
    assert float(inside.double().mean()) > 0.9
    assert not state.calibration().has_failed


@pytest.mark.parametrize("wrong", [-1.0, 2.5])
def test_results_that_are_no_counts_are_refused(wrong):
    pool = Pool(torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))
    strategy = Strategy(pool, Above(5.0), model=GaussianProcess(outcome=OUTCOME))
    with pytest.raises(ValueError, match="to be 0, 1, 2 and so on"):
        strategy.tell(strategy.init(seed=0), Observations([0], [wrong]))
    strategy.tell(strategy.init(seed=0), Observations([0], [2.0]))
    numbers = Strategy(pool, Above(5.0))  # the remedy
    numbers.tell(numbers.init(seed=0), Observations([0], [wrong]))


def test_levels_that_are_no_expected_counts_are_refused():
    pool = Pool(torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))
    model = GaussianProcess(outcome=OUTCOME)
    with pytest.raises(ValueError, match=r"an expected count above 0 .* got 0"):
        Strategy(pool, Above(0.0), model=model)
    Strategy(pool, Above(0.1), model=model)


def test_before_any_result_nothing_is_known_of_a_count() -> None:
    pool = Pool(torch.rand(8, 2, dtype=torch.float64))
    model = GaussianProcess(outcome=Counts())
    for goal in (Above(6.0), Above(6.0) & Above(0.5, output=1)):
        own = model
        if goal.facts.n_outputs == 2:
            own = GaussianProcess(outcome=(Counts(), None))
        answer = Strategy(pool, goal, model=own).init(0).classification
        (part, *_) = answer.outputs or (answer,)
        assert part.mean.tolist() == [1.0] * 8
        assert part.lower.tolist() == [0.0] * 8
        assert part.upper.isinf().all()
        assert part.sigma.isinf().all()
