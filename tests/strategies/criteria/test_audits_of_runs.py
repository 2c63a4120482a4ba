r"""Audits inside a run: when they pass, what they cost, and that nothing is lost."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Observations, Pool
from botorch_lse.confidence import EmptyRegionWarning
from botorch_lse.confidence.audit import audit_size
from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.confidence.judges import LevelJudge
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import derived
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    HRAGELinearStrategy,
    HRAGEStrategy,
    ImplicitLSEStrategy,
    LabelAudit,
    LSEStrategy,
    MELKLinearStrategy,
    MELKStrategy,
    MILKLinearStrategy,
    MILKStrategy,
    StraddleStrategy,
    Strategy,
    TruncatedVariance,
    TruVaRStrategy,
    audit,
)
from botorch_lse.strategies.algorithm import Algorithm, AuditFacts
from botorch_lse.strategies.criteria.audit import audits
from botorch_lse.strategies.forecast import Forecast
from tests.covering import more_in_full

GRID = torch.linspace(0, 1, 12, dtype=torch.float64)
POOL = Pool(torch.cartesian_prod(GRID, GRID))
N = len(POOL)
SMOOTH = (5 * POOL.X[:, 0]).sin() + POOL.X[:, 1] - 0.6
LEVEL, STD = 0.1, 0.05
KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.3


@dataclass(frozen=True, eq=False)
class Stubborn(Algorithm):
    r"""An algorithm that claims the same sides whatever it is told."""

    pool: Pool
    side: torch.Tensor
    std: float
    size: int = 16
    kind: str = "known"

    audit_facts = AuditFacts(noise_in_words="Gaussian noise")

    def start(self, seed):
        return None

    def learn(self, belief, step):
        return None

    def round_size(self, belief, room):
        return self.size if room is None else min(self.size, room)

    def plan(self, belief, request):
        return torch.arange(request.size)

    def visiting_order(self, belief, rows, before):
        return rows.sort().values

    def audit_judge(self, belief):
        return LevelJudge(0.0, 0.0)

    def audit_noise_kind(self, belief):
        return self.kind

    def audited(self, belief, new):
        return derived(new, yvar=torch.full_like(new.y, self.std**2))

    def answer(self, belief, as_claimed=False):
        value = self.side.double()
        return Classification(
            above=self.side > 0,
            below=self.side < 0,
            undecided=self.side == 0,
            lower=value,
            upper=value,
            mean=value,
            sigma=torch.zeros_like(value),
            probability_above=(self.side > 0).double(),
            guarantee="None.",
            pool=self.pool,
        )

    def forecast(self, belief, told):
        return Forecast(0, "It is sure.")


@dataclass(frozen=True, eq=False)
class Claiming(Strategy):
    r"""A strategy that claims sides, to be audited."""

    _: KW_ONLY
    side: torch.Tensor
    std: float = 1.0
    audit: tuple[float, float] = (0.05, 0.05)
    batch_size: int = 16
    max_observations: int | None = None
    max_repeats: int | None = None
    kind: str = "known"

    @cached_property
    def algorithm(self):
        return Stubborn(self.pool, self.side, self.std, self.batch_size, self.kind)

    @cached_property
    def criteria(self):
        return audits(self.algorithm, self.audit, self.pool, self.max_repeats)


def played(strategy, truth, seed=0, std=STD, stop=None, state=None):
    state = strategy.init(seed) if state is None else state
    while not state.is_done and (stop is None or state.round < stop):
        batch = strategy.ask(state)
        generator = torch.Generator().manual_seed(1000 * seed + state.round)
        noise = torch.randn(len(batch.order), generator=generator).double()
        y = truth[batch.order] + std * noise
        state = strategy.tell(state, batch.observe(y))
    return state


def claimed(wrong: float, n: int = 1000, above: float = 0.5):
    r"""A truth of -5 and 5, and a claim that is wrong at random in a share of rows."""
    pool = Pool(torch.arange(n).double().unsqueeze(-1))
    side = torch.where(torch.arange(n) < above * n, 1, -1).to(torch.int8)
    generator = torch.Generator().manual_seed(0)
    flipped = torch.randperm(n, generator=generator)[: round(wrong * n)]
    truth = 5.0 * side.double()
    truth[flipped] *= -1
    return pool, side, truth


@pytest.mark.slow
def test_a_right_claim_passes_at_the_price_stated_beforehand() -> None:
    pool, side, truth = claimed(0.0)
    state = played(Claiming(pool, side=side, batch_size=1), truth, std=1.0)
    assert state.stop_reason == "audited"
    assert state.n_used == audit_size(0.05, 0.05, n_rows=1000)
    assert "at most 0.05 of the 1000 rows" in state.classification.guarantee
    assert torch.equal(state.classification.above, side > 0)


@pytest.mark.slow
@more_in_full("n_runs", 25, 2000)
def test_a_claim_that_is_too_wrong_passes_rarely(n_runs) -> None:
    pool, side, truth = claimed(0.055)
    strategy = Claiming(pool, side=side, std=1.0, max_observations=300)
    passed = sum(
        played(strategy, truth, seed, std=1.0).stop_reason == "audited"
        for seed in range(n_runs)
    )
    assert passed <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5


@pytest.mark.some(0, slow=2)
@more_in_full("n_runs", 30, 500)
def test_noise_does_not_let_a_wrong_claim_pass(n_runs) -> None:
    r"""Values at the level, as noisy as can be: each counts as wrong."""
    pool, side, truth = claimed(0.0)
    strategy = Claiming(pool, side=side, std=1.0, max_observations=400)
    for seed in range(n_runs):
        state = played(strategy, 0 * truth, seed, std=1.0)
        assert state.stop_reason == "not confirmed"


@pytest.mark.slow
def test_a_small_region_is_audited_by_its_own_share() -> None:
    pool, side, truth = claimed(0.0, above=0.02)
    state = played(Claiming(pool, side=side, batch_size=1), truth, std=1.0)
    assert "at most 0.02 of the" in state.classification.guarantee.replace(
        "0.05", "0.02"
    )
    assert state.n_used > 1.5 * audit_size(0.05, 0.05)


@pytest.mark.slow
def test_what_is_abandoned_counts_as_wrong() -> None:
    pool, side, truth = claimed(0.0)
    strategy = Claiming(pool, side=side, batch_size=4)
    state = strategy.init()
    drawn = state.run.notes[0].claim.drawn[:4]
    assert strategy.ask(state).order.tolist() == drawn.sort().values.tolist()
    lost, rest = drawn[[0, 3]], drawn[1:3]
    state = strategy.tell(
        state, Observations(rest, truth[rest]), abandoned=lost.tolist()
    )
    drawn = state.run.notes[0].claim
    assert (drawn.verdict[lost] == -1).all()
    assert (drawn.verdict[rest] == 1).all()
    whole = played(strategy, truth, std=1.0)
    state = played(strategy, truth, std=1.0, state=state)
    assert state.n_used > 1.5 * whole.n_used
    again = strategy.replay(state.observations, abandoned={0: lost.tolist()})
    assert again.stop_reason == state.stop_reason


def test_rows_are_drawn_before_their_values_and_by_the_seed() -> None:
    pool, side, _ = claimed(0.0)
    strategy = Claiming(pool, side=side, batch_size=16)
    one = played(strategy, 5.0 * side, 1, std=1.0, stop=3)
    other = played(strategy, 5.0 * side, 1, std=0.1, stop=3)
    assert one.observations.indices.tolist() == other.observations.indices.tolist()
    third = played(strategy, 5.0 * side, 2, std=0.1, stop=3)
    assert one.observations.indices.tolist() != third.observations.indices.tolist()


def learnt(cls=LSEStrategy, **options):
    known = {"noise_std": STD, "batch_size": 8, "epsilon": 0.1, "audit": (0.1, 0.05)}
    return cls(POOL, LEVEL, **{**known, **options})


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (LSEStrategy, {"model": KERNEL, "max_repeats": 8}),
        (StraddleStrategy, {}),
        (MELKStrategy, {"model": KERNEL, "rounding": "quota"}),
        (MELKLinearStrategy, {}),
    ],
)
def test_strategies_end_audited_and_can_be_resumed_at_any_time(cls, options) -> None:
    truth, strategy = SMOOTH, learnt(cls, **options)
    if cls is MELKLinearStrategy:
        truth = POOL.X @ torch.tensor([1.0, -0.5]).double()
    whole = played(strategy, truth)
    assert whole.stop_reason == "audited"
    for stop in range(whole.round):
        part = played(strategy, truth, stop=stop)
        again = strategy.replay(part.observations)
        assert (again.round, again.stop_reason) == (part.round, part.stop_reason)
        batches = [strategy.ask(s).order.tolist() for s in (part, again)]
        assert batches[0] == batches[1]
    wrong = (whole.classification.above & (truth < LEVEL - 0.1)).sum()
    wrong += (whole.classification.below & (truth > LEVEL + 0.1)).sum()
    assert int(wrong) <= 0.1 * N


def test_a_composed_strategy_is_audited_likewise() -> None:
    model = GaussianProcess(KERNEL, noise_std=STD)
    options = {"model": model, "batch_size": 8, "audit": (0.1, 0.05)}
    strategy = Strategy(POOL, Above(LEVEL, 0.1), **options)
    assert played(strategy, SMOOTH).stop_reason == "audited"


def test_what_a_strategy_knows_can_be_asked_under_an_audit() -> None:
    for cls, names in (
        (TruVaRStrategy, ("spent", "recommend")),
        (HRAGEStrategy, ("variances", "burn_in_used")),
    ):
        given = {"threshold": LEVEL} if cls is HRAGEStrategy else {}
        known = {"noise_std": STD, "model": KERNEL, "batch_size": 4, **given}
        own, plain = (cls(POOL, **known, audit=audit) for audit in ((0.1, 0.1), None))
        states = [played(strategy, SMOOTH, stop=1) for strategy in (own, plain)]
        for name in names:
            found, expected = (
                getattr(strategy, name)(state)
                for strategy, state in zip((own, plain), states, strict=True)
            )
            assert found == expected


def test_a_claim_that_the_values_refute_is_taken_back() -> None:
    r"""A fixed model that is far too sure: nothing but smooth functions exist to it."""
    kernel = RBFKernel().double()
    kernel.lengthscale = 5.0
    rough = torch.where((torch.arange(N) % 7) < 2, 2.0, -2.0).double()
    strategy = learnt(model=kernel, beta=4.0, max_observations=300)
    state, attempts = strategy.init(), set()
    while not state.is_done:
        attempts.add(state.run.notes[0].attempt)
        state = played(strategy, rough, stop=state.round + 1, state=state)
    assert state.stop_reason != "audited"
    # Its own values reject the model where the audit does not.
    is_rejected = any(remark.kind == "model" for remark in state.remarks)
    assert max(attempts) >= 1 or is_rejected


def test_a_confirmed_side_that_intervals_rule_out_is_marked() -> None:
    r"""The audit's own values make a given model believe what they do not say."""
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 4.9, 1.5
    pool = Pool(torch.arange(15).double().view(-1, 1))
    old = [[2.9897], [5.8607], [10.1451], [14.4862], [6.7350]]
    strategy = Strategy(
        pool,
        Below(0.0, 0.05),
        model=GaussianProcess(kernel, noise_std=0.0, history=History(old, [1.5] * 5)),
        rule=TruncatedVariance(),
        batch_size=1,
        audit=(0.4, 0.2),
    )
    state = strategy.exclude(strategy.init(3), [0, 2, 4, 7, 8, 9, 10, 11, 12])
    truth = torch.full((15,), 0.5, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", EmptyRegionWarning)
        answer = played(strategy, truth, std=0.0, state=state).classification
    assert not bool(answer.undecided.any())
    against = answer.below & (answer.upper < -0.05)
    assert bool(against.any())
    assert bool(answer.contradicted[against].all())
    assert f"confirmed side of {int(against.sum())} of these rows" in answer.guarantee


def test_the_forecast_includes_the_audit() -> None:
    plain, own = learnt(audit=None), learnt()
    states = [played(s, SMOOTH, stop=3) for s in (plain, own)]
    ahead = [state.forecast().observations for state in states]
    n_rows = N - states[1].observations.indices.unique().numel()
    assert ahead[1] == ahead[0] + audit_size(0.1, 0.05, n_rows=n_rows)
    assert "Then an audit of" in states[1].forecast().basis


def test_all_rows_measured_need_no_audit() -> None:
    strategy = learnt(model=KERNEL, beta=1e-4)
    state = strategy.tell(
        strategy.init(), Observations(torch.arange(N), SMOOTH.clone())
    )
    assert state.stop_reason == "decided"


# --- where nothing of one side was found ----------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("sign", "word"), [(1, "none found"), (-1, "all above so far")]
)
def test_where_nothing_is_above_the_audit_says_how_much_can_be(sign, word) -> None:
    strategy = LSEStrategy(
        POOL, sign * 2.0, noise_std=STD, batch_size=8, audit=(0.1, 0.05)
    )
    state = played(strategy, 0.3 * SMOOTH)
    assert state.stop_reason == word
    answer = state.classification
    assert (answer.below if sign > 0 else answer.above).all()
    assert "at most 0.1 of the" in answer.guarantee
    again = strategy.replay(state.observations)
    assert again.stop_reason == word


