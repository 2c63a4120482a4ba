r"""Excursion volume: the share of a pool above a level, and its possible error.

The content is ``C = sum_i m_i a_i`` over the rows of a pool: ``a_i`` is 1 where the
function is above the level and 0 elsewhere, ``m_i`` the mass of a row (``Pool.mass``).
It is a probability of failure, an area or a share of a library. What is known of it
comes from four sources that must not be mixed up:

- *Decided rows.* If all decided rows are right, ``C`` is at least the mass decided
  above, and at most that plus the undecided mass. It holds as their guarantee does.
- *The posterior.* Quantiles of ``C`` under the model: right if the model is. A model
  that is learnt is not, as its own estimates show, which move from round to round.
- *Rows drawn at random*, whose sides were measured, whatever the model: see
  ``difference_limits``.
- *The pool as a sample.* If the rows were drawn from a distribution, ``C`` differs from
  the probability that is meant, were every side known: see ``sampling_limits``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import scipy  # which loads its packages when they are first used
import torch
from torch import Tensor

from botorch_lse._numerals import written

CONFIDENCE = 0.95
"""The confidence of intervals for which no other one is asked."""
STAKES = ((0.4, 0.98), (0.2, 0.8), (0.2, 0.5), (0.1, 0.2), (0.1, 0.05))
"""The stakes: parts of the money, and the share of the largest loss that each bets.
Most of it bets nearly everything: few draws then tell much if the model is right."""
STEPS = 60
"""The number of halvings in the search for an interval's end: exact to rounding."""


