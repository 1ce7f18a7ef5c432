"""What a stream does with one record, for tests that compare it with exact arithmetic."""

from fractions import Fraction

import numpy as np
from hypothesis import assume
from msgspec.structs import replace

import retroact as ra
from retroact.coins import Coins
from retroact.privacy import Share
from retroact.schema import Rows, Schema
from retroact.statistics import Grant

COINS = Coins(bytes(32))
ONE = np.ones(1, dtype=np.int64)


def taken(schema, statistic, record):
    """Whether a stream takes a record; a refused one must leave nothing behind."""
    try:
        stream = ra.Stream(schema, {"s": statistic}, epsilon=1.0, delta=1e-6, horizon=7)
    except ra.InputError as error:
        # Totals or noise that 64 bits do not hold: there is no record to look at.
        if "64-bit integers" not in str(error) and "2^55" not in str(error):
            raise
        assume(False)
    before = stream.state()
    try:
        stream.add(record)
    except ra.InputError:
        assert stream.state() == before
        return False
    stream.close_round()
    return True


def moved(statistic, schema, record):
    """What one record moves, in Python integers."""
    schema = Schema(schema)
    rows = schema.encode([record])[0]
    rows = Rows(rows.columns, rows.count, stamps=np.ones(rows.count, dtype=np.int64))
    bound = bound_of(statistic, schema)
    return bound.coordinates(bound.gather(rows, ONE))


def bound_of(statistic, schema):
    """With a budget that any noise fits; samples, which have none, take no such epsilon."""
    amount = 100 if isinstance(statistic, ra.WindowSample) else 10**30
    share, failure = Share("pure", Fraction(amount)), Fraction(1, 10)
    grant = Grant(1, 1, None, True, "x", schema, share, failure, (Fraction(1), Fraction(0)))
    return statistic.bind(replace(grant, noise=next(iter(statistic.candidates(grant))))).drawn(COINS)


def within(column, units, norm1, norm2_squared):
    """The two norms of a column, exactly."""
    parts = [abs(Fraction(amount, unit)) for amount, unit in zip(column, units, strict=True)]
    return sum(parts) <= norm1 and sum(part * part for part in parts) <= norm2_squared
