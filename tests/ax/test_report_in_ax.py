r"""The report of an experiment, as a file and as a card."""

from __future__ import annotations

import pandas as pd
import pytest
from ax import Client

from botorch_lse import Above
from botorch_lse.ax import ReportAnalysis, level_set, level_set_report
from botorch_lse.strategies import GaussianProcess, Strategy
from tests.ax.worlds import client_for, complete, grid_pool, state_of
from tests.plotting.test_reports import frame_of, inside


def run():
    pool = grid_pool(5)
    model = GaussianProcess(noise_std=0.1, n_initial=6)
    strategy = Strategy(pool, Above(0.5), model=model, batch_size=4)
    client = client_for(strategy)
    for _ in range(3):
        for trial, parameters in client.get_next_trials(4).items():
            complete(client, strategy, trial, parameters)
    return client


def test_the_file_and_the_card_say_what_the_table_says(tmp_path) -> None:
    client = run()
    level_set_report(client, tmp_path / "page.html")
    data = inside((tmp_path / "page.html").read_text(encoding="utf-8"))
    table, found = level_set(client), frame_of(data)
    assert found["side"].tolist() == table["side"].tolist()
    assert dict(data["facts"])["measurements"] == "12"
    assert data["progress"][0]["title"] == "Progress"
    (card,) = client.compute_analyses([ReportAnalysis()], display=False)
    assert data["title"] in card.title
    for words in (*data["answer"], *data["basis"]):
        assert words in card.blob
    assert "<li>measurements: 12</li>" in card._repr_html_()  # Ax draws no tables
    assert "<pre>" in card._repr_html_()
    pd.testing.assert_frame_equal(card.df, table)
    assert state_of(client).classification.guarantee in card.blob


def test_without_a_strategy_of_ours_it_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="configure_experiment"):
        level_set_report(Client(), tmp_path / "page.html")
    with pytest.raises(ValueError, match="`experiment` to be a `Client`"):
        level_set_report(None, tmp_path / "page.html")
