r"""The loop of a run: ask, tell, replay.

Only this module handles rounds. ``Strategy`` has the methods, ``State`` is the record
between two calls. What is believed after a round, which rows to measure next and what
the answer is, the loop asks an ``Algorithm``.
"""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Self, cast

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor
from tqdm import tqdm

from botorch_lse._device import ordinary
from botorch_lse._numerals import written
from botorch_lse._validation import (
    complaint,
    in_interval,
    plain_number,
    row_indices,
    whole_number,
)
from botorch_lse.confidence.calibration import Calibration
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import CONFIDENCE, Content
from botorch_lse.data.observations import Batch, History, Observations
from botorch_lse.data.pool import Pool, as_html
from botorch_lse.data.requests import (
    PlanRequest,
    at_most,
    by_round,
    canonical_order,
    matching,
    matching_at_random,
    round_generator,
)
from botorch_lse.models.outcomes import Quantity
from botorch_lse.strategies.algorithm import (
    AUDITED,
    BUDGET,
    DECIDED,
    EXCLUDED,
    EXHAUSTED,
    OUT_OF_REACH,
    UNBIASED,
    Algorithm,
    Step,
    model_of,
)
from botorch_lse.strategies.criteria.audit import audits
from botorch_lse.strategies.criteria.base import Criterion, Run
from botorch_lse.strategies.criteria.content import content_watches
from botorch_lse.strategies.devices import on_device
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.surrogate.remarks import Remark

MOST_LISTED = 50_000_000
"""The largest round, in measurements, that ``ask`` lists row by row (400 MB)."""
MOST_AT_ONCE = 2048
"""The largest number of measurements that engines may ask for in one call.
Each is planned beside those before it, so that the time grows with the square: half a
minute in a pool of a thousand rows, and an hour for ten times as many."""

ByRound = Mapping[int, Sequence[int]] | Sequence[tuple[int, int | Sequence[int]]] | None
"""Rows by round, or pairs of a round and rows."""
MOST_COMPARED = 256
"""The largest group of unlabelled values that is compared with a batch of its size.
Planning that batch again takes half a second in a pool of a thousand rows."""


