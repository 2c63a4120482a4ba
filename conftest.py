r"""Names that the docstrings' examples may use."""

import pytest
import torch
from botorch.models import SingleTaskGP


def pytest_collection_modifyitems(items):
    r"""The example that starts Ray takes long."""
    for item in items:
        if item.name == "botorch_lse.integrations.ray.RayExecutor":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _example_names(doctest_namespace):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    doctest_namespace["torch"] = torch
    doctest_namespace["X"] = X.unsqueeze(-2)
    doctest_namespace["pool_X"] = X
    if "model" not in doctest_namespace:
        doctest_namespace["model"] = SingleTaskGP(X, (5 * X).sin().sum(-1, True))
