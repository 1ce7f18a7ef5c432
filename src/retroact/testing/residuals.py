"""The law of what is published: residuals over many keys, against the law that the budget requires.

Releases of several rounds are taken under every key. What they publish, less the exact totals of `definitions`, is a
residual for each coordinate and round, which `judgement` compares with the claim. Where one coordinate decides whether
another is read (intervals of a quantile, cells of a cluster), that choice does not depend on the noise of the latter,
so the residuals that there are have the claimed law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from ..coins import Key
from ..noise import Oblivious
from ..statistics import Quantiles
from .check import require
from .claimed_law import Nodes, claims
from .definitions import Coordinate
from .judgement import Conformance, NoiseKind
from .noise_law import NoiseLaw
from .published import Scene, looked_at, parts_of
from .seeds import Seeds

# Releases that are taken under each key.
LOOKS = 6
# The most coordinates of one kind.
MOST = 64
# A coordinate counts if it is there under each of this many first keys.
PILOT = 8
PUBLISHED = (
    "Is what {self.name!r} publishes off from the truth by the noise that is claimed: in size, in its tails, in its "
    "memory between rounds, and independently from number to number?"
)


def check_residuals(
    scene: Scene, *, keys: int, first: int = 1, looks: Sequence[int] | None = None
) -> Conformance | None:
    """Raises if the claim is refuted; returns None where there is no noise of a known law."""
    check, kinds = published_noise(scene, keys=keys, first=first, looks=looks)
    found = require(check, kinds, Seeds(first), what=f"noise law of {scene.name}") if kinds else None
    return None if found is None else found.value


def published_noise(
    scene: Scene, *, keys: int, first: int = 1, looks: Sequence[int] | None = None
) -> tuple[NoiseLaw, list[NoiseKind]]:
    """The check of what is published under this many keys, and its target."""
    kinds = residuals(scene, keys=keys, first=first, looks=looks)
    seen = sorted({look for kind in kinds for look in kind.looks})
    tried = (
        f"{keys:,} keys, releases {', '.join(f'{look:,}' for look in seen)}: the published noisy totals less exact "
        "totals that were added up record by record, against the law that budget, norms and declared sensitivity ask "
        "for, computed from its characteristic function."
    )
    return NoiseLaw(scene.name, keys, tried, PUBLISHED), kinds


def enough_keys(scene: Scene, draws: int) -> int:
    """Enough keys for this many draws of noise of one kind, at least 64."""
    look = scene.look(Key.for_testing(0), 1)
    kinds = Counter(_kind(scene, parts_of(look.noise)[where.view].units[where.place], where) for where in look.noisy)
    return max(64, -(-draws // max(kinds.values(), default=1)))


def _kind(scene: Scene, unit: int, where: Coordinate) -> tuple[int, int, int]:
    """Coordinates that are compared with one another: of one view and unit, and of one depth in a tree, where nodes
    decide whether those below them are read."""
    depth = where.name[1] if isinstance(scene.definition.inner, Quantiles) else 0  # type: ignore[index]
    return where.view, unit, depth


def residuals(scene: Scene, *, keys: int, first: int = 1, looks: Sequence[int] | None = None) -> list[NoiseKind]:
    """What is published less what is true, under this many keys, for each kind of coordinates with one law."""
    if isinstance(scene.statistic.noise, Oblivious) or not scene.bound.additive:
        return []
    indices = list(looks or looked_at(scene, Random(first), LOOKS))
    found: dict[Coordinate, dict[tuple[int, int], float]] = {}
    fineness = [1] * len(indices)
    for number in range(keys):
        noise = scene.noise(Key.for_testing(first + number))
        for at, index in enumerate(indices):
            look = scene.under(noise, index)
            exact, below = scene.exact(look.noise, index), look.published.denominator
            fineness[at] = below
            for where, total in look.noisy.items():
                if number < PILOT or where in found:
                    found.setdefault(where, {})[number, at] = float(total - exact.get(where, 0) * below) / below
    return list(_kinds(scene, found, indices, fineness, keys))


def _kinds(
    scene: Scene,
    found: dict[Coordinate, dict[tuple[int, int], float]],
    looks: list[int],
    fineness: list[int],
    keys: int,
) -> Iterator[NoiseKind]:
    groups: dict[tuple[int, int, int], list[Coordinate]] = {}
    laws = [(claim, mechanism) for _, _, claim, mechanism in claims(scene.spec, scene.name)]
    for where in found:
        unit = laws[where.view][1].units[where.place]
        groups.setdefault(_kind(scene, unit, where), []).append(where)
    for (view, unit, _), members in groups.items():
        always = [w for w in members if sum(number < PILOT for number, _ in found[w]) >= PILOT][:MOST]
        if not always:
            continue
        values = np.full((len(always), keys, len(looks)), np.nan)
        for row, where in enumerate(always):
            for (number, at), residual in found[where].items():
                values[row, number, at] = residual
        there = [at for at in range(len(looks)) if not np.isnan(values[:, :, at]).all()]
        claim = laws[view][0]
        nodes = Nodes(claim, unit, {looks[at]: fineness[at] for at in there})
        yield NoiseKind(f"{always[0].place}" + (f", view {view}" * bool(view)), nodes, [looks[at] for at in there],
                   values[:, :, there])  # fmt: skip
