r"""Build the wheel, look into it, and use it as somebody who has nothing else.

``python -m tests.reference.wheel`` (``make wheel``) installs it into a new environment
and runs the demo, the table commands and every tutorial there, outside of the clone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
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


def build(folder: Path) -> Path:
    r"""The wheel of this clone, in a folder."""
    # What an earlier build left there would go into the wheel.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (found,) = folder.glob("*.whl")
    return found


def faults(names: list[str]) -> list[str]:
    r"""What should not be in a wheel, or is missing, in words."""
    unwanted = [n for n in names if n != DOOR and UNWANTED.search(n)]
    tops = {name.partition("/")[0] for name in names}
    others = [t for t in tops if t != "botorch_lse" and not t.endswith(".dist-info")]
    wanted = ["botorch_lse/py.typed", "botorch_lse/papers/mason2022/errata.md"]
    return [
        *(f"{name} is in the wheel" for name in sorted((*unwanted, *others))),
        *(f"{name} is not in the wheel" for name in wanted if name not in names),
    ]


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


def main() -> int:
    r"""Build, look, use; 1 if something is wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = build(folder)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        found = faults(names)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(names)} files")
        print("".join(f"{fault}\n" for fault in found), end="")
        if found:
            return 1
        (folder / "work").mkdir()
        use(environment(folder / "env", wheel), folder / "work")
    print("demo, table commands and tutorials run from the wheel")
    return 0


if __name__ == "__main__":
    sys.exit(main())
