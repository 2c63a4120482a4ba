r"""Build the conda recipe without a conda channel, and look into the package.

``python -m tests.reference.recipe`` (``make recipe``) makes a channel of three packages
out of this interpreter, pip and setuptools, lets rattler-build parse, render and build
``conda/recipe.yaml`` by it, and looks for entry point, licence and files. What the
package needs when it runs is not in that channel, so the recipe's own tests do not run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.reference.wheel import ROOT, tracked

SITE = "lib/python3.11/site-packages"
"""Where the recipe's Python, 3.11, has its packages."""
Files = dict[str, bytes | Path]
"""What a package holds by its place: a file's content, or what a link leads to."""


def add(tar: tarfile.TarFile, name: str, content: bytes | Path) -> dict[str, Any]:
    r"""Put a file or a link into an archive, and describe it as conda does."""
    info = tarfile.TarInfo(name)
    if isinstance(content, Path):
        info.type, info.linkname = tarfile.SYMTYPE, str(content)
        tar.addfile(info)
        return {"_path": name, "path_type": "softlink"}
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))
    digest = hashlib.sha256(content).hexdigest()
    found = {"_path": name, "path_type": "hardlink", "sha256": digest}
    return found | {"size_in_bytes": len(content)}


def write_package(
    folder: Path, name: str, version: str, files: Files
) -> dict[str, dict[str, Any]]:
    r"""Write a package, and give its line in the channel's list."""
    depends = [] if name == "python" else ["python"]
    index = {"name": name, "version": version, "build": "0", "build_number": 0}
    index |= {"depends": depends, "subdir": folder.name}
    path = folder / f"{name}-{version}-0.tar.bz2"
    with tarfile.open(path, "w:bz2", compresslevel=1) as tar:
        paths = [add(tar, place, content) for place, content in files.items()]
        table = {"paths": paths, "paths_version": 1}
        for part, content in (("index", index), ("paths", table)):
            add(tar, f"info/{part}.json", json.dumps(content).encode())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {path.name: index | {"sha256": digest, "size": path.stat().st_size}}


def write_channel(channel: Path) -> None:
    r"""Write a channel that has what the recipe is built with."""
    folder, site = channel / "linux-64", channel / "site"
    folder.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site)]
    subprocess.run([*pip, "pip", "setuptools>=77"], check=True)
    home = Path(sys.base_prefix, "bin")
    # A virtual environment in its prefix: a link, and where the interpreter is at home.
    names = ("python", "python3", "python3.11")
    python: Files = {f"bin/{name}": home / "python3.11" for name in names}
    python["pyvenv.cfg"] = f"home = {home}\n".encode()
    listed = write_package(folder, "python", platform.python_version(), python)
    for name in ("pip", "setuptools"):
        (record,) = site.glob(f"{name}-*.dist-info")
        version = record.name.removesuffix(".dist-info").partition("-")[2]
        found = [p for p in site.rglob("*") if p.is_file() and p.suffix != ".pyc"]
        places = {p: p.relative_to(site) for p in found}
        own = {p: w for p, w in places.items() if w.parts[0].startswith(name)}
        files: Files = {f"{SITE}/{where}": p.read_bytes() for p, where in own.items()}
        listed |= write_package(folder, name, version, files)
    for subdir, packages in (("linux-64", listed), ("noarch", {})):
        (channel / subdir).mkdir(exist_ok=True)
        table = {"info": {"subdir": subdir}, "packages": packages}
        text = json.dumps(table | {"packages.conda": {}, "repodata_version": 1})
        (channel / subdir / "repodata.json").write_text(text, encoding="utf-8")
    shutil.rmtree(site)


def faults(names: list[str], link: str, known: set[str]) -> list[str]:
    r"""What the package lacks, or has and should not have, in words.

    Args:
        names: The files of the package, ``info`` included.
        link: Its ``info/link.json``.
        known: The files of the package in the repository.
    """
    found = {name.removeprefix("site-packages/") for name in names}
    ours = {name for name in found if name.startswith("botorch_lse/")}
    entry = "botorch-lse = botorch_lse.__main__:command"
    there = {
        "the entry point": entry in json.loads(link)["noarch"].get("entry_points", []),
        "the licence": "info/licenses/LICENSE" in found,
        "what pip says of it": any(name.endswith("dist-info/RECORD") for name in found),
    }
    return [
        *(f"{what} is missing" for what, is_there in there.items() if not is_there),
        *(f"{name} is in the package" for name in sorted(ours - known)),
        *(f"{name} is not in the package" for name in sorted(known - ours)),
    ]


def build(folder: Path) -> Path:
    r"""The package of this clone's last commit, made in a folder."""
    import rattler_build

    clone = ["git", "clone", "--quiet", str(ROOT), str(folder / "clone")]
    subprocess.run(clone, check=True)  # nothing that git does not know
    write_channel(folder / "channel")
    recipe = rattler_build.Stage0Recipe.from_file(folder / "clone/conda/recipe.yaml")
    (built,) = recipe.run_build(
        tool_config=rattler_build.ToolConfiguration(test_strategy="skip"),
        output_dir=folder / "out",
        channels=[(folder / "channel").as_uri()],
        package_format="tar-bz2",  # which Python can read
    )
    (path,) = built.packages
    return Path(path)


def main() -> int:
    r"""Build, look; 1 if something is wrong, 2 where nothing can be built."""
    if importlib.util.find_spec("rattler_build") is None:
        print("There is no rattler-build here: `pip install py-rattler-build`.")
        return 2
    if platform.python_version_tuple()[:2] != ("3", "11"):
        print("The recipe is built by Python 3.11: call this with one.")
        return 2
    with tempfile.TemporaryDirectory() as place:
        path = build(Path(place))
        with tarfile.open(path) as package:
            names, link = package.getnames(), package.extractfile("info/link.json")
            assert link is not None
            found = faults(names, link.read().decode(), tracked())
        print(f"{path.name}: {path.stat().st_size:,} bytes, {len(names)} files")
    print("".join(f"{fault}\n" for fault in found), end="")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
