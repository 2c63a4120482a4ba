r"""Files, databases, names in files, runs, and what cannot be stored."""

import dataclasses
import json
import math
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import torch
from ax.api.client import Client
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior

import botorch_lse
from botorch_lse import Pool
from botorch_lse.ax import (
    allow,
    level_set,
    level_set_generation_strategy,
    references,
    run_experiment,
    save_client,
    storage,
)
from botorch_lse.ax.recording import held
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.models.kernels import GramKernel, LearntKernel
from botorch_lse.strategies import (
    Above,
    Binary,
    GaussianProcess,
    GEGEStrategy,
    LogNormal,
    LSEStrategy,
    Ordinal,
    RowCosts,
    ScoreRule,
    Strategy,
)

from .. import benches, fitting
from ..worlds import (
    NOISE,
    client_for,
    kernel,
    lse,
    sqlite_storage,
)
from ..worlds import (
    grid_pool as world,
)
from .cases import case

# --- files and databases ----------------------------------------------------------


def run(client, path=None, **options):
    return run_experiment(client, benches.bench, storage=path, **options)


@case("recording:Record._check_file#2", "Take another name, or remove it")
def a_file_of_something_else(folder):
    path = folder / "run.json"
    path.write_text("[1, 2]")
    yield lambda: run(client_for(lse()), path)
    run(client_for(lse()), folder / "other.json", max_trials=1)
    path.unlink()
    run(client_for(lse()), path, max_trials=1)


@case("recording:Record._check_file#3", "client = Client.load_from_json_file(")
def a_file_of_another_run(folder):
    path = folder / "run.json"
    run(client_for(lse()), path, max_trials=3)
    said = yield lambda: run(client_for(lse()), path)
    code = said.split("`")[-2].removeprefix("client = ")
    assert "decided" in run(eval(code), path)


def in_database(folder):
    store = sqlite_storage(folder / "runs.db")
    client = client_for(lse(), storage_config=store)
    return client, Client.load_from_database("test", storage_config=store), store


@case("recording:_behind_in_database#1", "`client = Client.load_from_database('test'")
def a_database_that_somebody_else_wrote(folder):
    client, late, storage_config = in_database(folder)
    run(client, max_trials=3)
    said = yield lambda: run(late)
    names = {"Client": Client, "storage_config": storage_config}
    loaded = eval(said.split("`")[-2].removeprefix("client = "), names)
    assert "decided" in run(loaded)


@case("recording:_behind_in_database#2", "`client = Client.load_from_database('test'")
def a_database_that_lost_what_was_written(folder):
    client, _, storage_config = in_database(folder)
    run(client, max_trials=3)
    client._experiment.new_trial().db_id = 10**6
    said = yield lambda: run(client)
    names = {"Client": Client, "storage_config": storage_config}
    loaded = eval(said.split("`")[-2].removeprefix("client = "), names)
    assert "decided" in run(loaded)


@case("recording:path_of#1", 'Write `storage="run.json"`')
def a_number_as_a_file(folder):
    yield lambda: run(client_for(lse()), 3)
    run(client_for(lse()), "run.json", max_trials=1)


@case("recording:_checked#1", "Write `storage='")
def a_folder_as_a_file(folder):
    said = yield lambda: run(client_for(lse()), folder)
    path = eval(said.split("`storage=")[-1].rstrip("`."))
    run(client_for(lse()), path, max_trials=1)
    assert Path(path).exists()


@case("recording:_checked#2", ".mkdir(parents=True)`")
def a_folder_that_is_not_there(folder):
    path = folder / "deep" / "run.json"
    said = yield lambda: run(client_for(lse()), path)
    eval(said.split("`")[-2])
    run(client_for(lse()), path, max_trials=1)


@case("recording:HeldFile.read#1", "to be a file that can be read")
def a_file_that_became_a_folder(folder):
    path = folder / "run.json"
    with held(path, "storage") as file:
        path.mkdir()
        yield file.read
        path.rmdir()
        assert file.read() is None


