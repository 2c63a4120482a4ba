# %% [markdown]
# # Ax's modular BoTorch generator with our acquisition functions
#
# Where is a landscape higher than 1? It is a ring of hills around a basin, there is no
# list of candidates, and any point of a square may be measured.
#
# On a continuous search space, without a pool: any class of `botorch_lse.acquisition`
# is an ordinary BoTorch acquisition function. A Sobol node comes first, as usual in Ax.

# %%
import logging
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_lse.acquisition import Straddle
from botorch_lse.ax import acquisition_generator_spec, run_experiment

logging.disable(logging.INFO)
QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
BUDGET = 12 if QUICK else 40
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The strategy
# The threshold is in the units of the metric: `acquisition_generator_spec` switches off
# the transforms of Ax that would change them. The objective's sign plays no role.

# %%
straddle = acquisition_generator_spec(Straddle, {"threshold": 1.0, "beta": 3.84})
sobol = GenerationNode(
    name="Sobol",
    generator_specs=[GeneratorSpec(Generators.SOBOL, {"seed": 0})],
    transition_criteria=[MinTrials(threshold=8, transition_to="Straddle")],
)
nodes = [sobol, GenerationNode(name="Straddle", generator_specs=[straddle])]
client = Client(random_seed=0)
client.configure_experiment(
    parameters=[
        RangeParameterConfig(name="x", bounds=(-2.0, 2.0), parameter_type="float"),
        RangeParameterConfig(name="y", bounds=(-2.0, 2.0), parameter_type="float"),
    ],
    name="modular",
)
client.configure_optimization(objective="height")
client.set_generation_strategy(GenerationStrategy(nodes=nodes, name="Sobol+Straddle"))


# %%
def height(x, y):
    """A ring of hills: above 1 between two circles."""
    return 2 - (x**2 + y**2 - 1.5) ** 2


def evaluate(parameters: dict) -> tuple[float, float]:
    """A measurement with its standard error."""
    rng = np.random.default_rng(int(1e6 * (parameters["x"] + 2)))
    return height(**parameters) + 0.05 * rng.standard_normal(), 0.05


# %% [markdown]
# `run_experiment` runs any generation strategy; this one has no stop of its own.

# %%
print(
    run_experiment(client, evaluate, max_trials=BUDGET, storage=folder / "modular.json")
)

# %% [markdown]
# ## The level set from the model
# Without a pool the answer is a prediction, wherever you want it.

# %%
line = np.linspace(-2, 2, 9 if QUICK else 25)
points = [{"x": float(a), "y": float(b)} for a in line for b in line]
means = np.array([p["height"][0] for p in client.predict(points)])
truth = np.array([height(**point) for point in points])
print(f"{np.mean((means > 1) == (truth > 1)):.1%} of the points on their true side")

# %% [markdown]
# The first eight measurements are spread over the square; the others follow the level.

# %%
rows = client.summarize()
figure, axes = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
side = means.reshape(len(line), len(line)).T
shades = axes.contourf(line, line, side, levels=12, cmap="cividis", alpha=0.6)
figure.colorbar(shades, label="predicted height")
x, y = np.meshgrid(line, line)
axes.contour(line, line, height(x, y), levels=[1.0], colors="#c8002f")
axes.plot([], [], color="#c8002f", label="truly 1")
axes.scatter(rows["x"][:8], rows["y"][:8], c="white", ec="black", label="Sobol")
axes.scatter(rows["x"][8:], rows["y"][8:], c="black", s=14, label="straddle")
axes.set(xlabel="x", ylabel="y", aspect="equal")
figure.legend(loc="outside lower center", ncols=3)
figure.savefig(folder / "modular.png", dpi=120)
