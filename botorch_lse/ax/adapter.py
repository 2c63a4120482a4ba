r"""What a strategy believes, for Ax's predictions and analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from ax.adapter.base import Adapter
from ax.core import Experiment, ObservationFeatures
from ax.core.observation import ObservationData
from ax.exceptions.core import UnsupportedError
from ax.generators.base import Generator

from botorch_lse.ax.measurements import metric_names

if TYPE_CHECKING:
    from botorch_lse.ax.node import LevelSetNode


class LevelSetGenerator(Generator):
    r"""Says that predictions are there; candidates come from the node."""

    @property
    def can_predict(self) -> bool:
        r"""True: a Gaussian process predicts every row of the pool."""
        return True

    @property
    def can_model_in_sample(self) -> bool:
        r"""Always: rows that were measured can be asked for, too."""
        return True


class LevelSetAdapter(Adapter):
    r"""Mean and standard deviation of a GP strategy's function, for rows of its pool.

    The posterior after the complete rounds, in the units of the metric, noise excluded.

    Args:
        node: The node that holds the strategy.
        experiment: Its experiment.
    """

    def __init__(self, node: LevelSetNode, experiment: Experiment) -> None:
        super().__init__(
            experiment=experiment, generator=LevelSetGenerator(), fit_on_init=False
        )
        (metric,) = metric_names(experiment, node.metrics, node.strategy)
        self._signature = experiment.metrics[metric].signature
        self.outcomes = [self._signature]
        self._node = node

    def _predict(
        self,
        observation_features: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        if use_posterior_predictive:
            raise UnsupportedError(
                "Expected `use_posterior_predictive=False`: the prediction is that of "
                "the function. Add the noise variance for a new measurement's."
            )
        space = self._node.space(self._experiment)
        answer = self._node.state(self._experiment).classification
        rows = [
            space.row_of(features.parameters, "the point")
            for features in observation_features
        ]
        return [
            ObservationData(
                metric_signatures=[self._signature],
                means=np.array([float(answer.mean[row])]),
                covariance=np.array([[float(answer.sigma[row]) ** 2]]),
            )
            for row in rows
        ]
