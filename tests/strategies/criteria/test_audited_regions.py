r"""Audits of regions: what counts as right, and when they pass."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.confidence.audit import audit_size
from botorch_lse.confidence.judges import LevelJudge, RegionJudge, Values
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.models import HeteroscedasticGP
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    GaussianProcess,
    LabelAudit,
    Levels,
    MELKLinearStrategy,
    Region,
    Strategy,
    audit,
)
from tests.covering import more_in_full
from tests.strategies.criteria.test_audits_of_runs import POOL, SMOOTH, N

STD = 0.05
OTHER = (4 * POOL.X[:, 1]).cos()
ROWS = torch.stack([SMOOTH, OTHER], dim=-1)
SLOPE = tuple((0.4 * POOL.X[:, 0]).tolist())
KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.3
REGIONS: dict[str, Region] = {
    "and": Above(0.1, epsilon=0.1) & Above(-0.2, epsilon=0.1, output=1),
    "or": Above(0.8, epsilon=0.1) | Below(-0.7, epsilon=0.1, output=1),
    "band": Between(-0.3, 0.5, epsilon=0.1),
    "row": Above(SLOPE, epsilon=0.1),
    "levels": Levels((-0.3, 0.5), epsilon=0.1),
}
JUDGED = {
    **REGIONS,
    "exact": Between(-0.3, 0.5) & Above(0.2, output=1),
    "wide": Between(-0.3, 0.5, epsilon=0.6) | ~Above(0.0, epsilon=0.2, output=1),
}


def class_of(region: Region, values: torch.Tensor) -> torch.Tensor:
    r"""The class of each row's values, by definition."""
    columns = values.unbind(dim=-1)
    is_above = {leaf: columns[int(leaf.output)] > leaf.levels for leaf in region.leaves}
    return region.class_of(is_above).long()


def could_be(region: Region, values: torch.Tensor) -> torch.Tensor:
    r"""``N x K`` bools: the classes of points within the accuracies of the values."""
    steps = [torch.linspace(-e, e, 25 if e else 1).double() for e in region.accuracies]
    found = torch.zeros(len(values), region.n_classes, dtype=torch.bool)
    for moved in itertools.product(*steps):
        classes = class_of(region, values + torch.stack(moved))
        found[torch.arange(len(values)), classes] = True
    return found


def measured(rows: torch.Tensor, m: int, seed: int, std: float = STD) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(rows), m, generator=generator, dtype=torch.float64)
    y = ROWS[rows, :m] + std * noise
    return y if m > 1 else y[:, 0]


def end_of(strategy, seed=0, state=None, stop=None):
    state = strategy.init(seed) if state is None else state
    while not state.is_done and (stop is None or state.round < stop):
        batch = strategy.ask(state)
        y = measured(batch.order, strategy.n_outputs, 1000 * seed + state.round)
        state = strategy.tell(state, batch.observe(y))
    return state


def build(name: str, **options) -> Strategy:
    given = {"batch_size": 8, "audit": (0.1, 0.05), **options}
    model = given.pop("model", GaussianProcess(KERNEL, noise_std=STD))
    return Strategy(given.pop("pool", POOL), REGIONS[name], model=model, **given)


# --- what counts as right -------------------------------------------------------------


@pytest.mark.some(0, slow=6)
@pytest.mark.parametrize("name", JUDGED)
def test_a_row_is_right_only_if_all_it_may_be_is_near_its_class(name) -> None:
    r"""Against points of the box, each with all that lies within the accuracies."""
    region = JUDGED[name]
    m, n = region.n_outputs, 144
    generator = torch.Generator().manual_seed(3)
    mean = 2.4 * torch.rand(n, m, generator=generator, dtype=torch.float64) - 1.2
    std = 0.3 * torch.rand(n, m, generator=generator, dtype=torch.float64)
    labels = torch.randint(region.n_classes, (n,), generator=generator)
    values = Values(mean, std, torch.full((n,), 8), 8)
    mistaken, judge = 0.05, RegionJudge(region.values)
    verdict = judge.verdicts(labels, values, mistaken)
    assert {*verdict.tolist()} == {-1, 1}  # it was the last look
    ways = sum(min(len(part), 2) for part in region._levels)
    reach = torch.stack([values.reach(j, mistaken / ways) for j in range(m)], dim=-1)
    may_be = torch.ones(n, dtype=torch.bool)
    for share in itertools.product(torch.linspace(-1, 1, 9).double(), repeat=m):
        near = could_be(region, mean + torch.stack(share) * reach)
        may_be &= near[torch.arange(n), labels]
    assert not bool((verdict[~may_be] == 1).any())
    missed = (verdict[may_be] != 1).double().mean()
    assert float(missed) <= 0.1  # where one point is near it by another of its levels


