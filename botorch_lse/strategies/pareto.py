r"""Pareto sets of several outputs: margins, goals, and the strategies by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from botorch_lse._device import on_cpu
from botorch_lse._validation import in_interval
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.data.observations import History, Observations
from botorch_lse.goals.pareto import (
    ParetoByDifferences,
    ParetoEstimate,
    ParetoSet,
    checked_directions,
    pareto_sides,
    with_columns,
)
from botorch_lse.models.fitted import ModelArgument
from botorch_lse.models.gaussian_process import MEMORY_BUDGET
from botorch_lse.rules.base import Rule
from botorch_lse.rules.design import OptimalDesign
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from botorch_lse.strategies.loop import State, Strategy, check_state
from botorch_lse.surrogate.learning import Refit
from botorch_lse.surrogate.outputs import GaussianProcesses
from botorch_lse.surrogate.settings import GaussianProcess, one_each


@dataclass(frozen=True, eq=False)
class GPParetoStrategy(Strategy):
    r"""A strategy for the Pareto set of several outputs, each a Gaussian process.

    The outputs are independent given the data, and every measurement has all of them.

    Args:
        pool: The candidates.
        maximize: For each output, whether more is better.
        model: As in ``GPStrategy``: ``None``, a callable ``(train_X, train_Y,
            train_Yvar) -> fitted model`` of one output, or fixed hyper-parameters; or
            one of these per output.
        batch_size: Measurements per round; ``None``: as many as the call says, or one.
        noise_std: The known noise standard deviation, or one per output, units of
            ``y``; noise by row, the same in all outputs, belongs in ``pool.noise_var``.
            Without either the noise is the model's own, or fitted. With 0 measurements
            are exact: a row that has all outputs is not measured again.
        delta: The failure probability of the theorem's widths.
        beta: ``None``: the theorem's schedule at ``delta``, its union bound taken over
            all outputs; a number or a schedule is a heuristic width that ignores
            ``delta`` and claims no confidence.
        epsilon: The accuracy, units of ``y``, one for all outputs or one for each.
        max_observations: The largest number of measurements.
        max_repeats: The largest number of measurements of one row.
        refit: How often to refit; see ``GPStrategy``. After a fit the whole past is
            judged again with the new hyper-parameters, so that rows may open again.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            rounded up to whole rounds; default as of ``GPStrategy``.
        memory_budget: Bytes for arrays over the pool and its pairs.
        audit: ``(tolerance, delta)``; ``True`` stands for (0.05, 0.05). Once all is
            decided, measure rows drawn at random until at most ``tolerance`` of the
            others can be wrong, whatever the models, with probability ``1 - delta``:
            a rejected row is wrong if it exceeds each accepted one by more than
            ``epsilon`` in some output, which means that something better was missed.
            Accepted rows are measured again, up to eight times, to compare with them.
        history: Measurements at any points, that were made before the run; each has all
            outputs.

    Raises:
        ValueError: If a number is out of range, the noise is given twice or unknown, an
            argument has not one entry per output, or the pairs of the pool's rows do
            not fit the memory budget.
        UnsupportedError: If a model's posterior path is not exact.
    """

    _: KW_ONLY
    maximize: Sequence[bool]
    model: ModelArgument | Sequence[ModelArgument] = None
    batch_size: int | None = None
    noise_std: float | Sequence[float] | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    epsilon: float | Sequence[float] = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: Refit = None
    n_initial: int | None = None
    memory_budget: int = MEMORY_BUDGET
    audit: tuple[float, float] | bool | None = None
    history: History | None = None

    def __post_init__(self) -> None:
        self._check_rounds()
        object.__setattr__(self, "maximize", checked_directions(self.maximize))
        self.parts.check()
        self.criteria  # noqa: B018  (checks the audit)

    @property
    def directions(self) -> tuple[bool, ...]:
        r"""The directions: for each output, whether more is better."""
        return tuple(self.maximize)

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with their intervals."""
        check_state(self, state)
        return on_cpu(pareto_sides(state.run.shown.belief.sides).estimate)

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def parts(self) -> GaussianAlgorithm:
        r"""The algorithm that joins goal, model, rule and widths."""
        return GaussianAlgorithm.of(self, self.goal, self.rule, self.model_part)

    @property
    @abstractmethod
    def goal(self) -> ParetoSet:
        r"""The goal: which rows are Pareto optimal."""

    @property
    @abstractmethod
    def rule(self) -> Rule:
        r"""The rule that chooses the next rows."""

    @cached_property
    def model_part(self) -> GaussianProcesses:
        r"""One process per output, with its noise."""
        settings = GaussianProcess(
            self.model,
            self.noise_std,
            self.refit,
            self.n_initial,
            memory_budget=self.memory_budget,
            history=self.history,
        )
        m = len(self.maximize)
        return settings.on(self.pool, m, self.max_observations, self.max_repeats)

    @property
    def takes_history(self) -> bool:
        r"""Whether old data can be learnt from: always, by each output's process."""
        return True

    @cached_property
    def accuracies(self) -> tuple[float, ...]:
        r"""The accuracy of each output, in its units."""
        given = one_each(self.epsilon, "epsilon", len(self.maximize))
        end = float("inf")
        return tuple(
            in_interval(e, "epsilon", 0.0, end, closed_low=True) for e in given
        )

    @property
    def guarantee(self) -> str:
        r"""The claimed probability and its assumptions, as a sentence."""
        return self.parts.guarantee

    def _complete(self, observations: Observations) -> Observations:
        return super()._complete(with_columns(observations, len(self.maximize)))


@dataclass(frozen=True, eq=False)
class GEGEStrategy(GPParetoStrategy):
    r"""GEGE on Gaussian processes, in batches of the user's size.

    Rows are judged by the posterior intervals of their differences, output by output: a
    row is rejected once another one certainly exceeds it in every output, and accepted
    once each other row is certainly exceeded (up to ``epsilon``) in some output. What
    is decided stays decided. The batch is the optimal design for the active rows, those
    open and those accepted ones that may still reject an open one; for several outputs
    the best mixture of their own designs, rounded by quota, replicates included, and
    improved by pair exchange.

    Arguments: see ``GPParetoStrategy``. Equal rows share their side; rows of equal
    values are told apart by no data: give ``epsilon`` or ``max_observations``.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> kernels = (RBFKernel().double(), RBFKernel().double())
        >>> strategy = GEGEStrategy(
        ...     pool,
        ...     maximize=(True, False),
        ...     model=kernels,
        ...     noise_std=0.1,
        ...     batch_size=7,
        ... )
        >>> strategy.ask(strategy.init()).counts.tolist()
        [1, 1, 1, 1, 1, 1, 1]

    Source:
        Kone et al. (2025), Algorithm 1 for the design and section 3.3 for ``epsilon``;
        the rule of Auer et al. (2016) with posterior intervals in place of empirical
        gaps, since in batches of a given size no round reaches the gap it decides.
        Widths: a union bound over all outputs, pairs of rows and rounds.
    """

    @cached_property
    def goal(self) -> ParetoSet:
        r"""The goal: which rows are Pareto optimal, by differences."""
        return ParetoByDifferences(tuple(self.maximize), self.accuracies)

    @property
    def rule(self) -> Rule:
        r"""The rule: the optimal design for the active rows."""
        return OptimalDesign()
