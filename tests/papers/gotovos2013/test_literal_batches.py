import math

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.papers import LSELiteralBatchStrategy
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


def test_there_is_no_room_beside_a_row_whose_step_decides_all_others() -> None:
    kernel = RBFKernel()
    kernel.lengthscale = 10.0  # a value of one row tells all others
    pool = Pool([[0.0], [0.1], [0.2], [0.3]])
    strategy = LSELiteralBatchStrategy(
        pool, 0.4, model=kernel, noise_std=0.1, beta=0.2, batch_size=3
    )
    state = strategy.init()
    assert (strategy.room(state), len(strategy.ask(state))) == (1, 1)
    assert strategy.room(state, [0]) == 0
    with pytest.raises(ValueError, match="Nothing is left to ask while 1 rows"):
        strategy.ask(state, pending=[0])
