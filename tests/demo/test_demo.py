"""The demo runs, tells the truth about its twin, and says so when the twin is another."""

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import retroact as ra
from retroact.cli.console import Console
from retroact.cli.demo.history import run
from retroact.cli.demo.history import show as demo
from retroact.cli.demo.shop import Shop, open_shop
from retroact.cli.demo.story import Story

ROUNDS, SEED = 60, 7
ERASED_AT, LATER = 36, 25


@dataclass(frozen=True)
class Result:
    text: str
    page: str


def plain(width: int = 80) -> Console:
    return Console(io.StringIO(), width=width)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def result(folder: Path, *, rounds: int = ROUNDS, seed: int | None = SEED, width: int = 80) -> Result:
    console, name = plain(width), f"page-{width}.html"
    demo(out=folder / name, rounds=rounds, seed=seed, console=console)
    text = printed(console).replace(str(folder / name), "PAGE")
    return Result(text, (folder / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return result(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def shop() -> Shop:
    return open_shop(ROUNDS, SEED)


@pytest.fixture(scope="module")
def story(shop: Shop) -> Story:
    return run(shop, ra.Key.for_testing(SEED), plain())


def test_it_tells_what_happened(once: Result, shop: Shop) -> None:
    assert f"Round {ERASED_AT}: erased customer {shop.leaver} ({shop.erased()} orders" in once.text
    assert f"same stream without customer {shop.leaver}:" in once.text
    assert f"{LATER} of {LATER} later rounds identical ✔" in once.text
    assert "ε = 1, δ = 1e-6 for one order added or removed" in once.text
    assert "PAGE" in once.text


def test_the_same_seed_gives_the_same_bytes(once: Result, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert result(tmp_path / "elsewhere") == once


def test_without_a_seed_the_shop_is_the_same_and_the_noise_is_new(tmp_path: Path) -> None:
    first, second = (result(tmp_path, rounds=20, seed=None) for _ in range(2))
    erased = re.compile(r"Round \d+: erased customer \d+ .*")
    assert erased.findall(first.text) == erased.findall(second.text) != []
    assert first.page != second.page


@pytest.mark.parametrize("width", [80, 120])
def test_plain_text_fits_and_carries_no_codes(width: int, tmp_path: Path) -> None:
    text = result(tmp_path, rounds=20, width=width).text
    assert "\x1b" not in text
    assert "Publishing" not in text  # the progress bar
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_on_a_terminal_the_progress_bar_goes_and_the_tick_is_green(tmp_path: Path) -> None:
    console = Console(io.StringIO(), width=100, terminal=True)
    demo(out=tmp_path / "page.html", rounds=20, seed=SEED, console=console)
    text = printed(console)
    assert "Publishing 6 statistics over 20 rounds" in text
    assert "\x1b[1;32m9 of 9 later rounds identical ✔" in text
    after = text[text.rindex("\x1b[2K") :]  # the last time the bar is wiped away
    assert "Published 6 statistics" in after
    assert "━" not in after


def test_the_twin_numbers_are_right(story: Story, shop: Shop) -> None:
    """The noise cancels exactly, so the difference of published counts is the number of the customer's orders."""
    orders = shop.of(shop.leaver)
    differences = dict(story.differences)
    current = 0.0
    for round in range(1, ROUNDS + 1):
        current = differences.get(round, current)
        assert current == sum(order.first <= round < order.gone for order in orders)
    assert (story.identical, story.later, story.earlier) == (LATER, LATER, ERASED_AT - 1)
    assert story.differing == sum(
        any(order.first <= round < order.gone for order in orders) for round in range(1, ERASED_AT)
    )
    assert story.placed == len(orders) == story.erased + story.cancelled
    assert all(p.released == p.twin for p in story.points if p.round >= ERASED_AT)


def test_the_truth_is_near_what_is_published(story: Story) -> None:
    for line in [*story.lines, *story.countries]:
        assert line.value is not None
        assert abs(line.value - line.true) <= 3 * (line.high - line.low) / 2, line.label
    for point in story.points:
        assert abs(point.released - point.true) <= 3 * (point.high - point.low) / 2


def test_a_twin_with_one_record_more_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = Shop.without

    def one_more(shop: Shop, customer: int) -> Shop:
        twin = without(shop, customer)
        extra = replace(twin.orders[0], id="extra", first=ERASED_AT + 1, gone=ROUNDS + 1, cancelled=False)
        return replace(twin, orders=(*twin.orders, extra))

    monkeypatch.setattr(Shop, "without", one_more)
    console = Console(io.StringIO(), width=100, terminal=True)
    with pytest.raises(
        ra.VerificationError, match=f"{LATER - 1} of {LATER} rounds .* the first is round {ERASED_AT + 1}"
    ):
        demo(out=tmp_path / "page.html", rounds=ROUNDS, seed=SEED, console=console)
    assert f"\x1b[1;31m1 of {LATER} later rounds identical ✘" in printed(console)
    assert not (tmp_path / "page.html").exists()


def test_a_customer_who_is_not_erased_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ra.Stream, "erase", lambda self, *, subject: None)
    with pytest.raises(ra.VerificationError, match="9 of 9 rounds"):
        demo(out=tmp_path / "page.html", rounds=20, seed=SEED, console=plain())


def test_what_cannot_be_done_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ra.InputError, match="between 10 and 100,000 rounds, got 9 - at rounds"):
        demo(out=tmp_path / "page.html", rounds=9, console=plain())
    with pytest.raises(ra.InputError, match="a folder that exists"):
        demo(out=tmp_path / "nowhere" / "page.html", console=plain())
    with pytest.raises(ra.InputError, match="is a directory"):
        demo(out=tmp_path, console=plain())


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_shop_works_too(seed: int, tmp_path: Path) -> None:
    console = plain()
    demo(out=tmp_path / "page.html", rounds=10, seed=seed, console=console)
    assert "5 of 5 later rounds identical ✔" in printed(console)


def test_the_page_is_opened_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    demo(out=tmp_path / "page.html", rounds=10, seed=1, open_page=True, console=plain())
    assert opened == [(tmp_path / "page.html").as_uri()]
