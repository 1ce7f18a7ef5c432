"""Every envelope becomes the same additions and deletions, and lines of another one are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retroact.errors import InputError
from support.feed_shop import CLOSE, Played, by_hand, row, shop, written

A, B, C = row("DE", 10, id="a", who="u1"), row("FR", 20, id="b", who="u2"), row("US", 30, id="a", who="u1")


def debezium(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "ts_ms": 1, "source": {"table": "orders"}, **more}


def wrapped(*events: Any) -> list[Any]:
    return [{"schema": {"type": "struct"}, "payload": event} for event in events]


# In each: a and b are added, the round ends, a gets a new value, b goes, and the round ends.
DEBEZIUM: list[Any] = [
    debezium("c", after=A), debezium("r", after=B), CLOSE,
    debezium("u", A, C), debezium("m"), debezium("d", B), None, CLOSE,
]  # fmt: skip
WITH_IDS: dict[str, list[Any]] = {
    "native": [
        *({"op": "add", "record": row(r["country"], r["amount"]), "id": r["id"], "subject": r["who"]} for r in (A, B)),
        CLOSE, {"op": "add", "record": row("US", 30), "id": "a", "subject": "u1"}, {"op": "delete", "id": "b"}, CLOSE,
    ],
    "insert/delete": [{"insert": A}, {"insert": B}, CLOSE, {"update": C}, {"delete": B}, CLOSE],
    "insert/delete by key": [{"insert": A}, {"insert": B}, CLOSE, {"update": C}, {"delete": {"id": "b"}}, CLOSE],
    "insert/delete in arrays": [[{"insert": A}, {"insert": B}], CLOSE, [{"update": C}, {"delete": B}], CLOSE],
    "Debezium": DEBEZIUM,
    "Debezium by key": [*DEBEZIUM[:3], debezium("u", None, C), debezium("d", {"id": "b"}), CLOSE],
    "Debezium wrapped": [*wrapped(*DEBEZIUM[:2]), CLOSE, *wrapped(*DEBEZIUM[3:7]), CLOSE],
    "Materialize": [
        {"mz_timestamp": 1, "mz_diff": 1, **A}, {"mz_timestamp": 1, "mz_diff": 1, **B}, CLOSE,
        {"mz_timestamp": 2, "mz_diff": -1, **A}, {"mz_timestamp": 2, "mz_diff": 1, **C},
        {"mz_timestamp": 2, "mz_diff": -1, **B}, {"mz_timestamp": 3, "mz_diff": 0, **B}, CLOSE,
    ],
    "weights": [{"weight": 1, **A}, {"weight": 1, **B}, CLOSE, {"weight": 1, **C}, {"weight": -1, "id": "b"}, CLOSE],
    "Delta": [
        {**A, "_change_type": "insert", "_commit_version": 1}, {**B, "_change_type": "insert"}, CLOSE,
        {**A, "_change_type": "update_preimage"}, {**C, "_change_type": "update_postimage"},
        {**B, "_change_type": "delete"}, CLOSE,
    ],
    "Flink": [
        {"op": "+I", **A}, {"op": "+I", **B}, CLOSE,
        {"op": "-U", **A}, {"op": "+U", **C}, {"op": "-D", **B}, CLOSE,
    ],
    "words": [
        {"op": "insert", **A}, {"op": "c", **B}, CLOSE, {"op": "upsert", **C}, {"op": "d", "id": "b"}, CLOSE
    ],
}  # fmt: skip
COLUMNS = {"id": "id", "subject": "who"}


def expected(**more: Any) -> bytes:
    def added(r: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "add", {"data": row(r["country"], r["amount"]), "id": r["id"], "subject": r["who"]}

    return by_hand([added(A), added(B)], [added(C), ("delete", {"id": "b"})], **more).state()


@pytest.mark.parametrize("name", WITH_IDS)
def test_with_ids(name: str, tmp_path: Path) -> None:
    played = Played(written(tmp_path / "events.jsonl", WITH_IDS[name]), **(COLUMNS if name != "native" else {}))
    assert played.surviving == expected()
    assert played.totals.rounds == 2


@pytest.mark.parametrize("name", [name for name in WITH_IDS if name != "native"])
def test_ids_are_known_by_their_name(name: str, tmp_path: Path) -> None:
    played = Played(written(tmp_path / "events.jsonl", WITH_IDS[name]), subject="who")
    assert played.surviving == expected()


def test_what_is_skipped_is_counted(tmp_path: Path) -> None:
    assert Played(written(tmp_path / "a.jsonl", DEBEZIUM), **COLUMNS).totals.skipped == {
        "messages": 1, "tombstones": 1
    }  # fmt: skip
    played = Played(written(tmp_path / "b.jsonl", WITH_IDS["Materialize"]), **COLUMNS)
    assert played.totals.skipped == {"weights of 0": 1}


def csv_of(mark: str, words: list[str]) -> str:
    rows = [A, B, None, A, C, B, None]
    lines = [f"{mark},id,who,country,amount,extra"]
    for word, each in zip(words, rows, strict=True):
        if word:
            cells = ["close", "", "", "", ""] if each is None else [word, *map(str, (each["id"], each["who"]))]
            lines.append(",".join(cells + ([] if each is None else [each["country"], str(each["amount"])]) + ["x"]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("op", ["add", "add", "close", "", "upsert", "delete", "close"]),
        ("op", ["insert", "insert", "close", "", "update", "delete", "close"]),
        ("op", ["c", "r", "close", "", "u", "d", "close"]),
        ("op", ["+I", "+I", "close", "-U", "+U", "-D", "close"]),
    ],
)
def test_csv_with_ids(mark: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(csv_of(mark, words))
    assert Played(tmp_path / "events.csv", **COLUMNS).surviving == expected()


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("_change_type", ["insert", "insert", "", "update_preimage", "update_postimage", "delete", ""]),
        ("diff", ["1", "+1", "", "-1", "1", "-1", ""]),
        ("weight", ["1", "1", "", "-1", "1", "-1", ""]),
    ],
)
def test_csv_with_marks_in_one_round(mark: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(csv_of(mark, words))
    last = ("add", {"data": row("US", 30), "id": "a", "subject": "u1"})
    assert Played(tmp_path / "events.csv", **COLUMNS).surviving == by_hand([last]).state()


def by_value(insert: Callable[[Any], Any], delete: Callable[[Any], Any]) -> list[Any]:
    one, two = row("DE", 1, since=1), row("FR", 2, since=1)
    return [insert(one), insert(two), CLOSE, delete(one), insert(row("US", 3, since=2)), CLOSE]


BY_VALUE: dict[str, list[Any]] = {
    "insert/delete": by_value(lambda r: {"insert": r}, lambda r: {"delete": r}),
    "Debezium": by_value(lambda r: debezium("c", after=r), lambda r: debezium("d", r)),
    "Debezium updates": [
        *by_value(lambda r: debezium("c", after=r), lambda r: None)[:3],
        debezium("u", row("DE", 1, since=1), row("US", 3, since=2)), CLOSE,
    ],
    "weights": by_value(lambda r: {**r, "diff": 1}, lambda r: {**r, "diff": -1}),
    "Flink": by_value(lambda r: {**r, "op": "+I"}, lambda r: {**r, "op": "-D"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_VALUE)
def test_deletions_by_value_name_their_stamp(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "events.jsonl", BY_VALUE[name])
    played = Played(path, stamp="since")
    hand = by_hand(
        [("add", {"data": row("DE", 1)}), ("add", {"data": row("FR", 2)})],
        [("delete", {"data": row("DE", 1), "stamp": 1}), ("add", {"data": row("US", 3)})],
    )
    assert played.surviving == hand.state()
    with pytest.raises(InputError, match=r"events.jsonl:4: a deletion without id .* \(--id\), or of the stamp"):
        Played(path)


def test_lines_of_another_envelope_are_refused(tmp_path: Path) -> None:
    samples = {
        "plain records": A,
        "native events": {"op": "add", "record": {"country": "DE", "amount": 1}},
        "insert/delete": {"insert": A},
        "Debezium": debezium("c", after=A),
        "Debezium with its schema": wrapped(debezium("c", after=A))[0],
        "plain records with weights in 'mz_diff'": {"mz_diff": 1, **A},
        "plain records with operations in '_change_type'": {"_change_type": "insert", **A},
        "plain records with operations in 'op'": {"op": "+I", **A},
    }
    for first, line in samples.items():
        for second, other in samples.items():
            path = written(tmp_path / "events.jsonl", [line, CLOSE, other])
            allowed = first == second or (first, second) == ("plain records", "native events")
            if allowed:
                Played(path)
            else:
                found = f"events.jsonl:3: expected {first}, as in the first events, got {second}"
                with pytest.raises(InputError, match=found.replace("(", r"\(")):
                    Played(path)


BAD: dict[str, tuple[Any, str]] = {
    "truncation": (debezium("t"), "a truncation deletes records without naming them"),
    "no before": (debezium("d"), "expected the row before, got none: the source must send it .* - at before"),
    "no after": (debezium("c"), "expected the row after, got none - at after"),
    "unknown op": (debezium("x", after=A), "expected one of c, r, u, d, t, m, got 'x' - at op"),
    "no key": (debezium("d", {"country": "DE"}), "expected 'id', the id of the record, got none - at before"),
    "value": (debezium("c", after={**A, "amount": "x"}), "expected a number, got 'x' - at amount"),
    "missing": (debezium("c", after={"id": "a"}), "got no 'country' and no 'amount' - at after"),
    "op": ({"op": 5, "after": A}, "expected one of c, r, u, d, t, m, got 5 - at op"),
    "array": ([1], "expected"),
    "text": ("x", "expected an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_debezium_refusals(name: str, tmp_path: Path) -> None:
    bad, message = BAD[name]
    path = written(tmp_path / "events.jsonl", [debezium("c", after=A), CLOSE, bad])
    with pytest.raises(InputError, match=f"events.jsonl:3: .*{message}"):
        Played(path, id="id")


def test_before_with_the_key_alone_needs_an_id(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", [debezium("c", after=row(pk=1)), debezium("d", {"pk": 1})])
    with pytest.raises(InputError, match=r"e.jsonl:2: .*with the column of the id \(--id\).* - at before"):
        Played(path)
    assert Played(path, id="pk").totals.added == 0


def test_a_deletion_names_an_id_where_all_records_have_one(tmp_path: Path) -> None:
    gone = {**A, "id": None, "stamp": 1}
    for event in ({"delete": gone}, [{"delete": gone}], debezium("d", gone), debezium("u", gone, C)):
        first = {"insert": A} if "op" not in event else debezium("c", after=A)
        lines = written(tmp_path / "e.jsonl", [first, event])
        with pytest.raises(InputError, match=r"e.jsonl:2: expected text or a whole number, got None - at .*id"):
            Played(lines, id="id", subject="who")


def test_a_changed_id_empties_the_old_one(tmp_path: Path) -> None:
    events = [debezium("c", after=A), CLOSE, debezium("u", A, {**A, "id": "z"}), CLOSE]
    played = Played(written(tmp_path / "events.jsonl", events), id="id")
    assert (played.totals.added, played.totals.removed) == (2, 1)


def test_updates_need_an_id(tmp_path: Path) -> None:
    for update in ({"update": row()}, {"op": "u", **row()}):
        first = {"insert": row()} if "update" in update else {"op": "c", **row()}
        with pytest.raises(InputError, match=r"e.jsonl:2: an update replaces what an id holds: .* \(--id\)"):
            Played(written(tmp_path / "e.jsonl", [first, update]))


def test_aggregated_input(tmp_path: Path) -> None:
    events = [{**row(), "diff": 3}, {**row(), "diff": 1}, CLOSE, {**row(), "diff": -2, "stamp": 1}, CLOSE]
    path = written(tmp_path / "events.jsonl", events)
    with pytest.raises(InputError, match=r"events.jsonl:1: expected -1, 0 or 1, got 3: this is aggregated input"):
        Played(path)
    with pytest.raises(InputError, match=r"events.jsonl:1: expected at most 2 records in one event \(contribution\)"):
        Played(path, contribution=2)
    played = Played(path, contribution=3)
    assert (played.totals.added, played.totals.removed) == (4, 2)
    for weight in (10**18, -(10**18), "1", 1.5, True, None):
        bad = written(tmp_path / "bad.jsonl", [{**row(), "diff": 1}, {**row(), "diff": weight, "stamp": 1}])
        with pytest.raises(InputError, match=r"bad.jsonl:2: expected"):
            Played(bad, contribution=5)
    with pytest.raises(InputError, match="a record with an id, which holds one, got 2"):
        Played(written(tmp_path / "ids.jsonl", [{**A, "diff": 1}, {**A, "diff": 2}]), contribution=5)
    (tmp_path / "events.csv").write_text("country,amount,diff\nDE,1,3\nDE,1,1\n")
    assert Played(tmp_path / "events.csv", contribution=3).totals.added == 4
    with pytest.raises(InputError, match=r"events.csv:2: expected -1, 0 or 1"):
        Played(tmp_path / "events.csv")


def test_erasures_fit_in_any_envelope(tmp_path: Path) -> None:
    events = [debezium("c", after=A), debezium("c", after=B), CLOSE, {"op": "erase", "subject": "u1"}, CLOSE]
    played = Played(written(tmp_path / "events.jsonl", events), **COLUMNS)
    assert played.totals.removed == 1


def test_a_field_may_be_called_like_a_mark(tmp_path: Path) -> None:
    import retroact as ra

    stream = ra.Stream({"weight": ra.Number(0, 200)}, {"w": ra.Sum("weight")}, epsilon=1.0, horizon=9)
    assert Played(written(tmp_path / "e.jsonl", [{"weight": 70}, {"weight": 81}]), stream).totals.added == 2


def test_a_stream_without_late_data_takes_no_stamps(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", [CLOSE, {**row(), "stamp": 1}])
    with pytest.raises(InputError, match=r"e.jsonl:2: this stream takes no late data"):
        Played(path, shop(late=False))


def test_an_operation_in_a_column_of_its_own_is_not_passed_over(tmp_path: Path) -> None:
    """The first event has none, so that all are taken for additions: one that has is none of them."""
    path = written(tmp_path / "e.jsonl", [row(id="a"), row(id="a", action="delete")])
    columns = {"id": "id", "op": {"column": "action", "optional": True}}
    for ignore in (False, True):
        with pytest.raises(InputError, match=r"e.jsonl:2: expected plain records, .* with operations in 'action'"):
            Played(path, shop(columns={**columns, "ignore": ignore}))


def test_an_image_that_is_not_needed_is_not_looked_at(tmp_path: Path) -> None:
    events = [debezium("c", {"x": 1}, A), CLOSE, debezium("d", A, {"x": 1}), debezium("m", 5, 5)]
    assert Played(written(tmp_path / "e.jsonl", events), id="id").totals.removed == 0
    assert Played(written(tmp_path / "e.jsonl", [*events, CLOSE]), id="id").totals.removed == 1
