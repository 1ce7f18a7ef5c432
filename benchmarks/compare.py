"""Two checkouts side by side: processor time and peak memory of benchmarks, and every number that they print.

`python benchmarks/compare.py OTHER 'ledger --count 300000' round ...` runs each benchmark in the other checkout and in
this one, in turn, and shows the medians. Each checkout runs its own benchmarks on its own source. Numbers are compared
where a line has the same words in both; a line is shown when one of its numbers moved by more than `--shown`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class Ran:
    seconds: float
    megabytes: float
    printed: list[str]


def run(tree: Path, benchmark: str) -> Ran:
    """One benchmark in a process of its own, with all the processes that it starts."""
    name, *arguments = shlex.split(benchmark)
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, f"benchmarks/{name}.py", *arguments],
            cwd=tree, env={**os.environ, "PYTHONPATH": str(tree / "src")}, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _, status, spent = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read().splitlines()
    if process.returncode:
        print(f"  {tree}: {benchmark} ended with {process.returncode}: {printed[-1] if printed else ''}", flush=True)
    return Ran(spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024, printed)


def medians(runs: list[Ran]) -> dict[str, list[float]]:
    """For the words of each line, the median of each of its numbers.

    >>> medians([Ran(1, 1, ["add 3 ms, close 1,000 ms"]), Ran(1, 1, ["add 5 ms, close 3,000 ms"])])
    {'add # ms, close # ms': [4.0, 2000.0]}
    """
    found: dict[str, list[list[float]]] = {}
    for ran in runs:
        for line in ran.printed:
            words = NUMBER.sub("#", " ".join(line.split()))
            found.setdefault(words, []).append([float(text.replace(",", "")) for text in NUMBER.findall(line)])
    return {words: [statistics.median(of) for of in zip(*rows, strict=True)] for words, rows in found.items()}


def compare(other: Path, benchmark: str, runs: int, shown: float) -> None:
    pairs = [(run(other, benchmark), run(HERE, benchmark)) for _ in range(runs)]
    theirs, ours = ([pair[side] for pair in pairs] for side in (0, 1))
    print(f"== {benchmark}")
    for what in ("seconds", "megabytes"):
        before, after = (statistics.median(getattr(ran, what) for ran in side) for side in (theirs, ours))
        print(f"  {what:12} {before:10.2f} {after:10.2f} {after / before:8.3f}", flush=True)
    before_lines, after_lines = medians(theirs), medians(ours)
    for words, after_numbers in after_lines.items():
        before_numbers = before_lines.get(words, [])
        ratios = [a / b for a, b in zip(after_numbers, before_numbers, strict=True) if b] if before_numbers else []
        if any(abs(ratio - 1) > shown for ratio in ratios):
            filled = iter(f"{b:g} -> {a:g}" for b, a in zip(before_numbers, after_numbers, strict=True))
            print("    " + re.sub("#", lambda _, filled=filled: next(filled), words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout of another commit, such as a git worktree")
    parser.add_argument("benchmarks", nargs="+", help="file names without .py, with arguments")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--shown", type=float, default=0.05, help="show lines that moved by more than this")
    options = parser.parse_args()
    print(f"  {'':12} {'other':>10} {'this':>10} {'ratio':>8}")
    for benchmark in options.benchmarks:
        compare(options.other.resolve(), benchmark, options.runs, options.shown)


if __name__ == "__main__":
    main()
