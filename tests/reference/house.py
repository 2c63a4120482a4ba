r"""The numbers of the house: how much code, how deep, and how far one question runs.

``python -m tests.reference.house`` (``make house``) prints them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pkgutil
import sys
import tokenize
import warnings
from collections import Counter
from pathlib import Path

import torch
from gpytorch.kernels import RBFKernel

import botorch_lse
from botorch_lse import Pool
from botorch_lse.strategies import LSEStrategy

ROOT = Path(botorch_lse.__file__).parent
ELSEWHERE = ("papers", "benchmark")
"""Rooms that do not count to the library's own code."""
_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def code_lines(path: Path) -> int:
    r"""Lines of a file without docstrings, comments and blank lines."""
    source = path.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        is_alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_alone and isinstance(node.value.value, str):
            documented.update(range(node.lineno, node.end_lineno + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def code_by_room() -> Counter[str]:
    r"""Code lines of each folder of the package; of its top as ``"."``."""
    found: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        found[parts[0] if len(parts) > 1 else "."] += code_lines(path)
    return found


def ancestors() -> dict[str, list[str]]:
    r"""For each class of the package the package's classes above it."""
    found = {}
    for module in pkgutil.walk_packages(botorch_lse.__path__, "botorch_lse."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(value) and value.__module__ == module.name:
                above = [c for c in value.__mro__[1:] if "botorch_lse" in c.__module__]
                found[f"{module.name}.{name}"] = [c.__name__ for c in above]
    return found


def files_of_ask() -> list[str]:
    r"""The files through which one ``ask`` of LSE passes."""
    pool = Pool(torch.linspace(0, 1, 30).unsqueeze(-1))
    strategy = LSEStrategy(
        pool, threshold=0.3, model=RBFKernel().double(), noise_std=0.1, batch_size=3
    )
    state = strategy.init()
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(torch.zeros(len(batch))))
    passed: set[str] = set()

    def note(frame, event, argument):
        if frame.f_code.co_filename.startswith(str(ROOT)):
            passed.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        strategy.ask(state)
    finally:
        sys.setprofile(None)
    return sorted(str(Path(name).relative_to(ROOT)) for name in passed)


def main() -> None:
    r"""Print the numbers."""
    warnings.simplefilter("ignore")
    rooms = code_by_room()
    own = sum(n for room, n in rooms.items() if room not in ELSEWHERE)
    print(f"{own:,} code lines without {' and '.join(ELSEWHERE)} (at most 12,000)")
    print("  " + ", ".join(f"{room} {n:,}" for room, n in sorted(rooms.items())))
    files = files_of_ask()
    print(f"LSEStrategy.ask passes through {len(files)} files (at most 10)")
    print("  " + ", ".join(files))
    deep = {name: above for name, above in ancestors().items() if len(above) > 2}
    print(f"{len(deep)} classes have more than two own classes above them")
    for name, above in deep.items():
        print(f"  {name}: {', '.join(above)}")


if __name__ == "__main__":
    main()
