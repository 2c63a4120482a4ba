r"""The models and the rule of gpmp-contrib choose rows of a pool, see README.md.

``python gpmp_rows.py`` needs ``gpmp-contrib`` and nothing of ours. After each value its
model (Matern 5/2, constant mean, priors on variance and lengthscales, which are left
out where they refuse) is selected anew, as ``ExcursionSetGridSearch`` does. The next
row has the largest misclassification probability times variance; rows with a mean above
the level are above.
"""

from __future__ import annotations

import os

os.environ["GPMP_BACKEND"] = "numpy"

import gpmpcontrib.samplingcriteria as criteria
import numpy as np
from gpmpcontrib import SequentialPrediction
from gpmpcontrib.models.models_REMAP import Model_ConstantMean_Maternp_REMAP
from gpmpcontrib.models.models_REML import Model_ConstantMean_Maternp_REML
from protocol import Chooser, serve

SMOOTHNESS = 2
"""``p`` of a Matern covariance of the order ``p + 1/2``."""


def start(case: dict) -> Chooser:
    r"""What chooses rows, of inputs scaled to the unit cube."""
    X, level = np.array(case["X"]), case["threshold"]
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    processes = [
        SequentialPrediction(
            kind(
                "gpmp",
                output_dim=1,
                mean_specification={"type": "constant"},
                covariance_specification={"p": SMOOTHNESS},
            )
        )
        for kind in (Model_ConstantMean_Maternp_REMAP, Model_ConstantMean_Maternp_REML)
    ]

    def choose(rows: list[int], y: list[float]) -> tuple[list[int], list[int]]:
        data = X[rows], np.array(y)[:, None]
        for process in processes:
            try:  # its priors refuse some small sets of values
                process.set_data_with_model_selection(*data)
                break
            except RuntimeError:
                if process is processes[-1]:
                    raise
        mean, variance = process.predict(X)
        score = criteria.excursion_wMSE(level, mean, variance).reshape(-1)
        score[rows] = -np.inf
        above = np.flatnonzero(mean.reshape(-1) > level)
        return np.argsort(-score)[: case["q"]].tolist(), above.tolist()

    return choose


if __name__ == "__main__":
    serve(start)
