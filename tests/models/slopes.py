r"""The gradient of a fit to outcomes, held against differences of its loss."""

from __future__ import annotations

import pytest

from botorch_lse.models.latent import _Fit


def assert_gradient(fit: _Fit, step: float = 1e-4) -> None:
    r"""Compare near the start of a fit, by each of its parameters."""
    fit.settled = 1e-6  # differences of the loss are small
    x = fit.start + 0.1
    _, gradient = fit(x)
    for i in range(len(x)):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * step
            ends.append(fit(moved)[0])
        slope = (ends[0] - ends[1]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=2e-3, abs=2e-4)
