"""JSON objects with known keys, decoded as structs, and their values key by key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..messages import show

ObjectCells = dict[str, NDArray[Any]]


class RecordStruct:
    """
    >>> struct = RecordStruct(["amount"], ["tip"], strict=True)
    >>> decode = msgspec.json.Decoder(struct.type).decode
    >>> struct.columns([decode('{"amount": 3}'), decode('{"tip": null, "amount": 4}')], ["amount", "tip"])
    ({'amount': array([3, 4], dtype=object), 'tip': array([None, None], dtype=object)}, 3)
    """

    def __init__(self, required: Sequence[str], optional: Sequence[str], *, strict: bool) -> None:
        """If it is ``strict``, other keys are refused."""
        columns: list[Any] = [(f"r{place}", Any, msgspec.field(name=key_of(key))) for place, key in enumerate(required)]
        columns += [
            (f"o{place}", Any, msgspec.field(name=key_of(key), default=msgspec.UNSET))
            for place, key in enumerate(optional)
        ]
        # JSON has no cycles, so the garbage collector need not look for them
        self.type: Any = msgspec.defstruct("Record", columns, forbid_unknown_fields=strict, gc=False)
        self._attributes = {field.encode_name: field.name for field in msgspec.structs.fields(self.type)}
        self._optional = frozenset(optional)

    def columns(self, records: Collection[Any], keys: Iterable[str]) -> tuple[ObjectCells, int]:
        """The values of these keys, None where a record lacks one; and how often records have one of them."""
        cells: ObjectCells = {}
        count = 0
        for key in keys:
            found = np.fromiter(map(attrgetter(self._attributes[key]), records), object, len(records))
            count += len(records)
            if key in self._optional:
                unset = found == msgspec.UNSET
                found[unset] = None
                count -= int(np.count_nonzero(unset))
            cells[key] = found
        return cells, count


def key_of(name: str) -> str:
    """The name of a field or column, if it can be a key.

    >>> key_of('so called "x"')
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected names without quotes, backslashes and control characters in JSON lines and
    CSV, got 'so called "x"'
    """
    if not may_be_key(name):
        raise InputError(
            f"expected names without quotes, backslashes and control characters in JSON lines and CSV, got {show(name)}"
        )
    return name


def may_be_key(name: str) -> bool:
    return not any(c in '"\\' or c < " " for c in name)
