"""Algorithms of one's own: what they are handed, what is promised for them, and how they fail."""

import datetime
import functools
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.coins.uniform import integer
from retroact.errors import InputError
from retroact.oneshot import SUBSTITUTION, Own, Unkeyed
from retroact.oneshot.base import Contract
from retroact.schema import Boolean, Bytes, Category, Date, Integer, Number, Rows, Schema, Text, Timestamp, Vector

COINS = Coins(bytes(32)).branch("own")
SCHEMA = Schema({
    "name": Text(), "raw": Bytes(), "amount": Number(-5, 500, step="0.1"), "id": Integer(-(2**63), 2**63 - 1),
    "yes": Boolean(), "size": Category(["s", 3]), "day": Date("2024-01-01", "2025-12-31"),
    "at": Timestamp("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"), "place": Vector(2, radius=1, step=0.1),
})  # fmt: skip


def record(i):
    return {
        "name": "zé𝄞a"[i % 4], "raw": bytes([i % 256]), "amount": i / 10, "id": 2**62 + i, "yes": i % 2 == 0,
        "size": ["s", 3][i % 2], "day": "2024-05-01", "at": "2024-05-01T12:00:00Z", "place": [0.1 * (i % 3), -0.2],
    }  # fmt: skip


def everything(columns, coins):
    return columns


def test_values_are_decoded():
    rows = SCHEMA.encode([record(7)])[0]
    columns = Own(everything, epsilon=1).run(rows, SCHEMA, COINS)
    assert list(columns) == list(SCHEMA.fields)
    for name, value in (("amount", 0.7), ("id", 2**62 + 7), ("yes", False)):
        assert isinstance(columns[name], np.ndarray)
        assert columns[name].tolist() == [value]
    assert columns["place"].tolist() == [[0.1, -0.2]]
    assert (columns["name"], columns["raw"], columns["size"]) == (["a"], [b"\x07"], [3])
    assert columns["day"] == [datetime.date(2024, 5, 1)]
    assert columns["at"] == [datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)]


def test_records_come_in_an_order_that_only_values_decide():
    records = [record(i) for i in range(40)]
    rows = SCHEMA.encode(records)[0]
    orders = []
    for seed in range(3):
        columns = Own(everything, epsilon=1).run(rows.take(np.random.default_rng(seed).permutation(40)), SCHEMA, COINS)
        orders.append({
            name: column.tolist() if isinstance(column, np.ndarray) else column for name, column in columns.items()
        })  # fmt: skip
    assert orders[0] == orders[1] == orders[2]
    # Not as a dictionary would have them.
    assert list(dict.fromkeys(orders[0]["name"])) == ["a", "z", "é", "𝄞"]
    # Records stay together.
    found = sorted(zip(orders[0]["id"], orders[0]["amount"], orders[0]["raw"], strict=True))
    assert found == sorted((r["id"], r["amount"], r["raw"]) for r in records)


def test_none_is_a_sample_too():
    columns = Own(everything, epsilon=1).run(Rows.empty(SCHEMA), SCHEMA, COINS)
    assert {len(column) for column in columns.values()} == {0}
    assert columns["place"].shape == (0, 2)


def test_coins_are_those_that_are_handed_in():
    algorithm = Own(lambda columns, coins: integer(coins, 10**9), epsilon=1, name="any")
    assert algorithm.run(Rows.empty(SCHEMA), SCHEMA, COINS) == integer(COINS, 10**9)


def test_contract_name_and_specification():
    algorithm = Own(everything, epsilon=0.5, delta=1e-6, bounded_range=False, relation=SUBSTITUTION)
    assert algorithm.contract == Contract(Fraction(1, 2), Fraction(1, 10**6), SUBSTITUTION)
    assert algorithm.spec() == {
        "type": "own", "name": "everything", "delta": "0.000001", "relation": SUBSTITUTION, "epsilon": "0.5",
    }  # fmt: skip
    assert Own(everything, epsilon=1, name="other").spec() == {"type": "own", "name": "other", "epsilon": "1"}
    assert Own(everything, epsilon=1, bounded_range=True).contract.bounded_range
    assert algorithm.at(Fraction(1, 2)) is algorithm
    with pytest.raises(InputError, match=r"expected the epsilon that everything spends, 0.5, got 1"):
        algorithm.at(Fraction(1))


def test_a_function_without_a_name_needs_one():
    for function in (lambda columns, coins: 0, functools.partial(everything)):
        with pytest.raises(InputError, match="expected a name for a function without one"):
            Own(function, epsilon=1)
        assert Own(function, epsilon=1, name="mine").name == "mine"
    with pytest.raises(InputError, match="expected a function of columns and coins, got 3"):
        Own(3, epsilon=1)
    for wrong in (1, -0.1):
        with pytest.raises(InputError, match="expected a number from 0 to below 1"):
            Own(everything, epsilon=1, delta=wrong)


def test_an_algorithm_that_fails_for_no_records_is_refused():
    def first(columns, coins):
        return columns["id"][0]

    with pytest.raises(InputError, match=r"also answers for no records, got IndexError from first - at algorithm"):
        Own(first, epsilon=1).check(SCHEMA, "algorithm")
    Own(everything, epsilon=1).check(SCHEMA, "algorithm")


def test_an_error_tells_nothing_of_the_records():
    def telling(columns, coins):
        raise ValueError(f"look: {columns['name']}")

    rows = SCHEMA.encode([{**record(1), "name": "Alice"}])[0]
    with pytest.raises(InputError, match="expected an answer from telling for any records, got ValueError") as caught:
        Own(telling, epsilon=1).run(rows, SCHEMA, COINS)
    assert "Alice" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


class Coin(Unkeyed):
    kind = "coin"

    def arguments(self):
        return {"name": self.name}

    def check(self, schema, place):
        pass

    def answer(self, rows, schema):
        return np.random.default_rng().integers(2**62) if rows.count else 1 / 0


def test_unkeyed_algorithms_have_randomness_of_their_own():
    coin = Coin(Contract(Fraction(1, 4)), "coin")
    rows = SCHEMA.encode([record(1)])[0]
    assert coin.keyed is False
    assert coin.run(rows, SCHEMA, COINS) != coin.run(rows, SCHEMA, COINS)
    assert coin.at(Fraction(1, 4)) is coin
    assert coin.spec() == {"type": "coin", "contract": {"epsilon": "0.25"}, "name": "coin"}
    with pytest.raises(InputError, match=r"expected the epsilon that coin spends, 0.25, got 1"):
        coin.at(Fraction(1))
    with pytest.raises(InputError, match="expected an answer from coin for any records, got ZeroDivisionError"):
        coin.run(Rows.empty(SCHEMA), SCHEMA, COINS)
