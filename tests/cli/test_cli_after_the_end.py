"""The command line after the last round: erasures and deletions by id, by command and by feed, and a successor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import retroact as ra

SPEC = """
epsilon = 1.0
delta = 1e-6
horizon = 2
[schema]
amount = { type = "number", lower = 0, upper = 500 }
[statistics]
orders = { type = "count" }
"""
GRID = (
    SPEC.replace("horizon = 2\n", "")
    + """
[columns]
time = "at"
id = "id"
subject = "who"
op = "op"
[rounds]
start = 2026-01-01
length = "1d"
end = 2026-01-03
"""
)
NEW = ("--spec", "shop.toml", "--store", "orders")


def line(op: str, **parts: object) -> str:
    return json.dumps({"op": op, **parts}) + "\n"


def added(name: str, subject: str) -> str:
    return line("add", record={"amount": 5}, id=name, subject=subject)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text(SPEC)
    return tmp_path


@pytest.fixture
def closed(folder, program):
    first = "".join(added(f"{who}-1", who) for who in ("anna", "ben", "cleo")) + line("close")
    second = "".join(added(f"{who}-2", who) for who in ("anna", "ben", "cleo")) + line("close")
    (folder / "events.jsonl").write_text(first + second)
    ended = program("run", "events.jsonl", *NEW, "--out", "out.jsonl", "-q")
    assert ended.code == 0
    return folder


def opened():
    return ra.Stream.open("orders")


def records() -> int:
    with opened() as stream:
        assert stream.round == 3
        return stream.records


def test_lines_of_a_feed_that_erase_and_delete_are_done_at_once(closed: Path, program) -> None:
    published = (closed / "out.jsonl").read_text()
    with (closed / "events.jsonl").open("a") as events:
        events.write(line("erase", subject="anna") + line("delete", id="ben-1"))
    ended = program("run", "events.jsonl", *NEW, "--out", "out.jsonl")
    assert ended.code == 0, ended.err
    assert "nothing more is published from this stream" in ended.err
    assert (records(), (closed / "out.jsonl").read_text()) == (3, published)
    # a file of its own, without an end of a round, and again
    (closed / "more.jsonl").write_text(line("delete", id="ben-2"))
    for _ in range(2):
        assert program("run", "more.jsonl", *NEW, "-q").code == 0
        assert records() == 2
    (closed / "nobody.jsonl").write_text(line("erase", subject="nobody"))
    assert program("run", "nobody.jsonl", *NEW, "-q").code == 5
    # what waits for a round that does not come is said, and stays acknowledged
    (closed / "late.jsonl").write_text(added("dora-1", "dora") + line("erase", subject="cleo"))
    ended = program("run", "late.jsonl", *NEW, "-q")
    assert (ended.code, "all 2 promised rounds are released" in ended.err) == (3, True)
    assert records() == 0


def test_rows_of_a_table_do_the_same(closed: Path, program) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = {"op": ["erase", "delete"], "id": [None, "ben-1"], "subject": ["anna", None], "amount": [None, None]}
    pq.write_table(pa.table(rows), closed / "more.parquet")
    ended = program("run", "more.parquet", *NEW, "-q")
    assert ended.code == 0, ended.err
    assert records() == 3


def test_after_the_end_of_a_grid_a_file_of_deletions_is_taken(folder: Path, program) -> None:
    (folder / "shop.toml").write_text(GRID)
    rows = [f"add,{who}-{day},{who},2026-01-0{day}T01:00:00Z,5\n" for who in ("anna", "ben") for day in (1, 2)]
    (folder / "events.csv").write_text("op,id,who,at,amount\n" + "".join(rows))
    assert program("run", "events.csv", *NEW, "-q").code == 0
    (folder / "more.csv").write_text(
        "op,id,who,at,amount\nerase,,anna,2026-01-09T01:00:00Z,\ndelete,ben-1,,2026-01-02T01:00:00Z,\n"
    )
    ended = program("run", "more.csv", *NEW, "-q")
    assert ended.code == 0, ended.err
    assert records() == 1
    (folder / "late.csv").write_text("op,id,who,at,amount\nadd,x,cleo,2026-01-02T01:00:00Z,5\n")
    ended = program("run", "late.csv", *NEW, "-q")
    assert (ended.code, "late.csv:2: all rounds are closed" in ended.err) == (2, True), ended.err
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for name, op, code in (("late", "add", 2), ("more", "delete", 0)):
        rows = {"op": [op], "id": ["ben-2"], "who": ["ben" if op == "add" else None], "at": ["2026-01-02T01:00:00Z"]}
        pq.write_table(pa.table({**rows, "amount": [5]}), folder / f"{name}.parquet")
        ended = program("run", f"{name}.parquet", *NEW, "-q")
        assert (ended.code, "all rounds are closed" in ended.err) == (code, op == "add"), ended.err
    assert records() == 0


def test_a_successor_says_where_records_may_be_until_their_receipt_is_handed_in(closed: Path, program) -> None:
    with opened() as stream, stream.successor(epsilon=1.0, delta=1e-6, horizon=2, where="second") as second:
        second.close_round()
        second.successor(epsilon=1.0, delta=1e-6, horizon=2, where="third").close()
    asked = ("--subject", "anna", "--request", "one")
    ended = program("erase", "third", *asked, "--receipt", "third.json")
    assert ended.code == 0
    told = [text for text in ended.out.splitlines() if text.startswith("note:")]
    assert [text.split()[4] for text in told] == ["orders,", "second,"]
    assert all("then pass its receipt to --earlier" in text for text in told)

    def remains() -> list[str]:
        texts = json.loads((closed / "third.json").read_text())["receipt"]["remains"]
        return [text.split(",")[0] for text in texts if "the predecessor of this stream" in text]

    assert remains() == ["orders", "second"]
    # the old ones can still erase, and say that nothing is published after it
    for name in ("orders", "second"):
        ended = program("erase", name, *asked, "--receipt", f"{name}.json")
        assert (ended.code, "nothing is published after it" in ended.out) == (0, True), ended.err
        assert program("verify", name).code == 0
        assert "nothing is published after it" in program("verify", f"{name}.json", "--stream", name).out
    ended = program("erase", "third", *asked, "--receipt", "third.json", "--earlier", "orders.json")
    assert (ended.code, remains()) == (0, ["second"])
    both = ("--earlier", "orders.json", "--earlier", "second.json")
    ended = program("erase", "third", *asked, "--receipt", "third.json", *both)
    assert (ended.code, remains(), "note:" in ended.out) == (0, [], False)
    # receipts of other requests, of other streams, and changed ones
    other = ("--subject", "ben", "--request", "two")
    for given in (
        ("third", *other, "--earlier", "orders.json"),
        ("third", *asked, "--earlier", "third.json"),
        ("orders", *asked, "--earlier", "second.json"),
    ):
        before = program("erase", given[0], "--status").out
        assert program("erase", *given).code == 4
        assert program("erase", given[0], "--status").out == before
    changed = (closed / "orders.json").read_text().replace("purged", "applied", 1)
    (closed / "orders.json").write_text(changed)
    assert program("erase", "third", *asked, "--earlier", "orders.json").code in (2, 4)
    assert program("erase", "third", *asked, "--earlier", "nothing.json").code == 2
    with pytest.raises(ra.ExhaustedError, match="has a successor"), ra.Stream.open("second") as second:
        second.close_round()


def test_close_is_allowed_once_a_grid_is_over(folder, program):
    """Nothing closes any more: the erasure is applied at once."""
    (folder / "grid.toml").write_text(GRID)
    rows = "".join(f"2026-01-0{day},{who}-{day},{who},add,5\n" for day in (1, 2) for who in ("anna", "ben"))
    (folder / "e.csv").write_text("at,id,who,op,amount\n" + rows)
    assert program("run", "e.csv", "--spec", "grid.toml", "--store", "timed", "-q").code == 0
    ended = program("erase", "timed", "--subject", "anna", "--close")
    assert (ended.code, ended.err) == (0, "")
    assert "anna: 2 surviving records; purged; nothing is published after it" in ended.out
