r"""The site: ``make docs`` builds it without a network; warnings are errors."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.inspect import signature, stringify_signature

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # research: the picture of the page on speed
sys.path.insert(0, str(HERE))  # generated.py, nodes.py

import generated  # noqa: E402

import botorch_lse  # noqa: E402

generated.write_all(HERE)

# Figures are shown whatever backend the caller's environment asks for.
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))
if QUICK:
    os.environ["SMOKE_TEST"] = "1"  # the same in BoTorch's tutorials

PROJECT = generated.address_in(HERE.parent / "pyproject.toml")
"""The project's address on GitHub, as ``pyproject.toml`` has it.

With it pages say what to clone, and the badge of each tutorial opens it in Colab, from
the branch ``gh-pages``, where the site is published. Empty: the badge opens the page on
which Colab takes a notebook that was downloaded."""

project = "botorch-lse"
author = "The botorch-lse founders"
copyright = "the botorch-lse founders, MIT licence"
version = release = botorch_lse.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "nodes",
]
exclude_patterns = ["_templates", "generated", "inventories", "paper", "results"]
nitpicky = True

# Pages are Markdown; tutorials and pages with cells run while the site is built.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
nb_execution_mode = "auto"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # tutorials write pictures and tables
nb_merge_streams = True
nb_output_stderr = "remove"  # warnings name files of the machine that built the site

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

# Docstrings are Google's, with a section `Source` for paper and equation.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Source", "params_style"), "Source"]
napoleon_use_rtype = False
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autoclass_content = "both"  # some classes say their arguments in `__init__`
autodoc_inherit_docstrings = False  # what others' bases say, their sites say
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
add_module_names = False

# Inventories of exactly the names that we link, see inventories/README.md.
intersphinx_mapping = {
    name: (address, str(HERE / "inventories" / f"{name}.txt"))
    for name, address in generated.OTHERS.items()
}

html_theme = "furo"
html_math_renderer = "mathml"  # nodes.py: no script from elsewhere
pygments_dark_style = "github-dark"
html_title = "botorch-lse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sourcelink = False
templates_path = ["_templates"]
html_context = {"quick": QUICK, "colab": generated.colab_address(PROJECT)}
copybutton_exclude = ".linenos, .gp, .go"

# Names that docstrings use as their modules import them.
ALIASES = {
    "Axes": "matplotlib.axes.Axes",
    "BotorchTensorDimensionError": (
        "botorch.exceptions.errors.BotorchTensorDimensionError"
    ),
    "Calibration": "botorch_lse.confidence.calibration.Calibration",
    "DataRequiredError": "ax.exceptions.core.DataRequiredError",
    "Figure": "matplotlib.figure.Figure",
    "Kernel": "gpytorch.kernels.Kernel",
    "PlotlyFigure": "plotly.graph_objects.Figure",
    "UnsupportedError": "botorch.exceptions.errors.UnsupportedError",
    "concurrent.futures._base.Executor": "concurrent.futures.Executor",
    "concurrent.futures._base.Future": "concurrent.futures.Future",
    "gpytorch.kernels.kernel.Kernel": "gpytorch.kernels.Kernel",
    "gpytorch.means.mean.Mean": "gpytorch.means.Mean",
    "optuna.samplers._base.BaseSampler": "optuna.samplers.BaseSampler",
    "optuna.study.study.Study": "optuna.study.Study",
    "optuna.trial._frozen.FrozenTrial": "optuna.trial.FrozenTrial",
    "optuna.trial._state.TrialState": "optuna.trial.TrialState",
    "pd.DataFrame": "pandas.DataFrame",
    "plotly.graph_objs._figure.Figure": "plotly.graph_objects.Figure",
    "submitit.core.core.Executor": "submitit.Executor",
    "torch._C.Generator": "torch.Generator",
}
TYPE_ALIASES = ("BetaSchedule", "ModelArgument", "Refit")
"""Words of signatures without a page: the arguments' texts say what they stand for."""


