r"""AEPsych's model and acquisition functions choose stimuli of a pool, see README.md.

``python aepsych_answers.py EAVC`` (or ``GlobalMI``, ``GlobalSUR``, ``ApproxGlobalSUR``)
needs ``aepsych`` and nothing of ours.

Results are answers yes and no. The model is AEPsych's own, ``GPClassificationModel`` as
it is by default, fitted anew to all answers; targets are 256 quasi-random points, its
own number, drawn anew for each decision. Criteria know no rows that are being measured:
a batch is the ``q`` best rows.
"""

from __future__ import annotations

import logging
import math
import sys
import time
import warnings
from contextlib import chdir
from tempfile import TemporaryDirectory

import torch
from protocol import Chooser, serve

with TemporaryDirectory() as folder, chdir(folder):
    # It makes a folder `logs` where it is imported.
    from aepsych.acquisition import EAVC, ApproxGlobalSUR, GlobalMI, GlobalSUR
    from aepsych.models import GPClassificationModel

CRITERIA = {
    "EAVC": EAVC,
    "GlobalMI": GlobalMI,
    "GlobalSUR": GlobalSUR,
    "ApproxGlobalSUR": ApproxGlobalSUR,
}
AT_ONCE = 32
"""Candidates evaluated together: each takes a covariance of all targets."""


def start(name: str, case: dict) -> Chooser:
    r"""What chooses rows by a criterion, in the unit cube."""
    X = torch.tensor(case["X"], dtype=torch.float64)
    test = torch.tensor(case["test"], dtype=torch.float64)
    d = X.shape[-1]
    low, high = torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    level = torch.special.ndtri(torch.tensor(case["level"], dtype=torch.float64))
    torch.manual_seed(case["seed"])

    def choose(rows: list[int], y: list[float]) -> dict[str, object]:
        began = time.process_time()
        model = GPClassificationModel(d)
        model.fit(X[rows], torch.tensor(y, dtype=torch.float64))
        model.eval()
        criterion = CRITERIA[name](low, high, model, target=case["level"])
        with torch.no_grad():
            parts = [criterion(some) for some in X.unsqueeze(-2).split(AT_ONCE)]
        scores = torch.cat(parts).nan_to_num(-math.inf)
        best = scores.topk(case["q"]).indices.tolist()
        seconds = time.process_time() - began
        with torch.no_grad():
            mean, variance = model.predict(test)
        below = torch.special.ndtr((level - mean) / variance.sqrt())
        return {"rows": best, "below": below.tolist(), "seconds": seconds}

    return choose


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CRITERIA:
        raise SystemExit(f"usage: aepsych_answers.py {'|'.join(CRITERIA)}")
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    serve(lambda case: start(sys.argv[1], case))
