r"""Evidence in told values against what was stated, or that a model does not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.confidence.calibration import growing_noise
from botorch_lse.data.observations import Observations
from botorch_lse.models import correlated
from botorch_lse.surrogate.assumptions import (
    Refuted,
    are_many,
    norm_refuted,
    off_their_values,
)
from botorch_lse.surrogate.outputs import GaussianProcesses
from botorch_lse.surrogate.posterior import Posterior
from botorch_lse.surrogate.remarks import (
    Remark,
    of_logarithms,
    on_decades,
    on_far_values,
    on_few_levels,
    on_growing_noise,
    on_model,
    on_noise,
    on_norm,
    on_stated_noise,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""The remarks on told values, after each round.

    Args:
        model: What is believed of each output.
        levels_near: From the number of an output, and values of it, to the levels that
            matter there.
        norm_bound: The bound of the function's norm, if one was stated.
    """

    model: GaussianProcesses
    levels_near: Callable[[int, Tensor], list[float]]
    norm_bound: float | None = None

    @cached_property
    def before(self) -> tuple[Remark, ...]:
        r"""The remark on the points of values from before the run."""
        first, pool = self.model.outputs[0], self.model.candidates
        if first.history is None:  # all outputs were measured at the same points
            return ()
        found = on_far_values(first.history.X, pool.bounds, pool.names)
        return () if found is None else (found,)

    def remarks(
        self,
        fits: Posterior,
        refuted: Sequence[Refuted | None],
        repeated: Observations,
        used: Observations,
        history: Observations,
    ) -> tuple[Remark, ...]:
        r"""All remarks but those on slips.

        Args:
            fits: The posteriors.
            refuted: For each output what repeats say against the stated noise.
            repeated: The observations in which they are.
            used: The observations that the posteriors rest on.
            history: All observations.
        """
        found = [*self.before]
        for j, own in enumerate(self.model.layout.by_output(repeated)):
            if (one := refuted[j]) is not None:
                rows = self.model.layout.rows_of(j, own.indices[one.places].unique())
                found.append(on_stated_noise(one, rows.tolist(), j))
        if fits.is_informed and self.model.burn_in is None:
            found += self._on_models(fits, used)
        if fits.is_informed:
            found += self._on_growth(fits, used)
        if not self.model.is_fixed:
            found += self._on_values(fits, history)
        return tuple(found)

    def in_units(self, remarks: Sequence[Remark]) -> tuple[Remark, ...]:
        r"""The remarks, saying so where their numbers are logarithms."""
        return tuple(
            of_logarithms(remark)
            if self.model.outputs[remark.output].scale is not None
            else remark
            for remark in remarks
        )

    def _on_models(self, fits: Posterior, used: Observations) -> list[Remark]:
        r"""The remarks on measured values that contradict a stated model or norm."""
        found = []
        parts = zip(
            self.model.outputs,
            self.model.layout.by_output(used),
            fits.posteriors,
            fits.noise_of(used),
            strict=True,
        )
        for j, (output, own, posterior, noise) in enumerate(parts):
            # The default model with a noise of its own has nothing that was stated.
            is_stated = output.model is not None or own.yvar is not None
            is_stated &= output.outcome is None
            is_own = torch.equal(posterior.indices, own.indices)
            if len(own) == 0 or posterior.is_correlated or not (is_stated and is_own):
                continue
            noise = torch.maximum(noise, posterior.least_noise)
            is_off = off_their_values(posterior.L, posterior.a, own.y, noise)
            given = posterior.L, posterior.a, noise
            if self.norm_bound is not None and norm_refuted(*given, self.norm_bound):
                found.append(on_norm(self.norm_bound))
            if are_many(is_off):
                rows = own.indices[is_off].unique().tolist()
                found.append(on_model(int(is_off.sum()), len(own), rows, j))
        return found

    def _on_growth(self, fits: Posterior, used: Observations) -> list[Remark]:
        r"""The remarks on values that contradict a noise equal everywhere."""
        found = []
        for j, own in enumerate(self.model.layout.by_output(used)):
            posterior, output = fits.posteriors[j], self.model.outputs[j]
            if output.outcome is not None:
                continue
            noise, y = fits.noise_of(used)[j], own.y
            if output.history is not None:
                before = output.noise_of_history(posterior.prior)
                noise, y = torch.cat((before, noise)), torch.cat((output.history.y, y))
            if len(y) == 0 or bool((noise != noise[0]).any()):
                continue
            told = posterior.errors_ahead()
            if posterior.is_correlated:
                told = told[:, correlated.own_data(posterior)]
            predicted, sigma, errors = told
            variance = torch.maximum(noise[0], posterior.least_noise)
            factors = growing_noise(predicted, errors, variance / sigma.square())
            if factors is not None:
                small, large = (float(variance) ** 0.5 * factor for factor in factors)
                is_positive = min([*self.levels_near(j, y), float(y.min())]) > 0
                is_positive &= output.scale is None
                found.append(on_growing_noise((small, large), is_positive, j))
        return found

    def _on_values(self, fits: Posterior, history: Observations) -> list[Remark]:
        r"""The remarks on values that a fitted model takes for others than they are."""
        found: list[Remark | None] = []
        for j, own in enumerate(self.model.layout.by_output(history)):
            if self.model.outputs[j].outcome is not None:
                continue
            between = fits.posteriors[j].prior.noise_between
            if between is not None:
                is_repeated = self.model.n_replicates(own) > 0
                found.append(on_noise(between, is_repeated, j))
            if not (self.model.are_classes and j):  # of each class it would be the same
                found.append(on_few_levels(own.y, own.indices, j))
            is_told = self.model.outputs[j].scale is None and history.yvar is None
            if len(own) and is_told:  # noise that is known is in units
                levels = self.levels_near(j, own.y)
                found.append(on_decades(own.y, levels, j))
        return [remark for remark in found if remark is not None]
