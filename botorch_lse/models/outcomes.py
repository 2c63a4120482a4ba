r"""Outcomes that are not a function plus noise: yes or no, counts, grades, decades.

What is measured depends on a latent function ``f``, which is a Gaussian process. An
``Outcome`` says how: it is a table of log probabilities of results given ``f``, and the
quantity that levels are about, a rising function of ``f``. The posterior of ``f`` is
approximated by a Gaussian one (``models/expectation.py``), and everything that rests on
Gaussian posteriors works. Values of ``f`` plus noise on a scale of their own
(``LogNormal``) need no approximation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy  # which loads its packages when they are first used
import torch
from torch import Tensor

from botorch_lse._lazy import LazyModule
from botorch_lse._numerals import written
from botorch_lse._validation import (
    complaint,
    in_interval,
    one_of,
    real_vector,
    whole_number,
)

if TYPE_CHECKING:
    from botorch_lse.functional import answers
else:  # brings SciPy
    answers = LazyModule("botorch_lse.functional.answers")

FARTHEST = 8.0
"""The standard normal deviates beyond which probabilities count as 0 or 1."""
LEAST_INFORMATION = 1e-9
"""The least share of a latent variance that a trial is expected to take off.
Where a result is certain it tells nothing, and its pseudo-noise would be infinite."""
NODES = 48
"""The number of nodes of Gauss-Hermite quadrature over the latent value.
Of binomial results 32 give four digits of a posterior's moments, 48 six."""
WIDER = 1.5
"""The factor by which the nodes reach farther than the distribution they stand for."""
FAR, NARROW, WIDE = 3.0, 0.44, 2.0
"""The largest distance of a mean from the nodes' middle, and the deviations they serve.
In units of the nodes: of a normal distribution they then give the moments to 3e-6. For
others they are placed anew, as where a step of a fit made other results likely."""
MOVES, MOST_SCALED = 20, 8.0
"""The largest number of places of nodes, and the factor of their width at a move."""
GROUPS, GROUP_REACH, LEAST_SPREAD = 64, 4.0, 1e-6
"""The number of groups of counts before their result is known, and their reach.
In deviations of a count, beyond expected counts that are likely; and the least standard
deviation of ``f`` in their scale."""
LARGEST_LOG = 50.0
"""The largest logarithm of an expected count, which nothing counts up to."""
LEAST_GAP = 1e-3
"""The least distance of two cutpoints of grades.
A grade between nearer ones would be seen in less than one of a thousand measurements,
and differences of probabilities would lose their digits."""
ALL_GAPS = 6.0
"""The number of grades times the median of the prior of the distance of cutpoints.
All grades are then about equally likely beforehand: of a latent function whose standard
deviation is 2, as the default prior expects, with noise of 1, from 3 to 7 grades."""
FAILURES = ("repeat", "outcome")
"""The meanings of a failed trial: it is asked for again, or is the result 0."""
_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Results:
    r"""Results of an outcome, and the points at which they were found.

    Args:
        y: ``n`` results; of several trials their mean.
        trials: ``n`` numbers of trials.
        place: ``n`` numbers of their points, each below ``p``; default: each result
            has a point of its own.
    """

    y: Tensor
    trials: Tensor
    place: Tensor = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.place is None:
            place = torch.arange(len(self.y), device=self.y.device)
            object.__setattr__(self, "place", place)

    def by_point(self, each: Tensor) -> Tensor:
        r"""The sums of numbers by point (``... x n`` to ``... x p``)."""
        zero = each.new_zeros(*each.shape[:-1], int(self.place.max()) + 1)
        return zero.index_add(-1, self.place, each)


