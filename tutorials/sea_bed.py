# %% [markdown]
# # Where is the sea deeper than 100 m?
#
# A ship takes noisy soundings of a real sea bed, ten at a time. We want to know of
# every cell of the chart whether it is deeper than 100 m, with as few soundings as
# possible: a contour, or excursion set, by active learning. First with Ax, in about
# twenty lines; then the same in plain BoTorch.

# %%
import logging
import os

import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted

from botorch_lse import Above, GaussianProcess, Strategy
from botorch_lse.ax import (
    LevelSetAnalysis,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.datasets import bathymetry
from botorch_lse.plotting import plot_level_set

logging.disable(logging.INFO)  # Ax logs a line per trial
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
BUDGET = 60 if QUICK else 400
noise = torch.Generator().manual_seed(0)
chart = bathymetry()
pool, depth = chart.pool, chart.depth  # depth: the truth, only the "ship" may look
pool.to_frame().head()


# %%
def sound(row: int) -> float:
    """What the ship's sonar says: the depth with noise of 5 m."""
    return float(depth[row] + 5.0 * torch.randn((), generator=noise))


# %% [markdown]
# ## With Ax
# The pool is the search space, the strategy proposes batches and says when it is done.

# %%
strategy = Strategy(
    pool,
    Above(100.0, epsilon=6.0),  # metres; cells within 6 m may go to either side
    model=GaussianProcess(noise_std=5.0, n_initial=30),
    batch_size=10,
    beta=9.0,  # three standard deviations
    max_observations=BUDGET,
)
client = Client()
client.configure_experiment(parameters=pool_parameters(pool), name="sea_bed")
client.configure_optimization(objective="depth")  # its sign plays no role
client.set_generation_strategy(level_set_generation_strategy(strategy))
while True:
    try:
        trials = client.get_next_trials(max_trials=10)
    except GenerationStrategyCompleted as done:
        print(done)
        break
    for index, parameters in trials.items():
        y = sound(parameters["pool_index"])
        client.complete_trial(index, raw_data={"depth": (y, 5.0)})

# %% [markdown]
# The answer is the pool's table with columns added: the side of every cell, the
# probability of being above, and the confidence bounds.

# %%
answer = level_set(client)
shown = ["x_km", "y_km", "side", "probability_above", "lower", "upper"]
print(answer[shown].sample(5, random_state=0).round(2).to_string())
print(answer["side"].value_counts().to_string())
card = client.compute_analyses([LevelSetAnalysis()], display=False)[0]
print(card.title)

# %% [markdown]
# ## In plain BoTorch
# Every piece is an ordinary BoTorch object: fit a model, let `LSEAmbiguity` choose a
# batch from the pool (pending points shrink the variance, so that the batch spreads),
# and read the classes off the confidence regions.

# %%
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf_discrete
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_lse.acquisition import LSEAmbiguity
from botorch_lse.confidence import classify, confidence_regions

rows = torch.randperm(len(pool), generator=noise)[:30]
train_X = pool.X[rows]
train_Y = torch.tensor([[sound(int(row))] for row in rows], dtype=torch.float64)
rounds = torch.zeros(30, dtype=torch.long)

for round_ in range(1, 3 if QUICK else 20):
    model = SingleTaskGP(
        train_X,
        train_Y,
        torch.full_like(train_Y, 25.0),  # the noise variance
        input_transform=Normalize(2, bounds=pool.bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    ambiguity = LSEAmbiguity(model, threshold=100.0, beta=9.0, rounds=rounds)
    X, _ = optimize_acqf_discrete(ambiguity, q=10, choices=pool.X)
    y = [[sound(pool.nearest(x))] for x in X]
    train_X = torch.cat((train_X, X))
    train_Y = torch.cat((train_Y, torch.tensor(y, dtype=torch.float64)))
    rounds = torch.cat((rounds, torch.full((len(X),), round_)))

regions = confidence_regions(model, pool, beta=9.0, rounds=rounds[: -len(X)])
classes = classify(regions, threshold=100.0, epsilon=6.0)
print(classes)
right = (classes.best_guess == (depth > 100)).double().mean()
print(f"{float(right):.1%} of the cells are on their true side")

# %% [markdown]
# ## The picture

# %%
axes = plot_level_set(classes, threshold=100.0, truth=depth)
axes.set(title="Deeper than 100 m?", xlabel="east (km)", ylabel="north (km)")
axes.figure.savefig("sea_bed.png", dpi=120, bbox_inches="tight")
