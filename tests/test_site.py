r"""The site offers what there is: every public name, links that lead somewhere."""

import importlib
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from research.benchmark.speed_decisions import SIZES, rules
from tests.plotting.browser import seen
from tests.reference.public import NEEDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import links  # noqa: E402
import papers  # noqa: E402

PACKAGES = (
    "botorch_lse",
    "botorch_lse.acquisition",
    "botorch_lse.ax",
    "botorch_lse.confidence",
    "botorch_lse.designs",
    "botorch_lse.estimators",
    "botorch_lse.models",
    "botorch_lse.pareto",
    "botorch_lse.plotting",
    "botorch_lse.strategies",
)
INVENTORIES = sorted((DOCS / "inventories").glob("*.txt"))


def thing(name):
    r"""What a dotted name stands for."""
    module, _, rest = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), rest)
    except ModuleNotFoundError:  # a class inside a class
        return getattr(thing(module), rest)


def listed(page):
    r"""What the tables of a reference page list."""
    text = page.read_text()
    package = re.search(r"currentmodule:: (\S+)", text)
    for name in re.findall(r"^   ~?([A-Za-z_][\w.]*)$", text, flags=re.MULTILINE):
        yield name if "." in name else f"{package[1]}.{name}"


def test_every_public_name_stands_in_the_reference():
    names = [name for page in (DOCS / "api").glob("*.rst") for name in listed(page)]
    assert len(names) == len(set(names)), "listed twice"
    absent = tuple(
        f"botorch_lse.{package}."
        for package, library in NEEDS.items()
        if find_spec(library) is None  # of an extra that the tests do not need
    )
    things = [thing(name) for name in names if not name.startswith(absent)]
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            described = any(found is other for other in things)
            # Type aliases are words of signatures, no pages.
            assert described or name == "BetaSchedule", f"{package}.{name}"


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.stem)
def test_linked_names_of_others_exist(inventory):
    first, _, _, *lines = inventory.read_text().splitlines()
    assert first == "# Sphinx inventory version 1"
    assert lines == sorted(set(lines))
    kinds = {"class": type, "exception": type, "function": object}
    for line in lines:
        name, kind, page = line.split()
        assert page.endswith((".html", ".py"))
        found = thing(name)
        assert isinstance(found, kinds[kind]) or callable(found), line


def test_every_project_has_its_inventory():
    text = (DOCS / "generated.py").read_text()
    addresses = dict(re.findall(r'"(\w+)": "(https://[^"]+)"', text))
    assert set(addresses) == {path.stem for path in INVENTORIES}


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="#top">a</a><a href="folder/page.html#here">b</a>'
        '<a href="https://botorch.org">c</a><img src="data:image/png;base64,AA">'
    )
    (tmp_path / "folder" / "page.html").write_text(
        '<p id="here"><a href="../index.html">a</a><a href="../index.html#no">b</a>'
        '<img src="picture.png">'
    )
    assert list(links.broken(tmp_path)) == [
        "folder/page.html: ../index.html#no",
        "folder/page.html: picture.png",
    ]


def test_every_tutorial_stands_on_its_page():
    text = (DOCS / "tutorials" / "index.md").read_text()
    scripts = {path.stem for path in (ROOT / "tutorials").glob("*.py")}
    assert {s for s in scripts if not re.search(rf"^{s}$", text, re.MULTILINE)} == set()


@pytest.mark.parametrize(
    "script", sorted((ROOT / "tutorials").glob("*.py")), ids=lambda path: path.stem
)
def test_tutorials_use_the_package_as_a_user_does(script):
    text = script.read_text()
    assert "botorch_lse.benchmark" not in text
    assert text.startswith("# %% [markdown]\n# # ")


def test_claims_of_a_report_become_a_table():
    claims = [
        {"claim": "a | b", "paper": "yes", "measured": "1 of 2", "holds": "no"},
        {"claim": "c", "paper": "2", "measured": "2", "holds": "yes"},
    ]
    results = {
        "title": "paper x",
        "notes": ["Seeds 0 to 2."],
        "tables": {"Claims": claims, "curves": []},
        "verdict": [],
        "versions": {},
        "numbers": [1, 2, 3],
    }
    content = papers.kept(results, "python -m x")
    assert "numbers" not in content
    text = papers.table(content)
    assert text.startswith(":::{dropdown} 1 of 2 claims hold, in the full run\n")
    assert r"| ✗ a \| b | yes | 1 of 2 |" in text
    assert "`python -m x`" in text
    quick = papers.table(papers.kept(results, "python -m x --quick"))
    assert quick.startswith(":::{dropdown} 1 of 2 claims hold, in the quick run\n")


def test_a_report_without_claims_is_refused():
    with pytest.raises(ValueError, match="Expected `results` of a paper"):
        papers.kept({"tables": {"times": []}}, "python -m x")


