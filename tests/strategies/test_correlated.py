r"""Correlated outputs: one process on points and outputs, learnt or given."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Log, Normalize
from botorch.models.transforms.outcome import StratifiedStandardize
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import multivariate_normal

from botorch_lse import History, Pool
from botorch_lse.functional.cells import Cells
from botorch_lse.functional.class_removal import class_removal
from botorch_lse.models import correlated
from botorch_lse.models.correlated import in_long_form, priors_of
from botorch_lse.models.fitted import fit_multi_task_gp
from botorch_lse.strategies import (
    Above,
    Below,
    ExpectedMisclassification,
    GaussianProcess,
    OptimalDesign,
    ParetoByDifferences,
    Random,
    State,
    Straddle,
    Strategy,
    TargetedVariance,
    Variance,
)
from tests.strategies.runs import played

# GPyTorch's kernel of tasks multiplies by sparse matrices, of which torch warns once.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

AXIS = torch.linspace(0, 1, 6).double()
POOL = Pool(torch.cartesian_prod(AXIS, AXIS))
N, M = len(POOL), 2
TRUTH = torch.stack(
    (
        (4 * POOL.X[:, 0]).sin() + POOL.X[:, 1],
        -20 * (4 * POOL.X[:, 0]).sin() - 12 * POOL.X[:, 1] + 5,
    ),
    dim=-1,
)
NOISE = (0.05, 1.0)
REGION = Above(0.7, epsilon=0.1) & Above(-12.0, epsilon=2.0, output=1)


def values_at(rows: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(rows), M, generator=generator, dtype=torch.float64)
    return TRUTH[rows] + torch.tensor(NOISE).double() * noise


def long_data(n: int = 14) -> tuple[torch.Tensor, ...]:
    rows = torch.randperm(N, generator=torch.Generator().manual_seed(1))[:n]
    yvar = torch.tensor(NOISE).double().square().expand(n, M)
    return in_long_form([POOL.X[rows]] * M, values_at(rows, 0).unbind(-1), yvar.mT)


def multi_task_gp(**options) -> MultiTaskGP:
    r"""A MultiTaskGP, fitted, of this data or of data given."""
    X, y, yvar = long_data()
    given = {"train_Yvar": yvar, "task_feature": -1, **options}
    X, y = given.pop("train_X", X), given.pop("train_Y", y)
    model = MultiTaskGP(X, y, **given)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def learnt() -> MultiTaskGP:
    rows = torch.arange(0, N, 3)
    y = values_at(rows, 5)
    yvar = torch.tensor(NOISE).double().square().expand(len(rows), M)
    given = in_long_form([POOL.X[rows]] * M, y.unbind(-1), yvar.mT)
    return fit_multi_task_gp(*given, POOL.bounds)


def strategy_of(model: GaussianProcess, **options) -> Strategy:
    given = {"batch_size": 4, "max_observations": 120, **options}
    return Strategy(POOL, given.pop("goal", REGION), model=model, **given)


def end_of(strategy: Strategy, seed: int = 0) -> State:
    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        return values_at(rows, 100 * seed + state.round)

    return played(strategy, values, seed=seed)[-1]


# --- the process, against the model's own posterior -----------------------------------

PARTS = ("mean_module", "covar_module")
MODELS = {
    "default": lambda: multi_task_gp(),
    "plain": lambda: multi_task_gp(outcome_transform=None),
    "by task": lambda: multi_task_gp(
        outcome_transform=StratifiedStandardize(2, torch.arange(M))
    ),
    "inputs": lambda: multi_task_gp(
        input_transform=Normalize(3, indices=[0, 1], bounds=POOL.bounds)
    ),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", MODELS)
def test_posteriors_are_those_of_the_model_on_its_own_data(kind) -> None:
    model = MODELS[kind]()
    X, y, yvar = long_data()
    # Its data, at rows of a pool, so that they can be told again.
    rows = torch.arange(len(X) // M)
    posteriors = correlated.start(priors_of(model), X[: len(rows), :2], 2**30)
    columns = y.view(M, -1).mT, yvar.view(M, -1).mT
    parts = [part.unbind(-1) for part in columns]
    found = correlated.observed(posteriors, [rows] * M, *parts)
    for j, posterior in enumerate(found):
        if kind == "by task":  # where BoTorch wants the task among the inputs
            at = torch.cat((X[: len(rows), :2], torch.full((len(rows), 1), j)), -1)
            said = model.posterior(at.double())
            mean, variance = said.mean[:, 0], said.variance[:, 0]
        else:
            said = model.posterior(X[: len(rows), :2])
            mean, variance = said.mean[:, j], said.variance[:, j]
        scale = posterior.scale
        torch.testing.assert_close(
            posterior.mean / scale, mean / scale, atol=1e-5, rtol=0
        )
        torch.testing.assert_close(
            posterior.variance / scale**2, variance / scale**2, atol=1e-5, rtol=0
        )


@pytest.mark.slow
def test_tasks_may_have_any_numbers_in_any_column() -> None:
    X, _, _ = long_data()
    plain = multi_task_gp(outcome_transform=None)
    moved = torch.cat((3 * X[:, 2:] + 4, X[:, :2]), dim=-1)
    other = multi_task_gp(train_X=moved, task_feature=0, outcome_transform=None)
    learnt = {k: v for k, v in plain.named_parameters() if k.startswith(PARTS)}
    other.load_state_dict(learnt, strict=False)
    for one, two in zip(priors_of(plain), priors_of(other), strict=True):
        F, G = one.features(POOL.X), two.features(POOL.X)
        torch.testing.assert_close(one.covariance(F, F), two.covariance(G, G))
        torch.testing.assert_close(one.mean(F), two.mean(G))


def dense(model: MultiTaskGP) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Prior mean and covariance of all outputs at all rows, output by output."""
    priors = priors_of(model)
    F = torch.cat([prior.features(POOL.X) for prior in priors])
    return priors[0].mean(F), priors[0].covariance(F, F)


