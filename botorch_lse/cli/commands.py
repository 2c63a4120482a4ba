r"""The commands for tables: ``botorch-lse next`` and the others."""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from linear_operator.utils.warnings import NumericalWarning

from botorch_lse._files import Seen, seen_to_write, write_whole
from botorch_lse._numerals import written
from botorch_lse.cli.answers import draw_answer, write_answer
from botorch_lse.cli.candidates import SHEET
from botorch_lse.cli.cells import CODE_PAGES, SOURCE, WORKBOOKS, write_table, writing
from botorch_lse.cli.doubts import in_table_words, place_of
from botorch_lse.cli.kinds import AGAIN, Labels
from botorch_lse.cli.measurements import (
    FAILED,
    MEASURED,
    WORDS,
    Entry,
    results_with,
    written_as_in,
)
from botorch_lse.cli.progress import doing
from botorch_lse.cli.report import report_of
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import DEFAULT_FILE, PROGRAM
from botorch_lse.cli.simulated import Outcome, Truth, simulated, truth_of
from botorch_lse.cli.sources import is_fidelity
from botorch_lse.confidence.calibration import (
    ANOTHER_MODEL,
    Calibration,
    CalibrationWarning,
    recent,
    share_within,
)
from botorch_lse.data.classification import SIDES, Classification
from botorch_lse.strategies import State
from botorch_lse.strategies.algorithm import (
    ALL_ABOVE,
    AUDITED,
    BUDGET,
    DECIDED,
    EXCLUDED,
    EXHAUSTED,
    NONE_FOUND,
    NOT_CONFIRMED,
    OUT_OF_REACH,
)
from botorch_lse.strategies.criteria.audit import audits
from botorch_lse.strategies.gaussian import ADVICE, ALL_EQUAL, EDGES
from botorch_lse.surrogate.remarks import DataWarning

ENDS = {
    DECIDED: "Every candidate is decided.",
    AUDITED: "Every candidate is decided, and candidates drawn at random confirmed it.",
    NOT_CONFIRMED: "Candidates drawn at random did not confirm what was decided.",
    NONE_FOUND: "No candidate was clearly above the level, so far.",
    ALL_ABOVE: "No candidate was clearly below the level, so far.",
    BUDGET: "The budget is used up; for more, set budget in the settings.",
    EXHAUSTED: "No candidate is left to measure.",
    OUT_OF_REACH: "What is undecided, no candidate that may be measured can decide.",
}
"""The sentences that say why a run ended, by its stop reason."""
CHECK_A_FEW = (
    "Candidates {} are so by a model learnt from your values; check a few{}. "
    "(More on what that is worth: --details.)"
)
OR_AUDIT = (
    f", or add the line `audit = true` to {DEFAULT_FILE}, and `next` will have some "
    "drawn at random checked"
)
IN_TABLES = {
    ANOTHER_MODEL: "or measure more",
    "give `max_observations`, or an `audit` that tests rows": (
        "set budget, or audit, which tests candidates"
    ),
    "give `max_observations`": "set budget",
    "excluded rows": "candidates that are not measurable",
    "Rows ": "Candidates ",
    "Measurements off the pool": "Earlier values",
    " rows": " candidates",
}
"""The words of strategies, and those for somebody with a table and no code."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""The words for the characters between cells."""
MARKS = {".": "point", ",": "comma"}
"""The words for decimal marks."""
_OF_AUDIT = re.compile(r"(Audited:|An audit of|Not confirmed:).*")
"""The part of an answer's guarantee that is about an audit."""
OFTEN = 3
"""The number of failures after which a candidate without any value is asked about."""


def carry_out(run: Run, call: argparse.Namespace) -> None:
    r"""Carry out the command of a call."""
    with warnings.catch_warnings():
        # What predictions and values were worth is said in sentences.
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", DataWarning)
        # That a step of a fit was too long, which another one makes good.
        warnings.simplefilter("ignore", NumericalWarning)
        if call.command == "next":
            next_command(run)
        elif call.command == "answer":
            answer_command(run, call)
        elif call.command == "report":
            report_command(run, call)
        else:
            simulate_command(run, call)


