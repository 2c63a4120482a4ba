r"""AEPsych's acquisition functions choose rows of a pool, see README.md.

``python aepsych_rows.py GlobalMI`` (or ``GlobalSUR``, ``EAVC``,
``MCLevelSetEstimation``) needs ``aepsych`` and nothing of ours.

AEPsych looks ahead to answers "yes" and "no", a step of the normal distribution
function over a latent function. In units of the noise, ``(f - level) / noise_std``,
that is the answer whether a noisy value is above the level. So its criteria are those
of the bit that a measurement yields here, on a posterior given the values themselves.
They know no rows that are being measured: a batch is the ``q`` best rows.
"""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import chdir
from tempfile import TemporaryDirectory

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.objective import IdentityMCObjective
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from protocol import Chooser, serve
from torch import Tensor

with TemporaryDirectory() as folder, chdir(folder):
    # It makes a folder `logs` where it is imported.
    from aepsych.acquisition import EAVC, GlobalMI, GlobalSUR, MCLevelSetEstimation
    from aepsych.models import GPRegressionModel

LOOK_AHEAD = {"GlobalMI": GlobalMI, "GlobalSUR": GlobalSUR, "EAVC": EAVC}
CRITERIA = [*LOOK_AHEAD, "MCLevelSetEstimation"]
TARGETS = 256
"""AEPsych's own number of points at which something is to be learnt."""
AT_ONCE = 32
"""Candidates evaluated together: each takes a covariance of all targets."""


def kernel_of(process: dict) -> Kernel:
    r"""The kernel without its scale."""
    scales = torch.tensor(process["lengthscale"], dtype=torch.float64)
    if process["kernel"] == "rbf":
        kernel: Kernel = RBFKernel(ard_num_dims=len(scales))
    else:
        nu = float(process["kernel"].removeprefix("matern"))
        kernel = MaternKernel(nu, ard_num_dims=len(scales))
    kernel = kernel.double()
    kernel.lengthscale = scales
    return kernel


def model_of(case: dict) -> GPRegressionModel:
    r"""The process of the case with its hyper-parameters, in units of the noise."""
    process, noise_std = case["process"], math.sqrt(case["noise_var"])
    mean = ConstantMean().double()
    mean.initialize(constant=(process["mean"] - case["threshold"]) / noise_std)
    kernel = ScaleKernel(kernel_of(process)).double()
    kernel.outputscale = process["variance"] / case["noise_var"]
    likelihood = GaussianLikelihood().double()
    likelihood.noise = 1.0
    d = len(process["lengthscale"])
    return GPRegressionModel(d, mean, kernel, likelihood)


def criterion_of(
    name: str, model: GPRegressionModel, X: Tensor, seed: int
) -> AcquisitionFunction:
    r"""A criterion of a row, larger where it is better."""
    if name == "MCLevelSetEstimation":
        # The values themselves, not a probability of yes; its own beta of 3.84.
        return MCLevelSetEstimation(model, target=0.0, objective=IdentityMCObjective())
    generator = torch.Generator().manual_seed(seed)
    targets = X[torch.randperm(len(X), generator=generator)[:TARGETS]]
    low, high = X.amin(dim=0), X.amax(dim=0)
    # The probability of "yes" at the level is one half.
    return LOOK_AHEAD[name](
        low, high, model, target=0.5, query_set_size=len(targets), Xq=targets
    )


def start(name: str, case: dict) -> Chooser:
    r"""What chooses rows by a criterion."""
    X = torch.tensor(case["X"], dtype=torch.float64)
    noise_std = math.sqrt(case["noise_var"])
    torch.manual_seed(case["seed"])

    def choose(rows: list[int], y: list[float]) -> list[int]:
        values = (torch.tensor(y, dtype=torch.float64) - case["threshold"]) / noise_std
        # A new model, since AEPsych's keeps caches when it is given other data.
        model = model_of(case)
        model.set_train_data(X[rows], values)
        model.eval()
        criterion = criterion_of(name, model, X, case["seed"] + len(rows))
        with torch.no_grad():
            parts = [criterion(some) for some in X.unsqueeze(-2).split(AT_ONCE)]
        scores = torch.cat(parts).nan_to_num(-math.inf)
        return scores.topk(case["q"]).indices.tolist()

    return choose


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CRITERIA:
        raise SystemExit(f"usage: aepsych_rows.py {'|'.join(CRITERIA)}")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    serve(lambda case: start(sys.argv[1], case))
