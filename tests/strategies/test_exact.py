r"""Measurements without noise: never repeated, right, and said so in the answer."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.data.observations import Observations
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import HRAGEPACStrategy, RacingStrategy, RAGEPACStrategy
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    HRAGELinearStrategy,
    HRAGEStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    MELKLinearStrategy,
    MELKStrategy,
    MILKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from tests.reference.dense_gp import DenseGP
from tests.registry import GAUSSIAN, OMEGA, PLAYED_GP, case_of
from tests.strategies.runs import grid, played

# Matern, whose draws rows near each other do not give away.
GP = DenseGP(lengthscale=(0.4, 0.5), outputscale=3.0)
X, N = grid(5), 25
F = torch.tensor(GP.sample(X.numpy(), 3))
LEVEL = 0.3
STDS = [0.0, 1e-8]


def make(of, std=0.0, pool=None, **options):
    case = case_of(of)
    return case.make(
        pool or Pool(X),
        **{
            **case.aim(LEVEL),
            "model": GPPrior.from_kernel(GP.kernel()),
            "noise_std": std,
            "batch_size": 3,
            **options,
        },
    )


def run(strategy, value=lambda row: float(F[row]), most=60):
    end = played(strategy, lambda rows, _: list(map(value, rows.tolist())), most, 1)[-1]
    assert end.is_done
    return end


def assert_no_repeats(state):
    assert int(state.observations.times_measured(N).max()) == 1


def assert_right(state, level):
    answer = state.classification
    assert (F[answer.above] > level).all()
    assert (F[answer.below] <= level).all()


@pytest.mark.some(4)
@pytest.mark.parametrize("case", PLAYED_GP)
@pytest.mark.parametrize("std", STDS)
@pytest.mark.parametrize("beta", [None, 4.0])
def test_every_strategy_ends_without_a_repeat_and_is_right(case, std, beta) -> None:
    state = run(make(case, std, beta=beta))
    assert_no_repeats(state)
    if beta is None or len(state.history) == N:
        level = float(OMEGA * F.max()) if case.is_implicit else LEVEL
        assert_right(state, level)
    assert state.stop_reason in ("decided", "audited", "rows exhausted")
    assert "count as exact, up to a noise variance of 1e-10" in (
        state.classification.guarantee
    )


@pytest.mark.some(2)
@pytest.mark.parametrize("cls", [HRAGEStrategy, TruVaRStrategy])
@pytest.mark.parametrize("std", STDS)
def test_the_maximiser_is_found_without_a_repeat(cls, std) -> None:
    state = run(make(cls, std, threshold=None))
    assert_no_repeats(state)
    assert state.stop_reason == "decided"
    assert state.classification.above.nonzero().view(-1).tolist() == [int(F.argmax())]


@pytest.mark.some(2)
@pytest.mark.parametrize("case", GAUSSIAN)
@pytest.mark.parametrize("std", STDS)
def test_pareto_sets_are_found_without_a_repeat(case, std) -> None:
    mu = torch.stack((F, torch.tensor(GP.sample(X.numpy(), 4))), dim=-1)
    strategy = case.make(
        Pool(X),
        maximize=(True, True),
        model=GPPrior.from_kernel(GP.kernel()),
        noise_std=std,
        batch_size=3,
    )
    state = run(strategy, lambda row: mu[row].tolist())
    assert_no_repeats(state)
    assert state.stop_reason in ("decided", "rows exhausted")
    exceeded = (mu[:, None] < mu).all(dim=-1).any(dim=1)
    assert not exceeded[state.classification.above].any()
    assert exceeded[state.classification.below].all()
    assert "count as exact" in state.classification.guarantee


def fitted_run(cls, std, side):
    r"""The end of a run with a learnt model, and the truth of the pool's rows."""
    pool = Pool(grid(side))
    f = (3 * pool.X).sin().sum(dim=-1)
    strategy = cls(pool, 1.2, noise_std=std, batch_size=3, beta=9.0)
    return run(strategy, lambda row: float(f[row])), f


