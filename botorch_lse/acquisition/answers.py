r"""Acquisition functions of one answer of yes or no, for models of a probability.

The model's posterior is that of a latent function ``f`` with ``P(yes | f) = guess +
(1 - guess - lapse) Phi(f)``, ``Phi`` being the standard normal distribution function:
the link of GPyTorch's ``BernoulliLikelihood``. Levels are probabilities of a yes, and a
point is above one where ``f`` is above the value that has this probability.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble
from gpytorch.likelihoods import BernoulliLikelihood, Likelihood
from torch import Tensor

from botorch_lse._validation import (
    check_columns,
    complaint,
    finite_number,
    in_interval,
    real_matrix,
)
from botorch_lse.acquisition.base import (
    PENDING,
    check_is_one,
    constructible,
    of_one_point,
    pending_matrix,
)
from botorch_lse.acquisition.covariance import JointCovariance, in_groups
from botorch_lse.acquisition.points import STRADDLE_BETA
from botorch_lse.confidence.regions import safe_sqrt
from botorch_lse.data.pool import Pool
from botorch_lse.functional.answers import AnswerAhead, joint_excess
from botorch_lse.functional.lookahead import ratio_to_level
from botorch_lse.functional.scores import straddle
from botorch_lse.models.gaussian_process import check_parameters
from botorch_lse.models.outcomes import Binary


class AnswerAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of one answer of yes or no.

    Pending points shrink the variance as much as their answers are expected to, and
    leave the mean: an answer counts as a measurement of ``f`` with the noise of
    ``Binary.pseudo_noise``. That is how greedy batches are chosen with
    ``optimize_acqf(..., sequential=True)``. Make a new one when the model has changed.
    """

    threshold: Tensor
    X_pending = PENDING

    def __init__(
        self,
        model: Model,
        threshold: float,
        guess: float = 0.0,
        lapse: float = 0.0,
    ) -> None:
        r"""An answer under a model, and a level of its probability.

        Args:
            model: A fitted model with one output and a ``BernoulliLikelihood``, such as
                ``SingleTaskVariationalGP(X, likelihood=BernoulliLikelihood())``.
            threshold: The level, a probability between ``guess`` and ``1 - lapse``.
            guess: The probability of a yes however small ``f`` is. The likelihood of
                the model is to have it, too.
            lapse: The probability of a no however large ``f`` is.

        Raises:
            UnsupportedError: If the model has another likelihood, several outputs, or
                is several models.
            ValueError: If a rate is not in [0, 1) or the level not between them.
        """
        super().__init__(model=model)
        check_answers(model, type(self).__name__)
        self.outcome = Binary(guess, lapse)
        in_interval(threshold, "threshold", guess, 1.0 - lapse)
        level = torch.tensor(finite_number(threshold, "threshold"), dtype=torch.float64)
        self.register_buffer("threshold", level)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points that are being asked: they shrink the variance.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                model's inputs.
        """
        pending = pending_matrix(X_pending, self.model)
        if pending is not None:
            check_columns(self.model.posterior, pending, "X_pending")
        self._pending = pending
        self.covariance = JointCovariance(self.model, None)
        if pending is None:
            return
        with torch.no_grad():
            noise = self.outcome.pseudo_noise(*self._latent(pending))
            self.covariance = self.covariance.after(pending, noise)

    def _latent(self, points: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean and shrunken variance of ``f`` at ``p x d`` points (``p`` each)."""
        posteriors: list[Any] = [self.model.posterior(X) for X in in_groups(points)]
        mean = torch.cat([posterior.mean.flatten() for posterior in posteriors])
        variance = self.covariance.variance(self.covariance.prepare(points))
        return mean.double(), variance

    @abstractmethod
    def _values(self, points: Tensor) -> Tensor:
        r"""The values of ``p x d`` points (``p``)."""

    @of_one_point
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x 1 x d`` to ``batch_shape``)."""
        self.to(X.device)
        points = X.reshape(-1, X.shape[-1]).to(next(self.model.parameters(), X))
        if points.requires_grad:
            # GPyTorch keeps a factor after the first call, with the graph of its points
            # if they have one: a second call could then not go backward.
            with torch.no_grad():
                self.model.posterior(points[:1])
        return self._values(points).view(X.shape[:-2]).to(X)


def check_answers(model: Model, name: str) -> None:
    r"""Complain about a model whose likelihood is not that of answers of yes and no.

    Args:
        model: A model.
        name: The class that takes it.

    Raises:
        UnsupportedError: If it is no model of one output with a Bernoulli likelihood.
        ValueError: If a parameter is not finite.
    """
    if not isinstance(model, Model) or is_ensemble(model) or model.num_outputs != 1:
        wanted = f"to be one BoTorch model with one output for {name}"
        remedy = (
            "Fit one for each output, `SingleTaskVariationalGP(X, Y[:, [i]], "
            "BernoulliLikelihood())`."
        )
        came = f"got {type(model).__name__}"
        raise UnsupportedError(complaint("model", wanted, came, remedy))
    check_parameters(model)
    check_is_one(model, name)
    own = [module for module in model.modules() if isinstance(module, Likelihood)]
    if any(isinstance(module, BernoulliLikelihood) for module in own):
        return
    came = ", ".join(type(module).__name__ for module in own) or "none"
    wanted = f"to have a `BernoulliLikelihood` for {name}"
    remedy = (
        "Fit `SingleTaskVariationalGP(X, Y, BernoulliLikelihood())` to answers 0 and "
        "1; for measured numbers take `Straddle` or `qGlobalMI`."
    )
    raise UnsupportedError(complaint("model", wanted, f"got {came}", remedy))


@constructible
class BernoulliStraddle(AnswerAcquisitionFunction):
    r"""Straddle score of a probability of yes: uncertain, and near the level.

    ``a(x) = sqrt(beta) sigma(x) - |mean(x) - threshold|`` with the mean and standard
    deviation of the probability ``guess + (1 - guess - lapse) Phi(f(x))`` itself, both
    exact: ``sigma`` is 0 where answers are certain, however uncertain ``f`` is there.
    ``q = 1`` only.

    Example:
        >>> acqf = BernoulliStraddle(classifier, threshold=0.75, guess=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Letham et al. (2022), appendix, for the straddle of a probability, by sampling;
        with pending points as in ``Straddle``.
    """

    def __init__(
        self,
        model: Model,
        threshold: float,
        guess: float = 0.0,
        lapse: float = 0.0,
        beta: float = STRADDLE_BETA,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""A straddle score of a model and a level of its probability.

        Args:
            model, threshold, guess, lapse: See ``AnswerAcquisitionFunction``, as for
                the other errors.
            beta: The squared width, at least 0.
            X_pending: ``n' x d`` points submitted and not answered yet.

        Raises:
            ValueError: If ``beta`` is negative.
        """
        super().__init__(model, threshold, guess, lapse)
        self.beta = in_interval(beta, "beta", 0.0, math.inf, closed_low=True)
        self.set_X_pending(X_pending)

    def _values(self, points: Tensor) -> Tensor:
        mean, variance = self._latent(points)
        a = self.outcome.ahead(mean, variance)
        # Two answers at one point agree by what is uncertain of the probability.
        together = joint_excess(a.ratio, a.ratio, variance / (1 + variance))
        sigma = a.width * safe_sqrt(together)
        return straddle(a.yes, sigma, self.threshold, self.beta)


class TargetedAnswer(AnswerAcquisitionFunction, ABC):
    r"""The effect that one answer is expected to have on the sides of targets.

    Exact for the model's posterior of ``f``: after either answer it is taken as it is
    conditioned on it, with nothing approximated or fitted again.
    """

    targets: Tensor

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        threshold: float,
        guess: float = 0.0,
        lapse: float = 0.0,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""An answer under a model, and targets whose sides matter.

        Args:
            model, threshold, guess, lapse: See ``AnswerAcquisitionFunction``, as for
                the other errors.
            targets: ``T x d`` points whose sides matter, or a ``Pool``: all its rows.
            X_pending: ``n' x d`` points submitted and not answered yet.

        Raises:
            BotorchTensorDimensionError: If the targets are no matrix with the columns
                of the model's inputs.
            ValueError: If they are not finite.
        """
        super().__init__(model, threshold, guess, lapse)
        X = targets.X if isinstance(targets, Pool) else real_matrix(targets, "targets")
        self.register_buffer("targets", X.to(next(model.parameters(), X)))
        check_columns(model.posterior, self.targets, "targets")
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points being asked: see ``AnswerAcquisitionFunction``."""
        super().set_X_pending(X_pending)
        with torch.no_grad():
            mean, self.variance = self._latent(self.targets)
        self.distance = mean - self.outcome.latent(self.threshold).to(mean)

    def _values(self, points: Tensor) -> Tensor:
        candidates, targets = map(self.covariance.prepare, (points, self.targets))
        covariance = self.covariance.between(candidates, targets)  # p x T
        answer = self.outcome.ahead(*self._latent(points))
        given = self.distance, self.variance
        effects = [
            self._effect(some, some.with_sides(*given, own))
            for some, own in answer.pieces(covariance)
        ]
        return torch.cat(effects)

    @abstractmethod
    def _effect(self, answer: AnswerAhead, together: Tensor) -> Tensor:
        r"""The effect of answers at ``p`` points, by ``p x T`` covariances of events.

        Args:
            answer: An answer at each point.
            together: Its covariances with the sides of the targets.
        """

    @property
    def ratio(self) -> Tensor:
        r"""The deviations of the targets from the level (``T``)."""
        return ratio_to_level(self.distance, self.variance)


@constructible
class BernoulliGlobalMI(TargetedAnswer):
    r"""The information of one answer about the targets' sides, in nats.

    ``a(x) = sum_t [H(p(t)) - E H(p_x(t))]``, where ``p(t)`` is the probability that
    target ``t`` is above the level, ``p_x(t)`` that after the answer at ``x``, and
    ``H`` the entropy of a side. ``q = 1`` only.

    Example:
        >>> acqf = BernoulliGlobalMI(classifier, targets=pool_X, threshold=0.75)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Letham et al. (2022), GlobalMI. Deviation: with guesses, lapses and pending
        points.
    """

    def _effect(self, answer: AnswerAhead, together: Tensor) -> Tensor:
        return answer.removed("entropy", self.ratio, together).sum(dim=-1)


@constructible
class BernoulliMisclassification(TargetedAnswer):
    r"""Expected reduction of the number of wrong sides by one answer.

    ``a(x) = sum_t [g(p(t)) - E g(p_x(t))]``, where ``g(p) = p (1 - p)`` and the
    probabilities are those of ``BernoulliGlobalMI``: what the answer takes off half of
    the Brier score. Number of targets; ``q = 1`` only.

    Example:
        >>> acqf = BernoulliMisclassification(classifier, pool_X, threshold=0.75)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Letham et al. (2022), GlobalSUR. Deviation: with ``p (1 - p)`` in place of
        ``min(p, 1 - p)``, of which an answer takes nothing unless it changes a side's
        more likely class, so that all points may have the value 0; with guesses, lapses
        and pending points.
    """

    def _effect(self, answer: AnswerAhead, together: Tensor) -> Tensor:
        return answer.removed("product", self.ratio, together).sum(dim=-1)


@constructible
class BernoulliEAVC(TargetedAnswer):
    r"""The expected change of the number of targets above by one answer.

    ``a(x) = E abs(sum_t [p_x(t) - p(t)])`` with the probabilities of
    ``BernoulliGlobalMI``. Number of targets; ``q = 1`` only.

    Example:
        >>> acqf = BernoulliEAVC(classifier, targets=pool_X, threshold=0.75)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Letham et al. (2022), EAVC. Deviation: with guesses, lapses and pending points.
    """

    def _effect(self, answer: AnswerAhead, together: Tensor) -> Tensor:
        return answer.volume_change(together)
