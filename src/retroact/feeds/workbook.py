"""Workbooks and databases: common, and not read by this program."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError

SAVE = "save the sheet or table as CSV or Parquet, and read that"
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