@dataclass(frozen=True, eq=False, init=False)  # each subclass has its own fields
class Strategy(ABC):
    r"""A question about a pool and a way to answer it: ``init``, ``ask``, ``tell``.

    Measurements come in rounds. ``ask`` plans a whole round from the complete rounds
    before it; ``tell`` may bring its results in pieces and in any order, and the round
    is evaluated once it is complete. Measurements nobody asked for form rounds of their
    own. Told together with a complete batch they count to that round, unless they are
    as many as another batch. A round is one look at the intervals, whose width may grow
    with each; what is told in one call of several rounds, without their labels, counts
    as a look for each value.

    A subclass is a frozen dataclass whose fields are its constructor's arguments, so a
    strategy can be stored by them. Its ``algorithm``, made of them, says what is
    believed after each round, which rows come next and what the answer is.

    Args:
        pool: The candidates.
        batch_size: Measurements per round; ``None`` where the algorithm says how many,
            or the call that asks.
        max_observations: The largest number of measurements. ``None``: with noise and
            no ``epsilon`` a row that lies on the level may be measured for ever.
        max_repeats: How often one row may be measured (1 for destructive samples).

    Raises:
        ValueError: If a number is out of range.
    """

    pool: Pool

    batch_size: int | None
    max_observations: int | None
    max_repeats: int | None

    decides_a_target: ClassVar[bool] = False
    """Whether the target is decided where the pool has several sources."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in vars(cls):  # what it makes is kept for the whole run
            cls.__post_init__ = ordinary(cls.__post_init__)  # type: ignore[attr-defined]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        r"""Make a ``ComposedStrategy`` where ``Strategy`` itself is called."""
        if cls is Strategy:
            # As ``pathlib.Path`` does. The package loads the class that is made, which
            # knows this module: an import here would close a circle of files.
            made = import_module(__package__).ComposedStrategy
            return cast("Self", object.__new__(made))
        return super().__new__(cls)

    # --- the loop -------------------------------------------------------------------

    @ordinary
    def init(self, seed: int = 0) -> State:
        r"""The state before any measurement.

        Args:
            seed: Fixes everything random. Same seed and data: same batches.
        """
        seed = whole_number(seed, "seed", 0)
        run = Run.start(self.algorithm, self.criteria, seed)
        none = Observations.empty()
        blank = State(seed, 0, none, Answer(run), None, run, strategy=self)
        return replace(blank, stop_reason=self._stop_reason(blank))

    @ordinary
    def ask(
        self, state: State, pending: Any = None, *, size: int | None = None
    ) -> Batch:
        r"""The rows to measure next. Asking changes nothing and can be repeated.

        Args:
            state: Where the run stands.
            pending: Rows that are being measured, whose results were not told yet. If
                they belong to the open round, the rest of it is returned. If not, or if
                there is no rest, a further batch is planned, with the variances that
                they will leave.
            size: How many measurements, where the strategy has no ``batch_size``;
                default 1. What is told together, with the label of the batch, is a
                round then, however much of it came.

        Returns:
            A batch; in the middle of a round what is missing of it.

        Raises:
            ValueError: If the state is done, nothing is left to ask while rows are
                pending, another strategy made the state for other rows or another
                goal, or ``size`` is less than 1 or not for the call to say.
        """
        state = check_state(self, state)
        out = self._being_measured(state, pending)
        run, order = state.run, self.algorithm.visiting_order
        if size is not None:
            self._check_size(size)
        unfilled = self._unfilled(state) if size is None else out[:0]
        foreign = out[~matching(out, unfilled)]
        rest = self._rest(state, unfilled, out) if size is None else unfilled
        if rest.numel() and (foreign.numel() == 0 or state.plan is not None):
            plan = run.ask(order, state.planned_rows, out[:0])
            return Batch(self.pool, plan[matching(plan, rest)], state.round)
        rows, coming = self._beside(state, out, size)
        rows = run.ask(order, rows, coming)
        is_next = rest.numel() == 0 and size is None
        return Batch(self.pool, rows, state.round + int(is_next))

    @ordinary
    def next_row(self, state: State, pending: Any = None) -> int:
        r"""The row to measure next beside those that are out, however long a round is.

        For engines whose workers do not wait for each other. ``room`` says how often
        it may be asked for, each row pending in the call for the next.

        Args:
            state: Where the run stands.
            pending: Rows that are being measured, whose results were not told yet.

        Raises:
            ValueError: As of ``ask``.
        """
        state = check_state(self, state)
        rows, _ = self._beside(state, self._being_measured(state, pending), 1)
        return int(rows[0])

    def _being_measured(self, state: State, pending: Any) -> Tensor:
        r"""The rows that are out, where a state that is not done allows to ask."""
        if state.is_done:
            raise ValueError(
                f"Expected a `state` that is not done, but it stopped: "
                f"{state.stop_reason}. Read `state.classification`."
            )
        if pending is None:
            return torch.empty(0, dtype=torch.long)
        return self.pool.rows(getattr(pending, "order", pending), "pending")

    def _beside(
        self, state: State, out: Tensor, size: int | None
    ) -> tuple[Tensor, Tensor]:
        r"""The rows of a further batch, and all rows whose results will come before."""
        # Rows told in the open round are not in the belief before it is complete, so
        # they too count as coming.
        coming = torch.cat((out, state.waiting.measured))
        if size is not None and coming.numel() == 0:
            rows = self._rows_of_size(state, size)
        else:
            request = replace(self._request(state, out, size), pending=coming)
            rows = state.run.plan(request)
        if rows.numel() == 0:
            raise ValueError(
                f"Nothing is left to ask while {out.numel()} rows are `pending`: the "
                "budget or the rows are used up, or the next round needs their "
                "results. Tell them first."
            )
        return rows, coming

    @ordinary
    def room(self, state: State, pending: Any = None) -> int:
        r"""The number of measurements that may be asked for beside those that are out.

        The number is at most ``MOST_AT_ONCE``, since this is for engines, which ask for
        as many as they have workers, or for all there are. ``ask`` itself has no such
        limit.

        Args:
            state: Where the run stands.
            pending: Rows that are being measured, whose results were not told yet.

        Raises:
            ValueError: If a row is not in the pool, or another strategy made the state
                for other rows or another goal.
        """
        state = check_state(self, state)
        if state.is_done:
            return 0
        out = self._being_measured(state, pending)
        request = self._request(state, out, MOST_AT_ONCE)
        # Of the open round what was told counts as used up, yet is not looked at before
        # all of it is there: nothing else may be wanted until then.
        rest = len(self._rest(state, self._unfilled(state), out))
        return min(request.size, max(rest, state.run.at_once(request)))

    @ordinary
    def missing(self, state: State, pending: Any = None) -> Tensor:
        r"""The rows of the open round that are neither measured nor abandoned.

        They are at most as many as the budget and ``max_repeats`` allow, which
        measurements that came unasked since the round was planned use up too.

        Args:
            state: Where the run stands.
            pending: Rows that are being measured, to be left out and charged.

        Raises:
            ValueError: If a row is not in the pool, or another strategy made the state
                for other rows or another goal.
        """
        state = check_state(self, state)
        given = [] if pending is None else getattr(pending, "order", pending)
        out = self.pool.rows(given, "pending")
        return self._rest(state, self._unfilled(state), out)

    def _rest(self, state: State, unfilled: Tensor, out: Tensor) -> Tensor:
        r"""The ``missing`` rows, of those of the open round without a result."""
        rest, room = unfilled[~matching(unfilled, out)], self._room(state, out)
        if self.max_repeats is not None and state.deferred:
            N = len(self.pool)
            left = self.max_repeats - state.uses(N) - torch.bincount(out, minlength=N)
            rest = at_most(rest, left)
        if room is None or len(rest) <= room:
            return rest
        # By ranks of the places of the plan: what is given up does not change while
        # the others are measured, and depends on no order of the rows.
        plan = state.planned_rows
        ranks = torch.randperm(
            len(plan), generator=round_generator(state.seed, state.round)
        )
        order = plan[ranks]
        kept = order[matching(order, rest)][:room]
        return rest[matching(rest, kept)]

    def _unfilled(self, state: State) -> Tensor:
        r"""The rows of the open round without a result, whatever the budget."""
        if state.plan is None and state.is_done:
            return torch.empty(0, dtype=torch.long)
        gone = torch.cat((state.told.measured, state.abandoned_in(state.round)))
        return state.planned_rows[~matching(state.planned_rows, gone)]

    def _room(self, state: State, pending: Tensor) -> int | None:
        r"""The number of measurements the budget still allows; ``None``: no limit."""
        if self.max_observations is None:
            return None
        return max(0, self.max_observations - state.n_used - pending.numel())

    @ordinary
    def planned(self, state: State) -> Tensor:
        r"""All rows of the open round, a function of the complete rounds alone."""
        return check_state(self, state).planned_rows

    def _rows_of_size(self, state: State, size: int) -> Tensor:
        r"""The rows that ``ask`` gives for a size while nothing is out.

        Kept beside the fields of the state, so that asking and telling plan once.
        """
        kept = state.rows_of_size
        if size not in kept:
            request = self._request(state, torch.empty(0, dtype=torch.long), size)
            kept[size] = state.run.plan(request)
        return kept[size]

    @ordinary
    def tell(
        self, state: State, observations: Observations | None, *, abandoned: Any = None
    ) -> State:
        r"""The state after more measurements, all of which are kept.

        Args:
            state: Where the run stands.
            observations: What was measured; part of a round is welcome. What nobody
                asked for is a round of its own; where one call without labels has more
                of it than a batch, each value may have been a look at the intervals of
                the run that it came from, and they are as wide as after so many.
            abandoned: Rows of the open round that are used up without a result; where
                the strategy has no ``batch_size``, any rows that were asked for. (Rows
                that failed and shall be asked again: do not tell them at all.)

        Raises:
            ValueError: If a row is not in the pool, known and unknown noise are mixed,
                an abandoned row was not asked for, what is labelled by a round was told
                for that round already, or another strategy made the state for other
                rows or another goal.
        """
        state = check_state(self, state)
        if not isinstance(observations, Observations | None):
            raise ValueError(
                "Expected `observations` to be Observations, but got "
                f"{type(observations).__name__}. Write `batch.observe(y)`."
            )
        if observations is not None and len(observations):
            observations.check_rows(self.pool)
            complete = self._complete(observations.of_outputs(self.outputs))
            missing = None if state.plan is None else self._unfilled(state)
            check_new(state, complete, missing)
            state.observations.append(complete.at_round(state.round))  # or it raises
            if complete.round is None:
                if self._is_batch_and_more(state, complete):
                    # With a plan of its own: the others are the next round's.
                    state = replace(state, plan=state.planned_rows)
                n = self._n_looks(state, complete)
                if n > 1:
                    complete = complete.at_round(state.round + n)
            for group in by_round(complete):
                state = self._tell_round(state, group)
        if abandoned is not None:
            rows = self.pool.rows(abandoned, "abandoned")
            state = self._abandon(state, rows) if len(rows) else state
        return state

    @ordinary
    def exclude(self, state: State, rows: Any) -> State:
        r"""The state without rows that cannot be measured.

        They are never asked for again. Their places in the open round go to other rows,
        which are chosen as if the rest of the round were being measured; the rest of it
        stays as it is, so that rows that are out already are not lost. Nothing is
        charged to the budget. (To go on with a smaller round, tell them as
        ``abandoned`` first.) What was measured of excluded rows counts, and they are
        answered like all others, from what is known around them; an audit counts those
        that it drew as wrong, and says nothing of the others. To take it back, replay
        with the exclusions that stay.

        Example:
            >>> from botorch_lse.strategies import LSEStrategy
            >>> pool = Pool([[0.0], [0.5], [1.0]])
            >>> strategy = LSEStrategy(pool, threshold=0.0, noise_std=0.1)
            >>> state = strategy.exclude(strategy.init(), [0, 1])
            >>> strategy.ask(state).indices.tolist()
            [2]
            >>> stay = [(i, [r for r in rows if r != 1]) for i, rows in state.excluded]
            >>> state = strategy.replay(state.observations, state.seed, excluded=stay)
            >>> strategy.ask(state).indices.tolist()
            [1]

        Args:
            state: Where the run stands.
            rows: Rows of the pool, by their numbers or by labels of its index; those
                that are excluded already change nothing.

        Raises:
            ValueError: If a row is not in the pool, or another strategy made the state
                for other rows or another goal.
            UnsupportedError: If the algorithm needs the rows that it asks for.
        """
        state = check_state(self, state)
        found = self.pool.rows(rows).unique()
        new = found[~torch.isin(found, state.excluded_rows)]
        done = torch.cat((state.told.measured, state.abandoned_in(state.round)))
        return self._exclude(state, new, done) if new.numel() else state

    @ordinary
    def refill(self, state: State, kept: Tensor, size: int) -> Tensor:
        r"""Rows for the free places of the open round, at most ``size``.

        They depend on the complete rounds and the rest of the plan, and not on what was
        told of this round: a replay could not know what came before the exclusion.
        Fewer than ``size`` where the rows or the budget are used up.

        Args:
            state: Where the run stands, the rows that left the places excluded.
            kept: The rest of the plan, and rows that are being measured besides.
            size: How many places are free.
        """
        earlier = tuple(pair for pair in state.abandoned if pair[0] < state.round)
        start = replace(
            state, told=Observations.empty(), deferred=(), abandoned=earlier
        )
        # The size is given: where the call says it, a round has one row by itself.
        request = self._request(start, kept, size)
        return state.run.plan(request)

    @ordinary
    def replay(
        self,
        observations: Observations,
        seed: int = 0,
        *,
        abandoned: ByRound = (),
        plans: ByRound = (),
        excluded: ByRound = (),
    ) -> State:
        r"""The state after all observations, the same as after telling round by round.

        Args:
            observations: Labelled by round, as ``state.observations``. Without labels
                those from the first on that the plans ask for are the rounds of these
                plans; the rest is told together, and each value of it counts as a look
                at the intervals.
            seed: The seed of ``init``.
            abandoned: Rows used up without a result: ``state.abandoned``, or rows by
                round. Without them values of later rounds wait for theirs.
            plans: The rows asked for, by round, where they were stored; other plans are
                computed again when they are needed.
            excluded: Rows that were excluded: ``state.excluded``, or rows by round.

        Raises:
            ValueError: If rows by round are neither a dictionary nor pairs, or as
                ``tell`` says.
        """
        if not isinstance(observations, Observations):
            raise ValueError(
                "Expected `observations` to be Observations, but got "
                f"{type(observations).__name__}. Take `state.observations`, or write "
                "`Observations(rows, y)`."
            )
        observations.check_rows(self.pool)
        observations = observations.of_outputs(self.outputs)
        state = self.init(seed)
        lost = _together(_by_round(abandoned, "abandoned", len(self.pool)))
        asked = _together(_by_round(plans, "plans", len(self.pool)))
        out = _by_round(excluded, "excluded", len(self.pool))
        if observations.round is None and not (lost or asked or out):
            return self._replay_bare(state, observations)
        last = deque(self._replayed(state, observations, lost, asked, out), maxlen=1)
        return last.pop() if last else state

    def _replayed(
        self,
        state: State,
        observations: Observations,
        lost: Mapping[int, Tensor],
        asked: Mapping[int, Tensor],
        out: Sequence[tuple[int, Tensor]],
    ) -> Iterator[State]:
        r"""The states after each round; arguments as of ``replay``, checked."""
        rounds = observations.round
        if rounds is None:
            rounds = torch.arange(len(observations))
            observations = replace(observations, round=rounds)
        for label in sorted({*rounds.tolist(), *lost, *(r for r, _ in out)}):
            if label == state.round and label in asked:
                state = replace(state, stored_plan=asked[label].sort().values)
            group = observations.select((rounds == label).nonzero().view(-1))
            done = torch.cat((group.measured, lost.get(label, group.indices[:0])))
            for rows in (rows for r, rows in out if r == label):
                state = self._exclude(state, rows, done)
            state = self.tell(state, group, abandoned=lost.get(label))
            if state.round in asked and state.plan is None:
                state = replace(state, stored_plan=asked[state.round].sort().values)
            yield state

    def _replay_bare(self, state: State, observations: Observations) -> State:
        told, places = 0, torch.arange(len(observations))
        whole = start = (state, told)  # after complete rounds
        while told < len(observations):
            one = observations.select(places[told : told + 1])
            is_asked = bool(matching(one.indices, self._unfilled(state)).any())
            if not (is_asked or self.algorithm.facts.needs_its_rows):
                break
            state, told = self.tell(state, one), told + 1
            whole = (state, told) if state.plan is None else whole
        if told < len(observations):
            # Calls of other sizes may have asked for the first, and an open plan does
            # not wait for rows that nobody asked for any more.
            state, told = start if self.algorithm.facts.size_is_open else whole
        rest = observations.select(places[told:])
        label = state.round + looks_of_all(state, rest)
        return self.tell(state, rest.at_round(label))

    def _check_size(self, size: Any) -> None:
        whole_number(size, "size", 1)
        if not self.algorithm.facts.size_is_open:
            raise ValueError(
                f"Expected no `size`, because this {type(self).__name__} says itself "
                f"how long a round is (`batch_size` = {self.batch_size}), but got "
                f"{size}. Leave `size` out, or give the strategy no `batch_size`."
            )

    def _request(
        self, state: State, pending: Tensor, size: int | None = None
    ) -> PlanRequest:
        room, run = self._room(state, pending), state.run
        if size is None:
            size = run.ask(self.algorithm.round_size, room)
        elif room is not None:
            size = min(size, room)
        left = torch.full((len(self.pool),), torch.iinfo(torch.long).max)
        if self.max_repeats is not None:
            out = torch.bincount(pending, minlength=len(self.pool))
            # A user may tell a row more often than `max_repeats` lets it be asked for.
            left = (self.max_repeats - state.uses(len(self.pool)) - out).clamp_min(0)
        # Before it is said which of several copies of a point is measured.
        left = left.index_fill(0, state.excluded_rows, 0)
        told = state.observations
        left = run.ask(self.algorithm.repeats_left, told, pending, left)
        return PlanRequest(size, left, pending, state.seed, state.round)

    def _n_looks(self, state: State, told: Observations) -> int:
        r"""The number of looks at the intervals that unlabelled values count as.

        The values are told in one call, though no batch may have asked for them
        together.
        """
        n = looks_of_all(state, told)
        if n < 2 or state.is_done or state.plan is not None:
            return 1
        n = looks_in_one_call(n, self._request(state, told.indices[:0]).size)
        is_open = self.algorithm.facts.size_is_open
        if n > 1 and is_open and told.n_measured <= MOST_COMPARED:
            asked = self._rows_of_size(state, told.n_measured)
            if torch.equal(asked.sort().values, told.measured.sort().values):
                return 1
        return n

    def _is_batch_and_more(self, state: State, told: Observations) -> bool:
        r"""Whether unlabelled values are the whole open batch and some others.

        Where there are two batches and more they are old data, told together.
        """
        facts = self.algorithm.facts
        if state.is_done or state.plan is not None:
            return False
        if facts.size_is_open or facts.needs_its_rows:
            return False
        size = self._request(state, told.indices[:0]).size
        if not size < told.n_measured < 2 * size:
            return False
        return bool(matching(state.planned_rows, told.indices).all())

    def _is_round(self, state: State, group: Observations) -> bool:
        if self.algorithm.facts.needs_its_rows:
            return bool(matching(state.planned_rows, group.indices).all())
        if looks(group, state.round) > 1:
            return True
        return group.n_measured >= self._request(state, group.indices[:0]).size

    def _tell_round(self, state: State, group: Observations) -> State:
        if state.plan is None:
            if state.is_done or self._is_round(state, group):
                return self._close(state, group)
            # A value of a row that this round excludes waits for its end: a replay
            # would take it for one that came before the exclusion, and had a place.
            late = torch.isin(group.indices, state.excluded_in(state.round))
            if not bool(late.any()) and not self._has_asked(state, group):
                return self._close(state, group)
            state = replace(state, plan=state.planned_rows)
        wanted = self._unfilled(state)
        asked = matching_at_random(group, wanted, state.seed, state.round)
        told = state.told.append(group.select(asked).at_round(state.round))
        rest = group.select(~asked)
        waiting, last = state.waiting.round, state.round
        if waiting is not None and len(waiting):
            last = int(waiting[-1])  # behind all that waits already
        n = looks(rest, last + 1)
        if group.round is None:
            n = looks_in_one_call(len(rest), len(state.planned_rows))
        deferred = state.deferred
        if len(rest):
            deferred = (*deferred, rest.at_round(n))
        return self._close_if_full(replace(state, told=told, deferred=deferred))

    def _has_asked(self, state: State, group: Observations) -> bool:
        r"""Whether a group has a result of a row that the open round asks for."""
        if state.stored_plan is None and not self.algorithm.facts.needs_its_rows:
            # Rows that are excluded or used up are in no plan, which takes long to
            # make where it is large.
            left = self._request(state, group.indices[:0]).left
            if not bool((left[group.indices] > 0).any()):
                return False
        return bool(matching(group.indices, self._unfilled(state)).any())

    def _abandon(self, state: State, rows: Tensor) -> State:
        if self.algorithm.facts.size_is_open and state.plan is None:
            # What was asked for the calls know: what is lost together is a round.
            state = replace(state, plan=rows.sort().values)
        missing = self._unfilled(state)
        foreign = rows[~matching(rows, missing)]
        if foreign.numel():
            raise ValueError(
                "Expected `abandoned` to hold rows of the open round that are missing, "
                f"{missing.tolist()}, but got {int(foreign[0])}."
            )
        lost = tuple((state.round, row) for row in rows.tolist())
        plan = state.planned_rows
        state = replace(state, plan=plan, abandoned=(*state.abandoned, *lost))
        return self._close_if_full(state)

    def _exclude(self, state: State, rows: Tensor, done: Tensor) -> State:
        r"""The state that asks for no more measurements of some rows.

        Args:
            state: Where the run stands.
            rows: Rows that were not excluded before.
            done: Rows of the open round that are measured or abandoned, in a replay
                also those that were told later: they keep their places.
        """
        if not state.run.ask(self.algorithm.takes_any_rows):
            raise UnsupportedError(
                f"Expected a strategy that can do without `rows`, but now "
                f"{type(self).__name__} needs every row that it asks for. Leave them "
                "out of the pool."
            )
        event = (state.round, tuple(rows.tolist()))
        after = replace(state, excluded=(*state.excluded, event))
        if state.is_done:
            return after
        plan = state.planned_rows
        kept = plan[~torch.isin(plan, rows) | matching(plan, done)]
        plan = torch.cat((kept, self.refill(after, kept, len(plan) - len(kept))))
        plan = plan.sort().values
        if state.plan is None:  # nothing was told: what may be told now stays as it was
            return self._close_if_full(replace(after, stored_plan=plan))
        # A value that came for no place of the round may have one now.
        after = self._close_if_full(replace(after, plan=plan, deferred=()))
        for group in state.deferred:
            after = self._tell_deferred(after, group)
        return after

    def _close_if_full(self, state: State) -> State:
        if self.missing(state).numel():
            return state
        waiting = state.deferred
        state = self._close(replace(state, deferred=()), state.told)
        for group in waiting:
            state = self._tell_deferred(state, group)
        return state

    def _tell_deferred(self, state: State, group: Observations) -> State:
        assert group.round is not None  # how many looks it is
        return self._tell_round(
            state, group.at_round(state.round + int(group.round[0]))
        )

    def _close(self, state: State, group: Observations) -> State:
        n_looks = looks(group, state.round)
        label = state.round + (n_looks if n_looks > 1 else 0)
        new = group.select(canonical_order(group)).at_round(label)
        history = state.history.append(new)
        run, facts = state.run, self.algorithm.facts
        now = state.excluded_in(state.round)
        lost = torch.cat((state.abandoned_in(state.round), now))
        if lost.numel():
            run = run.lose(lost, state.history, state.seed)
        if len(new) and not (state.is_done and facts.needs_its_rows):
            planned = facts.needs_plans and self._is_as_planned(state, new)
            run = run.learn(Step(new, history, state.seed, n_looks, planned))
        words = (UNBIASED,) if state.abandoned else ()
        if state.excluded:
            words = (*words, EXCLUDED)
        closed = State(
            seed=state.seed,
            round=label + 1,
            history=history,
            answer=Answer(run, words),
            stop_reason=None,
            run=run,
            abandoned=state.abandoned,
            excluded=state.excluded,
            strategy=self,
        )
        return replace(closed, stop_reason=self._stop_reason(closed))

    def _is_as_planned(self, state: State, new: Observations) -> bool:
        if state.is_done or state.abandoned_in(state.round).numel():
            return False
        if any(label == state.round for label, _ in state.excluded):
            return False
        return torch.equal(new.measured, state.planned_rows)

    def _stop_reason(self, state: State) -> str | None:
        run = state.run
        reason = run.stop_reason(state.answer.as_decided)
        if reason is not None:
            return reason
        request = self._request(state, torch.empty(0, dtype=torch.long))
        if request.size == 0:
            return run.limit(request, BUDGET)
        reason = run.limit(request, None)
        if reason is not None and self._is_decided_but_for_excluded(state):
            return DECIDED
        return reason

    def _is_decided_but_for_excluded(self, state: State) -> bool:
        r"""Whether all undecided rows are excluded ones.

        Nothing can be said of them; the rows that can be measured are not exhausted.
        """
        undecided = state.answer.as_decided.undecided
        if state.run.draws_at_random or len(undecided) != len(self.pool):
            return False
        others = torch.ones_like(undecided).index_fill(0, state.excluded_rows, False)
        return bool(others.any()) and not bool((undecided & others).any())

    # --- arguments ------------------------------------------------------------------

    def _check_rounds(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if (number := plain_number(value)) is not value:
                object.__setattr__(self, part.name, number)
        if not isinstance(self.pool, Pool):
            raise ValueError(
                f"Expected `pool` to be a Pool, but got {type(self.pool).__name__}. "
                "Write `Pool(X)`."
            )
        if self.pool.target is not None and not self.decides_a_target:
            wanted = f"without sources, since {type(self).__name__} decides each row"
            remedy = "Write `Strategy(pool, Above(0.5))`, which decides the target."
            came = f"got the sources {list(self.pool.sources)}"
            raise UnsupportedError(complaint("pool", wanted, came, remedy))
        for name in ("batch_size", "max_observations", "max_repeats"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, 1)
        if self.batch_size is None:
            return
        capacity = len(self.pool) * (self.max_repeats or self.batch_size)
        if self.batch_size > capacity:
            raise ValueError(
                f"Expected `batch_size` of at most {capacity}, the pool's "
                f"{len(self.pool)} rows times `max_repeats`, but got {self.batch_size}."
            )

    # --- what others may ask before they use it ---------------------------------------

    @property
    def n_outputs(self) -> int:
        r"""The number of values per measurement: 1, or one per direction."""
        return 1 if self.directions is None else len(self.directions)

    @property
    def n_predicted(self) -> int:
        r"""The number of outputs that have predictions."""
        return self.n_outputs

    @property
    def candidates(self) -> Pool:
        r"""The pool whose columns are those of the model."""
        return self.pool

    def at_candidates(self, observations: Observations) -> Observations:
        r"""The measurements, numbered by the rows of ``candidates`` they belong to."""
        return observations

    @property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the metrics, in the order of the outputs, where known."""
        return ()

    @property
    def directions(self) -> tuple[bool, ...] | None:
        r"""The directions of a Pareto set (whether more is better), else ``None``.

        A strategy with directions has ``estimate(state)``: the outputs of every row.
        """
        return None

    @property
    def can_predict(self) -> bool:
        r"""Whether ``state.predict`` gives a posterior at each row of the pool."""
        return bool(self.algorithm.facts.predicts)

    @property
    def takes_history(self) -> bool:
        r"""Whether ``with_history`` gives a strategy that learns from old data."""
        return False

    def with_history(self, history: History) -> Strategy:
        r"""This strategy with measurements that were made before the run.

        The measurements may be at any points. The history that the strategy has already
        stays.

        Args:
            history: The measurements.

        Raises:
            UnsupportedError: If its model knows features of the pool's rows only.
        """
        if "history" not in {part.name for part in fields(self)}:
            raise UnsupportedError(
                f"Expected a strategy on a Gaussian process, but {type(self).__name__} "
                "learns from rows of its pool only. Leave `history` out."
            )
        before, past = getattr(self, "history", None), history.on(self.pool)
        if before is not None:
            past = before.on(self.pool).append(past, self.noise_std_of(None))
        changed: dict[str, Any] = {"history": past}
        return replace(self, **changed)

    @property
    def costs_depend_on_previous(self) -> bool:
        r"""Whether a measurement's cost depends on the row measured before.

        If so, ``prices`` knows the costs and the order in which a round is visited; if
        not, the costs are ``pool.costs``, if there are any.
        """
        return False

    @property
    def has_costs(self) -> bool:
        r"""Whether measurements have costs, fixed or depending on the row before."""
        return self.pool.costs is not None or self.costs_depend_on_previous

    # --- what may be told -------------------------------------------------------------

    def noise_std_of(self, row: int | None) -> tuple[float, ...] | None:
        r"""The noise standard deviations that were stated, from wherever they are kept.

        Args:
            row: The row that is measured; ``None`` for a point that is no row.

        Returns:
            One for each number of a measurement, units of ``y``; ``None`` if the noise
            is ``pool.noise_var``, the model's own, or not known.
        """
        return each_of(getattr(self, "noise_std", None), self.n_outputs)

    @property
    def outcomes(self) -> tuple[Quantity | None, ...]:
        r"""The outcome of each predicted output; ``None``: a measured number."""
        return (None,) * self.n_predicted

    def outcomes_of(self, row: int | None) -> tuple[Quantity | None, ...]:
        r"""The outcomes of what a row measures, where they are no numbers.

        Args:
            row: The row that is measured; ``None`` for a point that is no row.

        Returns:
            One for each number of a measurement; ``None`` for a measured number.
        """
        return (None,) * self.n_outputs

    @property
    def takes_means(self) -> bool:
        r"""Whether replicates may be told as their mean, and a value with its noise.

        If not, every value is told by itself, without a noise variance.
        """
        return True

    @property
    def weighs_by_counts(self) -> bool:
        r"""Whether means without a noise variance are weighted by their replicates.

        If not, a mean of several replicates must come with its noise variance, unless
        the strategy was given the noise.
        """
        return False

    # --- what differs -----------------------------------------------------------------

    @property
    def parts(self) -> Algorithm:
        r"""The algorithm that says how a run continues from what is known."""
        # Not abstract, as type checkers would refuse `Strategy(pool, goal)`.
        raise NotImplementedError

    @cached_property
    def algorithm(self) -> Any:
        r"""The joined parts, on the device of the pool; see ``Run.ask``."""
        return on_device(self)

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        r"""The criteria that can end a run early: audit and excursion volume."""
        audit = getattr(self, "audit", None)
        content_tol = getattr(self, "content_tol", None)
        found = audits(self.algorithm, audit, self.pool, self.max_repeats)
        watched = content_watches(self.algorithm, content_tol, bool(found))
        return (*found, *watched)

    def _repr_html_(self) -> str:
        from botorch_lse.strategies.wording import strategy_html  # for notebooks alone

        return strategy_html(self)

    def _complete(self, observations: Observations) -> Observations:
        r"""The observations, checked, with the noise variances known beforehand."""
        algorithm = self.algorithm
        return algorithm.door.through(algorithm.complete, observations)


