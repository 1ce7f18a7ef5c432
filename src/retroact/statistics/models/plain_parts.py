"""The parts of a model as they come back from plain data, checked: what loads can also predict."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...arrays import F64
from ...checks import number
from ...messages import check_keys, mismatch
from ...schema import Field


def number_of(value: Any, place: str) -> float:
    """
    >>> number_of(float("nan"), "records")
    Traceback (most recent call last):
    retroact.errors.InputError: expected a finite number, got nan - at records
    """
    most = sys.float_info.max
    return float(number(value, place, "a finite number", least=-most, most=most))


def array_of(value: Any, shape: Sequence[int], place: str, *, gaps: bool = False) -> F64:
    """Lists in lists; with ``gaps``, None is not a number.

    >>> array_of([[1, 2.5]], (1, 2), "matrix")
    array([[1. , 2.5]])
    >>> array_of([[1, 2.5]], (1, 3), "matrix")
    Traceback (most recent call last):
    retroact.errors.InputError: expected a list of 3, got [1, 2.5] - at matrix[0]
    """

    def checked(part: Any, sizes: Sequence[int], at: str) -> Any:
        if not sizes:
            return math.nan if gaps and part is None else number_of(part, at)
        if not isinstance(part, list | tuple) or len(part) != sizes[0]:
            raise mismatch(f"a list of {sizes[0]}", part, at)
        return [checked(one, sizes[1:], f"{at}[{index}]") for index, one in enumerate(part)]

    return np.array(checked(value, shape, place), dtype=np.float64).reshape(shape)


def table_of(given: Any, names: Sequence[str], count: int, place: str) -> F64:
    """A list of numbers for each name: (names, count)."""
    mapping_of(given, names, place)
    return np.array([array_of(given[name], (count,), f"{place}.{name}") for name in names]).reshape(len(names), count)


def mapping_of(given: Any, keys: Sequence[str], place: str) -> Mapping[str, Any]:
    """Require a mapping with these keys and no others."""
    if not isinstance(given, Mapping):
        raise mismatch("a mapping", given, place)
    check_keys(given, keys, place, keys)
    return given


def texts_of(given: Any, place: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise mismatch("a list of texts", given, place)
    return tuple(given)


def list_of(given: Any, wanted: Sequence[Any], place: str) -> None:
    """Refuse anything but this list."""
    if not isinstance(given, list | tuple) or [*given] != [*wanted]:
        raise mismatch(f"{[*wanted]!r}", given, place)


def target_of(given: Any, *kinds: type[Field]) -> tuple[str, Field]:
    """The name of the target, and its field of one of these kinds."""
    mapping_of(given, ("name", "field"), "target")
    (name,) = texts_of([given["name"]], "target.name")
    field = Field.from_spec(given["field"], "target.field")
    if not isinstance(field, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise mismatch(f"a field of type {expected}", given["field"], "target.field")
    return name, field
