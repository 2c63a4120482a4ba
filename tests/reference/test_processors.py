r"""Sets of instructions that a processor does not have are named, not tried."""

from __future__ import annotations

import pytest
import torch

from tests.reference import processors


@pytest.mark.parametrize(
    ("capability", "present"),
    [
        ("AVX512", ["DEFAULT", "AVX2", "AVX512"]),
        ("AVX2", ["DEFAULT", "AVX2"]),
        ("DEFAULT", ["DEFAULT"]),
        ("SVE256", ["DEFAULT"]),  # not of the family of these sets
    ],
)
def test_a_set_is_tried_where_the_processor_has_it(
    capability: str, present: list[str], monkeypatch, capsys
) -> None:
    ran = []
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(processors, "run", lambda name, files: ran.append(name) or 0)
    assert processors.main(["tests"]) == 0
    assert ran == present
    said = capsys.readouterr().out
    for name in processors.SETS:
        assert (f"{name}: not tried" in said) == (name not in present)


def test_a_failure_ends_with_the_status_of_the_tests(monkeypatch) -> None:
    monkeypatch.setattr(processors, "run", lambda name, files: 1)
    assert processors.main([]) == 1


def test_this_processor_is_known_to_torch_by_a_name_of_the_table_or_another_family():
    present, absent = processors.tried(torch.backends.cpu.get_cpu_capability())
    assert present[0] == "DEFAULT"
    assert [*present, *absent] == list(processors.SETS)
