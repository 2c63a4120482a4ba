r"""Psychometric functions: published ones, and fifteen of our own.

The published ones are those on which models of psychometric functions are compared:
contrast sensitivity and two problems of discrimination (``peers outcomes``), detection
of a new stimulus, and the hearing of four kinds of ears at two slopes each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor

from research.benchmark.peers_outcomes_problems import (
    PROBLEMS,
    Problem,
    low_dimensional,
)

LEVEL = 0.75
SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "line": lambda t: t,
    "square": lambda t: t.sign() * t.square() * 1.5,
    "step": lambda t: 0.3 * t + 0.7 * (6 * t).tanh() * 0.6,
    "logarithm": lambda t: t.sign() * (1 + 4 * t.abs()).log() * 0.6,
    "bend": lambda t: torch.where(t > 0, 1.6 * t, 0.6 * t),
}
"""From the distance to the threshold to the latent value over the slope."""
INPUTS = (2, 3, 5)
FREQUENCIES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
"""In kHz, where thresholds of hearing were measured."""
EARS = {
    "older, normal": (6.816404934, 5.488517768, 3.512856308, 5.909671334,
                      6.700337017, 10.08761498, 13.46962853, 12.97026073),
    "sensory": (5.520856346, 4.19296918, 5.618122764, 19.83681866,
                42.00403606, 53.32679981, 62.0527006, 66.08775286),
    "metabolic": (21.2291323, 22.00676227, 24.24163372, 33.92590956,
                  41.35626176, 47.17294402, 54.1174655, 58.31446133),
    "metabolic and sensory": (20.25772154, 20.71121368, 21.97442369, 37.48866818,
                              53.17814263, 64.01507567, 75.00818649, 76.61433583),
}  # fmt: skip
"""The threshold at each frequency, in dB."""
SPREADS = (2.0, 0.5)
"""By how many dB the latent value of an ear rises by 1."""


def psychometric(shape: str, d: int) -> Problem:
    r"""A function of ``d`` inputs that rises with the first.

    Args:
        shape: One of ``SHAPES``.
        d: The number of inputs.
    """
    k = list(SHAPES).index(shape)

    def latent(u: Tensor) -> Tensor:
        x, *others = u.unbind(dim=-1)
        waves = [((2.0 + 0.5 * k) * z + j).sin() for j, z in enumerate(others)]
        bends = [(3.0 * z - 0.7 * k + j).cos() for j, z in enumerate(others)]
        threshold = 0.5 + 0.3 * sum(waves[1:], waves[0]) / len(others)
        slope = 7.0 * (1 + 0.4 * sum(bends[1:], bends[0]) / len(others))
        return slope * SHAPES[shape](x - threshold)

    return Problem(d, LEVEL, latent, {})


def novel_detection(u: Tensor) -> Tensor:
    r"""Detection of a stimulus by its intensity and a context.

    Source:
        Owen et al. (2021), "Adaptive nonparametric psychophysics"; its latent function
        is twice that of ``low_dimensional``, less 4, so that no answer is a guess.
    """
    return 2 * low_dimensional(u) - 4


def audiogram(thresholds: Sequence[float], spread: float) -> Problem:
    r"""Whether a tone is heard, by its frequency (1/8 to 16 kHz) and loudness.

    Args:
        thresholds: Those of the ear at ``FREQUENCIES``, in dB.
        spread: By how many dB the latent value rises by 1.

    Source:
        Song, Garnett and Barbour (2017), "Psychometric function estimation by
        probabilistic classification", as in Owen et al. (2021). Thresholds are those of
        Dubno et al. (2013), figure 2; between them a cubic spline in the frequency,
        beyond them the lines through the last two. Tones have -20 to 120 dB.
    """
    spline = CubicSpline(FREQUENCIES, thresholds)

    def latent(u: Tensor) -> Tensor:
        frequency = np.exp2(-3 + 7 * u[..., 0].numpy())
        inside = np.clip(frequency, FREQUENCIES[0], FREQUENCIES[-1])
        slopes = np.diff(thresholds) / np.diff(FREQUENCIES)
        slope = np.where(frequency < inside, slopes[0], slopes[-1])
        threshold = spline(inside) + slope * (frequency - inside)
        return (-20 + 140 * u[..., 1] - torch.as_tensor(threshold)) / spread

    return Problem(2, LEVEL, latent, {})


FUNCTIONS = {
    f"{shape}, {d}-D": psychometric(shape, d) for d, shape in product(INPUTS, SHAPES)
}
AUDIOGRAMS = {
    f"audiogram, {ear}, {spread:g} dB": audiogram(thresholds, spread)
    for ear, thresholds in EARS.items()
    for spread in SPREADS
}
ALL = PROBLEMS | {"novel detection, 2-D": Problem(2, LEVEL, novel_detection, {})}
ALL |= AUDIOGRAMS | FUNCTIONS
PUBLISHED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "discrimination, 2-D": ((1,), ()),
    "novel detection, 2-D": ((1,), ()),
    "contrast sensitivity, 6-D": ((0, 1, 4), (5,)),
    "discrimination, 8-D": ((0,), ()),
} | dict.fromkeys(AUDIOGRAMS, ((1,), ()))
"""The inputs with which a published problem rises and falls, the intensity first.

With contrast, luminance (the pedestal) and size a pattern is seen better, with its
eccentricity worse, as any text on vision says; frequencies have a best one.
"""
