r"""Names that the docstrings' examples may use."""

from importlib.util import find_spec

import pytest
import torch
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from gpytorch.likelihoods import BernoulliLikelihood

# The examples of an adapter need the library that it adapts.
collect_ignore = [
    f"botorch_lse/integrations/{name}.py"
    for name, library in (
        ("gest", "gest_api"),
        ("optuna", "optuna"),
        ("ray", "ray"),
        ("sklearn", "sklearn"),
    )
    if find_spec(library) is None
]


def pytest_collection_modifyitems(items):
    r"""The example that starts Ray runs with the tests of engines."""
    for item in items:
        if item.nodeid.startswith("botorch_lse/integrations/ray.py"):
            item.add_marker(pytest.mark.engine)


@pytest.fixture(autouse=True)
def _example_names(doctest_namespace):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    doctest_namespace["torch"] = torch
    doctest_namespace["X"] = X.unsqueeze(-2)
    doctest_namespace["pool_X"] = X
    if "model" not in doctest_namespace:
        doctest_namespace["model"] = SingleTaskGP(X, (5 * X).sin().sum(-1, True))
        answers = BernoulliLikelihood()
        doctest_namespace["classifier"] = SingleTaskVariationalGP(X, None, answers)
