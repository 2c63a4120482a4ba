r"""One measurement at a time in large pools: few rows are kept up to date.

A measurement changes the mean and the variance of every row, at the price of its
covariances with all of them, and of those of all earlier measurements where the past
does not fit into memory. Yet LSE looks at one row: the most ambiguous one. Intersected
intervals only shrink, so that what a row's ambiguity was is a bound of what it is, and
a row that was decided stays decided, however long it is not looked at. Only rows whose
bound is the largest are brought up to date (as ``models/shortlist.py`` does inside a
batch); decided rows cost nothing. All rows are brought up to date together, in one pass
for many measurements, when somebody reads the answer or the bounds end.

The bounds end because intervals may contradict each other, after which a row's last
interval alone counts. Let ``C = [l, u]`` be the region of a row when all rows were last
up to date, ``m`` and ``s`` its mean and deviation then, and ``a`` the standardised
residuals of the ``k`` measurements since. With ``g^2`` the variance that they took off
the row, its mean moved by ``sum_i a_i V_i`` with ``sum_i V_i^2 = g^2``, at most by
``|a| g`` (Cauchy and Schwarz). The upper end of an interval ``b`` deviations wide is
then at least ``m - |a| g + b sqrt(s^2 - g^2)``, which falls with ``g``.

Noisy measurements leave a share of every variance. Let ``B`` be the covariance of the
``k`` measured values before them, ``D`` the variances of their noise and ``F F' =
B + D``. A row's covariances with them are ``s B^(1/2) u`` with ``|u| <= 1``, since
covariances are positive semidefinite, so that

    g^2 = s^2 |F^-1 B^(1/2) u|^2 <= s^2 (1 - e^2),  e = 1 / ||D^(-1/2) F||.

With ``c^2 = 1 - e^2``, hence,

- the interval meets ``C`` if ``(|a| c - b e) s <= min(m - l, u - m)``: rows for which
  this fails are brought up to date with every measurement from then on;
- any two intervals since then meet each other if ``|a| c <= b (1 + e)``, as the later
  one is at least ``e`` times as wide; when this fails all rows are brought up to date.

On a line, sets that meet two by two have a point in common. So no interval of the other
rows can contradict their region, and the rows that are chosen, the regions and the
sides are those of a run that brings all rows up to date each time, up to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.confidence.classify import UNDECIDED, explicit_sides
from botorch_lse.confidence.regions import Regions
from botorch_lse.functional.scores import TIE, ambiguity
from botorch_lse.models.gaussian_process import News, PoolPosterior
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies.gaussian import INFORMED_SHARE, GPProcedure
from botorch_lse.strategies.goals import Above
from botorch_lse.strategies.loop import Procedure, Request
from botorch_lse.strategies.rules import SHORTLIST, Ambiguity, Belief

LEAST_ROWS = 50_000
"""Smaller pools are brought up to date with every measurement, which takes no time."""
SHARE = 0.125
"""The share of the rows that may be kept up to date one by one; with more of them, all
are brought up to date."""
CAUTION = 1e-6
"""By which bounds are tightened, so that they hold in spite of rounding."""

SHALLOW = frozenset(
    {
        "planning_belief",
        "round_size",
        "open_again",
        "visiting_order",
        "takes_any_rows",
        "can_estimate",
        "calibration",
        "predict",
    }
)
"""Methods of a procedure that ask no row of the pool for its mean or variance."""

_OF_BELIEFS = {part.name for part in fields(Belief)} | {
    name for name in vars(Belief) if not name.startswith("_")
}


def deferring(inner: Procedure) -> Any:
    r"""The procedure; in large pools it puts off what nobody looks at, if it can.

    Args:
        inner: The procedure, with all that is around it.
    """
    if type(inner) is not GPProcedure or len(inner.pool) < LEAST_ROWS:
        return inner
    goal, model = inner.goal, inner.model
    is_level = type(goal) is Above and goal.stated_level is not None
    is_plain = (
        model.is_fixed
        and len(model.outputs) == 1
        and model.burn_in is None
        and model.together is None
        and model.assays is None
        and inner.items is inner.pool
        and inner.norm_bound is None
    )
    takes_intersections = type(inner.rule) is Ambiguity and inner.rule.intersects
    if is_level and is_plain and takes_intersections and inner.batch_size == 1:
        return Deferring(inner)
    return inner


@dataclass(frozen=True, eq=False)
class Level:
    r"""How one interval after the other decides rows by themselves.

    Args:
        value: The level, units of ``y``.
        epsilon: The accuracy.
        prior_width: The squared width of the prior's interval, if what that alone
            decides stays open; ``None`` where a theorem lets it decide.
    """

    value: float
    epsilon: float
    prior_width: float | None

    @classmethod
    def of(cls, inner: GPProcedure, posterior: PoolPosterior) -> Level:
        r"""The level of a procedure that may be put off."""
        value, width = inner.goal.stated_level, inner.width_of(1, posterior)
        assert value is not None  # `deferring` asks for it
        return cls(value, inner.goal.epsilon, None if inner.is_theorem else width)

    def sure(self, mean: Tensor, variance: Tensor) -> Tensor:
        r"""``r`` bools: rows that the prior's own interval would decide.

        Args:
            mean: ``r`` prior means.
            variance: ``r`` prior variances.
        """
        if self.prior_width is None:
            return torch.zeros_like(mean, dtype=torch.bool)
        half = (self.prior_width * variance).sqrt()
        return (mean - half >= self.value) | (mean + half <= self.value)

    def judged(
        self, side: Tensor, regions: Regions, uninformed: Tensor | None
    ) -> Tensor:
        r"""``r`` codes after one more interval: what is decided stays decided.

        Args:
            side: ``r`` codes before.
            regions: After the interval.
            uninformed: ``r`` bools: rows that the prior alone decides.
        """
        ends = regions.lower, regions.upper
        now = explicit_sides(*ends, self.value, self.epsilon)
        side = torch.where(side == UNDECIDED, now, side)
        return side if uninformed is None else side.masked_fill(uninformed, UNDECIDED)

    def score(self, side: Tensor, regions: Regions) -> Tensor:
        r"""``r`` ambiguities; of rows that are decided minus infinity."""
        found = ambiguity(regions.lower, regions.upper, self.value)
        return found.masked_fill(side != UNDECIDED, -torch.inf)


@dataclass(frozen=True, eq=False)
class Part:
    r"""Some rows of the pool that are up to date.

    Args:
        rows: ``r`` rows.
        posterior: On these rows alone, after all measurements.
        regions: Their regions.
        side: ``r`` codes.
        sure: ``r`` bools: the prior's interval would decide the row.
    """

    rows: Tensor
    posterior: PoolPosterior
    regions: Regions
    side: Tensor
    sure: Tensor

    def after(self, news: News, F: Tensor, width: float, level: Level) -> Part:
        r"""The rows after one more measurement.

        Args:
            news: The measurement.
            F: ``1 x d'``, its features.
            width: The squared width of the interval.
            level: What decides.
        """
        before = self.posterior

        def prior_with(rows: slice) -> Tensor:
            return before.prior.covariance(F, before.F[rows])

        posterior = before.conditioned(news, before.indices[:0], prior_with, F)
        regions = self.regions.intersect(posterior.mean, posterior.sigma, width)
        _, prior = posterior.before_history(slice(None))
        little = posterior.variance > INFORMED_SHARE * prior
        side = level.judged(self.side, regions, self.sure & little)
        return replace(self, posterior=posterior, regions=regions, side=side)


@dataclass(eq=False)
class Deferred:
    r"""What is believed after measurements of which few rows have heard.

    Whatever is not said here is read off ``settled``.

    Args:
        procedure: What believes it.
        base: What was believed when all rows were up to date.
        shell: What is believed now, with the means, variances, regions and sides of
            ``base``: covariances, residuals and counts are those of now.
        betas: The squared width of the interval of each measurement since.
        noise: The noise variance of each of them, units of ``y`` squared.
        parts: The rows that are up to date. Reading may add some: it changes nothing
            but what is known already.
        bound: ``N`` bounds of the ambiguity, of rows up to date the ambiguity itself;
            minus infinity where a row is decided.
        is_listed: ``N`` bools: the rows that are up to date.
        slack: ``N`` numbers of deviations: how far inside its region a row's mean was
            in ``base``. How much of it may be used up says when it must be listed.
    """

    procedure: GPProcedure
    base: Belief
    shell: Belief
    betas: tuple[float, ...]
    noise: Tensor = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    bound: Tensor = field(repr=False)
    is_listed: Tensor = field(repr=False)
    slack: Tensor = field(repr=False)

    @classmethod
    def begin(cls, inner: GPProcedure, base: Belief) -> Deferred:
        r"""All rows are up to date, and none is listed."""
        regions, posterior = base.regions, base.posterior
        nearest = torch.minimum(
            regions.mean - regions.lower, regions.upper - regions.mean
        )
        # A row that is known exactly does not move: 0 / 0 is no reason to list it.
        slack = (nearest / regions.sigma).nan_to_num(nan=torch.inf)
        bound = Level.of(inner, posterior).score(base.sides.side, regions)
        none = torch.zeros_like(base.sides.candidates)
        return cls(inner, base, base, (), posterior.a[:0], (), bound, none, slack)

    def __getattr__(self, name: str) -> Any:
        r"""Whatever a belief says, with all rows up to date."""
        if name not in _OF_BELIEFS:
            raise AttributeError(name)
        return getattr(self.settled, name)

    # --- one more measurement ---------------------------------------------------------

    def after(self, new: Observations) -> Deferred:
        r"""With one more round of one measurement.

        Args:
            new: The round's observations.
        """
        inner, shell = self.procedure, self.shell
        ahead = inner._ahead(shell, new)
        fits = inner.model.count_round(shell.fits, new)
        (noise,), posterior = fits.noise_of(new), fits.posteriors[0]
        news = posterior.news(new.indices, new.y, noise)
        posterior = posterior.owing(news, new.indices)
        fits = replace(fits, posteriors=(posterior,))
        t = shell.n_intervals + 1
        beta = inner.width_of(t, posterior)
        level, F = Level.of(inner, posterior), posterior.F[new.indices]
        parts = tuple(part.after(news, F, beta, level) for part in self.parts)
        bound = self.bound.clone()
        for part in parts:
            bound[part.rows] = level.score(part.side, part.regions)
        memory = inner.rule.measured(shell.memory, shell.memory, new.measured)
        return replace(
            self,
            shell=replace(shell, fits=fits, n_intervals=t, ahead=ahead, memory=memory),
            betas=(*self.betas, beta),
            noise=torch.cat((self.noise, news.noise_var)),
            parts=parts,
            bound=bound,
            is_listed=self.is_listed.clone(),
        )

    @property
    def _owed(self) -> Tensor:
        r"""The standardised residuals of what not all rows have heard of."""
        return self.shell.posterior.a[len(self.base.posterior.a) :]

    @property
    def _left(self) -> float:
        r"""The least share of a deviation that what is owed leaves of any row's."""
        n = len(self.base.posterior.a)
        F = self.shell.posterior.L[n:, n:] / self.noise.sqrt().unsqueeze(-1)
        return (1 - CAUTION) / max(float(torch.linalg.matrix_norm(F, 2)), 1.0)

    def holds(self) -> bool:
        r"""Whether bounds hold, once the rows are listed that might be contradicted."""
        left, width = self._left, min(self.betas) ** 0.5
        moved = float(self._owed.norm()) * (1 - left**2) ** 0.5 * (1 + CAUTION)
        if moved > width * (1 + left):
            return False
        near = (self.slack < moved - width * left) & ~self.is_listed
        if not self._fit(int(near.sum())):
            return False
        self._list(near.nonzero().view(-1))
        if any(bool(part.regions.contradicted.any()) for part in self.parts):
            return False
        self.best(torch.ones_like(near))
        return "settled" not in self.__dict__

    def _fit(self, more: int) -> bool:
        r"""Whether so many further rows may be listed."""
        posterior = self.shell.posterior
        n_rows = int(self.is_listed.sum()) + more
        # Of each its covariances with the data, and as much again while they grow.
        is_small = 2 * 8 * n_rows * len(posterior.a) <= posterior.memory_budget // 4
        return is_small and n_rows <= max(SHARE * len(self.bound), 4 * SHORTLIST)

    def _list(self, rows: Tensor) -> None:
        r"""Bring further rows up to date.

        Args:
            rows: Rows that are not listed.
        """
        if len(rows) == 0:
            return
        posterior, past = self.shell.posterior, self.base.posterior
        level, regions = Level.of(self.procedure, posterior), self.base.regions
        moments = past.mean[rows], past.variance[rows]
        on_rows = posterior.on_rows(rows, *moments)
        V = on_rows._path[len(past.a) :]
        means, variances = _along(*moments, self._owed, V)
        own = Regions(
            regions.lower[rows], regions.upper[rows], means[-1], variances[-1].sqrt()
        )
        prior = past.before_history(rows)
        sure, found = level.sure(*prior), _Folded(own, self.base.sides.side[rows])
        found.fold(means, variances, self.betas, level, sure, prior[1])
        on_rows = replace(on_rows, mean=means[-1], variance=variances[-1])
        part = Part(rows, on_rows, found.regions, found.side, sure)
        self.bound[rows] = level.score(part.side, part.regions)
        self.is_listed[rows] = True
        self.parts = (*self.parts, part)

    # --- the best row -----------------------------------------------------------------

    def best(self, usable: Tensor) -> int | None:
        r"""The most ambiguous row, of equal ones the lowest; ``None``: none is open.

        Args:
            usable: ``N`` bools: the rows that may be measured.
        """
        tie, size = TIE * self.shell.posterior.scale, SHORTLIST
        while True:
            found = self.bound.masked_fill(~usable, -torch.inf)
            most = found.max()
            if not bool(most > -torch.inf):
                return None
            near = found >= most - tie
            if bool(self.is_listed[near].all()):
                return int(near.to(torch.uint8).argmax())
            unlisted = found.masked_fill(self.is_listed, -torch.inf)
            best = unlisted.topk(min(size, len(unlisted))).indices
            listed = torch.zeros_like(near)
            listed[best[unlisted[best] > -torch.inf]] = True
            listed |= near & ~self.is_listed
            if not self._fit(int(listed.sum())):
                return self._best_of_all(usable, tie)
            self._list(listed.nonzero().view(-1))
            size *= 2

    def _best_of_all(self, usable: Tensor, tie: float) -> int | None:
        belief = self.settled
        level = Level.of(self.procedure, belief.posterior)
        found = level.score(belief.sides.side, belief.regions)
        found = found.masked_fill(~usable, -torch.inf)
        most = found.max()
        if not bool(most > -torch.inf):
            return None
        return int((found >= most - tie).to(torch.uint8).argmax())

    # --- all rows ---------------------------------------------------------------------

    @cached_property
    def settled(self) -> Belief:
        r"""The belief with all rows up to date, in one pass.

        The last interval is judged by the procedure itself, also where it contradicts
        earlier ones; those before it cannot.
        """
        if not self.betas:
            return self.base
        base, posterior = self.base, self.shell.posterior
        past, n = base.posterior, len(base.posterior.a)
        level, regions = Level.of(self.procedure, past), base.regions
        lower, upper = regions.lower.clone(), regions.upper.clone()
        side = base.sides.side.clone()

        def fold(rows: slice, V: Tensor) -> None:
            if len(self.betas) == 1:
                return
            mean, variance = past.mean[rows], past.variance[rows]
            before, prior = past.before_history(rows)
            sure = level.sure(before, prior)
            own = Regions(lower[rows], upper[rows], mean, variance.sqrt())
            found = _Folded(own, side[rows])
            means, variances = _along(mean, variance, self._owed, V)
            found.fold(means[:-1], variances[:-1], self.betas[:-1], level, sure, prior)
            lower[rows], upper[rows] = found.regions.lower, found.regions.upper
            side[rows] = found.side

        indices = posterior.indices[n:]
        noise = torch.zeros_like(self._owed)  # the information is known already
        news = News(posterior.L[n:, :n], posterior.L[n:, n:], self._owed, noise, False)
        now = past.conditioned(
            news, indices, partial(past.prior_covariance, indices), each=fold
        )
        now = replace(
            now, information=posterior.information, is_exact=posterior.is_exact
        )
        sides = replace(base.sides, side=side, candidates=side == UNDECIDED)
        before = replace(
            self.shell,
            fits=replace(self.shell.fits, posteriors=(now,)),
            all_regions=(replace(regions, lower=lower, upper=upper),),
            sides=sides,
        )
        return self.procedure._with_sides(before)


