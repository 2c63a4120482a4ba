r"""What is removed from the doubt about a class, against draws of what may be seen."""

from __future__ import annotations

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from botorch_lse.functional.cells import Cells
from botorch_lse.functional.class_removal import (
    ClassRemoval,
    ProductRemoval,
    class_removal,
    covariance_removal,
    level_weights,
)
from botorch_lse.functional.lookahead import expected_misclassification
from botorch_lse.strategies import Above, Between, Levels, Region

REGIONS: dict[str, Region] = {
    "and": Above(0.3) & Above(-0.2, output=1),
    "or": Above(0.3) | Above(-0.2, output=1),
    "exclusive or": (Above(0.3) | Above(-0.2, output=1))
    & ~(Above(0.3) & Above(-0.2, output=1)),
    "band": Between(-0.4, 0.5),
    "band or above": Between(-0.4, 0.5) | Above(0.1, output=1),
    "three": (Above(0.3) & Above(-0.2, output=1)) | Between(-0.5, 0.5, output=2),
    "levels": Levels((-0.6, 0.0, 0.6)),
}


@pytest.mark.parametrize("rho", [1e-6, 0.05, 0.4, 0.8, 0.97])
@pytest.mark.parametrize("a", [(0.2, -0.3), (1.5, 1.4), (-3.0, 0.5), (0.0, 4.0)])
def test_the_covariance_of_two_comparisons_is_a_bivariate_integral(a, rho) -> None:
    one, other = (torch.tensor([x]).double() for x in a)
    variance = torch.ones(1).double()
    found = covariance_removal(one, other, variance).of(torch.tensor([rho]).double())

    def density(r: float) -> float:
        return float(multivariate_normal.pdf(a, cov=[[1.0, r], [r, 1.0]]))

    wanted, _ = quad(density, 0.0, rho, epsabs=1e-12)
    assert float(found) == pytest.approx(wanted, abs=5e-6)


def test_what_is_known_exactly_has_the_covariance_of_the_comparisons() -> None:
    one, other = torch.tensor([0.4]).double(), torch.tensor([-0.8]).double()
    variance = torch.ones(1).double()
    found = covariance_removal(one, other, variance).of(variance)
    wanted = norm.cdf(-0.8) * (1 - norm.cdf(0.4))
    assert float(found) == pytest.approx(wanted, abs=5e-6)


@pytest.mark.parametrize("name", REGIONS)
def test_removals_are_those_of_draws(name) -> None:
    region, T, draws = REGIONS[name], 4, 40_000
    m = region.n_outputs
    generator = torch.Generator().manual_seed(5)
    shape = (m, T)
    mean = torch.randn(shape, generator=generator, dtype=torch.float64) / 2
    variance = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.2
    share = torch.rand(shape, generator=generator, dtype=torch.float64)
    gain = share * variance
    removal = class_removal(region.values.cells, list(mean), list(variance))
    found = removal.of([g.unsqueeze(0) for g in gain])[0]
    noise = torch.randn(draws, *shape, generator=generator, dtype=torch.float64)
    means = mean + gain.sqrt() * noise
    sigma = (variance - gain).sqrt().unsqueeze(0).expand_as(means)

    def doubt(m_: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        each = [m_[:, j].reshape(-1) for j in range(m)]
        spread = [s[:, j].reshape(-1) for j in range(m)]
        p = region.values.cells.probabilities(each, spread)
        return ((1 - p.square().sum(dim=-1)) / 2).view(-1, T)

    now = doubt(mean.unsqueeze(0), variance.sqrt().unsqueeze(0))[0]
    after = doubt(means, sigma)
    wanted = now - after.mean(dim=0)
    error = after.std(dim=0) / draws**0.5
    assert bool(((found - wanted).abs() <= 4 * error).all())
    assert bool((found > 0).all())


def test_covariances_count_by_weights() -> None:
    generator = torch.Generator().manual_seed(3)
    mean = torch.randn((1, 4), generator=generator, dtype=torch.float64)
    variance = torch.rand((1, 4), generator=generator, dtype=torch.float64) + 0.2
    weight = torch.tensor([0.0, 0.5, 1.0, 3.0], dtype=torch.float64)
    gains = [g.unsqueeze(0) for g in 0.4 * variance]
    one, other = mean[0], mean[0] + 0.7
    pair, gain = covariance_removal(one, other, variance[0]), gains[0]
    wanted = pair.of(gain) * weight
    torch.testing.assert_close(pair.weighted(weight).of(gain), wanted)
    torch.testing.assert_close(pair.weighted(weight).summed(gain), wanted.sum(dim=-1))


def test_nothing_learnt_removes_nothing_and_everything_learnt_all() -> None:
    region = REGIONS["three"]
    mean = [torch.tensor([0.1, -0.6]).double()] * 3
    variance = [torch.tensor([0.5, 0.9]).double()] * 3
    removal = class_removal(region.values.cells, mean, variance)
    nothing = [torch.zeros(1, 2).double()] * 3
    assert removal.of(nothing).abs().max() < 1e-12
    found = removal.of([v.unsqueeze(0) for v in variance])[0]
    p = region.values.cells.probabilities(mean, [v.sqrt() for v in variance])
    wanted = (1 - p.square().sum(dim=-1)) / 2
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=2e-5)