@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_unknown_region_that_the_draws_meet_is_learnt() -> None:
    r"""A bump that the initial design misses, and that no model would expect."""
    centre = torch.tensor([0.55, 0.75], dtype=torch.float64)
    bump = (-(POOL.X - centre).square().sum(dim=-1) / 0.01).exp()
    found = 0
    for seed in range(6):
        strategy = LSEStrategy(
            POOL, 0.5, noise_std=0.02, batch_size=4, epsilon=0.05, audit=(0.02, 0.05)
        )
        state = played(strategy, bump, seed, std=0.02)
        if state.stop_reason == "none found":
            continue
        assert state.stop_reason in ("audited", "decided")
        answer = state.classification
        assert int((answer.above & (bump > 0.5)).sum()) >= int((bump > 0.5).sum()) / 2
        found += 1
    assert found >= 4


# --- claims that cannot be confirmed --------------------------------------------------


def test_a_claim_that_no_value_bears_out_is_not_confirmed() -> None:
    pool, side, truth = claimed(0.3)
    state = played(Claiming(pool, side=side), truth, std=1.0)
    assert state.stop_reason == "not confirmed"
    assert "Not confirmed" in state.classification.guarantee
    assert state.n_used < 100


@pytest.mark.slow
@more_in_full("n_runs", 15, 1000)
def test_a_claim_within_the_tolerance_is_rarely_given_up(n_runs) -> None:
    pool, side, truth = claimed(0.045)
    strategy = Claiming(pool, side=side, max_observations=400)
    ends = [played(strategy, truth, s, std=1.0).stop_reason for s in range(n_runs)]
    given_up = ends.count("not confirmed")
    assert given_up <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5


