"""`retroact demo`: a made-up shop publishes, erases a customer, and is compared with its twin, in a few seconds.

The twin runs under the same key, which only testing keys allow. The demo shows both histories and the truth, so nothing
here is private: it can be shown because the data are made up.
"""

from __future__ import annotations

import secrets
import warnings
import webbrowser
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ... import __version__
from ...coins import Key
from ...errors import VerificationError
from ...schema import Category, Integer, Number
from ...statistics import Count, GroupBy, Mean, Sum
from ...store.targets import check_targets
from ...stream import HorizonWarning, Release, Round, Stream
from ..files import opened, put
from .page import page
from .shop import COUNTRIES, LARGEST_ORDER, ORDERS_A_ROUND, Order, Shop, open_shop
from .story import Line, Point, Story
from .text import print_check, print_story

SHOP = 1608
"""The seed of the shop that is shown when none is asked for."""
WINDOW = 7
SCHEMA = {
    "country": Category(list(COUNTRIES)),
    "amount": Number(0, LARGEST_ORDER, step=0.01),
    "age": Integer(0, 120),
}
STATISTICS = {
    "orders": Count(),
    "revenue": Sum("amount", weight=2),
    "average_order": Mean("amount"),
    "countries": GroupBy("country", Count()),
    "age": Mean("age", weight=0.5),
    "last_rounds": Count(window=WINDOW, weight=3),
}
# What a person calls each statistic, the unit before a number, and the digits behind the point.
NAMES = {
    "orders": ("orders", "", 0),
    "revenue": ("revenue", "€", 0),
    "average_order": ("average order", "€", 2),
    "countries": ("orders by country", "", 0),
    "age": ("average age of buyers", "", 1),
    "last_rounds": (f"orders, last {WINDOW} rounds", "", 0),
}
PICTURED = 360
"""Rounds in the picture, about; all others are left out so that the page stays small."""
CLOSE_UP = 16
"""Rounds on either side of the erasure that are looked at closely."""


def show(*, out: Path, rounds: int = 1000, seed: int | None = None, open_page: bool = False, console: Console) -> None:
    """Run the demo, print what it shows and write its page to ``out``."""
    check_targets([("--out", out)])
    shop = open_shop(rounds, SHOP if seed is None else seed)
    key = Key.for_testing(secrets.randbits(128) if seed is None else seed)
    # opened before the work, and put in its place after it
    with opened((out, "--out")) as outputs:
        story = run(shop, key, console)
        put(outputs, [page(story).encode()])
    print_story(story, out, console)
    if open_page:
        webbrowser.open(out.resolve().as_uri())


def run(shop: Shop, key: Key, console: Console) -> Story:
    """Both histories side by side, every round compared byte for byte."""
    shop_stream, twin_stream = _Publisher(shop, key, erased=shop.leaver), _Publisher(shop.without(shop.leaver), key)
    compared = _Comparison(shop)
    with _progress(console) as progress, warnings.catch_warnings():
        # The demo uses up its horizon on purpose.
        warnings.simplefilter("ignore", HorizonWarning)
        task = progress.add_task(
            f"Publishing {len(STATISTICS)} statistics over {shop.rounds:,} rounds", total=shop.rounds
        )
        for _ in range(shop.rounds):
            compared.add(shop_stream.publish(), twin_stream.publish())
            progress.advance(task)
    later = shop.rounds - shop.erased_at + 1
    identical = later - len(compared.differing_later)
    if compared.differing_later:
        print_check(shop.leaver, identical, later, console)
        raise VerificationError(
            f"{len(compared.differing_later)} of {later} rounds from the erasure on differ from the twin, "
            f"the first is round {compared.differing_later[0]}"
        )
    return _story(shop, shop_stream.stream, compared, identical)


