r"""Measure what ``make test`` takes.

``python -m tests.reference.budget`` (``make budget``) prints CPU minutes and
minutes on the clock, installation apart, and ends with status 1 where they exceed
``MOST`` CPU minutes. On cores that are not idle the clock says little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

MOST = 10.0
"""CPU minutes of the default test run: on two idle cores five on the clock."""


def cpu_minutes() -> float:
    r"""What ended child processes, and their children, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def main() -> int:
    r"""Run and measure; the status of the tests, or 1 if they take too much."""
    subprocess.run(["make", ".venv/.test"], check=True)
    before, start = cpu_minutes(), time.perf_counter()
    status = subprocess.run(["make", "test"], check=False).returncode
    used, minutes = cpu_minutes() - before, (time.perf_counter() - start) / 60
    print(f"make test: {used:.1f} CPU minutes of {MOST:g}, {minutes:.1f} on the clock")
    return status or int(used > MOST)


if __name__ == "__main__":
    sys.exit(main())
