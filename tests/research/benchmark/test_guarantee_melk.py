from functools import partial

import pytest
import torch

from research.benchmark import guarantee_melk
from research.benchmark.__main__ import main
from research.benchmark.guarantee import Form
from research.benchmark.registry import Options


def test_student_noise_has_the_stated_scale() -> None:
    problem = guarantee_melk.melk_ties(0, guarantee_melk.StudentProblem)
    rows = torch.zeros(200_000, dtype=torch.long)
    noise = problem.measure(rows, problem.noise_generator()) - problem.truth[0]
    # The quartile of Student's t with 2.1 degrees of freedom is 0.8088.
    scale = guarantee_melk.MELK_TIES.noise * (0.1 / 2.1) ** 0.5
    assert float(noise.abs().median()) == pytest.approx(0.8088 * scale, rel=0.02)


def test_a_pac_run_is_wrong_if_either_set_is() -> None:
    problem, at = guarantee_melk.melk_beyond(1), guarantee_melk.BEYOND.tolerance
    above = problem.truth >= problem.threshold
    assert not guarantee_melk.is_wrong(above, above, problem, at)
    everything = torch.ones_like(above)
    assert guarantee_melk.is_wrong(everything, everything, problem, at)
    assert guarantee_melk.is_wrong(~everything, ~everything, problem, at)
    # The row beyond the tolerance may not stay open, the others may.
    assert guarantee_melk.is_wrong(~everything, everything, problem, at)
    decided = everything.clone()
    decided[0] = False
    assert not guarantee_melk.is_wrong(~everything, decided, problem, at)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["melk", "milk"])
def test_widths_far_too_narrow_are_caught(name: str) -> None:
    setting = getattr(guarantee_melk, f"{name.upper()}_TIES")
    build = partial(getattr(guarantee_melk, f"build_{name}"), setting)
    make = getattr(guarantee_melk, f"{name}_ties")
    narrow = guarantee_melk.simulate_pac(Form(name, build), make, Options(runs=10), 8.0)
    assert narrow.wrong.verdict == "violated"


def test_narrowed_algorithms_draw_less_and_eliminate_sooner() -> None:
    problem = guarantee_melk.melk_ties(0)
    whole = guarantee_melk.build_melk(guarantee_melk.MELK_TIES, problem, 1.0)
    third = guarantee_melk.build_melk(guarantee_melk.MELK_TIES, problem, 3.0)
    assert third.rounds.width(1) == pytest.approx(whole.rounds.width(1) / 3)
    ratio = len(whole.ask(whole.init())) / len(third.ask(third.init()))
    assert ratio == pytest.approx(9, rel=0.1)


def test_guarantee_command_reports_whole_and_divided_widths(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = guarantee_melk.Setting(4, 0.3, 0.5)
    for name in ("MELK_TIES", "MILK_TIES", "BEYOND"):
        monkeypatch.setattr(guarantee_melk, name, quick)
    assert main(["guarantee", "melk", "--runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Student t" in printed
    assert "beyond" in printed
    assert "Power check: all widths divided by 3" in printed
    assert main(["guarantee", "milk", "--runs", "1", "--divide-widths", "4"]) == 0
    assert "All widths divided by 4" in capsys.readouterr().out
