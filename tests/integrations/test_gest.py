r"""The generator for engines that speak gest-api, against the real package."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.strategies import Above, And, Below, Between, Binary, GaussianProcess

gest_api = pytest.importorskip("gest_api", reason="gest-api is not installed")
from gest_api import Generator  # noqa: E402
from gest_api.vocs import VOCS  # noqa: E402

from botorch_lse.integrations.gest import LevelSetGenerator, region_of  # noqa: E402

BOX = {"x": [0.0, 2.0], "y": [-1.0, 1.0]}
MODEL = GaussianProcess(noise_std=(0.05, 0.05))


def vocs_of(**options) -> VOCS:
    given = {
        "variables": dict(BOX),
        "objectives": {"cost": "EXPLORE"},
        "constraints": {"f": ["GREATER_THAN", 0.5], "g": ["LESS_THAN", 1.2]},
        "constants": {"charge": 3.0},
        **options,
    }
    return VOCS(**given)


def measured(point: dict) -> dict:
    f, g = math.sin(2 * point["x"]) + point["y"] / 2, point["x"] * (1 + point["y"] / 2)
    return {**point, "f": f, "g": g, "cost": 1.0}


def ended(generator: LevelSetGenerator, size: int = 4, most: int = 100) -> int:
    n = 0
    while generator.stop_reason is None and n < most:
        points = generator.suggest(size)
        n += len(points)
        generator.ingest([measured(point) for point in points])
    return n


def test_constraints_are_the_region() -> None:
    vocs = vocs_of(
        constraints={
            "f": ["GREATER_THAN", 0.5],
            "g": ["LESS_THAN", 1.2],
            "h": ["BOUNDS", -1.0, 1.0],
        }
    )
    region = region_of(vocs)
    above, below = Above(0.5, output="f"), Below(1.2, output="g")
    assert region == And((above, below, Between(-1.0, 1.0, output="h")))
    assert region_of(vocs_of(constraints={"f": ["GREATER_THAN", 0.5]})) == above


def test_a_run_finds_the_region() -> None:
    generator = LevelSetGenerator(vocs_of(), n=128, model=MODEL)
    assert isinstance(generator, Generator)
    ended(generator)
    frame = generator.to_frame()
    f = np.sin(2 * frame["x"]) + frame["y"] / 2
    g = frame["x"] * (1 + frame["y"] / 2)
    wanted = (f > 0.5) & (g <= 1.2)
    decided = frame["side"] != "undecided"
    assert decided.mean() > 0.8
    assert ((frame["side"] == "above") == wanted)[decided].all()
    assert frame["x"].between(0, 2).all()


def test_points_have_constants_and_numbers_of_their_own() -> None:
    generator = LevelSetGenerator(vocs_of(), n=64, model=MODEL)
    points = generator.suggest(3) + generator.suggest()
    assert [point["_id"] for point in points] == [1, 2, 3, 4]
    assert {point["charge"] for point in points} == {3.0}
    assert type(points[0]["x"]) is float
    # Planned in the knowledge of those that are out: no row twice.
    assert len({(point["x"], point["y"]) for point in points}) == 4


def test_results_may_come_one_by_one_and_in_any_order() -> None:
    generator = LevelSetGenerator(vocs_of(), n=64, model=MODEL)
    points = generator.suggest(6)
    for point in reversed(points):
        generator.ingest([measured(point)])
    assert generator.state.n_used == 6
    with pytest.raises(ValueError, match=r"`_id` to be one that was suggested and is"):
        generator.ingest([measured(points[0])])


@pytest.mark.some(1)
@pytest.mark.parametrize("size", [2, 8])
def test_a_resumed_run_is_at_most_as_sure_as_the_run(size: int) -> None:
    own = Pool([[x / 8, 0.0] for x in range(17)], names=("x", "y"))
    goal, model = Above(0.5, output="f"), GaussianProcess(noise_std=0.05, n_initial=4)
    options = {"pool": own, "model": model}
    vocs = vocs_of(constraints={})
    first, results = LevelSetGenerator(vocs, goal, **options), []
    for _ in range(4):
        batch = [measured(point) for point in first.suggest(2)]
        results += [{k: v for k, v in r.items() if k != "_id"} for r in batch]
        first.ingest(batch)
    again = LevelSetGenerator(vocs, goal, **options)
    for at in range(0, len(results), size):
        again.ingest(results[at : at + size])
    assert again.state.n_used == first.state.n_used == 8
    told, resumed = first.state.classification, again.state.classification
    assert not bool((told.undecided & ~resumed.undecided).any())
    widths = [answer.upper - answer.lower for answer in (told, resumed)]
    assert bool((widths[1] >= widths[0] * (1 - 1e-9)).all())
    # All at once, or one by one: it is the same run.
    alone = LevelSetGenerator(vocs, goal, **options)
    for result in results:
        alone.ingest([result])
    assert alone.to_frame().equals(again.to_frame())


@pytest.mark.filterwarnings("ignore:Values of row")  # that differ, on purpose
def test_a_number_is_that_of_one_point_and_told_once() -> None:
    generator = LevelSetGenerator(vocs_of(), n=64, model=MODEL)
    one, other = map(measured, generator.suggest(2))
    with pytest.raises(ValueError, match=r"`_id` to be told once, but got 1 2 times"):
        generator.ingest([one, one])
    with pytest.raises(
        ValueError, match=r"`_id` to be that of its point, but 2 is another"
    ):
        generator.ingest([{**one, "_id": other["_id"]}])
    assert generator.state.n_used == 0
    rounded = {k: float(np.float32(v)) for k, v in one.items() if k != "_id"}
    generator.ingest([{**rounded, "_id": one["_id"]}, {"_id": 2, "f": 1.0, "g": 1.0}])
    del other["_id"]  # the remedy
    generator.ingest([other])
    assert generator.state.n_used == 3


def test_words_levels_and_a_pool_of_ones_own() -> None:
    variables = {"x": [0.0, 1.0], "salt": {"NaCl", "KCl"}, "grade": {1, 2, 5}}
    vocs = vocs_of(variables=variables, constraints={"f": ["GREATER_THAN", 0.5]})
    generator = LevelSetGenerator(vocs, n=40)
    points = generator.suggest(12)
    assert {point["salt"] for point in points} <= {"NaCl", "KCl"}
    assert {point["grade"] for point in points} <= {1, 2, 5}
    generator.ingest([{**p, "f": p["x"] + (p["salt"] == "KCl")} for p in points])
    assert generator.state.n_used == 12
    own = Pool([[0.0, 0.0], [1.0, 0.5]], names=("x", "y"))
    goal = Above(0.1, output="f")
    small = LevelSetGenerator(vocs_of(constraints={}), goal, pool=own)
    assert {point["x"] for point in small.suggest(2)} <= {0.0, 1.0}


@pytest.mark.slow
def test_points_that_fail_are_asked_again_thrice_and_then_no_more() -> None:
    own = Pool([[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]], names=("x", "y"))
    goal = Above(0.1, output="f")
    generator = LevelSetGenerator(vocs_of(constraints={}), goal, pool=own)
    asked = []
    for _ in range(20):
        if generator.stop_reason is not None:
            break
        (point,) = generator.suggest(1)
        asked.append(point["x"])
        value = None if point["x"] == 1.0 else point["x"]
        generator.ingest([{**point, "f": value}])
    assert asked.count(1.0) == 3


def test_a_million_points_at_once_are_refused_at_once() -> None:
    generator = LevelSetGenerator(vocs_of(), n=8, model=MODEL)
    generator.suggest(2)
    message = r"`num_points` .*got 1000000: 2,048 at most while 2 are out"
    with pytest.raises(ValueError, match=message):
        generator.suggest(10**6)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"contextual variables such as 'z'"):
        LevelSetGenerator(vocs_of(variables={**BOX, "z": "CONTEXTUAL"}))
    with pytest.raises(ValueError, match=r"constraints, the region.*give a `goal`"):
        LevelSetGenerator(vocs_of(constraints={}))
    with pytest.raises(ValueError, match=r"`goal` to name its outputs"):
        LevelSetGenerator(vocs_of(), Above(0.5))
    with pytest.raises(
        ValueError, match=r"`pool` to have a column .* it lacks \['y'\]"
    ):
        LevelSetGenerator(vocs_of(), pool=Pool([[0.0]], names=("x",)))
    generator = LevelSetGenerator(vocs_of(), n=8, model=MODEL, max_observations=4)
    with pytest.raises(
        ValueError, match=r"`num_points` to be what can be suggested.*`suggest\(4\)`"
    ):
        generator.suggest(5)
    point = generator.suggest(1)[0]
    with pytest.raises(ValueError, match=r"have a number as 'g', nan or None .* got"):
        generator.ingest([{**point, "f": 1.0}])
    with pytest.raises(ValueError, match=r"number as 'g'.*'g': 'broken'"):
        generator.ingest([{**point, "f": 1.0, "g": "broken"}])
    for size in (-1, "3", 1.5):
        with pytest.raises(ValueError, match=r"`num_points` to be"):
            generator.suggest(size)
    assert generator.suggest(0) == []
    bounded = GaussianProcess(RBFKernel().double(), noise_std=0.05, norm_bound=1.0)
    one = vocs_of(constraints={"f": ["GREATER_THAN", 0.5]})
    given = LevelSetGenerator(one, n=8, model=bounded)  # its kernel learns no old data
    with pytest.raises(ValueError, match=r"`results` to be rows of the pool, but got"):
        given.ingest([{"x": 7.0, "y": 0.0, "f": 1.0}])
    with pytest.raises(ValueError, match=r"`values` to have 'y', but it has"):
        generator.ingest([{"x": 7.0, "f": 1.0, "g": 1.0}])
    generator.ingest([measured(point)])
    ended(generator, 3)
    assert generator.stop_reason is not None
    assert generator.suggest() == []


# --- real engines ---------------------------------------------------------------------


def bench(point):
    value = math.sin(3 * point["x"]) + point["z"] / 2
    return {"cost": value, "strength": value}


def generator_for_engines(objective="EXPLORE", **options):
    vocs = VOCS(
        variables={"x": [0.0, 1.0], "z": [0.0, 1.0]},
        objectives={"cost": objective},
        constraints={"strength": ["GREATER_THAN", 0.5]},
        **options,
    )
    model = GaussianProcess(RBFKernel().double(), noise_std=0.05)
    return LevelSetGenerator(vocs, n=32, model=model, max_observations=24)


def check_answer(generator):
    frame = generator.to_frame()
    truth = [bench(point)["strength"] for point in frame.to_dict("records")]
    sides = {"above": lambda value: value > 0.5, "below": lambda value: value <= 0.5}
    decided = [(s, t) for s, t in zip(frame["side"], truth, strict=True) if s in sides]
    assert len(decided) > 16
    assert all(sides[side](value) for side, value in decided)


@pytest.mark.engine
def test_xopt_runs_it():
    pytest.importorskip("xopt", reason="needs the extra `engines`")
    from xopt import Evaluator, Xopt

    given = generator_for_engines()
    run = Xopt(generator=given, evaluator=Evaluator(function=bench, max_workers=3))
    for _ in range(3):
        run.step()
    again = Xopt(generator=given, evaluator=Evaluator(function=bench))
    again.add_data(run.data)  # as another process would, from what Xopt stored
    assert again.generator.state.n_used == len(run.data) == 9
    numbers = {point["_id"] for point in again.generator.suggest(4)}
    assert not numbers & {*run.data["_id"]}
    with pytest.raises(ValueError, match=r"`_id` to be one that .* is out, but got 1"):
        again.add_data(run.data)
    while run.generator.stop_reason is None:
        run.step()
    assert run.generator.state.n_used == len(run.data)
    assert given.state.n_used == 0  # Xopt works on a copy
    check_answer(run.generator)


@pytest.mark.engine
def test_libensemble_runs_it(tmp_path, monkeypatch):
    pytest.importorskip("libensemble", reason="needs the extra `engines`")
    from libensemble import Ensemble
    from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
    from libensemble.specs import (
        AllocSpecs,
        ExitCriteria,
        GenSpecs,
        LibeSpecs,
        SimSpecs,
    )

    monkeypatch.chdir(tmp_path)  # where it writes what it did
    generator = generator_for_engines()
    ensemble = Ensemble(
        parse_args=False,
        libE_specs=LibeSpecs(
            comms="threads", nworkers=2, disable_log_files=True, final_gen_send=True
        ),
        gen_specs=GenSpecs(
            generator=generator, batch_size=4, initial_batch_size=4, vocs=generator.vocs
        ),
        sim_specs=SimSpecs(simulator=bench, vocs=generator.vocs),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
        exit_criteria=ExitCriteria(sim_max=12),
    )
    history, _, flag = ensemble.run()
    assert flag == 0
    assert generator.state.n_used == len(history) == 12
    check_answer(generator)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its own
def test_optimas_runs_it(tmp_path, monkeypatch):
    pytest.importorskip("optimas", reason="needs the extra `engines`")
    from optimas.evaluators import FunctionEvaluator
    from optimas.explorations import Exploration
    from optimas.generators import ExternalGenerator

    def measure(point, results):
        for name, value in bench(point).items():
            results[name] = value

    monkeypatch.chdir(tmp_path)
    # Optimas measures objectives and observables, so that constraints must be among
    # them, and wants objectives that are optimised.
    for n in (8, 24):  # the second goes on with what the first left in the folder
        given = generator_for_engines("MINIMIZE", observables=["strength"])
        run = Exploration(
            generator=ExternalGenerator(ext_gen=given, vocs=given.vocs),
            evaluator=FunctionEvaluator(function=measure),
            max_evals=n,
            sim_workers=2,
            libe_comms="threads",
            resume=n == 24,
        )
        assert given.state.n_used == (8 if n == 24 else 0)
        run.run()
    assert given.state.n_used == len(run.history) == 24
    check_answer(given)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_blop_runs_it():
    pytest.importorskip("blop", reason="needs the extra `engines`")
    from blop.plans import optimize
    from blop.protocols import OptimizationProblem, SupportsStoppingCriteria
    from bluesky import RunEngine
    from bluesky.plan_stubs import null

    given = generator_for_engines()
    assert isinstance(given, SupportsStoppingCriteria)

    def acquire(suggestions, actuators, sensors=None, md=None):
        yield from null()  # no hardware moves
        return "run"

    def outcomes(uid, suggestions):
        return [{**bench(point), "_id": point["_id"]} for point in suggestions]

    problem = OptimizationProblem(given, [], [], outcomes, acquire)
    RunEngine({})(optimize(problem, iterations=None, n_points=4))
    assert given.stop_reason is not None
    check_answer(given)


@pytest.mark.slow
def test_points_that_are_no_rows_are_old_data() -> None:
    model = GaussianProcess(RBFKernel().double(), noise_std=(0.05, 0.05))
    first, again = (LevelSetGenerator(vocs_of(), n=64, model=model) for _ in range(2))
    old = [
        measured({"x": 0.33, "y": 0.11, "_id": math.nan}),
        measured({"x": 1.9, "y": -0.5}),
    ]
    rows = [measured(point) for point in first.suggest(3)]
    for results in ([old[0]], rows, [old[1]]):
        first.ingest(results)
    bare = [{k: v for k, v in row.items() if k != "_id"} for row in rows]
    again.ingest([*old, *bare])
    assert first.state.n_used == again.state.n_used == 3
    near = {"x": [0.33, 1.9], "y": [0.11, -0.5]}
    means, sigmas = first.state.predict(near)
    others, _ = again.state.predict(near)
    assert abs(means[0, 0] - old[0]["f"]) < 0.1
    assert sigmas.max() < 0.06
    assert (means - others).abs().max() < 1e-9
    failed = measured({"x": 0.4, "y": 0.4}) | {"f": math.nan}
    first.ingest([failed])
    assert first.state.n_used == 3


NOISE = {"coarse": 0.02, "fine": 0.01}


@pytest.mark.parametrize("sources", [None, *NOISE])
def test_points_that_are_no_rows_have_the_noise_of_the_pool(sources) -> None:
    rows = np.linspace([0.0, -1.0], [2.0, 1.0], 24)
    pool, point = Pool(rows, names=tuple(BOX)), {"x": 0.33, "y": 0.11}
    if sources is None:
        pool = replace(pool, noise_var=np.full(24, 0.01))
        vocs = vocs_of(constraints={"f": ["GREATER_THAN", 0.5]})
        generator = LevelSetGenerator(vocs, pool=pool)
        generator.ingest([{**point, "f": 0.7}])
    else:
        pool = pool.at_sources(tuple(NOISE), costs=(1, 9), noise_var=NOISE)
        vocs = vocs_of(variables={**BOX, "source": set(NOISE)}, constraints={})
        generator = LevelSetGenerator(vocs, Above(0.5), pool=pool)
        asked = generator.suggest(1)[0]
        generator.ingest([{**point, "source": sources, "fine": 0.7}])
        generator.ingest([{**asked, "fine": 0.1}])
        with pytest.raises(ValueError, match=r"have a number as 'fine', nan or None"):
            generator.ingest([{**point, "source": sources, "coarse": 0.7}])
    past = generator.strategy.model.history
    assert past.yvar.tolist() == [NOISE[sources or "fine"]]
    assert past.y.tolist() == [0.7]


def test_rows_may_measure_one_output_each() -> None:
    rows = np.linspace([0.0, -1.0], [2.0, 1.0], 24)
    pool = Pool(rows, names=tuple(BOX)).at_outputs(("f", "g"), costs=(1, 2))
    vocs = vocs_of(variables={**BOX, "output": {"f", "g"}})
    generator = LevelSetGenerator(vocs, pool=pool)
    points = generator.suggest(4)
    told = [measured(point)[point["output"]] for point in points]
    pairs = zip(points, told, strict=True)
    generator.ingest([{**point, point["output"]: y} for point, y in pairs])
    assert {point["output"] for point in points} == {"f", "g"}
    assert generator.state.observations.y.tolist() == told
    with pytest.raises(ValueError, match=r"have a number as '[fg]', nan or None"):
        generator.ingest([{**generator.suggest(1)[0]}])
    with pytest.raises(ValueError, match=r"`results` to be rows of the pool, but got"):
        generator.ingest([{"x": 7.0, "y": 0.0, "output": "f", "f": 1.0}])


def test_points_that_are_no_rows_are_refused_where_rows_differ_in_noise() -> None:
    vocs = vocs_of(constraints={"f": ["GREATER_THAN", 0.5]})
    rows = np.linspace([0.0, -1.0], [2.0, 1.0], 24)
    own = Pool(rows, names=tuple(BOX), noise_var=np.linspace(0.01, 0.02, 24))
    old = {"x": 0.33, "y": 0.11, "f": 0.7}
    with pytest.raises(ValueError, match=r"or a pool without `noise_var`, and the no"):
        LevelSetGenerator(vocs, pool=own).ingest([old])
    learnt = LevelSetGenerator(vocs, pool=replace(own, noise_var=None))
    learnt.ingest([old])
    assert len(learnt.strategy.model.history) == 1


def test_a_failed_point_may_be_an_answer() -> None:
    vocs = vocs_of(constraints={"f": ["GREATER_THAN", 0.75]})
    model = GaussianProcess(outcome=Binary(failures="outcome"))
    generator = LevelSetGenerator(vocs, n=32, model=model)
    points = generator.suggest(4)
    generator.ingest([{**points[0], "f": 1}, {**points[1], "f": None}])
    generator.ingest([{**point, "f": math.nan} for point in points[2:]])
    assert generator.state.observations.y.tolist() == [1.0, 0.0, 0.0, 0.0]
    other = LevelSetGenerator(vocs, n=32, model=GaussianProcess(outcome=Binary()))
    other.ingest([{**point, "f": math.nan} for point in other.suggest(4)])
    assert other.state.n_used == 0