def each_of(std: Any, n_outputs: int) -> tuple[float, ...] | None:
    r"""One standard deviation per output, from one for all or one each."""
    if std is None:
        return None
    return tuple(std) if isinstance(std, Sequence) else (std,) * n_outputs


def _by_round(given: Any, name: str, n_rows: int) -> list[tuple[int, Tensor]]:
    r"""Rounds with rows of the pool, read from an argument of ``replay``.

    Raises:
        ValueError: If it is no dictionary from rounds to rows, and no pairs of both.
    """
    given = () if given is None else given
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    is_list = isinstance(pairs, Sequence) and not isinstance(pairs, str)
    if not is_list or not all(isinstance(p, Sequence) and len(p) == 2 for p in pairs):
        raise ValueError(
            f"Expected `{name}` to be a dictionary from rounds to rows, or pairs of a "
            f"round and rows, but got {given!r}. Write `{{0: [3, 7]}}`."
        )
    return [
        (
            whole_number(label, f"a round of {name}", 0),
            row_indices(rows, f"{name}[{label}]", n_rows),
        )
        for label, rows in pairs
    ]


def _together(pairs: Sequence[tuple[int, Tensor]]) -> dict[int, Tensor]:
    r"""All rows of each round."""
    labels = {label for label, _ in pairs}
    return {k: torch.cat([own for label, own in pairs if label == k]) for k in labels}


