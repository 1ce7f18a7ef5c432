"""The logger `retroact` of the standard library: what is opened, closed, recovered and purged.

It says what the program does, never what it does it with: at no level a value, an id, a subject, the name of a request,
a count of records or updates, or the text of an input error. What it writes is the same for a history and for its
twin, so logs may be kept longer than the data.

    logging.basicConfig(level="DEBUG")
"""

from __future__ import annotations

import sys

NAME = "retroact"
DEBUG, INFO = 10, 20


def log(level: int, message: str, *parts: object) -> None:
    """A line for whoever listens. Without the module `logging`, which takes time to load, nobody does."""
    if "logging" in sys.modules:
        sys.modules["logging"].getLogger(NAME).log(level, message, *parts)
