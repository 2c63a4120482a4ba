r"""Audits of Pareto sets: what counts as right, and when they pass."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.confidence.audit import REFERENCE_SHARE, audit_test, spent
from botorch_lse.confidence.judges import ParetoJudge, Values
from botorch_lse.data.observations import derived
from botorch_lse.papers import PALStrategy
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies import (
    GaussianProcess,
    GEGELinearStrategy,
    GEGEStrategy,
    ParetoByDifferences,
    Strategy,
)
from botorch_lse.strategies.algorithm import AuditFacts
from botorch_lse.strategies.criteria.audit import Audit
from tests.covering import more_in_full
from tests.strategies.criteria.test_audits_of_runs import POOL, N, Stubborn

KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.3
STD, EPSILON = 0.05, 0.2
SIGNS = torch.tensor([1.0, -1.0]).double()
TRUTH = torch.stack(
    [(5 * POOL.X[:, 0]).sin() + POOL.X[:, 1], (3 * POOL.X[:, 1]).cos() * POOL.X[:, 0]],
    dim=-1,
)


def faults(accepted: torch.Tensor, truth: torch.Tensor, epsilon: float) -> torch.Tensor:
    r"""``N`` bools: the rows that are wrong, row by row."""
    values, found = SIGNS * truth, torch.zeros(len(truth), dtype=torch.bool)
    front = accepted.nonzero().view(-1).tolist()
    for row in range(len(truth)):
        reaches = [bool((values[row] <= values[p] + epsilon).all()) for p in front]
        exceeds = [bool((values[p] > values[row] + epsilon).all()) for p in front]
        found[row] = any(exceeds) if row in front else not any(reaches)
    return found


def values_of(mean, std, counts, before=None):
    spread = torch.full_like(mean, std)
    return Values(mean, spread, counts, 8, before=before, risk=0.005)


def exactly(truth: torch.Tensor) -> Values:
    once = torch.ones(len(truth), dtype=torch.long)
    return values_of(truth, 0.0, once, before=values_of(truth, 0.0, once))


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_without_noise_a_row_is_right_by_definition(epsilon, seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    accepted = pareto_mask(SIGNS * truth)
    flipped = torch.randint(60, (12,), generator=generator)
    accepted[flipped] = ~accepted[flipped]
    epsilons = torch.full((2,), epsilon).double()
    judge = ParetoJudge(SIGNS, epsilons)
    verdict = judge.verdicts(accepted.long(), exactly(truth), 0.05)
    wrong = faults(accepted, truth, epsilon)
    assert bool(wrong.any())
    assert torch.equal(verdict < 0, wrong)
    assert not bool((judge.missing(accepted.long(), exactly(truth)) > 0).any())


def test_an_accepted_row_is_wrong_only_if_another_one_surely_exceeds_it() -> None:
    truth = torch.tensor([[0.0, 0.0], [0.3, -0.3], [5.0, 5.0]]).double()
    labels, counts = torch.tensor([1, 1, 0]), torch.tensor([8, 8, 8])
    judge = ParetoJudge(SIGNS, torch.full((2,), 0.1).double())
    for std, expected in ((0.01, -1), (1.0, 0)):
        before = values_of(truth, std, counts)
        values = values_of(truth, std, counts, before=before)
        assert judge.verdicts(labels, values, 0.05).tolist()[:2] == [expected, 0]
    assert judge.is_drawn(labels).tolist() == [False, False, True]


def test_accepted_rows_are_measured_until_they_are_known() -> None:
    judge = ParetoJudge(SIGNS, torch.full((2,), 1.0).double())
    labels = (torch.arange(N) < 3).long()
    counts = torch.where(torch.arange(N) == 1, 1, 0)
    before = values_of(TRUTH, 0.05, counts)  # one value is enough
    values = values_of(TRUTH, 0.05, counts, before=before)
    assert judge.missing(labels, values)[:5].tolist() == [1, 0, 1, 0, 0]
    before = values_of(TRUTH, 5.0, counts)  # never enough
    for done, more in ((0, 1), (1, 1), (2, 2), (4, 4), (8, 0), (9, 0)):
        before = values_of(TRUTH, 5.0, torch.full_like(counts, done))
        values = values_of(TRUTH, 5.0, counts, before=before)
        assert judge.missing(labels, values)[:4].tolist() == [more] * 3 + [0]


@pytest.mark.slow
@more_in_full("n", 300, 5000)
@pytest.mark.parametrize("is_gaussian", [True, False])
def test_bounds_hold_at_all_counts_together(n, is_gaussian) -> None:
    generator = torch.Generator().manual_seed(0)
    risk, broken = 0.2, 0
    for _ in range(n):
        noise = torch.randn(5, 2, 64, generator=generator, dtype=torch.float64)
        means, is_out = noise.cumsum(dim=-1), False
        for count in range(1, 65):
            counts = torch.full((5,), count)
            mean = means[..., count - 1] / count
            values = Values(mean, torch.ones(5, 2).double(), counts, 8, is_gaussian)
            is_out |= bool((mean.abs() > values.lasting_reach(risk)).any())
        broken += is_out
    assert broken <= risk * n + 3 * (risk * n) ** 0.5
    none = Values(mean, torch.ones(5, 2).double(), torch.zeros(5).long(), 8)
    assert bool(none.lasting_reach(risk).isinf().all())


def test_references_take_their_share_of_delta() -> None:
    plain, own = (audit_test(0.05, 0.05, has_references=flag) for flag in (False, True))
    assert own.limit == pytest.approx(plain.limit / (1 - REFERENCE_SHARE))
    both = audit_test(0.05, 0.05, is_learnt=True, has_references=True)
    assert 1 / both.limit + 0.2 * spent(0.05, 1) == pytest.approx(spent(0.05, 1))


# --- claims ---------------------------------------------------------------------------


class Fronts(Stubborn):
    r"""An algorithm that accepts the same rows whatever it is told."""

    judge: ParetoJudge

    audit_facts = AuditFacts(2, by_itself=False)

    def audit_judge(self, belief):
        return self.judge

    def audited(self, belief, new):
        return derived(new, yvar=torch.full_like(new.y, self.std**2))


def claim_of(n_wrong: int, n: int = 400, seed: int = 0):
    r"""A front of five rows, and rejected rows of which some are just better."""
    generator = torch.Generator().manual_seed(seed)
    truth = -2 - torch.rand(n, 2, generator=generator, dtype=torch.float64)
    line = torch.linspace(0, 4, 5, dtype=torch.float64)
    truth[:5] = torch.stack([line, 4 - line], dim=-1)
    # Beyond the front by as little as counts, in the first output.
    truth[5 : 5 + n_wrong] = torch.tensor([4 + EPSILON + 1e-9, 0.0]).double()
    labels = (torch.arange(n) < 5).long()
    return Pool(torch.arange(n).double().unsqueeze(-1)), labels, truth * SIGNS


def audited_claim(n_wrong, seed, kind="known", limit=1000, std=0.2):
    pool, labels, truth = claim_of(n_wrong)
    inner = Fronts(pool, torch.where(labels == 1, 1, -1).to(torch.int8), std, 16, kind)
    epsilons = torch.full((2,), EPSILON).double()
    object.__setattr__(inner, "judge", ParetoJudge(SIGNS, epsilons))
    strategy = GEGEStrategy(
        pool,
        maximize=(True, False),
        model=(KERNEL, KERNEL),
        noise_std=std,
        batch_size=16,
        max_observations=limit,
        audit=(0.05, 0.05),
    )
    vars(strategy)["algorithm"] = inner
    vars(strategy)["criteria"] = (Audit(pool, 0.05, 0.05),)
    state = strategy.init(seed)
    generator = torch.Generator().manual_seed(77 + seed)
    while not state.is_done:
        batch = strategy.ask(state)
        noise = torch.randn(len(batch), 2, generator=generator).double()
        state = strategy.tell(state, batch.observe(truth[batch.order] + std * noise))
    return state


@pytest.mark.parametrize("kind", ["known", "learnt"])
def test_a_front_that_holds_passes(kind) -> None:
    state = audited_claim(0, 0, kind)
    assert state.stop_reason == "audited"
    words = state.classification.guarantee
    assert "rejected rows not measured before the audit are wrong (better than" in words
    counts = torch.bincount(state.observations.indices, minlength=400)
    assert int(counts[:5].sum()) == 40  # of noise as large as epsilon, all eight times
    assert state.n_used < 40 + 110


@pytest.mark.slow
@more_in_full("n_runs", 20, 400)
@pytest.mark.parametrize("kind", ["known", "learnt"])
def test_a_front_that_misses_too_many_passes_rarely(kind, n_runs) -> None:
    ends = [audited_claim(20, s, kind, 300).stop_reason for s in range(n_runs)]
    assert ends.count("audited") <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5


# --- runs -----------------------------------------------------------------------------


def measured(batch, state, seed, std=STD):
    generator = torch.Generator().manual_seed(1000 * seed + state.round)
    noise = torch.randn(len(batch.order), 2, generator=generator, dtype=torch.float64)
    return batch.observe(TRUTH[batch.order] + std * noise)


def end_of(strategy, seed=0, stop=None, std=STD, lose=False):
    state = strategy.init(seed)
    while not state.is_done and (stop is None or state.round < stop):
        batch = strategy.ask(state)
        told = measured(batch, state, seed, std)
        state = strategy.tell(state, told)
    return state


def build(name="GEGE", **options):
    known = {"maximize": (True, False), "audit": (0.1, 0.05), "batch_size": 8}
    gaussian = {"model": (KERNEL, KERNEL), "noise_std": STD, "epsilon": EPSILON}
    known |= {"max_observations": 600, **gaussian, **options}
    if name == "parts":
        goal = ParetoByDifferences(known.pop("maximize"), (known.pop("epsilon"),) * 2)
        model = GaussianProcess(known.pop("model"), known.pop("noise_std"))
        return Strategy(POOL, goal, model=model, **known)
    return {"GEGE": GEGEStrategy, "PAL": PALStrategy}[name](POOL, **known)


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("name", ["GEGE", "PAL", "parts"])
def test_runs_end_audited_and_can_be_resumed_at_any_time(name) -> None:
    strategy = build(name)
    whole = end_of(strategy)
    assert whole.stop_reason == "audited"
    answer = whole.classification
    assert float(faults(answer.above, TRUTH, EPSILON).double().mean()) <= 0.1
    assert strategy.estimate(whole).mean.shape == (N, 2)
    for stop in range(1, whole.round, whole.round // 3):
        part = end_of(strategy, stop=stop)
        again = strategy.replay(part.observations)
        assert (again.round, again.stop_reason) == (part.round, part.stop_reason)
        batches = [strategy.ask(s).order.tolist() for s in (part, again)]
        assert batches[0] == batches[1]
        assert again.forecast().observations == part.forecast().observations


@pytest.mark.slow
def test_learnt_models_and_noise_are_audited() -> None:
    state = end_of(build(model=None, noise_std=None))
    assert state.stop_reason == "audited"
    assert "bounded by" in state.classification.guarantee
    wrong = faults(state.classification.above, TRUTH, EPSILON)
    assert float(wrong.double().mean()) <= 0.1


def test_simulations_without_noise_need_no_value_twice() -> None:
    state = end_of(build(noise_std=0.0, epsilon=0.05), std=0.0)
    assert state.stop_reason in ("audited", "decided")
    rows = state.observations.indices
    assert rows.unique().numel() == len(rows)


@pytest.mark.slow
def test_accepted_rows_that_are_lost_do_not_hold_up_the_audit() -> None:
    strategy, lost = build(), []
    state = strategy.init()
    while not state.is_done:
        batch, claim = strategy.ask(state), state.run.notes[0].claim
        gone = batch.order[:0]
        if claim is not None and not lost:
            gone = batch.order[claim.labels[batch.order] == 1].unique()[:1]
        lost += gone.tolist()
        rows = batch.order[~torch.isin(batch.order, gone)]
        told = Observations(rows, TRUTH[rows])
        state = strategy.tell(state, told, abandoned=gone.tolist())
    assert len(lost) == 1
    assert strategy.tell(state, None, abandoned=[]) is state
    with pytest.raises(ValueError, match=r"`abandoned` to hold rows.*\[\], but got 3"):
        strategy.tell(state, None, abandoned=[3])
    assert state.stop_reason in ("audited", "decided", "not confirmed")


@pytest.mark.slow
def test_accepted_rows_that_cannot_be_measured_do_not_hold_up_the_audit() -> None:
    strategy = build()
    accepted = pareto_mask(SIGNS * TRUTH).nonzero().view(-1)[:2]
    state = strategy.exclude(strategy.init(), accepted)
    while not state.is_done:
        batch = strategy.ask(state)
        assert not bool(torch.isin(accepted, batch.order).any())
        state = strategy.tell(state, measured(batch, state, 0))
    assert state.stop_reason == "audited"
    assert not bool((state.observations.indices.unsqueeze(-1) == accepted).any())


def test_linear_outputs_are_audited_likewise() -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(150, 3, generator=generator, dtype=torch.float64)
    X = torch.nn.functional.normalize(X, dim=-1)
    truth = X @ torch.tensor([[1.0, -0.4], [0.6, 0.8], [-0.4, 0.2]]).double()
    strategy = GEGELinearStrategy(
        Pool(X), maximize=(True, False), noise_std=STD, epsilon=0.2, audit=(0.1, 0.05)
    )
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        noise = torch.randn(len(batch), 2, generator=generator, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(truth[batch.order] + STD * noise))
    assert state.stop_reason == "audited"
    assert "noise sub-Gaussian" in state.classification.guarantee
    assert strategy.estimate(state).mean.shape == (150, 2)
    wrong = faults(state.classification.above, truth, 0.2)
    assert float(wrong.double().mean()) <= 0.1
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


def test_destructive_samples_need_noise_that_is_stated() -> None:
    with pytest.raises(ValueError, match="for an audit of a Pareto set"):
        build(model=None, noise_std=None, max_repeats=1)
    state = end_of(build(max_repeats=1, epsilon=1.0))
    assert state.stop_reason in ("audited", "not confirmed", "rows exhausted")
    rows = state.observations.indices
    assert rows.unique().numel() == len(rows)