def _tell(*said: str) -> None:
    r"""Print messages once the files are written.

    A reader that closes its end, as in ``next | head -1``, must not keep a file from
    being written.
    """
    print("\n".join(filter(None, said)), flush=True)


def understood(run: Run) -> str:
    r"""A report of how the table was read, and what of it is not used.

    In full at the first call; later what a change may have left out by mistake.
    """
    candidates, found = run.candidates, run.settings
    table, lines = candidates.table, list[str]()
    if not found.is_stored:
        between = table.style.delimiter
        between = DELIMITERS.get(between, repr(between))
        mark, page = table.mark(), table.style.encoding
        style = f"; decimal {MARKS[mark]}" if mark else ""
        style += f"; encoding {page}" if page in CODE_PAGES else ""
        n = _counted(len(table.lines), "line")
        how = f"{between} between cells{style}"
        if table.path.suffix.casefold() in WORKBOOKS:
            how = "a workbook, of which the values are read"
        lines.append(f"{table.name}: {n}; {how}.")
        lines += [f"  {said}" for said in candidates.described(found.trials)]
        if run.measured.sources:
            lines.append(of_sources(run))
        if table.doubt:
            lines.append(
                "If these names look wrong, the file was saved in another code page: "
                f"delete {found.path.name} and {found.out}, and call again with its "
                "encoding, as in --encoding gbk."
            )
    elif unused := candidates.unused:
        lines.append(
            f"Not used of {table.name}: {', '.join(unused)}. To use one, name it in "
            f"`inputs` of {found.path.name}; not to be told again, in `ignore`."
        )
    return "\n".join(lines)


def of_sources(run: Run) -> str:
    r"""A sentence on the sources of values: their costs, and which one decides."""
    found = run.settings
    costs = zip(found.sources, found.source_costs, strict=True)
    said = [f"{name} (cost {written(cost)})" for name, cost in costs]
    earlier = run.measured.earlier.source
    if is_fidelity(found.sources) and earlier:
        low, high = (written(f(map(float, earlier))) for f in (min, max))
        said += [f"{_counted(len(earlier), 'earlier value')} of {low} to {high}"]
    else:
        old = Counter(earlier)
        said += [f"{_counted(n, 'earlier value')} of {name}" for name, n in old.items()]
    target = found.target or (found.sources or ("these candidates",))[-1]
    return f"Sources: {', '.join(said)}. What is decided is {target}."


def uncounted(run: Run) -> str:
    r"""A hint about values beside the candidates that are not used."""
    found, candidates = run.settings, run.candidates
    rows = (e.row % len(candidates) for e in run.measured.having(MEASURED))
    told = {candidates.lines[row].number for row in rows}
    n = len({line.number for line in run.valued_lines} - told)
    if n == 0:
        return ""
    remedy = f"copy these lines to {found.results}"
    if found.sources:
        remedy += f", with a column {SOURCE!r} that says which one measured each"
    elif run.measured.results is None:
        remedy += f", or {found.later.advice('results', found.candidates)}"
    return (
        f"{_counted(n, 'value')} of {candidates.column} in {candidates.table.name} "
        f"{'does' if n == 1 else 'do'} not count. To use them, {remedy}."
    )


def next_command(run: Run) -> None:
    r"""Write the sheet of what to measure next."""
    run.check_files()  # before anything that takes long, and again behind it
    if run.settings.page is not None:
        follow(run)
    known = summary(run, is_taken=True)
    said = [understood(run), uncounted(run), known]
    lines = run.sheet_lines(run.next_rows())
    run.check_files()
    said += [save_settings(run), save_results(run)]
    save_sheet(run, lines)
    said.append(to_do(run, lines))
    try:
        said.append(renew_page(run, known, lines))
    finally:  # the sheet is written, whatever became of the page
        _tell(*said)


