"""The made-up shop is a shop: a rhythm, growth, a few busy customers, and one who leaves for good."""

from collections import Counter

import pytest

from retroact.cli.demo.history import SHOP
from retroact.cli.demo.shop import COUNTRIES, LARGEST_ORDER, Shop, open_shop


@pytest.fixture(scope="module")
def shop() -> Shop:
    return open_shop(1000, SHOP)


def test_the_default_shop_never_changes(shop: Shop) -> None:
    assert (shop.leaver, shop.erased_at, shop.erased(), len(shop.at(1000))) == (17, 600, 27, 9440)


def test_orders_are_within_the_declared_bounds(shop: Shop) -> None:
    assert all(0 < order.cents <= 100 * LARGEST_ORDER for order in shop.orders)
    assert all(18 <= order.age <= 92 and order.country in COUNTRIES for order in shop.orders)
    assert len({order.id for order in shop.orders}) == len(shop.orders)


def test_there_is_growth_and_a_week(shop: Shop) -> None:
    arriving = Counter(order.first for order in shop.orders)
    assert 9 < len(shop.orders) / shop.rounds < 11
    assert sum(arriving[r] for r in range(501, 1001)) > 1.2 * sum(arriving[r] for r in range(1, 501))
    days = [sum(arriving[r] for r in range(1, 1001) if r % 7 == day) for day in range(7)]
    assert max(days) > 1.4 * min(days)


def test_a_few_customers_order_much(shop: Shop) -> None:
    counts = sorted(Counter(order.customer for order in shop.orders).values(), reverse=True)
    assert counts[0] > 6 * counts[len(counts) // 2]


def test_some_orders_are_cancelled_a_few_rounds_later(shop: Shop) -> None:
    cancelled = [order for order in shop.orders if order.cancelled]
    assert 0.03 < len(cancelled) / len(shop.orders) < 0.05
    assert all(1 <= order.gone - order.first <= 6 for order in cancelled)


@pytest.mark.parametrize("seed", range(5))
def test_the_leaver_never_comes_back(seed: int) -> None:
    shop = open_shop(100, seed)
    orders = shop.of(shop.leaver)
    assert orders
    assert all(order.first < shop.erased_at and order.gone <= shop.erased_at for order in orders)
    assert not shop.without(shop.leaver).of(shop.leaver)
    before = Counter(order.customer for order in shop.orders if order.first < shop.erased_at)
    assert before[shop.leaver] == max(before.values())


def test_counts_are_those_of_the_surviving_orders() -> None:
    shop = open_shop(80, 3)
    assert shop.counts() == [len(shop.at(round)) for round in range(1, 81)]
