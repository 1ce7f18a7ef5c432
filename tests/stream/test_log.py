"""The logger says what is done, and nothing about what it is done with."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import retroact as ra
from retroact.errors import InputError

SCHEMA = {"amount": ra.Number(0, 99_999), "city": ra.Text()}
COUNT = 7919
"""A prime that nothing else is."""
HIDDEN = ("31337.25", "Zanzibar", "order-4711", "person-0815", "ticket-2718", "gibberish", f"{COUNT}", f"{COUNT:,}")


def life(where: Path, *, erased: bool) -> None:
    """All that can happen to a durable stream; or the same without the person who is erased."""
    stream = ra.Stream.open(
        where, SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=5, columns={"subject": "who"}, key=ra.Key.for_testing(1)
    )
    with stream:
        if erased:
            stream.add({"amount": 31337.25, "city": "Zanzibar"}, id="order-4711", subject="person-0815")
        stream.add({"amount": [1.0] * COUNT, "city": ["x"] * COUNT}, subject=["y"] * COUNT)
        with pytest.raises(InputError):
            stream.add({"amount": "gibberish", "city": "Zanzibar"})
        stream.close_round()
        if erased:
            stream.erase(subject="person-0815", request="ticket-2718")
        stream.close_round()
        assert stream.verify().ok
    with ra.Stream.open(where, key=ra.Key.for_testing(1)) as again:
        again.close_round()


def lines(caplog: pytest.LogCaptureFixture, where: Path, *, erased: bool) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "retroact"):
        life(where, erased=erased)
    return [f"{line.levelname} {line.getMessage().replace(str(where), 'STORE')}" for line in caplog.records]


def test_a_whole_life_at_debug(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    found = lines(caplog, tmp_path / "a", erased=True)
    text = "\n".join(found)
    for hidden in HIDDEN:
        assert hidden not in text
    for part in ("created, round 1 is open", "opened, round 3 is open", "round 2 is published", "purged", "closed"):
        assert part in text
    assert all(int(number) <= 5 for number in re.findall(r"\d+", text))
    assert {line.name for line in caplog.records} == {"retroact"}


def test_a_twin_writes_the_same(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    assert lines(caplog, tmp_path / "a", erased=True) == lines(caplog, tmp_path / "b", erased=False)


def test_nothing_is_shown_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    life(tmp_path / "a", erased=True)
    assert capsys.readouterr() == ("", "")
