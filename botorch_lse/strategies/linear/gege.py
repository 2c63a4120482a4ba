r"""GEGE with anytime widths: Pareto sets of linear outputs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from botorch_lse.confidence.classify import with_contradictions
from botorch_lse.problem import Classification
from botorch_lse.strategies.linear.base import LinearStrategy
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.pareto import ask_pareto, decide_pareto
from botorch_lse.strategies.loop import check_state
from botorch_lse.strategies.pareto.outputs import (
    MultiOutputStrategy,
    ParetoEstimate,
)
from botorch_lse.strategies.state import State


@dataclass(frozen=True, eq=False)
class GEGELinearStrategy(MultiOutputStrategy, LinearStrategy):
    r"""GEGE on linear features, all data kept: which rows are Pareto optimal.

    Above is accepted, below rejected. ``y`` has one column per output, with the same
    noise bound for each. The columns ``mean``, ``lower`` and ``upper`` of the answer
    are margins against the rival that is nearest to dominating a row, negative if it
    does; ``estimate(state)`` has the outputs themselves.

    Args:
        maximize: For each output, whether more is better.
        epsilon: The tolerance: every Pareto optimal row is accepted, and no row that
            another one exceeds by more than ``epsilon`` in every output. 0 is exact.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = GEGELinearStrategy(pool, maximize=(True, False), noise_std=0.1)
        >>> strategy.ask(strategy.init()).counts.tolist()
        [2, 2]

    Source:
        The setting of Kone et al. (2025); decided pair by pair, as in Auer et al.
        (2016), with the widths of ``StitchedWidth`` instead of rounds of gaps.
    """

    _: KW_ONLY
    batch_size: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None

    def __post_init__(self) -> None:
        self._check_outputs()
        super().__post_init__()

    def _decided(self, belief: LinearBelief) -> LinearBelief:
        return decide_pareto(belief, self.signs * belief.mean, self.epsilon)

    def _questions(self, belief: LinearBelief) -> Questions:
        return ask_pareto(belief, self.signs * belief.mean, self.epsilon)

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row, intervals intersected over time."""
        check_state(self, state)
        return self._estimate(state.belief)

    def _estimate(self, belief: LinearBelief) -> ParetoEstimate:
        margin, width, spread = belief.margins.unbind(dim=-1)
        sigma = belief.sigma.unsqueeze(-1).expand(-1, self.m)
        return ParetoEstimate(
            mean=belief.mean,
            lower=belief.lower,
            upper=belief.upper,
            sigma=sigma,
            margin=margin,
            margin_lower=margin - width,
            margin_upper=margin + width,
            margin_sigma=spread,
        )

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        what = "all accepted rows are Pareto optimal and all rejected ones are not"
        if self.epsilon > 0:
            what = (
                "no Pareto optimal row is rejected and no row accepted that another "
                f"one exceeds by more than {self.epsilon:g} in every output"
            )
        return self._assumptions(what)

    def _classification(self, belief: LinearBelief) -> Classification:
        found = self._estimate(belief)
        answer = self._answer(belief.side, found, belief.contradicted)
        claim = with_contradictions(self._promised(belief), answer.contradicted)
        return replace(answer, guarantee=claim)
