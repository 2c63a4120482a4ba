r"""Kernels of rows that are not numbers: fingerprints, similarity matrices."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch import models  # which loads its modules on first use
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import check_shape, complaint, of_type, real_matrix
from botorch_lse.models.gaussian_process import GPPrior

ASYMMETRIC = 1e-8
"""The share of the largest entry by which entries across the diagonal may differ.
Similarities may come from a file in single precision or with eight digits."""
NEGATIVE = 1e-6
"""The share of the largest entry by which rounding may bring eigenvalues below 0."""


class GramKernel(Kernel):
    r"""A kernel given as a covariance matrix over the rows of a pool.

    For rows that are no points: graphs, sequences, texts, molecules, whatever a
    similarity is known of. The input of the pool is then the number of the row, from 0.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> from gpytorch.kernels import ScaleKernel
        >>> from botorch_lse.strategies import Above, GaussianProcess, Strategy
        >>> words = ["kitten", "mitten", "sitting", "knight"]
        >>> shared = [[len(set(a) & set(b)) for b in words] for a in words]
        >>> pool = Pool(torch.arange(4).unsqueeze(-1), names=("word",))
        >>> kernel = GramKernel(torch.tensor(shared))
        >>> model = GaussianProcess(LearntKernel(ScaleKernel(kernel)))
        >>> strategy = Strategy(pool, Above(1.0), model=model)

    Args:
        matrix: ``N x N`` covariances, in any unit if a model is to learn their scale
            (``ScaleKernel(GramKernel(matrix))``), else in units of ``y`` squared.
            Rounding errors of symmetry and of eigenvalues that should be 0 are allowed.

    Raises:
        ValueError: If an entry is not finite, or it is no covariance: not symmetric, or
            with an eigenvalue below 0; or, when it is evaluated, if an input is no
            number of a row.
        BotorchTensorDimensionError: If it is not square, or when it is evaluated, if
            there are several inputs.
    """

    def __init__(self, matrix: Any) -> None:
        super().__init__()
        matrix = real_matrix(matrix, "matrix")
        N = len(matrix)
        check_shape(matrix.shape[-1] == N, matrix, "matrix", "to be square")
        largest = float(matrix.abs().max())
        gap = float((matrix - matrix.mT).abs().max())
        if gap > ASYMMETRIC * largest:
            at = divmod(int((matrix - matrix.mT).abs().argmax()), N)
            raise ValueError(
                f"Expected `matrix` to be symmetric, but entry {at} is "
                f"{written(matrix[at])} and entry {at[::-1]} is "
                f"{written(matrix[at[::-1]])}. Give `(matrix + matrix.T) / 2` if "
                "this is rounding."
            )
        matrix = (matrix + matrix.mT) / 2
        slack = NEGATIVE * largest * torch.eye(N, dtype=matrix.dtype)
        if not largest > 0 or int(torch.linalg.cholesky_ex(matrix + slack)[1]):
            values = torch.linalg.eigvalsh(matrix)
            wanted = "to be a covariance, without eigenvalues below 0"
            came = f"its eigenvalues are between {values[0]:g} and {values[-1]:g}"
            remedy = (
                "Similarities need not be covariances: take the part with positive "
                "eigenvalues, `V[:, w > 0] * w[w > 0] @ V[:, w > 0].T` with "
                "`w, V = torch.linalg.eigh(matrix)`."
            )
            raise ValueError(complaint("matrix", wanted, came, remedy))
        self.register_buffer("matrix", matrix)

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""The covariances of row numbers ``... x N x 1`` with ``... x M x 1``.

        Args:
            x1: Row numbers.
            x2: Row numbers.
            diag: Whether only those of ``x1[i]`` with ``x2[i]`` are wanted.
            params: As for every kernel; not used.
        """
        one, other = self._rows(x1), self._rows(x2)
        if diag:
            return self.matrix[one, other]
        return self.matrix[one.unsqueeze(-1), other.unsqueeze(-2)]

    def _rows(self, x: Tensor) -> Tensor:
        if x.shape[-1] != 1:
            raise BotorchTensorDimensionError(
                "Expected a GramKernel's inputs to be one column, the number of the "
                f"row, but got {x.shape[-1]}. Write "
                "`Pool(torch.arange(N).unsqueeze(-1), table=table)`."
            )
        rows, N = x.squeeze(-1).round().long(), len(self.matrix)
        bad = (rows != x.squeeze(-1)) | (rows < 0) | (rows >= N)
        if bool(bad.any()):
            raise ValueError(
                f"Expected a GramKernel's inputs to be row numbers from 0 to {N - 1}, "
                f"but got {written(x.squeeze(-1)[bad][0])}. The model must take "
                "them as they are, without an input transform."
            )
        return rows


