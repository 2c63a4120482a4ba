# %% [markdown]
# # Which web page sells best? A test with unequal noise
#
# A page has three parts (headline, picture, button), each in two variants: eight
# layouts. One measurement is a block of 20,000 visitors who see one layout; its value
# is the mean revenue per visitor in cents. Revenues scatter more under some layouts
# than under others, and nobody knows how much. This is Experiment 3 of Weltz et al.
# (2023), run as an Ax experiment:
#
# - **H-RAGE** first learns the noise of every layout (a burn-in), then puts the blocks
#   where they tell most about the layouts still in question.
# - **The same rule with one noise level** takes every layout to be as noisy as the
#   noisiest one: the usual, safe assumption.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from gpytorch.kernels import LinearKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.datasets import web_page
from botorch_lse.strategies import HRAGEStrategy

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
SEEDS = 1 if QUICK else 3
VISITORS, BATCH = 20_000, 8  # visitors per block, blocks side by side

# %% [markdown]
# ## The truth, which only the "visitors" may look at
# Revenue is linear in the constant, the three parts and their pairwise products; so is
# the noise variance of a visitor in their squares. The second variant of the headline
# is the loud one.

# %%
truth = web_page()
revenue = 100 * truth.means  # cents
block_variance = 100**2 * truth.variances / VISITORS
layouts = pd.DataFrame(
    [list(name) for name in truth.names], columns=["headline", "picture", "button"]
)
best = int(revenue.argmax())
print(
    layouts.assign(revenue=revenue.numpy(), noise_std=block_variance.sqrt().numpy())
    .round(2)
    .to_string()
)

# %% [markdown]
# ## The pool and the two strategies
# The pool's inputs are the seven features, its table says which layout that is. A
# Gaussian process with a linear kernel on the features is Bayesian linear regression.
# H-RAGE gets bounds of the noise variance only; the other one gets the largest one.

# %%
pool = Pool(truth.X, table=layouts)
kernel = LinearKernel().double()
kernel.variance = 50.0  # coefficients of a few cents
common = {"model": kernel, "batch_size": BATCH, "max_observations": 1000}
strategies = {
    "H-RAGE": HRAGEStrategy(pool, variance_bounds=(0.1, 0.6), burn_in=64, **common),
    "one noise level": HRAGEStrategy(
        pool, noise_std=float(block_variance.max()) ** 0.5, **common
    ),
}


# %% [markdown]
# ## The experiment
# Ax hands out the blocks of a round as trials and gets their means back, without a
# standard error. What is decided is a function of the experiment alone, so a run may be
# saved and loaded at any point.


# %%
def run(strategy, seed):
    """Trials until the best layout is known; the table and the state of every round."""
    client = Client(random_seed=seed)
    client.configure_experiment(parameters=pool_parameters(pool), name="web_page")
    client.configure_optimization(objective="revenue")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=seed))
    visitors = torch.Generator().manual_seed(seed)
    states = [strategy.init(seed)]
    while True:
        try:
            trials = client.get_next_trials(BATCH)
        except GenerationStrategyCompleted:
            break
        for index, parameters in trials.items():
            row = parameters[POOL_INDEX]
            noise = torch.randn(1, generator=visitors, dtype=torch.float64)
            mean = float(revenue[row] + block_variance[row].sqrt() * noise)
            client.complete_trial(index, {"revenue": mean})
        node = client._generation_strategy.current_node
        states.append(node.state(client._experiment))
    return level_set(client), states


runs = {
    name: [run(strategy, seed) for seed in range(SEEDS)]
    for name, strategy in strategies.items()
}

# %% [markdown]
# ## What it cost
# The burn-in is part of the count. Both find the best layout; the one that knows where
# the noise sits needs about half of the blocks.

# %%
for name, results in runs.items():
    blocks = [states[-1].n_used for _, states in results]
    right = sum(bool(s[-1].classification.above[best]) for _, s in results)
    burn_in = strategies[name].burn_in_used(results[0][1][-1])
    print(
        f"{name}: {sum(blocks) / SEEDS:.0f} blocks on average {blocks}, of which "
        f"{burn_in} burn-in; right in {right} of {SEEDS}"
    )
table, states = runs["H-RAGE"][0]
shown = ["headline", "picture", "button", "mean", "lower", "upper", "side"]
print(table[[c for c in shown if c in table.columns]].round(2).to_string())
print(states[-1].classification.guarantee)

# %% [markdown]
# ## Where the blocks went
# Left: the noise as it is and as the burn-in found it. Middle: the blocks of seed 0.
# Right: how many layouts were still in question.

# %%
figure = plt.figure(figsize=(12, 3.8), layout="constrained")
noise_axes, counts_axes, open_axes = figure.subplots(1, 3)
names = ["".join(row) for row in layouts.to_numpy()]
place = torch.arange(len(names), dtype=torch.float64).numpy()
found = strategies["H-RAGE"].variances(states[-1])
noise_axes.bar(place - 0.2, block_variance.sqrt().numpy(), 0.4, label="true")
noise_axes.bar(place + 0.2, found.sqrt().numpy(), 0.4, label="estimated")
noise_axes.set_ylabel("noise of a block (cents)")
for shift, (name, results) in zip((-0.2, 0.2), runs.items(), strict=True):
    last = results[0][1][-1]
    counts = torch.bincount(last.history.indices, minlength=len(names))
    counts_axes.bar(place + shift, counts.numpy(), 0.4, label=name)
    used = [state.n_used for state in results[0][1]]
    left = [int(state.classification.undecided.sum()) for state in results[0][1]]
    open_axes.step(used, left, where="post", label=name)
counts_axes.set_ylabel("blocks")
end = strategies["H-RAGE"].n_burn_in
open_axes.axvline(end, color="0.7", linestyle=":", label="burn-in ends")
open_axes.set(xlabel="blocks", ylabel="layouts in question")
for axes in (noise_axes, counts_axes):
    axes.set_xticks(place, names)
    axes.set_xlabel("layout (headline, picture, button)")
for axes in (noise_axes, counts_axes, open_axes):
    axes.legend()
figure.savefig("web_page.png", dpi=120)
