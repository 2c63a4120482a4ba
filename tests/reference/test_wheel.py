r"""What is looked for in a wheel is found; ``make wheel`` looks into a real one."""

from __future__ import annotations

import pytest

from tests.reference.wheel import DOOR, faults

GOOD = [
    "botorch_lse/__init__.py",
    "botorch_lse/py.typed",
    "botorch_lse/papers/mason2022/errata.md",
    "botorch_lse/papers/mason2022/melk.py",
    "botorch_lse-0.2.0.dist-info/METADATA",
    DOOR,
]


def test_a_good_wheel_has_no_faults() -> None:
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    "name",
    [
        "botorch_lse/benchmark/registry.py",
        "botorch_lse/papers/mason2022/experiment.py",
        "botorch_lse/moved.py",
        "botorch_lse/tests/test_x.py",
        "research/report.py",
        "tests/reference/test_wheel.py",
    ],
)
def test_what_does_not_belong_there_is_named(name: str) -> None:
    assert any(
        name in fault or name.startswith(fault.split()[0])
        for fault in faults([*GOOD, name])
    )


def test_what_is_missing_is_named() -> None:
    assert faults(GOOD[:1] + GOOD[2:]) == ["botorch_lse/py.typed is not in the wheel"]
