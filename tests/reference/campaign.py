r"""A campaign of whole runs over a covering of everything a run can be made of.

``python -m tests.reference.campaign --seed 0 --runs 1000`` (or ``--minutes 10``) plays
the cases of a seed, prints a table of what became of them, and ends with 1 if one was
broken; ``--case 123`` plays case 123 alone, step by step and to its end. Each case has
one level of each factor of ``worlds.py``, and is a function of the seed and its number.

A run is played through a host to its end. On the way rows are told in parts, out of
order, late, unasked, abandoned, excluded, as the case says. After each step: no error
but refusals, which come at construction and name an argument; the budget, the repeats
and the exclusions are kept; nothing is nan; sides, means and intervals agree. In the
middle and at the end the observations are replayed in a fresh strategy, which must give
the same answer and ask for the same rows. A run ends for a documented reason; one that
is cut (without a budget, a row at the level may be measured for ever) is ended as the
documentation says, by a budget that is spent. Decided rows are compared with the truth:
of the runs in which what a theorem assumes is so, at most the share that it allows may
have a wrong row.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import random
import re
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from botorch.exceptions.errors import BotorchError
from scipy.stats import binom
from torch import Tensor
from tqdm import tqdm

from botorch_lse import Observations
from botorch_lse.plotting.report import report_of
from botorch_lse.strategies import (
    Classes,
    Levels,
    LogNormal,
    MinimumU,
    Region,
    State,
)
from tests.reference import worlds
from tests.reference.hosts import (
    HOSTS,
    TOO_LONG,
    CutError,
    RefusedError,
    is_refusal,
    must,
    must_be_same,
)
from tests.reference.worlds import cases, results_of, world_of

MOST = 120
"""Measurements after which a run is cut, unless it is played alone."""
ALONE = 1_000
"""Measurements after which a run that is played alone is cut."""
NUMBERS = ("lower", "upper", "mean", "sigma", "probability_above")
QUARTER = 0.25
"""Runs of whose decided rows more are wrong are listed: models may err, but not so."""
UNLIKE = {"truth": ("rough", "steps"), "history": ("on one side", "one typing error")}
"""Levels at which the function, or old values, are not what is assumed of them."""
RARE = 1e-3
"""A campaign is broken if so many wrong runs were less likely than this."""
DOCUMENTED = (State.__doc__ or "").partition("stop_reason:")[2].partition("plan:")[0]
REASONS = frozenset(
    re.findall(r'``"([\w ]+)"``', " ".join(f"{DOCUMENTED}{MinimumU.__doc__}".split()))
)
"""What a run may end with, as the documentation says."""


@dataclass
class Outcome:
    r"""What became of a case.

    Args:
        end: The reason of the end, ``refused``, ``cut`` or ``broken``.
        words: What was refused or broken.
        decided: How many rows were decided at the end.
        wrong: How many of them are wrong by more than the accuracy.
        is_doubted: Whether the answer itself says that something is amiss.
        claims: Guarantees that the run has, with the share of runs in which they may
            fail, and whether they did.
        n: How many measurements were told.
        seconds: CPU seconds.
    """

    end: str
    words: str = ""
    decided: int = 0
    wrong: int = 0
    is_doubted: bool = False
    claims: dict[tuple[str, float], bool] = field(default_factory=dict)
    n: int = 0
    seconds: float = 0.0


class Run:
    r"""A run: its world, what was measured, and what must hold of it.

    Args:
        case: A level of each factor.
        seed: Of the campaign.
        number: Of the case.
        most: Measurements after which it is cut.
        says: What is called with each step.

    Raises:
        RefusedError: If the strategy is refused.
    """

    def __init__(
        self,
        case: Mapping[str, str],
        seed: int,
        number: int,
        most: int,
        says: Callable[[str], None],
    ) -> None:
        self.case, self.most, self.says = case, most, says
        self.rng = random.Random(f"{seed}/{number}/run")
        self.make = lambda: world_of(case, seed, number)
        try:
            self.world = self.make()
        except Exception as error:
            if is_refusal(error):
                raise RefusedError(str(error)) from error
            raise
        self.strategy = self.world.strategy
        self.n_told = 0
        says(f"{self.strategy}")

    def values(self, rows: Tensor) -> Tensor:
        r"""Measurements of some rows; few decimals, as Ax keeps them."""
        generator = torch.Generator().manual_seed(self.rng.randrange(2**31))
        F, std = self.world.F[rows], self.world.std[rows]
        noise = torch.randn(F.shape, generator=generator, dtype=torch.float64)
        self.n_told += len(rows)
        if isinstance(self.world.outcome, LogNormal):
            F, std = F * (std * noise).exp(), 0 * std
        elif self.world.outcome is not None:
            F = results_of(self.world.outcome, F, noise, generator)
            std = 0 * std
        if self.case["asks"] == worlds.ONE_CLASS:
            F[:, 1] = 1 - F[:, 0]
        y = (F + std * noise).mul(1e6).round() / 1e6
        return y[:, 0] if self.world.is_one_number else y

    def observed(self, rows: Tensor) -> Observations:
        r"""Measurements as they are told."""
        y = self.values(rows)
        noise = None
        if self.world.tells_noise:
            noise = self.world.std[rows].clamp_min(0.01).square().view(y.shape)
            if isinstance(self.world.outcome, LogNormal):
                noise = noise * y.square()
        return Observations(rows, y, noise)

    def some(self, rows: Sequence[int], least: int = 1) -> list[int]:
        r"""A few of some rows, in any order."""
        n = self.rng.randint(min(least, len(rows)), len(rows))
        return self.rng.sample(rows, n)

    # --- what must hold ---------------------------------------------------------------

    def check(self, state: State) -> None:
        r"""What must hold of every state."""
        answer = state.classification
        for name in NUMBERS:
            must(not bool(getattr(answer, name).isnan().any()), f"{name} is nan")
        p = answer.probability_above
        must(bool(((p >= 0) & (p <= 1)).all()), "a probability outside [0, 1]")
        sound = ~answer.contradicted
        for part in (answer, *answer.outputs):
            slack = 1e-6 * (1 + part.mean.abs())
            inside = (part.lower <= part.mean + slack) & (
                part.mean <= part.upper + slack
            )
            bad = (sound & ~inside).nonzero().view(-1).tolist()
            must(not bad, f"the means of rows {bad} are outside of their intervals")
        if answer.classes is not None:
            open_ = answer.classes == -1
            must(torch.equal(open_, answer.undecided), "classes and sides differ")
        self.check_sides(answer)
        must(state.stop_reason in (None, *REASONS), f"ends {state.stop_reason!r}, "
             "which is not documented")  # fmt: skip

    def check_sides(self, answer: Any) -> None:
        r"""No row is decided where its interval says the contrary."""
        goal = self.world.goal
        if not isinstance(goal, Region) or isinstance(goal, Levels | Classes):
            return
        parts = answer.outputs or (answer,)
        if len(parts) < self.world.items.shape[1]:
            return
        low = torch.stack([part.lower for part in parts], dim=-1)
        high = torch.stack([part.upper for part in parts], dim=-1)
        for_certain = worlds.side_of(goal, low, high, 1e-6)
        wrong = (answer.above & (for_certain == -1)) | (
            answer.below & (for_certain == 1)
        )
        bad = (wrong & ~answer.contradicted).nonzero().view(-1).tolist()
        must(not bad, f"rows {bad} are decided against their intervals")

    def check_new(self, state: State, new: list[int], out: list[int]) -> None:
        r"""The budget, the repeats and the exclusions, of what is asked for.

        Args:
            state: Where the run stands.
            new: Rows that are asked for.
            out: Rows that are being measured besides.
        """
        excluded = {*new} & {*state.excluded_rows.tolist()}
        must(not excluded, f"excluded rows are asked for: {excluded}")
        total, limit = [*out, *new], self.strategy.max_observations
        waits = sum(len(group) for group in state.deferred)
        if limit is not None:
            n = len(state.observations) + len(state.abandoned) + len(total)
            must(n <= limit, f"{n} measurements ({waits} deferred), and {limit} are "
                 "allowed")  # fmt: skip
        if self.strategy.max_repeats is None:
            return
        uses = state.uses(len(self.strategy.pool))
        for row in {*new}:
            n = int(uses[row]) + total.count(row)
            must(n <= self.strategy.max_repeats, f"row {row} is measured {n} times")

    def replayed(self, state: State, seed: int) -> State:
        r"""The same state of a fresh strategy, from the observations alone."""
        fresh = self.make().strategy
        lost = defaultdict[int, list[int]](list)
        for label, row in state.abandoned:
            lost[label].append(row)
        again = fresh.replay(
            state.observations, seed, abandoned=lost, excluded=state.excluded
        )
        must_be_same(state, again, "what was replayed")
        if not state.is_done and len(fresh.planned(again)) < TOO_LONG:
            one, other = self.strategy.ask(state).order, fresh.ask(again).order
            must(torch.equal(one, other), "after a replay other rows are asked for")
        return again

    def end(self, state: State) -> None:
        r"""End a run that is cut, as the documentation says: by a budget.

        The budget is what was told, so that nothing more may be asked for. One that
        ends before a first round or a burn-in of thousands is refused beforehand.
        """
        told = state.observations
        if told.n_measured == 0:  # a round of thousands, of which nothing was told
            return
        try:
            limited = replace(self.make().strategy, max_observations=told.n_measured)
        except Exception as error:
            if is_refusal(error):
                return
            raise
        ended = limited.replay(told, state.seed, excluded=state.excluded)
        must(ended.is_done, "the budget is spent, and the run goes on")
        self.check(ended)
        self.read(ended)

    def read(self, state: State) -> None:
        r"""Ask a state whatever may be asked."""
        answer = state.classification
        must(len(answer.to_frame()) == len(answer), "another number of lines")
        must(report_of(state, has_pictures=False).answer[0] != "", "nothing to report")
        found = state.content()
        must(found.lower <= found.upper + 1e-9, f"content {found}")
        must(not math.isnan(found.estimate), f"content {found}")
        if state.strategy.pool.total is None:
            must(-1e-9 <= found.estimate <= 1 + 1e-9, f"content {found}")
            must(found.upper <= 1 + 1e-9, f"content {found}")
        x = self.strategy.candidates.X[:2]
        for call in (
            lambda: state.conservative(0.9),
            lambda: state.predict(x),
            lambda: str(state.calibration()),
        ):
            try:
                call()
            except BotorchError as error:  # it has no such thing
                if not str(error).startswith("Expected"):
                    raise

    def outcome(self, state: State) -> Outcome:
        r"""How a run ended, and how right it was."""
        must(state.is_done, "it ends without a reason")
        self.check(state)
        self.read(state)
        answer = state.classification
        found = Outcome(str(state.stop_reason), n=self.n_told)
        wrong = self.world.wrong(answer)
        if wrong is None:
            return found
        found.decided = int((~answer.undecided).sum())
        found.wrong = int(wrong.sum())
        found.is_doubted = (
            bool(state.remarks)
            or bool(answer.contradicted.any())
            or "No confidence is claimed: the error" in answer.guarantee
            or "Do not trust" in answer.guarantee
        )
        if self.world.claims and answer.guarantee.startswith("With probability"):
            delta = float(getattr(self.strategy, "delta", 0.05))
            found.claims["theorem", delta] = found.wrong > 0
        if state.stop_reason == "audited":  # whatever the model and the function
            tolerance, delta = self.strategy.audit
            found.claims["audit", delta] = found.wrong > tolerance * len(answer)
        return found


# --- the campaign ---------------------------------------------------------------------


def play(
    case: Mapping[str, str],
    seed: int,
    number: int,
    most: int = MOST,
    says: Callable[[str], None] = lambda _: None,
) -> Outcome:
    r"""What became of a case."""
    start, run = time.process_time(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run = Run(case, seed, number, most, says)
            host = HOSTS[case["host"]](run)
            try:
                found = run.outcome(host.play())
            except CutError:
                run.end(host.state)
                found = Outcome("cut")
        except RefusedError as refusal:
            found = Outcome("refused", str(refusal))
        except Exception as error:
            says(traceback.format_exc())
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if "botorch_lse" in f.filename
                   or "tests/reference" in f.filename]  # fmt: skip
            at = own[-1]
            where = f"{Path(at.filename).name}:{at.lineno}"
            words = f"{type(error).__name__} at {where}: {str(error)[:160]}"
            found = Outcome("broken", words)
    found.seconds = time.process_time() - start
    found.n = 0 if run is None else run.n_told
    says(f"{found}")
    return found


@dataclass
class Campaign:
    r"""What became of the cases so far.

    Args:
        cases: The cases played, by number.
        outcomes: What became of them.
    """

    cases: dict[int, Mapping[str, str]] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    @property
    def broken(self) -> list[int]:
        r"""The numbers of the broken cases."""
        return [n for n, found in self.outcomes.items() if found.end == "broken"]

    def too_often_wrong(self) -> dict[str, tuple[int, int, float]]:
        r"""By guarantee: runs, wrong ones, and how likely at least so many are."""
        groups = defaultdict[tuple[str, float], list[bool]](list)
        for found in self.outcomes.values():
            for claim, is_false in found.claims.items():
                groups[claim].append(is_false)
        return {
            f"{name}, {share}": (
                len(each),
                sum(each),
                float(binom.sf(sum(each) - 1, len(each), share)),
            )
            for (name, share), each in sorted(groups.items())
        }

    def holds(self) -> bool:
        r"""Whether nothing is broken, and guarantees were kept."""
        kept = all(p > RARE for *_, p in self.too_often_wrong().values())
        return not self.broken and kept

    def report(self) -> str:
        r"""The counts, as tables."""
        outcomes = self.outcomes.values()
        ends = Counter(found.end for found in outcomes)
        lines = [f"{'runs':22}{len(self.outcomes):7}", ""]
        lines += [f"{end:22}{n:7}" for end, n in ends.most_common()]
        total = sum(found.seconds for found in outcomes)
        told = sum(found.n for found in outcomes)
        lines += ["", f"{told} measurements, {total:.0f} CPU seconds"]
        lines += ["", f"{'':22}{'decided':>9}{'wrong':>7}"]
        for factor in ("history", "truth", "noise"):
            for level in worlds.FACTORS[factor]:
                own = [self.outcomes[n] for n, case in self.cases.items()
                       if case[factor] == level]  # fmt: skip
                decided = sum(found.decided for found in own)
                wrong = sum(found.wrong for found in own)
                name = f"{factor} {level}"
                lines.append(f"{name:30}{decided:7}{wrong:7}")
        for name, (n, n_wrong, p) in self.too_often_wrong().items():
            mark = "" if p > RARE else ": more than is allowed"
            lines.append(f"{name:22}{n:5} runs,{n_wrong:3} in which it failed{mark}")
        doubtful = [n for n, found in self.outcomes.items()
                    if found.wrong > max(2, QUARTER * found.decided)]  # fmt: skip
        lines += ["", f"more than a quarter of the decided rows wrong: {doubtful}"]
        silent = [
            n
            for n in doubtful
            if not self.outcomes[n].is_doubted
            and not any(self.cases[n][factor] in UNLIKE[factor] for factor in UNLIKE)
        ]
        lines += [f"without a word, and all was as assumed: {silent}"]
        cut = [n for n, found in self.outcomes.items() if found.end == "cut"]
        lines += [f"cut, to be played with --most {ALONE}: {cut}"]
        for end in ("refused", "broken"):
            by_words = defaultdict[str, list[int]](list)
            for n, found in self.outcomes.items():
                if found.end == end:
                    kind = re.sub(r"\[[\d, ]*\]|(?<![:\d])\d+", "#", found.words)
                    by_words[kind].append(n)
            lines += ["", *([f"{end}:"] if by_words else [])]
            for words, which in sorted(by_words.items(), key=lambda x: -len(x[1])):
                lines.append(f"  {len(which)}x {words}: cases {which[:8]}")
        return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    r"""Play a campaign, and say what became of it."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, help="how many (default 1000)")
    parser.add_argument("--minutes", type=float, help="until the time is over instead")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--most", type=int, default=MOST, help="measurements of a run")
    parser.add_argument("--case", type=int, help="the number of one, step by step")
    parser.add_argument("--host", choices=[*HOSTS], help="cases of one host alone")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    all_cases = enumerate(cases(options.seed))
    if options.case is not None:
        number, case = next(itertools.islice(all_cases, options.case, None))
        print(case)
        found = play(case, options.seed, number, ALONE, print)
        return int(found.end == "broken")
    runs = options.runs
    if runs is None:
        runs = sys.maxsize if options.minutes is not None else 1000
    minutes = math.inf if options.minutes is None else options.minutes
    end, campaign = time.monotonic() + 60 * minutes, Campaign()
    wanted = ((n, case) for n, case in all_cases if n >= options.first
              and options.host in (None, case["host"]))  # fmt: skip
    total = runs if options.minutes is None else None
    bar = tqdm(itertools.islice(wanted, runs), total=total, disable=None)
    for number, case in bar:
        if time.monotonic() > end:
            break
        found = play(case, options.seed, number, options.most)
        campaign.cases[number], campaign.outcomes[number] = case, found
        bar.set_postfix(broken=len(campaign.broken))
        if found.end == "broken":
            bar.write(f"{number}: {found.words}")
    print(campaign.report())
    if campaign.broken:
        print(f"\nPlay one alone: --seed {options.seed} --case {campaign.broken[0]}")
    return 0 if campaign.holds() else 1


if __name__ == "__main__":
    sys.exit(main())
