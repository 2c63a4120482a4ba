import math

import pytest
import torch

from botorch_lse.benchmark import guarantee_anytime, guarantee_linear, limits_all
from botorch_lse.benchmark.__main__ import main
from botorch_lse.benchmark.guarantee_anytime import ever_violated
from botorch_lse.benchmark.guarantee_linear import CASES, chasing, outcome
from botorch_lse.benchmark.kone2025_problems import ParetoInstance, synthetic
from botorch_lse.benchmark.limits_all import Found, measured
from botorch_lse.benchmark.limits_pareto import deciding_pairs, kone
from botorch_lse.benchmark.limits_problems import (
    Ended,
    Instance,
    implicit_pairs,
    kernel_features,
    least_draws,
    soare,
)
from botorch_lse.benchmark.mason2022_soare import EXPLICIT
from botorch_lse.designs import level_set_complexity
from botorch_lse.problem import Pool
from botorch_lse.strategies import MELKPACStrategy


@pytest.mark.parametrize("name", list(CASES))
def test_whole_widths_are_rarely_wrong_and_a_third_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee_linear, "LIMIT", 1000)
    for chases in (False, True):
        whole = outcome(CASES[name], chases, 4, 1.0)
        narrow = outcome(CASES[name], chases, 8, 6.0)
        assert whole.wrong.wrong == 0
        assert narrow.wrong.wrong > 0
        assert narrow.decided > whole.decided


def test_the_chaser_measures_what_is_nearest_to_a_wrong_decision() -> None:
    case = CASES["melk_linear"]
    X = case.arms(0)
    means, above = X[:, :1], case.above(X[:, :1])
    strategy = chasing(case.build(X, 1.0), above, means)
    state = strategy.init()
    batch = strategy.ask(state)
    noise = torch.randn(len(batch), generator=torch.Generator().manual_seed(0))
    state = strategy.tell(state, batch.observe(means[batch.order, 0] + noise))
    answer = state.classification
    off = (answer.mean - means[:, 0]) / answer.sigma
    worst = int(torch.where(above, -off, off).argmax())
    assert strategy.ask(state).indices.tolist() == [worst]


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
    assert kernel[1].mean * 20 < kernel[0].mean
    assert kernel[1].runs[0].right


def test_limits_prints_a_table_and_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
) -> None:
    monkeypatch.setattr(limits_all, "instances", lambda data: [kernel_features()])
    assert main(["limits", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "by oracle" in printed
    assert "MELK, anytime" in printed
    assert (tmp_path / "limits.png").stat().st_size > 10_000
