r"""Independent dense Gaussian-process formulas (NumPy only) for the reference tests."""

import numpy as np


def matern52(A, B, lengthscale, outputscale=1.0):
    r = np.sqrt((((A[:, None] - B[None]) / lengthscale) ** 2).sum(-1))
    root = np.sqrt(5.0) * r
    return outputscale * (1 + root + root**2 / 3) * np.exp(-root)


class DenseGP:
    """mean + scale * GP(0, Matern-5/2) with noise, conditioned on data and on
    points whose values are not known."""

    def __init__(self, X, y, noise_var, lengthscale, outputscale, shift, scale):
        self.X, self.y, self.noise = X, y, np.broadcast_to(noise_var, len(y))
        self.k = lambda A, B: scale**2 * matern52(A, B, lengthscale, outputscale)
        self.shift = shift

    def moments(self, P, n, pending=None, pending_noise=0.0):
        """Mean after the first n observations; sd with pending points besides."""
        X, y, noise = self.X[:n], self.y[:n], self.noise[:n]
        mean = np.full(len(P), self.shift)
        variance = np.diag(self.k(P, P)).copy()
        if n:
            inverse = np.linalg.inv(self.k(X, X) + np.diag(noise))
            mean += self.k(P, X) @ inverse @ (y - self.shift)
        if pending is not None:
            X = np.concatenate((X, pending))
            noise = np.concatenate((noise, np.full(len(pending), pending_noise)))
        if len(X):
            inverse = np.linalg.inv(self.k(X, X) + np.diag(noise))
            variance -= np.einsum("ij,jk,ik->i", self.k(P, X), inverse, self.k(P, X))
        return mean, np.sqrt(variance)

    def region(self, P, ends, betas, pending=None, pending_noise=0.0):
        """Running intersection of the intervals after ``ends[t]`` observations."""
        lower, upper = np.full(len(P), -np.inf), np.full(len(P), np.inf)
        for n, beta in zip(ends, betas, strict=True):
            mean, sigma = self.moments(P, n)
            lower = np.maximum(lower, mean - np.sqrt(beta) * sigma)
            upper = np.minimum(upper, mean + np.sqrt(beta) * sigma)
        if pending is not None:
            mean, sigma = self.moments(P, ends[-1], pending, pending_noise)
            lower = np.maximum(lower, mean - np.sqrt(betas[-1]) * sigma)
            upper = np.minimum(upper, mean + np.sqrt(betas[-1]) * sigma)
        return lower, upper
