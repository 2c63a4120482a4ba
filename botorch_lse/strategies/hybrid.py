r"""Exact measurements: spend the last runs on the rows in most doubt, and count them.

A simulator without noise tells the side of every row that it is run at. Where the model
has learnt what it can, further runs need not improve it: each settles the row that
weighs most in the expected error of the share above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.checks import whole_number
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.rules import ScoreRule, Situation, by_ratio
from botorch_lse.strategies.turns import Combined


@dataclass(frozen=True)
class MisclassificationProbability(ScoreRule):
    r"""Measure the row in question whose expected error weighs most.

    That is the probability that the row does not have its likeliest side, times its
    weight. Of rows that count alike it is the row of ``UFunction``.

    Source:
        Li and Xiu (2010), the hybrid method for failure probabilities: rows near the
        limit state are simulated, the others are taken from the model.
    """

    only_candidates = True

    def scores(self, situation: Situation) -> Tensor:
        r"""The weighted probability of a wrong side; ties are ratios near one."""
        rows = torch.arange(len(situation.posterior.mean))
        wrong = situation.goal.doubt(situation.posteriors, rows)
        if situation.weights is not None:
            weights = situation.weights / situation.weights.max()
            wrong[: len(weights)] *= weights[: len(wrong)]
        if situation.fits.assays is not None:
            # Measuring an output on which the side does not hang takes off no doubt.
            matters = situation.rows_that_matter
            assert matters is not None  # there are several outputs
            wrong = torch.cat([wrong.masked_fill(~own, 0.0) for own in matters])
        return by_ratio(wrong, situation)


@dataclass(frozen=True)
class FinalRuns(Combined):
    r"""One rule chooses the first measurements, another one all later ones.

    With ``MisclassificationProbability()`` for the second rule and a simulator without
    noise this is the hybrid mode: after ``after`` runs, which include the initial
    design, each further run replaces what the model says of the most doubtful row by
    its true side.

    Args:
        rules: The rule that learns, and the one for the last runs.
        after: How many measurements the first rule chooses, pending ones included.

    Raises:
        ValueError: If there are not two rules or ``after`` is negative; and see
            ``Combined``.

    Example:
        >>> from botorch_lse.strategies import Straddle
        >>> rule = FinalRuns((Straddle(), MisclassificationProbability()), after=60)
    """

    after: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.after, "after", 0)
        if len(self.rules) != 2:
            raise ValueError(
                "Expected `rules` to be the one that learns and the one for the last "
                f"runs, but got {len(self.rules)}."
            )

    def rows(self, situation: Situation, request: Request) -> Tensor:
        r"""The rows of a batch, those of the last runs after those of the first."""
        n = len(situation.belief.fits.measured) + len(request.pending)
        first = min(max(self.after - n, 0), request.size)
        found = torch.empty(0, dtype=torch.long)
        if first:
            seen = self._seen_by(0, situation)
            found = self.rules[0].rows(seen, replace(request, size=first))
        if len(found) == request.size:
            return found
        left = request.left - torch.bincount(found, minlength=len(request.left))
        rest = replace(
            request,
            size=request.size - len(found),
            left=left,
            pending=torch.cat((request.pending, found)),
        )
        if len(found):
            situation = replace(situation, fits=situation.fits.expecting(found))
        last = self.rules[1].rows(self._seen_by(1, situation), rest)
        if len(last):
            return torch.cat((found, last))
        # All rows that the last runs may choose are excluded or used up. Where it is
        # those of the first rule, the last runs have begun already.
        others = self.rules[0].rows(self._seen_by(0, situation), rest)
        return torch.cat((found, others))