# --- levels that are not stated -------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (ImplicitLSEStrategy, {"omega": 0.6, "beta": 9.0}),
        (MILKStrategy, {"omega": 0.6, "beta": 9.0, "rounding": "quota"}),
        (TruVaRStrategy, {"beta": 9.0}),
        (MILKLinearStrategy, {"omega": 0.6}),
        (HRAGELinearStrategy, {}),
    ],
)
def test_levels_as_estimated_are_audited_as_well(cls, options) -> None:
    known = {"noise_std": STD, "batch_size": 8, "epsilon": 0.2, "audit": (0.2, 0.1)}
    truth = POOL.X @ torch.tensor([1.0, -0.5]).double() + 1.0
    if "Linear" in cls.__name__:
        pool = Pool(torch.cat((POOL.X, torch.ones(N, 1).double()), dim=1))
    else:
        pool, options = POOL, {**options, "model": KERNEL}
    strategy = cls(pool, **known, **options)
    state = played(strategy, truth)
    assert state.stop_reason == "audited"
    level = state.run.notes[0].claim.judge.level
    best = options.get("omega", 1.0) * float(truth.max())
    assert level == pytest.approx(best, abs=0.15)
    assert f"the level being {level:.9g} as estimated" in state.classification.guarantee


# --- sheets ---------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_goes_through_sheets_that_come_back_half_empty(tmp_path) -> None:
    pool, side, truth = claimed(0.0)
    strategy = audit(pool, side > 0, 0.0, noise_std=1.0, batch_size=12)
    file, state = tmp_path / "measured.csv", strategy.init()
    while not state.is_done:
        sheet = strategy.ask(state).to_frame()
        generator = torch.Generator().manual_seed(len(sheet) + state.n_used)
        noise = torch.randn(len(sheet), generator=generator).double()
        sheet["y"] = (truth[sheet["pool_index"].tolist()] + noise).numpy()
        sheet.loc[sheet.index[7:], "y"] = None
        known = [pd.read_csv(file)] if file.exists() else []
        pd.concat([*known, sheet.dropna(subset="y")]).to_csv(file, index=False)
        told = Observations.from_frame(pd.read_csv(file), y="y")
        state = strategy.replay(told)
    assert state.stop_reason == "audited"
    assert state.n_used <= 1.5 * audit_size(0.05, 0.05)  # some rows twice


