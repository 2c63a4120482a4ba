r"""The guarantees of RAGE and H-RAGE (Weltz et al. 2023, Theorem 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

from botorch_lse.papers.weltz2023 import GapEliminationStrategy
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import WRONG, End, Outcome, outcome, power_report
from research.benchmark.registry import Options, entry
from research.papers.weltz2023.problems import LinearProblem, standard
from research.papers.weltz2023.runs import (
    h_rage,
    h_rage_known,
    rage,
    run_to_the_end,
)
from research.report import Report

DELTA, ANGLE, QUIET = 0.1, 0.05, 0.5
COLUMNS = ("objective", "method", *WRONG, "mean samples", "of it burn-in")
NOTES = (
    f"The three arms of Figure 1 with the angle {ANGLE:g}: gap 0.00125 between the two "
    f"best. Level set: the level halfway between them. Variances from {QUIET:g} to 1, "
    "the informative arm being the noisiest, so that RAGE has nothing to spare. Run k "
    "uses seed k.",
    "A run is wrong if the answer is not the best arm, or not the level set. Runs go "
    "on until all is decided; H-RAGE's include the burn-in, in which its variances are "
    "estimated.",
    "Narrower widths decide on what is larger than 2^-t divided by the number, with "
    "the samples unchanged.",
)


def problems() -> dict[str, LinearProblem]:
    r"""Both objectives on the same arms."""
    best = standard(ANGLE, QUIET)
    first, second = best.means.sort(descending=True).values[:2].tolist()
    return {
        "best arm": best,
        "level set": replace(best, threshold=(first + second) / 2),
    }


METHODS: dict[str, Callable[[LinearProblem, float], GapEliminationStrategy]] = {
    "H-RAGE": h_rage,
    "H-RAGE, variances known": h_rage_known,
    "RAGE": rage,
}


def narrowed(
    strategy: GapEliminationStrategy, divisor: float
) -> GapEliminationStrategy:
    r"""The same strategy with the widths that decide divided by a number."""
    kind = type(strategy)
    share = {"elimination_constant": kind.elimination_constant / divisor}
    narrow = type(f"Narrow{kind.__name__}", (kind,), share)
    options = {f.name: getattr(strategy, f.name) for f in fields(kind) if f.init}
    return narrow(**options)


def simulate(
    objective: str,
    problem: LinearProblem,
    method: str,
    options: Options,
    divisor: float,
) -> Outcome:
    r"""Run a method with seeds ``0, ..., options.runs - 1`` until it stops."""
    run = partial(_end_of, problem, method, divisor)
    ends = over_seeds(run, options, f"{objective}, {method}")
    burn_in = sum(end.burn_in for end in ends) / len(ends)
    found = outcome((objective, method), ends, DELTA)
    return replace(found, decided=None, burn_in=burn_in)


def _end_of(problem: LinearProblem, method: str, divisor: float, seed: int) -> End:
    strategy = narrowed(METHODS[method](problem, DELTA), divisor)
    run = run_to_the_end(problem, strategy, seed)
    return End(not run.right, 1.0, run.samples, run.burn_in)


@entry("guarantee", "hrage", "RAGE and H-RAGE, best arm and level set, unequal noise")
def guarantee_hrage(options: Options) -> Report:
    r"""Both objectives, as promised and with narrower widths."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [
            simulate(objective, problem, method, options, divisor)
            for objective, problem in problems().items()
            for method in METHODS
        ]

    return power_report("guarantee hrage", NOTES, COLUMNS, outcomes, options)
