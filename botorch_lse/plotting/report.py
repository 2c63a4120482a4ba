r"""The report of a run: one HTML file, for any browser and without network."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._files import write_whole
from botorch_lse._numerals import written
from botorch_lse._validation import complaint, of_type
from botorch_lse.data.classification import Classification, OutputEstimate
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.outcome_levels import quantities
from botorch_lse.plotting.axes import axes_of
from botorch_lse.plotting.frames import (
    importance_frame,
    level_set_frame,
    pareto_frame,
    progress_frame,
    side_words,
    slices_frame,
)
from botorch_lse.plotting.pictures import (
    CLASSES,
    COLOURS,
    INK,
    calibration_figure,
    level_set_figure,
    pareto_set_figure,
    progress_figure,
    slices_figure,
)
from botorch_lse.strategies import Goal, State
from botorch_lse.strategies.wording import default_names, question_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_LISTED = 100_000
"""The number of rows that the list has at most: browsers sort so many at once."""
MOST_DRAWN = 5_000
"""The number of rows that a picture shows at most, measured ones first."""
MOST_ROUNDS = 60
"""The number of rounds of which the progress is computed anew, unless it is given."""
DIGITS = 6
"""The significant digits of the numbers in the list."""
PACKAGES = ("botorch-lse", "botorch", "gpytorch", "torch", "ax-platform")
"""The packages whose versions a report has, as far as they are installed."""
_UNTOLD = ("pool", "goal", "model", "history", "_")
"""The arguments of strategies that are no settings to be read: they are shown apart."""


@dataclass(frozen=True)
class Drawing:
    r"""A picture of a report.

    Args:
        title: The heading above it.
        figure: By plotly.
        words: What it shows, in a sentence.
    """

    title: str
    figure: Figure
    words: str = ""


@dataclass(frozen=True)
class Report:
    r"""The content of a report, which ``write`` makes a file of.

    Args:
        title: The question, in words.
        answer: The answer, in sentences.
        facts: Numbers by name, for those who read nothing else.
        table: The rows with their sides, in the order of the pool.
        side: The name of the column of sides in ``table``.
        inside: The word for the side that is asked for.
        drawings: The pictures of the answer.
        progress: The pictures of the run.
        basis: What the answer rests on, in sentences.
        following: What to measure next; ``None`` where nothing is.
        following_words: A sentence about it.
        settings: What somebody needs who wants the same again, by name.
        mark: The decimal mark.
    """

    title: str
    answer: Sequence[str]
    facts: Mapping[str, str]
    table: pd.DataFrame
    side: str = "side"
    inside: str = "above"
    drawings: Sequence[Drawing] = ()
    progress: Sequence[Drawing] = ()
    basis: Sequence[str] = ()
    following: pd.DataFrame | None = None
    following_words: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    mark: str = "."

    def html(self) -> str:
        r"""The report as a page, with plotly and all data inside.

        Raises:
            ImportError: If plotly is not installed.
        """
        try:
            from plotly.offline import get_plotlyjs
        except ImportError as error:
            raise ImportError(
                "A report needs plotly: call `pip install plotly`."
            ) from error
        template = files("botorch_lse.plotting").joinpath("report.html")
        page = template.read_text(encoding="utf-8")
        # A tag that closes inside of data would end them.
        data = json.dumps(self._data(), allow_nan=False).replace("<", "\\u003c")
        before, _, rest = page.partition("/*PLOTLY*/")
        middle, _, after = rest.partition("/*DATA*/")
        return "".join((before, get_plotlyjs(), middle, data, after))

    def write(self, path: str | Path) -> None:
        r"""Write the page.

        Args:
            path: The file, which is replaced.

        Raises:
            ImportError: If plotly is not installed.
            OSError: If the file cannot be written.
        """
        write_whole(Path(path), self.html().encode("utf-8"))

    def markdown(self) -> str:
        r"""The words of the report: answer, numbers, what it rests on, what is next."""
        # Ax's cards know no tables of Markdown: a list, and lines as they are.
        lines = [*self.answer, ""]
        lines += [f"- {name}: {value}" for name, value in self.facts.items()] + [""]
        lines += ["**What this rests on.** " + " ".join(self.basis), ""]
        lines += ["**Next.** " + self.following_words]
        if self.following is not None:
            text = self.following.to_string(index=False, max_rows=20)
            lines += ["", *(f"    {line}" for line in text.splitlines())]
        return "\n".join(lines)

    def _data(self) -> dict[str, Any]:
        left_out = len(self.table) - MOST_LISTED
        listed = self.table if left_out <= 0 else _most_doubtful(self.table)
        following = self.following
        return {
            "title": self.title,
            "answer": list(self.answer),
            "facts": list(self.facts.items()),
            "table": _columns(listed),
            "side": self.side,
            "inside": self.inside,
            "classes": list(CLASSES),
            "leftOut": max(left_out, 0),
            "drawings": [_drawn(one) for one in self.drawings],
            "progress": [_drawn(one) for one in self.progress],
            "basis": list(self.basis),
            "following": None if following is None else _columns(following),
            "followingWords": self.following_words,
            "settings": list(self.settings.items()),
            "mark": self.mark,
        }


def write_report(
    state: State,
    path: str | Path,
    *,
    metrics: Sequence[str] | None = None,
    states: Iterable[State] | None = None,
) -> None:
    r"""Write the report of a run: one HTML file that needs no network.

    It has the question and the answer in words, the list of all rows (up to 100,000,
    to be sorted and filtered), pictures of the answer and of the progress, what the
    answer rests on, what to measure next, and how to do the same again.

    Args:
        state: Where the run stands.
        path: The file, which is replaced.
        metrics: The names of what was measured; default those that the goal names,
            else ``y``.
        states: The states before the first and after each round, for the progress;
            default ``state.past()``, which fits learnt models of up to 60 rounds anew,
            and no progress for more.

    Raises:
        ImportError: If plotly is not installed.
        ValueError: If ``metrics`` are not one for each output.
        OSError: If the file cannot be written.
    """
    of_type(state, State, "state", "a State", "Give what `strategy.tell` returns.")
    of_type(path, str | Path, "path", "a path", 'Write `"report.html"`.')
    report_of(state, metrics=metrics, states=states).write(path)


def report_of(
    state: State,
    *,
    metrics: Sequence[str] | None = None,
    states: Iterable[State] | None = None,
    has_pictures: bool = True,
) -> Report:
    r"""Gather the content of a run's report; other arguments as of ``write_report``.

    Args:
        state: Where the run stands.
        metrics: The names of what was measured.
        states: The states, for the progress.
        has_pictures: Whether pictures are drawn.
    """
    strategy: Any = state.strategy
    names = metric_names(strategy, metrics)
    answer, observations = _named(state.classification, names), state.measurements
    title = question_of(strategy, names, [output.name for output in answer.outputs])
    words = side_words(answer)
    if strategy.directions is None:
        table = level_set_frame(answer, observations)
    else:
        estimate = strategy.estimate(state)
        table = pareto_frame(answer, estimate, observations, list(names))
    drawings = drawing_of_outputs(table, names) if has_pictures else []
    if has_pictures and bool(answer.sigma.isfinite().any()):
        level = stated_level(strategy)
        metrics = quantities(strategy.outcomes, names)
        drawings += drawings_of(answer, observations, metrics, words, level)
        drawings += drawings_of_inputs(state, names)
    if not isinstance(table.index, pd.RangeIndex):  # labels name the rows
        name = str(table.index.name or "row")
        table = table.reset_index(names=f"{name}_lse" if name in table else name)
    side = "side_lse" if "side_lse" in table else "side"  # a column of yours is "side"
    content, following = _content(state), following_of(state)
    return Report(
        title=title or "Which rows are above the level?",
        answer=answer_words(state, words, content),
        facts=facts_of(state, content),
        table=table.assign(**{side: sides_in_words(answer, words)}),
        side=side,
        inside=words["above"],
        drawings=drawings,
        progress=progress_of(state, states, words, names) if has_pictures else (),
        basis=basis_of(state),
        following=following,
        following_words=following_words(state, following),
        settings=settings_of(state),
    )


# --- words ----------------------------------------------------------------------------


def metric_names(strategy: Any, metrics: Sequence[str] | None) -> tuple[str, ...]:
    r"""The names of what is measured, one for each output.

    Raises:
        ValueError: If they are not one for each output.
    """
    m = strategy.n_predicted
    if metrics is None:
        return default_names(strategy)
    names = () if isinstance(metrics, str) else tuple(metrics)
    if len(names) != m or not all(isinstance(name, str) for name in names):
        wanted = f"to be a list of names, one for each of the outputs ({m})"
        remedy = f"Write `metrics={[f'name{i}' for i in range(m)]}`."
        raise ValueError(complaint("metrics", wanted, f"got {metrics!r}", remedy))
    return names


def _named(answer: Classification, names: Sequence[str]) -> Classification:
    if len(answer.outputs) != len(names):
        return answer
    pairs = zip(answer.outputs, names, strict=True)
    named: tuple[OutputEstimate, ...] = tuple(replace(o, name=n) for o, n in pairs)
    return replace(answer, outputs=named)


def answer_words(
    state: State, words: Mapping[str, str], content: Content | None
) -> list[str]:
    r"""The answer in sentences: sides, why it ended or what is missing, the share."""
    answer = state.classification
    counts = Counter(sides_in_words(answer, words))
    names = list(words.values())
    if answer.classes is not None:
        names = [*sorted({*counts} - {*names}), words["undecided"]]
    sides = ", ".join(f"{counts[name]:,} {name}" for name in names)
    said = [f"Of {len(answer):,} rows: {sides}."]
    if answer.class_names:
        assert answer.likeliest is not None  # classes have names
        found = Counter(answer.class_names[k] for k in answer.likeliest.tolist())
        sizes = (f"{n:,} {name}" for name, n in found.most_common())
        said.append(f"The likeliest classes, decided or not: {', '.join(sizes)}.")
    if state.stop_reason is None:
        said.append(str(state.forecast()))
    else:
        said.append(f"The run has ended: {state.stop_reason}.")
    if content is not None:
        said.append(str(content))
    return said


def sides_in_words(answer: Classification, words: Mapping[str, str]) -> list[str]:
    r"""The side of each row in words; of several levels its class."""
    if answer.classes is not None:
        classes = answer.classes.tolist()
        if answer.class_names:
            called = (*answer.class_names, words["undecided"])  # -1 is the last
            return [called[k] for k in classes]
        return [f"class {k}" if k >= 0 else words["undecided"] for k in classes]
    return [words[side] for side in answer.side]


def facts_of(state: State, content: Content | None) -> dict[str, str]:
    r"""The numbers of a run by name: measurements, cost, and of a failure its index."""
    observations, strategy = state.measurements, state.strategy
    used, pool = state.observations.measured, strategy.pool
    facts = {"measurements": f"{state.observations.n_measured:,}"}
    facts["different rows"] = f"{observations.indices.unique().numel():,}"
    labels = state.history.round  # one value may count for several rounds
    rounds = 0 if labels is None else labels.unique().numel()
    facts["rounds"] = f"{rounds:,}"
    if state.abandoned:
        facts["without a result"] = f"{len(state.abandoned):,}"
    if len(state.excluded_rows):
        facts["excluded rows"] = f"{len(state.excluded_rows):,}"
    if pool.costs is not None:
        facts["cost"] = written(float(pool.costs[used].sum()))
    if content is not None and content.is_sample:
        facts |= _reliability(content, pool, state.classification)
    return facts


def _reliability(
    content: Content, pool: Pool, answer: Classification
) -> dict[str, str]:
    r"""The figures of a failure probability: its error, index, likeliest point.

    The point is the row that is said to fail and lies nearest to the median inputs, in
    the independent normal numbers behind them (Hasofer and Lind 1974, among rows).
    """
    p = content.estimate
    facts = {"probability": written(p, content.sampling_error)}
    if p > 0:
        share = content.sampling_error / p
        facts["coefficient of variation of the sample"] = f"{share:.2g}"
    if 0 < p < 1:
        index = -float(torch.special.ndtri(torch.tensor(p, dtype=torch.float64)))
        facts["reliability index"] = f"{index:.3g}"
    fails = answer.best_guess.cpu()
    if pool.origin is None or not bool(fails.any()):
        return facts
    far = np.linalg.norm(pool.origin.distribution.normal_numbers(pool.X.cpu()), axis=1)
    row = int(np.where(fails.numpy(), far, math.inf).argmin())
    facts["most likely failure"] = f"row {row}, {_place(pool, row)}"
    return facts


def _place(pool: Pool, row: int) -> str:
    r"""The inputs of a row, in words."""
    cells = pool.to_frame().iloc[row].items()
    return ", ".join(f"{name} = {_cell(value)}" for name, value in cells)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _content(state: State) -> Content | None:
    # The share of a Pareto set, or of rows of no class, is not what is asked.
    is_other = state.strategy.directions is not None
    is_other |= bool(state.classification.class_names)
    return None if is_other else state.content()


def basis_of(state: State) -> list[str]:
    r"""Say what the answer rests on: its guarantee, calibration, doubts of values.

    The guarantee has the audit, if there was one, and the remarks on values.
    """
    said = [state.classification.guarantee]
    try:
        calibration = str(state.calibration())
    except UnsupportedError:  # it predicts no values
        return said
    return said if calibration in said[0] else [*said, calibration]


def following_words(state: State, following: pd.DataFrame | None) -> str:
    r"""A sentence on what to measure next."""
    if state.is_done:
        return "Nothing more need be measured."
    if following is None:
        return "What is being measured comes first."
    return "These are the next measurements, in the order in which to make them."


def following_of(state: State) -> pd.DataFrame | None:
    r"""The rows to measure next; ``None`` where there are none."""
    if state.is_done or state.strategy.room(state) == 0:
        return None
    order = state.strategy.ask(state).order
    frame = state.strategy.pool.to_frame().iloc[order.tolist()]
    return frame.reset_index(names="row")


def settings_of(state: State) -> dict[str, str]:
    r"""The settings, seed, data and versions by which the answer can be had again.

    The fingerprints are the first 16 digits of SHA-256 of the pool's rows, and of the
    rows measured with their values.
    """
    strategy, observations = state.strategy, state.observations
    found = {"strategy": type(strategy).__name__}
    for part in fields(strategy):  # type: ignore[arg-type]
        value = getattr(strategy, part.name)
        if part.name in _UNTOLD or isinstance(value, Tensor) or value is None:
            continue
        found[part.name] = " ".join(str(value).split())[:200]
    found |= {"seed": str(state.seed)}
    found["pool"] = strategy.pool.hash[:16]
    found["measurements"] = _fingerprint(observations.indices, observations.y)
    return found | versions()


def versions() -> dict[str, str]:
    r"""The versions of the packages that computed the answer."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except ImportError:  # Ax is an extra
            continue
    return found


