r"""Seconds and bytes, each measurement in a process of its own, on one core or GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import torch

from botorch_lse._device import CPU

Result = TypeVar("Result")

MIB = 2**20


@dataclass
class Cost:
    r"""What a piece of work took.

    Args:
        seconds: Wall-clock time.
        peak: Growth of the process's peak memory, bytes.
        cpu: Seconds of this process on any core; others do not count.
    """

    seconds: float = 0.0
    peak: int = 0
    cpu: float = 0.0


@contextmanager
def measured(device: torch.device = CPU) -> Iterator[Cost]:
    r"""Fills in the cost of the ``with`` block when it ends.

    The peak is read as growth, so it is meaningful once per process, before anything
    else needed much memory: see ``in_fresh_process``.

    Args:
        device: What computes. A GPU is waited for, and the peak is that of its memory.
    """
    synchronise(device)
    cost, peak = Cost(), peak_memory(device)
    began, worked = time.perf_counter(), time.process_time()
    yield cost
    synchronise(device)
    cost.seconds = time.perf_counter() - began
    cost.cpu = time.process_time() - worked
    cost.peak = memory_since(peak, device)


def synchronise(device: torch.device) -> None:
    r"""Wait until a GPU has done what it was told, which it does while we go on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def memory_since(peak: int, device: torch.device = CPU) -> int:
    r"""Growth of the peak memory since it was ``peak``, bytes.

    At least 0: Linux keeps its counters by processor and adds them up now and then, so
    that a peak read later can be smaller by some pages.
    """
    return max(peak_memory(device) - peak, 0)


def peak_memory(device: torch.device = CPU) -> int:
    r"""Peak resident memory of this process, or what it had of a GPU's, bytes.

    From ``/proc`` where it exists, because ``getrusage`` there also counts the parent
    before ``exec``.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    r"""``function(*arguments)`` in a new process on one thread.

    Args:
        function: A module-level function; its result must be picklable.
        arguments: Picklable.
    """
    # An executor lets its process end by itself; a `Pool` kills it, and then the locks
    # that were made there (tqdm's) are reported as leaked.
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=one_thread) as executor:
        return executor.submit(function, *arguments).result()


def one_thread() -> None:
    r"""Keep torch on one core."""
    torch.set_num_threads(1)


def target(value: str, met: bool) -> str:
    r"""A measured value with its verdict."""
    return f"{value}: {'met' if met else 'MISSED'}"
