r"""Rows that are no points: matrices as kernels, fingerprints, kernels to be learnt."""

from itertools import product

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.models import GPPrior, GramKernel, LearntKernel, TanimotoKernel
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    LSEStrategy,
    MELKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)

X = torch.linspace(0, 1, 25, dtype=torch.float64).unsqueeze(-1).pow(1.3)
"""Not evenly spaced: where rows are alike rounding would choose."""
F = (6 * X[:, 0]).sin()
ROWS = torch.arange(len(X)).unsqueeze(-1)


def rbf(lengthscale: float = 0.2) -> RBFKernel:
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def gram(lengthscale: float = 0.2) -> torch.Tensor:
    return rbf(lengthscale)(X, X).to_dense().detach()


def run(strategy, values=F, seed=0, most=60):
    generator = torch.Generator().manual_seed(seed)
    state = strategy.init(seed=seed)
    while not state.is_done and state.n_used < most:
        rows = strategy.ask(state).order
        noise = 0.05 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
        y = values[rows] + noise
        state = strategy.tell(state, strategy.ask(state).observe(y))
    return state


# --- matrices -------------------------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("cls", [LSEStrategy, StraddleStrategy, TruVaRStrategy])
def test_a_matrix_makes_the_run_of_the_kernel_that_it_is_of(cls):
    options = {"noise_std": 0.05, "batch_size": 3, "max_observations": 30}
    by_points = run(cls(Pool(X), 0.3, model=rbf(), **options))
    by_matrix = run(cls(Pool(ROWS), 0.3, model=GramKernel(gram()), **options))
    assert by_matrix.stop_reason == by_points.stop_reason
    rows = [state.observations.indices.tolist() for state in (by_matrix, by_points)]
    assert rows[0] == rows[1]
    means = [state.classification.mean for state in (by_matrix, by_points)]
    assert torch.allclose(*means, rtol=0, atol=1e-6)


def test_designs_take_a_matrix():
    r"""Their rows hang on the last digits of an optimum, their answers do not."""
    options = {"noise_std": 0.05, "batch_size": 5, "max_observations": 60}
    strategy = MELKStrategy(Pool(ROWS), 0.3, model=GramKernel(gram()), **options)
    answer = run(strategy).classification
    clear = (F - 0.3).abs() > 0.1
    assert torch.equal(answer.above[clear], F[clear] > 0.3)
    assert torch.equal(answer.below[clear], F[clear] < 0.3)


@pytest.mark.slow
def test_rows_of_words_are_decided_by_their_likeness():
    r"""Two families of strings; only one of them is above."""
    ends = ["".join(pair) for pair in product("abcd", repeat=2)]
    words = [start + end for start in ("xxx", "yyy") for end in ends]
    pairs = [[list(zip(a, b, strict=True)) for b in words] for a in words]
    shared = [[sum(p == q for p, q in pair) for pair in row] for row in pairs]
    table = torch.tensor(shared, dtype=torch.float64)
    truth = torch.tensor([float(w.startswith("xxx")) for w in words]).double()
    pool = Pool(torch.arange(len(words)).unsqueeze(-1))
    model = LearntKernel(ScaleKernel(GramKernel(table / 5)))
    strategy = Strategy(pool, Above(0.5), model=GaussianProcess(model), batch_size=4)
    state = run(strategy, truth, most=20)
    answer = state.classification
    assert not bool((answer.above & (truth < 0.5)).any())
    assert not bool((answer.below & (truth > 0.5)).any())
    assert int(answer.undecided.sum()) <= 4


def test_a_row_number_that_is_none_is_refused():
    kernel = GramKernel(gram())
    for bad in (25.0, -1.0, 0.5):
        with pytest.raises(ValueError, match=r"row numbers from 0 to 24.*input transf"):
            kernel(torch.tensor([[bad]]), ROWS.double()).to_dense()
    with pytest.raises(BotorchTensorDimensionError, match="one column"):
        kernel(torch.zeros(2, 2), torch.zeros(2, 2)).to_dense()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda K: K[:, :-1], "square"),
        (lambda K: K.triu(), "symmetric"),
        (lambda K: -K, "eigenvalues"),
        (lambda K: 0 * K, "eigenvalues"),
        (lambda K: K - 0.9 * K.diagonal().diag(), "torch.linalg.eigh"),
        (lambda K: K * torch.nan, "finite"),
    ],
)
def test_a_matrix_that_is_no_covariance_is_refused(change, message):
    with pytest.raises((ValueError, BotorchTensorDimensionError), match=message):
        GramKernel(change(gram()))


def test_the_remedy_for_similarities_that_are_none_works():
    K = gram() - 0.9 * torch.eye(len(X), dtype=torch.float64)
    w, V = torch.linalg.eigh(K)
    GramKernel(V[:, w > 0] * w[w > 0] @ V[:, w > 0].T)


def test_rounding_of_a_file_is_allowed():
    rounded = torch.from_numpy(np.float32(gram()).astype(float)).round(decimals=9)
    assert torch.allclose(GramKernel(rounded).matrix, gram(), atol=1e-7)


# --- fingerprints ---------------------------------------------------------------------


def bits(n: int, d: int = 64, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(n, d, generator=generator) < 0.2).double()


