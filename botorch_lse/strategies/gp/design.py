r"""Batches from an optimal design on the posterior: what MELK and MILK share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_lse.designs import (
    Design,
    DesignWarning,
    exchange_design,
    optimal_design,
    round_design,
)
from botorch_lse.designs.scale import ridge_of
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.forecast import Forecast, observations_needed
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.features import features_of
from botorch_lse.strategies.planning import PlanningProblem
from botorch_lse.strategies.rule import Request
from botorch_lse.strategies.state import State, round_generator

ROUNDINGS = ("quota", "exchange", "sample")
DESIGNS = ("posterior", "prior")
TOLERANCE = 0.1
"""The design's certified gap: rounding to a batch loses several times more."""


@dataclass(frozen=True, eq=False)
class DesignStrategy(GPStrategy):
    r"""A strategy whose batch is a rounded optimal design.

    ``q`` observations placed by weights ``lam`` leave the variance ``(1 / q) phi'
    (sum lam phi phi' / s2 + I / q)^-1 phi``, where ``phi`` are features of the
    posterior covariance (pivoted Cholesky) and ``s2`` the noise. The weights that make
    the largest of the targets smallest are rounded to ``q`` rows, replicates included.
    A design is a function of the complete rounds alone: none is started from an earlier
    one, so that replaying gives the same batches.

    Args:
        rounding: ``"quota"``; ``"exchange"``: then single rows are swapped while that
            helps, better for batches far smaller than the design's support, and slower;
            ``"sample"``: independent draws as in the paper.
        design: ``"posterior"``: the exact remaining variance, as above. ``"prior"``:
            the paper's design on the prior's kernel with the ridge ``1 / (10 i)`` in
            round ``i``, which forgets where was measured. Other arguments: see
            ``GPStrategy``.

    Raises:
        ValueError: Also if ``rounding`` or ``design`` is not known.

    Source:
        Mason et al. (2022), section 5 and Appendix F.1.
    """

    _: KW_ONLY
    rounding: str = "quota"
    design: str = "posterior"

    intersects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("rounding", ROUNDINGS), ("design", DESIGNS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"Expected `{name}` to be one of {known}, but got "
                    f"{getattr(self, name)!r}."
                )

    @abstractmethod
    def _targets(self, belief: Belief) -> PlanningProblem:
        r"""What is still open."""

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        return posterior.variance

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        if self._is_initial(belief):
            return super()._plan(belief, request)
        posterior = self._expecting(belief, belief.posterior, request.pending)
        generator = round_generator(request.seed, request.round)
        left, size = request.left.clone(), request.size
        rows = torch.empty(0, dtype=torch.long)
        while size > 0 and bool((left > 0).any()):
            counts = self._counts(belief, posterior, left > 0, size, generator)
            counts = torch.minimum(counts, left)
            new = torch.arange(len(counts)).repeat_interleave(counts)
            rows = torch.cat((rows, new))
            left, size = left - counts, size - new.numel()
            if size > 0:
                # Rows that may not be repeated so often: plan the rest without them.
                posterior = self._expecting(belief, posterior, new)
        return rows

    def _expecting(
        self, belief: Belief, posterior: PoolPosterior, rows: Tensor
    ) -> PoolPosterior:
        for row in rows.tolist():
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        return posterior

    def _counts(
        self,
        belief: Belief,
        posterior: PoolPosterior,
        usable: Tensor,
        size: int,
        generator: torch.Generator,
    ) -> Tensor:
        r"""``N`` counts of ``size`` observations."""
        problem = self._problem(belief, posterior, usable, size)
        counts = torch.zeros(len(usable), dtype=torch.long)
        if problem is None:  # nothing is uncertain
            counts[usable.nonzero()[0]] = size
            return counts
        method = "sample" if self.rounding == "sample" else "quota"
        weights = solved(problem, self._tolerance(belief, size)).weights
        rounded = round_design(weights, size, method, generator=generator)
        if self.rounding == "exchange":
            rounded = exchange_design(rounded, **problem)
        counts[usable] = rounded
        return counts

    def _problem(
        self, belief: Belief, posterior: PoolPosterior, usable: Tensor, size: int
    ) -> dict[str, Any] | None:
        r"""The arguments of ``optimal_design``, in units of the noise.

        Args:
            belief: What the complete rounds say.
            posterior: The posterior to improve on.
            usable: ``N`` bools: the rows that may be measured.
            size: The number of observations to place.

        Returns:
            Keyword arguments; ``None`` if no target is uncertain.
        """
        return self._stated(belief, posterior, usable, size, self._targets(belief))

    def _stated(
        self,
        belief: Belief,
        posterior: PoolPosterior,
        usable: Tensor,
        size: int,
        targets: PlanningProblem,
    ) -> dict[str, Any] | None:
        noise_var = self._noise_var(belief)
        if self.design == "prior":
            widest = float(posterior.prior_variance[targets.rows].max())
            Phi = features_of(posterior, widest, size, prior=True)
            gamma, noise_var = 1 / (10 * (belief.n_rounds + 1)), noise_var.new_ones(1)
        else:
            Phi = features_of(posterior, self._largest(posterior, targets), size)
            gamma = None
        if Phi.shape[1] == 0:
            return None
        unit = noise_var.mean()
        Phi, noise_var = Phi / unit.sqrt(), noise_var / unit
        if gamma is None:
            gamma = ridge_of(size, Phi, noise_var)
        everywhere = bool(usable.all())
        return {
            "X": Phi if everywhere else Phi[usable],
            "targets": targets.rows if everywhere else Phi[targets.rows],
            "gamma": gamma,
            "noise_var": noise_var[usable] if noise_var.numel() > 1 else None,
            "target_weights": targets.weights,
            "pairs_factor": targets.factor,
        }

    def _largest(self, posterior: PoolPosterior, targets: PlanningProblem) -> float:
        r"""The variance of a target that sets the accuracy of the features."""
        return float(posterior.variance[targets.rows].max())

    def _tolerance(self, belief: Belief, size: int) -> float:
        r"""The certified gap of a design for ``size`` observations."""
        return TOLERANCE

    def _gaps(self, belief: Belief) -> PlanningProblem | None:
        r"""What is still open, weighted by one over the squared gaps expected.

        ``None``: the undecided rows against the level, as for any other strategy.
        """
        return None

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        unknown = self._no_forecast(belief)
        if unknown is not None:
            return unknown
        posterior, targets = belief.posterior, self._gaps(belief)
        if targets is None:
            return super()._forecast(state)
        usable = torch.ones(len(self.pool), dtype=torch.bool)
        # What is left to do depends on the data, whatever the batches look at.
        planner = replace(self, design="posterior")
        problem = planner._stated(belief, posterior, usable, self.batch_size, targets)
        if problem is None:
            return Forecast(self.batch_size, "Nothing is uncertain any more.")
        del problem["gamma"]
        unit = self._noise_var(belief).mean()  # of the features, and so of the gaps
        problem["target_weights"] = unit * problem["target_weights"]
        beta = self._beta(belief.n_intervals + 1, posterior)
        return Forecast(
            observations_needed(problem, beta),
            "By the optimal design for the gaps of the current estimate and the width "
            "of the next round.",
        )


def solved(problem: dict[str, Any], tol: float) -> Design:
    r"""The optimal design within ``tol``, or as near as the solver came."""
    with warnings.catch_warnings():
        # Missing the tolerance by a little costs less than rounding does.
        warnings.simplefilter("ignore", DesignWarning)
        return optimal_design(**problem, tol=tol)
