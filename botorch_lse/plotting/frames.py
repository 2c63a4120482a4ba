r"""The data frames behind the pictures, with one line per row, round or panel."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_lse._validation import complaint, of_type, real_vector, whole_number
from botorch_lse.confidence.calibration import Calibration, rank_interval, recent
from botorch_lse.data.classification import ACCEPTED, SIDES, Classification
from botorch_lse.data.names import in_order
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool, beside
from botorch_lse.datasets import f1_score
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.plotting.axes import Axis, axes_of, names_of, shown_axes
from botorch_lse.strategies import ParetoEstimate, State
from botorch_lse.surrogate.draws import joint_draws

WORDS = {"above": "accepted", "below": "rejected", "undecided": "open"}
"""The words for the sides of a Pareto set."""
IN_REGION = {"above": "in", "below": "out"}
"""The words for the sides of a region of several levels."""
_SIDE_WORDS = "words"
"""The key in a frame's ``attrs`` of the words for the sides."""
LATER, EARLIER = "predicted, later half", "predicted, earlier half"
LEFT_OUT = "each left out"
"""The name of residuals of which each value is left out of its own prediction."""
MOST_INPUTS = 4
"""The number of inputs shown unless others are named: six panels fit on a page."""
_FEWEST = 9
"""The number of rows in the anchor's slice itself that suffice to show only these."""
_NEAREST = 60
"""The number of rows nearest to the slice that are shown otherwise."""
_BARE = ("side", "probability_above", "mean", "lower", "upper", "n_observations")
_PLACE = ["panel", "held", "x_name", "y_name", "row", "x", "y"]
_PLACE += ["x_word", "y_word", "x_log", "y_log"]
_MOST_HELD = 3
"""The largest number of inputs held fixed that are named above a panel."""
_SAME = 1e-9
"""The share of an input's range within which two values are the same."""


def side_words(classification: Classification) -> dict[str, str]:
    r"""The words for the sides of an answer, which say what was asked.

    In or out of a region; of ``Below`` those of the level; of ``Levels`` the uppermost
    class; of ``Classes`` none of them or one; of a Pareto set accepted or rejected.
    """
    words = {side: side for side in SIDES}
    if classification.meaning == ACCEPTED:
        return WORDS
    if classification.meaning == "below":
        return words | {"above": "below", "below": "above"}
    if classification.class_names:
        return words | {"above": classification.meaning, "below": "of a class"}
    if classification.classes is not None:
        last = f"class {len(classification.outputs[0].levels)}"
        return words | {"above": f"of {last}", "below": f"below {last}"}
    return words | (IN_REGION if classification.outputs else {})


def words_in(frame: pd.DataFrame) -> dict[str, str]:
    r"""The words for the sides that a frame was given with its answer."""
    words: dict[str, str] = frame.attrs.get(_SIDE_WORDS, {})
    return words


def check_answer(classification: Any, observations: Any) -> None:
    r"""Complain about arguments that are no classification or no observations.

    Raises:
        ValueError: If ``classification`` is no ``Classification``, or ``observations``
            something else than ``Observations`` or ``None``.
    """
    remedy, wanted = "Give `state.classification`.", "a Classification"
    of_type(classification, Classification, "classification", wanted, remedy)
    remedy, wanted = "Give `state.observations`.", "Observations"
    of_type(observations, Observations | None, "observations", wanted, remedy)


def level_set_frame(
    classification: Classification, observations: Observations | None = None
) -> pd.DataFrame:
    r"""The pool's table with the answer and how often each row was measured.

    Args:
        classification: The answer for ``N`` rows.
        observations: The measurements.

    Returns:
        ``N`` rows: ``Classification.to_frame()`` and ``n_observations`` (ending in
        ``_lse`` where the table has that name).
    """
    times = _times_measured(classification, observations)
    return beside(classification.to_frame(), pd.DataFrame({"n_observations": times}))


def bare_frame(
    classification: Classification, observations: Observations | None
) -> pd.DataFrame:
    r"""A frame of ``N`` rows: side, probability, mean, bounds, number of measurements.

    Where there are classes, also their numbers, -1 for undecided ones, and where these
    have names the likeliest one; where the pool's table names its rows, their names.
    """
    # As members of what is asked for, which pictures have words for.
    members = replace(classification, pool=None, meaning="above")
    frame = level_set_frame(members, observations)[[*_BARE]]
    frame = with_names(frame, classification.pool)
    if classification.classes is None:
        return frame
    frame = frame.assign(class_number=_array(classification.classes))
    if (likeliest := classification.likeliest) is None:
        return frame
    # Of a decided row the class itself, which may be that of none.
    number = torch.where(classification.undecided, likeliest, classification.classes)
    names: Any = list(classification.class_names)
    return frame.assign(class_name=pd.Categorical.from_codes(_array(number), names))


