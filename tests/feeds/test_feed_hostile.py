"""Feeds that are broken, wrong or made to harm: refused with the line, and nothing changes beyond closed rounds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retroact.errors import InputError
from support.feed_shop import CLOSE, Played, row, shop, written
from support.tiers import in_full

GOOD = json.dumps(row()).encode() + b"\n"
END = b'{"op": "close"}\n'
BROKEN: dict[str, tuple[bytes, int, str]] = {
    "cut off": (GOOD + END + GOOD[:-9], 3, "input data was truncated"),
    "Latin-1": (GOOD + END + b'{"country": "D\xc9", "amount": 1}\n', 3, "expected UTF-8 text, got the byte 0xc9"),
    "UTF-16": (GOOD.decode().encode("utf-16"), 1, "expected UTF-8 text, got UTF-16"),
    "UTF-32": (GOOD.decode().encode("utf-32"), 1, "expected UTF-8 text, got UTF-32"),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-le"), 1, "expected JSON, got broken JSON"),
    "NUL": (GOOD + END + b"\0\0\0\n", 3, "expected JSON, got broken JSON"),
    "NUL inside": (GOOD + END + b'{"country": "D\0", "amount": 1}\n', 3, "expected JSON, got broken JSON"),
    "deep": (GOOD + END + b'{"country": ' + b"[" * 100_000 + b"\n", 3, "more nesting than can be read"),
    "deep and closed": (GOOD + END + b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}\n", 3, ""),
    "unknown word": (
        b'{"op": "+I", "country": "DE", "amount": 1}\n{"op": "close"}\n{"op": "+X", "country": "DE", "amount": 1}\n',
        3,
        "got",
    ),
    "two on a line": (GOOD + END + GOOD.strip() + GOOD, 3, "trailing characters"),
    "an array": (GOOD + END + b"[1, 2]\n", 3, "expected an object"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_json(name: str, tmp_path: Path) -> None:
    content, line, message = BROKEN[name]
    (tmp_path / "e.jsonl").write_bytes(content)
    stream = shop()
    with pytest.raises(InputError, match=f"e.jsonl:{line}: .*{message}"):
        Played(tmp_path / "e.jsonl", stream)
    assert stream.round == (2 if END in content else 1)
    assert stream.discard() == 0


CSV: dict[str, tuple[bytes, int, str]] = {
    "UTF-16": ("country,amount\nDE,1\n".encode("utf-16"), 1, "expected UTF-8 text, got UTF-16"),
    "NUL": (b"country,amount\nDE,1\nD\0,1\n", 3, "expected"),
    "cut off": (b'country,amount\nDE,1\nDE,"1', 3, "expected a closing quote for a cell that begins in this row"),
    "huge cell": (b"country,amount\nDE,1\n" + b"x" * 200_000 + b",1\n", 3, "field larger than field limit"),
    "unknown word": (b"op,country,amount\n+I,DE,1\n+X,DE,1\n", 3, r"expected one of add, .*got '\+X' - at op"),
    "no weight": (b"diff,country,amount\n1,DE,1\n,DE,1\n", 3, "expected a whole number, got '' - at diff"),
    "huge weight": (b"diff,country,amount\n1,DE,1\n1000000000000000000,DE,1\n", 3, "aggregated input"),
    "two marks": (b"op,diff,country,amount\n+I,1,DE,1\n", 1, "expected one column that says what is done with a row"),
}


@pytest.mark.parametrize("name", CSV)
def test_broken_csv(name: str, tmp_path: Path) -> None:
    content, line, message = CSV[name]
    (tmp_path / "e.csv").write_bytes(content)
    with pytest.raises(InputError, match=f"e.csv:{line}: .*{message}"):
        Played(tmp_path / "e.csv")


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv"])
def test_usual_oddities(name: str, tmp_path: Path) -> None:
    """A byte order mark, Windows line ends, blank lines and no end of the last line."""
    lines = [GOOD.strip(), b"", GOOD.strip()] if name.endswith("jsonl") else [b"country,amount", b"DE,1", b"", b"DE,1"]
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    assert Played(tmp_path / name).totals.added == 2


def test_empty_files(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", b""), ("b.jsonl", b"\n\n"), ("c.csv", b""), ("d.csv", b"country,amount\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"no events in .*{name}"):
            Played(tmp_path / name)


ENDLESS = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
sys.path.insert(0, sys.argv[2])
from support.feed_shop import Played
from retroact.errors import InputError
from support.memory import peak_memory
try:
    Played(sys.argv[1])
except InputError as error:
    print(error)
    print(peak_memory())
"""


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv"])
def test_a_line_of_a_gigabyte(name: str, tmp_path: Path) -> None:
    """Refused with its number, long before it was read."""
    with (tmp_path / name).open("wb") as file:
        file.write(GOOD if name.endswith("jsonl") else b"country,amount\n")
        file.truncate(1 << 30)
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / name), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    message, peak = done.stdout.splitlines()
    assert message.endswith(f"{name}:2: expected a line of at most 16 MB, got a longer one")
    assert int(peak) < 400_000, "kilobytes"


