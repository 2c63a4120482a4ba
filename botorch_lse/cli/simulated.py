r"""Simulated runs against an invented truth, to predict how much to measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.cli.kinds import Labels
from botorch_lse.cli.runs import Run, filled_up, learnt, told
from botorch_lse.cli.truths import NO_TRUTH, true_values
from botorch_lse.data.observations import Observations
from botorch_lse.models.fitted import unfitted_prior
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.models.outcomes import Counts, Ordinal
from botorch_lse.strategies import ComposedStrategy, State
from botorch_lse.surrogate.draws import joint_draws

SHARE_BETWEEN = 4.0
"""The standard deviations between the two ends of the expected values.
95 % of the candidates then lie between the ends."""


@dataclass(frozen=True)
class Truth:
    r"""The truth that simulated measurements measure, and where they begin.

    Args:
        values: ``K x N``, a function on the pool for each run.
        noise_std: The standard deviation of simulated noise, of all rows of the pool or
            of each; ``None``: values are probabilities or expected counts, by which
            results are drawn, or classes.
        state: What is known when a run begins.
        words: Where the values come from.
    """

    values: Tensor
    noise_std: float | Tensor | None
    state: State
    words: str


@dataclass(frozen=True)
class Outcome:
    r"""The end of a simulated run.

    Args:
        n: Measurements, or trials, that it made.
        sheets: In how many sheets.
        reason: Why it stopped.
        found: How many candidates it found above the level, or of a class, in words.
        wrong: The number it decided wrongly by more than the accuracy.
    """

    n: int
    sheets: int
    reason: str
    found: str
    wrong: int


def truth_of(
    run: Run,
    runs: int,
    columns: tuple[str, ...] | None,
    between: tuple[float, ...] | None,
    noise: float | None,
) -> Truth:
    r"""The truth to be measured in simulated runs.

    A column of the candidates, if one is named: every run begins anew. Else functions
    drawn from the model: as the results have it by now, then runs go on from them, or
    from the model before any data, whose values lie between two ends.

    Args:
        run: The run.
        runs: How many truths.
        columns: The column of the candidates with the true values, one a source.
        between: The two ends, the smaller one first.
        noise: The standard deviation of simulated noise; default what is known of it.

    Raises:
        ValueError: If there is nothing to draw from, or there is no such column.
    """
    seed, known = run.settings.seed, run.settings.noise_std
    noise = known if noise is None else noise
    std: float | Tensor | None = None if noise is None else run.scale.noise(noise)
    if std is None and run.pool.noise_var is not None:
        std = run.pool.noise_var.sqrt()
    start = run.strategy.init(seed)
    if run.measured.sources:
        start = run.strategy.exclude(start, sorted(run.unmeasurable))
    outcome, knows_noise = run.outcome, std is not None or run.outcome is not None
    if columns is not None:
        assert knows_noise  # ``check_truth`` complains before torch is loaded
        # Sources of earlier values alone stand behind the others: nobody asks them.
        n = max(0, len(run.measured.sources) - len(columns))
        own = [true_values(run, column) for column in (*columns, *columns[:1] * n)]
        found = torch.tensor(own, dtype=torch.float64).view(-1)
        values = run.scale.inward(found).expand(runs, -1)
        words = f"the column{'s' * (len(columns) > 1)} {', '.join(columns)}"
        return Truth(values, std, start, words)
    if between is not None:
        assert knows_noise  # as above
        low, high = run.scale.inward(torch.tensor(between, dtype=torch.float64))
        if outcome is not None:
            low, high = outcome.latent(torch.stack((low, high)))
        unfitted = unfitted_prior(run.pool.bounds, dict(run.pool.words.values()))
        prior = PoolPosterior.start(unfitted, run.pool.X)
        values = (low + high) / 2 + _drawn(prior, runs, seed) * (
            (high - low) / SHARE_BETWEEN
        )
        values = values if outcome is None else outcome.value(values)
        ends = " and ".join(map(written, between))
        words = f"functions drawn from the model, mostly between {ends}"
        return Truth(values, std, start, words)
    # Without its audit, which has a belief of its own.
    strategy = replace(run.strategy, audit=None)
    state = run.state if run.strategy.audit is None else learnt(run, strategy)
    if not state.belief.fits.is_informed:
        raise ValueError(NO_TRUTH)
    posteriors = state.belief.fits.posteriors
    drawn = [_drawn(own, runs, seed + j) for j, own in enumerate(posteriors)]
    values = drawn[0]
    if len(drawn) > 1:  # of each candidate the class that is most likely there
        values = torch.stack(drawn).argmax(dim=0).double()
    elif outcome is not None:
        values = outcome.value(values)
    elif std is None:
        variance = state.belief.fits.new_noise
        std = variance.sqrt() if run.measured.sources else float(variance.mean().sqrt())
    words = f"functions drawn from the model that {run.settings.results} taught"
    return Truth(values, std, run.state, words)


def _drawn(posterior: PoolPosterior, n: int, seed: int) -> Tensor:
    r"""The joint draws of the whole pool (``n x N``)."""
    rows = torch.arange(len(posterior.mean))
    values = torch.empty(n, len(rows), dtype=torch.float64)
    for at, part in joint_draws(posterior, rows, n, seed):
        values[:, at] = part.T.double()
    return values


def simulated(run: Run, truth: Truth, most: int) -> Iterator[Outcome]:
    r"""The outcomes of runs, one for each truth.

    Args:
        run: The run whose strategy is used.
        truth: What is measured.
        most: Measurements, or trials, of a run at most.
    """
    left, begun = run.left, truth.state.n_used
    limit = begun + (most if left is None else min(left, most))
    # Limits of values may have used up the budget before the first value.
    strategy = replace(run.strategy, max_observations=max(1, limit))
    for i, values in enumerate(truth.values):
        bench = np.random.default_rng((run.settings.seed, i))
        yield _outcome(run, strategy, truth, values, bench)


def _outcome(
    run: Run,
    strategy: ComposedStrategy,
    truth: Truth,
    values: Tensor,
    bench: np.random.Generator,
) -> Outcome:
    state, sheets = truth.state, 0
    while not state.is_done:
        room = ((strategy.max_observations or 0) - state.n_used) // run.trials
        size = min(run.settings.batch, max(room, 1))
        rows = torch.tensor(filled_up(strategy, state, [], size)).long()
        if rows.numel() == 0:
            break
        new = _measured(run, truth, rows, values, bench)
        state = told(strategy, state, new.at_round(state.round))
        sheets += 1
    answer, excess = state.classification, values[run.pool.of_target] - run.level
    if answer.classes is None:
        found = f"{int(answer.above.sum())} above"
        wrong = (answer.above & (excess < -run.epsilon)) | (
            answer.below & (excess > run.epsilon)
        )
    else:
        found = f"{int((~answer.undecided).sum())} decided"
        wrong = ~answer.undecided & (answer.classes != values)
    n = state.n_used - truth.state.n_used
    return Outcome(n, sheets, state.stop_reason or "", found, int(wrong.sum()))


def _measured(
    run: Run, truth: Truth, rows: Tensor, values: Tensor, bench: np.random.Generator
) -> Observations:
    r"""The simulated results of rows, whose true values are given."""
    if truth.noise_std is not None:
        noise = torch.from_numpy(bench.standard_normal(len(rows)))
        std = torch.as_tensor(truth.noise_std).expand(len(values))[rows]
        return Observations(rows, values[rows] + std * noise)
    kind = run.settings.kind
    if isinstance(kind, Labels):
        return Observations(rows, kind.told(values[rows]))
    if isinstance(run.outcome, Ordinal):
        # With the cutpoints that were learnt, or likely ones.
        found = truth.state.belief.posterior.prior.outcome or run.outcome
        assert isinstance(found, Ordinal)
        noise = torch.from_numpy(bench.standard_normal(len(rows)))
        return Observations(rows, found.grade(found.latent(values[rows]) + noise))
    if isinstance(run.outcome, Counts):
        counts = torch.from_numpy(bench.poisson(values[rows].numpy()))
        return Observations(rows, counts.double())
    n = run.trials
    drawn = torch.from_numpy(bench.binomial(n, values[rows].numpy()))
    return Observations(rows, drawn.double(), trials=None if n == 1 else n)