@dataclass(frozen=True)
class Content:
    r"""The share above a level, with the intervals that are known of it.

    Args:
        estimate: The mass of all rows that are said to be above, undecided rows on the
            likelier side.
        expected: The expectation of the content under the model's probabilities, which
            also counts what is unlikely.
        lower: The mass of the rows decided above.
        upper: That, plus the mass of the undecided rows.
        guarantee: What holds of decided rows, a sentence; ``lower`` and ``upper`` rest
            on it.
        n_rows: Rows of the pool.
        effective_size: Rows of equal weight that would say as much.
        is_sample: Whether the pool was drawn from a distribution.
        sampling_error: The standard error of ``estimate`` as a share of a sample; 0
            where the rows are all there is.
        population: Limits of the probability that is meant, ``lower`` and ``upper``
            widened by the pool's own sampling error; equal to them where the rows are
            all there is. It fails with probability at most ``1 - confidence`` more.
        sampled: Limits of the probability that is meant, if every row's side is as
            ``estimate`` has it: by the pool's own sampling error alone; equal to
            ``estimate`` where the rows are all there is.
        posterior: Quantiles of the content under the model; ``None`` where they were
            not asked for or are not known.
        design: Limits by rows drawn at random, whatever the model; ``None`` without.
        widened: ``posterior``, to both sides farther by how much ``estimate`` has moved
            in the last rounds, with noise in more of them; ``None`` where nothing
            watches it (``content_tol``) or in its first rounds. No theorem stands
            behind it: how often it held is measured (``benchmark reliability``).
        confidence: Of ``posterior``, ``design`` and the sampling error, each by itself.
        meaning: What is counted, in words, such as "above" or "in the region".
        has_model: Whether there is a model, without which ``estimate`` says nothing.
    """

    estimate: float
    expected: float
    lower: float
    upper: float
    guarantee: str = field(repr=False)
    n_rows: int
    effective_size: float
    is_sample: bool
    sampling_error: float
    population: tuple[float, float]
    sampled: tuple[float, float]
    posterior: tuple[float, float] | None = None
    design: tuple[float, float] | None = None
    widened: tuple[float, float] | None = None
    confidence: float = CONFIDENCE
    meaning: str = "above"
    has_model: bool = True

    def __post_init__(self) -> None:
        # Sums of masses exceed 1 by rounding, those of importance weights by chance.
        for name in ("estimate", "expected", "lower", "upper"):
            object.__setattr__(self, name, min(getattr(self, name), 1.0))
        for name in ("population", "sampled", "posterior", "design", "widened"):
            if (ends := getattr(self, name)) is not None:
                object.__setattr__(self, name, (min(ends[0], 1.0), min(ends[1], 1.0)))

    @classmethod
    def of(
        cls,
        mass: Tensor,
        sides: Tensor,
        probability: Tensor,
        guarantee: str,
        *,
        is_sample: bool = False,
        adds_up: bool = True,
        confidence: float = CONFIDENCE,
        meaning: str = "above",
    ) -> Content:
        r"""The content by decided rows.

        Args:
            mass: ``N`` masses.
            sides: ``N`` codes: 1 above, -1 below, 0 undecided.
            probability: ``N`` probabilities of being above.
            guarantee: What holds of the decided rows.
            is_sample: Whether the rows were drawn from a distribution.
            adds_up: Whether masses are shares of their own sum.
            confidence: Of the sampling error.
            meaning: What is counted, in words.
        """
        above = sides == 1
        open_ = sides == 0
        guess = above | (open_ & (probability > 0.5))
        expected = torch.where(open_, probability, above.to(mass))
        lower, upper = float(mass[above].sum()), float(mass[above | open_].sum())
        estimate = float(mass[guess].sum())
        error, population, sampled = 0.0, (lower, upper), (estimate, estimate)
        if is_sample:
            error = sampling_error(mass, guess, adds_up)
            sampled = sampling_limits(mass, guess, adds_up, confidence)
            least, _ = sampling_limits(mass, above, adds_up, confidence)
            _, most = sampling_limits(mass, above | open_, adds_up, confidence)
            population = (least, most)
        return cls(
            estimate,
            float((mass * expected).sum()),
            lower,
            upper,
            guarantee,
            len(mass),
            float(mass.sum().square() / mass.square().sum()),
            is_sample,
            error,
            population,
            sampled,
            confidence=confidence,
            meaning=meaning,
        )

    @property
    def variation(self) -> float:
        r"""The standard error of the sample over the estimate; infinite at 0.

        0 where the rows are all there is.
        """
        if not self.is_sample:
            return 0.0
        return self.sampling_error / self.estimate if self.estimate > 0 else math.inf

    @property
    def combined(self) -> tuple[float, float] | None:
        r"""The limits of the probability that is meant, by the model and by the pool.

        The distances of the ends of ``widened`` from ``estimate`` and those of
        ``sampled``, in quadrature, as of errors that have nothing to do with each
        other. It is what one reports of a failure probability; how often it held is
        measured (``benchmark reliability``). Without ``widened`` it is ``posterior``
        that counts, and ``None`` without both. Where the rows are all there is, it is
        the same as that.
        """
        model = self.posterior if self.widened is None else self.widened
        return (
            None if model is None else in_quadrature(self.estimate, model, self.sampled)
        )

    def __str__(self) -> str:
        share = f"of the {self.mass_in_words} is {self.meaning}"
        said = f"{self.estimate:.4g} {share}"
        if not self.has_model:
            said = f"No model says yet how much {share}"
        decided = f"between {self.lower:.4g} and {self.upper:.4g}"
        words = [f"{said}; by decided rows {decided}"]
        percent = f"{written(100 * self.confidence)} %"
        for limits, source in (
            (self.posterior, f"by the model, if it is right, with {percent}"),
            (self.widened, "with what the estimate has moved by lately"),
            (
                self.design,
                f"by rows drawn at random, whatever the model, with {percent}",
            ),
        ):
            if limits is not None:
                words.append(f"{source} between {limits[0]:.4g} and {limits[1]:.4g}")
        if self.is_sample:
            words.append(
                f"with the error of {self.n_rows:,} rows as a sample (effective size "
                f"{self.effective_size:,.0f}, coefficient of variation "
                f"{self.variation:.2g}) by decided rows between "
                f"{self.population[0]:.4g} and {self.population[1]:.4g}"
            )
            if self.combined is not None:
                words.append(
                    "with the errors of model and sample together between "
                    f"{self.combined[0]:.4g} and {self.combined[1]:.4g}"
                )
        return "; ".join(words) + "."

    @property
    def mass_in_words(self) -> str:
        r"""The total of which the content is a share, in words."""
        return "distribution" if self.is_sample else "pool"


# --- the pool as a sample -------------------------------------------------------------


def sampling_error(mass: Tensor, member: Tensor, adds_up: bool) -> float:
    r"""The standard error of the mass of some rows, if the rows are a random sample.

    Args:
        mass: ``N`` masses.
        member: ``N`` bools: the rows that are counted.
        adds_up: Whether masses are weights over their own sum, as for self-normalised
            weights; else over a number that does not depend on the draws.
    """
    N, P = len(mass), float(mass[member].sum())
    each = mass * member.to(mass)
    # The sum of the weights varies too where they are divided by it.
    residual = each - P * mass if adds_up else each - P / N
    return float(residual.square().sum().sqrt())


def sampling_limits(
    mass: Tensor, member: Tensor, adds_up: bool, confidence: float
) -> tuple[float, float]:
    r"""Limits of a probability, from the mass of the rows of a sample.

    The limits of Clopper and Pearson, exact for independent rows of equal weight. With
    other weights the size of the sample is the one of equal weights with the same
    standard error, which makes them approximate. Rows of a Sobol sequence count as
    independent, which as a rule makes the interval too wide.

    Args:
        mass: ``N`` masses.
        member: ``N`` bools: the rows that are counted.
        adds_up: See ``sampling_error``.
        confidence: The confidence of both limits together.

    Source:
        Korn and Graubard (1998), Surv. Methodol. 24, for the effective size.
    """
    P, error = float(mass[member].sum()), sampling_error(mass, member, adds_up)
    size = float(mass.sum().square() / mass.square().sum())
    if 0 < P < 1 and error > 0:
        size = P * (1 - P) / error**2
    low, high = proportion_limits(min(P, 1.0), size, confidence)
    return min(low, P), max(high, P)


