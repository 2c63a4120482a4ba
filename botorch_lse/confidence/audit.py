r"""Audits: whether a claim about rows holds, by rows that are drawn at random.

A claim says of each row of a set on which side it lies. Rows are drawn uniformly at
random, before any of their values is seen, and measured. The test below says when so
many of them were right that, whatever the function and the model that made the claim,
at most a small share of the set can be wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from scipy.stats import norm
from torch import Tensor

from botorch_lse.checks import in_interval, whole_number

BETS = ((0.6, 0.0), (0.25, 0.2), (0.15, 0.5))
"""Stakes on how many of the drawn rows are wrong, as shares of what is tolerated: most
on none, so that a claim without mistakes passes soonest; some on a fifth and on half,
so that a claim with few mistakes passes as well."""
DOUBTS = ((0.4, 2.0), (0.3, 4.0), (0.3, 8.0))
"""The same for a test that more are wrong than tolerated."""
SPENT, KEPT = 0.9, 0.1
"""The ``k``-th audit of a run spends ``0.9 * 0.1^(k - 1)`` of ``delta``: nearly all on
the first, since few claims fail, and all of them together no more than ``delta``."""
LOOKS = (1, 2, 4, 8)
"""A drawn row that is not clear is measured again, until so many times."""
MISTAKEN = 0.05
"""Probability that noise makes a wrong row look right, at all its looks together. Only
the others count as found, so that the tolerated share is smaller by this share."""


@dataclass(frozen=True)
class AuditTest:
    r"""Whether at most a share of all rows is wrong: a bet that grows while rows are
    right.

    If more than ``share`` of the rows are found wrong when drawn, the evidence reaches
    ``limit`` at any time with probability at most ``1 / limit``: each bet is a ratio of
    likelihoods, which does not grow on average, and Ville's inequality bounds the
    maximum. So one may look after every row. With bets on more than ``share``
    (``DOUBTS``) it is the opposite: the evidence that more are wrong.

    Args:
        share: ``t``, in (0, 1): the share of wrong rows that is tested.
        limit: One over the failure probability.
        right: How many drawn rows were right.
        wrong: How many were wrong.
        bets: Stakes that add up to 1, each with what it is bet on: a share of wrong
            rows in multiples of ``share``, at most half of the way from there to 1.

    Raises:
        ValueError: If a number is out of range.

    Source:
        Waudby-Smith, Stark and Ramdas (2021), for audits of elections; the mixture of
        three bets is ours.
    """

    share: float
    limit: float
    right: int = 0
    wrong: int = 0
    bets: tuple[tuple[float, float], ...] = BETS

    def __post_init__(self) -> None:
        in_interval(self.share, "share", 0.0, 1.0)
        in_interval(self.limit, "limit", 1.0, math.inf)
        whole_number(self.right, "right", 0)
        whole_number(self.wrong, "wrong", 0)

    def after(self, verdicts: Tensor) -> AuditTest:
        r"""With further drawn rows, ``n`` bools: right or wrong."""
        right = int(verdicts.sum())
        wrong = len(verdicts) - right
        return replace(self, right=self.right + right, wrong=self.wrong + wrong)

    def along(self, verdicts: Tensor) -> bool:
        r"""Whether it passes at any time on the way through ``n`` bools, in order."""
        steps = verdicts.long()
        right, wrong = steps.cumsum(dim=0), (1 - steps).cumsum(dim=0)
        pairs = zip(right.tolist(), wrong.tolist(), strict=True)
        return self.has_passed or any(
            replace(self, right=self.right + r, wrong=self.wrong + w).has_passed
            for r, w in pairs
        )

    @property
    def log_evidence(self) -> float:
        r"""The logarithm of what the bets have grown to, from 0."""
        t, terms = self.share, []
        for stake, multiple in self.bets:
            q = min(multiple * t, (1 + t) / 2)
            if q == 0.0 and self.wrong > 0:
                continue  # this bet is lost
            log = self.right * math.log((1 - q) / (1 - t))
            if self.wrong > 0:
                log += self.wrong * math.log(q / t)
            terms.append(math.log(stake) + log)
        top = max(terms)
        return top + math.log(sum(math.exp(term - top) for term in terms))

    @property
    def has_passed(self) -> bool:
        r"""Whether the claim is shown, now."""
        return self.log_evidence >= math.log(self.limit)

    @property
    def remaining(self) -> int:
        r"""How many further rows it takes if all of them are right."""
        if self.has_passed:
            return 0
        low, high = 0, 1
        while not replace(self, right=self.right + high).has_passed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if replace(self, right=self.right + middle).has_passed:
                high = middle
            else:
                low = middle
        return high


def audit_test(
    tolerance: float, delta: float, attempt: int = 1, *, is_exact: bool = False
) -> AuditTest:
    r"""The test of the ``attempt``-th audit of a run.

    Args:
        tolerance: The share of wrong rows that is tolerated, in (0, 1).
        delta: The probability, over the draws, that any audit of the run passes though
            more are wrong.
        attempt: 1 for the first audit, 2 for the next one after it was given up.
        is_exact: Whether values are measured without noise.

    Raises:
        ValueError: If a number is out of range.
    """
    in_interval(tolerance, "tolerance", 0.0, 1.0)
    in_interval(delta, "delta", 0.0, 1.0)
    whole_number(attempt, "attempt", 1)
    share = tolerance if is_exact else (1 - MISTAKEN) * tolerance
    return AuditTest(share, 1 / (delta * SPENT * KEPT ** (attempt - 1)))


def doubt_test(test: AuditTest, delta: float) -> AuditTest:
    r"""The test that more rows are wrong than ``test`` tolerates.

    Args:
        test: The test of the claim.
        delta: The probability that it passes though no more are wrong.
    """
    return AuditTest(test.share, 1 / delta, bets=DOUBTS)


def audit_size(tolerance: float, delta: float, *, is_exact: bool = False) -> int:
    r"""How many rows an audit draws if none of them is wrong: its price beforehand.

    Each draw costs a measurement, fewer where a row is drawn twice and more where a
    value is too near to the level for the noise.

    Args:
        tolerance: The share of wrong rows that is tolerated, in (0, 1).
        delta: The failure probability.
        is_exact: Whether values are measured without noise.

    Example:
        >>> audit_size(0.05, 0.05), audit_size(0.1, 0.05)
        (70, 34)
    """
    return audit_test(tolerance, delta, is_exact=is_exact).remaining


def verdicts(
    margin: Tensor, noise_std: Tensor, counts: Tensor, most: int = LOOKS[-1]
) -> Tensor:
    r"""What measurements say of drawn rows: 1 right, -1 wrong, 0 measure again.

    Of a wrong row noise makes the mean look right, at any of its looks, with
    probability at most ``MISTAKEN``. A row that is not clear after the last look counts
    as wrong.

    Args:
        margin: ``n`` means of the values, less the line where the claim is wrong by
            more than its accuracy, positive on the claim's side, units of ``y``.
        noise_std: ``n`` noise standard deviations of one measurement.
        counts: ``n``, how often each row was measured.
        most: How often a row may be measured.

    Source:
        A union bound over the looks; ours.
    """
    looks = [look for look in LOOKS if look <= most]
    z = float(norm.isf(MISTAKEN / len(looks)))
    reach = z * noise_std / counts.clamp_min(1).sqrt()
    is_last = counts >= looks[-1]
    is_right = (margin >= reach) & (margin > 0)
    is_wrong = (margin < -reach) | (is_last & ~is_right) | ((reach == 0) & ~is_right)
    found = is_right.to(torch.int8) - is_wrong.to(torch.int8)
    return torch.where(counts > 0, found, 0).to(torch.int8)


def next_look(counts: Tensor) -> Tensor:
    r"""How often rows that are not clear are to be measured in all, by the next look.

    Args:
        counts: ``n``, how often each was measured.
    """
    looks = torch.tensor((*LOOKS, LOOKS[-1]))
    return looks[torch.searchsorted(looks[:-1], counts, right=True)]
