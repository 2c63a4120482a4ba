r"""The answer: a side for every row, with bounds and probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from botorch_lse.problem.pool import Pool

SIDES = ("above", "below", "undecided")


@dataclass(frozen=True, eq=False)
class Classification:
    r"""Above, below or undecided, for each of ``N`` rows.

    Args:
        above: ``N`` bools: said to lie above the level (Pareto: accepted).
        below: ``N`` bools: said to lie at or below it (rejected).
        undecided: ``N`` bools: neither yet (open). The three partition the pool.
        lower: ``N`` lower confidence bounds, units of ``y``.
        upper: ``N`` upper confidence bounds, units of ``y``.
        mean: ``N`` posterior means, units of ``y``.
        sigma: ``N`` posterior standard deviations of the function, units of ``y``.
        probability_above: ``N`` posterior probabilities of lying above the level; for
            an implicit level, above ``omega`` times the largest posterior mean.
        guarantee: A sentence: the probability claimed, and what it assumes.
        pool: The rows' pool, for ``to_frame``.
        contradicted: ``N`` bools: earlier confidence intervals of this row have nothing
            in common with each other or with the current one, which alone counts. Under
            a width that claims a confidence an assumption is then wrong. Default none.

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

    def __post_init__(self) -> None:
        if self.contradicted is None:
            none = torch.zeros_like(self.above, dtype=torch.bool)
            object.__setattr__(self, "contradicted", none)
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

    @cached_property
    def side(self) -> np.ndarray:
        r"""``N`` words: ``"above"``, ``"below"`` or ``"undecided"``."""
        code = 2 * self.undecided.int() + self.below.int()
        return np.asarray(SIDES, dtype=object)[code.cpu().numpy()]

    @property
    def expected_wrong(self) -> float:
        r"""The expected number of decided rows on the wrong side, by the posterior."""
        p = self.probability_above
        return float(((1 - p) * self.above + p * self.below).sum())

    @cached_property
    def best_guess(self) -> Tensor:
        r"""``N`` bools: above, with undecided rows on the likelier side."""
        return self.above | (self.undecided & (self.probability_above > 0.5))

    def to_frame(self) -> pd.DataFrame:
        r"""The pool's table with the answer in columns beside it.

        Columns added: ``side``, ``probability_above``, ``mean``, ``sigma``, ``lower``,
        ``upper``; where intervals contradict each other, ``contradicted`` says of which
        rows. Where the table has such a name already, ours ends in ``_lse``.
        """
        answer = pd.DataFrame({"side": self.side})
        for name in ("probability_above", "mean", "sigma", "lower", "upper"):
            answer[name] = getattr(self, name).detach().cpu().numpy()
        if bool(self.contradicted.any()):
            answer["contradicted"] = self.contradicted.cpu().numpy()
        if self.pool is None:
            return answer
        table = self.pool.to_frame()
        taken = {name: f"{name}_lse" for name in answer if name in table}
        answer = answer.rename(columns=taken).set_index(table.index)
        return pd.concat((table, answer), axis=1)

    def __repr__(self) -> str:
        counts = (int(getattr(self, name).sum()) for name in SIDES)
        words = ", ".join(f"{n} {name}" for n, name in zip(counts, SIDES, strict=True))
        return f"Classification({len(self)} rows: {words}; {self.guarantee})"


def refuse_crossed(lower: Tensor, upper: Tensor) -> None:
    r"""Complain about the first row whose lower bound is above its upper bound."""
    crossed = lower > upper
    if bool(crossed.any()):
        row = int(crossed.nonzero()[0])
        raise ValueError(
            "Expected no entry of `lower` to be above that of `upper`, but row "
            f"{row} has {float(lower[row]):g} and {float(upper[row]):g}."
        )


def gaussian_probability_above(mean: Tensor, sigma: Tensor, threshold: float) -> Tensor:
    r"""``P(f(x) > threshold)`` for Gaussian ``f(x)``; a step where ``sigma`` is 0."""
    z = (mean - threshold) / sigma.clamp_min(torch.finfo(sigma.dtype).tiny)
    return torch.special.ndtr(z)
