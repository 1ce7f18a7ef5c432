"""A grid of time that is delivered in parts: each file has everything up to a time, and its rounds are published."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest

import retroact as ra
from retroact.feeds.play import play
from retroact.stream.grid import Grid

DAYS = Grid("2026-01-01", "1d", "2026-01-11")


def made(place=None, grid=DAYS, **options):
    shape = {"epsilon": 1.0, "horizon": 10, "rounds": grid, "key": ra.Key.for_testing(3), **options}
    columns = {"id": "id", "subject": "who", "time": "at"}
    arguments = {"schema": {"amount": ra.Integer(0, 9)}, "statistics": STATISTICS, "columns": columns, **shape}
    return ra.Stream(**arguments) if place is None else ra.Stream.open(place, **arguments)


STATISTICS = {"n": ra.Count(), "recent": ra.Sum("amount", window=2)}


def events(random, days):
    """Additions and updates by id, each with its time."""
    found = []
    for number in range(random.randrange(12)):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(random.choice(days), minutes=random.randrange(1440))
        found.append(f"{number % 5},p{number % 3},{random.randrange(10)},{at.isoformat()}\n")
    return found


def write(path, rows):
    path.write_text("id,who,amount,at\n" + "".join(rows))
    return path


def encoded(round):
    return [release.encode() for release in round.values()]


@pytest.mark.parametrize("seed", range(6))
def test_parts_give_what_the_whole_gives(seed, tmp_path):
    """With the same records in the same rounds, in memory and in a store that is opened anew for every part."""
    random = Random(seed)
    cuts = [0, *sorted(random.sample(range(1, 10), random.randrange(3))), 10]
    parts = [range(begin, end) for begin, end in pairwise(cuts)]
    rows = [events(random, days) for days in parts]
    whole, piecewise = made(), made()
    published = {"whole": [], "parts": [], "stored": []}

    def noting(kind):
        return lambda round: published[kind].append(encoded(round))

    play(whole, write(tmp_path / "all.csv", [row for part in rows for row in part]), publish=noting("whole"))
    for number, (days, part) in enumerate(zip(parts, rows, strict=True)):
        file = write(tmp_path / f"{number}.csv", part)
        until = DAYS.closes(days.stop).isoformat() if days.stop < 10 or seed % 2 else None
        assert play(piecewise, file, until=until, publish=noting("parts")).rounds == len(days)
        with made(tmp_path / "s") as stored:
            play(stored, file, until=until, publish=noting("stored"))
        with made(tmp_path / "s") as stored:
            if part:
                assert play(stored, file, until=until).rounds == 0, "the same file again does nothing"
    assert len(published["whole"]) == 10
    assert published["parts"] == published["stored"] == published["whole"]


def test_corrections_of_earlier_days_come_with_their_own_stamp(tmp_path):
    stream, by_hand, published = made(), made(), []
    play(stream, write(tmp_path / "1.csv", ["1,ann,5,2026-01-01\n"]), until="2026-01-03")
    late = write(tmp_path / "2.csv", ["1,ann,6,2026-01-04\n", "2,bob,7,2026-01-02\n"])
    play(stream, late, until="2026-01-05", publish=published.append)
    by_hand.add({"amount": 5}, id="1", subject="ann")
    by_hand.close_round()
    by_hand.close_round()
    by_hand.add({"amount": 7}, id="2", subject="bob", stamp=2)
    expected = [by_hand.close_round()]
    by_hand.add({"amount": 6}, id="1", subject="ann")
    expected.append(by_hand.close_round())
    assert [encoded(round) for round in published] == [encoded(round) for round in expected]


def test_what_is_after_the_part_is_refused_before_anything_is_played(tmp_path):
    stream = made()
    file = write(tmp_path / "1.csv", ["1,ann,5,2026-01-01\n", "2,bob,5,2026-01-03\n"])
    message = r"1\.csv:3: expected a time on the grid, got one from 2026-01-03 on \(--until\) - at at"
    with pytest.raises(ra.InputError, match=message) as caught:
        play(stream, file, until="2026-01-03")
    assert "next file" in caught.value.hint
    assert stream.round == 1
    assert play(stream, file, until="2026-01-04").rounds == 3


def test_times_that_end_no_round(tmp_path):
    file = write(tmp_path / "1.csv", ["1,ann,5,2026-01-01\n"])
    for until, message in (
        ("2026-01-03T05:00:00Z", "whole number of lengths .1d. after the start, such as 2026-01-03T00:00:00Z"),
        ("2026-01-01", "whole number of lengths"),
        ("2026-02-01", "a time up to the end of the grid, 2026-01-11T00:00:00Z, got '2026-02-01'"),
        ("tomorrow", "expected a"),
    ):
        with pytest.raises(ra.InputError, match=message) as caught:
            play(made(), file, until=until)
        assert caught.value.path == "until"
    for options in ({"follow": True}, {"grid": None}):
        stream = made() if "follow" in options else made(grid=None)
        with pytest.raises(ra.InputError, match="expected a complete source on a grid"):
            play(stream, file, until="2026-01-03", follow="follow" in options, time=None)
    stream = made()
    play(stream, file, until="2026-01-03")
    with pytest.raises(ra.InputError, match=r"the first 2 rounds of the grid are closed - at --until"):
        play(stream, write(tmp_path / "2.csv", []), until="2026-01-03")


def test_a_grid_without_an_end_is_delivered_in_parts(tmp_path):
    months = Grid("2026-01-01", "1mo", time_zone="Europe/Berlin")
    file = write(tmp_path / "1.csv", ["1,ann,5,2026-01-01\n"])
    with made(tmp_path / "s", months) as stream:
        with pytest.raises(ra.InputError, match=r"needs its end \(--end\)") as caught:
            play(stream, file)
        assert "--until TIME" in caught.value.hint
        assert play(stream, file, until="2026-03-01").rounds == 2
        assert len(stream.store.boundaries()) == 4, "of the rounds that were closed, and of the open one"