def answer_command(run: Run, call: argparse.Namespace) -> None:
    r"""Write the answer as a table and a picture, and report its worth."""
    seen = dict[Path, Seen]()
    for path in (call.table, call.picture):
        with writing(path):
            seen[path] = seen_to_write(path)
    if run.settings.page is not None:
        follow(run)
    known = summary(run)
    said = [understood(run), uncounted(run), known]
    said += [details(run) if call.details else closing(run), save_settings(run)]
    write_answer(run, call.table, seen[call.table])
    with doing(f"drawing {call.picture}", at_once=False):
        draw_answer(run, call.picture, seen[call.picture])
    said.append(f"Wrote {call.table} and {call.picture}.")
    try:
        said.append(renew_page(run, known))
    finally:
        _tell(*said)


def report_command(run: Run, call: argparse.Namespace) -> None:
    r"""Write the page of the run, and report what it says in short."""
    with writing(call.page):
        over = seen_to_write(call.page)
    follow(run)
    said = summary(run)
    write_page(run, call.page, said, over=over)
    _tell(said, save_settings(run), f"Wrote {call.page}: open it in any browser.")


def renew_page(run: Run, said: str, lines: Sequence[Mapping[str, str]] = ()) -> str:
    r"""Write the page of the settings anew, if they name one, and say so."""
    page = run.settings.page
    if page is None:
        return ""
    write_page(run, page, said, lines)
    return f"Wrote {page}: load it again in the browser."


def write_page(
    run: Run,
    page: Path,
    said: str,
    lines: Sequence[Mapping[str, str]] = (),
    over: Seen | None = None,
) -> None:
    r"""Write the page of the run.

    Args:
        run: The run.
        page: The file.
        said: The present knowledge, in sentences.
        lines: New lines of the sheet.
        over: The content that the caller saw; default: any is replaced.
    """
    with doing(f"writing {page}", at_once=False):
        basis = details(run) or closing(run)
        found = report_of(run, said.splitlines(), basis, lines)
        content = found.html().encode("utf-8")
        with writing(page):
            write_whole(page, content, over)


def follow(run: Run) -> None:
    r"""Learn the run once, with its progress, before its page asks for both.

    While the first measurements are spread there is no model, nor a progress to show.
    """
    if run.learns:
        run.progress  # noqa: B018  (kept by the run)


def closing(run: Run) -> str:
    r"""Advice in a sentence on what to make of an answer, audited or not."""
    answer = run.sides
    audit = _OF_AUDIT.search(_claim(run, answer))
    if audit:
        return _in_table_words(audit[0])
    known = {*run.measured.known} & {*run.places}  # each is decided by its limit
    if int((~answer.undecided).sum()) <= len(known):
        return ""
    strategy, advice = run.strategy, ""
    with suppress(ValueError):  # where the settings would refuse one
        audits(strategy.algorithm, True, strategy.pool, strategy.max_repeats)
        advice = OR_AUDIT
    called = "decided" if answer.class_names else "called above or below"
    called += ", but for those with a limit," if known else ""
    return CHECK_A_FEW.format(called, advice)


def _claim(run: Run, answer: Classification) -> str:
    r"""The claim about an answer; rows of old sources are no candidates left out."""
    said = answer.guarantee
    return said if run.measured.excluded else said.replace(EXCLUDED, "").strip()


def details(run: Run) -> str:
    r"""The worth of the answer: predictions, claim and assumptions."""
    state = run.state
    if not state.history.n_measured:
        return ""
    guarantee = _claim(run, state.classification)
    if run.stop_reason is not None:  # the summary has said it
        guarantee = guarantee.replace(ALL_EQUAL, "").strip()
    for remark in state.remarks:  # the summary has said the others
        own = in_table_words(run, remark) if remark.kind in ADVICE else ""
        guarantee = guarantee.replace(f" {remark}", f" {own}" if own else "")
    calibration = worst_calibration(state)
    said = str(calibration)
    # Where the predictions failed, the guarantee and the summary say so already.
    has_said = said in guarantee or calibration.has_failed
    words = (guarantee,) if has_said else (said, guarantee)
    if run.scale.is_log:
        level, epsilon = written(run.level, 1e-3), written(run.epsilon, 1e-4)
        more = "By logarithms to base 10"
        words = (*words, f"{more}: the level is {level}, epsilon {epsilon}.")
    return _in_table_words("\n".join(words))


