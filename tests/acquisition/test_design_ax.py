r"""Ax's modular generator builds the design criteria."""

import pytest
import torch

pytest.importorskip("ax")

from botorch_lse.acquisition import qMELK, qMILK, qNegMaxPosteriorVariance
from botorch_lse.ax import acquisition_generator_spec
from tests.ax.test_acquisitions import modular_client

TARGETS = 2 * torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.filterwarnings("ignore:Optimization failed")
@pytest.mark.parametrize(
    ("acqf_class", "options"),
    [(qNegMaxPosteriorVariance, {}), (qMELK, {}), (qMILK, {"omega": 0.8})],
)
def test_concurrent_trials_lower_the_worst_variance(acqf_class, options):
    arguments = {"targets": TARGETS, "noise_var": 1.0, **options}
    client = modular_client(acquisition_generator_spec(acqf_class, arguments))
    trials = client.get_next_trials(3)
    points = torch.tensor([[p["a"], p["b"]] for p in trials.values()]).double()
    model = client._generation_strategy.adapter.generator.surrogate.model
    acqf = acqf_class(model, **arguments)
    with torch.no_grad():
        chosen = acqf(points)
        generator = torch.Generator().manual_seed(1)
        random = acqf(2 * torch.rand(100, 3, 2, generator=generator).double())
    assert chosen >= random.median()
