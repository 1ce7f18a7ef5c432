"""The page of an audit: complete, escaped, asking for nothing; and pictures whose texts do not lie over each other."""

import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest

from retroact.audit.page import page
from retroact.audit.pictures import WIDTH, pictures
from retroact.audit.report import sign, verify
from retroact.audit.result import curve
from retroact.report.axes import LETTER
from support.report_samples import ADAPTIVE, LIKELIHOOD, MISSED, RECONSTRUCTION, RESULTS, TWIN, VIOLATION, report

replace = msgspec.structs.replace
SECTIONS = [
    "What is claimed", "Under which model", "What was tried", "What could have been detected", "What was found",
    "Pictures", "What this does not show", "How to check this report", "Six words",
]  # fmt: skip


class Tags(HTMLParser):
    VOID = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.names, self.attributes, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


@pytest.mark.parametrize(
    ("results", "title"),
    [
        (RESULTS, "No violation found."),
        ([*RESULTS, VIOLATION], "A promise is broken."),
        ([MISSED], "This audit says nothing."),
    ],
)
def test_a_page_is_whole_and_asks_for_nothing(results, title):
    text = page(report(*results), public_key="ab" * 32)
    tags = parsed(text)
    assert f"<h1>{title}</h1>" in text
    assert [name for name in SECTIONS if f"<h2>{name}</h2>" not in text] == []
    assert not {"script", "link", "img", "iframe", "object"} & set(tags.names)
    assert not [value for name, value in tags.attributes if name in ("src", "href", "style") or name.startswith("on")]
    assert not re.search(r"url\(|@import|http", text)
    assert len(tags.ids) == len(set(tags.ids))


def test_the_same_report_gives_the_same_bytes():
    made = report()
    assert page(verify(sign(made, bytes(32)), place="r")) == page(made) == page(report())


def test_all_that_a_report_says_is_on_its_page():
    made = report(*RESULTS, VIOLATION)
    text = unescape(re.sub(r"<[^>]+>", "\n", page(made, public_key="cd" * 32)))
    for result in made.results:
        said = [result.test, result.question, result.tried, result.found, f"{result.runs:,}", *result.counterexample]
        said += [result.detectable] if result.verdict != "not applicable" else []
        said += [result.control.bug, result.control.how] if result.control else []
        assert [one for one in [*said, *result.measured.values()] if one not in text] == []
    claim = made.claim
    for one in (claim.unit, claim.retroactivity, *claim.promises, *made.model, "cd" * 32, "seed 1", "effort quick"):
        assert one in text
    for owed in made.obligations:
        assert {owed.law, owed.sensitivity} <= set(text.split("\n"))
    assert "lower bounds never prove privacy" in text
    assert "retroact audit --reproduce report.json --public-key " + "cd" * 32 in text


def test_everything_is_escaped():
    nasty = "<img src=x onerror=alert(1)>&\"'"
    fields = dict.fromkeys(("test", "question", "tried", "found", "detectable"), nasty)
    control = replace(TWIN.control, bug=nasty, how=nasty)
    curves = {**TWIN.curves, **LIKELIHOOD.curves, **RECONSTRUCTION.curves, nasty: curve([(1, 1)])}
    result = replace(TWIN, **fields, control=control, measured={nasty: nasty}, counterexample=[nasty], curves=curves)
    made = report(result)
    made = replace(
        made, target=nasty, program=nasty, model=[nasty], claim=replace(made.claim, unit=nasty, measure=nasty)
    )
    text = page(made, public_key=nasty)
    assert "<img" not in text
    assert unescape(text).count(nasty) >= 15
    parsed(text)


def test_void_tests_are_called_void():
    text = page(report(MISSED, TWIN))
    assert '<td class="mark-cell void">void</td>' in text
    assert "NO" in re.findall(r"<td class=\"mark-cell\">(\w+)</td>", text)
    assert "1 of 2" in text


def test_silent_tests_are_counted():
    assert "3 passed, 0 violation, 1 inconclusive, 1 not applicable" in page(report())
    text = page(report(ADAPTIVE))
    assert "<h1>This audit says nothing.</h1>" in text
    assert "0 passed, 0 violation, 1 inconclusive, 0 not applicable" in text


def test_pictures_come_in_the_order_of_what_they_show():
    def kinds(*results):
        return re.findall(r"-(tradeoff|twins)-title\"", re.sub(r"aria-\S+", "", page(report(*results))))

    assert kinds(RECONSTRUCTION, TWIN, LIKELIHOOD) == kinds(*RESULTS) == ["tradeoff", "twins"]
    assert kinds(TWIN, LIKELIHOOD, TWIN, LIKELIHOOD) == ["tradeoff", "tradeoff", "twins", "twins"]


def test_a_target_without_a_specification_is_not_run_again_by_command():
    text = page(replace(report(), specification=None))
    assert "<pre><code>retroact audit" not in text


def drawn(result):
    return [ElementTree.fromstring(svg) for svg in pictures(result, "p").values()]


def texts(svg):
    """The rectangles that the texts take, by a generous width of letters."""
    for element in svg.iter("text"):
        x, y, width = float(element.get("x")), float(element.get("y")), LETTER * len(element.text)
        left = x - {"end": width, "middle": width / 2}.get(element.get("text-anchor"), 0)
        yield left, y - 11, left + width, y + 3, element.text


@pytest.mark.parametrize(
    "result",
    [
        TWIN,
        LIKELIHOOD,
        replace(TWIN, curves={"one": curve([(1, 7)]), "other": curve([(1, 7)]), "unite": curve([(1, 0)])}),
        replace(TWIN, curves={k: [(x, f"{float(y) * 1e6}") for x, y in v] for k, v in TWIN.curves.items()}),
        replace(TWIN, curves={k: [(x, f"{float(y) * 1e-3}") for x, y in v] for k, v in TWIN.curves.items()}),
    ],
)
def test_texts_of_pictures_do_not_overlap_and_stay_inside(result):
    (svg,) = drawn(result)
    width, height = map(float, svg.get("viewBox").split()[2:])
    assert width == WIDTH
    found = list(texts(svg))
    for i, (left, top, right, bottom, said) in enumerate(found):
        assert -8 <= left < right <= width + 12, said
        assert 0 <= top < bottom <= height, said
        for other in found[i + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (said, other[4])


def test_curves_are_drawn_where_they_are():
    (svg,) = drawn(TWIN)
    paths = {element.get("class"): element.get("d") for element in svg.iter("path")}
    one, other = paths["line with"].split("L"), paths["line twin thick"].split("L")
    assert len(one) == len(other) == 30
    assert [i + 1 for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b] == list(range(1, 17))
    assert "differ in 16 rounds before round 17, and in 0 after" in svg.find("desc").text


def test_violations_are_drawn_as_such():
    def classes(result):
        return {element.get("class") for svg in drawn(result) for element in svg.iter("path")}

    assert "dots over" not in classes(LIKELIHOOD)
    assert "dots over" in classes(replace(LIKELIHOOD, verdict="violation"))


def test_without_enough_curves_there_is_no_picture():
    assert pictures(replace(LIKELIHOOD, curves={"measured": LIKELIHOOD.curves["measured"]}), "p") == {}
    broken = {**LIKELIHOOD.curves, "measured": curve([(0.5, float("nan"))])}
    assert pictures(replace(LIKELIHOOD, curves=broken), "p") == {}
