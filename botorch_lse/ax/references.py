r"""The functions and classes that a stored experiment may name.

A stored strategy names its class, and functions such as ``model=``, by module and name.
Whoever wrote the file chose these names, and importing a module or calling a function
runs code. So a name is looked up only

- among what this package registers: its strategies, their parts, and BoTorch's
  ``SingleTaskGP``;
- in a module that the user allowed by name (``allow``), which is imported if need be;
- in a module that the user has imported already, if it is the user's own: neither part
  of Python's library nor of an installed package. Those are in memory whatever the user
  did, so that their being there says nothing about trust.

In a module, only a function written in Python or a class counts, under its own name at
the top level, where it was defined: what a module merely imports (``my_lab.models:os``)
cannot be reached, nor attributes of what it holds.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from botorch.models import SingleTaskGP

from botorch_lse import strategies
from botorch_lse.data.observations import History
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.models.outcomes import Quantity
from botorch_lse.models.sources import (
    Autoregressive,
    Coregionalised,
    Discrepancies,
    FadingDiscrepancies,
    FidelityDiscrepancies,
    IndependentSources,
    LikeliestSources,
    SourceModel,
)
from botorch_lse.strategies import (
    ContentStop,
    GaussianProcess,
    Goal,
    RowCosts,
    Rule,
    Strategy,
)

PARTS = (
    Goal,
    Rule,
    GaussianProcess,
    LearntKernel,
    SourceModel,
    Quantity,
    RowCosts,
    ContentStop,
    History,
)
"""The classes of parts of a composed strategy: dataclasses, stored by their fields."""
PAPERS = "botorch_lse.papers"
"""The public address of strategies that only a paper needs; nothing imports them."""
_RECORDS = {
    "botorch_lse:History": History,
    "botorch_lse.models:LearntKernel": LearntKernel,
    "botorch_lse.models:Autoregressive": Autoregressive,
    "botorch_lse.models:Coregionalised": Coregionalised,
    "botorch_lse.models:Discrepancies": Discrepancies,
    "botorch_lse.models:FadingDiscrepancies": FadingDiscrepancies,
    "botorch_lse.models:FidelityDiscrepancies": FidelityDiscrepancies,
    "botorch_lse.models:IndependentSources": IndependentSources,
    "botorch_lse.models:LikeliestSources": LikeliestSources,
}
"""The parts that belong to no strategy alone, by their public addresses."""
_STORABLE = (FunctionType, type)
_PACKAGE = __name__.partition(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}
"""The names of the folders into which Python's installers put packages."""
_LIBRARY = {
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")
}

_allowed: set[str] = set()


def allow(*modules: str) -> None:
    r"""Trust modules whose functions and classes a stored experiment may name.

    Call it before an experiment from storage is used, if its strategy was given a
    function (``model=``, ``refit=``, ``cost=``, ``beta=``) or is a class of your own.
    A module that you have imported already needs no call, unless it is part of an
    installed package. It holds for this process. Allow a module only if a file may have
    any function of it called.

    Example:
        >>> allow("my_lab.models")  # it is imported when an experiment names it

    Args:
        modules: Dotted names, each for this module alone and not for those below it.

    Raises:
        ValueError: If one is not the dotted name of a module, or is part of Python's
            library, where no model is and much else that a file must not call.
    """
    for module in modules:
        if not isinstance(module, str) or not all(
            part.isidentifier() for part in module.split(".")
        ):
            raise ValueError(
                "Expected `modules` to be dotted names such as 'my_lab.models', but "
                f"got {module!r}."
            )
        if _in_library(module):
            raise ValueError(
                f"Expected `modules` to be modules of your own, but got {module!r}, "
                "which is part of Python's library. Define the function in a module of "
                "your own."
            )
    _allowed.update(modules)


