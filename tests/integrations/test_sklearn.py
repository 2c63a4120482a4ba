r"""The facade for scikit-learn, by its own checks and as other packages call it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from botorch_lse import Above, GaussianProcess, History, Pool, Strategy

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from botorch_lse.integrations.sklearn import LevelSetClassifier

POOL = np.linspace(0, 10, 41)[:, None]
START = [0, 13, 27, 40]


def measure(X) -> np.ndarray:
    return np.sin(np.asarray(X)[:, 0])


def fitted(**options) -> LevelSetClassifier:
    X = POOL[::3]
    return LevelSetClassifier(0.3, **options).fit(X, measure(X))


@pytest.mark.some(2)
@pytest.mark.filterwarnings("ignore")  # of values that scikit-learn makes up
@parametrize_with_checks([LevelSetClassifier(0.5)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check) -> None:
    check(estimator)


def test_a_loop_by_hand_finds_the_side_of_every_row() -> None:
    rows = list(START)
    model = LevelSetClassifier(0.3, epsilon=0.02, noise_std=0.001)
    for _ in range(8):
        model.fit(POOL[rows], measure(POOL[rows]))
        if (model.predict(POOL) != 0).all():
            break
        rows += model.query(POOL, 3).tolist()
    side = model.predict(POOL)
    far = np.abs(measure(POOL) - 0.3) > 0.02
    assert (side != 0).all()
    assert (side == np.where(measure(POOL) > 0.3, 1, -1))[far].all()
    assert model.score(POOL[far], measure(POOL)[far]) == 1


def test_answers_are_those_of_the_model_and_the_width() -> None:
    model = fitted(width=2.0)
    points = torch.tensor(POOL)
    with torch.no_grad():
        posterior = model.model_.posterior(points)
    mean = posterior.mean.view(-1).numpy()
    sigma = posterior.variance.sqrt().view(-1).numpy()
    above, below = mean - 2 * sigma > 0.3, mean + 2 * sigma < 0.3
    assert (model.predict(POOL) == above.astype(int) - below).all()
    share = torch.distributions.Normal(0, 1).cdf(torch.tensor((mean - 0.3) / sigma))
    np.testing.assert_allclose(
        model.predict_proba(POOL), np.stack((1 - share, share), -1), atol=1e-6
    )


def test_queries_are_those_of_a_strategy_with_these_data_for_history() -> None:
    model, X = fitted(), torch.tensor(POOL[::3])
    past = History(X, torch.tensor(measure(X)))
    strategy = Strategy(
        Pool(POOL),
        Above(0.3),
        model=GaussianProcess(model.model_, history=past),
        beta=16.0,
        max_repeats=1,
    )
    batch = strategy.ask(strategy.init(), size=5)
    assert model.query(POOL, 5).tolist() == batch.order.tolist()


def test_a_pickle_answers_as_the_original_also_after_a_change_of_settings() -> None:
    model = fitted(random_state=3).set_params(noise_std=5.0)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict_proba(POOL) == model.predict_proba(POOL)).all()


def test_names_of_columns_are_kept_and_compared() -> None:
    X = pd.DataFrame(POOL, columns=["depth"])
    model = LevelSetClassifier(0.3).fit(X, measure(X))
    assert model.feature_names_in_.tolist() == ["depth"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"depth": "height"}))


def test_it_works_in_pipelines_and_searches() -> None:
    search = GridSearchCV(LevelSetClassifier(0.3), {"noise_std": [0.01, 2.0]}, cv=2)
    pipeline = make_pipeline(StandardScaler(), search).fit(POOL, measure(POOL))
    assert pipeline[-1].best_score_ > 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": 0.0}, r"Expected `width` in \(0"),
        ({"noise_std": -1.0}, r"Expected `noise_std` in \[0"),
        ({"random_state": 0.5}, "Expected `random_state` to be a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(options, said) -> None:
    with pytest.raises(ValueError, match=said):
        fitted(**options)


ANSWERS = {
    "words": ["yes", "no"] * 6,
    "numbers in text": ["1.5", "2.5"] * 6,
    "words beside numbers": [1.0, "no"] * 6,
    "words of a table": pd.Series(["yes", "no"] * 6),
    "classes of a table": pd.Series(["yes", "no"] * 6, dtype="category"),
    "yes and no": [True, False] * 6,
    "yes and no of a table": pd.Series([True, False] * 6, dtype="boolean"),
    "days": np.arange(12).astype("datetime64[D]"),
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("method", ["fit", "score"])
def test_answers_and_classes_are_no_numbers(method, kind) -> None:
    X, model = POOL[:12], fitted()
    said = r"`y` to be measured numbers, but got .*outcome=Binary\(\).*Classes\("
    with pytest.raises(ValueError, match=said):
        getattr(model, method)(X, ANSWERS[kind])


def test_numbers_come_in_any_container() -> None:
    X, y = POOL[:12], measure(POOL[:12])
    series = pd.Series(y, index=range(5, 17))
    for one in (y.tolist(), series, torch.tensor(y), y.astype(object)):
        model = LevelSetClassifier(0.3).fit(X.tolist(), one)
        assert torch.equal(model._history.y, torch.tensor(y))
        assert model.score(X, one) == model.score(X, y)


@pytest.mark.parametrize("method", ["fit", "score"])
def test_values_of_another_form_are_refused(method) -> None:
    X, y, model = POOL[:12], measure(POOL[:12]), fitted()
    for values, said in (
        (np.where(y > 0.5, np.nan, y), "Input y contains NaN"),
        (np.stack((y, y), axis=-1), "1d array, got an array of shape"),
        (y[:5], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=said):
            getattr(model, method)(X, values)
    assert model.score(X, y[:, None]) == model.score(X, y)
    with pytest.raises(ValueError, match="could not convert string to float: 'clay'"):
        getattr(model, method)(np.array([["clay"]] * 12, dtype=object), y)
    with pytest.raises(ValueError, match="`n` to be at least 1, but got 0"):
        model.query(X, 0)


def test_exact_values_are_known_where_they_were_measured() -> None:
    model = fitted(noise_std=0.0)
    assert (model.predict(POOL[::3]) == np.where(measure(POOL[::3]) > 0.3, 1, -1)).all()


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # of scikit-activeml
def test_a_loop_of_scikit_activeml_measures_what_is_asked_for() -> None:
    # modAL, as it is packaged (0.4.2.1), does not run with scikit-learn 1.8 or newer.
    theirs = pytest.importorskip("skactiveml.utils", reason="scikit-activeml missing")
    y = np.full(len(POOL), np.nan)  # its notation of what is not measured yet
    y[START] = measure(POOL[START])
    for _ in range(3):
        known = theirs.is_labeled(y)
        model = LevelSetClassifier(0.3).fit(POOL[known], y[known])
        rows = model.query(POOL, 3)
        y[rows] = measure(POOL[rows])
    assert model.score(POOL, measure(POOL)) > 0.9
