r"""The outcome constraints of an experiment as the region where all of them hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ax import Client
from ax.core import Experiment
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.types import ComparisonOp

from botorch_lse.ax.compat import parts_of
from botorch_lse.strategies import Above, And, Below, Region


def outcome_constraints(experiment: Experiment) -> Sequence[OutcomeConstraint]:
    r"""The outcome constraints, empty without an optimisation config."""
    config = experiment.optimization_config
    return [] if config is None else config.outcome_constraints


def goal_from_constraints(
    experiment: Client | Experiment, epsilon: Mapping[str, float] | None = None
) -> Region:
    r"""The goal "where is it feasible": the region where all outcome constraints hold.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import pool_parameters
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="mix")
        >>> client.configure_optimization(
        ...     objective="cost",
        ...     outcome_constraints=["strength >= 40", "leaching <= 0.4"],
        ... )
        >>> goal_from_constraints(client).outputs
        ('strength', 'leaching')

    The goal names its metrics, so that ``level_set_generation_strategy`` needs no
    ``metrics``; the objective itself is not learnt. For a level of it as well write
    ``goal_from_constraints(client) & Below(3.0, output="cost")``. A value on a bound
    counts as below it.

    Args:
        experiment: A ``Client`` whose optimisation is configured, or an experiment.
        epsilon: The accuracy of each metric, in its units; default none.

    Raises:
        ValueError: If there are no constraints, one is relative to a status quo or
            about several metrics, or ``epsilon`` names a metric without constraint.
    """
    constraints = outcome_constraints(parts_of(experiment, None)[0])
    if not constraints:
        raise ValueError(
            "Expected an experiment with `outcome_constraints`, but it has none. Call "
            '`client.configure_optimization(objective="cost", '
            'outcome_constraints=["strength >= 40"])`. For a level of the objective '
            'write the goal itself: `Above(40, output="cost")`.'
        )
    known = dict(epsilon or {})
    parts = tuple(_part(constraint, known) for constraint in constraints)
    metrics = sorted({str(part.output) for part in parts})
    strange = [name for name in known if name not in metrics]
    if strange:
        raise ValueError(
            f"Expected `epsilon` for metrics with a constraint, {metrics}, but got "
            f"{strange}."
        )
    return parts[0] if len(parts) == 1 else And(parts)


def _part(constraint: OutcomeConstraint, epsilon: Mapping[str, float]) -> Above | Below:
    if constraint.relative:
        raise ValueError(
            "Expected `outcome_constraints` with numbers as bounds, but got "
            f"{constraint.expression!r}, relative to a baseline. Measure the baseline "
            "and write its value."
        )
    if len(constraint.metric_weights) != 1:
        raise ValueError(
            "Expected each of `outcome_constraints` to be about one metric, but got "
            f"{constraint.expression!r}. Record the sum as a metric of its own."
        )
    ((metric, weight),) = constraint.metric_weights
    level = constraint.bound / weight
    is_lower = (constraint.op is ComparisonOp.GEQ) == (weight > 0)
    kind = Above if is_lower else Below
    return kind(level, epsilon.get(metric, 0.0), metric)
