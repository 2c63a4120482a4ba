r"""Strategies that learn which rows are noisy in a burn-in."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import whole_number
from botorch_lse.estimators.variance import variance_bounds
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Observations
from botorch_lse.strategies.arguments import BURN_IN, check_budget
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.burn_in import BurnIn, BurnInData
from botorch_lse.strategies.gp.design import DesignStrategy
from botorch_lse.strategies.loop import Request, check_state
from botorch_lse.strategies.state import State


@dataclass(frozen=True, eq=False)
class BurnInBelief(Belief):
    r"""What the complete rounds say, and what the burn-in measured.

    Args:
        burn_in: ``None`` where the noise is known.
    """

    burn_in: BurnInData | None = None


@dataclass(frozen=True, eq=False)
class BurnInStrategy(DesignStrategy):
    r"""A design strategy that may estimate the noise of every row at first.

    With ``variance_bounds`` the first rounds are HEAD's two designs on
    ``pool.features`` (``pool.X`` without), split evenly over rounds of ``batch_size``.
    They give the noise variance of every row as a quadratic form of the features, from
    the residuals of a linear fit: what of ``f`` is not linear in the features counts as
    noise. The burn-in's data are kept: they and all later ones enter the Gaussian
    process with their row's variance. Nothing is decided during the burn-in.

    Args:
        variance_bounds: The least and the largest noise variance, units of ``y``
            squared, where the variances are not known; estimates are clipped to them.
            A variance told with a value (``yvar``) goes before its estimate.
        burn_in: Measurements of the burn-in, rounded up to two stages of whole rounds.
            Default 20 per dimension of the quadratic features. Other arguments: see
            ``DesignStrategy``.

    Raises:
        ValueError: Also if the noise is given twice, or the bounds or the burn-in are
            out of range.

    Source:
        Weltz et al. (2023), Algorithm 1.
    """

    _: KW_ONLY
    variance_bounds: tuple[float, float] | None = None
    burn_in: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head is not None:
            check_budget(self.max_observations, self.head.n, *BURN_IN)  # or it raises

    def _check_noise(self) -> None:
        if self.variance_bounds is None:
            if self.burn_in is not None:
                raise ValueError(
                    "Expected `burn_in` with `variance_bounds` only, because nothing "
                    f"is estimated without, but got {self.burn_in}."
                )
            super()._check_noise()
            return
        variance_bounds(self.variance_bounds, "variance_bounds")
        if self.burn_in is not None:
            whole_number(self.burn_in, "burn_in", 2)
        known = [
            name
            for name, value in (
                ("`noise_std`", self.noise_std),
                ("`pool.noise_var`", self.pool.noise_var),
            )
            if value is not None
        ]
        if known:
            raise ValueError(
                "Expected the noise once, but got `variance_bounds` and "
                f"{' and '.join(known)}. Leave one out."
            )
        if self.n_initial is not None:
            raise ValueError(
                "Expected no `n_initial` with `variance_bounds`: the burn-in comes "
                f"first. Give `burn_in` instead of {self.n_initial}."
            )

    @cached_property
    def head(self) -> BurnIn | None:
        r"""The burn-in; ``None`` where the noise is known."""
        if self.variance_bounds is None:
            return None
        features = self.pool.X if self.pool.features is None else self.pool.features
        return BurnIn(features, self.variance_bounds, self.batch_size, self.burn_in)

    @property
    def n_burn_in(self) -> int:
        r"""Planned measurements of the burn-in."""
        return 0 if self.head is None else self.head.n

    def burn_in_used(self, state: State) -> int:
        r"""How many measurements were made during the burn-in."""
        check_state(self, state)
        data = state.belief.burn_in
        return 0 if data is None else data.n

    def variances(self, state: State) -> Tensor | None:
        r"""``N`` noise variances, known or estimated; ``None`` during the burn-in.

        Where neither is the case (a model that learns one noise) ``None`` as well.
        """
        check_state(self, state)
        data = state.belief.burn_in
        return self.pool.noise_var if data is None else data.variances

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the widths are a theorem's; with estimated noise they are not."""
        return self.beta is None and self.variance_bounds is None

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        if self.head is None or self.beta is not None:
            return super().guarantee
        return (
            "No confidence is claimed: the widths are those of Gotovos et al. (2013), "
            f"{self._theorem}, at delta = {self.delta:g}, but the noise variances are "
            f"estimates from {self.n_burn_in} measurements."
        )

    @property
    def initial_observations(self) -> int:
        r"""Measurements placed by maximal variance at first; none after a burn-in."""
        return super().initial_observations if self.head is None else 0

    def _planned_noise(self, prior: GPPrior, yvar: Tensor | None) -> Tensor:
        if self.head is None:
            return super()._planned_noise(prior, yvar)
        return self._unfitted_noise  # until the burn-in knows

    # --- learning ---------------------------------------------------------------------

    def _start(self, seed: int) -> Belief:
        start = super()._start(seed)
        if self.head is None:
            return start
        blank = self._uninformed(start.posterior, 0.0)
        return _knowing(blank, BurnInData.empty(len(self.pool)), 0)

    def _learn(
        self, belief: Belief, new: Observations, history: Observations, seed: int
    ) -> Belief:
        assert isinstance(belief, BurnInBelief)
        if self.head is None:
            return super()._learn(belief, new, history, seed)
        assert belief.burn_in is not None  # since the start
        data, n_rounds = belief.burn_in, belief.n_rounds + 1
        if data.variances is not None:
            new = _with_noise(new, data.variances)
            history = _with_noise(history, data.variances)
            learnt = super()._learn(belief, new, history, seed)
            return _knowing(learnt, data, n_rounds)
        data = self.head.after(data, new)
        if data.variances is None:
            mean = float(history.y.mean())
            blank = self._uninformed(belief.posterior, mean)
            return _knowing(blank, data, n_rounds)
        history = _with_noise(history, data.variances)
        if self.fixed is None:
            learnt = self._refit(history, seed, n_rounds)
            learnt = self._two_sided(learnt, history)
        else:
            learnt = self._along(self._prior_belief(self.fixed), history)
        return _knowing(learnt, data, n_rounds)

    # --- choosing ---------------------------------------------------------------------

    def _knows_noise(self, belief: Belief) -> bool:
        assert isinstance(belief, BurnInBelief)
        if belief.burn_in is not None and belief.burn_in.variances is None:
            return False
        return super()._knows_noise(belief)

    def _is_initial(self, belief: Belief) -> bool:
        assert isinstance(belief, BurnInBelief)
        if belief.burn_in is not None:
            return belief.burn_in.variances is None
        return super()._is_initial(belief)

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        assert isinstance(belief, BurnInBelief)
        if not self._is_initial(belief):
            return super()._plan(belief, request)
        if self.head is None or belief.burn_in is None:
            return self._initial_plan(belief, request)
        counts = self.head.plan(
            belief.burn_in, request.size, request.left, request.pending
        )
        return torch.arange(len(counts)).repeat_interleave(counts)

    def _initial_plan(self, belief: Belief, request: Request) -> Tensor:
        r"""The first rows where the noise is known but no model yet."""
        return super()._plan(belief, request)


def _knowing(belief: Belief, data: BurnInData, n_rounds: int) -> BurnInBelief:
    r"""The same with the burn-in, and its variances for what comes."""
    assert isinstance(belief, BurnInBelief)
    noise = belief.new_noise if data.variances is None else data.variances
    return replace(belief, burn_in=data, new_noise=noise, n_rounds=n_rounds)


def _with_noise(observations: Observations, variances: Tensor) -> Observations:
    r"""The same with the estimated variances, where none were told."""
    if observations.yvar is not None:
        return observations
    return replace(observations, yvar=variances[observations.indices])