@pytest.mark.parametrize("many", [200_000, in_full(1_000_000)])
def test_many_deletions_of_nothing(tmp_path: Path, many: int) -> None:
    with (tmp_path / "e.jsonl").open("w") as file:
        file.write('{"weight": 1, "id": "x", "country": "DE", "amount": 1}\n')
        file.writelines(f'{{"weight": -1, "id": "n{n}"}}\n' for n in range(many))
    began = time.process_time()
    played = Played(tmp_path / "e.jsonl", id="id")
    assert played.totals.ignored_deletions == many
    assert time.process_time() - began < 60


def test_deletions_before_additions(tmp_path: Path) -> None:
    """On an id the last event of a round counts; by value, additions come before deletions."""
    events: list[dict[str, Any]] = [{"delete": {"id": 1}}, {"insert": row(id=1)}, CLOSE]
    assert Played(written(tmp_path / "a.jsonl", events), id="id").totals.added == 1
    events = [{**row(), "diff": -1, "stamp": 1}, {**row(), "diff": 1}, CLOSE]
    assert Played(written(tmp_path / "b.jsonl", events)).surviving == _empty_after_a_round()


def _empty_after_a_round() -> bytes:
    stream = shop()
    stream.close_round()
    return stream.state()


def test_an_error_late_in_a_block_hands_over_what_is_good_once(tmp_path: Path) -> None:
    """A value that the stream refuses gives up the whole hand-over, not half of it; the line is named."""
    bad = [row(), CLOSE, *[row()] * 50, row(amount="x"), *[row()] * 50]
    stream = shop()
    with pytest.raises(InputError, match=r"e.jsonl:53: expected a number, got 'x' - at amount"):
        Played(written(tmp_path / "e.jsonl", bad), stream)
    assert stream.round == 2
    assert stream.position(str(tmp_path / "e.jsonl")) == (2,)
    assert stream.discard() == 0


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_nothing_of_a_batch_with_a_bad_value_is_taken(suffix: str, tmp_path: Path) -> None:
    path, stream = tmp_path / f"e{suffix}", shop()
    amounts = [1.0, 2.0, 501.0, 4.0]
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps({"country": "DE", "amount": amount}) + "\n" for amount in amounts))
    elif suffix == ".csv":
        path.write_text("country,amount\n" + "".join(f"DE,{amount}\n" for amount in amounts))
    else:
        pq.write_table(pa.table({"country": ["DE"] * 4, "amount": amounts}), path)
    with pytest.raises(InputError, match="501") as caught:
        Played(path, stream)
    assert caught.value.row == (4 if suffix == ".csv" else 3)
    assert stream.discard() == 0
    assert stream.position(str(path)) is None


MANY = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from support.feed_shop import Played
from support.memory import peak_memory
print(Played(Path(sys.argv[1])).totals.added)
print(peak_memory())
"""


def test_millions_of_equal_rows_in_a_small_file_take_little_memory(tmp_path: Path) -> None:
    path, rows, groups = tmp_path / "e.parquet", 1 << 20, 12
    table = pa.table({"country": pa.array(["DE"] * rows).dictionary_encode(), "amount": np.ones(rows)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    assert path.stat().st_size < 1 << 20
    command = [sys.executable, "-c", MANY, str(path), str(Path(__file__).parents[1])]
    added, peak = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout.split()
    assert int(added) == rows * groups
    assert int(peak) < 400_000, "kilobytes"


def test_blank_lines_before_the_header(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("\n\r\ncountry,amount\nDE,1\n")
    assert Played(path).totals.added == 1
    path.write_text("\n\ncountry,amount\nDE,x\n")
    with pytest.raises(InputError, match=r"e.csv:4: expected a number, got 'x' - at amount"):
        Played(path)
