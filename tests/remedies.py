r"""Messages whose remedy is executed, from the state in which it is given.

A case is a generator: it builds a state, yields the call that is refused, is sent the
message, and then does what the message says. It may yield again, for another remedy of
the same message.
"""

from __future__ import annotations

import ast
import functools
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from botorch.exceptions.errors import BotorchError

Steps = Callable[[Path], Generator[Callable[[], Any], str, None]]


class Remedies:
    r"""The cases for the places that raise in some files.

    Args:
        files: The files.
        errors: The types of their errors.
    """

    def __init__(
        self, files: Sequence[Path], errors: tuple[type[Exception], ...] = ()
    ) -> None:
        self.files = [path.resolve() for path in files]
        self.errors = (ValueError, BotorchError, *errors)
        self.cases: dict[tuple[str, str], tuple[Steps, str]] = {}

    def case(self, site: str, remedy: str) -> Callable[[Steps], Steps]:
        r"""Register a case.

        Args:
            site: The place that raises, as ``sites_of`` names it; or
                ``_validation: ...`` where a function there does.
            remedy: What the message must name.
        """

        def register(steps: Steps) -> Steps:
            self.cases[site, steps.__name__] = (steps, remedy)
            return steps

        return register

    def play(self, key: tuple[str, str], folder: Path) -> None:
        r"""Play a case: its call is refused at its place, and its remedy works."""
        steps, remedy = self.cases[key]
        going = steps(folder)
        call = next(going)
        while True:
            error, site = self.refused(call)
            if not key[0].startswith("_validation"):
                assert site == key[0], site
            said = " ".join([str(error), *getattr(error, "__notes__", [])])
            assert remedy in said, said
            try:
                call = going.send(said)
            except StopIteration:
                return

    def refused(self, call: Callable[[], Any]) -> tuple[Exception, str]:
        r"""The error of a call, and the place in the files that raised it."""
        with pytest.raises(self.errors) as raised:
            call()
        frames = traceback.extract_tb(raised.value.__traceback__)
        ours = [f for f in frames if Path(f.filename).resolve() in self.files]
        path, line = Path(ours[-1].filename).resolve(), ours[-1].lineno or 0
        for name, first, last in sites_of(path):
            if first <= line <= last:
                return raised.value, name
        return (
            raised.value,
            f"{path.stem}: a check of `_validation`, or what was called",
        )

    def check_all_there(self, without: Mapping[str, str]) -> None:
        r"""That each place that raises has a case, or a reason to have none."""
        there = {name for path in self.files for name, _, _ in sites_of(path)}
        with_case = {
            site for site, _ in self.cases if not site.startswith("_validation")
        }
        assert with_case.isdisjoint(without)
        assert with_case | without.keys() == there


def _complains(node: ast.AST) -> bool:
    r"""Whether code raises an error, or notes what is wrong to raise it later."""
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Call)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target).endswith(".said")
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
        ".said.append"
    )


@functools.cache
def sites_of(path: Path) -> list[tuple[str, int, int]]:
    r"""The places in a file that complain, as (name, first line, last line)."""
    found: list[tuple[str, int, int]] = []

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                walk(child, f"{name}.{child.name}" if name else child.name)
                continue
            if _complains(child):
                found.append((name, child.lineno, child.end_lineno or child.lineno))
            walk(child, name)

    walk(ast.parse(path.read_text()), "")
    numbers = dict[str, int]()
    named = list[tuple[str, int, int]]()
    for name, first, last in found:
        numbers[name] = numbers.get(name, 0) + 1
        named.append((f"{path.stem}:{name}#{numbers[name]}", first, last))
    return named