@pytest.mark.some(4)
@pytest.mark.parametrize("cls", [LSEStrategy, MELKStrategy, StraddleStrategy])
@pytest.mark.parametrize("std", STDS)
@pytest.mark.parametrize("side", [2, 5])
def test_a_fitted_model_takes_exact_measurements(cls, std, side) -> None:
    state, f = fitted_run(cls, std, side)
    assert int(state.observations.times_measured(len(f)).max()) == 1
    assert state.belief.fits.fitted_rounds >= 0  # also where the start takes all rows


@pytest.mark.some(2)
@pytest.mark.parametrize("cls", [MELKStrategy, StraddleStrategy])
@pytest.mark.parametrize("std", STDS)
@pytest.mark.parametrize("side", [2, 5])
def test_no_exact_measurement_contradicts_the_side_of_its_row(cls, std, side) -> None:
    r"""Where regions are the last interval; of LSE, what earlier fits decided stays."""
    state, f = fitted_run(cls, std, side)
    answer = state.classification
    measured = state.observations.indices
    assert not (answer.above & (f <= 1.2))[measured].any()
    assert not (answer.below & (f > 1.2))[measured].any()


def test_exact_and_noisy_rows_are_mixed_and_only_noisy_ones_repeated() -> None:
    noise = torch.where(torch.arange(N) % 2 == 0, 0.0, 0.5)
    pool = Pool(X, noise_var=noise)
    for cls in (LSEStrategy, MELKStrategy, TruVaRStrategy):
        state = run(
            make(cls, None, pool, epsilon=0.4, max_observations=60),
        )
        times = state.observations.times_measured(N)
        assert (times[noise == 0] <= 1).all()
        assert times.max() > 1


def test_known_rows_are_closed_inside_a_batch_pending_and_later() -> None:
    strategy = make(MaxVarianceStrategy, batch_size=30, beta=1e6)
    state = strategy.init()
    batch = strategy.ask(state)
    assert sorted(batch.order.tolist()) == list(range(N))  # 30 were asked for
    some = make(MaxVarianceStrategy, batch_size=10, beta=1e6)
    state = some.init()
    first = some.ask(state).order
    second = some.ask(state, pending=first).order
    assert not set(first.tolist()) & set(second.tolist())
    state = some.tell(state, some.ask(state).observe(F[first]))
    third = some.ask(state).order
    assert not set(first.tolist()) & set(third.tolist())


def test_rows_told_as_exact_are_known_whatever_the_planned_noise() -> None:
    strategy = make(MaxVarianceStrategy, std=0.5, beta=1e6)
    told = Observations([4, 4, 7], F[[4, 4, 7]], yvar=[0.0, 0.0, 0.25])
    state = strategy.tell(strategy.init(), told)
    usable = strategy._request(state, torch.empty(0, dtype=torch.long)).left > 0
    assert (~usable).nonzero().view(-1).tolist() == [4]
    assert "count as exact" in state.classification.guarantee


def test_copies_of_a_known_row_are_known() -> None:
    pool = Pool(torch.cat((X, X[:5])))
    strategy = make(MaxVarianceStrategy, pool=pool, beta=1e6, batch_size=4)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(F[batch.order % N]))
    assert sorted(state.observations.indices.tolist()) == list(range(N))


@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize("off", [-1e-7, 1e-7])
def test_a_row_measured_exactly_is_decided_however_close_to_the_level(
    is_given, off
) -> None:
    # Closer than the least noise, which the factor of the covariance needs, tells.
    line = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(torch.cat((line, line[4:5])))  # and a copy of the row
    values = torch.sin(6 * pool.X.squeeze(-1))
    level = float(values[4]) - off
    kernel = RBFKernel()
    kernel.lengthscale = 0.2
    model = GaussianProcess(kernel if is_given else None, noise_std=0.0)
    strategy = Strategy(pool, Above(level), model=model)
    end = played(strategy, lambda rows, _: values[rows].tolist(), 30, 1)[-1]
    answer = end.classification
    assert end.stop_reason == "decided"
    assert torch.equal(answer.above, values > level)
    for row in (4, 9):
        assert answer.lower[row] == answer.mean[row] == answer.upper[row] == values[row]


