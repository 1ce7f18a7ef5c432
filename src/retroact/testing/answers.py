"""Answers as numbers: what anybody can compute from what is published.

Answers are bytes: lines as a stream writes them, JSON, a number or fraction as text, a Python literal.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

# The place of an answer that is one number or one text.
WHOLE = "answer"


def parts(answer: bytes) -> dict[str, Any]:
    """The parts of an answer by place: numbers (exact ones as int or Fraction) and texts.

    >>> parts(b'[3,"n",1.5,0.2,[["3"],"2"]]')
    {'n.value': 1.5, 'n.error': 0.2, 'n.exact.0': Fraction(3, 2)}
    >>> parts(b"-7/2"), parts(b'{"a": [1, null]}'), parts(b"(1, 'x')"), parts(b"")
    ({'answer': Fraction(-7, 2)}, {'a.0': 1, 'a.1': 'None'}, {'0': 1, '1': 'x'}, {})
    """
    if not answer:
        return {}
    lines = _decoded(answer)
    found: dict[str, Any] = {}
    for number, line in enumerate(lines):
        release = _release(line)
        if release is not None:
            found.update(release)
        else:
            prefix = "" if len(lines) == 1 else f"line{number}."
            found.update((prefix + (place or WHOLE), part) for place, part in _leaves(line))
    return found


def _decoded(answer: bytes) -> list[Any]:
    for pieces in (answer.split(b"\n"), [answer]):
        try:
            return [msgspec.json.decode(piece) for piece in pieces]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    try:
        text = answer.decode()
    except UnicodeDecodeError:
        return [answer.hex()]
    try:
        return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [text]


def _release(line: Any) -> dict[str, Any] | None:
    """A line as `Release.encode` writes it; its exact numbers are numerators over one denominator, in lowest terms."""
    match line:
        case [int(), str(name), value, error, [[*numerators], str(denominator)]]:
            found = {f"{name}.value{'.' * bool(place)}{place}": part for place, part in _leaves(value)}
            found |= {f"{name}.error{'.' * bool(place)}{place}": part for place, part in _leaves(error)}
            below = int(denominator)
            # Keys come and go, which moves numerators: where there is one for each key, it is named by it.
            names = list(value) if isinstance(value, dict) and len(value) == len(numerators) else range(len(numerators))
            return found | {
                f"{name}.exact.{n}": Fraction(int(x), below) for n, x in zip(names, numerators, strict=True)
            }
    return None


def _leaves(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    dot = "." * bool(place)
    if isinstance(part, dict):
        for key, inner in part.items():
            yield from _leaves(inner, f"{place}{dot}{key}")
        if not part:
            yield f"{place}{dot}empty", "{}"
    elif isinstance(part, list | tuple | set | frozenset):
        for number, inner in enumerate(sorted(part, key=repr) if isinstance(part, set | frozenset) else part):
            yield from _leaves(inner, f"{place}{dot}{number}")
        if not part:
            yield f"{place}{dot}empty", "[]"
    else:
        yield place, _leaf(part)


def _leaf(part: Any) -> Any:
    if isinstance(part, bool) or part is None:
        return str(part)
    if isinstance(part, bytes):
        return part.hex()
    if isinstance(part, str):
        try:
            exact = Fraction(part)
        except (ValueError, ZeroDivisionError):
            return part
        return exact.numerator if exact.denominator == 1 else exact
    return part


def numbers(answer: bytes) -> list[float]:
    """The numbers of an answer, in their order.

    >>> numbers(b'[3,"n",1.5,0.2,[["3"],"2"]]')
    [1.5, 0.2, 1.5]
    """
    return [as_float(part) for part in parts(answer).values() if not isinstance(part, str)]


def as_float(number: float | Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)