# --- noise that is learnt -------------------------------------------------------------


def test_learnt_noise_is_bounded_from_rows_measured_twice_before_any_is_judged() -> (
    None
):
    pool, side, truth = claimed(0.0)
    strategy = Claiming(pool, side=side, kind="learnt", batch_size=10)
    state = played(strategy, truth, std=0.5, stop=2)
    claim = state.run.notes[0].claim
    assert (claim.verdict == 0).all()
    assert state.run.notes[0].noise_std is None
    assert int((claim.counts[claim.pairs] == 2).sum()) == 10
    done = played(strategy, truth, std=0.5, state=state)
    assert done.stop_reason == "audited"
    assert done.n_used <= audit_size(0.05, 0.05, is_learnt=True) + 9
    assert 0.5 <= done.run.notes[0].noise_std <= 3 * 0.5
    assert "rows measured twice" in done.classification.guarantee
    again = strategy.replay(done.observations)
    assert again.run.notes[0].noise_std == done.run.notes[0].noise_std
    assert again.stop_reason == "audited"


@pytest.mark.slow
@more_in_full("n_runs", 40, 1000)
def test_learnt_noise_does_not_let_a_wrong_claim_pass(n_runs) -> None:
    r"""The stated noise is wrong by a factor of ten, and is not used."""
    pool, side, truth = claimed(0.055)
    strategy = Claiming(
        pool, side=side, std=0.1, kind="learnt", max_observations=300, batch_size=20
    )
    ends = [played(strategy, truth, s, std=2.0).stop_reason for s in range(n_runs)]
    assert ends.count("audited") <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5


