"""Every generic check on the examples that a statistic gives of itself."""

from __future__ import annotations

import warnings
from typing import Any

from ..schema import Schema
from ..statistics import Example, Statistic
from ..stream import HorizonWarning
from .checks import check_statistic
from .missing import may_lack


def every_example() -> dict[str, Example]:
    """Of every kind of statistic that is known, by name.

    >>> every_example()["count"].statistic
    Count()
    """
    return {example.name: example for kind in Statistic.kinds.values() for example in kind.examples()}


def check_example(example: Example, *, crossed: bool = False, lacking: bool = False, **effort: Any) -> list[str]:
    """All checks on one example: pure with a horizon and Gaussian without, or the other way round (``crossed``), as far
    as its stream lets it; with values that may be missing (``lacking``). Returns the names of the checks that ran."""
    schema = may_lack(Schema(example.schema)) if lacking else example.schema
    stream, ran = example.stream, list[str]()
    cases = [(0.0, None), (1e-6, 8)] if crossed else [(0.0, 8), (1e-6, None)]
    if "delta" in stream:
        cases = [(stream["delta"], horizon) for _, horizon in cases]
    if "horizon" in stream:
        cases = [(delta, stream["horizon"] and 8) for delta, _ in cases]
    for delta, horizon in dict.fromkeys(cases):
        usual = {"deltas": (delta,), "horizons": (horizon,), "late": stream.get("late", True)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HorizonWarning)
            ran = check_statistic(example.statistic, schema, **{**usual, **effort, **example.checks})
    return ran


def check_examples(kind: type[Statistic], **effort: Any) -> dict[str, list[str]]:
    """All checks on all examples of a class: what ran, by example."""
    return {example.name: check_example(example, **effort) for example in kind.examples()}
