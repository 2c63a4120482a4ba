# %% [markdown]
# # I run staircases
#
# A person sees two pictures and says which of them has the grating. Chance alone is
# right half of the time, and the contrast at which three of four answers are right
# depends on how fine the grating is. A staircase finds that contrast for one fineness
# at a time. Here one run finds the whole curve, and begins with the trials of a
# staircase that you have already.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.strategies import Binary

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests

# %% [markdown]
# ## The stimuli
#
# All that the screen can show: 20 contrasts at 15 spatial frequencies, on the
# logarithmic scales on which people see.

# %%
grid = pd.MultiIndex.from_product(
    [np.linspace(-2.6, 0, 20), np.linspace(-0.3, 1.3, 15)],
    names=["log_contrast", "log_frequency"],
)
stimuli = grid.to_frame(index=False)
pool = Pool(stimuli)


# %% [markdown]
# ## The person
#
# Stands in for your laboratory: nobody knows this curve. One press in fifty is a slip.


# %%
def threshold(log_frequency: np.ndarray) -> np.ndarray:
    """The contrast that is seen in three of four trials."""
    return -1.9 + 1.1 * (log_frequency - 0.45) ** 2


person = np.random.default_rng(0)
outcome = Binary(guess=0.5, lapse=0.02)
level = outcome.latent(torch.tensor(0.75, dtype=torch.float64)).item()
margin = stimuli["log_contrast"] - threshold(stimuli["log_frequency"])
chance = outcome.value(torch.tensor(level + margin.to_numpy() / 0.15)).numpy()


def answers(rows: np.ndarray) -> np.ndarray:
    """What the person says: 1 is right, 0 is wrong."""
    return (person.random(len(rows)) < chance[rows]).astype(float)


# %% [markdown]
# ## The question
#
# Where are at least three of four answers right? Guesses and slips are known, and the
# chance rises with contrast: to say so is worth more than any rule for the next trial.
# Ten trials at a time, so that nobody waits for a computer between two of them.

# %%
strategy = Strategy(
    pool,
    Above(0.75),
    model=GaussianProcess(outcome=outcome, increasing=["log_contrast"]),
    batch_size=10,
    max_observations=60 if QUICK else 200,
)
state = strategy.init(seed=0)

# %% [markdown]
# ## The trials of a staircase
#
# Forty trials at one frequency: down a step after two right answers, up after a wrong
# one. They are told as any other answers; where they come from does not matter.

# %%
column = np.flatnonzero(np.isclose(stimuli["log_frequency"], stimuli.iloc[7, 1]))
step, right, rows, told = len(column) - 1, 0, [], []
for _ in range(40):
    row = column[step]
    y = answers(np.array([row]))[0]
    rows.append(int(row))
    told.append(y)
    right = right + 1 if y else 0
    if not y or right == 2:
        step = min(max(step + (-1 if y else 1), 0), len(column) - 1)
        right = 0
state = strategy.tell(state, Observations(rows, told))
print(state.classification)

# %% [markdown]
# ## The other frequencies

# %%
while not state.is_done:
    batch = strategy.ask(state)
    y = answers(batch.order.numpy())
    state = strategy.tell(state, Observations(batch.order, y))
print(state.n_used, "trials;", state.stop_reason)

# %% [markdown]
# ## The curve
#
# At each frequency the least contrast whose expected chance is above the level, and
# beside it the truth, as the person was simulated.

# %%
found = state.classification.to_frame()
seen = found[found["mean"] > 0.75].groupby("log_frequency")["log_contrast"].min()
truth = pd.Series(threshold(seen.index.to_numpy()), index=seen.index)
error = float((seen - truth).abs().mean())
print(f"mean error of the threshold: {error:.2f} of log contrast; a step is 0.14")

figure, axes = plt.subplots(figsize=(5, 4))
mean = found.pivot(index="log_contrast", columns="log_frequency", values="mean")
shown = axes.pcolormesh(mean.columns, mean.index, mean, vmin=0.5, vmax=1.0)
figure.colorbar(shown, label="probability of a right answer")
axes.plot(truth.index, truth, "w--", label="true threshold")
axes.plot(seen.index, seen, "w.", label="found")
axes.set(xlabel="log spatial frequency", ylabel="log contrast")
axes.legend(facecolor="0.3", labelcolor="white", framealpha=1.0)
figure.tight_layout()

# %% [markdown]
# Rows that are decided are decided at three standard deviations: few are, after some
# hundred answers, and the curve is known long before. The page "Yes or no" says
# how answers are modelled and what else they may be.