def _fingerprint(*parts: Tensor) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.detach().cpu().double().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


# --- pictures -------------------------------------------------------------------------


def drawings_of(
    answer: Classification,
    observations: Observations,
    names: Sequence[str],
    words: Mapping[str, str],
    level: float | None,
) -> list[Drawing]:
    r"""The pictures of an answer: a map, or more inputs by themselves and in slices.

    Intervals come last, with the names of the rows.

    Args:
        answer: The answer, with its pool.
        observations: The measurements.
        names: The metrics.
        words: The words for the sides.
        level: The level to draw, if there is one.
    """
    answer, observations, left_out = _some(answer, observations)
    note = f" {left_out:,} rows that were not measured are left out." * (left_out > 0)
    metric = names[0] if len(names) == 1 else "distance from another answer"
    given: dict[str, Any] = {"threshold": level, "metric": metric, "words": words}
    found, pool = [], answer.pool
    n_inputs = 0 if pool is None else len(axes_of(pool))
    if n_inputs == 2:
        figure = level_set_figure(answer, observations, kind="map", **given)
        said = "Rows by side; measured ones are ringed."
        found.append(Drawing("Map", figure, f"{said}{note}"))
    elif n_inputs > 2:
        figure = level_set_figure(answer, observations, kind="inputs", **given)
        said = "The share of rows on each side, along each input by itself."
        found.append(Drawing("Along the inputs", figure, f"{said}{note}"))
        frame = slices_frame(answer, observations, metric=metric)
        for title, shade in (("Slices", "side"), ("Chances", "probability_above")):
            figure = slices_figure(frame, shade, words=words)
            said = "Through the most doubtful row; the other inputs are held there."
            found.append(Drawing(title, figure, f"{said}{note}"))
    kind = None if n_inputs == 1 else "intervals"
    figure = level_set_figure(answer, observations, kind=kind, **given)
    said = "What is expected at each row, with its interval, and measured values."
    return [*found, Drawing("Intervals", figure, f"{said}{note}")]


