r"""How many more measurements the anytime widths need for the estimated gaps."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_lse.confidence.anytime import AnytimeWidth
from botorch_lse.confidence.martingale import BatchMartingale
from botorch_lse.confidence.self_normalised import Information
from botorch_lse.strategies.forecast import Forecast, smallest, squared_gaps
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.planning import next_weights

STRAY = 1.5
"""A row is decided as soon as its estimate strays to one side once; along a run the
largest stray is about so many standard deviations, and it shortens the wait."""


def linear_forecast(
    belief: LinearBelief,
    questions: Questions,
    rows: Tensor,
    W: Tensor,
    widths: AnytimeWidth,
) -> Forecast:
    r"""The smallest ``n`` after which every width is below its gap.

    Args:
        belief: Where the run stands.
        questions: What is undecided.
        rows: ``N x h``, the features over their noise scales.
        W: ``h x h``, the first design's information.
        widths: The widths in use.
    """
    assert questions.gaps is not None  # the data span the features
    norms = belief.information.squared_norms(questions.vectors)
    gaps = squared_gaps(questions.gaps, norms, 0.0).sqrt()
    start = None
    if belief.martingale is not None:
        start = BatchMartingale.start(questions.vectors, W, 1)

    def suffices(n: int) -> bool:
        weights = next_weights(rows, belief.evidence.V, W, questions, n, True)
        more = n * (weights.unsqueeze(-1) * rows).mT @ rows
        information = Information.of(belief.evidence.V + more, W)
        squared = belief.width.squared(information, questions.vectors)
        norms = information.squared_norms(questions.vectors)
        if start is not None:  # as if all batches were alike
            scalar = replace(start, precision=1 / norms).squared(widths.target_delta)
            squared = torch.minimum(squared, scalar)
        return bool((squared.sqrt() - STRAY * norms.sqrt() <= gaps).all())

    n = smallest(suffices)
    basis = (
        f"Assumes the estimated gaps of the {belief.open.numel()} undecided items and "
        "an optimal design."
    )
    return Forecast(n, basis)
