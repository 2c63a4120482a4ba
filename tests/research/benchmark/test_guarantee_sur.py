import pytest

from botorch_lse.strategies import (
    Above,
    AlternatingRules,
    Ambiguity,
    ExpectedMisclassification,
    Straddle,
)
from research.benchmark import __main__ as command_line
from research.benchmark import guarantee_sur
from research.benchmark.__main__ import main
from research.benchmark.guarantee import simulate
from research.benchmark.guarantee_lse import DELTA, explicit_problem
from research.benchmark.guarantee_sur import EPSILON, form
from research.benchmark.registry import Options

JOINT = ExpectedMisclassification(batch="joint")
RULES = [ExpectedMisclassification(), JOINT, AlternatingRules((Straddle(), JOINT))]


@pytest.mark.parametrize("rule", RULES, ids=["single", "joint", "turns"])
def test_the_theorem_promises_the_same_whatever_the_rule(rule) -> None:
    problem = explicit_problem(0, 4)
    found, wanted = (form("f", r, 2).build(problem, 1.0) for r in (rule, Ambiguity()))
    assert found.goal == Above(0.5, EPSILON)
    assert found.guarantee == wanted.guarantee
    assert "With probability 0.9" in found.guarantee
    assert "Theorem 1" in found.guarantee
    found = form("f", rule, 2).build(problem, 3.0)
    assert "No confidence is claimed" in found.guarantee


def test_whole_widths_are_never_wrong_and_a_sixth_is_caught() -> None:
    def problem(seed: int):
        return explicit_problem(seed, 8)

    options, joint = Options(runs=6), form("SUR", JOINT, 10)
    whole = simulate(joint, problem, options, 1.0, DELTA, EPSILON)
    narrow = simulate(joint, problem, options, 6.0, DELTA, EPSILON)
    assert whole.wrong.wrong == 0
    assert whole.decided > 0.9
    assert narrow.wrong.verdict == "violated"


def test_guarantee_has_a_quick_form_and_a_power_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_sur, "LIMIT", 10)
    monkeypatch.setattr(guarantee_sur, "SIZE", 4)
    monkeypatch.setattr(command_line, "QUICK_RUNS", 2)
    assert main(["guarantee", "sur", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "| SUR, joint, B = 10" in printed
    assert "| the default, B = 10" in printed
    assert "| 2    |" in printed
    assert "Power check: all widths divided by 3" in printed
    assert main(["guarantee", "sur", "--quick", "--runs", "1"]) == 0
    assert "| 1    |" in capsys.readouterr().out