def test_a_side_of_a_level_is_ruled_out_as_that_of_its_region() -> None:
    generator = torch.Generator().manual_seed(5)
    mean, half = torch.rand(2, 300, generator=generator, dtype=torch.float64)
    labels = torch.randint(-1, 2, (300,), generator=generator)
    ends = [mean - 0.3 * half], [mean + 0.3 * half]
    found = LevelJudge(0.5, 0.1).ruled_out(labels, *ends)
    region = RegionJudge(Above(0.5, 0.1).values).ruled_out(labels, *ends)
    assert torch.equal(found, region)
    assert 0 < int(found.sum()) < 300


@pytest.mark.some(2)
@pytest.mark.parametrize("name", JUDGED)
def test_a_side_is_ruled_out_only_if_no_point_of_the_box_is_near_its_class(
    name,
) -> None:
    region = JUDGED[name]
    m, n = region.n_outputs, 144
    generator = torch.Generator().manual_seed(5)
    mean = 2.4 * torch.rand(n, m, generator=generator, dtype=torch.float64) - 1.2
    half = 0.3 * torch.rand(n, m, generator=generator, dtype=torch.float64)
    labels = torch.randint(-1, region.n_classes, (n,), generator=generator)
    ends = (mean - half).unbind(dim=-1), (mean + half).unbind(dim=-1)
    found = RegionJudge(region.values).ruled_out(labels, *ends)
    may_be = labels == -1
    for share in itertools.product(torch.linspace(-1, 1, 9).double(), repeat=m):
        near = could_be(region, mean + torch.stack(share) * half)
        may_be |= near[torch.arange(n), labels.clamp_min(0)]
    assert not bool((found & may_be).any())
    # Levels are passed one by one: nearer than twice the accuracy they leave room.
    assert float(found[~may_be].double().mean()) > 0.9


def test_what_is_near_a_level_may_be_claimed_on_either_side() -> None:
    region = Above(0.0, epsilon=0.1) & Above(0.0, epsilon=0.1, output=1)
    mean = torch.tensor([[0.05, 0.05], [-0.05, -0.05], [0.05, 1.0]]).double()
    exact = Values(mean, torch.zeros_like(mean), torch.ones(3).long(), 8)
    for label in (0, 1):
        labels = torch.full((3,), label)
        assert RegionJudge(region.values).verdicts(labels, exact, 0.05).tolist() == [
            1,
            1,
            1,
        ]
    far = Values(mean * 4, exact.noise_std, exact.counts, 8)
    labels = torch.tensor([1, 1, 1])
    assert RegionJudge(region.values).verdicts(labels, far, 0.05).tolist() == [1, -1, 1]


