r"""The public names, which later versions keep: see ``docs/stability.md``.

``python -m tests.reference.public`` writes them to ``tests/public.txt``, which a test
compares with the names there are. Do so where a name is added; one that goes is first
deprecated.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

SNAPSHOT = Path(__file__).parents[1] / "public.txt"
PACKAGES = (
    "",
    "acquisition",
    "ax",
    "confidence",
    "designs",
    "estimators",
    "integrations.gest",
    "integrations.optuna",
    "integrations.ray",
    "integrations.sklearn",
    "integrations.submitit",
    "models",
    "optim",
    "papers",
    "pareto",
    "plotting",
    "goals",
    "rules",
    "strategies",
)
NEEDS = {
    "integrations.gest": "gest_api",
    "integrations.optuna": "optuna",
    "integrations.ray": "ray",
    "integrations.sklearn": "sklearn",
    "integrations.submitit": "submitit",
}
"""The library without which a module cannot be imported."""


def names_of(package: str) -> list[str]:
    r"""The public names of one of ``PACKAGES``."""
    module = import_module(".".join(filter(None, ("botorch_lse", package))))
    return sorted(module.__all__)


def stored() -> dict[str, list[str]]:
    r"""By package the names of the snapshot."""
    found: dict[str, list[str]] = {}
    for line in SNAPSHOT.read_text(encoding="utf-8").splitlines():
        package, _, name = line.rpartition(".")
        found.setdefault(package.removeprefix("botorch_lse").lstrip("."), []).append(
            name
        )
    return found


def main() -> None:
    r"""Write the snapshot."""
    lines = [
        ".".join(filter(None, ("botorch_lse", package, name)))
        for package in PACKAGES
        for name in names_of(package)
    ]
    SNAPSHOT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
