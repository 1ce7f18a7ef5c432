"""Recompute all that is shipped about crossfade noise, and compare.

    python certificates/check.py                    # rows up to m = 12, all windows: a minute
    python certificates/check.py --most 17          # all rows: an hour
    python certificates/check.py --most 17 --only bisection     # the strict bounds alone: a minute or two

Two programs, `bisection` and `innovations`, work out every row from the definition of the noise, by other means; they
share no code with each other nor with the package. A shipped number must be above the strict bound of the first, and
what both find must agree. `--write` notes all of it in certified.json.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from fractions import Fraction
from pathlib import Path

import bisection
import innovations

HERE = Path(__file__).parent
SHIPPED = HERE.parent / "src" / "retroact" / "noise" / "crossfade_table.py"
NOTES = HERE / "certified.json"
# What rounding to the lattice may add to a squared shift (docs/proofs.md, 3c), and far more.
MARGIN = 5e-5
# The strict bound is above the number itself by what covers rounding.
DISAGREEMENT = 5e-5
PARTS = ("squared", "never_ends")
PROGRAMS = {"bisection": bisection.certificate, "innovations": innovations.certificate}


def shipped(path=SHIPPED):
    """The constants of a module of literals, read and not run."""
    found = {}
    for line in ast.parse(path.read_text()).body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def faults(constants, found):
    """What is wrong with shipped constants, given what programs found: a list of sentences."""
    out = []
    for row in found:
        m, window = row["m"], row["window"]
        name = f"window {window}" if window else f"row {m}"
        shipped = (
            {"squared": constants["WINDOWS"][m]} if window else dict(zip(PARTS, constants["ROWS"][m], strict=True))
        )
        for part, number in shipped.items():
            ran = [program for program in PROGRAMS if program in row]
            values = {program: row[program][part] for program in ran if part in row[program]}
            out += [f"{name}: {part} was not computed by {program}" for program in ran if program not in values]
            if not values:
                continue
            most = max(values.values())
            if Fraction(number) < Fraction(most) + Fraction(MARGIN):
                out.append(f"{name}: {part} is shipped as {number}, which is not {MARGIN} above {most:.7f}")
            if max(values.values()) - min(values.values()) > DISAGREEMENT:
                out.append(f"{name}: {part} is {' but '.join(f'{v:.7f} by {k}' for k, v in values.items())}")
        if max(row["pivots"]) > float(constants["KERNEL"]):
            out.append(f"{name}: a pivot of {max(row['pivots']):.4f} is above {constants['KERNEL']}")
    return out


def row_of(m, window, programs):
    row = {"m": m, "window": 1 << m if window else None}
    for program in programs:
        made = PROGRAMS[program](m, window)
        row[program] = {key: made[key] for key in ("squared", "never_ends", "interval") if made[key] is not None}
    return {**row, "pivots": [round(pivot, 6) for pivot in innovations.pivots(m, window)] or [0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=12, help="the last row m (default: 12)")
    parser.add_argument("--only", choices=sorted(PROGRAMS), help="one program alone")
    parser.add_argument("--write", action="store_true", help=f"note what was found in {NOTES.name}")
    asked = parser.parse_args()
    constants, found = shipped(), []
    rows = [(m, False) for m in constants["ROWS"]] + [(m, True) for m in constants["WINDOWS"]]
    for m, window in rows:
        if m > asked.most:
            continue
        found.append(row_of(m, window, [asked.only] if asked.only else PROGRAMS))
        print(json.dumps(found[-1]), flush=True)
    if asked.write:
        NOTES.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
    wrong = faults(constants, found)
    print("\n".join(wrong) or f"{len(found)} rows certified")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
