r"""Audits: tests of a claim about rows, by rows that are drawn at random.

A claim says of each row of a set on which side it lies. Rows are drawn uniformly at
random, before any of their values is seen, and measured. The test below says when so
many of them were right that, whatever the function and the model that made the claim,
at most a small share of the set can be wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # which loads its packages when they are first used
import torch
from numpy.typing import NDArray
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.confidence import trials

BETS = ((0.6, 0.0), (0.25, 0.2), (0.15, 0.5))
"""The stakes on how many drawn rows are wrong, as shares of the tolerance.
Most lies on none, so that a claim without mistakes passes soonest; some on a fifth and
on half, so that a claim with few mistakes passes as well."""
DOUBTS = ((0.4, 2.0), (0.3, 4.0), (0.3, 8.0))
"""The stakes of a test that more rows are wrong than tolerated."""
SPENT, KEPT = 0.9, 0.1
"""The spending of ``delta``: nine tenths for an audit, a tenth for all later ones.
The ``k``-th spends ``0.9 * 0.1^(k - 1)`` of it, nearly all the first, as few claims
fail. All audits together spend no more than ``delta``."""
LOOKS = (1, 2, 4, 8)
"""Numbers of measurements at which a drawn row is looked at, until it is clear."""
MISTAKEN = 0.05
"""The probability that noise makes a wrong row look right, at all its looks together.
The test accounts for the wrong rows that are missed so."""
ALL_MISTAKEN = 0.1
"""The probability that noise hides all wrong rows, where few are tolerated.
It is this share of an audit's failure probability."""

KNOWN, LEARNT, SIDE = "known", "learnt", "side"
"""The ways to judge drawn rows: by known noise, by learnt noise, or by sides alone.
Learnt noise is bounded from rows that are measured twice; a side is one value's."""
NOISE_PAIRS, NOISE_SHARE = 15, 0.1
"""The rows measured twice to learn the noise, and the share of ``delta`` for its bound.
The bound of the noise is too low with probability ``NOISE_SHARE * delta``. More pairs
cost more and make the bound tighter (15: about 1.8 times the standard deviation, 30:
1.5), which matters to rows near the level."""
REFERENCE_SHARE = 0.1
"""The share of ``delta`` for the bounds of rows with which drawn rows are compared.
Such rows are those of a Pareto set; so much is the probability of wrong bounds."""
BY_SIGN = 0.5
"""The probability that noise of median zero makes a wrong row's value look right."""