def looks(group: Observations, last: int) -> int:
    r"""The number of looks at the intervals that a group told together counts as.

    Its label says so: a group that is ``n > 1`` looks has the label ``last + n``. The
    next one may be that of a batch which was asked for beside an open round.

    Args:
        group: Measurements with one label, or none.
        last: The round that is open, or the label of what waits for its end.
    """
    if group.round is None or len(group) == 0:
        return 1
    return max(1, min(int(group.round[0]) - last, len(group)))


def looks_in_one_call(n: int, size: int) -> int:
    r"""The number of looks that unlabelled values told in one call count as.

    A batch is one look. Where there are more, those of the run they came from may have
    been of any size, and each value beside the first batch may have been a look.

    Args:
        n: How many values there are.
        size: How many a batch has.
    """
    return max(1, n - size + 1)


def looks_of_all(state: State, told: Observations) -> int:
    r"""The largest number of looks that measurements of unknown rounds may count as.

    Told as ``told.at_round(state.round + n)`` they count as ``n`` looks, with one
    interval after the last: none is narrower than that of a run that looked less often.

    Args:
        state: Where the run stands.
        told: What was measured before, or by somebody else.
    """
    is_needed = not state.strategy.algorithm.facts.needs_its_rows
    return max(1, len(told)) if is_needed else 1


