r"""The named strategies: each joins a goal and a rule on a Gaussian process."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.models.transforms.input import ChainedInputTransform, FilterFeatures
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._device import on_cpu
from botorch_lse._validation import complaint, in_interval, truth_value, whole_number
from botorch_lse.confidence.schedules import (
    BetaSchedule,
)
from botorch_lse.data.arguments import (
    BURN_IN,
    at_targets,
    check_budget,
    check_targets,
    points_of,
)
from botorch_lse.data.observations import History, Observations
from botorch_lse.data.pool import NOISE_LEVEL, Pool
from botorch_lse.estimators.variance import variance_bounds
from botorch_lse.functional.scores import first_best
from botorch_lse.goals.base import Goal
from botorch_lse.goals.extremes import (
    Maximiser,
    MaximiserByPairs,
    ShareOfMax,
    ShareOfMaxByPairs,
)
from botorch_lse.goals.regions import Above, Region
from botorch_lse.models.fitted import (
    ModelArgument,
    default_kernel,
    fit_with_inputs,
    unfitted_prior,
)
from botorch_lse.models.gaussian_process import MEMORY_BUDGET, GPPrior
from botorch_lse.rules.base import Rule
from botorch_lse.rules.costs import RowCost, RowCosts
from botorch_lse.rules.design import OptimalDesign
from botorch_lse.rules.scores import Ambiguity, Random, Straddle, Variance, Width
from botorch_lse.rules.truncated import EpochBeta, TruncatedVariance
from botorch_lse.strategies.criteria.content import ContentStop
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from botorch_lse.strategies.loop import State, Strategy, check_state
from botorch_lse.surrogate.burn_in import BurnIn
from botorch_lse.surrogate.learning import OutputModel, Refit
from botorch_lse.surrogate.outputs import GaussianProcesses
from botorch_lse.surrogate.settings import LEVEL_Z, history_of_each


@dataclass(frozen=True, eq=False)
class GPStrategy(Strategy):
    r"""A level-set strategy on a Gaussian process.

    Args:
        pool: The candidates.
        threshold: The level, units of ``y``; exactly one of ``threshold``, ``omega``.
        omega: The level as a share of the unknown maximum, in (0, 1).
        model: ``None``: BoTorch's ``SingleTaskGP`` with ``Normalize`` and
            ``Standardize``, refitted from its initial values; the function is a sum of
            those of single inputs and one of all (``fit_additive_gp``). A callable
            ``(train_X, train_Y, train_Yvar) -> fitted model`` (``n x d``, ``n x 1``,
            ``n x 1`` or ``None``). Or fixed hyper-parameters: a fitted BoTorch model
            (its data are ignored) or a GPyTorch kernel with zero mean, units of ``y``.
        batch_size: Measurements per round. ``None``: the number in
            ``ask(state, size=8)`` or in Ax's ``get_next_trials(8)``, by default one.
        noise_std: The known noise standard deviation, units of ``y``; noise by row
            belongs in ``pool.noise_var``. Without either the noise is the model's own,
            or fitted. With 0 measurements are exact, and rows are measured once.
        delta: The failure probability of the theorem's widths.
        beta: ``None``: the theorem's schedule at ``delta``; a number or a schedule is
            a heuristic width that ignores ``delta`` and claims no confidence.
        norm_bound: ``B``, a bound of the norm of ``f`` less the prior mean in the space
            of the fixed model's kernel. It selects the widths of ``RKHSWidth`` at
            ``delta``, for one unknown function and any sub-Gaussian noise, in place of
            the widths for a draw from the process.
        epsilon: The accuracy, units of ``y``.
        max_observations: The largest number of measurements. ``None``: with noise and
            no ``epsilon`` a row that lies on the level may be measured for ever.
        max_repeats: The largest number of measurements of one row.
        refit: How often to refit. ``None``: every round up to 300 values, then whenever
            their number has grown by a tenth. An int ``n``: every ``n`` rounds. A float
            ``r > 1``: whenever the number of rounds has grown by the factor ``r``. Or a
            function of the number of complete rounds that returns a bool. In
            between, and for fixed models, hyper-parameters stay. With a fitted model
            only the current interval decides, anew in every round, since
            hyper-parameters fitted to all data make earlier intervals no evidence; so
            a row may become undecided again.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            rounded up to whole rounds. Default 0 for fixed models, else ``2 d + 2``
            (a word is one input; ``4 d`` of an ``outcome``, or ten if it rises or falls
            along inputs), at least ten and at most a quarter of the pool. The
            rule then works with a model of the values so far. That decides nothing
            before ``10 d`` rows (each level of a word has a place) are measured: with
            few data a fitted model is far too sure. A number that is given holds for
            both. If the noise is unknown too, four of the first rows are measured
            again, because a fit without replicates may take a region for noise.
        level_z: Raise the scale of a fitted model until the level is within this many
            prior standard deviations of the data's mean (at most half of the width
            that decides). Otherwise first data far from the level would be taken as
            proof that nothing reaches it. ``None``: keep the fitted scale.
        needs_both_sides: Whether a fitted model decides nothing while all values lie on
            one side of the level (noise considered; unless every row was measured):
            such data hardly show how high the function rises elsewhere. The next rows
            are then those farthest from what was measured.
        audit: ``(tolerance, delta)``; ``True`` stands for (0.05, 0.05). Once all is
            decided, measure rows drawn at random until at most ``tolerance`` of the
            others can be wrong, whatever the model, with probability ``1 - delta``.
            A level that is not stated is the estimate at the start of the audit. Rows
            near the level are measured up to eight times, with ``max_repeats=1`` once;
            rows that one value does not settle count as wrong. If the noise is
            estimated, 15 rows are measured twice to bound it. ``audit_size`` gives the
            price.
        content_tol: Stop once the share above the level is known this well; see
            ``Strategy(pool, goal, content_tol=...)``.
        memory_budget: Bytes for arrays over the pool.
        history: Measurements at any points that were made before the run.

    With a heuristic width nothing is decided before the first data. A row that the
    prior alone would decide stays undecided until the data have halved its variance.

    Raises:
        ValueError: If a number is out of range, both or none of ``threshold`` and
            ``omega`` are given, or the noise is given twice or unknown.
        UnsupportedError: If the model's posterior path is not exact.
    """

    threshold: float | None = None
    _: KW_ONLY
    omega: float | None = None
    model: ModelArgument = None
    batch_size: int | None = None
    noise_std: float | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    norm_bound: float | None = None
    epsilon: float = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: Refit = None
    n_initial: int | None = None
    level_z: float | None = LEVEL_Z
    needs_both_sides: bool = True
    audit: tuple[float, float] | bool | None = None
    content_tol: float | ContentStop | None = None
    memory_budget: int = MEMORY_BUDGET
    history: History | None = None

    goals: ClassVar[tuple[str, ...]] = ("threshold", "omega")
    """The levels that may be given; ``"maximiser"`` means that none need be given."""
    source: ClassVar[str] = "Gotovos et al. 2013, {theorem}"
    """The theorem that ``guarantee`` names."""

    def __post_init__(self) -> None:
        self._check_rounds()
        check_goal(self.threshold, self.omega, self.goals, type(self).__name__)
        self.parts.check()
        self.criteria  # noqa: B018  (checks audit and content_tol)

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def parts(self) -> GaussianAlgorithm:
        r"""The algorithm that joins goal, model, rule and batch size."""
        return GaussianAlgorithm.of(
            self,
            self.goal,
            self.rule,
            self.model_part,
            self.items,
            norm_bound=self.norm_bound,
            level_z=self.level_z,
            needs_both_sides=self.needs_both_sides,
            source=self.source,
        )

    @cached_property
    def goal(self) -> Goal:
        r"""The question to decide about each item."""
        if self.threshold is not None:
            return Above(self.threshold, self.epsilon)
        return ShareOfMax(self.omega or 0.0, self.epsilon)

    @property
    @abstractmethod
    def rule(self) -> Rule:
        r"""The rule that chooses the next rows."""

    @cached_property
    def gp(self) -> OutputModel:
        r"""The model of the output, with what is known about its noise."""
        (past,) = history_of_each(self.history, 1, self.pool)
        return OutputModel(self.pool, self.model, self.noise_std, past)

    @property
    def takes_history(self) -> bool:
        r"""Whether old data can be learnt from: not with ``norm_bound`` or burn-in."""
        return self.norm_bound is None and self.burn_in_plan is None

    @cached_property
    def model_part(self) -> GaussianProcesses:
        r"""The Gaussian processes of all outputs, and when they are refitted."""
        return GaussianProcesses(
            self.pool,
            (self.gp,),
            self.refit,
            self.n_initial,
            self.max_observations,
            self.max_repeats,
            self.memory_budget,
            burn_in=self.burn_in_plan,
        )

    @property
    def burn_in_plan(self) -> BurnIn | None:
        r"""The rounds that estimate the noise; ``None`` where it is known."""
        return None

    @property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        return self.gp.fixed

    @property
    def initial_observations(self) -> int:
        r"""The size of the initial design; 0 with a burn-in.

        They go to the rows of largest variance.
        """
        return self.model_part.n_first

    @property
    def items(self) -> Pool:
        r"""The items to decide about: the pool itself."""
        return self.pool

    def _complete(self, observations: Observations) -> Observations:
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` to hold one number per measurement, but got shape "
                f"{tuple(observations.y.shape)}: {type(self).__name__} has one output."
            )
        return super()._complete(observations)

    @property
    def guarantee(self) -> str:
        r"""The claimed probability and its assumptions, in words."""
        return self.parts.guarantee


def check_goal(
    threshold: float | None, omega: float | None, goals: Sequence[str], name: str
) -> None:
    r"""Complain unless exactly one level is given (none is fine for a maximiser).

    Args:
        threshold: The level.
        omega: The level as a share of the maximum.
        goals: The allowed ones among ``"threshold"``, ``"omega"``, ``"maximiser"``.
        name: The strategy's name.

    Raises:
        ValueError: If none, both or another one is given, it is out of range, or a
            region is given as the level.
    """
    if isinstance(threshold, Region):
        wanted, came = f"to be a level for {name}", f"got the region {threshold}"
        remedy = "Regions are goals of `Strategy(pool, goal)`."
        raise ValueError(complaint("threshold", wanted, came, remedy))
    levels = {"threshold": threshold, "omega": omega}
    given = [goal for goal, level in levels.items() if level is not None]
    if not given and "maximiser" in goals:
        return
    if len(given) != 1 or given[0] not in goals:
        wanted = [f"`{goal}`" for goal in goals if goal != "maximiser"]
        raise ValueError(
            f"Expected exactly {'one of ' if len(wanted) > 1 else ''}"
            f"{' or '.join(wanted)} for {name}, but got "
            f"{' and '.join(given) or 'neither'}."
        )


# --- baselines ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MaxVarianceStrategy(GPStrategy):
    r"""Measure where the posterior variance is largest.

    Regions and classes are those of LSE; Lemma 1's widths hold for any rule that
    chooses rows. Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, VAR.
    """

    @property
    def rule(self) -> Rule:
        r"""The rule: measure where the posterior variance is largest."""
        return Variance()


@dataclass(frozen=True, eq=False)
class RandomStrategy(GPStrategy):
    r"""Measure rows drawn at random, each as often as the others as far as possible.

    Regions and classes are those of LSE. Arguments: see ``GPStrategy``; ``n_initial``
    is ignored, everything is random.

    Source:
        The usual baseline.
    """

    @property
    def rule(self) -> Rule:
        r"""The rule: measure rows drawn at random."""
        return Random()


# --- LSE ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LSEStrategy(GPStrategy):
    r"""Measure the undecided row whose intersected confidence region is most ambiguous.

    In batches (LSE_batch) planned rows shrink ``sigma`` and leave ``mean``; the
    regions that result choose the next row and are then forgotten. Regions are
    intersected and rows classified once per complete round, where the width of
    Theorem 1 holds as it stands (``t`` counts rounds). Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 1; Algorithm 3 with erratum 6
        (papers/gotovos2013/errata.md). The letter of Algorithm 3 is
        ``LSELiteralBatchStrategy``.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    @property
    def rule(self) -> Rule:
        r"""The rule: measure the row whose region reaches farthest over the level."""
        return Ambiguity()


