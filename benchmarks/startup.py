"""How long it takes to start: `import retroact as ra; ra.Stream` against `import numpy`, and `retroact --help`.

Medians of processor time over whole processes, in turns, so that a busy machine slows all of them alike.

    python benchmarks/startup.py --runs 21
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

COMMANDS = {
    "an empty program": "pass",
    "import numpy": "import numpy",
    "import retroact as ra; ra.Stream": "import retroact as ra; ra.Stream",
    "retroact --help": "from retroact.cli import main; main(['--help'])",
}
# as after an installation: byte code is kept
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
NUMPY, STREAM, HELP = list(COMMANDS)[1:]
MOST_RATIO, MOST_HELP = 1.6, 0.15


def processor_time(code: str) -> float:
    """Seconds, of the program and of the system on its behalf."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args(arguments).runs
    for code in COMMANDS.values():
        processor_time(code)  # writes the byte code
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, code in COMMANDS.items():
            times[name].append(processor_time(code))
    medians = {name: statistics.median(found) for name, found in times.items()}
    for name, seconds in medians.items():
        print(f"{name:36} {seconds:.3f} s, {seconds / medians[NUMPY]:.2f} x import numpy")
    print(f"ra.Stream: {medians[STREAM] / medians[NUMPY]:.2f} x import numpy, wanted: at most {MOST_RATIO}")
    print(f"--help: {medians[HELP]:.3f} s of processor time, wanted: at most {MOST_HELP}")


if __name__ == "__main__":
    main()