@dataclass(frozen=True, eq=False)
class Unasked:
    r"""Measurements that nobody asked for, since the last ones that were asked for.

    They are told together, so that it does not matter in which portions they come.

    Args:
        state: The state after them.
        start: The state before them.
        group: The measurements.
    """

    state: State
    start: State
    group: Observations

    @classmethod
    def after(cls, state: State, new: Observations, known: Unasked | None) -> Unasked:
        r"""The record after more unasked measurements.

        Args:
            state: Where the run stands.
            new: What came.
            known: What came last.
        """
        start, group = state, new
        if known is not None and known.state is state:
            start, group = known.start, known.group.append(new)
        told = group.at_round(start.round + looks_of_all(start, group))
        return cls(start.strategy.tell(start, told), start, group)


def check_new(state: State, told: Observations, missing: Tensor | None) -> None:
    r"""Refuse measurements that were told before.

    Values are told twice when a sheet is filled in further and told again as a whole.

    Args:
        state: The state before.
        told: The observations.
        missing: Rows that the open round still needs; ``None`` before any came.

    Raises:
        ValueError: If a measurement labelled by a round was told for it already.
    """
    if told.round is None:
        return
    late = told.round < state.round
    if missing is not None:
        late |= (told.round == state.round) & ~torch.isin(told.indices, missing)
    if not bool(late.any()):
        return
    known = set(_entries(state.history.append(state.told)))
    again = [entry for entry in _entries(told.select(late)) if entry in known]
    if again:
        label, row, *values = again[0]
        raise ValueError(
            f"Expected new measurements, but got {len(again)} told already, first "
            f"{', '.join(written(v) for v in values)} of row {row} in round {label}. "
            "Tell only what is new, or `replay` the whole; leave `round` out if it "
            "was measured again."
        )


