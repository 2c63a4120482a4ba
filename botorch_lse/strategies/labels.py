r"""Audits of labels that somebody else gave to the rows of a pool.

The labels may come from another program, an expert or a model of any kind; here they
are a claim, and rows drawn at random say whether it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import complaint, finite_number, in_interval
from botorch_lse.confidence.audit import KNOWN, check_statement
from botorch_lse.confidence.classify import ABOVE, BELOW, accuracy
from botorch_lse.confidence.judges import Judge, LevelJudge, RegionJudge
from botorch_lse.data.arguments import check_labels
from botorch_lse.data.classification import Classification
from botorch_lse.data.names import in_order
from botorch_lse.data.observations import Observations, derived
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.goals.pareto import with_columns
from botorch_lse.goals.regions import Above, Region
from botorch_lse.strategies.algorithm import Algorithm, AlgorithmFacts, AuditFacts, Step
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.loop import Strategy
from botorch_lse.surrogate.settings import one_each

WORDS = {"above": ABOVE, "below": BELOW}
"""The words for sides, and their codes."""


@dataclass(frozen=True, eq=False)
class Labels(Algorithm):
    r"""The algorithm that claims given sides, whatever is measured.

    Args:
        pool: The rows.
        side: ``N`` codes, above or below.
        judge: How values are compared with the labels.
        noise_var: ``N x m`` noise variances of one measurement.
        batch_size: Measurements per round; ``None`` where the call says how many.
    """

    pool: Pool
    side: Tensor
    judge: Judge
    noise_var: Tensor
    batch_size: int | None

    @property
    def facts(self) -> AlgorithmFacts:  # type: ignore[override]
        r"""The facts: any rows teach, since draws do not depend on rounds."""
        return AlgorithmFacts(size_is_open=self.batch_size is None)

    @property
    def audit_facts(self) -> AuditFacts:  # type: ignore[override]
        r"""The facts for audits: labels are made to be audited."""
        words = "Gaussian noise of the given standard deviation"
        if not bool((self.noise_var > 0).any()):
            words = "values without noise"
        return AuditFacts(self.judge.n_outputs, noise_in_words=words)

    def audit_judge(self, belief: None) -> Judge:
        r"""The judge that compares values with the labels."""
        return self.judge

    def audit_noise_kind(self, belief: None) -> str:
        r"""The kind of knowledge about the noise: it is given."""
        return KNOWN

    def audited(self, belief: None, new: Observations) -> Observations:
        r"""The values with their noise variances, those of means divided."""
        if new.yvar is not None:
            return new
        own = self.noise_var[new.indices] / new.replicates.unsqueeze(-1)
        return derived(new, yvar=own.view(new.y.shape))

    def start(self, seed: int) -> None:
        r"""An empty belief: nothing is believed but the labels."""

    def learn(self, belief: None, step: Step) -> None:
        r"""The belief unchanged: the audit, not the labels, follows the values."""

    def round_size(self, belief: None, room: int | None) -> int:
        r"""The batch size, or ``room`` if the budget allows no more."""
        size = self.batch_size or 1
        return size if room is None else min(size, room)

    def plan(self, belief: None, request: Any) -> Tensor:
        r"""An empty selection: the audit chooses all rows."""
        return torch.empty(0, dtype=torch.long)

    def usable(self, belief: None, request: PlanRequest) -> Tensor:
        r"""An empty selection: the audit chooses all rows."""
        return torch.zeros_like(request.left)

    def repeats_left(
        self, belief: None, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""The counts ``left``, with 0 for rows that were measured without noise."""
        exact = (self.noise_var[data.indices] == 0).all(dim=-1)
        return left.index_fill(0, data.indices[exact], 0)

    def visiting_order(self, belief: None, rows: Tensor, before: Tensor) -> Tensor:
        r"""The rows in the order of their numbers."""
        return rows.sort().values

    def answer(self, belief: None, as_claimed: bool = False) -> Classification:
        r"""The labels, with intervals from the level to infinity."""
        above, infinite = self.side == ABOVE, torch.tensor(torch.inf)
        # Of a region, as its strategies tell margins: positive within.
        stated = self.judge.level if isinstance(self.judge, LevelJudge) else 0.0
        level = torch.full((len(self.pool),), stated, dtype=torch.float64)
        return Classification(
            above=above,
            below=~above,
            undecided=torch.zeros_like(above),
            lower=torch.where(above, level, -infinite),
            upper=torch.where(above, infinite, level),
            mean=level,
            sigma=torch.full_like(level, torch.inf),
            probability_above=above.double(),
            guarantee="These are labels that were given.",
            pool=self.pool,
        )

    def forecast(self, belief: None, told: int) -> Forecast:
        r"""An empty forecast: the audit says what it takes."""
        return Forecast(0, "The labels are given.")


