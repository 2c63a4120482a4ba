# %% [markdown]
# # Level set estimation with BoTorch
#
# Bayesian optimization looks for the largest value of an expensive function. Level set
# estimation looks for the *set* where the function is above a level: where a design
# fails, where soil is polluted, where a drug works. The loop is the same, a model and
# an acquisition function, but what is worth measuring differs: not where values are
# large, but where one is not sure on which side of the level they lie.
#
# This tutorial uses BoTorch alone. It shows
#
# - how to write the *straddle* acquisition function [1] in ten lines,
# - how to choose batches that do not cluster,
# - how to read above, below and undecided off the posterior,
# - that such points tell more about the set than points that fill the space.

# %%
import os
import warnings

import matplotlib.pyplot as plt
import torch
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.test_functions import Branin
from botorch.utils.sampling import draw_sobol_samples
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.mlls import ExactMarginalLogLikelihood
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

SMOKE_TEST = os.environ.get("SMOKE_TEST")  # small numbers, for tests
N_INITIAL, BATCH = 10, 4
ROUNDS, SEEDS, RAW = (2, 1, 16) if SMOKE_TEST else (10, 2, 64)
warnings.filterwarnings("ignore", category=RuntimeWarning)  # of restarts that fail
_ = torch.manual_seed(0)

# %% [markdown]
# ## The problem
#
# Branin's function on its usual box, measured with a noise of 5 (its values range from
# 0 to 308). Where is it above 60? We keep a grid to judge answers by; only the loop's
# points are measured.

# %%
LEVEL, NOISE = 60.0, 5.0
problem = Branin(noise_std=NOISE, dtype=torch.float64)
bounds = problem.bounds.double()
line1 = torch.linspace(-5, 10, 61, dtype=torch.float64)
line2 = torch.linspace(0, 15, 61, dtype=torch.float64)
grid = torch.cartesian_prod(line1, line2)
truth = problem(grid, noise=False) > LEVEL
print(f"{truth.double().mean():.0%} of the box is above {LEVEL:g}")


