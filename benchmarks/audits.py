"""Audits every statistic, compiler and option: `python benchmarks/audits.py [effort] [name ...]`."""

from __future__ import annotations

import os
import sys
import time

from gallery import gallery
from retroact.audit import audit_stream


def main(effort: str = "quick", *names: str) -> None:
    print(f"{'stream':30}{'verdict':>10}{'tests':>7}{'controls':>10}{'proven of the claim':>21}{'seconds':>9}")
    for name, spec in gallery().items():
        if names and name not in names:
            continue
        started = time.monotonic()
        report = audit_stream(spec, name=name, effort=effort, workers=os.cpu_count() or 1)
        caught = sum(result.control is not None and result.control.caught for result in report.judged)
        proven = [result.measured.get("share of the claim that was proven") for result in report.results]
        shares = ", ".join(f"{float(share):.3f}" for share in proven if share is not None) or "-"
        print(
            f"{name:30}{report.verdict:>10}{len(report.judged):>7}{f'{caught}/{len(report.judged)}':>10}{shares:>21}"
            f"{time.monotonic() - started:>9.1f}",
            flush=True,
        )
        for result in report.results:
            if result.verdict in ("violation", "inconclusive") or result.void:
                void = " (void)" if result.void else ""
                print(f"    {result.test}: {result.verdict}{void}: {result.found}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
