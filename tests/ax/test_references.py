r"""Experiments from elsewhere: what a crafted file may and may not reach."""

import base64
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest
from ax.api.client import Client
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel

from botorch_lse import papers, strategies
from botorch_lse.ax import allow, level_set, references
from botorch_lse.ax.storage import (
    decode_strategy,
    decode_table,
    decode_tensor,
    encode_pool,
    encode_strategy,
    read_pool,
)
from botorch_lse.papers import MELKPACStrategy
from botorch_lse.strategies import LSEStrategy, Strategy

from . import fitting
from .worlds import client_for, complete, grid_pool, lse, node_of

TRAP = """
from pathlib import Path

Path(__file__).with_name("sprung").touch()

def model(train_X, train_Y, train_Yvar):
    raise SystemExit("called")
"""


class OwnStrategy(LSEStrategy):
    r"""A user's strategy, defined in a module of the user's own."""


@pytest.fixture
def trap(tmp_path, monkeypatch):
    r"""A module that could be imported, and tells if it was."""
    (tmp_path / "evil.py").write_text(TRAP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(references, "_allowed", set())
    yield tmp_path / "sprung"
    sys.modules.pop("evil", None)


def crafted(reference, argument="model"):
    stored = json.loads(json.dumps(encode_strategy(lse())))
    stored["arguments"][argument] = {"kind": "function", "name": reference}
    return stored


def decode(stored):
    return decode_strategy(json.loads(json.dumps(stored)), grid_pool())


def test_a_file_can_not_have_a_module_imported(trap, tmp_path):
    strategy = lse(model=fitting.plain_gp)
    client = client_for(strategy)
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
    path = tmp_path / "run.json"
    client.save_to_json_file(str(path))
    path.write_text(path.read_text().replace("tests.ax.fitting:plain_gp", "evil:model"))
    again = Client.load_from_json_file(str(path))
    message = r"`model`.*'model' in the module 'evil'.*neither imported nor allowed.*"
    with pytest.raises(ValueError, match=message + r"botorch_lse\.ax\.allow\('evil'\)"):
        level_set(again)
    assert "evil" not in sys.modules
    assert not trap.exists()


@pytest.mark.parametrize("place", ["model", "refit", "beta", "class"])
def test_no_place_of_a_file_imports(place, trap):
    stored = crafted("evil:model", "refit" if place == "class" else place)
    if place == "class":
        stored = {**encode_strategy(lse()), "class": "evil:model"}
    with pytest.raises(ValueError, match="'evil', which you have neither imported nor"):
        decode(stored)
    assert not trap.exists()


def test_an_allowed_module_is_imported_and_used(trap):
    allow("evil")
    assert decode(crafted("evil:model")).model.__module__ == "evil"
    assert trap.exists()


def test_an_allowed_module_that_is_gone_is_named(trap):
    allow("my_lab.models")
    with pytest.raises(
        ValueError, match=r"'fit' in module 'my_lab\.models'.*No module"
    ):
        decode(crafted("my_lab.models:fit"))


def test_a_module_of_ones_own_that_is_imported_needs_no_call():
    assert decode(crafted("tests.ax.fitting:plain_gp")).model is fitting.plain_gp
    own = OwnStrategy(grid_pool(), threshold=0.5, noise_std=0.1)
    assert type(decode(encode_strategy(own))) is OwnStrategy


@pytest.mark.parametrize(
    "reference",
    ["builtins:eval", "os:system", "os:popen", "subprocess:call", "importlib:reload",
     "runpy:run_path", "sys:exit", "posix:system", "os.path:join"],
)  # fmt: skip
def test_pythons_library_is_out_of_reach(reference):
    module = reference.partition(":")[0]
    for stored in (crafted(reference), {**encode_strategy(lse()), "class": reference}):
        with pytest.raises(ValueError, match=f"'{module}', which is part of Python's"):
            decode(stored)


@pytest.mark.parametrize(
    "reference",
    ["torch.serialization:load", "pandas.io.pickle:read_pickle", "torch.hub:load",
     "botorch.fit:fit_gpytorch_mll", "pytest:main",
     "botorch_lse.ax.storage:write_whole", "botorch_lse.data.pool:Pool"],
)  # fmt: skip
def test_installed_packages_that_happen_to_be_imported_are_out_of_reach(reference):
    with pytest.raises(ValueError, match="not a module of your own and is not allowed"):
        decode(crafted(reference))


def test_a_module_without_a_file_is_out_of_reach(monkeypatch):
    made = ModuleType("made")
    exec("def model(X, Y, V): ...", vars(made))
    monkeypatch.setitem(sys.modules, "made", made)
    with pytest.raises(ValueError, match="'made', which is not a module of your own"):
        decode(crafted("made:model"))


@pytest.mark.parametrize(
    "name",
    ["torch", "torch.load", "SingleTaskGP", "Fitter.__call__", "__builtins__", "",
     "plain_gp.__globals__", "__name__"],
)  # fmt: skip
def test_only_what_a_module_itself_defines_at_its_top_is_found(name):
    with pytest.raises(
        ValueError, match="no function or class of this name is defined"
    ):
        decode(crafted(f"tests.ax.fitting:{name}"))


def test_functions_inside_classes_are_refused_when_they_are_given():
    with pytest.raises(ValueError, match=r"Fitter.__call__.*top level of a module"):
        encode_strategy(lse(model=fitting.Fitter.__call__))


def test_a_strategy_of_a_paper_is_stored_by_its_public_address(tmp_path):
    strategy = MELKPACStrategy(grid_pool(), 0.5, bound=1.0, noise_std=0.1)
    path = tmp_path / "run.json"
    client_for(strategy).save_to_json_file(str(path))
    assert path.read_text().count("botorch_lse.papers:MELKPACStrategy") == 1
    again = Client.load_from_json_file(str(path))
    assert type(node_of(again).stored.get(again._experiment)) is MELKPACStrategy


@pytest.mark.parametrize("package", [strategies, papers], ids=lambda p: p.__name__)
def test_every_strategy_goal_and_rule_is_found_where_it_is_public(package):
    found = 0
    for name in package.__all__:
        value = getattr(package, name)
        is_part = isinstance(value, type) and issubclass(
            value, (Strategy, *references.PARTS)
        )
        if is_part:
            reference = references.reference_to(value, "strategy")
            assert reference == f"{package.__name__}:{value.__name__}"  # or an alias
            assert references.find(reference, "strategy") is value
            found += 1
    assert found > 15


@pytest.mark.parametrize(
    "reference",
    ["botorch_lse.papers:rips", "botorch_lse.designs:optimal_design",
     "botorch_lse.papers.mason2022.rips:rips", "botorch_lse.strategies:audit_size"],
)  # fmt: skip
def test_what_is_no_part_of_a_strategy_stays_out_of_reach(reference):
    with pytest.raises(ValueError, match="may be used, but it names"):
        decode(crafted(reference))


def test_the_models_that_the_package_registers_need_no_call():
    assert decode(encode_strategy(lse(model=SingleTaskGP))).model is SingleTaskGP


@pytest.mark.slow
def test_a_script_finds_its_own_functions(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from botorch_lse.ax.references import find, reference_to\n"
        "def model(X, Y, V): ...\n"
        "assert find(reference_to(model, 'model'), 'model') is model\n"
    )
    command = [sys.executable, "-W", "ignore", str(script)]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(command, check=True, env=path)


@pytest.mark.parametrize("bad", ["", "my lab", "my_lab:models", "my_lab.", 3, None])
def test_what_is_no_modules_name_can_not_be_allowed(bad):
    with pytest.raises(ValueError, match="Expected `modules` to be dotted names"):
        allow(bad)
    with pytest.raises(
        ValueError, match=r"'os\.path', which is part of Python's library"
    ):
        allow("os.path")


@pytest.mark.parametrize(
    "value",
    [{"kind": "call", "name": "builtins:eval"}, {"name": "builtins:eval"}, [1, 2],
     {"kind": "schedule", "class": "Popen"}],
)  # fmt: skip
def test_values_of_an_unknown_kind_are_refused(value):
    stored = encode_strategy(lse())
    stored["arguments"]["model"] = value
    with pytest.raises(
        ValueError, match="stored `model` to be a number, a text, or of"
    ):
        decode(stored)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match=r"stored `model` to name.*got \['a'\]"):
        decode(crafted(["a"]))