def test_of_one_level_it_is_the_misclassification_of_that_level() -> None:
    mean, variance = torch.tensor([0.1, 0.9]).double(), torch.tensor([0.5, 2]).double()
    gain = 0.3 * variance.unsqueeze(0)
    removal = class_removal(Above(0.3).values.cells, [mean], [variance])
    wanted = expected_misclassification(mean - 0.3, variance).of(gain)
    assert removal.of([gain])[0].tolist() == pytest.approx(wanted[0].tolist())
    (weights,) = level_weights(Above(0.3).values.cells, [mean], [variance])
    assert weights.tolist() == [[1.0], [1.0]]


def test_an_output_that_cannot_matter_any_more_has_no_weight() -> None:
    region = Above(0.0) & Above(0.0, output=1)
    mean = [torch.tensor([0.0]).double(), torch.tensor([-9.0]).double()]
    sure = [torch.ones(1).double()] * 2
    first, second = level_weights(region.values.cells, mean, sure)
    assert float(first) < 1e-15
    assert float(second) == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["and", "or", "band", "one", "many"])
def test_a_product_of_sets_needs_one_step_for_each_output(name, monkeypatch) -> None:
    many = Above(0.1) & Between(-0.9, 0.4, output=1) & ~Above(0.2, output=2)
    region = {**REGIONS, "one": Above(0.3), "many": many}[name]
    m, T, C = region.n_outputs, 5, 3
    generator = torch.Generator().manual_seed(6)
    mean = torch.randn((m, T), generator=generator, dtype=torch.float64)
    variance = torch.rand((m, T), generator=generator, dtype=torch.float64) + 0.2
    share = torch.rand((m, C, T), generator=generator, dtype=torch.float64)
    gains = list(share * variance.unsqueeze(1))
    given = region.values.cells, list(mean), list(variance)
    found = class_removal(*given)
    assert isinstance(found, ProductRemoval)
    monkeypatch.setattr(Cells, "factors", lambda cells: None)
    wanted = class_removal(*given)
    assert isinstance(wanted, ClassRemoval)
    torch.testing.assert_close(found.of(gains), wanted.of(gains), rtol=1e-8, atol=0)


def test_levels_by_row_may_make_a_product_of_each() -> None:
    region = Above((0.3, -0.2, 0.1)) & Above(0.0, output=1)
    assert region.values.cells.factors() is not None
    assert REGIONS["exclusive or"].values.cells.factors() is None
    assert REGIONS["levels"].values.cells.factors() is None
