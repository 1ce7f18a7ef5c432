"""Edits by hand, by somebody who has every file but not the key: each is refused on opening or seen by `verify`."""

import shutil
import tempfile
from pathlib import Path

import pytest

import retroact as ra
from retroact.errors import RetroactError, VerificationError
from retroact.store import canonical_blocks
from retroact.store.tables import SIDES, TABLES, tables
from support.stores_by_hand import COLUMNS, DIGESTS, SIDE, Folder, Schema, add, refill, rows_of

SPEC = ra.Specification(
    {"name": ra.Text(), "amount": ra.Integer(0, 1000)},
    {"people": ra.Count(), "total": ra.Sum("amount")},
    epsilon=1.0,
    delta=1e-6,
    horizon=20,
    after_erasure="reject",
    rounds={"start": "2026-03-26", "length": "1d", "time_zone": "Europe/Berlin"},
)
KEYS = {table.name: table.keys for table in TABLES} | dict.fromkeys(DIGESTS.values(), 1)


# Where ----------------------------------------------------------------------------------------------------------------


def remove(place, table, *rows):
    where = " and ".join(f"{column} = ?" for column in COLUMNS[table][: KEYS[table]])
    for row in rows:
        place.run(SIDE[table], f"delete from {table} where {where}", *row[: KEYS[table]])


def change(place, table, row, **values):
    remove(place, table, row)
    add(place, table, [values.get(column, value) for column, value in zip(COLUMNS[table], row, strict=True)])


# What is there --------------------------------------------------------------------------------------------------------


def fill(stream, round):
    with stream.receiving("feed", (round, 1)):
        for k in range(40):
            subject = f"u{k % 10 + round * 5}"
            stream.add({"name": f"n{k}", "amount": 7 * k + round}, id=f"{round}-{k}", subject=subject)


