"""Hostile names on every page and in every picture: they are shown, and do nothing."""

import ast
import dataclasses
import io
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

import retroact as ra
from retroact.audit.claims import Obligation
from retroact.audit.page import page as audit_page
from retroact.audit.pictures import pictures
from retroact.audit.report import report_on
from retroact.audit.result import Control, Result, curve
from retroact.audit.target import Target
from retroact.cli.console import Console
from retroact.cli.demo.history import run
from retroact.cli.demo.page import page as demo_page
from retroact.cli.demo.shop import open_shop
from retroact.escape import printable
from retroact.report.axes import Panel, legend
from retroact.report.page import TEMPLATES, render
from retroact.report.svg import document, element, picture, rectangle, segment, text
from retroact.statistics.clusters.centres import Centres

SOURCE = Path(ra.__file__).parent
HOSTILE = "</title></style><script>alert(1)</script><img src=x onerror=\"alert('1')\">&amp;\u202ee\u2066\u200f\x1b[2J\n"
SHOWN = printable(HOSTILE)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


def harmless(written, least=1):
    """No element, attribute or mark of direction that was not ours; and what was said can be read."""
    tags = Tags()
    tags.feed(written)
    assert not {"script", "img", "link", "iframe", "object"} & {*tags.names}
    assert not [name for name in tags.attributes if name in ("style", "src", "href") or name.startswith("on")]
    assert all(line.isprintable() for line in written.split("\n"))
    assert unescape(written).count(SHOWN) >= least


def bad_result(**changes):
    fields = dict.fromkeys(("test", "question", "tried", "found", "detectable"), HOSTILE)
    curves = {
        "claimed": curve([(0, 1), (1, 0)]), "measured": curve([(0.5, 0.4)]), "one": curve([(1, 3), (2, 5)]),
        "other": curve([(1, 2), (2, 5)]), "unite": curve([(2, 0)]),
        HOSTILE: curve([(1, 1)]),
    }  # fmt: skip
    given = {
        "part": "privacy", "runs": 3, "verdict": "violation", "curves": curves, "measured": {HOSTILE: HOSTILE},
        "control": Control(bug=HOSTILE, caught=True, how=HOSTILE), "counterexample": [HOSTILE, HOSTILE], **fields,
    }  # fmt: skip
    return Result(**given | changes)


@pytest.mark.parametrize("verdict", ["passed", "violation", "inconclusive"])
def test_the_page_of_an_audit(verdict):
    spec = ra.Specification({"a": ra.Integer(0, 9)}, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    made = report_on(
        Target.stream(spec, name=HOSTILE), [bad_result(verdict=verdict)], seconds=1.0, seed=1, effort="quick",
        confidence=0.9,
    )  # fmt: skip
    obligation = Obligation(**dict.fromkeys(Obligation.__struct_fields__, HOSTILE))
    made = msgspec.structs.replace(
        made, program=HOSTILE, model=[HOSTILE], obligations=[obligation],
        claim=msgspec.structs.replace(made.claim, unit=HOSTILE, measure=HOSTILE, promises=[HOSTILE], epsilon=HOSTILE,
                                      retroactivity=HOSTILE, delta=HOSTILE),
        environment=msgspec.structs.replace(made.environment, platform=HOSTILE, versions={HOSTILE: HOSTILE}),
    )  # fmt: skip
    harmless(audit_page(made, public_key=HOSTILE), least=40)


def test_the_pictures_of_an_audit():
    drawn = pictures(bad_result(), "p")
    assert {*drawn} == {"tradeoff", "twins"}
    for svg in drawn.values():
        harmless(svg)
        ElementTree.fromstring(svg)


def test_the_page_of_the_demo():
    story = run(open_shop(20, 1), ra.Key.for_testing(1), Console(io.StringIO()))
    line = dataclasses.replace(story.lines[0], label=HOSTILE, prefix=HOSTILE)
    changed = dataclasses.replace(
        story,
        lines=(line,) * len(story.lines),
        countries=tuple(dataclasses.replace(line, label=HOSTILE) for line in story.countries),
        names=dict.fromkeys(story.names, (HOSTILE, HOSTILE, 0)),
        guarantee=dataclasses.replace(story.guarantee, unit=HOSTILE, promises=(HOSTILE,)),
        version=HOSTILE,
    )
    written = demo_page(changed)
    harmless(written, least=40)
    for svg in re.findall(r"<svg.*?</svg>", written, re.DOTALL):
        ElementTree.fromstring(svg)


def hostile_stream():
    """A stream whose statistics, columns, groups, and bins have such names."""
    fields = {"city" + HOSTILE: ra.Text(), "sort" + HOSTILE: ra.Category(["b", HOSTILE])}
    number, x, y = "age" + HOSTILE, "x" + HOSTILE, "y" + HOSTILE
    fields |= {number: ra.Integer(0, 120), x: ra.Number(0, 1), y: ra.Number(0, 1)}
    city, sort, *_ = fields
    statistics = {
        "count" + HOSTILE: ra.Count(), "bins" + HOSTILE: ra.Histogram(city),
        "pairs" + HOSTILE: ra.Histogram([city, sort]),
        "groups" + HOSTILE: ra.GroupBy(sort, ra.Count()), "middle" + HOSTILE: ra.Quantiles(number, [0.5]),
        "centres" + HOSTILE: ra.KMeans([x, y], 2), "line" + HOSTILE: ra.Ridge(target=number, columns=[x, y]),
    }  # fmt: skip
    stream = ra.Stream(fields, statistics, epsilon=200.0, delta=1e-5, horizon=4, key=ra.Key.for_testing(1))
    for _ in range(2):
        rows = [{city: f"{HOSTILE}{i % 3}", sort: HOSTILE, number: i % 90, x: 0.5, y: (i % 7) / 7} for i in range(400)]
        stream.add(rows)
        stream.close_round()
    return stream


@pytest.fixture(scope="module")
def hostile():
    return hostile_stream()


def test_the_page_of_releases(hostile):
    written = hostile.releases().page()
    harmless(written, least=40)
    for name in ("count", "bins", "pairs", "groups", "middle", "centres", "line"):
        assert name + SHOWN in unescape(written)
    for svg in re.findall(r"<svg.*?</svg>", written, re.DOTALL):
        ElementTree.fromstring(svg)


def test_the_tables_in_notebooks(hostile):
    for shown in (hostile.releases(), hostile.plan()):
        harmless(shown._repr_html_(), least=7)


def test_the_page_of_a_run_from_a_file_with_such_a_name(tmp_path, monkeypatch):
    """In names of files, columns, statistics and values."""
    from retroact.cli import main

    monkeypatch.chdir(tmp_path)
    mark = "<script>alert('1')</script>\u202e\""
    file = Path(mark.replace("/", "\\") + ".csv")
    quoted = '"' + mark.replace('"', '""') + '"'
    file.write_text(f"{quoted},b\n" + f"{quoted},1\n" * 300)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(file), "--histogram", mark, "--sum", "b:0..3", "--epsilon", "90", "--delta", "1e-6",
              "--rounds", "1", "--html", "page.html", "--out", "out.jsonl", "-q"])  # fmt: skip
    assert ended.value.code == 0
    written = Path("page.html").read_text()
    harmless(written, least=0)
    assert unescape(written).count(printable(mark)) >= 3


