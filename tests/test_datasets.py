import math

import pytest
import torch
from matplotlib.cbook import get_sample_data

from botorch_lse.datasets import bathymetry, f1_score


def test_sea_has_4841_cells_and_depth_is_positive_down() -> None:
    chart = bathymetry(raw=True)
    assert len(chart.pool) == 4841
    assert float(chart.depth.min()) > 0.0
    assert float(chart.depth.max()) == 1437.0
    assert chart.pool.names == ("x_km", "y_km")
    table = chart.pool.to_frame()
    deepest = table.iloc[int(chart.depth.argmax())]
    with get_sample_data("topobathy.npz") as sample:
        assert sample["topo"][int(deepest["row"]), int(deepest["column"])] == -1437


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
    assert smooth.pool.hash == raw.pool.hash


def bools(text: str) -> torch.Tensor:
    return torch.tensor([c == "1" for c in text])


@pytest.mark.parametrize(
    ("predicted", "truth", "f1"),
    [
        ("1100", "1100", 1.0),
        ("1110", "1100", 4 / 5),  # TP 2, FP 1, FN 0
        ("1000", "1100", 2 / 3),  # TP 1, FP 0, FN 1
        ("0011", "1100", 0.0),
        ("0000", "0000", 1.0),
        ("0000", "0001", 0.0),
    ],
)
def test_f1_is_that_of_hand_counted_hits(predicted: str, truth: str, f1: float) -> None:
    assert f1_score(bools(predicted), bools(truth)) == pytest.approx(f1, abs=1e-15)
