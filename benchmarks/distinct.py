"""The price of retroactivity: distinct counts with the flippancy tracker and with two retroactive forms.

python benchmarks/distinct.py [--seeds N] [--picture PATH] [HORIZON ...]
"""

import argparse
import time
from pathlib import Path

from distinct_chart import picture
from price import price_of_retroactivity

HORIZONS = (256, 1024, 4096, 16384, 65536)
TRACKER, FRESH, BLOCKS = "tracker", "retroactive, fresh", "retroactive, blocks"


def main():
    parser = argparse.ArgumentParser(description="The price of retroactivity, for distinct counts.")
    parser.add_argument("horizons", nargs="*", type=int, metavar="HORIZON")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    start = time.time()
    found = price_of_retroactivity(options.horizons or HORIZONS, seeds=options.seeds)
    print(f"\nRMS error over rounds (largest in brackets), epsilon = {found.epsilon:g}, delta = {found.delta:g}\n")
    print(found)
    print("\nHow many times the error of the tracker (below 1: the retroactive form is better)\n")
    print(f"{'rounds':>9}  {'history':15}{'fresh':>8}{'blocks':>8}")
    for row in found.rows:
        if row.algorithm == TRACKER:
            fresh, blocks = (found.row(row.horizon, row.stream, name).rms / row.rms for name in (FRESH, BLOCKS))
            print(f"{row.horizon:>9,}  {row.stream:15}{fresh:8.2f}{blocks:8.2f}")
    print(f"\n{time.time() - start:.0f} s")
    if options.picture:
        options.picture.write_text(picture(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
