import math

import pytest
import torch

from botorch_lse import Pool
from botorch_lse.ax import POOL_INDEX
from botorch_lse.ax.compat import as_stored
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    GEGEStrategy,
    LSEStrategy,
    Strategy,
)

from .worlds import client_for, grid_pool, kernel, lse, state_of

UNKNOWN = {"noise_std": None, "model": None, "n_initial": 1, "batch_size": 1}


def told(client, *values):
    for value in values:
        for trial in client.get_next_trials(1):
            client.complete_trial(trial, {"y": value})
    return state_of(client).observations


def test_a_sem_is_the_root_of_the_noise_variance():
    observations = told(client_for(lse(batch_size=1)), (0.3, 0.2), (0.4, 0.3))
    expected = torch.tensor(as_stored([0.2, 0.3])).square()
    assert torch.equal(observations.yvar, expected)


def test_where_a_sem_is_missing_the_strategys_noise_stands():
    observations = told(client_for(lse(batch_size=1)), (0.3, 0.2), 0.4)
    assert observations.yvar[1] == 0.1**2
    x = grid_pool()
    pool = Pool(x.X, noise_var=torch.linspace(0.01, 0.02, 36, dtype=torch.float64))
    observations = told(client_for(lse(pool, noise_std=None, batch_size=1)), 0.3)
    assert torch.equal(observations.yvar, pool.noise_var[observations.indices])


BOTH = Above(0.5) & Below(0.3, output=1)
STDS = (0.1, 0.2)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("make", "objective", "wanted"),
    [
        (lambda x: LSEStrategy(x, 0.5, noise_std=0.1), "y", [[0.01]] * 2),
        (
            lambda x: Strategy(x, Above(0.5), model=GaussianProcess(noise_std=0.1)),
            "y",
            [[0.01]] * 2,
        ),
        (
            lambda x: Strategy(
                x, Above(0.5), model=GaussianProcess(kernel(), noise_std=0.1)
            ),
            "y",
            [[0.01]] * 2,
        ),
        (
            lambda x: Strategy(x, BOTH, model=GaussianProcess(noise_std=STDS)),
            "y, z",
            [[0.01, 0.04]] * 2,
        ),
        (
            lambda x: GEGEStrategy(x, maximize=(True, True), noise_std=STDS),
            "y, z",
            [[0.01, 0.04]] * 2,
        ),
        # Rows that measure one output each: row 5 the first, row 36 + 5 the second.
        (
            lambda x: Strategy(
                x.at_outputs(2, costs=(1.0, 1.0)),
                BOTH,
                model=GaussianProcess(noise_std=STDS),
            ),
            "y",
            [[0.01], [0.04]],
        ),
    ],
    ids=["preset", "learnt", "fixed", "outputs", "Pareto", "assays"],
)
def test_the_noise_that_a_part_of_the_strategy_holds_stands(make, objective, wanted):
    strategy = make(grid_pool())
    client = client_for(strategy, objective)
    metrics = objective.split(", ")
    rows = (5, len(strategy.pool) - 36 + 5)
    for row in (*rows, 7):
        trial = client.attach_trial({POOL_INDEX: row})
        known = (0.3, 0.5) if row == 7 else 0.3
        client.complete_trial(trial, dict.fromkeys(metrics, known))
    assert len(client.get_next_trials(1)) == 1
    observations = state_of(client).observations
    yvar = observations.yvar.view(3, -1).tolist()
    at = dict(zip(observations.indices.tolist(), yvar, strict=True))
    for row, variances in zip(rows, wanted, strict=True):
        assert at[row] == pytest.approx(variances)
    assert at[7] == pytest.approx([0.25] * len(metrics))


def test_unknown_noise_is_learned():
    observations = told(client_for(lse(**UNKNOWN)), 0.3, 0.4)
    assert observations.yvar is None


@pytest.mark.parametrize("values", [(0.3, (0.4, 0.1)), ((0.4, 0.1), 0.3)])
def test_mixed_known_and_unknown_noise_is_refused(values):
    client = client_for(lse(**UNKNOWN))
    with pytest.raises(ValueError, match="sem for all measurements or for none"):
        told(client, *values)


def test_mixed_noise_inside_a_round_is_refused_and_can_be_mended():
    client = client_for(lse(**{**UNKNOWN, "batch_size": 2}))
    one, other = client.get_next_trials(2)
    client.complete_trial(one, {"y": 0.3})
    client.complete_trial(other, {"y": (0.5, 0.1)})
    with pytest.raises(ValueError, match="trial 1 has one and trial 0 has not"):
        client.get_next_trials(1)
    client.attach_data(one, {"y": (0.3, 0.1)})
    assert len(client.get_next_trials(2)) == 2


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("sem", "shown"),
    [(-1.0, "-1"), (math.inf, "inf"), (-math.inf, "-inf"), (1e200, "1e\\+200")],
)
@pytest.mark.parametrize("options", [{}, UNKNOWN])
def test_a_sem_that_is_no_noise_is_refused_with_the_remedy(sem, shown, options):
    client = client_for(lse(**{**options, "batch_size": 1}))
    expected = "`sem` of trial 0 to be finite and at least 0"
    message = rf"{expected}.*but got {shown}\. .*attach_data\(0"
    with pytest.raises(ValueError, match=message):
        told(client, (0.3, sem))
    client.attach_data(0, {"y": (0.3, 0.1)})
    assert state_of(client).observations.yvar.tolist() == [as_stored([0.1])[0] ** 2]


@pytest.mark.some(1)
@pytest.mark.parametrize("sem", [0.0, 1e-12, 1e-300])
@pytest.mark.parametrize("options", [{}, UNKNOWN])
def test_a_sem_of_0_is_an_exact_measurement(sem, options):
    client = client_for(lse(**{**options, "batch_size": 1}))
    observations = told(client, (0.3, sem), (0.5, sem), (0.2, 0.1))
    assert observations.yvar.tolist() == [0.0, 0.0, as_stored([0.1])[0] ** 2]


def test_values_that_ax_cannot_store_are_refused():
    client = client_for(lse(batch_size=1))
    with pytest.raises(ValueError, match="ten decimals"):
        told(client, (3.14159e-9, 1e-3))


def test_a_nan_counts_as_no_data():
    client = client_for(lse(batch_size=1))
    trial = client.attach_trial({POOL_INDEX: 3})
    client.complete_trial(trial, {"y": (float("nan"), 0.1)})
    assert len(state_of(client).observations) == 0
