"""`retroact run`: formats, options, rounds, keys and outputs."""

from __future__ import annotations

import csv
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import retroact as ra
from retroact.cli.specification import read_toml
from support.cli_program import CLOSE, Program, add, lines

ORDERS = """country,amount,order,customer,day,note
DE,12.50,o1,u1,1,"two
lines"
FR,3,o2,u2,1,
US,0.155,o3,,3,x
"""
ROLES = ("--id", "order", "--subject", "customer", "--round", "day", "--optional", "subject")
STATISTICS = ("--count", "--sum", "amount:0..500", "--by", "country=DE,FR,US", "--epsilon", 1, "--horizon", 20)


def by_the_library(rounds: list[list[tuple[dict[str, Any], dict[str, Any]]]], **options: Any) -> list[dict[str, Any]]:
    stream = ra.Stream(
        {"amount": ra.Number(0, 500), "country": ra.Category(["DE", "FR", "US"])},
        {
            "count_by_country": ra.GroupBy("country", ra.Count()),
            "sum_amount_by_country": ra.GroupBy("country", ra.Sum("amount")),
        },
        epsilon=1.0,
        horizon=20,
        key=ra.Key.for_testing(5),
        **options,
    )
    releases = []
    for records in rounds:
        for record, names in records:
            stream.add(record, **names)
        releases += [release.to_dict() for release in stream.close_round().values()]
    plain: list[dict[str, Any]] = json.loads(json.dumps(releases))
    return plain


EXPECTED: list[list[tuple[dict[str, Any], dict[str, Any]]]] = [
    [
        ({"country": "DE", "amount": 12.5}, {"id": "o1", "subject": "u1"}),
        ({"country": "FR", "amount": 3}, {"id": "o2", "subject": "u2"}),
    ],
    [],
    [({"country": "US", "amount": "0.155"}, {"id": "o3"})],
]


def test_help(program: Program) -> None:
    assert "Usage" in program().out + program().err
    for command in ("run", "plan", "explain", "demo"):
        assert "Example" in program(command, "--help").out