def test_more_values_at_once_than_two_widen_the_bound() -> None:
    r"""They come sorted, so that the first two of them would be too near."""
    pool, side, truth = claimed(0.0)
    strategy = Claiming(pool, side=side, kind="learnt", batch_size=30)
    state = strategy.init()
    rows = strategy.ask(state).order
    claim = state.run.notes[0].claim
    assert torch.equal(rows.unique(), claim.pairs.sort().values)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(15, 3, generator=generator, dtype=torch.float64)
    values = truth[claim.pairs].unsqueeze(-1) + noise
    rows = claim.pairs.repeat_interleave(3)
    told = Observations(rows, values.view(-1), torch.zeros(45).double())
    after = claim.with_values(told)
    spread = values.amax(dim=1) - values.amin(dim=1)
    torch.testing.assert_close((after.high - after.low)[claim.pairs, 0], spread)


def test_destructive_samples_with_unknown_noise_are_judged_by_their_side() -> None:
    pool, side, truth = claimed(0.0)
    strategy = Claiming(pool, side=side, kind="learnt", max_repeats=1, batch_size=10)
    state = played(strategy, truth, std=0.5)
    assert state.stop_reason == "audited"
    assert state.observations.indices.unique().numel() == len(state.observations)
    assert state.n_used > audit_size(0.05, 0.05)
    assert "noise of median zero" in state.classification.guarantee