def resolve(name: str) -> object | None:
    r"""What a dotted name stands for; ``None`` if there is no such thing."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


@functools.cache
def documented(python: PythonDomain) -> dict[str, str]:
    r"""From where a class is defined to the public name under which it is described."""
    places = {}
    for name, entry in python.objects.items():
        if entry.objtype in ("class", "exception", "function"):
            thing = resolve(name)
            places[f"{thing.__module__}.{thing.__qualname__}"] = name
    return places


def find_link(app: Sphinx, env: BuildEnvironment, node: Any, content: Any) -> Any:
    r"""Links for the names in signatures, which say where a class is defined.

    A class of ours that is not public stays text in signatures. Anything else without a
    page is reported.
    """
    if node.get("refdomain") != "py":
        return None
    python, page = env.domains.python_domain, node.get("refdoc", "")
    target = ALIASES.get(node["reftarget"], node["reftarget"])
    node["reftarget"] = target  # others' sites are looked up after us
    name = documented(python).get(target)
    if name is None and target in python.objects:
        name = target
    if name is not None:
        return python.resolve_xref(env, page, app.builder, "obj", name, node, content)
    in_signature = page.startswith("api/generated/")
    if in_signature and target in TYPE_ALIASES:
        return content
    if in_signature and target.startswith("botorch_lse.") and resolve(target):
        return content
    return None


def constructor_of(
    app: Sphinx, what: str, name: str, thing: Any, *rest: Any
) -> tuple[str, str] | None:
    r"""The arguments of a record, also where ``__new__`` takes any."""
    if what != "class" or not dataclasses.is_dataclass(thing):
        return None
    if "__init__" not in vars(thing):
        return None  # a base class, whose leaves say what they take
    found = signature(thing.__init__, bound_method=True)
    found = found.replace(return_annotation=found.empty)
    return stringify_signature(found, unqualified_typehints=True), ""


def leave_out_new(app: Sphinx, what: str, name: str, thing: Any, *rest: Any) -> None:
    r"""What ``__new__`` of a base says is no part of a record's description."""
    text = (thing.__new__.__doc__ or "").strip() if what == "class" else ""
    lines = rest[-1]
    if dataclasses.is_dataclass(thing) and text and text in lines:
        del lines[lines.index(text) :]


def leave_out_second(app: Sphinx, what: str, name: str, thing: Any, *rest: Any) -> None:
    r"""The summary of ``__init__`` says again what the class's does."""
    own = vars(thing).get("__init__") if what == "class" else None
    summary, lines = (getattr(own, "__doc__", None) or "").split("\n")[0], rest[-1]
    is_its_text = bool(summary) and lines[:1] == [summary]  # not that of the class
    if is_its_text and not summary.startswith("See "):
        del lines[0]


def join_first_line(app: Sphinx, what: str, *rest: Any) -> None:
    r"""Put back what Napoleon took for a type: ours stands in the annotation."""
    lines = rest[-1]
    if what in ("property", "attribute") and lines[-1:] and ":type:" in lines[-1]:
        lines[0] = f"{lines.pop().removeprefix(':type:').strip()}: {lines[0]}"


def offer_tutorials(app: Sphinx, error: Exception | None) -> None:
    r"""Put scripts and notebooks beside the pages made of them."""
    if error is not None:
        return  # there are no pages
    for script in sorted((HERE.parent / "tutorials").glob("*.py")):
        shutil.copy(script, app.outdir / "tutorials")
        notebook = (HERE / "tutorials" / f"{script.stem}.ipynb").read_text()
        text = generated.with_installation(notebook, PROJECT)
        (app.outdir / "tutorials" / f"{script.stem}.ipynb").write_text(text)


def fill_in_address(app: Sphinx, name: str, source: list[str]) -> None:
    r"""Put the project's address where pages say what to clone."""
    source[0] = source[0].replace("{project}", PROJECT or "ADDRESS")


def setup(app: Sphinx) -> None:
    r"""Called by Sphinx."""
    app.connect("autodoc-process-signature", constructor_of)
    app.connect("build-finished", offer_tutorials)
    app.connect("source-read", fill_in_address)
    app.connect("missing-reference", find_link, priority=400)
    app.connect("autodoc-process-docstring", leave_out_new, priority=400)
    app.connect("autodoc-process-docstring", leave_out_second, priority=400)
    app.connect("autodoc-process-docstring", join_first_line, priority=600)
