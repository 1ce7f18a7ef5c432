"""The page of a stream's releases, and what notebooks show."""

import re
import warnings
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.textpath import TextPath

import retroact as ra
from retroact.outputs.charts import MOST_BARS, Bars, Dots, Lines
from retroact.outputs.table import NOT_PRIVATE

mpl.use("Agg")
SCHEMA = {
    "city": ra.Text(), "sort": ra.Category(["<script>", "b"]), "age": ra.Integer(0, 120), "x": ra.Number(0, 1),
    "y": ra.Number(0, 1), "day": ra.Date("2026-01-01", "2026-12-31"),
}  # fmt: skip
STATISTICS = {
    "people": ra.Count(), "cities": ra.Histogram("city"), "by sort": ra.GroupBy("sort", ra.Count()),
    "age": ra.Quantiles("age", [0.25, 0.5, 0.75]), "days": ra.Quantiles("day", [0.5]),
    "places": ra.KMeans(["x", "y"], 2), "on a line": ra.KMeans(["x"], 2),
    "a & b": ra.Mean("age", where={"sort": "b"}),
}  # fmt: skip


def closed(rounds=3, *, key=None, horizon=10, place=None, grid=None):
    """A stream after some rounds."""
    limits = {"epsilon": 60.0, "delta": 1e-5, "key": key}
    limits |= {"horizon": horizon} if grid is None else {"rounds": grid}
    if place is None:
        stream = ra.Stream(SCHEMA, STATISTICS, **limits)
    else:
        stream = ra.Stream.open(place, SCHEMA, STATISTICS, **limits)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        size = 2500
        stream.add({
            "city": [f"city {i}" for i in rng.integers(0, 30, size)], "sort": ["b"] * size,
            "age": rng.integers(0, 99, size), "x": rng.random(size), "y": rng.random(size),
            "day": ["2026-05-01"] * size,
        })  # fmt: skip
        stream.close_round()
    return stream


class Parsed(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]


@pytest.fixture(scope="module")
def page():
    return closed(key=ra.Key.for_testing(1)).releases().page()


