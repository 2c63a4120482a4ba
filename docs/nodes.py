r"""What the site does with the formulas, names and printed sentences of its pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\.\w+)*)(?P<call>\(.*\))?", re.DOTALL)
LINE = 84  # characters of a line of code beside the menu


def named(text: str, kinds: Mapping[str, str]) -> str | None:
    r"""The public name that a code word stands for.

    Args:
        text: Such as ``Pool.from_box(bounds, n)``.
        kinds: What Sphinx calls each documented name: ``"class"``, ``"method"``, ...

    Returns:
        A key of ``kinds``, or ``None``: no name, or one that may stand for several. A
        rule and its acquisition function often share theirs: a call is the rule's,
        or, if it begins with a model, the function's.
    """
    match = NAME.fullmatch(text)
    if match is None:
        return None
    name, call = match["name"], match["call"] or ""
    if name in kinds:
        return name
    found = [full for full in kinds if full.endswith(f".{name}")]
    if "." not in name:
        found = [x for x in found if kinds[x] in ("class", "exception", "function")]
    if len(found) > 1 and call:
        folder = "acquisition" if call.startswith("(model") else "strategies"
        found = [full for full in found if full.startswith(f"botorch_lse.{folder}.")]
    return found[0] if len(found) == 1 else None


def are_sentences(lines: Iterable[str]) -> bool:
    r"""Whether lines are too long for the page, and no columns hang on their length."""
    long = [line.strip() for line in lines if len(line) > LINE]
    return bool(long) and not any("  " in line for line in long)


class LinkNames(SphinxPostTransform):
    r"""A code word that is a public name leads to its description.

    Names of other packages that are called alike have the class ``theirs``.
    """

    default_priority = 500
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        r"""Called by Sphinx for each page."""
        objects = self.env.domains.python_domain.objects
        public = {name: entry for name, entry in objects.items() if not entry.aliased}
        kinds = {name: entry.objtype for name, entry in public.items()}
        page = self.env.docname
        for node in list(self.document.findall(nodes.literal)):
            name = named(node.astext(), kinds)
            is_elsewhere = name and objects[name].docname != page
            if not is_elsewhere or "theirs" in node["classes"] or is_linked(node):
                continue
            entry = objects[name]
            place = (page, entry.docname, entry.node_id)
            link = make_refnode(self.app.builder, *place, node.deepcopy(), name)
            node.replace_self(link)


def is_linked(node: nodes.Node | None) -> bool:
    r"""Whether a node stands in a link, or in a heading, which is listed elsewhere."""
    while node is not None and not isinstance(node, nodes.reference | nodes.title):
        node = node.parent
    return node is not None


class WrapSentences(SphinxPostTransform):
    r"""Sentences that a cell has printed are broken into lines; tables scroll."""

    default_priority = 500
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        r"""Called by Sphinx for each page."""
        for node in self.document.findall(nodes.literal_block):
            if "output" in node["classes"] and are_sentences(node.astext().split("\n")):
                node["classes"].append("sentences")


def write_formula(translator: Any, node: nodes.math) -> None:
    r"""A formula in a line as MathML, which browsers draw without a script."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(translator: Any, node: nodes.math_block) -> None:
    r"""A formula of its own."""
    translator.body.append(f"<div>{tex2mathml(node.astext(), as_block=True)}</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    r"""Called by Sphinx."""
    app.add_post_transform(LinkNames)
    app.add_post_transform(WrapSentences)
    renderers = (write_formula, None), (write_block, None)
    app.add_html_math_renderer("mathml", *renderers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
