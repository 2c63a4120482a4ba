import pytest

from research.benchmark import guarantee_gege
from research.benchmark.guarantee_gege import methods, simulate
from research.benchmark.registry import Options


@pytest.mark.slow
def test_narrow_widths_are_caught_and_whole_ones_are_not() -> None:
    gege = methods()[0]
    assert simulate(gege, Options(runs=10), 1.0).wrong.wrong == 0
    assert simulate(gege, Options(runs=40), 6.0).wrong.verdict == "violated"


@pytest.mark.slow
def test_the_guarantee_report_has_both_tables() -> None:
    report = guarantee_gege.guarantee_gege(Options(runs=2))
    assert len(report.tables) == 2
    assert report.verdict[0].startswith("Guarantee:")
    one = guarantee_gege.guarantee_gege(Options(runs=2, divide_widths=3.0))
    assert len(one.tables) == 1
