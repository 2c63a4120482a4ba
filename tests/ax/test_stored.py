r"""Experiments that version 0.2.0 saved in the middle of a round (``stored/``)."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from ax.api.client import Client

from .stored.make import go_on
from .worlds import node_of, sqlite_storage, state_of

STORED = Path(__file__).parent / "stored"
ANSWERS = json.loads((STORED / "answers.json").read_text())
FIXED = ("lse", "gege")


def load(case, kind, folder):
    if kind == "json":
        return Client.load_from_json_file(str(STORED / f"{case}.json"))
    shutil.copy(STORED / f"{case}.db", folder / "runs.db")
    storage = sqlite_storage(folder / "runs.db")
    return Client.load_from_database(case, storage_config=storage)


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", "sqlite"])
@pytest.mark.parametrize("case", ANSWERS)
def test_what_the_first_version_measured_and_planned_is_there(case, kind, tmp_path):
    then = ANSWERS[case]
    state = state_of(load(case, kind, tmp_path))
    assert state.round == then["rounds"]
    assert state.observations.indices.tolist() == then["indices"]
    assert state.observations.y.tolist() == then["y"]
    assert state.plan.tolist() == then["plan"]


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", "sqlite"])
@pytest.mark.parametrize("case", FIXED)
def test_with_a_fixed_model_it_goes_on_as_the_first_version_would(case, kind, tmp_path):
    then = ANSWERS[case]
    client = load(case, kind, tmp_path)
    answer = state_of(client).classification
    assert (answer.above.int() - answer.below.int()).tolist() == then["side"]
    lower = torch.tensor(then["lower"], dtype=torch.float64)
    torch.testing.assert_close(answer.lower, lower, rtol=1e-10, atol=1e-12)
    out = {int(trial): row for trial, row in then["out"].items()}
    assert go_on(client, case, out, 3) == then["asked"]


@pytest.mark.some(0, slow=3)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_with_a_learnt_model_the_open_round_goes_on(kind, tmp_path):
    then = ANSWERS["melk"]
    client = load("melk", kind, tmp_path)
    out = {int(trial): row for trial, row in then["out"].items()}
    assert go_on(client, "melk", out, 1) == then["asked"][:1]
    assert state_of(client).round == then["rounds"] + 1
    assert node_of(client).strategy.batch_size == 4
