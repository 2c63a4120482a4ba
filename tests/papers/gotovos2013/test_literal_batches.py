import math

import torch

from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.papers.gotovos2013.literal_batches import information_bound
from research.papers.problems import gp_sample


def test_information_bound_exceeds_every_pair() -> None:
    pool, prior, _ = gp_sample(0, 4, (0.3, 0.3))
    K = prior.covariance(pool.X, pool.X) / 0.01
    pairs = (
        0.5 * torch.logdet(torch.eye(2) + K[[i, j]][:, [i, j]])
        for i in range(16)
        for j in range(i)
    )
    start = PoolPosterior.start(prior, pool.X)
    assert information_bound(start, 0.01, 2) >= float(max(pairs))
    assert information_bound(start, 0.0, 2) == math.inf
    assert information_bound(start, 0.0, 0) == 0.0
