r"""Run core tests with the lowest versions that are allowed, and with the newest.

``python -m tests.reference.matrix`` (``make matrix``) makes an environment of the core
alone for each, and says which version was not to be had. Torch is that of
``constraints.txt`` in both unless ``--torch`` names another one: on Linux most of its
versions bring gigabytes of CUDA, unless pip is told of an index of builds for CPUs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.reference.wheel import ROOT, build

TESTS = [
    "tests/models",
    "tests/surrogate",
    "tests/functional",
    "tests/data",
    "tests/strategies/test_contract.py",
    "--ignore=tests/data/test_distributions.py",  # it stores by Ax
]
TOOLS = ["pytest", "pytest-xdist", "hypothesis", "packaging"]
TORCH = "torch"


def lowest(dependencies: list[str]) -> dict[str, str]:
    r"""The lowest version that each requirement allows."""
    requirements = map(Requirement, dependencies)
    return {
        found.name: specifier.version
        for found in requirements
        for specifier in found.specifier
        if specifier.operator == ">="
    }


def tested(package: str) -> str:
    r"""The version in ``constraints.txt``."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{package}=="))
    return line.partition("==")[2]


def is_there(python: str, pin: str) -> bool:
    r"""Whether pip finds a wheel of a version for an interpreter."""
    words = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    words += ["--only-binary=:all:", "--ignore-installed", pin]
    done = subprocess.run(words, capture_output=True, check=False)
    return done.returncode == 0


def play(name: str, pins: dict[str, str], torch: str, python: str) -> int:
    r"""The status of the tests in a new environment.

    Args:
        name: What the environment is called.
        pins: The version of each package that has one.
        torch: The version of torch.
        python: The interpreter.
    """
    said = f"== {name}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([python, "-m", "venv", str(folder / "env")], check=True)
        programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        own = str(programs / "python")
        for package in [p for p in pins if p != TORCH]:
            if not is_there(own, f"{package}=={pins[package]}"):
                print(f"{said}: {package} {pins.pop(package)} is not to be had here")
        if pins.get(TORCH, torch) != torch:
            print(f"{said}: torch {torch}, not {pins[TORCH]}: see --torch")
        lines = [f"{p}=={v}" for p, v in (pins | {TORCH: torch}).items()]
        (folder / "pins.txt").write_text("\n".join(lines), encoding="utf-8")
        pip = [own, "-m", "pip", "install", "--quiet", "-c", str(folder / "pins.txt")]
        subprocess.run([*pip, TORCH], check=True)
        subprocess.run([*pip, str(build(folder)), *TOOLS], check=True)
        listed = [own, "-m", "pip", "list", "--format=freeze"]
        versions = subprocess.run(listed, capture_output=True, text=True, check=True)
        print(f"{said}: {', '.join(versions.stdout.split())}", flush=True)
        test = [own, "-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2")]
        test += ["-p", "no:cacheprovider", "-m", "not slow and not engine", *TESTS]
        return subprocess.run(test, cwd=ROOT, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    r"""Run both; the first status that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", default=tested(TORCH), help="the version of torch")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    known = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = lowest(project["project"]["dependencies"])
    own = known.torch, known.python
    return play("lowest", pins, *own) or play("newest", {}, *own)


if __name__ == "__main__":
    sys.exit(main())