@dataclass(frozen=True, eq=False)
class ImplicitLSEStrategy(GPStrategy):
    r"""LSE for the level ``omega max f``, a share of the unknown maximum.

    It measures the widest region of a row that is undecided or may be the maximiser.

    Args:
        drop_maximisers: Whether decided rows are left alone once they cannot be the
            maximiser any more (the paper's text); by default they stay candidates (its
            pseudocode). Other arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 2, with errata 4 and 5
        (papers/gotovos2013/errata.md).
    """

    drop_maximisers: bool = False

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def __post_init__(self) -> None:
        super().__post_init__()
        truth_value(self.drop_maximisers, "drop_maximisers")

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: which rows lie above a share of the unknown maximum."""
        return ShareOfMax(self.omega or 0.0, self.epsilon, self.drop_maximisers)

    @property
    def rule(self) -> Rule:
        r"""The rule: measure the row with the widest confidence region."""
        return Width()


# --- straddle -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StraddleStrategy(GPStrategy):
    r"""Measure where ``sqrt(beta) sigma - |mean - threshold|`` is largest.

    In batches (STR_batch) each row is the best given the ones before it: planned rows
    shrink ``sigma`` and leave ``mean``. Rows are classified by the current interval,
    not intersected, with the same ``beta`` (default ``1.96^2``); no confidence is
    claimed, and a row may become undecided again. Arguments: see ``GPStrategy``.

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 5, STR and STR_batch.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    @property
    def rule(self) -> Rule:
        r"""The rule: measure the rows of largest straddle score, one by one."""
        return Straddle()