def test_every_paper_has_kept_results_and_a_place_on_the_page():
    names = {path.parent.name for path in ROOT.glob("botorch_lse/papers/*/errata.md")}
    assert {path.stem for path in papers.KEPT.glob("*.json")} == names
    text = (DOCS / "papers.md").read_text()
    for name in names:
        assert f"```{{include}} generated/{name}.md\n" in text
        assert f"{{cite:t}}`{name}`" in text


@pytest.mark.slow
def test_the_picture_of_growth_has_every_rule(tmp_path):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    kept = pd.read_csv(papers.KEPT / "growth.csv")
    assert set(kept["rule"]) == set(rules())
    assert set(kept["axis"]) == set(SIZES)
    (tmp_path / "results").mkdir()
    kept.to_csv(tmp_path / "results" / "growth.csv", index=False)
    assert "<svg" in generated.write_growth(tmp_path).read_text()
    assert "(generated/growth.svg)" in (DOCS / "speed.md").read_text()


def test_what_was_made_for_things_that_are_gone_is_removed(tmp_path):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    docs, stubs = tmp_path / "docs", tmp_path / "docs" / "api" / "generated"
    for folder in (stubs, docs / "tutorials", tmp_path / "tutorials"):
        folder.mkdir(parents=True)
    (tmp_path / "tutorials" / "kept.py").touch()
    for path in (docs / "tutorials" / "kept.ipynb", docs / "tutorials" / "gone.ipynb"):
        path.touch()
    (docs / "api" / "page.rst").write_text("   Pool\n   ~botorch_lse.inner.Record\n")
    for name in ("botorch_lse.Pool", "botorch_lse.inner.Record", "botorch_lse.Old"):
        (stubs / f"{name}.rst").touch()
    generated.forget_old(docs)
    assert [path.stem for path in (docs / "tutorials").iterdir()] == ["kept"]
    left = sorted(path.stem for path in stubs.iterdir())
    assert left == ["botorch_lse.Pool", "botorch_lse.inner.Record"]


def test_notebooks_hold_the_cells_of_their_scripts(tmp_path):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    written = generated.write_notebooks(ROOT / "tutorials", tmp_path / "notebooks")
    assert len(written) == len(list((ROOT / "tutorials").glob("*.py")))
    for path in written:
        cells = json.loads(path.read_text())["cells"]
        assert cells[0]["cell_type"] == "markdown"
        script = (ROOT / "tutorials" / f"{path.stem}.py").read_text()
        assert len(cells) == script.count("# %%")
    before = [path.stat().st_mtime_ns for path in written]
    generated.write_notebooks(ROOT / "tutorials", tmp_path / "notebooks")
    assert [path.stat().st_mtime_ns for path in written] == before


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Pool", "botorch_lse.Pool"),
        ("Pool(X, costs=...)", "botorch_lse.Pool"),
        ("Pool.from_box(bounds, n)", "botorch_lse.Pool.from_box"),
        ("botorch_lse.ax.level_set", "botorch_lse.ax.level_set"),
        ("Straddle()", "botorch_lse.strategies.Straddle"),
        ("Straddle(model, threshold=0.5)", "botorch_lse.acquisition.Straddle"),
        ("Straddle", None),  # a rule or an acquisition function
        ("ask", None),  # a method of many classes
        ("beta=9.0", None),
        ("Pool(", None),
    ],
)
def test_code_words_stand_for_public_names(text, name):
    words = pytest.importorskip("nodes", reason="needs the extra `docs`")
    kinds = {
        "botorch_lse.Pool": "class",
        "botorch_lse.Pool.from_box": "method",
        "botorch_lse.ax.level_set": "function",
        "botorch_lse.acquisition.Straddle": "class",
        "botorch_lse.strategies.Straddle": "class",
        "botorch_lse.strategies.Strategy.ask": "method",
    }
    assert words.named(text, kinds) == name


def test_long_sentences_are_told_from_tables():
    words = pytest.importorskip("nodes", reason="needs the extra `docs`")
    sentence, table = "No confidence is claimed. " * 5, "side  probability  " * 8
    assert words.are_sentences([sentence])
    assert words.are_sentences(["a  b", sentence])
    assert not words.are_sentences([table])
    assert not words.are_sentences([sentence, table])
    assert not words.are_sentences(["short", "a  b"])


def test_formulas_need_no_script():
    words = pytest.importorskip("nodes", reason="needs the extra `docs`")
    docutils = pytest.importorskip("docutils.nodes")
    translator = type("Translator", (), {"body": []})()
    formula = docutils.math("", r"\sqrt{\beta}\,\sigma")
    with pytest.raises(docutils.SkipNode):
        words.write_formula(translator, formula)
    assert "<msqrt>" in translator.body[0]
    with pytest.raises(docutils.SkipNode):
        words.write_block(translator, docutils.math_block("", "a + b"))
    assert 'display="block"' in translator.body[1]


def tags_of(path):
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [cell["metadata"].get("tags", []) for cell in code]


