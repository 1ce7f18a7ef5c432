"""Exact discrete samples a second of processor time, beside OpenDP's samplers in the same run; medians of three."""

import statistics
import time

import numpy as np
import opendp.prelude as dp

from retroact.coins import DiscreteGaussian, DiscreteLaplace, Key, integer_cells

COUNT = 1 << 20
THEIRS = 20_000


def rate(function, count):
    function()
    times = []
    for _ in range(3):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return count / statistics.median(times)


def ours(law):
    words = Key.for_testing(1).coins("benchmark").words([0], [0], integer_cells(COUNT))
    return rate(lambda: law.sample(words), COUNT)


def theirs(make, scale):
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    if make is dp.m.make_gaussian:
        domain = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = make(*domain, scale=float(scale))
    zeros = np.zeros(THEIRS, dtype=np.int64).tolist()
    return rate(lambda: measurement(zeros), THEIRS)


def main():
    dp.enable_features("contrib")
    print(f"{'law':38}{'retroact M/s':>14}{'OpenDP M/s':>12}{'ratio':>9}")
    for scale in (8, 22, 100, 400, 512, 2_000, 10**6, 10**10):
        mine, other = ours(DiscreteLaplace(scale)), theirs(dp.m.make_laplace, scale)
        print(f"{f'discrete Laplace, scale {scale:,}':38}{mine / 1e6:14.1f}{other / 1e6:12.4f}{mine / other:8.0f}x")
    for sigma in (8, 18, 100, 400, 512, 2_000, 10**6, 10**10):
        mine, other = ours(DiscreteGaussian(sigma**2)), theirs(dp.m.make_gaussian, sigma)
        print(f"{f'discrete Gaussian, sigma {sigma:,}':38}{mine / 1e6:14.1f}{other / 1e6:12.4f}{mine / other:8.0f}x")


if __name__ == "__main__":
    main()
