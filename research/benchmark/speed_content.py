r"""One decision while a failure probability is looked for among 100,000 rows."""

from __future__ import annotations

import time
import warnings
from statistics import median

from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import Above, GaussianProcess, Strategy
from research.benchmark.registry import Options, entry
from research.benchmark.reliability_problems import CASES
from research.benchmark.speed import in_fresh_process, target
from research.report import Report, Table

ROWS, MOST, SECONDS = 100_000, 90, 2.0
"""Rows of the pool, measurements at most, and what a decision may take."""
NAMES = ("four-branch, k = 7", "oscillator")


@entry("speed", "content", "one decision for a failure probability on 100,000 rows")
def speed_content(options: Options) -> Report:
    r"""Seconds from a result to the next row, after the initial design."""
    rows, data = [], {}
    for name in NAMES[:1] if options.quick else NAMES:
        seconds, stopped = in_fresh_process(times, name)
        middle, worst = median(seconds), max(seconds)
        data[name] = seconds
        rows.append(
            (
                name,
                len(seconds),
                f"{middle:.2f}",
                target(f"{worst:.2f}", worst <= SECONDS),
                stopped,
            )
        )
    columns = ("case", "decisions", "median", "worst", "stopped")
    notes = (
        f"{ROWS:,} independent draws, no noise, the default rule, content_tol=0.05, at "
        f"most {MOST} measurements. Seconds of the processor, one core: the fit of the "
        "learnt model, the posterior of all rows, the interval of the content and its "
        f"stop, and the next row. Target: at most {SECONDS:g} s.",
    )
    return Report("speed content", notes, [Table("Content", columns, rows)], (), data)


def times(name: str) -> tuple[list[float], str]:
    r"""Seconds of each decision after the initial design, and why the run ended."""
    case, seconds = CASES[name], list[float]()
    pool = Pool.from_distribution(case.inputs, ROWS, seed=0, method="monte_carlo")
    values = case.f(pool.X)
    strategy = Strategy(
        pool,
        Above(0.0),
        model=GaussianProcess(noise_std=0.0),
        content_tol=0.05,
        max_observations=MOST,
    )
    state = strategy.init(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        while not state.is_done:
            start = time.process_time()
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(values[batch.order]))
            if state.n_used >= 10 * pool.d:
                seconds.append(time.process_time() - start)
    return seconds, str(state.stop_reason)