class _Publisher:
    """A stream fed from a shop, round by round."""

    def __init__(self, shop: Shop, key: Key, *, erased: int | None = None) -> None:
        records = ORDERS_A_ROUND * shop.rounds
        self.stream = Stream(SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=shop.rounds, records=records, key=key)
        self._erased, self._erased_at = erased, shop.erased_at
        self._arriving: defaultdict[int, list[Order]] = defaultdict(list)
        self._cancelled: defaultdict[int, list[str]] = defaultdict(list)
        for order in shop.orders:
            self._arriving[order.first].append(order)
            if order.cancelled:
                self._cancelled[order.gone].append(order.id)

    def publish(self) -> Round:
        now = self.stream.round
        if arriving := self._arriving[now]:
            self.stream.add(
                {
                    "country": [order.country for order in arriving],
                    "amount": [order.cents / 100 for order in arriving],
                    "age": [order.age for order in arriving],
                },
                id=[order.id for order in arriving],
                subject=[str(order.customer) for order in arriving],
            )
        if cancelled := self._cancelled[now]:
            self.stream.delete(id=cancelled)
        if self._erased is not None and now == self._erased_at:
            self.stream.erase(subject=str(self._erased))
        return self.stream.close_round()


class _Comparison:
    """What is kept of two histories: where they differ, and the points of the pictures."""

    def __init__(self, shop: Shop) -> None:
        self._erased_at = shop.erased_at
        self._true = shop.counts()
        step = -(-shop.rounds // PICTURED)
        self._pictured = {*range(1, shop.rounds, step), shop.erased_at - 1, shop.erased_at, shop.rounds}
        self._close = range(shop.erased_at - CLOSE_UP, shop.erased_at + CLOSE_UP + 1)
        self.differing_earlier: list[int] = []
        self.differing_later: list[int] = []
        self.points: list[Point] = []
        self.close_up: list[Point] = []
        self.differences: list[tuple[int, float]] = []
        self.last: Round

    def add(self, published: Round, twin: Round) -> None:
        now = published.number
        if published.encode() != twin.encode():
            (self.differing_earlier if now < self._erased_at else self.differing_later).append(now)
        count, other = published["orders"], twin["orders"].value
        difference = count.value - other
        if not self.differences or self.differences[-1][1] != difference:
            self.differences.append((now, difference))
        if now in self._pictured or now in self._close:
            low, high = count.interval(0.95)
            point = Point(now, count.value, low, high, self._true[now - 1], other)
            if now in self._pictured:
                self.points.append(point)
            if now in self._close:
                self.close_up.append(point)
        self.last = published


def _story(shop: Shop, stream: Stream, compared: _Comparison, identical: int) -> Story:
    left = shop.at(shop.rounds)
    cents, ages = sum(order.cents for order in left), sum(order.age for order in left)
    true = {
        "orders": float(len(left)),
        "revenue": cents / 100,
        "average_order": cents / 100 / max(1, len(left)),
        "age": ages / max(1, len(left)),
        "last_rounds": float(sum(order.first > shop.rounds - WINDOW for order in left)),
    }
    lines = {name: _line(compared.last[name], value) for name, value in true.items()}
    by_country = compared.last["countries"]
    intervals = by_country.interval(0.95)
    countries = []
    for country, value in by_country.value.items():
        low, high = intervals[country]
        countries.append(Line(country, "", 0, value, low, high, float(sum(o.country == country for o in left))))
    placed = shop.of(shop.leaver)
    return Story(
        rounds=shop.rounds,
        customer=shop.leaver,
        erased_at=shop.erased_at,
        erased=shop.erased(),
        placed=len(placed),
        first_order=placed[0].first,
        identical=identical,
        differing=len(compared.differing_earlier),
        points=tuple(compared.points),
        close_up=tuple(compared.close_up),
        differences=tuple(compared.differences),
        lines=tuple(lines.values()),
        countries=tuple(countries),
        names=NAMES,
        plan=stream.plan(),
        guarantee=stream.guarantee,
        subject_guarantee=stream.guarantee.for_subject(len(placed)),
        version=__version__,
    )


def _line(release: Release, true: float) -> Line:
    low, high = release.interval(0.95)
    return Line(*NAMES[release.statistic], release.value, low, high, true)


def _progress(console: Console) -> Progress:
    """A progress bar; hidden without a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
