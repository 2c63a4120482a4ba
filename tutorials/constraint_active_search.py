# %% [markdown]
# # Constraint active search: a region of two outcomes in a BoTorch loop
#
# Which designs meet *all* requirements? BoTorch's tutorial on [constraint active
# search](https://botorch.org/docs/tutorials/constraint_active_search) looks for a
# diverse set of feasible designs by *expected coverage improvement* [1]: each next
# point shall cover as much of the feasible region as it can within a given radius.
#
# Often one wants to know the region itself: its border, and how large it is. Here is
# the same loop with another acquisition function, one of `botorch_lse.acquisition`. It
# takes the question as a goal over all outcomes,
# `Above(0.55) & Below(0.75, output=1)`, and asks which measurement is expected to
# remove most wrong answers. The rest is BoTorch: `ModelListGP`, `optimize_acqf`.

# %%
import os
import time
import warnings

import matplotlib.pyplot as plt
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_lse import Above, Below
from botorch_lse.acquisition import qExpectedMisclassification

SMOKE_TEST = os.environ.get("SMOKE_TEST")  # small numbers, for tests
N_INITIAL = 6
N_MORE, SEEDS, RAW = (3, 1, 16) if SMOKE_TEST else (24, 3, 64)
warnings.filterwarnings("ignore", category=RuntimeWarning)  # of restarts that fail

# %% [markdown]
# ## The problem
#
# The one of BoTorch's tutorial: both outcomes are the same bump, which is to be above
# 0.55 and at most 0.75; neither method is told that they are the same. The feasible
# region is a ring. Each experiment measures both outcomes, with little noise.

# %%
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
NOISE = 1e-3
line = torch.linspace(0, 1, 51, dtype=torch.float64)
grid = torch.cartesian_prod(line, line)
goal = Above(0.55) & Below(0.75, output=1)


def bump(X):
    """Both outcomes at ``n x 2`` points, without noise."""
    value = torch.exp(-2 * (X[:, 0] - 0.3) ** 2 - 4 * (X[:, 1] - 0.6) ** 2)
    return torch.stack((value, value), dim=-1)


truth = (bump(grid)[:, 0] > 0.55) & (bump(grid)[:, 1] <= 0.75)
print(f"{truth.double().mean():.0%} of the box is feasible")


def fitted_model(X, Y):
    """One Gaussian process for each outcome, fitted to the data."""
    models = []
    for y in Y.unsqueeze(-1).unbind(dim=1):
        model = SingleTaskGP(X, y, torch.full_like(y, NOISE**2))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        models.append(model)
    return ModelListGP(*models)


def probability_of_feasibility(model, X):
    """The probability that both requirements hold, at points of any batch shape."""
    posterior = model.posterior(X)
    mean, sigma = posterior.mean, posterior.variance.sqrt()
    above = torch.special.ndtr((mean[..., 0] - 0.55) / sigma[..., 0])
    return above * torch.special.ndtr((0.75 - mean[..., 1]) / sigma[..., 1])


# %% [markdown]
# ## Their acquisition function
#
# In short: throw points into the ball around `x`, and add up the probability of
# feasibility of those in the box that no measured point covers yet. The edge of what is
# covered is smooth, as in their tutorial, so that the optimiser has a gradient.


# %%
class ExpectedCoverageImprovement(AcquisitionFunction):
    """The feasible volume within a radius of ``x`` that nothing covers yet."""

    def __init__(self, model, measured, radius=0.1, n_points=128):
        super().__init__(model=model)
        self.measured, self.radius = measured, radius
        square = draw_sobol_samples(2 * BOX - 1, n=2 * n_points, q=1, seed=0).squeeze(1)
        self.ball = radius * square[square.norm(dim=-1) <= 1][:n_points]

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X):
        """From ``batch_shape x 1 x d`` points to ``batch_shape`` values."""
        points = X + self.ball
        distance = torch.cdist(points, self.measured).amin(dim=-1)
        is_new = torch.sigmoid((distance - self.radius) / 2e-3)
        is_inside = ((points >= 0) & (points <= 1)).all(dim=-1)
        feasible = probability_of_feasibility(self.model, points)
        return (feasible * is_new * is_inside).mean(dim=-1)


# %% [markdown]
# ## Ours
#
# `targets` are the points whose answers matter, here every third point of the grid.
# With `beta` those that the data decide already are left out, which saves time.


# %%
def fewest_errors(model, X):
    """The expected fall of the number of wrong answers at the targets."""
    return qExpectedMisclassification(
        model, targets=grid[::3], goal=goal, noise_var=NOISE**2, beta=9.0
    )