@pytest.mark.parametrize("name", ["pool", "shell", "_hidden"])
def test_arguments_that_the_class_does_not_take_are_refused(name):
    stored = encode_strategy(lse())
    stored["arguments"][name] = 1
    with pytest.raises(ValueError, match=f"arguments of LSEStrategy.*but got.*{name}"):
        decode(stored)


def test_a_strategy_is_not_given_another_pool():
    stored = {**encode_strategy(lse()), "pool": "0" * 64}
    with pytest.raises(
        ValueError, match="Expected the stored `pool` to have the hash 0000"
    ):
        decode(stored)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"class": "Popen"}, "stored kernel to be one of .*'Popen'"),
        ({"options": {"lengthscale_prior": "x"}}, "stored option to be one of"),
        ({"options": {"ard_num_dims": 10**12}}, "at most 1000000 inputs"),
        ({"options": {"ard_num_dims": "2"}}, "`ard_num_dims` to be a whole number"),
        ({"values": {"__class__": {}}}, "stored hyper-parameter to be one of"),
    ],
)
def test_kernels_take_only_the_options_they_are_stored_with(part, message):
    stored = encode_strategy(lse(model=RBFKernel()))
    stored["arguments"]["model"].update(part)
    with pytest.raises(ValueError, match=message):
        decode(stored)


