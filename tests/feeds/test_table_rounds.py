"""The rounds of columnar feeds: by number, by rows that close, by a grid; and runs that go on where they stopped."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds.readers import arrow
from retroact.stream import passes
from retroact.stream.grid import Grid
from support.table_changes import (
    HOURS,
    START,
    A,
    B,
    C,
    applied_by_hand,
    ends,
    person,
    play,
    play_table,
    random_changes,
    released,
    rows,
    stream,
)
from support.table_changes import options as said

# Rounds ---------------------------------------------------------------------------------------------------------------


def test_rounds_by_number_leave_empty_ones():
    _, rounds, totals = play(rows({"round": 2, **A}, {"round": 5, **B}), rounds=7)
    assert (totals.rounds, [r.applied.added for r in rounds]) == (7, [0, 1, 0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("numbers", "rounds", "reason"),
    [
        ([1, 2], None, r"row 1: rounds by number need --rounds N"),
        ([2, 1], 5, r"row 2: expected a round from 2 on \(round 1 is closed\), got 1"),
        ([1, 6], 5, r"row 2: expected a round up to 5"),
        ([0, 1], 5, r"row 1: expected a round from 1 on, got 0"),
    ],
)
def test_rounds_that_are_none(numbers, rounds, reason):
    with pytest.raises(InputError, match=reason):
        play(rows(*[{"round": number, **A} for number in numbers]), rounds=rounds)


def test_rounds_of_the_wrong_type():
    with pytest.raises(InputError, match=r"row 1: expected a whole number, got 1.5 - at round"):
        play(rows({"round": 1.5, **A}), rounds=3)


def test_rounds_by_rows_that_close():
    table = rows({"op": "close"}, {"op": "add", **A}, {"op": "close"}, {"op": "close"}, {"op": "add", **B})
    into, rounds, totals = play(table)
    assert [r.applied.added for r in rounds] == [0, 1, 0]
    assert (into.round, into.records) == (4, 1)
    again, rounds, totals = play(table, close_by="end")
    assert (again.records, totals.rounds, totals.skipped["close lines"]) == (2, 1, 3)
    with pytest.raises(InputError, match="row 4: expected at most 2 rounds"):
        play(table, rounds=2)


def test_rows_that_close_and_numbers_together():
    table = rows(
        {"op": "add", "round": 1, **A},
        {"op": "close", "round": 2},
        {"op": "add", "round": 3, **B},
        {"op": "add", "round": 3, **C},
    )
    assert [r.applied.added for r in play(table, rounds=3)[1]] == [1, 0, 2]


def test_nothing_that_closes_is_one_round():
    assert play(rows(A, B))[2].rounds == 1
    assert play(rows({"round": 3, **A}), close_by="end")[2].rounds == 1
    assert play(rows(A).slice(0, 0))[2].rounds == 1


def test_options_that_tables_have_not():
    with pytest.raises(InputError, match="a table is complete"):
        play(rows(A), follow=True)
    with pytest.raises(InputError, match="close_by"):
        play(rows(A), close_by="progress")


# A grid ---------------------------------------------------------------------------------------------------------------


def timed(changes):
    """The same changes with times in their rounds instead of round numbers."""
    random = np.random.default_rng(5)
    return [
        {
            **{k: v for k, v in row.items() if k != "round"},
            "at": START + (row["round"] - 1) * 3600 + int(random.integers(3600)),
        }
        for row in changes
    ]


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_order_are_the_sorted_file(seed, size, monkeypatch, tmp_path):
    monkeypatch.setattr(arrow, "ROWS", size)
    changes = random_changes(80, seed)
    events = timed(changes)
    # apart from events on one id within one round, whose order counts
    order = np.random.default_rng(seed).permutation(6)
    mixed = [
        row for number in order for row, change in zip(events, changes, strict=True) if change["round"] == number + 1
    ]
    paths = [tmp_path / "sorted.parquet", tmp_path / "mixed.parquet"]
    for path, some in zip(paths, (events, mixed), strict=True):
        pq.write_table(rows(*some), path, row_group_size=13)
    expected = applied_by_hand(changes, 6)
    for path in paths:
        assert ends(path, time="at", grid=HOURS) == expected


def test_times_of_every_kind():
    seconds = [START + 10, START + 7300, START + 3700]
    moments = [datetime.fromtimestamp(second, UTC) for second in seconds]
    people = [A, B, C]
    expected = ends(rows(*[{**row, "at": at} for row, at in zip(people, seconds, strict=True)]), time="at", grid=HOURS)
    columns = [
        pa.array(moments, pa.timestamp("us", "UTC")),
        pa.array(moments, pa.timestamp("ns", "Europe/Berlin")),
        pa.array([moment.isoformat() for moment in moments]),
        pa.array([moment.isoformat() for moment in moments]).dictionary_encode(),
        pa.array(seconds, pa.int32()),
    ]
    for column in columns:
        assert ends(rows(*people).append_column("at", column), time="at", grid=HOURS) == expected


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([START, None]), "row 2: expected a time, got None - at at"),
        (pa.array([float(START), 1.0]), "row 1: expected times as texts with an offset"),
        (pa.array([datetime(2026, 1, 1)] * 2), "row 1: expected an offset from UTC"),
        (pa.array([START, START - 1]), "row 2: expected a time on the grid, got one before the start - at at"),
        (pa.array([START, START + 6 * 3600]), "row 2: expected a time on the grid, got one after the end - at at"),
    ],
)
def test_times_that_are_none(column, reason):
    with pytest.raises(InputError, match=reason):
        play(rows(A, B).append_column("at", column), time="at", grid=HOURS)


def test_empty_rounds_of_a_grid_are_closed():
    assert [r.applied.added for r in play(rows({**A, "at": START + 3600 * 3}), time="at", grid=HOURS)[1]] == [
        0,
        0,
        0,
        1,
        0,
        0,
    ]
    assert play(rows({**A, "at": START}).slice(0, 0), time="at", grid=HOURS)[2].rounds == 6


def late_rows():
    return rows(
        {"op": "add", "id": "late", "at": START + 10, **A},
        {"op": "add", "id": "now", "at": START + 2 * 3600, **B},
        {"op": "delete", "id": "old", "at": START + 20},
    )


def at_round_three():
    into = stream()
    into.add(C, id="old")
    into.close_round()
    into.close_round()
    return into


def test_late_rows_have_the_stamp_of_their_own():
    into, rounds, totals = play(late_rows(), at_round_three(), time="at", grid=HOURS)
    assert [r.applied.added for r in rounds] == [2, 0, 0, 0]
    assert (into.records, totals.removed, totals.late) == (2, 1, 0)
    expected = at_round_three()
    expected.add(A, id="late", stamp=1)
    expected.add(B, id="now")
    expected.delete(id="old")
    for _ in range(4):
        expected.close_round()
    assert into.state() == expected.state()


def test_late_additions_may_be_refused_but_deletions_are_not():
    into, _, totals = play(late_rows(), at_round_three(), time="at", grid=HOURS, late="refuse")
    assert (into.records, totals.late, totals.first_late, totals.removed) == (1, 1, "the frame: row 1", 1)


def test_deletions_by_value_have_the_stamp_of_their_time():
    first = rows({"op": "add", "at": START + 5, **A}, {"op": "add", "at": START + 3600, **A})
    hours = Grid(START, "1h", START + 2 * 3600)
    into, _, _ = play(first, time="at", grid=hours)
    into, _, _ = play(rows({"op": "delete", "at": START + 7, **A}), into, time="at", grid=HOURS)
    assert into.records == 1


def test_grids_need_an_end_and_two_readings():
    with pytest.raises(InputError, match=r"a complete file on a grid needs its end \(--end\)"):
        play(rows({**A, "at": START}), time="at", grid=Grid(START, "1h"))
    with pytest.raises(InputError, match="the same rows in both readings"):
        play(rows({**A, "at": START}).to_reader(), time="at", grid=HOURS)
    with pytest.raises(InputError, match="all 2 rounds of the grid are closed"):
        play(late_rows(), at_round_three(), time="at", grid=Grid(START, "1h", START + 7200))


# Where a run was cut short --------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def stopping_at(round, kept):
    """Publishes, until a round after which the machine is gone."""

    def publish(released):
        kept.append(released)
        if released.number == round:
            raise StoppedError

    return publish


def gone_on(into, source):
    """The stream that a store gives back: state, and how far the source was read."""
    again = ra.Stream.from_state(into.specification, into.state(), key=ra.Key.for_testing(7))
    position = into.position(source)
    if position is not None:
        with again.receiving(source, position):
            pass
    return again


@pytest.mark.parametrize("stop", range(1, 7))
@pytest.mark.parametrize("options", [{"rounds": 6}, {"time": "at", "grid": HOURS}], ids=["numbers", "grid"])
def test_a_run_goes_on_where_it_stopped(stop, options, monkeypatch, tmp_path):
    monkeypatch.setattr(arrow, "ROWS", 10)
    monkeypatch.setattr(passes, "MOST", 1)  # every round is settled alone
    changes = random_changes(120, seed=3)
    events = [{**row, **at} for row, at in zip(changes, timed(changes), strict=True)]
    if "grid" in options:
        events = [events[k] for k in np.random.default_rng(0).permutation(len(events))]
        events.sort(key=lambda row: row["round"] % 3)
    path = tmp_path / "changes.parquet"
    pq.write_table(rows(*events), path, row_group_size=16)
    expected = ends(path, **options)
    into, rounds = stream(), []
    with pytest.raises(StoppedError):
        play_table(into, path, said(into, path, **options), stopping_at(stop, rounds))
    again = gone_on(into, str(path))
    play_table(again, path, said(again, path, **options), rounds.append)
    assert (released(rounds), again.state()) == expected
    # and once more, which has nothing to do
    assert play(path, again, **options)[2].rounds == 0
    assert again.state() == expected[1]


def test_a_file_is_not_played_twice(tmp_path):
    pq.write_table(rows(A, B), tmp_path / "people.parquet")
    into, _, _ = play(tmp_path / "people.parquet")
    _, rounds, _ = play(tmp_path / "people.parquet", into)
    assert (rounds, into.records, into.round) == ([], 2, 2)
    play(tmp_path / "people.parquet", into, source_name="another")
    assert into.records == 4


@pytest.mark.parametrize("position", [None, "offset"])
def test_what_follows_the_last_close_stays_open(position, tmp_path):
    table = rows({"op": "add", "offset": 1, **A}, {"op": "close", "offset": 2}, {"op": "add", "offset": 3, **B})
    pq.write_table(table, tmp_path / "people.parquet")
    into, _, _ = play(tmp_path / "people.parquet", position=position)
    for _ in range(2):
        assert play(tmp_path / "people.parquet", into, position=position)[2].rounds == 0
    assert (into.round, into.close_round().applied.added) == (2, 1)


def test_an_open_round_is_closed_by_the_end_of_the_file_once(tmp_path):
    pq.write_table(rows(A, B), tmp_path / "people.parquet")
    into = stream()
    with into.receiving(str(tmp_path / "people.parquet"), (2,)):
        into.add([A, B])
    assert play(tmp_path / "people.parquet", into)[2].added == 2
    assert play(tmp_path / "people.parquet", into)[2].rounds == 0


def test_a_source_keeps_its_kind(tmp_path):
    pq.write_table(rows({**A, "at": START}), tmp_path / "people.parquet")
    into, _, _ = play(tmp_path / "people.parquet", close_by="end")
    with pytest.raises(InputError, match=r"people\.parquet was read without a grid before: expected another source"):
        play(tmp_path / "people.parquet", into, time="at", grid=HOURS)
    into, _, _ = play(tmp_path / "people.parquet", time="at", grid=HOURS)
    with pytest.raises(InputError, match=r"people\.parquet was read on a grid before: expected another source"):
        play(tmp_path / "people.parquet", into)


def test_what_is_delivered_twice_is_taken_once(monkeypatch):
    monkeypatch.setattr(arrow, "ROWS", 3)
    offsets = [1, 2, 2, 4, 3, 4, 1, 5, 7, 6, 7]
    people = [person("DE", float(offset), 1) for offset in offsets]
    table = rows(*[{**row, "offset": offset} for row, offset in zip(people, offsets, strict=True)])
    into, _, totals = play(table, position="offset", source_name="topic")
    assert (into.records, totals.absorbed, totals.first_absorbed) == (7, 4, "the frame: row 3")
    # the same again, and one more: what lies behind a closed round is known by its position
    more = rows(*[{**person(), "offset": offset} for offset in (6, 7, 8)])
    into, _, totals = play(more, into, position="offset", source_name="topic", close_by="end")
    assert (into.records, totals.absorbed) == (8, 2)


def test_redelivered_rounds_and_closes_are_absorbed():
    first = rows(
        {"op": "add", "offset": 1, **A},
        {"op": "close", "offset": 2},
        {"op": "add", "offset": 3, **B},
        {"op": "close", "offset": 4},
    )
    into, _, totals = play(pa.concat_tables([first, first]), position="offset", source_name="topic")
    assert (into.records, totals.rounds, totals.absorbed) == (2, 2, 4)
    numbered = rows({"round": 1, "offset": 1, **A}, {"round": 2, "offset": 2, **B}, {"round": 1, "offset": 1, **A})
    into, _, totals = play(numbered, position="offset", source_name="topic", rounds=2)
    assert (into.records, totals.absorbed) == (2, 1)


def test_positions_that_are_none():
    with pytest.raises(InputError, match="row 2: expected the position of the row, got none - at offset"):
        play(rows({**A, "offset": 1}, {**A, "offset": None}), position="offset", source_name="topic")


def test_positions_need_a_name():
    with pytest.raises(InputError, match="expected a name for the source of the positions"):
        play(rows({**A, "offset": 1}), position="offset")


def test_progress_is_told(monkeypatch):
    monkeypatch.setattr(arrow, "ROWS", 2)
    told = []
    play(rows(A, B, C), progress=told.append)
    assert told == [2, 3]
