"""JSON lines decoded in bulk are what they are line by line: the same changes, the same encoded columns, the same
errors."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import InputError
from retroact.feeds import source
from retroact.feeds.json_events import JsonEvents
from retroact.feeds.options import options_for
from retroact.feeds.play import open_feed
from retroact.feeds.readers import repeated_keys
from retroact.feeds.refusals import Refusals
from retroact.schema import field, object_cells
from support.tiers import examples

FIELDS = {
    "amount": ra.Number(-500, 500, step="0.01"),
    "age": ra.Integer(0, 120, missing="skip"),
    "country": ra.Category(["DE", "FR", 7], missing="skip"),
    "name": ra.Text(missing="skip"),
    "day": ra.Date("2000-01-01", "2029-12-31", missing="skip"),
}
COLUMNS: list[Any] = [
    None,
    {"id": "order", "subject": {"column": "owner", "optional": True}},
    {"id": {"column": "id", "optional": True}, "ignore": True},
    {"id": {"column": "id", "optional": True}, "subject": "owner", "ignore": ["note", "op"]},
    {"stamp": {"column": "stamp", "optional": True}, "ignore": ["note", "before", "after"]},
]
NUMBERS = [
    *("1", "0", "-0", "1.0", "12.50", "1e2", "1E+2", "1e-2", "0.1", "0.30000000000000004", "0.1000000000000000055511"),
    *("0.12500000000000001", "499.99499999999999", "123456789012345678", "9223372036854775808", "9" * 30, "1e400"),
]
WORDS = [
    *('"DE"', '"FR"', '""', '"é"', r'"\u00e9"', r'"\ud800"', r'"a\"b"', r'"\": "', '":"', '" :"', '"a : b"', r'"\\"'),
    *('"2013-01-01"', '"12.5"', r'"x\/y"', "null", "true", "false", "7", "[]", "{}", '{"a": 1}', "[1, 2]"),
]
BROKEN = ["01", "+1", ".5", "1.", "-", "NaN", "Infinity", '"\t"', '"\\x"', '"', "tru", "nul", "", "1 2", '{"a":}']
KEYS = [
    "note",
    "id",
    "order",
    "owner",
    "stamp",
    "round",
    "op",
    "weight",
    "before",
    "after",
    "insert",
    "payload",
    "am\\u006funt",
]
GOOD = {
    "amount": NUMBERS[:10],
    "age": ["7", "0", "null", "1e1", "3.0"],
    "country": ['"DE"', '"FR"', "7", "null"],
    "name": WORDS[:12],
    "day": ['"2013-01-01"', "null"],
    "id": ['"o1"', '"ö2"', "3", "null"],
    "owner": ['"u1"', "4"],
    "order": ['"o1"', "9"],
    "stamp": ["1", "2"],
    "note": WORDS,
}


class Writer:
    """Lines of a file that a machine wrote, most of them alike."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.oddity = self.random.choice([0, 0, 0.01, 0.1])
        self.native = self.random.random() < 0.4
        self.colon, self.comma = self.random.choice([":", ": ", " : ", "\t:"]), self.random.choice([",", ", ", " ,\t"])
        self.end = self.random.choice(["\n", "\n", "\n", "\r\n"])
        self.keys = [*FIELDS, *self.random.choice([[], ["id"], ["order"], ["id", "owner"], ["order", "note", "owner"]])]
        self.random.shuffle(self.keys)

    def odd(self) -> bool:
        return self.random.random() < self.oddity

    def object(self, pairs: list[tuple[str, str]]) -> str:
        if self.odd():
            self.random.shuffle(pairs)
        if self.odd() and pairs:
            pairs.pop(self.random.randrange(len(pairs)))
        if self.odd():
            pairs.append((self.random.choice([*KEYS, *self.keys]), self.random.choice([*NUMBERS, *WORDS])))
        blank = " " * self.odd()
        return "{" + blank + self.comma.join(f'"{key}"{self.colon}{value}' for key, value in pairs) + blank + "}"

    def value(self, key: str) -> str:
        if self.odd():
            return self.random.choice([*NUMBERS, *WORDS, *BROKEN])
        return self.random.choice(GOOD[key])

    def line(self) -> str:
        if self.odd():
            return self.random.choice(
                ["", " ", "{}", "[]", "1", "null", '{"op": "close"}', "{", '{"op": "erase", "subject": 1}']
            )
        if not self.native:
            return self.object([(key, self.value(key)) for key in self.keys])
        kind = self.random.choice(["add", "add", "add", "delete", "by value", "erase"])
        inner = [key for key in self.keys if key in FIELDS]
        record = ("record", self.object([(key, self.value(key)) for key in inner]))
        own = [("id", self.value("id"))] * (kind == "delete" or self.random.random() < 0.5)
        parts = {
            "add": [record, *own, *[("subject", self.value("owner"))] * self.random.randrange(2)],
            "delete": own,
            "by value": [record, ("stamp", self.value("stamp"))],
            "erase": [("subject", self.value("owner"))],
        }[kind]
        return self.object([("op", f'"{"delete" if kind == "by value" else kind}"'), *parts])

    def content(self) -> bytes:
        lines = [self.line() for _ in range(self.random.choice([5, 40]))]
        content = self.end.join(lines).encode() + self.end.encode() * (self.random.random() < 0.8)
        if self.odd():
            place = self.random.randrange(len(content) + 1)
            content = content[:place] + self.random.choice([b"\xff", b"\x00", b'"', b"\\", b"\n"]) + content[place:]
        return content