def made(place, key_file):
    """Four rounds, of which each erases somebody, and an open one with a request; as it was before that request, and a
    round before."""
    stream = ra.Stream.open(place.where, specification=SPEC, key_file=key_file, fence=place.fence)
    for round in (1, 2, 3, 4, 5):
        fill(stream, round)
        if round < 5:
            stream.erase(subject=f"u{round * 5}", request=f"r{round}")
            if round == 4:
                stream.close()
                place.take("a round earlier")
                stream = ra.Stream.open(place.where, key_file=key_file, fence=place.fence)
            stream.close_round()
    stream.close()
    place.take("a request earlier")
    with ra.Stream.open(place.where, key_file=key_file, fence=place.fence) as stream:
        stream.erase(subject="u7", request="waits")
    place.take("now")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, postgres_server):
    """A store, and rows: its own, and those of a stream with another key and of one under the same key."""
    folder = Path(tempfile.mkdtemp(prefix="edits"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical_blocks, "SIZE", 8)
        patch.setattr(ra.Key, "claim", lambda key, where=None, **_: None)  # another process would not know of it
        places = {}
        for name in ("mine", "other", "sibling"):
            path = folder / name
            path.mkdir()
            url = f"{postgres_server.get_uri()}#edits_{name}"
            places[name] = Folder(path) if request.param == "sqlite" else Schema(path, url)
            key_file = folder / ("other.key" if name == "other" else "orders.key")
            made(places[name], key_file)
            places[name].key_file = key_file
        mine = places["mine"]
        mine.others = {name: rows_of(places[name]) for name in ("other", "sibling")}
        mine.rows = {}
        for time in ("a round earlier", "a request earlier", "now"):
            mine.put(time)
            mine.rows[time] = rows_of(mine)
        mine.whole = places
        yield mine
        for each in places.values():
            if isinstance(each, Schema):
                each.connection.execute(f"drop publication if exists spies; drop schema {each.schema} cascade")
                each.connection.close()
        shutil.rmtree(folder)


def said(place):
    """What opening or `verify` says against it, and whether that is of the kind that ends with exit code 4."""
    try:
        with ra.Stream.open(place.where, key_file=place.key_file, fence=place.fence) as stream:
            problems = stream.verify().problems
            return " | ".join(problems), bool(problems)
    except RetroactError as error:
        return str(error), isinstance(error, VerificationError)


# What is done ---------------------------------------------------------------------------------------------------------


def another(value):
    """Of the same type where there is one."""
    if value is None:
        return 3
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return b"\1" if not value else value[:-1] + bytes([value[-1] ^ 1])
    return {"purged": "applied", "applied": "received"}.get(value, f"{value}1")


def row_edits(table):
    """By name, what somebody does to one table who knows the format."""
    name, columns = table.name, [*table.columns]
    content = columns[table.keys :]

    def edit(label):
        # with the digest of another time, it is other tables that do not fit
        named = "" if "digest" in label else f"{name}: "
        return pytest.param(named, functions[label], id=f"{name}: {label}")

    def rows(place):
        found = place.rows["now"][name]
        assert len(found) > 1, name
        return found

    def swapped(place, kept):
        one, two, *_ = rows(place)
        remove(place, name, one, two)
        split = table.keys if kept == "key" else -1
        add(place, name, one[:split] + two[split:], two[:split] + one[split:])

    def from_another(place, which):
        mine, theirs = {row[: table.keys] for row in rows(place)}, place.others[which][name]
        new = [row for row in theirs if row not in rows(place)]
        row = next((row for row in new if row[: table.keys] not in mine), new[-1])
        remove(place, name, row)
        add(place, name, row)

    def put_back(place, time, digest):
        earlier = place.rows[time][name]
        assert {*earlier} != {*rows(place)}, name
        refill(place, name, earlier)
        if digest:
            refill(place, DIGESTS[table.side], place.rows[time][DIGESTS[table.side]])

    def moved(row):
        key = (value + 1000 if isinstance(value, int) else another(value) for value in row[: table.keys])
        return (*key, *row[table.keys :])

    functions = {
        "delete a row": lambda place: remove(place, name, rows(place)[0]),
        "delete all rows": lambda place: refill(place, name, []),
        "another hash": lambda place: change(place, name, rows(place)[-1], mac=bytes(32)),
        "hashes swapped": lambda place: swapped(place, "mac"),
        "rows swapped": lambda place: swapped(place, "key"),
        "a row added": lambda place: add(place, name, moved(rows(place)[-1])),
        "a row moved": lambda place: (remove(place, name, rows(place)[0]), add(place, name, moved(rows(place)[0]))),
        "a row of another stream": lambda place: from_another(place, "other"),
        "a row of another stream under the same key": lambda place: from_another(place, "sibling"),
        "all rows of another stream": lambda place: refill(place, name, place.others["other"][name]),
        "put back by a round": lambda place: put_back(place, "a round earlier", digest=False),
        "put back by a round with the digest": lambda place: put_back(place, "a round earlier", digest=True),
        **{
            f"another {column}": lambda place, column=column: change(
                place, name, rows(place)[0], **{column: another(rows(place)[0][columns.index(column)])}
            )
            for column in content
        },
    }
    return [edit(label) for label in functions]


def digest_edits(side):
    name, first = DIGESTS[side], tables(side)[0].name

    def sealed(place):
        return place.rows["now"][name][0][1]

    def without_one(place, correct):
        """Take a row away, and correct the digest as well as can be done."""
        row = place.rows["now"][first][0]
        remove(place, first, row)
        refill(place, name, [(side, correct(sealed(place), int.from_bytes(row[-1], "big")))])

    def less(text, number, at):
        part = int.from_bytes(text[at : at + 32], "big") - number
        return text[:at] + (part % (1 << 256)).to_bytes(32, "big") + text[at + 32 :]

    functions = {
        "gone": lambda place: refill(place, name, []),
        "gone with a row": lambda place: (refill(place, name, []), remove(place, first, place.rows["now"][first][0])),
        "a bit": lambda place: refill(place, name, [(side, another(sealed(place)))]),
        "another tag": lambda place: refill(place, name, [(side, bytes(32) + sealed(place)[32:])]),
        "cut": lambda place: refill(place, name, [(side, sealed(place)[:31])]),
        "of the other side": lambda place: refill(
            place, name, [(side, place.rows["now"][DIGESTS["journal" if side == "data" else "data"]][0][1])]
        ),
        "of another stream": lambda place: refill(place, name, place.others["other"][name]),
        "of another stream under the same key": lambda place: refill(place, name, place.others["sibling"][name]),
        "a second one": lambda place: add(place, name, ("other", sealed(place))),
        "a row less, by its hash": lambda place: without_one(place, lambda text, mac: less(text, mac, 40)),
        "a row less, in the tag": lambda place: without_one(place, lambda text, mac: less(text, mac, 0)),
    }
    older = {
        "put back by a round": lambda place: refill(place, name, place.rows["a round earlier"][name]),
        "a row less, and put back by a round": lambda place: (
            remove(place, first, place.rows["now"][first][0]),
            refill(place, name, place.rows["a round earlier"][name]),
        ),
    }
    made = [pytest.param(f"{name}: ", function, id=f"{name}: {label}") for label, function in functions.items()]
    return made + [pytest.param("", function, id=f"{name}: {label}") for label, function in older.items()]


EDITS = [
    *(edit for table in TABLES for edit in row_edits(table)),
    *(edit for side in SIDES for edit in digest_edits(side)),
    pytest.param(
        "inbox: ",
        lambda place: refill(place, "inbox", place.rows["a request earlier"]["inbox"]),
        id="inbox: put back by a request",
    ),
]

TRIGGERS = {
    "sqlite": "create trigger spy before delete on {} begin select 1; end",
    "postgres": "create function spy() returns trigger language plpgsql as 'begin return old; end';"
    "create trigger spy before delete on {} for each row execute function spy()",
}
SCHEMAS = [
    *((table.name, f"drop table {table.name}") for table in TABLES if table.name != "release"),
    ("release", "drop view published; drop table release"),
    *((name, f"drop table {name}") for name in DIGESTS.values()),
    *((table.name, TRIGGERS) for table in TABLES),
    ("published", "drop view published"),
    ("published", "drop view published; create view published as select 1 as round, 'x' as statistic, 'y' as release"),
    ("spies", "create table spies(value text)"),
    ("spies", "create view spies as select 1 as one"),
    ("inbox", "create index spies on inbox(entry)"),
    ("inbox", "alter table inbox rename to kept; create view inbox as select * from kept"),
    ("block", "alter table block add column spies text"),
    ("block", "alter table block rename column records to spies"),
    ("request", "alter table request drop column outcome"),
    ("note", "alter table note rename to spies"),
]
POSTGRES = [
    ("block", "create rule spies as on delete to block do also select 1"),
    ("inbox", "create rule spies as on delete to inbox do instead nothing"),
    ("inbox", "alter table inbox enable row level security"),
    ("inbox", "create policy spies on inbox using (false)"),
    ("inbox", "alter table inbox alter column entry set default 'x'"),
    ("inbox", "create table spies() inherits (inbox)"),
    ("inbox", "create publication spies for table inbox"),
    ("block", "create publication spies for all tables"),
    ("state", "alter table state add check (name <> 'x')"),
    ("note", "alter table note drop constraint note_pkey"),
    ("request", "alter table request alter column received drop not null"),
    ("block", "create table spies(a bigint, b bigint, foreign key (a, b) references block on delete cascade)"),
    ("block", "create statistics spies (dependencies) on stamp, mark from block"),
    ("block", "alter table block alter column records set statistics 100"),
    ("block_02", "alter table block_02 set unlogged"),
    ("block_02", "alter table block detach partition block_02"),
    ("spies", "create sequence spies"),
    ("spies", "create materialized view spies as select * from block"),
    ("", "create function spies(bytea) returns bytea language sql as 'select $1'"),
]  # fmt: skip


def test_there_are_enough_edits():
    assert len(EDITS) + len(SCHEMAS) >= 60


def test_nothing_was_done(place):
    place.put("now")
    assert said(place) == ("", False)


@pytest.mark.parametrize(("table", "edit"), EDITS)
def test_an_edited_row(place, table, edit):
    place.put("now")
    edit(place)
    text, refused = said(place)
    assert refused, text
    assert f": table {table}" in f": {text}"


@pytest.mark.parametrize(("table", "sql"), SCHEMAS, ids=lambda value: str(value)[:60])
def test_another_schema(place, table, sql):
    kind = "sqlite" if isinstance(place, Folder) else "postgres"
    _another_schema(place, table, sql if isinstance(sql, str) else sql[kind].format(table))


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize(("table", "sql"), POSTGRES, ids=lambda value: str(value)[:60])
def test_another_schema_in_postgres(place, table, sql):
    _another_schema(place, table, sql)


def _another_schema(place, table, sql):
    place.put("now")
    side = SIDE.get(table, "journal" if table == "published" else "data")
    for statement in sql.split(";") if isinstance(place, Folder) and "begin" not in sql else [sql]:
        place.run(side, statement)
    before = rows_of(place) if "drop" not in sql and "rename" not in sql else None
    try:
        text, refused = said(place)
        assert refused, text
        assert table in text
        assert "not a store's own" in text or "is missing" in text or "is another" in text
        if before is not None:
            assert rows_of(place) == before
    finally:
        if isinstance(place, Schema):
            place.make_again()


@pytest.mark.parametrize("sides", [("data",), ("journal",), SIDES], ids=" and ".join)
def test_files_of_a_round_earlier(place, sides):
    place.put("now")
    place.put("a round earlier", sides, fence=False)
    text, refused = said(place)
    assert refused, text
    assert "round 4 was published" in text or "the data are of round" in text


@pytest.mark.parametrize("sides", [("data",), SIDES], ids=" and ".join)
def test_files_of_a_request_earlier(place, sides):
    place.put("now")
    place.put("a request earlier", sides, fence=False)
    text, refused = said(place)
    assert refused, text


@pytest.mark.parametrize("which", ["other", "sibling"])
@pytest.mark.parametrize("side", SIDES)
def test_a_side_of_another_stream(place, which, side):
    place.put("now")
    for table, rows in place.others[which].items():
        if SIDE[table] == side:
            refill(place, table, rows)
    text, refused = said(place)
    assert refused, text
    assert f"table {DIGESTS[side]}: " in text


@pytest.mark.parametrize("side", SIDES)
def test_a_side_that_was_emptied(place, side):
    place.put("now")
    for table in COLUMNS:
        if SIDE[table] == side:
            refill(place, table, [])
    text, refused = said(place)
    assert refused, text
