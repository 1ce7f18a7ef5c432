"""What a specification could be, from the names and types of columns alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..feeds.header import FileHeader, Kind
from ..feeds.roles import OPERATION_COLUMNS, WEIGHT_COLUMNS

MOST = 4
"""How many columns are proposed for publication, since all share one budget; others can be chosen."""


def _words(text: str) -> set[str]:
    return {*text.split()}


_IDS = _words("guid id uuid")
_NUMBERS = _words("key no nr num number")
_PEOPLE = _words(
    "account buyer client customer donor driver employee guest household individual member owner participant passenger "
    "patient person player pupil resident respondent rider seller student subject subscriber user visitor voter worker"
)
_DOCUMENTS = _words(
    "bill booking case claim contract document incident invoice order payment receipt record request shipment ticket "
    "transaction visit"
)
_ABOUT_PEOPLE = _IDS | _NUMBERS | _words("code email hash login mail name")
_TIMES = _words("at created date datetime day epoch event happened hour occurred time timestamp ts when")
_MOMENTS = _words("created date happened occurred time")
_OF_PEOPLE = _words("birth birthdate birthday born dob")
_CODES = _words("code plz postal postcode zip zipcode")
_CALENDAR = _words("minute month quarter second week weekday year")
_FREE = _words(
    "address body comment comments description email mail message name note notes phone remark remarks subject text "
    "title uri url"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class Proposal:
    """Which columns have which role, and which are published."""

    roles: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Kind] = field(default_factory=dict)
    others: dict[str, Kind] = field(default_factory=dict)
    """Columns that could be published too."""
    ignored: tuple[str, ...] = ()

    def with_roles(self, roles: Mapping[str, str]) -> Proposal:
        """Change the roles; columns that have one are no longer published."""
        fields, others = (
            {name: kind for name, kind in own.items() if name not in roles.values()}
            for own in (self.fields, self.others)
        )
        free = [name for name in self.roles.values() if name not in roles.values()]
        ignored = [name for name in (*self.ignored, *free) if name not in roles.values()]
        return Proposal(dict(roles), fields, others, tuple(ignored))

    def publishing(self, names: Sequence[str], columns: Mapping[str, Kind]) -> Proposal:
        """Publish these columns and no others."""
        chosen = {name: columns[name] for name in dict.fromkeys(names)}
        others = {name: kind for name, kind in {**self.fields, **self.others}.items() if name not in chosen}
        return Proposal(self.roles, chosen, others, tuple(name for name in self.ignored if name not in chosen))


def proposed(header: FileHeader) -> Proposal:
    """
    >>> columns = {"OrderID": "text", "customer": "text", "created_at": "time", "amount": "number", "note": "text"}
    >>> found = proposed(FileHeader(columns, False))
    >>> found.roles
    {'id': 'OrderID', 'subject': 'customer', 'time': 'created_at'}
    >>> found.fields, found.ignored
    ({'amount': 'number'}, ('note',))
    """
    columns = header.columns
    roles = {} if header.events else _roles(columns)
    fields: dict[str, Kind] = {}
    ignored = []
    for name, kind in columns.items():
        if name in roles.values():
            continue
        parts = _parts(name)
        free = kind == "text" and not _FREE.isdisjoint(parts)
        named = _is_id(parts) or not _NUMBERS.isdisjoint(parts[1:][-1:])
        if free or named or kind in ("date", "time", "other"):
            ignored.append(name)
        else:
            # a code of digits is a name: nobody wants its mean
            fields[name] = "text" if kind in ("number", "integer") and not _CODES.isdisjoint(parts) else kind
    # parts of a date, or hours and minutes in one number, say little as numbers
    usual = sorted(fields, key=lambda name: not (_TIMES | _CALENDAR).isdisjoint(_parts(name)))
    words = [name for name in usual if fields[name] in ("text", "boolean")]
    measures = [name for name in usual if name not in words]
    # some of both, where there are
    half = MOST // 2
    chosen = {*words[: max(half, MOST - len(measures))], *measures[: max(half, MOST - len(words))]}
    first = {name: kind for name, kind in fields.items() if name in chosen}
    return Proposal(roles, first, {name: kind for name, kind in fields.items() if name not in first}, tuple(ignored))


def _roles(columns: Mapping[str, Kind]) -> dict[str, str]:
    left = {name: (_parts(name), kind) for name, kind in columns.items() if kind not in ("other", "vector")}
    found: dict[str, str] = {}

    def take(role: str, *choices: list[str]) -> None:
        name = next((name for names in choices for name in names if name not in found.values()), None)
        if name is not None:
            found[role] = name

    take("op", [name for name in left if name in (*OPERATION_COLUMNS, *WEIGHT_COLUMNS, "operation")])
    people = [n for n, (parts, kind) in left.items() if {*parts} <= _PEOPLE | _ABOUT_PEOPLE and {*parts} & _PEOPLE]
    people = [name for name in people if left[name][1] in ("text", "number", "integer")]
    take("subject", [name for name in people if {*left[name][0]} & _IDS], people)
    ids = [name for name, (parts, _) in left.items() if _is_id(parts) and not {*parts} & _PEOPLE]
    numbered = [name for name, (parts, _) in left.items() if parts in (["rownames"], ["index"], ["unnamed", "0"])]
    papers = [
        name for name, (parts, _) in left.items() if {*parts[:-1]} & _DOCUMENTS and {*parts[-1:]} & (_NUMBERS | _CODES)
    ]
    take("id", [name for name in ids if len(left[name][0]) == 1], ids, papers, numbered)
    moments = [name for name, (parts, kind) in left.items() if kind in ("time", "date") and not {*parts} & _OF_PEOPLE]
    named = [
        name
        for name, (parts, kind) in left.items()
        if {*parts} & ({"datetime", "epoch", "timestamp", "ts"} | (_MOMENTS if kind == "text" else set()))
    ]
    take("time", [name for name in moments if {*left[name][0]} & _TIMES], moments, named)
    return {role: found[role] for role in ("id", "subject", "time", "op") if role in found}


def _is_id(parts: Sequence[str]) -> bool:
    """
    >>> [_is_id(_parts(name)) for name in ("order_id", "idNum", "number", "paid")]
    [True, True, False, False]
    """
    return not _IDS.isdisjoint(parts[-1:]) or (not _IDS.isdisjoint(parts) and {*parts} <= _IDS | _NUMBERS)


def _parts(name: str) -> list[str]:
    """
    >>> _parts("customerID"), _parts("created_at"), _parts("2nd name")
    (['customer', 'id'], ['created', 'at'], ['2', 'nd', 'name'])
    """
    return [part.lower() for part in _PARTS.findall(name)]
