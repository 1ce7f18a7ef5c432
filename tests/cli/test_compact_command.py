"""`retroact compact`: the layout of a large store is rewritten now."""

from __future__ import annotations

from pathlib import Path

import pytest

from retroact.stream import layout
from support.cli_program import Program


def test_compact_rewrites_what_an_erasure_left_to_wait(
    program: Program, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "AT_ONCE", 0)
    assert program("erase", "orders", "--subject", "ben-c", "--close").code == 0
    assert "the layout of the data is rewritten when round" in program("verify", "orders").out
    assert program("compact", "orders").out == "orders: no erasure waits for its layout\n"
    after = program("verify", "orders")
    assert (after.code, "layout" in after.out) == (0, False)


def test_settings_are_kept_in_the_store(program: Program, orders: Path) -> None:
    assert program("compact", "orders", "--at-once", "0", "--rounds", "3").code == 0
    erased = program("erase", "orders", "--subject", "ben-c", "--close")
    assert erased.code == 0
    round = int(program("verify", "orders").out.partition("is rewritten when round ")[2].split()[0])
    assert program("compact", "orders", "--rounds", "-1").code == 2
    assert program("compact", "orders", "--at-once", "100000000").code == 0
    assert "layout" not in program("verify", "orders").out
    assert program("erase", "orders", "--subject", "anna-b", "--close").code == 0
    assert "layout" not in program("verify", "orders").out
    assert round >= 4
