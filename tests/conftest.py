r"""What all tests share: one thread each, figures closed, and the marker ``some``."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from itertools import groupby

import pytest
import torch

from tests.covering import spread

# The matrices are small and tests run side by side; and a process forked from one whose
# linear algebra has threads waits for those threads for ever.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of processes that tests start


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    r"""Figures of Matplotlib that a test opens are closed after it.

    It warns of more than twenty, which then are those of all tests of a process.
    """
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):  # which few tests need
        plt.close("all")


@pytest.hookimpl(tryfirst=True)  # before ``-m`` leaves any out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    r"""Of the cases of a test marked ``some(n)`` all but ``n`` are ``slow``.

    Of these others ``slow=m`` run in the slow run, three times ``n`` if not given; the
    rest is ``exhaustive``. Where the choice begins depends on the test's name, so that
    tests that go through the same list do not all take the same of it.
    """
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = [
            case
            for case in group
            if not any(map(case.get_closest_marker, ("slow", "engine")))
        ]
        mark = cases[0].get_closest_marker("some") if cases else None
        if mark is None:
            continue
        start = zlib.crc32(cases[0].originalname.encode())
        cells = [case.callspec.indices for case in cases]
        taken = spread(cells, *mark.args, start)
        more = mark.kwargs.get("slow", 3 * len(taken))
        slow = spread(cells, len(taken) + more, start)  # begins with what is taken
        for i, case in enumerate(cases):
            if i not in taken:
                case.add_marker(pytest.mark.slow)
            if i not in slow:
                case.add_marker(pytest.mark.exhaustive)
