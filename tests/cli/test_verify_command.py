"""`retroact verify`: of a store, and of a receipt."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import retroact as ra
from retroact.store.receipt import sign
from retroact.store.receipt import verify as read_receipt
from support.cli_program import Program


def test_a_stream_that_is_as_it_should_be(program: Program, orders: Path) -> None:
    ended = program("verify", "orders")
    assert (ended.code, ended.err) == (0, "")
    told = "orders: 4 releases reproduced (rounds 6 to 6); data, fence and files agree\n"
    assert ended.out.startswith(told)


def change(path: Path, sql: str, *parameters: object) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, parameters).rowcount
    connection.close()


def test_what_was_tampered_with_is_found(program: Program, orders: Path) -> None:
    path = orders / "journal.sqlite"
    change(path, "update release set line = ? where round = 6 and statistic = 'orders'", b"{}")
    ended = program("verify", "orders")
    assert ended.code == 4
    assert "differs: table release: the row 6, 'orders' is not as it was written\n" in ended.out
    assert re.fullmatch(r"error: orders: \d+ differences\n", ended.err)
    change(path, "delete from release where round = 6 and statistic = 'revenue'")
    assert "round 6 of revenue: expected a release, got none" in program("verify", "orders").out
    # also what cannot be worked out again
    change(path, "update release set line = ? where round = 2 and statistic = 'countries'", b"{}")
    assert "differs: table release: the row 2, 'countries' " in program("verify", "orders").out
    shutil.copy(orders.parent / "orders.fence", "kept")
    (orders.parent / "orders.fence").unlink()
    ended = program("verify", "orders")
    assert (ended.code, ended.out) == (4, "")
    assert "orders.fence: the fence is missing" in ended.err
    (orders.parent / "orders.fence").write_text('{"stream":"00ff","round":6}\n')
    assert "got that of another one" in program("verify", "orders").err
    (orders.parent / "orders.fence").write_text("junk")
    assert program("verify", "orders").code == 4


def test_other_things_than_a_stream(program: Program, orders: Path) -> None:
    (orders.parent / "things").mkdir()
    for target, expected in {
        "things": "expected the folder of a stream, got none",
        "nowhere.json": "expected a stream or the file of a receipt, got nothing of that name",
    }.items():
        ended = program("verify", target)
        assert (ended.code, ended.err) == (2, f"error: {target}: {expected}\n")
    assert not list((orders.parent / "things").iterdir())
    ended = program("verify", "orders", "--subject", "ben-c")
    assert ended.code == 2
    assert "expected the file of a receipt" in ended.err


@pytest.fixture
def receipt(program: Program, orders: Path) -> bytes:
    ask = ("--subject", "ben-c", "--request", "t-1", "--close", "--receipt", "r.json")
    assert program("erase", "orders", *ask).code == 0
    return (orders.parent / "r.json").read_bytes()


def test_a_receipt(program: Program, orders: Path, receipt: bytes) -> None:
    alone = program("verify", "r.json")
    assert alone.code == 0
    assert alone.out.startswith("r.json: whole (give --stream to check who signed it); purged, received ")
    for options in ((), ("--subject", "ben-c", "--request", "t-1")):
        ended = program("verify", "r.json", "--stream", "orders", *options)
        assert ended.code == 0, ended.err
        assert ended.out.startswith("r.json: signed by this stream; purged, received ")
    for part in ("from round 7 on", "data.sqlite: rows", "may remain: backups", "later records of the subject: accept"):
        assert part in ended.out
    for options in (("--subject", "carl-d", "--request", "t-1"), ("--subject", "ben-c", "--request", "t-2")):
        ended = program("verify", "r.json", "--stream", "orders", *options)
        assert (ended.code, ended.out) == (4, "")
    for options in (("--subject", "ben-c"), ("--stream", "orders", "--subject", "ben-c")):
        assert program("verify", "r.json", *options).code == 2


def test_receipts_that_are_not_good(program: Program, orders: Path, receipt: bytes) -> None:
    signed = json.loads(receipt)
    texts = {
        "round": (receipt.replace(b'"round":7', b'"round":6'), 4),
        "signature": (receipt.replace(signed["signature"].encode(), signed["signature"][::-1].encode()), 4),
        "remains": (receipt.replace(b"memory of running processes", b"nothing"), 4),
        "spaces": (json.dumps(signed).encode(), 2),
        "cut": (receipt[:-20], 2),
        "empty": (b"", 2),
        "other": (b"{}\n", 2),
        "bytes": (b"\xff\x00", 2),
        "long": (b" " * 70_000, 2),
    }
    for name, (text, code) in texts.items():
        (orders.parent / name).write_bytes(text)
        for options in ((), ("--stream", "orders")):
            ended = program("verify", name, *options)
            assert (ended.code, ended.out) == (code, ""), name
            assert name in ended.err
            assert ended.err.count("\n") == 1
    own = read_receipt(receipt, place="")
    (orders.parent / "forged").write_bytes(sign(own, ra.Key.generate().derive("receipts")))
    assert program("verify", "forged").code == 0
    assert program("verify", "forged", "--stream", "orders").code == 4


def test_a_receipt_of_another_stream(program: Program, orders: Path, receipt: bytes) -> None:
    assert program("run", "events.jsonl", "--spec", "shop.toml", "--store", "second", "-q").code == 0
    ended = program("verify", "r.json", "--stream", "second")
    assert (ended.code, ended.out) == (4, "")
    # of which one learns nothing about the numbers of records
    (orders.parent / "none").mkdir()
    assert program("erase", "orders", "--subject", "nobody", "--close", "--receipt", "none").code == 5
    assert not list((orders.parent / "none").iterdir())
    ask = ("erase", "orders", "--subject", "nobody", "--close", "--receipt", "none", "--allow-missing")
    assert program(*ask).code == 0
    (other,) = (orders.parent / "none").iterdir()
    one, two = json.loads(receipt)["receipt"], json.loads(other.read_bytes())["receipt"]
    differing = {name for name in one if one[name] != two[name]}
    assert differing <= {"request", "round", "received", "applied", "purged", "found"}
    assert (one["found"], two["found"]) == ([True], [False])
    assert {name for name, value in one.items() if isinstance(value, int | float)} == {"round", "version"}


def test_changed_rules_of_a_time_zone_are_a_note(program: Program, folder: Path, rules: Callable[[str], None]) -> None:
    (folder / "rows.csv").write_text("at\n2026-03-28\n")
    grid = ["--time", "at", "--start", "2026-03-28", "--end", "2026-03-31", "--length", "1d"]
    options = ["--count", "--epsilon", 1, "--time-zone", "Europe/Berlin", "--store", "days", *grid]
    assert program("run", "rows.csv", *options).code == 0
    assert "rules" not in program("verify", "days").out
    rules("Asia/Baghdad")
    note = "note: the rules of Europe/Berlin have changed since: rounds 1 to 3 keep the boundaries that were used"
    again = program("verify", "days")
    assert (again.code, note in again.out) == (0, True)
    assert note in program("run", "rows.csv", "--store", "days").err