def test_the_picture_of_centres():
    points = np.array([[0.0, 1.0], [2.0, 5.0]])
    found = Centres(points, np.array([3.0, 4.0]), columns=("x" + HOSTILE, "y" + HOSTILE), notes=("a", HOSTILE))
    written = found.picture(points)
    harmless(written, least=0)
    assert "script" in unescape(written)
    ElementTree.fromstring(written)


@pytest.mark.parametrize(
    "drawn",
    [
        text(0, 0, HOSTILE, HOSTILE, HOSTILE),
        segment(0, 0, 1, 1, HOSTILE),
        rectangle(0, 0, 1, 1, HOSTILE, HOSTILE),
        picture(HOSTILE, 1, 1, HOSTILE, HOSTILE, text(0, 0, HOSTILE)),
        document(1, 1, HOSTILE, HOSTILE, "", text(0, 0, HOSTILE), HOSTILE),
        legend([("line", HOSTILE, HOSTILE), ("dot", HOSTILE, HOSTILE), ("area", HOSTILE, HOSTILE)], 0, 0, 100)[0],
        Panel(0, 0, 1, 1, (0, 1), (0, 1)).axis([0, 1], unit=HOSTILE),
        Panel(0, 0, 1, 1, (0, 1), (0, 1)).line([(0, 0), (1, 1)], HOSTILE, stroke=HOSTILE),
        element("g", HOSTILE, id=HOSTILE, fill=HOSTILE),
    ],
)
def test_every_part_of_the_kit_escapes_its_own_text(drawn):
    harmless(drawn)


def test_a_template_escapes_whatever_it_is_given():
    harmless(render("base.html", title=HOSTILE, badge=HOSTILE), least=3)


def test_a_value_that_a_template_lacks_is_an_error():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("base.html", badge="no title")


MARKUP = re.compile(r"</\w|(?<!\?P)<(?!class |lambda>)[a-z]+( [a-z-]+=|/?>)|\bstyle=|\bon[a-z]+=[\"']")


def test_no_markup_is_written_outside_the_kit_and_the_templates():
    """Neither by an f-string nor by any other; and nothing but the kit says that something is safe."""
    kit = {SOURCE / "report" / "svg.py"}
    for path in sorted({*SOURCE.rglob("*.py")} - kit):
        tree = ast.parse(path.read_text())
        rooms = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        words = {node.body[0].value for node in rooms if ast.get_docstring(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in words:
                assert not MARKUP.search(node.value), f"{path}:{node.lineno}: {node.value!r}"
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Markup":
                assert [getattr(one, "value", None) for one in node.args] == [""], f"{path}:{node.lineno}"
    for template in TEMPLATES.iterdir():
        assert not re.search(r"\|\s*safe|autoescape|\bstyle=|\son[a-z]+=|<script|http|url\(", template.read_text())


def test_a_string_of_markup_would_be_found():
    for words in ('<p class="a">', "<b>", "</svg>", "<br/>", 'style="x"', "onclick='x'"):
        assert MARKUP.search(words)
    for words in ("1 < 2 > 0", "<class 'int'>", "a -> b"):
        assert not MARKUP.search(words)
