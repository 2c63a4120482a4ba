r"""``kill -9`` at random moments of a stored run."""

import os
import random
import time

import pytest
from ax.core.trial_status import TrialStatus

from botorch_lse.ax import POOL_INDEX, run_experiment
from botorch_lse.ax.compat import as_stored
from tests.covering import covering
from tests.processes import in_a_new_process

from . import killed, several

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked runs"),
    pytest.mark.filterwarnings("ignore:TypeDecorator"),
]


def told(client):
    r"""Row, status and values of each trial."""
    experiment = client._experiment
    table = experiment.lookup_data().df
    values = {}
    if len(table) > 0:
        table = table.sort_values("metric_name")
        values = table.groupby("trial_index")["mean"].apply(tuple).to_dict()
    return {
        i: (t.arm.parameters[POOL_INDEX], t.status.name, values.get(i))
        for i, t in experiment.trials.items()
    }


def uninterrupted(tmp_path, kind, name):
    folder = tmp_path / "whole"
    folder.mkdir()
    client, path = killed.begin(folder, 0, kind, name)
    start = time.perf_counter()
    reason = run_experiment(client, killed.bench_of(name), storage=path)
    return told(client), reason, time.perf_counter() - start


def rounded(trials):
    return {
        i: (row, status, None if y is None else as_stored(y).tolist())
        for i, (row, status, y) in trials.items()
    }


def check(folder, number, kind, name, expected, reason):
    r"""Nothing measured is lost; what ran is asked again; the rest is as it was."""
    notes = killed.notes_of(folder, number)
    client, path = killed.load(folder, number, kind)
    before = told(client)
    done = [row for row, status, _ in before.values() if status == "COMPLETED"]
    measured = [int(row) for word, row in notes if word == "measured"]
    begun = [int(row) for word, row in notes if word == "begins"]
    # A row that begins is evidence that the one before it was recorded.
    recorded = begun[:-1]
    assert done[: len(recorded)] == recorded
    assert len(done) <= len(measured)
    for row, status, y in before.values():
        assert (status == "COMPLETED") == (y is not None), row
    running = sorted(client._experiment.trial_indices_by_status[TrialStatus.RUNNING])
    again = []

    def evaluate(parameters):
        again.append(parameters[POOL_INDEX])
        return killed.bench_of(name)(parameters)

    assert run_experiment(client, evaluate, storage=path) == reason
    assert again[: len(running)] == [before[i][0] for i in running]
    assert rounded(told(client)) == rounded(expected)
    return len(done), len(running)


def kill_at_random_moments(tmp_path, kind, n, name="LSEStrategy"):
    r"""For each kill how many trials were complete, were running, and would be all."""
    expected, reason, seconds = uninterrupted(tmp_path, kind, name)
    rng = random.Random(0)
    n_notes = 2 * len(expected)  # before and after each evaluation
    inner = range(2, n_notes - 2)  # one moment in each part, so that some cut midway
    parts = [inner[i * len(inner) // n : (i + 1) * len(inner) // n] for i in range(n)]
    moments = [rng.choice(part) for part in parts]
    in_a_new_process(killed.main, tmp_path, kind, name, seconds / n_notes, moments)
    return [
        (*check(tmp_path, i, kind, name, expected, reason), len(expected))
        for i in range(n)
    ]


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("kind", ["json", "db"])
def test_a_killed_run_goes_on(tmp_path, kind):
    kill_at_random_moments(tmp_path, kind, 1)


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("kind", ["json", "db"])
@pytest.mark.parametrize(
    "name", [killed.AUDITED, killed.REGION_AUDITED, killed.FRONT_AUDITED]
)
def test_a_run_killed_in_the_middle_of_an_audit_goes_on(tmp_path, kind, name):
    _, reason, _ = uninterrupted(tmp_path, kind, name)
    ends = ("(all above so far)", "(none found)", "(audited)")  # all of audits alone
    assert any(end in reason for end in ends)
    (tmp_path / "killed").mkdir()
    kill_at_random_moments(tmp_path / "killed", kind, 3, name)


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("kind", ["json", "db"])
def test_a_run_killed_at_any_of_eight_moments_goes_on(tmp_path, kind):
    ends = kill_at_random_moments(tmp_path, kind, 8)
    # Few kills may all come before the first result, after the last one or between two
    # trials, as the machine is busy or not; of eight some do not.
    assert any(0 < done < n for done, _, n in ends)
    assert any(running for _, running, _ in ends)


@pytest.mark.some(0, slow=3)
@covering("kind, name", ["json", "db"], [*several.NAMES, killed.REGION], in_slow=1)
def test_every_run_of_several_metrics_killed_at_any_moment_goes_on(
    tmp_path, kind, name
):
    kill_at_random_moments(tmp_path, kind, 2, name)
