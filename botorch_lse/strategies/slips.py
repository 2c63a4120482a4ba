r"""The search for values that were typed or measured wrongly.

A wrong value bends a fit towards itself, and several hide each other. So a value in
doubt is predicted by a model that is fitted without it, and the evidence of slips is
compared with that of a function that has such an edge or peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.calibration import Calibration
from botorch_lse.data.observations import Observations
from botorch_lse.rules.base import Belief
from botorch_lse.surrogate.outputs import MOST_SLIPS, GaussianProcesses
from botorch_lse.surrogate.remarks import CLEAR_SLIP, Slip

DOUBTFUL = 3.5
"""The deviations from what all others say beyond which a value is predicted again."""
CHANCE = 0.05
"""The probability that the largest of many right values is in doubt: a needless fit."""
TURNS = 3
"""The most times that a fit looks for further slips."""
RATE, WIDE = 0.001, 10.0
"""The share of values that are expected to be slips, and where these may lie.
In standard deviations of all values."""


def found_slips(
    model: GaussianProcesses,
    refitted: Callable[[Observations], Belief],
    calibration: Callable[[Belief, int], Calibration],
    history: Observations,
) -> tuple[Belief, tuple[Slip, ...]]:
    r"""The belief of a new model, and the values that it leaves out.

    Looked at are first the values that look odd without any fit, then those that the
    fit does not explain, a few times: the largest of several slips hide the others.

    Args:
        model: What is believed of each output.
        refitted: The belief of a new model after some observations.
        calibration: How a belief predicts each of the values that it has, by output.
        history: All observations.
    """
    search = _Search(model, refitted, calibration, history)
    found, places = _Found(refitted(history)), model.odd(history)
    for turn in range(TURNS):
        before = found
        if len(places):
            found = search.settled(before, places)
        if not model.may_slip(history) or (turn and found is before):
            break
        places = search.doubtful(found)
        if len(places) == 0:
            break
    return found.learnt, found.slips


def without(history: Observations, slips: tuple[Slip, ...]) -> Observations:
    r"""The observations except those that may be slips."""
    if not slips:
        return history
    places = torch.tensor([slip.place for slip in slips])
    return history.select(_others(places, len(history)))


def _others(places: Tensor, n: int) -> Tensor:
    r"""The places of ``n`` that are not among some."""
    kept = torch.ones(n, dtype=torch.bool)
    kept[places] = False
    return kept.nonzero().view(-1)


@dataclass(frozen=True, eq=False)
class _Found:
    r"""A belief, and the values that it leaves out."""

    learnt: Belief
    slips: tuple[Slip, ...] = ()

    @property
    def places(self) -> set[int]:
        r"""The places of the values that are left out."""
        return {slip.place for slip in self.slips}


@dataclass(frozen=True, eq=False)
class _Search:
    r"""The search in one history; see ``found_slips``."""

    model: GaussianProcesses
    refitted: Callable[[Observations], Belief]
    calibration: Callable[[Belief, int], Calibration]
    history: Observations

    def settled(self, before: _Found, places: Tensor) -> _Found:
        r"""The belief once it is settled which values in doubt are left out.

        An edge or a narrow peak is not explained by all others either. So it is also
        asked whether slips, which are rare and may have any value, are likelier.

        Args:
            before: What is believed so far.
            places: The places of the values in doubt, in order.
        """
        used = self.history.select(_others(places, len(self.history)))
        if not self.model.allows_fit(used, self.model.n_first, is_complete=False):
            return before
        learnt = self.refitted(used)
        slips = self._unexplained(learnt, places)
        if {slip.place for slip in slips} <= before.places:
            return before
        if len(slips) < len(places):
            learnt = self.refitted(without(self.history, slips))
        found = _Found(learnt, slips)
        return found if self._evidence(found) > self._evidence(before) else before

    def doubtful(self, found: _Found) -> Tensor:
        r"""The places of values that others explain least, and of those left out.

        None if no further value is in doubt.
        """
        n, layout = len(self.history), self.model.layout
        out = torch.tensor(sorted(found.places), dtype=torch.long)
        used, far = _others(out, n), torch.zeros(n, dtype=torch.float64)
        for j in range(len(found.learnt.fits.posteriors)):
            places = used[layout.places(self.history.indices[used], j)]
            error = self.calibration(found.learnt, j).out.abs()
            far[places] = far[places].maximum(error)
        worst = far.topk(max(int(MOST_SLIPS * n) - len(out), 0)).indices
        largest = -float(torch.special.ndtri(far.new_tensor(CHANCE / (2 * n))))
        more = worst[far[worst] > max(DOUBTFUL, largest)]
        return torch.cat((out, more)).unique() if len(more) else more

    def _unexplained(self, learnt: Belief, places: Tensor) -> tuple[Slip, ...]:
        r"""The values that a model of all others does not explain.

        Args:
            learnt: What is believed by all other values.
            places: The values' places in the history, in order.
        """
        fits, doubtful = learnt.fits, self.history.select(places)
        # Two that agree, of one row or of near ones, confirm each other.
        both = replace(learnt, fits=fits.observing(doubtful))
        noise, found = fits.noise_of(doubtful), []
        for j, own in enumerate(self.model.layout.by_output(doubtful)):
            if len(own) == 0:  # of another output, measured by itself
                continue
            posterior, rows = fits.posteriors[j], own.indices
            sigma = (posterior.variance[rows] + noise[j]).sqrt()
            error = self.calibration(both, j).out[-len(own) :].abs()
            at = self.model.layout.places(doubtful.indices, j)
            for k, place in enumerate(places[at].tolist()):
                moments = float(posterior.mean[rows[k]]), float(sigma[k])
                row = int(doubtful.indices[at[k]])
                slip = Slip(place, row, float(own.y[k]), *moments, j)
                if slip.is_clear and float(error[k]) > CLEAR_SLIP:
                    found.append(slip)
        return tuple(sorted(found, key=lambda slip: slip.place))

    def _evidence(self, found: _Found) -> float:
        r"""The log probability of all values, some of them slips."""
        values = self.model.layout.by_output(self.history)
        rare = (
            math.log(RATE / (WIDE * float(values[slip.output].y.std())))
            for slip in found.slips
        )
        return found.learnt.fits.log_evidence + sum(rare)
