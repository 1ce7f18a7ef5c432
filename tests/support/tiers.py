"""What `make test` runs of tests that repeat themselves; `make test-slow` runs all of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import settings


def examples(all: int) -> settings:
    """This many generated examples with the profile of the slow tier, and fewer by default.

    >>> examples(200).max_examples in (80, 200)
    True
    """
    return settings(max_examples=all * settings.default.max_examples // 100, deadline=None)


def repeated(few: int, all: int) -> list[Any]:
    """The numbers from 0 below `all`; those from `few` on in the slow tier.

    >>> repeated(1, 2)[0], repeated(1, 2)[1].values
    (0, (1,))
    """
    return [*range(few), *(in_full(number) for number in range(few, all))]


def in_turns(names: Collection[Any], others: Sequence[Any], *, always: Collection[Any] = ()) -> list[Any]:
    """Every name with every one of the others. By default the names take turns, each with one of the others; those in
    `always` go with all of them. The slow tier adds the rest.

    >>> [getattr(case, "values", case) for case in in_turns("abc", [1, 2], always="c")]
    [('a', 1), ('a', 2), ('b', 1), ('b', 2), ('c', 1), ('c', 2)]
    >>> [case for case in in_turns("abc", [1, 2], always="c") if type(case) is tuple]
    [('a', 1), ('b', 2), ('c', 1), ('c', 2)]
    """
    return [
        (name, other) if name in always or turn % len(others) == which else in_full(name, other)
        for turn, name in enumerate(names)
        for which, other in enumerate(others)
    ]


def in_full(*values: Any, id: str | None = None) -> Any:
    """One case of a parametrised test that the slow tier adds."""
    return pytest.param(*values, marks=pytest.mark.slow, id=id)
