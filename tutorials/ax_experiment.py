# %% [markdown]
# # A plain Ax experiment: you keep the loop
#
# Which of 120 beams bend by more than 4 mm? Some were loaded last year, and the test
# bench is run by a program of your own, which shall go on being in charge.
#
# `GenerationStrategy.gen` proposes, you measure and attach. With an existing search
# space, rows measured elsewhere, and everything in two JSON files.

# %%
import logging
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ax.core.arm import Arm
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.optimization_config import OptimizationConfig
from ax.core.parameter import ChoiceParameter, ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.storage.json_store.decoder import generation_strategy_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.load import load_experiment
from ax.storage.json_store.save import save_experiment

from botorch_lse import Above, GaussianProcess, Pool, Strategy
from botorch_lse.ax import level_set, level_set_generation_strategy

logging.disable(logging.INFO)
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)

# %% [markdown]
# ## An existing search space
# The pool's columns are its parameters: no row numbers to keep in mind. The pool is the
# part of the space that can be built, here 120 beams in no order: a span in metres, a
# load in kilonewtons, and wood. Which bend by more than 4 mm?

# %%
space = SearchSpace(
    [
        RangeParameter("span", ParameterType.FLOAT, 2.0, 8.0),
        RangeParameter("load", ParameterType.FLOAT, 0.0, 1.0),
        ChoiceParameter(
            "wood",
            ParameterType.STRING,
            ["fir", "oak"],
            is_ordered=False,
            sort_values=False,
        ),
    ]
)
table = pd.DataFrame(
    {
        "span": rng.uniform(2, 8, 120).round(2),
        "load": rng.uniform(0, 1, 120).round(3),
        "wood": rng.choice(["fir", "oak"], 120),
    }
)
truth = table["span"] ** 1.5 * table["load"] * np.where(table["wood"] == "oak", 0.7, 1)
strategy = Strategy(
    Pool(table),
    Above(4.0, epsilon=0.3),
    model=GaussianProcess(noise_std=0.3, n_initial=16),
    beta=4.0,
    batch_size=8,
    max_observations=40 if QUICK else 100,
)
experiment = Experiment(
    name="beams",
    search_space=space,
    metrics=[Metric("bend")],
    optimization_config=OptimizationConfig(
        Objective("-bend", metric_name_to_signature={"bend": "bend"})
    ),
)
gs = level_set_generation_strategy(strategy)

# %% [markdown]
# ## Measured elsewhere
# A trial of your own counts, if its parameters are a row of the pool.

# %%
known = experiment.new_trial().add_arm(Arm(table.iloc[3].to_dict()))
known.mark_running(no_runner_required=True)
known.update_trial_data({"bend": (float(truth[3]), 0.3)})
known.mark_completed()


# %% [markdown]
# ## The loop
# A round is asked for in pieces of four; `DataRequiredError` says that the rest is out.


# %%
def row_of(arm: Arm) -> int:
    """Where an arm stands in the table."""
    same = (table[list(arm.parameters)] == list(arm.parameters.values())).all(axis=1)
    return int(np.flatnonzero(same)[0])


def measure(trial) -> None:
    """Attach a value for each arm."""
    values = {}
    for arm, weight in trial.arm_weights.items():
        sem = 0.3 / weight**0.5
        value = truth[row_of(arm)] + sem * rng.standard_normal()
        values[arm.name] = {"bend": (float(value), sem)}
    trial.attach_batch_trial_data(values)
    trial.mark_completed()


while True:
    running = [t for t in experiment.trials.values() if t.status.is_running]
    try:
        trial = experiment.new_batch_trial(generator_runs=gs.gen(experiment, n=4)[0])
        trial.mark_running(no_runner_required=True)
    except DataRequiredError:
        for trial in running:
            measure(trial)
    except GenerationStrategyCompleted as done:
        print(done)
        break

# %% [markdown]
# ## Two files, and the answer from them

# %%
save_experiment(experiment, str(folder / "beams.json"))
stored = object_to_json(gs)  # small: the pool lies in the experiment's properties
again = load_experiment(str(folder / "beams.json"))
answer = level_set(again, generation_strategy_from_json(stored, again))
print(answer["side"].value_counts().to_string())
print(answer.head(3).round(2).to_string())

# %% [markdown]
# Every beam at its span and load, one panel for each wood; the line is where the true
# bend is 4 mm.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
colours = {"above": "#1f4a8c", "below": "#e3b84d", "undecided": "#9aa5a3"}
span, load = np.linspace(2, 8, 50), np.linspace(0, 1, 50)
for panel, (wood, factor) in zip(panels, {"fir": 1, "oak": 0.7}.items(), strict=True):
    for side, colour in colours.items():
        part = answer[(answer["wood"] == wood) & (answer["side"] == side)]
        panel.scatter(part["span"], part["load"], c=colour, s=22, label=side)
    bend = factor * span[None, :] ** 1.5 * load[:, None]
    panel.contour(span, load, bend, levels=[4.0], colors="#c8002f", linewidths=1)
    panel.set(title=wood, xlabel="span (m)")
panels[0].set_ylabel("load (kN)")
panels[0].plot([], [], color="#c8002f", lw=1, label="truly 4 mm")
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
)
figure.savefig(folder / "beams.png", dpi=120)
