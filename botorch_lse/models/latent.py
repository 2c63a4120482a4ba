r"""Latent processes of other outcomes: hyper-parameters fitted to results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # which loads its packages when they are first used
import torch
from botorch.models.transforms import Normalize
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_lse.models.expectation import Sites, by_point, sites_of
from botorch_lse.models.fitted import (
    MOST_ADDITIVE,
    additive_kernel,
    columns_of_numbers,
    default_kernel,
    mixed_kernel,
    rough_kernel,
    scaled,
    with_lengthscale_prior,
    word_codes,
    word_kernel,
)
from botorch_lse.models.gaussian_process import GPPrior, held
from botorch_lse.models.marginal import Term, term_of
from botorch_lse.models.memory import remembered_point
from botorch_lse.models.outcomes import Binary, Outcome, Results
from botorch_lse.models.rising import RisingMean, Slope


class Priors(NamedTuple):
    r"""Prior medians and spreads of lengthscales and scales.

    Args:
        lengthscale: The median of a lengthscale of one input, as a share of the unit
            cube's side. With ``k`` inputs it is ``sqrt(k)`` times as long.
        spread: The standard deviation of its logarithm.
        scale_spread: That of the logarithm of a term's scale.
        of_logs: Whether a fit looks for the largest density of logarithms, which is
            at the median; that of the parameters is at smaller ones, the more so the
            wider the prior.
        unit: The latent value that counts as 1; the noise of a yes or no is 1.
        rise: What the mean rises along the inputs with which the function rises.
        factor: The median of the factor of all terms of such a function.
        factor_spread: The standard deviation of its logarithm.
        grows: Whether the mean's rise is times the factor's root.
    """

    lengthscale: float
    spread: float
    scale_spread: float
    of_logs: bool
    unit: float
    rise: float = 2.0
    factor: float = 2.0
    factor_spread: float = 1.2
    grows: bool = False


PLAIN = Priors(0.5, 0.7, 1.0, False, 2.0)
"""The priors for results that speak for themselves.
The medians of models of numbers, 4 and longer, suit values, which soon correct them. A
yes or no says too little for that (docs/what_was_tried.md). With a unit of 2, results
are close to certain in parts of the pool, as they often are. With 1 probabilities were
drawn to the middle: on nine functions intervals of 95 % held 69 % of the truth after 60
answers and 85 % after 200, with 2 it is 85 and 91 %, and as many rows are wrong."""
CRISP = Priors(1.0, 0.7, 1.0, False, 8.0)
"""The priors for classes, of which a measurement mostly finds the right one.
With ``PLAIN`` 1.4 times as many rows of maps had a wrong class after 100 of 1,000."""
NARROW = Priors(0.38, 0.5, 0.7, True, 2.0, 2.83, 1.0, 2.0, True)
"""The priors where the function rises along some inputs.
An intensity of a wide range, such as decibels, has slopes ten to forty times the usual.
With the rise and the factor of ``GUESSED`` probabilities were off by 1.7 to 1.9 times
as much after 50 answers, and intervals of 95 % held 77 to 80 % of them in place of 87
to 99 %."""
GUESSED = Priors(0.36, 0.5, 0.7, True, 3.0)
"""The priors where answers may be guesses or lapses.
They hardly correct a scale that is too small: with ``NARROW`` intervals of 95 % held
82 % of functions drawn from a process. Nor do they show how steep a function is, so
that the wide prior of ``NARROW`` made rising ones too sure: on three published problems
intervals held 71 to 92 % in place of 85 to 98 %."""
MEAN_SPREAD = 1.0
"""The prior standard deviation of the latent mean, in units; its prior mean is 0."""
FARTHEST_MEAN = 4.0
"""The bound of the latent mean in units, where results are certain in any case."""
SHORTEST, LARGEST = 1e-2, 1e3
"""The bounds of lengthscales and scales; those of priors matter first."""
WIDEST = 16.0
"""The largest parameter of an outcome, such as the distance of two cutpoints.
A grade so wide is certain around its middle. A first step of the search that went
farther ended where the posterior did not settle."""
REST, HEIGHT, ALONE, TURN, SLOPE = 0.15, 0.1, 0.2, 0.25, 1.0
"""Prior medians of scales where the function rises along some inputs.
Of a function of all inputs; of what other inputs do to its height, together and each
alone, and to its slope; and of the slope that it has everywhere. Slopes along ``k``
inputs have ``1 / sqrt(k)`` of their scales, as the mean has ``1 / k`` of its rise. A
factor of all says how steep it is: where a function rises much, all of its terms are
large; see ``Priors``."""
WIDE_SPREAD = 1.2
"""The spread of scales of what is no line; see ``Priors``.
With that of lines, 0.7, functions whose thresholds vary more than the input's range
kept scales that were too small."""
SPREAD = 1.0
"""The prior standard deviation of the logarithm of outcomes' parameters."""
FIT_STEPS = 100
"""The largest number of steps of a fit; some ten are usual."""
ENOUGH = 1e-5
"""The gain in the loss at which a fit ends, as a share of what it gained before.
Or this number itself, while less than 1 was gained. Going on to 2e-9, with sites to
1e-6 in place of ``SETTLED``, changes posterior means of 250 answers by at most .01 of
their deviations and takes three times as long."""
SETTLED = 1e-3
"""The change of a site that ends the steps for one evaluation of the loss.
The loss is stationary in the sites, so that its error is of second order, and that of
its gradient of first."""


