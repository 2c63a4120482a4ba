r"""The answer: which rows are above, below or undecided."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from botorch_lse._lazy import LazyModule
from botorch_lse._numerals import written
from botorch_lse._validation import (
    in_interval,
    one_of,
    real_vector,
    row_indices,
)
from botorch_lse.data.excursion_volume import CONFIDENCE, Content

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # for tables
from botorch_lse.data.pool import Pool, _set_fields, as_html, beside

SIDES = ("above", "below", "undecided")
ACCEPTED = "accepted"
"""The meaning of being above in the answer about a Pareto set."""


@dataclass(frozen=True, eq=False)
class OutputEstimate:
    r"""The belief about one output, in the answer about a region.

    Args:
        name: The name of the metric, or ``y0``, ``y1``, ...
        mean: ``N`` posterior means, units of the output.
        sigma: ``N`` posterior standard deviations.
        lower: ``N`` lower confidence bounds.
        upper: ``N`` upper confidence bounds.
        levels: The levels that the region compares it with, each one number for all
            rows or ``N`` of them.
    """

    name: str
    mean: Tensor
    sigma: Tensor
    lower: Tensor
    upper: Tensor
    levels: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        refuse_crossed(self.lower, self.upper)


MEAN_ROUNDING = 1e-12
"""The share of a mean's size by which rounding may put it outside of its bounds."""


def _is_outside(part: OutputEstimate | Classification) -> Tensor:
    r"""Whether means are out of their bounds by more than rounding (``N`` bools)."""
    slack = MEAN_ROUNDING * part.mean.abs()
    return (part.mean < part.lower - slack) | (part.mean > part.upper + slack)


