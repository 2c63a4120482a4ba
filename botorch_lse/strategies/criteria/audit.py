r"""Audits inside a run: once all is decided, rows drawn at random must agree.

While the algorithm has open rows the run goes on as ever. Once all is decided its
answer is a claim: rows are drawn uniformly at random from those not measured, measured,
and compared with the claim, until the test of ``confidence/audit.py`` has passed. Their
values also go into the model. If the model then takes back more of the claim than the
audit would tolerate, learning goes on, and the next claim is audited anew with what is
left of ``delta``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.audit import (
    KNOWN,
    LEARNT,
    NOISE_PAIRS,
    NOISE_SHARE,
    REFERENCE_SHARE,
    SIDE,
    AuditTest,
    audit_test,
    check_statement,
    doubt_test,
    most_wrong,
    noise_bound,
    spent,
)
from botorch_lse.confidence.judges import BY_SIDES, Judge, Values
from botorch_lse.confidence.trials import MOST_TRIALS
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content, difference_limits
from botorch_lse.data.observations import Observations, derived
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.strategies.algorithm import (
    ALL_ABOVE,
    AUDITED,
    DECIDED,
    NONE_FOUND,
    NOT_CONFIRMED,
    Algorithm,
    Auditable,
    AuditFacts,
    auditable,
)
from botorch_lse.strategies.criteria.base import Criterion, Run
from botorch_lse.strategies.forecast import Forecast

USUAL = (0.05, 0.05)
"""The tolerance and the failure probability of ``audit=True``."""
DRAWS = 4096
"""The number of rows drawn ahead for one claim: one that needs more is not worth it."""
UNJUDGED = (
    "Not audited: the model learns another noise for each row, so that one value says "
    "little of an output that has two levels. State the noise to have it audited."
)
"""The sentence of an answer that no audit can judge."""
TAKEN_BACK = 0.5
"""The share of the tolerance that, once taken back by the model, ends a claim."""


@dataclass(frozen=True, eq=False)
class Claim:
    r"""The claim about the rows when all of them were decided.

    Args:
        labels: ``N`` numbers of classes, as they were said; the last one is above.
        judge: How values are compared with that.
        rows: The rows from which is drawn: those not measured by then.
        draws: Places in ``rows`` in random order, drawn before any value was seen. No
            row twice: it would say nothing new.
        total: ``N x m`` sums of the values measured since, for each output.
        variance: ``N x m`` noise variances of these sums, as far as they are known.
        counts: ``N``, how often each row was measured since.
        low: ``N x m``, the lower of a row's first two values; infinite before.
        high: ``N x m``, the higher one.
        verdict: ``N`` codes: 1 right, -1 wrong, 0 not known yet.
    """

    labels: Tensor
    judge: Judge
    rows: Tensor
    draws: Tensor
    total: Tensor
    variance: Tensor
    counts: Tensor
    low: Tensor
    high: Tensor
    verdict: Tensor

    @classmethod
    def of(
        cls, labels: Tensor, judge: Judge, rows: Tensor, seed: int, attempt: int
    ) -> Claim:
        r"""The claim that the rows have the given labels.

        Args:
            labels: ``N`` numbers of classes.
            judge: How values are compared with them.
            rows: The rows not measured; at least one.
            seed: The run's seed.
            attempt: 1 for the first claim of the run.
        """
        digest = hashlib.sha256(f"{seed}|audit|{attempt}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        draws = torch.randperm(len(rows), generator=generator)[:DRAWS]
        zero = torch.zeros(len(labels), judge.n_outputs, dtype=torch.float64)
        high, counts = torch.full_like(zero, -torch.inf), torch.zeros_like(labels)
        none = counts.to(torch.int8)
        return cls(labels, judge, rows, draws, zero, zero, counts, -high, high, none)

    @property
    def is_above(self) -> Tensor:
        r"""Whether each row is claimed to be above, or in the region (``N`` bools)."""
        return self.labels == self.judge.n_classes - 1

    @property
    def all_alike(self) -> bool:
        r"""Whether the same is claimed of all rows."""
        return bool((self.labels == self.labels[0]).all())

    @property
    def drawn(self) -> Tensor:
        r"""The rows in the order in which they were drawn."""
        return self.rows[self.draws]

    @property
    def pairs(self) -> Tensor:
        r"""The rows that are measured twice where the noise is learnt."""
        return self.drawn[:NOISE_PAIRS]

    @cached_property
    def judged(self) -> Tensor:
        r"""The verdicts, right or wrong, on the draws before the first open one.

        Later ones wait even if they are judged: clear rows need fewer looks, and
        counting them first would favour them.
        """
        found = self.verdict[self.drawn]
        open_ = (found == 0).nonzero()
        return found[: int(open_[0]) if len(open_) else len(found)] > 0

    def with_values(self, new: Observations) -> Claim:
        r"""The claim with further measurements of any rows.

        Args:
            new: The measurements with their noise variances.
        """
        new = replace(new, y=self.judge.numbers(new.y))
        y = new.y.double().view(len(new), self.judge.n_outputs)
        # If a row is measured more than twice at once, the extremes stand for the two
        # values: in sorted values none is the first, and these are never too near.
        first = (self.counts < 2)[new.indices]
        values = y[first]
        rows = new.indices[first].unsqueeze(-1).expand_as(values)
        sums = self.total, self.variance, self.counts
        total, variance, counts = _added(*sums, new)
        return replace(
            self,
            total=total,
            variance=variance,
            counts=counts,
            low=self.low.scatter_reduce(0, rows, values, "amin"),
            high=self.high.scatter_reduce(0, rows, values, "amax"),
        )

    def without(self, rows: Tensor) -> Claim:
        r"""The claim after rows were used up without a result: they count as wrong."""
        lost = self.verdict.index_fill(0, rows, -1)
        return replace(self, verdict=torch.where(self.verdict == 0, lost, self.verdict))

    def noise_std(self, delta: float) -> Tensor | None:
        r"""The noise bounds (``m``) once all ``pairs`` are there; ``None`` before.

        Pairs that were used up without a result are left out.

        Args:
            delta: See ``noise_bound``; of all outputs together.
        """
        rows = self.pairs[self.verdict[self.pairs] == 0]
        if bool((self.counts[rows] < 2).any()):
            return None
        pairs = zip(self.low[rows].mT, self.high[rows].mT, strict=True)
        m = self.judge.n_outputs
        bounds = [noise_bound(low, high, delta / m) for low, high in pairs]
        return torch.tensor(bounds, dtype=torch.float64)

    def judged_by(self, values: Values, mistaken: float) -> Claim:
        r"""The claim with the verdicts of all rows that are due.

        Args:
            values: The measurements since.
            mistaken: The probability that noise makes a wrong row look right.
        """
        found = self.judge.verdicts(self.labels, values, mistaken)
        return replace(
            self, verdict=torch.where(self.verdict == 0, found, self.verdict)
        )

    def wanted(
        self,
        left: Tensor,
        missing: Tensor,
        needs_pairs: bool,
        out: Tensor,
        given: tuple[Values, float],
    ) -> Tensor:
        r"""The measurements that each drawn row needs for its next look (``N`` counts).

        Args:
            left: ``N``, how often each row may still be measured.
            missing: ``N`` counts: nothing is judged before they are there.
            needs_pairs: Whether nothing is judged before the ``pairs`` are there.
            out: ``N``, how often each row is being measured.
            given: The measurements, and the probability of a mistake, by which rows are
                judged.
        """
        if needs_pairs:
            looks = torch.ones_like(self.counts).index_fill(0, self.pairs, 2)
        elif bool((missing > 0).any()):
            looks = torch.ones_like(self.counts)
        else:
            rows = self.drawn[self.verdict[self.drawn] == 0]
            looks = self.counts.clone()
            looks[rows] = self.judge.looks(self.labels, *given, rows)
        more = (looks - self.counts - out).clamp_min(0)
        more = torch.where((self.verdict == 0) & (more <= left), more, 0)
        is_drawn = torch.zeros_like(more, dtype=torch.bool)
        is_drawn[self.drawn] = True
        missing = (missing - out).clamp_min(0).minimum(left)
        return torch.maximum(more * is_drawn, missing)


@dataclass(frozen=True, eq=False)
class AuditNote:
    r"""The state of an audit.

    Args:
        seed: The run's seed, from which rows are drawn.
        measured: ``N`` bools: rows that were measured or used up so far.
        lost: ``N`` bools: rows that were used up without a result, or excluded.
        attempt: How many claims were made, the open one included.
        claim: The open claim; ``None`` while the algorithm learns.
        noise: How rows are judged: by ``KNOWN`` noise, by ``LEARNT`` noise, which is
            bounded from pairs, or by ``SIDE`` of one value, whatever the noise.
        noise_std: ``m`` bounds of noise that is learnt; ``None`` before they are known.
        is_gaussian: Whether noise that is known is Gaussian; else it is sub-Gaussian.
        sums: Where rows are compared with others: ``N x m`` sums of all values of the
            run, ``N x m`` variances of these, ``N`` counts.
        ended: ``"audited"`` once the claim is shown, ``"not confirmed"`` once it is
            clear that it will not be.
    """

    seed: int
    measured: Tensor
    lost: Tensor
    attempt: int = 0
    claim: Claim | None = None
    noise: str = KNOWN
    noise_std: Tensor | None = None
    is_gaussian: bool = True
    sums: tuple[Tensor, Tensor, Tensor] | None = None
    ended: str | None = None

    @property
    def needs_pairs(self) -> bool:
        r"""Whether nothing can be judged yet because the noise is not bounded."""
        return self.noise == LEARNT and self.noise_std is None


@dataclass(frozen=True, eq=False)
class Audit(Criterion):
    r"""The test of an answer by rows drawn at random, before the run ends.

    The algorithm of the run has ``audit_facts`` and is ``Auditable``.

    Args:
        pool: The rows that can be measured. Of several sources the target is audited.
        tolerance: The share of the rows not measured that may be wrong.
        delta: The probability, over the draws, that more are wrong and it passes.
        max_repeats: The largest number of measurements of one row.
        make_test: Makes the test of a claim.
    """

    pool: Pool
    tolerance: float
    delta: float
    max_repeats: int | None = None
    make_test: Callable[..., AuditTest] = audit_test

    draws_at_random = True

    # --- learning ---------------------------------------------------------------------

    def _items_of(self, rows: Tensor) -> Tensor:
        r"""The items that rows of the pool measure, without those of other sources."""
        own = self.pool.of_target
        return rows[(rows >= own.start) & (rows < own.stop)] - own.start

    def start(self, run: Run, seed: int) -> AuditNote:
        r"""The note before any observation, with a claim if all is decided then."""
        none = torch.zeros(len(self.pool.without_sources), dtype=torch.bool)
        facts, sums = _facts_of(run), None
        if not facts.by_itself:
            zero = torch.zeros(len(none), facts.n_outputs, dtype=torch.float64)
            sums = zero, zero, none.long()
        note = AuditNote(seed, none, none, is_gaussian=facts.is_gaussian, sums=sums)
        return self._claimed(note, run)

    def lose(self, note: AuditNote, run: Run, rows: Tensor) -> AuditNote:
        r"""The note after rows were used up without a result; drawn ones are wrong."""
        rows = self._items_of(rows)
        after = replace(
            note,
            measured=note.measured.index_fill(0, rows, True),
            lost=note.lost.index_fill(0, rows, True),
            claim=None if note.claim is None else note.claim.without(rows),
        )
        return self._looked(after, run)

    def after(
        self, note: AuditNote, before: Run, run: Run, new: Observations
    ) -> AuditNote:
        r"""The note after one more round, the audit's rows judged."""
        claim, sums = note.claim, note.sums
        own = self.pool.of_target
        is_own = (new.indices >= own.start) & (new.indices < own.stop)
        new = new.select(is_own.nonzero().view(-1))
        items = new.indices - own.start
        if (claim is not None or sums is not None) and note.ended is None:
            # The noise as it was when the values came: a later fit has seen them.
            told = derived(before.ask(_audited(run).audited, new), indices=items)
            if claim is not None:
                claim = claim.with_values(told)
            if sums is not None:
                sums = _added(*sums, told)
        measured = note.measured.index_fill(0, items, True)
        return self._looked(
            replace(note, measured=measured, claim=claim, sums=sums), run
        )

    def _looked(self, note: AuditNote, run: Run) -> AuditNote:
        r"""The note after the values told so far, perhaps with a new claim."""
        note = self._kept(self._tested(self._judged(note)), run)
        return self._claimed(note, run)

    def _judged(self, note: AuditNote) -> AuditNote:
        claim = note.claim
        if claim is None or note.ended is not None:
            return note
        if note.needs_pairs:
            bound = claim.noise_std(spent(self.delta, note.attempt))
            note = replace(note, noise_std=bound)
            if bound is None:
                return note
        if bool((self._missing(note) > 0).any()):
            return note
        claim = claim.judged_by(self._values(note), self._test(note).mistaken)
        return replace(note, claim=claim)

    def _missing(self, note: AuditNote) -> Tensor:
        r"""The measurements that rows lack with which others are compared (``N``)."""
        claim = note.claim
        if claim is None or note.sums is None or note.needs_pairs:
            return torch.zeros_like(note.measured, dtype=torch.long)
        more = claim.judge.missing(claim.labels, self._values(note))
        return more.masked_fill(note.lost, 0)  # one does not wait for them

    def _values(self, note: AuditNote) -> Values:
        claim = note.claim
        assert claim is not None  # else there is nothing to compare
        found = self._means_of(note, claim.total, claim.variance, claim.counts)
        if note.sums is None:
            return found
        risk = REFERENCE_SHARE * spent(self.delta, note.attempt)
        before = self._means_of(note, *note.sums)
        return replace(found, before=before, risk=risk)

    def _means_of(
        self, note: AuditNote, total: Tensor, variance: Tensor, counts: Tensor
    ) -> Values:
        times = counts.clamp_min(1).unsqueeze(-1)
        std = (variance / times).sqrt()
        if note.noise_std is not None:
            std = note.noise_std.expand_as(std)
        assert note.claim is not None  # its rows are measured
        most, is_gaussian = note.claim.judge.most, True
        if self.max_repeats is not None:
            most = min(most, self.max_repeats)
        if note.noise == SIDE:
            std, most = torch.zeros_like(std), 1
        elif note.noise == KNOWN:
            is_gaussian = note.is_gaussian
        return Values(total / times, std, counts, most, is_gaussian)

    def _tested(self, note: AuditNote) -> AuditNote:
        if note.claim is None or note.ended is not None:
            return note
        if not self._test(note).along(note.claim.judged):
            return note
        return replace(note, ended=AUDITED)

    def _kept(self, note: AuditNote, run: Run) -> AuditNote:
        r"""The note without a claim of which the model has taken back too much."""
        claim = note.claim
        if claim is None or note.ended is not None:
            return note
        now = _labels(run.ask(run.algorithm.answer, as_claimed=True))
        # Intervals of a fitted model waver, so that a row may be undecided
        # again without any reason to think that it was decided wrongly.
        has_reason = bool((claim.verdict < 0).any())
        changed = now != claim.labels
        if not has_reason:
            changed &= now != UNKNOWN
        taken_back = changed[claim.rows].double().mean()
        if float(taken_back) > TAKEN_BACK * self.tolerance:
            return replace(note, claim=None)
        if claim.all_alike and bool(((now != claim.labels) & (now != UNKNOWN)).any()):
            # A region nobody knew of was met: its extent is to be learnt, however
            # small a share of the rows it may be.
            return replace(note, claim=None)
        if doubt_test(self._test(note), self.delta).along(claim.judged):
            # The model does not see what the values say, and would say the same again.
            return replace(note, ended=NOT_CONFIRMED)
        return note

    def _claimed(self, note: AuditNote, run: Run) -> AuditNote:
        r"""The note with a claim, if all is decided and none is open."""
        algorithm = _audited(run)
        answer = run.ask(run.algorithm.answer, as_claimed=True)
        if note.claim is not None or bool(answer.undecided.any()):
            return note
        judge, labels = run.ask(algorithm.audit_judge), _labels(answer)
        rows = (~note.measured & judge.is_drawn(labels)).nonzero().view(-1)
        if rows.numel() == 0:
            return note  # nothing is claimed of rows that were not measured
        attempt = note.attempt + 1
        claim = Claim.of(labels, judge, rows, note.seed, attempt)
        noise = note.noise
        if attempt == 1:
            noise = run.ask(algorithm.audit_noise_kind)
            if noise == LEARNT and self.max_repeats == 1:
                noise = SIDE
        if noise == SIDE and not judge.knows_sides:  # only the fitted model tells
            return replace(note, noise=noise)
        return replace(note, claim=claim, attempt=attempt, noise=noise)

    def _test(self, note: AuditNote) -> AuditTest:
        claim = note.claim
        assert claim is not None  # it is tested
        return self.make_test(
            self._share(claim),
            self.delta,
            note.attempt,
            n_rows=len(claim.rows),
            is_learnt=note.noise == LEARNT,
            by_sign=note.noise == SIDE,
            n_outputs=claim.judge.n_outputs,
            has_references=not claim.judge.by_itself,
            by_trials=claim.judge.by_trials,
        )

    def _share(self, claim: Claim) -> float:
        r"""The share of wrong rows that is tested.

        At most half of the rows claimed above, plus the rows above that were missed,
        can then be missed.
        """
        if not claim.judge.by_itself:
            return self.tolerance
        above = float(claim.is_above[claim.rows].double().mean())
        return min(self.tolerance, above) if above > 0 else self.tolerance

    # --- choosing ---------------------------------------------------------------------

    def rows(self, note: AuditNote, run: Run, request: PlanRequest) -> Tensor | None:
        r"""The next drawn rows while a claim is open.

        A row near the level is measured again, but only once its first value is known.
        """
        claim = note.claim
        if claim is None or note.ended is not None:
            return run.rows(request)
        out = self._items_of(request.pending).bincount(minlength=len(claim.labels))
        missing, left = self._missing(note), request.left[self.pool.of_target]
        given = self._values(note), self._test(note).mistaken
        wanted = claim.wanted(left, missing, note.needs_pairs, out, given)
        chosen: list[Tensor] = []
        size = request.size
        first = missing.nonzero().view(-1)
        drawn = claim.drawn[missing[claim.drawn] == 0]
        for row in torch.cat((first, drawn)).tolist():
            count = min(int(wanted[row]), size)
            chosen.append(torch.full((count,), row))
            size -= count
            if size == 0:
                break
        return torch.cat((request.pending[:0], *chosen)) + self.pool.of_target.start

    # --- the answer -------------------------------------------------------------------

    def reason(self, note: AuditNote, run: Run, answer: Classification) -> str | None:
        r"""The result of the audit; ``"decided"`` if there is nothing to audit."""
        if note.ended == AUDITED:
            if answer.class_names:  # names are no sides
                return AUDITED
            # That no row of one side was found does not say that there is none.
            if not bool(answer.above.any()):
                return NONE_FOUND
            return AUDITED if bool(answer.below.any()) else ALL_ABOVE
        if note.claim is not None and note.ended is None:
            return None
        if bool(answer.undecided.any()) and note.ended is None:
            return None
        return note.ended or DECIDED

    def content(
        self, note: AuditNote, run: Run, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above the level, limited by the rows drawn, whatever the model.

        Rows measured before the claim count on the side on which they are said to be.
        """
        found = run.content(answer, confidence)
        claim = note.claim
        if claim is None or len(claim.judged) == 0 or not claim.judge.by_itself:
            return found
        risk = spent(1 - confidence, note.attempt)
        if note.noise == LEARNT:  # the bound of the noise may be wrong as well
            risk -= NOISE_SHARE * spent(self.delta, note.attempt)
        if risk <= 0:
            return found
        mass, is_above = self.pool.without_sources.mass, claim.is_above
        above = float(mass[is_above].sum())
        less, more = self._differences(note, claim, risk)
        if answer.within is not None:
            # Of rows that were measured before the claim nothing is drawn.
            known = torch.ones_like(is_above).index_fill(0, claim.rows, False)
            either = mass * (known & answer.within)
            less -= float(either[is_above].sum())
            more += float(either[~is_above].sum())
        limits = max(above + less, 0.0), min(above + more, 1.0)
        return replace(found, design=limits)

    def _differences(
        self, note: AuditNote, claim: Claim, risk: float
    ) -> tuple[float, float]:
        r"""Limits of what is truly above less what is claimed to be."""
        mass, drawn = self.pool.without_sources.mass, claim.drawn[: len(claim.judged)]
        is_above, wrong = claim.is_above[drawn], ~claim.judged
        strict = claim.judge.strict()
        if strict is not claim.judge:
            # What the accuracy allows for is a difference too, to the level itself.
            given = claim.labels, self._values(note), self._test(note).mistaken
            wrong = strict.verdicts(*given)[drawn] <= 0
        own = mass[claim.rows]
        is_exact = note.noise == KNOWN and not bool((claim.variance[drawn] > 0).any())
        if is_exact and claim.judge.n_classes == 2:
            x = (1 - 2 * is_above.double()) * mass[drawn] * wrong
            return difference_limits(x, len(own), float(own.max()), risk)
        # Noise may hide wrong rows, and rows near the level count as wrong; the test
        # knows how often, for rows that all weigh the same. The heaviest are taken.
        test = replace(self._test(note), limit=2 / risk)
        ends = []
        for code in (True, False):
            n = most_wrong(~(wrong & (is_above == code)), test)
            masses = own[claim.is_above[claim.rows] == code]
            ends.append(float(masses.topk(min(n, len(masses))).values.sum()))
        return -ends[0], ends[1]

    def answer(self, note: AuditNote, run: Run) -> Classification:
        r"""The claim, with values measured since, once shown; else the usual answer."""
        claim = note.claim
        if note.ended != AUDITED or claim is None:
            answer = run.answer()
            words = self._words_so_far(note, run)
            return replace(answer, guarantee=f"{answer.guarantee}{words}")
        answer = run.ask(run.algorithm.answer, as_claimed=True)
        # A row that was measured and not found right is undecided, unless the model has
        # changed its mind about it.
        now = _labels(answer)
        is_same = now == claim.labels
        now = torch.where(is_same, UNKNOWN, now)
        labels, judge = torch.where(claim.verdict < 0, now, claim.labels), claim.judge
        within = answer.within
        if within is not None:  # of rows that are open by now the claim alone says it
            within = (within | ~is_same) & (labels != UNKNOWN)
        above = labels == judge.n_classes - 1
        parts = answer.outputs or (answer,)
        scales = _facts_of(run).scales or (None,) * len(parts)
        # An accuracy on another scale is no number of the units of `y`.
        up_to = " by more than epsilon" if judge.up_to and any(scales) else judge.up_to
        words = (
            f"Audited: with probability at least {written(1 - self.delta)} over the "
            "random draws, whatever the function and the model, at most "
            f"{self._share(claim):.3g} of the {len(claim.rows)} {judge.drawn_in_words} "
            f"not measured before the audit are wrong{up_to}{judge.about} "
            f"({len(claim.judged)} draws; assumes {self._noise_in_words(note, run)})."
        )
        # It may rest on values by which a model is not believed, or another one.
        against = torch.zeros_like(above)
        if len(parts) == judge.n_outputs:  # there are bounds of each
            ends = [(part.lower, part.upper) for part in parts]
            pairs = zip(ends, scales, strict=True)
            ends = [
                x if s is None else (s.latent(x[0]), s.latent(x[1])) for x, s in pairs
            ]
            lower, upper = zip(*ends, strict=True)
            against = judge.ruled_out(labels, lower, upper)
        if bool(against.any()):
            words += (
                f" The model's intervals rule out the confirmed side of "
                f"{int(against.sum())} of these rows: do not go by its numbers."
            )
        return replace(
            answer,
            contradicted=answer.contradicted | against,
            above=above,
            below=(labels != UNKNOWN) & ~above,
            undecided=labels == UNKNOWN,
            classes=None if answer.classes is None else labels,
            within=within,
            guarantee=f"{answer.guarantee} {words}",
        )

    def _words_so_far(self, note: AuditNote, run: Run) -> str:
        r"""The state of an audit that has not passed, as a sentence to add."""
        if note.claim is None:
            if note.noise != SIDE:
                return ""
            if run.ask(_audited(run).audit_judge).knows_sides:
                return ""
            return f" {UNJUDGED}"
        judged, test = note.claim.judged, self._test(note)
        n, wrong = len(judged), int((~judged).sum())
        were = "was" if wrong == 1 else "were"
        found = f"{wrong} of {n} rows drawn at random {were} wrong"
        share = self._share(note.claim)
        if note.ended is None:
            return (
                f" An audit of {share:.3g} is under way: {found}; "
                f"{test.after(judged).remaining} more would do if all were right."
            )
        return (
            f" Not confirmed: {found}, or too close to tell, which is more "
            f"than {share:.3g} of all."
        )

    def _noise_in_words(self, note: AuditNote, run: Run) -> str:
        if note.noise == SIDE:
            return "independent noise of median zero"
        if note.noise == LEARNT:
            return (
                "Gaussian noise, the same for all rows, whose standard deviation was "
                f"bounded by {_in_words(note.noise_std)} from rows measured twice"
            )
        return _facts_of(run).noise_in_words

    def forecast(self, note: AuditNote, run: Run, told: int) -> Forecast:
        r"""The expected number of evaluations for learning and the audit after it."""
        if (claim := note.claim) is not None:
            test = self._test(note).after(claim.judged)
            pairs = (2 - claim.counts[claim.pairs]).clamp_min(0)
            more = int(pairs.sum()) // 2 if note.needs_pairs else 0
            more += int(self._missing(note).sum())
            basis = "The rest of the audit, if all rows to come are right."
            each = claim.judge.expected(claim.labels, test.mistaken)[claim.rows]
            return Forecast(
                math.ceil(test.remaining * float(each.mean())) + more, basis
            )
        found = run.forecast(told)
        if found.observations is None:
            return found
        price = self._price(note, run)
        basis = f"{found.basis} Then an audit of {price}, if the answer is right."
        return Forecast(found.observations + price, basis)

    def _price(self, note: AuditNote, run: Run) -> int:
        r"""The measurements of an audit that is to come, if all rows are right."""
        noise, rows = note.noise, ~note.measured
        if note.attempt == 0:
            noise = run.ask(_audited(run).audit_noise_kind)
        judge, n_outputs = run.ask(_audited(run).audit_judge), _facts_of(run).n_outputs
        test = self.make_test(
            self.tolerance,
            self.delta,
            n_rows=max(1, int(rows.sum())),
            is_learnt=noise == LEARNT,
            by_sign=noise == SIDE,
            n_outputs=n_outputs,
            by_trials=judge.by_trials,
        )
        labels = _labels(run.ask(run.algorithm.answer, as_claimed=True))
        each = judge.expected(labels, test.mistaken)[rows]
        mean = float(each.mean()) if len(each) else 1.0
        return math.ceil(test.remaining * mean) + NOISE_PAIRS * (noise == LEARNT)


def audits(
    algorithm: Algorithm,
    audit: tuple[float, float] | bool | None,
    pool: Pool,
    max_repeats: int | None,
) -> tuple[Audit, ...]:
    r"""The audit of an answer, if one is wanted.

    Args:
        algorithm: What answers.
        audit: The tolerated share of wrong rows, and the failure probability; ``True``:
            those of ``USUAL``.
        pool: The rows that can be measured.
        max_repeats: The largest number of measurements of one row.

    Raises:
        ValueError: If ``audit`` is no pair of numbers in their ranges, or a measurement
            of a row does not show whether its side is right.
    """
    if audit is None or audit is False:
        return ()
    if audit is True:
        audit = USUAL
    if not isinstance(audit, tuple | list) or len(audit) != 2:
        raise ValueError(
            f"Expected `audit` to be (tolerance, delta), but got {audit!r}. Write "
            f"`audit={USUAL}`, or `audit=True`, which is the same."
        )
    check_statement(*audit, names=("audit[0]", "audit[1]"))
    facts = algorithm.audit_facts
    if facts is None:
        raise ValueError(
            "Expected no `audit` where one measurement of a row does not show whether "
            "its side is right: it needs one level or a region of measured numbers (or "
            "of outputs that all are yes or no, or grades), all outputs in one "
            "measurement, and no `targets`. Leave `audit` out."
        )
    if facts.needs_repeats and max_repeats == 1:
        raise ValueError(BY_SIDES)
    if facts.least > (MOST_TRIALS if max_repeats is None else max_repeats):
        most = f"{MOST_TRIALS}, the most that are made"
        if max_repeats is not None:
            most = f"`max_repeats={max_repeats}`"
        raise ValueError(
            "Expected an `audit` of probabilities to tell sides by the trials that a "
            f"row may have, but at such a level it takes {facts.least} where all agree,"
            f" more than {most}. Give a larger `epsilon`, allow for more repeats, or "
            "leave `audit` out."
        )
    return (Audit(pool, *audit, max_repeats),)


def _audited(run: Run) -> Auditable:
    return auditable(run.algorithm)


def _facts_of(run: Run) -> AuditFacts:
    facts = run.algorithm.audit_facts
    assert facts is not None  # `audits` has seen to it
    return facts


def _added(
    total: Tensor,
    variance: Tensor,
    counts: Tensor,
    new: Observations,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The sums with further values.

    Args:
        total: ``N x m`` sums of values.
        variance: ``N x m`` variances of these.
        counts: ``N``, how often each row was measured.
        new: The measurements with their noise variances.
    """
    assert new.yvar is not None  # of what is audited it is known
    # A round may have values of other sources alone.
    y = new.y.double().view(len(new), total.shape[-1])
    times = new.replicates.unsqueeze(-1)
    return (
        total.index_add(0, new.indices, times * y),
        variance.index_add(0, new.indices, times**2 * new.yvar.view_as(y)),
        counts.index_add(0, new.indices, new.replicates),
    )


def _in_words(bounds: Tensor | None) -> str:
    assert bounds is not None  # the audit was judged by them
    return " and ".join(f"{bound:.3g}" for bound in bounds.tolist())


def _labels(answer: Classification) -> Tensor:
    r"""The class number of each row: 1 above, 0 below; levels have their own."""
    if answer.classes is not None:
        return answer.classes
    return torch.where(answer.undecided, UNKNOWN, answer.above.long())
