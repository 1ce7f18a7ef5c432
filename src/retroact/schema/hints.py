"""The next step for somebody whose value was refused: one table, by what was expected and what was found instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import InputError

NO_VALUES = ("None", "no value", "nan", "NaT")
_NO_VALUE_WORDS = ("", "na", "n/a", "nan", "null", "nil", "none", "-", "?", ".", "missing", "unknown")
NO_VALUE = re.compile(f"({'|'.join(map(re.escape, (*NO_VALUES, *map(repr, _NO_VALUE_WORDS))))})", re.I)
OTHER_NUMBERS = re.compile(r"[+-]?[$€£¥]?\s?[+-]?\d{1,3}([.,' \u00a0\u202f]?\d{3})*([.,]\d+)?\s?[$€£¥%]?")
"""Numbers in forms that are refused, since some of them can be read in two ways: 41,39 and 1,000 and $5."""
OTHER_TIMES = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d\d)(\D.*)?|\d{4}([./])\d{1,2}\4\d{1,2}(\D.*)?", re.ASCII | re.DOTALL
)

Rule = tuple[re.Pattern[str], re.Pattern[str], str]
"""How the words for what was expected begin, how the quoted value that was found begins, and the advice."""


def rule(expected: str, found: str, advice: str) -> Rule:
    return re.compile(expected), re.compile(found, re.I | re.DOTALL), advice


ISO = rule(
    "a timestamp such as|a date such as",
    "",
    "dates and times are read in the form of ISO 8601 only; pandas.to_datetime reads most others",
)
RULES = (
    rule(
        "",
        f"({'|'.join(NO_VALUES)})$",
        'the value is missing: missing = "skip" on the field (--skip-missing) leaves the record out of the statistics '
        "that need it, and of no others",
    ),
    rule(
        "",
        f"({NO_VALUE.pattern})$",
        "if {} stands for a missing value, say so (na_values in [columns], or --na-values), and leave such records out "
        '(missing = "skip" on the field, or --skip-missing)',
    ),
    rule(
        "true or false",
        "",
        'other words for true and false are categories: {{ type = "category", values = ["yes", "no"] }}',
    ),
    rule(
        "a number|a whole number",
        f"'({OTHER_NUMBERS.pattern})'$",
        "numbers are read in the form 1234.5 only, without units and separators of thousands; "
        "pandas.read_csv(..., decimal=',', thousands='.') reads others (docs/howto-own-file.md)",
    ),
    rule("one of ", "", 'other = "other" on the category (--by FIELD=A,B,*) counts all other values as one more'),
    ISO,
    rule(
        "an offset from UTC",
        "",
        "pandas gives local times their offset: table[column].dt.tz_localize('Europe/Berlin')",
    ),
)


def hint_for(error: InputError, rules: Iterable[Rule] = RULES) -> str | None:
    """
    >>> hint_for(InputError(expected="a timestamp such as 2020-12-31T23:59:59Z", found="'12/31/2026'"))
    'dates and times are read in the form of ISO 8601 only; pandas.to_datetime reads most others'
    >>> hint_for(InputError(expected="a number", found="'twelve'"))
    """
    for expected, found, advice in rules:
        if expected.match(error.expected or "") and found.match(error.found or ""):
            return advice.format(error.found)
    return error.hint