def simulate_command(run: Run, call: argparse.Namespace) -> None:
    r"""Report the expected number of measurements, by simulation."""
    truth = truth_of(run, call.runs, call.truth, call.between, call.noise)
    said = (understood(run), save_settings(run))
    _tell(*said, f"Truth: {truth.words}; {noise_of(run, truth)}.")
    outcomes, runs = list[Outcome](), simulated(run, truth, call.most)
    noun = "measurement" if run.settings.trials is None else "trial"
    for i in range(1, len(truth.values) + 1):
        with doing(f"run {i}", at_once=False):
            outcome = next(runs)
        outcomes.append(outcome)
        print(
            f"run {i}: {_counted(outcome.n, noun)} in "
            f"{_counted(outcome.sheets, 'sheet')}, {outcome.found}, "
            f"{outcome.wrong} wrong. {_end_of(outcome)}",
            flush=True,
        )
    are_classes = isinstance(run.settings.kind, Labels)
    print(expected(outcomes, truth.state.n_used, noun, are_classes=are_classes))


def noise_of(run: Run, truth: Truth) -> str:
    r"""The words for what is random of simulated results."""
    if truth.noise_std is not None:
        stds = torch.as_tensor(truth.noise_std).unique().tolist()
        return ", ".join(map(run.scale.noise_in_words, stds))
    kind = run.settings.kind
    if kind is not None and run.settings.trials is None:
        return f"results are drawn by its {kind.drawn_by}"
    return f"lines of {_counted(run.trials, 'trial')} are drawn by its probabilities"


def _end_of(outcome: Outcome) -> str:
    r"""The reason why a simulated run ended, in words; no setting gave its limit."""
    if outcome.reason == BUDGET:
        return "It ended before all was decided."
    return ENDS.get(outcome.reason, "")


def expected(
    outcomes: Sequence[Outcome], begun: int, noun: str, *, are_classes: bool = False
) -> str:
    r"""The expected number of measurements, in a sentence.

    Args:
        outcomes: Simulated runs.
        begun: Measurements that are there already.
        noun: The word for one of them.
        are_classes: Whether they find classes, which no epsilon makes quicker.
    """
    counts = sorted(outcome.n for outcome in outcomes)
    more = " more" if begun else ""
    open_ = sum(outcome.reason not in (DECIDED, AUDITED) for outcome in outcomes)
    said = f"Expect {_counted(counts[len(counts) // 2], noun)}{more}"
    said += f" (from {counts[0]} to {counts[-1]})" if counts[0] < counts[-1] else ""
    if open_:
        said += (
            f", or more: {open_} of {_counted(len(counts), 'run')} ended before all "
            "was decided"
        )
        said += "" if are_classes else ". A larger epsilon takes fewer"
    return f"{said}."


def save_settings(run: Run) -> str:
    r"""Write the settings of a first call, and say where they are."""
    if run.settings.is_stored:
        return ""
    run.settings.write()
    return f"Settings are in {run.settings.path}: edit them there."


def save_results(run: Run) -> str:
    r"""Add the sheet's results to the file of results, and report their number."""
    if not run.measured.taken:
        return ""
    path, now = run.settings.file("results"), run.measured
    header, rows = results_with(now, run.sheet_header)
    like = now.sheet or run.candidates.table
    style = now.results.style if now.results else like.style.of_another
    write_table(path, header, rows, style, run.seen[path])
    return (
        f"{_counted(len(now.taken), 'result')} of {run.settings.out} "
        f"added to {run.settings.results}."
    )


