"""`retroact demo`: a made-up shop publishes, erases a customer, and is compared with its twin, in a few seconds.

The twin runs under the same key, which only testing keys allow. The demo shows both histories and the truth: nothing
here is private, and that is fine because the data are made up.
"""

from __future__ import annotations

import secrets
import warnings
import webbrowser
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ... import __version__
from ...coins import Key
from ...errors import VerificationError
from ...schema import Category, Integer, Number
from ...statistics import Count, GroupBy, Mean, Sum
from ...store.targets import check_targets
from ...stream import HorizonWarning, Round, Stream
from ..console import Console
from ..files import opened, put
from ..progress import Progress
from .page import page
from .shop import COUNTRIES, LARGEST_ORDER, ORDERS_A_ROUND, Order, Shop, open_shop
from .story import Line, PublishedCount, Story
from .text import print_check, print_story

SHOP = 1608
"""The seed of the shop that is shown by default."""
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
# The label of each statistic, the unit before a number, and the digits after the point.
NAMES = {
    "orders": ("orders", "", 0),
    "revenue": ("revenue", "€", 0),
    "average_order": ("average order", "€", 2),
    "countries": ("orders by country", "", 0),
    "age": ("average age of buyers", "", 1),
    "last_rounds": (f"orders, last {WINDOW} rounds", "", 0),
}
PICTURED = 360
"""About how many rounds the picture has; the others are left out to keep the page small."""
CLOSE_UP = 16
"""Rounds in the close-up, on either side of the erasure."""


def show(*, out: Path, rounds: int = 1000, seed: int | None = None, open_page: bool = False, console: Console) -> None:
    """Run the demo, print what it shows and write its page to ``out``."""
    check_targets([("--out", out)])
    shop = open_shop(rounds, SHOP if seed is None else seed)
    key = Key.for_testing(secrets.randbits(128) if seed is None else seed)
    with opened((out, "--out")) as outputs:
        story = run(shop, key, console)
        put(outputs, [page(story).encode()])
    print_story(story, out, console)
    if open_page:
        webbrowser.open(out.resolve().as_uri())


def run(shop: Shop, key: Key, console: Console) -> Story:
    """Both histories side by side, every round compared byte for byte."""
    records = ORDERS_A_ROUND * shop.rounds
    limits: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "horizon": shop.rounds, "records": records, "key": key}
    stream, twin_stream = (Stream(SCHEMA, STATISTICS, **limits) for _ in range(2))
    twin = shop.without(shop.leaver)
    histories = zip(_published(stream, shop, erase=True), _published(twin_stream, twin), shop.counts(), strict=True)
    points: list[PublishedCount] = []
    differing: list[int] = []
    with Progress(console, shop.rounds, shown=console.is_terminal, patience=0) as progress, warnings.catch_warnings():
        # The demo uses up its horizon on purpose.
        warnings.simplefilter("ignore", HorizonWarning)
        for published, other, true in histories:
            if published.encode() != other.encode():
                differing.append(published.number)
            count = published["orders"]
            low, high = count.interval(0.95)
            points.append(PublishedCount(published.number, count.value, low, high, true, other["orders"].value))
            text = f"Publishing {len(STATISTICS)} statistics over {shop.rounds:,} rounds"
            progress.update(published.number, text)
    wrong = [number for number in differing if number >= shop.erased_at]
    later = shop.rounds - shop.erased_at + 1
    if wrong:
        print_check(shop.leaver, later - len(wrong), later, console)
        raise VerificationError(
            f"{len(wrong)} of {later} rounds from the erasure on differ from the twin, the first is round {wrong[0]}"
        )
    return _story(shop, stream, published, points, len(differing))


def _published(stream: Stream, shop: Shop, *, erase: bool = False) -> Iterator[Round]:
    """The rounds of a stream that is fed from a shop."""
    arriving: defaultdict[int, list[Order]] = defaultdict(list)
    cancelled: defaultdict[int, list[str]] = defaultdict(list)
    for order in shop.orders:
        arriving[order.first].append(order)
        if order.cancelled:
            cancelled[order.gone].append(order.id)
    for now in range(1, shop.rounds + 1):
        if orders := arriving[now]:
            records = {name: [getattr(order, name) for order in orders] for name in SCHEMA}
            stream.add(records, id=[each.id for each in orders], subject=[str(each.customer) for each in orders])
        if cancelled[now]:
            stream.delete(id=cancelled[now])
        if erase and now == shop.erased_at:
            stream.erase(subject=str(shop.leaver))
        yield stream.close_round()


def _story(shop: Shop, stream: Stream, last: Round, points: list[PublishedCount], differing: int) -> Story:
    left, placed = shop.at(shop.rounds), shop.of(shop.leaver)
    count, revenue = len(left), sum(order.cents for order in left) / 100
    true = {
        "orders": count,
        "revenue": revenue,
        "average_order": revenue / max(1, count),
        "age": sum(order.age for order in left) / max(1, count),
        "last_rounds": sum(order.first > shop.rounds - WINDOW for order in left),
    }
    lines = []
    for name, value in true.items():
        low, high = last[name].interval(0.95)
        lines.append(Line(*NAMES[name], last[name].value, low, high, value))
    countries, intervals = [], last["countries"].interval(0.95)
    by_country = Counter(order.country for order in left)
    for country, value in last["countries"].value.items():
        low, high = intervals[country]
        countries.append(Line(country, "", 0, value, low, high, by_country[country]))
    pictured = {*range(1, shop.rounds, -(-shop.rounds // PICTURED)), shop.erased_at - 1, shop.erased_at, shop.rounds}
    differences = ((point.round, point.released - point.twin) for point in points)
    return Story(
        rounds=shop.rounds,
        customer=shop.leaver,
        erased_at=shop.erased_at,
        erased=shop.erased(),
        placed=len(placed),
        first_order=placed[0].first,
        identical=shop.rounds - shop.erased_at + 1,
        differing=differing,
        points=tuple(point for point in points if point.round in pictured),
        close_up=tuple(point for point in points if abs(point.round - shop.erased_at) <= CLOSE_UP),
        differences=tuple(next(same) for _, same in groupby(differences, key=itemgetter(1))),
        lines=tuple(lines),
        countries=tuple(countries),
        names=NAMES,
        plan=stream.plan(),
        guarantee=stream.guarantee,
        subject_guarantee=stream.guarantee.for_subject(len(placed)),
        version=__version__,
    )
