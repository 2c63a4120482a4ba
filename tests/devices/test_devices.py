from __future__ import annotations
import pytest, torch
from dataclasses import replace
from tests.devices.pretend import pretence
from tests.registry import STRATEGIES, PLAYED, SEVERAL, StrategyCase
from tests.strategies import runs, pareto_runs
from botorch_lse import Pool


def follow(here, there, value, rounds=3):
    a, b = here.init(), there.init()
    for _ in range(rounds):
        if a.is_done:
            break
        p, q = here.ask(a), there.ask(b)
        assert torch.equal(p.order, q.order)
        assert q.X.device == there.pool.device
        a = here.tell(a, p.observe(value(p, a)))
        b = there.tell(b, q.observe(value(q, b)))
        for name in runs.FIELDS:
            x, y = getattr(a.classification, name), getattr(b.classification, name)
            assert y.device.type == "cpu"
            torch.testing.assert_close(x, y)
    assert b.classification.pool is there.pool
    assert a.classification.guarantee == b.classification.guarantee
    assert a.stop_reason == b.stop_reason
    if not a.is_done:
        assert (
            here.ask(a, here.ask(a).order).order.tolist()
            == there.ask(b, there.ask(b).order).order.tolist()
        )
        f, g = a.forecast(), b.forecast()
        assert f == g
    return a, b


@pytest.mark.parametrize("case", PLAYED)
def test_played(case):
    def value(batch, state):
        return runs.one_by_one(runs.measure)(batch.order, state)

    here = runs.make(case, batch_size=2)
    with pretence() as device:
        there = replace(here, pool=here.pool.to(device))
        follow(here, there, value)
