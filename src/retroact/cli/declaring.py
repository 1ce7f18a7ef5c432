"""What options say of columns and rounds, as part of a specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retroact.errors import InputError
from retroact.messages import show
from retroact.stream.columns import Columns
from retroact.stream.rounds import Rounds
from retroact.stream.stored import differences

# What a key of [rounds] is called as an option.
_OPTIONS = {"late_events": "late"}


@dataclass(frozen=True)
class Said:
    """Roles of columns and the cut of rounds, as far as options name them; and what is said of this run alone."""

    roles: Mapping[str, str | dict[str, Any]] = field(default_factory=dict)
    cut: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    rounds: int | None = None
    follow: bool = False
    complete: bool = False

    @classmethod
    def of(cls, roles: Mapping[str, str | None], optional: Sequence[str], cut: Mapping[str, Any], **run: Any) -> Said:
        """Without what was not said; whole seconds are told from other texts."""
        given = {key: value for key, value in cut.items() if value is not None}
        for key in ("start", "end"):
            text = given.get(key)
            if isinstance(text, str) and text.isascii() and text.isdigit():
                given[key] = int(text)
        named: dict[str, str | dict[str, Any]] = {role: column for role, column in roles.items() if column is not None}
        for role in optional:
            if not named.get(role):
                raise InputError(f"expected a role that is named, such as --{role} COLUMN", place="--optional")
            named[role] = {"column": named[role], "optional": True}
        return cls(named, given, **run)


def as_option(error: InputError) -> InputError:
    """The same error, at an option."""
    path = (error.path or "").removeprefix("rounds.").removeprefix("columns.")
    if not path or path.startswith("-"):
        return error
    return error.moved(f"--{_OPTIONS.get(path, path).replace('_', '-')}")


def add_to(
    data: Mapping[str, Any], roles: Mapping[str, Any], cut: Mapping[str, Any], declared: int | None
) -> dict[str, Any]:
    """Tables with what options say beside them. Where the tables say something else, it is refused.

    >>> add_to({"columns": {"id": "order"}}, {"subject": "customer"}, {}, 12)
    {'columns': {'id': 'order', 'subject': 'customer'}, 'horizon': 12}
    >>> add_to({"columns": {"id": "order"}}, {"id": "nr"}, {}, None)
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected 'order', as the specification has it, got 'nr' - at --id
    """
    tables = dict(data)
    if roles:
        columns = Columns.from_spec(tables["columns"]) if "columns" in tables else Columns.usual()
        asked_for = columns.updated(roles)
        known = {role for role, _ in columns.items()} if columns.given else set()
        for role in known:
            own, other = columns.column(role), asked_for.column(role)
            if own != other:
                raise InputError(
                    f"expected {show(own)}, as the specification has it, got {show(other)}", place=f"--{role}"
                )
        named = {role: column for role, column in roles.items() if role not in known}
        tables["columns"] = columns.updated(named).spec()
    if cut:
        own_cut = tables.get("rounds", {})
        try:
            asked = Rounds.from_spec({**own_cut, **cut})
        except InputError as error:
            raise as_option(error) from None
        if own_cut and asked != Rounds.from_spec(own_cut):
            changed = "; ".join(differences(Rounds.from_spec(own_cut).spec(), asked.spec(), "in the file"))
            raise InputError(f"expected the rounds of the specification, got others: {changed}", place="rounds")
        tables["rounds"] = asked.spec()
    if (
        declared is not None
        and tables.get("horizon") is None
        and Rounds.from_spec(tables.get("rounds", {})).count is None
    ):
        tables["horizon"] = declared
    return tables