def test_similarities_are_shared_bits_over_bits_of_either():
    A, B = bits(7), torch.cat((bits(7)[:2], bits(5, seed=1), torch.zeros(1, 64)))
    found = TanimotoKernel()(A, B.double()).to_dense()
    for i, a in enumerate(A.bool()):
        for j, b in enumerate(B.bool()):
            either = int((a | b).sum())
            assert float(found[i, j]) == pytest.approx(int((a & b).sum()) / either)
    nothing = torch.zeros(2, 64).double()
    assert TanimotoKernel()(nothing, nothing).to_dense().tolist() == [[1, 1], [1, 1]]
    own = TanimotoKernel()(A, diag=True)
    assert torch.equal(own, torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("counts", [False, True])
def test_similarities_are_a_covariance(counts):
    times = torch.arange(60).remainder(4).double() if counts else torch.ones(60)
    A = bits(60, 30) * times.unsqueeze(-1)
    K = TanimotoKernel()(A, A).to_dense()
    assert float(torch.linalg.eigvalsh(K)[0]) > -1e-10
    prior = GPPrior.from_kernel(TanimotoKernel())
    assert torch.allclose(prior.variance(A), torch.ones(60).double())


@pytest.mark.slow
def test_active_fingerprints_are_found_in_fewer_measurements_than_rows():
    r"""Activity hangs on one pattern of bits, as far as rows have it."""
    A, pattern = bits(150, 40, seed=3), bits(1, 40, seed=9)[0]
    shared = TanimotoKernel()(A, pattern.unsqueeze(0)).to_dense()[:, 0]
    activity = 4 * shared
    level = float(activity.quantile(0.85))
    model = GaussianProcess(LearntKernel(ScaleKernel(TanimotoKernel())), n_initial=20)
    strategy = Strategy(Pool(A), Above(level), model=model, batch_size=5)
    state = run(strategy, activity, most=70)
    guess = state.classification.mean > level
    wrong = (guess != (activity > level)).double().mean()
    assert float(wrong) <= 0.05 < 0.15


# --- kernels to be learnt -------------------------------------------------------------


@pytest.mark.slow
def test_a_kernel_is_fitted_and_stays_as_it_was_given():
    kernel = ScaleKernel(rbf(0.7))
    state = run(LSEStrategy(Pool(X), 0.3, model=LearntKernel(kernel)), most=20)
    assert kernel.base_kernel.lengthscale.item() == pytest.approx(0.7)
    parts = state.belief.posterior.prior.covar_module.modules()
    (learnt,) = (part for part in parts if isinstance(part, RBFKernel))
    assert 0.05 < learnt.lengthscale.item() < 2.0
    assert float((state.classification.mean - F).abs().mean()) < 0.1


def test_first_rows_are_least_alike_by_the_kernel():
    r"""By a kernel that sees the first input only, others do not spread them."""
    generator = torch.Generator().manual_seed(0)
    P = torch.rand(80, 3, generator=generator, dtype=torch.float64)
    kernel = RBFKernel(active_dims=(0,))
    kernel.lengthscale = 0.1
    chosen = []
    for model in (LearntKernel(kernel), None):
        strategy = LSEStrategy(Pool(P), 0.3, model=model, n_initial=6, batch_size=6)
        first = P[strategy.ask(strategy.init()).order, 0].sort().values
        chosen.append(float(first.diff().min()))
    assert chosen[0] > 0.12 > chosen[1]


def test_first_rows_do_not_grow_with_bits():
    strategy = LSEStrategy(
        Pool(bits(300)), 0.3, model=LearntKernel(TanimotoKernel()), noise_std=0.1
    )
    model = strategy.algorithm.model
    assert (model.n_first, model.n_deciding()) == (22, 100)


@pytest.mark.parametrize("kernel", [MaternKernel, lambda: MaternKernel()])
def test_a_function_can_make_the_kernel(kernel):
    assert isinstance(LearntKernel(kernel)._copy(), MaternKernel)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ValueError, match="GPyTorch kernel"):
        LearntKernel("rbf")
    with pytest.raises(ValueError, match="GPyTorch kernel"):
        LearntKernel(lambda: 3)
    with pytest.raises(UnsupportedError, match="batch shape"):
        LearntKernel(RBFKernel(batch_shape=torch.Size([2])))


@pytest.mark.parametrize("is_learnt", [False, True])
def test_a_kernel_for_other_columns_is_refused_before_the_first_row(is_learnt):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=3)).double()
    model = LearntKernel(kernel) if is_learnt else kernel
    strategy = StraddleStrategy(Pool(X), 0.3, model=model, noise_std=0.1)
    with pytest.raises(BotorchTensorDimensionError, match="1 columns of the pool"):
        strategy.init()


def test_fingerprints_may_be_some_of_the_columns():
    r"""The others have a kernel of their own."""
    A, extra = bits(20, 12), torch.rand(20, 1, dtype=torch.float64)
    columns = tuple(range(12))
    kernel = TanimotoKernel(columns) * RBFKernel(active_dims=(12,))
    both = torch.cat((A, extra), dim=-1)
    expected = TanimotoKernel()(A, A).to_dense() * RBFKernel()(extra, extra).to_dense()
    assert torch.allclose(kernel.double()(both, both).to_dense(), expected, atol=1e-7)
