"""Plain records as JSON lines: rows that are added, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from retroact.errors import InputError
from retroact.feeds.envelopes import IMAGES, MARKS, PLAIN, PROGRESS, mark_in
from retroact.feeds.events import Event
from retroact.feeds.operation_words import OPERATION_COLUMNS, WEIGHT_COLUMNS
from retroact.feeds.shapes import Shape
from retroact.messages import show
from retroact.schema import Schema

# No value is of this type, so a line that has one for such a key does not take the quick way.
_NOTHING = Literal["\0"]
_decode_any = msgspec.json.Decoder().decode


class Plain:
    """Rows that are added. One with a key that says otherwise is none of them."""

    label = PLAIN

    def __init__(self, shape: Shape, schema: Schema, data: set[str]) -> None:
        self._shape = shape
        self._schema = schema
        self._data = data
        self._quick = self._decoder(IMAGES)
        self._other = self._decoder(())

    def parse(self, text: bytes) -> Event:
        try:
            return self._shape.added(self._quick(text))
        except msgspec.ValidationError:
            # one of the images alone is data that is ignored; `check` has seen that it is alone
            if mark_in(_decode_any(text), self._data) is not None:
                raise
            return self._shape.added(self._other(text))

    def check(self, value: Mapping[str, Any]) -> None:
        mark = mark_in(value, self._data)
        if mark is not None:
            raise InputError(f"expected {PLAIN}, as in the first events, got {show(mark)}, a key of another envelope")
        self._shape.check(value, self._schema)

    def _decoder(self, images: Sequence[str]) -> Callable[[bytes], Any]:
        """Of rows without any of the marks."""
        every = dict.fromkeys((*OPERATION_COLUMNS, *WEIGHT_COLUMNS, PROGRESS, *MARKS, *images))
        marks = [name for name in every if name not in self._data]
        others: list[Any] = [(f"mark{n}", _NOTHING, msgspec.field(name=m, default="")) for n, m in enumerate(marks)]
        decode: Callable[[bytes], Any] = msgspec.json.Decoder(self._shape.whole(others)).decode
        return decode
