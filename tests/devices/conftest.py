r"""The devices on which these tests run: a pretended one, and a GPU if there is one."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch

from tests.devices.pretend import pretence


class Device(AbstractContextManager[torch.device]):
    r"""A device that is there while its context lasts, which may be entered again.

    What is computed on the CPU for comparison is computed outside, where it is fast.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._entered: list[AbstractContextManager[torch.device]] = []

    def __enter__(self) -> torch.device:
        found: AbstractContextManager[torch.device]
        if self.name == "pretended":
            found = pretence()
        else:
            found = nullcontext(torch.ones((), device=self.name).device)
        self._entered.append(found)
        return found.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._entered.pop().__exit__(*raised)


@pytest.fixture(params=["pretended", *["cuda"] * torch.cuda.is_available()])
def device(request: pytest.FixtureRequest) -> Device:
    return Device(request.param)
