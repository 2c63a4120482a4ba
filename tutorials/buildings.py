# %% [markdown]
# # Cool and warm buildings: which designs are not dominated?
# A building of a given volume can be low or tall, compact or spread out, with more or
# less glass, facing north or south. Two numbers say what it costs to live in: the
# **heating load** and the **cooling load**, both to be small. Sun through the windows
# helps the one and harms the other, so there is no best design, but a *Pareto set*:
# the designs that no other design beats in both.
#
# A measurement is a noisy simulation that returns both loads. We measure in rounds of
# a few dozen and want to know of every design whether it is in the Pareto set
# (*accepted*), not (*rejected*), or not yet known (*open*).
#
# The shapes are those of the energy-efficiency data of Tsanas and Xifara (2012). The
# file is not part of this package; give its path as an argument
# (`python buildings.py ENB2012_data.csv`) to use its loads. Without it a stand-in is
# used: the same kind of features, with loads that are linear in them.

# %%
import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from botorch_lse import Pool
from botorch_lse.papers import GEGEBudgetStrategy
from botorch_lse.pareto import pareto_mask
from botorch_lse.plotting import pareto_frame, plot_pareto_set
from botorch_lse.strategies import GEGEStrategy

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
NOISE_STD = 0.5  # of one simulation, kWh per square metre
INPUTS = [
    "compactness",
    "surface",
    "walls",
    "roof",
    "height",
    "orientation",
    "glazing",
    "distribution",
]
LOADS = ["heating", "cooling"]

# %% [markdown]
# ## The designs
# Twelve shapes of one volume, four orientations, and glass: none, or 10, 25 or 40 % of
# the floor area. The surface is walls plus twice the roof, so the eight features have
# rank seven: a method that inverts their Gram matrix fails here.


# %%
def stand_in() -> pd.DataFrame:
    """Shapes like those of the data set; loads linear in the features."""
    volume, rows = 771.75, []
    heights = [(7.0, wall) for wall in np.linspace(245, 416.5, 6)]
    heights += [(3.5, wall) for wall in np.linspace(245, 416.5, 6)]
    for height, walls in heights:
        roof = volume / height
        surface = walls + 2 * roof
        shape = [6 * volume ** (2 / 3) / surface, surface, walls, roof, height]
        for orientation in range(2, 6):
            for glazing in (0.0, 0.1, 0.25, 0.4):
                for distribution in range(1, 6) if glazing else [0]:
                    rows.append([*shape, orientation, glazing, distribution])
    table = pd.DataFrame(rows, columns=INPUTS)
    lost = 0.03 * table.walls + 0.04 * table.roof
    sun = 12 * table.glazing + 0.5 * table.orientation
    table["heating"] = 8 + lost - 0.8 * sun + 0.2 * table.distribution
    table["cooling"] = 6 + 0.03 * table.roof + sun - 0.1 * table.distribution
    return table


path = Path(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].endswith(".csv") else None
if path is None:
    table = stand_in()
else:
    table = pd.read_csv(path)
    table.columns = INPUTS + LOADS
if QUICK:
    table = table.iloc[::4].reset_index(drop=True)
pool = Pool(table[INPUTS])
loads = torch.tensor(table[LOADS].to_numpy(dtype=float))
truth = pareto_mask(-loads)  # small is good
rank = int(torch.linalg.matrix_rank(pool.X / pool.X.amax(dim=0)))
print(f"{len(pool)} designs, features of rank {rank}; Pareto set: {int(truth.sum())}")

# %% [markdown]
# ## Rounds with a Gaussian process
# `GEGEStrategy` fits one Gaussian process per load and judges each pair of designs by
# the interval of their difference. `epsilon` is what we do not care about: a design is
# accepted once no other can be better by more than 0.5 in both loads. The width is a
# choice here (`beta=9`: three standard deviations), so that no confidence is claimed;
# `beta=None` takes the theorem's.

