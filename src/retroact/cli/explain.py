"""`retroact explain`: what is protected and what is not, in plain words. Every number is read from the objects."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Annotated

from ..compilers import sample_in
from ..messages import plural
from ..privacy import Guarantee
from ..stream import Specification
from .console import console_for, message, say
from .options import command, option
from .specification import SpecOrOptions

Section = tuple[str, list[str]]

RETROACTIVE = (
    "Once a record is deleted, every later answer is distributed exactly as if the record had never been there: noise "
    "is a function of the key, the round and the surviving data, and nothing else is kept."
)
LATE = "Records may arrive late, with the stamp of a past round: they count from that stamp on in all later answers."
NOT_LATE = "Records arrive in the round they are stamped with; late ones are refused."
ERASURE = (
    "An erasure deletes every surviving record of a subject, those of the open round included. It takes effect in the "
    "release of the round it arrives in, and in all after it. Earlier releases stay as they are; what they reveal "
    "about the subject is bounded by the guarantee above."
)
NO_SUBJECTS = (
    "Nothing: this stream has no subjects, so nobody's records can be found. Records are deleted by id, or by value."
)
ACCEPTS = "Later records of an erased subject are accepted like any others."
REJECTS = (
    "Later records of an erased subject are rejected, by a hash of the subject under the key; nothing else is kept of "
    "it. So one erasure affects many later records: it counts as one operation for each record that it removes, "
    "and for each that is rejected after it."
)
NOT_PROTECTED = (
    "What was published before an erasure: it is not taken back.",
    "The schema, the bounds, the statistics and the times at which rounds close: they are public. Rounds must not "
    "close by the number of updates.",
    "What can be learned about a person from the records of others.",
    "Anything against somebody who holds the key: with it, the noise can be removed.",
    "Exact counts shown to the operator (stderr), the input files themselves and their backups.",
    "More, and why: docs/limitations.md.",
)
ENDS = {
    "lines": "lines that say so, or by their numbers",
    "progress": "progress messages",
    "end": "the ends of sources",
}


@command
def explain(
    asked: SpecOrOptions,
    subject_records: Annotated[int, option("The most records that one person ever adds.", "C", min=1)] = 5,
) -> None:
    """Explain in plain words what is protected, what is not, and what an erasure does.

    \b
    Examples:
      retroact explain retroact.toml --subject-records 20
      retroact explain --count --epsilon 1 --horizon 365
    """
    if asked.unread is not None:
        say(asked.unread, err=True)
    console = console_for("stdout")
    width = min(console.width, 100)
    for title, paragraphs in sections(asked.specification(), subject_records):
        message(console, title, "bold")
        for paragraph in paragraphs:
            for line in wrap(paragraph, width, initial_indent="  • ", subsequent_indent="    "):
                message(console, line)
        console.print()


def sections(spec: Specification, subject_records: int) -> Iterator[Section]:
    guarantee, names = spec.guarantee, spec.statistics
    yield "What is published", [_published(spec, name) for name in names]
    promises = [f"Promised, and not checked: {promise}." for promise in guarantee.promises]
    life, person, adaptive = _life(guarantee), _subject(guarantee, subject_records), _adaptive(guarantee)
    yield "What is protected", [f"One operation. {guarantee.text}.", life, person, adaptive, *promises]
    yield "Where it comes from", [_columns(spec), _rounds(spec)]
    yield "What retroactive means", [RETROACTIVE, LATE if spec.late else NOT_LATE]
    erasure = [ERASURE, REJECTS if spec.after_erasure == "reject" else ACCEPTS]
    yield "What an erasure does", erasure if spec.has_subjects else [NO_SUBJECTS]
    shares = [f"{name}: {spec.measure_of(name)}, {_noise(spec, name)}" for name in names]
    yield "How the budget is split", [*shares, f"Together: {guarantee.budget}."]
    yield "What is not protected", list(NOT_PROTECTED)


def _columns(spec: Specification) -> str:
    columns = spec.columns
    if not columns.given:
        text = "Columns. Those called id, subject, stamp, round and op have that role, where they are no fields"
    else:
        roles = [f"{role} in {own.column}{' (optional)' if own.optional else ''}" for role, own in columns.items()]
        text = f"Columns. {', '.join(roles) if roles else 'None but the fields'}"
    own = "".join(f"; {name} has its own columns" for name in spec.sources)
    if isinstance(columns.ignore, bool):
        return f"{text}{own}. Other columns are {'ignored' if columns.ignore else 'refused'}."
    return f"{text}{own}. Ignored: {', '.join(columns.ignore)}; other columns are refused."


def _rounds(spec: Specification) -> str:
    rounds = spec.rounds
    if rounds.grid is None:
        text = f"Rounds. They end by {ENDS[rounds.close_by]}"
    else:
        count = "without end" if rounds.count is None else f"{rounds.count:,} of them"
        text = f"Rounds. By time, {count}: {', '.join(f'{key} {value}' for key, value in rounds.grid.spec().items())}"
        late = "get the stamp of the round they belong to" if rounds.late_events == "stamp" else "are left out"
        text += f"; late records {late}"
    more = {key: value for key, value in rounds.spec().items() if key in ("contribution", "grace", "publish_after")}
    return f"{text}{''.join(f'; {key} {value}' for key, value in more.items())}. What a round means never changes."


def _noise(spec: Specification, name: str) -> str:
    found, process = sample_in(spec.bounds[name]), f"noise by {spec.processes[name]!r}"
    if found is None:
        return process if spec.bounds[name].additive else spec.bounds[name].method
    sample = found.statistic
    runs = f"{sample.of.label}: {found.price}"
    return runs if sample.gate is None else f"{runs}, gate with {process}"


def _published(spec: Specification, name: str) -> str:
    statistic, window = spec.statistics[name], spec.window_of(name)
    when = "every round" if statistic.every == 1 else f"every {statistic.every} rounds"
    over = "all surviving records" if window is None else f"the surviving records of the last {plural(window, 'round')}"
    limit = "without a horizon" if spec.horizon is None else f"for {plural(spec.horizon, 'round')} and no more"
    return f"{name}: {statistic!r} over {over}, {when}, {limit}"


def _life(guarantee: Guarantee) -> str:
    whole, twice = guarantee.for_subject(1), guarantee.for_operations(2)
    return (
        "A record's whole life. From its addition to its deletion a record counts during one interval of rounds, so "
        f"adding it and deleting it later costs {whole.budget} together, as one operation does. A new value under the "
        f"same id is two operations, a deletion and an addition: {twice.budget}."
    )


def _subject(guarantee: Guarantee, records: int) -> str:
    whole = guarantee.for_subject(records)
    return (
        f"A person. {whole.budget} for {whole.unit}. Promised, not enforced: "
        f"{'; '.join(whole.promises[len(guarantee.promises) :])}. Erasing a person costs nothing more."
    )


def _adaptive(guarantee: Guarantee) -> str:
    if guarantee.adaptive:
        return "Adaptive. It also holds when later updates are chosen after seeing earlier answers."
    return "Not adaptive. It is proven only for updates that do not depend on earlier answers."