def _entries(observations: Observations) -> list[tuple[Any, ...]]:
    if len(observations) == 0:
        return []
    assert observations.round is not None  # labelled
    y = observations.y.view(len(observations), -1).unbind(dim=-1)
    columns = (observations.round, observations.indices, *y)
    return list(zip(*(column.tolist() for column in columns), strict=True))


GOAL = ("threshold", "omega", "maximize", "epsilon", "targets", "goal")
"""The arguments of strategies that say what is to be decided."""


def check_state(strategy: Strategy, state: object) -> State:
    r"""The state as a strategy continues it; another question's state is refused.

    What it holds was derived from the rows, their features and the goal; a strategy
    that differs in these would mistake it for an answer of its own. Budgets and batch
    sizes may differ, so that a run can be continued with more.

    Args:
        strategy: The strategy that is asked or told.
        state: What it is given.

    Returns:
        The state itself; if an equal strategy made it, a copy of this strategy's own.

    Raises:
        ValueError: If it is no state, or was made by a strategy of another class, for
            another pool or another goal.
    """
    if not isinstance(state, State):
        raise ValueError(
            f"Expected `state` to be a State, but got {type(state).__name__}. Take it "
            "from `strategy.init()` or `strategy.tell`."
        )
    maker = state.strategy
    if maker is strategy:  # as a rule; pools need no look then
        return state
    if type(maker) is not type(strategy):
        difference = f"a {type(maker).__name__}"
    elif not _same(maker.pool, strategy.pool):
        difference = f"another pool of {len(maker.pool)} rows"
    elif maker.pool.device != strategy.pool.device:
        # What it believes lives there, and cannot be read from here.
        difference = f"the pool on {maker.pool.device}, not {strategy.pool.device}"
    else:
        given = {part.name for part in fields(maker)}
        other = [
            n
            for n in GOAL
            if n in given and not _same(getattr(maker, n), getattr(strategy, n))
        ]
        rules = [type(getattr(s, "rule", None)) for s in (maker, strategy)]
        if rules[0] is not rules[1]:  # which remember different things
            other.append("rule")
        for name in ("audit", "content_tol"):  # without one its notes are missing
            both = [getattr(s, name, None) is None for s in (maker, strategy)]
            if both[0] is not both[1]:
                other.append(name)
        # A fit sees another history; what a given process was told has none of it.
        models: list[Any] = [
            getattr(s.algorithm, "model", None) for s in (maker, strategy)
        ]
        if all(getattr(one, "is_fixed", False) for one in models):
            before, now = (one.outputs[0].history for one in models)
            other += ["history"] if before is None and now is not None else []
        if not other:
            parts = {"algorithm": strategy.algorithm, "criteria": strategy.criteria}
            return replace(state, strategy=strategy, run=replace(state.run, **parts))
        difference = f"another `{other[0]}`"
        if hasattr(maker, other[0]):
            difference = f"`{other[0]}` = {getattr(maker, other[0])!r}"
    raise ValueError(
        f"Expected a `state` that this {type(strategy).__name__} made, but it was made "
        f"with {difference}. Go on with the strategy that made it; to answer another "
        "question about the same rows, `strategy.replay(state.observations)`."
    )


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Pool) and isinstance(other, Pool):
        return one.hash == other.hash
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return tuple(one) == tuple(other)
    return bool(one == other)


def check_listable(size: int) -> None:
    r"""Check that a round can be listed row by row.

    Raises:
        ValueError: If it has more than ``MOST_LISTED`` measurements.
    """
    if size > MOST_LISTED:
        raise ValueError(
            f"Expected a round of at most {MOST_LISTED:,} measurements, but the "
            f"algorithm asks for {size:,}. State `y` in units in which the gaps that "
            "matter are about 1, give a larger `epsilon`, or use a strategy with "
            "anytime widths (`...LinearStrategy`); `planned_counts` and `simulate`, "
            "where there are, do not list the rows."
        )


@dataclass(frozen=True, eq=False)
class Answer:
    r"""The answer of a state, computed when it is first read.

    Args:
        run: What is believed.
        words: Sentences that the guarantee adds.
    """

    run: Run
    words: tuple[str, ...] = ()

    @cached_property
    @ordinary
    def classification(self) -> Classification:
        r"""The side of every row, with bounds and a guarantee."""
        shown = self.run.shown
        answer = self if shown is self.run else Answer(shown, self.words)
        return answer.as_decided

    @cached_property
    def as_decided(self) -> Classification:
        r"""The answer by the run's own belief, for which no model is fitted."""
        found = self.run.answer()
        if not self.words:
            return found
        return replace(found, guarantee=" ".join((found.guarantee, *self.words)))