# %% [markdown]
# ## The loop
#
# The same six first points, the same models, the same optimiser. After each
# measurement we ask both for their answer: feasible where the probability is above one
# half.


# %%
def error_of(model):
    """The share of the box on the wrong side."""
    with torch.no_grad():
        answer = probability_of_feasibility(model, grid) > 0.5
    return float((answer != truth).double().mean())


def run(acquisition, seed):
    """Points, errors after each of them, and seconds for each decision."""
    torch.manual_seed(seed)
    noise = torch.Generator().manual_seed(seed)
    X = draw_sobol_samples(BOX, n=N_INITIAL, q=1, seed=seed).squeeze(1)
    Y = bump(X) + NOISE * torch.randn(len(X), 2, generator=noise, dtype=torch.float64)
    model = fitted_model(X, Y)
    errors, seconds = [error_of(model)], []
    for _ in range(N_MORE):
        start = time.process_time()
        given = {"num_restarts": 4, "raw_samples": RAW, "options": {"maxiter": 30}}
        x, _ = optimize_acqf(acquisition(model, X), BOX, q=1, **given)
        seconds.append(time.process_time() - start)
        y = bump(x) + NOISE * torch.randn(1, 2, generator=noise, dtype=torch.float64)
        X, Y = torch.cat((X, x)), torch.cat((Y, y))
        model = fitted_model(X, Y)
        errors.append(error_of(model))
    return X, errors, seconds


methods = {
    "expected coverage": ExpectedCoverageImprovement,
    "fewest wrong answers": fewest_errors,
}
runs = {
    name: [run(acquisition, seed) for seed in range(SEEDS)]
    for name, acquisition in methods.items()
}
for name, results in runs.items():
    last = torch.tensor([errors[-1] for _, errors, _ in results])
    time_each = torch.tensor([each for *_, seconds in results for each in seconds])
    print(
        f"{name}: {last.mean():.2%} of the box wrong after {N_INITIAL + N_MORE} "
        f"measurements, {time_each.mean():.2f} CPU seconds for a decision"
    )

# %% [markdown]
# ## What they measure
#
# Coverage spreads points *inside* the region, which is what one wants of a set of
# designs to choose from. The fall of wrong answers puts them where an answer may still
# change: on both borders of the ring. In this small problem both know the ring after a
# dozen measurements; they differ in the first ones, and in the time of a decision.

# %%
figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for panel, (name, results) in zip(panels[:2], runs.items(), strict=True):
    X, errors, _ = results[0]
    ring = truth.double().view(51, 51).T
    panel.contourf(line, line, ring, levels=[0.5, 1], colors=["#7fa3cf"])
    panel.scatter(*X[:N_INITIAL].T, s=30, c="white", edgecolor="black", label="first")
    panel.scatter(*X[N_INITIAL:].T, s=18, c="black", label="measured later")
    panel.set(title=f"{name}: {errors[-1]:.1%} wrong", xlabel="$x_1$", ylabel="$x_2$")
    panel.legend(loc="lower right")
for (name, results), colour in zip(runs.items(), ("#c8002f", "#2b6ca8"), strict=True):
    errors = torch.tensor([errors for _, errors, _ in results])
    steps = range(N_INITIAL, N_INITIAL + errors.shape[1])
    panels[2].plot(steps, errors.mean(dim=0), color=colour, label=name)
    for own in errors:
        panels[2].plot(steps, own, color=colour, alpha=0.3, linewidth=0.8)
panels[2].set(
    yscale="log", xlabel="measurements", ylabel="share of the box that is wrong"
)
panels[2].legend(
    frameon=False, title=f"thin: seeds 0 to {SEEDS - 1}" if SEEDS > 1 else None
)
figure.savefig("constraint_active_search.png", dpi=120)

# %% [markdown]
# ## Further
#
# - Batches: `optimize_acqf(acqf, BOX, q=4)` optimises four points together, with
#   `sequential=True` one after the other; points that are being measured go into
#   `X_pending`.
# - `Straddle`, `UFunction`, `ContourEntropy`, `LSEAmbiguity` and others take the same
#   `goal`, and so does Ax: `acquisition_generator_spec(qExpectedMisclassification,
#   {"goal": goal, "targets": ...})`, where outputs are the metrics of objective and
#   outcome constraints in alphabetical order.
# - A list of candidates, batches, stopping and a guarantee: `Strategy(pool, goal)`.
#
# [1] G. Malkomes, B. Cheng, E. H. Lee, M. McCourt. Beyond the Pareto efficient
# frontier: constraint active search for multiobjective experimental design. ICML 2021.