def drawing_of_outputs(table: pd.DataFrame, names: Sequence[str]) -> list[Drawing]:
    r"""The picture of several outputs, from the table of all rows, if it has them."""
    if sum(f"{name}_mean" in table for name in names) < 2 or len(table) > MOST_DRAWN:
        return []
    return [Drawing("Outputs", pareto_set_figure(table), "Two at a time.")]


def drawings_of_inputs(state: State, names: Sequence[str]) -> list[Drawing]:
    r"""The picture of how much each input explains, for each output with a model."""
    from plotly.graph_objects import Bar, Figure

    found = []
    for output, name in enumerate(names):
        try:
            frame = importance_frame(state, output).iloc[::-1]
        except UnsupportedError:
            return []
        if len(frame) < 2:
            return []
        share = frame["share"]
        ends = {"array": frame["upper"] - share, "arrayminus": share - frame["lower"]}
        bars = {"x": share, "y": frame["input"], "orientation": "h"}
        look = {"marker_color": COLOURS["above"], "error_x": {"color": INK} | ends}
        figure = Figure(Bar(**bars, **look))
        label = {"title": "share of the variation, by itself", "range": [0, 1]}
        height, margin = 130 + 30 * len(frame), {"t": 10, "b": 50}
        figure.update_layout(template="plotly_white", height=height, margin=margin)
        figure.update_layout(xaxis=label, yaxis={"automargin": True})
        said = "What the model, if it is right, says with 95 %: bars and their lines."
        title = "Inputs that matter" + f": {name}" * (len(names) > 1)
        found.append(Drawing(title, figure, said))
    return found


