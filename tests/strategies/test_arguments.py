r"""What strategies make of the rows that they are given."""

from __future__ import annotations

import pytest
import torch

from botorch_lse.data.arguments import FEW_INPUTS, points_of

GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.parametrize("n_inputs", [1, 2, 3, FEW_INPUTS, FEW_INPUTS + 3])
@pytest.mark.parametrize("n_values", [1, 2, 5, 10**9])
@pytest.mark.parametrize("n_rows", [1, 2, 60])
def test_points_are_numbered_as_sorted_rows(n_rows, n_values, n_inputs) -> None:
    shape = (n_rows, n_inputs)
    X = torch.randint(-n_values, n_values, shape, generator=GENERATOR).double() / 3
    wanted = torch.unique(X, dim=0, return_inverse=True)[1]
    assert torch.equal(points_of(X), wanted)


def test_zeros_of_both_signs_are_one_point() -> None:
    X = torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.0, -0.0], [-0.0, 0.0]]).double()
    assert points_of(X).tolist() == [1, 1, 0, 0]


def test_there_may_be_no_rows() -> None:
    assert len(points_of(torch.zeros(0, 3).double())) == 0
