"""Every statistic, noise process, compiler and option goes through the audit: in small here, in full by
`benchmarks/audits.py`."""

import importlib.util
import sys
from pathlib import Path

import pytest

from retroact.audit.run import TESTS, audit_stream
from retroact.audit.target import Target
from retroact.audit.work import Piece
from support.tiers import in_full

FILE = Path(__file__).parents[2] / "benchmarks" / "gallery.py"
SMALL = {
    "sensitivity": {"pairs": 5},
    "releases": {"histories": 2},
    "noise": {"draws": 12_000},
    "published noise": {"draws": 200},
}


def gallery():
    spec = importlib.util.spec_from_file_location("gallery", FILE)
    module = sys.modules["gallery"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.gallery()


STREAMS = gallery()
# What is published has the noise of its names in every example (tests/testing): here one of each way to draw noise is
# asked, with the dashboard for all that is linear; in the slow tier all are.
PUBLISHED = {"a dashboard", "distinct", "means of clusters", "quantiles", "restated"}


# By default every second stream: all statistics go through the checks for authors too, which ask the same.
CASES = [name if turn % 2 == 0 or name in PUBLISHED else in_full(name) for turn, name in enumerate(STREAMS)]


@pytest.mark.parametrize("name", CASES)
def test_from_inside(name):
    assert STREAMS.keys() >= PUBLISHED
    target = Target.stream(STREAMS[name], name=name)
    judged = 0
    for test, options in SMALL.items():
        if test == "published noise" and name not in PUBLISHED:
            continue
        for result in Piece(test, TESTS[test].test, target, options).run(1):
            assert result.verdict in ("passed", "not applicable"), result
            judged += result.verdict == "passed"
            assert result.verdict == "not applicable" or result.control.caught, result
    assert judged >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_in_full(name):
    report = audit_stream(STREAMS[name], name=name, effort="quick")
    assert report.verdict == "passed", [r for r in report.results if r.void or r.verdict == "violation"]
