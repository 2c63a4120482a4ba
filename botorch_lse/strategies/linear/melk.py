r"""MELK with anytime widths, and MILK."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from botorch_lse.checks import finite_number
from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    ratio,
    with_contradictions,
)
from botorch_lse.problem import Classification
from botorch_lse.problem.classification import gaussian_probability_above
from botorch_lse.strategies.linear.base import LinearStrategy
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.goals import (
    ask_implicit,
    ask_level,
    decide_implicit,
    decide_level,
)


@dataclass(frozen=True, eq=False)
class SingleOutputStrategy(LinearStrategy):
    r"""What linear strategies for one output answer. Arguments: ``LinearStrategy``."""

    def _answer(self, belief: LinearBelief, level: float) -> Classification:
        mean, side = belief.mean[:, 0], belief.side
        return Classification(
            above=side == ABOVE,
            below=side == BELOW,
            undecided=side == UNDECIDED,
            lower=belief.lower[:, 0],
            upper=belief.upper[:, 0],
            mean=mean,
            sigma=belief.sigma,
            probability_above=gaussian_probability_above(mean, belief.sigma, level),
            guarantee=with_contradictions(
                self._promised(belief), belief.contradicted[:, 0]
            ),
            pool=self.items,
            contradicted=belief.contradicted[:, 0],
        )

    @property
    def _tolerance(self) -> str:
        return f" up to {self.epsilon:g}" if self.epsilon > 0 else ""


@dataclass(frozen=True, eq=False)
class MELKLinearStrategy(SingleOutputStrategy):
    r"""MELK on linear features, all data kept: ``above = {x : f(x) > threshold}``.

    Arguments: ``threshold``, the level, units of ``y``; else see ``LinearStrategy``.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MELKLinearStrategy(pool, 0.5, noise_std=0.1)
        >>> strategy.ask(strategy.init()).counts.tolist()
        [2, 2]

    Source:
        The rounds of Mason et al. (2022), Algorithm 1, with the widths of
        ``StitchedWidth`` and ``BatchMartingale`` instead of robust means of new data.
    """

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number(self.threshold, "threshold")

    @property
    def uses_items(self) -> bool:
        r"""Rows are decided one by one."""
        return True

    def _decided(self, belief: LinearBelief) -> LinearBelief:
        return decide_level(belief, self.threshold, self.epsilon)

    def _questions(self, belief: LinearBelief) -> Questions:
        return ask_level(belief, self.threshold, self.epsilon)

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        return self._assumptions(f"all decided rows are right{self._tolerance}")

    def _classification(self, belief: LinearBelief) -> Classification:
        return self._answer(belief, self.threshold)


@dataclass(frozen=True, eq=False)
class MILKLinearStrategy(SingleOutputStrategy):
    r"""MILK on linear features, all data kept: ``above = {x : f(x) > omega max f}``.

    Arguments: ``omega``, the level as a share of the maximum, in (0, 1) (the paper's
    epsilon is ``1 - omega``); else see ``LinearStrategy``. The widths are those of
    pairs, evaluated when needed.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MILKLinearStrategy(pool, omega=0.5, noise_std=0.1)
        >>> strategy.init().classification.undecided.tolist()
        [True, True]

    Source:
        The pairs of Mason et al. (2022), Algorithm 2, with the widths of
        ``StitchedWidth``. Deviations: a pair need not be examined if its second row is
        certainly not the maximiser, and certain pairs are not stored.
    """

    _: KW_ONLY
    omega: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio(self.omega)

    def _decided(self, belief: LinearBelief) -> LinearBelief:
        return decide_implicit(belief, self.omega, self.epsilon)

    def _questions(self, belief: LinearBelief) -> Questions:
        return ask_implicit(belief, self.omega, self.epsilon)

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        return self._assumptions(f"all decided rows are right{self._tolerance}")

    def _classification(self, belief: LinearBelief) -> Classification:
        level = self.omega * float(belief.mean[:, 0].max())
        return self._answer(belief, level)
