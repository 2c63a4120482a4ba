r"""Posteriors after every observation or round, at any point or on a whole pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_lse.checks import whole_number, whole_numbers
from botorch_lse.functional.path import (
    extended,
    factorize,
    path_moments,
    path_rows,
    round_ends,
)
from botorch_lse.prior import GPPrior, training_data

MEMORY_BUDGET = 2**30
"""Bytes that the temporary arrays over a pool may take, unless said otherwise."""

FAST_BLOCK = 2**25
"""Bytes beyond which blocks are not made larger even where the budget allows: arrays
that stay near the processor's caches are several times faster."""

COPIES = 6
"""Arrays of observations times rows alive at once: covariances and their temporaries,
path rows, and two cumulative sums."""


@dataclass(frozen=True, eq=False)
class PosteriorPath:
    r"""The posteriors of an exact GP after each prefix of its data.

    All hyper-parameters and transforms are fixed, so the past is one triangular solve
    (see ``functional.path``). Results are exact, float64 inside, in the units of ``y``.

    Example:
        >>> path = PosteriorPath.from_model(model)
        >>> means, variances = path.moments(pool_X)  # (n + 1) x N; row 0 is the prior

    Args:
        prior: The process.
        F: ``S x n x d'`` features of the observations.
        L: ``S x n x n`` factor of their covariance plus noise.
        a: ``S x n`` whitened residuals.
        noise_var: ``S x n`` noise variances, units of ``y`` squared.
        rounds: ``n`` round numbers, not decreasing.
    """

    prior: GPPrior
    F: Tensor
    L: Tensor
    a: Tensor
    noise_var: Tensor
    rounds: Tensor

    @classmethod
    def from_model(cls, model: Model, rounds: Tensor | None = None) -> PosteriorPath:
        r"""The path of a fitted model along its training data.

        Args:
            model: See ``GPPrior.from_model``.
            rounds: ``n`` round numbers, one per training observation, not decreasing;
                default each observation its own round.

        Raises:
            UnsupportedError: See ``GPPrior.from_model``.
            ValueError: If ``rounds`` has another length or decreases.
        """
        prior = GPPrior.from_model(model)
        F, y, noise_var = training_data(model, prior)  # type: ignore[arg-type]
        return cls.from_data(prior, F, y, noise_var, rounds)

    @classmethod
    def from_data(
        cls,
        prior: GPPrior,
        F: Tensor,
        y: Tensor,
        noise_var: Tensor,
        rounds: Tensor | None = None,
    ) -> PosteriorPath:
        r"""The path of ``S x n`` observations ``y`` at features ``S x n x d'``."""
        n = F.shape[-2]
        with torch.no_grad():
            L = factorize(prior.covariance(F, F), noise_var, prior.least_noise(F))
            residual = (y - prior.mean(F)).unsqueeze(-1)
            a = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
        return cls(prior, F, L, a, noise_var, _check_rounds(rounds, n).to(L.device))

    @property
    def n_rounds(self) -> int:
        r"""The number of rounds, the prior not counted."""
        return int(torch.unique_consecutive(self.rounds).numel())

    def moments(self, X: Tensor, prefixes: bool = False) -> tuple[Tensor, Tensor]:
        r"""Means and variances at ``X`` before the first and after each round.

        Differentiable in ``X``. The caller chooses ``N`` so that ``n x N`` numbers fit
        into memory; ``blocks`` gives such pieces of a pool.

        Args:
            X: ``N x d`` points, or ``S x N x d``, in the user's space.
            prefixes: After each observation rather than after each round.

        Returns:
            Two tensors ``(R + 1) x S x N``, float64, in units of ``y`` and squared.
        """
        G = self.prior.features(X)
        V = path_rows(self.L, self.prior.covariance(self.F, G))
        rounds = torch.arange(self.rounds.numel()) if prefixes else self.rounds
        ends = round_ends(rounds).to(V.device)
        return path_moments(V, self.a, self.prior.mean(G), self.prior.variance(G), ends)

    def new_noise_var(self, p: int) -> Tensor:
        r"""``S x p`` noise variances of observations to come, units of ``y`` squared.

        The model's own; for known per-observation noise the average of the training
        data's, as in BoTorch's ``posterior(..., observation_noise=True)``.
        """
        noise = self.prior.noise_var
        noise = self.noise_var.mean(dim=-1) if noise is None else noise
        return noise.double().unsqueeze(-1).expand(*noise.shape, p)

    def after(self, F: Tensor, noise_var: Tensor) -> PosteriorPath:
        r"""The path with ``p`` further rows of unknown values: their residuals are 0.

        They shrink variances and leave means; they count as one more round.

        Args:
            F: ``S x p x d'`` features.
            noise_var: ``S x p`` variances of the observations to come.
        """
        cross = path_rows(self.L, self.prior.covariance(self.F, F)).mT  # S x p x n
        block = factorize(
            self.prior.covariance(F, F) - cross @ cross.mT,
            noise_var,
            self.prior.least_noise(torch.cat((self.F, F), dim=-2)),
        )
        none = self.rounds.new_zeros(1)
        last = self.rounds[-1:] + 1 if self.rounds.numel() else none
        new_a = self.a.new_zeros(*self.a.shape[:-1], F.shape[-2])
        return replace(
            self,
            F=torch.cat((self.F, F), dim=-2),
            L=extended(self.L, cross, block),
            a=torch.cat((self.a, new_a), dim=-1),
            noise_var=torch.cat((self.noise_var, noise_var), dim=-1),
            rounds=torch.cat((self.rounds, last.expand(F.shape[-2]))),
        )


def checked_budget(memory_budget: Any, per_row: int, what: str) -> int:
    r"""``memory_budget`` if one row of an array fits it.

    Args:
        memory_budget: Bytes.
        per_row: Numbers in the row.
        what: What the row is, for people.

    Raises:
        ValueError: If it is no whole number or too small; the message says the least.
    """
    budget, least = whole_number(memory_budget, "memory_budget", 1), 8 * per_row
    if budget < least:
        raise ValueError(
            f"Expected `memory_budget` of at least {least} bytes, {what}, but got "
            f"{budget}. The default is {MEMORY_BUDGET}."
        )
    return budget


def row_blocks(n_rows: int, per_row: int, budget: int = MEMORY_BUDGET) -> list[slice]:
    r"""Slices of a pool such that ``per_row`` float64 numbers a row fit the budget.

    Args:
        n_rows: Rows of the pool.
        per_row: Numbers held per row in one array (usually the observations).
        budget: Bytes for all temporary arrays together.
    """
    rows = max(1, min(budget, FAST_BLOCK) // (8 * COPIES * max(per_row, 1)))
    return [slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows)]


def _check_rounds(rounds: Tensor | None, n: int) -> Tensor:
    r"""``n`` round numbers that do not decrease; default 0, 1, ..., ``n - 1``."""
    if rounds is None:
        return torch.arange(n)
    rounds = whole_numbers(rounds, "rounds")
    if rounds.shape != (n,):
        raise ValueError(
            f"Expected `rounds` to hold one round per training observation ({n}), but "
            f"got shape {tuple(rounds.shape)}."
        )
    if (rounds.diff() < 0).any():
        raise ValueError("Expected `rounds` not to decrease; sort the data by round.")
    return rounds
