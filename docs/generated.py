r"""What the site needs besides its pages: notebooks, tables, others' addresses.

The tutorials are scripts in cells (``tutorials/*.py``). ``write_all`` makes notebooks
of them, which the site executes, shows and offers for download. Run by ``conf.py``; by
hand, ``python docs/generated.py FOLDER`` writes the notebooks for your own use.
"""

from __future__ import annotations

import sys
from pathlib import Path

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
    text = jupytext.writes(notebook, fmt="ipynb")
    path = folder / f"{script.stem}.ipynb"
    if not path.exists() or path.read_text() != text:
        write_whole(path, text.encode())
    return path


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
