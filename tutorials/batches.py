# %% [markdown]
# # Where do the batches fall?
#
# A ship that takes ten soundings per trip wants ten that are good *together* (active
# learning in batches). Four rules plan such batches on a real sea bed, to find where it
# is deeper than 100 m:
#
# - **MELK** takes an optimal design: the ten that make the worst remaining variance of
#   the undecided cells smallest, replicates included.
# - **Variance reduction** (TruVaR with `eta = 0`) takes one after the other, each
#   reducing the summed variance of the undecided cells the most.
# - **LSE** takes the most ambiguous cell, pretends to know its result, and goes on.
# - **Straddle** does the same with `sqrt(beta) sigma - |mean - threshold|`.

# %%
import os

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_lse import Pool
from botorch_lse.datasets import bathymetry
from botorch_lse.strategies import (
    LSEStrategy,
    MELKStrategy,
    StraddleStrategy,
    TruVaRStrategy,
)

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
ROUNDS = 3 if QUICK else 30
THRESHOLD, NOISE = 100.0, 5.0  # metres

# %% [markdown]
# Every second cell of the chart in both directions, about 1,200, is enough to see the
# difference (and every fourth for the tests).

# %%
chart = bathymetry()
table = chart.pool.to_frame()
step = 4 if QUICK else 2
chosen = (table["row"] % step == 0) & (table["column"] % step == 0)
kept = torch.tensor(chosen.tolist())
pool = Pool(chart.pool.X[kept], names=chart.pool.names)
depth = chart.depth[kept]  # the truth; only the "ship" may look
print(f"{len(pool)} cells, {float((depth > THRESHOLD).double().mean()):.0%} deeper")

# %% [markdown]
# One model for all: hyper-parameters from 150 soundings of an earlier trip, then fixed.
# The data of that trip are not used again, so every rule starts from nothing.

# %%
noise = torch.Generator().manual_seed(0)
rows = torch.randperm(len(pool), generator=noise)[:150]
y = depth[rows] + NOISE * torch.randn(150, generator=noise, dtype=torch.float64)
model = SingleTaskGP(
    pool.X[rows],
    y.unsqueeze(-1),
    torch.full((150, 1), NOISE**2, dtype=torch.float64),
    input_transform=Normalize(2, bounds=pool.bounds),
    outcome_transform=Standardize(1),
)
_ = fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

# %% [markdown]
# All four share the pool, the level, the noise and the width of three standard
# deviations, so that only the choice of the batch differs.

# %%
common = {
    "model": model,
    "batch_size": 10,
    "noise_std": NOISE,
    "beta": 9.0,
    "epsilon": 5.0,  # cells within 5 m of the level may go to either side
    "max_observations": 10 * ROUNDS,
}
strategies = {
    "MELK": MELKStrategy(pool, THRESHOLD, **common),
    "variance reduction": TruVaRStrategy(pool, threshold=THRESHOLD, eta=0.0, **common),
    "LSE": LSEStrategy(pool, THRESHOLD, **common),
    "Straddle": StraddleStrategy(pool, THRESHOLD, **common),
}


def explore(strategy):
    """Measure until the strategy stops; the state after every round."""
    state, noise = strategy.init(seed=0), torch.Generator().manual_seed(1)
    states = [state]
    while not state.is_done:
        batch = strategy.ask(state)
        y = depth[batch.order] + NOISE * torch.randn(
            len(batch), generator=noise, dtype=torch.float64
        )
        state = strategy.tell(state, batch.observe(y))
        states.append(state)
    return states


runs = {name: explore(strategy) for name, strategy in strategies.items()}


# %% [markdown]
# How much is decided after each quarter of the soundings, and how far a sounding lies
# from its nearest neighbour in the same batch: a batch that clusters asks ten times
# nearly the same question.


# %%
def spacing(state):
    """Mean distance in km to the nearest sounding of the same batch."""
    last = state.observations.round == state.round - 1
    X = pool.X[state.observations.indices[last]]
    distance = torch.cdist(X, X).fill_diagonal_(torch.inf)
    return float(distance.min(dim=-1).values.mean())


quarters = sorted({max(1, ROUNDS * i // 4) for i in range(1, 5)})
print(
    "undecided cells after " + ", ".join(f"{10 * r}" for r in quarters) + " soundings"
)
for name, states in runs.items():
    left = [
        int(states[min(r, len(states) - 1)].classification.undecided.sum())
        for r in quarters
    ]
    answer = states[-1].classification
    right = float((answer.best_guess == (depth > THRESHOLD)).double().mean())
    near = sum(spacing(state) for state in states[1:]) / (len(states) - 1)
    print(
        f"{name:18s} {left}; {right:.1%} on their true side; "
        f"nearest in the batch {near:.0f} km away"
    )

# %% [markdown]
# ## The picture
# One batch of each at two thirds of the run (the number says how often a cell is
# measured) and the soundings before it, on the true sea bed; white is land.

# %%
import matplotlib.pyplot as plt

late = max(1, 2 * ROUNDS // 3)
figure = plt.figure(figsize=(11, 9.4), layout="constrained")
panels = figure.subplots(2, 2).flat
for panel, (name, states) in zip(panels, runs.items(), strict=True):
    before = states[min(late, len(states) - 2)]
    batch = strategies[name].ask(before)
    undecided = before.classification.undecided
    size = 40000 / len(pool)
    for cells, colour, label in (
        (depth > THRESHOLD, "#c6d9ec", "deeper than 100 m"),
        (depth <= THRESHOLD, "#f6ead0", "shallower"),
        (undecided, "#9aa5a3", "undecided"),
    ):
        panel.scatter(*pool.X[cells].T, c=colour, s=size, marker="s", lw=0, label=label)
    past = pool.X[before.observations.indices]
    panel.scatter(*past.T, c="black", s=6, label="soundings before")
    panel.scatter(*batch.X.T, c="#c8002f", s=45, label="the batch")
    for x, count in zip(batch.X, batch.counts, strict=True):
        if count > 1:
            panel.annotate(
                str(int(count)),
                x.tolist(),
                color="#c8002f",
                fontsize=12,
                xytext=(5, 5),
                textcoords="offset points",
            )
    panel.set(
        title=f"{name}: batch {before.round + 1}", xlabel="x (km)", ylabel="y (km)"
    )
    panel.set_aspect("equal")
figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=5)
figure.savefig("batches.png", dpi=120)