@case("recording:HeldFile.write#1", '`save_client(client, "other.json")`')
def a_file_that_something_else_changed(folder):
    path, client = folder / "run.json", client_for(lse())

    def evaluate(parameters):
        if len(client._experiment.trials) == 3 and not (folder / "once").exists():
            (folder / "once").touch()
            path.write_text("{}")
        return benches.bench(parameters)

    yield lambda: run_experiment(client, evaluate, storage=path)
    save_client(client, "other.json")
    again = Client.load_from_json_file("other.json")
    assert len(again._experiment.trials) == len(client._experiment.trials)
    assert path.read_text() == "{}"


@case("recording:held#2", "Wait until it ends, or take another name")
def a_file_that_another_run_holds(folder):
    path, client = folder / "run.json", client_for(lse())
    with held(path, "storage"):
        yield lambda: run(client, path)
        run(client, folder / "other.json", max_trials=1)
    run(client, path, max_trials=1)


# --- names in files ---------------------------------------------------------------


@case("references:allow#1", "dotted names such as 'my_lab.models'")
def a_path_as_a_module(_):
    yield lambda: allow("my_lab/models.py")
    allow("my_lab.models")


@case("references:allow#2", "Define the function in a module of your own")
def a_module_of_the_library(_):
    yield lambda: allow("functools")
    assert encode_strategy(lse(model=fitting.plain_gp))


@case("references:reference_to#1", "Define a function (or class) at the top level")
def a_lambda_as_a_model(_):
    yield lambda: level_set_generation_strategy(lse(model=lambda X, Y, V: None))
    assert level_set_generation_strategy(lse(model=fitting.plain_gp))


def naming(reference):
    stored = json.loads(json.dumps(encode_strategy(lse())))
    stored["arguments"]["model"] = {"kind": "function", "name": reference}
    return lambda: decode_strategy(stored, world())


@case("references:find#2", "Define it before loading")
def a_function_that_is_not_there(_):
    decode = naming("tests.ax.fitting:mine")
    yield decode
    source = "def mine(train_X, train_Y, train_Yvar): ..."
    try:
        exec(source, vars(fitting))
        assert decode().model is fitting.mine
    finally:
        del fitting.mine


@case("references:_trusted_module#1", "Install the module before loading")
def a_module_that_is_gone(folder):
    allow("own_models_of_a_test")
    decode = naming("own_models_of_a_test:fit")
    yield decode
    source = "def fit(train_X, train_Y, train_Yvar): ..."
    (folder / "own_models_of_a_test.py").write_text(source)
    sys.path.insert(0, str(folder))
    try:
        assert decode().model.__name__ == "fit"
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("own_models_of_a_test")
        references._allowed.discard("own_models_of_a_test")


@case("references:_trusted_module#2", "import it or call `botorch_lse.ax.allow(")
def a_module_that_was_not_imported(folder):
    (folder / "models_of_mine.py").write_text("def fit(X, Y, V): ...")
    sys.path.insert(0, str(folder))
    decode = naming("models_of_mine:fit")
    try:
        said = yield decode
        eval(said.split("`")[-2], {"botorch_lse": botorch_lse})  # `...ax.allow(...)`
        assert decode().model.__name__ == "fit"
        references._allowed.discard("models_of_mine")
        sys.modules.pop("models_of_mine")
        yield decode
        import models_of_mine

        assert decode().model is models_of_mine.fit
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("models_of_mine", None)
        references._allowed.discard("models_of_mine")


# --- runs -------------------------------------------------------------------------


def returning(value, strategy=None, then=benches.bench):
    r"""A bench that gives a value once; a run that was refused it; what it says."""
    client, values = client_for(strategy or lse(max_observations=6)), [value]

    def evaluate(parameters):
        return values.pop() if values else then(parameters)

    def again(change=None, **options):
        if change is not None:
            values.append(change)
        return run_experiment(client, evaluate, **options)

    return client, again


@case("run:by_metric#1", "Return a dictionary by metric")
def one_value_for_two_metrics(_):
    pair = GEGEStrategy(
        world(), maximize=(True, True), model=kernel(), noise_std=NOISE, batch_size=1
    )
    client = client_for(pair, objective="y, z")
    yield lambda: run_experiment(client, lambda p: 0.3, max_trials=1)
    both = {"y": 0.3, "z": 0.2}
    assert run_experiment(client, lambda p: both, max_trials=1)


