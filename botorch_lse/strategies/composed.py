r"""Strategies that the user puts together from a goal, a model and a rule."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse._device import on_cpu
from botorch_lse._validation import complaint, kind_of
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.data.observations import History, Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.base import Goal
from botorch_lse.goals.layouts import layout_of
from botorch_lse.goals.pareto import ParetoEstimate, pareto_sides, with_columns
from botorch_lse.goals.regions import Region
from botorch_lse.models.outcomes import Binary, LogNormal, Quantity
from botorch_lse.rules.base import Rule
from botorch_lse.rules.design import OptimalDesign
from botorch_lse.rules.lookahead import ExpectedMisclassification
from botorch_lse.rules.scores import Ambiguity, ExpectedFeasibility, Straddle, Width
from botorch_lse.rules.switching import SwitchingRule
from botorch_lse.strategies.criteria.content import ContentStop
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from botorch_lse.strategies.loop import State, Strategy, check_state, each_of
from botorch_lse.surrogate.layout import FromSources, Layout
from botorch_lse.surrogate.settings import GaussianProcess

LEARNT_WIDTH = 4.0
"""The standard deviations of a fitted model at which rows are decided by default.
At three, runs one at a time took a function with a quiet and a busy part for quiet. The
width of the theorem, five to six of them, takes twice as many measurements."""
MOST_CLASSES = 6
"""The largest number of classes, that of none included, with which looking ahead pays.
Ten of 1,000 rows took 1.6 s with five classes, and 21 s with eight."""
RESULTS_WIDTH = 3.0
"""The standard deviations of a fitted latent function at which rows are decided.
Answers of yes and no tell little each: at 3, of 24 runs of 250 answers one had a wrong
row at any time, and a quarter of the rows were decided; at 2.5 it were 3, and half."""
LOOKAHEAD_ROWS, SHARE_ROWS = 2_500, 100_000
"""The largest pools in which the default rule looks ahead.
The first to decide rows, the second to know their share: in more than 2,500 rows it
saves a tenth to a third of the measurements until a share is known, at a second for
each, and none until rows are decided."""


@dataclass(frozen=True, eq=False)
class ComposedStrategy(Strategy):
    r"""A strategy made of a goal, a model and a rule, by ``Strategy(pool, goal, ...)``.

    The strategies with names of their own (``LSEStrategy`` and so on) are such
    combinations; this one takes any goal with any rule, also rules and goals that were
    written elsewhere.

    Args:
        pool: The candidates; with ``pool.at_outputs(...)`` a measurement gives one
            output of a region, with ``pool.at_sources(...)`` a value of one source, of
            which one is decided.
        goal: The question to decide, such as ``Above(0.5)``, or a region of several
            levels or outputs, ``Above(40) & Below(0.4, output=1)``.
        model: The model of the outputs, and how it is fitted.
        rule: The choice of the next rows; default for levels ``SwitchingRule`` from
            ``ExpectedMisclassification`` (in pools of more than 2,500 rows
            ``Straddle``) to ``Ambiguity``; with ``content_tol`` the first of these
            alone in pools of more than 2,500 rows, and ``ExpectedFeasibility`` of more
            than 100,000; ``OptimalDesign`` where items are compared with each other,
            else ``Width``.
        batch_size: Measurements per round. ``None``: the number in
            ``ask(state, size=8)`` or in Ax's ``get_next_trials(8)``, by default one.
        delta: The failure probability of the theorem's widths.
        beta: ``None``: the rule's own width; else of a given model, and where rows are
            compared with each other, the theorem's schedule at ``delta``; and four
            standard deviations of a fitted model (three where results are outcomes such
            as yes and no), which no theorem covers. A number or a schedule is a
            heuristic width that claims no confidence.
        max_observations: The largest number of measurements. ``None``: with noise and
            no ``epsilon`` a row that lies on the level may be measured for ever.
        max_repeats: The largest number of measurements of one row.
        audit: ``(tolerance, delta)``; ``True`` stands for (0.05, 0.05). Once all is
            decided, measure rows drawn at random until at most ``tolerance`` of the
            others can be wrong, whatever the model, with probability ``1 - delta``.
            Where results are yes or no, or grades, drawn rows are tried up to 256
            times. ``audit_size`` gives the price.
        content_tol: Stop once the share above the level is known this well, though
            sides of rows are not. A number, such as 0.05, stands for
            ``ContentKnown(0.05)``, half of the posterior's 95 % interval as a share of
            the estimate; or a rule such as ``ContentKnown(0.01, by="decided")`` or
            ``MinimumU()``.

    Raises:
        ValueError: If a part is of a wrong type, a number out of range, or the rule
            does not fit the goal.
        UnsupportedError: If a model's posterior path is not exact.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import Above, GaussianProcess, Straddle
        >>> from botorch_lse.strategies import Strategy
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> model = GaussianProcess(RBFKernel().double(), noise_std=0.1)
        >>> strategy = Strategy(
        ...     pool, Above(0.5), model=model, rule=Straddle(), batch_size=3
        ... )
        >>> strategy.ask(strategy.init()).indices.tolist()
        [0, 7, 14]
    """

    goal: Goal
    _: KW_ONLY
    model: GaussianProcess = field(default_factory=GaussianProcess)
    rule: Rule | None = None
    batch_size: int | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    max_observations: int | None = None
    max_repeats: int | None = None
    audit: tuple[float, float] | bool | None = None
    content_tol: float | ContentStop | None = None

    decides_a_target: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_rounds()
        for name, kind, example in (
            ("goal", Goal, "Above(0.5)"),
            ("model", GaussianProcess, "GaussianProcess(kernel, noise_std=0.1)"),
            ("rule", Rule | None, "Straddle()"),
        ):
            # What is given in place of a part is most often a number or a kernel.
            if not isinstance(getattr(self, name), kind):
                raise ValueError(
                    f"Expected `{name}` such as `{example}`, but got "
                    f"{kind_of(getattr(self, name))}."
                )
        self.parts.check()
        self.criteria  # noqa: B018  (checks audit and content_tol)

    @cached_property
    def parts(self) -> GaussianAlgorithm:
        r"""The algorithm that joins goal, model, rule and batch size."""
        facts, settings = self.goal.facts, self.model
        given = self.max_observations, self.max_repeats, self.layout
        model = settings.on(self.pool, facts.n_outputs, *given, outputs=facts.names)
        if facts.class_names:
            kinds = {type(one.outcome) for one in model.outputs}
            if not kinds <= {Binary, type(None)}:
                wanted = "to be `Binary()` where classes are asked for, or left out"
                came = f"got {model.outputs[0].outcome!r}"
                raise ValueError(complaint("outcome", wanted, came))
            each = tuple(replace(one, of_class=True) for one in model.outputs)
            model = replace(model, outputs=each, are_classes=True)
        width = RESULTS_WIDTH if model.has_outcomes else LEARNT_WIDTH
        rule = self.rule
        if rule is None:
            rule = default_rule(self.goal, self.pool, self.content_tol is not None)
        return GaussianAlgorithm.of(
            self,
            self.goal,
            rule,
            model,
            self.candidates,
            learnt_width=width if isinstance(self.goal, Region) else None,
            norm_bound=settings.norm_bound,
            level_z=settings.level_z,
            needs_both_sides=settings.needs_both_sides,
        )

    @cached_property
    def layout(self) -> Layout:
        r"""The layout: which outputs a measurement of a row reveals."""
        found = layout_of(self.pool, self.goal)
        past = self.model.history
        if past is None or not isinstance(found, FromSources):
            return found
        return found.knowing(past.on(self.pool).X)

    @cached_property
    def directions(self) -> tuple[bool, ...] | None:
        r"""The directions of a Pareto set (whether more is better), else ``None``."""
        return self.goal.facts.directions

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the metrics, in order, where the goal has names."""
        return self.layout.of_row(None, self.goal.facts.names) or ()

    @cached_property
    def n_outputs(self) -> int:
        r"""The number of values per measurement."""
        return self.goal.facts.n_outputs // self.layout.n_each

    @property
    def n_predicted(self) -> int:
        r"""The number of outputs with predictions, also if rows measure one each."""
        return self.goal.facts.n_outputs

    @property
    def candidates(self) -> Pool:
        r"""The rows to decide about: the pool's, without the column of outputs."""
        return self.layout.items

    def at_candidates(self, observations: Observations) -> Observations:
        r"""The measurements, numbered by the rows of ``candidates`` they belong to."""
        return self.layout.at_candidates(observations)

    def noise_std_of(self, row: int | None) -> tuple[float, ...] | None:
        r"""The noise standard deviations of the model; see ``Strategy``.

        A row that measures one output has the one of that output.
        """
        stds = each_of(self.model.noise_std, self.goal.facts.n_outputs)
        return None if stds is None else self.layout.of_row(row, stds)

    @property
    def outcomes(self) -> tuple[Quantity | None, ...]:
        r"""The outcomes of the model; see ``Strategy``."""
        return self.parts.outcomes

    def outcomes_of(self, row: int | None) -> tuple[Quantity | None, ...]:
        r"""The outcomes of the model that a row measures; see ``Strategy``."""
        return self.layout.of_row(row, self.outcomes) or super().outcomes_of(row)

    @property
    def takes_history(self) -> bool:
        r"""Whether old data can be learnt from.

        Not with a bounded norm, nor where outputs are correlated or measured singly.
        """
        is_alone = self.layout.takes_history and self.parts.model.together is None
        return is_alone and self.model.norm_bound is None

    def with_history(self, history: History) -> Strategy:
        r"""This strategy with measurements that were made before the run."""
        before, past = self.model.history, history.on(self.pool, self.outputs)
        if before is not None:
            before = before.on(self.pool, self.outputs)
            is_log = any(isinstance(one, LogNormal) for one in self.outcomes)
            # Of logarithms a share of each value is stated.
            past = before.append(past, None if is_log else self.noise_std_of(None))
        return replace(self, model=replace(self.model, history=past))

    @property
    def guarantee(self) -> str:
        r"""The claimed probability and its assumptions, in words."""
        return self.parts.guarantee

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with intervals, for a Pareto set.

        Raises:
            ValueError: If the goal is no Pareto set.
        """
        check_state(self, state)
        return on_cpu(pareto_sides(state.run.shown.belief.sides).estimate)

    def _complete(self, observations: Observations) -> Observations:
        if self.directions is not None:
            observations = with_columns(observations, self.n_outputs)
        elif self.n_outputs > 1:
            each = "output of the `goal`"
            if self.goal.facts.class_names:
                each = "class, as `goal.results(labels)` makes them"
            observations = with_columns(observations, self.n_outputs, each)
        elif observations.y.ndim != 1:
            why = self.layout.decides_output
            raise BotorchTensorDimensionError(
                "Expected `y` to hold one number per measurement, but got shape "
                f"{tuple(observations.y.shape)}: {why} is about one output."
            )
        return super()._complete(observations)


def default_rule(goal: Goal, pool: Pool, of_content: bool = False) -> Rule:
    r"""The default rule of a goal.

    For a level it is the one that was never far from the best in ``benchmark peers``:
    the fewest wrong sides to expect, then the fewest measurements until all is sure.
    Goals that compare rows need batches that are planned as a whole; for anything else
    it is the width of the interval.

    Args:
        goal: The question to decide.
        pool: The candidates. With more than ``LOOKAHEAD_ROWS`` the straddle score
            learns in place of looking ahead, as with more than five classes, whose
            cells double with each.
        of_content: Whether the run ends once the share above the level is known. The
            rows that would make all sides sure are not needed then, and looking ahead
            pays with up to ``SHARE_ROWS``, beyond which it is expected feasibility.
    """
    if goal.by_pairs or goal.facts.directions is not None:
        return OptimalDesign()
    if not isinstance(goal, Region):
        return Width()
    ahead = ExpectedMisclassification(batch="joint")
    has_many_classes = len(goal.facts.class_names) > MOST_CLASSES
    if of_content and (len(pool) > LOOKAHEAD_ROWS or has_many_classes):
        is_affordable = len(pool) <= SHARE_ROWS and not has_many_classes
        return ahead if is_affordable else ExpectedFeasibility(by_weight=True)
    if len(pool) > LOOKAHEAD_ROWS or has_many_classes:
        return SwitchingRule((Straddle(), Ambiguity()))
    return SwitchingRule((ahead, Ambiguity()))
