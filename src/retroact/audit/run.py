"""An audit: every test that applies to a target, in one report.

>>> import retroact as ra
>>> spec = ra.Specification({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, horizon=8)
>>> audit_stream(spec, effort="quick", only="sensitivity").verdict
'passed'
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, get_args

from ..errors import InputError
from ..privacy import Guarantee
from ..schema import Field, Schema
from ..statistics import Statistic
from ..stream import Specification
from ..testing import Shape
from ..testing.algorithm import Make
from .adversaries import PLAYERS
from .approximate import approximate
from .games import adaptive, neighbours
from .likelihood import likelihood
from .model_deletions import model_deletions
from .noise import conformance, published_law
from .reconstruction import reconstruction
from .releases import releases
from .report import Report, report_on
from .result import Part, Result
from .rollback import rollback
from .samples import same_law
from .sensitivity import sensitivity
from .target import Approximate, Target
from .twin import twin
from .work import Piece, Progress, run_pieces

# A correct target fails one test with probability 1 - CONFIDENCE at most; a report says what that makes for all tests.
CONFIDENCE = 0.9999


class Planned(NamedTuple):
    """A test, and its options for each effort."""

    test: Callable[..., Result | list[Result]]
    quick: dict[str, int]
    normal: dict[str, int]
    thorough: dict[str, int]
    bound: bool = True
    """Whether it takes a confidence."""


# The longest first, so that no core waits for the last.
TESTS = {
    "neighbours": Planned(neighbours, {"runs": 200}, {"runs": 600}, {"runs": 20_000}),
    "twin": Planned(twin, {"pairs": 60, "keys": 1}, {"pairs": 200, "keys": 1}, {"pairs": 2000}, bound=False),
    "same law": Planned(same_law, {"pairs": 4, "runs": 100}, {"pairs": 12}, {"pairs": 40, "runs": 1000}),
    "approximate": Planned(approximate, {"runs": 600}, {"runs": 2000}, {"runs": 20_000}),
    "rollback": Planned(rollback, {"runs": 100}, {"runs": 120}, {"runs": 3000}),
    "reconstruction": Planned(reconstruction, {"repeats": 4}, {}, {"repeats": 20}),
    "deletions from models": Planned(model_deletions, {"bits": 64}, {"bits": 128}, {"bits": 1024}),
    "likelihood": Planned(likelihood, {"runs": 20_000}, {"runs": 100_000}, {"runs": 1_000_000}),
    "sensitivity": Planned(sensitivity, {"pairs": 60}, {"pairs": 500}, {"pairs": 5000}, bound=False),
    **{
        f"adaptive, {player.name}": Planned(
            partial(adaptive, players=(player,)), {"runs": 100}, {"runs": 150}, {"runs": 3000}
        )
        for player in PLAYERS
    },
    "releases": Planned(releases, {"histories": 8}, {"histories": 30}, {"histories": 300}, bound=False),
    "published noise": Planned(published_law, {"draws": 600}, {"draws": 2400}, {"draws": 20_000}, bound=False),
    "noise": Planned(conformance, {"draws": 12_000}, {"draws": 16_000}, {"draws": 40_000}, bound=False),
}
EFFORTS = ("quick", "normal", "thorough")


def audit_stream(specification: Specification, *, name: str = "stream", **settings: Any) -> Report:
    """A stream from inside and outside. For the settings see `audit_target`."""
    return audit_target(Target.stream(specification, name=name), **settings)


def audit_statistic(
    statistic: Statistic,
    schema: Mapping[str, Field] | Schema,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    horizon: int | None = 100,
    late: bool = True,
    **settings: Any,
) -> Report:
    """A statistic, alone in a stream."""
    budget = {"epsilon": epsilon, "delta": delta, "horizon": horizon, "late": late}
    spec = Specification(schema, {"audited": statistic}, **budget)  # type: ignore[arg-type]
    return audit_stream(spec, **{"name": statistic.kind, **settings})


def audit_algorithm(
    make: Make,
    shape: Shape,
    claim: Guarantee,
    *,
    name: str = "algorithm",
    keyed: bool = True,
    retroactivity: Approximate | None = None,
    **settings: Any,
) -> Report:
    """Any dynamic algorithm, from outside. ``make(key)`` makes one that has seen nothing; ``shape`` says what its
    histories look like; ``keyed``: equal keys give equal answers."""
    return audit_target(Target(name, make, shape, claim, None, keyed, retroactivity), **settings)


def audit_target(
    target: Target,
    *,
    seed: int = 1,
    effort: str = "normal",
    workers: int = 1,
    confidence: float = CONFIDENCE,
    only: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """All tests. ``effort``: quick, normal or thorough. ``workers``: processes, which change no result; a script that
    asks for more than one must be importable (`if __name__ == "__main__"`). ``only``: one test, by its name."""
    if effort not in EFFORTS:
        raise InputError(f"expected one of {', '.join(EFFORTS)}, got {effort!r}", place="effort")
    if only is not None and only not in TESTS:
        raise InputError(f"expected one of {', '.join(TESTS)}, got {only!r}", place="only")
    if not 0.75 <= confidence < 1:
        raise InputError(f"expected a confidence from 0.75 to below 1, got {confidence!r}", place="confidence")
    started = time.monotonic()
    pieces = [
        Piece(name, plan.test, target, getattr(plan, effort) | ({"confidence": confidence} if plan.bound else {}))
        for name, plan in TESTS.items()
        if only == name or (only is None and _applies(name, target))
    ]
    results = sorted(
        run_pieces(pieces, seed, workers=workers, progress=progress),
        key=lambda result: get_args(Part).index(result.part),
    )
    seconds = time.monotonic() - started
    return report_on(target, results, seed=seed, effort=effort, confidence=confidence, seconds=seconds, only=only)


def _applies(name: str, target: Target) -> bool:
    """Equal bytes under every key are more than equal laws; what is claimed to be approximate is not equal."""
    if name == "approximate":
        return target.retroactivity is not None
    if name == "twin":
        return target.retroactivity is None
    return name != "same law" or not target.keyed