@case("run:by_metric#2", "Write '3'")
def a_metric_that_is_no_name(_):
    _, again = returning({"y": 0.3, 3: 0.1})
    yield again
    assert again({"y": 0.3, "3": 0.1})


@case("run:_outcome#1", 'call `run_experiment(..., on_error="fail")`')
def a_result_that_is_no_number(_):
    client, again = returning("broken")
    yield again
    assert again("broken", on_error="fail")
    assert client._experiment.trials[0].status.is_failed


@case("run:_outcome#2", 'call `run_experiment(..., on_error="fail")`')
def a_result_that_is_nan(_):
    client, again = returning(math.nan)
    yield again
    assert again(math.nan, on_error="fail")
    assert client._experiment.trials[0].status.is_failed


def answering(value, outcome):
    model = GaussianProcess(outcome=outcome)
    strategy = Strategy(world(), Above(0.5), model=model, max_observations=2)
    return returning(value, strategy, lambda parameters: 1)


@case("run:_outcome#3", 'call `run_experiment(..., on_error="fail")`')
def an_answer_that_is_none(_):
    for value, outcome in (
        (2, Binary()),
        (7, Ordinal(4, at_least=2)),
        (0, LogNormal()),
    ):
        client, again = answering(value, outcome)
        yield again
        assert again(value, on_error="fail")
        assert client._experiment.trials[0].status.is_failed


@case("run:_outcome#4", "Return the answer alone")
def an_answer_with_a_sem(_):
    _, again = answering((1, 0.3), Binary())
    yield again
    assert again(1)


@case("run:_outcome#1", "Write `float(...)`")
def a_truth_where_a_number_is_measured(_):
    _, again = returning(True)
    yield again
    assert again(float(True))


@case("run:_outcome#5", "leave it out, or return None, if it is not known")
def a_result_with_a_negative_sem(_):
    _, again = returning((0.3, -1.0))
    yield again
    assert again((0.3, None))
    _, again = returning((0.3, -1.0))
    yield again
    assert again(0.3)


@case("workers:Workers.__init__#1", "`def evaluate(parameters): return value`")
def no_function(_):
    client = client_for(lse())
    yield lambda: run_experiment(client, 0.3)

    def evaluate(parameters):
        return 0.3

    assert run_experiment(client, evaluate, max_trials=1)


@case("workers:_executor_from#1", "`executor=lambda: ThreadPoolExecutor(2)`")
def no_executor(_):
    client = client_for(lse())
    yield lambda: run(client, executor=2)
    assert run(client, executor=lambda: ThreadPoolExecutor(2), max_trials=1)


# --- what cannot be stored --------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cheapest(ScoreRule):
    r"""A rule of one's own, with costs that nobody checks."""

    costs: RowCosts

    def scores(self, context):
        return -context.posterior.variance


@case("storage:_encode#1", "about the strategy's own `pool` of 36 rows")
def costs_of_another_pool(_):
    def of(pool):
        rule = Cheapest(RowCosts(pool, fitting.walk))
        model = GaussianProcess(kernel(), noise_std=NOISE)
        return Strategy(world(), Above(0.5), model=model, rule=rule)

    yield lambda: level_set_generation_strategy(of(Pool(world().X * 2)))
    assert level_set_generation_strategy(of(world()))


@case("storage:_encode#2", "Give its GPyTorch kernel, or an importable function")
def a_fitted_model(_):
    X = world().X
    model = SingleTaskGP(X, X[:, :1], outcome_transform=Standardize(1))
    yield lambda: level_set_generation_strategy(lse(model=model))
    assert level_set_generation_strategy(lse(model=model.covar_module))
    assert level_set_generation_strategy(lse(model=fitting.plain_gp))


@case("storage:_checked_folder#1", "such as `pool_folder='")
def a_file_as_a_folder(folder):
    path = folder / "pools"
    path.touch()
    said = yield lambda: level_set_generation_strategy(lse(), pool_folder=path)
    other = eval(said.split("`pool_folder=")[-1].rstrip("`."))
    assert level_set_generation_strategy(lse(), pool_folder=other)


