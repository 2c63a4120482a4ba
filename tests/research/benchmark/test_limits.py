import math
import warnings

import pytest
import torch

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.estimators import ArmStatistics
from botorch_lse.papers import MELKPACStrategy, level_set_complexity
from botorch_lse.strategies import NoiseWarning
from botorch_lse.strategies.algorithm import Step
from research.benchmark import (
    guarantee_anytime,
    limits_all,
    linear_cases,
    speed_linear,
)
from research.benchmark.__main__ import main
from research.benchmark.guarantee_anytime import ever_violated
from research.benchmark.guarantee_linear import (
    chasing,
    narrowed,
    noisy,
    simulate,
)
from research.benchmark.limits_all import Found, measured
from research.benchmark.limits_pareto import deciding_pairs, kone
from research.benchmark.limits_problems import (
    Ended,
    Instance,
    implicit_pairs,
    kernel_features,
    least_draws,
    soare,
)
from research.benchmark.linear_cases import (
    CASES,
    CLEAR,
    GAP,
    LEVEL,
    TIES,
    VARIANCES,
    unequal,
)
from research.benchmark.registry import Options
from research.papers.kone2025.problems import ParetoInstance, synthetic
from research.papers.mason2022.soare import EXPLICIT
from tests.covering import covering


@pytest.mark.slow
@covering(
    "name, instances, chases", list(CASES), ["near ties", "varied gaps"], [False, True]
)
def test_whole_widths_are_rarely_wrong_and_a_sixth_is_caught(
    name: str, instances: str, chases: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_cases, "LIMIT", 600)
    monkeypatch.setattr(linear_cases, "BURN_IN_LIMIT", 20_000)
    whole = simulate(name, instances, chases, Options(runs=2), 1.0)
    narrow = simulate(name, instances, chases, Options(runs=4), 6.0)
    assert whole.wrong.wrong == 0
    assert narrow.wrong.wrong > 0
    assert narrow.decided > whole.decided
    if instances == "varied gaps":
        assert whole.decided > 0.1


@pytest.mark.parametrize("name", list(CASES))
def test_divided_widths_are_the_widths_divided(name: str) -> None:
    case = CASES[name]["varied gaps"]
    X = case.arms(0)
    means, beliefs = X[:, : case.build(X).m], []
    for divisor in (1.0, 3.0):
        strategy = narrowed(case.build(X), divisor)
        belief = strategy.algorithm.start(0)
        rows = torch.arange(len(X))
        counts = torch.full_like(rows, 5)
        found = noisy(means, case.noise_var(X), 0)(rows, counts)
        y, yvar = found if isinstance(found, tuple) else (found, None)
        told = Observations(rows, y, yvar, counts=counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseWarning)
            beliefs.append(strategy.algorithm.learn(belief, Step(told, told, 0)))
    whole, third = beliefs
    torch.testing.assert_close(third.mean, whole.mean)
    ratio = (third.upper - third.lower) / (whole.upper - whole.lower)
    torch.testing.assert_close(ratio, torch.full_like(ratio, 1 / 3))


def test_the_scales_of_a_burn_in_are_divided_too() -> None:
    X = CASES["hrage_linear_head"]["near ties"].arms(0)
    whole = CASES["hrage_linear_head"]["near ties"].build(X)
    third = narrowed(whole, 3.0)
    rows = torch.arange(len(X))
    y, yvar = noisy(X[:, :1], unequal(X), 0)(rows, torch.full_like(rows, 400))
    told = Observations(rows, y, yvar, counts=torch.full_like(rows, 400))
    arms = ArmStatistics.of_observations(told, len(X))
    torch.testing.assert_close(
        third.algorithm.burn_in.inflated(arms, arms),
        whole.algorithm.burn_in.inflated(arms, arms) / 9,
    )


