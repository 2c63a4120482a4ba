r"""Classes without an order: phases, species, and what is decided about them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from ax.api.client import Client
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetAnalysis,
    ProbabilityAnalysis,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.models.latent import CRISP, PLAIN
from botorch_lse.plotting import level_set_frame, plot_level_set
from botorch_lse.plotting.report import report_of
from botorch_lse.strategies import (
    Binary,
    Classes,
    Counts,
    ExpectedMisclassification,
    GaussianProcess,
    Random,
    State,
    Straddle,
    Strategy,
)
from botorch_lse.strategies.composed import default_rule
from botorch_lse.surrogate.remarks import DataWarning

NAMES = ("solid", "liquid", "gas")
PHASES = Classes(NAMES)
LEARNT = GaussianProcess(outcome=Binary())


def map_of_phases(n: int = 15) -> tuple[Pool, Tensor]:
    r"""A grid over two inputs, and the phase of each row, by the nearest centre."""
    axis = torch.linspace(0, 1, n, dtype=torch.float64)
    X = torch.cartesian_prod(axis, axis)
    centres = torch.tensor([[0.2, 0.3], [0.8, 0.3], [0.5, 0.9]], dtype=torch.float64)
    return Pool(X, names=("T", "p")), torch.cdist(X, centres).argmin(dim=-1)


def played(strategy: Strategy, labels: Tensor, goal: Classes = PHASES) -> State:
    state = strategy.init(seed=0)
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(goal.results(labels[batch.order])))
    return state


# --- the question ---------------------------------------------------------------------


def test_a_row_is_of_the_only_class_above_the_threshold() -> None:
    goal = Classes(NAMES, threshold=0.6)
    for signs in itertools.product((False, True), repeat=3):
        given = dict(zip(goal.leaves, map(torch.tensor, signs), strict=True))
        wanted = signs.index(True) if sum(signs) == 1 else 3
        assert int(goal.class_of(given)) == wanted
    assert [leaf.threshold for leaf in goal.leaves] == [0.6] * 3
    assert goal.values.n_classes == goal.n_classes == 4


def test_intervals_decide_a_class_once_all_others_are_ruled_out() -> None:
    low = [torch.tensor([0.6, 0.6, 0.0, 0.1])] + [torch.tensor([0.0] * 4)] * 2
    high = [torch.tensor([1.0, 1.0, 0.4, 0.9])]
    high += [torch.tensor([0.4, 0.6, 0.4, 0.4]), torch.tensor([0.3, 0.3, 0.2, 0.4])]
    cells = PHASES.values
    assert cells.class_between(low, high).tolist() == [0, -1, 3, -1]


@pytest.mark.parametrize(
    "names",
    [
        "solid",
        ("solid",),
        ("solid", "solid"),
        ("solid", ""),
        ("solid", "none"),
        (1, 2),
        pytest.param({"solid", "gas"}, id="a set"),
        None,
        3,
    ],
    ids=repr,
)
def test_names_are_at_least_two_different_ones(names: object) -> None:
    with pytest.raises(ValueError, match="Expected `names` to be at least two") as e:
        Classes(names)  # type: ignore[arg-type]
    remedy = str(e.value).split("Write `")[1].split("`")[0]
    assert eval(remedy) == PHASES


def test_there_are_at_most_ten_classes() -> None:
    assert len(Classes(tuple("abcdefghij")).leaves) == 10
    with pytest.raises(ValueError, match=r"`names` to be at most ten classes.*got 11"):
        Classes(tuple("abcdefghijk"))


def test_labels_that_are_told_as_they_are_lead_to_results() -> None:
    model = GaussianProcess(outcome=Binary())
    strategy = Strategy(Pool([[0.0], [0.5], [1.0]]), PHASES, model=model)
    state, labels = strategy.init(), ["solid"] * 3
    batch = strategy.ask(state)
    labels = labels[: len(batch.order)]
    with pytest.raises(ValueError, match=r"or of `Classes`: `goal\.results\(y\)`"):
        batch.observe(labels)
    with pytest.raises(
        BotorchTensorDimensionError, match=r"class, as `goal\.results\(labels\)`"
    ):
        strategy.tell(state, batch.observe([0] * len(labels)))
    now = strategy.tell(state, batch.observe(PHASES.results(labels)))
    assert now.n_used == len(labels)


@pytest.mark.parametrize("threshold", [0.49, 1.0, float("nan")])
def test_below_one_half_a_row_could_be_of_two_classes(threshold: float) -> None:
    with pytest.raises(ValueError, match="Expected `threshold`"):
        Classes(NAMES, threshold)


def test_results_are_one_for_the_class_that_was_found() -> None:
    wanted = torch.eye(3, dtype=torch.float64)[[2, 0]]
    for labels in (["gas", "solid"], [2, 0], torch.tensor([2, 0]), [2.0, 0.0]):
        assert torch.equal(PHASES.results(labels), wanted)
    assert torch.equal(PHASES.results("gas"), wanted[:1])


@pytest.mark.parametrize("label", ["gaz", "none", 3, -1, 0.5, float("inf"), None, True])
def test_labels_that_are_no_class_are_named(label: object) -> None:
    with pytest.raises(ValueError, match="Expected `labels` to be of the classes"):
        PHASES.results(["gas", label])  # type: ignore[list-item]


@pytest.mark.parametrize("labels", [None, 1, torch.zeros(2, 2)], ids=type)
def test_labels_are_a_list(labels: object) -> None:
    with pytest.raises(ValueError, match="one class for each measurement") as e:
        PHASES.results(labels)  # type: ignore[arg-type]
    remedy = str(e.value).split("Write `")[1].split("`")[0]
    assert eval(remedy, {"phases": PHASES}).shape == (2, 3)


# --- runs -----------------------------------------------------------------------------


@pytest.mark.slow
def test_decided_classes_are_right_where_results_are_noisy() -> None:
    x = torch.linspace(0, 1, 15, dtype=torch.float64)
    solid, gas = torch.special.ndtr(7 * (0.4 - x)), torch.special.ndtr(7 * (x - 0.6))
    share = torch.stack((solid, 1 - solid - gas, gas), dim=-1)
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.3, 4.0
    strategy = Strategy(
        Pool(x.unsqueeze(-1)),
        PHASES,
        model=GaussianProcess(kernel, outcome=Binary()),
        rule=Straddle(),
        beta=9.0,
        batch_size=30,
        max_observations=900,
    )
    generator, state = torch.Generator().manual_seed(0), strategy.init(seed=0)
    while not state.is_done:
        rows = strategy.ask(state).order
        found = share[rows].multinomial(1, generator=generator).squeeze(-1)
        state = strategy.tell(state, Observations(rows, PHASES.results(found)))
    answer = state.classification
    assert answer.classes is not None
    assert answer.class_names == (*NAMES, "none")
    truth = torch.where(share.amax(dim=-1) > 0.5, share.argmax(dim=-1), 3)
    is_known = answer.classes >= 0
    assert torch.equal(answer.classes[is_known], truth[is_known])
    assert set(answer.classes.tolist()) >= {0, 2}
    assert int(is_known.sum()) > 5
    assert torch.equal(answer.undecided, ~is_known)


@pytest.mark.slow
def test_a_map_of_phases_is_learnt_from_few_rows() -> None:
    pool, labels = map_of_phases()
    errors = []
    for rule in (None, Random()):
        strategy = Strategy(
            pool, PHASES, model=LEARNT, rule=rule, batch_size=9, max_observations=36
        )
        answer = played(strategy, labels).classification
        assert answer.likeliest is not None
        errors.append(float((answer.likeliest != labels).double().mean()))
    assert errors[0] < 0.12


@pytest.mark.slow
def test_a_class_that_is_never_found_does_not_hinder_others() -> None:
    pool, labels = map_of_phases(9)
    goal = Classes((*NAMES, "plasma"))
    strategy = Strategy(pool, goal, model=LEARNT, batch_size=9, max_observations=36)
    state = played(strategy, labels, goal)
    assert state.belief.fits.is_informed
    answer = state.classification
    assert float(answer.outputs[3].mean.max()) < 0.2
    assert answer.likeliest is not None
    assert float((answer.likeliest != labels).double().mean()) < 0.15


def test_many_classes_are_looked_for_by_straddle() -> None:
    pool, _ = map_of_phases(9)
    for n, wanted in ((5, ExpectedMisclassification), (6, Straddle)):
        goal = Classes(tuple(f"phase {k}" for k in range(n)))
        assert isinstance(default_rule(goal, pool).rules[0], wanted)


def test_results_are_expected_to_be_mostly_right(answered: State) -> None:
    for posterior in answered.belief.fits.posteriors:
        assert float(posterior.prior.scale) == CRISP.unit > PLAIN.unit


def test_nothing_is_learnt_while_one_class_alone_was_found() -> None:
    pool, labels = map_of_phases(9)
    strategy = Strategy(pool, PHASES, model=LEARNT, batch_size=9, max_observations=36)
    state = played(strategy, torch.zeros_like(labels))
    assert not state.belief.fits.is_informed
    assert bool(state.classification.undecided.all())


def test_shares_may_be_measured_as_numbers() -> None:
    x = torch.linspace(0, 1, 25, dtype=torch.float64)
    share = torch.stack((1 - x, x), dim=-1)
    goal = Classes(("alpha", "beta"), epsilon=0.05)
    model = GaussianProcess(RBFKernel().double(), noise_std=0.01)
    strategy = Strategy(Pool(x.unsqueeze(-1)), goal, model=model, batch_size=5)
    state = strategy.init(seed=0)
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(share[batch.order]))
    answer, sure = state.classification, (x - 0.5).abs() > 0.05
    assert state.stop_reason == "decided"
    assert answer.classes is not None
    assert torch.equal(answer.classes[sure], (x > 0.5).long()[sure])


def test_learnt_shares_decide_once_two_classes_were_found() -> None:
    x = torch.linspace(0, 1, 25, dtype=torch.float64)
    goal = Classes(("alpha", "beta"), epsilon=0.1)
    pool = Pool(x.unsqueeze(-1))
    model = GaussianProcess(noise_std=0.01)
    strategy = Strategy(pool, goal, model=model, batch_size=5, max_observations=20)
    for middle in (0.5, 2.0):
        share = torch.special.ndtr(4 * (x - middle))
        state = strategy.init(seed=0)
        while not state.is_done:
            rows = strategy.ask(state).order
            y = torch.stack((1 - share, share), dim=-1)[rows]
            state = strategy.tell(state, Observations(rows, y))
        if middle < 1:
            assert state.stop_reason == "decided"
        else:
            assert "No two classes were found" in state.classification.guarantee
            assert bool(state.classification.undecided.all())


@pytest.mark.slow
def test_labels_told_as_numbers_are_named() -> None:
    pool, labels = map_of_phases(9)
    strategy = Strategy(pool, PHASES, batch_size=9, max_observations=36)
    with pytest.warns(DataWarning, match=r"give `model=GaussianProcess\(outcome="):
        played(strategy, labels)
    played(replace(strategy, model=LEARNT), labels)  # the remedy


@pytest.mark.slow
def test_runs_resume_and_are_stored() -> None:
    pool, labels = map_of_phases(9)
    strategy = Strategy(pool, PHASES, model=LEARNT, batch_size=9, max_observations=27)
    state = played(strategy, labels)
    again = decode_strategy(encode_strategy(strategy), pool)
    assert again.goal == PHASES
    found = again.replay(state.history, seed=0).classification
    assert torch.equal(found.likeliest, state.classification.likeliest)
    assert torch.allclose(found.outputs[0].mean, state.classification.outputs[0].mean)


# --- Ax, tables of answers, pictures, reports -----------------------------------------


@pytest.mark.slow
def test_classes_are_metrics_in_ax() -> None:
    pool, labels = map_of_phases(9)
    strategy = Strategy(pool, PHASES, model=LEARNT, batch_size=9, max_observations=27)

    def measure(parameters: dict[str, int]) -> dict[str, float]:
        row = PHASES.results(labels[[parameters[POOL_INDEX]]])[0]
        return dict(zip(NAMES, row.tolist(), strict=True))

    client = Client()
    client.configure_experiment(parameters=pool_parameters(pool), name="phases")
    client.configure_optimization(objective=",".join(NAMES))
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    run_experiment(client, measure)
    found = level_set(client)["likeliest"]
    right = [NAMES[k] for k in labels.tolist()]
    assert (found != right).mean() < 0.2
    sides, shares = client.compute_analyses(
        [LevelSetAnalysis(), ProbabilityAnalysis()], display=False
    )
    assert "likeliest" in str(sides.blob)
    assert "of no class" in str(shares.blob)


@pytest.fixture(scope="module")
def answered() -> State:
    pool, labels = map_of_phases(9)
    return played(
        Strategy(pool, PHASES, model=LEARNT, batch_size=9, max_observations=36), labels
    )


@pytest.mark.slow
def test_tables_name_the_classes(answered: State) -> None:
    answer = answered.classification
    frame = answer.to_frame()
    called = [NAMES[k] for k in answer.likeliest.tolist()]  # type: ignore[union-attr]
    assert frame["likeliest"].tolist() == called
    is_open = answer.undecided.numpy()
    assert frame["class"].isna().to_numpy().tolist() == is_open.tolist()
    decided = frame[~is_open]
    assert (decided["class"] == decided["likeliest"]).all()
    assert {f"{name}_mean" for name in NAMES} < set(frame)
    assert len(level_set_frame(answer, answered.observations)) == len(answer)


def test_pictures_show_likely_classes_beside_decided_ones(answered: State) -> None:
    ax = plot_level_set(answered.classification, answered.observations)
    legend = ax.figure.legends[0] if ax.figure.legends else ax.get_legend()
    said = " ".join(text.get_text() for text in legend.get_texts())
    assert all(name in said for name in NAMES)
    assert "likeliest" in said


def test_reports_count_the_classes(answered: State) -> None:
    report = report_of(answered, has_pictures=False)
    words = report.markdown()
    assert "which of solid, liquid and gas it is" in report.title.lower()
    assert "The likeliest classes, decided or not: " in words
    assert "of the pool" not in words


def test_no_class_is_named_before_two_were_found() -> None:
    pool, _ = map_of_phases(5)
    strategy = Strategy(pool, PHASES, model=LEARNT, batch_size=25, max_repeats=1)
    told = Observations(range(25), PHASES.results(["gas"] * 25))
    state = strategy.tell(strategy.init(seed=0), told)
    assert set(state.classification.to_frame()["likeliest"]) == {"none"}
    assert "No model says yet" in str(state.content())
    assert "25 none" in report_of(state, has_pictures=False).markdown()


@pytest.mark.parametrize(
    "told",
    [
        Observations([3, 7], [[0, 0, 1], [1, 1, 0]]),
        Observations([3, 7], [[1, 0, 3], [3, 3, 0]], trials=4),
    ],
)
def test_a_result_is_of_one_class(told: Observations) -> None:
    pool, _ = map_of_phases(5)
    strategy = Strategy(pool, PHASES, model=LEARNT, batch_size=2)
    wanted = "Expected `y` to be of one class in each result, but got that of row 7"
    with pytest.raises(ValueError, match=wanted) as e:
        strategy.tell(strategy.init(), told)
    assert "goal.results(labels)" in str(e.value)
    again = Observations([3, 7], PHASES.results(["gas", "solid"]))
    assert strategy.tell(strategy.init(), again).n_used == 2


def test_classes_are_results_of_yes_and_no() -> None:
    pool, _ = map_of_phases(5)
    with pytest.raises(
        ValueError, match=r"Expected `outcome` to be `Binary\(\)` where"
    ):
        Strategy(pool, PHASES, model=GaussianProcess(outcome=Counts())).init()


def test_a_state_is_said_in_a_line(answered: State) -> None:
    assert repr(answered) == "State(36 measurements, round 4: budget)"
    found = torch.tensor([-1, 0, 1, 1, 3]).repeat(20)[: len(answered.classification)]
    named = repr(replace(answered.classification, classes=found))
    counts = [int((found == k).sum()) for k in (0, 1, 2, 3, -1)]
    said = "{} solid, {} liquid, {} gas, {} none, {} undecided".format(*counts)
    assert named.startswith(f"Classification(81 rows: {said}; ")
