r"""Runs whose results are yes or no, or counts of successes."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.stats import binomtest
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse import Observations, Pool
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    Binary,
    ContentKnown,
    Counts,
    GaussianProcess,
    Levels,
    Maximiser,
    Random,
    State,
    Straddle,
    Strategy,
)
from botorch_lse.surrogate.settings import columns_of
from tests.covering import more_in_full

LEVEL = 0.75


def kernel(lengthscale: float = 0.3, variance: float = 4.0) -> ScaleKernel:
    found = ScaleKernel(RBFKernel()).double()
    found.base_kernel.lengthscale = lengthscale
    found.outputscale = variance
    return found.requires_grad_(False)


def line(n: int = 31) -> Pool:
    return Pool(torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1))


def latent_on(X: Tensor, seed: int) -> Tensor:
    r"""A draw from the process of ``kernel`` at ``N x d`` points."""
    generator = torch.Generator().manual_seed(seed)
    values, vectors = torch.linalg.eigh(kernel()(X).to_dense())
    normal = torch.randn(len(X), generator=generator, dtype=torch.float64)
    return vectors @ (values.clamp_min(0).sqrt() * normal)


def played(strategy: Strategy, p: Tensor, seed: int = 0) -> State:
    r"""A whole run; ``p`` are probabilities of a yes, ``N`` or ``N x m``."""
    generator, state = torch.Generator().manual_seed(seed), strategy.init(seed=seed)
    while not state.is_done:
        rows = strategy.ask(state).order
        drawn = torch.rand(p[rows].shape, generator=generator, dtype=torch.float64)
        state = strategy.tell(state, Observations(rows, (drawn < p[rows]).double()))
    return state


def rising(outcome: Binary, pool: Pool) -> Tensor:
    return outcome.value(8 * pool.X[:, 0] - 4)


@pytest.mark.parametrize("outcome", [Binary(guess=0.5), Counts()], ids=str)
def test_the_answer_has_numbers_before_the_first_result(outcome) -> None:
    strategy = Strategy(line(), Above(0.75), model=GaussianProcess(outcome=outcome))
    answer = strategy.init().classification
    for part in (answer.mean, answer.sigma, answer.lower, answer.upper):
        assert not part.isnan().any()


@pytest.mark.some(1)
@pytest.mark.parametrize("outcome", [Binary(), Binary(guess=0.5, lapse=0.02)], ids=str)
@pytest.mark.parametrize("model", [None, "given"])
def test_a_run_decides_the_rows_far_from_the_level(outcome, model):
    pool = line()
    given = kernel() if model else None
    strategy = Strategy(
        pool,
        Above(LEVEL, epsilon=0.05),
        model=GaussianProcess(given, outcome=outcome, refit=1.3),
        beta=4.0 if model else 9.0,  # a fitted model is too sure for two deviations
        batch_size=15,
        max_observations=150,
    )
    p = rising(outcome, pool)
    answer = played(strategy, p).classification
    assert not bool((answer.above & (p < LEVEL - 0.05)).any())
    assert not bool((answer.below & (p > LEVEL + 0.05)).any())
    assert int(answer.above.sum()) > 3
    assert int(answer.below.sum()) > 3


def test_the_answer_is_in_probabilities():
    pool, outcome = line(), Binary(guess=0.2, lapse=0.1)
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(
        pool, Above(LEVEL), model=model, beta=4.0, batch_size=10, max_observations=60
    )
    state = played(strategy, rising(outcome, pool))
    answer = state.classification
    for numbers in (answer.lower, answer.mean, answer.upper):
        assert bool(((numbers >= 0.2) & (numbers <= 0.9)).all())
    assert bool(
        (answer.lower <= answer.mean).all() & (answer.mean <= answer.upper).all()
    )
    assert torch.equal(answer.above, answer.lower > LEVEL)
    assert torch.equal(answer.below, answer.upper <= LEVEL)
    # By the latent function, not by the mean of the probability.
    posterior = state.belief.posterior
    z = (
        posterior.mean - outcome.latent(torch.tensor(LEVEL).double())
    ) / posterior.sigma
    assert torch.allclose(answer.probability_above, torch.special.ndtr(z))
    mean, sigma = state.predict(pool.X)
    assert torch.allclose(mean, answer.mean, atol=1e-6)
    assert torch.allclose(sigma, answer.sigma, atol=1e-6)


@pytest.mark.some(1)
@pytest.mark.parametrize("model", [None, "given"])
def test_a_replay_gives_the_same_answer_and_the_same_rows(model):
    pool, outcome = line(), Binary()
    given = kernel() if model else None
    settings = GaussianProcess(given, outcome=outcome)
    strategy = Strategy(pool, Above(LEVEL), model=settings, max_observations=40)
    p, generator = rising(outcome, pool), torch.Generator().manual_seed(1)
    state = strategy.init(seed=3)
    for _ in range(8):
        rows = strategy.ask(state, size=4).order
        y = (torch.rand(4, generator=generator, dtype=torch.float64) < p[rows]).double()
        for part in (slice(2, 4), slice(0, 2)):  # in parts, out of order
            state = strategy.tell(state, Observations(rows[part], y[part]))
    again = strategy.replay(state.history, seed=3)
    assert torch.equal(again.classification.mean, state.classification.mean)
    assert torch.equal(strategy.ask(again).order, strategy.ask(state).order)


def test_four_first_rows_for_each_input_are_chosen_whatever_they_show():
    X = torch.rand(200, 3, generator=torch.Generator().manual_seed(0)).double()
    strategy = Strategy(Pool(X), Above(LEVEL), model=GaussianProcess(outcome=Binary()))

    def rows_where(is_yes: Tensor) -> list[int]:
        state, rows = strategy.init(seed=0), list[int]()
        for _ in range(15):
            batch = strategy.ask(state)
            rows += batch.order.tolist()
            state = strategy.tell(state, batch.observe(is_yes[batch.order].double()))
        return rows

    one, other = rows_where(X[:, 0] > 0.5), rows_where(X[:, 1] < 0.4)
    assert one[:12] == other[:12]
    assert len(set(one[:12])) == 12
    assert one != other


def test_equal_answers_teach_no_model_and_new_rows_come():
    pool = line()
    model = GaussianProcess(outcome=Binary())
    strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=6)
    state, seen = strategy.init(seed=0), set[int]()
    for _ in range(5):
        rows = strategy.ask(state).order
        assert not seen & set(rows.tolist())
        seen |= set(rows.tolist())
        state = strategy.tell(state, Observations(rows, torch.ones(6)))
    assert bool(state.classification.undecided.all())
    assert "No model is fitted yet" in state.classification.guarantee
    rows = strategy.ask(state).order
    state = strategy.tell(state, Observations(rows, (rows != rows[0]).double()))
    assert "No model is fitted yet" not in state.classification.guarantee


def test_equal_answers_of_all_rows_teach_no_model_and_rows_are_repeated():
    pool = line()
    model = GaussianProcess(outcome=Binary())
    strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=6)
    state = strategy.init(seed=0)
    while not state.is_done and len(state.observations) < len(pool) + 12:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, torch.ones(len(rows))))
    assert state.stop_reason is None
    assert bool(state.classification.undecided.all())
    assert len(strategy.ask(state)) == 6


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_numbers_are_learnt_beside_answers_that_are_all_alike(answer: float) -> None:
    pool = line()
    strength = 10.0 * pool.X[:, 0]
    goal = Above(4.0, epsilon=0.2) & Above(0.5, output=1)
    model = GaussianProcess(noise_std=(0.01, None), outcome=(None, Binary()))
    strategy = Strategy(pool, goal, model=model, batch_size=10, max_observations=50)
    state = strategy.init(seed=0)
    while not state.is_done:
        rows = strategy.ask(state).order
        y = torch.stack((strength[rows], torch.full((len(rows),), answer)), dim=-1)
        state = strategy.tell(state, Observations(rows, y))
    found = state.classification
    number, yes_no = found.outputs
    assert torch.allclose(number.mean, strength, atol=0.1)
    # The number alone rules rows out; of the answers nothing more is claimed than that
    # they seem to be always the same.
    assert bool(found.below[strength < 3.8].all())
    assert not bool(found.above[strength < 3.8].any())
    assert bool(((yes_no.mean > 0.5) == (answer == 1.0)).all())
    assert "equal" not in str(state.forecast())


def test_nothing_is_said_of_the_share_above_before_there_is_a_model() -> None:
    strategy = Strategy(
        line(), Above(LEVEL), model=GaussianProcess(outcome=Binary()), batch_size=31
    )
    state = strategy.init(seed=0)
    assert "No model says yet how much of the pool is above" in str(state.content())
    state = strategy.tell(state, Observations(range(31), torch.ones(31)))
    assert "No model says yet how much of the pool is above" in str(state.content())
    said = str(state.forecast())
    assert "All results so far say the same" in said
    assert "All rows were measured, and are measured again" in said
    assert "audit" not in said
    state = strategy.tell(state, Observations(range(31), torch.zeros(31)))
    assert "No model" not in str(state.content())


def test_a_run_that_may_measure_nothing_more_foresees_no_end() -> None:
    model = GaussianProcess(outcome=Binary())
    strategy = Strategy(line(), Above(0.5), model=model, batch_size=31, max_repeats=1)
    generator = torch.Generator().manual_seed(0)
    answers = (torch.rand(31, generator=generator) < 0.5).double()
    fewer = replace(strategy, batch_size=20)
    rows = fewer.ask(fewer.init(seed=0)).order
    said = fewer.tell(fewer.init(seed=0), Observations(rows, answers[rows])).forecast()
    assert "`max_repeats` allows at most 11 more" in str(said)
    told = fewer.tell(fewer.init(seed=0), Observations(rows, answers[rows]))
    out = [int(rows[0]), int((torch.bincount(rows, minlength=31) == 0).nonzero()[0])]
    assert "allows at most 10 more" in str(fewer.exclude(told, out).forecast())
    state = strategy.tell(strategy.init(seed=0), Observations(range(31), answers))
    assert state.stop_reason == "rows exhausted"
    left = int(state.classification.undecided.sum())
    forecast = state.forecast()
    assert forecast.observations is None
    assert f"(rows exhausted); rows that stay undecided: {left}." in str(forecast)


def test_counts_of_trials_are_told_by_name():
    pool, outcome = line(), Binary()
    told = Observations([0, 15, 30], [1, 12, 20], trials=20)
    assert told.y.tolist() == [0.05, 0.6, 1.0]
    assert told.counts is not None
    assert told.counts.tolist() == [20, 20, 20]
    assert told.n_measured == 60
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(pool, Above(LEVEL), model=model, beta=4.0, batch_size=3)
    state = strategy.tell(strategy.init(seed=0), told)
    each = [[1] * k + [0] * (20 - k) for k in (1, 12, 20)]
    rows = torch.tensor([0, 15, 30]).repeat_interleave(20)
    one_by_one = Observations(rows, torch.tensor(each).double().view(-1))
    alone = strategy.tell(strategy.init(seed=0), one_by_one)
    assert torch.allclose(
        state.classification.mean, alone.classification.mean, atol=0.01
    )
    assert bool(state.classification.above[30])
    assert bool(state.classification.below[0])


@pytest.mark.slow
def test_one_output_may_be_a_number_and_the_other_a_yes_or_no():
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(0)).double()
    pool, outcome = Pool(X), Binary()
    strength, works = 3 * X[:, 0], outcome.value(8 * X[:, 1] - 4)
    goal = Above(1.5, epsilon=0.1) & Above(LEVEL, output=1)
    model = GaussianProcess(noise_std=(0.1, None), outcome=(None, outcome))
    strategy = Strategy(pool, goal, model=model, batch_size=20, max_observations=120)
    generator, state = torch.Generator().manual_seed(0), strategy.init(seed=0)
    while not state.is_done:
        rows = strategy.ask(state).order
        noise = 0.1 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
        yes = torch.rand(len(rows), generator=generator, dtype=torch.float64)
        y = torch.stack((strength[rows] + noise, (yes < works[rows]).double()), dim=-1)
        state = strategy.tell(state, Observations(rows, y))
    prior = state.belief.posterior.prior
    assert prior.noise_var is None  # it was stated, and a fit has it
    answer = state.classification
    assert not bool((answer.above & ((strength < 1.4) | (works < LEVEL))).any())
    assert int(answer.below.sum()) > 5
    number, yes_no = answer.outputs
    assert float((number.mean - strength).abs().max()) < 0.6
    assert 0 <= float(yes_no.lower.min()) <= float(yes_no.upper.max()) <= 1
    assert [float(level) for level in yes_no.levels] == pytest.approx([LEVEL])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "goal",
    [
        Below(0.3),
        Between(0.3, 0.8, epsilon=0.05),
        Levels((0.25, 0.5, 0.75)),
        ~Above(0.5),
        Above(0.2) & Below(0.9),
        Above((0.5, 0.75) * 15 + (0.5,)),
    ],
    ids=lambda goal: type(goal).__name__,
)
def test_any_region_of_probabilities_is_decided(goal):
    pool, outcome = line(), Binary()
    p = rising(outcome, pool)
    strategy = Strategy(
        pool,
        goal,
        model=GaussianProcess(kernel(), outcome=outcome),
        rule=Straddle(),
        beta=9.0,
        batch_size=30,
        max_observations=240,
    )
    answer = played(strategy, p).classification
    truth = goal.values.cells.agreed(goal.values.allowed([p], [p], strictly=False))
    inside = truth == goal.values.n_classes - 1
    slack = (p - 0.5).abs() < 2  # every row counts
    assert not bool((answer.above & ~inside & slack).any())
    assert not bool((answer.below & inside & slack).any())
    assert int(answer.undecided.sum()) < len(pool)
    if isinstance(goal, Levels):
        known = answer.classes >= 0
        assert torch.equal(answer.classes[known], truth[known])


@pytest.mark.slow
def test_words_and_weights_and_a_share_that_is_known():
    table = pd.DataFrame(
        {"heat": [i / 20 for i in range(20)] * 2, "solvent": ["a"] * 20 + ["b"] * 20}
    )
    pool, outcome = Pool(table), Binary()
    heat = torch.tensor(table["heat"].to_numpy())
    is_b = torch.tensor((table["solvent"] == "b").to_numpy())
    p = outcome.value(torch.where(is_b, 6 * heat - 2, 6 * heat - 5))
    strategy = Strategy(
        pool,
        Above(0.5),
        model=GaussianProcess(outcome=outcome),
        batch_size=20,
        max_observations=300,
        content_tol=ContentKnown(0.3),
    )
    state = played(strategy, p)
    low, high = state.content().posterior
    assert low <= float((p > 0.5).double().mean()) <= high


def test_each_output_may_be_measured_by_itself():
    pool = line(21).at_outputs(("works", "lasts"), costs=(1, 2))
    outcome = Binary()
    goal = Above(0.5, output="works") & Above(0.5, output="lasts")
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(
        pool, goal, model=model, rule=Straddle(), beta=4.0, batch_size=20,
        max_observations=160,
    )  # fmt: skip
    x = line(21).X[:, 0]
    works, lasts = outcome.value(8 * x - 3), outcome.value(5 - 8 * x)
    answer = played(strategy, torch.cat((works, lasts))).classification
    inside = (works > 0.5) & (lasts > 0.5)
    assert int((answer.above & ~inside).sum() + (answer.below & inside).sum()) == 0
    assert int(answer.undecided.sum()) < 21


def test_predictions_from_some_answers_alone():
    pool, outcome = line(), Binary()
    model = GaussianProcess(outcome=outcome)
    strategy = Strategy(
        pool, Above(LEVEL), model=model, batch_size=15, max_observations=45
    )
    state = played(strategy, rising(outcome, pool))
    mean, _ = state.predict(pool.X, data=state.history)
    assert torch.allclose(mean, state.predict(pool.X)[0], atol=1e-6)
    few, _ = state.predict(pool.X, data=state.history.select(torch.arange(5)))
    assert not torch.allclose(mean, few, atol=1e-3)


def test_calibration_is_of_answers_predicted_beforehand():
    pool, outcome = line(), Binary()
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(
        pool, Above(LEVEL), model=model, rule=Random(), batch_size=10,
        max_observations=200,
    )  # fmt: skip
    calibration = played(strategy, outcome.value(latent_on(pool.X, 1))).calibration()
    assert len(calibration.ahead) == 200
    assert not calibration.has_failed
    assert len(calibration.out) == 0


@pytest.mark.parametrize(
    ("goal", "given", "match"),
    [
        (Above(75), {}, "between 0 and 1 with `outcome=Binary"),
        (Above(0.4), {"outcome": Binary(guess=0.5)}, "between 0.5 and 1"),
        (Above(0.75), {"outcome": "yes/no"}, r"Write `Binary\(\)`"),
        (Above(0.75), {"noise_std": 0.1}, "Such a result has no noise of its own"),
        (Above(0.75), {"norm_bound": 1.0}, "Leave `norm_bound` out"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(goal, given, match):
    model = {"outcome": Binary()} | given
    with pytest.raises(ValueError, match=match):
        Strategy(line(), goal, model=GaussianProcess(**model))


def test_goals_and_models_that_have_no_probabilities_are_refused():
    outcome = Binary()
    with pytest.raises(UnsupportedError, match="with levels, such as"):
        Strategy(line(), Maximiser(), model=GaussianProcess(outcome=outcome))
    with pytest.raises(UnsupportedError, match="a kernel of the latent function"):
        Strategy(
            line(),
            Above(0.5),
            model=GaussianProcess(lambda X, y, yvar: None, outcome=outcome),
        )
    with pytest.raises(UnsupportedError, match="where outputs are correlated"):
        Strategy(
            line(),
            Above(0.5) & Above(0.5, output=1),
            model=GaussianProcess(correlated=True, outcome=outcome),
        )


@pytest.mark.parametrize(
    ("told", "match"),
    [
        (Observations([0], [2.0]), "to be 1 or 0 with"),
        (Observations([0], [0.5]), "to be 1 or 0 with"),
        (Observations([0], [1.0], yvar=[0.1]), "Tell repeated trials by `trials=`"),
    ],
)
def test_results_that_are_no_answers_are_refused(told, match):
    strategy = Strategy(line(), Above(0.5), model=GaussianProcess(outcome=Binary()))
    state = strategy.init(seed=0)
    strategy.ask(state)
    with pytest.raises(ValueError, match=match):
        strategy.tell(state, told)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"y": [3], "trials": 2}, "got 3 of 2"),
        ({"y": [1.5], "trials": 2}, "got 1.5 of 2"),
        ({"y": [1], "trials": 0}, "at least 1 per entry"),
        ({"y": [1], "trials": 2, "counts": 2}, "to come alone"),
    ],
)
def test_counts_are_checked(given, match):
    with pytest.raises(ValueError, match=re.escape(match)):
        Observations([0], **given)


@pytest.mark.some(0, slow=2)
@more_in_full("runs", 8, 120)
def test_few_runs_with_a_given_model_decide_a_row_wrongly(runs):
    pool, outcome, delta = line(25), Binary(), 0.2
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(
        pool, Above(0.5), model=model, delta=delta, rule=Straddle(), batch_size=20,
        max_observations=200,
    )  # fmt: skip
    n_wrong = n_decided = 0
    for seed in range(runs):
        p = outcome.value(latent_on(pool.X, seed))
        answer = played(strategy, p, seed).classification
        wrong = (answer.above & (p <= 0.5)) | (answer.below & (p > 0.5))
        n_wrong += bool(wrong.any())
        n_decided += int((~answer.undecided).sum())
    assert n_decided > 5 * runs
    assert binomtest(n_wrong, runs, delta, "greater").pvalue > 1e-4


def test_a_probability_that_rises_is_learnt_from_half_of_the_pool():
    X = torch.rand(80, 2, generator=torch.Generator().manual_seed(2)).double()
    pool, outcome = Pool(X, names=("kind", "intensity")), Binary()
    p = outcome.value(8 * X[:, 1] - 4)
    low = (X[:, 1] < 0.6).nonzero().view(-1)[:40]
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(len(low), generator=generator, dtype=torch.float64)
    errors = []
    for increasing in ((), ("intensity",)):
        model = GaussianProcess(outcome=outcome, increasing=increasing)
        strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=40)
        told = Observations(low, (drawn < p[low]).double())
        state = strategy.tell(strategy.init(seed=0), told)
        high = X[:, 1] > 0.8
        errors.append(float((state.predict(X)[0] - p)[high].abs().mean()))
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("d", [2, 5, 9])
def test_first_rows_are_fewer_where_it_is_known_what_rises(d):
    pool, n_first = Pool(SobolEngine(d, seed=1).draw(600, dtype=torch.float64)), []
    for named in ({}, {"increasing": [0]}, {"decreasing": [1]}):
        model = GaussianProcess(outcome=Binary(), **named)
        parts = Strategy(pool, Above(LEVEL), model=model).parts
        n_first.append(parts.model.n_first)
        assert parts.model.n_deciding() == 10 * d  # as ever
    assert n_first == [max(4 * d, 10), 10, 10]


def test_an_input_that_is_the_same_everywhere_changes_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(60, 2, generator=generator, dtype=torch.float64)
    pool = Pool(torch.cat((X, torch.full((60, 1), 3.0).double()), dim=-1))
    drawn = torch.rand(40, generator=generator, dtype=torch.float64)
    answers = (drawn < torch.special.ndtr(6 * X[:40, 0] - 3)).double()
    told = Observations(range(40), answers)
    means = []
    for named in ({"increasing": [0]}, {"increasing": [0, 2]}):
        for more in ({}, {"decreasing": [1]}):
            model = GaussianProcess(outcome=Binary(), **named, **more)
            strategy = Strategy(pool, Above(0.75), model=model)
            state = strategy.tell(strategy.init(0), told)
            means.append(state.classification.mean)
    torch.testing.assert_close(means[0], means[2])
    torch.testing.assert_close(means[1], means[3])
    assert not torch.allclose(means[0], means[1])


@pytest.mark.parametrize("named", ["increasing", "decreasing"])
def test_a_threshold_at_an_end_is_found_where_first_answers_are_alike(named):
    X = SobolEngine(5, scramble=True, seed=0).draw(600, dtype=torch.float64)
    model = GaussianProcess(outcome=Binary(), **{named: [0]})
    strategy = Strategy(Pool(X), Above(LEVEL), model=model, batch_size=10,
                        max_observations=60)  # fmt: skip
    p = (X[:, 0] > 0.97) if named == "increasing" else (X[:, 0] < 0.03)
    state = played(strategy, p.double())
    assert set(state.history.y.unique().tolist()) == {0.0, 1.0}


@pytest.mark.slow
def test_slopes_are_not_too_sure_where_the_rule_chose_the_rows():
    X = SobolEngine(2, scramble=True, seed=3).draw(300, dtype=torch.float64)
    turn = torch.sin(5 * X[:, 1])
    f, outcome = (6 + 2 * turn) * (X[:, 0] - 0.5 - 0.1 * turn), Binary()
    model = GaussianProcess(outcome=outcome, increasing=[0])
    shares = []
    for seed in range(4):
        strategy = Strategy(
            Pool(X), Above(LEVEL), model=model, batch_size=10, max_observations=100
        )
        state = played(strategy, outcome.value(f), seed)
        mean, sigma = state.belief.posterior.at(X)
        held = (f - mean).abs() < 1.96 * sigma
        shares.append(float(held[f.abs() < 2.5].double().mean()))
    assert sum(shares) / 4 > 0.85


@pytest.mark.slow
def test_intervals_of_guessed_answers_hold_functions_that_vary_much():
    line, shares = torch.linspace(0, 1, 8, dtype=torch.float64), []
    X, outcome = torch.cartesian_prod(line, line), Binary(guess=0.5, lapse=0.04)
    root = torch.linalg.cholesky(kernel()(X).to_dense().detach() + 1e-8 * torch.eye(64))
    strategy = Strategy(Pool(X), Above(LEVEL), model=GaussianProcess(outcome=outcome))
    for seed in range(16):
        draw = {"generator": torch.Generator().manual_seed(seed), "dtype": X.dtype}
        f = root @ torch.randn(64, **draw)
        rows = torch.arange(128) % 64
        answers = torch.rand(128, **draw) < outcome.value(f)[rows]
        state = strategy.tell(strategy.init(), Observations(rows, answers.double()))
        mean, sigma = state.belief.posterior.at(X)
        shares.append(float(((f - mean).abs() < 1.96 * sigma).double().mean()))
    assert sum(shares) / 16 > 0.9, shares


def test_inputs_that_rise_are_checked():
    for name in ("increasing", "decreasing"):
        said = rf"`{name}` .*without an `outcome`.* Give `outcome=Binary\(\)` and no"
        with pytest.raises(ValueError, match=said):
            GaussianProcess(**{name: (0,)})
        for wrong in (True, 0, None):
            with pytest.raises(ValueError, match=rf"`{name}` to .* `\[0\]`"):
                GaussianProcess(outcome=Binary(), **{name: wrong})
        for wrong in (("heat",), (3,), (True,)):
            model = GaussianProcess(outcome=Binary(), **{name: wrong})
            said = f"`{name}` to be columns of numbers .* Name one of them, or leave"
            with pytest.raises(ValueError, match=said):
                Strategy(line(), Above(0.5), model=model)
    model = GaussianProcess(outcome=Binary(), increasing=[0], decreasing=[0])
    with pytest.raises(
        ValueError, match=r"other inputs than `increasing`.* Leave it out of"
    ):
        Strategy(line(), Above(0.5), model=model)
    pool = Pool(pd.DataFrame({"v": ["a", "b", "c"], "dose": [1.0, 2.0, 3.0]}))
    for wrong in ("v", "v=a", 0):
        with pytest.raises(ValueError, match=r"the pool, \['dose'\], but") as raised:
            columns_of([wrong], pool, "increasing")
        known = eval(str(raised.value).split("pool, ")[1].split(", but")[0])
        assert columns_of(known, pool, "increasing") == (3,)


def test_an_input_by_name_and_by_number_rises_once():
    pool = Pool(torch.rand(9, 2).double(), names=("kind", "heat"))
    assert columns_of(["heat", 1, "kind"], pool, "increasing") == (1, 0)


def test_a_probability_falls_with_an_input_as_it_rises_with_its_mirror_image():
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(2)).double()
    X[:2] = torch.tensor([[0.0, 0.0], [1.0, 1.0]])  # the pool is the whole square
    mirrored, outcome = torch.stack((X[:, 0], 1 - X[:, 1]), dim=-1), Binary()
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(40, generator=generator, dtype=torch.float64)
    told = drawn < outcome.value(8 * X[:40, 1] - 4 + X[:40, 0])
    found = []
    for rows, named in ((X, "increasing"), (mirrored, "decreasing"), (mirrored, "")):
        model = GaussianProcess(outcome=outcome, **({named: [1]} if named else {}))
        strategy = Strategy(Pool(rows), Above(LEVEL), model=model, batch_size=40)
        observed = Observations(torch.arange(40), told.double())
        state = strategy.tell(strategy.init(seed=0), observed)
        found.append(state.predict(rows)[0])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-3)
    assert float((found[0] - found[2]).abs().max()) > 0.02


def test_a_word_before_a_rising_input_is_one_column_of_the_model():
    table = pd.DataFrame(
        {"solvent": ["a", "b", "c"] * 10, "heat": [i / 29 for i in range(30)]}
    )
    pool, outcome = Pool(table), Binary()
    model = GaussianProcess(outcome=outcome, increasing="heat")
    strategy = Strategy(pool, Above(0.5), model=model, batch_size=30)
    heat = torch.tensor(table["heat"].to_numpy())
    told = Observations(torch.arange(30), (heat > 0.5).double())
    state = strategy.tell(strategy.init(seed=0), told)
    mean = state.belief.posterior.prior.mean_module
    assert mean.rising == [1]
    found = state.classification.mean
    assert float(found[heat > 0.8].min()) > float(found[heat < 0.2].max())


def test_the_report_speaks_of_probabilities(tmp_path):
    pool, outcome = line(), Binary()
    model = GaussianProcess(kernel(), outcome=outcome)
    strategy = Strategy(pool, Above(LEVEL), model=model, beta=4.0, batch_size=20,
                        max_observations=40)  # fmt: skip
    state = played(strategy, rising(outcome, pool))
    state.report(tmp_path / "report.html", metrics=["works"])
    page = (tmp_path / "report.html").read_text()
    assert "probability of works above 0.75" in page
    assert page.count("probability of works") > 1  # the question and an axis
    assert "How results fell among those predicted" in page
