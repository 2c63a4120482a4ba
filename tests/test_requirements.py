r"""What pyproject.toml promises about other packages."""

import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = tomllib.loads(
    (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]
OURS = [
    Requirement(text)
    for text in (
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["ax"],
        *PROJECT["optional-dependencies"]["plot"],
    )
]


def lower(requirement):
    bounds = [s.version for s in requirement.specifier if s.operator in (">=", "==")]
    return max(map(Version, bounds), default=Version("0"))


@pytest.mark.parametrize("package", ["botorch", "gpytorch", "ax-platform"])
def test_no_lower_bound_is_below_what_a_requirement_needs_itself(package):
    theirs = {
        found.name: lower(found)
        for found in map(Requirement, requires(package) or ())
        if found.marker is None or found.marker.evaluate({"extra": ""})
    }
    for requirement in OURS:
        least = theirs.get(requirement.name, Version("0"))
        assert lower(requirement) >= least, requirement
