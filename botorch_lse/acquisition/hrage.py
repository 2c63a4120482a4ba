r"""The worst weighted variance, every row with its own noise."""

from __future__ import annotations

from typing import cast

from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_lse.acquisition.design import qNegMaxPosteriorVariance
from botorch_lse.acquisition.noise import NoiseVar
from botorch_lse.checks import non_negative_vector
from botorch_lse.problem import Pool


class qHRAGE(qNegMaxPosteriorVariance):  # noqa: N801
    r"""H-RAGE's batch criterion: weighted, and every row with its own noise.

    ``a(X) = -max over t of weight_t var(f(t) | data, pending, X)`` with the undecided
    rows as ``targets``. On a ``SingleTaskGP`` with a ``LinearKernel`` over the features
    this is the weighted G-criterion of linear regression; on a ``HeteroscedasticGP``
    the noise of the batch is the model's own prediction.

    Example:
        >>> acqf = qHRAGE(model, targets=pool_X, noise_var=lambda X: 1 + X[..., 0])
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Weltz et al. (2023), Algorithm 2, line 7, for integer counts, with the data so
        far, and with the posterior variance in place of ``|x|^2_{A^-1}``, which it is
        for a Gaussian process with a linear kernel and a vague prior. Averaged over an
        ensemble.
    """

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        *,
        target_weights: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
    ) -> None:
        r"""See ``qNegMaxPosteriorVariance``.

        Args:
            model: A fitted model with a Gaussian posterior.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            noise_var: The noise variance of a future observation, units of ``y``
                squared: a number, a function from ``b x q x d`` points to ``b x q``, or
                a model with ``predict_noise``. Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            target_weights: ``T`` factors of the variances, such as one over the squared
                gaps, at least 0; default 1.
            posterior_transform: Required for a model with several outputs.

        Raises:
            UnsupportedError: Also if ``noise_var`` is a model that predicts no noise.
            ValueError: Also if a weight is negative, or all are 0.
            BotorchTensorDimensionError: If there is not one weight per target.
        """
        super().__init__(model, targets, noise_var, X_pending, posterior_transform)
        weights = None
        if target_weights is not None:
            weights = non_negative_vector(
                target_weights,
                "target_weights",
                len(self.targets),
                "target",
                booleans=True,
            ).to(self.targets.device)
            if not bool(weights.any()):
                raise ValueError(
                    "Expected `target_weights` with a positive entry, but all are 0."
                )
        self.register_buffer("target_weights", weights)

    @property
    def weights(self) -> Tensor | None:
        r"""``T`` factors of the variances; ``None``: all 1."""
        return cast("Tensor | None", self.target_weights)  # a buffer
