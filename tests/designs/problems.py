r"""Small design problems that tests share."""

import torch
from gpytorch.kernels import RBFKernel


def features(N=8, m=3, seed=0):
    r"""Normal draws."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N, m, generator=generator, dtype=torch.float64)


def rbf(lengthscale):
    r"""A kernel with unit variance."""
    kernel = RBFKernel()
    kernel.lengthscale = lengthscale
    return kernel