def with_names(frame: pd.DataFrame, pool: Pool | None) -> pd.DataFrame:
    r"""A frame of the pool's rows with their names, if the pool's table has some."""
    names = names_of(pool)
    return frame if names is None else frame.assign(name=names)


def slices_frame(
    classification: Classification,
    observations: Observations | None = None,
    anchor: int | None = None,
    inputs: Sequence[str] | None = None,
    metric: str = "",
) -> pd.DataFrame:
    r"""Slices through one row of the pool, one for each pair of inputs.

    A slice holds the rows whose other inputs are those of the anchor; where there are
    few, the nearest in the other inputs. With two inputs it holds all rows. With one
    input ``y`` is the posterior mean. Inputs are those of the pool's table: in its
    units, also where the model sees their logarithms, and words by name.

    Args:
        classification: The answer for ``N`` rows, with its pool.
        observations: The measurements.
        anchor: The row to slice through; default the most doubtful one: with the
            probability nearest to one half, the first of equals.
        inputs: Names of the pool's inputs; default the first four that vary.
        metric: What the mean is of: with one input the axis is called so.

    Returns:
        A row for each row of each slice: ``panel``, ``held`` (what is held fixed, in
        words), ``x_name``, ``y_name``, ``row``, ``x``, ``y`` (of words their numbers),
        ``x_word``, ``y_word`` (of numbers ``None``), ``x_log``, ``y_log`` (whether the
        axis has a log scale), ``side``, ``probability_above``, ``mean``, ``lower``,
        ``upper``, ``n_observations`` and ``distance`` (to the anchor, in the inputs not
        shown, as a share of their ranges); of several classes also ``class_number``
        and, if they have names, ``class_name``; and ``name`` where the pool's table
        names its rows. The words for the sides, such as in and out, are in its
        ``attrs``.

    Raises:
        ValueError: If the classification has no pool, ``anchor`` is no row or
            ``inputs`` are not in the pool.
    """
    check_answer(classification, observations)
    pool = classification.pool
    if pool is None:
        wanted, remedy = "to hold its pool", "Take the one of a strategy's state."
        raise ValueError(complaint("classification", wanted, "it has none", remedy))
    if anchor is None:
        # By a little more than one half: where all rows are certain, one above.
        anchor = int((classification.probability_above - 0.500001).abs().argmin())
    anchor = whole_number(anchor, "anchor", 0)
    if anchor >= len(pool):
        wanted = f"to be a row of the pool, 0 to {len(pool) - 1}"
        raise ValueError(complaint("anchor", wanted, f"got {anchor}"))
    shown = bare_frame(classification, observations)
    low, high = pool.bounds
    away = _array(((pool.X - pool.X[anchor]) / (high - low)).abs())
    y = shown["mean"].rename(f"{metric}, mean" if metric else "mean")
    frame = _panels(pool, inputs, shown, y, away, anchor)
    frame.attrs[_SIDE_WORDS] = side_words(classification)
    return frame


