"""Models as options of the command line: texts such as ``fare:0..300 ~ miles:0..50, car=small,van``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import InputError
from .statistic_options import Described, Table, categories, listed

WITH_TARGET = {
    "ridge": "ridge", "classifier": "classifier", "nearest_mean": "nearest_mean", "naive_bayes": "categorical_nb",
}  # fmt: skip
OF_COLUMNS = ("covariance", "correlation")


def models(options: Any, described: Described) -> Iterator[tuple[str, Table, str]]:
    """The models by name, each with the option that asks for it."""
    for option, kind in WITH_TARGET.items():
        place = f"--{option.replace('_', '-')}"
        for text in getattr(options, option) or ():
            target, tilde, columns = text.partition("~")
            if not tilde:
                such = "fare:0..300" if kind == "ridge" else "late=yes,no"
                expected = f"expected a target and columns, such as '{such} ~ miles:0..50, car=small,large'"
                raise InputError(f"{expected}, got {text!r}", place=place)
            (name, *more), listed = fields_of(target, described, place), fields_of(columns, described, place)
            if more:
                raise InputError(f"expected one target, got {1 + len(more)}", place=place)
            yield f"{option}_{name}", {"type": kind, "target": name, "columns": listed}, f"{place} {text}"
    for kind in OF_COLUMNS:
        for text in getattr(options, kind) or ():
            listed = fields_of(text, described, f"--{kind}")
            yield f"{kind}_{'_'.join(listed)}", {"type": kind, "columns": listed}, f"--{kind} {text}"
    for text in options.pca or ():
        columns, _, k = text.rpartition(":")
        if not columns or not k.strip().isdigit():
            expected = "expected columns and a number of components, such as x:0..1,y:0..1:2"
            raise InputError(f"{expected}, got {text!r}", place="--pca")
        listed = fields_of(columns, described, "--pca")
        yield f"pca_{'_'.join(listed)}", {"type": "pca", "columns": listed, "k": int(k)}, f"--pca {text}"


def fields_of(text: str, described: Described, place: str) -> list[str]:
    """Declares numbers with their bounds and categories with their values, and returns their names. What has neither
    is one more value of the category before it.

    >>> found = Described()
    >>> fields_of("miles:0..50, car=small,large, hour:0..23", found, "--ridge"), found.schema["car"]["values"]
    (['miles', 'car', 'hour'], ['small', 'large'])
    """
    parts: list[str] = []
    for part in listed(text):
        if "=" in part or ".." in part or not parts or "=" not in parts[-1]:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    names = []
    for part in parts:
        if "=" in part:
            name, table = categories(part, place)
            described.declare(name, table, f"{place} {part}")
        else:
            name = described.bounded(part, place)
        names.append(name)
    return names
