r"""Trials of yes and no at drawn rows: how many of them show the side of a probability.

One result does not show whether a probability is above a level, so that a drawn row is
tried again until a test of its own says so. The test looks after every trial. Its
bounds are numbers of successes; the probability that noise ever reaches one of them
is computed exactly, by counting paths, not bounded.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy  # which loads its packages when they are first used
import torch
from numpy.typing import NDArray
from torch import Tensor

from botorch_lse._device import CPU

MISTAKEN = 0.5
"""The probability that trials make a wrong row look right, at all looks together.
The audit's test accounts for the wrong rows that are missed so. As many trials go to
few rows that are known well as to many that are known little; with 0.05 in place of
0.5 an audit takes 1.5 to 2.5 times the trials."""
UNFAIR = 0.01
"""The probability that trials show a row to be wrong whose probability is at the line.
A row that is right is then hardly ever given up; trials of a wrong one end early."""
MOST_TRIALS = 256
"""The largest number of trials of a row; one that is not clear then counts as wrong.
It takes so many where a probability is off its line by a tenth of its deviation."""
STEPS = 1000
"""The number of lines between 0 and 1 for which tests are made.
A line in between gets the test of the next one, which is stricter."""
ROUNDING = 1e-6
"""The share of a step by which a line may exceed it and still count as there."""
HALVINGS = 12
"""The number of halvings by which the limit of a test's evidence is found."""


def least_successes(line: float, mistaken: float, most: int) -> Tensor:
    r"""The numbers of successes after 1, 2, ... trials that show ``p > line``.

    If the probability ``p`` of a success is at most ``line``, they are reached at any
    time with probability at most ``mistaken``.

    Why: the evidence is how likely the successes are on average over ``p`` in ``(line,
    1)``, over how likely they are at ``line``. It grows with each success, so that it
    passes a limit where the number of successes does. At ``line`` the probability of
    ever passing it within ``most`` trials is the sum over all paths, and the lowest
    limit is taken for which this is at most ``mistaken`` (``1 / mistaken`` always is,
    by Ville's inequality: the evidence is a martingale). With a smaller ``p`` each
    trial that succeeds would have succeeded at ``line`` as well: bounds are reached
    less often. Looks that are left out make it rarer still.

    Args:
        line: Where a claim is just wrong, below 1; at most 0 it cannot be wrong.
        mistaken: The probability, in (0, 1).
        most: The largest number of trials.

    Returns:
        ``most`` numbers; one more than there are trials where no number suffices.

    Source:
        Robbins (1970) for the mixture; Armitage, McPherson and Rowe (1969) for the sum
        over paths.
    """
    if line <= 0:
        return torch.zeros(most, dtype=torch.long, device=CPU)
    step = math.ceil(line * STEPS - ROUNDING)
    if step >= STEPS:
        return torch.arange(2, most + 2, device=CPU)
    return torch.from_numpy(_bounds(step, mistaken, most))