def fit_latent_gp(
    X: Tensor,
    y: Tensor,
    trials: Tensor,
    bounds: Tensor,
    outcome: Outcome,
    words: Mapping[int, int] | None = None,
    is_sum: bool = True,
    rising: Sequence[int] = (),
    of_class: bool = False,
    is_fitted: bool = True,
    falling: Sequence[int] = (),
) -> GPPrior:
    r"""The latent process whose results are likeliest, priors considered.

    Kernels are those of the default models of numbers and words, with larger scales and
    shorter lengthscales beforehand; see ``Priors``.

    Args:
        X: ``n x d`` measured points.
        y: ``n`` results; of several trials their mean.
        trials: ``n`` numbers of trials.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
        outcome: What results say of the latent function.
        words: The first column of each word, and its number of levels.
        is_sum: Whether the function is a sum of functions of single numbers, and of
            all; else a function of all.
        rising: Columns of numbers along which the function rises, by which the kernel
            has other terms: see ``rising_kernel``.
        of_class: Whether results say if one of several classes was found.
        is_fitted: Whether to fit it; else it has the medians of its priors.
        falling: Columns along which the function falls.
    """
    d = X.shape[-1]
    inputs = word_codes(bounds, words) if words else Normalize(d, bounds=bounds)
    inputs.eval()
    # A word, one column for each level before, is one column for the kernel.
    coded = [(first, n - 1) for first, n in (words or {}).items()]
    rising, falling = (
        [c - sum(n for first, n in coded if first < c) for c in each]
        for each in (rising, falling)
    )
    columns = [*rising, *falling]
    by_chance = isinstance(outcome, Binary) and outcome.guess + outcome.lapse > 0
    priors = CRISP if of_class else NARROW if columns else PLAIN
    if by_chance:
        priors = GUESSED
    if columns:
        kernel = rising_kernel(d, words or {}, columns, is_sum, priors)
    else:
        kernel = latent_kernel(d, words, is_sum, priors)
    points, results = by_point(X, y, trials)
    given = outcome.joined(results), outcome, kernel, rising, priors, falling
    fit = _Fit(inputs(X[points]), *given)
    start, own = fit.start, fit.results

    def search() -> list[float]:
        most = {"maxiter": FIT_STEPS, "ftol": ENOUGH}
        of_fit = {"jac": True, "bounds": fit.bounds, "options": most}
        x: list[float] = scipy.optimize.minimize(fit, start, **of_fit).x.tolist()
        return x

    asked, told = (
        f"{outcome}|{rising}|{falling}|{priors}",
        (fit.F, own.y, own.trials, own.place),
    )
    found = start
    if is_fitted:
        best = remembered_point(asked, kernel, told, len(start), search)
        found = np.array(best)
    fit.set(found)
    unit = torch.tensor(priors.unit, dtype=torch.float64)
    parts = held(fit.mean), held(kernel), unit, 0 * unit
    return GPPrior(*parts, transform_inputs=held(inputs), outcome=fit.outcome)


def latent_kernel(
    d: int,
    words: Mapping[int, int] | None = None,
    is_sum: bool = True,
    priors: Priors = PLAIN,
) -> Kernel:
    r"""The default kernel of a latent process, whose scale is to be fitted.

    Args:
        d: The number of columns of the pool.
        words: The first column of each word, and its number of levels.
        is_sum: Whether numbers have functions of their own; see ``fit_latent_gp``.
        priors: Of lengthscales and scales.
    """
    if words:
        kernel: Kernel = mixed_kernel(d, words)
    elif is_sum and 1 < d <= MOST_ADDITIVE:
        kernel = additive_kernel(d)
    else:
        kernel = scaled(default_kernel(d), 1.0)
    return _expecting(kernel, priors)


