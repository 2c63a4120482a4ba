r"""The shared parts of MELK and MILK to the letter: rounds, draws, estimates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._validation import in_interval, one_of
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED, accuracy
from botorch_lse.data.arguments import check_noise_once
from botorch_lse.data.classification import Classification, gaussian_probability_above
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import matching, matching_at_random, round_generator
from botorch_lse.designs import Design, round_design
from botorch_lse.designs.basis import KernelGram, span_map
from botorch_lse.papers.fixed_confidence import (
    RoundsAlgorithm,
    countable,
    first_round_of,
    rehearsed,
)
from botorch_lse.papers.mason2022.rips import RIPSEstimate, rips, rips_projection
from botorch_lse.strategies.algorithm import AlgorithmFacts, Step
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.linear.algorithm import features_of
from botorch_lse.strategies.loop import State, Strategy, check_state

DESIGN_TOLERANCE = 1e-2
RETURNED = ("aggressive", "conservative")
ESTIMATES = ("means", "linear program")


def draws_of_round(
    t: int, N: int, g: float, second_moment: float, delta: float, constant: float = 16.0
) -> int:
    r"""``N_t = ceil(max(16 4^t g (B^2 + sigma^2) log(2 t^2 N^2 / delta), 2 log(N /
    delta)))``.

    Args:
        t: The round, from 1.
        N: The number of rows.
        g: The worst squared norm under the round's design.
        second_moment: ``B^2 + sigma^2``, units of ``y`` squared.
        delta: The failure probability of the whole run.
        constant: The paper's 16.

    Source:
        Mason et al. (2022), Algorithms 1 and 2, lines 5 to 7, with the squared norm,
        erratum 1 (papers/mason2022/errata.md). Deviation: at least ``4 log(4 t^2 N^2 /
        delta)``, twice what Catoni's mean needs, which matters for ``g (B^2 +
        sigma^2)`` far below 1 only.
    """
    q = constant * 4.0**t * g * second_moment * math.log(2 * t**2 * N**2 / delta)
    least = 4 * math.log(4 * t**2 * N**2 / delta)
    return math.ceil(max(countable(q), 2 * math.log(N / delta), least))


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""The last estimate of every row.

    Args:
        mean: ``N`` estimates of the function, units of ``y``; 0 before the first.
        half_width: ``N``, what they are off at most; the bound ``B`` before the first.
        sigma: ``N``, bounds of their standard deviations.
    """

    mean: Tensor
    half_width: Tensor
    sigma: Tensor

    def updated(
        self, rows: Tensor, mean: Tensor, half_width: Tensor, sigma: Tensor
    ) -> Estimate:
        r"""The estimate with new numbers at ``rows``."""
        parts = (self.mean, mean), (self.half_width, half_width), (self.sigma, sigma)
        return Estimate(*(old.index_put((rows,), new) for old, new in parts))


@dataclass(frozen=True, eq=False)
class PACBelief:
    r"""The belief after the algorithm's rounds.

    Args:
        t: The round of the algorithm that comes next, from 1.
        side: ``N`` codes: the sets ``G_t``, ``B_t`` and the rest.
        active: The active set ``A_t``: ``N`` rows or ``N x N`` ordered pairs.
        estimate: The last estimate of every row.
        design: The design of round ``t``; ``None`` once the algorithm has ended.
        size: ``N_t``; 0 once it has ended.
        kept: Draws of this round that were told while others were abandoned.
        missing: The draws still to come; ``None``: all of them, yet to be drawn.
    """

    t: int
    side: Tensor
    active: Tensor
    estimate: Estimate
    design: Design | None = None
    size: int = 0
    kept: Observations = field(default_factory=Observations.empty)
    missing: Tensor | None = None


