"""Columnar feeds: the same events give the same bytes, whatever they come in; and what is wrong names its row."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds.play import open_feed
from retroact.feeds.readers import arrow
from retroact.schema.field import Coded
from support.table_changes import (
    SCHEMA,
    A,
    B,
    C,
    applied_by_hand,
    as_lines,
    ends,
    options,
    person,
    play,
    random_changes,
    released,
    rows,
    stream,
)

# The same events, in other files --------------------------------------------------------------------------------------


@pytest.fixture(params=["parquet", "row groups", "arrow", "stream", "feather", "table", "reader"])
def packed(request, tmp_path):
    """From a table to a source of every kind; frames come without a name."""

    def pack(table):
        if request.param in ("parquet", "row groups"):
            path = tmp_path / "changes.parquet"
            pq.write_table(table, path, row_group_size=7 if request.param == "row groups" else None)
            return path
        if request.param in ("arrow", "stream", "feather"):
            path = tmp_path / f"changes.{'ipc' if request.param == 'stream' else request.param}"
            make = pa.ipc.new_stream if request.param == "stream" else pa.ipc.new_file
            with make(path, table.schema) as writer:
                for batch in table.to_batches(max_chunksize=11):
                    writer.write_batch(batch)
            return str(path)
        return table if request.param == "table" else table.to_reader(max_chunksize=5)

    return pack


def test_every_kind_of_source_gives_the_same(packed):
    changes = random_changes(100)
    assert ends(packed(rows(*changes)), rounds=6) == applied_by_hand(changes, 6)


@pytest.mark.parametrize("seed", range(5))
def test_small_batches_give_the_same(seed, monkeypatch, tmp_path):
    monkeypatch.setattr(arrow, "ROWS", 4)
    changes = random_changes(150, seed)
    pq.write_table(rows(*changes), tmp_path / "changes.parquet")
    assert ends(tmp_path / "changes.parquet", rounds=6) == applied_by_hand(changes, 6)


def test_json_lines_give_the_same(tmp_path):
    from retroact.feeds import play as play_any

    changes = random_changes(200)
    as_lines(changes, tmp_path / "changes.jsonl")
    into, rounds = stream(), []
    play_any(into, str(tmp_path / "changes.jsonl"), rounds=6, publish=rounds.append)
    assert ends(rows(*changes), rounds=6) == (released(rounds), into.state())


def test_without_pyarrow_frames_give_the_same(monkeypatch):
    table = rows(*random_changes(100))
    expected = ends(table, rounds=6)
    monkeypatch.setattr(arrow, "_pyarrow", lambda: None)
    monkeypatch.setattr(arrow, "ROWS", 9)
    assert ends(table, rounds=6) == expected


def test_without_pyarrow_files_say_what_they_need(monkeypatch, tmp_path):
    pq.write_table(rows(person()), tmp_path / "people.parquet")
    monkeypatch.setattr(arrow, "_pyarrow", lambda: None)
    with pytest.raises(InputError, match=r"need pyarrow: pip install 'retroact\[parquet\]'"):
        play(tmp_path / "people.parquet")


def test_pyarrow_is_not_loaded_before_it_is_needed():
    code = "import sys, retroact.feeds.play; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_other_libraries(library):
    module = pytest.importorskip(library)
    table = rows(person("DE"), person("FR", 3.0), person("DE", 4.25))
    assert ends(module.DataFrame(table.to_pydict())) == ends(table)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
@pytest.mark.parametrize("column", ["country", "id", "subject", "op"])
def test_texts_of_every_kind(kind, column, packed):
    changes = [{**person("Österreich"), "op": "add", "id": f"ö{k}", "subject": f"u{k % 3}"} for k in range(20)]
    table = rows(*changes, {"op": "delete", "id": "ö3"}, {"op": "erase", "subject": "u1"})
    place = table.column_names.index(column)
    if kind == pa.string_view() and not hasattr(pa, "string_view"):
        pytest.skip("no views")
    other = table.set_column(place, column, table[column].cast(kind))
    assert ends(packed(other)) == ends(table)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.uint64()], ids=str)
def test_ids_may_be_numbers(kind):
    numbers = pa.array([1, 2, 3, 2], kind)
    table = rows(*[{**person(), "op": op} for op in ("add", "add", "add", "delete")])
    texts = table.append_column("id", pa.array(["1", "2", "3", "2"]))
    assert ends(table.append_column("id", numbers)) == ends(texts)


def test_many_different_texts(tmp_path):
    table = rows(*[person(f"c{k}") for k in range(3000)])
    pq.write_table(table, tmp_path / "people.parquet")
    schema = SCHEMA | {"country": ra.Category([f"c{k}" for k in range(3000)])}
    totals = play(tmp_path / "people.parquet", stream(schema=schema))[2]
    assert totals.added == 3000


@pytest.mark.parametrize("words", [["DE", "FR", "unused"], ["DE", None, 7], [None, "DE", "DE"]])
@pytest.mark.parametrize("field", [ra.Text(), ra.Text(missing="skip"), ra.Category(["DE", "FR"])], ids=repr)
def test_words_are_encoded_as_their_values(field, words):
    column = Coded(words, np.array([0, 1, 1, 0]))

    def outcome(values):
        try:
            encoded, kept = field.encode_column(values, "country")
        except InputError as error:
            return str(error)
        return encoded.tolist(), None if kept is None else kept.tolist()

    assert outcome(column) == outcome(list(column))
    assert list(column.used()) == list(column)


# What a row says ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("add", "update", "delete"),
    [
        ("add", "add", "delete"),
        ("insert", "update", "delete"),
        ("c", "u", "d"),
        ("r", "upsert", "d"),
        ("+I", "+U", "-D"),
    ],
)
def test_operations_by_word(add, update, delete):
    table = rows(
        {"op": add, "id": "a", **A}, {"op": add, "id": "b", **B}, {"op": update, "id": "a", **C},
        {"op": delete, "id": "b"}, {"op": delete, "id": "nobody"},
    )  # fmt: skip
    into, _, totals = play(table)
    assert (into.records, totals.added, totals.ignored_deletions) == (1, 1, 1)
    assert ends(table)[1] == ends(rows({"id": "a", **C}))[1]


def test_change_data_feeds_with_ids_skip_the_image_before():
    table = rows(
        {"_change_type": "insert", "id": "a", **A}, {"_change_type": "update_preimage", "id": "a", **A},
        {"_change_type": "update_postimage", "id": "a", **B}, {"_change_type": "insert", "id": "b", **C},
        {"_change_type": "delete", "id": "b", **C},
    )  # fmt: skip
    assert ends(table)[1] == ends(rows({"id": "a", **B}))[1]


def test_change_data_feeds_without_ids_delete_the_image_before():
    table = rows(
        {"_change_type": "insert", "stamp": 1, **A}, {"_change_type": "update_preimage", "stamp": 1, **A},
        {"_change_type": "update_postimage", "stamp": 1, **B},
    )  # fmt: skip
    assert ends(table)[1] == ends(rows(B))[1]


@pytest.mark.parametrize("column", ["diff", "mz_diff", "weight"])
def test_operations_by_weight(column):
    table = rows({column: 1, **A, "stamp": 1}, {column: 1, **B}, {column: 0, **C}, {column: -1, **A, "stamp": 1})
    assert ends(table)[1] == ends(rows(B))[1]


def test_aggregated_input_is_refused_unless_its_bound_is_known():
    table = rows({"diff": 3, **A}, {"diff": -2, **A, "stamp": 1}, {"diff": 1, **B})
    with pytest.raises(InputError, match=r"^the frame: row 1: expected -1, 0 or 1, got 3: this is aggregated input"):
        play(table)
    assert ends(table, contribution=3)[1] == ends(rows(A, B))[1]
    with pytest.raises(InputError, match="row 1: expected at most 2 records"):
        play(table, contribution=2)
    with pytest.raises(InputError, match="row 1: expected -1, 0 or 1 for a record with an id"):
        play(rows({"diff": 3, **A, "id": "a"}), contribution=3)


def test_columns_of_operations_that_are_fields():
    schema = SCHEMA | {"weight": ra.Integer(0, 9)}
    into = stream(schema=schema)
    assert play(rows({**A, "weight": 7}), into)[0].records == 1


def test_erasures_take_what_comes_later_in_the_round_too():
    table = rows(
        {"op": "add", "subject": "u", **A}, {"op": "erase", "subject": "u"}, {"op": "add", "subject": "u", **B}
    )
    assert play(table)[0].records == 0


def test_deletions_by_value_name_their_stamp():
    table = rows(
        {"op": "add", "round": 1, **A}, {"op": "delete", "round": 2, "stamp": 1, **A}, {"op": "add", "round": 2, **B}
    )
    assert play(table, rounds=2)[0].records == 1
    with pytest.raises(InputError, match=r"row 2: a deletion without id names the round"):
        play(rows({"op": "add", **A}, {"op": "delete", **A}))
    with pytest.raises(InputError, match=r"row 3: a deletion without id names the round"):
        play(rows({"op": "add", **A}, {"op": "delete", "stamp": 1, **A}, {"op": "delete", **A}))


def test_late_stamps_and_subjects():
    table = rows(
        {"round": 3, "stamp": 1, "subject": "u", **A},
        {"round": 3, **B},
        {"op": "delete", "round": 4, "stamp": 1, "subject": "u", **A},
    )
    table = table.set_column(table.column_names.index("op"), "op", pa.array(["add", "add", "delete"]))
    assert play(table, rounds=4)[0].records == 1


def test_a_count_alone_needs_no_columns():
    from retroact.feeds.batch import EVERY_RECORD

    bare = {"schema": {EVERY_RECORD: ra.Integer(0, 0)}, "statistics": {"n": ra.Count()}}
    for source in (rows({"other": 1}, {"other": 2}), rows({"op": "add", "id": "a"}, {"op": "add", "id": "b"})):
        assert play(source, stream(**bare))[0].records == 2


def test_values_may_be_missing_where_the_field_says_so():
    schema = SCHEMA | {"amount": ra.Number(0, 500, missing="skip"), "country": ra.Text(missing="skip")}
    table = rows(
        {"id": "a", **A}, {"id": "b", **B, "amount": None}, {"id": "c", **C, "country": None}, {"id": "d", **A}
    )
    played = play(table, stream(schema=schema))[0]
    assert played.records == 4
    assert played.left_out() == {"n": 0, "sum": 1, "by": 1}


def test_vectors():
    schema = {"point": ra.Vector(2, radius=1.0, step=0.5)}
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 2)):
        table = pa.table({"point": pa.array([[0.5, 0.5], [0.0, -0.5]], kind), "id": ["a", "b"]})
        assert play(table, stream(schema=schema, statistics={"n": ra.Count()}))[0].records == 2


# What is wrong --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"amount": 501.0}, "row 17: expected a number between 0 and 500, got 501.0 - at amount"),
        ({"amount": None}, "row 17: expected a number, got no value - at amount"),
        ({"country": None}, "row 17: expected text, got no value - at country"),
        ({"id": ""}, "row 17: expected a non-empty text, got '' - at id"),
        ({"subject": ""}, "row 17: expected a non-empty text, got '' - at subject"),
        ({"op": "remove"}, "row 17: expected one of add, .*, got 'remove' - at op"),
        ({"op": None}, "row 17: expected one of add, .*, got None - at op"),
        ({"op": "erase", "subject": None}, "row 17: expected a subject to erase, got none - at subject"),
        ({"op": "update", "id": None}, "row 17: an update replaces what an id holds"),
    ],
)
def test_a_refused_row_is_named(wrong, reason, monkeypatch, tmp_path):
    monkeypatch.setattr(arrow, "ROWS", 10)
    good = [{"op": "add", "id": f"o{k}", "subject": "u", **A} for k in range(20)]
    deletions = [{"op": "delete", "id": "o1"}, {"op": "delete", "id": "o2"}]
    events = [*good[:11], *deletions, *good[11:14], {**good[14], **wrong}, *good[15:]]
    path = tmp_path / "orders.parquet"
    pq.write_table(rows(*events), path)
    with pytest.raises(InputError, match=rf"orders\.parquet: {reason}"):
        play(path)


def test_types_that_do_not_fit():
    with pytest.raises(InputError, match="row 1: expected a number, got 'x' - at amount"):
        play(rows({**A, "amount": "x"}))
    with pytest.raises(InputError, match="row 1: expected text, got 7 - at country"):
        play(rows({**A, "country": 7}))
    with pytest.raises(InputError, match="row 1: expected a text or a whole number, got float - at id"):
        play(rows({**A, "id": 1.5}))
    with pytest.raises(InputError, match="row 1: expected a whole number, got 'x' - at diff"):
        play(rows({**A, "diff": "x"}))


def test_columns_that_are_missing_or_too_many():
    with pytest.raises(InputError, match="the frame: expected the columns country, amount, age, got no 'age'"):
        play(rows({"country": "DE", "amount": 1.0}))
    with pytest.raises(InputError, match="got an unknown column 'note'"):
        play(rows({**A, "note": 1}), ignore=False)
    assert play(rows({**A, "note": 1}))[0].records == 1
    with pytest.raises(InputError, match="expected a column 'order' for the id, got country, amount, age"):
        play(rows(A), id="order")
    with pytest.raises(InputError, match="expected different columns, got 'age' twice"):
        play(pa.table([[1], [2]], names=["age", "age"]))


def test_files_that_are_none(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"not a table")
    (tmp_path / "broken.arrow").write_bytes(b"not a table")
    (tmp_path / "old.feather").write_bytes(b"FEA1....")
    for name, reason in [
        ("broken.parquet", "expected a Parquet file"), ("broken.arrow", "expected an Arrow file"),
        ("old.feather", "version 1"), ("absent.parquet", "no such file"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=rf"{name}: .*{reason}"):
            play(tmp_path / name)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(InputError, match="expected a file, got a directory"):
        play(tmp_path / "folder.parquet")


def test_what_is_recognised(tmp_path):
    path = tmp_path / "orders.parquet"
    pq.write_table(
        rows({"op": "add", "order": "a", "subject": "u", "note": 1, **A}, {"op": "delete", "order": "a"}), path
    )
    seen = []
    with open_feed(path, stream().schema, options(stream(), id="order")) as feed:
        feed.play(stream(), recognised=seen.append)
    assert (feed.source.format, feed.source.size, feed.reader.ignored) == ("Parquet", 2, ("note",))
    assert feed.reader.label == "operations in 'op'"
    assert dict(feed.reader.roles.items()) == {"id": "order", "subject": "subject"}
    assert seen[0].example() == (1, {"op": "add", "record": A, "id": "a", "subject": "u"})
    with open_feed(rows(A).slice(0, 0), stream().schema, options(stream())) as feed:
        feed.play(stream(), recognised=seen.append)
    assert seen[1].example() is None