def conditioned(
    mean: torch.Tensor, K: torch.Tensor, rows: torch.Tensor, y, noise
) -> tuple[torch.Tensor, torch.Tensor]:
    at = torch.cat((rows, rows + N))
    A = K[at][:, at] + noise.mT.reshape(-1).diag()
    gain = torch.linalg.solve(A, K[at]).mT
    return mean + gain @ (y.mT.reshape(-1) - mean[at]), K - gain @ K[at]


FIRST, REST = slice(0, 2), slice(2, None)


@pytest.mark.slow
def test_rounds_batches_and_expected_rows_agree_with_dense_algebra() -> None:
    model = learnt()
    mean, K = dense(model)
    rows = torch.tensor([3, 11, 11, 30, 20])
    y, noise = values_at(rows, 3), torch.tensor([[0.01, 2.0]]).double().expand(5, M)
    wanted, covariance = conditioned(mean, K, rows, y, noise)
    start = correlated.start(priors_of(model), POOL.X, 2**30)
    lean = tuple(replace(p, memory_budget=8 * len(p.F), _gram=None) for p in start)
    for posteriors in (start, lean):
        given = [rows] * M, y.unbind(-1), noise.unbind(-1)
        head, tail = ([[v[at] for v in p] for p in given] for at in (FIRST, REST))
        once = correlated.observed(posteriors, *given)
        twice = correlated.observed(posteriors, *head)
        ahead = correlated.expected(twice, tail[0], tail[2])
        twice = correlated.observed(twice, *tail)
        for found in (once, twice):
            means = torch.cat([p.mean for p in found])
            torch.testing.assert_close(means, wanted, atol=1e-7, rtol=1e-7)
        for found in (once, twice, ahead):
            variance = torch.cat([p.variance for p in found])
            torch.testing.assert_close(
                variance, covariance.diagonal(), atol=1e-8, rtol=1e-6
            )
            both = correlated.covariance_at(found, torch.arange(N))
            torch.testing.assert_close(
                both[:, 0, 1], covariance[:N, N:].diagonal(), atol=1e-7, rtol=1e-6
            )


