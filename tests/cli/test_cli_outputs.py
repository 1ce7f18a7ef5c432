"""Files of releases: endings, and the mark of a testing key."""

import json
from pathlib import Path

from retroact.outputs.table import NOT_PRIVATE
from support.cli_program import Program


def test_unknown_endings_are_refused_before_anything_is_made(program: Program, folder: Path):
    (folder / "a.csv").write_text("x\n1\n")
    for name in ("a.xlsx", "out.json"):
        ended = program("run", "a.csv", "--count", "--epsilon", 1, "--store", "s", "--out", name)
        endings = ".ndjson, .jsonl, .csv, .parquet, .arrow"
        message = f"error: expected a file name that ends with {endings}, or --format, got {name} - at --out\n"
        assert (ended.code, ended.err) == (2, message)
    assert not (folder / "s").exists()
    assert program("run", "a.csv", "--count", "--epsilon", 1, "--out", "a.xlsx", "--format", "csv", "-q").code == 0


def test_the_mark_of_a_testing_key(program: Program, folder: Path):
    import pyarrow.parquet

    (folder / "a.csv").write_text("x\n1\n")
    for key, marked in ((("--testing-key", 1), True), ((), False)):
        for name in ("out.jsonl", "out.csv", "out.parquet", "out.arrow"):
            assert program("run", "a.csv", "--count", "--epsilon", 1, *key, "--out", name, "-q").code == 0
        assert (json.loads((folder / "out.jsonl").read_text()).get("testing_key") is True) is marked
        assert (NOT_PRIVATE in (folder / "out.csv").read_text()) is marked
        for table in (
            pyarrow.parquet.read_table(folder / "out.parquet"), pyarrow.ipc.open_file(folder / "out.arrow").read_all(),
        ):  # fmt: skip
            assert ("testing_key" in table.column_names) is marked
            assert not marked or table["testing_key"].to_pylist() == [NOT_PRIVATE]
