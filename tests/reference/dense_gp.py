r"""Gaussian process regression written out in NumPy; shares no package code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel


@dataclass(frozen=True)
class DenseGP:
    r"""A stationary process with fixed hyper-parameters, units of ``y``."""

    lengthscale: tuple[float, ...]
    outputscale: float = 1.0
    mean: float = 0.0
    is_rbf: bool = False

    def covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        difference = (A[:, None, :] - B[None, :, :]) / np.asarray(self.lengthscale)
        squared = (difference**2).sum(axis=-1)
        if self.is_rbf:
            return self.outputscale * np.exp(-0.5 * squared)
        r = np.sqrt(5.0 * squared)
        return self.outputscale * (1 + r + 5.0 * squared / 3) * np.exp(-r)

    def posterior(
        self, X: np.ndarray, train_X: np.ndarray, y: np.ndarray, noise_var: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Mean and covariance matrix at ``X``."""
        prior = self.covariance(X, X)
        if len(y) == 0:
            return np.full(len(X), self.mean), prior
        K = self.covariance(train_X, train_X) + np.diag(noise_var)
        W = np.linalg.solve(K, self.covariance(train_X, X))
        return self.mean + W.T @ (y - self.mean), prior - self.covariance(
            X, train_X
        ) @ W

    def moments(
        self, X: np.ndarray, train_X: np.ndarray, y: np.ndarray, noise_var: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Mean and standard deviation at ``X``."""
        mean, covariance = self.posterior(X, train_X, y, noise_var)
        return mean, np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def sample(self, X: np.ndarray, seed: int) -> np.ndarray:
        r"""One draw of the process at ``X``."""
        K = self.covariance(X, X) + 1e-10 * self.outputscale * np.eye(len(X))
        z = np.random.default_rng(seed).standard_normal(len(X))
        return self.mean + np.linalg.cholesky(K) @ z

    def kernel(self) -> Kernel:
        r"""The same covariance as a GPyTorch kernel."""
        d, exact = len(self.lengthscale), {"dtype": torch.float64}
        matern = MaternKernel(2.5, ard_num_dims=d)
        base = RBFKernel(ard_num_dims=d) if self.is_rbf else matern
        kernel = ScaleKernel(base).double()
        kernel.base_kernel.lengthscale = torch.tensor([self.lengthscale], **exact)
        kernel.outputscale = torch.tensor(self.outputscale, **exact)
        return kernel
