"""`retroact run --store`: a stream is made, goes on from its store, and is refused without a trace."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import retroact as ra
from support.cli_program import CLOSE, SPEC, Program, add, lines
from support.store_commands import NEW, SIX, content, history, rounds_of

# Running --------------------------------------------------------------------------------------------------------------


def test_a_store_is_made_and_gone_on_with(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(SIX)
    first = program("run", "events.jsonl", *NEW)
    assert first.code == 0, first.err
    assert rounds_of(first.out) == [1, 2, 3, 4, 5, 6]
    assert "note: round 1 of orders is open" in first.err
    assert {path.name for path in (folder / "orders").iterdir()} == {"data.sqlite", "journal.sqlite"}
    assert not list(folder.glob("**/*-wal"))
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in ("orders", "orders.key", "orders.fence")}
    assert (modes["orders"], modes["orders.key"]) == (0o700, 0o600)
    assert json.loads((folder / "orders.fence").read_bytes())["round"] == 6
    before = content(folder)
    again = program("run", "events.jsonl", *NEW)
    assert (again.code, again.out) == (0, "")
    assert "0 rounds; 0 records added" in again.err
    assert content(folder) == before
    with (folder / "events.jsonl").open("a") as file:
        file.write(lines(CLOSE, add("FR", 2), CLOSE))
    later = program("run", "events.jsonl", *NEW)
    assert (later.code, rounds_of(later.out)) == (0, [7, 8])
    assert "2 rounds; 2 records added" in later.err
    assert program("export", "orders").out == first.out + later.out


def test_the_stored_specification_is_used(program: Program, orders: Path) -> None:
    (orders.parent / "shop.toml").unlink()
    (orders.parent / "more.jsonl").write_text(lines(add("FR", 2), CLOSE))
    ended = program("run", "more.jsonl", "--store", "orders")
    assert ended.code == 0, ended.err
    assert [release["statistic"] for release in ended.releases] == ["orders", "revenue", "countries"]
    assert "note: round 7 of orders is open" in ended.err
    nowhere = program("run", "more.jsonl", "--store", "nowhere")
    assert (nowhere.code, nowhere.err) == (2, "error: nowhere: expected the folder of a stream, got none\n")
    assert not (orders.parent / "nowhere").exists()


def test_a_specification_in_the_folder_is_not_read_beside_a_stream_that_exists(program: Program, orders: Path) -> None:
    (orders.parent / "retroact.toml").write_text("this is not TOML")
    (orders.parent / "more.jsonl").write_text(lines(add("FR", 2), CLOSE))
    ended = program("run", "more.jsonl", "--store", "orders")
    assert ended.code == 0, ended.err
    assert "note: orders has its own specification; retroact.toml in this folder is not read\n" in ended.err
    assert program("run", "more.jsonl", "--store", "orders", "--spec", "retroact.toml").code == 2


def test_a_changed_specification_is_refused(program: Program, orders: Path) -> None:
    before = content(orders.parent)
    for old, new, shown in (
        ("epsilon = 1.0", "epsilon = 2.0", "epsilon: 1.0 in the store, 2.0 given"),
        ('orders = { type = "count" }', "", "statistics.orders: "),
        ("upper = 500", "upper = 501", "schema.amount: "),
    ):
        (orders.parent / "shop.toml").write_text(SPEC.replace(old, new))
        ended = program("run", "events.jsonl", *NEW, "-q")
        assert ended.code == 2
        assert shown in ended.err
        assert ended.err.count("\n") == 1
    (orders.parent / "shop.toml").write_text(SPEC)
    assert content(orders.parent) == before


@pytest.mark.parametrize(
    "name", ["nowhere.jsonl", "empty.jsonl", "bad.jsonl", "utf16.jsonl", "bad.csv", "bad.parquet", "bad.toml", "."]
)
def test_bad_events_leave_no_store_behind(program: Program, folder: Path, name: str) -> None:
    (folder / "empty.jsonl").write_text("\n")
    (folder / "bad.jsonl").write_text('{"op": "shut"}\n')
    (folder / "utf16.jsonl").write_text('{"op": "close"}', encoding="utf-16")
    (folder / "bad.csv").write_text("country,cost\nDE,1\n")
    (folder / "bad.parquet").write_text("country,amount\nDE,1\n")
    (folder / "bad.toml").write_text("epsilon = = 1\n")
    (folder / "good.jsonl").write_text(SIX)
    before = content(folder)
    spec, events = ("bad.toml", "good.jsonl") if name == "bad.toml" else ("shop.toml", name)
    ended = program("run", events, "--spec", spec, "--store", "orders", "--out", "out")
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert content(folder) == before
    assert not (folder / "orders").exists()


def test_options_that_are_about_a_store(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(SIX)
    for option in (("--fence", "f"), ("--restored",), ("--after", 3), ("--erasures-asked",)):
        ended = program("run", "events.jsonl", "--spec", "shop.toml", *option)
        assert (ended.code, ended.err) == (
            2,
            f"error: expected --store: this is for durable streams - at {option[0]}\n",
        )


def test_a_store_made_by_options_goes_on_without_them(program: Program, folder: Path) -> None:
    (folder / "shop.toml").unlink()
    records = [add("DE", 1), CLOSE]
    (folder / "events.jsonl").write_text(lines(*records))
    assert program("run", "events.jsonl", "--count", "--epsilon", 1, "--store", "orders", "-q").code == 0
    (folder / "events.jsonl").write_text(lines(*records, *records))
    ended = program("run", "events.jsonl", "--store", "orders", "-q")
    assert (ended.code, ended.err) == (0, "")
    assert rounds_of(ended.out) == [2]


COUNT = ("--count", "--epsilon", 1, "--horizon", 9, "--store", "counted", "--id", "order")


# Stopped and gone on with ---------------------------------------------------------------------------------------------


def test_what_is_sent_again_is_taken_once(program: Program, folder: Path) -> None:
    events = [{"order": 1, "lsn": 1}, {"order": 2, "lsn": 2}, {"op": "close", "lsn": 3}]
    later = [{"order": 3, "lsn": 5}, {"order": 1, "lsn": 4}, {"op": "close", "lsn": 6}]
    run = ("run", "events.jsonl", *COUNT, "--position", "lsn")
    (folder / "events.jsonl").write_text(lines(*events))
    assert rounds_of(program(*run).out) == [1]
    assert program(*run).out == ""
    (folder / "events.jsonl").write_text(lines(*events[1:], *later, *events))
    ended = program(*run)
    assert (ended.code, rounds_of(ended.out)) == (0, [2])
    assert "absorbed 5 events that came before (first: events.jsonl:1)" in ended.err


def test_one_at_a_time(program: Program, orders: Path) -> None:
    with ra.Stream.open("orders"):
        for command in (("run", "events.jsonl", "--store", "orders"), ("verify", "orders"), ("export", "orders")):
            ended = program(*command)
            assert (ended.code, ended.err) == (2, "error: orders: another process has this stream open\n")


# The end --------------------------------------------------------------------------------------------------------------


def test_an_exhausted_horizon_leaves_the_store_as_it_was(program: Program, folder: Path) -> None:
    (folder / "shop.toml").write_text(SPEC.replace("horizon = 50", "horizon = 3"))
    (folder / "events.jsonl").write_text(lines(*history(5)))
    ended = program("run", "events.jsonl", *NEW, "--out", "out.jsonl", "-q")
    assert ended.code == 3
    assert "all 3 promised rounds are released" in ended.err
    text = (folder / "out.jsonl").read_text()
    assert rounds_of(text) == [1, 2, 3]
    before = content(folder / "orders")
    again = program("run", "events.jsonl", *NEW, "-q")
    assert (again.code, again.out) == (3, "")
    assert content(folder / "orders") == before
    assert program("export", "orders").out == text
    assert program("verify", "orders").code == 0
    assert "3 surviving records; dry run" in program("erase", "orders", "--subject", "ben-c", "--dry-run").out
    ended = program("erase", "orders", "--subject", "ben-c", "--request", "t", "--close")
    assert (ended.code, ended.out) == (0, "ben-c: 3 surviving records; purged; nothing is published after it (t)\n")
    assert program("export", "orders").out == text
    assert program("verify", "orders").code == 0


def test_a_stream_with_a_testing_key_is_opened_by_every_command(program: Program, folder: Path) -> None:
    (folder / "events.jsonl").write_text(lines(add(subject="u1"), CLOSE, add(subject="u2"), CLOSE))
    key = ("--testing-key", 7)
    made = program("run", "events.jsonl", *NEW, *key)
    assert made.code == 0, made.err
    erased = ("erase", "orders", "--subject", "u1", "--request", "r1", "--close", "--receipt", "r.json")
    assert program(*erased).code != 0
    for command in (
        erased,
        ("verify", "orders"),
        ("verify", "r.json", "--stream", "orders"),
        ("report", "orders", "--html", "page.html"),
        ("columns", "orders"),
    ):
        ended = program(*command, *key)
        assert ended.code == 0, (command, ended.err)
    assert program("export", "orders", *key).out.startswith(made.out)
    assert "signed by this stream" in program("verify", "r.json", "--stream", "orders", *key).out
