"""Algorithms with randomness of their own, as other libraries have."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from types import ModuleType
from typing import Any, ClassVar

from ..coins import Coins
from ..errors import InputError
from ..schema import Rows, Schema
from .own import Declared, guarded


class Unkeyed(Declared):
    """The base of algorithms that draw their own randomness and bring their own contract.

    **Privacy.** The contract is the library's word. **Retroactivity.** In law: an answer has the law that it would have
    had without the deleted records, and is not equal to it byte by byte. So no answer is computed twice.
    """

    keyed: ClassVar[bool] = False

    def ready(self, rows: Rows) -> None:
        """Raises where there are not as many records as it takes."""

    @abstractmethod
    def answer(self, rows: Rows, schema: Schema) -> Any:
        """With randomness of its own."""

    def run(self, rows: Rows, schema: Schema, coins: Coins) -> Any:
        """The coins are left alone."""
        self.ready(rows)
        return guarded(self.name, lambda: self.answer(rows, schema))


def optional(module: str, extra: str) -> ModuleType:
    """A library that is no dependency of the project."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"expected the library {module.partition('.')[0]}, got {error}; install retroact[{extra}]", place=extra
        ) from error