def save_sheet(run: Run, lines: list[dict[str, str]]) -> None:
    r"""Write the sheet: open measurements first, then new ones.

    Where sheet and results are one file, its lines stay and the new ones follow.
    """
    now, path = run.measured, run.settings.file("out")
    table = now.sheet
    header = list(run.sheet_header)
    kept = [_open_cells(run, entry) for entry in now.open]
    if table is not None:
        if table is now.results:
            if not lines:
                return
            kept = [dict(line.cells) for line in table.lines]
        else:
            pairs = zip(kept, now.open, strict=True)
            kept = [written_as_in(table, cells, e.table) for cells, e in pairs]
        lacks = (name for name in run.sheet_header if table.column(name) is None)
        header = [*table.header, *lacks]
        candidates = run.candidates.table
        lines = [written_as_in(table, cells, candidates) for cells in lines]
    style = table.style if table else run.candidates.table.style.of_another
    write_table(path, header, [*kept, *lines], style, run.seen[path])


def _open_cells(run: Run, entry: Entry) -> dict[str, str]:
    r"""The cells of an open line, without a word for a value that is missing."""
    column = entry.table.column(run.settings.column)
    return {**entry.line.cells, **({} if column is None else {column: ""})}


def to_do(run: Run, lines: list[dict[str, str]]) -> str:
    r"""The next steps for the user, in sentences.

    Args:
        run: The run.
        lines: The new lines of the sheet.
    """
    out, n_open = run.settings.out, len(run.measured.open)
    if run.is_done:
        said = "Nothing more need be measured"
        if n_open:
            said += f", nor the {_counted(n_open, 'open line')} of {out}"
        return f"{said}. For the answer: {PROGRAM} answer"
    n = n_open + len(lines)
    again = min(len(run.measured.owed), len(lines))
    parts = [f"{n_open} still open"] * (n_open > 0)
    parts += [f"{again} again because they failed"] * (again > 0)
    said = f"{out}: {_counted(n, 'line')} to measure"
    said += f" ({', '.join(parts)})" if parts else ""
    return f"{said}. {filling_in(run)} Save, and call {PROGRAM} next again."


def filling_in(run: Run) -> str:
    r"""A sentence on what to write into the sheet."""
    column, trials = repr(run.result_column), run.settings.trials
    if run.settings.kind is None:
        return f"Fill in {column}: a number, {WORDS}."
    words = WORDS.replace(FAILED[0], AGAIN)
    if trials is not None:
        return f"Fill in {trials!r}, the trials, and {column}: the successes, {words}."
    return f"Fill in {column}: {run.words}, {words}."


