r"""What linear strategies know at the start and after a batch."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_lse.confidence.anytime import AnytimeWidth
from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.confidence.martingale import BatchMartingale
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.confidence.self_normalised import Information
from botorch_lse.problem import Observations
from botorch_lse.strategies.linear.assumptions import noise_alarm, standardised
from botorch_lse.strategies.linear.belief import LinearBelief
from botorch_lse.strategies.linear.evidence import Evidence


def first_belief(Z: Tensor, noise_var: Tensor, widths: AnytimeWidth) -> LinearBelief:
    r"""Nothing was measured.

    Args:
        Z: ``T x h`` features of the items.
        noise_var: ``N`` squared noise scales.
        widths: Fixed for the whole run.
    """
    (T, h), m = Z.shape, widths.m
    unknown = torch.full((T, m), torch.inf, dtype=torch.float64)
    evidence = Evidence.empty(len(noise_var), h, m)
    martingale = None
    if widths.uses_martingales:
        martingale = BatchMartingale.start(Z, widths.W, m)
    side = torch.full((T,), UNDECIDED, dtype=torch.int8)
    return LinearBelief(
        evidence,
        noise_var,
        Z,
        side,
        -unknown,
        unknown,
        Information.of(evidence.V, widths.W),
        widths.stitched(),
        martingale,
        side == UNDECIDED,
        torch.tensor([0.0, torch.inf, torch.inf]).double().repeat(T, 1),
        torch.zeros(T, m, dtype=torch.bool),
        alarm=None,
    )


def with_batch(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""Estimates after a batch, with the first alarm if its noise is not as stated.

    Args:
        belief: Before.
        Phi: ``N x h`` features of what can be measured.
        new: The batch.
        widths: Fixed for the whole run.
    """
    batch, each = _evidence(belief, Phi, new)
    rows, y = new.indices, new.y.view(len(new), -1)
    evidence = belief.evidence.add(batch)
    information = Information.of(evidence.V, widths.W)
    belief = replace(belief, evidence=evidence, information=information)
    roots = (each / belief.noise_var[rows]).sqrt()
    if belief.alarm is not None:
        return belief
    found = noise_alarm(belief, rows, *standardised(belief, Phi, rows, y, roots))
    return replace(belief, alarm=found)


def with_martingale(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""Before ``with_batch``, for a batch whose rows were fixed before any value of it.

    What was told otherwise must not enter: rows that came back because of the values
    of others make the batch's least squares biased.
    """
    if belief.martingale is None:
        return belief
    batch, _ = _evidence(belief, Phi, new)
    alone = Information.of(batch.V, widths.W)
    martingale = belief.martingale.add(belief.Z, alone, batch.moment)
    return replace(belief, martingale=martingale)


def _evidence(
    belief: LinearBelief, Phi: Tensor, new: Observations
) -> tuple[Evidence, Tensor]:
    rows, y = new.indices, new.y.view(len(new), -1)
    each = torch.ones_like(rows) if new.counts is None else new.counts
    return Evidence.of(Phi, belief.noise_var, rows, y, each), each


def intersected(
    belief: LinearBelief, widths: AnytimeWidth, delta: float
) -> LinearBelief:
    r"""With the current intervals, warning if they contradict earlier ones.

    Then nothing that earlier intervals decided is believed any more: all items are
    judged anew.

    Args:
        belief: With the estimates.
        widths: Fixed for the whole run.
        delta: The strategy's failure probability, for the warning.
    """
    squared = belief.width.squared(belief.information, belief.Z)
    ends = widths.interval(belief.mean, squared, belief.martingale)
    lower = torch.maximum(belief.lower, ends[0])
    upper = torch.minimum(belief.upper, ends[1])
    newly = (lower > upper) & ~belief.contradicted
    contradicted = belief.contradicted | newly
    lower = torch.where(contradicted, ends[0], lower)
    upper = torch.where(contradicted, ends[1], upper)
    for c in range(widths.m):
        found = Regions(
            lower[:, c],
            upper[:, c],
            belief.mean[:, c],
            belief.sigma,
            contradicted=newly[:, c],
        )
        claim = f"at all times, with probability {1 - delta:g}"
        warn_if_empty(found, claim, "f not linear in the features")
    belief = replace(belief, lower=lower, upper=upper, contradicted=contradicted)
    return belief.reopened() if bool(contradicted.any()) else belief