def stated_level(strategy: Any) -> float | None:
    r"""The level of a strategy, stated by its goal or by the strategy itself."""
    goal = getattr(strategy, "goal", None)
    if isinstance(goal, Goal):
        return goal.facts.level
    return getattr(strategy, "threshold", None)


def _some(
    answer: Classification, observations: Observations
) -> tuple[Classification, Observations, int]:
    r"""The answer of measured rows and some others, as many as can be drawn."""
    N = len(answer)
    if N <= MOST_DRAWN:
        return answer, observations, 0
    kept = torch.zeros(N, dtype=torch.bool)
    kept[torch.linspace(0, N - 1, MOST_DRAWN, dtype=torch.float64).long()] = True
    kept[observations.indices] = True
    places = torch.full((N,), -1)
    rows = kept.nonzero().view(-1)
    places[rows] = torch.arange(len(rows))
    own = replace(observations, indices=places[observations.indices])
    return answer.at(rows), own, N - len(rows)


def progress_of(
    state: State,
    states: Iterable[State] | None,
    words: Mapping[str, str],
    names: Sequence[str],
) -> list[Drawing]:
    r"""The pictures of a run: sides by measurements, and predictions by values."""
    if states is None and 0 < state.round <= MOST_ROUNDS:
        states = state.past()
    frame = None if states is None else progress_frame(states)
    return drawings_of_run(state, frame, words, names)