def summary(run: Run, *, is_taken: bool = False) -> str:
    r"""The present knowledge, in sentences.

    Args:
        run: The run.
        is_taken: Whether the sheet's values will be added to the results.
    """
    now, found, state = run.measured, run.settings, run.state
    answer = run.sides
    by_source = run.by_source if now.sources else ""
    done = [entry.trials or 1 for entry in now.having(MEASURED)]
    trials = f" in {_counted(sum(done), 'trial')}" if found.trials and done else ""
    parts = [f"{len(done)} measured{by_source}{trials}"]
    for status, words in ((FAILED[0], "failed"), ("n/a", "not measurable")):
        if n := len(now.having(status)):
            parts.append(f"{n} {words}")
    sides = (f"{int(getattr(answer, side).sum())} {side}" for side in SIDES)
    lines = [f"{_counted(len(run.candidates), 'candidate')}: {', '.join(parts)}."]
    if state.history.n_measured:
        asked = run.result_column
        if found.kind is not None:
            asked = run.quantity[0].upper() + run.quantity[1:]
        if answer.class_names:
            lines += by_class(run)
        else:
            lines.append(f"{asked} against {written(found.level)}: {', '.join(sides)}.")
            lines += how_many(run)
    model, n = run.strategy.parts.model, len(state.history)  # lines, not trials
    is_known = state.belief.fits.has_known_noise
    wanted = model.n_deciding(is_known)
    usual = max(model.wanted, model.wanted_to_decide) + (not is_known) * model.n_repeats
    until = "nothing is decided before,"
    if model.n_first < wanted:
        until = f"nothing is decided before there are {wanted}:"
    if wanted < usual:
        until = f"rows are decided after {wanted}, less surely than after {usual}:"
    alike = ""
    if found.kind is not None and state.belief.is_alike:
        alike = "All results so far are alike: nothing is decided before there are "
        alike += found.kind.contrast
    if run.stop_reason is not None:
        lines.append(ENDS[run.stop_reason] + one_sided(run))
        if alike and bool(answer.undecided.any()):
            lines.append(f"{alike}.")
        if bool(answer.undecided.any()) and ALL_EQUAL in state.classification.guarantee:
            lines.append(ALL_EQUAL.replace("row", "candidate"))
    elif n < min(model.n_first, wanted):
        lines.append(
            f"The first {model.n_first} measurements are spread over the table, and "
            f"{until} {wanted - n} to go. (The setting first says how many.)"
        )
    elif alike:
        new = model.unseen(state.belief.fits.measured, state.belief.lost)
        come = "new candidates come first" if new.any() else "all are measured again"
        lines.append(f"{alike}, and {come}.")
    elif n < wanted:
        lines.append(
            "A model of these values chooses what to measure next, and "
            f"{until} {wanted - n} to go."
        )
    else:
        lines.append(foreseen(run))
    lines += [*of_ends(run), *often_failed(run), *of_marks(run)]
    lines += [*of_limits(run, is_taken), *of_scale(run), *of_values(run, is_taken)]
    if state.history.n_measured and worst_calibration(state).has_failed:
        lines.append(too_narrow(run))
    return "\n".join(lines)


def by_class(run: Run) -> list[str]:
    r"""The numbers of candidates by class, decided ones and likeliest, in sentences."""
    answer = run.answer
    assert answer.classes is not None  # it is asked for classes
    assert answer.likeliest is not None
    names = answer.class_names
    counts = answer.classes[~answer.undecided].bincount(minlength=len(names)).tolist()
    parts = [f"{name}: {n}" for n, name in zip(counts, names, strict=True)]
    sides = f"{', '.join(parts)}, undecided: {int(answer.undecided.sum())}"
    found = Counter(names[k] for k in answer.likeliest.tolist())
    sizes = ", ".join(f"{name}: {n}" for name, n in found.most_common())
    said = f"The likeliest classes, decided or not: {sizes}."
    return [f"Candidates by {run.result_column}: {sides}.", said]


def of_ends(run: Run) -> list[str]:
    r"""Remarks on files without a final line break, in sentences.

    Some spreadsheets leave off the last line break, and so does a copy that was cut
    short within the last cell.
    """
    tables = {id(t): t for t in (run.measured.results, run.measured.sheet) if t}
    return [
        f"{table.last_words}, as this program writes it. If the file was cut short "
        "there, correct that line."
        for table in tables.values()
        if table.unended is not None and table.column(SHEET) is not None
    ]


def one_sided(run: Run) -> str:
    r"""The number of values on the side without a candidate, if there are some."""
    sides = {NONE_FOUND: "above", ALL_ABOVE: "below"}
    side = sides.get(run.stop_reason or "")
    if run.settings.kind is not None:  # a yes is on no side of a probability
        return ""
    y = run.state.measurements.y
    beyond = y > run.level if side == "above" else y < run.level
    n = int(beyond.sum())
    if side is None:
        return ""
    known = any(entry.side == side for entry in run.measured.known.values())
    aside = f" (Those that a limit puts {side} it aside.)" if known else ""
    if n == 0:
        return aside
    verb = "was" if n == 1 else "were"
    return (
        f" {n} of {_counted(len(y), 'value')} {verb} {side} it, but by no more than "
        f"the noise that was learnt explains.{aside}"
    )