def reference_to(value: Any, argument: str) -> str:
    r"""The name ``module:function`` by which ``find`` finds a function or class.

    Args:
        value: A function or class at the top level of a module.
        argument: The strategy's argument, for the message.

    Raises:
        ValueError: If it could not be found again.
    """
    own_name = getattr(value, "__name__", None)
    homes = [strategies.__name__, SingleTaskGP.__module__]
    homes += [record.partition(":")[0] for record in _RECORDS]
    if str(getattr(value, "__module__", "")).startswith(f"{PAPERS}."):
        homes = [PAPERS]  # imported already: nothing else brings the papers along
    for module_name in homes:
        if own_name and _registered(f"{module_name}:{own_name}") is value:
            return f"{module_name}:{own_name}"
    if isinstance(value, _STORABLE):
        module = sys.modules.get(value.__module__)
        if module is not None and _defined(module, value.__qualname__) is value:
            return f"{value.__module__}:{value.__qualname__}"
    shown = getattr(value, "__qualname__", type(value).__name__)
    raise ValueError(
        f"Expected `{argument}` of the strategy to be storable, but got {shown!r}, "
        "which another process could not import. Define a function (or class) at the "
        "top level of a module; lambdas, functions inside functions or classes and "
        "callable objects cannot be stored."
    )


def find(reference: Any, argument: str) -> Any:
    r"""The function or class that a stored strategy names.

    Args:
        reference: What ``reference_to`` wrote, or what somebody wrote in its place.
        argument: The strategy's argument, for the message.

    Raises:
        ValueError: If its module is not to be trusted, or it is not there.
    """
    if not isinstance(reference, str):
        raise ValueError(
            f"Expected the stored `{argument}` to name a function or class as "
            f"'module:name', but got {reference!r}. The file is damaged or was edited."
        )
    registered = _registered(reference)
    if registered is not None:
        return registered
    module_name, _, name = reference.partition(":")
    found = _defined(_trusted_module(module_name, name, argument), name)
    if found is None:
        raise ValueError(
            f"Expected {name!r} in module {module_name!r}, where it was when the "
            "experiment was saved, but no function or class of this name is defined "
            "there. Define it before loading."
        )
    return found


def _registered(reference: str) -> Any:
    r"""The object this package registers under a name; ``None`` without one.

    Strategies and their parts stand at their public addresses, which stay when a class
    moves.
    """
    if reference == f"{SingleTaskGP.__module__}:SingleTaskGP":
        return SingleTaskGP
    if reference in _RECORDS:
        return _RECORDS[reference]
    module_name, _, name = reference.partition(":")
    if module_name not in (strategies.__name__, PAPERS):
        return None
    module = importlib.import_module(module_name)  # the papers': when a file names one
    if name not in module.__all__:
        return None
    found = getattr(module, name)
    is_ours = isinstance(found, type) and issubclass(found, (Strategy, *PARTS))
    return found if is_ours else None


def _trusted_module(module_name: str, name: str, argument: str) -> ModuleType:
    if module_name in _allowed:
        try:
            return importlib.import_module(module_name)
        except ImportError as error:
            raise ValueError(
                f"Expected {name!r} in module {module_name!r}, where it was when the "
                f"experiment was saved, but: {error}. Install the module before "
                "loading."
            ) from error
    module = sys.modules.get(module_name)
    allowing = f"call `botorch_lse.ax.allow({module_name!r})`"
    if _in_library(module_name):
        reason = "is part of Python's library"
        remedy = "No strategy needs it: do not trust this file."
    elif not isinstance(module, ModuleType):
        reason = "you have neither imported nor allowed"
        remedy = (
            "It was not imported. If you trust the file and that module, import it or "
            f"{allowing} before loading."
        )
    elif not _is_the_users(module):
        reason = "is not a module of your own and is not allowed"
        remedy = f"If you trust the file and that module, {allowing} before loading."
    else:
        return module
    raise ValueError(
        f"Expected the stored `{argument}` to name a function or class that may be "
        f"used, but it names {name!r} in the module {module_name!r}, which {reason}. "
        f"{remedy}"
    )


def _in_library(module_name: str) -> bool:
    return module_name.partition(".")[0] in sys.stdlib_module_names


def _is_the_users(module: ModuleType) -> bool:
    if module.__name__.partition(".")[0] == _PACKAGE:
        return False
    file = getattr(module, "__file__", None)
    if file is None:  # a notebook has none; nor have modules written in C
        return module.__name__ == "__main__"
    if _INSTALLED.intersection(Path(file).parts):
        return False
    return _LIBRARY.isdisjoint(Path(file).resolve().parents)  # as with `python -m pdb`


def _defined(module: ModuleType, name: str) -> Any:
    # Not `getattr`: a module may define `__getattr__`, which runs code.
    found = vars(module).get(name)
    if not isinstance(found, _STORABLE) or found.__module__ != module.__name__:
        return None
    return found if found.__qualname__ == name else None