@dataclass(frozen=True, eq=False)
class ImplicitStraddleStrategy(GPStrategy):
    r"""Measure by the straddle score with the level ``omega max(posterior mean)``.

    The rule does not try to improve its guess of the level, so it can get stuck.
    Rows are classified by LSE_imp's rule on the current intervals. Arguments: see
    ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, STR_imp.
    """

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    @property
    def rule(self) -> Rule:
        r"""The rule: straddle, at the level that the means suggest."""
        return Straddle()


# --- designs --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MELKStrategy(GPStrategy):
    r"""MELK on a Gaussian process: batches that lower the worst undecided variance.

    In each round the whole batch comes from the optimal design for the undecided rows;
    rows are classified by the current posterior interval (not intersected), and what is
    decided stays decided.

    Args:
        rounding: ``"exchange"``: the rounded design, improved by swapping single rows
            while that helps; batches up to 64 rows are also built by greedy steps and
            improved, and the better one is taken. ``"quota"``: the rounded design as it
            is, in a fraction of the time; the worst variance that it leaves is up to
            three times as large where the batch is far smaller than the design's
            support. ``"sample"``: independent draws as in the paper.
        design: ``"posterior"``: the exact remaining variance. ``"prior"``: the paper's
            design on the prior's kernel with the ridge ``1 / (10 i)`` in round ``i``,
            which forgets where was measured. Other arguments: see ``GPStrategy``.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> strategy = MELKStrategy(
        ...     pool, 0.5, model=RBFKernel().double(), noise_std=0.1, batch_size=7
        ... )
        >>> strategy.ask(strategy.init()).counts.tolist()
        [1, 1, 1, 1, 1, 1, 1]

    Source:
        Mason et al. (2022), Algorithm 1 in the form of section 5 and Appendix F.1.
        Deviations: the design is that of the posterior (``design``), improved by
        exchange (``rounding``); the paper's are the options.
    """

    _: KW_ONLY
    rounding: str = "exchange"
    design: str = "posterior"

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    @cached_property
    def rule(self) -> Rule:
        r"""The rule: the batch that the optimal design for open targets gives."""
        return OptimalDesign(self.rounding, self.design)


