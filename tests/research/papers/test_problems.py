import torch

from research.papers.problems import gp_sample, grid, matern_prior


def test_samples_have_the_covariance_of_the_prior() -> None:
    draws = torch.stack(
        [gp_sample(seed, 3, (0.3, 0.6), 2.0)[2] for seed in range(4000)]
    )
    X = grid(3)
    prior = matern_prior((0.3, 0.6), 2.0)
    expected = prior.covariance(X, X)
    error = 4 * (2 / 4000) ** 0.5
    assert float((draws.T.cov() - expected).abs().max()) < error
    assert float((draws.mean(dim=0) - 2.0).abs().max()) < 4 / 4000**0.5


def test_a_sample_is_a_function_of_its_seed() -> None:
    assert torch.equal(gp_sample(3, 5, (0.2, 0.2))[2], gp_sample(3, 5, (0.2, 0.2))[2])
    assert not torch.equal(
        gp_sample(3, 5, (0.2, 0.2))[2], gp_sample(4, 5, (0.2, 0.2))[2]
    )
