"""What the guarantee asks of every noise of a statistic: by budget, norms and the sensitivity of its process."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ..coins import Coins
from ..compilers import sample_in
from ..noise import Mechanism, Process
from ..privacy import Share
from ..statistics import Layout, Restated
from ..statistics.restated import Lagged
from ..stream import Specification

# Rounds that are looked at where a stream has no end.
ENDLESS = 1 << 20


class Claim(NamedTuple):
    """What a guarantee asks of one noise."""

    layout: Layout
    share: Share
    process: Process


def claims(spec: Specification, name: str, coins: Coins | None = None) -> Iterator[tuple[str, int, Claim, Mechanism]]:
    """Every noise of a statistic: its name, how many releases later than the statistic it begins, what is claimed of
    it, and the mechanism that draws it."""
    statistic, share = spec.statistics[name], spec.shares[name]
    layout = spec.bounds[name].layout
    noise = spec.mechanism(name, coins or Coins(bytes(32)))
    sample = sample_in(spec.bounds[name])
    if sample is not None:
        if sample.limit is not None:  # the rest of it has no noise
            yield f"{name}, gate", 0, Claim(layout, noise.share, spec.processes[name]), noise
        return
    if not isinstance(noise, Lagged) or not isinstance(statistic, Restated):
        yield name, 0, Claim(layout, share, spec.processes[name]), noise
        return
    part = share if noise.shared else Share(share.kind, share.amount / len(statistic.lags))
    for lag, mechanism in zip(statistic.lags, noise.parts, strict=True):
        yield f"{name}, lag {lag}", -(-lag // statistic.every), Claim(layout, part, mechanism.process), mechanism


def claimed_size(claim: Claim, level: int, unit: int) -> Fraction:
    """The scale (pure) or the variance (Gaussian) that the guarantee asks of a node, in units of the data, by the
    sensitivity that its process declares (which `check_sensitivity` tries to refute)."""
    layout, share, process = claim
    if share.kind == "pure":
        return unit * layout.norm1 * process.l1 * process.spread(level, 1) / share.amount
    return unit**2 * layout.norm2_squared * process.l2_squared * process.spread(level, 2) / share.amount