@dataclass(frozen=True, eq=False)
class LabelAudit(Strategy):
    r"""A strategy that audits given labels: rows are drawn at random and measured.

    Ask, tell and stop as with every strategy. It ends ``"audited"`` once at most
    ``audit[0]`` of the labels can be wrong (``"none found"`` or ``"all above so far"``
    if all labels are alike), or ``"not confirmed"`` once it is clear that more are.
    Labels that a measurement contradicts are undecided in the answer. How many
    measurements it takes if all labels are right says ``audit_size``.

    Args:
        pool: The rows, all of them labelled.
        sides: ``N`` labels: ``"above"`` and ``"below"``, or true for above. A series
            goes by the labels of the pool's index.
        threshold: What a value is compared with, units of ``y``, or a region such as
            ``Between(20, 30)``, whose rows are labelled above. The default is for
            values that are sides themselves, told as 1 (above) and 0 (below).
        audit: ``(tolerance, delta)``: the share of labels that may be wrong, and the
            probability, over the draws, that more are and the audit passes.
        noise_std: The noise standard deviation of one measurement, of a region of
            several outputs one for each; per-row noise stands in ``pool.noise_var``.
            Default: no noise.
        epsilon: Labels of values that are so near to the threshold are not wrong. A
            region has its own.
        batch_size: Measurements per round. ``None``: the number in
            ``ask(state, size=8)`` or in Ax's ``get_next_trials(8)``, by default one.
        max_observations: The largest number of measurements.
        max_repeats: How often one row may be measured (1 for destructive samples: a
            row whose one value is too near to the level for its noise counts as wrong).

    Raises:
        ValueError: If ``sides`` are not one label per row, or a number is out of range.

    Example:
        >>> import torch
        >>> pool = Pool(torch.arange(100.0).unsqueeze(-1))
        >>> audit = LabelAudit(pool, pool.X[:, 0] > 49.5, batch_size=10)
        >>> state = audit.init()
        >>> while not state.is_done:
        ...     batch = audit.ask(state)
        ...     is_above = (pool.X[batch.order, 0] > 49.5).double()
        ...     state = audit.tell(state, batch.observe(is_above))
        >>> state.stop_reason
        'audited'

    Source:
        See ``AuditTest``.
    """

    sides: Any
    threshold: float | Region = 0.5
    _: KW_ONLY
    audit: tuple[float, float] = (0.05, 0.05)
    noise_std: float | Sequence[float] | None = None
    epsilon: float = 0.0
    batch_size: int | None = 1
    max_observations: int | None = None
    max_repeats: int | None = None

    def __post_init__(self) -> None:
        self._check_rounds()
        object.__setattr__(self, "sides", checked_sides(self.sides, self.pool))
        if isinstance(self.threshold, Region):
            self._check_region(self.threshold)
        else:
            finite_number(self.threshold, "threshold")
        accuracy(self.epsilon)
        if self.noise_std is not None:
            for value in one_each(self.noise_std, "noise_std", self.n_outputs):
                inf = float("inf")
                in_interval(value, "noise_std", 0.0, inf, closed_low=True)
            if self.pool.noise_var is not None:
                wanted, came = "to be given once", "got `pool.noise_var` as well"
                remedy = "Leave one out."
                raise ValueError(complaint("noise_std", wanted, came, remedy))
        if self.audit is None:
            came = "got None"
            raise ValueError(complaint("audit", "to be (tolerance, delta)", came))
        self.criteria  # noqa: B018  (checks the audit)

    def _check_region(self, region: Region) -> None:
        region.check(len(self.pool))
        check_labels(region, self.pool)
        if region.n_classes > 2:
            wanted, came = "to have two answers", f"got {region.n_classes} classes"
            remedy = "Audit the labels of each level by themselves."
            raise ValueError(complaint("threshold", wanted, came, remedy))
        if self.epsilon != 0:
            wanted = "to be left out with a region, whose outputs have their own"
            came, remedy = (
                f"got {written(self.epsilon)}",
                "Write `Above(0.5, epsilon=0.1)`.",
            )
            raise ValueError(complaint("epsilon", wanted, came, remedy))

    @property
    def goal(self) -> Region:
        r"""The question that the labels answer."""
        if isinstance(self.threshold, Region):
            return self.threshold
        return Above(self.threshold, self.epsilon)

    @property
    def n_outputs(self) -> int:
        r"""The number of values per measurement."""
        return self.threshold.n_outputs if isinstance(self.threshold, Region) else 1

    @property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the metrics, where a region has names."""
        return self.threshold.outputs if isinstance(self.threshold, Region) else ()

    @cached_property
    def algorithm(self) -> Labels:
        r"""The labels as an algorithm."""
        std = one_each(self.noise_std or 0.0, "noise_std", self.n_outputs)
        noise_var = torch.tensor(std, dtype=torch.float64).square()
        noise_var = noise_var.expand(len(self.pool), -1)
        if self.pool.noise_var is not None:
            own = self.pool.noise_var.double().unsqueeze(-1)
            noise_var = own.expand_as(noise_var)
        if isinstance(self.threshold, Region):
            judge: Judge = RegionJudge(self.threshold.values)
        else:
            judge = LevelJudge(float(self.threshold), float(self.epsilon))
        return Labels(self.pool, self.sides, judge, noise_var, self.batch_size)

    @property
    def guarantee(self) -> str:
        r"""The claim before any measurement, in words."""
        return self.algorithm.answer(None).guarantee

    def _complete(self, observations: Observations) -> Observations:
        if self.n_outputs > 1:
            return with_columns(observations, self.n_outputs, "output of the region")
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` to hold one number per measurement, but got shape "
                f"{tuple(observations.y.shape)}."
            )
        return observations


def audit(
    pool: Pool,
    sides: Any,
    threshold: float | Region = 0.5,
    tolerance: float = 0.05,
    delta: float = 0.05,
    **options: Any,
) -> LabelAudit:
    r"""An audit of labels: whether at most a share of them is wrong.

    Args:
        pool: The rows.
        sides: ``N`` labels: ``"above"`` and ``"below"``, or true for above.
        threshold: What a value is compared with, units of ``y``, or a region; the
            default is for values told as 1 (above) and 0 (below).
        tolerance: The share of labels that may be wrong, in (0, 1).
        delta: The failure probability, over the draws, in (0, 0.5).
        **options: See ``LabelAudit``.

    Raises:
        ValueError: As ``LabelAudit``.

    Example:
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> labels = audit(pool, ["below", "above", "above"], tolerance=0.1)
        >>> labels.init().forecast().observations
        3
    """
    check_statement(tolerance, delta)
    return LabelAudit(pool, sides, threshold, audit=(tolerance, delta), **options)


def checked_sides(given: Any, pool: Pool) -> Tensor:
    r"""The codes of sides, above or below, from words, bools or codes (``N``).

    Raises:
        ValueError: If they are not one label for each row, or if the index of a table's
            column may mean rows or places.
    """
    n_rows = len(pool)
    wanted = f"to be {n_rows} labels, True, 'above' or 1, False, 'below' or -1"
    if isinstance(given, Classification):
        given = given.side
    given = in_order(given, pool.labels, "sides")
    entries = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ValueError(complaint("sides", wanted, f"got {given!r}"))
    if len(entries) != n_rows:
        raise ValueError(complaint("sides", wanted, f"got {len(entries)} of them"))
    codes = []
    for row, entry in enumerate(entries):
        if isinstance(entry, bool | np.bool_):
            codes.append(ABOVE if entry else BELOW)
        elif isinstance(entry, int | float) and entry in (ABOVE, BELOW):
            codes.append(int(entry))
        elif isinstance(entry, str) and entry.strip().lower() in WORDS:
            codes.append(WORDS[entry.strip().lower()])
        else:
            remedy = "Leave rows without a label out of the pool."
            if all(other in (ABOVE, 0) for other in entries):
                way = "np.array(sides) == 1" if entries is given else "sides == 1"
                remedy = f"Write `{way}` if 0 is the label of below. {remedy}"
            came = f"row {row} has {entry!r}"
            raise ValueError(complaint("sides", wanted, came, remedy))
    return torch.tensor(codes, dtype=torch.int8)
