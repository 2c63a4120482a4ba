r"""The scale on which the model sees results: as they are, or log base 10.

People write and read results in their own units. What goes to the model passes through
here, and so does what comes back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from botorch_lse.data.classification import Classification
    from botorch_lse.data.observations import Observations

DECADES = 100.0
"""The ratio of largest and smallest value from which logarithms are suggested."""


@dataclass(frozen=True)
class Scale:
    r"""The scale of results.

    Args:
        is_log: Whether the model sees logarithms.
    """

    is_log: bool = False

    def inward(self, values: Tensor) -> Tensor:
        r"""Results on the model's scale.

        Args:
            values: Results, above 0 where the scale is logarithmic.
        """
        return values.log10() if self.is_log else values

    def outward(self, values: Tensor) -> Tensor:
        r"""The model's numbers in the units of the results.

        Args:
            values: Means or bounds.
        """
        # A bound that is not known, minus infinity, becomes 0 by itself.
        return 10.0**values if self.is_log else values

    def level(self, level: float) -> float:
        r"""A level on the model's scale.

        Args:
            level: The level, in units of the results.
        """
        return math.log10(level) if self.is_log else level

    def accuracy(self, epsilon: float, level: float) -> float:
        r"""An accuracy on the model's scale, around a level.

        By logarithms an interval around the level is not symmetric: of its two halves,
        to ``level + epsilon`` and to ``level - epsilon``, the smaller one is taken, so
        that what is promised holds in the units of the results.

        Args:
            epsilon: The accuracy, in units of the results.
            level: The level.
        """
        if not self.is_log or epsilon == 0:
            return epsilon
        exact = math.log10(1 + epsilon / level)
        unit = 10.0 ** (math.floor(math.log10(exact)) - 3)
        return math.floor(exact / unit) * unit  # nobody reads more than four digits

    def noise(self, std: float) -> float:
        r"""A standard deviation of the noise on the model's scale.

        Args:
            std: In units of the results; by logarithms, a share of the value.
        """
        return std / math.log(10) if self.is_log else std

    def noise_in_words(self, std: float) -> str:
        r"""A standard deviation of the noise that the model sees, in words.

        Args:
            std: The standard deviation on the scale of the model.
        """
        if self.is_log:
            return f"noise of {100 * math.log(10) * std:.3g} % (standard deviation)"
        return f"noise with standard deviation {std:.3g}"

    def told(self, observations: Observations) -> Observations:
        r"""The results as they are told to the model."""
        return replace(observations, y=self.inward(observations.y))

    def shown(self, observations: Observations) -> Observations:
        r"""The results that the model was told, back in their units."""
        return replace(observations, y=self.outward(observations.y))

    def answer(self, found: Classification) -> Classification:
        r"""An answer in the units of the results.

        By logarithms the mean becomes a median, and ``sigma`` the standard deviation
        that a value near to it has: for larger ones see the bounds.
        """
        if not self.is_log:
            return found
        mean = self.outward(found.mean)
        return replace(
            found,
            mean=mean,
            sigma=mean * (10.0**found.sigma - 1.0),
            lower=self.outward(found.lower),
            upper=self.outward(found.upper),
        )

    def is_suggested(self, values: Tensor, level: float, grows: bool = False) -> bool:
        r"""Whether logarithms would suit results better: they spread, or noise grows.

        Args:
            values: All results.
            level: The level.
            grows: Whether their noise was found to grow with them.
        """
        if self.is_log or level <= 0 or len(values) == 0:
            return False
        low, high = values.aminmax()
        return bool(low > 0) and (grows or bool(high >= DECADES * low))