def test_varied_arms_are_ties_and_gaps_of_many_sizes() -> None:
    case = CASES["melk_linear"]["varied gaps"]
    gaps = torch.stack([case.arms(seed)[:, 0] - LEVEL for seed in range(20)])
    assert float(gaps[:, :TIES].abs().max()) <= GAP
    others, (low, high) = gaps[:, TIES:], CLEAR
    assert bool((others.abs() >= low - GAP).all() & (others.abs() <= high + GAP).all())
    assert bool((others[:, ::2] > 0).all() & (others[:, 1::2] < 0).all())
    assert 0.3 < float((others.abs() < (low * high) ** 0.5).double().mean()) < 0.7


def test_unequal_variances_are_quadratic_and_within_their_bounds() -> None:
    X = CASES["hrage_linear_level"]["near ties"].arms(3)
    low, high = VARIANCES
    Sigma = torch.tensor([0.0, low, (low + high) / 2, high]).double().diag()
    torch.testing.assert_close(unequal(X), (X @ Sigma * X).sum(dim=-1))
    assert bool(((unequal(X) >= low) & (unequal(X) <= high)).all())


def test_simulated_replicates_have_the_stated_noise() -> None:
    # 4,000 means of 5 and their estimated variances, 4 standard errors.
    rows, counts = torch.zeros(4000, dtype=torch.long), torch.full((4000,), 5)
    y, yvar = noisy(torch.ones(1, 1).double(), torch.tensor([2.0]).double(), 0)(
        rows, counts
    )
    assert float(y.mean()) == pytest.approx(1.0, abs=4 * (0.4 / 4000) ** 0.5)
    assert float(y.var()) == pytest.approx(0.4, abs=4 * 0.4 * (2 / 4000) ** 0.5)
    assert float(yvar.mean()) == pytest.approx(0.4, abs=4 * 0.4 * (0.5 / 4000) ** 0.5)
    single = noisy(torch.ones(1, 1).double(), torch.tensor([2.0]).double(), 0)
    assert single(rows[:2], torch.tensor([1, 1]))[1].tolist() == [0.0, 0.0]


def test_the_chaser_measures_what_is_nearest_to_a_wrong_decision() -> None:
    case = CASES["melk_linear"]["near ties"]
    X = case.arms(0)
    means, above = X[:, :1], case.above(X[:, :1])
    strategy = chasing(case.build(X), above, means)
    state = strategy.init()
    batch = strategy.ask(state)
    noise = torch.randn(len(batch), generator=torch.Generator().manual_seed(0))
    state = strategy.tell(state, batch.observe(means[batch.order, 0] + noise))
    answer = state.classification
    off = (answer.mean - means[:, 0]) / answer.sigma
    worst = int(torch.where(above, -off, off).argmax())
    assert strategy.ask(state).indices.tolist() == [worst]


def test_the_chaser_leaves_the_burn_in_alone() -> None:
    case = CASES["hrage_linear_head_level"]["near ties"]
    X = case.arms(0)
    plain = case.build(X)
    chaser = chasing(plain, case.above(X[:, :1]), X[:, :1])
    planned = [s.ask(s.init()).counts.tolist() for s in (plain, chaser)]
    assert planned[0] == planned[1]
    assert sum(planned[0]) < plain.n_burn_in  # the first of two stages


