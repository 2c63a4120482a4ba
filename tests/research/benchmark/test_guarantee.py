import math
from functools import partial

import pytest
import torch

from botorch_lse.confidence import ConstantBeta
from botorch_lse.papers import ImplicitLSELiteralBatchStrategy, LSELiteralBatchStrategy
from botorch_lse.strategies import ImplicitLSEStrategy, LSEStrategy
from research.benchmark import guarantee_lse
from research.benchmark.guarantee import (
    ScaledBeta,
    guarantee_report,
    is_wrong,
    simulate,
)
from research.benchmark.guarantee_lse import (
    explicit_problem,
    forms,
    implicit_problem,
)
from research.benchmark.registry import Options
from research.papers.problems import Problem, gp_sample

EXPLICIT = forms("LSE", LSEStrategy, LSELiteralBatchStrategy, 0.2)
IMPLICIT = forms("LSE_imp", ImplicitLSEStrategy, ImplicitLSELiteralBatchStrategy, 0.4)
SMALL = partial(explicit_problem, size=8)


def test_scaled_widths_are_divided_in_units_of_sigma() -> None:
    assert math.sqrt(ScaledBeta(ConstantBeta(9.0), 3.0)(1)) == pytest.approx(1.0)


def test_a_run_is_wrong_beyond_epsilon_only() -> None:
    pool, prior, _ = gp_sample(0, 2, (0.3, 0.3))
    truth = torch.tensor([0.9, 1.1, 1.3, 0.7], dtype=torch.float64)
    problem = Problem(pool, truth, 0.1, 1.0, 0.5, prior, 0)

    class Answer:
        above = torch.tensor([True, False, True, False])
        below = torch.tensor([False, True, False, True])

    assert not is_wrong(Answer(), problem, 0.15)  # type: ignore[arg-type]
    assert is_wrong(Answer(), problem, 0.05)  # type: ignore[arg-type]


def test_whole_widths_are_never_wrong_and_a_sixth_is_caught() -> None:
    options = Options(runs=12)
    whole = simulate(EXPLICIT[1], SMALL, options, 1.0, 0.1, 0.2)
    narrow = simulate(EXPLICIT[1], SMALL, options, 6.0, 0.1, 0.2)
    assert whole.wrong.wrong == 0
    assert whole.decided > 0.9
    assert narrow.wrong.verdict == "violated"


def test_the_report_says_violated_when_it_is() -> None:
    options = Options(runs=12, divide_widths=6.0)
    report = guarantee_report("t", (), EXPLICIT, SMALL, options, 0.1, 0.2)
    assert "violated" in report.verdict[0]
    assert len(report.tables) == 1
    assert len(report.tables[0].rows) == 3


@pytest.mark.slow
def test_the_report_runs_the_power_check_and_the_literal_forms() -> None:
    problem = partial(implicit_problem, size=5)
    report = guarantee_report("t", (), IMPLICIT, problem, Options(runs=2), 0.1, 0.4)
    whole, power = report.tables
    assert len(whole.rows) == 7
    assert len(power.rows) == 3
    assert report.verdict[1].startswith("Power check")


def test_forms_use_the_theorem_unless_widths_are_divided() -> None:
    problem = SMALL(0)
    strategy = EXPLICIT[0].build(problem, 1.0)
    assert strategy.beta is None  # type: ignore[attr-defined]
    assert strategy.delta == guarantee_lse.DELTA  # type: ignore[attr-defined]
    assert EXPLICIT[0].build(problem, 3.0).beta is not None  # type: ignore[attr-defined]
