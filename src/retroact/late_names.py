"""Names of a package that are loaded on first use: few programs need them, and all would wait for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Any


def late_names(package: str, names: Collection[str], modules: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: each name is one of the modules, or is found in the first of them that has it.

    >>> late_names("retroact", ["printable"], ["escape", "errors"])("printable")("a\\n")
    'a\\\\n'
    >>> late_names("retroact", ["printable"], ["escape", "errors"])("errors")
    Traceback (most recent call last):
    ...
    AttributeError: module 'retroact' has no attribute 'errors'
    """

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in modules:
            return import_module(f".{name}", package)
        homes = (import_module(f".{module}", package) for module in modules)
        value = next(getattr(home, name) for home in homes if hasattr(home, name))
        setattr(sys.modules[package], name, value)
        return value

    return load
