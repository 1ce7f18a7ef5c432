"""The specification of a stream in its store: as in a file, and as words to compare with another one. When a stream is
opened it is compared with a given specification, and with the noise that this version derives from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..errors import InputError, VerificationError
from ..params import words
from ..store.store import Store
from .choosing import Choice
from .specification import LIMITS, Specification


def written(spec: Specification) -> dict[str, Any] | None:
    """What `Specification.from_dict` reads as an equal specification, without the columns, which are stored separately;
    None if files cannot describe one of the statistics."""
    statistics = {name: statistic.spec() for name, statistic in spec.statistics.items()}
    for name, weight in spec.weights.items():
        if weight != spec.statistics[name].weight:
            statistics[name]["weight"] = weight
    data = {**_limits(spec), "schema": spec.schema.spec(), "statistics": statistics}
    data |= {"rounds": spec.rounds.spec()} if spec.rounds.spec() else {}
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data))
        other = Specification.from_dict(plain)
    except (InputError, TypeError, NotImplementedError):
        return None
    own, read = ((each.whole_digest, each.shares, each.rounds) for each in (spec, other))
    return plain if own == read else None


def _limits(spec: Specification) -> dict[str, Any]:
    return {key: value for key in LIMITS if (value := getattr(spec, key)) is not None}


def columns_written(spec: Specification) -> dict[str, Any]:
    """The roles of columns, stored separately because they may change; empty if none were given."""
    columns = {"columns": spec.columns.spec()} if spec.columns.given else {}
    return columns | ({"sources": dict(spec.sources)} if spec.sources else {})


def described(spec: Specification) -> dict[str, Any]:
    """Everything that must not change, by name; equal for equal specifications."""
    parts = _limits(spec)
    parts |= {f"rounds.{name}": value for name, value in spec.rounds.spec().items()}
    parts |= {f"schema.{name}": field for name, field in spec.schema.spec().items()}
    parts |= {"schema": list(spec.schema.fields), "statistics": list(spec.statistics)}
    parts |= {f"statistics.{name}": statistic.spec(digest=True) for name, statistic in spec.statistics.items()}
    parts |= {f"weight of {name}": float(weight) for name, weight in spec.weights.items()}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts, order="deterministic", enc_hook=str))
    return plain


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "in the store") -> Iterator[str]:
    """What differs, in words.

    >>> list(differences({"epsilon": 1.0}, {"epsilon": 2.0, "window": 7}))
    ['epsilon: 1.0 in the store, 2.0 given', 'window: nothing in the store, 7 given']
    """
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name, 'nothing')} {where}, {new.get(name, 'nothing')} given"


def written_notes(spec: Specification) -> dict[str, str]:
    tables = written(spec)
    return {
        "specification": "" if tables is None else msgspec.json.encode(tables).decode(),
        "described": msgspec.json.encode(described(spec)).decode(),
        "digests": msgspec.json.encode(digests(spec)).decode(),
        **columns_note(spec),
    }


def digests(spec: Specification) -> dict[str, str]:
    """Return, for each statistic, a digest of the prefix of its coin names and of the size of its noise."""
    found = {}
    for name in spec.statistics:
        noise, last = spec.bounds[name].noise, spec.releases(name) or 1
        sizes = [noise.size, noise.refinement, noise.square_of(0, last), noise.square_of(noise.size - 1, last)]
        text = words(list(map(str, sizes)))
        found[name] = hashlib.blake2b(spec.digest(name) + text.encode(), digest_size=32).hexdigest()
    return found


def columns_note(spec: Specification) -> dict[str, str]:
    return {"columns": msgspec.json.encode(columns_written(spec)).decode()}


def stored_specification(store: Store, given: Specification | None) -> tuple[Specification, dict[str, str]]:
    """The stored specification, and notes to write. A given one must equal it, unless no data came in yet."""
    tables, columns = store.note("specification"), msgspec.json.decode(store.note("columns") or "{}")
    if tables is None:
        raise VerificationError(f"{store.where}: the journal is empty and the data are not: restore both together")
    known = msgspec.json.decode(store.note("digests") or "{}")
    if tables and not (given is not None and untouched(store)):
        try:
            stored = Specification.from_dict({**msgspec.json.decode(tables), **columns}, store.where)
        except InputError as error:
            raise VerificationError(f"{error}: this version cannot read the stored specification") from None
        _require_same_noise(store, known, digests(stored))
        if given is None:
            return stored, {}
    if given is None:
        raise InputError(
            f"{store.where}: this stream has statistics that files cannot describe: give schema, statistics and "
            "budget as they were"
        )
    old: Mapping[str, Any] = msgspec.json.decode(store.note("described") or "{}")
    if given.horizon is None and "horizon" in old:
        # a number of rounds declared when the stream was made stays its horizon
        given = given.replace(horizon=old["horizon"])
    running = given.running_under(Choice.from_dict(old["choice"])) if "choice" in old else given
    new, own = described(running), digests(running)
    if old == new and known == own:
        return _with_columns(store, running, columns)
    if untouched(store):
        return given, written_notes(given)
    if old == new and not tables:
        _require_same_noise(store, known, own)
    # the choice follows from the rest
    was, now = ({key: value for key, value in each.items() if key != "choice"} for each in (old, new))
    changed = [*differences(was, now)] or [*differences(old, new)] or ["the noise that follows from it"]
    raise InputError(
        f"{store.where}: expected the specification that this stream runs under, got another one: "
        f"{'; '.join(changed)}. What was released rests on it: make a new stream, or a successor"
    )


def _require_same_noise(store: Store, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """A stream never changes its noise, even if the program does."""
    changed = [name for name, digest in now.items() if known.get(name) != digest]
    if changed:
        raise VerificationError(
            f"{store.where}: the noise of {', '.join(changed)} is not that of the rounds before: this version names or "
            "calibrates it differently. Open the stream with the version that made it (docs/operations.md)"
        )


def untouched(store: Store) -> bool:
    """Whether no data came in yet, not even from a predecessor."""
    origin = store.number("origin")
    begun = store.sealed > origin or store.committed > origin or store.note("silent") or store.note("owed")
    return not begun and not store.note("earlier") and not store.inbox() and not store.places()


def _with_columns(
    store: Store, given: Specification, columns: Mapping[str, Any]
) -> tuple[Specification, dict[str, str]]:
    """Take the stored roles of columns, which given ones must equal: a command changes them."""
    stored = given.replace(columns=columns.get("columns"), sources=columns.get("sources"))
    if not columns_written(given) or columns_written(given) == columns_written(stored):
        return stored, {}
    if untouched(store):
        return given, columns_note(given)
    raise InputError(
        f"{store.where}: expected the columns that this stream has, got others: "
        f"{'; '.join(differences(_roles(stored), _roles(given)))}. Change them with `retroact columns`",
        place="columns",
    )


def _roles(spec: Specification) -> dict[str, Any]:
    tables = {"columns": spec.columns.spec()}
    tables |= {f"sources.{name}": own["columns"] for name, own in spec.sources.items()}
    return {f"{name}.{role}": column for name, table in tables.items() for role, column in table.items()}