def of_marks(run: Run) -> list[str]:
    r"""Remarks on words in place of values, in sentences."""
    now, lines = run.measured, list[str]()
    if now.excluded:
        lines.append(
            "What is marked n/a is not asked for: empty its cell in "
            f"{run.settings.results} to ask for it again."
        )
    if now.missing:
        n, verb = len(now.missing), "counts" if len(now.missing) == 1 else "count"
        lines.append(
            f"{now.missing[0]}{f' and {n - 1} more' if n > 1 else ''}: {verb} as "
            "empty, as programs write it where nothing stands. Write n/a if a "
            "candidate cannot be measured."
        )
    return lines


def of_limits(run: Run, is_taken: bool) -> list[str]:
    r"""The treatment of values known only by a limit, in sentences.

    Args:
        run: The run.
        is_taken: Whether the sheet's values will be added to the results.
    """
    lines, level = list[str](), written(run.settings.level)
    if known := list(run.measured.known.values()):
        n = len(known)
        them = "its candidate is" if n == 1 else "their candidates are"
        learns = ", and not asked for again. To the model "
        learns += "it is a limit, too." if n == 1 else "they are limits, too."
        if run.settings.audit:
            learns = ". With an audit the model learns the limit in place of the value,"
            learns += " and asks for the candidate again where it expects another one."
        lines.append(
            f"{_counted(n, 'value')} {'is a limit' if n == 1 else 'are limits'} (first "
            f"{_text_of(run, known[0])} in {place_of(run, known[0], is_taken)}): "
            f"{them} decided so{learns}"
        )
    if untold := list(run.measured.untold.values()):
        n = len(untold)
        lines.append(
            f"{_counted(n, 'limit')} beyond the level {level} "
            f"{'says' if n == 1 else 'say'} nothing of the side (first "
            f"{_text_of(run, untold[0])} in {place_of(run, untold[0], is_taken)}). To "
            f"the model {'it is a limit' if n == 1 else 'they are limits'}, not asked "
            "for again. If a finer method can, measure it and write the value in its "
            "place."
        )
    return lines


def _text_of(run: Run, entry: Entry) -> str:
    column = entry.table.column(run.settings.column)
    return "" if column is None else entry.line.cells[column]


def of_scale(run: Run) -> list[str]:
    r"""A hint at logarithms, where values span decades or noise grows with them.

    Not where somebody said what is wanted.
    """
    y, found = run.state.observations.y, run.settings
    grows = any(remark.kind == "growing noise" for remark in run.state.remarks)
    is_suggested = run.scale.is_suggested(y, found.level, grows)
    if found.kind or found.log_result is not None or not is_suggested:
        return []
    low, high = torch.aminmax(y)
    noise = ", and their noise grows with them" if grows else ""
    return [
        f"Values go from {written(low)} to {written(high)}{noise}: where ratios count, "
        f"{found.later.advice('log_result', '')}, and the model learns their "
        f"logarithms. (log_result = false in {found.path.name} ends this hint.)"
    ]


def of_values(run: Run, is_taken: bool) -> list[str]:
    r"""Remarks that values by themselves give rise to, in sentences.

    Args:
        run: The run.
        is_taken: Whether the sheet's values will be added to the results.
    """
    remarks = (remark for remark in run.state.remarks if remark.kind not in ADVICE)
    said = (in_table_words(run, remark, is_taken=is_taken) for remark in remarks)
    return [*filter(None, said)]


def worst_calibration(state: State) -> Calibration:
    r"""The comparison of predictions with results, of classes one that failed."""
    each = [state.calibration(j) for j in range(state.strategy.n_outputs)]
    return next((one for one in each if one.has_failed), each[0])


