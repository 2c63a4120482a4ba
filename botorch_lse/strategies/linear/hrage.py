r"""H-RAGE with anytime widths: best item or level set, noise known or estimated."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import finite_number, whole_number
from botorch_lse.estimators import (
    ArmStatistics,
    HeadDesigns,
    burn_in_size,
    head_designs,
    head_from_arms,
    quadratic_features,
)
from botorch_lse.estimators.variance import variance_bounds
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies.arguments import BURN_IN, check_budget, check_targets
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.goals import (
    ask_best,
    ask_level,
    decide_best,
    decide_level,
)
from botorch_lse.strategies.linear.melk import SingleOutputStrategy
from botorch_lse.strategies.loop import Request


@dataclass(frozen=True, eq=False)
class BurnInBelief(LinearBelief):
    r"""With the measurements of the burn-in.

    Args:
        stage: 0 and 1 while the burn-in lasts, 2 after it.
        first: The measurements of the first stage.
        second: Those of the second.
    """

    stage: int
    first: ArmStatistics
    second: ArmStatistics


@dataclass(frozen=True, eq=False)
class HRAGELinearStrategy(SingleOutputStrategy):
    r"""H-RAGE on linear features, all data kept: level set or best item.

    With ``variance_bounds`` a burn-in estimates the noise variances by HEAD; each
    estimate plus what it may be too small by, at most the largest variance, is the
    noise scale of all later measurements. The burn-in's own measurements count with the
    largest variance. Means of replicates told in the burn-in need as ``yvar`` the
    sample variance of the replicates divided by their number.

    Args:
        threshold: The level, units of ``y``; ``None`` looks for the best item.
        targets: The items to decide on, in the span of the pool; default ``pool``.
        variance_bounds: The least and the largest noise variance, where neither
            ``noise_std`` nor ``pool.noise_var`` is given.
        burn_in: Measurements of the burn-in; default ``burn_in_size``.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2), noise_var=torch.tensor([1.0, 0.01]))
        >>> strategy = HRAGELinearStrategy(pool, batch_size=22)
        >>> strategy.ask(strategy.init()).counts.tolist()
        [21, 1]

    Source:
        The rounds of Weltz et al. (2023), Algorithm 2, with the widths of
        ``StitchedWidth`` (and ``BatchMartingale`` for level sets). Half of ``delta`` is
        for "all inflated estimates are upper bounds", as HEAD's error is near Gaussian
        with the standard deviation of ``burn_in_size``; half for the widths.
    """

    threshold: float | None = None
    _: KW_ONLY
    targets: Pool | None = None
    variance_bounds: tuple[float, float] | None = None
    burn_in: int | None = None

    def __post_init__(self) -> None:
        check_targets(self.targets)
        super().__post_init__()
        if self.threshold is not None:
            finite_number(self.threshold, "threshold")
        if self.burn_in is not None:
            if self.variance_bounds is None:
                raise ValueError(
                    f"Expected no `burn_in` with known noise, but got {self.burn_in}."
                )
            whole_number(self.burn_in, "burn_in", 2)
            self._head.counts(self.burn_in)  # or it raises
        if self.max_observations is not None:
            check_budget(self.max_observations, self.n_burn_in, *BURN_IN)

    def _check_noise(self) -> None:
        given = (self.noise_std, self.pool.noise_var, self.variance_bounds)
        if sum(value is not None for value in given) != 1:
            raise ValueError(
                "Expected the noise once, as `noise_std`, `pool.noise_var` or "
                "`variance_bounds`, but got "
                f"{sum(value is not None for value in given)} of them."
            )
        if self.variance_bounds is not None:
            variance_bounds(self.variance_bounds, "variance_bounds")
        else:
            super()._check_noise()

    @property
    def items(self) -> Pool:
        r"""The items to decide on."""
        return self.pool if self.targets is None else self.targets

    @property
    def uses_items(self) -> bool:
        r"""Whether there is a level, with which each item is compared."""
        return self.threshold is not None

    @property
    def width_delta(self) -> float:
        r"""Half of ``delta`` where the other half is the burn-in's."""
        return self.delta if self.variance_bounds is None else self.delta / 2

    def first_noise_var(self) -> Tensor:
        r"""``N`` squared noise scales; the largest variance before the burn-in."""
        if self.variance_bounds is None:
            return super().first_noise_var()
        largest = float(self.variance_bounds[1])
        return torch.full((len(self.pool),), largest, dtype=torch.float64)

    # --- burn-in ----------------------------------------------------------------------

    @cached_property
    def _head(self) -> HeadDesigns:
        return head_designs(self.X)

    @cached_property
    def n_burn_in(self) -> int:
        r"""Planned measurements of the burn-in."""
        if self.variance_bounds is None:
            return 0
        if self.burn_in is not None:
            return self.burn_in
        size = burn_in_size(self.X, self.variance_bounds, self.delta)
        return max(size, self._head.least)

    def _start(self, seed: int) -> BurnInBelief:
        start = super()._start(seed)
        empty = ArmStatistics.empty(len(self.pool))
        return BurnInBelief(
            **{f: getattr(start, f) for f in LinearBelief.__dataclass_fields__},
            stage=2 if self.variance_bounds is None else 0,
            first=empty,
            second=empty,
        )

    def _missing(self, belief: BurnInBelief) -> Tensor:
        r"""``N`` counts that the current stage of the burn-in still needs."""
        told = (belief.first, belief.second)[belief.stage].counts
        return (self._head.counts(self.n_burn_in)[belief.stage] - told).clamp_min(0)

    def _round_size(self, belief: LinearBelief, room: int | None) -> int:
        assert isinstance(belief, BurnInBelief)
        if belief.stage == 2 or self.batch_size is not None:
            return super()._round_size(belief, room)
        size = int(self._missing(belief).sum())
        return size if room is None else min(size, room)

    def planned_batch(self, belief: LinearBelief, request: Request) -> Tensor:
        r"""``N`` counts of the next batch; in the burn-in part of its stage."""
        assert isinstance(belief, BurnInBelief)
        if belief.stage == 2:
            return super().planned_batch(belief, request)
        N = len(self.pool)
        out = torch.bincount(request.pending, minlength=N)
        counts = (self._missing(belief) - out).clamp_min(0)
        counts = torch.minimum(counts, request.left)
        excess = (counts.cumsum(dim=0) - request.size).clamp_min(0)
        return (counts - excess).clamp_min(0)

    def _learn(
        self, belief: LinearBelief, new: Observations, history: Observations, seed: int
    ) -> LinearBelief:
        learnt = super()._learn(belief, new, history, seed)
        assert isinstance(learnt, BurnInBelief)
        if learnt.stage == 2:
            return learnt
        arms = ArmStatistics.of_observations(new, len(self.pool))
        if learnt.stage == 0:
            learnt = replace(learnt, first=learnt.first.merge(arms))
        else:
            learnt = replace(learnt, second=learnt.second.merge(arms))
        if bool(self._missing(learnt).any()):
            return learnt
        if learnt.stage == 0:
            return replace(learnt, stage=1)
        noise_var = self.inflated(learnt.first, learnt.second)
        return replace(learnt, stage=2, noise_var=noise_var)

    def inflated(self, first: ArmStatistics, second: ArmStatistics) -> Tensor:
        r"""``N`` upper bounds of the variances, with probability ``1 - delta / 2``.

        ``s2 + sqrt(2) s2_max |phi_x| sqrt(2 log(2 N / delta))``, at most ``s2_max``,
        ``|phi_x|`` the norm of the quadratic features in the second stage's design.
        """
        assert self.variance_bounds is not None  # only then there is a burn-in
        largest = self.variance_bounds[1]
        found = head_from_arms(self.X, first, second, self.variance_bounds).variances
        quadratic = quadratic_features(self.X)
        norms = second.fit(quadratic).squared_norms(quadratic)
        reach = math.sqrt(2 * math.log(2 * len(self.pool) / self.delta))
        return (found + math.sqrt(2) * largest * norms.sqrt() * reach).clamp_max(
            largest
        )

    # --- decisions --------------------------------------------------------------------

    def _decided(self, belief: LinearBelief) -> LinearBelief:
        if self.threshold is None:
            return decide_best(belief, self.epsilon)
        return decide_level(belief, self.threshold, self.epsilon)

    def _questions(self, belief: LinearBelief) -> Questions:
        if self.threshold is None:
            return ask_best(belief, self.epsilon)
        return ask_level(belief, self.threshold, self.epsilon)

    # --- the answer -------------------------------------------------------------------

    @property
    def noise_in_words(self) -> str:
        r"""The assumption about the noise."""
        if self.variance_bounds is None:
            return super().noise_in_words
        low, high = self.variance_bounds
        return (
            "Gaussian noise whose variance is a quadratic form of the features between "
            f"{low:g} and {high:g}, estimated by {self.n_burn_in} measurements"
        )

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        what = f"all decided rows are right{self._tolerance}"
        if self.threshold is None:
            what = f"`above` is the best item{self._tolerance} once all are decided"
        return self._assumptions(what)

    def _classification(self, belief: LinearBelief) -> Classification:
        if self.threshold is not None:
            return self._answer(belief, self.threshold)
        answer = self._answer(belief, 0.0)
        return replace(answer, probability_above=chances_of_being_best(belief))


def chances_of_being_best(belief: LinearBelief) -> Tensor:
    r"""``T`` probabilities of beating the best other item left, were errors Gaussian.

    Items that are not left have 0; before all directions are known, half.
    """
    left, chances = belief.left, torch.zeros_like(belief.mean[:, 0])
    if not belief.information.is_complete:
        return torch.full_like(chances, 0.5)
    values = belief.mean[left, 0]
    best = int(values.argmax())
    others = torch.arange(len(left)) != best
    difference = belief.Z[left[others]] - belief.Z[left[best]]
    sigma = belief.information.squared_norms(difference).sqrt()
    tiny = torch.finfo(sigma.dtype).tiny
    behind = torch.special.ndtr((values[others] - values[best]) / sigma.clamp_min(tiny))
    chances[left[others]] = behind
    chances[left[best]] = 1 - (behind.max() if len(behind) else 0.0)
    return chances
