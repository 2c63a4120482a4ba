import pytest
import torch

from research.benchmark import guarantee_hrage
from research.benchmark.registry import Options
from research.papers.weltz2023.problems import benchmark
from research.papers.weltz2023.runs import rage


@pytest.mark.slow
def test_a_third_of_the_widths_is_wrong_too_often() -> None:
    problem = guarantee_hrage.problems()["level set"]
    options = Options(runs=8)
    whole = guarantee_hrage.simulate("level set", problem, "H-RAGE", options, 1.0)
    narrow = guarantee_hrage.simulate("level set", problem, "H-RAGE", options, 6.0)
    assert whole.wrong.wrong == 0
    assert narrow.wrong.verdict == "violated"
    assert whole.burn_in == narrow.burn_in > 0


def test_narrower_strategies_keep_their_samples() -> None:
    strategy = rage(benchmark())
    narrow = guarantee_hrage.narrowed(strategy, 2.0)
    assert narrow.algorithm.width(3) == strategy.algorithm.width(3) / 2
    first, second = (s.planned_counts(s.init()) for s in (strategy, narrow))
    assert torch.equal(first, second)


@pytest.mark.slow
def test_the_guarantee_reports_both_objectives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarantee_hrage, "ANGLE", 0.5)
    report = guarantee_hrage.guarantee_hrage(Options(runs=1))
    whole, power = report.tables
    assert len(whole.rows) == len(power.rows) == 6
    assert report.verdict[1].startswith("Power check")
    options = Options(runs=1, divide_widths=6.0)
    assert len(guarantee_hrage.guarantee_hrage(options).tables) == 1
