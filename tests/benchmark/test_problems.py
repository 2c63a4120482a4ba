import math

import numpy as np
import pytest
import torch

from botorch_lse.benchmark.problems import bathymetry, gp_sample, grid, matern_prior


def test_sea_has_4841_cells_and_depth_is_positive_down() -> None:
    chart = bathymetry(raw=True)
    assert len(chart.pool) == 4841
    assert float(chart.depth.min()) > 0.0
    assert float(chart.depth.max()) == 1437.0
    assert chart.pool.names == ("x_km", "y_km")
    table = chart.pool.to_frame()
    deepest = table.iloc[int(chart.depth.argmax())]
    assert (
        chart.on_map(chart.depth)[int(deepest["row"]), int(deepest["column"])] == 1437
    )


def test_kilometres_agree_with_the_great_circle() -> None:
    table = bathymetry().pool.to_frame()
    a, b = table.iloc[100], table.iloc[140]
    phi, psi = math.radians(a["latitude"]), math.radians(b["latitude"])
    turn = math.radians(b["longitude"] - a["longitude"])
    cosine = math.sin(phi) * math.sin(psi)
    cosine += math.cos(phi) * math.cos(psi) * math.cos(turn)
    flat = math.hypot(b["x_km"] - a["x_km"], b["y_km"] - a["y_km"])
    assert flat == pytest.approx(6371.0 * math.acos(cosine), rel=0.03)


def test_footprint_leaves_land_out_and_keeps_averages_between_extremes() -> None:
    raw, smooth = bathymetry(raw=True), bathymetry()
    assert float(smooth.depth.min()) >= float(raw.depth.min())
    assert float(smooth.depth.max()) <= float(raw.depth.max())
    assert float(smooth.depth.std()) < float(raw.depth.std())
    assert np.isnan(smooth.on_map(smooth.depth)[~smooth.mask]).all()


def test_samples_have_the_covariance_of_the_prior() -> None:
    draws = torch.stack(
        [gp_sample(seed, 3, (0.3, 0.6), 2.0)[2] for seed in range(4000)]
    )
    X = grid(3)
    prior = matern_prior((0.3, 0.6), 2.0)
    expected = prior.covariance(X, X)
    error = 4 * (2 / 4000) ** 0.5
    assert float((draws.T.cov() - expected).abs().max()) < error
    assert float((draws.mean(dim=0) - 2.0).abs().max()) < 4 / 4000**0.5


def test_a_sample_is_a_function_of_its_seed() -> None:
    assert torch.equal(gp_sample(3, 5, (0.2, 0.2))[2], gp_sample(3, 5, (0.2, 0.2))[2])
    assert not torch.equal(
        gp_sample(3, 5, (0.2, 0.2))[2], gp_sample(4, 5, (0.2, 0.2))[2]
    )
