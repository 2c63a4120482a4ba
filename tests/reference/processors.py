r"""Run tests with the instructions of several processors, which round otherwise.

``python -m tests.reference.processors FILE ...`` (``make processors``) runs the files
once for each set of instructions that this processor has, and names the sets that it
does not have as not tried: a process that is told to use those dies of an illegal
instruction. ``ATEN_CPU_CAPABILITY=avx2`` in the environment is taken for the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import torch

SETS = {
    "DEFAULT": ("default", "SSE4_2", "COMPATIBLE"),
    "AVX2": ("avx2", "AVX2", "AUTO"),
    "AVX512": ("avx512", "AVX512", "AUTO"),
}
"""Torch's name of each set, small to large, and what torch and MKL are told."""


def tried(capability: str) -> tuple[list[str], list[str]]:
    r"""The sets that a processor has, and those that it does not have.

    Args:
        capability: What ``torch.backends.cpu.get_cpu_capability()`` says. A name that
            is not in ``SETS`` (another family of processors) stands for plain
            instructions.
    """
    names = list(SETS)
    last = names.index(capability) if capability in names else 0
    return names[: last + 1], names[last + 1 :]


def run(name: str, files: Sequence[str]) -> int:
    r"""Run the tests with one set of instructions.

    Returns:
        The exit status of pytest.
    """
    aten, mkl, reproducible = SETS[name]
    settings = {
        "ATEN_CPU_CAPABILITY": aten,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "MKL_CBWR": reproducible,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *files]
    return subprocess.run(command, env={**os.environ, **settings}).returncode


def main(files: Sequence[str]) -> int:
    r"""Run the tests with every set of instructions there is; stop where one fails."""
    capability = torch.backends.cpu.get_cpu_capability()
    present, absent = tried(capability)
    for name in present:
        print(f"== {name}", flush=True)
        if status := run(name, files):
            return status
    for name in absent:
        print(f"== {name}: not tried, this processor ({capability}) does not have it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
