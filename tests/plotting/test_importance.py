r"""How much each input explains, against functions whose shares are known."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.plotting import importance_frame
from botorch_lse.strategies import MELKLinearStrategy

T = torch.linspace(0, 1, 9, dtype=torch.float64)
GRID = torch.cartesian_prod(T, T, T)


def after(pool, f, every=4):
    strategy = Strategy(pool, Above(0.5), model=GaussianProcess(noise_std=0.01))
    rows = torch.arange(0, len(pool), every)
    return strategy.tell(strategy.init(), Observations(rows, f[rows]))


def test_shares_of_a_sum_are_those_of_its_variances() -> None:
    f = 2 * GRID[:, 0] + GRID[:, 1]  # variances 4 to 1 to 0
    frame = importance_frame(after(Pool(GRID), f, every=7))
    assert frame["input"].tolist() == ["x0", "x1", "x2"]
    for share, low, high, exact in zip(
        frame["share"], frame["lower"], frame["upper"], (0.8, 0.2, 0.0), strict=True
    ):
        assert share == pytest.approx(exact, abs=0.03)
        assert low - 0.03 <= exact <= high + 0.03


@pytest.mark.slow
def test_what_two_inputs_do_together_is_in_no_share() -> None:
    f = (GRID[:, 0] - 0.5) * (GRID[:, 1] - 0.5)
    frame = importance_frame(after(Pool(GRID), f, every=7))
    assert frame["share"].max() < 0.05


def test_a_word_is_one_input_and_what_is_not_known_is_uncertain() -> None:
    table = pd.DataFrame({"soil": ["clay", "sand", "silt"] * 30, "depth": range(90)})
    pool = Pool(table)
    f = 2.0 * torch.tensor(table["soil"] == "sand") + 0.001 * torch.arange(90)
    many = importance_frame(after(pool, f, every=2)).set_index("input")
    assert many.index.tolist() == ["soil", "depth"]
    assert many.loc["soil", "share"] > 0.9
    few = importance_frame(after(pool, f, every=7)).set_index("input")
    width = many["upper"] - many["lower"]
    assert (few["upper"] - few["lower"])["soil"] >= width["soil"]


def test_rows_count_by_their_weights() -> None:
    X = torch.cartesian_prod(T, T)
    f = torch.where(X[:, 0] < 0.5, X[:, 0], X[:, 1])  # by x0 on one half, x1 on another
    left = (X[:, 0] < 0.5).double()
    shares = importance_frame(after(Pool(X, weights=left), f, every=2))["share"]
    assert shares[0] > 0.9
    assert shares[1] < 0.1


@pytest.mark.slow
def test_without_a_model_it_is_refused() -> None:
    pool = Pool(GRID)
    with pytest.raises(UnsupportedError, match="a Gaussian process that was fitted"):
        importance_frame(Strategy(pool, Above(0.5)).init())
    known = after(pool, GRID[:, 0])
    for output in (1, -1, 0.5):
        with pytest.raises(ValueError, match="`output`"):
            importance_frame(known, output)
    with pytest.raises(ValueError, match="`state` to be a State"):
        importance_frame(None)
    linear = MELKLinearStrategy(pool, 0.5, noise_std=0.1)
    with pytest.raises(UnsupportedError, match="take a strategy with a model"):
        importance_frame(linear.init())