def outcome(path: Path, columns: Any, checked: bool) -> list[str]:
    """All that is seen of a file that is read and encoded."""
    stream = ra.Stream(
        FIELDS, {"n": ra.Count()}, epsilon=1.0, horizon=9, **({} if columns is None else {"columns": columns})
    )
    refusals = Refusals() if checked else None
    seen: list[str] = []
    reader: Any = None
    try:
        with open_feed(path, stream.schema, options_for(stream, None, {}, {}, refusals=refusals)) as feed:
            reader = feed.reader
            for changes in reader:
                seen += [repr(changes.numbers.tolist()), repr(changes.codes.tolist())]
                seen += [f"{name} {each.listed()!r}" for name, each in sorted(changes.roles.items())]
                seen += [f"{name} {each.listed()!r}" for name, each in changes.fields.items()]
                try:
                    rows, _ = stream.schema.encode(changes.records())
                    seen += [f"{name} {each.dtype} {each.tolist()}" for name, each in rows.columns.items()]
                    seen += [f"{name} lacks {each.tolist()}" for name, each in rows.missing.items()]
                except InputError as error:
                    seen.append(f"{error!s} {error.row} {error.hint}")
    except InputError as error:
        seen.append(f"{error!s} {error.row} {error.path} {error.hint} {error.source}")
    if reader is not None:
        seen.append(f"{reader.label} {reader.roles} {reader.ignored} {reader.skipped}")
    return seen + [repr(kind) for kind in refusals.kinds] if refusals else seen


def test_lines_in_bulk_are_what_they_are_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.jsonl"
    taken = [0, 0]
    quick = JsonEvents.quick

    def counted(self: JsonEvents, *given: Any) -> Any:
        changes = quick(self, *given)
        taken[changes is not None] += 1
        return changes

    @examples(1500)
    @given(st.integers(0, 2**32), st.sampled_from(COLUMNS), st.booleans(), st.sampled_from([200, 600, 4000]))
    def compare(seed: int, columns: Any, checked: bool, block: int) -> None:
        path.write_bytes(Writer(seed).content())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "BLOCK", block)
            patch.setattr(object_cells, "MANY", 1)
            patch.setattr(repeated_keys, "_LARGE", 1)
            patch.setattr(JsonEvents, "quick", counted)
            found, plain = both(path, columns, checked)
            assert found == plain

    compare()
    # most blocks are what a machine writes
    assert min(taken) > 500, taken


def both(path: Path, columns: Any, checked: bool) -> tuple[list[str], list[str]]:
    """A file in bulk, and line by line."""
    found = outcome(path, columns, checked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonEvents, "quick", lambda *_: None)
        patch.setattr(field, "encoded_objects", lambda *_: None)
        return found, outcome(path, columns, checked)


ROW = {"amount": 1.5, "age": None, "country": "DE", "name": "x : y", "day": "2013-01-01"}


@pytest.mark.parametrize("line", [
    ROW, {**ROW, "note": {"nested": [1, {"deeper": 2}]}}, {**ROW, "name": '":\\'}, {"amount": 1},
    {"op": "add", "record": ROW}, {"op": "add", "record": ROW, "id": "o1", "subject": None},
])  # fmt: skip
def test_usual_lines_are_read_in_bulk(line: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, blocks = tmp_path / "lines.jsonl", []
    path.write_text(f"{json.dumps(line)}\n" * 50)
    monkeypatch.setattr(source, "BLOCK", 600)
    quick = JsonEvents.quick
    monkeypatch.setattr(JsonEvents, "quick", lambda self, *given: blocks.append(quick(self, *given)) or blocks[-1])
    outcome(path, {"id": {"column": "id", "optional": True}, "ignore": ["note"]}, False)
    # the first block says what the lines are
    assert [changes is None for changes in blocks] == [True] + [False] * (len(blocks) - 1)
    assert len(blocks) > 1


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({}, None),
        ({"after": 2}, None),
        ({"before": 1, "after": 2}, "got 'before', a key of another envelope"),
        ({"insert": 1}, "got 'insert', a key of another envelope"),
        ({"weight": 1}, "with weights in 'weight'"),
    ],
)
def test_rows_of_another_envelope_are_found_in_the_middle(
    more: dict[str, Any], error: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n" * 20 + f"{json.dumps(ROW | more)}\n" * 20)
    monkeypatch.setattr(source, "BLOCK", len(json.dumps(ROW)) + 1)
    found, plain = both(path, {"id": {"column": "id", "optional": True}, "ignore": True}, False)
    assert found == plain
    assert error is None or any(error in each for each in plain)