# --- arrays and files -----------------------------------------------------------------


def packed(raw, dtype="<f8", shape=(2,)):
    data = base64.b64encode(zlib.compress(raw)).decode()
    return {"data": data, "dtype": dtype, "shape": list(shape)}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (packed(bytes(10**7)), "to hold 16 bytes.*but it holds more"),
        (packed(bytes(8)), "to hold 16 bytes.*but it holds 8"),
        (packed(bytes(16), shape=(10**9, 10**9)), "but it holds 16"),
        (packed(bytes(16), shape=(-1, 2)), "`shape` to be at least 0"),
        (packed(bytes(16), "|O"), r"its `dtype` is '\|O'"),
        (packed(bytes(16), "f8,f8"), "its `dtype` is 'f8,f8'"),
        (packed(bytes(16), "os.system"), "its `dtype` is 'os.system'"),
        (packed(bytes(16), ["a"]), "its `dtype` is"),
    ],
)
def test_an_array_is_what_its_shape_and_type_say(stored, message):
    with pytest.raises(ValueError, match=message):
        decode_tensor(stored)


def test_a_time_zone_is_no_path():
    column = {
        "utc": packed(bytes(16), "<M8[ns]"),
        "dtype": "datetime64[ns, dateutil//x]",
    }
    index = {"range": [0, 2, 1], "names": [None]}
    stored = {"columns": ["a"], "values": [column], "index": index}
    with pytest.raises(ValueError, match="to have a time zone by name"):
        decode_table(stored)


@pytest.mark.parametrize(
    "name", ["passwd", "level_set_pool_x.json", "level_set_pool_0123456789abcdef.json"]
)
def test_an_experiment_can_not_point_to_other_files(name, tmp_path):
    path = tmp_path / name
    path.write_text("secret")
    stored = {"kind": "pool_file", "path": str(path), "sha256": "0", "bytes": 5}
    message = "to have 5 bytes" if "0123" in name else "in a file named level_set_pool_"
    with pytest.raises(ValueError, match=message):
        read_pool(stored)


def test_a_folder_is_no_pool(tmp_path):
    path = tmp_path / "level_set_pool_0123456789abcdef.json"
    path.mkdir()
    stored = {"kind": "pool_file", "path": str(path), "sha256": "0", "bytes": 5}
    with pytest.raises(ValueError, match="the file is missing"):
        read_pool(stored)


def test_what_was_saved_comes_back_as_it_was():
    client = client_for(lse(model=fitting.plain_gp, refit=fitting.every_third))
    stored = node_of(client).stored.arguments
    assert decode(stored).refit is fitting.every_third
    assert encode_pool(decode(stored).pool) == encode_pool(grid_pool())
