r"""No public class is missing in the tables that the contract tests run over."""

import inspect

from botorch.acquisition import AcquisitionFunction

from botorch_lse import acquisition, papers, strategies
from botorch_lse.strategies import Strategy

from . import registry
from .reference import recording


def concrete(package, base):
    r"""The public classes of a package that can be made; ``Strategy`` makes others."""
    named = (getattr(package, name) for name in package.__all__)
    return {
        cls
        for cls in named
        if isinstance(cls, type)
        and issubclass(cls, base)
        and not inspect.isabstract(cls)
        and cls is not Strategy
    }


def test_every_strategy_has_a_row():
    # What somebody else's labels say is no function of a problem: tests of its own.
    ours = concrete(strategies, Strategy) - {strategies.LabelAudit}
    ours |= concrete(papers, Strategy)
    assert {case.cls for case in registry.STRATEGIES} == ours


def test_every_acquisition_class_has_a_row():
    of_ours = concrete(acquisition, AcquisitionFunction)
    rows = (*registry.ACQUISITIONS, *registry.ANSWERS)
    assert {case.cls for case in rows} == of_ours


def test_every_row_has_a_name_of_its_own():
    names = [case.__name__ for case in registry.STRATEGIES]
    assert len(set(names)) == len(names)


def test_every_strategy_is_in_a_table_that_a_contract_reads():
    tables = (
        registry.PLAYED,
        registry.REHEARSED,
        registry.GAUSSIAN,
        registry.BUDGETED,
        registry.CONFIDENT,
        registry.LINEAR_SEVERAL,
    )
    found = [case for table in tables for case in table]
    assert sorted(map(id, found)) == sorted(map(id, registry.STRATEGIES))


def test_every_strategy_is_played_when_versions_are_compared():
    recording.fill()
    played = {name.partition(" ")[0] for name in recording.CASES}
    classes = {case.cls.__name__ for case in registry.STRATEGIES}
    assert classes - played == {"ComposedStrategy"}  # its parts are those of others
