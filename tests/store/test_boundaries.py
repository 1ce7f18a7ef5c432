"""Boundaries of a calendar that were used are stored, and stay where they were, whatever the time zone does later."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

import retroact as ra
from retroact.errors import InputError, VerificationError
from retroact.feeds import grid as on_grid
from retroact.feeds import play
from retroact.feeds import source as sources
from retroact.stream import passes

KEY = ra.Key.for_testing(21)
BERLIN = {"start": "2026-03-27", "length": "1d", "time_zone": "Europe/Berlin"}
DAYS = "amount,created\n5,2026-03-27\n7,2026-03-28T22:30:00Z\n9,2026-03-28T23:30:00Z\n"
RULE = [26, 27, 28, 29, 30]
"""The days before midnight in March, by the rules of 2026: the clocks change on the 29th."""


def opened(where, tmp_path, rounds=BERLIN, **more):
    return ra.Stream.open(
        where, {"amount": ra.Number(0, 500)}, {"orders": ra.Count()}, epsilon=1.0, key=KEY, rounds=rounds,
        columns={"time": "created"}, fence=tmp_path / "fence", **{"horizon": 10, **more},
    )  # fmt: skip


def hours(stream):
    """The stored boundaries as day and hour in March, in UTC."""
    moments = (datetime.fromtimestamp(each / 10**6, UTC) for each in stream.store.boundaries())
    return [(each.day, each.hour) for each in moments]


def test_they_are_stored_round_by_round(place, tmp_path):
    with opened(place("orders"), tmp_path) as stream:
        # the start, and the end of the round that takes records
        assert hours(stream) == [(26, 23), (27, 23)]
        stream.close_round()
        assert hours(stream) == [(26, 23), (27, 23), (28, 23)]
        stream.close_round()
        stream.close_round()
    with opened(place("orders"), tmp_path) as stream:
        assert hours(stream) == [(26, 23), (27, 23), (28, 23), (29, 22), (30, 22)]
        assert stream.moved_boundaries == ""
        assert stream.verify().ok


def test_used_ones_stay_and_later_ones_follow_the_new_rule(place, tmp_path, rules):
    with opened(place("orders"), tmp_path) as stream:
        stream.close_round()
        before = [stream.grid.span(round) for round in (1, 2)]
    # the clocks stay on the hour of winter, and then all is two hours earlier
    rules("Asia/Baghdad")
    with opened(place("orders"), tmp_path) as stream:
        assert [stream.grid.span(round) for round in (1, 2)] == before
        assert stream.grid.span(3)[0] == before[1][1]
        assert stream.grid.closes(3) == datetime(2026, 3, 29, 21, tzinfo=UTC)
        assert stream.moved_boundaries == (
            "the rules of Europe/Berlin have changed since: rounds 1 to 2 keep the boundaries that were used"
        )
        result = stream.verify()
        assert (result.ok, result.notes) == (True, [stream.moved_boundaries])
        stream.close_round()
        assert hours(stream) == [(26, 23), (27, 23), (28, 23), (29, 21)]
    with opened(place("orders"), tmp_path) as stream:
        assert hours(stream) == [(26, 23), (27, 23), (28, 23), (29, 21)]


def test_a_complete_file_uses_all_of_them_at_once(tmp_path, rules, monkeypatch):
    monkeypatch.setattr(passes, "MOST", 1)  # every round is settled alone
    rounds = {**BERLIN, "end": "2026-03-31"}
    (tmp_path / "days.csv").write_text(DAYS)
    with opened(tmp_path / "orders", tmp_path, rounds) as stream:
        released = []
        with pytest.raises(InterruptedError):
            play(stream, tmp_path / "days.csv", publish=lambda round: released.append(round) or interrupt(released))
        assert [day for day, _ in hours(stream)] == RULE
    rules("Asia/Tokyo")
    with opened(tmp_path / "orders", tmp_path, rounds) as stream:
        assert [day for day, _ in hours(stream)] == RULE
        totals = play(stream, tmp_path / "days.csv", publish=released.append)
        assert (totals.rounds, stream.records) == (2, 3)
        by_stamp = [len(stream._core.ledger.rows_between(round, round)[1]) for round in range(1, 5)]
        assert by_stamp == [1, 1, 1, 0]


def interrupt(released):
    if len(released) == 2:
        raise InterruptedError


def test_the_clock_closes_by_the_stored_ones(tmp_path, rules, monkeypatch):
    (tmp_path / "days.csv").write_text("amount,created\n5,2026-03-27T15:30:00Z\n")
    rounds = {**BERLIN, "end": "2026-03-28"}
    opened(tmp_path / "orders", tmp_path, rounds).close()
    rules("Asia/Tokyo")
    monkeypatch.setattr(sources, "POLL", 0.01)
    # by the new rules the day is over at 15:00, by those that were used at 23:00
    clock, closed = [datetime(2026, 3, 27, 20, tzinfo=UTC).timestamp()], []

    def now():
        clock[0] += 600
        return clock[0]

    monkeypatch.setattr(on_grid, "now", now)
    with opened(tmp_path / "orders", tmp_path, rounds) as stream:
        play(stream, tmp_path / "days.csv", follow=True, publish=lambda round: closed.append(clock[0]))
        assert stream.records == 1
    assert [datetime.fromtimestamp(each, UTC).isoformat() for each in closed] == ["2026-03-27T23:00:00+00:00"]


def test_what_is_stored_does_not_depend_on_records(place, tmp_path):
    found = []
    for name, text in (("with", DAYS), ("without", "amount,created\n5,2026-03-27\n")):
        (tmp_path / f"fence of {name}").mkdir()
        (tmp_path / "days.csv").write_text(text)
        with opened(place(name), tmp_path / f"fence of {name}", {**BERLIN, "end": "2026-03-31"}) as stream:
            play(stream, tmp_path / "days.csv")
            found.append(stream.store.boundaries())
    assert found[0] == found[1]


@pytest.mark.parametrize("other", [{"length": "24h"}, {"time_zone": "+01:00"}, {"time_zone": "UTC", "length": "1mo"}])
def test_other_grids_store_none(tmp_path, other):
    with opened(tmp_path / "orders", tmp_path, {**BERLIN, **other}) as stream:
        stream.close_round()
        assert stream.store.boundaries() == []


def test_a_stream_without_data_may_take_other_rounds(tmp_path):
    opened(tmp_path / "orders", tmp_path).close()
    with opened(tmp_path / "orders", tmp_path, {**BERLIN, "start": "2026-03-02", "length": "1w"}) as stream:
        assert hours(stream) == [(1, 23), (8, 23)]
    with opened(tmp_path / "orders", tmp_path, {**BERLIN, "time_zone": "UTC"}) as stream:
        assert hours(stream) == []


def test_a_successor_takes_them_over(tmp_path, rules):
    with opened(tmp_path / "orders", tmp_path, BERLIN, horizon=2) as stream:
        stream.close_round()
        stream.close_round()
        used = stream.store.boundaries()
        rules("Asia/Tokyo")
        with stream.successor(
            epsilon=1.0, horizon=3, where=tmp_path / "next", key=ra.Key.for_testing(22), fence=tmp_path / "next.fence"
        ) as following:
            assert following.store.boundaries()[: len(used)] == used
            assert following.round == 3
            following.close_round()
            assert following.grid.span(3)[0] == stream.grid.span(3)[0]


def test_one_that_was_edited_is_refused(tmp_path):
    with opened(tmp_path / "orders", tmp_path) as stream:
        stream.close_round()
    with closing(sqlite3.connect(tmp_path / "orders" / "journal.sqlite")) as connection, connection:
        connection.execute("update boundary set moment = moment + 3600000000 where number = 1")
    with pytest.raises(VerificationError, match="table boundary: the row 1 is not as it was written"):
        opened(tmp_path / "orders", tmp_path)
    with closing(sqlite3.connect(tmp_path / "orders" / "journal.sqlite")) as connection, connection:
        connection.execute("delete from boundary where number = 1")
    with pytest.raises(VerificationError, match="table boundary: rows were added, taken away or put back"):
        opened(tmp_path / "orders", tmp_path)


def test_another_zone_is_another_specification(tmp_path):
    with opened(tmp_path / "orders", tmp_path) as stream:
        stream.close_round()
    for other in ({**BERLIN, "time_zone": "Europe/Paris"}, {**BERLIN, "length": "24h"}):
        with pytest.raises(InputError, match=r"rounds\.(time_zone|length): (Europe/Berlin|1d) in the store"):
            opened(tmp_path / "orders", tmp_path, other)
