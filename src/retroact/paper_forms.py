"""The paper's own forms by name: `retroact.paper` is loaded only when one of them is asked for."""

from __future__ import annotations

import importlib
from typing import Any


def paper_form(name: str) -> Any:
    """
    >>> paper_form("PaperTree")(1024).l1
    Fraction(22, 1)
    """
    return getattr(importlib.import_module("retroact.paper"), name)
