# %% [markdown]
# # The probability of failure
#
# A structure fails if its limit state function `g` is not positive. Its inputs, loads
# and strengths, are uncertain: we know how they are distributed. *What is the
# probability that it fails?* Each run of the simulator takes hours, so plain Monte
# Carlo, which needs ten thousands of runs for a probability of 0.2 %, is out of the
# question.
#
# This page goes from the distribution to a number with an interval, on the four-branch
# system, a test case with four ways to fail (Waarts 2000; Echard et al. 2011). Those
# who come from AK-MCS will find its parts: the pool is the Monte Carlo population, the
# strategy has the learning function, and `content_tol` is the stop.

# %%
import math
import os
import warnings

import matplotlib.pyplot as plt
import torch
from scipy.stats import norm

from botorch_lse import Above, GaussianProcess, Pool, Strategy
from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.strategies import ContentKnown, MinimumU

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
warnings.simplefilter("ignore", CalibrationWarning)  # it is looked at below


def g(X: torch.Tensor) -> torch.Tensor:
    """The limit state function: failure where it is at most 0."""
    a, b = X.unbind(dim=-1)
    bowl, along, shift = 3 + 0.1 * (a - b) ** 2, (a + b) / 2**0.5, 7 / 2**0.5
    branches = (bowl - along, bowl + along, a - b + shift, b - a + shift)
    return torch.stack(branches).amin(dim=0)


# %% [markdown]
# ## The distribution
#
# One `scipy.stats` distribution for each input; `correlation=` joins them. The rows of
# the pool are draws. They are cheap: only those that the strategy chooses are run. Take
# so many that their own error is small: with `n` rows and probability `P` it is about
# `sqrt((1 - P) / (n P))` of `P`, here 15 %. (`sampling=` draws rare events from another
# density, and weighs the rows.)

# %%
inputs = {"x1": norm(0, 1), "x2": norm(0, 1)}
pool = Pool.from_distribution(
    inputs, 2_000 if QUICK else 20_000, seed=1, method="monte_carlo"
)

# %% [markdown]
# ## The runs
#
# "Above" is where something exceeds a level, so we ask where `-g` exceeds 0. The model
# is learnt, the simulator has no noise. `content_tol=0.05` ends the run once the number
# is known to 5 %: half of the posterior's 95 % interval, plus what the estimate has
# moved in the last five runs (or the last tenth of all).

# %%
strategy = Strategy(
    pool,
    Above(0.0),
    model=GaussianProcess(noise_std=0.0),
    content_tol=0.3 if QUICK else 0.05,
    max_observations=30 if QUICK else 150,
)
first = 10  # runs that are spread, before there is a model
state, steps = strategy.init(seed=0), []
while not state.is_done:
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(-g(pool.X[batch.order])))
    if state.n_used >= first:
        now = state.content()
        steps.append((state.n_used, now.estimate, *(now.posterior or (0.0, 1.0))))

print(state.stop_reason, "after", state.n_used, "runs")

# %% [markdown]
# ## The number
#
# Three questions are kept apart. *How sure is the model of the rows' sides?* By decided
# rows and by its joint draws. *How good are these rows as a sample?* The last interval
# joins both errors, `content.combined`, and is the one to report. *May the model be
# believed?* No theorem covers a model that is learnt: look at its calibration, or order
# an audit, whose rows are drawn at random (`audit=(0.05, 0.05)` with
# `ContentKnown(..., by="design")`).

# %%
content = state.content()
print(content)
print(state.calibration())

# %% [markdown]
# Here we can check: the simulator is a formula.

# %%
truth = float((g(pool.X) <= 0).double().mean())
low, high = content.combined or (0.0, 1.0)
print(
    f"of the pool {truth:.5f}, published 0.00222, ours {content.estimate:.5f}, "
    f"between {low:.5f} and {high:.5f}"
)
if not QUICK:
    assert abs(content.estimate - truth) <= 0.05 * truth
    assert low <= 2.22e-3 <= high

# %% [markdown]
# ## The classic picture
#
# On the left the limit state of the model, as far as there are draws, and the true one;
# the draws of the inputs; and the runs: first those of the initial design, then those
# that the rule has chosen, along the four branches and only where draws are. On the
# right what was believed of the number after each run.

# %%
line = torch.linspace(-6, 6, 60 if QUICK else 200, dtype=torch.float64)
grid = torch.cartesian_prod(line, line)
shape = (len(line), len(line))
rows = state.observations.indices
fails = state.classification.best_guess

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6))
left.scatter(*pool.X[~fails].T, s=2, color="lightgrey", label="draws that hold")
left.scatter(*pool.X[fails].T, s=8, color="firebrick", label="draws that fail")
left.scatter(*pool.X[rows[:first]].T, marker="x", color="black", label="initial design")
left.scatter(*pool.X[rows[first:]].T, marker="+", color="navy", s=60, label="chosen")
true = g(grid).reshape(shape).T
left.contour(line, line, true, levels=[0.0], colors="black", linestyles="--")
left.plot([], [], color="black", linestyle="--", label="true limit state")
mean = state.classification.mean
left.tricontour(*pool.X.T, mean, levels=[0.0], colors="darkorange", linewidths=1)
left.plot([], [], color="darkorange", label="limit state of the model")
left.set_aspect("equal")
left.set_xlim(-6, 6)
left.set_ylim(-6, 6)
left.set_xlabel("x1 (standard deviations)")
left.set_ylabel("x2 (standard deviations)")
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=3, frameon=False)
left.set_title(f"Where {state.n_used} runs were made")

runs, estimates, low, high = zip(*steps, strict=True)
right.fill_between(runs, low, high, color="navy", alpha=0.2, label="95 %, by the model")
right.plot(runs, estimates, color="navy", marker=".", label="estimate")
right.axhline(truth, color="black", linestyle="--", label="of the pool, all rows run")
right.set_ylim(0, 2 * truth)
right.set_xlabel("runs, the initial design included")
right.set_ylabel("probability of failure")
right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=3, frameon=False)
right.set_title("What was believed of the number")
figure.tight_layout()
figure.savefig("reliability.png", dpi=120)

# %% [markdown]
# ## Other stops
#
# AK-MCS stops at `min U >= 2`: no row's mean is nearer to the limit state than two
# deviations. It says nothing of the number, and asks the same of rows that hardly
# count. Where this run has ended:

# %%
answer = state.classification
ratio = answer.mean.abs() / answer.sigma.clamp_min(1e-300)
print(f"min U = {float(ratio.min()):.2f}; to stop by it: content_tol={MinimumU()}")
print("an absolute tolerance by decided rows:", ContentKnown(0.001, False, "decided"))
print(
    f"rows for a sampling error of 5 %: {math.ceil((1 - truth) / (truth * 0.05**2)):,}"
)
