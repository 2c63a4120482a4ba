r"""Build sdist and wheel, look into them, and use the wheel as who has nothing else.

``python -m tests.reference.wheel`` (``make wheel``) installs it into a new environment
and runs the demo, the table commands and every tutorial there, outside of the clone.
With ``--dist FOLDER`` (``make dist``) it builds them into a folder, looks, and ends.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNWANTED = re.compile(
    r"(^|/)(tests?|research|benchmark|conftest|experiment|claims|figures|curves"
    r"|moved|prior|heteroscedastic)(\.py$|/)|_test\.py$|/test_"
)
"""Experiments, benchmarks, tests and old names: none of them is in a wheel."""
DOOR = "botorch_lse/benchmark.py"
"""What is called a benchmark and may be there: it says where the benchmarks are."""
TABLE = "temperature,time\n" + "".join(
    f"{20 + 7 * (i % 6)},{5 + 3 * (i // 6)}\n" for i in range(30)
)


SDIST = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO"),
    *("README.md", "botorch_lse", "botorch_lse.egg-info", "pyproject.toml"),
    "setup.cfg",
}
"""What stands at the top of an sdist: the package, and no tests, papers or site."""


def build(folder: Path) -> Path:
    r"""The wheel of this clone, made from its sdist, both in a folder."""
    code = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder.resolve())]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    (sdist,) = folder.glob("*.tar.gz")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(sdist)], check=True)
    (found,) = folder.glob("*.whl")
    return found


def tracked() -> set[str]:
    r"""The files of the package that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files", "botorch_lse"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def faults(names: list[str], known: set[str]) -> list[str]:
    r"""What should not be in a wheel, or is missing, in words.

    Args:
        names: The files of the wheel.
        known: The files of the package in the repository.
    """
    ours = [name for name in names if ".dist-info/" not in name]
    unwanted = {n for n in ours if n != DOOR and UNWANTED.search(n)}
    return [
        *(f"{name} is in the wheel" for name in sorted(unwanted | {*ours} - known)),
        *(f"{name} is not in the wheel" for name in sorted(known - {*ours})),
    ]


def faults_of_sdist(names: list[str]) -> list[str]:
    r"""What should not stand at the top of an sdist, or is missing, in words."""
    tops = {name.split("/")[1] for name in names if "/" in name}
    return [
        *(f"{name} is in the sdist" for name in sorted(tops - SDIST)),
        *(f"{name} is not in the sdist" for name in sorted(SDIST - tops)),
    ]


def faults_of_address(metadata: str, others: dict[str, str]) -> list[str]:
    r"""What is wrong with the project's address, in words: PyPI and the site show it.

    Args:
        metadata: ``METADATA`` of the wheel.
        others: By name the texts of files that may state the address as well.
    """
    entries = Parser().parsestr(metadata).get_all("Project-URL", [])
    urls = dict(entry.split(", ", 1) for entry in entries)
    own = urls.get("Repository", "")
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", own):
        return [
            "pyproject.toml does not say where the project is: write "
            '`Repository = "https://github.com/OWNER/NAME"` in `[project.urls]`, '
            f"in place of {own!r}"
        ]
    return [
        f"{name} says that the project is at {found}, pyproject.toml at {own}"
        for name, text in others.items()
        for found in re.findall(r"^\s*repository(?:-code)?:\s*(\S+)", text, re.M)
        if found.strip("\"'") != own
    ]


def checked(folder: Path) -> tuple[Path, list[str]]:
    r"""The wheel, made in a folder beside its sdist, and what is wrong with both."""
    wheel = build(folder)
    (sdist,) = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    with tarfile.open(sdist) as archive:
        found = faults(names, tracked()) + faults_of_sdist(archive.getnames())
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(names)} files")
    print(f"{sdist.name}: {sdist.stat().st_size:,} bytes", flush=True)
    command = [
        sys.executable,
        "-m",
        "twine",
        "check",
        "--strict",
        str(wheel),
        str(sdist),
    ]
    if subprocess.run(command, check=False).returncode:
        found.append("what PyPI will show is not right, see above")
    return wheel, found


def environment(folder: Path, wheel: Path) -> Path:
    r"""The folder of programs of a new environment that has the wheel."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
    pip += ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, f"{wheel}[ax,plot]"], check=True)
    return programs


def use(programs: Path, folder: Path) -> None:
    r"""Run what a user runs: benchmarks (refused), demo, table commands, tutorials."""
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    quick = {"TUTORIAL_QUICK": "1", "SMOKE_TEST": "1", "MPLBACKEND": "agg"}
    python, command = str(programs / "python"), str(programs / "botorch-lse")

    def run(*words: str, status: int = 0) -> str:
        print("==", *words[-4:], flush=True)
        done = subprocess.run(
            words,
            cwd=folder,
            env=settings | quick,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != status:
            raise SystemExit(f"{done.stdout}\nended with {done.returncode}: {words}")
        return done.stdout

    where = run(python, "-c", "import botorch_lse; print(botorch_lse.__file__)")
    if "site-packages" not in where:
        raise SystemExit(f"the wheel was not used, but {where}")
    said = run(python, "-m", "botorch_lse.benchmark", "list", status=2)
    if "in a clone of its repository" not in said:
        raise SystemExit(f"the benchmarks did not say where they are, but {said}")
    run(python, "-m", "botorch_lse", "--budget", "200", "--out", "demo")
    (folder / "candidates.csv").write_text(TABLE, encoding="utf-8")
    words = ["next", "candidates.csv", "--above", "0.5", "--column", "y"]
    run(command, *words, "--batch", "4", "--out", "sheet.csv")
    sheet = folder / "sheet.csv"
    header, *lines = sheet.read_text(encoding="utf-8").splitlines()
    place = header.split(",").index("y")
    filled = []
    for i, line in enumerate(lines):
        cells = line.split(",")
        cells[place] = f"{0.1 * i}"
        filled.append(",".join(cells))
    sheet.write_text("\n".join((header, *filled)) + "\n", encoding="utf-8")
    run(command, "next")
    run(command, "answer")
    for script in sorted((ROOT / "tutorials").glob("*.py")):
        shutil.copy(script, folder)
        run(python, script.name)


def main(arguments: list[str] | None = None) -> int:
    r"""Build, look, use; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dist", help="a folder, emptied before, for both alone")
    parser.add_argument("--tag", help="the tag of the release, v and its version")
    known = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel, found = checked(folder)
        version = wheel.name.split("-")[1]
        if known.tag not in (None, f"v{version}"):
            found.append(f"the tag is {known.tag}, the version {version}")
        if known.dist:
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
                metadata = archive.read(name).decode("utf-8")
            names = "CITATION.cff", "conda/recipe.yaml"
            others = {name: (ROOT / name).read_text("utf-8") for name in names}
            found += faults_of_address(metadata, others)
        print("".join(f"{fault}\n" for fault in found), end="")
        if found:
            return 1
        if known.dist:
            shutil.rmtree(ROOT / known.dist, ignore_errors=True)
            shutil.copytree(folder, ROOT / known.dist)
            return 0
        (folder / "work").mkdir()
        use(environment(folder / "env", wheel), folder / "work")
    print("demo, table commands and tutorials run from the wheel")
    return 0


if __name__ == "__main__":
    sys.exit(main())