@dataclass(frozen=True, eq=False)
class Classification:
    r"""The side of each of ``N`` rows: above, below or undecided.

    Args:
        above: ``N`` bools: said to lie above the level (Pareto: accepted; of a region:
            inside).
        below: ``N`` bools: said to lie at or below it (rejected; outside).
        undecided: ``N`` bools: neither yet (open). The three partition the pool.
        lower: ``N`` lower confidence bounds, units of ``y``.
        upper: ``N`` upper confidence bounds, units of ``y``.
        mean: ``N`` posterior means, units of ``y``.
        sigma: ``N`` posterior standard deviations of the function, units of ``y``.
        probability_above: ``N`` posterior probabilities of lying above the level; for
            an implicit level, above ``omega`` times the largest posterior mean; for the
            maximum, above the largest posterior mean, and of its row itself, of
            exceeding the likeliest other.
        guarantee: A sentence: the probability claimed, and what it assumes.
        pool: The rows' pool, for ``to_frame``.
        contradicted: ``N`` bools: the data of some rounds contradict those of others in
            this row. Either earlier confidence intervals have nothing in common with
            each other or with the current one, which alone counts: under a width that
            claims a confidence an assumption is then wrong. Or ``mean``, which rests on
            all data, lies outside of what all intervals have in common, which is what
            ``lower``, ``upper`` and the side say: rows with a ``mean`` outside of its
            bounds are always marked. Or an audit, which rests on no model, confirmed a
            side that the model's intervals rule out. Default: the rows by ``mean``.
        outputs: Of a region the outputs by themselves, with their levels. Of several of
            them ``mean`` and its bounds say how far a row is from another answer, in
            units of each output's prior standard deviation, negative outside of the
            region.
        classes: Of several levels ``N`` numbers, how many of them a row is above; -1
            where that is not decided. Else ``None``.
        within: ``N`` bools: decided rows that the accuracy ``epsilon`` decides, so that
            they may be on either side of the level itself; ``None`` without accuracy.
        meaning: What it is to be in ``above``, in words, such as "below" where
            ``Below(0.4)`` is asked, or "accepted" where a Pareto set is.
        class_names: The names of the classes, where they have names.

    Raises:
        ValueError: If the three sets are not a partition, or a lower bound is above its
            upper bound.
    """

    above: Tensor
    below: Tensor
    undecided: Tensor
    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    probability_above: Tensor
    guarantee: str = "No confidence is claimed."
    pool: Pool | None = field(default=None, repr=False)
    contradicted: Tensor = field(default=None, repr=False)  # type: ignore[assignment]
    outputs: tuple[OutputEstimate, ...] = field(default=(), repr=False)
    classes: Tensor | None = field(default=None, repr=False)
    within: Tensor | None = field(default=None, repr=False)
    meaning: str = field(default="above", repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        contradicted = self.contradicted
        if contradicted is None:
            contradicted = torch.zeros_like(self.above, dtype=torch.bool)
        parts: tuple[OutputEstimate | Classification, ...] = (self, *self.outputs)
        outside = [_is_outside(part) for part in parts]
        newly = torch.stack(outside).any(dim=0) & ~contradicted
        _set_fields(self, contradicted=contradicted | newly)
        if bool(newly.any()):  # it is said once, however often the record is copied
            n = int(newly.sum())
            means = f"The mean of {n} rows lies" if n > 1 else "The mean of a row lies"
            said = f"{means} outside of what its intervals have in common."
            _set_fields(self, guarantee=f"{self.guarantee} {said}")
        refuse_crossed(self.lower, self.upper)
        times = self.above.int() + self.below.int() + self.undecided.int()
        if not bool((times == 1).all()):
            raise ValueError(
                "Expected `above`, `below` and `undecided` to partition the rows, but "
                f"row {int((times != 1).nonzero()[0])} is in "
                f"{int(times[times != 1][0])} of them."
            )

    def __len__(self) -> int:
        return self.above.numel()

    def at(self, rows: Tensor) -> Classification:
        r"""The answer for some of the rows, given by their numbers; without weights."""

        def some(record: Any) -> dict[str, Any]:
            parts = {part.name: getattr(record, part.name) for part in fields(record)}
            return {name: _at(value, rows, len(self)) for name, value in parts.items()}

        pool, own = self.pool, some(self)
        if pool is not None:
            table = None if pool.table is None else pool.table.iloc[rows.tolist()]
            own["pool"] = Pool(pool.X[rows], names=pool.names, table=table)
        outputs = tuple(OutputEstimate(**some(output)) for output in self.outputs)
        return Classification(**{**own, "outputs": outputs})

    @cached_property
    def side(self) -> np.ndarray:
        r"""The sides as words: ``"above"``, ``"below"`` or ``"undecided"`` (``N``)."""
        code = 2 * self.undecided.int() + self.below.int()
        return np.asarray(SIDES, dtype=object)[code.cpu().numpy()]

    @property
    def expected_wrong(self) -> float:
        r"""The expected number of decided rows on the wrong side, by the posterior."""
        p = self.probability_above
        return float(((1 - p) * self.above + p * self.below).sum())

    @property
    def sides_of_level(self) -> Tensor:
        r"""The sides of the level itself: 1 above, -1 at or below it, 0 not decided.

        Rows that the accuracy lets go to either side are not decided.
        """
        side = self.above.to(torch.int8) - self.below.to(torch.int8)
        return side if self.within is None else side.masked_fill(self.within, 0)

    @property
    def likeliest(self) -> Tensor | None:
        r"""The class with the largest share in each row (``N``), if classes have names.

        By the means, whether the class is decided or not. Where all classes have the
        same, as before there is a model, it is the class of none, the last one.
        """
        if not self.class_names:
            return None
        share = torch.stack([output.mean for output in self.outputs])
        is_tie = (share == share[0]).all(dim=0)
        return share.argmax(dim=0).masked_fill(is_tie, len(self.class_names) - 1)

    @cached_property
    def best_guess(self) -> Tensor:
        r"""Whether rows are above, open ones by their likelier side (``N`` bools)."""
        return self.above | (self.undecided & (self.probability_above > 0.5))

    def content(self, confidence: float = CONFIDENCE) -> Content:
        r"""The share above: a probability of failure, an area, a share of a library.

        The share of the pool, by weights where it has them, with limits that hold if
        all decided rows are right, and the error of the pool as a sample of a
        distribution, where it is one. It is the share above the level itself: rows that
        an accuracy has decided may be on either side, and count as open.
        ``State.content`` adds what only a run knows.

        Example:
            >>> yes, no = torch.tensor([True, False]), torch.tensor([False, True])
            >>> ends = torch.tensor([1.0, -1.0]), torch.tensor([2.0, 1.0])
            >>> middle, spread = torch.tensor([1.5, 0.0]), torch.ones(2)
            >>> p = torch.tensor([0.9, 0.4])
            >>> none = torch.zeros(2, dtype=torch.bool)
            >>> answer = Classification(yes, none, no, *ends, middle, spread, p)
            >>> found = answer.content()
            >>> found.estimate, found.lower, found.upper
            (0.5, 0.5, 1.0)

        Args:
            confidence: Of the limits for the sampling error.

        Raises:
            ValueError: If ``confidence`` is outside (0, 1).
        """
        in_interval(confidence, "confidence", 0.0, 1.0)
        pool, N = self.pool, len(self)
        mass = torch.full((N,), 1 / N, dtype=torch.float64)
        return Content.of(
            mass if pool is None else pool.mass,
            self.sides_of_level,
            self.probability_above.double(),
            self.guarantee,
            meaning=self.meaning,
            is_sample=pool is not None and pool.is_sample,
            adds_up=pool is None or pool.total is None,
            confidence=confidence,
        )

    def with_limits(
        self, rows: Any, limits: Any, side: Literal["above", "below"]
    ) -> Classification:
        r"""The answer once it is known that values lie beyond limits.

        A value below the detection of a method, ``<0.5``, or beyond a scale, decides
        its row if the limit is on the same side of the level. It is no value: leave it
        out of ``tell``, and ``Strategy.exclude`` its row, which is then not asked for.

        Example:
            >>> from botorch_lse.strategies import Above, Strategy
            >>> strategy = Strategy(Pool([[0.0], [0.5], [1.0]]), Above(0.7))
            >>> state = strategy.exclude(strategy.init(), [2])  # its value is <0.5
            >>> state.classification.with_limits([2], [0.5], "below").side.tolist()
            ['undecided', 'undecided', 'below']

        Args:
            rows: ``n`` rows.
            limits: ``n`` limits, units of ``y``, each on the side of the level.
            side: Where the values lie of their limits, and of the level.

        Raises:
            ValueError: If a row is not there, a limit not finite, or the answer is not
                about one level.
        """
        if self.meaning not in ("above", "below") or len(self.outputs) > 1:
            wanted = "of the values above one level, or below it"
            came = f"got those {self.meaning}"
            raise ValueError(f"Expected an answer {wanted}, but {came}.")
        one_of(side, "side", SIDES[:2])
        at = row_indices(rows, "rows", len(self)).to(self.above.device)
        ends = real_vector(limits, "limits", at.numel(), "row").to(self.mean)
        is_above = side == "above"
        changed: dict[str, Any] = {
            name: getattr(self, name).scatter_reduce(
                0, at, ends, "amax" if is_above else "amin"
            )
            for name in ("mean", "lower", "upper")
        }
        is_in = side == self.meaning
        for name, value in zip(SIDES, (is_in, not is_in, False), strict=True):
            changed[name] = getattr(self, name).index_fill(0, at, value)
        p = self.probability_above.index_fill(0, at, float(is_in))
        if self.within is not None:
            changed["within"] = self.within.index_fill(0, at, False)
        return replace(self, **changed, probability_above=p)

    def conservative(self, alpha: float = CONFIDENCE) -> Tensor:
        r"""A set of rows that lie above the level together, with a joint probability.

        The likeliest rows, as long as the probabilities that they are not above add up
        to at most ``1 - alpha``. All of them are then above with probability ``alpha``
        at least, however their sides hang together. An answer has no joint posterior;
        a run has, and its ``State.conservative`` finds a larger set by joint draws.

        Args:
            alpha: The joint probability, right if the model is.

        Returns:
            ``N`` bools.

        Raises:
            ValueError: If ``alpha`` is outside (0, 1).

        Source:
            Bonferroni's inequality.
        """
        alpha = in_interval(alpha, "alpha", 0.0, 1.0)
        p = self.probability_above.double()
        order = p.argsort(descending=True, stable=True)
        member = torch.zeros(len(self), dtype=torch.bool)
        member[order] = (1 - p[order]).cumsum(dim=0) <= 1 - alpha
        return member

    def vorobev(self) -> tuple[Tensor, float]:
        r"""Vorob'ev's expectation of the set above the level, and its deviation.

        The expectation is the set of the rows likeliest to be above that has the
        expected content: with one row less it would have less than that. The deviation
        is the expected mass of the rows on the wrong side of it, by the probabilities
        of the model.

        Returns:
            ``N`` bools, and a share of the pool's mass.

        Source:
            Vorob'ev (1984); Chevalier, Ginsbourger, Bect and Molchanov (2013).
        """
        p, N = self.probability_above.double(), len(self)
        mass = torch.full((N,), 1 / N, dtype=torch.float64)
        if self.pool is not None:
            mass = self.pool.mass
        order = p.argsort(descending=True, stable=True)
        reached = mass[order].cumsum(dim=0) >= float(mass @ p) * (1 - 1e-12)
        member = torch.zeros(N, dtype=torch.bool)
        if float(mass @ p) > 0:
            member[order[: int(reached.to(torch.int8).argmax()) + 1]] = True
        return member, float(mass @ torch.where(member, 1 - p, p))

    def to_frame(self) -> pd.DataFrame:
        r"""The pool's table with the answer in columns beside it.

        Columns added: ``side``, ``probability_above``, ``mean``, ``sigma``, ``lower``,
        ``upper``; of several levels ``class``, where it is decided, and of classes with
        names the ``likeliest``; of several outputs for each ``NAME_mean``,
        ``NAME_lower``, ``NAME_upper``; where intervals contradict each other,
        ``contradicted`` says of which rows. Where the table has such a name already,
        ours ends in ``_lse``. Where ``Below`` is asked, ``side``
        and ``probability_above`` are those of the level all the same.
        """
        side, above = (
            pd.Series(self.side),
            self.probability_above.detach().cpu().numpy(),
        )
        if self.meaning == "below":  # what is in the set is not above the level
            side = side.replace({"above": "below", "below": "above"})
            above = 1 - above
        answer = pd.DataFrame({"side": side, "probability_above": above})
        for name in ("mean", "sigma", "lower", "upper"):
            answer[name] = getattr(self, name).detach().cpu().numpy()
        if self.classes is not None:
            classes = pd.Series(self.classes.cpu().numpy(), dtype="Int64")
            classes = classes.mask(classes < 0)
            if (likeliest := self.likeliest) is not None:
                called = dict(enumerate(self.class_names))
                classes = classes.map(called).astype(object)
                answer["likeliest"] = pd.Series(likeliest.cpu().numpy()).map(called)
            answer.insert(1, "class", classes)
        for output in self.outputs if len(self.outputs) > 1 else ():
            for name in ("mean", "lower", "upper"):
                values = getattr(output, name).detach().cpu().numpy()
                answer[f"{output.name}_{name}"] = values
        if bool(self.contradicted.any()):
            answer["contradicted"] = self.contradicted.cpu().numpy()
        return answer if self.pool is None else beside(self.pool.to_frame(), answer)

    def __repr__(self) -> str:
        counts = [int(getattr(self, name).sum()) for name in SIDES]
        names: tuple[str, ...] = SIDES
        if self.classes is not None and self.class_names:
            names = (*self.class_names, SIDES[-1])
            every = self.classes.remainder(len(names))  # -1, not known, is the last
            counts = torch.bincount(every, minlength=len(names)).tolist()
        words = ", ".join(f"{n} {name}" for n, name in zip(counts, names, strict=True))
        return f"Classification({len(self)} rows: {words}; {self.guarantee})"

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.to_frame())


def _at(value: Any, rows: Tensor, n: int) -> Any:
    r"""A value for some of ``n`` rows, or as it is where it has none for each."""
    if isinstance(value, tuple):
        return tuple(_at(part, rows, n) for part in value)
    is_by_row = isinstance(value, Tensor) and value.shape[:1] == (n,)
    return value[rows] if is_by_row else value


def refuse_crossed(lower: Tensor, upper: Tensor) -> None:
    r"""Complain about the first row whose lower bound is above its upper bound."""
    crossed = lower > upper
    if bool(crossed.any()):
        row = int(crossed.nonzero()[0])
        raise ValueError(
            "Expected no entry of `lower` to be above that of `upper`, but row "
            f"{row} has {written(lower[row])} and {written(upper[row])}."
        )


def gaussian_probability_above(mean: Tensor, sigma: Tensor, threshold: float) -> Tensor:
    r"""The probability of a Gaussian value above the level; a step at ``sigma`` 0."""
    z = (mean - threshold) / sigma.clamp_min(torch.finfo(sigma.dtype).tiny)
    return torch.special.ndtr(z)
