"""SQLite leaves second copies of rows in its pages: none of them outlasts a close, a crash or an erasure."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retroact as ra
from retroact.store import sqlite
from retroact.store.sqlite_residue import residue
from retroact.store.sqlite_wipe import logged
from retroact.stream import layout
from support import crashing

COPIES, COPIED = 66, "n765508"
"""A seed of rounds that leave copies of texts, and one of these."""
SCHEMA: dict[str, Any] = {"name": ra.Text(), "amount": ra.Integer(0, 10**9)}


def opened(folder: Path, seed: int) -> ra.Stream:
    return ra.Stream.open(
        folder / "orders",
        SCHEMA,
        {"orders": ra.Count()},
        epsilon=1,
        delta=1e-6,
        horizon=50,
        key=ra.Key.for_testing(seed),
        fence=folder / "orders.fence",
    )


def rounds_that_only_add(folder: Path, seed: int) -> None:
    with opened(folder, seed) as stream:
        only_add(stream, seed)


def only_add(stream: ra.Stream, seed: int) -> list[tuple[str, str]]:
    """Two to seven rounds; names and subjects of all records. SQLite balances some trees of these seeds in such a way
    that old copies of rows stay."""
    random, made = np.random.default_rng(seed), []
    for round in range(random.integers(2, 8)):
        count = int(random.integers(50, 4000))
        names = [f"n{number}" for number in random.integers(0, 10**6, count)]
        amounts = random.integers(0, 10**9, count)
        subjects = [f"u{number}" for number in random.integers(0, 500, count)]
        ids = [f"i{round}-{number}" for number in range(count)]
        stream.add({"name": names, "amount": amounts}, id=ids, subject=subjects)
        stream.close_round()
        made += zip(names, subjects, strict=True)
    return made


def problems(folder: Path, seed: int) -> list[str]:
    with opened(folder, seed) as stream:
        return stream.verify().problems


@pytest.mark.parametrize("seed", [3, 18])
def test_verify_finds_nothing_after_rounds_that_only_add(tmp_path: Path, seed: int) -> None:
    rounds_that_only_add(tmp_path, seed)
    data = tmp_path / "orders" / "data.sqlite"
    assert data.stat().st_size > 60 * 4096
    assert residue(data, strict=True, trees=True) == []
    assert problems(tmp_path, seed) == []
    assert residue(data) == []


def test_a_deleted_record_in_a_gap_is_still_found(tmp_path: Path) -> None:
    """A file that was wiped is not wiped again before somebody has looked at it."""
    rounds_that_only_add(tmp_path, 3)
    data = tmp_path / "orders" / "data.sqlite"
    content = bytearray(data.read_bytes())
    page = next(at for at in range(4096, len(content), 4096) if content[at] == 10 and gap(content, at)[1] > 40)
    begin, size = gap(content, page)
    content[begin + size - 20 : begin + size - 8] = b"u17 was here"
    data.write_bytes(content)
    assert problems(tmp_path, 3) == [f"{data}: page {page // 4096 + 1}, gap: 12 bytes that nothing accounts for"]


def gap(content: bytes, page: int) -> tuple[int, int]:
    """Where the gap of a leaf begins, and how long it is."""
    cells, start = (int.from_bytes(content[page + at : page + at + 2], "big") for at in (3, 5))
    return page + 8 + 2 * cells, start - 8 - 2 * cells


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", crashing.WITHIN)
def test_killed_while_pages_are_wiped(tmp_path: Path, step: str, when: str) -> None:
    """The next opening knows that the file is not wiped, wherever the crash came, and nothing is lost."""
    for occurrence in range(1, 20):
        folder = tmp_path / str(occurrence)
        folder.mkdir()
        ended = crashing.run(folder, folder, (step, when, occurrence), lambda where, _: rounds_that_only_add(where, 3))
        assert ended in (0, -signal.SIGKILL)
        if ended == 0:
            assert occurrence > 1
            return
        if (folder / "orders.fence").exists():
            with opened(folder, 3) as stream:
                before = stream.store.blocks()
            assert problems(folder, 3) == []
            with opened(folder, 3) as stream:
                assert stream.store.blocks() == before
    raise AssertionError(f"{step} comes more often than expected")


def test_a_file_of_an_earlier_version_is_wiped_before_it_is_searched(tmp_path: Path) -> None:
    """It may hold second copies, and does not say so."""
    rounds_that_only_add(tmp_path, 3)
    with closing(sqlite3.connect(tmp_path / "orders" / "data.sqlite", isolation_level=None)) as connection:
        connection.execute("pragma schema_version = 1")
        connection.execute("pragma secure_delete = off")
        connection.execute("insert into inbox values (1, ?, ?)", [b"a secret " * 20, b""])
        connection.execute("delete from inbox")
    data = tmp_path / "orders" / "data.sqlite"
    assert b"a secret" in data.read_bytes()
    assert problems(tmp_path, 3) == []
    assert b"a secret" not in data.read_bytes()


def test_an_erasure_is_gone_from_all_files_whatever_was_wiped_before(tmp_path: Path) -> None:
    rounds_that_only_add(tmp_path, 3)
    with opened(tmp_path, 3) as stream:
        stream.add({"name": "somebody known", "amount": 7}, id="an id of its own", subject="somebody")
        stream.close_round()
        for number in range(60):
            stream.add({"name": "other" * 40, "amount": number}, id=f"other-{number}", subject="other")
            stream.close_round()
            if number == 40:
                break
        stream.erase(subject="somebody")
        stream.close_round()
        for path in (tmp_path / "orders").iterdir():
            content = path.read_bytes()
            assert not any(text in content for text in (b"somebody", b"an id of its own")), path


@pytest.mark.parametrize("wipes", [True, False])
def test_copies_of_the_erased_are_wiped_in_the_close_that_erases_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wipes: bool
) -> None:
    """And without that they would stay: what SQLite deletes securely is not all that it wrote."""
    monkeypatch.setattr(layout, "AT_ONCE", 0)
    if not wipes:
        monkeypatch.setattr(sqlite, "wipe", lambda path, pages: None)
    with opened(tmp_path, COPIES) as stream:
        subjects = [who for name, who in only_add(stream, COPIES) if name == COPIED]
        if COPIED.encode() not in stale_bytes(tmp_path / "orders", tmp_path / "copy"):
            pytest.skip("this version of SQLite balances these trees in another way")
        stream.erase(subject=subjects)
        stream.close_round()
        content = b"".join(path.read_bytes() for path in (tmp_path / "orders").iterdir())
        assert (COPIED.encode() in content) != wipes


def stale_bytes(folder: Path, copy: Path) -> bytes:
    """What lies in pages of the data outside live content, without touching them."""
    shutil.copytree(folder, copy)
    data = copy / "data.sqlite"
    with closing(sqlite3.connect(data, isolation_level=None)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    content, found = data.read_bytes(), []
    for region in residue(data, strict=True, trees=True):
        begin = (region.page - 1) * 4096 + region.offset
        found.append(content[begin : begin + region.length])
    return b"\0".join(found)


def test_the_pages_in_a_log(tmp_path: Path) -> None:
    path = tmp_path / "some.sqlite"
    assert logged(path) == set()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table some(content blob)")
        connection.execute("insert into some values (zeroblob(9000))")
        log = path.with_name("some.sqlite-wal")
        assert logged(log) == {1, 2, 3, 4}
        connection.execute("pragma wal_checkpoint(truncate)")
        assert logged(log) == set()
        assert os.stat(log).st_size == 0
