"""A made-up web shop: who orders what and when, and which orders are cancelled.

Only ``random.Random`` decides, so a shop is the same on every machine and under every version of NumPy.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate

from ...errors import InputError

COUNTRIES = ("DE", "FR", "IT", "ES", "NL", "PL", "AT", "SE")
SHARES = (26, 19, 15, 12, 10, 8, 6, 4)
LARGEST_ORDER = 500
ORDERS_A_ROUND = 10
WEEK = (0.85, 0.9, 0.95, 1.0, 1.15, 1.35, 0.8)
GROWTH = (0.7, 1.3)
"""Orders in the first and in the last round, relative to the average round."""
CUSTOMERS_A_ROUND = 2.4
REGULARS = 0.25
"""The share of customers that are there when the shop opens."""
TAIL, BUSIEST = 2.4, 9.0
"""How often a customer orders: Pareto weights with this exponent, cut off at this multiple of the least."""
CANCELLED = 0.04
LONGEST_DOUBT = 6
ERASED_AT = 0.6
FEWEST_ROUNDS = 10
MOST_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class Order:
    """An order is in the shop's data in the rounds ``first`` to ``gone - 1``."""

    id: str
    customer: int
    country: str
    cents: int
    age: int
    first: int
    gone: int
    cancelled: bool

    @property
    def amount(self) -> float:
        return self.cents / 100


@dataclass(frozen=True)
class Shop:
    """All orders of all rounds. Customer ``leaver`` asks to be erased in round ``erased_at`` and never comes back."""

    rounds: int
    leaver: int
    erased_at: int
    orders: tuple[Order, ...]

    def without(self, customer: int) -> Shop:
        """Return the shop in which this customer never existed."""
        return replace(self, orders=tuple(order for order in self.orders if order.customer != customer))

    def of(self, customer: int) -> list[Order]:
        return [order for order in self.orders if order.customer == customer]

    def erased(self) -> int:
        """How many orders the erasure removes."""
        return sum(order.gone == self.erased_at and not order.cancelled for order in self.of(self.leaver))

    def at(self, round: int) -> list[Order]:
        """The surviving orders at the end of a round: the truth, which only a made-up shop may show."""
        return [order for order in self.orders if order.first <= round < order.gone]

    def counts(self) -> list[int]:
        """How many orders survive at the end of every round, from round 1 on."""
        change = Counter(order.first for order in self.orders)
        change.subtract(order.gone for order in self.orders)
        return list(accumulate(change[round] for round in range(1, self.rounds + 1)))


@dataclass(frozen=True, slots=True)
class _Customer:
    joined: float
    weight: float
    country: str
    age: int


def open_shop(rounds: int, seed: int) -> Shop:
    """
    >>> shop = open_shop(100, seed=17)
    >>> shop == open_shop(100, seed=17), shop.erased_at, {o.customer for o in shop.at(60)} >= {shop.leaver}
    (True, 60, False)
    """
    if not FEWEST_ROUNDS <= rounds <= MOST_ROUNDS:
        raise InputError(f"expected between {FEWEST_ROUNDS} and {MOST_ROUNDS:,} rounds, got {rounds:,}", place="rounds")
    chance = random.Random(seed)
    customers = _customers(chance, rounds)
    orders = _orders(chance, rounds, customers)
    erased_at = round(rounds * ERASED_AT)
    before = Counter(order.customer for order in orders if order.first < erased_at)
    leaver = min(before, key=lambda customer: (-before[customer], customer))
    kept = []
    for order in orders:
        if order.customer != leaver or order.gone < erased_at:
            kept.append(order)
        elif order.first < erased_at:
            kept.append(replace(order, gone=erased_at, cancelled=False))
    return Shop(rounds, leaver, erased_at, tuple(kept))


def _customers(chance: random.Random, rounds: int) -> list[_Customer]:
    """Customers in the order in which they join; a customer's number is the position in this list, from 1."""
    people = []
    for _ in range(max(8, round(CUSTOMERS_A_ROUND * rounds))):
        regular = chance.random() < REGULARS
        people.append(
            _Customer(
                joined=0.0 if regular else chance.random() * rounds,
                weight=min(chance.paretovariate(TAIL), BUSIEST),
                country=chance.choices(COUNTRIES, SHARES)[0],
                age=min(max(round(chance.gauss(43, 14)), 18), 92),
            )
        )
    people[0] = replace(people[0], joined=0.0)
    return sorted(people, key=lambda person: person.joined)


def _orders(chance: random.Random, rounds: int, customers: list[_Customer]) -> list[Order]:
    joined = [person.joined for person in customers]
    weights = list(accumulate(person.weight for person in customers))
    orders: list[Order] = []
    for now in range(1, rounds + 1):
        there = bisect_right(joined, now)
        first, last = GROWTH
        rate = ORDERS_A_ROUND * WEEK[now % 7] * (first + (last - first) * now / rounds)
        for _ in range(_poisson(chance, rate)):
            number = bisect_right(weights, chance.random() * weights[there - 1], 0, there - 1)
            person = customers[number]
            cancelled = chance.random() < CANCELLED
            gone = now + chance.randint(1, LONGEST_DOUBT) if cancelled else rounds + 1
            cents = min(round(100 * chance.lognormvariate(math.log(70), 0.7)), 100 * LARGEST_ORDER)
            orders.append(
                Order(f"o{len(orders) + 1}", number + 1, person.country, cents, person.age, now, gone, cancelled)
            )
    return orders


def _poisson(chance: random.Random, rate: float) -> int:
    """Knuth's method: good enough for a handful of orders."""
    limit, product, count = math.exp(-rate), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count
