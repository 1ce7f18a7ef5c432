"""What post-processing gets to see, under a test's control."""

from random import Random

import numpy as np

from retroact.statistics.clusters.regions import Reader


class Shown(Reader):
    """A reader that shows the counters of some totals, with noise by name on, whatever the exact ones are."""

    def __init__(self, family, totals, coins, noise=(1.0, 1.0, 1.0), seed=0):
        self.counts, self.denominator, self.looked_at = [], 1, []
        self._known = family.coordinates(totals)
        self._coins, self._deviation, self._seed = coins, noise, seed

    @property
    def coins(self):
        return self._coins.branch("search")

    def read(self, kind, regions, exact):
        self.looked_at.append((kind, regions.tolist()))
        out = np.zeros(exact.shape)
        for i, region in enumerate(regions.tolist()):
            for j in range(exact.shape[1]):
                noise = Random(f"{self._seed} {kind} {region} {j}").gauss(0, self.deviation(kind))
                out[i, j] = self._known.get(((region, j), kind), 0) + noise
        return out

    def deviation(self, kind):
        return self._deviation[kind % len(self._deviation)]
