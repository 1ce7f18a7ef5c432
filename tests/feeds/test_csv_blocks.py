"""Blocks of CSV read a column at a time say what Python's reader says row by row: the same changes, the same errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import InputError
from retroact.feeds.batch import Changes, has_record
from retroact.feeds.encoded_cells import EncodedCells
from retroact.feeds.options import Options
from retroact.feeds.readers.csv import CsvFile
from retroact.feeds.readers.csv_blocks import PlainRows
from retroact.feeds.readers.csv_text import valid_blocks
from retroact.feeds.refusals import Refusals
from retroact.feeds.source import Source
from retroact.schema import Schema
from retroact.stream.columns import Columns
from retroact.stream.grid import Grid
from retroact.stream.rounds import Rounds
from support.tiers import examples

FIELDS = {
    "amount": ra.Number(0, 500, step="0.01"),
    "delay": ra.Number(-60, 60, missing="skip", clip=True),
    "n": ra.Integer(-9, 2**53 - 1),
    "m": ra.Integer(0, 99, missing="skip"),
    "land": ra.Category(["DE", "FR", "7", ""]),
    "rest": ra.Category(["DE"], other="else", missing="skip"),
    "note": ra.Text(),
    "tail": ra.Text(missing="skip"),
    "flag": ra.Boolean(missing="skip"),
    "day": ra.Date("2020-01-01", "2029-12-31", missing="skip"),
    "at": ra.Timestamp("2020-01-01T00:00:00Z", "2029-12-31T00:00:00Z"),
    "point": ra.Vector(2, radius=9, step="0.1", missing="skip"),
    "raw": ra.Bytes(missing="skip"),
}
NUMBERS = ["0", "12", "3", "12.50", "-3", "0.155", "07", "-0", ".5", "5.", "1.0", "99"]
GOOD: dict[str, list[str]] = {
    "amount": ["0", "12", "499.99", "12.50", "0.155", "07", "-0", ".5", "5.", "1e2", "+3", "0" * 30],
    "delay": [*NUMBERS, "", "900", "1e3"],
    "n": ["0", "12", "-3", "3.0", "007", "9007199254740991"],
    "m": ["0", "12", "99", ""],
    "land": ["DE", "FR", "7", ""],
    "rest": ["DE", "FR", "", "naïve"],
    "note": ["", "DE", "Zürich", "a b", " a", "x" * 70, "長い"],
    "tail": ["", "N1", "N2", "N 3"],
    "flag": ["0", "1", "true", "FALSE", ""],
    "day": ["2020-02-29", "2026-01-01", ""],
    "at": ["2020-01-01T05:00:00Z", "2026-07-01T05:00:00.5+02:00", "2020-01-01 05:00:00Z"],
    "point": ["[1, 2]", "[0.5,-1]", "", "null"],
    "raw": ["", "AAE="],
    "id": ["o-1", "o-2", "7", "é", ""],
    "subject": ["u1", "u2", "long enough to take two words", ""],
    "stamp": ["", "1", "2", "007"],
    "round": ["1", "2", ""],
    "lsn": ["1", "2", "-5", "99"],
    "ts": ["1600000000", "2020-09-13", "2020-09-13T12:26:40Z", ""],
    "op": ["add", "c", "u", "delete", "erase", "close", "insert"],
    "mz_diff": ["1", "-1", "0", "+1"],
    "mz_progressed": ["", "t", "f"],
    "other": ["", "x", "1"],
}
ODD = [
    "NA",
    "n/a",
    "501",
    "2.5",
    "1e400",
    "x",
    "2020-02-30",
    "2019-01-01",
    " 1",
    "1 ",
    "-",
    ".",
    "1.2.3",
    "99999999999999999999",
]
ODD += ["2020-01-01T05:00:00", "[1]", "{", "é", "-1", "nan", "\u0661", "3.5", "1_0"]
MESS = ['a"b', '"ab', '"a""b"', '"a\nb"', '"a\r\nb"', '"a"b', "a\rb", "\0", '"', ' "a"', '""', '"a;b,c\td"', "\ufeff"]


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, Options, Schema]:
    fields = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=4, unique=True))
    marks = draw(st.sampled_from([(), ("op",), ("op",), ("mz_diff",), ("mz_diff", "mz_progressed")]))
    roles = draw(st.lists(st.sampled_from(["id", "subject", "stamp", "round", "lsn", "ts"]), max_size=3, unique=True))
    others = draw(st.sampled_from([[], [], ["other"]]))
    names = draw(st.permutations([*fields, *marks, *roles, *others]))
    delimiter = draw(st.sampled_from([",", ",", ";", "\t", "|"]))
    mess = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
    cells = {
        name: st.one_of(
            st.sampled_from(GOOD[name]), *([st.sampled_from([*GOOD[name], *ODD])] if mess and name not in marks else [])
        )
        for name in names
    }
    table = draw(st.lists(st.tuples(*(cells[name] for name in names)), max_size=8))
    quoted = draw(st.sampled_from(["never", "never", "always", "now and then"]))
    lines = [delimiter.join(names)]
    for row in table:
        texts = list(row)
        if quoted != "never":
            texts = [f'"{text}"' if quoted == "always" or len(text) % 2 else text for text in texts]
        if mess == 2 and draw(st.booleans()):
            place = draw(st.integers(0, len(texts) - 1))
            texts[place : place + 1] = draw(st.lists(st.sampled_from(MESS), max_size=2))
        lines.append(delimiter.join(texts))
    ends = draw(st.sampled_from([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\n\n", "\r\n\r\n"]]))
    ends = [*ends, "\r"] if mess == 2 else ends
    text = "".join(line + draw(st.sampled_from(ends)) for line in lines)
    text = draw(st.sampled_from(["", "", "\n", "\r\n"])) + (text if draw(st.booleans()) else text.rstrip("\r\n"))
    content = text.encode()
    if mess == 2 and draw(st.integers(0, 9)) == 0:
        content = content.replace("é".encode(), b"\xe9")
    grid = "ts" in roles
    columns = {role: {"column": role, "optional": True} for role in ("id", "subject", "stamp") if role in roles}
    columns |= {"round": {"column": "round", "optional": True}} if "round" in roles and not grid else {}
    columns |= {"position": "lsn"} if "lsn" in roles and not grid else {}
    columns |= {"time": "ts"} if grid else {}
    columns |= {"op": marks[0]} if marks else {}
    columns |= {"ignore": True, "na_values": draw(st.sampled_from([[], [], ["NA"], ["NA", "n/a", "12", ""]]))}
    cut = Rounds(grid=Grid(0, 3600, 3600 * 500_000)) if grid else Rounds(close_by="lines")
    refusals = draw(st.booleans())
    options = Options(Columns.from_spec(columns), cut, refusals=Refusals() if refusals else None)
    return content, options, Schema({name: FIELDS[name] for name in fields})


@contextmanager
def blocks_of(size: int, *, plain: bool) -> Iterator[None]:
    """Small blocks, read a column at a time or not."""
    with mock.patch("retroact.feeds.source.BLOCK", size), mock.patch("retroact.feeds.readers.csv_text.LARGE", size):
        if plain:
            yield
        else:
            with mock.patch.object(PlainRows, "of", return_value=None):
                yield


def encoded(schema: Schema, changes: Changes) -> list[Any]:
    """Every field of the records, or why it is refused."""
    records, found = changes.take(has_record(changes)).records(), []
    for name, field in schema.fields.items():
        try:
            values, missing = field.encode_column(records[name], name)
            found.append([values.dtype.kind, values.tolist(), None if missing is None else missing.tolist()])
        except InputError as error:
            found.append([str(error), error.row, error.hint])
    return found


def outcome(
    content: bytes, options: Options, schema: Schema, *, after: int = 0, follow: bool = False, holds: bool = False
) -> list[Any]:
    if options.refusals is not None:
        object.__setattr__(options, "refusals", Refusals())
    source = Source("f.csv", "CSV", io.BytesIO(content), follow=follow, holds=holds)
    reader = CsvFile(source, schema, options)
    reader.begin_after = after
    parts, found = [], []
    try:
        for changes in reader:
            parts += [changes] if len(changes) else []
        found += [reader.skipped, reader.unfinished(), source.count]
    except InputError as error:
        found += [str(error), error.row, error.hint]
    found.append(reader.label)
    if options.refusals is not None:
        kinds = [repr(kind) for kind in options.refusals.kinds]
        found.append(sorted(kinds))
    if parts:
        changes = Changes.concatenate(parts)
        copies = None if changes.copies is None else changes.copies.tolist()
        found += [changes.numbers.tolist(), changes.codes.tolist(), copies, encoded(schema, changes)]
        found += [[name, cells.listed()] for name, cells in changes.fields.items()]
        found += [[role, cells.listed()] for role, cells in changes.roles.items()]
        found += [list(changes.names(role) or ()) for role in ("id", "subject")]
        if changes.example() is not None and not isinstance(encoded(schema, changes)[0][0], str):
            found.append(repr(changes.example()))
    return found


def times(content: bytes, options: Options, schema: Schema) -> list[Any]:
    reader = CsvFile(Source("f.csv", "CSV", io.BytesIO(content)), schema, options)
    try:
        return [pair for numbers, times in reader.times() for pair in zip(numbers.tolist(), times, strict=True)]
    except InputError as error:
        return [str(error)]


def both(content: bytes, options: Options, schema: Schema, size: int = 1 << 20, **how: Any) -> None:
    with blocks_of(size, plain=True):
        quick = outcome(content, options, schema, **how), options.time and times(content, options, schema)
    with blocks_of(size, plain=False):
        slow = outcome(content, options, schema, **how), options.time and times(content, options, schema)
    assert quick == slow, content


@examples(1500)
@given(files(), st.integers(0, 9))
def test_a_block_and_its_rows_say_the_same(file: tuple[bytes, Options, Schema], after: int) -> None:
    both(*file, after=max(0, after - 5))


@examples(1500)
@given(files(), st.sampled_from([1, 30, 90]), st.booleans(), st.booleans())
def test_small_blocks_and_their_rows_say_the_same(
    file: tuple[bytes, Options, Schema], size: int, follow: bool, holds: bool
) -> None:
    both(*file, size=size, follow=follow, holds=holds)


PLAIN = [b"7,a", b'7,"a;b,c"', b'"7",""', b"\r\n7,a\r\n\r\n", b"\n\n7,a\n", "7,長い".encode(), b"7, a", b"7,'a'"]
NOT_PLAIN = [
    b'7,"a""b"',
    b'7,"a\nb"',
    b'7,a"b"',
    b'7, "a"',
    b'7,"a" ',
    b"7,a\rb",
    b"7,a\0",
    b"7",
    b"7,a,",
    b'7,"a',
    b"7,a\n7",
]


@pytest.mark.parametrize("content", PLAIN)
def test_plain_rows_are_read_by_columns(content: bytes) -> None:
    rows = PlainRows.of(content, ",", 2)
    assert rows is not None
    lines = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
    assert [list(row) for row in zip(rows.column(0), rows.column(1), strict=True)] == [row for row in lines if row]
    assert rows.lines.tolist() == [line for line, row in enumerate(lines) if row]
    assert rows.line_count == len(lines)


@pytest.mark.parametrize("content", NOT_PLAIN)
def test_other_rows_are_left_to_the_reader(content: bytes) -> None:
    assert PlainRows.of(content, ",", 2) is None
    assert PlainRows.of(b"7,a\n" * 3 + content + b"\n7,a\n", ",", 2) is None


def test_cells_of_any_length_are_read_by_the_reader_or_like_it() -> None:
    limit = csv.field_size_limit()
    assert PlainRows.of(b"7," + b"x" * (limit - 9) + b"\n", ",", 2) is not None
    assert PlainRows.of(b"7,a\n7," + b"x" * (limit + 1) + b"\n", ",", 2) is None
    wide = b",".join([b"12345678"] * (limit // 8))
    assert PlainRows.of(wide, ",", limit // 8) is not None
    schema, options = Schema({"note": ra.Text()}), Options(Columns.from_spec({"ignore": True}))
    for size in (limit - 9, limit, limit + 1):
        both(b"other,note\n7," + b"x" * size + b"\n7,a\n", options, schema)


def test_a_quick_block_comes_after_a_slow_one_only_where_a_row_begins() -> None:
    """What stands inside quotes looks like rows."""
    inside = b"7,a\n" * 200
    content = b'n,note\n1,b\n2,"' + inside + b'"\n' + b"3,c\n" * 200
    schema, options = Schema({"n": ra.Integer(0, 9), "note": ra.Text()}), Options(Columns.from_spec({}))
    both(content, options, schema, size=64)
    with (
        blocks_of(64, plain=True),
        mock.patch.object(CsvFile, "_encoded", autospec=True, side_effect=CsvFile._encoded) as quick,
    ):
        assert outcome(content, options, schema)[-1] is not None
    assert 0 < sum(len(call.args[1]) for call in quick.call_args_list) < 202


@pytest.mark.parametrize("role", ["stamp", "round", "lsn", "ts"])
@pytest.mark.parametrize(
    "cell", ["1", "-1", "-0", "1.", ".1", "1.0", "+1", "007", "9" * 19, "9" * 20, "", "NA", "2020-1"]
)
def test_whole_numbers_of_rows(role: str, cell: str) -> None:
    columns: dict[str, Any] = {"na_values": ["NA"], "stamp": "stamp"}
    columns |= {"lsn": {"position": "lsn"}, "ts": {"time": "ts"}}.get(role, {role: {"column": role, "optional": True}})
    cut = Rounds(grid=Grid(0, 3600, 3600 * 500_000)) if role == "ts" else Rounds(close_by="lines")
    names = ["n", *dict.fromkeys(["stamp", role])]
    rows = [",".join({"n": "7", "stamp": "1", role: text}[name] for name in names) for text in ("3", cell)]
    for some in (rows, rows[1:], rows[1:] * 3):
        content = "\n".join([",".join(names), *some, ""]).encode()
        both(content, Options(Columns.from_spec(columns), cut), Schema({"n": ra.Integer(0, 9)}))


def test_rows_without_records_need_no_values() -> None:
    content = b"op,id,subject,n\nadd,o-1,u1,7\ndelete,o-1,,x\nerase,,u1,\nadd,o-2,u2,8\n"
    schema, options = Schema({"n": ra.Integer(0, 9)}), Options()
    both(content, options, schema)
    source = Source("f.csv", "CSV", io.BytesIO(content))
    (changes,) = CsvFile(source, schema, options)
    cells = changes.fields["n"].values
    assert isinstance(cells, EncodedCells)
    assert cells.encoded.tolist() == [7, 0, 0, 8]


def test_what_is_skipped_is_counted_once() -> None:
    content = b"diff,n\n0,1\n1,2\n0,3\n1,x\n"
    columns = Columns.from_spec({"op": "diff"})
    both(content, Options(columns, refusals=Refusals()), Schema({"n": ra.Integer(0, 9)}))


class Pieces(io.BytesIO):
    """What a pipe holds at the moment: a line."""

    def read1(self, size: int | None = -1) -> bytes:
        return self.readline()


@pytest.mark.parametrize(("path", "count"), [(None, 3), ("orders.csv", 1)])
def test_lines_of_a_pipe_are_taken_as_they_come(path: str | None, count: int) -> None:
    source = Source("orders", "CSV", Pieces(b"a,b\n1,2\n3,4\n"), path=path)
    assert len(list(valid_blocks(source, None))) == count