class Quantity(ABC):
    r"""The quantity that levels, means and bounds are about.

    It rises with a Gaussian process ``f``. An ``Outcome`` also says how results are
    distributed given ``f``; with ``LogNormal`` they are values of ``f`` plus noise, on
    another scale.
    """

    by_results: ClassVar[bool] = False
    """Whether it is told by results such as yes and no, which have no variance."""

    @property
    def of_failure(self) -> float | None:
        r"""The result that a failed measurement is; ``None``: it has none."""
        return None

    def of_metric(self, metric: str) -> str:
        r"""The meaning of levels of a metric, in words."""
        return metric

    def as_quantity(self, y: Tensor) -> Tensor:
        r"""The results as numbers whose expectation is the quantity."""
        return y

    @abstractmethod
    def check(self, y: Tensor, trials: Tensor) -> None:
        r"""Complain about results that cannot be.

        Args:
            y: ``n`` results; of several trials their mean.
            trials: ``n`` numbers of trials.

        Raises:
            ValueError: If there is such a result.
        """

    @abstractmethod
    def check_level(self, level: Tensor) -> None:
        r"""Complain about levels that the quantity cannot take.

        Raises:
            ValueError: If there is one.
        """

    @abstractmethod
    def value(self, f: Tensor) -> Tensor:
        r"""The quantity at latent values; it rises with them."""

    @abstractmethod
    def latent(self, value: Tensor) -> Tensor:
        r"""The latent values of quantities: the inverse of ``value``."""

    @abstractmethod
    def moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean and standard deviation of the quantity, ``f`` being normal."""


class Outcome(Quantity):
    r"""The relation of what is measured to a latent Gaussian process ``f``."""

    quantity: ClassVar[str]
    """The meaning of levels, means and bounds, in words."""
    by_means: ClassVar[bool] = True
    """Whether the mean of a point's results tells as much of ``f`` as they do."""
    by_results = True

    @property
    def unknowns(self) -> tuple[float, ...]:
        r"""The positive parameters that a fit has to find, at their priors' medians."""
        return ()

    def with_parameters(self, values: Sequence[float]) -> Outcome:
        r"""The outcome with the values of ``unknowns`` that a fit has found."""
        return self

    def by_parameters(
        self,
        results: Results,
        mean: Tensor,
        variance: Tensor,
        near: tuple[Tensor, Tensor],
    ) -> Tensor:
        r"""The derivatives of the log probability of all results by ``unknowns``.

        The arguments are those of ``derivatives``.
        """
        return mean.new_zeros(0)

    def joined(self, results: Results) -> Results:
        r"""The results of each point as one of several trials, if it tells as much.

        Else those of them that are equal.
        """
        key = results.place
        if not self.by_means:
            both = torch.stack((key.to(results.y), results.y))
            key = both.unique(dim=1, return_inverse=True)[1]
        sums = Results(results.y, results.trials, key)
        trials = sums.by_point(results.trials)
        y = sums.by_point(results.y * results.trials) / trials
        return Results(y, trials, key.new_zeros(len(y)).scatter(0, key, results.place))

    def of_metric(self, metric: str) -> str:
        r"""The meaning of levels of a metric, in words."""
        return f"{self.quantity} of {metric}"

    @abstractmethod
    def log_probability(self, f: Tensor, y: Tensor, trials: Tensor) -> Tensor:
        r"""The log probabilities of results, up to a constant of each.

        Args:
            f: Latent values, ``... x n``.
            y: ``n`` results; of several trials their mean.
            trials: ``n`` numbers of trials.
        """

    @abstractmethod
    def similar(self, y: Tensor, trials: Tensor) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements of ``f`` that tell about as much as the results.

        Returns:
            ``n`` values and ``n`` noise variances.
        """

    @abstractmethod
    def quantiles(
        self, y: Tensor, trials: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""The probabilities of smaller results, and of results that are not larger.

        Args:
            y: ``n`` results; of several trials their mean.
            trials: ``n`` numbers of trials.
            mean: ``n`` means of ``f`` before the result.
            variance: ``n`` variances of ``f`` before the result.
        """

    @abstractmethod
    def pseudo_noise(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""The noise variance of a Gaussian measurement as informative as one trial.

        It takes off as much of the variance of ``f``, at every point, as the trial does
        in expectation, before its result is known.
        """

    @abstractmethod
    def ahead(self, mean: Tensor, variance: Tensor) -> answers.ResultAhead:
        r"""One trial at each of ``C`` points, before its result.

        Args:
            mean: ``C`` means of ``f``.
            variance: ``C`` variances of ``f``.
        """

    def of_one(
        self, y: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        r"""The ``derivatives`` of one trial at each point, if a closed form is known.

        Args:
            y: ``p`` results.
            mean: ``p`` means of ``f`` without the result.
            variance: ``p`` variances of ``f`` without the result.
        """
        return None

    def derivatives(
        self,
        results: Results,
        mean: Tensor,
        variance: Tensor,
        near: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""The log probability of results under a normal ``f``, with two derivatives.

        By adaptive quadrature, but for points with one trial, of which an outcome may
        know a closed form.

        Args:
            results: The results of ``p`` points.
            mean: ``p`` means of ``f`` without the results of the point.
            variance: ``p`` variances of ``f``, likewise.
            near: ``p`` means and variances near to those of ``f`` given the results,
                around which the nodes lie.

        Returns:
            For each point the log probability of its results, and its first and second
            derivatives by the mean.
        """
        is_one = results.by_point(results.trials) == 1
        y = results.by_point(results.y).masked_fill(~is_one, 0.0)
        closed = self.of_one(y, mean, variance)
        if closed is not None and bool(is_one.all()):
            return closed
        f, share, log = self._given(results, mean, variance, near)
        first = (share * f).sum(dim=0)
        second = (share * (f - first).square()).sum(dim=0)
        slope, curve = (first - mean) / variance, (second / variance - 1) / variance
        if closed is None:
            return log, slope, curve
        log, slope, curve = (
            torch.where(is_one, exact, found)
            for exact, found in zip(closed, (log, slope, curve), strict=True)
        )
        return log, slope, curve

    def _given(
        self,
        results: Results,
        mean: Tensor,
        variance: Tensor,
        near: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Latent values, their shares given the results, and the log probabilities.

        The arguments are those of ``derivatives``.

        Returns:
            ``NODES x p`` values and their shares of the probability given the results;
            ``p`` log probabilities of the results.
        """
        x, weights = _nodes(mean)
        centre, spread = near[0], near[1].sqrt() * WIDER
        for _ in range(MOVES):
            f = centre + spread * x
            told = self.log_probability(f[:, results.place], results.y, results.trials)
            far = (f - mean).square() / variance
            log = results.by_point(told) - 0.5 * (far + variance.log() - x.square())
            log = log + spread.log() + weights.log()
            total = torch.logsumexp(log, dim=0)
            share = (log - total).exp()
            shift = (share * x).sum(dim=0)
            width = (share * (x - shift).square()).sum(dim=0).sqrt()
            is_far = shift.abs() > FAR
            is_off = is_far | (width < NARROW) | (width > WIDE)
            if not bool(is_off.any()):
                break
            # What lies beyond all nodes looks narrow: they go there before they scale.
            centre = torch.where(is_off, centre + spread * shift, centre)
            factor = (WIDER * width).clamp(1 / MOST_SCALED, MOST_SCALED)
            spread = torch.where(is_off & ~is_far, spread * factor, spread)
        return f, share, total - 0.5 * _LOG_2PI


def of_failure(outcomes: Sequence[Quantity | None]) -> tuple[float, ...] | None:
    r"""The results that a failed measurement is; ``None`` where an output has none.

    Args:
        outcomes: The outcome that is measured of each output; ``None``: a number.
    """
    found = [None if one is None else one.of_failure for one in outcomes]
    values = tuple(value for value in found if value is not None)
    return values if len(values) == len(found) else None


def _nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    r"""The nodes and weights of quadrature over a standard normal (``NODES x 1``)."""
    x, weights = (torch.from_numpy(part).to(like).unsqueeze(-1) for part in _gauss())
    return x, weights


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    r"""The same, found once: it takes longer than what most calls do with them."""
    x, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return x, weights


def _noise_of(information: Tensor, variance: Tensor) -> Tensor:
    r"""The noise variance of a measurement that takes ``c^2 information`` off others.

    Args:
        information: The share of ``c^2`` that a trial takes off a variance, ``c`` being
            the covariance with ``f``.
        variance: The variances of ``f``.
    """
    information = torch.maximum(information, LEAST_INFORMATION / variance)
    # Of a result that tells all there is to tell, rounding may leave less than 0.
    least = LEAST_INFORMATION * variance
    return (1 / information - variance).maximum(least)


@dataclass(frozen=True)
class Binary(Outcome):
    r"""Yes or no: results are 1 and 0, and levels are probabilities of a 1.

    ``P(1 | f) = guess + (1 - guess - lapse) Phi(f)``, ``Phi`` being the standard normal
    distribution function (probit). Several trials at a row are told as
    ``Observations(rows, successes, trials=n)``.

    Example:
        >>> Binary(guess=0.5, lapse=0.04).value(torch.tensor([-9.0, 0.0, 9.0]))
        tensor([0.5000, 0.7300, 0.9600])

    Args:
        guess: The probability of a 1 however small ``f`` is: 0.5 where one of two
            answers is right by chance.
        lapse: The probability of a 0 however large ``f`` is.
        failures: ``"repeat"``: a trial that failed in Ax, Optuna or an engine has no
            result, and its row is asked for again. ``"outcome"``: it is the result 0,
            as where the question is which rows fail.

    Raises:
        ValueError: If one of the rates is no number in [0, 1), both leave nothing, or
            ``failures`` is neither.

    Source:
        Letham et al. (2022), Theorem 1, for the probability of an answer; the variance
        that an answer is expected to take off is that of the mean after it, and follows
        from the derivatives of this probability. Guess and lapse rates are ours.
    """

    guess: float = 0.0
    lapse: float = 0.0
    failures: str = "repeat"

    quantity: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        for name in ("guess", "lapse"):
            in_interval(getattr(self, name), name, 0.0, 1.0, closed_low=True)
        one_of(self.failures, "failures", FAILURES)
        if self._width <= 0:
            wanted = "and `lapse` to be less than 1 together"
            came = f"got {written(self.guess)} and {written(self.lapse)}"
            raise ValueError(complaint("guess", wanted, came))

    @property
    def of_failure(self) -> float | None:
        r"""The result that a failed trial is: 0, or none."""
        return 0.0 if self.failures == "outcome" else None

    @property
    def _width(self) -> float:
        r"""The probability that an answer is neither guessed nor a lapse."""
        return 1.0 - self.guess - self.lapse

    def check(self, y: Tensor, trials: Tensor) -> None:
        r"""Complain about results that are not 0 or 1, nor shares of trials.

        Raises:
            ValueError: If there is such a result.
        """
        successes = y * trials
        is_whole = (successes - successes.round()).abs() <= 1e-6 * trials
        wrong = ~(is_whole & (y >= 0) & (y <= 1))
        if not bool(wrong.any()):
            return
        place = int(wrong.nonzero()[0])
        raise ValueError(
            complaint(
                "y",
                "to be 1 or 0 with `outcome=Binary(...)`",
                f"got {written(y[place])}",
                "Tell numbers of successes with `trials=n`; leave `outcome` out for "
                "measured numbers.",
            )
        )

    def check_level(self, level: Tensor) -> None:
        r"""Complain about levels that are no probabilities, or that none can cross.

        Raises:
            ValueError: If there is one.
        """
        low, high = self.guess, 1.0 - self.lapse
        wrong = ~((level > low) & (level < high))
        if not bool(wrong.any()):
            return
        wanted = (
            f"to be a probability between {written(low)} and {written(high)} with "
            "`outcome=Binary(...)`"
        )
        came = f"got {written(level[wrong][0])}"
        remedy = "Above 0.75 are the rows where three of four answers are 1."
        if low > 0 or high < 1:
            remedy = "The guess and lapse rates bound all probabilities."
        raise ValueError(complaint("threshold", wanted, came, remedy))

    def log_probability(self, f: Tensor, y: Tensor, trials: Tensor) -> Tensor:
        r"""The binomial log probabilities of results, without the coefficient."""
        yes = self._log_share(f, self.guess)
        no = self._log_share(-f, self.lapse)
        return trials * (y * yes + (1 - y) * no)

    def _log_share(self, f: Tensor, floor: float) -> Tensor:
        r"""The logarithm of ``floor + (1 - guess - lapse) Phi(f)``."""
        log = torch.special.log_ndtr(f) + math.log(self._width)
        if floor == 0:
            return log
        return torch.logaddexp(log, torch.full_like(log, math.log(floor)))

    def value(self, f: Tensor) -> Tensor:
        r"""The probability of a 1 at latent values."""
        return self.guess + self._width * torch.special.ndtr(f)

    def latent(self, value: Tensor) -> Tensor:
        r"""The latent values at which a 1 has these probabilities."""
        share = (value - self.guess) / self._width
        return torch.special.ndtri(share.clamp(0.0, 1.0)).clamp(-FARTHEST, FARTHEST)

    def moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean and standard deviation of the probability, ``f`` being normal.

        With ``a = m / sqrt(1 + s^2)`` they are ``Phi(a)``, and the root of the
        covariance of two answers, ``Phi2(a, a; s^2 / (1 + s^2)) - Phi(a)^2``.
        """
        a = mean / (1 + variance).sqrt()
        # Before there is a model the variance is infinite.
        correlation = (variance / (1 + variance)).nan_to_num(nan=1.0)
        spread = answers.joint_excess(a, a, correlation).sqrt()
        share = torch.special.ndtr(a)
        return self.guess + self._width * share, self._width * spread

    def similar(self, y: Tensor, trials: Tensor) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements of ``f`` that tell about as much as the results."""
        successes = y * trials
        share = (successes + 0.5) / (trials + 1)
        low, high = self.guess, 1 - self.lapse
        margin = 0.5 * self._width / (trials + 1)
        share = torch.minimum(share.maximum(low + margin), high - margin)
        f = self.latent(share)
        slope = self._width * (-0.5 * (f.square() + _LOG_2PI)).exp()
        return f, share * (1 - share) / (trials * slope.square())

    def of_one(
        self, y: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""The ``derivatives`` of one trial at each point.

        ``P(1) = guess + (1 - guess - lapse) Phi(m / sqrt(1 + s^2))`` (Rasmussen and
        Williams 2006, equations 3.77 to 3.82, without guess and lapse rates).
        """
        sign, root = 2 * y - 1, (1 + variance).sqrt()
        z = sign * mean / root
        log = torch.where(
            y > 0.5, self._log_share(z, self.guess), self._log_share(z, self.lapse)
        )
        density = (-0.5 * (z.square() + _LOG_2PI) - log).exp() * self._width / root
        return log, sign * density, -density * (z / root + density)

    def ahead(self, mean: Tensor, variance: Tensor) -> answers.AnswerAhead:
        r"""One trial at each of ``C`` points, before its answer."""
        return answers.AnswerAhead(mean, variance, self.guess, self.lapse)

    def quantiles(
        self, y: Tensor, trials: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""The probabilities of fewer successes, and of no more successes."""
        x, weights = _nodes(mean)
        p = self.value(mean + variance.sqrt() * x).cpu().numpy()  # nodes x n
        k, n = (y * trials).round().cpu().numpy(), trials.long().cpu().numpy()
        shares = (weights / weights.sum()).cpu().numpy()
        # Of fewer than no successes SciPy does not know that there are none.
        fewer = np.where(k > 0, scipy.special.bdtr(np.maximum(k - 1, 0), n, p), 0.0)
        both = (fewer, scipy.special.bdtr(k, n, p))
        low, high = (torch.from_numpy((shares * found).sum(axis=0)) for found in both)
        return low.to(y), high.to(y)

    def pseudo_noise(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""The noise variance of a Gaussian measurement as informative as one trial.

        An answer takes off ``c^2 w`` of a variance, ``c`` being the covariance with
        ``f`` and ``w = (d P(1) / d m)^2 / (P(1) P(0))``: the variance of the mean after
        it. A Gaussian measurement with the noise ``1 / w - s^2`` does the same.
        """
        root = (1 + variance).sqrt()
        a = mean / root
        slope = math.log(self._width) - 0.5 * (a.square() + _LOG_2PI) - root.log()
        yes, no = self._log_share(a, self.guess), self._log_share(-a, self.lapse)
        return _noise_of((2 * slope - yes - no).exp(), variance)


@dataclass(frozen=True)
class LogNormal(Quantity):
    r"""Numbers above 0 whose logarithms are a Gaussian process plus noise.

    Concentrations, permeabilities, sizes and times that span decades: what doubles in
    one place halves in another, and the noise is a share of the value. Levels,
    ``epsilon``, told values and their variances stay in the units of ``y``.
    ``noise_std`` is a share: 0.1 is a noise of about 10 %. Means are medians, half of
    the measurements at a row being larger, and levels are about these.

    Example:
        >>> LogNormal().value(torch.tensor([0.0, 2.3026])).round(decimals=2)
        tensor([ 1., 10.])

    Source:
        The delta method for the variance of a logarithm: that of ``y`` over ``y^2``.
    """

    def check(self, y: Tensor, trials: Tensor) -> None:
        r"""Complain about results that have no logarithm.

        Raises:
            ValueError: If there is such a result.
        """
        if not bool((y > 0).all()):
            came = f"got {written(y[~(y > 0)][0])}"
            remedy = "Tell what lies below a limit of detection as half of the limit."
            raise ValueError(complaint("y", f"to be above 0 {_GIVEN}", came, remedy))

    def check_level(self, level: Tensor) -> None:
        r"""Complain about levels that have no logarithm.

        Raises:
            ValueError: If there is one.
        """
        if not bool((level > 0).all()):
            came = f"got {written(level[~(level > 0)][0])}"
            remedy = "Leave `outcome` out for numbers of any sign."
            wanted = f"to be above 0 {_GIVEN}"
            raise ValueError(complaint("threshold", wanted, came, remedy))

    def value(self, f: Tensor) -> Tensor:
        r"""The numbers with these logarithms."""
        return f.exp()

    def latent(self, value: Tensor) -> Tensor:
        r"""The natural logarithms of numbers; of what is not above 0 a very low one."""
        return value.clamp_min(torch.finfo(value.dtype).tiny).log()

    def moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        r"""The median, and how far above it one standard deviation of ``f`` leads."""
        median = mean.exp()
        return median, median * variance.sqrt().expm1()

    def on_scale(self, y: Tensor, yvar: Tensor | None) -> tuple[Tensor, Tensor | None]:
        r"""The values of ``f`` plus noise that measured numbers are.

        Args:
            y: ``n`` numbers above 0.
            yvar: Their noise variances, units of ``y`` squared; ``None``: not known.
        """
        return y.log(), None if yvar is None else yvar / y.square()


_GIVEN = "with `outcome=LogNormal()`"


@dataclass(frozen=True)
class Counts(Outcome):
    r"""Counts of events: results are 0, 1, 2, ..., and levels are expected counts.

    A result has the Poisson distribution whose mean is ``exp(f)``: defects of a wafer,
    photons in a second, visitors of a day. Expected counts are never negative, and how
    far counts scatter around them follows from them.

    Example:
        >>> Counts().value(torch.tensor([0.0, 3.0]))
        tensor([ 1.0000, 20.0855])

    Source:
        Rasmussen and Williams (2006), section 9.3, for the likelihood.
    """

    quantity: ClassVar[str] = "expected count"

    def check(self, y: Tensor, trials: Tensor) -> None:
        r"""Complain about results that are no counts.

        Raises:
            ValueError: If there is such a result.
        """
        total = y * trials
        wrong = ~((total >= 0) & ((total - total.round()).abs() <= 1e-6 * trials))
        if not bool(wrong.any()):
            return
        came = f"got {written(y[int(wrong.nonzero()[0])])}"
        wanted = "to be 0, 1, 2 and so on with `outcome=Counts()`"
        remedy = "Leave `outcome` out for measured numbers."
        raise ValueError(complaint("y", wanted, came, remedy))

    def check_level(self, level: Tensor) -> None:
        r"""Complain about levels that are no expected counts.

        Raises:
            ValueError: If there is one.
        """
        wrong = ~(level > 0)
        if not bool(wrong.any()):
            return
        wanted = "to be an expected count above 0 with `outcome=Counts()`"
        came = f"got {written(level[wrong][0])}"
        remedy = "Above 0.1 are the rows with one event in ten measurements."
        raise ValueError(complaint("threshold", wanted, came, remedy))

    def log_probability(self, f: Tensor, y: Tensor, trials: Tensor) -> Tensor:
        r"""The Poisson log probabilities of results, without the factorial."""
        return trials * (y * f - f.exp())

    def value(self, f: Tensor) -> Tensor:
        r"""The expected counts at latent values."""
        return torch.where(f.isinf(), f, f.clamp_max(LARGEST_LOG)).exp()

    def latent(self, value: Tensor) -> Tensor:
        r"""The latent values with these expected counts; of 0 a very low one."""
        return value.clamp_min(math.exp(-LARGEST_LOG)).log()

    def moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean and standard deviation of the expected count, ``f`` being normal.

        Those of a log-normal variable, ``exp(m + s^2 / 2)`` and this times the root of
        ``exp(s^2) - 1``; the median, where nothing is known yet and ``s`` is infinite.
        """
        unknown = variance.isinf()
        expected = self.value(torch.where(unknown, mean, mean + variance / 2))
        spread = variance.clamp_max(LARGEST_LOG).expm1().sqrt()
        return expected, expected * torch.where(unknown, variance, spread)

    def similar(self, y: Tensor, trials: Tensor) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements of ``f`` that tell about as much as the results."""
        total = y * trials + 0.5
        return (total / trials).log(), 1 / total

    def quantiles(
        self, y: Tensor, trials: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""The probabilities of fewer events, and of no more events."""
        x, weights = _nodes(mean)
        expected = (trials * self.value(mean + variance.sqrt() * x)).cpu().numpy()
        k = (y * trials).round().cpu().numpy()
        shares = (weights / weights.sum()).cpu().numpy()
        fewer = np.where(k > 0, scipy.special.pdtr(np.maximum(k - 1, 0), expected), 0.0)
        both = (fewer, scipy.special.pdtr(k, expected))
        low, high = (torch.from_numpy((shares * found).sum(axis=0)) for found in both)
        return low.to(y), high.to(y)

    def pseudo_noise(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""The noise variance of a Gaussian measurement that tells about as much.

        One over the expected count at the mean of ``f``, the inverse of the information
        there. No closed form is known of what a count takes off. Where ``f`` has a
        standard deviation of 1, it is within a tenth of this for expected counts of at
        least 1, and a third more for 0.1.

        Source:
            Lyu et al. (2021), for the information at the mean.
        """
        return 1 / self.value(mean.clamp_min(-LARGEST_LOG))

    def ahead(self, mean: Tensor, variance: Tensor) -> answers.AnyResultAhead:
        r"""One count at each of ``C`` points, before it is known, by groups of counts.

        Groups are of one count each where these are few, else of equal widths on a
        scale on which a count, whose variance is ``m + s^2 m^2``, has the variance 1.
        """
        f = answers.latent_values(mean, variance)
        expected = self.value(f)
        s = variance.sqrt().clamp_min(LEAST_SPREAD).unsqueeze(-1)
        ends = 2 / s * (s * expected[:, [0, -1]].sqrt()).asinh()
        low, high = ends.split(1, dim=-1)
        low = (low - GROUP_REACH).clamp_min(0.0)
        steps = torch.linspace(0.0, 1.0, GROUPS).to(f)
        scale = torch.lerp(low, high + GROUP_REACH, steps)
        last = ((s / 2 * scale).sinh() / s).square().floor()  # C x GROUPS
        up_to = torch.special.gammaincc(last.unsqueeze(-1) + 1, expected.unsqueeze(-2))
        none, every = torch.zeros_like(up_to[:, :1]), torch.ones_like(up_to[:, :1])
        chances = torch.cat((none, up_to, every), dim=1).diff(dim=1)
        return answers.AnyResultAhead(mean, variance, chances)


@dataclass(frozen=True)
class Ordinal(Outcome):
    r"""Grades in their order: results are 0, 1, ..., ``grades - 1``.

    Poor, fair, good, excellent; a severity from 0 to 4; a rating of a panel. Levels are
    probabilities of a grade of ``at_least`` or more: ``Above(0.75)`` with ``Ordinal(4,
    at_least=2)`` are the rows where three of four results are good or excellent, and
    ``Below(0.2)`` with ``Ordinal(5, at_least=3)`` those where a severity of 3 or 4 is
    rarer than one in five. "The typical grade is 2 or more" is ``Above(0.5)``. Means
    of grades are no levels: they would take the steps between grades for equal.

    Grades follow a cumulative probit, ``P(y >= k | f) = Phi(f - cutpoints[k - 1])``
    with ``Phi`` the standard normal distribution function. So all grades tell about
    ``f``, not only the side of ``at_least`` on which they are. The noise of ``f`` has
    the scale 1; the scale and the mean of ``f`` and the distances of cutpoints are
    learnt, the cutpoint of ``at_least`` being 0. Each result is told by itself, as a
    mean of grades does not say which they were.

    Example:
        >>> outcome = Ordinal(3, at_least=2, cutpoints=(-1.0, 0.5))
        >>> outcome.value(torch.tensor([-9.0, 0.5, 9.0]))
        tensor([0.0000, 0.5000, 1.0000])

    Args:
        grades: The number of grades, at least 2.
        at_least: The grade whose probability, or that of a higher grade, levels are
            about; from 1 to ``grades - 1``.
        cutpoints: The ``grades - 1`` rising latent values that separate grades, where
            they are known, as they must be with a ``model`` of your own; ``None``: they
            are learnt.

    Raises:
        ValueError: If a number is out of range, or cutpoints do not rise.
        BotorchTensorDimensionError: If there are more or fewer cutpoints.

    Source:
        Chu and Ghahramani (2005), Gaussian processes for ordinal regression, Eqs. (2)
        to (5), with the noise as unit of the latent function. Deviation: expectation
        propagation with positive distances of log-normal priors instead of their
        gradient steps without priors.
    """

    grades: int
    at_least: int
    cutpoints: Sequence[float] | None = None

    quantity: ClassVar[str] = "probability"
    by_means: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole_number(self.grades, "grades", 2)
        whole_number(self.at_least, "at_least", 1)
        if self.at_least >= self.grades:
            wanted = f"to be one of the grades 1 to {self.grades - 1}"
            came = f"got {self.at_least}"
            remedy = "Grades are counted from 0, and each result is at least 0."
            raise ValueError(complaint("at_least", wanted, came, remedy))
        if self.cutpoints is None:
            return
        per = "boundary of two grades"
        cuts = real_vector(self.cutpoints, "cutpoints", self.grades - 1, per)
        if bool((cuts.diff() < LEAST_GAP).any()):
            wanted = f"to rise by at least {written(LEAST_GAP)} from each to the next"
            came = f"got {self.cutpoints!r}"
            raise ValueError(complaint("cutpoints", wanted, came))
        object.__setattr__(self, "cutpoints", tuple(cuts.tolist()))  # has a hash

    @property
    def unknowns(self) -> tuple[float, ...]:
        r"""The distances of neighbouring cutpoints, if they are to be learnt."""
        n = 0 if self.cutpoints is not None else self.grades - 2
        return (ALL_GAPS / self.grades,) * n

    def with_parameters(self, values: Sequence[float]) -> Ordinal:
        r"""The outcome with cutpoints at these distances, that of ``at_least`` at 0."""
        if self.cutpoints is not None:
            return self
        cuts = np.cumsum([0.0, *values])
        return replace(self, cutpoints=(cuts - cuts[self.at_least - 1]).tolist())

    def by_parameters(
        self,
        results: Results,
        mean: Tensor,
        variance: Tensor,
        near: tuple[Tensor, Tensor],
    ) -> Tensor:
        r"""The derivatives of the log probability of all grades by the distances.

        Those given ``f``, expected given the results of the point. The arguments are
        those of ``derivatives``.
        """
        f, share, _ = self._given(results, mean, variance, near)
        y, place = results.y, results.place
        _, *ends = self._ends(y, f[:, place], torch.zeros_like(y))
        weight, k = results.trials * share[:, place], y.round().long()
        low, high = ((weight * end[1]).sum(dim=0) for end in ends)
        each = mean.new_zeros(self.grades + 1)
        each = each.index_add(0, k, -low).index_add(0, k + 1, high)[1:-1]
        # A distance moves the cutpoints beyond it, as seen from that of `at_least`.
        beyond = each.flip(0).cumsum(0).flip(0)[1:]
        is_before = torch.arange(self.grades - 2, device=y.device) < self.at_least - 1
        return torch.where(is_before, beyond - each.sum(), beyond)

    def of_metric(self, metric: str) -> str:
        r"""The meaning of levels of a metric, in words."""
        return f"{self.quantity} of {metric} >= {self.at_least}"

    def as_quantity(self, y: Tensor) -> Tensor:
        r"""The results as 1 where they are ``at_least``, and 0."""
        return (y > self.at_least - 0.5).to(y)

    def check(self, y: Tensor, trials: Tensor) -> None:
        r"""Complain about results that are no grades, and about means of grades.

        Raises:
            ValueError: If there is such a result.
        """
        given = f"with `outcome=Ordinal({self.grades}, ...)`"
        wrong = ~((y >= 0) & (y <= self.grades - 1) & (y == y.round()))
        if bool((trials > 1).any()):
            wanted = f"to be left out {given}"
            remedy = "Tell each grade by itself; ask Ax for trials of one arm."
            raise ValueError(complaint("counts", wanted, "they were given", remedy))
        if bool(wrong.any()):
            wanted = f"to be a grade, 0 to {self.grades - 1}, {given}"
            came = f"got {written(y[int(wrong.nonzero()[0])])}"
            remedy = "Count grades from 0; leave `outcome` out for measured numbers."
            raise ValueError(complaint("y", wanted, came, remedy))

    def check_level(self, level: Tensor) -> None:
        r"""Complain about levels that are no probabilities, such as grades.

        Raises:
            ValueError: If there is one.
        """
        wrong = ~((level > 0) & (level < 1))
        if not bool(wrong.any()):
            return
        wanted = "to be a probability between 0 and 1 with `outcome=Ordinal(...)`"
        came = f"got {written(level[wrong][0])}"
        remedy = (
            f"Above 0.5 are the rows where a grade of {self.at_least} or more is "
            "likelier than not; `at_least` says which grade."
        )
        raise ValueError(complaint("threshold", wanted, came, remedy))

    def log_probability(self, f: Tensor, y: Tensor, trials: Tensor) -> Tensor:
        r"""The log probabilities of grades."""
        k, edges = y.round().long(), self._edges(f)
        return trials * _log_between(edges[k] - f, edges[k + 1] - f)

    def grade(self, f: Tensor) -> Tensor:
        r"""The grades of latent values to which standard normal noise was added."""
        return torch.bucketize(f, self._edges(f)[1:-1]).to(f)

    def value(self, f: Tensor) -> Tensor:
        r"""The probability of a grade of ``at_least`` or more at latent values."""
        return _PROBIT.value(f - self._cut)

    def latent(self, value: Tensor) -> Tensor:
        r"""The latent values with these probabilities."""
        return _PROBIT.latent(value) + self._cut

    def moments(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean and standard deviation of the probability, ``f`` being normal."""
        return _PROBIT.moments(mean - self._cut, variance)

    def similar(self, y: Tensor, trials: Tensor) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements of ``f`` that tell about as much as the grades.

        The middle of a grade, its width adding to the noise; for the first and the last
        grade, which have one cutpoint, a value one deviation beyond that.
        """
        k, edges = y.round().long(), self._edges(y)
        low, high = edges[k], edges[k + 1]
        low = torch.where(low.isinf(), high - 2, low)
        high = torch.where(high.isinf(), low + 2, high)
        return (low + high) / 2, 1 + (high - low).square() / 12

    def of_one(
        self, y: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""The ``derivatives`` of one grade at each point.

        ``P(k) = Phi(z_high) - Phi(z_low)``, where ``z`` are the cutpoints around the
        grade less ``m``, over ``sqrt(1 + s^2)``.
        """
        log, low, high = self._ends(y, mean, variance)
        slope = low[1] - high[1]
        curve = low[0] * low[1] - high[0] * high[1]
        return log, slope, curve / (1 + variance).sqrt() - slope.square()

    def quantiles(
        self, y: Tensor, trials: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""The probabilities of lower grades, and of grades that are not higher."""
        k, edges, root = y.round().long(), self._edges(mean), (1 + variance).sqrt()
        low, high = ((edges[k + i] - mean) / root for i in (0, 1))
        return torch.special.ndtr(low), torch.special.ndtr(high)

    def pseudo_noise(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""The noise variance of a Gaussian measurement as informative as one grade.

        As for ``Binary``, with ``w`` the sum over grades of ``(d P(k) / d m)^2 /
        P(k)``: a grade takes off ``c^2 w``, the variance of the mean after it.
        """
        root, least = (1 + variance).sqrt(), torch.finfo(mean.dtype).eps
        information = share = density = torch.zeros_like(mean)
        for cut in (*self._known, math.inf):
            z = (cut - mean) / root
            up_to = torch.special.ndtr(z)
            at = (-0.5 * (z.square() + _LOG_2PI)).exp() / root
            # Grades that are rarer than rounding tells add next to nothing.
            told = (density - at).square() / (up_to - share).clamp_min(least)
            information, share, density = information + told, up_to, at
        return _noise_of(information, variance)

    def ahead(self, mean: Tensor, variance: Tensor) -> answers.AnyResultAhead:
        r"""One grade at each of ``C`` points, before it is known."""
        f = answers.latent_values(mean, variance)
        each = torch.arange(self.grades).to(f)
        ones = torch.ones_like(each)
        log = self.log_probability(f.unsqueeze(-1), each, ones)  # C x nodes x K
        return answers.AnyResultAhead(mean, variance, log.exp().mT)

    @property
    def _known(self) -> tuple[float, ...]:
        r"""The cutpoints, before a fit at likely distances."""
        found = self.with_parameters(self.unknowns).cutpoints
        assert found is not None
        return tuple(found)

    @property
    def _cut(self) -> float:
        r"""The cutpoint of ``at_least``; 0 where cutpoints are learnt."""
        return self._known[self.at_least - 1]

    def _edges(self, like: Tensor) -> Tensor:
        r"""The cutpoints, with infinite ones around them: both ends of each grade."""
        edges = -math.inf, *self._known, math.inf
        return torch.tensor(edges, dtype=torch.float64).to(like)

    def _ends(
        self, y: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        r"""The log probabilities of grades, and both ends of each grade.

        Of each end the deviation, 0 where it is infinite, and the derivative of the log
        probability by the cutpoint, its sign at the higher end.
        """
        k, edges, root = y.round().long(), self._edges(mean), (1 + variance).sqrt()
        z = [(edges[k + i] - mean) / root for i in (0, 1)]
        log = _log_between(z[0], z[1])
        ends = []
        for one in z:
            density = (-0.5 * (one.square() + _LOG_2PI) - log).exp() / root
            ends.append((one.masked_fill(one.isinf(), 0.0), density))
        return log, ends[0], ends[1]


_PROBIT = Binary()
"""The probability of reaching a grade, as that of a yes."""


def _log_between(low: Tensor, high: Tensor) -> Tensor:
    r"""The logarithms of ``Phi(high) - Phi(low)``, exact in both tails."""
    # In the upper tail both are next to 1, and the opposite events tell them apart.
    flips = low > 0
    low, high = torch.where(flips, -high, low), torch.where(flips, -low, high)
    above, below = torch.special.log_ndtr(high), torch.special.log_ndtr(low)
    return above + (-torch.expm1(below - above)).log()
