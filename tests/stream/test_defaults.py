"""The default is the best that can be selected with the same promises: a part of `benchmarks/defaults.py`."""

import importlib.util
from pathlib import Path

import pytest

from support.tiers import in_turns

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def defaults():
    spec = importlib.util.spec_from_file_location("defaults_program", ROOT / "benchmarks" / "defaults.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.parametrize(("horizon", "delta"), in_turns([1, 2, 3, 7, 12, 52, 365, 1023, 1024, 65_536], (0.0, 1e-6)))
def test_nothing_that_can_be_selected_is_better_by_three_percent(defaults, horizon, delta):
    for name, statistic in defaults.STATISTICS.items():
        if delta or name != "undeclared bins":
            default, own, best, other = defaults.compared(statistic, horizon, delta)
            assert own <= defaults.ALLOWED * other, (name, default, best)


def test_a_default_that_loses_is_seen(defaults):
    """A tree for a single release errs more than the exponential mechanism."""
    tree = defaults.STATISTICS["median of 2^32"].replace(noise="schauder")
    ways = dict(defaults.alternatives(tree.replace(noise=None), 1, 1e-6))
    own = defaults.half_width(defaults.spec_of(tree, 1))
    assert own > defaults.ALLOWED * min(map(defaults.half_width, ways.values()))
