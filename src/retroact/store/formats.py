"""Which formats of stores this version opens."""

from __future__ import annotations

from ..errors import InputError
from .tables import BEFORE

OPENED_BY = {1: "0.1.0", 2: "0.2.0"}
"""The version of the package that opens a store of an old format."""


def check_format(where: str, found: str | None, newest: int) -> None:
    """Refuse a store of another format."""
    if found is None or not found.isdecimal() or BEFORE <= int(found) <= newest:
        return
    number = int(found)
    if number > newest:
        raise InputError(f"{where}: expected store format {newest}, got {number}: a later version of retroact made it")
    version = OPENED_BY.get(number, "in an earlier version")
    raise InputError(
        f"{where}: expected store format {newest}, got {number}, which only retroact {version} opens. To erase there, "
        f"use that version: retroact erase {where} --subject ... --close. Its records cannot be taken over: "
        "a new stream begins with the source again, and the privacy budget that it spends adds to the old one's"
    )
