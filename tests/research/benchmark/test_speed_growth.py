r"""The sweep over all that is exported: nothing is forgotten, and growth fails it."""

from __future__ import annotations

import math

import pytest

from botorch_lse import acquisition, strategies
from botorch_lse.benchmark import main
from research.benchmark import speed_growth
from research.benchmark.speed_growth import (
    AXES,
    LEAST,
    NO_WORK,
    PACKAGES,
    QUICK_SIZES,
    Feature,
    Taken,
    ax_works,
    exponent,
    taken,
    works,
)

NAMES = list(works())


def test_every_exported_name_is_measured_or_has_a_reason() -> None:
    ours = pytest.importorskip("botorch_lse.ax")
    exported = {name for package in (*PACKAGES, ours) for name in package.__all__}
    assert exported == (exported & set(NAMES)) | set(NO_WORK)
    assert not set(NAMES) & set(NO_WORK)
    # A rule and an acquisition function may have one name.
    twice = set(acquisition.__all__) & set(strategies.__all__)
    assert {f"acquisition.{name}" for name in twice} <= set(NAMES)


@pytest.mark.some(6)
@pytest.mark.parametrize("name", NAMES)
def test_every_work_is_done_on_a_small_pool(name: str) -> None:
    if name in ax_works():
        pytest.importorskip("ax")
    axis = works()[name].axis
    one = taken(name, 130 if axis == "rows" else AXES[axis][1][0])
    assert not one.said
    assert one.seconds > 0


def test_an_exponent_is_that_of_the_last_two_sizes() -> None:
    squares = [Taken(1e-6 * n**2, 0) for n in (1_000, 3_000)]
    assert exponent((1_000, 3_000), squares) == pytest.approx(2.0)
    short = [Taken(LEAST / 9, 0), Taken(LEAST / 2, 0)]
    assert math.isnan(exponent((1_000, 3_000), short))
    assert math.isnan(exponent((1_000, 3_000), squares[:1]))


ENOUGH, TOO_MANY = "Expected items whose pairs fit `memory_budget`", "not enough memory"


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (Taken(30.0, 0), 0),
        (Taken(90.0, 0), 1),  # the square, and in proportion is claimed
        (Taken(math.nan, 0, ENOUGH, refused=True), 0),
        (Taken(math.nan, 0, TOO_MANY), 1),
        (Taken(15.0, 0, ended=True), 0),  # so much is no more than is claimed
        (Taken(60.0, 0, ended=True), 1),
    ],
)
def test_growth_beyond_the_claim_and_raw_errors_fail(
    monkeypatch, capsys, last, status
) -> None:
    def made_up(name: str, n: int, longest: int) -> Taken:
        return last if n == QUICK_SIZES[-1] else Taken(10.0, 0)

    monkeypatch.setattr(speed_growth, "works", lambda: {"one": Feature(made_up)})
    monkeypatch.setattr(speed_growth, "alone", made_up)
    monkeypatch.setattr(speed_growth, "calls_on", lambda *of: [(1.0, 0)] * 3)
    assert main(["speed", "growth", "--quick"]) == status
    assert ("one: " in capsys.readouterr().out) == bool(status)


def test_lines_are_chosen_by_name(monkeypatch, capsys) -> None:
    features = {"one": Feature(len), "other": Feature(len)}
    monkeypatch.setattr(speed_growth, "works", lambda: features)
    monkeypatch.setattr(speed_growth, "alone", lambda *of: Taken(1.0, 0))
    monkeypatch.setattr(speed_growth, "calls_on", lambda *of: pytest.fail("measured"))
    assert main(["speed", "growth", "--quick", "--only", "other"]) == 0
    said = capsys.readouterr().out
    assert "other" in said
    assert "| one " not in said
    with pytest.raises(ValueError, match="`--only` to be one of"):
        main(["speed", "growth", "--only", "none"])


def test_what_takes_too_long_at_once_fails(monkeypatch, capsys) -> None:
    ended = Taken(15.0, 0, ended=True)
    monkeypatch.setattr(speed_growth, "works", lambda: {"one": Feature(len)})
    monkeypatch.setattr(speed_growth, "alone", lambda *of: ended)
    monkeypatch.setattr(speed_growth, "calls_on", lambda *of: [(1.0, 0)] * 3)
    assert main(["speed", "growth", "--quick"]) == 1
    assert "smallest size takes more than 15.00 s" in capsys.readouterr().out


def test_a_size_that_seems_to_grow_is_measured_again(monkeypatch) -> None:
    # The second time nothing else runs on the processor.
    times = iter([10.0, 90.0, 10.0, 30.0])
    monkeypatch.setattr(speed_growth, "works", lambda: {"one": Feature(len)})
    monkeypatch.setattr(speed_growth, "alone", lambda *of: Taken(next(times), 0))
    monkeypatch.setattr(speed_growth, "calls_on", lambda *of: [(1.0, 0)] * 3)
    assert main(["speed", "growth", "--quick"]) == 0


@pytest.mark.slow
def test_each_work_has_a_process_of_its_own() -> None:
    one = speed_growth.alone("LSEStrategy", 130)
    assert not one.said
    assert one.seconds > 0
    assert "nothing" in speed_growth.alone("nothing", 130).said
    assert speed_growth.alone("MILKPACStrategy", 3_000, longest=1).ended
