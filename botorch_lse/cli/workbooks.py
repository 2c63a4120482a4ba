r"""Candidates in a workbook of Excel, read as the lines of a CSV file."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime, time
from typing import Any

SAVE = "In Excel, save it as 'CSV UTF-8 (comma delimited)', and name that file."


def lines_of(raw: bytes, name: str) -> str:
    r"""The sheet of a workbook as CSV text with commas, one line for each row.

    Values are taken, not how they are shown: 5 % is 0.05. Of formulas it is the value
    that the program which saved the file computed.

    Args:
        raw: What the file holds.
        name: Its name.

    Raises:
        ValueError: If openpyxl is not installed, it is no workbook of Excel, or cells
            of several sheets are filled.
    """
    try:
        from openpyxl import load_workbook  # here: an extra
    except ImportError:
        raise ValueError(
            f"{name}: expected a CSV file, but it is a workbook, which openpyxl reads: "
            f"pip install 'botorch-lse[table]'. Or: {SAVE}"
        ) from None
    try:
        book = load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
        sheets = {
            sheet.title: [*sheet.iter_rows(values_only=True)]
            for sheet in book.worksheets
        }
    except Exception as error:  # openpyxl complains by errors of many kinds
        raise ValueError(
            f"{name}: expected a CSV file or a workbook of Excel, but openpyxl cannot "
            f"read it ({error}). {SAVE}"
        ) from error
    filled = {
        title: rows
        for title, rows in sheets.items()
        if any(cell is not None for row in rows for cell in row)
    }
    if len(filled) > 1:
        raise ValueError(
            f"{name}: expected one sheet with cells, but got "
            f"{', '.join(map(repr, filled))}. Save that of the candidates as a file of "
            "its own."
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for rows in filled.values():
        writer.writerows([_text(cell) for cell in row] for row in rows)
    return text.getvalue()


def _text(cell: Any) -> str:
    r"""The text of a value, in one line."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    if isinstance(cell, date | time):
        return cell.isoformat()
    return " ".join(str(cell).split())
