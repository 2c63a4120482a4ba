import os
import subprocess
import sys
from pathlib import Path

import pytest

import botorch_lse
from research.benchmark.speed import memory_since, peak_memory

SCRIPT = """
from tqdm import tqdm
from research.benchmark.speed import in_fresh_process

def work(n):
    return sum(1 for _ in tqdm(range(n), disable=False))  # a lock between processes

if __name__ == "__main__":
    print([in_fresh_process(work, n) for n in (2, 3)])
"""


@pytest.mark.slow
def test_a_fresh_process_ends_by_itself_and_leaves_no_semaphores(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-W", "default", str(path)]
    here = {**os.environ, "PYTHONPATH": str(Path(botorch_lse.__file__).parents[1])}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, env=here
    )
    assert ended.stdout.split("\n")[0] == "[2, 3]"
    assert "leaked" not in ended.stderr


def test_the_growth_of_memory_is_never_negative():
    assert memory_since(peak_memory() + 2**30) == 0
    assert memory_since(peak_memory() - 2**30) >= 2**30 - 2**26