def proportion_limits(P: float, size: float, confidence: float) -> tuple[float, float]:
    r"""Limits of a probability, from the share of a sample (Clopper and Pearson).

    Args:
        P: The share, in [0, 1].
        size: How large the sample is.
        confidence: The confidence of both limits together.
    """
    hits, tail = P * size, (1 - confidence) / 2
    low = scipy.stats.beta.ppf(tail, hits, size - hits + 1) if hits > 0 else 0.0
    high = scipy.stats.beta.isf(tail, hits + 1, size - hits) if hits < size else 1.0
    return float(low), float(high)


def in_quadrature(estimate: float, *limits: tuple[float, float]) -> tuple[float, float]:
    r"""Limits for several independent errors together.

    The distances of all lower limits from the estimate are joined to the root of the
    sum of their squares, and so are those of all upper ones. That is right where errors
    are normal, and narrower than their sum. A limit on the wrong side counts as none.

    Args:
        estimate: What they are limits of, in [0, 1].
        limits: The lower and the upper limit for each error.
    """
    down = math.hypot(*(max(0.0, estimate - low) for low, _ in limits))
    up = math.hypot(*(max(0.0, high - estimate) for _, high in limits))
    return max(0.0, estimate - down), min(max(1.0, estimate), estimate + up)


# --- rows drawn at random -------------------------------------------------------------


def difference_limits(
    differences: Tensor, n_rows: int, largest: float, delta: float
) -> tuple[float, float]:
    r"""Limits of the sum of ``n_rows`` numbers, of which some were drawn at random.

    Each number is what a row truly contributes to the content minus what a model said
    of it: 0 where the model is right, else plus or minus the row's mass. The better the
    model, the narrower the limits, but they hold whatever it is: with probability
    ``1 - delta`` over the draws, after every draw at once, so that one may look after
    each and stop when one likes.

    Why: if the sum is ``S``, the expectation of the next draw is ``mu_t``, what is left
    of ``S`` over the rows that are left. One who bets a share ``c`` of his money that
    draws are smaller multiplies it by ``1 - c + c (b - x) / (b - mu_t)``, a fair game.
    That it grows to ``2 / delta`` at any time has probability at most ``delta / 2``
    (Ville's inequality), so no such ``S`` is believed. The game grows with ``S``, so
    that the largest ``S`` that is still believed is found by halving; from below alike.

    Args:
        differences: The numbers of the ``n`` rows drawn, in the order of the draws;
            uniformly at random and no row twice.
        n_rows: How many rows there are to draw from.
        largest: ``b``: no number is larger in absolute value.
        delta: The probability of failure.

    Source:
        Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86, sections 4 and 5, for the
        betting; the fixed stakes are ours. The difference estimator is that of survey
        sampling, and of prediction-powered inference (Angelopoulos et al. 2023).
    """
    x = differences.double()
    if largest <= 0:
        return 0.0, 0.0
    if len(x) >= n_rows:
        return float(x.sum()), float(x.sum())
    high = _largest_sum(x, n_rows, largest, delta / 2)
    return -_largest_sum(-x, n_rows, largest, delta / 2), high


def _largest_sum(x: Tensor, n_rows: int, largest: float, delta: float) -> float:
    r"""The largest sum that is not refuted by bets on smaller draws."""
    drawn, rest = float(x.sum()), n_rows - len(x)
    low, high = drawn - rest * largest, drawn + rest * largest
    if not _is_refuted(high, x, n_rows, largest, delta):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _is_refuted(middle, x, n_rows, largest, delta):
            high = middle
        else:
            low = middle
    return high


def _is_refuted(
    total: float, x: Tensor, n_rows: int, largest: float, delta: float
) -> bool:
    r"""Whether bets against a sum have grown too much to believe it, at any time."""
    before = x.cumsum(dim=0) - x
    mean = (total - before) / (n_rows - torch.arange(len(x), dtype=x.dtype))
    impossible = mean >= largest * (1 + 1e-12)
    if bool(impossible.any()):
        return True
    stakes, shares = torch.tensor(STAKES, dtype=x.dtype).T
    gap = (largest - mean).clamp_min(1e-300 * largest)
    # A mean below every possible number makes no bet against larger ones.
    factors = 1 + shares.unsqueeze(-1) * ((mean - x) / gap)
    money = factors.clamp_min(1e-300).log().cumsum(dim=-1) + stakes.log().unsqueeze(-1)
    return float(money.logsumexp(dim=0).max()) >= -math.log(delta) if len(x) else False