@pytest.mark.slow
def test_a_learnt_run_is_audited_with_learnt_noise() -> None:
    strategy = learnt(noise_std=None)
    state = played(strategy, SMOOTH)
    assert state.run.notes[0].noise == "learnt"
    assert state.stop_reason == "audited"
    assert state.run.notes[0].noise_std >= STD
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


# --- values with variances of their own -----------------------------------------------


def test_a_value_counts_with_the_variance_told_with_it() -> None:
    r"""The same values, once precise and once vague."""
    pool, side, truth = claimed(0.0)
    strategy = LabelAudit(pool, side > 0, 0.0, noise_std=1.0, batch_size=8)
    counts = []
    for yvar in (0.01, 100.0):
        state = strategy.init()
        batch = strategy.ask(state)
        y = truth[batch.order]
        state = strategy.tell(state, batch.observe(y, torch.full_like(y, yvar)))
        counts.append(int((state.run.notes[0].claim.verdict == 1).sum()))
    assert counts == [8, 0]


# --- labels ---------------------------------------------------------------------------


def test_labels_of_somebody_else_are_audited() -> None:
    pool, side, truth = claimed(0.0)
    strategy = audit(pool, side > 0, tolerance=0.05, batch_size=8)
    state = played(strategy, (truth > 0).double(), std=0.0)
    assert state.stop_reason == "audited"
    assert state.n_used <= audit_size(0.05, 0.05) + 7
    assert torch.equal(state.classification.above, side > 0)
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


@pytest.mark.slow
def test_the_call_may_say_how_many_labels_are_audited_at_once() -> None:
    pool, side, truth = claimed(0.0)
    truth = truth.sign().clamp_min(0.0)
    strategy = audit(pool, side > 0, tolerance=0.05, batch_size=None)
    one_by_one = played(audit(pool, side > 0, tolerance=0.05), truth, std=0.0)
    state = strategy.init()
    assert len(strategy.ask(state)) == 1
    for size in (1, 5, 20, 40):
        batch = strategy.ask(state, size=size)
        assert len(batch) == size
        state = strategy.tell(state, batch.observe(truth[batch.order]))
    assert state.stop_reason == one_by_one.stop_reason == "audited"
    assert set(one_by_one.history.indices.tolist()) <= set(
        state.history.indices.tolist()
    )
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


def test_a_budget_limits_an_audit_whose_calls_say_how_many() -> None:
    pool, side, truth = claimed(0.0)
    strategy = audit(pool, side > 0, batch_size=None, max_observations=5)
    batch = strategy.ask(strategy.init(), size=20)
    assert len(batch) == 5
    ended = strategy.tell(
        strategy.init(), batch.observe((truth[batch.order] > 0).double())
    )
    assert ended.stop_reason == "budget"