@dataclass(frozen=True, eq=False)
class RIPSRounds:
    r"""The draws of a round: their number, their estimates, and the possible error.

    Args:
        Phi: ``N x m`` features.
        gamma: The ridge of the design.
        second_moment: ``B^2 + sigma^2``, which bounds ``E[y^2]``.
        delta: The failure probability of the whole run.
        estimate: See ``PACStrategy``.
        sample_constant: The 16 in the number of draws.
        elimination_constant: The 2 in the width.
    """

    Phi: Tensor
    gamma: float
    second_moment: float
    delta: float
    estimate: str
    sample_constant: float
    elimination_constant: float

    @property
    def N(self) -> int:
        r"""The number of rows."""
        return len(self.Phi)

    def direction_delta(self, t: int) -> float:
        r"""``delta_t / |X|^2`` with ``delta_t = delta / (2 t^2)``: one direction's."""
        return self.delta / (2 * t**2 * self.N**2)

    def n_draws(self, t: int, g: float) -> int:
        r"""The number of draws of a round, ``N_t``; see ``draws_of_round``."""
        S = self.second_moment
        return draws_of_round(t, self.N, g, S, self.delta, self.sample_constant)

    def width(self, t: int) -> float:
        r"""``2 2^-t``: what the estimates of round ``t`` are off at most."""
        return self.elimination_constant * 2.0**-t

    def estimated(
        self,
        belief: PACBelief,
        new: Observations,
        rows: Tensor,
        pairs: tuple[Tensor, Tensor, float] | None = None,
    ) -> RIPSEstimate:
        r"""RIPS at ``rows``, or at pairs of positions in ``rows``."""
        assert belief.design is not None  # asked in rounds only
        found = rips(
            self.Phi[rows],
            self.Phi,
            belief.design.weights,
            new.indices,
            new.y,
            second_moment=self.second_moment,
            delta=self.direction_delta(belief.t),
            gamma=self.gamma,
            pairs=pairs,
        )
        if self.estimate == "means":
            return found
        values = rips_projection(found, self.Phi[rows], pairs=pairs)
        return replace(found, means=values)

    def updated(
        self, belief: PACBelief, rows: Tensor, found: RIPSEstimate, n: int
    ) -> Estimate:
        r"""The estimates with those of ``rows``, from ``n`` draws."""
        assert belief.design is not None  # asked in rounds only
        half = self.width(belief.t) * (found.norms / belief.design.value).sqrt()
        sigma = (self.second_moment * found.norms / n).sqrt()
        return belief.estimate.updated(rows, found.means, half, sigma)


class PACQuestion(ABC):
    r"""The question that such rounds decide; ``A_t`` are the rows or pairs left."""

    rounds: RIPSRounds

    @abstractmethod
    def everything(self) -> Tensor:
        r"""``A_1``: every pair, or row, is in question in the first round."""

    @abstractmethod
    def design(self, belief: PACBelief) -> Design:
        r"""The design of round ``t`` on ``A_t``."""

    @abstractmethod
    def eliminate(self, belief: PACBelief, new: Observations) -> PACBelief:
        r"""Lines 8 to 16 of the algorithm."""

    @abstractmethod
    def foreseen(self, belief: PACBelief) -> PACBelief:
        r"""The judgement by the estimates in hand instead of new draws."""

    @abstractmethod
    def level(self, mean: Tensor) -> float:
        r"""The level that probabilities refer to."""


