r"""A peer's own package that chooses rows, in a process and an environment of its own.

Peers need other versions of libraries than ours. So a script of theirs (in the
repository's ``benchmark/peers/``) runs under their own interpreter, and the two talk in
lines of JSON.
First we state the case: rows, level, noise and the process with its hyper-parameters.
When the peer has said that it is ready, so that the start of its libraries is no part
of any decision, we say what was measured and it says which rows come next, again and
again::

    {"X": [[0.1, ...], ...], "threshold": 0.5, "noise_var": 0.01, "q": 10, "seed": 0,
     "process": {"kernel": "rbf", "lengthscale": [0.2, ...], "variance": 1.0,
                 "mean": 0.0}}
    {"ready": true}                            the peer
    {"rows": [3, 17], "y": [0.2, 0.7]}         we: values of rows, all new ones
    {"rows": [5, 5, 8, ...]}                   the peer: ``q`` rows, perhaps replicates

It ends when its input does. What the rows are worth is judged by our posterior mean, as
for our own rules: what is compared is the choice of rows and nothing else.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from research.benchmark.peers_problems import Case


def stated_process(case: Case) -> dict[str, Any]:
    r"""The process of a case in numbers, units of ``y``.

    Lengthscales are in the units of the kernel's inputs, ``case.prior.features``.

    Raises:
        ValueError: If the kernel has no name here.
    """
    prior, F = case.prior, case.prior.features(case.pool.X)
    kernel = prior.covar_module
    if isinstance(kernel, ScaleKernel):
        kernel = kernel.base_kernel
    if isinstance(kernel, MaternKernel):
        name = f"matern{kernel.nu:g}"
    elif isinstance(kernel, RBFKernel):
        name = "rbf"
    else:
        raise ValueError(
            "Expected an RBF or Matern kernel, which every package has, but got "
            f"{type(kernel).__name__}."
        )
    with torch.no_grad():
        scales = kernel.lengthscale.double().view(-1).expand(F.shape[-1])
        return {
            "kernel": name,
            "lengthscale": scales.tolist(),
            "variance": float(prior.variance(F[:1])),
            "mean": float(prior.mean(F[:1])),
        }


@dataclass(frozen=True, eq=False)
class Package:
    r"""A running script of a peer.

    Args:
        command: What started it, as in a shell.
        process: It, with pipes.
        n_rows: ``N``, the rows of the pool.
        q: Rows wanted each time.
    """

    command: str
    process: subprocess.Popen[str]
    n_rows: int
    q: int

    def next(self, rows: Tensor, y: Tensor) -> Tensor:
        r"""``q`` rows that the peer wants measured.

        Args:
            rows: What was measured since it was asked last.
            y: The values.

        Raises:
            ValueError: If the script ended, or answers anything but ``q`` rows.
        """
        return self.next_and_more(rows, y)[0]

    def next_and_above(self, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        r"""``q`` rows that the peer wants measured, and those that it calls above.

        The latter (``N`` bools) only if it says so, by a model of its own.

        Args:
            rows: What was measured since it was asked last.
            y: The values.

        Raises:
            ValueError: If the script ended, or answers anything but ``q`` rows.
        """
        chosen, answer = self.next_and_more(rows, y)
        above = answer.get("above")
        if above is not None:
            above = torch.zeros(self.n_rows, dtype=torch.bool).index_fill_(
                0, torch.tensor(above, dtype=torch.long), True
            )
        return chosen, above

    def next_and_more(self, rows: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Any]]:
        r"""``q`` rows that the peer wants measured, and its whole answer.

        Args:
            rows: What was measured since it was asked last.
            y: The values.

        Raises:
            ValueError: If the script ended, or answers anything but ``q`` rows.
        """
        self.say({"rows": rows.tolist(), "y": y.tolist()})
        answer = self.answer()
        found = answer["rows"]
        if len(found) != self.q or not all(0 <= row < self.n_rows for row in found):
            raise ValueError(
                f"Expected {self.q} numbers of rows below {self.n_rows} from "
                f"`{self.command}`, but got {found}."
            )
        return torch.tensor(found, dtype=torch.long), answer

    def answer(self) -> dict[str, Any]:
        r"""The next line of the peer.

        Raises:
            ValueError: If there is none, because the script ended.
        """
        assert self.process.stdout is not None  # it is a pipe
        line = self.process.stdout.readline()
        if not line:
            raise ValueError(
                f"Expected `{self.command}` to answer, but it ended with status "
                f"{self.process.wait()}."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def say(self, message: dict[str, Any]) -> None:
        r"""A line to the peer.

        Raises:
            ValueError: If the script ended.
        """
        assert self.process.stdin is not None  # it is a pipe
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise ValueError(
                f"Expected `{self.command}` to listen, but it ended with status "
                f"{self.process.wait()}."
            ) from None


@contextmanager
def started(
    command: str,
    case: Case,
    noise_var: float,
    q: int,
    seed: int,
    has_model: bool = False,
) -> Iterator[Package]:
    r"""A peer's script that knows the case and is ready; it ends with the context.

    Args:
        command: What starts it, as in a shell.
        case: The problem.
        noise_var: Of every measurement, units of ``y`` squared.
        q: Rows wanted each time.
        seed: Of what the peer draws.
        has_model: Whether it learns a model of its own, in place of the stated one.

    Raises:
        ValueError: If the script ended instead.
    """
    stated: dict[str, Any] = {"X": case.pool.X.tolist()}
    if not has_model:
        features = case.prior.features(case.pool.X)
        stated = {"X": features.tolist(), "process": stated_process(case)}
    stated |= {"threshold": case.threshold, "noise_var": noise_var}
    with running(command, {**stated, "q": q, "seed": seed}) as package:
        yield package


@contextmanager
def running(command: str, stated: dict[str, Any]) -> Iterator[Package]:
    r"""A peer's script that was told a case and is ready; it ends with the context.

    Args:
        command: What starts it, as in a shell.
        stated: The case, with its rows ``X`` and ``q``.

    Raises:
        ValueError: If the script ended instead.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(shlex.split(command), stdin=pipe, stdout=pipe, text=True)
    package = Package(command, process, len(stated["X"]), stated["q"])
    try:
        package.say(stated)
        package.answer()
        yield package
    finally:
        # Its input ends, and with it the script; what it may still print is dropped.
        process.communicate()
