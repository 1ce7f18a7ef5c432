"""Noise is a function of key and name: two noises of one name are equal, and cancel each other."""

from __future__ import annotations

from ..coins import Coins, integer_cells
from ..compilers import sample_in
from ..statistics.restated import Lagged
from ..stream import Specification
from .check import Check, Finding
from .drawn_noise import SOME, is_dense
from .seeds import Seeds

# Stands for the coins of a statistic themselves: no process has this level.
NO_LEVEL = (1 << 32) - 1
Named = list[tuple[str, bytes]]


def names_of(spec: Specification, name: str, coins: Coins) -> Named:
    """The coins of a statistic, and those of some of its nodes and coordinates: a description of each, and its first
    bits."""
    noise = spec.mechanism(name, coins)
    out = [(name, _bits(noise.coins, NO_LEVEL, 0, 0))]
    parts = {name: noise}
    if isinstance(noise, Lagged) and not noise.shared:  # lags that share their noise have the same coins
        parts = {f"{name}, lag part {number}": part for number, part in enumerate(noise.parts)}
    elif not spec.bounds[name].additive and ((sample := sample_in(spec.bounds[name])) is None or not sample.noisy):
        return out
    for who, part in parts.items():
        terms = part.process.at(1)
        for coordinate in range(min(SOME, part.size)):
            own, cell = (
                (part.coins, coordinate) if is_dense(spec, name) else (part.coins.branch("coordinate", coordinate), 0)
            )
            for level, index in zip(terms.levels.tolist(), terms.indices.tolist(), strict=True):
                named = f"{who}, coordinate {coordinate}, node ({level}, {index})"
                out.append((named, _bits(own, level, index, cell)))
    return out


def _bits(coins: Coins, level: int, index: int, cell: int) -> bytes:
    high, low = coins.words([level], [index], integer_cells(cell + 1)[cell:]).block(0)
    return high.tobytes() + low.tobytes()


class SharedNames(Check[Named]):
    question = "Does every noise have its own coins, or do two share theirs, so that their difference has none?"

    def run(self, target: Named, seeds: Seeds) -> Finding:
        seen: dict[bytes, str] = {}
        equal = [(seen[bits], name) for name, bits in target if seen.setdefault(bits, name) != name]
        return Finding(
            tried=f"The first 128 bits behind {len(target):,} noises under one key, all compared: of all statistics, "
            "lags, some coordinates and nodes.",
            runs=len(target),
            verdict="violation" if equal else "passed",
            found=f"The same bits: {equal[0][0]} and {equal[0][1]}; {len(equal):,} such pairs in all."
            if equal
            else "No two are equal.",
            detectable="Any two of these that have the same name: bits that are equal by chance have probability below "
            f"{len(target) ** 2 / 2**129:.6g}.",
            counterexample=lambda: [f"{one} = {other}" for one, other in equal[:20]],
        )

    def planted(self, target: Named) -> list[list[tuple[str, Named]]]:
        copies = [(f"a copy of {name}", bits) for name, bits in target]
        return [[("every statistic a second time under its own name", [*target, *copies])]]
