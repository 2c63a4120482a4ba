r"""Tables of the page on papers, from what the papers' experiments wrote.

``python -m botorch_lse.benchmark paper NAME --out DIR`` writes ``results.json``, with
thousands of numbers for its figures. ``python docs/papers.py keep DIR --command "..."``
keeps in ``docs/results/NAME.json`` what the page needs of it, and ``write_tables``
makes a table of each kept file while the site is built.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botorch_lse._files import write_whole

KEPT = Path(__file__).parent / "results"
MARKS = {"yes": "✓", "no": "✗"}


def kept(results: dict[str, Any], command: str) -> dict[str, Any]:
    r"""What the page needs of one ``results.json``.

    Args:
        results: Its content.
        command: The command that wrote it.

    Raises:
        ValueError: If it has no claims, so that it is no paper's.
    """
    if "Claims" not in results.get("tables", {}):
        raise ValueError(
            "Expected `results` of a paper, with a table of claims, but got the tables "
            f"{sorted(results.get('tables', {}))}. Write them by "
            "`python -m botorch_lse.benchmark paper NAME --out DIR`."
        )
    return {
        "command": command,
        **{name: results[name] for name in ("title", "notes", "verdict", "versions")},
        "claims": results["tables"]["Claims"],
    }


def table(content: dict[str, Any]) -> str:
    r"""A kept file as Markdown: how it was measured, and a line for each claim."""
    claims = content["claims"]
    hold = sum(claim["holds"] == "yes" for claim in claims)
    extent = "quick" if "--quick" in content["command"].split() else "full"
    return "\n".join(
        [
            f":::{{dropdown}} {hold} of {len(claims)} claims hold, in the {extent} run",
            ":icon: checklist",
            "",
            f"`{content['command']}`",
            "",
            *(f"- {note}" for note in content["notes"]),
            "",
            "| claim | paper | measured |",
            "|---|---|---|",
            *(_line(claim) for claim in claims),
            ":::",
            "",
        ]
    )


def _line(claim: dict[str, str]) -> str:
    cells = (claim["claim"], claim["paper"], claim["measured"])
    texts = (text.replace("|", r"\|") for text in cells)
    return f"| {MARKS[claim['holds']]} " + " | ".join(texts) + " |"


def write_tables(folder: Path) -> Iterator[Path]:
    r"""``NAME.md`` for each kept file, in a folder that is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(KEPT.glob("*.json")):
        written = folder / f"{path.stem}.md"
        write_whole(written, table(json.loads(path.read_text())).encode())
        yield written


def main() -> None:
    r"""The command line."""
    parser = argparse.ArgumentParser(description="Keep the claims of a paper's report.")
    parser.add_argument("keep", choices=["keep"])
    parser.add_argument(
        "folder", type=Path, help="what `--out` was, named as the paper"
    )
    parser.add_argument("--command", required=True, help="the command that wrote it")
    chosen = parser.parse_args()
    results = json.loads((chosen.folder / "results.json").read_text())
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{chosen.folder.name}.json"
    content = kept(results, chosen.command)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text.encode())
    print(path)


if __name__ == "__main__":
    main()
