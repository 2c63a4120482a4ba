r"""Exact scores of results that are no numbers, against draws of the process."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.special import entr, ndtr

from botorch_lse import Observations, Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.outcomes import Binary, Counts, Ordinal
from botorch_lse.rules import lookahead
from botorch_lse.rules.lookahead import FINALISTS
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    Below,
    ExpectedMisclassification,
    GaussianProcess,
    MutualInformation,
    RowCosts,
    State,
    Strategy,
)
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import grid, played

X = grid(6)
KERNEL = GPPrior.from_kernel(DenseGP(lengthscale=(0.4, 0.3), outputscale=2.0).kernel())
GRADES = Ordinal(4, at_least=2, cutpoints=(-1.0, 0.0, 1.5))
LEVELS = {Binary(guess=0.2): 0.7, GRADES: 0.6, Counts(): 1.5}
N = 50_000


def product(p: Tensor) -> Tensor:
    return p * (1 - p)


def entropy(p: Tensor) -> Tensor:
    return entr(p) + entr(1 - p)


LOSSES = {
    ExpectedMisclassification(exact=True): product,
    MutualInformation(exact=True): entropy,
    AbsoluteVolumeChange(exact=True): None,
}


def build(rule, outcome, **options) -> Strategy:
    pool = options.pop("pool", Pool(X))
    model = GaussianProcess(KERNEL, outcome=outcome)
    given = {"beta": 1.0, **options}
    return Strategy(pool, Above(LEVELS[outcome]), model=model, rule=rule, **given)


def results(f: Tensor, outcome, generator: torch.Generator) -> Tensor:
    r"""Results at latent values, drawn by the definition of the outcome."""
    given = {"generator": generator, "dtype": torch.float64}
    if isinstance(outcome, Counts):
        return torch.poisson(f.exp(), generator=generator)
    if isinstance(outcome, Binary):
        return (torch.rand(f.shape, **given) < outcome.value(f)).double()
    return outcome.grade(f + torch.randn(f.shape, **given))


def after_some(strategy: Strategy) -> State:
    r"""Results of a wave at every third row."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.arange(0, len(X), 3)
    f = 1.5 * (6 * X[rows]).sin().sum(dim=-1)
    y = results(f, strategy.parts.model.outputs[0].outcome, generator)
    return strategy.replay(Observations(rows, y))


def drawn(strategy: Strategy, state: State, row: int, loss) -> float:
    r"""What a result at a row is expected to change, by draws of ``f`` and of it."""
    (posterior,), outcome = (
        state.belief.fits.posteriors,
        strategy.parts.model.outputs[0].outcome,
    )
    in_question = state.belief.sides.candidates.nonzero().view(-1)
    covariance = posterior.covariance_between(torch.tensor([row]), in_question)
    mean, variance = posterior.mean[row], posterior.variance[row]
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(N, generator=generator, dtype=torch.float64)
    f, slope = mean + variance.sqrt() * z, covariance / variance
    left = (posterior.variance[in_question] - slope * covariance).clamp_min(1e-12)
    level = outcome.latent(torch.tensor(LEVELS[outcome]).double())
    means = posterior.mean[in_question] + slope * (f - mean).unsqueeze(-1)
    above = ndtr((means - level) / left.sqrt())  # given f: fewer draws do
    y = results(f, outcome, generator).clamp_max(40).long()
    number = y.bincount()
    sums = above.new_zeros(len(number), above.shape[1]).index_add(0, y, above)
    after, p = sums / number.clamp_min(1).unsqueeze(-1), above.mean(dim=0)
    shares = number / N
    if loss is None:
        return float((shares * (after - p).sum(dim=-1).abs()).sum())
    return float(loss(p).sum() - (shares * loss(after).sum(dim=-1)).sum())


