import pytest

from research.benchmark import guarantee_truvar, speed_truvar
from research.benchmark.__main__ import main


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["truvar", "truvar_max"])
def test_guarantee_has_a_power_check(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_truvar, "LIMIT", 12)
    assert main(["guarantee", name, "--runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "TruVaR, B = 10" in printed
    assert "Power check: all widths divided by 3" in printed


@pytest.mark.slow
def test_speed_compares_equal_values() -> None:
    found = speed_truvar.compare(6)
    assert found.apart < 1e-6
    assert found.ours > 0
    assert set(found.theirs) == set(speed_truvar.CHUNKS)
    for work in (speed_truvar.evaluate, speed_truvar.decide):
        assert work(6).seconds > 0
