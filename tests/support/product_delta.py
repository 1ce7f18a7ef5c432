"""The delta of a product of pairs at a given epsilon, by the profiles of the accountant."""

from __future__ import annotations

from retroact.privacy.composition import SAFE, Lattice, LawPair, binomial_profile, lattice_of, lattice_profile


def product_delta(pair: LawPair, releases: int, epsilon: float) -> float:
    """The smallest delta of the W-fold product at this epsilon, both ways, rounded up.

    >>> product_delta(LawPair.randomised_response(1.0), 3, 3.0)
    0.0
    """
    if epsilon >= releases * max(pair.losses[-1], -pair.losses[0]):
        return 0.0
    if len(pair.losses) == 2:
        ways = [binomial_profile(p, releases).delta(epsilon) for p in (pair, pair.reversed())]
    else:
        lattice = lattice_of(pair, releases)
        ways = [_lattice_delta(one, releases, epsilon) for one in (lattice, lattice.reversed())]
    return min(1.0, max(ways) * (1 + SAFE))


def _lattice_delta(lattice: Lattice, releases: int, epsilon: float) -> float:
    """Every profile bounds delta from above; the one that is precise about what the last one found bounds it best."""
    least, delta = 1.0, 0.5
    for _ in range(20):
        profile = lattice_profile(lattice, releases, delta)
        if epsilon < profile.bottom:
            delta /= 16
        elif (delta := profile.delta(epsilon)) > 0.9 * least:
            return min(least, delta)
        else:
            least = delta
    return least
