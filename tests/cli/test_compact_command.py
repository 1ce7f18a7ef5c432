"""`retroact compact`: the layout of a large store is rewritten now."""

from __future__ import annotations

from pathlib import Path

import pytest

from retroact.store import sqlite
from support.cli_program import Program


def test_compact_rewrites_what_an_erasure_left_to_wait(
    program: Program, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LARGE", 0)
    assert program("erase", "orders", "--subject", "ben-c", "--close").code == 0
    assert "the layout of the data is rewritten when round" in program("verify", "orders").out
    assert program("compact", "orders").out == "orders: no erasure waits for its layout\n"
    after = program("verify", "orders")
    assert (after.code, "layout" in after.out) == (0, False)
