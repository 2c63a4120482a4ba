r"""The model as users give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import ModelList
from torch.nn import Module

from botorch_lse._lazy import LazyModule
from botorch_lse._validation import complaint, of_type, one_of, truth_value
from botorch_lse.data.observations import History
from botorch_lse.data.pool import Pool
from botorch_lse.models import correlated
from botorch_lse.models.correlated import CorrelatedModel
from botorch_lse.models.gaussian_process import (
    MEMORY_BUDGET,
)
from botorch_lse.models.outcomes import LogNormal, Outcome, Quantity
from botorch_lse.surrogate.layout import Layout

if TYPE_CHECKING:
    from botorch.models import multitask

    from botorch_lse.models import fitted
else:  # both bring SciPy
    fitted = LazyModule("botorch_lse.models.fitted")
    multitask = LazyModule("botorch.models.multitask")
from botorch_lse.surrogate.learning import ADDITIVE, FAMILIES, OutputModel, Refit
from botorch_lse.surrogate.outputs import GaussianProcesses

LEVEL_Z = 1.5
"""The prior deviations from the mean within which a learnt model must hold the level.
Anything between 1 and 2 serves; it must stay below the width that decides."""


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    r"""The model of a composed strategy: a Gaussian process for each output.

    Args:
        model: As in ``GPStrategy``, or one per output, such as a ``ModelListGP``; these
            are independent. A fitted ``MultiTaskGP`` is all outputs together, the task
            of the smallest number being output 0.
        noise_std: The known noise standard deviation, or one per output, units of
            ``y``; else see ``GPStrategy``, as for the next ones.
        refit: How often to refit; see ``GPStrategy``.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            and before anything is decided; see ``GPStrategy``.
        level_z: Prior standard deviations within which a fitted model keeps the level.
        needs_both_sides: Whether a fitted model decides nothing while all values lie on
            one side of the level.
        norm_bound: A bound of the norm of ``f`` less the prior mean.
        memory_budget: Bytes for arrays over the pool.
        history: Measurements at any points that were made before the run, also results
            of an ``outcome``. The process is conditioned on them.
        correlated: Whether outputs are modelled together, so that a value of one tells
            about the others: with ``model=None`` by ``fit_multi_task_gp``, else by the
            factory, whose ``train_X`` has the number of the output as last column.
        family: The functions that the default model of numbers expects: ``"additive"``,
            a sum of functions of single inputs and one of all (``fit_additive_gp``), or
            ``"single"``, one of all (BoTorch's default, ``fit_single_task_gp``). Not of
            words or correlated outputs, which have one of their own, nor beyond 20
            inputs or with one, where both are BoTorch's.
        outcome: What is measured, if it is not the function plus noise, such as
            ``Binary()`` for yes (1) and no (0); or one per output, ``None`` for
            measured numbers. Levels, bounds and answers are then in the units of the
            outcome, of ``Binary`` and ``Ordinal`` probabilities, of ``Counts()``
            expected counts. ``LogNormal()`` is for numbers over decades, which stay in
            their units; ``noise_std`` is then a share of the value. ``model`` and
            ``norm_bound`` are about the latent function.
        increasing: Inputs with which the quantity of an ``outcome`` rises, by name or
            number, such as an intensity: the latent function is then mostly a line
            along each, where a constant would pull what is far from the data to the
            middle. Beside other inputs its height and slope are functions of them (not
            with ``family="single"``). Name all that you know of; they hold for every
            ``outcome``.
        decreasing: Inputs with which it falls, such as a distance, likewise.

    Raises:
        ValueError: If there is no such family, or it is not for a given ``model``;
            likewise of ``increasing`` and ``decreasing``.
    """

    model: fitted.ModelArgument | Sequence[fitted.ModelArgument] | ModelList = None
    noise_std: float | Sequence[float] | None = None
    refit: Refit = None
    n_initial: int | None = None
    level_z: float | None = LEVEL_Z
    needs_both_sides: bool = True
    norm_bound: float | None = None
    memory_budget: int = MEMORY_BUDGET
    history: History | None = None
    correlated: bool = False
    family: str = ADDITIVE
    outcome: Quantity | Sequence[Quantity | None] | None = None
    increasing: Sequence[str | int] = ()
    decreasing: Sequence[str | int] = ()

    def __post_init__(self) -> None:
        kinds = "`Counts()`, `LogNormal()` or `Ordinal(4, at_least=2)`"
        remedy = f"Write `Binary()`, {kinds}."
        outcomes = one_each(self.outcome, "outcome", None)
        for one in outcomes:
            of_type(one, Quantity | None, "outcome", "an outcome", remedy)
        has_latent = any(isinstance(one, Outcome) for one in outcomes)
        is_learnt = has_latent and self.model is None
        for name in ("increasing", "decreasing"):
            inputs, remedy = getattr(self, name), 'Write `["dose"]` or `[0]`.'
            wanted, came = "to be a list of columns", f"got {inputs!r}"
            if not hasattr(inputs, "__len__"):
                raise ValueError(complaint(name, wanted, came, remedy))
            if not is_learnt and len(inputs):
                of_results = "an `outcome` of results, and with a `model`"
                wanted = f"to be left out without {of_results}"
                remedy = "Give `outcome=Binary()` and no `model`, or leave it out."
                raise ValueError(complaint(name, wanted, came, remedy))
        one_of(self.family, "family", FAMILIES)
        if self.family != ADDITIVE and self.model is not None:
            raise ValueError(
                "Expected no `family` with a `model` of your own, which is taken as it "
                f"is, but got {self.family!r}. Leave one of them out."
            )

    def on(
        self,
        pool: Pool,
        n_outputs: int = 1,
        max_observations: int | None = None,
        max_repeats: int | None = None,
        layout: Layout | None = None,
        outputs: Sequence[str] = (),
    ) -> GaussianProcesses:
        r"""The processes of this model on the rows of a pool.

        Args:
            pool: The candidates.
            n_outputs: The number of outputs.
            max_observations: The budget.
            max_repeats: The largest number of measurements of one row.
            layout: The outputs that each row measures; ``None``: all.
            outputs: The names of the outputs, where the goal has them.

        Raises:
            ValueError: If there is not one model, or one noise, for each output, or a
                number is out of range.
            UnsupportedError: If outputs are correlated and the model is no model of
                them, or there is a history.
        """
        given, together = self.model, self._together(n_outputs)
        if isinstance(given, multitask.MultiTaskGP):
            given = correlated.priors_of(given)
        elif isinstance(given, ModelList):
            given = list(given.models)
        models = one_each(given, "model", n_outputs)
        stds = one_each(self.noise_std, "noise_std", n_outputs)
        pasts = history_of_each(self.history, n_outputs, pool, outputs)
        outcomes = one_each(self.outcome, "outcome", n_outputs)
        layout = layout or Layout(pool, n_outputs)
        if self.history is not None and not layout.takes_history:
            raise UnsupportedError(
                "Expected no `history` where a measurement gives one output. Leave it "
                "out, or tell it as measurements of rows."
            )
        pools = [layout.candidates_of(j) for j in range(n_outputs)]
        scales = [one if isinstance(one, LogNormal) else None for one in outcomes]
        pasts = [
            past if past is None or scale is None else _on_scale(past, scale)
            for past, scale in zip(pasts, scales, strict=True)
        ]
        latent = [one if isinstance(one, Outcome) else None for one in outcomes]
        parts = zip(pools, models, stds, pasts, latent, strict=True)
        rising, falling = (
            columns_of(getattr(self, name), layout.candidates, name)
            for name in ("increasing", "decreasing")
        )
        if both := set(rising) & set(falling):
            names = layout.candidates.names or range(layout.candidates.d)
            wanted = "to name other inputs than `increasing`"
            came = f"got {names[min(both)]!r} in both"
            remedy = "Leave it out of one of them."
            raise ValueError(complaint("decreasing", wanted, came, remedy))
        if (rising or falling) and self.history is None:
            X = layout.candidates.X  # along what is the same in all rows nothing rises
            differ = [bool((column != column[0]).any()) for column in X.unbind(dim=-1)]
            rising = tuple(c for c in rising if differ[c])
            falling = tuple(c for c in falling if differ[c])
        return GaussianProcesses(
            pool,
            tuple(
                OutputModel(*part, self.family, rising, falling, scale)
                for part, scale in zip(parts, scales, strict=True)
            ),
            self.refit,
            self.n_initial,
            max_observations,
            max_repeats,
            self.memory_budget,
            together=together,
            given_layout=layout,
            has_scales=any(scales),
        )

    def _together(self, n_outputs: int) -> CorrelatedModel | None:
        r"""The model of correlated outputs; ``None`` where they are independent."""
        truth_value(self.correlated, "correlated")
        is_given = isinstance(self.model, multitask.MultiTaskGP)
        if not (is_given or self.correlated):
            return None
        outcomes = one_each(self.outcome, "outcome", None)
        if any(isinstance(one, Outcome) for one in outcomes):
            raise UnsupportedError(
                "Expected no `outcome` where outputs are correlated. Leave "
                "`correlated` out, or the outcome."
            )
        if n_outputs == 1 and not is_given:
            raise ValueError(
                "Expected a `goal` of several outputs with `correlated=True`, but it "
                "has one. Leave `correlated` out."
            )
        if self.history is not None:
            raise UnsupportedError(
                "Expected no `history` where outputs are correlated. Leave it out, or "
                "give one single-output GP for each output."
            )
        if is_given:
            return CorrelatedModel()
        if self.model is None:
            return CorrelatedModel()
        if isinstance(self.model, (Module, Sequence)) or not callable(self.model):
            raise UnsupportedError(
                "Expected `model` to be None, a fitted MultiTaskGP or a factory of one "
                f"with `correlated=True`, but got {type(self.model).__name__}."
            )
        return CorrelatedModel(self.model)


def _on_scale(past: History, scale: LogNormal) -> History:
    r"""The measurements of an output as its process has them.

    Raises:
        ValueError: If there is one that cannot be.
    """
    scale.check(past.y, torch.ones_like(past.y))
    y, yvar = scale.on_scale(past.y, past.yvar)
    return replace(past, y=y, yvar=yvar)


def one_each(value: Any, name: str, n_outputs: int | None) -> tuple[Any, ...]:
    r"""One value for each output, from a sequence of values or one value for all.

    Args:
        value: The value, or a sequence.
        name: The argument's name.
        n_outputs: The number of outputs; ``None``: as many as there are values.

    Raises:
        ValueError: If it is a sequence of another length.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (value,) * (n_outputs or 1)
    if n_outputs is not None and len(value) != n_outputs:
        raise ValueError(
            f"Expected `{name}` to be one, or one per output ({n_outputs}), but got "
            f"{len(value)}."
        )
    return tuple(value)


def columns_of(
    inputs: Sequence[str | int], pool: Pool, argument: str
) -> tuple[int, ...]:
    r"""The columns of inputs that are given by name or number.

    Args:
        inputs: The inputs.
        pool: The pool, whose columns they are.
        argument: The name of the argument that gives them.

    Raises:
        ValueError: If the pool has no such column of numbers.
    """
    names = list(pool.names or ())
    words = {c for first, n in pool.words.values() for c in range(first, first + n)}
    numbers = [c for c in range(pool.d) if c not in words]
    found: list[int] = []
    if isinstance(inputs, str):
        inputs = [inputs]
    for one in inputs:
        column: Any = names.index(one) if one in names else one
        is_number = isinstance(column, int) and not isinstance(column, bool)
        if not is_number or column not in numbers:
            known = [names[c] for c in numbers] if names else f"0 to {pool.d - 1}"
            wanted = f"to be columns of numbers of the pool, {known}"
            remedy = "Name one of them, or leave it out."
            raise ValueError(complaint(argument, wanted, f"got {one!r}", remedy))
        found.append(column)
    return tuple(dict.fromkeys(found))  # by its name and by its number it is one


def history_of_each(
    history: History | None, n_outputs: int, pool: Pool, outputs: Sequence[str] = ()
) -> list[History | None]:
    r"""The history of each output, with its points as the pool's model has them.

    Args:
        history: All measurements.
        n_outputs: The number of outputs.
        pool: The pool, whose names the points go by.
        outputs: The names of the outputs, where the goal has them.

    Raises:
        ValueError: If a column or an output is missing.
        BotorchTensorDimensionError: If it has other outputs.
    """
    if history is None:
        return [None] * n_outputs
    of_type(history, History, "history", "a History", "Write `History(X, y)`.")
    history = history.on(pool, outputs)
    found = 1 if history.y.ndim == 1 else history.y.shape[-1]
    if found != n_outputs:
        raise BotorchTensorDimensionError(
            f"Expected `history` with one value per output ({n_outputs}), but its `y` "
            f"has the shape {tuple(history.y.shape)}."
        )
    return [history.output(c) for c in range(n_outputs)]
