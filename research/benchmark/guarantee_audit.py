r"""Audits: how often claims pass of which more is wrong than is tolerated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from botorch_lse.confidence.audit import (
    LOOKS,
    MISTAKEN,
    NOISE_PAIRS,
    REFERENCE_SHARE,
    AuditTest,
    audit_test,
    noise_bound,
    spent,
    too_many,
    verdicts,
)
from botorch_lse.confidence.judges import (
    ParetoJudge,
    RegionJudge,
    TrialsJudge,
    Values,
)
from botorch_lse.confidence.trials import MOST_TRIALS
from botorch_lse.data.pool import Pool
from botorch_lse.goals.regions import Above, Between, Levels, Region
from botorch_lse.models.outcomes import Binary
from botorch_lse.strategies.criteria.audit import Audit
from botorch_lse.strategies.labels import LabelAudit
from research.benchmark.engines import over
from research.benchmark.guarantee import WRONG, Outcome, power_report
from research.benchmark.registry import Options, entry
from research.report import Report, Table
from research.statistics import WrongFraction

DELTA, RUNS, LOOP_RUNS = 0.05, 10_000, 200
CLEAR, LINE = 20.0, -1e-9
"""Margins in noise standard deviations: of what noise hides never, and of rows that are
wrong by as little as counts, which noise hides most often."""
MOST_DRAWN = 300
"""Draws of one claim at most; later ones hardly ever let one pass that did not."""
MOST_WRONG = 120
"""Claims with so many found wrong are given up."""
BLOCK = 250
"""Runs simulated together."""
NOTES = (
    "A claim gives the rows sides, and as few of them are wrong as is more than "
    "tolerated. Rows are drawn at random and judged. A run is wrong if the claim, or "
    "one of those that come after it, passes.",
    "Margins are in noise standard deviations: how far a row lies on the claim's side "
    f"of the line where it would be wrong by more than epsilon. 'Clear' rows: {CLEAR:g}"
    ". 'At the line': wrong by next to nothing, where noise hides it most often.",
    f"Verdicts and tests are the product's; 'in the loop' are {LOOP_RUNS} runs at most "
    "of `LabelAudit` by ask and tell. Power check: logarithms of limits and reach of "
    "the noise divided by 3.",
)
COLUMNS = ("scenario", "rows", "tolerance", *WRONG)
POWER_COLUMNS = ("rows", "tolerance", "truly wrong", "measurements", "passes")

Margins = Callable[[int, int, torch.Generator], Tensor]


def at(wrong: float, n_rows: int, n_wrong: int, generator: torch.Generator) -> Tensor:
    r"""Clear rows, and the first ``n_wrong`` at one margin."""
    margin = torch.full((n_rows,), CLEAR, dtype=torch.float64)
    margin[:n_wrong] = wrong
    return margin


clear = partial(at, -CLEAR)
r"""Wrong rows are as clear as right ones."""


def near(scale: float, n_rows: int, n_wrong: int, generator: torch.Generator) -> Tensor:
    r"""Distances as of values spread normally about the level; wrong ones clustered."""
    noise = torch.randn(n_rows, generator=generator, dtype=torch.float64)
    margin = scale * noise.abs()
    margin[:n_wrong] *= -1
    return margin


def near_sorted(
    largest: bool, n_rows: int, n_wrong: int, generator: torch.Generator
) -> Tensor:
    r"""The same, where those are wrong of which a model is most or least sure."""
    margin = near(100.0, n_rows, 0, generator).sort(descending=largest).values
    margin[:n_wrong] *= -1
    return margin


@dataclass(frozen=True)
class RegionCase:
    r"""A claim about a region in place of one about a level.

    Args:
        region: The region.
        label: The class that is claimed of all rows.
        directions: For each output how far it moves per unit of the margin,
        start: from here, where the claim is just right or just wrong.
    """

    region: Region
    label: int
    directions: tuple[float, ...]
    start: tuple[float, ...] = (0.0,)

    def at(self, margins: Tensor) -> Tensor:
        r"""``n x m`` values of rows with these margins."""
        return torch.tensor(self.start).double() + margins.unsqueeze(-1) * torch.tensor(
            self.directions
        )


@dataclass(frozen=True)
class FrontCase:
    r"""A claim that rows are no better than one accepted row, at 0 in two outputs.

    Wrong rows exceed it in the first output and are far behind in the other one.
    """

    def bounds(self, scenario: Scenario, risk: float) -> Tensor:
        r"""``2`` distances to the ends of the accepted row's intervals."""
        shape = scenario.n_rows + 1, 2
        counts = torch.full(shape[:1], LOOKS[-1])
        std = torch.full(shape, scenario.noise_std, dtype=torch.float64)
        values = Values(torch.zeros(shape), std, counts, scenario.most)
        return values.lasting_reach(risk)[0]

    def verdicts(
        self, values: Values, ends: Tensor, divisor: float, mistaken: float
    ) -> Tensor:
        r"""Verdicts of rejected rows, whose means are differences from the row's."""
        judge = ParetoJudge(torch.ones(2).double(), torch.zeros(2).double())
        lower = -ends.unsqueeze(0) / divisor
        return judge.rejected(values, lower, -lower, mistaken)


