r"""The code of the README and of the site's pages runs, block after block."""

import re
from pathlib import Path

import pytest
import torch

from tests.covering import more_in_full

ROOT = Path(__file__).parents[1]
OURS = re.compile(
    r"^```(?:python|\{code-cell\}[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
THEIRS = re.compile(
    r"^ *```\{code-block\} python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
README = ROOT / "README.md"
PAGES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if OURS.search(path.read_text())
]


def blocks(text, kind):
    r"""The blocks of a kind, without their options and their indent."""
    for match in kind.finditer(text):
        lines = match["code"].splitlines()
        while lines and lines[0].lstrip().startswith(":"):
            lines.pop(0)
        first = next((line for line in lines if line.strip()), "")
        indent = len(first) - len(first.lstrip())
        yield "\n".join(line[indent:] for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    r"""A reader copies one block after the other into one session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    torch.manual_seed(0)
    names = {"__name__": "__main__"}
    text = page.read_text().replace("max_observations=200", "max_observations=40")
    for number, code in enumerate(blocks(text, OURS)):
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)


@more_in_full("budget", 40, 300)
def test_the_code_of_the_readme_runs(budget, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    text = README.read_text()
    assert text.count("max_observations=300") == 1
    text = text.replace("max_observations=300", f"max_observations={budget}")
    names = {}
    for number, code in enumerate(blocks(text, OURS)):
        exec(compile(code, f"README.md, block {number}", "exec"), names)
    assert number == 1
    assert names["state"].is_done
    assert capsys.readouterr().out.startswith(("audited", "budget"))
    assert (tmp_path / "run.json").stat().st_size > 1000
    answer = names["level_set"](names["client"])
    assert len(answer) == 500
    assert (answer["side"] != "undecided").sum() > 250


def test_the_readme_is_short_and_leads_on():
    text = README.read_text()
    assert len(text.splitlines()) <= 120
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert len(links) >= 10
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem
)
def test_the_code_of_other_packages_is_python(page):
    r"""We do not install what it needs, but what is shown can be parsed."""
    for code in blocks(page.read_text(), THEIRS):
        compile(code, page.name, "exec")


def test_blocks_are_found():
    text = (
        "```python\na = 1\n```\ntext\n```{code-cell} ipython3\n:tags: [x]\nb = a\n```"
    )
    assert list(blocks(text, OURS)) == ["a = 1", "b = a"]
    assert list(blocks("```{code-block} python\nc = 2\n```", THEIRS)) == ["c = 2"]
    shown = "  ```{code-block} python\n  if c:\n      d = 3\n  ```"
    assert list(blocks(shown, THEIRS)) == ["if c:\n    d = 3"]


def prose(text):
    r"""The lines of a page that are neither code, nor tables, nor its head."""
    is_code = False
    for line in re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL).splitlines():
        is_code ^= line.lstrip().startswith("```")
        if not is_code and not line.lstrip().startswith("|"):
            yield line


def test_no_line_of_prose_is_wider_than_an_editor():
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("hub/**/*.md")]
    files += [*ROOT.glob("botorch_lse/**/*.md"), *ROOT.glob("research/**/*.md")]
    own = [f for f in files if not {"generated", "api"} & {*f.relative_to(ROOT).parts}]
    assert len(own) > 30
    wide = [(f.name, x) for f in own for x in prose(f.read_text()) if len(x) > 120]
    assert wide == []