def test_gains_are_what_a_measurement_of_all_outputs_takes_off() -> None:
    model = learnt()
    noise = [torch.full((N,), v).double() for v in (0.01, 2.0)]
    rows = torch.tensor([3, 11, 30])
    start = correlated.start(priors_of(model), POOL.X, 2**30)
    own = [v[rows] for v in noise]
    now = correlated.expected(start, [rows] * M, own)
    targets = torch.arange(0, N, 2)
    given = range(M), torch.arange(N), targets, noise
    pieces = list(correlated.gains(now, *given))
    assert torch.cat([torch.arange(N)[p] for p, _ in pieces]).tolist() == list(range(N))
    for row in (0, 11, 35):
        at = torch.tensor([row])
        after = correlated.expected(now, [at] * M, [v[at] for v in noise])
        for j in range(M):
            found = torch.cat([gain[j] for _, gain in pieces])[row]
            wanted = (now[j].variance - after[j].variance)[targets]
            scale = now[j].scale ** 2
            torch.testing.assert_close(found / scale, wanted / scale, atol=1e-8, rtol=0)


# --- the probability of a region ------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize(("m", "limit"), [(2, 0.002), (3, 0.006), (4, 0.006)])
def test_probabilities_agree_with_the_normal_distribution(m, limit) -> None:
    generator = torch.Generator().manual_seed(m)
    n = 40
    A = torch.randn(n, m, m, generator=generator, dtype=torch.float64)
    covariance = A @ A.mT
    sigma = covariance.diagonal(dim1=1, dim2=2).sqrt()
    mean = torch.randn(n, m, generator=generator, dtype=torch.float64)
    correlation = covariance / sigma.unsqueeze(-1) / sigma.unsqueeze(-2)
    levels = [torch.tensor([[0.1 * j]]).double() for j in range(m)]

    def inside(signs):
        return torch.stack([s[0].expand([1] + [2] * m) for s in signs]).all(dim=0)

    cells = Cells.of(levels, lambda signs: inside(signs).long(), 2)
    parts = list(mean.unbind(-1)), list(sigma.unbind(-1))
    found = cells.probabilities(*parts, correlation)[:, 1]
    for i in range(n):
        # All above: mirrored, so that the distribution function says it.
        level = torch.tensor([0.1 * j for j in range(m)]).double()
        normal = multivariate_normal(-mean[i].numpy(), covariance[i].numpy())
        wanted = normal.cdf((-level).numpy())
        assert float(found[i]) == pytest.approx(wanted, abs=limit)
    none = torch.eye(m).double().expand(n, m, m)
    torch.testing.assert_close(
        cells.probabilities(*parts, none),
        cells.probabilities(*parts),
        atol=limit,
        rtol=0,
    )


def test_levels_by_row_several_levels_and_outputs_without_any() -> None:
    generator = torch.Generator().manual_seed(0)
    n = 600  # more than are drawn for at once
    levels = [
        torch.rand(n, 2, generator=generator, dtype=torch.float64),
        torch.empty(1, 0, dtype=torch.float64),
        torch.zeros(1, 1, dtype=torch.float64),
    ]

    def which(signs):
        return signs[0][0].long() + signs[0][1].long() * signs[2][0].long()

    cells = Cells.of(levels, which, 3)
    mean = [torch.randn(n, generator=generator, dtype=torch.float64) for _ in range(3)]
    sigma = [torch.ones(n, dtype=torch.float64)] * 3
    R = torch.tensor([[1, 0.3, -0.8], [0.3, 1, 0.1], [-0.8, 0.1, 1]]).double()
    found = cells.probabilities(mean, sigma, R.expand(n, 3, 3))
    torch.testing.assert_close(found.sum(dim=1), torch.ones(n).double())
    z = torch.randn(200_000, 3, generator=generator, dtype=torch.float64)
    z = z @ torch.linalg.cholesky(R).mT
    for i in (0, 300, 599):
        f = torch.stack([m[i] for m in mean]) + z
        low, high = levels[0][i].sort().values
        own = (f[:, 0] > levels[0][i, 0]).long()
        both = (f[:, 0] > levels[0][i, 1]) & (f[:, 2] > 0)
        assert low <= high
        classes = (own + both.long()).bincount(minlength=3) / len(z)
        torch.testing.assert_close(found[i], classes.double(), atol=0.006, rtol=0)


# --- runs -----------------------------------------------------------------------------


def in_region() -> torch.Tensor:
    return (TRUTH[:, 0] > 0.7) & (TRUTH[:, 1] > -12)


