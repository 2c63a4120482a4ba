r"""Data sets of the demo and the tutorials, and the F1 score of an answer.

A real sea bed, the chart off Vancouver Island that comes with matplotlib, and a test of
web pages with unequal noise. The truth is known, so that answers can be judged.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy  # which loads its packages when they are first used
import torch
from torch import Tensor

from botorch_lse.data.pool import Pool

FOOTPRINT = 1.5
"""The standard deviation of the sonar's footprint, in cells of the chart."""

KM_PER_DEGREE = 111.195
"""The length of one degree of latitude on a sphere of 6,371 km radius."""


@dataclass(frozen=True, eq=False)
class Bathymetry:
    r"""The sea cells of a chart and their depth.

    Args:
        pool: ``N`` cells; inputs ``x_km`` (east) and ``y_km`` (north) from the chart's
            south-west corner, a table with ``longitude`` and ``latitude`` (degrees),
            ``row`` (0 is the southernmost) and ``column`` of the chart besides.
        depth: ``N`` depths in metres, positive down, float64.
    """

    pool: Pool
    depth: Tensor


def bathymetry(raw: bool = False) -> Bathymetry:
    r"""The 4,841 sea cells of matplotlib's sample ``topobathy.npz``.

    By default the depth is averaged over a sonar footprint: a Gaussian of 1.5 cells
    (about 4 km) over the sea cells, land left out.

    Args:
        raw: Whether to leave the chart as it is, which is rougher than a stationary
            Gaussian process.
    """
    from matplotlib.cbook import get_sample_data

    chart: Any = get_sample_data("topobathy.npz")
    with chart:
        depth, longitude, latitude = (
            chart[name].astype(float) for name in ("topo", "longitude", "latitude")
        )
    depth = -depth
    sea = depth > 0
    if not raw:
        inside = scipy.ndimage.gaussian_filter(sea.astype(float), FOOTPRINT)
        total = scipy.ndimage.gaussian_filter(np.where(sea, depth, 0.0), FOOTPRINT)
        depth = total / np.maximum(inside, np.finfo(float).tiny)
    row, column = np.nonzero(sea)
    shrink = np.cos(np.radians(latitude.mean()))
    east = (longitude - longitude.min()) * KM_PER_DEGREE * shrink
    north = (latitude - latitude.min()) * KM_PER_DEGREE
    inputs = pd.DataFrame({"x_km": east[column], "y_km": north[row]})
    degrees = {"longitude": longitude[column], "latitude": latitude[row]}
    table = inputs.assign(**degrees, row=row, column=column)
    return Bathymetry(Pool(inputs, table=table), torch.from_numpy(depth[sea]))


@dataclass(frozen=True, eq=False)
class WebPage:
    r"""Layouts of a page: revenues linear in features, variances in their squares.

    Args:
        X: ``N x d`` features.
        theta: ``d`` coefficients of the mean revenue per visitor.
        Sigma: ``d`` coefficients of the variance of a visitor's revenue.
        names: ``N`` names: which variant of each part, 0 or 1.
    """

    X: Tensor
    theta: Tensor
    Sigma: Tensor
    names: tuple[str, ...]

    @property
    def means(self) -> Tensor:
        r"""The true mean revenues per visitor (``N``)."""
        return self.X @ self.theta

    @property
    def variances(self) -> Tensor:
        r"""The true variances of a visitor's revenue (``N``)."""
        return self.X.square() @ self.Sigma


def web_page() -> WebPage:
    r"""Eight layouts of a page with 2 variants of each of 3 parts; pairs interact.

    The features are a constant, one 0/1 column for each part, and the products of two
    of them.

    Source:
        Weltz et al. (2023), Example 3, erratum 5 (papers/weltz2023/errata.md).
    """
    layouts = list(itertools.product((0, 1), repeat=3))
    a, b, c = torch.tensor(layouts, dtype=torch.float64).T
    X = torch.stack((torch.ones_like(a), a, b, c, a * b, a * c, b * c), dim=1)
    theta = X.new_tensor([0.0, 0.01, 0.015, 0.02, -0.1, -0.1, -0.1])
    Sigma = X.new_tensor([0.3, 0.7, *[1e-3] * 5])
    names = tuple("".join(map(str, layout)) for layout in layouts)
    return WebPage(X, theta, Sigma, names)


def f1_score(predicted: Tensor, truth: Tensor) -> float:
    r"""The F1 score ``2 TP / (2 TP + FP + FN)``; rows above the level are positive.

    Args:
        predicted: ``N`` bools.
        truth: ``N`` bools.

    Returns:
        A number in [0, 1]; 1 if there is no positive and none is claimed.
    """
    hits = int((predicted & truth).sum())
    misses = int((predicted ^ truth).sum())
    return 1.0 if hits + misses == 0 else 2.0 * hits / (2.0 * hits + misses)
