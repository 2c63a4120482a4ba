# %% [markdown]
# # The survey ship that pays for every mile
#
# A ship maps where a real sea bed is deeper than 100 m. A sounding costs little, the
# way to it costs a lot. LSE chooses the most ambiguous cell, wherever it lies; TruVaR
# takes the cell that shrinks the doubt about all undecided cells the most *per cost*.
# Both get the same Gaussian process; we compare what they pay and draw their paths.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch

from botorch_lse import Pool
from botorch_lse.datasets import bathymetry, f1_score
from botorch_lse.models import GPPrior, fit_single_task_gp
from botorch_lse.strategies import LSEStrategy, TruVaRStrategy

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
LEVEL, NOISE = 100.0, 5.0  # metres, the units of y
chart = bathymetry()
cells = chart.pool.to_frame()
stride = 5 if QUICK else 3
kept = ((cells["row"] % stride == 1) & (cells["column"] % stride == 1)).to_numpy(
    copy=True
)
pool = Pool(cells.loc[kept, ["x_km", "y_km"]])
depth = chart.depth[torch.from_numpy(kept)]  # the truth, only the "ship" may look
deep = depth > LEVEL
print(f"{len(pool)} cells, {float(deep.double().mean()):.0%} deeper than 100 m")


# %% [markdown]
# ## What a sounding costs
# A function of the row measured before and of the rows that could come next. Before the
# first sounding there is no way to pay for.


# %%
def cost(previous: int | None, rows: torch.Tensor) -> torch.Tensor:
    """One unit per sounding and one per kilometre."""
    sounding = torch.ones(len(rows), dtype=torch.float64)
    if previous is None:
        return sounding
    return sounding + (pool.X[rows] - pool.X[previous]).norm(dim=-1)


# %% [markdown]
# ## The model
# Hyper-parameters come from old soundings elsewhere on the chart and stay fixed.

# %%
generator = torch.Generator().manual_seed(0)
others = torch.from_numpy(~kept).nonzero().view(-1)
old = others[torch.randperm(len(others), generator=generator)[:150]]
noise = NOISE * torch.randn(len(old), generator=generator, dtype=torch.float64)
prior = GPPrior.from_model(
    fit_single_task_gp(
        chart.pool.X[old],
        (chart.depth[old] + noise).unsqueeze(-1),
        torch.full((len(old), 1), NOISE**2, dtype=torch.float64),
        chart.pool.bounds,
    )
)


# %% [markdown]
# ## Two ships
# The loop is the same for every strategy: ask, measure, tell. We stop when the
# posterior mean puts the cells on their sides with an F1 score of 0.95, or when the
# money is gone.

# %%
BUDGET = 150.0 if QUICK else 20_000.0
settings = {"model": prior, "noise_std": NOISE}
ships = {
    # beta_factor: the paper's practical setting; only_open: measure undecided cells
    # only, which makes each decision much faster.
    "TruVaR": TruVaRStrategy(
        pool, LEVEL, cost=cost, beta_factor=1.0, only_open=True, **settings
    ),
    "LSE": LSEStrategy(pool, LEVEL, beta=9.0, **settings),
}


def sail(strategy, seed: int = 1) -> tuple[list[int], float, float]:
    """The path, what it cost, and the score at its end."""
    generator = torch.Generator().manual_seed(seed)
    state, path, paid, score = strategy.init(), [], 0.0, 0.0
    while not state.is_done and paid < BUDGET and score < 0.95:
        batch = strategy.ask(state)
        row = int(batch.order)
        paid += float(cost(path[-1] if path else None, batch.order))
        path.append(row)
        error = NOISE * torch.randn(1, generator=generator, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(depth[row] + error))
        score = f1_score(state.classification.mean > LEVEL, deep)
    return path, paid, score


trips = {name: sail(strategy) for name, strategy in ships.items()}
rows = [
    (name, len(path), round(paid), round(score, 3))
    for name, (path, paid, score) in trips.items()
]
table = pd.DataFrame(rows, columns=["ship", "soundings", "cost", "F1"])
print(table.to_string(index=False))

# %% [markdown]
# TruVaR makes more soundings and pays a fraction: it stays where it is as long as there
# is something to learn, and crosses the map when that is worth the way.
#
# ## The paths on the map

# %%
figure = plt.figure(figsize=(11, 5), layout="constrained")
X = pool.X
for axes, name in zip(figure.subplots(1, 2), trips, strict=True):
    path, paid, _ = trips[name]
    axes.scatter(*X[~deep].T, s=9, color="0.85", label="shallower")
    axes.scatter(*X[deep].T, s=9, color="steelblue", label="deeper than 100 m")
    axes.plot(*X[path].T, color="black", linewidth=0.7, label="way")
    axes.scatter(*X[path].T, s=7, color="tab:red", zorder=3, label="sounding")
    axes.set_title(f"{name}: {len(path)} soundings, cost {paid:,.0f}")
    axes.set(xlabel="x (km)", ylabel="y (km)", aspect="equal")
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
figure.savefig("survey_ship.png", dpi=120)

# %% [markdown]
# The same criterion without a pool is `qTruVaR`, a BoTorch acquisition function: on a
# box with representer points as targets, with `optimize_acqf`, and with a cost
# function, a number or BoTorch's `CostAwareUtility`. `Pool.at_noise_levels` adds the
# choice between quick and careful measurements, and without `threshold` TruVaR looks
# for the maximum.
