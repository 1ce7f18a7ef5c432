"""What a check finds in files that a run accepts, and in rows that are refused for something else."""

from __future__ import annotations

from pathlib import Path

from support.checked_files import GOOD, HEAD, SPEC, both, csv, found
from support.cli_program import CLOSE, Ended, Program, add, lines

REJECTING = """
epsilon = 1.0
after_erasure = "reject"
[columns]
subject = "who"
[schema]
country = { type = "category", values = ["DE"] }
amount = { type = "number", lower = 0, upper = 500 }
[statistics]
revenue = { type = "sum", field = "amount" }
"""


def accepted(ended: Ended) -> list[list[str]]:
    """What is left out or replaced: where, how many, and what."""
    return [line.split(maxsplit=2) for line in ended.out.partition("A run accepts these")[2].splitlines()[4:]]


def test_clipped_values_are_counted_with_their_first_lines(program: Program, spec: Path) -> None:
    clips = SPEC.replace("step = 0.01 }", "step = 0.01, clip = true }").replace(
        "upper = 120,", "upper = 120, clip = true,"
    )
    (spec / "clips.toml").write_text(clips)
    large = [f"p{i},u1,DE,{500 + i}.5,{119 + i}," for i in range(4)]
    csv(spec, *GOOD, *large, "q1,u1,DE,-1,,", "q2,u1,DE,500.001,,")
    ended = both(program, spec="clips.toml")
    assert ended.code == 0
    moved = "values out of bounds are moved to the bound"
    assert ["amount", "5", f"{moved} (lines 5, 6, 7, …)"] in accepted(ended)
    assert ["age", "2", f"{moved} (lines 7, 8)"] in accepted(ended)


def test_a_deletion_by_id_has_no_values_that_could_be_clipped(program: Program, spec: Path) -> None:
    (spec / "clips.toml").write_text(SPEC.replace("step = 0.01 }", "step = 0.01, clip = true }"))
    csv(spec, *(f"{row},add" for row in GOOD), "o1,,,900,,,delete", head=f"{HEAD},op")
    ended = both(program, spec="clips.toml")
    assert ended.code == 0
    assert ["amount"] not in [row[:1] for row in accepted(ended)]


def test_records_of_erased_subjects_are_counted_where_they_are_rejected(program: Program, folder: Path) -> None:
    (folder / "rejecting.toml").write_text(REJECTING)
    later = [add(subject="u1"), add(subject="u2"), add(subject="u1"), CLOSE]
    (folder / "e.jsonl").write_text(lines(add(subject="u1"), {"op": "erase", "subject": "u1"}, CLOSE, *later))
    ended = program("check", "rejecting.toml", "e.jsonl")
    assert ended.code == 0
    assert ["subject", "2", "records of erased subjects are left out"] in accepted(ended)
    assert "a run needs --store" in ended.out
    ran = program("run", "e.jsonl", "--spec", "rejecting.toml", "--store", "kept")
    assert ran.code == 0
    assert "note: left out 2 records of erased subjects" in ran.err


def test_texts_for_missing_values_are_for_csv(program: Program, spec: Path) -> None:
    (spec / "e.jsonl").write_text(lines(add()))
    ended = both(program, "--na-values", "NA", file="e.jsonl", spec="shop.toml")
    assert "expected CSV, got JSON lines, where null is missing - at --na-values" in ended.out


def test_bad_times_do_not_hide_what_else_is_wrong(program: Program, spec: Path) -> None:
    rows = ["o4,u1,DE,x,,", "o5,,DE,1,,", "o6,u1,XX,900,,", "o6,u1,DE,1,,"]
    csv(spec, *(f"{row},01/02/2026" for row in rows), "o7,u1,DE,,,,2026-01-02", head=f"{HEAD},day")
    ended = both(program, spec="timed.toml")
    assert sorted(found(ended)) == [
        ("amount", 1, [2]),
        ("amount", 1, [4]),
        ("amount", 1, [6]),
        ("country", 1, [4]),
        ("day", 4, [2, 3, 4]),
        ("subject", 1, [3]),
    ]


def test_dates_for_round_numbers_do_not_hide_bad_values(program: Program, spec: Path) -> None:
    rows = ["o4,u1,DE,x,,", "o5,u1,DE,1,,", "o6,u1,XX,900,,"]
    csv(spec, *(f"{row},2026-01-0{day}" for day, row in enumerate(rows, 1)), head=f"{HEAD},round")
    ended = both(program, "--round", "round", "--rounds", 3)
    assert sorted(found(ended)) == [
        ("amount", 1, [2]),
        ("amount", 1, [4]),
        ("country", 1, [4]),
        ("round", 3, [2, 3, 4]),
    ]
