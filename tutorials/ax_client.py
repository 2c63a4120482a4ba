# %% [markdown]
# # Ax's Client: in parallel, interrupted, resumed
#
# Which doses, hours and mixes dissolve more than 1 g? Six beakers stand side by side,
# an hour costs money, and the computer beside them may be switched off at any moment.
#
# `run_experiment` asks, evaluates on any executor and records, until the strategy is
# done. Kill it at any moment: what was recorded is in the file.

# %%
import logging
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from botorch_lse import Above, GaussianProcess, Pool, Strategy
from botorch_lse.ax import (
    BatchAnalysis,
    ProbabilityAnalysis,
    ProgressAnalysis,
    SliceAnalysis,
    grid_pool,
    level_set,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.plotting import plot_progress, plot_slices

logging.disable(logging.INFO)  # Ax logs a line per trial
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A grid of ordinary Ax parameters
# The rows of the pool are all combinations; dose is on a log scale for the model, too.

# %%
parameters = [
    RangeParameterConfig(
        name="dose", bounds=(1.0, 100.0), parameter_type="float", scaling="log"
    ),
    RangeParameterConfig(name="hours", bounds=(1, 12), parameter_type="int"),
    ChoiceParameterConfig(
        name="mix", values=["acid", "base"], parameter_type="str", is_ordered=False
    ),
]
pool = grid_pool(parameters, points={"dose": 9, "hours": 6})
print(len(pool), pool.names)

# %% [markdown]
# ## The experiment
# An hour costs one unit, a batch is six beakers. The strategy asks for what tells most
# about the sides per cost; once few sides are in doubt it settles these, at any cost.

# %%
costs = torch.tensor(pool.to_frame()["hours"].to_numpy(dtype=float))
pool = Pool(pool.X, costs=costs, names=pool.names, table=pool.to_frame())
strategy = Strategy(
    pool,
    Above(1.0, epsilon=0.1),
    model=GaussianProcess(noise_std=0.1, n_initial=12),
    beta=4.0,
    batch_size=6,
    max_observations=24 if QUICK else 90,
)
client = Client()
client.configure_experiment(parameters=parameters, name="beakers")
client.configure_optimization(objective="amount")  # its sign plays no role
client.set_generation_strategy(level_set_generation_strategy(strategy, seed=1))


# %%
def evaluate(parameters: dict) -> tuple[float, float]:
    """The bench: a number, or a number with its standard error."""
    x = torch.tensor([parameters["dose"]]).log10().item()
    y = 1.5 * x - 0.6 * x**2 + 0.05 * parameters["hours"]
    y += 0.15 if parameters["mix"] == "acid" else -0.15
    generator = torch.Generator().manual_seed(int(1000 * y))
    return y + 0.1 * torch.randn((), generator=generator).item(), 0.1


# %% [markdown]
# ## Run, be interrupted, go on
# The first call stops after eight trials, as if somebody had switched it off. The
# second loads the file and goes on: the same rows as without the interruption.

# %%
path = folder / "beakers.json"
with ThreadPoolExecutor(2) as workers:
    options = {"executor": workers, "storage": path, "on_error": "retry"}
    print(run_experiment(client, evaluate, max_trials=8, **options))
    client = Client.load_from_json_file(str(path))
    print(run_experiment(client, evaluate, **options))

# %% [markdown]
# ## The answer, a prediction, and the pictures
# Each picture is an Ax card; matplotlib draws the same data frame.

# %%
answer = level_set(client)
print(answer["side"].value_counts().to_string())
row = answer[["dose", "hours", "mix"]].iloc[40].to_dict()
row["hours"] = int(row["hours"])  # Ax wants a whole number
mean, error = client.predict([row])[0]["amount"]
print(f"expected at {row}: {mean:.2f} +- {error:.2f}")
analyses = [SliceAnalysis(), ProbabilityAnalysis(), BatchAnalysis(), ProgressAnalysis()]
cards = client.compute_analyses(analyses, display=False)
for card in cards:
    print(card.title)
plot_slices(cards[0].df).savefig(folder / "slices.png", dpi=120)
plot_progress(cards[3].df).savefig(folder / "progress.png", dpi=120)
spent = cards[3].df["cost"].iloc[-1]
print(f"{spent:g} hours")
