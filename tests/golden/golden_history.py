"""Thirty-odd records of every type of field, and a history with everything that can happen to them."""

import hashlib

import retroact as ra

SCHEMA = {
    "amount": ra.Number(-10, 500, step=0.25, clip=True),
    "age": ra.Integer(0, 120, missing="skip"),
    "member": ra.Boolean(missing="skip"),
    "country": ra.Category(["DE", "FR", "IT"]),
    "size": ra.Category(["small", "large", 3], missing="skip"),
    "city": ra.Text(missing="skip"),
    "tag": ra.Bytes(missing="skip"),
    "day": ra.Date("2026-01-01", "2026-12-31", missing="skip"),
    "at": ra.Timestamp("2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z", step=60, clip=True, missing="skip"),
    "place": ra.Vector(2, radius=2, step=0.125, clip=True, missing="skip"),
    "deep": ra.Vector(5, radius=1, step=0.0625, clip=True),
    "x": ra.Number(-4, 4, step=0.5),
    "y": ra.Integer(-4, 4),
}
OPTIONAL = [name for name, field in SCHEMA.items() if field.missing == "skip"]
CITIES = ["Köln", "Lyon", "Turin", "", "東京"]
ROUNDS = 8


def record(number):
    """The same for the same number; every third one lacks a value."""
    spread = number * 37 % 101
    values = {
        "amount": spread * 1.25 - 12,
        "age": spread % 90,
        "member": number % 3 == 0,
        "country": ("DE", "FR", "IT")[spread % 3],
        "size": ("small", "large", 3)[spread % 3],
        "city": CITIES[spread % 5],
        "tag": bytes([spread % 4, 0]),
        "day": f"2026-{1 + spread % 12:02}-{1 + spread % 28:02}",
        "at": f"2026-{1 + spread % 12:02}-{1 + spread % 28:02}T{spread % 24:02}:{spread % 60:02}:31+01:00",
        "place": [(number % 2 * 2 - 1) * 1.25 + spread % 4 / 8, (number % 3 - 1) * 1.5],
        "deep": [(number % 2 * 2 - 1) * (0.5 if i == number % 5 else 0.125) for i in range(5)],
        "x": (number % 2 * 2 - 1) * 3 + spread % 3 / 2,
        "y": (number % 2 * 2 - 1) * 3 - spread % 2,
    }
    if number % 3 == 1:
        values[OPTIONAL[number // 3 % len(OPTIONAL)]] = None
    return values


def columns(numbers):
    records = [record(number) for number in numbers]
    return {name: [one[name] for one in records] for name in SCHEMA}


def subjects(numbers):
    """Whom records belong to; some belong to nobody."""
    return [None if number % 7 == 6 else f"u{number % 5}" for number in numbers]


def happen(stream, round, *, late=True):
    """What comes in a round: batches and single records, ids whose records are replaced, late and future stamps,
    deletions by value and by id, of what is there and of what is not, erasures; nothing at all in round 5."""
    if round == 5:
        return
    first = round * 10
    plain = range(first, first + 4)
    stream.add([record(number) for number in plain], subject=subjects(plain))
    stream.add([record(first), record(first)], subject=subjects([first, first]))
    named = [first + 4, first + 5, first + 6]
    stamps = [max(1, round - 2), round, round + 1] if late else [round, round, round + 1]
    stream.add(
        columns(named), id=[f"o{round}", f"o{round - 1}", f"o{round + 10}"], subject=subjects(named), stamp=stamps
    )
    stream.add(record(first + 7), id=1, subject=round % 5)
    if late:
        stream.add(record(first + 8), stamp=max(1, round - 3), subject="u1")
    if round > 1:
        # of the round before: a plain record, one that is not there, and an id
        stream.delete(record(first - 9), stamp=round - 1, subject=subjects([first - 9])[0])
        stream.delete(record(first - 9), stamp=round - 1, subject="nobody")
        stream.delete(columns([first - 10]), stamp=[round - 1], subject=subjects([first - 10]))
    if round % 3 == 0:
        more = [first + 9, first + 10]
        stream.upsert(
            columns(more), id=["p", f"o{round}", "p", f"o{round - 2}"], deleted=[False, True, True, False],
            subject=subjects(more),
        )  # fmt: skip
        stream.delete(id=["o2", "unknown"])
    if round in (4, 7):
        stream.erase(subject=f"u{round % 5}")
    if round == 6:
        stream.erase(sha256=hashlib.sha256(b"u3").digest())