@dataclass(frozen=True)
class AuditTest:
    r"""A test that at most a share of rows is wrong: a bet that grows with right rows.

    If more than ``share`` of the rows are wrong, the evidence reaches ``limit`` at any
    time with probability at most ``1 / limit``. So one may look after every row.

    Why: let ``W`` be the least number of wrong rows that is too many. Each row has one
    verdict, drawn often or not: a wrong row that noise lets look right stays so. Among
    ``n`` rows drawn without replacement, the number of wrong ones is hypergeometric,
    and each of them is found with probability at least ``1 - mistaken``, independently.
    The evidence is what such rows' verdicts are as likely as if fewer than ``W`` rows
    are wrong, over how likely they are if ``W`` are. If ``W`` are, that is a martingale
    with mean 1; if more are wrong or found, the next row is wrong more often (the
    number of rows that would be found grows in the likelihood ratio order), and what
    one bets on is that it is right: it grows even less. Ville's inequality bounds the
    maximum.

    With bets on more than ``share`` (``DOUBTS``) it is the opposite: the evidence that
    more are found wrong.

    Args:
        share: The share of wrong rows that is tolerated, in (0, 1).
        limit: One over the failure probability.
        right: How many drawn rows were right.
        wrong: The number of wrong ones.
        mistaken: The probability that a wrong row is found right, in [0, 1).
        n_rows: The number of rows to draw from; ``None``: many more than drawn.
        bets: Stakes that add up to 1, each with what it is bet on: a share of wrong
            rows in multiples of ``share``, at most half of the way from there to 1.

    Raises:
        ValueError: If a number is out of range.

    Source:
        Waudby-Smith, Stark and Ramdas (2021), for audits of elections; the mixture of
        three bets and the mistaken verdicts are ours.
    """

    share: float
    limit: float
    right: int = 0
    wrong: int = 0
    mistaken: float = 0.0
    n_rows: int | None = None
    bets: tuple[tuple[float, float], ...] = BETS

    def __post_init__(self) -> None:
        in_interval(self.share, "share", 0.0, 1.0)
        in_interval(self.limit, "limit", 1.0, math.inf)
        whole_number(self.right, "right", 0)
        whole_number(self.wrong, "wrong", 0)
        in_interval(self.mistaken, "mistaken", 0.0, 1.0, closed_low=True)
        if self.n_rows is not None:
            whole_number(self.n_rows, "n_rows", max(1, self.right + self.wrong))

    def after(self, verdicts: Tensor) -> AuditTest:
        r"""The test after further drawn rows, ``n`` bools: right or wrong."""
        right = int(verdicts.sum())
        wrong = len(verdicts) - right
        return replace(self, right=self.right + right, wrong=self.wrong + wrong)

    def along(self, verdicts: Tensor) -> bool:
        r"""Whether the test passes at any time along ``n`` bools, in order."""
        # As rows of one kind follow each other the evidence only grows or only shrinks,
        # so that it is highest where a run of them ends.
        ends = torch.ones_like(verdicts)
        ends[:-1] = verdicts[:-1] != verdicts[1:]
        n_rows = (ends.nonzero().view(-1) + 1).tolist()
        return self.has_passed or any(
            self.after(verdicts[:n]).has_passed for n in n_rows
        )

    @property
    def log_evidence(self) -> float:
        r"""The logarithm of the wealth that the bets have reached, from 0."""
        stakes, multiples = np.array(self.bets).T
        multiples = np.minimum(multiples, (1 + 1 / self.share) / 2)
        *bets, null = self._log_probabilities(np.append(multiples, 1.0))
        grown = float(np.logaddexp.reduce(np.log(stakes) + bets))
        return -math.inf if grown == -math.inf else grown - float(null)

    def _log_probabilities(self, multiples: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Log probabilities of the verdicts if multiples of the tolerance are wrong.

        Up to a constant.
        """
        if self.n_rows is None:
            wrong = multiples * self.share * (1 - self.mistaken)
            log: NDArray[np.float64] = scipy.special.xlogy(self.wrong, wrong)
            return log + scipy.special.xlogy(self.right, 1 - wrong)
        # Of `wrong` rows `drawn` were drawn, and of these `self.wrong` were found.
        wrong = np.floor(multiples * too_many(self.share, self.n_rows))
        n, most = self.right + self.wrong, max(int(wrong.max()), self.wrong)
        drawn = np.arange(self.wrong, min(n, most) + 1)[:, None]
        log = _log_choose(wrong, drawn) + _log_choose(self.n_rows - wrong, n - drawn)
        log = log + _log_choose(drawn, self.wrong)
        log = log + scipy.special.xlogy(drawn - self.wrong, self.mistaken)
        log = log + self.wrong * math.log(1 - self.mistaken)
        return np.asarray(np.logaddexp.reduce(log, axis=0))

    @property
    def has_passed(self) -> bool:
        r"""Whether the claim is shown now."""
        return self.log_evidence >= math.log(self.limit)

    @property
    def remaining(self) -> int:
        r"""The number of further rows needed if all of them are right.

        All that are left, if even these would not do.
        """

        def passes(n: int) -> bool:
            return replace(self, right=self.right + n).has_passed

        left = math.inf
        if self.n_rows is not None:
            left = self.n_rows - self.right - self.wrong
        enough = 1
        while enough < left and not passes(enough):
            enough *= 2
        return bisect_left(range(int(min(enough, left))), True, key=passes)


def most_wrong(verdicts: Tensor, test: AuditTest) -> int:
    r"""The largest number of wrong rows that random draws leave believable.

    Of all rows from which is drawn. It holds at every time, for all numbers together,
    with the probability of the test.

    Args:
        verdicts: ``n`` bools in the order of the draws: right or wrong. The wrong ones
            may be of one kind alone, such as rows said to be below that are above.
        test: With the number of rows, the failure probability and the probability that
            a wrong row looks right; its share does not matter.
    """
    assert test.n_rows is not None
    n_rows, found = test.n_rows, int((~verdicts).sum())

    def is_refuted(wrong: int) -> bool:
        share = (wrong - 0.5) / n_rows
        return replace(test, share=share).along(verdicts)

    candidates = range(found + 1, n_rows + 1)
    return found + bisect_left(candidates, True, key=is_refuted)


def _log_choose(n: Any, k: Any) -> Any:
    r"""The logarithm of ``n`` choose ``k``; ``-inf`` where ``k`` exceeds ``n``.

    (``scipy.stats`` has the probabilities made of it, at thirty times the time.)
    """
    return (
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(k + 1)
        - scipy.special.gammaln(n - k + 1)
    )


def too_many(share: float, n_rows: int) -> int:
    r"""The least number of rows that exceeds this share of them."""
    return math.floor(share * n_rows) + 1


def spent(delta: float, attempt: int) -> float:
    r"""The share of a run's failure probability that one of its audits gets."""
    return delta * SPENT * KEPT ** (attempt - 1)


def audit_test(
    tolerance: float,
    delta: float,
    attempt: int = 1,
    *,
    n_rows: int | None = None,
    is_exact: bool = False,
    is_learnt: bool = False,
    by_sign: bool = False,
    n_outputs: int = 1,
    has_references: bool = False,
    by_trials: bool = False,
) -> AuditTest:
    r"""The test of the ``attempt``-th audit of a run.

    Args:
        tolerance: The share of wrong rows that is tolerated, in (0, 1).
        delta: The probability, over the draws, that any audit of the run passes though
            more are wrong, in (0, 0.5).
        attempt: 1 for the first audit, 2 for the next one after it was given up.
        n_rows: The number of rows to draw from; ``None``: many more than drawn.
        is_exact: Whether values are measured without noise.
        is_learnt: Whether verdicts use a ``noise_bound``, which takes its share of
            ``delta``.
        by_sign: Whether rows are judged by the side of one value, whatever the noise:
            ``verdicts`` with ``most=1`` and the test's ``mistaken``. All that is
            assumed is that the noise has median zero, in each row its own.
        n_outputs: How many values tell the side then, with independent noise. All of
            them are on their true sides with probability ``2^-n_outputs`` or more.
        has_references: Whether rows are compared with others, whose bounds take their
            share of ``delta``.
        by_trials: Whether results are yes or no, so that rows are judged by trials.

    Raises:
        ValueError: If a number is out of range.
    """
    check_statement(tolerance, delta)
    whole_number(attempt, "attempt", 1)
    risk = spent(delta, attempt)
    risk *= 1 - NOISE_SHARE * is_learnt - REFERENCE_SHARE * has_references
    if by_sign:
        mistaken = 1 - (1 - BY_SIGN) ** n_outputs
        return AuditTest(tolerance, 1 / risk, mistaken=mistaken, n_rows=n_rows)
    mistaken = trials.MISTAKEN if by_trials else MISTAKEN
    if is_exact:
        mistaken = 0.0
    if n_rows is not None:
        few = too_many(tolerance, n_rows)
        mistaken = min(mistaken, (ALL_MISTAKEN * risk) ** (1 / few))
    return AuditTest(tolerance, 1 / risk, mistaken=mistaken, n_rows=n_rows)


def doubt_test(test: AuditTest, delta: float) -> AuditTest:
    r"""The test that more rows are wrong than ``test`` tolerates.

    Args:
        test: The test of the claim.
        delta: The probability that it passes though no more are wrong.
    """
    return AuditTest(test.share, 1 / delta, bets=DOUBTS)


def check_statement(
    tolerance: float, delta: float, names: tuple[str, str] = ("tolerance", "delta")
) -> None:
    r"""Refuse a statement that no audit can make.

    Args:
        tolerance: The share of wrong rows that is tolerated, in (0, 1).
        delta: The failure probability, in (0, 0.5): above it stands what was meant as
            the confidence, and an audit that hardly asks for a draw would pass.
        names: What the caller's user calls the two.

    Raises:
        ValueError: If one is out of range.
    """
    remedy = "It is a share of the rows: write 0.05 for 5 %."
    in_interval(tolerance, names[0], 0.0, 1.0, remedy=remedy)
    remedy = "It is the probability of a mistake: for 95 % confidence write 0.05."
    in_interval(delta, names[1], 0.0, 0.5, remedy=remedy)


def audit_size(
    tolerance: float,
    delta: float,
    *,
    n_rows: int | None = None,
    is_exact: bool = False,
    is_learnt: bool = False,
    by_sign: bool = False,
    n_outputs: int = 1,
    level: float | None = None,
    epsilon: float = 0.0,
    agreement: float = 1.0,
) -> int:
    r"""The price of an audit: its measurements if all it draws is clearly right.

    Each draw costs a measurement, and more where a value is too near to the level for
    the noise. Where results are yes or no, each draw costs the trials that show the
    side of its probability.

    Args:
        tolerance: The share of wrong rows that is tolerated, in (0, 1).
        delta: The failure probability, in (0, 0.5).
        n_rows: How many rows there are to draw from, which lowers the price where they
            are few; ``None``: many more than drawn.
        is_exact: Whether values are measured without noise.
        is_learnt: Whether the noise is learnt: some rows are measured twice.
        by_sign: Whether rows are judged by the side of one value alone.
        n_outputs: How many outputs have one value each.
        level: Where results are yes or no, the level of the probability, in (0, 1). The
            price is that of the side which takes more trials.
        epsilon: The accuracy of the level.
        agreement: The probability that a trial agrees with the side of its row: 1 where
            rows above always say yes and rows below no. The price is then an
            expectation.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> audit_size(0.05, 0.05), audit_size(0.1, 0.05)
        (70, 34)
        >>> audit_size(0.05, 0.05, n_rows=100)
        45
        >>> audit_size(0.05, 0.05, is_learnt=True), audit_size(0.05, 0.05, by_sign=True)
        (87, 134)
        >>> audit_size(0.1, 0.05, level=0.75, epsilon=0.1)
        198
        >>> audit_size(0.1, 0.05, level=0.75, epsilon=0.1, agreement=0.95)
        260
    """
    test = audit_test(
        tolerance,
        delta,
        n_rows=n_rows,
        is_exact=is_exact,
        is_learnt=is_learnt,
        by_sign=by_sign,
        n_outputs=n_outputs,
        by_trials=level is not None,
    )
    if level is None:
        return test.remaining + is_learnt * NOISE_PAIRS
    in_interval(level, "level", 0.0, 1.0)
    in_interval(epsilon, "epsilon", 0.0, math.inf, closed_low=True)
    in_interval(agreement, "agreement", 0.0, 1.0, closed_high=True)
    lines = torch.tensor([level - epsilon, 1 - level - epsilon], dtype=torch.float64)
    p = torch.full_like(lines, agreement)
    each = trials.expected_trials(p, lines, test.mistaken)
    return math.ceil(test.remaining * float(each.max()))


def verdicts(
    margin: Tensor,
    noise_std: Tensor,
    counts: Tensor,
    most: int = LOOKS[-1],
    mistaken: float = MISTAKEN,
    *,
    is_gaussian: bool = True,
) -> Tensor:
    r"""The verdicts of measurements on drawn rows: 1 right, -1 wrong, 0 measure again.

    Noise makes the mean of a wrong row look right, at any of its looks, with
    probability at most ``mistaken``. Between two looks there is no verdict, since each
    look adds to that probability. A row that is not clear after the last look counts as
    wrong.

    Args:
        margin: ``n`` means of the values, less the line where the claim is wrong by
            more than its accuracy, positive on the claim's side, units of ``y``.
        noise_std: ``n`` noise standard deviations of one measurement.
        counts: ``n``, how often each row was measured.
        most: The largest number of measurements of a row.
        mistaken: The probability, in (0, 1); of the test that is made.
        is_gaussian: Whether the noise is Gaussian. If not it is sub-Gaussian with
            ``noise_std`` for its scale (noise within ``[-b, b]``: ``b``), and the reach
            1.3 times as long: rows near the level need 1.7 times the measurements.

    Source:
        A union bound over the looks; ours.
    """
    reach = reach_of(noise_std, counts, most, mistaken, is_gaussian=is_gaussian)
    is_right = (margin >= reach) & (margin > 0)
    return due(is_right, margin < -reach, reach == 0, counts, most)


def reach_of(
    noise_std: Tensor,
    counts: Tensor,
    most: int,
    mistaken: float,
    *,
    is_gaussian: bool = True,
) -> Tensor:
    r"""The distance that a mean may stray upwards at any look, but for a probability.

    Args:
        noise_std: ``n`` noise standard deviations of one measurement.
        counts: ``n``, how often each row was measured.
        most: The largest number of measurements of a row.
        mistaken: The probability, in (0, 1), at all looks together.
        is_gaussian: See ``verdicts``.

    Returns:
        ``n`` distances, units of ``noise_std``.
    """
    n = len(_looks(most))
    z = float(scipy.stats.norm.isf(mistaken / n))
    if not is_gaussian:  # Chernoff's bound
        z = math.sqrt(2 * math.log(n / mistaken))
    return z * noise_std / counts.clamp_min(1).sqrt()


def _looks(most: int) -> list[int]:
    return [look for look in LOOKS if look <= most]


def due(
    is_right: Tensor, is_wrong: Tensor, is_exact: Tensor, counts: Tensor, most: int
) -> Tensor:
    r"""The verdicts of rows due for a look: 1, -1, or 0 for measure again.

    Args:
        is_right: ``n`` bools: rows that values show to be right.
        is_wrong: ``n`` bools: to be wrong.
        is_exact: ``n`` bools: rows whose values have no noise.
        counts: ``n``, how often each row was measured.
        most: How often a row may be measured; one that is not clear then is wrong.
    """
    looks = _looks(most)
    is_last = (counts >= looks[-1]) | (is_exact & (counts > 0))
    is_due = is_last | torch.isin(counts, torch.tensor(looks))
    is_wrong = is_wrong | (is_last & ~is_right)
    found = is_right.to(torch.int8) - is_wrong.to(torch.int8)
    return torch.where(is_due, found, 0).to(torch.int8)


def next_look(counts: Tensor) -> Tensor:
    r"""The number of measurements, in all, at the next look of rows not yet clear.

    Args:
        counts: ``n``, how often each was measured.
    """
    looks = torch.tensor((*LOOKS, LOOKS[-1]))
    return looks[torch.searchsorted(looks[:-1], counts, right=True)]


def noise_bound(first: Tensor, second: Tensor, delta: float) -> float:
    r"""An upper bound of the noise standard deviation, for noise that is estimated.

    For Gaussian noise whose standard deviation is unknown but the same for all rows.
    The first ``NOISE_PAIRS`` rows drawn are measured twice, whatever their values, and
    nothing is said of any row before all of these values are there. Then
    ``sum (y1 - y2)^2 / (2 std^2)`` is chi-square with one degree of freedom per pair,
    whatever the rows' means are. So the bound is too low with probability at most
    ``NOISE_SHARE * delta``, and the tests of the run get what is left of ``delta``
    (``audit_test(..., is_learnt=True)``).

    With the bound in place of the standard deviation the verdicts hold as they do with
    a known one: a difference ``y1 - y2`` is independent of all means of its row's
    values that include both. So these rows are judged from their second look on, and
    whatever the bound is, the noise of the means is as before. (Verdicts with
    Student's t would be right for each row, but they would be wrong together: one
    estimate that is too small would mislead them all, and the test counts on
    independent ones.)

    One bound serves all later audits of a run. Replicates that were measured while
    learning must not be used: whether a row was measured again depended on its value.

    Args:
        first: ``m`` first values of the rows.
        second: ``m`` second values of the same rows.
        delta: The failure probability of the audit that measures the pairs.

    Example:
        >>> values = torch.tensor([[0.1, -0.1], [2.2, 2.0], [5.0, 5.1]] * 5)
        >>> round(noise_bound(*values.T, 0.05), 2)
        0.22
    """
    m = len(first)
    if m == 0:
        return math.inf  # nothing was measured twice
    least = float(scipy.stats.chi2.ppf(NOISE_SHARE * delta, m))
    return math.sqrt(float((first - second).square().sum()) / 2 / least)
