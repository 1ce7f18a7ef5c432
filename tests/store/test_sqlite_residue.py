"""What SQLite leaves behind in pages and logs is found, whichever way it came there, and nothing else is."""

import contextlib
import os
import random
import sqlite3
import struct

import pytest

from retroact.errors import InputError
from retroact.store.sqlite_residue import residue


def log_of(path):
    return path.with_name(f"{path.name}-wal")


def connect(path, *, secure="on", mode="wal", size=4096):
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in (f"page_size={size}", f"secure_delete={secure}", f"journal_mode={mode}", "synchronous=off"):
        connection.execute(f"pragma {pragma}")
    return connection


def close(connection):
    if connection.execute("pragma journal_mode").fetchone() == ("wal",):
        assert connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


def page_size(path):
    size = struct.unpack(">H", path.read_bytes()[16:18])[0]
    return 65536 if size == 1 else size


def regions(path, **options):
    size = page_size(path)
    return [
        ((r.page - 1) * size + r.offset, (r.page - 1) * size + r.offset + r.length) for r in residue(path, **options)
    ]


def history(path, *, seed, secure, mode, size, rows=600, rowid=True):
    """Random inserts, updates, deletions and dropped tables; the marks of what is dead."""
    generator = random.Random(seed)
    connection = connect(path, secure=secure, mode=mode, size=size)
    connection.execute(f"create table part(k blob primary key, v blob){' ' if rowid else ' without rowid'}")
    connection.execute("create table block(i integer primary key, v blob)")
    connection.execute("create table gone(v blob)")
    connection.execute("begin")
    dead, live = [], {}
    for step in range(rows):
        key, value = generator.randbytes(16), generator.randbytes(16)
        tail = generator.randbytes(generator.choice([0, 9, size // 5, size, 5 * size]))
        connection.execute("insert into part values(?, ?)", (key, value + tail))
        live[key] = [value]
        if step % 3 == 0:
            dead.append(generator.randbytes(16))
            connection.execute("insert into gone values(?)", (dead[-1] + tail,))
        if step % 2:
            key = generator.choice(list(live))
            if generator.random() < 0.6:
                connection.execute("delete from part where k = ?", (key,))
                dead += [key, *live.pop(key)]
            else:
                dead += live[key]
                live[key] = [generator.randbytes(16)]
                connection.execute("update part set v = ? where k = ?", (live[key][0], key))
        if step % 50 == 49:
            connection.execute("commit")
            connection.execute("begin")
    connection.execute("drop table gone")
    connection.execute("commit")
    close(connection)
    return dead


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("size", [512, 4096, 8192, 32768])
@pytest.mark.parametrize("rowid", [True, False])
@pytest.mark.parametrize("secure", ["on", "fast", "off"])
def test_what_is_dead_and_still_there_is_reported(tmp_path, mode, size, rowid, secure):
    path = tmp_path / "db"
    dead = history(path, seed=size, secure=secure, mode=mode, size=size, rowid=rowid, rows=200)
    content, found = path.read_bytes(), regions(path)
    still = 0
    for value in dead:
        at = content.find(value)
        while at >= 0:
            still += 1
            assert any(a <= at and at + 16 <= b for a, b in found)
            at = content.find(value, at + 1)
    assert still > 20 or secure != "off"
    # what is passed over is small: offsets and page numbers
    assert {*regions(path)} <= {*regions(path, strict=True)}


def shop(path, **options):
    """Blobs of many pages, rows of a few bytes, and a table that will be dropped; all alive."""
    connection = connect(path, **options)
    connection.execute("create table blob(i integer, j integer, v blob, primary key(i, j)) without rowid")
    connection.execute("create table small(k blob primary key, n integer) without rowid")
    connection.execute("create table gone(v blob)")
    connection.execute("begin")
    for i in range(40):
        connection.execute("insert into blob values(?, 1, ?)", (i, os.urandom(50_000 + i)))
        connection.execute("insert into gone values(?)", (os.urandom(70_000),))
    for i in range(120):
        connection.execute("insert into small values(?, ?)", (i.to_bytes(16), i))
    connection.execute("commit")
    return connection


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_secure_deletion_leaves_nothing(tmp_path, mode):
    path = tmp_path / "db"
    connection = shop(path, mode=mode)
    connection.execute("delete from blob where i % 3 = 0")
    connection.execute("update blob set v = substr(v, 1, 20000 + i) where i % 3 = 1")
    connection.execute("drop table gone")
    connection.execute("delete from small where n between 10 and 20")
    close(connection)
    assert residue(path) == []
    assert not log_of(path).exists() or log_of(path).stat().st_size == 0
    trunks = free_trunks(path)
    assert len(trunks) >= 1


def free_trunks(path):
    content, size, trunks = path.read_bytes(), page_size(path), []
    trunk = struct.unpack(">I", content[32:36])[0]
    while trunk:
        trunks.append(trunk)
        trunk = struct.unpack(">I", content[(trunk - 1) * size :][:4])[0]
    return trunks


@pytest.mark.parametrize("secure", ["on", "off"])
def test_many_trunks_and_their_reuse(tmp_path, secure):
    path = tmp_path / "db"
    connection = shop(path, secure=secure, size=512)
    connection.execute("drop table gone")
    connection.execute("delete from blob where i > 3")
    close(connection)
    assert len(free_trunks(path)) > 5
    found = residue(path)
    assert {r.kind for r in found if r.kind == "free page"} == (set() if secure == "on" else {"free page"})
    connection = connect(path, secure=secure, size=512)
    for i in range(100, 140):
        connection.execute("insert into blob values(?, 1, ?)", (i, os.urandom(20_000 + i)))
    close(connection)
    if secure == "on":
        # copies of cells that a balanced tree left in a gap are content, and are reported
        assert {r.kind for r in residue(path)} <= {"gap"}
        assert "free page" in {r.kind for r in residue(path, strict=True)}  # stale page numbers in a trunk


def test_after_vacuum_nothing_is_left(tmp_path):
    path = tmp_path / "db"
    connection = shop(path, secure="off")
    connection.execute("drop table gone")
    connection.execute("delete from blob where i % 2")
    connection.execute("pragma wal_checkpoint(truncate)")
    assert residue(path)
    connection.execute("pragma secure_delete=on")
    connection.execute("vacuum")
    close(connection)
    assert residue(path) == []


def test_a_rowid_that_outlives_its_row_is_reported(tmp_path):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table person(i integer primary key, v blob)")
    for i in range(4000):
        connection.execute("insert into person values(?, ?)", (i * 1_000_003 + 7, bytes(40)))
    connection.execute("pragma wal_checkpoint(truncate)")
    assert [r for r in residue(path) if r.kind == "stale key"] == []
    connection.execute("delete from person where i % 3 = 0")
    close(connection)
    content = path.read_bytes()
    keys = [r for r in residue(path) if r.kind == "stale key"]
    assert keys
    for key in keys:
        value = 0
        for byte in content[(key.page - 1) * 4096 + key.offset :][: key.length]:
            value = value << 7 | byte & 0x7F
        assert value % 1_000_003 == 7
        assert value % 3 == 0


def test_copies_of_cells_in_a_gap_are_reported(tmp_path):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table t(k blob primary key, v blob) without rowid")
    generator = random.Random(3)
    keys = [generator.randbytes(16) for _ in range(1500)]
    for key in keys:
        connection.execute("insert into t values(?, ?)", (key, generator.randbytes(generator.randrange(1000))))
    connection.executemany("delete from t where k = ?", [(key,) for key in keys[::2]])
    close(connection)
    content, found = path.read_bytes(), regions(path)
    left = [at for key in keys[::2] if (at := content.find(key)) >= 0]
    assert left, "secure_delete alone was enough here: the docstring says otherwise"
    assert all(any(a <= at and at + 16 <= b for a, b in found) for at in left)


def plant(path, at, value=b"\xaa"):
    content = bytearray(path.read_bytes())
    assert content[at : at + len(value)] == bytes(len(value))
    content[at : at + len(value)] = value
    path.write_bytes(content)


def planted(path, page, offset, kind, value=b"\xaa"):
    before = path.read_bytes()
    plant(path, (page - 1) * page_size(path) + offset, value)
    found = [r for r in residue(path) if r.page == page and r.offset <= offset < r.offset + r.length]
    path.write_bytes(before)
    assert [r.kind for r in found] == [kind]
    assert found[0].nonzero >= 1


def test_a_single_byte_is_found(tmp_path):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table t(k integer primary key, v blob)")
    connection.execute("insert into t values(1, ?)", (b"x" * 12_470,))
    connection.execute("create table gone(v blob)")
    connection.execute("insert into gone values(?)", (b"y" * 30_000,))
    connection.execute("drop table gone")
    close(connection)
    content = path.read_bytes()
    assert residue(path) == []
    (trunk,) = free_trunks(path)
    count, leaf = struct.unpack(">II", content[(trunk - 1) * 4096 + 4 :][:8])
    assert count > 2
    tail = max(page for page in range(1, len(content) // 4096 + 1) if content[page * 4096 - 4096 + 4] == ord("x"))
    planted(path, 2, 1000, "gap")
    planted(path, 2, 1000, "gap", b"\x01")
    planted(path, 1, 2000, "gap", b"\x01")
    for offset in (0, 1000, 4095):
        planted(path, leaf, offset, "free page", b"\x01")
    planted(path, trunk, 3000, "free page", b"\x01")
    offsets = [at for at in range(4, 4096) if not any(content[(tail - 1) * 4096 + at : tail * 4096])]
    for offset in {*offsets[8::200], 4095}:
        planted(path, tail, offset, "overflow tail", b"\x01")
    planted(path, 1, 80, "header", b"\x01")


def test_free_blocks_and_fragments(tmp_path):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table t(k integer primary key, v blob)")
    for i in range(1, 6):
        connection.execute("insert into t values(?, ?)", (i, bytes([i]) * 100))
    connection.execute("delete from t where k = 2")
    close(connection)
    block = struct.unpack(">H", path.read_bytes()[4097:4099])[0]
    assert block
    assert residue(path) == []
    planted(path, 2, block + 4, "free block", b"\x01")
    planted(path, 2, block + 50, "free block", b"\x01")
    connection = connect(path)
    connection.execute("insert into t values(9, ?)", (b"z" * 98,))
    close(connection)
    assert path.read_bytes()[4096 + 7] in (1, 2, 3)
    assert [r.kind for r in residue(path)] in ([], ["fragment"])


def test_pages_that_nobody_owns(tmp_path):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table t(v blob)")
    close(connection)
    content = bytearray(path.read_bytes())
    path.write_bytes(content + bytes(100))
    assert residue(path) == []
    path.write_bytes(content + b"left")
    assert [(r.kind, r.page, r.nonzero) for r in residue(path)] == [("after the last page", 3, 4)]
    content[28:32] = struct.pack(">I", 3)
    path.write_bytes(content + bytes(4096))
    assert [(r.kind, r.page, r.nonzero) for r in residue(path)] == [("unreferenced page", 3, 0)]
    path.write_bytes(content + b"left" * 1024)
    assert [(r.kind, r.page, r.nonzero) for r in residue(path)] == [("unreferenced page", 3, 4096)]


def test_long_schemas_views_and_indices_are_followed(tmp_path):
    path = tmp_path / "db"
    connection = connect(path, size=512)
    for i in range(60):
        columns = ", ".join(f"column_{i}_{j} text" for j in range(1 + i))
        connection.execute(f"create table t{i}({columns}, unique(column_{i}_0))")
    connection.execute("create view v as select * from t1")
    connection.execute("create table s(i integer primary key autoincrement)")
    connection.execute("vacuum")
    close(connection)
    assert [r for r in residue(path) if r.kind != "gap"] == []


def test_a_log_must_be_empty(tmp_path):
    path = tmp_path / "db"
    connection = shop(path)
    assert log_of(path).stat().st_size > 1000
    with pytest.raises(InputError, match="expected an empty write-ahead log, found one of"):
        residue(path)
    close(connection)
    (tmp_path / "db-journal").write_bytes(b"x" * 9)
    with pytest.raises(InputError, match="expected an empty rollback journal, found one of 9 bytes"):
        residue(path)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"PK", "begins with"),
        (16, b"\x03\x01", "power of two from 512 to 65536, found 769"),
        (20, b"\xff", None),
        (21, b"\0", "payload fractions"),
        (28, b"\0\0\xff\0", "expected 65280 pages of 4096 bytes, found a file of"),
        (32, b"\0\0\xff\0", "a freelist trunk among"),
        (36, b"\0\0\0\x07", "expected 7 free pages, as the header says, found 0"),
        (52, b"\0\0\0\x01", "without auto_vacuum"),
        (100, b"\x07", "type 2, 5, 10 or 13, found type 7 - at .*, page 1"),
        (103, b"\xff\xff", "cells that begin between"),
        (4096, b"\0", "found type 0 - at .*, page 2"),
        (4097, b"\x0f\xff", "free blocks"),
        (4103, b"\x05", "expected 5 bytes in fragments"),
        (4104, b"\0\0", "do not overlap"),
        (4104, b"\x0f\xff", "page 2"),
    ],
)
def test_bad_files_are_refused(tmp_path, at, value, message):
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("create table t(k blob primary key, v blob) without rowid")
    connection.execute("insert into t values(x'01', ?)", (b"x" * 9000,))
    close(connection)
    content = bytearray(path.read_bytes())
    content[at : at + len(value)] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        residue(path)
    assert str(path) in str(error.value)


def test_files_that_are_none(tmp_path):
    (tmp_path / "empty").touch()
    for name, message in (("empty", "found a file of 0 bytes"), ("none", "No such file"), ("", "can be read")):
        with pytest.raises(InputError, match=message):
            residue(tmp_path / name)


def test_random_damage_never_escapes(tmp_path):
    path = tmp_path / "db"
    history(path, seed=5, secure="on", mode="wal", size=512, rows=60)
    content, generator = path.read_bytes(), random.Random(1)
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(generator.choice([1, 5, 50])):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged[: generator.choice([len(damaged), generator.randrange(len(damaged))])])
        with contextlib.suppress(InputError):
            residue(path)
