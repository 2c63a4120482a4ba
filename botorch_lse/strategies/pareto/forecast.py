r"""The forecast of strategies on one Gaussian process per output."""

from __future__ import annotations

from collections.abc import Callable

import torch

from botorch_lse.planning import relaxed_counts
from botorch_lse.planning.designed import TOLERANCE
from botorch_lse.strategies.forecast import Forecast, smallest
from botorch_lse.strategies.pareto.belief import GPParetoBelief

STRAY = 0.5
"""A row is decided as soon as its estimate strays to one side once, some standard
deviations by the time it is nearly decided."""


def pareto_forecast(
    belief: GPParetoBelief,
    judged: Callable[[GPParetoBelief, float], GPParetoBelief],
    root_beta: float,
) -> Forecast:
    r"""The smallest designed batch after which every open row is decided.

    Args:
        belief: Where the run stands; the means are taken to stay there.
        judged: The rule: from posteriors and a half width to sides.
        root_beta: The half width of the next intervals in standard deviations.
    """
    problems = belief.problems
    usable = torch.ones(len(belief.side), dtype=torch.bool)

    def suffices(n: int) -> bool:
        counts = relaxed_counts(problems, n, usable, TOLERANCE)
        ahead = belief.expecting(torch.arange(len(counts)).repeat_interleave(counts))
        return judged(ahead, max(root_beta - STRAY, 0.0)).open.numel() == 0

    return Forecast(
        smallest(suffices),
        "By the optimal design of one batch that decides every row at the current "
        "means and the width of the next round.",
    )
