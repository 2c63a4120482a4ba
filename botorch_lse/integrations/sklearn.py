r"""A facade for programs that speak scikit-learn: ``fit``, ``predict``, ``query``.

Needs ``pip install 'botorch-lse[sklearn]'``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from botorch.models import SingleTaskGP
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from botorch_lse._validation import complaint, in_interval, whole_number
from botorch_lse.confidence import classify, confidence_regions
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import History
from botorch_lse.data.pool import Pool
from botorch_lse.models.fitted import fit_additive_gp
from botorch_lse.models.gaussian_process import FITTED_NOISE
from botorch_lse.rules import Rule
from botorch_lse.strategies import Above, GaussianProcess, Strategy
from botorch_lse.strategies.composed import LEARNT_WIDTH
from botorch_lse.surrogate.learning import own_random_numbers

__all__ = ["LevelSetClassifier"]


class LevelSetClassifier(BaseEstimator):  # type: ignore[misc]  # it has no types
    r"""An estimator that learns from measured numbers where they are above a level.

    ``fit`` takes numbers, not classes, and ``predict`` answers with sides, not numbers:
    to scikit-learn it is neither a classifier nor a regressor, and says so by having no
    type. ``query`` names the rows of a pool to measure next. Nothing is remembered
    between two fits: ``fit`` all measurements again, as with any other estimator.

    What a run adds is not here: a budget and a reason to stop, a guarantee, and the
    guards of a fitted model, which decides nothing before the first rows are measured
    or while all values lie on one side. ``Strategy`` has them.

    Example:
        >>> X = np.linspace(0, 1, 21)[:, None]
        >>> model = LevelSetClassifier(threshold=0.5).fit(X, np.sin(3 * X[:, 0]))
        >>> model.predict([[0.02], [0.5], [0.98]])
        array([-1,  1, -1])
        >>> model.predict_proba([[0.5]]).round(2)
        array([[0., 1.]])

    Args:
        threshold: The level, units of ``y``.
        epsilon: The accuracy: rows this near to the level may be on either side.
        width: The posterior standard deviations between a decided row's mean and the
            level. It is a heuristic width, which claims no confidence.
        noise_std: The known noise standard deviation of a value, units of ``y``;
            ``None``: learnt.
        rule: The choice of ``query``; default that of ``Strategy``.
        random_state: The seed of what is random in ``fit`` and ``query``.

    Attributes:
        model_: The fitted BoTorch model.
        n_features_in_: The number of inputs.
        feature_names_in_: Their names, if ``X`` was a table with names.
    """

    def __init__(
        self,
        threshold: float,
        *,
        epsilon: float = 0.0,
        width: float = LEARNT_WIDTH,
        noise_std: float | None = None,
        rule: Rule | None = None,
        random_state: int = 0,
    ) -> None:
        self.threshold = threshold
        self.epsilon = epsilon
        self.width = width
        self.noise_std = noise_std
        self.rule = rule
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        r"""Learn from measurements.

        Args:
            X: ``n x d`` inputs, at least two rows.
            y: ``n`` measured values.

        Raises:
            ValueError: If an entry is no finite number, such as a yes, a class or a
                text, or a setting out of range.
        """
        _check_measured(y)
        X, y = validate_data(
            self, X, y, dtype=float, y_numeric=True, ensure_min_samples=2
        )
        in_interval(self.width, "width", 0.0, np.inf)
        self._seed = whole_number(self.random_state, "random_state", 0)
        values, yvar = torch.tensor(y, dtype=torch.float64), None
        if self.noise_std is not None:
            std = in_interval(self.noise_std, "noise_std", 0.0, np.inf, closed_low=True)
            yvar = torch.full_like(values, std**2)
        self._history = History(torch.tensor(X), values, yvar)
        self.model_ = _fitted(self._history, self._seed)
        return self

    def classification(self, X: Any) -> Classification:
        r"""The whole answer for rows: sides, intervals, probabilities.

        Args:
            X: ``n x d`` inputs.
        """
        check_is_fitted(self)
        pool = Pool(validate_data(self, X, reset=False, dtype=float))
        regions = confidence_regions(self.model_, pool, self.width**2)
        return classify(regions, self.threshold, self.epsilon)

    def predict(self, X: Any) -> Any:
        r"""The side of each row: 1 above, -1 below, 0 undecided.

        Args:
            X: ``n x d`` inputs.
        """
        answer = self.classification(X)
        return answer.above.numpy().astype(int) - answer.below.numpy()

    def predict_proba(self, X: Any) -> Any:
        r"""The probabilities that rows are at or below the level, and above it.

        Args:
            X: ``n x d`` inputs.

        Returns:
            ``n x 2`` posterior probabilities, right if the model is.
        """
        above = self.classification(X).probability_above.numpy()
        return np.stack((1 - above, above), axis=-1)

    def query(self, X: Any, n: int = 1) -> Any:
        r"""The rows of a pool to measure next, planned together.

        Args:
            X: ``N x d`` inputs that may be measured; rows that were learnt from may be
                among them, and may be named again.
            n: How many rows; at most all of them are named.

        Returns:
            The indices of different rows of ``X``.

        Raises:
            ValueError: If ``n`` is less than 1.
        """
        check_is_fitted(self)
        n = whole_number(n, "n", 1)
        pool = Pool(validate_data(self, X, reset=False, dtype=float))
        yvar = self._history.yvar
        noise_std = None if yvar is None else float(yvar[0].sqrt())
        strategy = Strategy(
            pool,
            Above(self.threshold, epsilon=self.epsilon),
            model=GaussianProcess(self.model_, noise_std, history=self._history),
            rule=self.rule,
            beta=self.width**2,
            max_repeats=1,
        )
        state = strategy.init(self._seed)
        return strategy.ask(state, size=n).order.numpy()

    def score(self, X: Any, y: Any) -> float:
        r"""The share of rows on whose side of the level their measured values are.

        Undecided rows count by their likelier side.

        Args:
            X: ``n x d`` inputs.
            y: ``n`` measured values.

        Raises:
            ValueError: If an entry is no finite number.
        """
        _check_measured(y)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=float, input_name="y"))
        check_consistent_length(X, y)
        guess = self.classification(X).best_guess.numpy()
        return float(np.mean(guess == (y > self.threshold)))

    def __sklearn_tags__(self) -> Any:
        r"""The tags by which scikit-learn knows that ``y`` is needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        r"""The state to pickle: all but the model, whose priors cannot be pickled."""
        return {k: v for k, v in super().__getstate__().items() if k != "model_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        r"""Restore it; the model is a function of data and seed, and fitted again."""
        super().__setstate__(state)
        if "_history" in state:
            self.model_ = _fitted(self._history, self._seed)


def _check_measured(y: Any) -> None:
    r"""Complain about answers, classes and texts, which are no measured numbers."""
    given = np.asarray(y)
    odd = (bool, np.bool_, str, np.datetime64)
    for entry in given.flat if given.dtype.kind not in "iufc" else ():
        if isinstance(entry, odd):
            remedy = (
                "For yes and no write `Strategy(pool, Above(0.5), "
                "model=GaussianProcess(outcome=Binary()))`, for classes the goal "
                "`Classes(...)`; convert numbers in text: `np.asarray(y, dtype=float)`."
            )
            came = f"got {entry.item() if hasattr(entry, 'item') else entry!r}"
            raise ValueError(complaint("y", "to be measured numbers", came, remedy))


def _fitted(data: History, seed: int) -> SingleTaskGP:
    y, yvar = data.y.unsqueeze(-1), data.yvar
    if yvar is not None:
        yvar = yvar.clamp_min(FITTED_NOISE * float(data.y.var())).unsqueeze(-1)
    with own_random_numbers(seed, data.y.device):
        return fit_additive_gp(data.X, y, yvar, Pool(data.X).bounds)
