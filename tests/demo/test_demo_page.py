"""The page stands alone: it asks for nothing, reads aloud, and stays small."""

import doctest
import importlib
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import retroact as ra
from retroact.cli.console import Console
from retroact.cli.demo.history import run
from retroact.cli.demo.page import page
from retroact.cli.demo.shop import open_shop
from retroact.cli.demo.story import Story

EMPTY = {"meta", "br", "link", "img"}
LARGEST = 400_000


@pytest.fixture(scope="module")
def story() -> Story:
    return run(open_shop(60, 7), ra.Key.for_testing(7), Console(io.StringIO()))


@pytest.fixture(scope="module")
def html(story: Story) -> str:
    return page(story)


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order; ids are unique."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_it_is_well_formed(html: str) -> None:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))


def test_it_asks_for_nothing(html: str) -> None:
    parser = Balanced()
    parser.feed(html)
    assert not parser.attributes & {"src", "href", "srcset", "action", "data", "poster"}
    for word in (
        "http",
        "//",
        "url(",
        "@import",
        "@font-face",
        "<script",
        "<link",
        "<iframe",
        "/tmp",
        "/home",
        "/root",
    ):
        assert word not in html, word


def test_it_has_both_pictures_in_both_widths_with_descriptions(html: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    names = []
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        title, description = root.find("title"), root.find("desc")
        assert root.get("role") == "img"
        assert title is not None
        assert description is not None
        assert title.text
        assert description.text
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        names.append((title.get("id") or "").removesuffix("-title"))
        for path in root.iter("path"):
            assert re.fullmatch(r"[MLhvZ0-9. -]+", path.get("d") or ""), path.get("d")
    assert names == ["history-wide", "history-narrow", "countries-wide", "countries-narrow"]


def test_everything_drawn_is_inside_its_picture(html: str) -> None:
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        root = ElementTree.fromstring(picture)
        _, _, width, height = (float(number) for number in (root.get("viewBox") or "").split())
        for path in root.iter("path"):
            for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d") or ""):
                assert 0 <= float(x) <= width, path.get("class")
                assert 0 <= float(y) <= height, path.get("class")
        for text in root.iter("text"):
            assert 0 <= float(text.get("x") or -1) <= width
            assert 0 <= float(text.get("y") or -1) <= height


def test_it_shows_the_numbers(html: str, story: Story) -> None:
    for line in [*story.lines, *story.countries]:
        assert f"<td>{line.show(line.value)}</td><td>{line.interval}</td><td>{line.show(line.true)}</td>" in html
    assert f"✔ {story.identical} of {story.later}" in html
    assert "ε = 1, δ = 1e-6" in html
    assert f"ε = {story.subject_guarantee.epsilon:.3g}" in html
    assert "prefers-color-scheme:dark" in html


def test_our_own_words_need_no_escapes(html: str) -> None:
    assert "±" in html
    assert "\\x" not in html


def test_the_explanation_is_short(html: str) -> None:
    explained = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html)
    assert [head for head, _ in explained] == ["What is seen", "What is private", "What is retroactive"]
    assert len(" ".join(f"{head} {body}" for head, body in explained).split()) <= 120


def test_it_stays_small_for_long_streams(story: Story) -> None:
    """As many points as 360 pictured rounds give, and a customer with as many orders as rounds."""
    long = story.__class__(
        **{
            **vars(story),
            "points": tuple(story.points[i % len(story.points)] for i in range(370)),
            "differences": tuple((i + 1, float(i % 50)) for i in range(2000)),
        }
    )
    assert len(page(long).encode()) < LARGEST


@pytest.mark.parametrize("name", ["history", "shop", "text", "page", "pictures", "story"])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"retroact.cli.demo.{name}")).failed == 0