class TanimotoKernel(Kernel):
    r"""The Tanimoto similarity of fingerprints: shared bits over bits of either.

    ``<x, y> / (|x|^2 + |y|^2 - <x, y>)``, 1 for equal rows and 0 for rows without a
    common bit. Counts in place of bits are fine, and so are any numbers.

    Example:
        >>> import torch
        >>> bits = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
        >>> TanimotoKernel()(bits).to_dense()
        tensor([[1.0000, 0.3333],
                [0.3333, 1.0000]])

    Args:
        active_dims: The columns that are fingerprints, if others are something else.

    Source:
        Ralaivola et al. (2005), Neural Networks 18, Tanimoto kernel.
    """

    def __init__(self, active_dims: tuple[int, ...] | None = None) -> None:
        super().__init__(active_dims=active_dims)

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""The similarities of ``... x N x d`` points with ``... x M x d``.

        Args:
            x1: Fingerprints.
            x2: Fingerprints.
            diag: Whether only those of ``x1[i]`` with ``x2[i]`` are wanted.
            params: As for every kernel; not used.
        """
        own, other = x1.square().sum(dim=-1), x2.square().sum(dim=-1)
        if diag:
            shared = (x1 * x2).sum(dim=-1)
            either = own + other - shared
        else:
            shared = x1 @ x2.mT
            either = own.unsqueeze(-1) + other.unsqueeze(-2) - shared
        # Two rows without any bit are equal.
        empty = either == 0
        return shared.masked_fill(empty, 1.0) / either.masked_fill(empty, 1.0)


@dataclass(frozen=True, eq=False)
class LearntKernel:
    r"""A ``model`` for strategies: BoTorch's ``SingleTaskGP`` with your own kernel.

    Hyper-parameters of the kernel, mean and noise are fitted to the data in each round
    (a kernel given as ``model`` itself is fixed, units of ``y``). The kernel takes the
    rows of the pool as they are: give it lengthscales and priors in their units. Values
    are standardised, so that a kernel's variance is to be about 1, or learnt
    (``ScaleKernel``). Before any fit first rows are those that are least alike by the
    kernel as it is given.

    Ten rows for each input are measured before the rule takes over, at most 100; if
    inputs say nothing about how many are needed, as with a ``GramKernel``, give
    ``n_initial``.

    Example:
        >>> from gpytorch.kernels import ScaleKernel
        >>> model = LearntKernel(ScaleKernel(TanimotoKernel()))

    Args:
        kernel: Copied before each fit, which begins at its values; or a function
            without arguments that makes it. In an experiment that is stored, a kernel
            with priors has to be given by a function that can be imported.

    Raises:
        ValueError: If ``kernel`` is not a GPyTorch kernel.
        UnsupportedError: If it has a batch shape.
    """

    kernel: Kernel | Callable[[], Kernel]

    def __post_init__(self) -> None:
        kernel = self._copy()
        if len(kernel.batch_shape):
            raise UnsupportedError(
                "Expected `kernel` without batch shape, but got "
                f"{tuple(kernel.batch_shape)}."
            )

    def _copy(self) -> Kernel:
        given: Any = self.kernel
        if callable(given) and not isinstance(given, Kernel):
            given = given()
        of_type(
            given, Kernel, "kernel", "a GPyTorch kernel, or a function that makes one"
        )
        return deepcopy(given).double()

    def __call__(
        self, train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None
    ) -> models.SingleTaskGP:
        r"""The fitted model.

        Args:
            train_X: ``n x d``.
            train_Y: ``n x 1``.
            train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        """
        # Not at the top: they bring SciPy, which only a fit needs.
        from botorch_lse.models.explanations import explained, fitted, varied
        from botorch_lse.models.fitted import (
            CONSTANT_STD,
            default_likelihood,
            largest_noise,
            n_replicates,
        )

        noise = None
        if train_Yvar is None:
            noise = default_likelihood(largest_noise(train_X, train_Y))
        model = models.SingleTaskGP(
            train_X,
            train_Y,
            train_Yvar,
            likelihood=noise,
            covar_module=self._copy(),
            outcome_transform=Standardize(1, min_stdv=CONSTANT_STD),
        )
        if train_Yvar is not None:
            return varied(fitted(model)[1])
        return varied(explained([model], n_replicates(train_X)))

    def unfitted(self, X: Tensor) -> GPPrior:
        r"""The process before any data, which chooses the initial rows.

        Args:
            X: ``N x d`` rows; the largest of their variances is made 1.

        Raises:
            BotorchTensorDimensionError: If the kernel is for other columns.
            ValueError: If no row has a positive variance.
        """
        prior = GPPrior.from_kernel(self._copy())
        with torch.no_grad():
            largest = prior.variance(prior.pool_features(X)).amax()
        if not float(largest) > 0:
            wanted = "to have a positive variance on some row of the pool"
            raise ValueError(complaint("kernel", wanted, f"the largest is {largest:g}"))
        return replace(prior, scale=prior.scale / largest.sqrt())