def drawings_of_run(
    state: State,
    progress: pd.DataFrame | None,
    words: Mapping[str, str],
    names: Sequence[str],
) -> list[Drawing]:
    r"""The pictures of a run.

    Args:
        state: Where the run stands.
        progress: From ``progress_frame``, for the first picture.
        words: The words for the sides.
        names: The metrics, one for each output.
    """
    found = []
    if progress is not None and len(progress) > 1:
        figure = progress_figure(progress, words=words)
        found.append(Drawing("Progress", figure, "Rows on each side by measurements."))
    for output, name in enumerate(names):
        try:
            calibration = state.calibration(output)
        except UnsupportedError:
            return found
        if not len(calibration.ahead) + len(calibration.out):
            continue
        said = "How far values lay from what was predicted, in standard deviations."
        if any(one is not None and one.by_results for one in state.strategy.outcomes):
            said = (
                "How results fell among those predicted, as normal deviates: a result "
                "stands for one drawn from the share of the prediction that it has."
            )
        title, figure = "Predictions", calibration_figure(calibration, metric=name)
        if len(names) > 1:  # of one output the page says it where it says its basis
            title, said = f"{title}: {name}", f"{said} {calibration}"
        found.append(Drawing(title, figure, said))
    return found


# --- data -----------------------------------------------------------------------------


def _drawn(drawing: Drawing) -> dict[str, Any]:
    figure = json.loads(drawing.figure.to_json())
    figure["layout"].pop("title", None)  # it stands above, as a heading
    return {"title": drawing.title, "words": drawing.words, **figure}


def _columns(table: pd.DataFrame) -> list[dict[str, Any]]:
    r"""The columns of a table as plain JSON, numbers in few digits."""
    found = []
    for name in table.columns:
        column = table[name]
        is_number = pd.api.types.is_numeric_dtype(column)
        is_number &= not pd.api.types.is_bool_dtype(column)
        cells = [_number(x) for x in column] if is_number else [*map(_text, column)]
        found.append({"name": str(name), "isNumber": is_number, "cells": cells})
    return found


def _number(value: Any) -> float | int | None:
    if pd.isna(value) or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _most_doubtful(table: pd.DataFrame) -> pd.DataFrame:
    r"""The rows of a long table nearest to a probability of one half, in its order."""
    if "probability_above" not in table:
        return table.head(MOST_LISTED)
    doubt = (table["probability_above"] - 0.5).abs()
    return table.loc[doubt.nsmallest(MOST_LISTED).sort_index().index]
