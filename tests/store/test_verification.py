"""`verify` works releases out again and sees what was changed."""

import sqlite3

import pytest

from retroact.errors import VerificationError
from support.durable_streams import fill, opened


@pytest.fixture
def made(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        for round in range(1, 6):
            fill(stream, round)
            if round == 2:
                stream.delete(id="id-1-1")
            stream.close_round()
    return folder


def change(path, sql, *parameters):
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, parameters).rowcount


def problems(folder, tmp_path):
    with opened(folder, tmp_path) as stream:
        return stream.verify().problems


def test_releases_since_the_last_deletion_are_worked_out_again(made, tmp_path):
    with opened(made, tmp_path) as stream:
        result = stream.verify()
    assert (result.first, result.last, result.compared, result.problems) == (2, 5, 10, [])


def test_a_changed_release_is_seen(made, tmp_path):
    """Also one that cannot be worked out again, and one that is gone."""
    for round in (1, 4):
        sql = "update release set line = ? where round = ? and statistic = 'total'"
        change(made / "journal.sqlite", sql, b"{}", round)
    expected = [f"table release: the row {round}, 'total' is not as it was written" for round in (1, 4)]
    expected += [f"round {round} of total: expected a release, got none" for round in (1, 4)]
    assert problems(made, tmp_path) == expected
    change(made / "journal.sqlite", "delete from release where round = 3 and statistic = 'total'")
    assert problems(made, tmp_path) == [*expected[:3], "round 3 of total: expected a release, got none", expected[3]]
    with opened(made, tmp_path) as stream, pytest.raises(VerificationError, match="table release: the row 1, 'total'"):
        list(stream.releases())


def test_a_changed_record_is_refused(made, tmp_path):
    with sqlite3.connect(made / "data.sqlite") as connection:
        stamp, mark, records = connection.execute("select stamp, mark, records from block limit 1").fetchone()
    other = records.replace(b"of person-12", b"of person-1X", 1)
    change(made / "data.sqlite", "update block set records = ? where stamp = ? and mark = ?", other, stamp, mark)
    with pytest.raises(VerificationError, match=f"table block: the row {stamp}, {mark} is not as it was written"):
        opened(made, tmp_path)


def test_a_late_release_is_seen(made, tmp_path):
    change(made / "journal.sqlite", "insert into release values (9, 'total', ?, ?, ?)", b"", b"", b"")
    assert problems(made, tmp_path) == ["table release: the row 9, 'total' is not as it was written"]


def test_residue_is_seen(made, tmp_path):
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma secure_delete = off")
        connection.execute("create table other(secret text)")
        connection.execute("insert into other values (?)", ["a secret " * 900])
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma secure_delete = off")
        connection.execute("drop table other")
    with sqlite3.connect(made / "data.sqlite") as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    assert any("free page" in problem for problem in problems(made, tmp_path))


def test_a_broken_file_is_refused(made, tmp_path):
    content = bytearray((made / "data.sqlite").read_bytes())
    content[:16] = b"not a database!!"
    (made / "data.sqlite").write_bytes(content)
    with pytest.raises(VerificationError, match="not a database"):
        opened(made, tmp_path)


def test_connections_leave_no_traces_and_wait_for_the_disk(made, tmp_path):
    with opened(made, tmp_path) as stream:
        for side in ("data", "journal"):
            for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("secure_delete", 1)):
                assert stream.store.run(side, f"pragma {pragma}") == [(value,)]
