"""When a stream has published its last round."""

from __future__ import annotations

from ..messages import plural
from .specification import Specification


def end(spec: Specification, origin: int, round: int, *, followed: bool) -> str | None:
    """Why nothing more is published, with that round open; None if rounds are left. After the end additions still come
    in, and wait for a successor; erasures and deletions by id no longer wait for a round, and are applied at once, to
    the surviving data and to the open round."""
    horizon, count = spec.horizon, spec.rounds.count
    if followed:
        return "this stream has a successor, and publishes nothing more"
    on = "To continue: stream.successor(epsilon=..., horizon=...), whose budget adds to this one's"
    if horizon is not None and round - origin > horizon:
        return f"{_all(horizon, 'promised round')} released; the noise is calibrated to that many and no more. {on}"
    if count is not None and origin < count < round:
        return f"{_all(count, 'round', ' of the grid')} released. {on}"
    return None


def _all(count: int, noun: str, where: str = "") -> str:
    return f"the only {noun}{where} is" if count == 1 else f"all {plural(count, noun)}{where} are"