def batches_frame(
    pool: Pool,
    observations: Observations,
    upcoming: Sequence[int] = (),
    inputs: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""The places of each batch, one panel for each pair of inputs.

    Args:
        pool: The candidates.
        observations: What was measured, labelled by round.
        upcoming: Rows that are planned or being measured, replicates included.
        inputs: Names of the pool's inputs; default the first four that vary.

    Returns:
        A row for each panel and row of the pool: ``panel``, ``held`` (nothing),
        ``x_name``, ``y_name``, ``row``, ``x``, ``y``, ``x_word``, ``y_word``,
        ``x_log``, ``y_log`` (see ``slices_frame``), ``round`` (of its last measurement;
        NaN: never), ``n_observations`` and ``n_upcoming``; ``name`` where the pool's
        table names its rows. With one input ``y`` is the round, the next one for rows
        never measured that are to come.

    Raises:
        ValueError: If ``inputs`` are not in the pool.
    """
    N, labels = len(pool), observations.round
    if labels is None:
        labels = torch.arange(len(observations))
    rounds = pd.Series(labels.numpy(), observations.indices.numpy(), dtype=float)
    last = rounds.groupby(level=0).max().reindex(range(N))
    upcoming_counts = np.bincount(np.asarray(upcoming, dtype=np.int64), minlength=N)
    counts = observations.times_measured(N).numpy()
    table = {"round": last, "n_observations": counts, "n_upcoming": upcoming_counts}
    following = max(rounds, default=-1.0) + 1
    is_new = last.isna() & (upcoming_counts > 0)
    round_or_next = last.mask(is_new, following).rename("round")
    named = with_names(pd.DataFrame(table), pool)
    return _panels(pool, inputs, named, round_or_next)


def pareto_frame(
    classification: Classification,
    estimate: ParetoEstimate,
    observations: Observations | None = None,
    outputs: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""The pool's table with the answer and every output with its interval.

    Args:
        classification: The answer for ``N`` rows.
        estimate: ``strategy.estimate(state)``.
        observations: The measurements.
        outputs: The ``m`` names of the outputs; default ``y0``, ``y1``, ...

    Returns:
        ``N`` rows. Columns added: ``side`` (accepted, rejected, open), ``margin``,
        ``margin_lower``, ``margin_upper``; for each output ``NAME_mean``,
        ``NAME_lower``, ``NAME_upper``; ``n_observations``. Where the pool's table has
        such a name already, ours ends in ``_lse``.

    Raises:
        ValueError: If there is not one name per output.
    """
    times = _times_measured(classification, observations)
    columns = {
        "side": [WORDS[side] for side in classification.side],
        "margin": _array(classification.mean),
        "margin_lower": _array(classification.lower),
        "margin_upper": _array(classification.upper),
    }
    m = estimate.mean.shape[1]
    names = [f"y{c}" for c in range(m)] if outputs is None else outputs
    if isinstance(names, str) or len(names) != m:
        wanted = f"to be {m} names, one per output"
        raise ValueError(complaint("outputs", wanted, f"got {outputs!r}"))
    for c, name in enumerate(names):
        for part in ("mean", "lower", "upper"):
            columns[f"{name}_{part}"] = _array(getattr(estimate, part)[:, c])
    ours = pd.DataFrame({**columns, "n_observations": times})
    pool = classification.pool
    return ours if pool is None else beside(pool.to_frame(), ours)


def progress_frame(
    states: Iterable[State],
    truth: Any = None,
    costs: Sequence[float] | None = None,
) -> pd.DataFrame:
    r"""The progress of a run after each round.

    Args:
        states: The states before the first and after each round, such as
            ``state.past()``; of an iterator one at a time is held.
        truth: ``N`` bools, the rows that truly lie above the level; then there is a
            column ``f1``: the F1 score of the answer, undecided rows on the likelier
            side.
        costs: Cumulative costs, one for each state; default the sum of ``Pool.costs``
            over all measurements, or their number.

    Returns:
        A row for each state: ``round``, ``evaluations``, ``above``, ``below``,
        ``undecided``, ``cost``, ``forecast`` (the evaluations, spent ones included,
        until everything is decided; for the last state, if the strategy foresees them)
        and, with ``truth``, ``f1``. The words for the sides are in its ``attrs``.

    Raises:
        ValueError: If there is no state, or the number of costs is another.
        BotorchTensorDimensionError: If ``truth`` has another length.
    """
    lines, above, state = list[dict[str, float]](), None, None
    for state in states:
        answer = state.classification
        line: dict[str, float] = {"round": state.round, "evaluations": state.n_used}
        line |= {side: int(getattr(answer, side).sum()) for side in SIDES}
        line |= {"cost": _cost(state), "forecast": np.nan}
        if truth is not None and above is None:
            above = _truth(truth, answer)
        if above is not None:
            line["f1"] = f1_score(answer.best_guess.cpu(), above)
        lines.append(line)
    if state is None:
        raise ValueError("Expected `states` to hold at least one state, but got none.")
    if costs is not None and len(costs) != len(lines):
        wanted = f"to have one entry per state ({len(lines)})"
        raise ValueError(complaint("costs", wanted, f"got {len(costs)}"))
    frame = pd.DataFrame(lines)
    if costs is not None:
        frame["cost"] = costs
    more = state.forecast().observations
    if more is not None:
        frame.loc[len(frame) - 1, "forecast"] = float(state.n_used + more)
    frame.attrs[_SIDE_WORDS] = side_words(state.classification)
    return frame


def _truth(truth: Any, answer: Classification) -> torch.Tensor:
    r"""The rows that truly lie above, in the order of the pool (``N`` bools)."""
    if answer.pool is not None:
        truth = in_order(truth, answer.pool.labels, "truth")
    N = len(answer)
    return real_vector(truth, "truth", N, "row of the pool", booleans=True) > 0.5


def calibration_frame(calibration: Calibration) -> pd.DataFrame:
    r"""Residuals in units of their predicted standard deviations, beside normal ones.

    Residuals of each kind are compared with independent standard normal numbers, one
    for each: the smallest with the smallest, and so on.

    Args:
        calibration: ``state.calibration()``.

    Returns:
        A row for each residual: ``kind`` (predicted ahead in the later half, by which
        the run is judged, or in the earlier one; each value left out of all others),
        ``number`` (its place in ``calibration.ahead``, or in ``calibration.out`` and
        ``state.history``), ``residual``, ``predicted`` (units of ``y``; NaN for those
        predicted ahead) and, of the normal number of the same rank, the median
        ``expected`` and the ends ``lower`` and ``upper`` of its 95 % interval.

    Raises:
        ValueError: If ``calibration`` is no ``Calibration``.
    """
    remedy, wanted = "Give `state.calibration()`.", "a Calibration"
    of_type(calibration, Calibration, "calibration", wanted, remedy)
    ahead, out = _array(calibration.ahead), _array(calibration.out)
    n_later = len(recent(calibration.ahead))
    counts = {EARLIER: len(ahead) - n_later, LATER: n_later, LEFT_OUT: len(out)}
    columns = {
        "kind": np.repeat(list(counts), list(counts.values())),
        "number": np.concatenate((np.arange(len(ahead)), np.arange(len(out)))),
        "residual": np.concatenate((ahead, out)),
        "predicted": np.append(np.full(len(ahead), np.nan), calibration.predicted),
    }
    frame = pd.DataFrame(columns)
    groups = frame.groupby("kind")["residual"]
    rank, n = groups.rank(method="first"), groups.transform("size")
    ends = rank_interval(torch.tensor(rank.to_numpy()), torch.tensor(n.to_numpy()))
    for name, values in zip(("lower", "expected", "upper"), ends, strict=True):
        frame[name] = _array(values)
    return frame


def importance_frame(state: State, output: int = 0) -> pd.DataFrame:
    r"""The share of the function's variation that each input explains by itself.

    Of the variance of the function over the rows, the share that is the variance of
    its means at equal values of the input: a first-order Sobol index, if the inputs
    are independent over the rows. What inputs do together is in no share. Numbers with
    many values are taken in ten classes. Rows count by their weights.

    Args:
        state: Where the run stands.
        output: Which of several outputs.

    Returns:
        A row for each input that varies: ``input``, ``share`` (the median of joint
        draws from the model), ``lower`` and ``upper`` (95 % of the draws: what the
        share may be, as far as the model is right).

    Raises:
        ValueError: If ``state`` is no ``State``, or has no such output.
        UnsupportedError: If the strategy has no Gaussian process, or none was fitted.

    Source:
        Sobol (1993), first-order indices; estimated by omega squared (Hays 1963), the
        share in a one-way analysis of variance less what chance gives.
    """
    of_type(state, State, "state", "a State", "Give what `strategy.tell` returns.")
    whole_number(output, "output", 0)
    if output >= state.strategy.n_predicted:
        wanted = f"to be below {state.strategy.n_predicted}, the number of outputs"
        raise ValueError(complaint("output", wanted, f"got {output}"))
    pool, posterior = state.strategy.candidates, posterior_of(state, output)
    generator = torch.Generator().manual_seed(state.seed)
    n = min(int((pool.mass > 0).sum()), 1_000)
    rows = torch.multinomial(pool.mass, n, generator=generator)
    drawn = joint_draws(posterior, rows, 200, state.seed)
    values = torch.cat([values for _, values in drawn])
    lines = []
    for axis in axes_of(pool):
        if axis.varies:
            shares = _main_effect(values, classes_of(axis.values[rows])).cpu()
            lines.append((axis.name, *np.quantile(shares, (0.5, 0.025, 0.975))))
    return pd.DataFrame(lines, columns=["input", "share", "lower", "upper"])


def posterior_of(state: State, output: int) -> PoolPosterior:
    r"""The posterior of an output on the candidates.

    Raises:
        UnsupportedError: If the strategy has no Gaussian process, or none was fitted.
    """
    shown, has_model = state.run.shown, state.strategy.algorithm.facts.predicts
    if not (has_model and shown.belief.fits.is_informed):
        raise UnsupportedError(
            "Expected a run with a Gaussian process that was fitted, but this one has "
            "none. Tell it more measurements, or take a strategy with a model."
        )
    posterior: PoolPosterior = shown.belief.fits.posteriors[output]
    return posterior


def classes_of(values: np.ndarray) -> torch.Tensor:
    r"""A class for each value: the value itself where there are few, else a tenth."""
    levels, which = np.unique(values, return_inverse=True)
    if len(levels) > 10:
        ends = np.quantile(values, np.linspace(0, 1, 11)[1:-1])
        which = np.searchsorted(ends, values)
    return torch.as_tensor(which).unique(return_inverse=True)[1]


def _main_effect(values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    r"""The share of each column's variance between classes (``n``), without chance."""
    n, k = len(values), int(classes.max()) + 1
    count = torch.bincount(classes, minlength=k).to(values).unsqueeze(-1)
    sums = torch.zeros(k, values.shape[1]).to(values).index_add_(0, classes, values)
    centre = values.mean(dim=0)
    between = (count * (sums / count - centre).square()).sum(dim=0)
    total = (values - centre).square().sum(dim=0)
    within = (total - between) / max(n - k, 1)
    share = (between - (k - 1) * within) / (total + within).clamp_min(1e-300)
    return share.clamp(0.0, 1.0)


def _times_measured(
    classification: Classification, observations: Observations | None
) -> np.ndarray:
    check_answer(classification, observations)
    measurements = Observations.empty() if observations is None else observations
    N = len(classification)
    if len(measurements) and int(measurements.indices.max()) >= N:
        wanted = f"to be of the {N} rows of the answer"
        came = f"got row {int(measurements.indices.max())}"
        remedy = "Give `state.measurements`."
        raise ValueError(complaint("observations", wanted, came, remedy))
    return measurements.times_measured(N).numpy()


def _array(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()


def _slice(distance: np.ndarray) -> np.ndarray:
    r"""The rows to show in a slice, given their distances from it.

    Rows at distance 0; where these are too few for a picture, the nearest rows.
    """
    exact = distance <= _SAME
    if exact.sum() >= _FEWEST:
        return np.flatnonzero(exact)
    rank = min(_NEAREST, len(distance)) - 1
    reach = float(np.partition(distance, rank)[rank])
    return np.flatnonzero(distance <= reach + _SAME)


def _panels(
    pool: Pool,
    inputs: Sequence[str] | None,
    table: pd.DataFrame,
    single: pd.Series,
    away: np.ndarray | None = None,
    anchor: int = 0,
) -> pd.DataFrame:
    r"""The ``table`` once for each pair of inputs, with the coordinates of each row.

    Args:
        pool: The ``N`` rows.
        inputs: Which inputs; ``None``: the first that vary.
        table: ``N`` rows.
        single: ``N`` values in place of a second input, where there is only one.
        away: ``N x d`` distances to an anchor, to keep only the rows near it in the
            inputs not shown.
        anchor: Its row.
    """
    axes, frames = axes_of(pool), list[pd.DataFrame]()
    shown = shown_axes(axes, inputs, MOST_INPUTS)
    alone = Axis(str(single.name), (), np.asarray(single, float))
    pairs = list(itertools.combinations(shown, 2)) or [(shown[0], alone)]
    for panel, pair in enumerate(pairs):
        part = table.assign(panel=panel, held="", row=range(len(pool)))
        for axis, place in zip(pair, "xy", strict=True):
            words = np.array(axis.words or [None], dtype=object)
            numbers = axis.values.astype(int) if axis.words else 0
            part[f"{place}_name"], part[place] = axis.name, axis.values
            part[f"{place}_word"] = np.broadcast_to(words[numbers], len(pool))
            part[f"{place}_log"] = axis.is_log
        part = part[[*_PLACE, *table.columns]]
        if away is not None:
            own = [column for axis in pair for column in axis.columns]
            distance = np.delete(away, own, axis=1).max(axis=1, initial=0.0)
            kept = _slice(distance)
            others = [axis for axis in axes if axis not in pair and axis.varies]
            held = _held(others, anchor, is_exact=bool((distance[kept] <= _SAME).all()))
            part = part.assign(held=held, distance=distance).iloc[kept]
        frames.append(part)
    return pd.concat(frames, ignore_index=True)


def _held(others: Sequence[Axis], anchor: int, is_exact: bool) -> str:
    words = [f"{axis.name} = {axis.text(anchor)}" for axis in others[:_MOST_HELD]]
    if len(others) > _MOST_HELD:
        words.append(f"{len(others) - _MOST_HELD} more")
    return "" if not words else ("" if is_exact else "near ") + ", ".join(words)


def _cost(state: State) -> float:
    pool = state.classification.pool
    if pool is None or pool.costs is None:
        return float(state.n_used)
    return float((state.uses(len(pool)) * pool.costs).sum())
