"""Models of exact sums, with the regularisation that noise would have called for."""

import numpy as np

import retroact as ra


class ExactSums:
    """What `Statistic.answer` reads of noisy totals, without their noise."""

    def __init__(self, totals, deviations):
        self.values, self.deviations = totals.astype(float), deviations


def exact_answer(schema, statistic, columns, *, epsilon, horizon=63):
    spec = ra.Specification(schema, {"model": statistic}, epsilon=epsilon, delta=1e-6, horizon=horizon)
    bound = spec.bounds["model"]
    rows, _ = spec.schema.encode(columns)
    totals = bound.gather(rows, np.ones(rows.count, dtype=np.int64))
    return statistic.answer(ExactSums(totals, bound.noise.deviations(1)), spec.schema)