def test_a_page_is_one_file_without_scripts_and_styles_of_elements(page):
    parsed = Parsed(page)
    assert "script" not in parsed.tags
    assert {"link", "img", "iframe"}.isdisjoint(parsed.tags)
    assert [name for _, name, _ in parsed.attributes if name == "style" or name.startswith("on")] == []
    assert [value for _, name, value in parsed.attributes if name in ("src", "href")] == []
    assert "&lt;script&gt;" in page
    assert "<h2>a &amp; b</h2>" in page
    ids = [value for _, name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    # our own words need no escapes
    assert "\\x" not in page


def test_every_statistic_has_a_chart_with_a_text_and_its_table(page):
    for name in STATISTICS:
        escaped = name.replace("&", "&amp;")
        assert f"<h2>{escaped}</h2>" in page
        titles = re.findall(rf"<title[^>]*>{re.escape(escaped)}: published values with 95 % intervals</title>", page)
        assert len(titles) == 2, "wide and narrow"
    assert page.count("<details>") == len(STATISTICS)
    assert len(re.findall(r"<desc[^>]*>[^<]{20,}</desc>", page)) == 2 * len(STATISTICS)
    assert "and 10 more" in page, "30 cities, of which 20 are drawn"
    assert page.count(">threshold<") == 2


def test_a_page_says_what_is_protected_what_it_cost_and_how_many_rounds_are_left(tmp_path):
    real = closed().releases().page()
    for words in (
        "What is protected", "What it cost", "How many rounds are left",
        "3 of 10 promised rounds are published, 7 are left",
        "budget adds to those of all other published runs over the same people", "--store",
    ):  # fmt: skip
        assert words in real
    assert NOT_PRIVATE not in real
    assert NOT_PRIVATE in closed(key=ra.Key.for_testing(1)).releases().page()
    assert "all 2 promised rounds are published" in closed(2, horizon=2).releases().page()
    with closed(1, place=tmp_path / "s", horizon=None) as stored:
        page = stored.releases().page()
    assert "No number of rounds was promised" in page
    assert "publication by itself" not in page


def test_a_page_of_no_releases():
    assert "Nothing has been published yet." in closed(0).releases().page()


def test_a_page_of_some_rounds_does_not_say_that_others_are_not_published():
    stream = closed(3, horizon=3)
    none = stream.releases(99).page()
    assert "Nothing has been published yet." not in none
    assert "Nothing was published in the rounds that this page is about; 3 rounds of the stream are published." in none
    some = stream.releases(2).page()
    assert "rounds on this page" in some
    assert "rounds published" not in some
    assert "rounds published" in stream.releases().page()


def test_one_round_is_not_called_rounds():
    stream = closed(1, horizon=1)
    page = stream.releases().page()
    assert "None: the only promised round is published." in page
    plan = stream.plan()
    for text in (page, str(plan), *plan.remarks, repr(stream.erase(subject="u1"))):
        assert not re.search(r"\b1 (\w+ )?(rounds|records|subjects|releases|erasures)\b", text), text
    assert "1 round; means and variances" in str(plan)
    with pytest.raises(ra.ExhaustedError, match="the only promised round is released"):
        stream.close_round()


def test_charts_by_the_form_of_a_statistic():
    stream = closed(key=ra.Key.for_testing(1))
    charts = {chart.statistic: chart for chart in stream._charts()}
    assert {name: type(chart) for name, chart in charts.items()} == {
        "people": Lines, "cities": Bars, "by sort": Bars, "age": Lines, "days": Lines, "places": Dots,
        "on a line": Dots, "a & b": Lines,
    }  # fmt: skip
    assert list(charts["age"].series) == ["25 %", "50 %", "75 %"]
    cities = charts["cities"]
    assert (len(cities.bars), cities.more, cities.by) == (MOST_BARS, 10, "city")
    assert cities.threshold == stream.releases()._core.specification.bounds["cities"].threshold.at(3)
    values = [mark.value for mark in cities.bars]
    assert values == sorted(values, reverse=True)
    assert charts["by sort"].threshold is None


def test_plots_return_their_axes():
    stream = closed(rounds=4, key=ra.Key.for_testing(1))
    ax = stream.plot("people")
    assert [line.get_xydata()[:, 0].tolist() for line in ax.get_lines()] == [[1, 2, 3, 4]]
    assert ax.get_title() == f"people ({NOT_PRIVATE})"
    assert len(stream.plot("age").get_lines()) == 3
    bars = stream.plot("cities")
    assert len(bars.patches) == MOST_BARS
    own = mpl.pyplot.figure().add_subplot()
    assert stream.plot("places", ax=own) is own
    assert len(stream.plot()) == len(STATISTICS)
    last = stream.close_round()
    assert last["people"].plot().get_title().startswith("people")
    assert stream.plan().plot().get_xlabel().startswith("± 95 %")
    for wrong, words in ((("nothing",), "expected one of people, cities"), ((), "for these Axes")):
        with pytest.raises(ra.InputError, match=words):
            stream.plot(*wrong, ax=own)
    with pytest.raises(ra.InputError, match="expected a release to plot, got none"):
        closed(0).plot()
    mpl.pyplot.close("all")


def test_a_grid_gives_the_axis_its_days():
    grid = {"start": "2026-03-28", "length": "1d", "end": "2026-04-04", "time_zone": "Europe/Berlin"}
    stream = closed(4, grid=grid)
    page = stream.releases().page()
    assert ">2026-03-28</text>" in page
    assert "start of the round" in page
    starts = [time.isoformat() for time in stream.to_pandas()["start"].unique()]
    assert starts[1:3] == ["2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"]


def test_labels_of_days_are_evenly_spaced():
    grid = {"start": "2026-01-01", "length": "1d", "end": "2026-01-14"}
    stream = ra.Stream(
        {"n": ra.Integer(0, 9)}, {"people": ra.Count()}, epsilon=1.0, rounds=grid, key=ra.Key.for_testing(1)
    )
    for _ in range(13):
        stream.close_round()
    wide = stream.releases().page().split("<svg")[1]
    days = [int(day) for day in re.findall(r">2026-01-(\d\d)</text>", wide)]
    assert days[0] == 1
    assert days == list(range(1, 14, days[1] - days[0]))


def test_a_gap_in_a_line_is_explained():
    stream = ra.Stream({"n": ra.Integer(0, 9)}, {"n": ra.Mean("n")}, epsilon=1.0, horizon=2, key=ra.Key.for_testing(1))
    stream.close_round()
    stream.add({"n": [5] * 5000})
    stream.close_round()
    page = stream.releases().page()
    assert "too few records to tell it from the noise" in page


def test_names_of_bars_stay_inside_the_picture():
    """Capitals are wider than other letters, and DejaVu Sans is wider than most fonts."""
    names = ["SOUTHWEST AIRLINES AND OTHERS", "GÖTEBORG ÖSTRA", "miniature illumination", "a"]
    stream = ra.Stream({"who": ra.Category(names)}, {"n": ra.GroupBy("who", ra.Count())}, epsilon=1.0, horizon=2)
    stream.close_round()
    drawn = re.findall(r'<text x="([\d.]+)" [^>]*text-anchor="end"[^>]*>([^<]+)</text>', stream.releases().page())
    assert len(drawn) == 2 * len(names), "in a wide and in a narrow picture"
    for x, name in drawn:
        assert TextPath((0, 0), name, size=13).get_extents().width <= float(x), name


NOTEBOOK = """
import retroact as ra
stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count(), "age": ra.Quantiles("age")},
                   epsilon=1.0, delta=1e-6, horizon=10)
stream.plan()
---
stream.add({"age": list(range(18, 90)) * 20})
first = stream.close_round()
first
---
second = stream.close_round()
stream.plot("age")
---
stream
"""


def test_a_notebook_shows_a_plan_a_round_and_a_plot(tmp_path):
    client, format = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [format.v4.new_code_cell(source.strip()) for source in NOTEBOOK.split("---")]
    notebook = format.v4.new_notebook(cells=cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kernel's machinery
        client.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    plan, round, plot, stream = (cell.outputs for cell in notebook.cells)
    assert "Expected errors, before anything is released" in plan[-1].data["text/html"]
    assert "<b>Round 1</b>" in round[-1].data["text/html"]
    assert "<td>people</td>" in round[-1].data["text/html"]
    assert [1 for output in plot if output.get("data", {}).get("image/png")]
    assert "Stream, rounds 1 to 2" in stream[-1].data["text/html"]
