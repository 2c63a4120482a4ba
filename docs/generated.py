r"""What the site needs besides its pages: notebooks, tables, others' addresses.

The tutorials are scripts in cells (``tutorials/*.py``). ``write_all`` makes notebooks
of them, which the site executes, shows and offers for download. Run by ``conf.py``; by
hand, ``python docs/generated.py FOLDER`` writes the notebooks for your own use.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import jupytext
import pandas as pd
from papers import write_tables

from botorch_lse._files import write_figure, write_whole
from research.benchmark.speed_decisions import draw_growth

OTHERS = {
    "python": "https://docs.python.org/3",
    "botorch": "https://botorch.readthedocs.io/en/stable",
    "gpytorch": "https://docs.gpytorch.ai/en/stable",
    "ax": "https://ax.readthedocs.io/en/stable",
    "torch": "https://docs.pytorch.org/docs/stable",
    "numpy": "https://numpy.org/doc/stable",
    "pandas": "https://pandas.pydata.org/docs",
    "matplotlib": "https://matplotlib.org/stable",
    "plotly": "https://plotly.com/python-api-reference",
    "optuna": "https://optuna.readthedocs.io/en/stable",
    "gest_api": "https://github.com/campa-consortium/gest-api/blob/main",
    "sklearn": "https://scikit-learn.org/stable",
    "submitit": "https://github.com/facebookincubator/submitit/blob/main",
}
"""The projects that we link to, by the name of the file in ``inventories/``."""


WITHOUT_CODE = "table"
"""The tutorial for people without code: its page shows commands and files alone."""


def write_notebooks(scripts: Path, folder: Path) -> list[Path]:
    r"""A notebook without outputs for each tutorial.

    Args:
        scripts: The folder of the scripts.
        folder: Where the notebooks go; made if needed.

    Returns:
        The notebooks. One that is there with the same content is left as it is, so that
        Sphinx does not execute it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [write_notebook(path, folder) for path in sorted(scripts.glob("*.py"))]


def write_notebook(script: Path, folder: Path) -> Path:
    r"""The notebook of one script, below the script's name."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{script.stem}-{number}"  # else drawn at random
    fold(notebook, script.stem)
    text = jupytext.writes(notebook, fmt="ipynb")
    path = folder / f"{script.stem}.ipynb"
    if not path.exists() or path.read_text() != text:
        write_whole(path, text.encode())
    return path


def fold(notebook: Any, name: str) -> None:
    r"""Fold the imports of a page, which begins with its problem, not with them.

    The page of a table's commands shows no code at all.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if name == WITHOUT_CODE:
        for cell in code:
            cell.metadata["tags"] = ["remove-input"]
        return
    first = code[0]
    first.metadata["tags"] = ["hide-input"]
    prompts = {"code_prompt_show": "Imports", "code_prompt_hide": "Hide the imports"}
    first.metadata["mystnb"] = prompts


def address_in(pyproject: Path) -> str:
    r"""The project's address by ``Repository`` in ``[project.urls]``; empty if none."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def colab_address(project: str) -> str:
    r"""The address below which Colab opens the site's notebooks; empty without one."""
    owner_and_name = project.rstrip("/").removeprefix("https://github.com/")
    if not project:
        return ""
    return f"https://colab.research.google.com/github/{owner_and_name}/blob/gh-pages"


def with_installation(notebook: str, project: str) -> str:
    r"""A notebook that installs the package where Colab runs it.

    Args:
        notebook: Its text.
        project: The project's address; empty: the last release is installed.
    """
    content, package = json.loads(notebook), "botorch-lse[ax,plot]"
    source = f"{package} @ git+{project}" if project else package
    lines = [
        "import sys",
        "",
        'if "google.colab" in sys.modules:',
        f'    %pip install -q "{source}"',
    ]
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "installation",
        "metadata": {},
        "outputs": [],
        "source": [f"{line}\n" for line in lines[:-1]] + lines[-1:],
    }
    content["cells"].insert(1, cell)  # below the title
    return json.dumps(content, indent=1)


def forget_old(docs: Path) -> None:
    r"""Remove what was made for tutorials and names that are gone."""
    for notebook in (docs / "tutorials").glob("*.ipynb"):
        if not (docs.parent / "tutorials" / f"{notebook.stem}.py").exists():
            notebook.unlink()
    pages = (docs / "api").glob("*.rst")
    listed = {word.lstrip("~") for page in pages for word in page.read_text().split()}
    for stub in (docs / "api" / "generated").glob("*.rst"):
        if not {stub.stem, stub.stem.rpartition(".")[2]} & listed:
            stub.unlink()


def write_growth(docs: Path) -> Path:
    r"""The picture of how decisions grow, from kept numbers of `speed decisions`."""
    records = pd.read_csv(docs / "results" / "growth.csv").to_dict("records")
    path = docs / "generated" / "growth.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_figure(draw_growth(records), path)
    return path


def write_all(docs: Path) -> None:
    r"""Everything that the pages need."""
    forget_old(docs)
    write_notebooks(docs.parent / "tutorials", docs / "tutorials")
    list(write_tables(docs / "generated"))
    write_growth(docs)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    for path in write_notebooks(Path(__file__).parents[1] / "tutorials", target):
        print(path)
