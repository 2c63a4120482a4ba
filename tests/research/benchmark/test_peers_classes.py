r"""Maps of classes: what is compared, and one of them played."""

from __future__ import annotations

import json

import pytest
import torch

from research.benchmark.peers_classes import AT, MAPS, Job, Run, report, run
from research.benchmark.registry import find


@pytest.mark.parametrize("name", MAPS)
def test_every_map_has_all_of_its_classes(name: str) -> None:
    of = MAPS[name]
    X = torch.rand(2000, of.d, generator=torch.Generator().manual_seed(0)).double()
    labels = of.labels(X, 0)
    counts = labels.bincount(minlength=of.n)
    assert len(counts) == of.n
    assert int(counts.min()) > 20


@pytest.mark.slow
def test_a_run_counts_wrong_rows() -> None:
    (found,) = run(Job("magnet, 2-D", "batches of 10", 0))
    assert len(found.wrong) == len(AT)
    assert found.wrong[1] < 0.1
    assert 0 <= found.decided <= 1


def test_means_are_by_map_and_method() -> None:
    runs = [
        Run(Job("magnet, 2-D", "random rows", seed), (x, x / 2), 0.5, seed)
        for seed, x in enumerate((0.1, 0.3))
    ]
    found = report(runs)
    (line,) = found.tables[0].rows
    assert line[:3] == ("magnet, 2-D", "random rows", 2)
    assert line[3:] == ("20.0 +- 10.0 %", "10.0 +- 5.0 %", "50%", 1)
    assert len(json.loads(json.dumps(found.data))["runs"]) == 2


def test_it_is_an_entry() -> None:
    assert find("peers", "classes").summary
