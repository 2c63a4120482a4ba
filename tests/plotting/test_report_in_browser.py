r"""The report in a real browser: sorted, filtered, in the dark, on a phone, printed."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.plotting.report import Report
from tests.plotting.browser import printed, seen

ROWS = """const rows = [...document.querySelectorAll(".list tbody tr")]
  .filter(row => row.children.length)
  .map(row => [...row.children].map(cell => cell.textContent));"""
HEADS = """const head = name => [...document.querySelectorAll(".list th button")]
  .find(button => button.textContent === name);"""
FILTER = """const filter = text => {
  const box = document.querySelector("input[type=search]");
  box.value = text; box.dispatchEvent(new Event("input", {bubbles: true}));
};
const status = () => document.querySelector("[role=status]").textContent;"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    t = torch.linspace(0, 1, 6, dtype=torch.float64)
    X = torch.cartesian_prod(t, t)
    table = pd.DataFrame(X.numpy(), columns=["depth (m)", "<b>east</b>"])
    table.insert(0, "name", [f"site {i}" for i in range(36)])
    pool = Pool(X, names=["depth (m)", "<b>east</b>"], table=table)
    strategy = Strategy(pool, Above(0.5), model=GaussianProcess(noise_std=0.05))
    rows = torch.arange(0, 36, 2)
    y = X[rows].sum(dim=1) - 0.4
    state = strategy.tell(strategy.init(), Observations(rows, y))
    path = tmp_path_factory.mktemp("report") / "report.html"
    state.report(path, metrics=["yield"])
    return path


def test_all_is_there_and_names_are_no_tags(page) -> None:
    found = seen(
        page,
        f"""{ROWS}
      return {{rows, title: document.title, bold: document.querySelectorAll("b").length,
        plots: document.querySelectorAll(".plot .main-svg").length,
        heads: [...document.querySelectorAll("h2")].map(one => one.textContent)}};""",
    )
    assert found["title"] == "yield above 0.5"
    assert found["bold"] == 0
    assert found["plots"] >= 3
    assert found["heads"] == [
        "Pictures",
        "All rows",
        "What to measure next",
        "The way there",
        "What this rests on",
        "To do the same again",
    ]
    assert [row[0] for row in found["rows"]] == [f"site {i}" for i in range(36)]


@pytest.mark.slow
def test_rows_are_sorted_by_numbers_and_words_both_ways_and_back(page) -> None:
    found = seen(
        page,
        f"""{HEADS} const orders = [];
      for (const name of ["mean", "mean", "mean", "name"]) {{
        head(name).click();
        {ROWS} orders.push(rows.map(row => name === "mean" ? Number(row[5]) : row[0]));
      }}
      return orders;""",
    )
    up, down, back, words = found
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    assert sorted(back) == up
    assert back not in (up, down)
    assert words == [f"site {i}" for i in range(36)]  # site 2 before site 10


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("site 1", 19),
        ("depth (m) > 0,7", 12),
        ("depth (m)>=0.8 site", 12),
        ("name=nothing", 0),
    ],
)
def test_rows_are_filtered(page, text: str, n: int) -> None:
    # "site 1" are two words: the second begins a number or is a part of a name.
    found = seen(page, f"{FILTER} filter({text!r}); return status();")
    if text == "site 1":
        assert int(found.split()[0]) >= n
    else:
        assert found == f"{n} of 36 rows"


@pytest.mark.slow
def test_sides_are_taken_out(page) -> None:
    counted, left, n = seen(
        page,
        f"""{FILTER}
      const box = document.querySelector(".controls input[type=checkbox]");
      box.click();
      {ROWS}
      return [box.parentElement.textContent, rows.map(row => row[3]), status()];""",
    )
    side, n_side = counted.strip().removesuffix(")").split(" (")
    assert side not in left
    assert n == f"{36 - int(n_side)} of 36 rows"


