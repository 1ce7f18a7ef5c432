"""Workbooks, databases and JSON documents: common, and not read by this program."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import InputError

LINES = (
    "one object a line: jq -c '.[]' old.json > new.jsonl for an array, jq -c . for objects over several lines; or "
    "pandas.read_json('old.json').to_json('new.jsonl', orient='records', lines=True)"
)
SAVE = "save the sheet or table as CSV or Parquet, and read that"
_CHANGES = re.compile(rb'\[\s*\{\s*"(insert|update|delete)"')
"""A line may be an array of changes."""
_SUFFIXES = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_STARTS = {
    b"PK\x03\x04": "a ZIP file, as workbooks are",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Office document",
    b"SQLite format 3\0": "a database of SQLite",
    b"%PDF-": "a PDF",
}


def refuse_workbook(path: str, start: bytes) -> None:
    """
    >>> refuse_workbook("orders.csv", b"id,amount")
    >>> try:
    ...     refuse_workbook("orders.xlsx", b"PK")
    ... except InputError as error:
    ...     print(error)
    orders.xlsx: expected CSV, JSON lines, Parquet or Arrow, got a workbook
    """
    found = next((words for mark, words in _STARTS.items() if start.startswith(mark)), None)
    if Path(path).suffix.lower() in _SUFFIXES:
        found = "a workbook"
    if found is not None:
        raise InputError(expected="CSV, JSON lines, Parquet or Arrow", found=found, source=path, hint=SAVE)


def refuse_document(name: str, start: bytes) -> None:
    """A file of JSON that is no lines.

    >>> refuse_document("orders.json", b'{"amount": 1}')
    >>> try:
    ...     refuse_document("orders.json", b'[{"amount": 1}]')
    ... except InputError as error:
    ...     print(error)
    orders.json:1: expected a JSON object on each line, got an array
    """
    line, more, _ = start.lstrip().partition(b"\n")
    several = line.strip() in (b"{", b"[") and more
    if several or (line.startswith(b"[") and not _CHANGES.match(line)):
        found = "an array" if line.startswith(b"[") else "one over several lines"
        wrong = InputError(expected="a JSON object on each line", found=found, hint=LINES)
        raise wrong.found_in(name, row=1, unit="line")