@dataclass(frozen=True)
class TrialsCase:
    r"""A claim about a probability, whose rows are tried until their side is shown.

    Args:
        region: The region of probabilities.
        label: The class that is claimed of all rows.
        wrong: The probability of a yes in rows that are wrong,
        right: and in rows that are right.
    """

    region: Region
    label: int
    wrong: float
    right: float

    def judged(
        self, is_wrong: Tensor, mistaken: float, most: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        r"""Verdicts of rows, and how often each was tried, at most ``most`` times."""
        verdict, look = self.by_state(mistaken, most)
        p = torch.where(is_wrong, self.wrong, self.right).double()
        found = torch.zeros_like(is_wrong, dtype=torch.int8)
        counts = torch.zeros_like(is_wrong, dtype=torch.long)
        yes = counts.clone()
        while bool((is_open := found == 0).any()):
            n, s = counts[is_open], yes[is_open]
            more = look[n, s] - n
            drawn = torch.binomial(more.double(), p[is_open], generator=generator)
            n, s = n + more, s + drawn.long()
            counts[is_open], yes[is_open] = n, s
            found[is_open] = verdict[n, s]
        return found, counts

    def by_state(self, mistaken: float, most: int) -> tuple[Tensor, Tensor]:
        r"""The verdicts by trials and yes, and the trials at the next look."""
        side = torch.arange(most + 1)
        n, s = (one.reshape(-1) for one in torch.meshgrid(side, side, indexing="ij"))
        mean = (s / n.clamp_min(1)).double().unsqueeze(-1)
        values = Values(mean, torch.zeros_like(mean), n, most)
        judge = TrialsJudge(self.region.values, (Binary(),))
        labels = torch.full_like(n, self.label)
        verdict = judge.verdicts(labels, values, mistaken)
        look = judge.looks(labels, values, mistaken, torch.arange(len(n)))
        return verdict.view(len(side), -1), look.view(len(side), -1)


BOTH = Above(0.0) & Above(0.0, output=1)
IN_BOTH = RegionCase(BOTH, 1, (1.0, 0.0), (0.0, CLEAR))
"""Wrong rows are out by one of the outputs."""
OUT_OF_BOTH = RegionCase(BOTH, 0, (-1.0, -1.0))
"""Wrong rows are inside by next to nothing, so that noise of either output hides it."""
OUT_OF_BAND = RegionCase(Between(-1e-8, 1e-8), 0, (1.0,))
"""Wrong rows are in a narrow band, which noise leaves on both sides."""
THREE = RegionCase(Levels((0.0, 2 * CLEAR)), 1, (1.0,))
"""The claim is the class in the middle."""
OFTEN = TrialsCase(Above(0.75, 0.05), 1, 0.7, 1.0)
RARELY = TrialsCase(Above(0.2, 0.1), 0, 0.3, 0.0)
HALFWAY = TrialsCase(Between(0.2, 0.8), 1, 0.8 + 1e-9, 0.5)
"""Claims of probabilities: above, below, and between levels."""


@dataclass(frozen=True)
class Scenario:
    r"""Claims of one kind.

    Args:
        name: The row's name.
        margins: From the numbers of rows and of wrong ones to the rows' margins.
        n_rows: How many rows there are to draw from.
        tolerance: The share that may be wrong.
        noise_std: The noise standard deviation, 1 or 0.
        most: How often a row may be measured.
        is_learnt: Whether the noise is learnt from rows that are measured twice.
        by_sign: Whether rows are judged by the side of one value.
        lost: The probability that a row is abandoned, right and wrong ones.
        attempts: How many claims follow each other.
        patience: A claim is given up once so many rows are found wrong.
        in_loop: Whether it runs through the whole product.
        of: What is claimed, if it is not the side of one level.
    """

    name: str
    margins: Margins = clear
    n_rows: int = 1000
    tolerance: float = 0.05
    noise_std: float = 1.0
    most: int = LOOKS[-1]
    is_learnt: bool = False
    by_sign: bool = False
    lost: tuple[float, float] = (0.0, 0.0)
    attempts: int = 1
    patience: int = MOST_WRONG
    in_loop: bool = False
    of: RegionCase | FrontCase | TrialsCase | None = None

    @property
    def n_outputs(self) -> int:
        r"""How many values a measurement gives."""
        if self.of is None or isinstance(self.of, TrialsCase):
            return 1
        return 2 if isinstance(self.of, FrontCase) else len(self.of.directions)

    @property
    def n_wrong(self) -> int:
        r"""The least number of rows that is too many."""
        return too_many(self.tolerance, self.n_rows)

    def test(self, attempt: int) -> AuditTest:
        r"""The test that an audit of the product would use in this scenario."""
        is_exact = self.noise_std == 0
        return audit_test(
            self.tolerance,
            DELTA,
            attempt,
            n_rows=self.n_rows,
            is_exact=is_exact,
            is_learnt=self.is_learnt,
            by_sign=self.by_sign,
            n_outputs=self.n_outputs,
            has_references=isinstance(self.of, FrontCase),
            by_trials=isinstance(self.of, TrialsCase),
        )


SCENARIOS = (
    Scenario("exact values", noise_std=0.0),
    Scenario("exact values, 50 rows", n_rows=50, noise_std=0.0),
    Scenario("noise, at the line", partial(at, LINE)),
    Scenario("noise, at the line, one measurement a row", partial(at, LINE), most=1),
    Scenario("noise, at the line, 200 rows", partial(at, LINE), n_rows=200),
    Scenario("noise, at the line, 50 rows", partial(at, LINE), 50, 0.0599),
    Scenario("noise, at the line, 20 rows", partial(at, LINE), 20, 0.0999),
    Scenario("the same, one wrong row is too many", partial(at, LINE), 20, 0.0499),
    Scenario("the same, one measurement a row", partial(at, LINE), 20, 0.0499, most=1),
    Scenario("noise that is learnt, at the line", partial(at, LINE), is_learnt=True),
    Scenario("the same, 50 rows", partial(at, LINE), 50, 0.0599, is_learnt=True),
    Scenario("by the side of one value", partial(at, LINE), most=1, by_sign=True),
    Scenario("in both of two regions", partial(at, LINE), of=IN_BOTH),
    Scenario("the same, noise learnt", partial(at, LINE), is_learnt=True, of=IN_BOTH),
    Scenario("out of one of two regions", partial(at, LINE), of=OUT_OF_BOTH),
    Scenario(
        "the same, by the sides of two values",
        partial(at, LINE),
        most=1,
        by_sign=True,
        of=OUT_OF_BOTH,
    ),
    Scenario("out of a band", partial(at, LINE), of=OUT_OF_BAND),
    Scenario("between two levels", partial(at, LINE), of=THREE),
    Scenario("out of a Pareto set", partial(at, LINE), of=FrontCase()),
    Scenario("yes or no, at the line", partial(at, LINE), most=MOST_TRIALS, of=OFTEN),
    Scenario("the same, 50 rows", partial(at, LINE), 50, 0.0599, most=32, of=OFTEN),
    Scenario("yes or no, rarely", partial(at, LINE), most=MOST_TRIALS, of=RARELY),
    Scenario("yes or no, in a band", partial(at, LINE), most=MOST_TRIALS, of=HALFWAY),
    Scenario("wrong rows are those most sure", partial(near_sorted, True)),
    Scenario("wrong rows are those least sure", partial(near_sorted, False)),
    Scenario("wrong rows are neighbours", partial(near, 100.0)),
    Scenario("wrong rows are often abandoned", lost=(0.0, 0.5)),
    Scenario("one row in ten is abandoned", tolerance=0.2, lost=(0.1, 0.1)),
    Scenario("three claims, given up at the first mistake", attempts=3, patience=1),
    Scenario("the same at the line", partial(at, LINE), attempts=3, patience=1),
    Scenario(
        "exact values, 50 rows, in the loop", n_rows=50, noise_std=0.0, in_loop=True
    ),
    Scenario(
        "noise, 50 rows, in the loop", partial(at, LINE), 50, 0.0599, in_loop=True
    ),
    Scenario(
        "noise, 20 rows, in the loop", partial(at, LINE), 20, 0.0999, in_loop=True
    ),
)


@dataclass(frozen=True)
class Audits:
    r"""What became of simulated claims.

    Args:
        passed: ``R`` bools.
        measured: ``R`` numbers of measurements until then.
    """

    passed: Tensor
    measured: Tensor


def simulate(
    scenario: Scenario, n_wrong: int, runs: int, divisor: float, attempt: int = 1
) -> Audits:
    r"""The ``attempt``-th audits of claims with so many wrong rows.

    Args:
        scenario: What is simulated.
        n_wrong: How many rows are wrong.
        runs: How many claims; the seeds are ``0, 1, ...``.
        divisor: What the limit's logarithm and the reach of the noise are divided by.
        attempt: 1 for the first audit of a run.
    """
    test = scenario.test(attempt)
    least = least_right(replace(test, limit=test.limit ** (1 / divisor)))
    blocks = []
    for start in range(0, runs, BLOCK):
        size = min(BLOCK, runs - start)
        seed = 1_000_003 * attempt + start
        generator = torch.Generator().manual_seed(seed)
        margins = scenario.margins(scenario.n_rows, n_wrong, generator)
        order = torch.rand(size, scenario.n_rows, generator=generator).argsort(dim=1)
        rows = order[:, :MOST_DRAWN]
        found, looks = judged(scenario, margins[rows], test.mistaken, divisor, seed)
        lost = torch.where(rows < n_wrong, scenario.lost[1], scenario.lost[0])
        found[torch.rand(rows.shape, generator=generator) < lost] = -1
        wrong = (found < 0).long().cumsum(dim=1)
        right = (found > 0).long().cumsum(dim=1)
        is_open = wrong < scenario.patience
        passes = is_open & (right >= least[wrong.clamp_max(MOST_WRONG)])
        first = passes.long().argmax(dim=1, keepdim=True)
        passed = passes.any(dim=1)
        measured = looks.cumsum(dim=1).gather(1, first).view(-1)
        blocks.append(Audits(passed, measured))
    return Audits(
        torch.cat([block.passed for block in blocks]),
        torch.cat([block.measured for block in blocks]),
    )


def judged(
    scenario: Scenario, margins: Tensor, mistaken: float, divisor: float, seed: int
) -> tuple[Tensor, Tensor]:
    r"""Verdicts on rows with these margins, and how often each was measured."""
    generator = torch.Generator().manual_seed(seed + 1)
    if isinstance(scenario.of, TrialsCase):
        weaker = mistaken ** (1 / divisor)
        return scenario.of.judged(margins < 0, weaker, scenario.most, generator)
    # What the looks add to the sum of a row's values, each in one draw.
    looks = [look for look in LOOKS if look <= scenario.most]
    added = torch.tensor([1.0, *(b - a for a, b in pairwise(looks))]).sqrt()
    m = scenario.n_outputs
    noise = torch.randn(*margins.shape, m, len(looks), generator=generator) * added
    total = (scenario.noise_std * noise).double().cumsum(dim=-1)
    std = torch.full((*margins.shape, m), scenario.noise_std, dtype=torch.float64)
    if scenario.is_learnt:
        first, both = (total[:, :NOISE_PAIRS, :, k].mT for k in range(2))
        pairs = zip(first.flatten(0, 1), (both - first).flatten(0, 1), strict=True)
        bounds = torch.tensor([noise_bound(*pair, DELTA / m) for pair in pairs])
        std *= bounds.view(-1, 1, m)
    if isinstance(scenario.of, FrontCase):
        ends = scenario.of.bounds(scenario, REFERENCE_SHARE * spent(DELTA, 1))
        # One accepted row for all rows of a run.
        shape = len(margins), 1, 2
        reference = torch.randn(shape, generator=generator, dtype=torch.float64)
        reference *= scenario.noise_std / LOOKS[-1] ** 0.5
    found = torch.zeros_like(margins, dtype=torch.int8)
    counts = torch.zeros_like(margins, dtype=torch.long)
    for k, look in enumerate(looks):
        is_open = found == 0
        counts[is_open] = look
        if look == 1 and scenario.is_learnt:
            is_open[:, :NOISE_PAIRS] = False  # measured twice, then judged
        means, spread = total[..., k][is_open] / look, std[is_open] / divisor
        given = counts[is_open], scenario.most
        chance = mistaken or MISTAKEN  # without noise it does not matter
        if scenario.of is None:
            own = margins[is_open] + means[:, 0], spread[:, 0]
            found[is_open] = verdicts(*own, *given, chance)
            continue
        if isinstance(scenario.of, FrontCase):
            gaps = torch.stack([-margins, torch.full_like(margins, -CLEAR)], dim=-1)
            means = means + (gaps - reference)[is_open]
            rows = Values(means, spread, *given)
            found[is_open] = scenario.of.verdicts(rows, ends, divisor, chance)
            continue
        if scenario.by_sign:
            spread = torch.zeros_like(spread)
        values = Values(scenario.of.at(margins[is_open]) + means, spread, *given)
        labels = torch.full_like(given[0], scenario.of.label)
        judge = RegionJudge(scenario.of.region.values)
        found[is_open] = judge.verdicts(labels, values, chance)
    return found, counts


def least_right(test: AuditTest) -> Tensor:
    r"""How many right rows let a claim pass beside 0, 1, ... wrong ones."""
    never = torch.iinfo(torch.long).max
    least = torch.full((MOST_WRONG + 1,), never)
    for wrong in range(min(MOST_WRONG, MOST_DRAWN, test.n_rows or MOST_DRAWN)):
        beside = replace(test, wrong=wrong)
        number = beside.remaining
        if not replace(beside, right=number).has_passed:
            break  # nor with more wrong ones
        least[wrong] = number
    return least


def divided(divisor: float, *given: Any, **named: Any) -> AuditTest:
    r"""An audit's test with a weaker limit, its logarithm divided; else as it was."""
    test = audit_test(*given, **named)
    return replace(test, limit=test.limit ** (1 / divisor))


def passes_in_loop(scenario: Scenario, seed: int, divisor: float) -> bool:
    r"""Whether the claim passes in a run by ask and tell."""
    generator = torch.Generator().manual_seed(seed)
    margins = scenario.margins(scenario.n_rows, scenario.n_wrong, generator)
    # Half of the rows are claimed to be above: `margins` is on the claim's side.
    above = torch.rand(scenario.n_rows, generator=generator) < 0.5
    strategy = LabelAudit(
        Pool(torch.arange(scenario.n_rows).double().unsqueeze(-1)),
        above,
        0.0,
        audit=(scenario.tolerance, DELTA),
        noise_std=scenario.noise_std / divisor,
        batch_size=10,
        max_repeats=scenario.most,
        max_observations=MOST_DRAWN,
    )
    (audit,) = strategy.criteria
    assert isinstance(audit, Audit)
    weaker = replace(audit, make_test=partial(divided, divisor))
    vars(strategy)["criteria"] = (weaker,)  # in its place
    truth = torch.where(above, margins, -margins)
    state = strategy.init(seed)
    while not state.is_done:
        batch = strategy.ask(state)
        noise = torch.randn(len(batch.order), generator=generator, dtype=torch.float64)
        y = truth[batch.order] + scenario.noise_std * noise
        state = strategy.tell(state, batch.observe(y))
    return state.stop_reason == "audited"


def outcome(scenario: Scenario, runs: int, divisor: float) -> Outcome:
    r"""How often the claims of a scenario pass, which are all wrong."""
    if scenario.in_loop:
        runs = min(runs, LOOP_RUNS)
        passed = sum(passes_in_loop(scenario, seed, divisor) for seed in range(runs))
    else:
        any_passed = torch.zeros(runs, dtype=torch.bool)
        for attempt in range(1, scenario.attempts + 1):
            audits = simulate(scenario, scenario.n_wrong, runs, divisor, attempt)
            any_passed |= audits.passed
        passed = int(any_passed.sum())
    names = (scenario.name, f"{scenario.n_rows:,}", f"{scenario.tolerance:.3g}")
    # Some hundred runs show that the loop does the same, not that it holds.
    fraction = WrongFraction(passed, runs, DELTA)
    return Outcome(names, fraction, promises=not scenario.in_loop)


POWER = (
    ("exact values", Scenario("", noise_std=0.0)),
    ("clear", Scenario("")),
    ("clear, one measurement a row", Scenario("", most=1)),
    ("clear, noise learnt", Scenario("", is_learnt=True)),
    ("clear, by the side of one value", Scenario("", most=1, by_sign=True)),
    ("yes, 0.75 +- 0.05", Scenario("", partial(at, LINE), most=MOST_TRIALS, of=OFTEN)),
    ("30 sd about the level", Scenario("", partial(near, 30.0))),
    ("10 sd about the level", Scenario("", partial(near, 10.0))),
)


def power_rows(runs: int) -> list[tuple[str, ...]]:
    r"""What audits of claims cost that hold, and how many of them pass."""
    rows: list[tuple[str, ...]] = []
    for name, scenario in POWER:
        for tolerance in (0.05, 0.1):
            for share in (0.0, 0.01, 0.02):
                chosen = replace(scenario, tolerance=tolerance)
                n_wrong = round(share * chosen.n_rows)
                audits = simulate(chosen, n_wrong, runs, 1.0)
                cost = audits.measured[audits.passed].double()
                rows.append(
                    (
                        name,
                        f"{tolerance:g}",
                        f"{share:.0%}",
                        f"{float(cost.mean()):.0f}" if len(cost) else "-",
                        f"{float(audits.passed.double().mean()):.3f}",
                    )
                )
    return rows


def report(scenarios: Sequence[Scenario], options: Options) -> Report:
    r"""The audits as promised, the power check, and what claims that hold cost."""

    def outcomes(divisor: float) -> list[Outcome]:
        run = partial(outcome, runs=options.runs, divisor=divisor)
        return over(run, scenarios, options, f"/ {divisor:g}")

    found = power_report("guarantee audit", NOTES, COLUMNS, outcomes, options)
    if options.divide_widths is not None:
        return found
    text = (
        f"Claims that hold: mean measurements of those that pass in {MOST_DRAWN} draws"
    )
    table = Table(text, POWER_COLUMNS, power_rows(max(1, options.runs // 5)))
    return replace(found, tables=[*found.tables, table])


@entry("guarantee", "audit", "Audits of wrong claims, 10,000 runs", runs=RUNS)
def guarantee_audit(options: Options) -> Report:
    r"""How often wrong claims pass, in all scenarios."""
    return report(SCENARIOS, options)
