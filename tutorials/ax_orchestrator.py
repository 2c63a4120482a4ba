# %% [markdown]
# # Ax's Orchestrator: batch trials with weights, and a reason to stop
#
# Where on a field of 1 km x 1 km is a reading above 0.8? Readings are noisy, so that
# some places are read several times, and somebody wants to know why it ended.
#
# An orchestrator starts trials by itself, here batch trials: replicates of a row are
# the weight of its arm.

# %%
import logging
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.optimization_config import OptimizationConfig
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.runner import Runner
from ax.core.search_space import SearchSpace
from ax.core.trial_status import TrialStatus
from ax.orchestration.orchestrator import Orchestrator, OrchestratorOptions
from ax.orchestration.orchestrator_options import TrialType
from ax.utils.common.result import Ok

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetGlobalStoppingStrategy,
    level_set,
    level_set_generation_strategy,
)
from botorch_lse.strategies import MELKStrategy

logging.disable(logging.INFO)
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
SIDE = 8 if QUICK else 15

# %% [markdown]
# ## A pool with a known noise
# A field of 1 km x 1 km: where is the reading above 0.8?

# %%
line = np.linspace(0, 1, SIDE)
X = np.array([[a, b] for a in line for b in line])
truth = np.sin(5 * X[:, 0]) + X[:, 1]
strategy = MELKStrategy(
    Pool(X, names=["east", "north"]),
    threshold=0.8,
    noise_std=0.2,
    epsilon=0.15,
    beta=4.0,
    batch_size=12,
    n_initial=12,
    max_observations=60 if QUICK else 240,
)


# %% [markdown]
# ## What Ax needs: how a trial runs and where its data come from
# A weighted arm is a mean of so many replicates: its standard error is smaller.


# %%
class Field(Runner):
    """The trial is done at once."""

    def run(self, trial):
        return {}

    def poll_trial_status(self, trials):
        return {TrialStatus.COMPLETED: {trial.index for trial in trials}}


class Reading(Metric):
    """Means of replicates."""

    def fetch_trial_data(self, trial, **kwargs):
        rng = np.random.default_rng(trial.index)
        lines = []
        for arm, weight in trial.arm_weights.items():
            sem = 0.2 / weight**0.5
            y = truth[arm.parameters[POOL_INDEX]] + sem * rng.standard_normal()
            place = {"trial_index": trial.index, "arm_name": arm.name}
            names = {"metric_name": "reading", "metric_signature": "reading"}
            lines.append({**place, **names, "mean": y, "sem": sem})
        return Ok(Data(df=pd.DataFrame(lines)))


# %% [markdown]
# ## Run to the stop
# The search space is one whole-number parameter, the row. The orchestrator stops by
# itself when the strategy is done; the stopping strategy stops it before it asks in
# vain, and says why.

# %%
row = RangeParameter(POOL_INDEX, ParameterType.INT, 0, len(strategy.pool) - 1)
experiment = Experiment(
    name="orchestrated",
    search_space=SearchSpace([row]),
    metrics=[Reading(name="reading")],
    optimization_config=OptimizationConfig(
        # The sign plays no role.
        Objective("reading", metric_name_to_signature={"reading": "reading"})
    ),
    runner=Field(),
)
generation_strategy = level_set_generation_strategy(strategy)
stopping = LevelSetGlobalStoppingStrategy(generation_strategy)
orchestrator = Orchestrator(
    experiment=experiment,
    generation_strategy=generation_strategy,
    options=OrchestratorOptions(
        trial_type=TrialType.BATCH_TRIAL,
        batch_size=12,
        init_seconds_between_polls=0,
        global_stopping_strategy=stopping,
    ),
)
orchestrator.run_n_trials(max_trials=100)
print(stopping.should_stop_optimization(experiment)[1])

# %%
answer = level_set(experiment, generation_strategy)
print(answer["side"].value_counts().to_string())
weights = [w for t in experiment.trials.values() for w in t.arm_weights.values()]
print(f"{sum(weights):g} measurements on {len(weights)} arms")
right = ((answer["side"] == "above") == (truth > 0.8))[answer["side"] != "undecided"]
print(f"{right.mean():.1%} of the decided rows are on their true side")

# %% [markdown]
# A dot's size is the number of measurements: most go where the field is near the level.

# %%
figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
colours = {"above": "#1f4a8c", "below": "#f3cf73", "undecided": "#9aa5a3"}
for side, colour in colours.items():
    part = answer[answer["side"] == side]
    axes.scatter(part["east"], part["north"], c=colour, marker="s", s=60, label=side)
taken = answer[answer["n_observations"] > 0]
size = 8 * taken["n_observations"]
axes.scatter(taken["east"], taken["north"], c="#c8002f", s=size, label="measured")
grid = truth.reshape(SIDE, SIDE).T
axes.contour(line, line, grid, levels=[0.8], colors="black", linewidths=1)
axes.plot([], [], color="black", lw=1, label="truly 0.8")
axes.set(xlabel="east (km)", ylabel="north (km)", aspect="equal")
axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
figure.legend(loc="outside lower center", ncols=3)
figure.savefig("orchestrated.png", dpi=120)