@pytest.mark.parametrize("outcome", LEVELS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("rule", LOSSES, ids=lambda one: type(one).__name__)
def test_exact_scores_are_expectations_over_all_results(rule, outcome) -> None:
    strategy = build(rule, outcome)
    state = after_some(strategy)
    context = strategy.parts.context(state.belief, torch.tensor([], dtype=torch.long))
    rows = torch.tensor([1, 8, 15, 22, 30])
    found = rule.scores(context, None, rows)
    wanted = [drawn(strategy, state, int(row), LOSSES[rule]) for row in rows]
    wanted = torch.tensor(wanted).double()
    # Of few draws with a rare result the losses are a little too low after it.
    torch.testing.assert_close(found, wanted, rtol=0.03, atol=2e-3)
    gaussian = type(rule)().scores(context, None, rows)
    assert not torch.allclose(gaussian, wanted, rtol=0.03, atol=2e-3)


@pytest.mark.parametrize("rule", LOSSES, ids=lambda one: type(one).__name__)
def test_measured_numbers_have_the_scores_they_had(rule) -> None:
    given = {"beta": 1.0, "batch_size": 3, "max_observations": 15}
    chosen = []
    for one in (rule, type(rule)()):
        model = GaussianProcess(KERNEL, noise_std=0.3)
        strategy = Strategy(Pool(X), Above(0.2), model=model, rule=one, **given)
        last = played(strategy, lambda rows, _: (6 * X[rows]).sin().sum(dim=-1))[-1]
        chosen.append(last.observations.indices)
    assert torch.equal(*chosen)


@pytest.mark.parametrize("rule", LOSSES, ids=lambda one: type(one).__name__)
def test_only_the_best_rows_are_scored_again_on_some_targets(rule, monkeypatch) -> None:
    strategy = build(rule, Binary(guess=0.2))
    state = after_some(strategy)
    context = strategy.parts.context(state.belief, torch.tensor([], dtype=torch.long))
    rows = torch.arange(len(X))
    assert len(rows) < FINALISTS
    whole = rule.scores(context, None, rows)
    monkeypatch.setattr(lookahead, "FINALISTS", 5)
    few = rule.scores(context, None, rows)
    best = type(rule)().scores(context, None, rows).topk(5).indices
    assert few.nonzero().view(-1).tolist() == best.sort().values.tolist()
    torch.testing.assert_close(few[best], whole[best], rtol=1e-9, atol=0.0)
    # On a sample of the targets, in proportion to the doubt about them.
    monkeypatch.setattr(lookahead, "FINE", 20)
    sampled = rule.scores(context, None, rows)
    torch.testing.assert_close(sampled[best], whole[best], rtol=0.5, atol=0.0)
    assert not torch.allclose(sampled[best], whole[best], rtol=1e-6)


def test_the_best_rows_are_those_per_cost(monkeypatch) -> None:
    monkeypatch.setattr(lookahead, "FINALISTS", 4)
    pool = Pool(X, costs=1.0 + 50.0 * X[:, 0])
    rule = MutualInformation(RowCosts(pool), exact=True)
    strategy = build(rule, Binary(guess=0.2), pool=pool)
    context = strategy.parts.context(
        after_some(strategy).belief, torch.tensor([], dtype=torch.long)
    )
    found = rule.scores(context, None, torch.arange(len(X)))
    assert X[found.nonzero().view(-1), 0].max() <= 0.2


@pytest.mark.parametrize("outcome", LEVELS, ids=lambda one: type(one).__name__)
def test_whole_runs_with_a_learnt_model_and_batches(outcome) -> None:
    generator = torch.Generator().manual_seed(0)

    def measured(rows: Tensor, _: State) -> Tensor:
        return results(3 * (6 * X[rows]).sin().sum(dim=-1), outcome, generator)

    for rule in LOSSES:
        strategy = Strategy(
            Pool(X),
            Above(LEVELS[outcome]),
            model=GaussianProcess(outcome=outcome),
            rule=rule,
            batch_size=5,
            max_observations=60,
        )
        last = played(strategy, measured)[-1]
        assert len(last.observations) == 60
        again = strategy.replay(last.observations)
        assert torch.equal(again.classification.above, last.classification.above)


def test_far_from_the_level_rounding_decides_nothing() -> None:
    strategy = build(MutualInformation(exact=True), Binary(guess=0.2))
    context = strategy.parts.context(
        after_some(strategy).belief, torch.tensor([], dtype=torch.long)
    )
    (posterior,) = context.fits.posteriors
    far = replace(posterior, mean=posterior.mean - 9.0 * posterior.variance.max() - 60)
    context = replace(context, fits=replace(context.fits, posteriors=(far,)))
    rows = torch.arange(len(X))
    found = MutualInformation(exact=True).scores(context, None, rows)
    assert torch.equal(found, MutualInformation().scores(context, None, rows))
    assert float(found.max()) > 0


@pytest.mark.parametrize("of", [ExpectedMisclassification, MutualInformation])
def test_exact_scores_are_of_batches_that_count_one_by_one(of) -> None:
    with pytest.raises(ValueError, match='Expected `batch` to be "believer"'):
        of(exact=True, batch="joint")
    of(batch="joint")  # as the message says
    with pytest.raises(ValueError, match="Expected `exact`"):
        of(exact="yes")
    assert of(exact=True, batch="believer").exact


def test_exact_scores_are_about_one_level() -> None:
    rule = ExpectedMisclassification(exact=True)
    region = Above(0.3) & Below(0.7)
    model = GaussianProcess(KERNEL, outcome=Binary())
    made = partial(Strategy, Pool(X), region, model=model)
    with pytest.raises(ValueError, match="Expected `exact` to be left out"):
        made(rule=rule)
    made(rule=ExpectedMisclassification())  # as the message says