@pytest.mark.slow
def test_it_is_dark_where_the_reader_has_it_so_and_can_be_switched(page) -> None:
    act = """const dark = () => document.documentElement.classList.contains("dark");
      const before = dark(), paper = getComputedStyle(document.body).backgroundColor;
      document.getElementById("theme").click();
      return [before, dark(), paper];"""
    before, after, paper = seen(page, act)
    assert (before, after, paper) == (False, True, "rgb(246, 247, 248)")
    before, after, paper = seen(page, act, "--blink-settings=preferredColorScheme=0")
    assert (before, after, paper) == (True, False, "rgb(20, 24, 28)")


HOVER = """const hover = async (title, place) => {
  const figure = [...document.querySelectorAll("figure")]
    .find(one => one.querySelector("h3").textContent === title);
  const plot = figure.querySelector(".js-plotly-plot");
  plot.scrollIntoView();
  const area = plot.querySelector(".nsewdrag"), box = area.getBoundingClientRect();
  if (place === null) {  // the first point that has something to say
    const [point] = plot.calcdata.find(points => points[0].trace.hovertemplate);
    const {xaxis, yaxis} = plot._fullLayout;
    place = [xaxis.c2p(point.x) / box.width, yaxis.c2p(point.y) / box.height];
  }
  const at = {clientX: box.left + place[0] * box.width, bubbles: true,
    clientY: box.top + place[1] * box.height};
  for (const kind of ["mouseover", "mousemove"]) {
    area.dispatchEvent(new MouseEvent(kind, at));
  }
  await new Promise(resolve => setTimeout(resolve, 300));
  return [...plot.querySelectorAll(".hoverlayer text")]
    .map(one => [...one.querySelectorAll("tspan.line")].map(x => x.textContent))[0];
};"""


@pytest.mark.slow
def test_the_pointer_shows_a_candidates_own_name(page) -> None:
    # The lower left cell of the map is the first site, at the lower ends of both.
    lines, lowest = seen(
        page,
        f"""{HOVER}
      return [await hover("Map", [0.05, 0.95]), await hover("Intervals", null)];
      """,
    )
    assert lines[0] == "site 0"
    assert lines[1] == "depth (m) 0, <b>east</b> 0"  # as written, not as a tag
    assert any(line.startswith("probability above") for line in lines)
    assert lowest[0].startswith("site ")
    assert lowest[1].startswith("depth (m) ")


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    "dark", [(), ("--blink-settings=preferredColorScheme=0",)], ids=["light", "dark"]
)
def test_all_is_on_paper(page, dark: tuple[str, ...]) -> None:
    text = "\n".join(printed(page, *dark))
    for words in (
        "yield above 0.5",
        "Of 36 rows",
        "Pictures",
        "All rows",
        "What to measure next",
        "The way there",
        "What this rests on",
        "To do the same again",
        "seed",
    ):
        assert words in text, words
    for row in range(36):  # what one scrolls to on a screen
        assert f"site {row}" in text
    assert "probability_above" in text
    assert "Filter" not in text  # there is nothing to type on paper


@pytest.mark.slow
def test_on_a_phone_nothing_is_wider_than_the_page(page) -> None:
    wide, shown = seen(
        page,
        """return [document.documentElement.scrollWidth,
      document.documentElement.clientWidth];""",
        "--window-size=390,800",
    )
    assert wide <= shown


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_listed_and_sorted(tmp_path) -> None:
    n = 100_000
    numbers = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    sides = ["above" if number % 3 else "below" for number in numbers.tolist()]
    table = pd.DataFrame({"number": numbers.numpy(), "side": sides})
    path = tmp_path / "many.html"
    Report("Many?", ["All."], {"rows": "100,000"}, table).write(path)
    found = seen(
        path,
        f"""{HEADS} {FILTER}
      head("number").click();
      const holder = document.querySelector(".list .rows");
      const made = document.querySelectorAll(".list tbody tr").length;
      holder.scrollTop = holder.scrollHeight;
      holder.dispatchEvent(new Event("scroll"));
      filter("number<1000");
      {ROWS}
      return [made, rows.slice(0, 3).map(row => row[0]), status(), holder.scrollHeight];
      """,
    )
    made, first, status, height = found
    assert made < 200  # what is out of sight is not made
    assert first == ["0", "1", "2"]
    assert status == "1000 of 100000 rows"
    assert height < 40_000