def is_near() -> torch.Tensor:
    away = (TRUTH - torch.tensor([0.7, -12.0])).abs()
    return (away < torch.tensor([0.1, 2.0])).any(dim=-1)


GIVEN = GaussianProcess(learnt(), noise_std=NOISE)
LEARNT = GaussianProcess(noise_std=NOISE, correlated=True)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("model", [GIVEN, LEARNT], ids=["given", "learnt"])
def test_a_region_of_correlated_outputs_is_found_and_replays(model) -> None:
    strategy = strategy_of(model)
    state = end_of(strategy)
    answer = state.classification
    assert state.stop_reason == "decided"
    wrong = (answer.above & ~in_region()) | (answer.below & in_region())
    assert not bool((wrong & ~is_near()).any())
    assert bool(answer.above.any())
    again = strategy.replay(state.observations, seed=0)
    assert torch.equal(again.classification.mean, answer.mean)
    assert torch.equal(again.classification.probability_above, answer.probability_above)
    if model is GIVEN:
        assert "drawn together from the given Gaussian process" in answer.guarantee
    for j in range(M):
        found = state.calibration(j)
        assert len(found.ahead) <= len(found.out) == len(found.predicted)
        assert len(found.out) == state.n_used
    mean, sigma = state.predict(POOL.X)
    assert mean.shape == sigma.shape == (N, M)
    for j, output in enumerate(answer.outputs):
        torch.testing.assert_close(output.mean, mean[:, j], atol=1e-6, rtol=1e-6)


def test_values_of_one_output_tell_of_the_other() -> None:
    rows, model = torch.arange(0, N, 4), learnt()
    K = dense(model)[1]
    correlation = K[0, N] / (K[0, 0] * K[N, N]).sqrt()
    assert float(correlation) < -0.9
    noise = torch.tensor([1e4, 0.5]).double().expand(len(rows), M)
    start = correlated.start(priors_of(model), POOL.X, 2**30)
    y = values_at(rows, 9).unbind(-1)
    together = correlated.observed(start, [rows] * M, y, noise.unbind(-1))
    alone = replace(start[0], data=None).observe(rows, y[0], noise[:, 0])
    # Output 0 was as good as not measured; output 1 says what it is.
    assert float(together[0].sigma.mean()) < 0.3 * float(alone.sigma.mean())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "rule",
    [
        ExpectedMisclassification(),
        ExpectedMisclassification(batch="joint"),
        TargetedVariance(),
        Straddle(),
        Variance(),
        Random(),
        OptimalDesign(),
    ],
    ids=repr,
)
def test_every_rule_for_regions_chooses(rule) -> None:
    state = end_of(strategy_of(GIVEN, rule=rule, max_observations=20))
    assert state.n_used <= 20
    assert len(state.observations.indices.unique()) > 3


def test_expected_misclassification_is_that_of_the_joint_measurement() -> None:
    r"""The first row of a batch is the best by the definition, row by row."""
    strategy = strategy_of(GIVEN, rule=ExpectedMisclassification(), batch_size=1)
    state = strategy.init(0)
    for _ in range(6):
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(values_at(batch.order, state.round)))
    fits = state.belief.fits
    undecided = state.belief.sides.candidates.nonzero().view(-1)
    mean = [p.mean[undecided] for p in fits.posteriors]
    variance = [p.variance[undecided] for p in fits.posteriors]
    removal = class_removal(REGION.values.cells.at(undecided), mean, variance)
    best = []
    for row in range(N):
        after = fits.expecting(torch.tensor([row]))
        gained = [
            (v - p.variance[undecided]).clamp_min(0).unsqueeze(0)
            for v, p in zip(variance, after.posteriors, strict=True)
        ]
        best.append(float(removal.of(gained).sum()))
    chosen = int(strategy.ask(state).indices[0])
    assert best[chosen] == pytest.approx(max(best), rel=1e-6)


@pytest.mark.slow
def test_a_pareto_set_of_correlated_outputs() -> None:
    goal = ParetoByDifferences(maximize=(True, True))
    strategy = strategy_of(GIVEN, goal=goal, max_observations=60)
    state = end_of(strategy)
    assert bool(state.classification.above.any())
    assert strategy.estimate(state).mean.shape == (N, M)