@dataclass(frozen=True, eq=False)
class PACAlgorithm(RoundsAlgorithm):
    r"""Rounds of independent draws from an optimal design, then elimination.

    Args:
        pool: The rows.
        question: What is to be decided about them, by which rounds.
        bound: ``B``, a bound of ``|f|``, units of ``y``.
        last_round: The last round that is run.
        returned: See ``PACStrategy``.
        guarantee: What is claimed.
    """

    pool: Pool
    question: PACQuestion
    bound: float
    last_round: float
    returned: str
    guarantee: str

    facts = AlgorithmFacts(needs_its_rows=True)

    def start(self, seed: int) -> PACBelief:
        r"""The belief before the first round."""
        N = len(self.pool)
        none = torch.zeros(N, dtype=torch.float64)
        start = Estimate(none, none + self.bound, none + self.bound)
        side = torch.zeros(N, dtype=torch.int8)
        return self._prepared(PACBelief(1, side, self.question.everything(), start))

    def _prepared(self, belief: PACBelief) -> PACBelief:
        r"""The belief with the design and the number of draws of the next round."""
        if belief.t > self.last_round or not bool((belief.side == UNDECIDED).any()):
            return replace(belief, design=None, size=0)
        design = self.question.design(belief)
        size = self.question.rounds.n_draws(belief.t, design.value)
        return replace(belief, design=design, size=size)

    def complete(self, observations: Observations) -> Observations:
        r"""The observations as they were told: one value per draw.

        Raises:
            ValueError: If they are means, or come with their noise.
        """
        found = None
        if observations.y.ndim != 1:
            found = "several outputs"
        elif observations.yvar is not None:
            found = "`yvar`"
        elif observations.n_measured != len(observations):
            found = "means of replicates (`counts`)"
        if found is not None:
            raise ValueError(
                "Expected one number `y` per draw and no `yvar`, because Catoni's mean "
                f"needs every value, but got {found}. Tell the values themselves; the "
                "noise is bounded by `noise_std`."
            )
        return observations

    def size(self, belief: PACBelief) -> int:
        r"""The draws of the round that are still to come."""
        return belief.size if belief.missing is None else belief.missing.numel()

    def rows(self, belief: PACBelief, seed: int, round: int) -> Tensor:
        r"""The draws that are still to come, new or asked for again."""
        if belief.missing is not None:
            return belief.missing
        return self._draws(belief, seed, round)

    def _draws(self, belief: PACBelief, seed: int, label: int) -> Tensor:
        assert belief.design is not None  # the algorithm has not ended
        counts = round_design(
            belief.design.weights,
            belief.size,
            "sample",
            generator=round_generator(seed, label),
        )
        return torch.arange(len(counts)).repeat_interleave(counts)

    def learn(self, belief: PACBelief, step: Step) -> PACBelief:
        r"""The belief after a round, or with more of its draws."""
        new, seed = step.new, step.seed
        if belief.design is None:
            return belief
        assert new.round is not None  # labelled by `tell`
        label, asked = int(new.round[0]), belief.missing
        if asked is None:
            asked = self._draws(belief, seed, label)
        used = new.select(matching_at_random(new, asked, seed, label))
        kept = belief.kept.append(used)
        missing = asked[~matching(asked, used.indices)]
        if missing.numel():
            return replace(belief, kept=kept, missing=missing)
        after = self.question.eliminate(belief, kept)
        return self._prepared(replace(after, kept=Observations.empty(), missing=None))

    def forecast(self, belief: PACBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal, once there is an estimate."""
        if belief.t == 1:
            return first_round_of(belief.size)
        return rehearsed(self._coming(belief), told)

    def _coming(self, belief: PACBelief) -> Iterator[int]:
        while belief.size:
            yield self.size(belief)
            after = replace(self.question.foreseen(belief), missing=None)
            belief = self._prepared(after)

    def answer(self, belief: PACBelief, as_claimed: bool = False) -> Classification:
        r"""The side of every row; rows within the tolerance as asked for."""
        side, estimate = belief.side, belief.estimate
        if belief.t > self.last_round:
            rest = ABOVE if self.returned == "aggressive" else BELOW
            side = torch.where(side == UNDECIDED, rest, side)
        mean = estimate.mean
        level = self.question.level(mean)
        return Classification(
            above=side == ABOVE,
            below=side == BELOW,
            undecided=side == UNDECIDED,
            lower=mean - estimate.half_width,
            upper=mean + estimate.half_width,
            mean=mean,
            sigma=estimate.sigma,
            probability_above=gaussian_probability_above(mean, estimate.sigma, level),
            guarantee=self.guarantee,
            pool=self.pool,
        )


@dataclass(frozen=True, eq=False)
class PACStrategy(Strategy):
    r"""Rounds of independent draws from an optimal design, then elimination.

    In round ``t`` the algorithm itself says how many rows are drawn (``ask`` returns
    them all, in thousands); their values enter Catoni's means (RIPS) and what differs
    from the level by more than ``2 2^-t`` is decided. Only the variance of the noise
    need be known. Give one value per draw, no means. A round is evaluated once all its
    draws are there: those abandoned are asked for again. Rows the algorithm did not
    draw are kept and used for nothing; of more results than draws a random part counts.

    Args:
        bound: ``B``, a bound of ``|f|``, units of ``y``.
        noise_std: A bound of the noise standard deviation; default the largest of
            ``pool.noise_var``.
        kernel: A GPyTorch kernel of ``pool.X``; default linear in ``pool.features``,
            or in ``pool.X`` without features.
        gamma: The ridge of the design. 0 is exact for features; a kernel needs a
            positive one unless the pool is small.
        delta: The failure probability.
        epsilon: The paper's tolerance (``beta`` with a tilde), units of ``y``: after
            round ``ceil(log2(4 / epsilon))`` what is left is returned as ``returned``
            says. 0 runs until everything is decided.
        returned: Where rows within the tolerance go: ``"aggressive"`` returns them as
            above, as the paper's set without ``B_t``; ``"conservative"`` as below, so
            that ``G_t`` remains. ``returned_sets`` has both.
        estimate: ``"means"`` uses the means themselves, ``"linear program"`` the one
            vector nearest to them, whose error bound is twice as large.
        max_observations: Stop before a round that would exceed so many draws.

    Raises:
        ValueError: If a number is out of range, or the noise is given twice or never.
    """

    _: KW_ONLY
    bound: float
    noise_std: float | None = None
    kernel: Kernel | None = None
    gamma: float = 0.0
    delta: float = 0.05
    epsilon: float = 0.0
    returned: str = "aggressive"
    estimate: str = "means"
    max_observations: int | None = None
    max_repeats: None = field(init=False, default=None)
    batch_size: None = field(init=False, default=None)

    sample_constant: ClassVar[float] = 16.0
    elimination_constant: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        self._check_rounds()
        in_interval(self.bound, "bound", 0.0, math.inf)
        in_interval(self.gamma, "gamma", 0.0, math.inf, closed_low=True)
        in_interval(self.delta, "delta", 0.0, 1.0)
        accuracy(self.epsilon)
        one_of(self.returned, "returned", RETURNED)
        one_of(self.estimate, "estimate", ESTIMATES)
        check_noise_once(self.noise_std, self.pool, exact=True)

    # --- the problem ------------------------------------------------------------------

    @cached_property
    def second_moment(self) -> float:
        r"""``B^2 + sigma^2``, which bounds ``E[y^2]``."""
        if self.noise_std is not None:
            return float(self.bound**2 + self.noise_std**2)
        return float(self.bound**2 + self.pool.noise_var.max())  # type: ignore[union-attr]

    @cached_property
    def Phi(self) -> Tensor:
        r"""``N x m`` features; without ridge in coordinates that span them."""
        if self.kernel is not None:
            Phi = KernelGram.of(self.kernel, self.pool.X).basis(0.0).Phi
        else:
            Phi = features_of(self.pool)
        return Phi @ span_map(Phi) if self.gamma == 0 else Phi

    @property
    def last_round(self) -> float:
        r"""``ceil(log2(4 / epsilon))``, the last round that is run."""
        if self.epsilon == 0:
            return math.inf
        return max(1, math.ceil(math.log2(4 / self.epsilon)))

    # --- the promise ------------------------------------------------------------------

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        names = ("above", "below")
        full, empty = names if self.returned == "aggressive" else names[::-1]
        bias = f"the bias of gamma = {self.gamma:g}" if self.gamma > 0 else ""
        beyond = f" by more than {bias}" if bias else ""
        plus = f" plus {bias}" if bias else ""
        noise_std = math.sqrt(self.second_moment - self.bound**2)
        space = "the features" if self.kernel is None else "the kernel's features"
        return (
            f"With probability {1 - self.delta:g}, once no row is undecided, `{full}` "
            f"holds every row {full} the level{beyond} and none {empty} it by more "
            f"than epsilon = {self.epsilon:g}{plus}; assumes f linear in {space}, |f| "
            f"at most {self.bound:g}, and independent noise of mean 0 and standard "
            f"deviation at most {noise_std:g} (Mason et al. 2022, {self.theorem})."
        )

    theorem: ClassVar[str]

    @property
    def takes_means(self) -> bool:
        r"""False: Catoni's mean needs every value, and noise is bounded, not known."""
        return False

    def returned_sets(self, state: State) -> tuple[Tensor, Tensor]:
        r"""``G_t`` and the rows without ``B_t``: ``N`` bools each.

        With probability ``1 - delta`` the first holds no row below the level and every
        row above it by more than ``epsilon``; the second every row above the level and
        none below it by more than ``epsilon`` (up to the bias of ``gamma``).

        Source:
            Mason et al. (2022), Theorems 3.3 and 4.3 and the remarks after them.
        """
        check_state(self, state)
        side = state.belief.side
        return side == ABOVE, side != BELOW

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def rounds(self) -> RIPSRounds:
        r"""The draws of a round: their number and their estimates."""
        return RIPSRounds(
            self.Phi,
            self.gamma,
            self.second_moment,
            self.delta,
            self.estimate,
            self.sample_constant,
            self.elimination_constant,
        )

    @property
    @abstractmethod
    def question(self) -> PACQuestion:
        r"""The question that the strategy decides."""

    @cached_property
    def algorithm(self) -> PACAlgorithm:
        r"""The rounds of the algorithm."""
        return PACAlgorithm(
            self.pool,
            self.question,
            self.bound,
            self.last_round,
            self.returned,
            self.guarantee,
        )