def test_csv_with_options_alone(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    ended = program("run", "orders.csv", *STATISTICS, *ROLES, "--rounds", 3, "--testing-key", 5)
    assert ended.code == 0, ended.err
    assert ended.releases == by_the_library(EXPECTED)
    assert "id in 'order', subject in 'customer', round in 'day'" in ended.err
    assert "ignored, as no statistic needs them: 'note'" in ended.err
    assert '{"op":"add","record":{"amount":12.5,"country":"DE"},"id":"o1","subject":"u1","round":1}' in ended.err


def test_plain_json_with_options_alone(program: Program) -> None:
    records: list[dict[str, Any]] = [
        {"country": "DE", "amount": 12.5, "order": "o1", "customer": "u1", "day": 1, "note": [1]},
        {"country": "FR", "amount": 3, "order": "o2", "customer": "u2", "day": 1},
        {"country": "US", "amount": "0.155", "order": "o3", "customer": None, "day": 3},
    ]
    ended = program("run", "-", *STATISTICS, *ROLES, "--rounds", 3, "--testing-key", 5, stdin=lines(*records).encode())
    assert ended.code == 0, ended.err
    assert ended.releases == by_the_library(EXPECTED)


def test_native_lines_among_plain_records_and_with_options(program: Program) -> None:
    plain: list[dict[str, Any]] = [
        {"country": "DE", "amount": 1, "subject": "u1"},
        CLOSE,
        {"op": "erase", "subject": "u1"},
        {"country": "FR", "amount": 2, "extra": 3},
        CLOSE,
    ]
    native = [add("DE", 1, subject="u1"), CLOSE, {"op": "erase", "subject": "u1"}, add("FR", 2), CLOSE]
    native[3]["record"]["extra"] = 3
    options = (*STATISTICS, "--testing-key", 5, "--subject", "subject", "--optional", "subject")
    first = program("run", "-", *options, stdin=lines(*plain).encode())
    second = program("run", "-", *options, stdin=lines(*native).encode())
    assert first.code == second.code == 0, first.err + second.err
    assert first.out == second.out
    assert "1 removed" in first.err


def test_a_count_needs_no_field(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text(ORDERS)
    outputs = [
        program("run", "orders.csv", "--count", "--epsilon", 1, "--testing-key", 5, "-q"),
        program("run", "-", "--count", "--epsilon", 1, "--testing-key", 5, "-q", stdin=b'{"a": 1}\n{}\n{"b": []}\n'),
        program("run", "-", "--count", "--epsilon", 1, "--testing-key", 5, stdin=lines(add(), add(), add()).encode()),
    ]
    assert len({ended.out for ended in outputs}) == 1
    assert "the whole input is one round" in outputs[2].err
    assert "3 records added" in outputs[2].err


def test_other_statistics_and_options(program: Program, folder: Path) -> None:
    (folder / "people.csv").write_text("age,height\n30,1.8\n,1.7\n200,1.6\n")
    options = ("--mean", "age:0..120:1", "--variance", "height:0..2.5", "--delta", 1e-6, "--window", 3, "--every", 2)
    more = ("--epsilon", 1, "--horizon", 10, "--clip", "--skip-missing", "--rounds", 4)
    ended = program("run", "people.csv", *options, *more)
    assert ended.code == 0, ended.err
    assert [(r["round"], r["statistic"]) for r in ended.releases] == [
        (round, name) for round in (2, 4) for name in ("mean_age", "variance_height")
    ]
    assert "4 rounds; 3 records added" in ended.err
    assert "note: mean_age leaves out 1 surviving record without a value\n" in ended.err
    assert "variance_height leaves out" not in ended.err


def test_csv_with_a_specification_has_all_events(program: Program, folder: Path) -> None:
    (folder / "events.csv").write_text(
        "op,id,subject,stamp,country,amount\n"
        "add,1,u1,,DE,5\nadd,,u2,,FR,6\nadd,,,,US,7\nclose,,,,,\n"
        "delete,1,,,,\ndelete,,,1,US,7\nerase,,u2,,,\nclose,,,,,\n"
    )
    native = [
        add("DE", 5, id="1", subject="u1"), add("FR", 6, subject="u2"), add("US", 7), CLOSE,
        {"op": "delete", "id": 1}, {"op": "delete", "stamp": 1, "record": {"country": "US", "amount": 7.0}},
        {"op": "erase", "subject": "u2"}, CLOSE,
    ]  # fmt: skip
    options = ("--spec", "shop.toml", "--testing-key", 2)
    ended = program("run", "events.csv", *options)
    assert ended.code == 0, ended.err
    assert ended.out == program("run", "-", *options, stdin=lines(*native).encode()).out
    assert "3 records added, 3 removed" in ended.err


def test_cells(program: Program, folder: Path) -> None:
    """Exact decimals, yes and no, vectors, whole numbers, and empty cells where empty is a value."""
    (folder / "cells.toml").write_text(
        "epsilon = 1\n[schema]\n"
        'n = { type = "number", lower = 0, upper = 1, step = 0.01 }\ni = { type = "integer", lower = -9, upper = 9 }\n'
        'b = { type = "boolean" }\nv = { type = "vector", dimension = 2, radius = 2, step = 0.5 }\n'
        't = { type = "text" }\nc = { type = "category", values = ["", "x"] }\n'
        'd = { type = "date", lower = "2020-01-01", upper = "2029-12-31" }\n'
        '[statistics]\nn = { type = "sum", field = "n" }\nv = { type = "sum", field = "v" }\n'
        'c = { type = "count", by = "c" }\nb = { type = "sum", field = "b" }\ni = { type = "sum", field = "i" }\n'
    )
    texts = [("0.155", "-3", "1"), ("0.15500000000000000000001", "3.0", "0"), ("1", "9", "true")]
    rows = "".join(f'{n},{i},{b},"[1, 0.5]",,,2020-02-29\n' for n, i, b in texts)
    (folder / "cells.csv").write_text(f"n,i,b,v,t,c,d\n{rows}")
    ended = program("run", "cells.csv", "--spec", "cells.toml", "--testing-key", 1, "-q")
    assert ended.code == 0, ended.err
    spec = ra.Specification.from_dict(read_toml(folder / "cells.toml"))
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    for n, i, b in texts:
        flag: object = {"1": True, "0": False}.get(b, b)
        stream.add({"n": n, "i": i, "b": flag, "v": [1, 0.5], "t": "", "c": "", "d": "2020-02-29"})
    assert ended.releases == [release.to_dict() for release in stream.close_round().values()]
    table = program("run", "cells.csv", "--spec", "cells.toml", "--testing-key", 1, "-q", "--format", "csv").out
    groups = [(row["statistic"], row["coordinate"], row["c"]) for row in csv.DictReader(table.splitlines())]
    by_position, by_group = [("v", "0", ""), ("v", "1", "")], [("c", "", ""), ("c", "", "x")]
    assert groups == [("n", "", ""), *by_position, *by_group, ("b", "", ""), ("i", "", "")]


def test_csv_output_says_the_same(program: Program) -> None:
    events = lines(add(), CLOSE, CLOSE).encode()
    options = ("run", "-", "--spec", "shop.toml", "--testing-key", 1, "-q")
    releases = program(*options, stdin=events).releases
    table = list(csv.DictReader(program(*options, "--format", "csv", stdin=events).out.splitlines()))
    assert list(table[0]) == [
        "round", "statistic", "country", "value", "standard_error", "low", "high", "testing_key",
    ]  # fmt: skip
    expected = []
    for release in releases:
        value, error, interval = release["value"], release["standard_error"], release["interval95"]
        groups = value if isinstance(value, dict) else {"": value}
        for group, number in groups.items():
            row = (number, error, *interval) if group == "" else (number, error[group], *interval[group])
            texts = ["" if part is None else repr(part) for part in row]
            expected.append([str(release["round"]), release["statistic"], group, *texts, "NOT PRIVATE: testing key"])
    assert [list(row.values()) for row in table] == expected


def test_ids_keep_their_order(program: Program) -> None:
    """Many events on few ids, within rounds: as if they had been handed over one by one."""
    events: list[dict[str, Any]] = []
    stream = ra.Stream({"*": ra.Integer(0, 0)}, {"count": ra.Count()}, epsilon=1.0, key=ra.Key.for_testing(4))
    expected = []
    for step in range(300):
        id: str | int = (step * 7) % 5 if step % 2 else str((step * 3) % 5)
        if step % 3 == 0:
            events.append({"op": "delete", "id": id})
            stream.delete(id=id)
        else:
            events.append({"op": "add", "record": {}, **({} if step % 4 == 0 else {"id": id})})
            stream.add({"*": 0}, id=None if step % 4 == 0 else id)
        if step % 11 == 0:
            events.append(CLOSE)
            expected += [release.to_dict() for release in stream.close_round().values()]
    events.append(CLOSE)
    expected += [release.to_dict() for release in stream.close_round().values()]
    ended = program("run", "-", "--count", "--epsilon", 1, "--testing-key", 4, "-q", stdin=lines(*events).encode())
    assert ended.releases == expected


def test_rounds(program: Program) -> None:
    def rounds(*events: dict[str, Any], more: tuple[Any, ...] = ()) -> int:
        ended = program("run", "-", "--spec", "shop.toml", *more, stdin=lines(*events).encode())
        assert ended.code == 0, ended.err
        assert ended.releases[-1]["round"] == int(ended.err.splitlines()[-1].split()[0])
        last: int = ended.releases[-1]["round"]
        return last

    assert rounds(add()) == 1
    assert rounds(CLOSE) == 1
    assert rounds(add(), CLOSE) == 1
    assert rounds({"op": "close", "round": 2}, CLOSE, more=("--rounds", 4)) == 4
    assert rounds(add(), more=("--rounds", 6)) == 6
    assert rounds(add(), CLOSE, more=("--rounds", 1)) == 1


def test_how_many_rounds_are_published_does_not_depend_on_the_last_records(program: Program) -> None:
    """One more or one fewer operation after the last close, or in the last round, changes no number of rounds."""

    def published(*events: dict[str, Any], more: tuple[Any, ...] = ()) -> int:
        ended = program("run", "-", "--spec", "shop.toml", *more, stdin=lines(*events).encode())
        assert ended.code == 0, ended.err
        return len({release["round"] for release in ended.releases})

    assert published(add(), CLOSE) == published(add(), CLOSE, add()) == 1
    assert published(add(), CLOSE, {"op": "delete", "id": "nobody"}) == 1
    numbered = [add(round=1), add(round=2), add(round=5)]
    assert published(*numbered, more=("--rounds", 7)) == published(*numbered[:1], more=("--rounds", 7)) == 7
    ended = program("run", "-", "--spec", "shop.toml", stdin=lines(*numbered).encode())
    assert ended.code == 2
    assert "stdin:1: rounds by number need --rounds N" in ended.err
    ended = program("run", "-", "--spec", "shop.toml", "--rounds", 1, stdin=lines(CLOSE, CLOSE).encode())
    assert "stdin:2: expected at most 1 round (--rounds), got one more" in ended.err
    ended = program("run", "-", "--spec", "shop.toml", stdin=lines(add(), CLOSE, add()).encode())
    assert "not published: its round is still open" in ended.err


def test_roles_by_name_and_without(program: Program) -> None:
    data = b'{"id": "a", "round": 2}\n{"id": "a", "round": 2}\n'
    ended = program("run", "-", "--count", "--epsilon", 1, "--rounds", 2, "--id", "id", "--round", "round", stdin=data)
    assert "2 rounds; 1 record added" in ended.err
    for roles in (("--id", "", "--round", ""), ()):
        ended = program("run", "-", "--count", "--epsilon", 1, *roles, stdin=data)
        assert "1 round; 2 records added" in ended.err
        assert "'id', 'round'" in ended.err


def test_fields_called_like_roles(program: Program, folder: Path) -> None:
    (folder / "votes.csv").write_text("op,round,id\nyes,7,a\nno,5,b\n")
    ended = program("run", "votes.csv", "--by", "op=yes,no", "--sum", "round:0..9", "--epsilon", 1, "--id", "id")
    assert ended.code == 0, ended.err
    assert "columns: id in 'id', no subject" in ended.err
    assert "1 round; 2 records added" in ended.err
    data = b'{"op": "yes", "round": 7}\n{"op": "no", "round": 5}\n'
    ended = program("run", "-", "--by", "op=yes,no", "--sum", "round:0..9", "--epsilon", 1, stdin=data)
    assert ended.code == 0, ended.err


def test_what_is_found_without_being_named(program: Program, folder: Path) -> None:
    (folder / "shop.toml").rename(folder / "retroact.toml")
    (folder / "events").write_bytes(b"\xef\xbb\xbf\n" + lines(add(), CLOSE).encode() + b"\r\n\n")
    assert program("run", "events", "-q").releases[0]["statistic"] == "orders"
    (folder / "table.txt").write_text("country,amount\r\nDE,1\r\n")
    assert program("run", "table.txt", "-q").code == 0


def test_blocks_are_seamless(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    events = lines(*[add("FR", n % 500, id=n % 37) for n in range(300)], CLOSE, *[add()] * 40).encode()
    options = ("run", "-", "--spec", "shop.toml", "--testing-key", 1, "-q")
    whole = program(*options, stdin=events).out
    monkeypatch.setattr("retroact.feeds.source.BLOCK", 100)
    assert program(*options, stdin=events).out == whole


def test_key_file(program: Program, folder: Path) -> None:
    options = ("run", "-", "--spec", "shop.toml", "--key-file", "secret")
    first = program(*options, stdin=lines(add()).encode())
    secret = (folder / "secret").read_text().strip()
    assert "key created in secret" in first.err
    assert secret not in first.out + first.err
    assert len(bytes.fromhex(secret)) == 32
    if os.name == "posix":
        assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    # the same key again, in the same process, is a second stream
    second = program(*options, stdin=lines(add()).encode())
    assert second.code == 2
    assert "already drives a stream" in second.err
    assert secret not in second.err


def test_key_forms_agree(folder: Path) -> None:
    from retroact.cli.run import choose_key

    secret = bytes(range(32))
    for name, content in (("raw", secret), ("hex", secret.hex().encode() + b"\n")):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
        key, line = choose_key(folder / name, None)
        assert key._secret == secret
        assert secret.hex() not in line


def test_key_from_the_environment(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROACT_KEY", os.urandom(32).hex())
    ended = program("run", "-", "--spec", "shop.toml", stdin=lines(add()).encode())
    assert ended.code == 0
    assert "key from RETROACT_KEY" in ended.err
    assert os.environ["RETROACT_KEY"] not in ended.err + ended.out
    monkeypatch.setenv("RETROACT_KEY", "not the secret you think")
    ended = program("run", "-", "--spec", "shop.toml", stdin=lines(add()).encode())
    assert ended.code == 2
    assert "not the secret" not in ended.err


def test_bad_keys(program: Program, folder: Path) -> None:
    (folder / "open").write_text("00" * 32)
    (folder / "open").chmod(0o644)
    (folder / "short").write_text("00" * 31)
    (folder / "short").chmod(0o600)
    for name, reason in (("open", "owner alone"), ("short", "64 hexadecimal digits"), (".", ""), ("no/such", "")):
        ended = program("run", "-", "--spec", "shop.toml", "--key-file", name, stdin=lines(add()).encode())
        assert ended.code == 2
        assert reason in ended.err
    both = program("run", "-", "--spec", "shop.toml", "--key-file", "k", "--testing-key", 1, stdin=b'{"op":"close"}')
    assert both.code == 2
    assert not (folder / "k").exists()


def test_output_file(program: Program, folder: Path) -> None:
    options = ("run", "-", "--spec", "shop.toml", "--testing-key", 1, "-q")
    events = lines(add()).encode()
    whole = program(*options, stdin=events).out
    (folder / "out").write_text("old")
    assert program(*options, "--out", "out", stdin=events).code == 0
    assert (folder / "out").read_text() == whole
    assert program(*options, "--out", "out", stdin=events + b"broken").code == 2
    assert (folder / "out").read_text() == whole
    if os.name == "posix":
        (folder / "link").symlink_to("out")
        assert program(*options, "--out", "link", stdin=events).code == 0
        assert (folder / "link").is_symlink()
        assert program(*options, "--out", os.devnull, stdin=events).code == 0
        assert not Path(os.devnull).is_file()
    assert program(*options, "--out", ".", stdin=events).code == 2
    assert program(*options, "--out", "no/such/folder", stdin=events).code == 2
    (folder / "events.jsonl").write_bytes(events)
    ended = program("run", "events.jsonl", *options[2:], "--out", "events.jsonl")
    assert ended.code == 2
    assert (folder / "events.jsonl").read_bytes() == events
    assert {path.name for path in folder.iterdir()} <= {"shop.toml", "out", "link", "events.jsonl"}


def test_ids_that_come_again_are_in_the_summary(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("id,amount\nx,1\nx,2\nx,3\ny,4\n")
    ended = program("run", "orders.csv", "--count", "--id", "id", "--epsilon", 1, "--rounds", 1)
    assert "note: 2 additions of 4 had no effect: a later row of the same round replaced the record" in ended.err
    assert "2 records added" in ended.err
    (folder / "rounds.csv").write_text("id,round,amount\nx,1,1\nx,2,2\ny,2,4\n")
    ended = program("run", "rounds.csv", "--count", "--id", "id", "--round", "round", "--epsilon", 1, "--rounds", 2)
    assert "3 records added, 1 removed" in ended.err
    assert "had no effect" not in ended.err
    updates = [{"op": "update", "record": {}, "id": "x"}, {"op": "update", "record": {}, "id": "x"}]
    (folder / "e.jsonl").write_text(lines(*updates))
    assert "had no effect" not in program("run", "e.jsonl", "--count", "--epsilon", 1).err


@pytest.mark.parametrize(
    ("more", "advice"),
    [((), "--rounds 1 promises so, and errs much less"), (("--horizon", 3), "a horizon of 1 promises so"),
     (("--store", "kept"), None)],
)  # fmt: skip
def test_a_file_that_is_one_round_is_told_what_that_costs(
    more: tuple[object, ...], advice: str | None, program: Program, folder: Path
) -> None:
    (folder / "orders.csv").write_text("amount\n1\n2\n")
    ended = program("run", "orders.csv", "--count", "--epsilon", 1, *more)
    note = next(line for line in ended.err.splitlines() if "the whole input is one round" in line)
    assert ("errs" in note) == (advice is not None)
    assert advice is None or advice in note


def test_a_promised_round_is_not_explained(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("amount\n1\n2\n")
    assert "is one round" not in program("run", "orders.csv", "--count", "--epsilon", 1, "--rounds", 1).err


def test_a_run_says_from_when_on_bins_are_shown(program: Program, folder: Path) -> None:
    (folder / "orders.csv").write_text("city\nRome\n")
    budget = ("--epsilon", 1, "--delta", 1e-6, "--rounds", 1)
    ended = program("run", "orders.csv", "--histogram", "city", "--count", *budget)
    assert ended.err.count("note: histogram_city: a bin is released when its noisy count reaches ") == 1
    assert "noisy count" not in program("run", "orders.csv", "--count", *budget).err
