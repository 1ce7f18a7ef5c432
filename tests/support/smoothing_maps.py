"""Maps of the smoothing compiler, with short defaults."""

from fractions import Fraction

from retroact.compilers.maps import GaussianMap, RankMap


def gaussian(error=1, alpha=1.0, beta=1e-6, block=1, **options):
    return GaussianMap(**options).at(Fraction(error), Fraction(alpha), Fraction(beta), block)


def ranks(lower, upper, error=1, alpha=1, beta=Fraction(1, 10**6), block=1):
    return RankMap(lower, upper).at(Fraction(error), Fraction(alpha), beta, block)