# %%
strategy = GEGEStrategy(
    pool,
    maximize=(False, False),
    batch_size=24 if QUICK else 48,
    noise_std=NOISE_STD,
    beta=9.0,
    epsilon=0.5,
    max_observations=96 if QUICK else 384,
)
noise = torch.Generator().manual_seed(0)


def simulate(rows):
    """What the user's simulator returns: both loads, with noise."""
    draw = torch.randn(len(rows), 2, generator=noise, dtype=torch.float64)
    return loads[rows] + NOISE_STD * draw


state, frames = strategy.init(seed=0), []
while not state.is_done:
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(simulate(batch.order)))
    answer = state.classification
    frames.append(
        pareto_frame(answer, strategy.estimate(state), state.observations, LOADS)
    )
    counts = frames[-1]["side"].value_counts()
    print(f"round {state.round}: {counts.to_dict()}, {state.n_used} simulations")
print(f"stopped: {state.stop_reason}")

# %% [markdown]
# ## How good is the answer?
# Every Pareto design should be accepted or open, and no accepted design should be
# beaten by more than `epsilon` in both loads.

# %%
answer = state.classification
missed = int((truth & answer.below).sum())
ahead = (loads.unsqueeze(1) - loads.unsqueeze(0)).amin(dim=-1).amax(dim=1)
excess = float(ahead[answer.above].max()) if bool(answer.above.any()) else 0.0
print(f"Pareto designs rejected: {missed} of {int(truth.sum())}")
print(f"accepted: {int(answer.above.sum())}, beaten in both by at most {excess:.2f}")
print(answer.guarantee)

# %% [markdown]
# ## The picture
# The two loads of every design with their intervals, round by round. Designs far from
# the lower left corner are rejected first, often without ever being measured; the
# intervals of the open ones shrink. (The models are fitted anew in every round and the
# past is judged again, so a design may open again.)

# %%
# Before the first fit nothing is known of any design.
first = next((k for k, f in enumerate(frames) if f["side"].nunique() > 1), 0)
shown = sorted({first, first + 1, (first + len(frames)) // 2, len(frames) - 1})
shown = [k for k in shown if k < len(frames)]
columns, lines = min(2, len(shown)), -(-len(shown) // 2)
figure = plt.figure(figsize=(5.5 * columns, 5.5 * lines))
for place, number in enumerate(shown, 1):
    axis = figure.add_subplot(lines, columns, place)
    plot_pareto_set(frames[number], ax=axis)
    front = loads[truth]
    axis.scatter(*front.T, marker="x", s=30, c="black", lw=1, zorder=5)
    axis.set(
        title=f"round {number + 1} (x: the true Pareto set)",
        xlabel="heating load (kWh/m²)",
        ylabel="cooling load (kWh/m²)",
    )
figure.tight_layout()
figure.savefig("buildings.png", dpi=100)

# %% [markdown]
# ## Linear features, a fixed budget
# If the loads are linear in the features, far less is to be learned: seven numbers per
# load. `GEGEBudgetStrategy` is the algorithm of Kone et al. (2025): a budget split into
# `log2(7)` rounds, each an optimal design on the span of what is left. Told means of
# replicates, a round is a handful of designs. On the stand-in its model is right. On
# the real loads it is not (try the file): the answer is then that of a linear fit,
# however large the budget, and nothing in the run would tell.

# %%
budget = 2_000 if QUICK else 20_000
linear = GEGEBudgetStrategy(pool, maximize=(False, False), max_observations=budget)


def measure(rows, counts):
    """Means of so many simulations."""
    draw = torch.randn(len(rows), 2, generator=noise, dtype=torch.float64)
    return loads[rows] + NOISE_STD * draw / counts.double().sqrt().unsqueeze(-1)


run = linear.simulate(measure)
accepted = run.classification.above
print(
    f"linear, {run.n_used} simulations in {run.rounds} rounds: accepted "
    f"{int(accepted.sum())}, of them Pareto designs {int((accepted & truth).sum())} "
    f"of {int(truth.sum())}"
)