@pytest.mark.some(0, slow=3)
@more_in_full("n", 20_000, 400_000)
@pytest.mark.parametrize("name", ["and", "band", "levels", "wide"])
def test_noise_makes_a_wrong_row_look_right_no_more_often_than_stated(name, n) -> None:
    r"""At all its looks together, wherever it lies and however large the noise is."""
    region, mistaken = JUDGED[name], 0.05
    m = region.n_outputs
    generator = torch.Generator().manual_seed(0)
    truth = 2.4 * torch.rand(60, m, generator=generator, dtype=torch.float64) - 1.2
    near, checked = could_be(region, truth), 0
    for row, std in itertools.product(range(60), (0.03, 0.3, 3.0)):
        for label in range(region.n_classes):
            if near[row, label]:
                continue
            checked += 1
            total = torch.zeros(n // 60, m, dtype=torch.float64)
            found = torch.zeros(n // 60, dtype=torch.int8)
            for count in range(1, 9):
                noise = torch.randn(total.shape, generator=generator).double()
                total += truth[row] + std * noise
                counts = torch.full_like(found, count, dtype=torch.long)
                spread = torch.full_like(total, std)
                values = Values(total / count, spread, counts, 8)
                labels = torch.full_like(counts, label)
                now = RegionJudge(region.values).verdicts(labels, values, mistaken)
                found = torch.where(found == 0, now, found)
            share = float((found == 1).double().mean())
            assert share <= mistaken + 4 * (mistaken * (1 - mistaken) * 60 / n) ** 0.5
    assert checked > 50


# --- claims ---------------------------------------------------------------------------


def wrong_in(region: Region, share: float, n: int = 1000, seed: int = 0):
    r"""A claim about rows near the levels, that is wrong in a share of them."""
    generator = torch.Generator().manual_seed(seed)
    m = region.n_outputs
    truth = 3 * torch.rand(n, m, generator=generator, dtype=torch.float64) - 1.5
    sides = class_of(region, truth) == 1
    sure = (~could_be(region, truth)).any(dim=-1)  # one answer alone is right
    flipped = sure.nonzero().view(-1)[: round(share * n)]
    sides[flipped] = ~sides[flipped]
    return Pool(torch.arange(n).double().unsqueeze(-1)), sides, truth


def audit_of(region, share, seed, std, **options):
    pool, sides, truth = wrong_in(region, share)
    strategy = LabelAudit(pool, sides, region, noise_std=std, batch_size=16, **options)
    state = strategy.init(seed)
    generator = torch.Generator().manual_seed(100 + seed)
    while not state.is_done:
        batch = strategy.ask(state)
        y = truth[batch.order]
        y = y + std * torch.randn(y.shape, generator=generator).double()
        state = strategy.tell(state, batch.observe(y if y.shape[1] > 1 else y[:, 0]))
    return strategy, state


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", ["and", "or", "band"])
@more_in_full("n_runs", 20, 400)
def test_a_claim_that_is_too_wrong_passes_rarely(name, n_runs) -> None:
    passed = 0
    for seed in range(n_runs):
        _, state = audit_of(REGIONS[name], 0.055, seed, 0.02, max_observations=400)
        passed += state.stop_reason == "audited"
    assert passed <= 0.05 * n_runs + 3 * (0.05 * 0.95 * n_runs) ** 0.5


@pytest.mark.parametrize("name", ["and", "or", "band"])
def test_labels_of_a_region_are_audited(name) -> None:
    strategy, state = audit_of(REGIONS[name], 0.0, 0, 0.02)
    assert state.stop_reason == "audited"
    assert "by more than epsilon" in state.classification.guarantee
    assert state.n_used <= 3 * audit_size(0.05, 0.05)
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


@pytest.mark.parametrize(
    ("threshold", "options", "message"),
    [
        (Levels((0.0, 1.0)), {}, "`threshold` to have two answers.*3 classes"),
        (Above(0.0) & Above(1.0, output=1), {"epsilon": 0.1}, "`epsilon` to be left"),
        (
            Above(0.0) & Above(1.0, output=1),
            {"noise_std": (1.0, 1.0, 1.0)},
            r"`noise_std` to be one, or one per output \(2\)",
        ),
        (Above((0.0, 1.0)), {}, "one per row of the pool"),
    ],
)
def test_labels_of_regions_that_cannot_be_are_refused(threshold, options, message):
    with pytest.raises(ValueError, match=message):
        audit(Pool([[0.0], [1.0], [2.0]]), [True, False, True], threshold, **options)


def test_labels_of_a_region_with_unequal_noise_are_told_as_columns(tmp_path) -> None:
    region = Above(0.0, output="strength") & Below(7.0, output="leaching")
    pool = Pool(torch.arange(50.0).unsqueeze(-1).double())
    truth = torch.stack([pool.X[:, 0] - 20, pool.X[:, 0] / 4], dim=-1)
    sides = class_of(Above(0.0) & Below(7.0, output=1), truth).bool()
    strategy = audit(pool, sides, region, 0.1, noise_std=(2.0, 0.1), batch_size=5)
    state = strategy.init()
    while not state.is_done:
        sheet = strategy.ask(state).to_frame()
        rows = torch.tensor(sheet["pool_index"].tolist())
        generator = torch.Generator().manual_seed(state.round)
        noise = torch.randn(len(rows), 2, generator=generator).double()
        y = truth[rows] + noise * torch.tensor([2.0, 0.1]).double()
        sheet["strength"], sheet["leaching"] = y.T.numpy()
        told = Observations.from_frame(sheet, y=["strength", "leaching"])
        known = state.observations
        state = strategy.tell(state, told)
        assert len(state.observations) == len(known) + len(rows)
    assert state.stop_reason == "audited"
    assert strategy.outputs == ("strength", "leaching")


# --- runs -----------------------------------------------------------------------------


def fault(state, name: str) -> float:
    r"""The share of rows whose class is none that is near their values."""
    region, answer = REGIONS[name], state.classification
    labels = answer.above.long() if answer.classes is None else answer.classes
    known = labels != UNKNOWN
    near = could_be(region, ROWS[:, : region.n_outputs])
    right = near[torch.arange(N), labels.clamp_min(0)]
    return float((known & ~right).double().mean())


@pytest.mark.some(0, slow=6)
@pytest.mark.parametrize("name", REGIONS)
def test_runs_end_audited_and_can_be_resumed_at_any_time(name) -> None:
    strategy = build(name)
    whole = end_of(strategy)
    assert whole.stop_reason == "audited"
    assert fault(whole, name) <= 0.1
    assert "Audited: with probability at least 0.95" in whole.classification.guarantee
    for stop in range(1, whole.round, whole.round // 3):
        part = end_of(strategy, stop=stop)
        again = strategy.replay(part.observations)
        assert (again.round, again.stop_reason) == (part.round, part.stop_reason)
        batches = [strategy.ask(s).order.tolist() for s in (part, again)]
        assert batches[0] == batches[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["and", "band", "levels"])
def test_noise_that_is_learnt_is_bounded_for_each_output(name) -> None:
    strategy = build(name, model=GaussianProcess())
    state = end_of(strategy)
    assert state.stop_reason == "audited"
    assert fault(state, name) <= 0.1
    assert state.run.notes[0].noise == "learnt"
    assert state.run.notes[0].noise_std.shape == (REGIONS[name].n_outputs,)
    assert bool((state.run.notes[0].noise_std >= STD).all())
    words = " and ".join(f"{s:.3g}" for s in state.run.notes[0].noise_std.tolist())
    assert f"bounded by {words} from rows measured twice" in (
        state.classification.guarantee
    )
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["and", "or", "band", "levels", "row"])
def test_regions_of_linear_outputs_are_audited(name) -> None:
    region = REGIONS[name]
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 3, generator=generator, dtype=torch.float64)
    X = torch.nn.functional.normalize(X, dim=-1)
    if name == "row":
        region = Above(tuple((0.4 * X[:, 0]).tolist()), epsilon=0.1)
    m = region.n_outputs
    truth = X @ torch.tensor([[1.0, -0.4], [0.6, 0.8], [-0.4, 0.2]])[:, :m].double()
    noise = (0.05, 0.1) if m == 2 else 0.05
    strategy = MELKLinearStrategy(Pool(X), region, noise_std=noise, audit=(0.1, 0.05))
    state, unit = strategy.init(), torch.tensor([0.05, 0.1][:m]).double()
    while not state.is_done:
        batch = strategy.ask(state)
        generator = torch.Generator().manual_seed(state.round)
        y = truth[batch.order]
        y = y + unit * torch.randn(y.shape, generator=generator).double()
        state = strategy.tell(state, batch.observe(y if m == 2 else y[:, 0]))
    assert state.stop_reason == "audited"
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee
    assert "noise sub-Gaussian" in again.classification.guarantee


@pytest.mark.slow
def test_a_claim_about_classes_is_taken_back_where_they_change() -> None:
    r"""Two of three classes are "below", and rows move from one to the other."""
    steps = torch.where(torch.arange(N) % 7 < 2, -1.0, 0.0).double()
    kernel = RBFKernel().double()
    kernel.lengthscale = 5.0
    model = GaussianProcess(kernel, noise_std=STD)
    strategy = build("levels", model=model, beta=4.0, max_observations=200)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(steps[batch.order]))
    assert state.stop_reason != "audited"


