"""The text of a specification file, with comments, and with gaps where a choice is yet to be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..feeds.batch import EVERY_RECORD
from ..feeds.header import Kind
from .gaps import CHOICES, GAP
from .proposal import Proposal

KEYS: dict[Kind, tuple[str, ...]] = {
    "number": ("lower", "upper", "step", "clip", "missing"),
    "integer": ("lower", "upper", "clip", "missing"),
    "boolean": ("missing",),
    "text": ("values", "missing"),
    "date": ("lower", "upper", "clip", "missing"),
    "time": ("lower", "upper", "clip", "missing"),
    "vector": ("dimension", "radius", "step", "clip", "missing"),
}
"""What a field of each kind asks for."""
GRID = ("start", "length", "end", "time_zone")
TYPES = {"text": "category", "time": "timestamp"}
_WHY = """\
# A specification for Retroact, made from the names and types of columns alone.
#
# Every "FILL IN" is a public choice, and yours to make: `retroact check`, `plan` and `run` list those that are left.
# None of them was taken from the data, and none should be. A bound, a category or a date that is read off the data is
# published with the results, and reveals the record that it comes from: the largest salary is somebody's salary.
# Choose from what you know without looking: what can occur, not what did. No value and no count of the file is in here.
"""
_GUESSED = """\
#
# The types are a guess, since the file declares none: they are what most cells of its first rows look like. Confirm
# them. Types of fields: number, integer, boolean, category, text, date, timestamp.
"""
_DECLARED = """\
#
# The types are those that the file declares. What its dictionaries and its statistics say about values is not used.
"""
_STATISTICS = """\
# A statistic covers all records since the start; with window = 1, those of the last round alone. Other types: sum,
# variance, quantiles, histogram, distinct, ratio, kmeans. A histogram of a field of type "text" needs no values.
"""
_NO_FIELD = f'"{EVERY_RECORD}" = {{ type = "integer", lower = 0, upper = 0 }}  # no column: the same in every record'
_ROLES = {
    "id": "holds one record: the same id again replaces it",
    "subject": "whom a record belongs to: all records of a subject can be erased",
    "time": "when it happened: decides its round",
    "op": "what a row does: add, delete, ...",
}
_WITHOUT = {"id": "every row is another record", "subject": "nobody can be erased"}


def draft(proposal: Proposal, choices: Mapping[str, Any], *, declared: bool, events: bool = False) -> str:
    """The file. ``choices`` has what was chosen, by path (such as ``epsilon`` or ``schema.amount.lower``) and as TOML;
    whatever is not there is a gap."""

    def gap(path: str) -> str:
        return str(choices.get(path, f'"{GAP}"'))

    timed = "time" in proposal.roles
    lines = [(_WHY + (_DECLARED if declared else _GUESSED)).rstrip("\n"), ""]
    limits = ("epsilon", "delta", "records") if timed else ("epsilon", "delta", "records", "horizon")
    lines += [_line(name, gap(name), CHOICES[name]) for name in limits]
    if not events:
        lines += ["", "[columns]"]
        lines += [_line(role, quoted(name), _ROLES[role]) for role, name in proposal.roles.items()]
        lines += [
            _line(f"# {role}", '"COLUMN"', f"{_ROLES[role]}; without one, {without}")
            for role, without in _WITHOUT.items()
            if role not in proposal.roles
        ]
        if not declared:
            lines += [_line("# na_values", '["NA"]', "texts in CSV that mean a missing value")]
        ignored = ", ".join(map(quoted, (*proposal.ignored, *proposal.others)))
        lines += [_line("ignore", "true", f"all other columns{f': {ignored}' if ignored else ''}")]
    if timed:
        lines += ["", "[rounds]"]
        lines += [_line(name, gap(f"rounds.{name}"), CHOICES[name]) for name in GRID]
    lines += ["", "[schema]"]
    used = dict.fromkeys(key for kind in (*proposal.fields.values(), *proposal.others.values()) for key in KEYS[kind])
    lines += [f"# {key}: {CHOICES[key]}" for key in used]
    lines += [_field(name, kind, gap) for name, kind in proposal.fields.items()] or [_NO_FIELD]
    lines += [f"# {_field(name, kind, gap)}" for name, kind in proposal.others.items()]
    lines += ["", "[statistics]", *_STATISTICS.splitlines(), 'records = { type = "count" }']
    lines += [_statistic(name, kind) for name, kind in proposal.fields.items()]
    lines += [f"# {_statistic(name, kind)}" for name, kind in proposal.others.items()]
    return "\n".join(lines) + "\n"


def _line(key: str, value: str, comment: str) -> str:
    return f"{f'{key} = {value}':<23} # {comment}"


def _field(name: str, kind: Kind, gap: Any) -> str:
    parts = [f'type = "{TYPES.get(kind, kind)}"']
    parts += [f"{key} = {gap(f'schema.{name}.{key}')}" for key in KEYS[kind]]
    return f"{key_of(name)} = {{ {', '.join(parts)} }}"


def _statistic(name: str, kind: Kind) -> str:
    if kind in ("text", "boolean"):
        return f'{key_of(f"records_by_{name}")} = {{ type = "count", by = {quoted(name)} }}'
    if kind == "vector":
        return f'{key_of(f"clusters_of_{name}")} = {{ type = "kmeans", fields = {quoted(name)}, k = "{GAP}" }}'
    if kind in ("date", "time"):
        return f'{key_of(f"quantiles_{name}")} = {{ type = "quantiles", field = {quoted(name)} }}'
    return f'{key_of(f"mean_{name}")} = {{ type = "mean", field = {quoted(name)} }}'


def key_of(name: str) -> str:
    """
    >>> key_of("dep_delay"), key_of("dép delay")
    ('dep_delay', '"dép delay"')
    """
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else quoted(name)


def quoted(name: str) -> str:
    r"""A TOML text on one line, also in a comment.

    >>> print(quoted('a "b"\n'))
    "a \"b\"\U0000000a"
    """
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
