r"""Regions of levels and outputs: strategies that decide and choose for them."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import (
    KroneckerMultiTaskGP,
    ModelList,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
)
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    AlternatingRules,
    Ambiguity,
    And,
    Below,
    Between,
    ContourEntropy,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    HRAGELinearStrategy,
    ImplicitLSEStrategy,
    Levels,
    LSEStrategy,
    MutualInformation,
    OptimalDesign,
    Random,
    RandomizedStraddle,
    RanjanImprovement,
    Region,
    State,
    Straddle,
    StraddleStrategy,
    Strategy,
    SwitchingRule,
    TargetedVariance,
    TruncatedVariance,
    UFunction,
    Variance,
    Width,
)
from tests.covering import covering
from tests.strategies.runs import played

POOL = Pool(torch.linspace(0, 10, 21).unsqueeze(-1).double())
X = POOL.X[:, 0]
ROWS = torch.stack([X.sin(), (X / 2).cos()], dim=-1)
KERNEL = RBFKernel().double()
SLOPE = tuple((0.06 * X - 0.3).tolist())
REGIONS: dict[str, Region] = {
    "and": Above(0.3) & Above(-0.1, output=1),
    "or": Above(0.3) | Below(-0.4, output=1),
    "band": Between(-0.5, 0.3),
    "row": Above(SLOPE),
    "row and": Above(SLOPE) & Below(0.6, output=1),
    "levels": Levels((-0.5, 0.5)),
    "second": Above(0.1, output=1),
    "below": Below(0.3),
}


def truth_of(region: Region) -> torch.Tensor:
    r"""The class of each row, by definition."""
    is_above = {
        leaf: ROWS[:, int(leaf.output)] > torch.tensor(leaf.threshold)
        for leaf in region.leaves
    }
    return region.class_of(is_above).long()


def build(region: Region, **options) -> Strategy:
    given = {"batch_size": 3, "max_observations": 300, **options}
    model = given.pop("model", GaussianProcess(KERNEL, noise_std=0.05))
    return Strategy(given.pop("pool", POOL), region, model=model, **given)


def end_of(strategy: Strategy, seed: int = 3) -> State:
    m = strategy.n_outputs

    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        generator = torch.Generator().manual_seed(100 * seed + state.round)
        noise = torch.randn(len(rows), m, generator=generator, dtype=torch.float64)
        y = ROWS[rows, :m] + 0.05 * noise
        return y.squeeze(-1) if m == 1 else y

    return played(strategy, values, seed=seed)[-1]


@pytest.mark.some(1)
@pytest.mark.parametrize("name", REGIONS)
def test_a_region_needs_no_rule_and_is_found(name) -> None:
    region = REGIONS[name]
    strategy = build(region)
    state = end_of(strategy)
    answer, wanted = state.classification, truth_of(region)
    assert state.stop_reason == "decided"
    assert answer.above.tolist() == (wanted == region.n_classes - 1).tolist()
    if answer.classes is not None:
        assert answer.classes.tolist() == wanted.tolist()
    again = strategy.replay(state.observations, seed=3)
    assert torch.equal(again.classification.probability_above, answer.probability_above)
    assert "With probability 0.95" in answer.guarantee
    together = "the intervals of all 2 outputs hold together"
    assert (together in answer.guarantee) == (region.n_outputs == 2)


@pytest.mark.parametrize("kind", [ModelListGP, ModelList])
def test_a_list_of_models_is_one_per_output(kind) -> None:
    one = [SingleTaskGP(POOL.X / 10, y.unsqueeze(-1)) for y in ROWS.unbind(dim=-1)]
    listed = GaussianProcess(kind(*one), noise_std=0.05)
    apart = GaussianProcess(tuple(one), noise_std=0.05)
    found = [end_of(build(REGIONS["and"], model=m)) for m in (listed, apart)]
    rows, wanted = (state.observations.indices for state in found)
    assert torch.equal(rows, wanted)
    with pytest.raises(ValueError, match=r"`model` to be .* one per output \(1\)"):
        build(REGIONS["band"], model=listed)


def test_correlated_outputs_are_refused_where_independent_ones_are_wanted() -> None:
    tasks = torch.cat([torch.zeros(21, 1), torch.ones(21, 1)]).double()
    X = torch.cat((POOL.X.repeat(2, 1), tasks), dim=-1)
    model = MultiTaskGP(X, ROWS.T.reshape(-1, 1), task_feature=-1)
    kinds = (model, model), lambda X, y, yvar: model
    for kind in kinds:
        with pytest.raises(UnsupportedError, match=r"correlated. Outputs are ind"):
            end_of(build(REGIONS["and"], model=GaussianProcess(kind, noise_std=0.05)))


def test_the_remedy_for_a_model_of_several_outputs_helps() -> None:
    def of(model) -> Strategy:
        return build(REGIONS["and"], model=GaussianProcess(model, noise_std=0.05))

    joint = KroneckerMultiTaskGP(POOL.X / 10, ROWS)  # it has no `subset_output`
    with pytest.raises(UnsupportedError, match=r"joint posterior.*one single-output"):
        end_of(of(joint))
    batched = SingleTaskGP(POOL.X / 10, ROWS)
    with pytest.raises(UnsupportedError, match=r"`model.subset_output\(\[i\]\)`"):
        end_of(of(batched))
    apart = [SingleTaskGP(POOL.X / 10, y.unsqueeze(-1)) for y in ROWS.unbind(dim=-1)]
    taken = [batched.subset_output([j]) for j in range(2)]
    found, wanted = (end_of(of(models)) for models in (taken, apart))
    assert torch.equal(found.observations.indices, wanted.observations.indices)


def test_a_missing_value_is_refused() -> None:
    strategy = build(REGIONS["and"], batch_size=1)
    batch = strategy.ask(strategy.init())
    with pytest.raises(ValueError, match=r"`y\[:, 1\]` to be finite"):
        batch.observe(torch.tensor([[0.1, torch.nan]], dtype=torch.float64))


def test_linear_features_say_where_regions_go() -> None:
    with pytest.raises(
        ValueError, match=r"features.*`MELKLinearStrategy\(pool, region"
    ):
        HRAGELinearStrategy(POOL, threshold=REGIONS["and"], noise_std=0.1)


@pytest.mark.parametrize("kind", [LSEStrategy, StraddleStrategy, ImplicitLSEStrategy])
@pytest.mark.parametrize("name", ["and", "band"])
def test_named_strategies_say_where_regions_go(kind, name) -> None:
    wanted = r"`threshold` to be a level.*region.*`Strategy\(pool, goal\)`"
    with pytest.raises(ValueError, match=wanted):
        kind(POOL, threshold=REGIONS[name], model=KERNEL, noise_std=0.1)


RULES = [
    Ambiguity(),
    ContourEntropy(),
    OptimalDesign(),
    ExpectedFeasibility(),
    ExpectedMisclassification(),
    ExpectedMisclassification(batch="joint"),
    Random(),
    RandomizedStraddle(),
    RanjanImprovement(),
    Straddle(),
    TargetedVariance(),
    TargetedVariance(0.1, batch="joint"),
    AlternatingRules((Straddle(), ExpectedMisclassification(batch="joint"))),
    UFunction(),
    Variance(),
    Width(),
]


@pytest.mark.some(5)
@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("name", ["and", "or", "band", "row and", "levels"])
def test_any_rule_for_regions_serves_any_region(rule, name) -> None:
    strategy = build(REGIONS[name], rule=rule, max_observations=18)
    state = end_of(strategy)
    assert state.stop_reason is not None
    again = strategy.replay(state.observations, seed=3)
    assert torch.equal(again.classification.above, state.classification.above)


@pytest.mark.parametrize(
    "rule",
    [
        MutualInformation(),
        AbsoluteVolumeChange(),
        TruncatedVariance(),
        SwitchingRule((MutualInformation(), Ambiguity())),
    ],
    ids=repr,
)
def test_rules_about_one_level_refuse_regions(rule) -> None:
    with pytest.raises(ValueError, match="`rule` for several levels or outputs"):
        build(REGIONS["and"], rule=rule)
    assert build(REGIONS["row"], rule=Ambiguity()).ask  # one level in each row


@pytest.mark.parametrize("rule", [MutualInformation(), AbsoluteVolumeChange()])
def test_rules_about_one_level_take_one_for_each_row(rule) -> None:
    state = end_of(build(REGIONS["row"], rule=rule))
    assert state.stop_reason == "decided"
    assert state.classification.above.tolist() == truth_of(REGIONS["row"]).tolist()


@pytest.mark.some(4)
@pytest.mark.parametrize("batch", ["believer", "joint"])
@pytest.mark.parametrize("name", ["and", "band", "levels"])
@pytest.mark.parametrize("weights", [[1.0] * 21, [0.1] * 14 + [2.0] * 7])
def test_the_first_row_removes_most_doubt_of_all(name, batch, weights) -> None:
    # By the definition: the doubt now minus its expectation over what would be seen,
    # by draws of values at each candidate.
    region, pool = REGIONS[name], Pool(POOL.X, weights=weights)
    rule = ExpectedMisclassification(batch=batch)
    strategy = build(region, rule=rule, batch_size=1, pool=pool)
    state = strategy.init()
    for rows in ([4, 15], [10]):
        y = ROWS[rows, : region.n_outputs]
        told = Observations(rows, y.squeeze(-1), round=torch.full((len(rows),), 0))
        state = strategy.tell(state, Observations(told.indices, told.y))
    chosen = int(strategy.ask(state).order)
    m = region.n_outputs
    posteriors = state.belief.fits.posteriors
    open_rows = state.classification.undecided
    generator = torch.Generator().manual_seed(0)
    draws = 4000
    noise = torch.randn(draws, m, generator=generator, dtype=torch.float64)
    after = []
    for row in range(len(POOL)):
        mean, sigma = [], []
        for j, p in enumerate(posteriors):
            c = p.covariance_between(torch.tensor([row]), torch.arange(len(POOL)))[0]
            observed = float(p.variance[row]) + 0.05**2
            move = c / observed**0.5
            mean.append((p.mean + noise[:, j, None] * move)[:, open_rows].reshape(-1))
            left = (p.variance - move.square()).clamp_min(0).sqrt()[open_rows]
            sigma.append(left.expand(draws, -1).reshape(-1))
        p_class = region.values.cells.probabilities(mean, sigma)
        doubt = (1 - p_class.square().sum(dim=-1)).view(draws, -1) / 2
        doubt = doubt @ pool.mass[open_rows]
        after.append((float(doubt.mean()), float(doubt.std()) / draws**0.5))
    best, error = min(after)
    assert after[chosen][0] <= best + 4 * (error + after[chosen][1])


def test_a_band_needs_both_ends_and_excluded_middle_is_certain() -> None:
    state = build(Above(0.3) | ~Above(0.3)).init()
    assert state.is_done
    assert state.classification.above.all()
    # By itself each comparison is open; together they are not.
    assert build(Above(0.3)).init().classification.undecided.all()


def test_an_output_without_levels_is_told_and_ignored() -> None:
    strategy = build(REGIONS["second"])
    assert strategy.n_outputs == 2
    batch = strategy.ask(strategy.init())
    with pytest.raises(BotorchTensorDimensionError, match=r"one column per output"):
        strategy.tell(strategy.init(), batch.observe(ROWS[batch.order, 0]))


def test_names_of_metrics_are_outputs_in_their_order() -> None:
    region = Above(1.0, output="zinc") | (
        Above(2.0, output="lead") & Below(3.0, 0.0, "zinc")
    )
    assert region.outputs == ("zinc", "lead")
    state = build(Above(0.3, output="zinc") & Below(0.4, output="lead")).init()
    frame = state.classification.to_frame()
    for name in ("zinc_mean", "zinc_lower", "lead_upper"):
        assert name in frame.columns


def test_the_answer_has_every_output_and_margins_of_all() -> None:
    region = REGIONS["and"]
    state = end_of(build(region, max_observations=12))
    answer = state.classification
    for j, output in enumerate(answer.outputs):
        regions = state.belief.all_regions[j]
        assert torch.equal(output.mean, regions.mean)
        assert torch.equal(output.lower, regions.lower)
    assert bool((answer.lower[answer.above] > 0).all())
    assert bool((answer.upper[answer.below] <= 0).all())
    both = torch.stack([output.mean for output in answer.outputs], dim=-1)
    wanted = (both - torch.tensor([0.3, -0.1])).amin(dim=-1)
    inside = wanted > 0
    assert answer.mean[inside].tolist() == pytest.approx(wanted[inside].tolist())


def test_of_one_output_the_answer_is_in_its_units() -> None:
    state = end_of(build(REGIONS["band"]))
    assert torch.equal(state.classification.mean, state.belief.regions.mean)
    (output,) = state.classification.outputs
    assert [float(level) for level in output.levels] == [-0.5, 0.3]
    assert "y0_mean" not in state.classification.to_frame().columns
    assert end_of(build(Above(0.3), max_observations=3)).classification.outputs == ()


def test_intervals_of_all_outputs_hold_together() -> None:
    one = build(Above(0.3)).parts
    two = build(REGIONS["and"]).parts
    assert two.goal.n_claims(len(POOL)) == 2 * one.goal.n_claims(len(POOL))
    assert two.widths(1) > one.widths(1)


def test_accuracies_are_those_of_the_outputs() -> None:
    region = Above(0.3, 0.1) & Below(0.5, 0.2, output=1)
    assert region.accuracies == (0.1, 0.2)
    guarantee = build(region).guarantee
    assert "up to epsilon = 0.1 (output 0), 0.2 (output 1)" in guarantee


@pytest.mark.parametrize("name", ["and", "band", "row and"])
def test_learnt_models_find_regions_too(name) -> None:
    model = GaussianProcess(noise_std=0.05, n_initial=9)
    state = end_of(build(REGIONS[name], model=model, batch_size=7, beta=9.0))
    assert state.stop_reason == "decided"
    assert state.classification.above.tolist() == truth_of(REGIONS[name]).tolist()
    assert "Decided under the fitted model" in state.classification.guarantee


def test_while_nothing_of_the_region_was_found_a_learnt_model_decides_nothing() -> None:
    region = Above(0.9) & Above(0.9, output=1)  # the outputs are never both so high
    model = GaussianProcess(noise_std=0.01, n_initial=9)
    strategy = build(region, model=model, batch_size=9, max_observations=18, beta=9.0)
    state = end_of(strategy)
    assert state.stop_reason == "none found"
    assert state.classification.undecided.all()


def test_a_forecast_says_when_a_region_is_decided() -> None:
    strategy = build(REGIONS["and"])
    state = end_of(build(REGIONS["and"], max_observations=6))
    told = strategy.replay(state.observations, seed=3)
    assert told.forecast().observations >= 1


def test_a_region_can_be_copied_and_compared() -> None:
    region = REGIONS["row and"]
    assert copy.deepcopy(region) == region
    assert pickle.loads(pickle.dumps(region)) == region
    assert (Above(1.0) & Above(2.0) & Above(3.0)) == And(
        (Above(1.0), Above(2.0), Above(3.0))
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Above(0.3) & 3, "a region on both sides of `&`"),
        (lambda: Levels((1.0, 2.0)) | Above(3.0), "parts of a region such as"),
        (lambda: ~Levels((1.0, 2.0)), "parts of a region such as"),
        (lambda: Levels((2.0, 1.0)), "`levels` to be at least one level, ascending"),
        (lambda: Levels(()), "`levels`"),
        (lambda: Levels(2.0), r"Write `Levels\(\(1.0, 2.0\)\)`"),
        (lambda: Levels(torch.tensor(2.0)), "`levels` to be a list of numbers"),
        (lambda: Levels("12"), "`levels` to be a list of numbers, but got '12'"),
        (lambda: Between(2.0, 1.0), "`low` to be below `high`"),
        (lambda: Between((1.0, 2.0), (3.0, 4.0, 5.0)), "`low` to be as many"),
        (lambda: Above(1.0, output=-1), "`output` to be the number"),
        (lambda: Above(1.0, output=True), "`output`"),
        (lambda: Above((0.0, float("nan"))), "`threshold`"),
        (lambda: Below("high"), "`threshold`"),
        (lambda: build(Above((1.0, 2.0))), "`threshold` to be a number or one per row"),
        (
            lambda: build(Above(1.0, 0.1) & Below(2.0, 0.2)),
            "`epsilon` to be the same wherever output 0 occurs",
        ),
        (
            lambda: build(Above(1.0, output="a") & Above(1.0, output=0)),
            "`output` to be a name",
        ),
        (
            lambda: build(And(tuple(Above(0.0, output=j) for j in range(11)))),
            "at most 1024 cells",
        ),
        (
            lambda: build(
                REGIONS["and"],
                model=GaussianProcess(KERNEL, noise_std=0.1, norm_bound=1.0),
            ),
            "no `norm_bound` with a goal of several outputs",
        ),
        (lambda: build(REGIONS["band"], audit=(10, 0.1)), r"`audit\[0\]`"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message) -> None:
    with pytest.raises((ValueError, UnsupportedError), match=message):
        make()


@pytest.mark.parametrize(
    "combine",
    [
        lambda: Above(0.3) and Below(0.4),
        lambda: Above(0.3) or Below(0.4),
        lambda: not Above(0.3),
    ],
)
def test_words_of_python_do_not_combine_regions_in_silence(combine) -> None:
    with pytest.raises(ValueError, match=r"combined by `&`, `|` and `~`"):
        combine()


def test_a_rule_that_asks_for_the_level_hears_that_there_are_several() -> None:
    with pytest.raises(UnsupportedError, match=r"reads `context.comparisons`"):
        Above(SLOPE).values.level  # noqa: B018
    assert Below(0.3).values.level == 0.3


def test_processes_may_differ_by_output() -> None:
    priors = tuple(
        GPPrior.from_kernel(RBFKernel().double().initialize(lengthscale=scale))
        for scale in (1.0, 2.0)
    )
    model = GaussianProcess(priors, noise_std=(0.05, 0.02))
    state = end_of(build(REGIONS["and"], model=model))
    assert state.classification.above.tolist() == truth_of(REGIONS["and"]).tolist()


# --- where the prior alone rules all levels out ---------------------------------------


SHORT = RBFKernel().double()
SHORT.lengthscale = 0.2
UNIT = Pool(torch.linspace(0, 1, 12).unsqueeze(-1).double())
FAR = {
    "between": Between(3.5, 5.0),
    "and": Above(3.5) & Below(5.0),
    "levels": Levels((3.5, 5.0)),
    "two outputs, or": Above(3.5) | Above(4.0, output=1),
    "two outputs, and": Below(3.5) & Below(4.0, output=1),
    "not": ~Between(3.5, 5.0),
    "level": Above(3.5),
}
CHOOSING = (
    Straddle(),
    RandomizedStraddle(),
    Ambiguity(),
    Width(),
    UFunction(),
    ContourEntropy(),
    ExpectedFeasibility(),
    RanjanImprovement(),
    OptimalDesign(),
    None,
)


@covering(
    "goal, rule, max_repeats, excluded, by_output, pending",
    tuple(FAR),
    CHOOSING,
    (None, 1, 2),
    ((), (0,)),
    (False, True),
    (False, True),
)
def test_rows_ruled_out_by_the_prior_alone_are_measured_and_decided(
    goal, rule, max_repeats, excluded, by_output, pending
):
    region, pool = FAR[goal], UNIT
    if by_output and goal != "levels":  # which are no part of a union
        if region.n_outputs == 1:
            region = region | Above(4.0, output=1)
        pool = UNIT.at_outputs(2, costs=(1.0, 1.0))
    strategy = Strategy(
        pool,
        region,
        model=GaussianProcess(SHORT, noise_std=0.1),
        rule=rule,
        beta=9.0,
        batch_size=2,
        max_repeats=max_repeats,
        max_observations=60,
    )
    state = strategy.exclude(strategy.init(), list(excluded))
    while not state.is_done:
        batch = strategy.ask(state)
        if pending and strategy.room(state, batch.order):
            more = strategy.ask(state, pending=batch.order)
            assert not bool(torch.isin(more.order, torch.tensor(excluded)).any())
        y = torch.sin(6 * batch.pool.X[batch.order, 0])
        if strategy.n_outputs == 2:
            y = torch.stack((y, -y), dim=-1)
        state = strategy.tell(state, batch.observe(y))
    uses = state.uses(len(pool))
    assert int(uses.max()) <= (max_repeats or 60)
    assert not uses[list(excluded)].any()
    assert state.stop_reason == "decided"
    inside = {"not", "two outputs, and"}
    side = "above" if goal in inside else "below"
    assert getattr(state.classification, side).all()
