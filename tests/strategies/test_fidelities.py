r"""Sources that are numbers, and old values at any number, through whole runs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Above, GaussianProcess, History, Observations, Pool, Strategy
from botorch_lse.ax.storage import (
    decode_pool,
    decode_strategy,
    encode_pool,
    encode_strategy,
)
from botorch_lse.models import (
    Discrepancies,
    FidelityDiscrepancies,
    IndependentSources,
    LikeliestSources,
    source_kernel,
)
from botorch_lse.models.sources import fit_sources
from botorch_lse.strategies import State

N = 21
LINE = torch.linspace(0, 10, N, dtype=torch.float64)
BARE = Pool(LINE.unsqueeze(-1), names=("x",))
MESHES = BARE.at_sources((0.25, 0.5, 1.0), costs=(1, 4, 50), noise_var=(0, 0, 0))
LEVEL = 0.3


FREQUENCY = 1.5


def values(X: torch.Tensor) -> torch.Tensor:
    r"""A simulation whose error shrinks as its second input nears 1."""
    x, mesh = X.unbind(dim=-1)
    return torch.sin(FREQUENCY * x) + (1 - mesh).square() * (0.3 * x + 1.0)


def old_points(n: int = 24) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    u = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return u * torch.tensor([10.0, 0.6]) + torch.tensor([0.0, 0.3])


OLD = old_points()


def history(source: object = OLD[:, 1]) -> History:
    return History(OLD[:, :1], values(OLD), torch.zeros(len(OLD)), source=source)


def play(strategy: Strategy, most: int = 40) -> State:
    r"""A run in which the target alone can be measured."""
    state = strategy.exclude(strategy.init(), torch.arange(2 * N))
    while state.stop_reason is None and state.n_used < most:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, values(MESHES.X[rows])))
    return state


# --- what a source is called ----------------------------------------------------------


def test_numbers_stand_in_the_last_column_as_they_are() -> None:
    pool = BARE.at_sources((0.5, 2, 1), costs={0.5: 3, 1: 5, 2: 9}, target=1)
    assert pool.X[::N, -1].tolist() == [0.5, 2.0, 1.0]
    assert pool.costs is not None
    assert pool.costs[::N].tolist() == [3, 9, 5]
    assert pool.target == 2
    assert pool.sources == ("0.5", "2.0", "1.0")
    assert pool.to_frame()["source"].tolist()[::N] == [0.5, 2.0, 1.0]
    again = decode_pool(json.loads(json.dumps(encode_pool(pool))))
    assert again.is_fidelity
    assert torch.equal(again.X, pool.X)
    # Texts are names, whatever they look like.
    named = BARE.at_sources(("0.5", "2"), costs=(1, 2))
    assert not named.is_fidelity
    assert named.X[::N, -1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("numbers", [(1, 1.0), (0.5, float("nan"))])
def test_numbers_of_sources_are_finite_and_differ(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="`sources"):
        BARE.at_sources(numbers, costs=(1, 2))


def test_a_sheet_of_numbers_is_told_by_what_its_lines_say() -> None:
    strategy = Strategy(MESHES, Above(LEVEL))
    sheet = strategy.ask(strategy.init(), size=5)
    frame = sheet.to_frame().drop(columns="pool_index").assign(y=1.0)
    frame["source"] = frame["source"].map(str)  # as a file may have it
    told = Observations.from_frame(frame, "y", pool=MESHES)
    assert told.indices.tolist() == sheet.order.tolist()


@pytest.mark.parametrize(
    "source",
    [
        OLD[:, 1],
        OLD[:, 1].numpy(),
        OLD[:, 1].tolist(),
        tuple(map(str, OLD[:, 1].tolist())),
    ],
    ids=["tensor", "array", "list", "texts"],
)
def test_each_old_value_may_have_a_number_of_its_own(source: object) -> None:
    assert torch.equal(history(source).on(MESHES).X, OLD)


def test_a_table_of_old_values_may_have_a_column_of_sources() -> None:
    frame = pd.DataFrame(OLD.numpy(), columns=["x", "source"], index=range(5, 29))
    told = History(frame[::-1], pd.Series(values(OLD).numpy(), index=frame.index))
    assert torch.equal(told.on(MESHES).X, OLD.flip(0))
    assert torch.equal(told.on(MESHES).y, values(OLD).flip(0))
    by_label = History(frame[["x"]][::-1], values(OLD).flip(0), source=frame["source"])
    assert torch.equal(by_label.on(MESHES).X, OLD.flip(0))
    named = BARE.at_sources(("a", "b"), costs=(1, 2))
    frame["source"] = ["a", "b"] * 12
    told = History(frame, values(OLD)).on(named)
    assert told.X[:, -1].tolist() == [0.0, 1.0] * 12


def test_one_number_stands_for_all_and_levels_but_for_rounding() -> None:
    for source, wanted in ((0.37, 0.37), (0.1 + 0.15, 0.25), ("0.5", 0.5), (None, 1.0)):
        assert {*history(source).on(MESHES).X[:, -1].tolist()} == {wanted}
    with_number = History(OLD, values(OLD)).on(MESHES)
    assert torch.equal(with_number.X, OLD)


def test_a_last_column_that_is_no_source_is_refused() -> None:
    named = BARE.at_sources(("a", "b"), costs=(1, 2))
    assert History([[1.0, 1.0]], [0.5]).on(named).X.tolist() == [[1.0, 1.0]]
    for number in (0.37, 2.0, -1.0):
        with pytest.raises(ValueError, match="to be a source of the pool") as e:
            History([[1.0, number]], [0.5]).on(named)
        assert f"got {number}" in str(e.value)


# --- runs -----------------------------------------------------------------------------

LEARNT = {
    "default": None,
    "fidelity": FidelityDiscrepancies(),
    "either": LikeliestSources((FidelityDiscrepancies(), IndependentSources())),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("model", LEARNT.values(), ids=LEARNT)
def test_old_values_at_any_numbers_spare_measurements(model: object) -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=GaussianProcess(model))
    alone, knows = play(strategy), play(strategy.with_history(history()))
    for state in (alone, knows):
        assert state.stop_reason == "decided"
        assert torch.equal(state.classification.above, values(MESHES.X)[-N:] > LEVEL)
    assert knows.n_used <= 0.8 * alone.n_used
    told = knows.strategy.replay(knows.observations, excluded=knows.excluded)
    assert torch.equal(told.classification.mean, knows.classification.mean)
    assert told.stop_reason == knows.stop_reason


@pytest.mark.parametrize("model", LEARNT.values(), ids=LEARNT)
def test_a_stored_run_with_old_values_at_any_numbers_goes_on(model: object) -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=GaussianProcess(model))
    strategy = strategy.with_history(history())
    rows = torch.tensor([3, N + 8, 2 * N + 1, 2 * N + 9])
    state = strategy.tell(strategy.init(), Observations(rows, values(MESHES.X[rows])))
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    again = decode_strategy(stored, decode_pool(encode_pool(MESHES)))
    other = again.tell(again.init(), Observations(rows, values(MESHES.X[rows])))
    assert torch.equal(state.classification.mean, other.classification.mean)
    assert not state.is_done
    assert torch.equal(strategy.ask(state).order, again.ask(other).order)


def test_a_strategy_keeps_the_numbers_of_its_own_history() -> None:
    own = GaussianProcess(FidelityDiscrepancies(), history=history())
    stored = encode_strategy(Strategy(MESHES, Above(LEVEL), model=own))
    again = decode_strategy(json.loads(json.dumps(stored)), MESHES)
    assert torch.equal(again.model.history.on(MESHES).X, OLD)


def test_old_values_of_useless_numbers_are_left() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(len(OLD), generator=generator, dtype=torch.float64)
    useless = History(OLD[:, :1], noise, torch.zeros(len(OLD)), source=OLD[:, 1])
    strategy = Strategy(MESHES, Above(LEVEL)).with_history(useless)
    rows = 2 * N + torch.arange(0, N, 3)
    y = values(MESHES.X[rows])
    state = strategy.tell(strategy.init(), Observations(rows, y))
    alone = Strategy(MESHES, Above(LEVEL), model=GaussianProcess(IndependentSources()))
    other = alone.tell(alone.init(), Observations(rows, y))
    error = (state.classification.mean - values(MESHES.X)[-N:]).abs().mean()
    wanted = (other.classification.mean - values(MESHES.X)[-N:]).abs().mean()
    assert float(error) == pytest.approx(float(wanted), rel=0.05)


@pytest.mark.parametrize("is_known", [True, False])
def test_values_of_numbers_with_one_value_each_teach_a_shift(is_known: bool) -> None:
    r"""Each number has one value, so that means of their own would tell nothing."""
    x = torch.cat((LINE[::3], LINE[1::3]))
    number = torch.cat((torch.ones(7), torch.linspace(0.3, 0.9, 7))).double()
    X = torch.stack((x, number), dim=-1)
    y = torch.sin(x) + 20.0 * (1 - number)
    noise = torch.full((len(y), 1), 1e-6).double() if is_known else None
    pool = BARE.at_sources((0.5, 1.0), costs=(1, 9))
    prior = fit_sources(FidelityDiscrepancies(), X, y.unsqueeze(-1), noise, pool)
    known = torch.full_like(y, 1e-6) if is_known else prior.new_noise(X)
    after = prior.given(X, y, known)
    with torch.no_grad():
        at = after.features(pool.X)
        error = (after.mean(at) - torch.sin(pool.X[:, 0]))[N:].abs()
    assert float(error.mean()) < 0.2
    assert float(after.mean(at)[:N].mean().detach()) == pytest.approx(10.0, abs=1.5)


# --- what is refused ------------------------------------------------------------------


def test_models_of_names_take_no_other_numbers() -> None:
    for model in (
        Discrepancies(),
        LikeliestSources((FidelityDiscrepancies(), Discrepancies())),
    ):
        strategy = Strategy(MESHES, Above(LEVEL), model=GaussianProcess(model))
        strategy.with_history(history(0.5))
        with pytest.raises(ValueError, match=r"`history\.source`") as e:
            strategy.with_history(history(0.37))
        assert "got 0.37. Leave `model` out, or use `Fidelity" in str(e.value)


def test_given_loadings_go_with_names() -> None:
    kernel = source_kernel([RBFKernel(), RBFKernel()], np.eye(2), d=1)
    model = GaussianProcess(kernel, noise_std=0.1)
    bare = Pool(BARE.X).at_sources((0.5, 1.0), costs=(1, 2))
    with pytest.raises(ValueError, match="sources with names") as e:
        Strategy(bare, Above(LEVEL), model=model)
    assert 'Write `at_sources(("0.25", "0.5"), ...)`.' in str(e.value)
    Strategy(Pool(BARE.X).at_sources(("0.5", "1"), (1, 2)), Above(LEVEL), model=model)


def test_there_is_one_source_or_one_for_each_point() -> None:
    with pytest.raises(ValueError, match="`source` to be one, or one for each of 24"):
        history([0.5, 0.4])
    for wrong in ("fine", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="or another number, but got"):
            history(wrong).on(MESHES)
