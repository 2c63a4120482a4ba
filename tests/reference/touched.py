r"""Check the types and run the tests that a change touches.

``python -m tests.reference.touched [BASE]`` (``make check``) looks at the files that
differ from a commit, default the last one. A file of the package stands for the tests
in the folder of its name, and for its own examples; ``make test`` runs them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_FILES = {
    "README.md": "tests/test_documents.py",
    "pyproject.toml": "tests/test_requirements.py",
    "Makefile": "tests/reference/test_workflows.py",
    "CITATION.cff": "tests/reference/test_workflows.py",
    ".github": "tests/reference/test_workflows.py",
    "docs": "tests/test_site.py",
}
"""The tests of what is no code, by file or folder."""


def changed(base: str) -> list[str]:
    r"""The files that differ from a commit and are there, new ones included."""
    git = ["git", "-C", str(ROOT)]
    commands = (
        [*git, "diff", "--name-only", "--diff-filter=d", base],
        [*git, "ls-files", "--others", "--exclude-standard"],
    )
    done = [subprocess.run(c, capture_output=True, text=True) for c in commands]
    return sorted({name for one in done for name in one.stdout.splitlines()})


def tests_of(name: str) -> list[str]:
    r"""The tests of a changed file.

    Of a module these are its own file of tests, or the folder of its name, or that of
    the package around it, and its examples.
    """
    path = Path(name)
    top, is_code = path.parts[0], path.suffix == ".py"
    if top == "tests":
        return [name] if path.name.startswith("test_") else []
    if top in ("botorch_lse", "research") and is_code:
        inner = path.relative_to("botorch_lse") if top == "botorch_lse" else path
        own = f"test_{path.stem.lstrip('_')}.py"
        places = [p for folder in inner.parents for p in (folder / own, folder)]
        found = [Path("tests") / place for place in places if place.parts]
        there = [place.as_posix() for place in found if (ROOT / place).exists()]
        return [*there[:1], *([name] if top == "botorch_lse" else [])]
    if top == "docs" and path.suffix == ".md":
        return ["tests/test_documents.py", "tests/test_site.py"]
    found_of = OF_FILES.get(name, OF_FILES.get(top))
    return [found_of] if found_of else []


def main(arguments: list[str]) -> int:
    r"""Check; the first status that is not 0."""
    names = changed(arguments[0] if arguments else "HEAD")
    typed = [n for n in names if n.startswith("botorch_lse/") and n.endswith(".py")]
    status = 0
    if typed:
        words = [sys.executable, "-m", "mypy", *typed]
        status = subprocess.run(words, cwd=ROOT, check=False).returncode
    tests = sorted({test for name in names for test in tests_of(name)})
    print(f"{len(names)} changed files; tests:", *(tests or ["none"]), flush=True)
    if not tests or status:
        return status
    words = [sys.executable, "-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2")]
    words += ["-m", "not slow and not engine", *tests]
    return subprocess.run(words, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