@lru_cache(maxsize=2 * STEPS)
def _bounds(step: int, mistaken: float, most: int) -> NDArray[np.int64]:
    r"""See ``least_successes``; for the line at this step."""
    evidence = _evidence(step / STEPS, most)
    low, high = 0.0, math.log(1 / mistaken)
    found = _reached(evidence, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        bounds = _reached(evidence, middle)
        if _paths(bounds, np.array([step / STEPS]))[0][0] <= mistaken:
            high, found = middle, bounds
        else:
            low = middle
    return found


def _evidence(line: float, most: int) -> NDArray[np.float64]:
    r"""Log evidence of successes (columns) in 1, 2, ... trials; ``-inf`` beyond."""
    n = np.arange(1, most + 1)[:, None]
    s = np.arange(most + 1)[None, :]
    fails = np.maximum(n - s, 0)
    # The part above the line of a beta distribution, computed where it is tiny too.
    part = scipy.special.betaincc(1.0 + s, 1.0 + fails, line)
    with np.errstate(divide="ignore"):
        log = np.log(part) + scipy.special.betaln(1.0 + s, 1.0 + fails)
    log = log - math.log1p(-line) - s * math.log(line) - fails * math.log1p(-line)
    return np.where(s <= n, log, -np.inf)


def _reached(evidence: NDArray[np.float64], limit: float) -> NDArray[np.int64]:
    r"""The least numbers of successes whose evidence is at least a limit."""
    is_enough = evidence >= limit
    n = np.arange(1, len(evidence) + 1)
    return np.where(is_enough.any(axis=1), is_enough.argmax(axis=1), n + 1)


def _paths(
    bounds: NDArray[np.int64], p: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""The probabilities that bounds are reached, and the expected numbers of trials.

    Args:
        bounds: Numbers of successes after 1, 2, ... trials.
        p: Probabilities of a success.
    """
    share = np.zeros((len(p), len(bounds) + 1))
    share[:, 0] = 1.0  # by number of successes, while no bound is reached
    reached, trials = np.zeros(len(p)), np.zeros(len(p))
    for n, bound in enumerate(bounds.tolist(), start=1):
        trials += share.sum(axis=1)
        grown = share * (1 - p)[:, None]
        grown[:, 1:] += share[:, :-1] * p[:, None]
        if bound <= n:
            reached += grown[:, bound:].sum(axis=1)
            grown[:, bound:] = 0.0
        share = grown
    return reached, trials


def expected_trials(
    p: Tensor, line: Tensor, mistaken: float = MISTAKEN, most: int = MOST_TRIALS
) -> Tensor:
    r"""The expected numbers of trials until rows are shown to be right.

    Args:
        p: ``n`` probabilities of a result on the claim's side.
        line: ``n`` lines where the claim is just wrong; see ``least_successes``.
        mistaken: The probability that trials make a wrong row look right.
        most: The largest number of trials of a row.

    Example:
        >>> p = torch.tensor([1.0, 0.9, 0.8])
        >>> expected_trials(p, torch.full_like(p, 0.7)).round(decimals=1)
        tensor([ 3.0000,  6.6000, 29.3000])
    """
    found, step = torch.ones_like(p), _steps(line)
    for k in step.unique().tolist():
        rows = step == k
        bounds = least_successes(k / STEPS, mistaken, most).numpy()
        grid = np.linspace(0.0, 1.0, 101)
        trials = np.interp(p[rows].cpu().numpy(), grid, _paths(bounds, grid)[1])
        found[rows] = torch.from_numpy(trials).to(p)
    return found


def _steps(line: Tensor) -> Tensor:
    r"""The numbers of the steps at lines, or next above them."""
    return (line * STEPS - ROUNDING).ceil().clamp(0, STEPS).long()


def shows_more(
    successes: Tensor, trials: Tensor, line: Tensor, mistaken: float, most: int
) -> tuple[Tensor, Tensor]:
    r"""Whether trials show that probabilities exceed lines, and how many more might.

    Args:
        successes: ``n`` numbers of successes.
        trials: ``n`` numbers of trials. Of more than ``most`` the latest ones count as
            if they had succeeded first: it is not known which of them did.
        line: ``n x L`` lines.
        mistaken: The probability that a row's trials ever show it though it is wrong.
        most: The largest number of trials of a row.

    Returns:
        ``n x L`` bools, and ``n x L`` least numbers of further trials that would show
        it, if all of them succeed; 0 where it is shown, ``most + 1`` where none can.
    """
    each, place = _steps(line).unique(return_inverse=True)
    tables = [least_successes(k / STEPS, mistaken, most) for k in each.tolist()]
    # Before any trial nothing is shown, but where a claim cannot be wrong.
    first = (each > 0).long().unsqueeze(-1)
    ahead = torch.arange(most + 1, device=line.device)
    lacks = torch.cat((first, torch.stack(tables).to(first)), dim=1) - ahead
    n = trials.clamp_max(most).unsqueeze(-1)
    # Trials that succeed leave the number of failures as it is.
    enough = (successes - trials).view(-1, 1, 1) >= lacks[place]
    enough &= ahead >= n.unsqueeze(-1)
    more = torch.where(enough.any(-1), enough.long().argmax(-1) - n, most + 1)
    return more == 0, more
