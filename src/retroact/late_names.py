"""Names of a package that are loaded on first use: few programs need them, and all would wait for them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def late_names(package: str, **modules: tuple[str, ...]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, with the names that each of its modules gives it.

    >>> late = late_names("retroact", escape=("printable", "markup"))
    >>> late("printable")("a\\n"), late("nothing")
    Traceback (most recent call last):
    ...
    AttributeError: module 'retroact' has no attribute 'nothing'
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{homes[name]}", package), name)

    return load