@dataclass(frozen=True, eq=False)
class State:
    r"""The immutable state of a run; ``tell`` returns a new one.

    Args:
        seed: The seed of ``init``.
        round: The round that ``ask`` asks for.
        history: The observations of all complete rounds, each round sorted by row.
        answer: What ``classification`` reads.
        stop_reason: Why the run ended; ``None`` while it goes on. ``"decided"``: no row
            is undecided, but for some that were excluded; ``"audited"``: and rows drawn
            at random agreed; ``"none found"`` and ``"all above so far"``: all values
            lie on one side of the level, so that a fitted model says nothing, or the
            audit of "all rows lie there" has passed; ``"not confirmed"``: too many of
            the rows that an audit drew were wrong, or too close to tell;
            ``"content known"``: the share above is known as well as ``content_tol``
            asks; ``"out of reach"``: rows may still be measured, but were their values
            known exactly, wherever in their intervals, no open row would be decided;
            ``"budget"`` and ``"rows exhausted"``: no more may be measured.
        plan: The rows of the open round, if some of them are measured already.
        told: The observations of the open round so far.
        deferred: Observations that were not asked for and came while a round is open,
            labelled by the number of looks that they count as. Once it is complete each
            is a round of its own, unless the next plan asks for it.
        abandoned: For each round, rows that were used up without a result.
        excluded: Rows that cannot be measured, with the round in which that was said,
            in the order in which it was.
        run: What the strategy derived from ``history``.
        strategy: The strategy that made the state; another one that asks something
            else refuses it.
        stored_plan: The rows of the round as a stored experiment has them; then they
            are not planned again.
    """

    seed: int
    round: int
    history: Observations
    answer: Answer = field(repr=False)
    stop_reason: str | None
    run: Run = field(repr=False)
    plan: Tensor | None = None
    told: Observations = field(default_factory=Observations.empty)
    deferred: tuple[Observations, ...] = ()
    abandoned: tuple[tuple[int, int], ...] = ()
    excluded: tuple[tuple[int, tuple[int, ...]], ...] = ()
    strategy: Strategy = field(kw_only=True, repr=False)
    stored_plan: Tensor | None = field(default=None, kw_only=True, repr=False)

    @property
    def belief(self) -> Any:
        r"""The algorithm's belief after the complete rounds."""
        return self.run.belief

    @property
    def classification(self) -> Classification:
        r"""The answer after the complete rounds.

        While the initial design of a learnt model goes on, its means and intervals are
        those of a model fitted to the values so far, when it is first read; no row is
        decided by it, and the run goes on without it.
        """
        return self.answer.classification

    @cached_property
    @ordinary
    def planned_rows(self) -> Tensor:
        r"""The rows of the round, sorted: a function of the complete rounds.

        Kept beside the fields, so that asking and telling plan once; a copy made by
        ``dataclasses.replace`` does not have it.
        """
        for known in (self.plan, self.stored_plan):
            if known is not None:
                return known
        request = self.strategy._request(self, torch.empty(0, dtype=torch.long))
        check_listable(request.size)
        return self.run.plan(request).sort().values

    @cached_property
    def rows_of_size(self) -> dict[int, Tensor]:
        r"""The rows planned so far for a batch whose size the caller gives."""
        return {}

    @property
    def is_done(self) -> bool:
        r"""Whether the run has ended and nothing more is to be asked."""
        return self.stop_reason is not None

    @ordinary
    def forecast(self) -> Forecast:
        r"""A forecast of how many more evaluations decide every row.

        Computed when it is first asked for. It ends at three for each row, or 10,000 in
        a small pool, and at a thousand for several outputs; of a pool of more than some
        two thousand rows it looks at a part: about a second of work at any size.
        """
        return self._forecast

    @cached_property
    def _forecast(self) -> Forecast:
        is_open, said = self.answer.as_decided.undecided, "Everything is decided."
        left, n = int(is_open.sum()), len(self.strategy.pool)
        gone = int(is_open[self.excluded_rows].sum()) if len(is_open) == n else 0
        if gone:
            said = f"Everything is decided but for excluded rows ({gone})."
        if self.stop_reason in (DECIDED, AUDITED):
            return Forecast(0, said)
        if self.stop_reason in (EXHAUSTED, OUT_OF_REACH):
            ended = f"The run has ended ({self.stop_reason})"
            return Forecast(None, f"{ended}; rows that stay undecided: {left}.")
        if gone == left > 0:  # how far rows around decide them is not estimated
            end = "Rows around them come next. To end earlier, give `max_observations`."
            return Forecast(None, said if self.is_done else f"{said} {end}")
        found, most = self.run.forecast(self.told.n_measured), self.strategy.max_repeats
        if gone and (found.observations or found.more_than):
            words = f"Of excluded rows {gone} count as if they could be measured."
            found = replace(found, basis=f"{found.basis} {words}")
        if most is None or found.observations is None:
            return found
        counts = (most - self.uses(n)).clamp_min(0)
        left = int(counts.index_fill(0, self.excluded_rows.long(), 0).sum())
        if found.observations <= left:
            return found
        words = "`max_repeats` allows at most"
        return Forecast(None, f"{words} {left} more; some rows may stay undecided.")

    @ordinary
    def content(self, confidence: float = CONFIDENCE) -> Content:
        r"""The share above the level: probability of failure, area, share of a library.

        What ``classification.content`` says by decided rows; the quantiles under the
        model, from joint draws of the undecided rows, where the level is stated; and,
        once an audit has drawn rows, limits that hold whatever the model. Print it for
        a sentence.

        Args:
            confidence: Of the quantiles, of the limits by random draws and of those for
                the error of the pool as a sample, each by itself.

        Raises:
            ValueError: If ``confidence`` is outside (0, 1).
        """
        in_interval(confidence, "confidence", 0.0, 1.0)
        return self.run.content(self.classification, confidence)

    @ordinary
    def conservative(self, alpha: float = CONFIDENCE) -> Tensor:
        r"""A set of rows that lie above the level together, with a joint probability.

        A row may be above with probability 0.99 and a hundred such rows be so together
        with hardly any. Of the sets that hold all rows above some probability of their
        own this is the largest that lies above as a whole with probability ``alpha``,
        by joint draws of the posterior: right if the model is. For the set in the
        middle, with its error, see ``Classification.vorobev``.

        Args:
            alpha: The joint probability.

        Returns:
            ``N`` bools.

        Raises:
            ValueError: If ``alpha`` is outside (0, 1).
            UnsupportedError: If there is no joint posterior, or no stated level.
        """
        in_interval(alpha, "alpha", 0.0, 1.0)
        if (model := model_of(self.strategy.algorithm)) is None:
            raise UnsupportedError(
                "Expected a strategy on a Gaussian process, from which joint draws can "
                "be made, but this one has none."
            )
        return self.run.ask(model.conservative, alpha)

    @ordinary
    def predict(
        self, X: Any, *, data: Observations | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""Posterior means and standard deviations of the function at any points.

        Args:
            X: ``M x d`` points, in the columns of the candidates; or a table, or
                dictionaries, with the names that the pool's table has.
            data: Observations to predict from, in place of those of the run; the model
                stays as it was learnt. Without some of them it is cross-validation.

        Returns:
            ``M`` means and ``M`` standard deviations, units of ``y``; of several
            outputs ``M x m``.

        Raises:
            ValueError: If a column is missing, or an entry is no value of its input.
            BotorchTensorDimensionError: If bare numbers have other columns.
            UnsupportedError: If the strategy has no Gaussian process, or none was
                fitted yet.
        """
        points = self.strategy.candidates.points(X)
        if data is not None:
            data = self.strategy._complete(data.of_outputs(self.strategy.outputs))
        if (model := model_of(self.strategy.algorithm)) is None:
            raise UnsupportedError(
                "Expected a strategy on a Gaussian process, but this one knows "
                "features of the rows of its pool only, not of other points."
            )
        return self.run.ask(model.predict, points, data)

    @property
    @ordinary
    def remarks(self) -> tuple[Remark, ...]:
        r"""The remarks and questions about the values that were told.

        The guarantee of the answer has their sentences as well. Each has a ``kind``,
        the ``rows`` that it is about and its ``text``.
        """
        model = model_of(self.strategy.algorithm)
        return () if model is None else self.run.ask(model.remarks)

    @ordinary
    def calibration(self, output: int = 0) -> Calibration:
        r"""A comparison of the model's predictions with the measured values.

        Print it for a sentence; ``plot_calibration`` draws it.

        Args:
            output: Which of several outputs.

        Raises:
            ValueError: If there is no such output.
            UnsupportedError: If the strategy has no Gaussian process.
        """
        whole_number(output, "output", 0)
        if output >= self.strategy.n_predicted:
            wanted = f"to be below {self.strategy.n_predicted}, the number of outputs"
            raise ValueError(complaint("output", wanted, f"got {output}"))
        if (model := model_of(self.strategy.algorithm)) is None:
            raise UnsupportedError(
                "Expected a strategy on a Gaussian process: this one predicts no "
                "values before they are measured, so there is nothing to compare."
            )
        found = self.run.ask(model.calibration, output)
        quantity = model.outcomes[output]
        if quantity is None or quantity.by_results:
            return found
        return replace(found, predicted=quantity.value(found.predicted))

    def past(self) -> Iterator[State]:
        r"""The states before the first and after each complete round, one by one.

        For ``plotting.progress_frame``. They are computed anew: a learnt model is
        fitted in each round. A million rows take their memory once, not in each round.
        """
        lost = {r: self.abandoned_in(r) for r, _ in self.abandoned if r < self.round}
        out = [(r, torch.tensor(rows)) for r, rows in self.excluded if r < self.round]
        start = self.strategy.init(self.seed)
        yield start
        rounds = self.strategy._replayed(start, self.history, lost, {}, out)
        yield from tqdm(
            rounds, "Past", self.round, delay=2.0, disable=None, leave=False
        )

    @ordinary
    def report(self, path: Any, *, metrics: Sequence[str] | None = None) -> None:
        r"""Write the report of the run: one HTML file that needs no network.

        It has the answer in words, the list of all rows, pictures, what the answer
        rests on and what to measure next: see ``plotting.write_report``.

        Args:
            path: The file, which is replaced.
            metrics: The names of what was measured; default those that the goal names,
                else ``y``.

        Raises:
            ImportError: If plotly is not installed.
            ValueError: If ``metrics`` are not one for each output.
            OSError: If the file cannot be written.
        """
        # By name: pictures are made from states, and states know nothing of them.
        plotting = import_module("botorch_lse.plotting")
        plotting.write_report(self, path, metrics=metrics)

    def __repr__(self) -> str:
        ends, s = self.stop_reason or "the run goes on", "s" * (self.n_used != 1)
        return f"State({self.n_used:,} measurement{s}, round {self.round}: {ends})"

    def _repr_html_(self) -> str:
        answer, ends = self.classification, self.stop_reason or "the run goes on"
        s = "s" * (self.n_used != 1)
        words = f"{self.n_used:,} measurement{s}: {ends}. {answer}"
        return as_html(words, answer.to_frame())

    @property
    def observations(self) -> Observations:
        r"""All told values, labelled by round; ``replay`` rebuilds the state."""
        return self.history.append(self.waiting)

    @property
    def measurements(self) -> Observations:
        r"""All told values at the rows of the answer, for its table and pictures.

        The same as ``observations``, unless a row of the pool measures one of several
        outputs (``Pool.at_outputs``), or the answer is about other rows (``targets``):
        of these the measurements of rows of the pool that are among them. A grade
        (``Ordinal``) is 1 where it is reached, and 0, as levels are about that.
        """
        found, outcomes = self.observations, self.strategy.outcomes
        found = self.strategy.at_candidates(found)
        if len(outcomes) == 1 and outcomes[0] is not None:
            found = replace(found, y=outcomes[0].as_quantity(found.y))
        return found

    @property
    def waiting(self) -> Observations:
        r"""Observations that belong to no complete round yet, labelled by round."""
        found, label = self.told, self.round + 1
        for group in self.deferred:
            assert group.round is not None  # how many looks it is
            n = int(group.round[0])
            label += n if n > 1 else 0
            found, label = found.append(group.at_round(label)), label + 1
        return found

    @property
    def n_used(self) -> int:
        r"""The number of measurements made, or used up without a result."""
        return self.observations.n_measured + len(self.abandoned)

    def abandoned_in(self, round: int) -> Tensor:
        r"""The rows that were abandoned in round number ``round``."""
        rows = [row for r, row in self.abandoned if r == round]
        return torch.tensor(rows, dtype=torch.long)

    def excluded_in(self, round: int) -> Tensor:
        r"""The rows that were excluded in round number ``round``."""
        rows = [row for r, rows in self.excluded if r == round for row in rows]
        return torch.tensor(rows, dtype=torch.long)

    @property
    def excluded_rows(self) -> Tensor:
        r"""The excluded rows, sorted; they are not asked for any more."""
        rows = {row for _, rows in self.excluded for row in rows}
        return torch.tensor(sorted(rows), dtype=torch.long)

    def uses(self, n_rows: int) -> Tensor:
        r"""The number of times that each row was measured or used up (``n_rows``)."""
        lost = torch.tensor([row for _, row in self.abandoned], dtype=torch.long)
        rows = torch.cat((self.observations.measured, lost))
        return torch.bincount(rows, minlength=n_rows)


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    r"""The result of a simulated run.

    Args:
        classification: The answer.
        n_used: Measurements made.
        rounds: How many rounds or batches they were made in.
        stop_reason: ``"decided"`` or ``"budget"``.
    """

    classification: Classification
    n_used: int
    rounds: int
    stop_reason: str


def believing(state: State, belief: Any, words: str) -> State:
    r"""The state with another belief, and the answer and the end that it leads to.

    Args:
        state: Where the run stands; its criteria keep their notes.
        belief: What is believed.
        words: The sentence that the guarantee adds.
    """
    run, said = replace(state.run, belief=belief), (*state.answer.words, words)
    found = replace(state, run=run, answer=Answer(run, said))
    return replace(found, stop_reason=state.strategy._stop_reason(found))
