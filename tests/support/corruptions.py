"""Files with one byte changed, played by a process: `python -m support.corruptions FOLDER KINDS FIRST COUNT SEED`.

Every corruption goes through the program, whose exit code must be 0 or 2, and through `play`, which must take no text
that the corrupted file does not hold. The process prints each number before it begins, so that whoever started it knows
which one killed it, and at its end how many were refused and the most memory it had, in kilobytes.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import retroact as ra
from retroact.cli import main
from retroact.feeds import play
from retroact.feeds.readers import arrow
from support.memory import peak_memory

SPEC = """
epsilon = 1.0
delta = 1e-6
horizon = 4
[schema]
country = { type = "text" }
amount = { type = "number", lower = 0, upper = 500 }
[statistics]
orders = { type = "count" }
revenue = { type = "sum", field = "amount" }
countries = { type = "histogram", field = "country" }
"""
WORDS = ["Österreich", "France", "Deutschland, the long name of it", "日本", "x"]


def table() -> pa.Table:
    random.seed(7)
    countries = [random.choice(WORDS) for _ in range(40)]
    return pa.table({
        "country": countries,
        "amount": [round(random.random() * 500, 2) for _ in countries],
        "id": [f"order {k}" for k in range(len(countries))],
        "subject": pa.array([random.choice(["ann", None, "bob"]) for _ in countries]),
    })  # fmt: skip


def _coded() -> pa.Table:
    made = table()
    coded = made.column("country").combine_chunks().dictionary_encode()
    return made.set_column(0, "country", coded)


def _viewed() -> pa.Table:
    made = table()
    return made.set_column(0, "country", made.column("country").cast(pa.string_view()))


def _ipc(made: pa.Table, path: Path, *, stream: bool = False, compression: str | None = None) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, made.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(made, max_chunksize=16)


def _parquet(path: Path, **options: Any) -> None:
    pq.write_table(table(), path, row_group_size=16, **options)


KINDS = {
    "arrow": (".arrow", lambda path: _ipc(table(), path)),
    "arrow dictionary": (".arrow", lambda path: _ipc(_coded(), path)),
    "arrow views": (".arrow", lambda path: _ipc(_viewed(), path)),
    "arrow stream": (".arrow", lambda path: _ipc(table(), path, stream=True)),
    "arrow compressed": (".feather", lambda path: _ipc(table(), path, compression="lz4")),
    "parquet plain": (
        ".parquet",
        lambda path: _parquet(path, compression="none", use_dictionary=False, column_encoding="PLAIN"),
    ),
    "parquet": (".parquet", lambda path: _parquet(path)),
    "parquet zstd": (
        ".parquet",
        lambda path: pq.write_table(table(), path, compression="zstd", data_page_version="2.0"),
    ),
    "csv": (".csv", lambda path: pyarrow.csv.write_csv(table(), path)),
}
VERBATIM = [kind for kind in KINDS if kind not in ("arrow compressed", "parquet", "parquet zstd")]
"""Kinds of files that hold every text as it is."""


def stream() -> ra.Stream:
    schema = {"country": ra.Text(), "amount": ra.Number(0, 500)}
    return ra.Stream(schema, {"n": ra.Count()}, epsilon=1.0, horizon=4, key=ra.Key.for_testing(1))


def taken(into: ra.Stream) -> set[bytes]:
    """Every text that a stream holds."""
    data = into._core.ledger.data()
    texts = {*data.rows.columns["country"].tolist(), *data.ids, *(data.subjects or ())}
    return {text.encode() for text in texts if text}


def corrupted(content: bytes, number: int, seed: int) -> bytes:
    chance = random.Random(seed * 1_000_003 + number)
    place = chance.randrange(len(content))
    change = chance.choice([chance.randrange(1, 256), 1 << chance.randrange(8), content[place] ^ 0xFF, 0x80])
    return content[:place] + bytes([content[place] ^ change]) + content[place + 1 :] if change else content


def run(folder: Path, kind: str, first: int, count: int, seed: int) -> None:
    suffix, make = KINDS[kind]
    path, spec = folder / f"events{suffix}", folder / "spec.toml"
    spec.write_text(SPEC)
    make(path)
    content = path.read_bytes()
    refused = 0
    for number in range(first, first + count):
        print(number, flush=True)
        broken = corrupted(content, number, seed)
        path.write_bytes(broken)
        errors = io.StringIO()
        command = ["run", str(path), "--spec", str(spec), "-q", "--testing-key", "1", "--out", str(folder / "out")]
        with contextlib.redirect_stderr(errors):
            try:
                main(command)
            except SystemExit as ended:
                code = ended.code
            except BaseException:
                print(f"failed: {number}: {traceback.format_exc()}")
                continue
        if code not in (0, 2) or "Traceback" in errors.getvalue():
            print(f"failed: {number}: exit code {code}: {errors.getvalue()}")
        refused += code == 2
        frames = [path]
        if suffix in (".arrow", ".feather"):
            opened = pa.ipc.open_stream if "stream" in kind else pa.ipc.open_file
            with contextlib.suppress(Exception):
                frames.append(opened(broken).read_all())
        for frame in frames:
            for without in (False, True) if frame is not path else (False,):
                into, usual = stream(), arrow._pyarrow
                try:
                    if without:
                        arrow._pyarrow = lambda: None
                    play(into, frame, close_by="end")
                except ra.InputError:
                    pass
                except BaseException:
                    print(f"failed: {number}: {'without pyarrow' if without else ''} {traceback.format_exc()}")
                finally:
                    arrow._pyarrow = usual
                strange = [text for text in taken(into) if text not in broken]
                if strange and kind in VERBATIM:
                    print(f"failed: {number}: {strange[0]!r} is not in the file")
    print(f"done: {refused} refused, {peak_memory()} kB")


if __name__ == "__main__":
    for kind in sys.argv[2].split(","):
        print(kind)
        run(Path(sys.argv[1]), kind, *map(int, sys.argv[3:6]))
