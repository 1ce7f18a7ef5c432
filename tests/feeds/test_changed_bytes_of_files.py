"""No byte of a file or frame is trusted: one that is changed is refused, or makes another value, and never a crash."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.feeds.play import play
from retroact.feeds.readers import arrow
from support.corruptions import KINDS, WORDS, stream, table

MOST_MEMORY = 1 << 20  # kB
EVERY = 223  # corruptions of each kind of file: 2,007 in all


def play_corrupted(folder: Path, kinds: Sequence[str], count: int, seed: int) -> None:
    program = [sys.executable, "-X", "faulthandler", "-m", "support.corruptions"]
    arguments = [str(folder), ",".join(kinds), "0", str(count), str(seed)]
    tests = Path(__file__).parents[1]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=600, cwd=tests)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"corruption {lines[-1:]} ended the process: {done.returncode}\n{done.stderr[-2000:]}"
    assert "failed" not in done.stdout, done.stdout[done.stdout.index("failed") :][:2000]
    ends = [line.removeprefix("done: ") for line in lines if line.startswith("done: ")]
    assert len(ends) == len(kinds)
    for end in ends:
        refused, memory = (int(part.split()[0]) for part in end.split(", "))
        assert refused > count // 10
        assert memory < MOST_MEMORY


def test_a_changed_byte_is_refused_or_another_value(tmp_path: Path) -> None:
    play_corrupted(tmp_path, [*KINDS], 30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_thousand_changed_bytes(kind: str, tmp_path: Path) -> None:
    play_corrupted(tmp_path, [kind], EVERY, 2)


def written(array: pa.Array, *, stream: bool) -> bytes:
    frame = pa.table({"country": array, "amount": np.zeros(len(array))})
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, frame.schema) as writer:
        writer.write_table(frame)
    return sink.getvalue().to_pybytes()


def i4(*numbers: int) -> bytes:
    return np.array(numbers, "<i4").tobytes()


TEXTS = pa.array(["DE", "FR", "ÖS"])
CODED = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int32()), TEXTS)
GOOD = i4(0, 2, 4, 7)
BROKEN = {
    "an offset beyond the data": (TEXTS, GOOD, i4(0, 2, 4, 4000)),
    "an offset far beyond the data": (TEXTS, GOOD, i4(0, 2, 4, 2**31 - 1)),
    "an offset before the data": (TEXTS, GOOD, i4(-4000, 2, 4, 7)),
    "an offset that goes back": (TEXTS, GOOD, i4(0, 5, 4, 7)),
    "an offset inside a letter": (TEXTS, GOOD, i4(0, 2, 5, 7)),
    "bytes that are no text": (TEXTS, b"DEFR", b"D\xffFR"),
    "a code beyond the words": (CODED, i4(2, 0, 1), i4(7, 0, 1)),
    "a code before the words": (CODED, i4(2, 0, 1), i4(-1, 0, 1)),
    "a word beyond the data": (CODED, GOOD, i4(0, 2, 4, 4000)),
}


def broken(name: str, *, stream: bool = True) -> bytes:
    array, good, bad = BROKEN[name]
    content = written(array, stream=stream)
    assert content.count(good) == 1
    return content.replace(good, bad)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("way", ["play", "play without pyarrow", "add", "a reader", "a file", "a file of a stream"])
def test_a_broken_buffer_is_refused(name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = stream()
    if way == "play without pyarrow":
        monkeypatch.setattr(arrow, "_pyarrow", lambda: None)
    frame: Any = pa.ipc.open_stream(broken(name))
    if "file" in way:
        frame = tmp_path / "f.arrow"
        frame.write_bytes(broken(name, stream="stream" in way))
    elif way != "a reader":
        frame = frame.read_all()
    give = into.add if way == "add" else partial(play, into)
    with pytest.raises(InputError, match="cannot be read"):
        give(frame)
    assert into.discard() == 0


class Foreign:
    """A frame of another library: its buffers come by the C interface alone."""

    def __init__(self, frame: pa.Table) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("name", [name for name in BROKEN if "data" not in name])
@pytest.mark.parametrize("way", ["play", "play without pyarrow", "add"])
def test_a_broken_buffer_of_another_library_is_refused(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Foreign(pa.ipc.open_stream(broken(name)).read_all())
    if way == "play without pyarrow":
        monkeypatch.setattr(arrow, "_pyarrow", lambda: None)
    give = stream().add if way == "add" else partial(play, stream())
    with pytest.raises(InputError, match=r"cannot be read|UTF-8") as caught:
        give(frame)
    assert way != "add" or caught.value.path == "country"


def test_a_row_group_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    options = {"compression": "none", "use_dictionary": False, "row_group_size": 16}
    pq.write_table(table(), path, **options)
    content = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    # among the first bytes of a page is its length
    content[place : place + 24] = bytes(24)
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        play(stream(), path)
    assert (caught.value.source, caught.value.path) == (str(path), "row group 2 of 3")


def test_a_record_batch_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.arrow"
    with pa.ipc.new_file(path, table().schema) as writer:
        writer.write_table(table(), max_chunksize=16)
    content = path.read_bytes()
    second = content.rindex(b"order 16")
    path.write_bytes(content[:second] + b"\xff" + content[second + 1 :])
    with pytest.raises(InputError, match="Invalid UTF8") as caught:
        play(stream(), path)
    assert (caught.value.source, caught.value.path) == (str(path), "record batch 2")


def test_rows_that_only_the_metadata_count_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"x": pa.nulls(3, pa.int8())}), path)
    content = path.read_bytes()
    found = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 2]) + content[place + 1 :])
        alone = ra.Stream({"*": ra.Integer(0, 0)}, {"n": ra.Count()}, epsilon=1.0, horizon=4, key=ra.Key.for_testing(1))
        try:
            totals = play(alone, path, close_by="end")
        except InputError:
            continue
        found += totals.added != 3
    assert found == 0


def test_whole_files_are_taken(tmp_path: Path) -> None:
    for kind, (suffix, make) in KINDS.items():
        make(tmp_path / f"e{suffix}")
        into = stream()
        assert play(into, tmp_path / f"e{suffix}").added == 40, kind
        assert {*into._core.ledger.data().rows.columns["country"].tolist()} <= {*WORDS}
