import pytest
import torch

from botorch_lse import Pool
from botorch_lse.ax import POOL_INDEX, pool_parameters
from botorch_lse.ax.pool_space import parameters_of, row_of

from .worlds import grid_pool


def test_the_search_space_is_the_rows():
    (parameter,) = pool_parameters(grid_pool())
    assert parameter.name == POOL_INDEX
    assert parameter.bounds == (0, 35)
    assert parameter.parameter_type == "int"


def test_rows_come_back():
    for row in (0, 7, 35):
        assert row_of(parameters_of(row), 36, "trial 0") == row
    assert row_of({POOL_INDEX: 4.0}, 36, "trial 0") == 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({POOL_INDEX: -1}, "trial 4 to be a row of the pool, 0 to 35, but got -1; the "
         "nearest is 0"),
        ({POOL_INDEX: 36}, "the nearest is 35"),
        ({POOL_INDEX: 1.5}, "whole number, but got 1.5"),
        ({POOL_INDEX: True}, "whole number, but got True"),
        ({"x": 1}, r"parameter `pool_index`, but it has \['x'\]"),
    ],
)  # fmt: skip
def test_what_is_not_a_row_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        row_of(parameters, 36, "trial 4")


def test_a_pool_of_one_row_is_refused():
    with pytest.raises(ValueError, match="at least 2 rows"):
        pool_parameters(Pool(torch.zeros(1, 1)))
