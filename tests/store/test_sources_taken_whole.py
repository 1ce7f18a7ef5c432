"""What a source handed over is there as a whole or not at all, also when a round could not be closed inside."""

import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.stream.engine import Running

SCHEMA = {"amount": ra.Integer(0, 1000)}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def stream(request, tmp_path):
    budget = {"epsilon": 1.0, "horizon": 9, "key": ra.Key.for_testing(6)}
    statistics = {"orders": ra.Count(), "revenue": ra.Sum("amount")}
    if request.param == "memory":
        yield ra.Stream(SCHEMA, statistics, **budget)
        return
    where = tmp_path / "s" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with ra.Stream.open(where, SCHEMA, statistics, fence=tmp_path / "the.fence", **budget) as made:
        yield made


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_round_that_could_not_be_closed_inside(stream, monkeypatch, ids, alone):
    def deliver(number, *, close=False):
        with stream.receiving("feed", (number,)):
            record = {"amount": number} if alone else {"amount": [number]}
            names = f"o-{number}" if alone else [f"o-{number}"]
            stream.add(record, id=names if ids else None, subject=f"u{number}" if alone else [f"u{number}"])
            if close:
                stream.close_round()

    deliver(1)
    deliver(2)
    with monkeypatch.context() as patch:
        patch.setattr(Running, "advanced", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            deliver(3, close=True)
    assert stream.position("feed") == (2,)
    deliver(3, close=True)
    assert stream.records == 3
    assert stream.close_round().applied.added == 0


def test_an_open_round_is_not_dropped_inside(stream):
    stream.add({"amount": 5}, subject="u1")
    with stream.receiving("feed", (1,)), pytest.raises(InputError, match="expected no discard inside"):
        stream.discard()
    assert stream.discard() == 1
