r"""Every remedy that a message of ``botorch_lse.ax`` names, executed.

Each place of the package that raises has a case in ``remedies/``, or stands in
``NO_REMEDY`` with the reason.
"""

import pytest

from .remedies import acquisitions, spaces, stores, trials  # noqa: F401  (register)
from .remedies.cases import REMEDIES

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*out-of-design"),  # Ax says so, and goes on
    pytest.mark.filterwarnings("ignore:TypeDecorator"),
    pytest.mark.filterwarnings("ignore:Encountered exception:RuntimeWarning"),
]

DAMAGED = "the file is damaged or was edited: nothing can be done with it"
NO_REMEDY = {
    "__init__:#1": "Ax is not installed; `pip` is not for a test",
    "compat:check_ax_version#1": "an old Ax is installed; `pip` is not for a test",
    "node:LevelSetNode._take#1": "the run has ended",
    "recording:Record._check_file#1": "rights of files: see test_writers",
    "recording:held#1": "a link to itself: see test_stored_files",
    "recording:held#3": "rights of folders: see test_stored_files",
    "storage:_check_known#1": DAMAGED,
    "storage:decode_strategy#1": DAMAGED,
    "storage:_decode#1": DAMAGED,
    "storage:_decode_part#1": DAMAGED,
    "storage:read_pool#1": DAMAGED,
    "storage:decode_kernel#1": DAMAGED,
    "storage:_check_hash#1": DAMAGED,
    "storage:_decode_series#1": DAMAGED,
    "storage:decode_array#1": DAMAGED,
    "storage:decode_array#2": DAMAGED,
    "references:find#1": DAMAGED,
    "workers:begun_once.begin#1": "a worker of Dask died: see test_workers",
}


@pytest.mark.slow
def test_each_place_that_raises_has_a_case_or_a_reason():
    REMEDIES.check_all_there(NO_REMEDY)


@pytest.mark.parametrize("key", REMEDIES.cases, ids=", ".join)
def test_what_the_message_says_can_be_done(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    REMEDIES.play(key, tmp_path)