def rising_kernel(
    d: int,
    words: Mapping[int, int],
    rising: Sequence[int],
    is_sum: bool = True,
    priors: Priors = NARROW,
) -> Kernel:
    r"""The kernel of lines whose heights and slopes depend on other inputs.

    It is a sum: little of a function of all inputs, a function of those along which
    nothing rises, functions of single ones of these, and for each of the others a line,
    whose slope is a number and a function of the rest. With a mean that rises, this is
    what psychometric functions look like.

    Args:
        d: Columns before ``word_codes``.
        words: The first column of each word, and its number of levels.
        rising: The columns after ``word_codes`` along which it rises, or falls.
        is_sum: Whether it is this sum; else a line, and as much of a function of all.
        priors: Of lengthscales, and how far scales spread around their medians.
    """
    every = range(d - sum(levels - 1 for levels in words.values()))
    numbers = columns_of_numbers(d, words)

    def without(columns: Sequence[int]) -> list[Kernel]:
        left = [c for c in every if c not in columns]
        own = [c for c in left if c in numbers]
        codes = [c for c in left if c not in numbers]
        factors: list[Kernel] = [rough_kernel(own)] if own else []
        return [*factors, word_kernel(codes)] if codes else factors

    def term(factors: Sequence[Kernel], scale: float) -> list[Kernel]:
        if len(factors) > 1:
            return [scaled(ProductKernel(*factors), scale)]
        return [scaled(factor, scale) for factor in factors]

    terms = term(without(()), REST if is_sum else SLOPE)
    if is_sum:
        terms += term(without(rising), HEIGHT)
        others = [c for c in numbers if c not in rising]
        for c in others if len(others) > 1 else ():
            terms += term([rough_kernel([c])], ALONE / len(others))
    heights, share = list(terms) if is_sum else [], len(rising) ** -0.5
    for c in rising:
        terms += term([Slope(c)], SLOPE * share)
        if is_sum and (rest := without([c])):
            terms += term([*rest, Slope(c)], TURN * share)
    kernel = _expecting(scaled(AdditiveKernel(*terms), priors.factor), priors)
    _spread(kernel, priors.factor_spread)
    for part in heights:
        _spread(part, WIDE_SPREAD)
    return kernel


def _expecting(kernel: Kernel, priors: Priors) -> Kernel:
    r"""The kernel, given priors that suit few and coarse results."""
    for part in kernel.modules():
        if isinstance(part, (RBFKernel, MaternKernel)):
            median = torch.tensor(priors.lengthscale, dtype=torch.float64)
            median = median * part.lengthscale.numel() ** 0.5
            spread = torch.tensor(priors.spread, dtype=torch.float64)
            with_lengthscale_prior(part, LogNormalPrior(median.log(), spread))
            part.lengthscale = median
        elif isinstance(part, ScaleKernel):
            _spread(part, priors.scale_spread)
    return kernel


def _spread(kernel: Kernel, spread: float) -> None:
    r"""Give the logarithm of a kernel's scale another spread beforehand."""
    own: Any = kernel.outputscale_prior
    prior = LogNormalPrior(own.loc, torch.full_like(own.scale, spread))
    kernel.register_prior("outputscale_prior", prior, "outputscale")