def test_labels_that_are_wrong_are_not_confirmed() -> None:
    pool, side, truth = claimed(0.2)
    words = ["above" if s > 0 else "below" for s in side.tolist()]
    state = played(audit(pool, words, 0.0, noise_std=0.5), truth, std=0.5)
    assert state.stop_reason == "not confirmed"


@pytest.mark.parametrize(
    "labels",
    [
        torch.tensor([1, -1, 1]),
        np.array([1.0, -1.0, 1.0]),
        [True, False, True],
        ["Above", "below", "above"],
    ],
)
def test_labels_may_be_codes_bools_or_words(labels) -> None:
    pool = Pool([[0.0], [1.0], [2.0]])
    assert LabelAudit(pool, labels).sides.tolist() == [1, -1, 1]
    answer = LabelAudit(pool, labels).init().classification
    assert LabelAudit(pool, answer).sides.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    ("sides", "options", "message"),
    [
        ([True, False], {}, "to be 3 labels.*got 2 of them"),
        (["above", "below", "undecided"], {}, "row 2 has 'undecided'.*out of the pool"),
        ([1, 0, -1], {}, "row 1 has 0"),
        ("above", {}, "`sides` to be 3 labels"),
        (None, {}, "`sides` to be 3 labels"),
        ([True] * 3, {"noise_std": -1.0}, "`noise_std`"),
        ([True] * 3, {"audit": None}, "`audit`"),
        ([True] * 3, {"threshold": float("nan")}, "`threshold`"),
    ],
)
def test_labels_that_cannot_be_audited_are_refused(sides, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        LabelAudit(Pool([[0.0], [1.0], [2.0]]), sides, **options)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, torch.tensor])
def test_the_remedy_for_labels_of_ones_and_zeros_drops_no_row(kind) -> None:
    pool, sides = Pool([[0.0], [1.0], [2.0]]), kind([1, 0, 1])
    with pytest.raises(
        ValueError, match="True, 'above' or 1, False, 'below' or -1"
    ) as told:
        audit(pool, sides)
    way = str(told.value).split("`")[3]
    names = {"sides": sides, "np": np}
    assert audit(pool, eval(way, names)).sides.tolist() == [1, -1, 1]


def test_a_column_of_labels_goes_by_its_index() -> None:
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0]}, index=["a", "b", "c"])
    pool, sides = Pool(table), pd.Series([True, False, False], index=["c", "b", "a"])
    for given in (sides, sides.loc[pool.labels]):
        assert audit(pool, given).sides.tolist() == [-1, -1, 1]
    with pytest.raises(ValueError, match=r"`sides`.*order.*sides\.loc\["):
        audit(Pool(table.reset_index(drop=True)), sides.set_axis([2, 1, 0]))
    by_position = sides.reset_index(drop=True)
    assert audit(pool, by_position).sides.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("tolerance", "delta", "message"),
    [
        (5, 0.05, "`tolerance` .*write 0.05 for 5 %"),
        (0.05, 0.95, "`delta` .*probability of a mistake.*0.05"),
        (0.05, float("nan"), "`delta` "),
    ],
)
def test_audits_that_state_nonsense_are_refused(tolerance, delta, message) -> None:
    pool = Pool([[0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match=message):
        audit(pool, [True, False, True], tolerance=tolerance, delta=delta)
    with pytest.raises(ValueError, match=message):
        audit_size(tolerance, delta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learnt(audit=0.05), r"`audit` to be \(tolerance, delta\)"),
        (lambda: learnt(audit=(0.0, 0.05)), r"`audit\[0\]`"),
        (lambda: learnt(audit=(0.05, 1.5)), r"`audit\[1\]`"),
        (
            lambda: HRAGEStrategy(
                POOL, 0.1, noise_std=0.1, targets=Pool(POOL.X[:3]), audit=(0.1, 0.1)
            ),
            "and no `targets`",
        ),
    ],
)
def test_audits_that_cannot_be_are_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_simulation_of_counts_is_not_audited_in_silence() -> None:
    strategy = learnt(MELKLinearStrategy)
    with pytest.raises(UnsupportedError, match="no `audit` in a simulation"):
        strategy.simulate(lambda rows, counts: SMOOTH[rows])