def too_narrow(run: Run) -> str:
    r"""The warning that predictions failed, in a measuring person's words."""
    later = recent(worst_calibration(run.state).ahead)
    inside = round(share_within(later, 0.95) * len(later))
    return (
        f"Only {inside} of the last {len(later)} values lay where they were expected; "
        "19 of 20 should. Do not trust what is decided: look for values that were "
        "typed or measured wrongly, or measure more."
    )


def how_many(run: Run) -> list[str]:
    r"""The number of candidates on the side asked for, while that is open.

    Nothing before there is a model, and once every candidate is decided.
    """
    found, n = run.settings, len(run.rows)
    can_estimate = run.state.run.ask(run.strategy.algorithm.can_estimate, early=True)
    if not (can_estimate and bool(run.sides.undecided.any())):
        return []
    with doing("counting", at_once=False):
        content = run.state.content()
    if content.posterior is None:
        return []
    numbers = [content.estimate, *content.posterior]
    if found.side == "below":
        numbers = [1 - content.estimate, *(1 - end for end in content.posterior[::-1])]
    # What limits tell is known, whatever the model says of it.
    known = [entry.side for entry in run.measured.known.values()]
    least, most = known.count(found.side), n - len(known) + known.count(found.side)
    best, low, high = (min(max(round(n * x), least), most) for x in numbers)
    percent = f"{written(100 * content.confidence)} %"
    return [
        f"Of all {n} about {best} {'is' if best == 1 else 'are'} {found.side}; by the "
        f"model, if it is right, between {low} and {high} with {percent}."
    ]


def _in_table_words(said: str) -> str:
    r"""The warning about predictions, with a remedy for a table's owner."""
    for words, own in IN_TABLES.items():
        said = said.replace(words, own)
    return said


def often_failed(run: Run) -> list[str]:
    r"""A question about each candidate that failed often: can it be measured?"""
    times = Counter(entry.row for entry in run.measured.having("failed"))
    return [
        f"{run.called(row)} failed {n} times: write n/a if it cannot be measured."
        for row, n in times.items()
        if n >= OFTEN
        and run.measured.counts[row] == 0
        and row not in run.measured.excluded
    ]


def foreseen(run: Run) -> str:
    r"""The expected number of further measurements, in a sentence."""
    with doing("looking ahead", at_once=False):
        forecast = run.state.forecast()
    more, left = forecast.observations, run.left
    noun = "measurement" if run.settings.trials is None else "trial"
    beyond = forecast.more_than
    about = f"about {more}" if beyond is None else f"more than {beyond}"
    if more is None and beyond is None:
        basis = _in_table_words(forecast.basis)
        said = f"How many more {noun}s it takes cannot be told. {basis}"
    elif left is not None and (more or beyond or 0) > left:
        return (
            f"The budget leaves {_counted(left, noun)}; {about} would "
            "decide all, so that some candidates may stay undecided."
        ) + _symptom(run, more)
    else:
        is_confirming = not bool(run.sides.undecided.any())
        until = "the answer is confirmed" if is_confirming else "all is decided"
        noun += "" if more == 1 else "s"
        said = f"{about.capitalize()} more {noun} until {until}."
        said = said if left is None else f"{said[:-1]}; the budget leaves {left}."
        said += _symptom(run, more)
    if run.sides.class_names:
        said += f" {EDGES}"
    elif run.settings.epsilon == 0 and (more is not None or beyond is not None):
        said += (
            " Candidates very near to a level take most of them: with an epsilon "
            "these may go to either side."
        )
    elif beyond is not None or _symptom(run, more):
        said += " A larger epsilon takes fewer."
    return said


def _symptom(run: Run, more: int | None) -> str:
    n, has_results = len(run.pool), run.settings.kind is not None
    # Before any value that the model asked for its noise is hardly known.
    is_early = len(run.state.history) <= run.strategy.parts.model.n_first
    if is_early or has_results or run.measured.sources or (more or 0) <= n:
        return ""  # one result of yes or no tells little, and many are needed
    return f" That is more than the {n} candidates there are: look for a wrong value."


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
