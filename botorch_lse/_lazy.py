r"""Names and modules that are loaded when they are first used, not when imported.

What only some calls need (a table, a distribution, a fitted model) takes longer to load
than all of BoTorch. Packages whose names have many homes load each on first use (PEP
562), with the same names in a ``TYPE_CHECKING`` block for type checkers and editors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from opcode import opname
from types import FrameType, ModuleType
from typing import Any

ROOMS = ("acquisition", "goals", "models", "papers", "rules", "strategies")
"""The packages in which a name is looked for that another package lacks."""


def lazy_names(
    package: str,
    names: Mapping[str, str],
    elsewhere: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    r"""The ``__getattr__`` and ``__dir__`` of a package that loads names on first use.

    Its modules are found as attributes too, as if it had imported them.

    Args:
        package: Its name, ``__name__``.
        names: For each of its modules, the names that the package takes from it, with
            spaces between them. No name may be that of a module, which would take its
            place once imported.
        elsewhere: For each name that it takes from another package, that package.
    """
    homes = {
        name: f"{package}.{module}"
        for module, own in names.items()
        for name in own.split()
    } | dict(elsewhere or {})

    def find(name: str) -> Any:
        if name in homes:
            found = getattr(import_module(homes[name]), name)
            setattr(sys.modules[package], name, found)  # looked up once
            return found
        # Not `__path__` and the like, which Python asks of every package.
        if not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise _unknown(package, name, known(), sys._getframe(1))

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, known


def _unknown(package: str, name: str, known: list[str], asking: FrameType) -> Exception:
    r"""The error for a name that a package lacks, with the package that has it.

    Args:
        package: The package's name.
        name: The name.
        known: The names that it has.
        asking: The frame that asks. ``from package import name`` replaces an
            ``AttributeError`` by an error without its words, and no other one.
    """
    from difflib import get_close_matches  # for a typing error only

    said = f"module {package!r} has no attribute {name!r}"
    homes = [] if name.startswith("_") else _homes(name)
    near = get_close_matches(name, known, 1)
    if homes:
        said += f". It is in {' and in '.join(map(repr, homes))}."
    elif near:
        said += f". Did you mean {near[0]!r}?"
    is_import = opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
    return ImportError(said) if is_import else AttributeError(said)


def _homes(name: str) -> list[str]:
    r"""The packages inside this one whose ``__all__`` has a name."""
    root = __name__.partition(".")[0]
    packages = (root, *(f"{root}.{room}" for room in ROOMS))
    return [p for p in packages if name in import_module(p).__all__]


class LazyModule(ModuleType):
    r"""A module of another package that is imported on first use.

    Args:
        name: The module's name.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)