class _Fit:
    r"""Minus the log density of results and parameters, over logarithms of the latter.

    Args:
        F: ``p x d'`` points, as the kernel takes them.
        results: Their results.
        outcome: What they say of the latent function.
        kernel: A kernel with priors, whose parameters are set.
        rising: Columns of ``F`` along which the function rises.
        priors: Those of the kernel, and the unit. The density of what is left is always
            that of logarithms.
        falling: Columns of ``F`` along which the function falls.
    """

    def __init__(
        self,
        F: Tensor,
        results: Results,
        outcome: Outcome,
        kernel: Kernel,
        rising: Sequence[int] = (),
        priors: Priors = PLAIN,
        falling: Sequence[int] = (),
    ) -> None:
        self.of_parameters, self.unit = float(not priors.of_logs), priors.unit
        term = term_of(kernel, F)
        assert term is not None  # it is made of parts that have a form
        self.term: Term = term
        self.kernel, self.outcome, self.results = kernel, outcome, results
        self.F, self.mean = F, RisingMean(rising, falling, priors.rise)
        # Of the outcome's parameters, log-normal beforehand.
        self.medians = torch.tensor(outcome.unknowns, dtype=torch.float64)
        self.asked, self.others = outcome, self.medians
        self.parameters = list(term.parameters())
        # Where the factor is with whose root the mean rises, if it does.
        self.factor: int | None = None
        if priors.grows and (rising or falling):
            whole = [p is kernel.raw_outputscale for p in self.parameters].index(True)
            self.factor = sum(p.numel() for p in self.parameters[:whole])
        # All are log-normal, so that their density has a form.
        listed: Any = kernel.named_priors()
        known = {id(value_of(of)): prior for _, of, prior, value_of, _ in listed}
        of_each = [(known[id(p)], p.numel()) for p in self.parameters]
        self.middles, self.spreads = (
            torch.cat([getattr(prior, name).expand(n) for prior, n in of_each])
            for name in ("loc", "scale")
        )
        # Each evaluation begins at the sites of the one before, which are near.
        self.sites: Sites | None = None
        self.settled = SETTLED
        self.first: float | None = None

    @property
    def start(self) -> np.ndarray:
        r"""The logarithms of all that is positive, then the constant, as they are."""
        parts = (*self.parameters, self.others)
        logs = [part.detach().log().reshape(-1) for part in parts]
        return torch.cat((*logs, self.mean.constant.view(1))).cpu().numpy()

    @property
    def bounds(self) -> list[tuple[float, float]]:
        r"""The bounds of the parameters."""
        n, low = sum(p.numel() for p in self.parameters), math.log(SHORTEST)
        of_others = [(low, math.log(WIDEST))] * len(self.asked.unknowns)
        of_mean = -FARTHEST_MEAN, FARTHEST_MEAN
        return [(low, math.log(LARGEST))] * n + [*of_others, of_mean]

    def set(self, x: np.ndarray) -> None:
        r"""Give kernel, mean and outcome the parameters ``x``."""
        sizes = [part.numel() for part in (*self.parameters, self.others)]
        *parts, self.others = torch.from_numpy(x[:-1]).to(self.F).exp().split(sizes)
        with torch.no_grad():
            for target, part in zip(self.parameters, parts, strict=True):
                target.copy_(part.view(target.shape))
            self.mean.constant.fill_(float(x[-1]))
            if self.factor is not None:
                self.mean.steepness.fill_(math.exp(0.5 * x[self.factor]))
        self.outcome = self.asked.with_parameters(self.others.tolist())

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        r"""The loss at ``x`` less that of the first call, and its gradient.

        Its own size says nothing: of counts a constant is left out.
        """
        self.set(x)
        mean, results, unit = float(x[-1]), self.results, self.unit
        with torch.no_grad():
            K, at = unit**2 * self.term.value(), unit * self.mean(self.F)
            # Precisions may be negative, or the sites would not be stationary.
            given = self.outcome, results, self.sites, None, self.settled
            self.sites = sites = sites_of(K, at, *given)
            slopes = self.term.slopes(unit**2 * sites.slopes)
            values = torch.cat([p.detach().view(-1) for p in self.parameters])
            if self.factor is not None:  # the mean's rise is as its root
                risen = (sites.residual * (at - unit * mean)).sum()
                slopes[self.factor] += 0.5 * risen / values[self.factor]
            off = (values.log() - self.middles) / self.spreads
            by_log = slopes * values - self.of_parameters - off / self.spreads
            total = sites.log_evidence - 0.5 * (mean / MEAN_SPREAD) ** 2
            of_mean = unit * float(sites.residual.sum()) - mean / MEAN_SPREAD**2
            far = (self.others / self.medians).log() / SPREAD
            total -= 0.5 * float(far.square().sum() + off.square().sum())
            total -= self.of_parameters * float(values.log().sum())
            near = *sites.without, sites.near
            by_outcome = self.outcome.by_parameters(results, *near)
            by_outcome = by_outcome[: len(self.asked.unknowns)]  # others are given
            of_others = by_outcome * self.others - far / SPREAD
        gradient = torch.cat((by_log, of_others, torch.tensor([of_mean]).to(self.F)))
        if self.first is None:
            self.first = -total
        return -total - self.first, -gradient.cpu().numpy()
