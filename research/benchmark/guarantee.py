r"""How often a strategy that promises at most ``delta`` is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from botorch_lse.confidence import BetaSchedule
from botorch_lse.data.classification import Classification
from botorch_lse.strategies import State, Strategy
from research.benchmark.engines import over_seeds
from research.benchmark.registry import Options
from research.papers.problems import Problem
from research.report import Report, Table
from research.statistics import VIOLATED, WrongFraction

POWER = 3.0
"""The widths are divided by this to see whether the simulation can fail at all."""


@dataclass(frozen=True)
class ScaledBeta:
    r"""A schedule whose widths ``sqrt(beta_t)`` are divided by a number.

    Args:
        schedule: The schedule to shrink.
        divisor: What the widths are divided by, positive.
    """

    schedule: BetaSchedule
    divisor: float

    def __call__(self, t: int) -> float:
        r"""The squared width of interval ``t``."""
        return self.schedule(t) / self.divisor**2


@dataclass(frozen=True)
class Form:
    r"""One form of an algorithm under test.

    Args:
        name: Its name in the table.
        build: From a problem and a divisor of the widths to the strategy.
        promises: Whether a theorem covers it; the others stand beside for comparison.
    """

    name: str
    build: Callable[[Problem, float], Strategy]
    promises: bool = True


@dataclass(frozen=True)
class Outcome:
    r"""What the runs of one form gave.

    Args:
        names: The first cells of its row.
        wrong: The wrong runs.
        decided: Mean share of decided rows at the end, if it is shown.
        samples: Mean number of measurements, if it is shown.
        burn_in: The part of a burn-in, if it is shown.
        promises: Whether a theorem covers the form.
    """

    names: tuple[str, ...]
    wrong: WrongFraction
    decided: float | None = None
    samples: float | None = None
    burn_in: float | None = None
    promises: bool = True

    def row(self) -> tuple[str, ...]:
        r"""The cells of the table."""
        low, high = self.wrong.interval
        shown = [] if self.decided is None else [f"{self.decided:.1%}"]
        counts = (self.samples, self.burn_in)
        shown += [f"{count:,.0f}" for count in counts if count is not None]
        return (
            *self.names,
            str(self.wrong.runs),
            f"{self.wrong.fraction:.3f}",
            f"[{low:.3f}, {high:.3f}]",
            f"{self.wrong.delta:g}",
            self.wrong.verdict,
            *shown,
        )


@dataclass(frozen=True)
class End:
    r"""How one run ended.

    Args:
        wrong: Whether a decided row is wrong.
        decided: The share of decided rows.
        samples: How many measurements it took.
        burn_in: How many of them a burn-in had.
    """

    wrong: bool
    decided: float
    samples: int
    burn_in: int = 0

    @classmethod
    def of(cls, answer: Classification, wrong: bool, samples: int) -> End:
        r"""The end of a run with an answer."""
        return cls(wrong, 1.0 - float(answer.undecided.double().mean()), samples)


def outcome(names: tuple[str, ...], ends: Sequence[End], delta: float) -> Outcome:
    r"""What the runs of one form gave, in the mean.

    Args:
        names: The first cells of its row.
        ends: Its runs.
        delta: The failure probability.
    """
    n = len(ends)
    return Outcome(
        names,
        WrongFraction(sum(end.wrong for end in ends), n, delta),
        sum(end.decided for end in ends) / n,
        sum(end.samples for end in ends) / n,
    )


WRONG = ("runs", "wrong fraction", "95 % Clopper-Pearson", "delta", "verdict")
COLUMNS = ("form", *WRONG, "rows decided", "observations")


def power_report(
    title: str,
    notes: Sequence[str],
    columns: tuple[str, ...],
    outcomes: Callable[[float], Sequence[Outcome]],
    options: Options,
) -> Report:
    r"""The forms as promised, and the power check.

    With ``options.divide_widths`` they run once, with widths so divided.

    Args:
        title: The report's.
        notes: The setting, in sentences.
        columns: Of the tables: the names', ``WRONG``, the rest's.
        outcomes: From a divisor of the widths to what the forms gave.
        options: The command line's.
    """

    def table(text: str, found: Sequence[Outcome]) -> Table:
        return Table(text, columns, [outcome.row() for outcome in found])

    if options.divide_widths is not None:
        scaled = outcomes(options.divide_widths)
        text = f"All widths divided by {options.divide_widths:g}"
        return Report(
            title, notes, [table(text, scaled)], [f"{text}: {_overall(scaled)}."]
        )
    whole, power = outcomes(1.0), outcomes(POWER)
    text = f"Power check: all widths divided by {POWER:g}"
    tables = [table("Widths of the theorem", whole), table(text, power)]
    verdict = [f"Guarantee: {_overall(whole)}.", f"Power check: {_power(power)}."]
    return Report(title, notes, tables, verdict)


def _overall(outcomes: Sequence[Outcome]) -> str:
    verdicts = {o.wrong.verdict for o in outcomes if o.promises}
    if VIOLATED in verdicts:
        return VIOLATED
    return " and ".join(sorted(verdicts))


def _power(outcomes: Sequence[Outcome]) -> str:
    caught = [", ".join(o.names) for o in outcomes if o.wrong.verdict == VIOLATED]
    if len(caught) == len(outcomes):
        return "violated, as it must be"
    return f"violated by {'; '.join(caught)}" if caught else "NOT violated: no power"


def is_wrong(answer: Classification, problem: Problem, epsilon: float) -> bool:
    r"""Whether some decided row lies on the other side by more than ``epsilon``.

    Decisions are final in the forms tested, so the last answer holds all that were
    ever made.
    """
    above = answer.above & (problem.truth < problem.threshold - epsilon)
    below = answer.below & (problem.truth > problem.threshold + epsilon)
    return bool((above | below).any())


Play = Callable[[Strategy, Problem, int], State]
"""Runs a strategy on a problem with a seed until it stops; gives its last state."""


def in_rounds(strategy: Strategy, problem: Problem, seed: int) -> State:
    r"""A run in rounds: each is told as a whole."""
    state, noise = strategy.init(seed), problem.noise_generator()
    while not state.is_done:
        batch = strategy.ask(state)
        y = problem.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
    return state


def simulate(
    form: Form,
    problem: Callable[[int], Problem],
    options: Options,
    divisor: float,
    delta: float,
    epsilon: float,
    play: Play = in_rounds,
) -> Outcome:
    r"""Run a form on problems ``0, ..., runs - 1`` until it stops."""
    run = partial(_end_of, form.build, problem, divisor, epsilon, play)
    ends = over_seeds(run, options, form.name)
    return replace(outcome((form.name,), ends, delta), promises=form.promises)


def _end_of(
    build: Callable[[Problem, float], Strategy],
    problem: Callable[[int], Problem],
    divisor: float,
    epsilon: float,
    play: Play,
    seed: int,
) -> End:
    instance = problem(seed)
    state = play(build(instance, divisor), instance, seed)
    answer = state.classification
    return End.of(answer, is_wrong(answer, instance, epsilon), len(state.observations))


def guarantee_report(
    title: str,
    notes: Sequence[str],
    forms: Sequence[Form],
    problem: Callable[[int], Problem],
    options: Options,
    delta: float,
    epsilon: float,
    play: Play = in_rounds,
) -> Report:
    r"""The whole command; forms that promise nothing are shown with whole widths."""

    def outcomes(divisor: float) -> list[Outcome]:
        chosen = [f for f in forms if f.promises or divisor == 1.0]
        return [
            simulate(form, problem, options, divisor, delta, epsilon, play)
            for form in chosen
        ]

    return power_report(title, notes, COLUMNS, outcomes, options)
