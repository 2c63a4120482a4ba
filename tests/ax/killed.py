r"""Runs that are killed.

One process forks one run for each number of notes. Each run notes, before and after
each evaluation, what it evaluates; the notes reach the disk at once. When so many are
there, the run is killed after a random part of the seconds given, by SIGKILL or what
else is asked for.
"""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import torch
from ax.api.client import Client

from botorch_lse.ax import POOL_INDEX, run_experiment, save_client
from botorch_lse.strategies import Above, Below
from tests.processes import forked

from . import benches, several, test_regions_in_ax
from .test_pareto_in_ax import NOISE, gaussian, measure
from .worlds import client_for, grid_pool, lse, sqlite_storage

AUDITED = "LSEStrategy, audited"
REGION = "Strategy of a region"
REGION_AUDITED = "Strategy of a region, audited"
FRONT_AUDITED = "GEGEStrategy, audited"


def notes_of(folder, number):
    path = Path(folder) / f"notes_{number}.txt"
    if not path.exists():
        return []
    return [tuple(line.split()) for line in path.read_text().splitlines()]


def store_of(folder, number, kind):
    return Path(folder) / f"run_{number}.{kind}"


def new_client(name, **options):
    if name == "LSEStrategy":
        return client_for(lse(max_observations=15), **options)
    if name == AUDITED:
        # All is decided after the first rounds; most measurements are the audit's.
        strategy = lse(epsilon=20.0, audit=(0.2, 0.1), max_observations=15)
        return client_for(strategy, **options)
    if name == REGION:
        return test_regions_in_ax.client_for(test_regions_in_ax.build(), **options)
    if name == REGION_AUDITED:
        # With an accuracy by which all is decided soon.
        region = Above(0.2, 9.0, output="zinc") & Below(0.5, 9.0, output="lead")
        limit = {"audit": (0.2, 0.1), "max_observations": 15}
        return test_regions_in_ax.client_for(
            test_regions_in_ax.build(region, **limit), **options
        )
    if name == FRONT_AUDITED:
        limits = {"epsilon": (0.5, 10.0), "audit": (0.3, 0.1), "max_observations": 60}
        strategy = gaussian(pool=grid_pool(4), **limits)
        return client_for(strategy, "y, -z", **options)
    return client_for(several.make(name), "y, -z", **options)


def bench_of(name):
    if name in (REGION, REGION_AUDITED):
        return test_regions_in_ax.measure
    if name == FRONT_AUDITED:
        return front_bench
    return benches.bench if name in ("LSEStrategy", AUDITED) else several.bench


def front_bench(parameters):
    y, z = measure(grid_pool(4), parameters[POOL_INDEX])
    return {"y": (y, NOISE[0]), "z": (z, NOISE[1])}


def begin(folder, number, kind, name):
    path = store_of(folder, number, kind)
    if kind == "json":
        client = new_client(name)
        save_client(client, path)
        return client, path
    return new_client(name, storage_config=sqlite_storage(path)), None


def load(folder, number, kind):
    path = store_of(folder, number, kind)
    if kind == "json":
        return Client.load_from_json_file(str(path)), path
    storage = sqlite_storage(path)
    return Client.load_from_database("test", storage_config=storage), None


def noting(folder, number, bench):
    file = (Path(folder) / f"notes_{number}.txt").open("a")

    def note(*words):
        print(*words, file=file, flush=True)
        os.fsync(file.fileno())

    def evaluate(parameters):
        note("begins", parameters[POOL_INDEX])
        outcome = bench(parameters)
        note("measured", parameters[POOL_INDEX])
        return outcome

    return evaluate


def run(folder, number, kind, name, ready):
    client, path = begin(folder, number, kind, name)
    os.write(ready, b"!")
    run_experiment(client, noting(folder, number, bench_of(name)), storage=path)


def main(folder, kind, name, seconds, moments, number_of_signal=signal.SIGKILL):
    torch.set_num_threads(1)
    rng = random.Random(0)
    for number, n_notes in enumerate(moments):
        answer, ready = os.pipe()
        child = forked(partial(run, folder, number, kind, name, ready))
        os.close(ready)
        os.read(answer, 1)
        while len(notes_of(folder, number)) < n_notes:
            if os.waitpid(child, os.WNOHANG)[0]:
                break  # it ended by itself
            time.sleep(0.002)
        else:
            time.sleep(rng.uniform(0, seconds))
            os.kill(child, number_of_signal)
            os.waitpid(child, 0)
