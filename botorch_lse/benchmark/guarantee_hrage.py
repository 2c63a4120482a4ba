r"""The guarantees of RAGE and H-RAGE (Weltz et al. 2023, Theorem 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from tqdm import tqdm

from botorch_lse.benchmark.guarantee import POWER
from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.statistics import VIOLATED, WrongFraction
from botorch_lse.benchmark.weltz2023_problems import LinearProblem, standard
from botorch_lse.benchmark.weltz2023_runs import (
    h_rage,
    h_rage_known,
    rage,
    run_to_the_end,
)
from botorch_lse.strategies import GapEliminationStrategy

DELTA, ANGLE, QUIET = 0.1, 0.05, 0.5
COLUMNS = (
    "objective",
    "method",
    "runs",
    "wrong fraction",
    "95 % Clopper-Pearson",
    "delta",
    "verdict",
    "mean samples",
    "of it burn-in",
)
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


@dataclass(frozen=True)
class Outcome:
    r"""What the runs of one method on one objective gave.

    Args:
        objective: ``"best arm"`` or ``"level set"``.
        method: The method's name.
        wrong: The wrong runs.
        samples: Their mean number of measurements.
        burn_in: The part of the burn-in.
    """

    objective: str
    method: str
    wrong: WrongFraction
    samples: float
    burn_in: float

    def row(self) -> tuple[str, ...]:
        r"""The cells of the table."""
        low, high = self.wrong.interval
        return (
            self.objective,
            self.method,
            str(self.wrong.runs),
            f"{self.wrong.fraction:.3f}",
            f"[{low:.3f}, {high:.3f}]",
            f"{self.wrong.delta:g}",
            self.wrong.verdict,
            f"{self.samples:,.0f}",
            f"{self.burn_in:,.0f}",
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
    objective: str, problem: LinearProblem, method: str, runs: int, divisor: float
) -> Outcome:
    r"""Run a method with seeds ``0, ..., runs - 1`` until it stops."""
    strategy = narrowed(METHODS[method](problem, DELTA), divisor)
    title = f"{objective}, {method}"
    done = [
        run_to_the_end(problem, strategy, seed)
        for seed in tqdm(range(runs), desc=title, disable=None, leave=False)
    ]
    wrong = WrongFraction(sum(not run.right for run in done), runs, DELTA)
    samples = sum(run.samples for run in done) / runs
    return Outcome(
        objective, method, wrong, samples, sum(run.burn_in for run in done) / runs
    )


@entry("guarantee", "hrage", "RAGE and H-RAGE, best arm and level set, unequal noise")
def guarantee_hrage(options: Options) -> Report:
    r"""Both objectives, as promised and with narrower widths."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [
            simulate(objective, problem, method, options.runs, divisor)
            for objective, problem in problems().items()
            for method in METHODS
        ]

    if options.divide_widths is not None:
        scaled = outcomes(options.divide_widths)
        text = f"All widths divided by {options.divide_widths:g}"
        verdict = [f"{text}: {_overall(scaled)}."]
        return Report("guarantee hrage", NOTES, [_table(text, scaled)], verdict)
    whole, power = outcomes(1.0), outcomes(POWER)
    seen = all(o.wrong.verdict == VIOLATED for o in power)
    check = "violated, as it must be" if seen else "NOT violated: no power"
    return Report(
        "guarantee hrage",
        NOTES,
        [
            _table("Widths of the theorem", whole),
            _table(f"Power check: all widths divided by {POWER:g}", power),
        ],
        [f"Guarantee: {_overall(whole)}.", f"Power check: {check}."],
    )


def _table(title: str, outcomes: list[Outcome]) -> Table:
    return Table(title, COLUMNS, [outcome.row() for outcome in outcomes])


def _overall(outcomes: list[Outcome]) -> str:
    verdicts = {o.wrong.verdict for o in outcomes}
    return VIOLATED if VIOLATED in verdicts else " and ".join(sorted(verdicts))
