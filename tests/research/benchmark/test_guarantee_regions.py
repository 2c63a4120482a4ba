import pytest
import torch

from botorch_lse.data.classification import Classification
from botorch_lse.models.correlated import priors_of
from research.benchmark import __main__ as command_line
from research.benchmark import guarantee_regions as benchmark
from research.benchmark.__main__ import main
from research.benchmark.registry import Options


def answer(above: list[bool]) -> Classification:
    side = torch.tensor(above)
    zero = torch.zeros(len(side)).double()
    none = torch.zeros_like(side)
    return Classification(side, ~side, none, zero, zero, zero, zero, zero)


def test_a_decision_is_wrong_where_no_values_near_agree() -> None:
    instance = benchmark.Instance.of(0, 4)
    goal = benchmark.REGIONS["and"](instance)
    inside, near, outside = [0.3, 0.2], [-0.1, 0.6], [-0.3, 0.2]
    truth = torch.tensor([inside, near, outside]).double()
    for side in ([True, True, False], [True, False, False]):
        assert not benchmark.is_wrong(answer(side), goal, truth)
    for side in ([False, True, False], [True, True, True]):
        assert benchmark.is_wrong(answer(side), goal, truth)


@pytest.mark.parametrize("name", benchmark.REGIONS)
def test_the_theorem_promises_all_outputs_together(name) -> None:
    strategy = benchmark.build(name, benchmark.Instance.of(0, 4), 1.0)
    assert "With probability 0.9" in strategy.guarantee
    together = "the intervals of all 2 outputs hold together"
    assert (together in strategy.guarantee) == (strategy.n_outputs == 2)
    scaled = benchmark.build(name, benchmark.Instance.of(0, 4), 3.0)
    assert "No confidence is claimed" in scaled.guarantee


def test_correlated_outputs_are_drawn_from_the_process_that_is_given() -> None:
    instance = benchmark.Instance.correlated(3, 4)
    first, second = priors_of(instance.together)
    F, G = (prior.features(instance.pool.X) for prior in (first, second))
    torch.testing.assert_close(
        first.covariance(F, G), benchmark.CORRELATION * first.covariance(F, F)
    )
    torch.testing.assert_close(first.covariance(F, F), second.covariance(G, G))
    strategy = benchmark.build("correlated", instance, 1.0)
    assert "drawn together from the given Gaussian process" in strategy.guarantee
    truths = [benchmark.Instance.correlated(seed, 4).truth for seed in range(400)]
    found = torch.corrcoef(torch.stack(truths)[:, 5].mT)[0, 1]
    assert float(found) == pytest.approx(benchmark.CORRELATION, abs=0.05)


def test_whole_widths_are_never_wrong_and_a_sixth_is_caught() -> None:
    whole, narrow = (
        benchmark.simulate("and", Options(runs=6), divisor, benchmark.Instance.of)
        for divisor in (1.0, 6.0)
    )
    assert whole.wrong.wrong == 0
    assert whole.decided is not None
    assert whole.decided > 0.8
    assert narrow.wrong.verdict == "violated"


def test_it_has_a_quick_form_and_a_power_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "LIMIT", 8)
    monkeypatch.setattr(benchmark, "SIZE", 4)
    monkeypatch.setattr(command_line, "QUICK_RUNS", 2)
    assert main(["guarantee", "regions", "--quick"]) == 0
    printed = capsys.readouterr().out
    for name in benchmark.REGIONS:
        assert f"| {name}" in printed
    assert "Power check: all widths divided by 3" in printed
