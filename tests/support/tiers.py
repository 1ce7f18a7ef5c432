"""What `make test` runs of tests that repeat themselves; `make test-slow` runs all of it."""

from __future__ import annotations

from typing import Any

import pytest


def repeated(few: int, all: int) -> list[Any]:
    """The numbers from 0 below `all`; those from `few` on in the slow tier.

    >>> repeated(1, 2)[0], repeated(1, 2)[1].values
    (0, (1,))
    """
    return [*range(few), *(in_full(number) for number in range(few, all))]


def in_full(*values: Any, id: str | None = None) -> Any:
    """One case of a parametrised test that the slow tier adds."""
    return pytest.param(*values, marks=pytest.mark.slow, id=id)