@pytest.mark.slow
def test_a_guarantee_of_several_forms_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linear_cases, "LIMIT", 60)
    assert main(["guarantee", "hrage_linear_level", "--runs", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("| varied gaps") == 4
    assert printed.count("| near ties") == 4


def test_paths_violate_narrow_widths_only() -> None:
    assert ever_violated(2, 100, 1000, 1.0, 0) <= 10
    assert ever_violated(2, 100, 1000, 3.0, 0) > 30


def test_the_width_alone_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_anytime, "STEPS", 300)
    assert main(["guarantee", "anytime", "--runs", "100"]) == 0
    assert "Power check: violated" in capsys.readouterr().out


def test_deciding_pairs_of_two_orthogonal_arms_by_hand() -> None:
    # f_1 - f_2 = (1, 2): one pair, gap 1, best weights a half each, norm 4.
    means = torch.tensor([[2.0, 3.0], [1.0, 1.0]], dtype=torch.float64)
    instance = ParetoInstance("two", torch.eye(2).double(), means, 0.5)
    # The dominated row asks for the gap 1, the optimal one for refuting by 2.
    assert deciding_pairs(instance) == pytest.approx(0.25 * 4, rel=0.02)


def test_implicit_pairs_of_two_orthogonal_arms_by_hand() -> None:
    # f = (1, 0.1), omega = 0.5: 1 - 0.05, 0.1 - 0.5 and 1 - 0.5 are to be known.
    X, f = torch.eye(2).double(), torch.tensor([1.0, 0.1]).double()
    weights = torch.linspace(0.01, 0.99, 9801, dtype=torch.float64)
    a, b = 1 / weights, 1 / (1 - weights)
    ratios = [(a + b / 4) / 0.95**2, (b + a / 4) / 0.4**2, a / 4 / 0.5**2]
    least = torch.stack(ratios).amax(dim=0).min()
    assert implicit_pairs(X, f) == pytest.approx(float(least), rel=0.02)


def test_least_plan_is_below_what_the_papers_form_draws() -> None:
    X = torch.eye(3, dtype=torch.float64)
    f = torch.tensor([0.9, 0.1, 0.3], dtype=torch.float64)
    strategy = MELKPACStrategy(Pool(X), 0.5, bound=1.0, noise_std=0.1)
    state, generator = strategy.init(), torch.Generator().manual_seed(0)
    while not state.is_done:
        batch = strategy.ask(state)
        noise = torch.randn(len(batch), generator=generator, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(f[batch.order] + 0.1 * noise))
    least = least_draws(strategy, (f - 0.5).abs())
    assert 0.1 * state.n_used < least <= state.n_used


def test_ratios_are_means_over_the_seeds() -> None:
    instance = Instance("x", lambda seed: 1.0, True, 5, 0.1, {})
    runs = [Ended(100, True, 3), Ended(300, False, 4)]
    found = Found(instance, "MELK, anytime", runs, [1.0, 2.0])
    union = 2 * math.log(2 * 5 / 0.1)
    assert found.by_oracle == pytest.approx((100 + 150) / 2 / union)
    assert found.row()[3:8] == ("200", "100 to 300", "4", "2", "1")


@pytest.mark.slow
def test_the_anytime_forms_need_far_fewer_than_the_papers() -> None:
    instance = soare(20, EXPLICIT)
    ended = [instance.methods["MELK, anytime"](seed) for seed in range(3)]
    assert all(end.right and end.batches <= 60 for end in ended)
    assert sum(end.samples for end in ended) / 3 <= 5_000
    X = torch.eye(2).double()
    assert instance.psi(0) > level_set_complexity(X, [1.0, 0.0], 0.5).value
    three = {f.method: f for f in measured(kone(synthetic(10)), 1)}
    ours = three["GEGE, anytime"]
    assert ours.mean < three["racing"].mean < three["GEGE, paper"].mean
    kernel = measured(kernel_features(), 1)
    lse, paper, anytime = kernel
    assert anytime.mean * 20 < paper.mean
    assert anytime.runs[0].right
    assert lse.runs[0].right


@pytest.mark.slow
def test_limits_prints_a_table_and_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
) -> None:
    monkeypatch.setattr(limits_all, "instances", lambda data: [kernel_features()])
    assert main(["limits", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "by oracle" in printed
    assert "MELK, anytime" in printed
    assert (tmp_path / "limits.png").stat().st_size > 10_000


@pytest.mark.slow
def test_decisions_are_timed_for_every_strategy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speed_linear, "ROWS", 100)
    pool = Pool(speed_linear.features()[0])
    for name in speed_linear.strategies(pool, "gaps"):
        seconds, undecided = speed_linear.decide(name, "gaps")
        assert len(seconds) == speed_linear.ROUNDS
        assert min(seconds) > 0
        assert 0 <= undecided < 100