@pytest.mark.slow
def test_a_factory_learns_them() -> None:
    calls = []

    def factory(X, y, yvar):
        calls.append((X.shape, y.shape, X[:, -1].unique().tolist()))
        transform = Normalize(3, indices=[0, 1], bounds=POOL.bounds)
        return multi_task_gp(
            train_X=X, train_Y=y, train_Yvar=yvar, input_transform=transform
        )

    model = GaussianProcess(factory, noise_std=NOISE, correlated=True, n_initial=8)
    state = end_of(strategy_of(model, max_observations=16))
    assert calls[0] == ((16, 3), (16, 1), [0.0, 1.0])
    assert state.n_used == 16


@pytest.mark.exhaustive
@pytest.mark.slow
def test_noise_may_be_learnt() -> None:
    model = GaussianProcess(correlated=True)
    state = end_of(strategy_of(model, max_observations=48))
    known = [float(noise.mean()) for noise in state.belief.fits.noise]
    assert known[0] == pytest.approx(NOISE[0] ** 2, rel=0.9)
    assert known[1] == pytest.approx(NOISE[1] ** 2, rel=0.9)


# --- bad input ------------------------------------------------------------------------


@pytest.mark.slow
def test_what_does_not_fit_is_refused() -> None:
    def of(model, **options) -> Strategy:
        return strategy_of(GaussianProcess(model, noise_std=NOISE, **options))

    X, y, _ = long_data()
    single = SingleTaskGP(X, y)
    with pytest.raises(UnsupportedError, match=r"None, a fitted MultiTaskGP or a fac"):
        of(single, correlated=True)
    with pytest.raises(UnsupportedError, match=r"None, a fitted MultiTaskGP or a fac"):
        of(RBFKernel(), correlated=True)
    with pytest.raises(ValueError, match=r"`goal` of several outputs"):
        strategy_of(GaussianProcess(correlated=True), goal=Above(0.3))
    with pytest.raises(ValueError, match=r"`model` to be one, or one per output \(3\)"):
        strategy_of(GIVEN, goal=REGION & Below(1.0, output=2))
    past = History(POOL.X[:2], TRUTH[:2], torch.ones(2, M))
    with pytest.raises(UnsupportedError, match=r"no `history` where outputs are corr"):
        of(None, correlated=True, history=past)
    with pytest.raises(UnsupportedError, match=r"all its tasks as outputs, but got 1"):
        of(multi_task_gp(output_tasks=[0]))
    with pytest.raises(UnsupportedError, match=r"`StratifiedStandardize` or none"):
        of(multi_task_gp(train_Y=y.abs() + 1, train_Yvar=None, outcome_transform=Log()))
    with pytest.raises(ValueError, match=r"`correlated`"):
        of(None, correlated="yes")

    class Other(MultiTaskGP):
        def forward(self, x):
            return super().forward(x * torch.tensor([2.0, 1.0, 1.0]))

    with pytest.raises(UnsupportedError, match=r"that of Other does more"):
        of(Other(X, y, task_feature=-1))
    with pytest.raises(UnsupportedError, match=r"to be a MultiTaskGP .* got SingleT"):
        end_of(of(lambda X, y, yvar: SingleTaskGP(X, y), correlated=True))


@pytest.mark.slow
def test_numbers_of_cells_and_outputs_do_not_matter() -> None:
    r"""Three outputs, of which the region uses two."""
    rows = torch.arange(0, N, 3)
    y = torch.cat((values_at(rows, 1), TRUTH[rows, :1].square()), dim=-1)
    yvar = torch.full_like(y, 0.01)
    given = in_long_form([POOL.X[rows]] * 3, y.unbind(-1), yvar.unbind(-1))
    model = fit_multi_task_gp(*given, POOL.bounds)
    goal = Above(0.7) & Below(1.0, output=2)
    process = GaussianProcess(model, noise_std=(0.05, 1.0, 0.05))
    strategy = strategy_of(process, goal=goal, max_observations=12)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        more = TRUTH[batch.order, :1].square()
        told = torch.cat((values_at(batch.order, state.round), more), dim=-1)
        state = strategy.tell(state, batch.observe(told))
    assert state.classification.probability_above.isfinite().all()
    assert list(itertools.chain(*[o.mean.shape for o in state.classification.outputs]))
