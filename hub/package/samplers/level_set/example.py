"""Find the depths at which a noisy curve is above 0.3, by as few trials as needed."""

from __future__ import annotations

import math
import os
import random

import optuna
import optunahub
import torch

from botorch_lse import Above, Pool, Strategy

PACKAGE = "samplers/level_set"
# A folder with the registry's layout, for a package that is not published yet.
ROOT = os.environ.get("OPTUNAHUB_REGISTRY")
hub = (
    optunahub.load_module(PACKAGE)
    if ROOT is None
    else optunahub.load_local_module(PACKAGE, registry_root=ROOT)
)


def measure(trial: optuna.Trial) -> float:
    """Measure the curve at a depth."""
    depth = trial.suggest_float("depth", 0, 10)
    return math.sin(depth) + 0.02 * random.Random(trial.number).gauss(0, 1)


pool = Pool(torch.linspace(0, 10, 41).unsqueeze(-1), names=("depth",))
sampler = hub.LevelSetSampler(Strategy(pool, Above(0.3, epsilon=0.05)))
study = optuna.create_study(sampler=sampler)
study.optimize(measure, n_trials=200)
state = sampler.state(study)
print(state.stop_reason, state.classification)
