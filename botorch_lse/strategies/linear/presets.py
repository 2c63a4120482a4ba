r"""The named strategies on linear features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    UnsupportedError,
)
from torch import Tensor

from botorch_lse._device import on_cpu
from botorch_lse._numerals import written
from botorch_lse._validation import complaint, finite_number, in_interval, whole_number
from botorch_lse.confidence.classify import accuracy, ratio
from botorch_lse.data.arguments import (
    BURN_IN,
    at_targets,
    check_budget,
    check_labels,
    check_noise_once,
    check_targets,
)
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.estimators import burn_in_size, head_designs
from botorch_lse.estimators.variance import variance_bounds
from botorch_lse.goals.base import Goal
from botorch_lse.goals.pareto import (
    ParetoEstimate,
    checked_directions,
    with_columns,
)
from botorch_lse.goals.regions import Above, Region
from botorch_lse.strategies.linear.algorithm import (
    BurnInPlan,
    LinearAlgorithm,
    Measure,
    features_of,
)
from botorch_lse.strategies.linear.goals import (
    Best,
    ParetoOfFeatures,
    Share,
)
from botorch_lse.strategies.loop import SimulatedRun, State, Strategy, check_state
from botorch_lse.surrogate.settings import one_each

DESIGNS = ("uniform", "gaps")


def one_level(value: Any) -> None:
    r"""Complain unless ``threshold`` is one finite number and no region.

    Raises:
        ValueError: If it is not.
    """
    if isinstance(value, Region):
        wanted, came = "to be one number on linear features", f"got the region {value}"
        remedy = "Give it to `MELKLinearStrategy(pool, region)`."
        raise ValueError(complaint("threshold", wanted, came, remedy))
    finite_number(value, "threshold")


@dataclass(frozen=True, eq=False)
class LinearStrategy(Strategy):
    r"""A strategy on linear features: designed batches and widths valid at all times.

    The features are ``pool.features``, else ``pool.X``. Each batch is the optimal
    addition to the data so far; intervals hold at all times together, so they are
    intersected, decisions are final, and batches may have any size. Replicates may be
    given as means, ``Observations(indices, means, counts=...)``. ``yvar`` is not used:
    the noise is what the constructor says.

    Args:
        noise_std: A bound of the noise's sub-Gaussian scale (for Gaussian noise its
            standard deviation), one for each output of a region; default
            the roots of ``pool.noise_var``.
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        design: ``"uniform"`` treats all undecided items alike; ``"gaps"`` weights them
            by their estimated gaps, floored by their standard errors.
        batch_size: Measurements per round; ``None``: a tenth of the data so far, at
            least two per dimension of the features.
        max_observations: The largest number of measurements.
        max_repeats: The largest number of measurements of one row.
        audit: See ``GPStrategy``.

    Raises:
        ValueError: If a number is out of range, the noise is given twice or never, or
            an item is outside the span of the pool's features.

    Warns:
        EmptyRegionWarning: If intervals contradict each other.
        NoiseWarning: Once, if residuals are larger than the stated noise allows; every
            ``guarantee`` from then on says so.
    """

    _: KW_ONLY
    noise_std: float | Sequence[float] | None = None
    delta: float = 0.05
    epsilon: float = 0.0
    design: str = "uniform"
    batch_size: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None
    audit: tuple[float, float] | bool | None = None

    def __post_init__(self) -> None:
        self._check_rounds()
        in_interval(self.delta, "delta", 0.0, 1.0)
        accuracy(self.epsilon)
        if self.design not in DESIGNS:
            raise ValueError(
                f"Expected `design` to be one of {DESIGNS}, but got {self.design!r}."
            )
        self._check_noise()
        self.parts.check_items()
        self.criteria  # noqa: B018  (checks the audit)

    def _check_noise(self) -> None:
        if isinstance(self.noise_std, Sequence):
            wanted, came = "to be one number", f"got {self.noise_std!r}"
            remedy = "Several are for the outputs of a region, in MELKLinearStrategy."
            raise ValueError(complaint("noise_std", wanted, came, remedy))
        check_noise_once(self.noise_std, self.pool)

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def parts(self) -> LinearAlgorithm:
        r"""The algorithm that joins goal, rule and widths."""
        return LinearAlgorithm(
            self.pool,
            self.items,
            self.goal,
            self.first_noise_var,
            self.noise_in_words,
            self.delta,
            self.design,
            self.batch_size,
            self.max_repeats,
            self.burn_in_plan,
            self.unit,
        )

    @property
    def unit(self) -> tuple[float, ...]:
        r"""The unit of each output's noise; empty where all are 1."""
        return ()

    @property
    def items(self) -> Pool:
        r"""The items to decide about: the pool itself."""
        return self.pool

    @property
    @abstractmethod
    def goal(self) -> Goal:
        r"""The question to decide about each item."""

    @property
    def burn_in_plan(self) -> BurnInPlan | None:
        r"""The burn-in that estimates the noise; ``None`` where it is known."""
        return None

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return self.goal.facts.n_outputs

    @property
    def first_noise_var(self) -> Tensor:
        r"""The squared noise scales (``N``); at first the largest, with a burn-in."""
        N = len(self.pool)
        if self.burn_in_plan is not None:
            largest = float(self.burn_in_plan.bounds[1])
            return torch.full((N,), largest, dtype=torch.float64)
        if self.pool.noise_var is not None:
            return self.pool.noise_var
        # One of the two is given, and several are those of a region's outputs, whose
        # values are in units of their noise.
        assert self.noise_std is not None
        scale = self.noise_std if isinstance(self.noise_std, float | int) else 1.0
        return torch.full((N,), scale**2, dtype=torch.float64)

    @property
    def guarantee(self) -> str:
        r"""The claimed probability and its assumptions, as a sentence."""
        return self.parts.guarantee

    def _complete(self, observations: Observations) -> Observations:
        if self.directions is not None:
            return with_columns(observations, self.m)
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` with one output, but got shape "
                f"{tuple(observations.y.shape)}."
            )
        return observations

    def simulate(self, measure: Measure, seed: int = 0) -> SimulatedRun:
        r"""A whole run whose measurements come from a function, as counts and means.

        The same as asking and telling means, without a list of millions of rows.

        Args:
            measure: From ``k`` rows and ``k`` counts to means; see ``Measure``.
            seed: The seed of ``init``.

        Raises:
            UnsupportedError: If the answer is to be audited, row by row.
        """
        if self.audit:
            raise UnsupportedError(
                "Expected no `audit` in a simulation that works with counts and means. "
                "Leave it out, or ask and tell."
            )
        limit = self.max_observations
        return self.parts.simulate(measure, self._complete, limit, seed)

    @property
    def noise_in_words(self) -> str:
        r"""The assumption about the noise, a clause for ``guarantee``."""
        if self.burn_in_plan is not None:
            low, high = self.burn_in_plan.bounds
            return (
                "Gaussian noise whose variance is a quadratic form of the features "
                f"between {written(low)} and {written(high)}, estimated by "
                f"{self.burn_in_plan.n} measurements"
            )
        if isinstance(self.noise_std, Sequence):
            each = ", ".join(written(value) for value in self.noise_std)
            return f"noise sub-Gaussian with sd <= {each}, output by output"
        if self.noise_std is not None:
            return f"noise sub-Gaussian with sd <= {written(self.noise_std)}"
        return "noise sub-Gaussian with the given variances"


@dataclass(frozen=True, eq=False)
class MELKLinearStrategy(LinearStrategy):
    r"""MELK on linear features, all data kept: ``above = {x : f(x) > threshold}``.

    Arguments: ``threshold``, the level, units of ``y``, or a region of levels and
    outputs such as ``Above(0.5) & Below(0.2, output=1)``, each output linear in the
    features; else see ``LinearStrategy``. The intervals of all outputs of a region hold
    at all times together, whether outputs are correlated or not. A region has its own
    accuracies in place of ``epsilon``.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MELKLinearStrategy(pool, 0.5, noise_std=0.1)
        >>> strategy.ask(strategy.init()).counts.tolist()
        [2, 2]

    Source:
        The rounds of Mason et al. (2022), Algorithm 1, with the widths of
        ``StitchedWidth`` and ``BatchMartingale`` instead of robust means of new data.
    """

    threshold: float | Region

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, Region):
            one_level(self.threshold)
        elif self.epsilon != 0:
            wanted = "to be left out with a region, whose outputs have their own"
            remedy = "Write `Above(0.5, epsilon=0.1)`."
            came = f"got {written(self.epsilon)}"
            raise ValueError(complaint("epsilon", wanted, came, remedy))
        else:
            self.threshold.check(len(self.pool))
            check_labels(self.threshold, self.pool)
        super().__post_init__()

    def _check_noise(self) -> None:
        if not isinstance(self.noise_std, Sequence):
            super()._check_noise()
            return
        n = self.threshold.n_outputs if isinstance(self.threshold, Region) else 1
        for value in one_each(self.noise_std, "noise_std", n):
            check_noise_once(value, self.pool)

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: which items lie above the threshold, or in the region."""
        if not isinstance(self.threshold, Region):
            return Above(float(self.threshold), self.epsilon)
        return self.threshold

    @property
    def unit(self) -> tuple[float, ...]:
        r"""The unit of each output's noise, where each has its own."""
        if not isinstance(self.noise_std, Sequence):
            return ()
        return tuple(float(value) for value in self.noise_std)

    @property
    def n_outputs(self) -> int:
        r"""The number of values per measurement."""
        return self.m

    @property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the metrics, where a region has names."""
        region = self.threshold
        return region.outputs if isinstance(region, Region) else ()

    def _complete(self, observations: Observations) -> Observations:
        if self.m == 1:
            return super()._complete(observations)
        return with_columns(observations, self.m, "output of the region")


@dataclass(frozen=True, eq=False)
class MILKLinearStrategy(LinearStrategy):
    r"""MILK on linear features, all data kept: ``above = {x : f(x) > omega max f}``.

    Arguments: ``omega``, the level as a share of the maximum, in (0, 1) (the paper's
    epsilon is ``1 - omega``); else see ``LinearStrategy``. The widths are those of
    pairs, evaluated when needed.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MILKLinearStrategy(pool, omega=0.5, noise_std=0.1)
        >>> strategy.init().classification.undecided.tolist()
        [True, True]

    Source:
        The pairs of Mason et al. (2022), Algorithm 2, with the widths of
        ``StitchedWidth``. Deviations: a pair need not be examined if its second row is
        certainly not the maximiser, and certain pairs are not stored.
    """

    _: KW_ONLY
    omega: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio(self.omega)

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: which items lie above a share of the unknown maximum."""
        return Share(float(self.omega), self.epsilon)


@dataclass(frozen=True, eq=False)
class HRAGELinearStrategy(LinearStrategy):
    r"""H-RAGE on linear features, all data kept: level set or best item.

    With ``variance_bounds`` a burn-in estimates the noise variances by HEAD; each
    estimate plus what it may be too small by, at most the largest variance, is the
    noise scale of all later measurements. The burn-in's own measurements count with the
    largest variance. Means of replicates given in the burn-in need as ``yvar`` the
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
        if self.threshold is not None:
            one_level(self.threshold)
        super().__post_init__()
        if self.burn_in is not None:
            if self.variance_bounds is None:
                raise ValueError(
                    f"Expected no `burn_in` with known noise, but got {self.burn_in}."
                )
            whole_number(self.burn_in, "burn_in", 2)
            head_designs(features_of(self.pool)).counts(self.burn_in)  # or it raises
        if self.max_observations is not None:
            check_budget(self.max_observations, self.n_burn_in, *BURN_IN)
        plan, most = self.burn_in_plan, self.max_repeats
        if plan is not None and most is not None and most < plan.repeats:
            raise ValueError(
                f"Expected `max_repeats` of at least {plan.repeats}, as often as the "
                f"burn-in measures a row, but got {most}. Give a larger one, "
                "`noise_std`, or `Pool(noise_var=...)`, in place of `variance_bounds`."
            )

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
        r"""The items to decide about: ``targets``, or the pool."""
        return self.pool if self.targets is None else self.targets

    def at_candidates(self, observations: Observations) -> Observations:
        r"""The measurements of rows that are items as well, numbered by the items."""
        return at_targets(observations, self.pool, self.targets)

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: which items lie above the threshold, or the best item."""
        if self.threshold is None:
            return Best(self.epsilon)
        return Above(float(self.threshold), self.epsilon)

    @cached_property
    def burn_in_plan(self) -> BurnInPlan | None:
        r"""The burn-in that estimates the noise; ``None`` where it is known."""
        if self.variance_bounds is None:
            return None
        X, n = features_of(self.pool), self.burn_in
        if n is None:
            least = head_designs(X).least
            n = max(burn_in_size(X, self.variance_bounds, self.delta), least)
        return BurnInPlan(X, self.variance_bounds, n, self.delta)

    @property
    def n_burn_in(self) -> int:
        r"""The number of measurements in the burn-in; 0 where the noise is known."""
        return 0 if self.burn_in_plan is None else self.burn_in_plan.n


@dataclass(frozen=True, eq=False)
class GEGELinearStrategy(LinearStrategy):
    r"""GEGE on linear features, all data kept: which rows are Pareto optimal.

    Above is accepted, below rejected. ``y`` has one column per output, with the same
    noise bound for each. The columns ``mean``, ``lower`` and ``upper`` of the answer
    are margins against the rival that is nearest to dominating a row, negative if it
    does; ``estimate(state)`` has the outputs themselves.

    Args:
        maximize: For each output, whether more is better.
        epsilon: The tolerance: every Pareto optimal row is accepted, and no row that
            another one exceeds by more than ``epsilon`` in every output. 0 is exact.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = GEGELinearStrategy(pool, maximize=(True, False), noise_std=0.1)
        >>> strategy.ask(strategy.init()).counts.tolist()
        [2, 2]

    Source:
        The setting of Kone et al. (2025); decided pair by pair, as in Auer et al.
        (2016), with the widths of ``StitchedWidth`` instead of rounds of gaps.
    """

    _: KW_ONLY
    maximize: Sequence[bool]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maximize", checked_directions(self.maximize))
        super().__post_init__()

    @property
    def directions(self) -> tuple[bool, ...]:
        r"""The directions: for each output, whether more is better."""
        return tuple(self.maximize)

    @cached_property
    def goal(self) -> ParetoOfFeatures:
        r"""The goal: which items are Pareto optimal."""
        each = (float(self.epsilon),) * len(self.maximize)
        return ParetoOfFeatures(tuple(self.maximize), each)

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row, intervals intersected over time."""
        check_state(self, state)
        seen = self.parts.seen(state.belief)
        found = self.goal.estimate(state.belief.sides, seen)
        return on_cpu(found)
