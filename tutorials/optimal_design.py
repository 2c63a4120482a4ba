# %% [markdown]
# # A design that sharpens towards a level set
#
# Where should noisy measurements go if all we want to know is on which side of a level
# every point lies? MELK answers in rounds. In round `t` it looks at the points still
# undecided, finds the weights `lam` on all points that make the worst uncertainty among
# these smallest, measures by them until everything undecided is known up to `2^-t`, and
# removes what has become clear. Nearly all measurements end up where the function runs
# close to the level. This is Figure 1 of Mason et al. (2022).

# %%
import os

import matplotlib.pyplot as plt
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse.designs import optimal_design, round_design
from botorch_lse.papers import level_set_complexity

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
SIDE = 12 if QUICK else 30
GAMMA = 1e-3  # the ridge: noise variance over the number of measurements
LEVEL = 0.0

line = torch.arange(1, SIDE + 1, dtype=torch.float64) / SIDE
X = torch.cartesian_prod(line, line)
kernel = RBFKernel()
kernel.lengthscale = 0.1 if not QUICK else 0.25

# %% [markdown]
# The truth is one function drawn from the Gaussian process of this kernel.

# %%
with torch.no_grad():
    K = kernel(X).to_dense().double()
values, vectors = torch.linalg.eigh(K)
white = torch.randn(len(X), generator=torch.Generator().manual_seed(1)).double()
f = vectors @ (values.clamp_min(0).sqrt() * white)
gaps = (f - LEVEL).abs()
print(f"{int((f > LEVEL).sum())} of {len(X)} points are above the level")

# %% [markdown]
# ## The rounds
# To see the designs alone we let every round's estimate be exact, so that after round
# `t` the points within `2 * 2^-t` of the level remain. `optimal_design` returns the
# weights together with a proof: no design has a value below `lower_bound`.

# %%
rounds, active, t = [], torch.ones(len(X), dtype=torch.bool), 1
while bool(active.any()):
    design = optimal_design(X, active, kernel=kernel, gamma=GAMMA, tol=1e-2)
    rounds.append((t, int(active.sum()), design))
    print(f"round {t}: {int(active.sum()):3d} undecided, {design}")
    active &= gaps <= 2 * 2.0**-t
    t += 1

# %% [markdown]
# The number of measurements of a round is proportional to `4^t` times the design's
# value (Algorithm 1, line 5). Summed up, the rounds should come close to what an oracle
# plays who knows the function: the design of Theorem 3.1, where every point weighs
# `1 / gap^2`. Half the sum of the absolute differences (the total variation) tells how
# close; measured on single grid points it is harsh, because a neighbour does nearly the
# same service, so we also compare the two after smoothing with the kernel.

# %%
total = sum(4.0**t * design.value * design.weights for t, _, design in rounds)
total = total / total.sum()
oracle = level_set_complexity(X, f, LEVEL, gamma=GAMMA, kernel=kernel, tol=1e-2)
lam = oracle.design.weights
smooth = K / K.sum(dim=0)
for name, difference in (
    ("point by point", total - lam),
    ("smoothed over a lengthscale", smooth @ (total - lam)),
):
    print(f"total variation, {name}: {0.5 * float(difference.abs().sum()):.2f}")


def worst_ratio(weights):
    """The largest variance per squared gap, times the number of measurements."""
    root = weights.sqrt()
    A = root[:, None] * K * root + GAMMA * torch.eye(len(X), dtype=torch.float64)
    gain = torch.linalg.solve_triangular(
        torch.linalg.cholesky(A), root[:, None] * K, upper=False
    )
    return float(((1 - gain.square().sum(dim=0)) / GAMMA / gaps**2).max())


uniform = torch.full_like(lam, 1 / len(X))
for name, weights in (("uniform", uniform), ("sum of the rounds", total)):
    more = worst_ratio(weights) / oracle.lower_bound
    print(f"measurements needed, {name}: {more:.1f} times the oracle's")
n = 400
counts = round_design(total, n)
near = gaps < 0.25
print(
    f"{float(near.double().mean()):.0%} of the points are within 0.25 of the level; "
    f"they get {int(counts[near].sum())} of {n} measurements"
)

# %% [markdown]
# ## The picture
# Dots are weights, the line is the level set. The initial design is spread evenly; each
# next one keeps to what is undecided.

# %%
shown = [rounds[i] for i in sorted({0, 1, 2, 3, len(rounds) // 2 + 2, len(rounds) - 1})]
panels = [(f"round {t}: {k} undecided", d.weights) for t, k, d in shown]
panels += [("sum of the rounds", total), ("the oracle's design", lam)]
figure, axes = plt.subplots(2, 4, figsize=(13, 6.8), layout="constrained")
reach = float(f.abs().max())
for axis, (title, weights) in zip(axes.flat, panels, strict=False):
    image = f.reshape(SIDE, SIDE).T
    shades = axis.pcolormesh(
        line, line, image, cmap="RdBu_r", vmin=-reach, vmax=reach, alpha=0.35
    )
    axis.contour(line, line, image, levels=[LEVEL], colors="black", linewidths=1.2)
    size = 900 * weights**0.75
    axis.scatter(*X.T, s=size, color="#1b6e3c", linewidth=0)
    axis.set(title=title, xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    axis.label_outer()
for axis in axes.flat[len(panels) :]:
    axis.set_visible(False)
figure.colorbar(shades, ax=axes, shrink=0.6, label="f")
marks = [
    plt.Line2D([], [], color="#1b6e3c", marker="o", lw=0, label="weight of the design"),
    plt.Line2D([], [], color="black", lw=1.2, label="the level, f = 0"),
]
figure.legend(handles=marks, loc="outside lower center", ncols=2)
figure.savefig("optimal_design.png", dpi=110)