def test_an_exact_level_of_noise_closes_the_others_of_its_point() -> None:
    pool = Pool(X).at_noise_levels([0.0, 0.3], [5.0, 1.0])
    strategy = TruVaRStrategy(
        pool, LEVEL, model=GP.kernel(), batch_size=4, beta=9.0, epsilon=0.2
    )
    state = strategy.tell(strategy.init(), Observations([3], F[[3]]))
    left = strategy._request(state, torch.empty(0, dtype=torch.long)).left
    assert left[3] == 0
    assert left[N + 3] == 0
    assert left[4] == 1
    assert left[N + 4] > 1


def test_measurements_with_noise_say_nothing_of_exactness() -> None:
    state = run(make(LSEStrategy, std=0.3, epsilon=1.0, beta=4.0), most=200)
    assert "exact" not in state.classification.guarantee


@pytest.mark.parametrize(
    ("make_one", "name"),
    [
        (lambda **o: MELKLinearStrategy(threshold=0.0, **o), "noise_std"),
        (lambda **o: HRAGELinearStrategy(threshold=0.0, **o), "noise_std"),
        (lambda **o: RAGEPACStrategy(**o), "noise_std"),
        (lambda **o: RacingStrategy(maximize=(True,), **o), "noise_std"),
    ],
)
def test_widths_in_multiples_of_the_noise_refuse_none_and_say_why(
    make_one, name
) -> None:
    message = "multiples of the noise.*1e-3 of the spread.*Gaussian process"
    with pytest.raises(ValueError, match=f"`{name}`.*{message}"):
        make_one(pool=Pool(X), noise_std=0.0)
    exact = Pool(X, noise_var=torch.zeros(N))
    with pytest.raises(ValueError, match=rf"`pool\.noise_var`.*{message}"):
        make_one(pool=exact)


def test_known_variances_of_none_are_refused_by_hrage_to_the_letter() -> None:
    with pytest.raises(ValueError, match="multiples of the noise"):
        HRAGEPACStrategy(Pool(X, noise_var=torch.zeros(N)))


@pytest.mark.parametrize("std", [-1.0, float("nan"), float("inf")])
def test_impossible_noise_is_still_refused(std) -> None:
    with pytest.raises(ValueError, match="`noise_std`"):
        make(LSEStrategy, std=std)


@pytest.mark.parametrize("cls", [LSEStrategy, MELKStrategy, MILKStrategy])
def test_forecasts_of_exact_measurements_are_made(cls) -> None:
    strategy = make(cls, beta=9.0)
    state = strategy.init()
    before = state.forecast().observations
    state = strategy.tell(state, strategy.ask(state).observe(F[[0, 1, 2]]))
    after = state.forecast().observations
    # No row is measured twice: never more than there are rows left.
    assert before is None or 0 < before <= N
    assert after is None or 0 <= after <= N
    assert before is not None or after is not None


@pytest.mark.some(2)
@pytest.mark.parametrize("case", GAUSSIAN)
@pytest.mark.parametrize("std", [0.0, (0.0, 0.1)])
def test_learnt_models_of_several_exact_outputs(case, std) -> None:
    X = grid(3)
    mu = torch.stack(((3 * X).sin().sum(-1), (2 * X).cos().sum(-1)), dim=-1)
    strategy = case.make(
        Pool(X),
        maximize=(True, True),
        noise_std=std,
        batch_size=3,
        beta=4.0,
        max_observations=12,
    )
    state = run(strategy, lambda row: mu[row].tolist())
    repeats = int(state.observations.times_measured(9).max()) > 1
    assert repeats <= (std != 0.0)  # a row is known if all its outputs are
