import pytest

from botorch_lse.strategies import Ambiguity
from research.benchmark import __main__ as command_line
from research.benchmark import guarantee_asynchronous
from research.benchmark.__main__ import main
from research.benchmark.guarantee import simulate
from research.benchmark.guarantee_asynchronous import EPSILON, as_they_come, form
from research.benchmark.guarantee_lse import DELTA, explicit_problem
from research.benchmark.registry import Options


def problem(seed: int):
    return explicit_problem(seed, 8)


def test_whole_widths_are_never_wrong_and_a_sixth_is_caught() -> None:
    options, lse = Options(runs=4), form("LSE", Ambiguity())
    given = (lse, problem, options)
    whole = simulate(*given, 1.0, DELTA, EPSILON, as_they_come)
    narrow = simulate(*given, 6.0, DELTA, EPSILON, as_they_come)
    assert whole.wrong.wrong == 0
    assert whole.decided > 0.9
    assert narrow.wrong.verdict == "violated"


def test_results_come_in_another_order_than_they_were_asked_for() -> None:
    strategy = form("LSE", Ambiguity()).build(problem(0), 1.0)
    one, eight = (as_they_come(strategy, problem(0), 0, n) for n in (1, 8))
    assert len(eight.history) >= 1
    assert one.history.indices.tolist() != eight.history.indices.tolist()
    again = as_they_come(strategy, problem(0), 0, 8)
    assert again.history.indices.tolist() == eight.history.indices.tolist()
    assert eight.round == len(eight.history)  # each result is a round of its own


def test_guarantee_has_a_quick_form_and_a_power_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_asynchronous, "LIMIT", 10)
    monkeypatch.setattr(
        guarantee_asynchronous,
        "explicit_problem",
        lambda seed: explicit_problem(seed, 4),
    )
    monkeypatch.setattr(command_line, "QUICK_RUNS", 2)
    assert main(["guarantee", "asynchronous", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "| LSE " in printed
    assert "| the default " in printed
    assert "Power check: all widths divided by 3" in printed
