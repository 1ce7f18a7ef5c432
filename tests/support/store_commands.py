"""A store of six rounds for tests of the command line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.cli_program import CLOSE, SPEC, add, lines

PEOPLE = ("anna-b", "ben-c", "carl-d", "dora-e")
NEW = ("--spec", "shop.toml", "--store", "orders")
Row = dict[str, Any]


def history(rounds: int, *, records: int = 1) -> list[Row]:
    """Records of four people with ids, one of nobody, a late one; what anna-b had in the round before is deleted."""
    events: list[Row] = []
    for round in range(1, rounds + 1):
        for number, who in enumerate(PEOPLE * records):
            events.append(add(("DE", "FR")[number % 2], 7 * number + round, id=f"o-{round}-{number}", subject=who))
        events.append(add("US", 400 + round))
        if round > 1:
            events.append({"op": "delete", "id": f"o-{round - 1}-0"})
            events.append({"op": "delete", "stamp": round - 1, "record": {"country": "US", "amount": 399 + round}})
            events.append(add("US", 5, stamp=round - 1))
        events.append(CLOSE)
    return events


SIX = lines(*history(6), add("DE", 1, subject="ben-c"))
"""Six rounds, and a record in the open one."""


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETROACT_KEY_COMMAND", raising=False)


@pytest.fixture(scope="session")
def six_rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream after six rounds, with its key, its fence, its events and what it published; and a copy beside it."""
    from retroact.cli import main

    place = tmp_path_factory.mktemp("six") / "rounds"
    place.mkdir()
    (place / "shop.toml").write_text(SPEC)
    (place / "events.jsonl").write_text(SIX)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.delenv("RETROACT_KEY", raising=False)
        patch.delenv("RETROACT_KEY_COMMAND", raising=False)
        with pytest.raises(SystemExit) as ended:
            main(["run", "events.jsonl", *NEW, "--out", "out.jsonl", "-q"])
    assert ended.value.code == 0
    shutil.copytree(place, place.with_name("kept"))
    return place


@pytest.fixture
def orders(six_rounds: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of this stream, in the working folder. Always in the same place: its key is for that one alone."""
    bring_back(six_rounds)
    monkeypatch.chdir(six_rounds)
    return six_rounds / "orders"


def bring_back(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(place.with_name("kept"), place, dirs_exist_ok=True)


def content(folder: Path) -> dict[str, object]:
    """Everything there is, but locks: the rows of databases, and the bytes of other files."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock"))
    return {
        str(path.relative_to(folder)): rows_of(path) if path.suffix == ".sqlite" else path.read_bytes()
        for path in found
    }


def rows_of(path: Path) -> list[str]:
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def rounds_of(text: str) -> list[int]:
    return sorted({json.loads(line)["round"] for line in text.splitlines()})