def test_pages_fold_their_imports_and_that_of_commands_has_no_code(tmp_path):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    for path in generated.write_notebooks(ROOT / "tutorials", tmp_path):
        first, *others = tags_of(path)
        if path.stem == "table":
            assert {*first, *(tag for tags in others for tag in tags)} == {
                "remove-input"
            }
        else:
            assert first == ["hide-input"]
            assert not any(others)


@pytest.mark.parametrize(
    "script", sorted((ROOT / "tutorials").glob("*.py")), ids=lambda path: path.stem
)
def test_tutorials_begin_with_their_problem(script):
    text, _, rest = script.read_text().partition("\n# %%\n")
    words = [line for line in text.splitlines()[2:] if line.strip("# ")]
    assert len(words) >= 3
    assert "import " in rest


@pytest.mark.parametrize(
    ("project", "package"),
    [
        ("", "botorch-lse[ax,plot]"),
        (
            "https://github.com/owner/name",
            "botorch-lse[ax,plot] @ git+https://github.com/owner/name",
        ),
    ],
)
def test_a_notebook_installs_the_package_where_colab_runs_it(project, package):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# A"], "id": "a"}
    text = json.dumps({"cells": [title], "metadata": {}, "nbformat": 4})
    cells = json.loads(generated.with_installation(text, project))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"]
    source = "".join(cells[1]["source"])
    assert f'%pip install -q "{package}"' in source
    assert 'if "google.colab" in sys.modules:\n    %pip' in source


def test_the_sites_address_is_that_of_the_package(tmp_path):
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "x"\n')
    assert generated.address_in(file) == ""
    file.write_text('[project.urls]\nRepository = "https://github.com/owner/name"\n')
    assert generated.address_in(file) == "https://github.com/owner/name"
    assert "PROJECT = generated.address_in(" in (ROOT / "docs/conf.py").read_text()


def test_colab_opens_the_notebooks_of_the_published_site():
    generated = pytest.importorskip("generated", reason="needs the extra `docs`")
    assert generated.colab_address("") == ""
    address = generated.colab_address("https://github.com/owner/name/")
    assert address.endswith("/github/owner/name/blob/gh-pages")


@pytest.mark.parametrize("address", ["", "https://colab.example/owner/name"])
def test_each_tutorial_has_a_badge_that_leads_to_colab(address):
    jinja2 = pytest.importorskip("jinja2", reason="needs the extra `docs`")
    page = (ROOT / "docs/_templates/page.html").read_text()
    base = "{% block content %}the page{% endblock %}"
    loader = jinja2.DictLoader({"page.html": page, "furo/page.html": base})
    template = jinja2.Environment(loader=loader).get_template("page.html")
    shown = template.render(pagename="tutorials/soil", quick=False, colab=address)
    wanted = "https://colab.research.google.com/#upload=true"
    wanted = f"{address}/tutorials/soil.ipynb" if address else wanted
    assert f'class="colab" href="{wanted}"' in shown
    assert 'href="soil.ipynb" download' in shown
    assert "colab" not in template.render(pagename="tutorials/index", colab=address)


FIELD = {
    "active learning": ("index.md", "concepts.md", "no_code.md"),
    "excursion set": ("index.md", "concepts.md", "coming_from.md"),
    "contour": ("index.md", "concepts.md"),
    "feasible": ("index.md", "regions.md", "coming_from.md"),
    "probability of failure": ("index.md", "how_much.md"),
    "limit state": ("index.md", "how_much.md"),
    "psychometric threshold": ("index.md", "coming_from.md"),
    "phase diagram": ("index.md", "regions.md"),
    "safe set": ("index.md", "regions.md"),
}


@pytest.mark.parametrize("words", FIELD)
def test_words_of_the_field_stand_in_the_first_lines(words):
    for name in FIELD[words]:
        text = (DOCS / name).read_text().split("\n# ", 1)[-1]
        first = " ".join(text.split()[:120]).replace("*", "").casefold()
        assert words in first, name


def test_every_door_of_the_landing_page_is_there():
    text = (DOCS / "index.md").read_text()
    assert text.index("## Install") < text.index("## Three doors")
    for page in ("no_code", "ax", "pieces", "gallery"):
        assert f":link: {page}\n" in text
        assert (DOCS / f"{page}.md").exists()


@pytest.mark.slow
def test_search_ranks_guide_pages_above_the_reference(tmp_path):
    assert '"_static" / "scorer.js")' in (DOCS / "conf.py").read_text()
    page = tmp_path / "search.html"
    scorer = (DOCS / "_static" / "scorer.js").read_text()
    page.write_text(f"<html><head></head><body><script>{scorer}</script></body></html>")
    guide, api, names = seen(
        page,
        """const score = (page, title, own) => Scorer.score([page, title, "", "", own]);
      // Sphinx takes all of these from whoever gives one.
      const names = ["objNameMatch", "objPartialMatch", "objPrioDefault", "title",
        "partialTitle", "term", "partialTerm"].filter(name => name in Scorer);
      return [score("regions", "Regions", 2),
        score("api/generated/botorch_lse.Pool", "botorch_lse.Pool", 30), names.length];
      """,
    )
    assert guide > api
    assert names == 7
