r"""The pretended device refuses what a GPU refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import Linear

from tests.devices.pretend import Pretended, pretence

HERE = torch.arange(4.0)
REFUSED: dict[str, Callable[[Tensor], object]] = {
    "sum": lambda x: x + HERE,
    "product": lambda x: HERE @ x,
    "row of a table of the CPU": lambda x: HERE[x.long()],
    "assignment": lambda x: x.clone().index_put_((x.long(),), HERE),
    "joined": lambda x: torch.cat((x, HERE)),
    "stacked": lambda x: torch.stack((x[0], HERE[0])),
    "array": lambda x: x.numpy(),
    "generator": lambda x: torch.rand(2, generator=torch.Generator(), device=x.device),
    "permutation": lambda x: torch.multinomial(x, 2, generator=torch.Generator()),
}
ALLOWED: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "one number": (lambda x: x + HERE[2], [2.0, 3.0, 4.0, 5.0]),
    "rows of the CPU": (lambda x: x[HERE.long()[:2]], [0.0, 1.0]),
    "list": (lambda x: x[[2, 1]], [2.0, 1.0]),
    "there and back": (lambda x: x.to(HERE.device).to(x.device), [0.0, 1.0, 2.0, 3.0]),
    "like another": (lambda x: x.new_tensor([1.5]), [1.5]),
    "in place": (lambda x: x.clone().squeeze_().add_(1.0), [1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_two_devices_do_not_go_together(name: str) -> None:
    with pretence() as device, pytest.raises((RuntimeError, TypeError)):
        REFUSED[name](HERE.to(device))


@pytest.mark.parametrize("name", ALLOWED)
def test_numbers_are_those_of_the_cpu(name: str) -> None:
    function, expected = ALLOWED[name]
    with pretence() as device:
        found = function(HERE.to(device))
        assert isinstance(found, Pretended)
        assert found.device == device
        assert found.tolist() == expected


def test_tensors_are_made_where_torch_is_told() -> None:
    with pretence() as device, torch.device(device):
        made = (torch.zeros(2), torch.tensor([1.0]), torch.as_tensor([2.0]))
    assert all(isinstance(x, Pretended) for x in made)


def test_modules_move_with_gradients_and_precision() -> None:
    layer = Linear(2, 1)
    with pretence() as device:
        there = layer.to(device).double()
        there(torch.ones(3, 2, dtype=torch.float64, device=device)).sum().backward()
        assert there.weight.dtype == torch.float64
        assert there.weight.grad is not None
        assert there.weight.grad.tolist() == [[3.0, 3.0]]