@case("storage:read_pool#2", "Put the file back")
def a_pool_whose_file_is_missing(folder):
    storage.LARGEST_INLINE, before = 0, storage.LARGEST_INLINE
    try:
        client = client_for(lse())
        client.get_next_trials(1)
        client.save_to_json_file("run.json")
    finally:
        storage.LARGEST_INLINE = before
    (file,) = folder.glob("level_set_pool_*.json")
    shutil.move(file, folder / "elsewhere")
    loaded = Client.load_from_json_file("run.json")
    yield lambda: level_set(loaded)
    shutil.move(folder / "elsewhere", file)
    assert len(level_set(loaded)) == 36


@case("storage:kept_pool#1", "Load the experiment and its generation strategy together")
def a_generation_strategy_without_its_experiment(_):
    from ax.storage.json_store.decoder import generation_strategy_from_json
    from ax.storage.json_store.encoder import object_to_json

    client = client_for(lse())
    client.get_next_trials(1)
    stored = [object_to_json(client._generation_strategy) for _ in range(2)]
    other = client_for(lse(Pool(world().X * 2)))._experiment
    gs = generation_strategy_from_json(stored[0], experiment=other)
    yield lambda: level_set(other, gs)
    gs = generation_strategy_from_json(stored[1], experiment=client._experiment)
    assert len(level_set(client._experiment, gs)) == 36


class OwnKernel(RBFKernel):
    r"""A kernel that storage does not know."""


def own_model(train_X, train_Y, train_Yvar):
    return SingleTaskGP(train_X, train_Y, train_Yvar, covar_module=OwnKernel())


def with_own_function(said):
    assert "Give an importable function" in said
    assert level_set_generation_strategy(lse(model=own_model))


@case("storage:_encode_kernel#1", "Give an importable function")
def a_kernel_of_ones_own(_):
    with_own_function((yield lambda: encode_strategy(lse(model=OwnKernel()))))


class Halved(MaternKernel):
    r"""A kernel that computes otherwise than its class says."""


@case("storage:encode_kernel#1", "Give an importable function")
def a_kernel_that_was_changed(_):
    changed = RBFKernel()
    forward = changed.forward
    changed.forward = lambda *args, **options: 0.5 * forward(*args, **options)
    with_own_function((yield lambda: encode_strategy(lse(model=changed))))


def learnt():
    return ScaleKernel(RBFKernel())


@case("storage:_encode_learnt#1", "`LearntKernel(my_kernel)`")
def a_learnt_kernel_with_a_prior(_):
    own = ScaleKernel(RBFKernel(lengthscale_prior=GammaPrior(2.0, 2.0)))
    yield lambda: encode_strategy(lse(model=LearntKernel(own)))
    assert encode_strategy(lse(model=LearntKernel(learnt)))


@case("storage:_encode_learnt#2", "Give an importable function")
def a_learnt_kernel_that_was_changed(_):
    changed = RBFKernel()
    forward = changed.forward
    changed.forward = lambda *args, **options: 0.5 * forward(*args, **options)
    strategy = lse(model=LearntKernel(changed))
    with_own_function((yield lambda: encode_strategy(strategy)))


@case("storage:_encode_matrix#1", "that reads the matrix from a file of yours")
def a_large_matrix(_):
    large = GramKernel(torch.eye(1001).double())
    pool = Pool(torch.arange(1001.0).unsqueeze(-1))
    yield lambda: encode_strategy(lse(pool, model=large))
    assert encode_strategy(lse(pool, model=own_model))


@case("storage:encode_table#1", "`table.columns = table.columns.map(str)`")
def a_column_with_an_odd_label(_):
    pool = world()
    table = pd.DataFrame({("a", 1): range(36)})
    yield lambda: client_for(lse(Pool(pool.X, table=table)))
    table.columns = table.columns.map(str)
    assert client_for(lse(Pool(pool.X, table=table)))


@case("storage:_encode_series#1", '`table[column] = table[column].astype("string")`')
def a_column_of_objects(_):
    table, column = pd.DataFrame({"a": [{i} for i in range(36)]}), "a"
    yield lambda: client_for(lse(Pool(world().X, table=table)))
    table[column] = table[column].astype("string")
    assert client_for(lse(Pool(world().X, table=table)))


@case("_validation: encode_strategy", "a Strategy such as `LSEStrategy`")
def no_strategy(_):
    yield lambda: level_set_generation_strategy(world())
    assert level_set_generation_strategy(LSEStrategy(world(), 0.5, noise_std=0.1))