@pytest.mark.slow
def test_destructive_samples_are_judged_by_sides_if_each_output_has_one_level() -> None:
    strategy = build("and", model=GaussianProcess(), max_repeats=1)
    state = end_of(strategy)
    assert state.run.notes[0].noise == "side"
    assert state.stop_reason in ("audited", "decided", "rows exhausted")
    price = audit_size(0.1, 0.05, by_sign=True, n_outputs=2)
    assert price > 1.4 * audit_size(0.1, 0.05, by_sign=True)
    with pytest.raises(ValueError, match="an output has two levels"):
        build("band", model=GaussianProcess(), max_repeats=1)
    build("band", max_repeats=1)  # the noise is stated


@pytest.mark.slow
def test_where_a_model_predicts_noise_bands_are_not_audited_and_that_is_said() -> None:
    def model(X, y, yvar):
        return HeteroscedasticGP(X, y, lambda X: STD**2 * torch.ones_like(X[..., 0]))

    strategy = build("band", model=GaussianProcess(model), max_observations=120)
    state = end_of(strategy)  # measured and decided: no error takes that back
    assert state.stop_reason == "decided"
    assert "Not audited: the model learns" in state.classification.guarantee
    again = strategy.replay(state.observations)
    assert again.classification.guarantee == state.classification.guarantee


def test_assays_are_not_audited() -> None:
    with pytest.raises(ValueError, match="all outputs in one measurement"):
        build("and", pool=POOL.at_outputs(2, costs=(1.0, 1.0)))


@pytest.mark.slow
def test_sheets_that_come_back_half_empty(tmp_path) -> None:
    strategy, state = build("and"), None
    file = tmp_path / "measured.csv"
    state = strategy.init()
    while not state.is_done:
        sheet = strategy.ask(state).to_frame()
        rows = torch.tensor(sheet["pool_index"].tolist())
        y = measured(rows, 2, state.n_used)
        sheet["a"], sheet["b"] = y.T.numpy()
        sheet.loc[sheet.index[6:], ["a", "b"]] = None
        known = [pd.read_csv(file)] if file.exists() else []
        whole = pd.concat([*known, sheet.dropna(subset=["a", "b"])])
        whole.to_csv(file, index=False)
        told = Observations.from_frame(pd.read_csv(file), y=["a", "b"])
        state = strategy.replay(told)
    assert state.stop_reason == "audited"
    assert fault(state, "and") <= 0.1