def test_without_an_audit_nothing_changes() -> None:
    strategy = learnt(audit=None)
    assert strategy.algorithm is strategy.parts
    assert replace(strategy, audit=(0.1, 0.1)).algorithm is not strategy.parts


def test_the_room_of_an_audit_is_what_it_can_draw() -> None:
    strategy = LabelAudit(
        Pool(GRID[:5, None]), ["above"] * 5, 0.3, noise_std=0.2, batch_size=3
    )
    state, out = strategy.init(), list[int]()
    while (room := strategy.room(state, out)) > 0:
        assert room == 5 - len(out)  # each row once, until its value is known
        out += replace(strategy, batch_size=1).ask(state, out).order.tolist()
    assert sorted(out) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="Nothing is left to ask"):
        strategy.ask(state, out)


def test_the_second_value_of_a_pair_is_asked_for_while_the_first_is_out() -> None:
    pool, side, _ = claimed(0.0, n=20)
    strategy = Claiming(pool, side=side, kind="learnt", max_repeats=2, batch_size=60)
    state, out = strategy.init(), list[int]()
    planned = strategy.ask(state).order.tolist()
    while (room := strategy.room(state, out)) > 0:
        assert room == len(planned) - len(out)
        out += replace(strategy, batch_size=1).ask(state, out).order.tolist()
    assert sorted(out) == sorted(planned)
    claim = state.run.notes[0].claim
    assert all(out.count(row) == 2 for row in claim.pairs.tolist())


def test_a_state_without_an_audit_is_refused_by_name() -> None:
    plain = LSEStrategy(Pool([[0.0], [0.5], [1.0]]), threshold=0.0, noise_std=0.1)
    watched = replace(plain, audit=(0.5, 0.1))
    state = plain.init()
    with pytest.raises(ValueError, match="made with `audit` = None"):
        watched.ask(state)
    assert len(watched.ask(watched.replay(state.observations))) == 1


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(("short", "pair"), [(True, (0.05, 0.05)), (False, None)])
def test_true_is_the_usual_audit_and_false_is_none(short, pair) -> None:
    known = {"model": GaussianProcess(KERNEL, noise_std=STD), "max_observations": 200}
    ends = []
    for wanted in (short, pair):
        strategy = Strategy(POOL, Above(LEVEL, 0.1), audit=wanted, **known)
        state = strategy.init(seed=0)
        while not state.is_done:
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(SMOOTH[batch.order]))
        ends.append((state.stop_reason, state.n_used))
    assert ends[0] == ends[1]
    assert (ends[0][0] == "audited") == short


@pytest.mark.slow
def test_there_is_room_for_what_a_round_of_an_audit_lacks() -> None:
    # Rows that the round has used up are not looked at before all of it is told.
    line = Pool(torch.linspace(0, 1, 21, dtype=torch.float64).unsqueeze(-1))
    y = 10 + line.X[:, 0]
    model = GaussianProcess(n_initial=2)
    given = {"batch_size": 7, "max_repeats": 2, "audit": (0.4, 0.2)}
    strategy = Strategy(line, Above(0.0), model=model, **given)
    state, generator = strategy.init(seed=0), torch.Generator().manual_seed(0)
    while not state.is_done:
        for row in strategy.ask(state).order.tolist():
            assert strategy.room(state) >= len(strategy.missing(state)) > 0
            noise = 0.3 * torch.randn(1, generator=generator, dtype=torch.float64)
            state = strategy.tell(state, Observations([row], y[[row]] + noise))
    assert state.n_used > 21
