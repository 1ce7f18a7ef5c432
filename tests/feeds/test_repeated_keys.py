"""A key that comes twice in a JSON object is refused: which of the two was meant, nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retroact as ra
from retroact.errors import InputError
from retroact.feeds.readers.repeated_keys import first_repeated, most_keys
from support.feed_shop import Played, shop

ROW = '{"country": "DE", "amount": 1}'
GOOD = f'{{"op": "add", "record": {ROW}, "id": 1}}'
TWICE = {
    "field": (GOOD, '{"op": "add", "record": {"country": "DE", "amount": 1, "amount": 2}}', "amount"),
    "operation": (GOOD, f'{{"op": "delete", "op": "add", "record": {ROW}}}', "op"),
    "id in place of another": (GOOD, f'{{"op": "add", "record": {ROW}, "id": 1, "id": 2}}', "id"),
    "blanks before colons": (GOOD, f'{{"op" : "add", "record"\\t: {ROW}, "id" :1, "id":2}}', "id"),
    "a null": (GOOD, f'{{"op": "add", "record": {ROW}, "id": 1, "id": null}}', "id"),
    "an escape": (GOOD, '{"op": "add", "record": {"country": "DE", "amount": 1, "\\\\u0061mount": 2}}', "amount"),
    "a colon in a text": (GOOD, '{"op": "add", "record": {"country": "\\\\": ", "amount": 1, "amount": 1}}', "amount"),
    "plain": (ROW, '{"country": "DE", "amount": 1, "amount": 2}', "amount"),
    "plain, ignored": (ROW, '{"country": "DE", "amount": 1, "note": 1, "note": 2}', "note"),
    "Debezium": (f'{{"op": "c", "after": {ROW}}}', f'{{"op": "c", "after": {ROW}, "after": {ROW}}}', "after"),
    "inside Debezium": (
        f'{{"op": "c", "after": {ROW}}}', f'{{"op": "c", "after": {ROW[:-1]}, "country": "FR"}}}}', "country"),
    "weights": (f'{ROW[:-1]}, "mz_diff": 1}}', f'{ROW[:-1]}, "mz_diff": 1, "mz_diff": 0}}', "mz_diff"),
}  # fmt: skip


@pytest.mark.parametrize("name", TWICE)
def test_a_key_that_comes_twice_is_refused(name: str, tmp_path: Path) -> None:
    good, bad, key = TWICE[name]
    bad = bad.replace("\\t", "\t").replace("\\\\", "\\")
    assert isinstance(json.loads(bad), dict)
    path, stream = tmp_path / "e.jsonl", shop()
    path.write_text(f"{good}\n{good}\n{bad}\n{good}\n")
    with pytest.raises(InputError, match="twice") as caught:
        Played(path, stream)
    assert (caught.value.source, caught.value.path, caught.value.row) == (str(path), key, 3)
    # two lines before it are good, and have one id or none
    assert stream.discard() in (1, 2)


@pytest.mark.parametrize("line", [
    GOOD, ROW.replace("1", '1, "note": "a\\": : b"'), f'{{"op" : "add","record"  :{ROW}}}',
    f'{{"op": "add", "record": {ROW}, "id": null, "subject": null, "stamp": null}}',
])  # fmt: skip
def test_a_key_in_two_objects_is_fine(line: str, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(f"{line}\n" * 3)
    assert Played(path, shop()).totals.added in (1, 3)


def test_a_key_comes_twice_where_an_optional_field_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    fields = {"country": ra.Text(missing="skip"), "amount": ra.Number(0, 500)}
    stream = ra.Stream(fields, {"n": ra.Count()}, epsilon=1.0, horizon=9)
    path.write_text(f'{GOOD}\n{{"op": "add", "record": {{"amount": 1, "amount": 2}}}}\n')
    with pytest.raises(InputError, match=r"e.jsonl:2: expected every key once, got 'amount' twice"):
        Played(path, stream)


def test_the_first_line_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(f'{GOOD}\n{{"op": "add", "record": {{"country": "DE"}}}}\n{{"op": "add", "op": "add"}}\n')
    with pytest.raises(InputError, match=r"e.jsonl:2: expected the fields country, amount, got no 'amount'"):
        Played(path)


class Pairs(list):
    """An object by its pairs."""


def composed(inner: st.SearchStrategy) -> st.SearchStrategy:
    pairs = st.lists(st.tuples(st.sampled_from('ab:"\\ é'), inner), max_size=3)
    return st.lists(inner, max_size=3) | pairs.map(Pairs)


NESTED = st.recursive(st.none() | st.integers(0, 9) | st.text('a":\\ \t{}', max_size=4), composed, max_leaves=12)


def text_of(value: object, ascii: bool, colon: str) -> str:
    if isinstance(value, Pairs):
        pairs = (f"{json.dumps(key, ensure_ascii=ascii)}{colon}{text_of(part, ascii, colon)}" for key, part in value)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(text_of(part, ascii, colon) for part in value) + "]"
    return json.dumps(value, ensure_ascii=ascii)


def objects(value: object) -> list[Pairs]:
    if isinstance(value, Pairs):
        return [value, *(found for _, part in value for found in objects(part))]
    return [found for part in value for found in objects(part)] if isinstance(value, list) else []


@given(NESTED, st.booleans(), st.sampled_from([":", " : ", "\t:", "  :", ": "]))
def test_repeated_keys_are_found_wherever_they_are(value: object, ascii: bool, colon: str) -> None:
    text = text_of(value, ascii, colon).encode()
    found = [pairs for pairs in objects(value) if len({key for key, _ in pairs}) < len(pairs)]
    assert (first_repeated([text], [msgspec.json.decode(text)]) is not None) == bool(found)
    keys = sum(map(len, objects(value)))
    assert most_keys(text) >= keys
    # larger texts are looked at in another way
    assert most_keys(text + b" " * 4096) >= keys


def test_colons_in_texts_are_no_keys() -> None:
    assert most_keys(b'{"a" \t: "b : c", "d": "e :"}' + b" " * 4096) == 2
    assert most_keys(b'{"a"' + b" " * 4096 + b": 1}") == 1
