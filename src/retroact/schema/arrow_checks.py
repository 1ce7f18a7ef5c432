"""Arrow tables that cannot be read are refused as bad input, and those of pyarrow are validated first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError


def unreadable(error: Exception) -> InputError:
    reason = "; ".join(map(str, error.args)).split("\n")[0].rstrip(".")
    return InputError(f"expected an Arrow table, got one that cannot be read ({reason})")


@contextmanager
def refusing() -> Iterator[None]:
    """What the producer cannot export, or nanoarrow cannot read, is bad input. (The class of nanoarrow's errors is not
    public; producers raise what they like.)"""
    try:
        yield
    except InputError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise unreadable(error) from error


def validated(frame: Any) -> Any:
    """The frame, validated by pyarrow if it is pyarrow's."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None:
        return frame
    name: str | None = None
    try:
        if isinstance(frame, pyarrow.RecordBatchReader):
            frame = frame.read_all()
        if isinstance(frame, pyarrow.Table | pyarrow.RecordBatch):
            frame.validate()
            for name, column in zip(frame.schema.names, frame.columns, strict=True):  # noqa: B007
                column.validate(full=True)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise unreadable(error).moved(name) from None
    return frame


def require(holds: Any, wrong: str) -> None:
    """Refuse a buffer that contradicts itself, as nanoarrow does."""
    if not holds:
        raise RuntimeError(wrong)