@dataclass(frozen=True, eq=False)
class MILKStrategy(GPStrategy):
    r"""MILK on a Gaussian process: batches for a level that is a share of the maximum.

    A batch lowers the worst variance of the open pairs ``f(x) - omega f(x')``.
    ``x`` is above once every pair ``(x, x')`` is certain, below once one is refuted; a
    row below leaves all pairs. The unknown maximum is never estimated. Pairs are judged
    by their own posterior intervals, not intersected; what is decided stays decided.

    Args:
        beta: ``None``: Theorem 1 of Gotovos et al. (2013) with its union bound taken
            over all ``N^2`` ordered pairs.
        rounding: See ``MELKStrategy``.
        design: See ``MELKStrategy``. Other arguments: see ``GPStrategy``.

    Raises:
        ValueError: Also if the pool has more pairs than the memory budget.

    Source:
        Mason et al. (2022), Algorithm 2 in the form of section 5 and Appendix F.1; the
        posterior in place of RIPS as for MELK. ``epsilon``: a pair is certain if its
        lower end plus ``epsilon`` is positive, tested first.
    """

    _: KW_ONLY
    rounding: str = "exchange"
    design: str = "posterior"

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: a share of the unknown maximum, decided by comparing pairs."""
        return ShareOfMaxByPairs(self.omega or 0.0, self.epsilon)

    @cached_property
    def rule(self) -> Rule:
        r"""The rule: the batch that the optimal design for open targets gives."""
        return OptimalDesign(self.rounding, self.design)


@dataclass(frozen=True, eq=False)
class HRAGEStrategy(GPStrategy):
    r"""H-RAGE on a Gaussian process: batches that respect the noise of each row.

    With ``variance_bounds`` a burn-in estimates the noise of every row: the first
    rounds are HEAD's two designs on ``pool.features`` (``pool.X`` without), split
    evenly over rounds of ``batch_size``. They give the noise variance of every row as a
    quadratic form of the features, from the residuals of a linear fit: what of ``f`` is
    not linear in the features counts as noise. The burn-in's data are kept: they and
    all later ones enter the Gaussian process with their row's variance. Nothing is
    decided during the burn-in.

    Then each batch comes from the optimal design, noise per row, for the undecided
    rows; for the maximiser, for the differences of the rows in question. Without
    ``threshold`` the maximiser is wanted: a row is out once another one is better for
    certain, and "above" is the row accepted at last. Rows are classified by the current
    posterior interval, not intersected; what is decided stays decided.

    Args:
        variance_bounds: The least and the largest noise variance, units of ``y``
            squared, where the variances are not known; estimates are clipped to them.
            A variance told with a value (``yvar``) goes before its estimate.
        burn_in: Measurements of the burn-in, rounded up to two stages of whole rounds.
            Default 20 per dimension of the quadratic features.
        targets: The items to decide on, with the columns of the pool; what can be
            measured remains the pool. Default ``pool``.
        beta: ``None``: Theorem 1 of Gotovos et al. (2013), for the maximiser with its
            union bound over all ordered pairs of items.
        rounding: See ``MELKStrategy``.
        design: See ``MELKStrategy``. Other arguments: see ``GPStrategy``.

    Raises:
        ValueError: Also if the noise is given twice, the bounds or the burn-in are out
            of range, or the maximiser's pairs exceed the memory budget.
        BotorchTensorDimensionError: If ``targets`` have other columns than the pool.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = HRAGEStrategy(
        ...     pool,
        ...     threshold=0.5,
        ...     model=RBFKernel().double(),
        ...     variance_bounds=(0.1, 1.0),
        ...     burn_in=20,
        ...     batch_size=4,
        ... )
        >>> strategy.n_burn_in, strategy.ask(strategy.init()).counts.tolist()
        (24, [2, 2])

    Source:
        Weltz et al. (2023), Algorithms 1 and 2, in the batched form that Mason et al.
        (2022), section 5, give MELK: fixed batches, the posterior in place of least
        squares on the last round alone, its interval in place of ``2^-t``.
    """

    _: KW_ONLY
    rounding: str = "exchange"
    design: str = "posterior"
    variance_bounds: tuple[float, float] | None = None
    burn_in: int | None = None
    targets: Pool | None = None

    goals: ClassVar[tuple[str, ...]] = ("threshold", "maximiser")

    def __post_init__(self) -> None:
        self._check_rounds()
        check_targets(self.targets)
        self._check_burn_in()
        super().__post_init__()
        if self.burn_in_plan is not None:
            check_budget(self.max_observations, self.n_burn_in, *BURN_IN)

    def _check_burn_in(self) -> None:
        if self.variance_bounds is None:
            if self.burn_in is not None:
                raise ValueError(
                    "Expected `burn_in` with `variance_bounds` only, because nothing "
                    f"is estimated without, but got {self.burn_in}."
                )
            return
        variance_bounds(self.variance_bounds, "variance_bounds")
        if self.burn_in is not None:
            whole_number(self.burn_in, "burn_in", 2)
        given = {"`noise_std`": self.noise_std, "`pool.noise_var`": self.pool.noise_var}
        known = [name for name, value in given.items() if value is not None]
        if known:
            raise ValueError(
                "Expected the noise once, but got `variance_bounds` and "
                f"{' and '.join(known)}. Leave one out."
            )
        if self.history is not None:
            raise ValueError(
                "Expected no `history` with `variance_bounds`: the burn-in learns the "
                "noise from rounds of its own rows. Leave one of them out."
            )
        if self.n_initial is not None:
            raise ValueError(
                "Expected no `n_initial` with `variance_bounds`: the burn-in comes "
                f"first. Give `burn_in` instead of {self.n_initial}."
            )

    @property
    def items(self) -> Pool:
        r"""The items to decide about: ``targets``, or the pool."""
        return self.pool if self.targets is None else self.targets

    def at_candidates(self, observations: Observations) -> Observations:
        r"""The measurements of rows that are items as well, numbered by the items."""
        return at_targets(observations, self.pool, self.targets)

    @cached_property
    def model_part(self) -> GaussianProcesses:
        r"""The processes on the pool's rows, followed by the targets."""
        model = super().model_part
        if self.targets is None:
            return model
        if self.targets.d != self.pool.d:
            raise BotorchTensorDimensionError(
                f"Expected `targets` with the {self.pool.d} columns of `pool`, but got "
                f"{self.targets.d}."
            )
        return replace(model, X=torch.cat((self.pool.X, self.targets.X)))

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: a level, or the maximiser, decided by comparing pairs."""
        if self.threshold is not None:
            return Above(self.threshold, self.epsilon)
        return MaximiserByPairs(self.epsilon)

    @cached_property
    def rule(self) -> Rule:
        r"""The rule: the batch that the optimal design for open targets gives."""
        return OptimalDesign(self.rounding, self.design, may_race=True)

    @cached_property
    def parts(self) -> GaussianAlgorithm:
        r"""The joined parts; forecasts follow the design of the planned batches."""
        return replace(super().parts, forecasts_by_design=True)

    # --- the burn-in ------------------------------------------------------------------

    @cached_property
    def burn_in_plan(self) -> BurnIn | None:
        r"""The burn-in that estimates the noise; ``None`` where it is known."""
        if self.variance_bounds is None:
            return None
        features = self.pool.X if self.pool.features is None else self.pool.features
        size = self.batch_size or 1
        return BurnIn(features, self.variance_bounds, size, self.burn_in)

    @property
    def n_burn_in(self) -> int:
        r"""The number of measurements in the burn-in; 0 where the noise is known."""
        return 0 if self.burn_in_plan is None else self.burn_in_plan.n

    def burn_in_used(self, state: State) -> int:
        r"""The number of measurements made during the burn-in."""
        check_state(self, state)
        data = state.belief.fits.burn_in
        return 0 if data is None else data.n

    def variances(self, state: State) -> Tensor | None:
        r"""The noise variances of the rows (``N``); ``None`` during the burn-in.

        Also ``None`` for a model that fits a single noise variance.
        """
        check_state(self, state)
        data = state.belief.fits.burn_in
        return self.pool.noise_var if data is None else on_cpu(data.variances)


# --- TruVaR ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class TruVaRStrategy(GPStrategy):
    r"""Measure the row that most shrinks the widths of rows in question, per cost.

    ``M_t`` are the rows in question: undecided ones for a level set, possible
    maximisers if neither ``threshold`` nor ``omega`` is given. In epoch ``i`` the rule
    brings the widths ``sqrt(beta_(i)) sigma`` in ``M_t`` down to ``eta_(i)``: it
    chooses the row with the largest truncated variance reduction over ``M_t`` per cost.
    Then ``eta`` is multiplied by ``eta_ratio``. Rows are classified by the current
    interval, not intersected.

    In a batch the steps are greedy with ``M_t``, ``eta`` and ``beta`` fixed and
    variances updated; ``t`` counts rounds. When all of ``M_t`` has reached ``eta``
    inside a batch, the plain variance reduction decides. ``recommend`` answers "where
    is the maximum"; ``classification.above`` holds the accepted row once it is decided.

    With ``omega``, ``M_t`` are the rows that are undecided or may be the maximiser, by
    the optimistic and pessimistic levels of LSE_imp: our combination, which the paper
    announces and does not write out.

    Args:
        cost: The positive costs of ``k`` rows, as a function ``(previous, rows) ->
            costs`` with the row measured before (``None`` at first: no travel). Batches
            are ordered by the cheapest next row. Default ``pool.costs``, or 1.
        eta: ``eta_(1)``, in standard deviations of the prior; 0 is pure variance
            reduction in one endless epoch.
        eta_ratio: ``r``, in (0, 1).
        delta_bar: An epoch ends when all widths are at most ``(1 + delta_bar) eta``.
        beta_factor: ``a`` of the paper's practical width ``beta_(i) = a log(N
            t_(i)^2)``, ``t_(i)`` the first round of the epoch; it used 1 for level sets
            and 0.5 for the maximiser. It claims no confidence. Default ``beta``.
        monotone: Whether rows that left ``M_t`` stay out. If not, ``M_t`` and the
            classes are found anew from all rows after every round.
        only_open: Whether to measure rows of ``M_t`` only; much faster.
        anticipates: Whether the sum after the look-ahead runs over the rows that would
            be in question if the observation equalled its mean. Not for ``omega``.
        prefilter: The number of rows to score: those of largest upper bound
            (maximiser), straddle score (threshold) or variance (omega).

    Other arguments: see ``GPStrategy``; a given ``beta`` schedule is read at ``t_(i)``
    and kept through the epoch, the theorem's (``None``) grows with ``t``.

    Raises:
        ValueError: If a number is out of range, or ``beta`` and ``beta_factor`` or
            ``cost`` and ``pool.costs`` are given both.
        UnsupportedError: If ``anticipates`` comes with ``omega``.

    Source:
        Bogunovic et al. (2016), Algorithms 1 and 2 and Appendix A, with errata 1 to 6
        (papers/bogunovic2016/errata.md).
        Deviation: a row at its bound exactly is below where the paper leaves it open.
    """

    cost: RowCost | None = None
    eta: float = 1.0
    eta_ratio: float = 0.1
    delta_bar: float = 0.0
    beta_factor: float | None = None
    monotone: bool = True
    only_open: bool = False
    anticipates: bool = False
    prefilter: int | None = None

    goals: ClassVar[tuple[str, ...]] = ("threshold", "omega", "maximiser")
    source: ClassVar[str] = "Bogunovic et al. 2016, Lemma C.1"

    def __post_init__(self) -> None:
        inf = math.inf
        if self.beta_factor is not None:
            in_interval(self.beta_factor, "beta_factor", 0.0, inf)
        super().__post_init__()
        in_interval(self.eta, "eta", 0.0, inf, closed_low=True)
        in_interval(self.eta_ratio, "eta_ratio", 0.0, 1.0)
        in_interval(self.delta_bar, "delta_bar", 0.0, inf, closed_low=True)
        if self.beta_factor is not None and self.beta is not None:
            raise ValueError(
                "Expected the width once, but got both `beta` and `beta_factor`. Leave "
                "one out."
            )
        for name in ("monotone", "only_open", "anticipates"):
            truth_value(getattr(self, name), name)
        if self.prefilter is not None:
            whole_number(self.prefilter, "prefilter", 1)

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: a level, a share of the maximum, or the maximiser."""
        if self.threshold is not None:
            return Above(self.threshold, self.epsilon)
        if self.omega is not None:
            return ShareOfMax(float(self.omega), self.epsilon, drop_maximisers=True)
        return Maximiser(self.epsilon)

    @cached_property
    def rule(self) -> Rule:
        r"""The rule: the row that most shrinks the undecided widths, per cost."""
        own = None
        if self.beta_factor is not None:
            own = EpochBeta(len(self.pool), self.beta_factor)
        return TruncatedVariance(
            self.prices,
            self.eta,
            self.eta_ratio,
            self.delta_bar,
            own,
            self.beta is None and own is None,
            self.monotone,
            self.only_open,
            self.anticipates,
            self.prefilter,
        )

    @cached_property
    def prices(self) -> RowCosts:
        r"""The costs of measuring each row, alone or after another one."""
        return RowCosts(self.pool, self.cost)

    @property
    def costs_depend_on_previous(self) -> bool:
        r"""Whether ``cost`` was given: a function of the row measured before."""
        return self.cost is not None

    # --- noise levels -----------------------------------------------------------------

    @property
    def has_levels(self) -> bool:
        r"""Whether the pool's last column is a noise level (``at_noise_levels``)."""
        return self.pool.names is not None and self.pool.names[-1] == NOISE_LEVEL

    @cached_property
    def points(self) -> Tensor:
        r"""The number of each row's point, the same at all noise levels (``N``)."""
        return points_of(self.pool.X[:, :-1] if self.has_levels else self.pool.X)

    @cached_property
    def gp(self) -> OutputModel:
        r"""The model of the inputs without noise level, and the known noise."""
        model = self.model
        if self.has_levels and isinstance(model, Kernel):
            model = replace(GPPrior.from_kernel(model), transform_inputs=_without_last)
        elif self.has_levels and model is None:
            model = partial(fit_without_level, self.pool.bounds)
        return replace(super().gp, model=model)

    @cached_property
    def model_part(self) -> GaussianProcesses:
        r"""The process, which is the same at all noise levels of a point."""
        model = replace(super().model_part, points=self.points)
        if self.model is not None or not self.has_levels:
            return model
        prior = unfitted_prior(self.pool.bounds[:, :-1])
        scale = prior.transform_inputs
        assert scale is not None  # the scaling to the unit cube
        unfitted = replace(prior, transform_inputs=partial(_of_the_rest, scale))
        return replace(model, unfitted=unfitted)

    # --- answers ----------------------------------------------------------------------

    def recommend(self, state: State) -> int:
        r"""The row to report as the maximiser: the one with the largest posterior mean.

        Excluded rows count too, since a heuristic width may have excluded them wrongly.
        ``state.classification.above`` holds the accepted row.

        Source:
            Bogunovic et al. (2016), section 4.
        """
        check_state(self, state)
        posterior = state.belief.posterior
        mean, scale = on_cpu((posterior.mean, posterior.scale))
        everything = torch.ones(len(self.pool), dtype=torch.bool)
        return int(first_best(mean, everything, scale) or 0)

    def spent(self, state: State) -> float:
        r"""The summed costs of all complete rounds."""
        check_state(self, state)
        return float(state.belief.memory.spent)


def fit_without_level(
    bounds: Tensor, train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None
) -> SingleTaskGP:
    r"""The default model on all columns but the last, fitted from initial values.

    Args:
        bounds: ``2 x d`` bounds of the pool.
        train_X: ``n x d``, the noise level last.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1`` or ``None``.
    """
    d = train_X.shape[-1] - 1
    drop = FilterFeatures(torch.arange(d))
    scale = Normalize(d, bounds=bounds[:, :-1])
    transform = ChainedInputTransform(drop=drop, scale=scale)
    return fit_with_inputs(train_X, train_Y, train_Yvar, transform, default_kernel(d))


def _of_the_rest(function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    return function(_without_last(X))


def _without_last(X: Tensor) -> Tensor:
    return X[..., :-1]
