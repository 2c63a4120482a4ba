r"""Trieste's acquisition functions choose rows of a pool, see README.md.

``python trieste_rows.py bichon`` (or ``ranjan``, ``variance``) needs ``trieste`` and
nothing of ours. ``variance`` is the reduction of the variance weighted by the density
of the level (tIMSE); a batch of it is built greedily, as the function takes whole
batches. The others take one row: a batch is the ``q`` best rows.
"""

from __future__ import annotations

import sys

import gpflow
import numpy as np
import tensorflow as tf
from protocol import Chooser, serve
from trieste.acquisition.function.active_learning import (
    ExpectedFeasibility,
    IntegratedVarianceReduction,
)
from trieste.acquisition.interface import AcquisitionFunction
from trieste.data import Dataset
from trieste.models.gpflow import GaussianProcessRegression

CRITERIA = ("bichon", "ranjan", "variance")
AT_ONCE = 64
"""Candidates evaluated together: each takes a covariance with all rows."""
KERNELS = {
    "rbf": gpflow.kernels.SquaredExponential,
    "matern0.5": gpflow.kernels.Matern12,
    "matern1.5": gpflow.kernels.Matern32,
    "matern2.5": gpflow.kernels.Matern52,
}


def model_of(case: dict, data: Dataset) -> GaussianProcessRegression:
    r"""The process of the case with its hyper-parameters, after the data."""
    process = case["process"]
    kernel = KERNELS[process["kernel"]](
        variance=process["variance"], lengthscales=process["lengthscale"]
    )
    mean = gpflow.functions.Constant(process["mean"])
    model = gpflow.models.GPR(data.astuple(), kernel, mean, case["noise_var"])
    return GaussianProcessRegression(model)


def criterion_of(
    name: str, model: GaussianProcessRegression, case: dict, X: np.ndarray
) -> AcquisitionFunction:
    r"""A criterion of a batch, larger where it is better."""
    level = case["threshold"]
    if name == "variance":
        builder = IntegratedVarianceReduction(tf.constant(X), [level])
    else:
        # Half-width 2 as in the papers, where trieste's own number is 1.
        builder = ExpectedFeasibility(level, 2.0, 1 if name == "bichon" else 2)
    return builder.prepare_acquisition_function(model)


def scores(
    criterion: AcquisitionFunction, X: np.ndarray, chosen: list[int]
) -> np.ndarray:
    r"""The criterion of each row together with the rows chosen already."""
    before = np.broadcast_to(X[chosen], (len(X), len(chosen), X.shape[1]))
    batches = np.concatenate((before, X[:, None, :]), axis=1)
    # TensorFlow translates a function anew for each shape: fill the last block up.
    n_blocks = -(-len(X) // AT_ONCE)
    blocks = np.resize(batches, (n_blocks, AT_ONCE, *batches.shape[1:]))
    parts = [np.asarray(criterion(tf.constant(block))).reshape(-1) for block in blocks]
    return np.concatenate(parts)[: len(X)]


def start(name: str, case: dict) -> Chooser:
    r"""What chooses rows by a criterion."""
    X, q = np.array(case["X"]), case["q"]

    def choose(rows: list[int], y: list[float]) -> list[int]:
        data = Dataset(tf.constant(X[rows]), tf.constant(np.array(y)[:, None]))
        criterion = criterion_of(name, model_of(case, data), case, X)
        if name != "variance":
            return np.argsort(-scores(criterion, X, []))[:q].tolist()
        chosen: list[int] = []
        for _ in range(q):
            chosen.append(int(scores(criterion, X, chosen).argmax()))
        return chosen

    return choose


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CRITERIA:
        raise SystemExit(f"usage: trieste_rows.py {'|'.join(CRITERIA)}")
    serve(lambda case: start(sys.argv[1], case))