def fitted_model(X, Y):
    """A Gaussian process with known noise, fitted to the data."""
    model = SingleTaskGP(
        X,
        Y,
        torch.full_like(Y, NOISE**2),
        input_transform=Normalize(2, bounds=bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


# %% [markdown]
# ## The acquisition function
#
# Straddle is large where the posterior is uncertain *and* near the level:
#
# $$ \alpha(x) = \sqrt{\beta}\,\sigma(x) - |\mu(x) - h|. $$
#
# It is positive exactly where the interval $\mu \pm \sqrt{\beta}\,\sigma$ contains the
# level $h$, so a point whose side is clear is never chosen as long as another one is
# open. The posterior is in the units of the data (`Standardize` is undone), and so is
# the level: nothing has to be rescaled.


# %%
class Straddle(AnalyticAcquisitionFunction):
    """Uncertain and near the level."""

    def __init__(self, model, level, beta=1.96**2):
        super().__init__(model=model)
        self.register_buffer("level", torch.as_tensor(level))
        self.register_buffer("beta", torch.as_tensor(beta))

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X):
        """From ``batch_shape x 1 x d`` points to ``batch_shape`` values."""
        mean, sigma = self._mean_and_sigma(X)  # batch_shape x 1 each
        return (self.beta.sqrt() * sigma - (mean - self.level).abs()).squeeze(-1)


# %% [markdown]
# ## Batches
#
# The four best points of one posterior are neighbours, and four neighbours tell little
# more than one. But the posterior *variance* does not depend on values still to come.
# So we choose one point after the other, each time telling the model that the point
# before will be measured: as if it returned its mean, which leaves the mean as it is
# and shrinks the variance.


# %%
def batch_of(model, q):
    """``q`` points, each chosen as if those before had been measured."""
    points = []
    for _ in range(q):
        x, _ = optimize_acqf(
            Straddle(model, LEVEL),
            bounds,
            q=1,
            num_restarts=2,
            raw_samples=RAW,
            options={"maxiter": 50},
        )
        points.append(x)
        mean = model.posterior(x).mean.detach()
        # The noise is wanted in units of the standardised values.
        noise = NOISE**2 / model.outcome_transform.stdvs.square()
        model = model.condition_on_observations(x, mean, noise=noise)
    return torch.cat(points)


# %% [markdown]
# ## The loop
#
# Two ways to spend the same measurements: ten spread points and then batches of
# straddle; or points that fill the box (a Sobol sequence), all of them.


# %%
def error_of(model):
    """The share of the grid on the wrong side of the posterior mean."""
    with torch.no_grad():
        mean = model.posterior(grid).mean.view(-1)
    return float(((mean > LEVEL) != truth).double().mean())


def run(seed, adaptive):
    """The data, the last model, and the error after every round."""
    n = N_INITIAL + BATCH * ROUNDS
    sobol = draw_sobol_samples(bounds, n=n, q=1, seed=seed).squeeze(1)
    X = sobol[:N_INITIAL]
    Y = problem(X).unsqueeze(-1)
    errors = []
    for round_ in range(ROUNDS + 1):
        model = fitted_model(X, Y)
        errors.append(error_of(model))
        if round_ == ROUNDS:
            break
        start = N_INITIAL + BATCH * round_
        new = batch_of(model, BATCH) if adaptive else sobol[start : start + BATCH]
        X, Y = torch.cat((X, new)), torch.cat((Y, problem(new).unsqueeze(-1)))
    return X, model, errors


runs = {
    name: [run(seed, adaptive) for seed in range(SEEDS)]
    for name, adaptive in (("straddle", True), ("space filling", False))
}
for name, results in runs.items():
    ends = [errors[-1] for *_, errors in results]
    print(
        f"{name}: {sum(ends) / len(ends):.1%} of the box on the wrong side at the end"
    )

# %%
figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
used = [N_INITIAL + BATCH * r for r in range(ROUNDS + 1)]
for (name, results), colour in zip(runs.items(), ("#1f4a8c", "#c26a2d"), strict=True):
    curves = 100 * torch.tensor([errors for *_, errors in results])
    axes.plot(used, curves.T, color=colour, lw=0.7, alpha=0.5)
    axes.plot(used, curves.mean(0), color=colour, marker="o", label=f"{name}, mean")
axes.set(xlabel="measurements", ylabel="wrong side (% of the box)", ylim=(0, None))
axes.legend(frameon=False, title=f"thin: seeds 0 to {SEEDS - 1}" if SEEDS > 1 else None)
figure.savefig("botorch_level_set_error.png", dpi=120)

# %% [markdown]
# ## The answer
#
# A point is *above* if its whole interval is above the level, *below* if it is below,
# and *undecided* otherwise. That is the honest answer, and it says where a next
# measurement would help.

# %%
figure, panels = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
colours = {"below": "#f3e3bd", "undecided": "#9aa5a3", "above": "#7fa3cf"}
for panel, (name, results) in zip(panels, runs.items(), strict=True):
    X, model, _ = results[0]
    with torch.no_grad():
        posterior = model.posterior(grid)
    mean = posterior.mean.view(-1)
    half = 1.96 * posterior.variance.view(-1).sqrt()
    sides = {
        "below": mean + half <= LEVEL,
        "undecided": (mean - LEVEL).abs() < half,
        "above": mean - half > LEVEL,
    }
    number = sides["undecided"] + 2 * sides["above"]  # the order of the colours
    cells = number.view(61, 61).T
    panel.pcolormesh(line1, line2, cells, cmap=ListedColormap(list(colours.values())))
    values = problem(grid, noise=False).view(61, 61).T
    panel.contour(
        line1, line2, values, levels=[LEVEL], colors="#c8002f", linewidths=1.5
    )
    panel.scatter(*X[:N_INITIAL].T, s=18, c="white", edgecolor="black", label="first")
    panel.scatter(*X[N_INITIAL:].T, s=12, c="black", label="measured later")
    panel.plot([], [], color="#c8002f", label=f"truly {LEVEL:g}")
    share = float(sides["undecided"].double().mean())
    panel.set(
        title=f"{name}: {share:.0%} undecided after {len(X)}",
        xlabel="$x_1$",
        ylabel="$x_2$",
    )
marks = [Patch(color=colour, label=side) for side, colour in colours.items()]
marks += panels[0].get_legend_handles_labels()[0]
figure.legend(handles=marks, loc="outside lower center", ncols=6)
figure.savefig("botorch_level_set_answer.png", dpi=120)

# %% [markdown]
# ## What is missing here
#
# - **How sure is it?** An interval of 1.96 standard deviations is right for a single
#   point. For all points together, and for all rounds, it has to be wider.
# - **When to stop.** When nothing is undecided, up to the accuracy that matters.
# - **A model that is sure and wrong.** It was fitted to few data; a region that none of
#   them has seen is not there for it.
#
# The package `botorch-lse` deals with these three, on lists of
# candidates, and has further rules: what is expected to remove most errors, optimal
# designs, costs.
#
# [1] B. Bryan, J. Schneider, R. Nichol, C. Miller, C. Genovese, L. Wasserman. Active
# learning for identifying function threshold boundaries. NeurIPS 2005.