def _along(
    mean: Tensor, variance: Tensor, a: Tensor, V: Tensor
) -> tuple[Tensor, Tensor]:
    r"""``k x r`` means and variances after each of ``k`` measurements.

    Args:
        mean: ``r`` means before.
        variance: ``r`` variances before.
        a: ``k`` standardised residuals.
        V: ``k x r`` path rows.
    """
    means = mean + (a.unsqueeze(-1) * V).cumsum(dim=0)
    return means, (variance - V.square().cumsum(dim=0)).clamp_min(0.0)


@dataclass(eq=False)
class _Folded:
    r"""Regions and sides that take one interval after the other."""

    regions: Regions
    side: Tensor

    def fold(
        self,
        means: Tensor,
        variances: Tensor,
        betas: Sequence[float],
        level: Level,
        sure: Tensor,
        prior_variance: Tensor,
    ) -> None:
        r"""Take ``k`` intervals, one after the other."""
        for mean, variance, beta in zip(means, variances, betas, strict=True):
            self.regions = self.regions.intersect(mean, variance.sqrt(), beta)
            little = variance > INFORMED_SHARE * prior_variance
            self.side = level.judged(self.side, self.regions, sure & little)


@dataclass(frozen=True, eq=False)
class Deferring:
    r"""A procedure that brings rows up to date when somebody looks at them.

    It has whatever the inner procedure has, and answers the same.

    Args:
        inner: The procedure.
    """

    inner: GPProcedure

    def __getattr__(self, name: str) -> Any:
        r"""An attribute of the inner procedure, or one of its methods."""
        if name.startswith("__"):  # those that copying and pickling look for
            raise AttributeError(name)
        found = getattr(self.inner, name)
        return partial(self._call, name) if isinstance(found, MethodType) else found

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        r"""What a method of the inner procedure answers."""

        def read(value: Any) -> Any:
            if not isinstance(value, Deferred):
                return value
            return value.shell if name in SHALLOW else value.settled

        given = [read(value) for value in arguments]
        named = {key: read(value) for key, value in options.items()}
        return getattr(self.inner, name)(*given, **named)

    def learn(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more round; put off if it is one measurement."""
        inner = self.inner
        if isinstance(belief, Deferred):
            now = belief
        elif bool(belief.regions.contradicted.any()) or inner.model.is_initial(
            belief.fits
        ):
            return inner.learn(belief, new, history, seed)
        else:
            now = Deferred.begin(inner, belief)
        if len(new) != 1:
            return inner.learn(now.settled, new, history, seed)
        before, now = now.shell, now.after(new)
        if now.shell.is_contradicted and not before.is_contradicted:
            warnings.warn(now.shell.contradiction, CalibrationWarning, stacklevel=2)
        if now.holds():
            return now
        inner.warn_of_contradictions(now.settled, now.base)
        return now.settled

    def learn_planned(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The same after a round that holds just what was planned for it."""
        return self.learn(belief, new, history, seed)

    def lose(self, belief: Any, rows: Tensor) -> Any:
        r"""The same: nothing is learnt of rows without a result."""
        return belief

    def planning_belief(self, belief: Any) -> Any:
        r"""The same: a model that is given looks the same way at all data."""
        return belief

    def is_surely_open(self, belief: Any) -> bool:
        r"""Whether a row is undecided, if that is known already."""
        if not isinstance(belief, Deferred):
            return bool(self.inner.is_surely_open(belief))
        return belief.best(torch.ones_like(belief.is_listed)) is not None

    def may_measure(self, belief: Any, left: Tensor) -> bool:
        r"""Whether a row is left that the rule may choose."""
        if not isinstance(belief, Deferred):
            return bool(self.inner.may_measure(belief, left))
        return belief.best(left > 0) is not None

    def plan(self, belief: Any, request: Request) -> Tensor:
        r"""The rows to measure next; one row is found without looking at all."""
        if not isinstance(belief, Deferred):
            return self.inner.plan(belief, request)
        if request.size != 1 or len(request.pending):
            return self.inner.plan(belief.settled, request)
        row = belief.best(request.left > 0)
        return torch.tensor([] if row is None else [row], dtype=torch.long)

    def classification(self, belief: Any) -> Classification:
        r"""The side of every row, with bounds and what is guaranteed."""
        now = belief.settled if isinstance(belief, Deferred) else belief
        return self.inner.classification(now)


Procedure.register(Deferring)
