# %% [markdown]
# # I have a spreadsheet
#
# You have a table of candidates, a bench that measures some of them each week, and a
# level. No experiment platform, no database: CSV files go in and out, and you may stop
# after any line of this page and go on next week from the files alone.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from botorch_lse import Above, Observations, Pool, Strategy

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The table
#
# One line a candidate: numbers, yes/no and words as they are. Here, 480 recipes of a
# coating; whoever keeps the table need not know which columns matter.

# %%
grid = pd.MultiIndex.from_product(
    [
        np.linspace(60, 180, 8).round(),  # degrees Celsius
        np.linspace(5, 60, 10).round(),  # minutes
        ["amine", "acid", "none"],
        [False, True],
    ],
    names=["temperature", "minutes", "hardener", "primer"],
)
grid.to_frame(index=False).to_csv(folder / "candidates.csv", index=False)
candidates = pd.read_csv(folder / "candidates.csv")
print(candidates.sample(5, random_state=0))

# %% [markdown]
# ## The question
#
# Which recipes adhere with more than 7 MPa? Batches of 12, at most 120 measurements,
# and 1 MPa to either side does not matter. The noise is learned.

# %%
pool = Pool(candidates)
strategy = Strategy(
    pool,
    Above(7.0, epsilon=1.0),
    batch_size=12,
    beta=4.0,
    max_observations=24 if QUICK else 120,
)

# %% [markdown]
# ## The weekly step
#
# All that is known stands in `measured.csv`. The strategy reads it, works out where the
# run stands, and writes a sheet to fill in; a recipe to be repeated has several lines.
# Sheets that come back half empty are fine: the missing lines are asked for again.
# With `pool=pool` a line belongs to the recipe that it describes: sort `candidates.csv`
# or put new recipes on top, and the numbers in `pool_index` do not matter.


# %%
def next_sheet() -> pd.DataFrame | None:
    """The lines to measure now; None when the question is answered."""
    file = folder / "measured.csv"
    state = strategy.init()
    if file.exists():
        told = Observations.from_frame(pd.read_csv(file), y="adhesion", pool=pool)
        state = strategy.replay(told)
    undecided = int(state.classification.undecided.sum())
    print(f"{len(state.observations):4} measured, {undecided:4} undecided")
    if state.is_done:
        return None
    sheet = strategy.ask(state).to_frame()
    sheet["adhesion"] = np.nan
    sheet.to_csv(folder / "next_batch.csv", index=False)
    return sheet


sheet = next_sheet()
print(sheet.head(4).to_string(index=False))


# %% [markdown]
# ## The bench
#
# Stands in for your laboratory: it fills the last column, now and then not completely.


# %%
def adhesion(line: pd.Series) -> float:
    """The truth that the bench measures, in MPa."""
    heat = (line["temperature"] - 130) / 45
    time = np.log(line["minutes"] / 25)
    bonus = {"amine": 1.5, "acid": 0.0, "none": -2.0}[line["hardener"]]
    return 8.0 - 3 * heat**2 - 1.5 * (time - 0.4 * heat) ** 2 + bonus + line["primer"]


bench = np.random.default_rng(0)
week = 0
while (sheet := next_sheet()) is not None:
    week += 1
    sheet["adhesion"] = sheet.apply(adhesion, axis=1) + 0.4 * bench.standard_normal(
        len(sheet)
    )
    if week == 2:
        sheet.loc[sheet.index[-3:], "adhesion"] = np.nan  # three samples came too late
    done = sheet.dropna(subset=["adhesion"])
    file = folder / "measured.csv"
    done.to_csv(file, mode="a", header=not file.exists(), index=False)

# %% [markdown]
# ## The answer
#
# The same table with columns beside it: the side, the bounds, and the probability of
# being above. `guarantee` says what may be claimed.

# %%
state = strategy.replay(
    Observations.from_frame(pd.read_csv(folder / "measured.csv"), "adhesion", pool=pool)
)
answer = state.classification.to_frame()
answer.to_csv(folder / "answer.csv", index=False)
print(answer.groupby(["hardener", "side"]).size().unstack(fill_value=0))
print(answer[answer["side"] == "above"].head(5).round(2).to_string(index=False))
print(state.stop_reason, "-", state.classification.guarantee)

# %% [markdown]
# And since the bench was simulated, the truth. Recipes within 1 MPa of the level may
# stand on either side: that is what `epsilon = 1` allows, and where nearly all errors
# are. (The others are the price of `beta=4`, two standard deviations.)

# %%
excess = candidates.apply(adhesion, axis=1).to_numpy() - 7.0
decided = answer["side"].to_numpy() != "undecided"
wrong = decided & ((answer["side"].to_numpy() == "above") != (excess > 0))
print(f"{decided.mean():.0%} decided, {wrong.sum()} of them on the other side,")
print(f"{(wrong & (abs(excess) > 1.0)).sum()} of these by more than 1 MPa")

# %% [markdown]
# The recipes without primer; the line is where the true adhesion is 7 MPa.

# %%
figure, panels = plt.subplots(
    1, 3, figsize=(12, 3.8), sharey=True, layout="constrained"
)
colours = {"above": "#1f4a8c", "below": "#e3b84d", "undecided": "#9aa5a3"}
bare = answer[~answer["primer"]].assign(true=excess[~answer["primer"]] + 7.0)
for panel, hardener in zip(panels, ["amine", "acid", "none"], strict=True):
    group = bare[bare["hardener"] == hardener]
    for side, colour in colours.items():
        part = group[group["side"] == side]
        panel.scatter(part["temperature"], part["minutes"], c=colour, s=26, label=side)
    true = group.pivot(index="minutes", columns="temperature", values="true")
    if true.to_numpy().max() > 7.0 > true.to_numpy().min():
        place = (true.columns, true.index, true)
        panel.contour(*place, levels=[7.0], colors="#c8002f", linewidths=1)
    panel.set(title=f"hardener: {hardener}", xlabel="temperature (°C)")
    panel.set(xlim=(54, 186), ylim=(2, 63))
panels[0].set_ylabel("time (minutes)")
panels[0].plot([], [], color="#c8002f", lw=1, label="truly 7 MPa")
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
)
figure.savefig(folder / "recipes.png", dpi=120)
