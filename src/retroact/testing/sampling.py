"""Does a one-shot algorithm get a sample as its guarantee requires?

The algorithm of a `WindowSample` is replaced by one that returns its input, and run through `release` under many keys.
A sample of fixed size k has k of n records, each with probability k / n; a sample by rate q has each copy with
probability q; without either, it has all records. Fresh samples of two releases are independent, persistent ones are
equal.

**Error rate.** The part of the copies of one value that is drawn is in [0, 1], with known mean and variance
(hypergeometric or binomial): Bernstein's inequality, and the union bound over all tests (`judgement.ERROR`).
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from fractions import Fraction
from math import comb
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ..coins import Key
from ..compilers import SampleBound, WindowSample, sample_in
from ..errors import VerificationError
from ..noise import Mechanism
from ..oneshot import BOTTOM
from ..schema import Rows, Schema
from ..stream import Specification
from .claimed_law import ENDLESS
from .judgement import ERROR, Tested, bernstein, often
from .published import CLEAR, Scene
from .records import Record, lattice

FEWEST = 12


class Drawn(NamedTuple):
    """The samples of two releases: how many copies of each value."""

    first: Counter[Any]
    second: Counter[Any] | None


class Drawing(Scene):
    """Some copies of every value, the same in two releases, and an algorithm that returns what it gets."""

    def __init__(self, spec: Specification, name: str, sample: SampleBound, random: Random) -> None:
        spy, spied = copy(sample), copy(spec)
        self.sample = spy.statistic = copy(sample.statistic)
        spy.statistic.of = copy(spy.statistic.of)
        spy.statistic.of.in_release = _counted  # type: ignore[method-assign]
        spied.bounds = {**spec.bounds, name: spy}
        last = spec.releases(name) or ENDLESS
        first, window = max(1, min(3, last - 1)), sample.grant.window
        both = first < last and (window is None or window > spy.statistic.every)
        self.looks, self._limit = ((first, first + 1) if both else (first,)), sample.limit
        super().__init__(spied, name, random, whole=True)

    def _enough(self) -> int:
        """In all."""
        wanted = max(self.sample.size or 0, self.sample.occupancy or 0, FEWEST) * 2
        if self._limit is None:
            return wanted
        limits = [float(self._limit.at(index)) for index in self.looks]
        wide = max(self.bound.noise.deviation_of(0, index) for index in self.looks)
        return max(wanted, int(max(limits) + CLEAR * wide))

    def records(self, index: int, *, other: bool = False) -> list[Record]:
        fields, stamp = self.spec.schema.fields, self.looks[0] * self.sample.every
        records = [Record(dict(zip(fields, value, strict=True)), stamp, 1) for value in self.values]  # type: ignore[call-overload]
        distinct = {self.value(record): record for record in records}
        each = -(-self.copies // len(distinct))
        return [record._replace(copies=each + number) for number, record in enumerate(distinct.values())]

    def value(self, record: Record) -> tuple[Any, ...]:
        """What the algorithm reads of a record."""
        schema = self.spec.schema
        return tuple(lattice(schema.fields[name], record.value[name]) for name in self.sample.of.reads(schema))

    def drawn(self, key: Key) -> Drawn:
        noise = self.noise(key)
        seen = [self.release(noise, noise, index).answer.value for index in self.looks]
        if BOTTOM in seen:
            raise VerificationError(f"sample of {self.name}: no answer with {self.copies:,} live records or more")
        return Drawn(seen[0], seen[1] if len(seen) > 1 else None)


def check_sample(spec: Specification, name: str, random: Random, *, keys: int = 300) -> Tested | None:
    """Raises if the claimed sampling is refuted; returns the test with the smallest probability, or None if there is no
    sample."""
    bound = sample_in(spec.bounds[name])
    if bound is None:
        return None
    scene = Drawing(spec, name, bound, random)
    live = [record for record in scene.records(1) if scene.definition.counts(record.value)]
    if not live:
        return None  # no record meets the conditions
    copies = Counter({scene.value(record): record.copies for record in live})
    tests = list(_tests(scene.sample, copies, [scene.drawn(Key.for_testing(seed + 1)) for seed in range(keys)]))
    worst = min(tests, key=lambda tested: tested.chance)
    if worst.chance * len(tests) <= ERROR:
        raise VerificationError(f"sample of {name}: refuted by {keys} keys: {worst.asked}")
    return worst


def _counted(rows: Rows, schema: Schema, noise: Mechanism, index: int, round: int) -> Counter[Any]:
    columns = [[tuple(row) for row in c.tolist()] if c.ndim > 1 else c.tolist() for c in rows.columns.values()]
    return Counter(zip(*columns, strict=True))


def _tests(sample: WindowSample, copies: Counter[Any], drawn: list[Drawn]) -> list[Tested]:
    live, keys = copies.total(), len(drawn)
    fixed = sample.size is not None
    part = Fraction(min(sample.size or 0, live), live) if fixed else Fraction(1 if sample.rate is None else sample.rate)
    tests = []
    strange = [value for one in drawn for value in one.first if one.first[value] > copies[value]]
    if strange:
        tests.append(Tested(0.0, "records in a sample that are not live"))
    if part == 1 or fixed:
        wrong = any(one.first.total() != part * live for one in drawn)
        tests.append(Tested(0.0 if wrong else 1.0, "the size of a sample"))
    if drawn[0].second is not None and part < 1 and not sample.persistent:
        same = sum(one.first == one.second for one in drawn)
        likeliest = min(_likeliest(count, live, sample.size, part) for count in copies.values())
        tests.append(Tested(often(same, keys, likeliest), "the memory between samples: the same sample again"))
    for value, count in copies.items():
        parts = np.array([[one.first[value], (one.second or one.first)[value]] for one in drawn]) / count
        mean = float(part)
        variance = mean * (1 - mean) / count
        if fixed and live > 1:
            variance *= (live - count) / (live - 1)
        off = abs(float(parts[:, 0].mean()) - mean)
        tests.append(Tested(bernstein(off - 1e-9, variance, keys, 1.0), "how often a record is drawn"))
        if drawn[0].second is None or part == 1:
            continue
        if sample.persistent:
            wrong = bool((parts[:, 0] != parts[:, 1]).any())
            tests.append(Tested(0.0 if wrong else 1.0, "a persistent sample that changes"))
        else:
            together = ((parts[:, 0] - mean) * (parts[:, 1] - mean)).mean()
            tests.append(Tested(bernstein(abs(float(together)), variance**2, keys, 1.0), "the memory between samples"))
    return tests


def _likeliest(count: int, live: int, size: int | None, part: Fraction) -> float:
    """The probability of the likeliest number of copies of one value in a sample: independent samples agree in it at
    most this often."""
    if size is None:
        return max(float(comb(count, k) * part**k * (1 - part) ** (count - k)) for k in range(count + 1))
    chosen, whole = min(size, live), comb(live, min(size, live))
    return max(
        float(Fraction(comb(count, k) * comb(live - count, chosen - k), whole)) for k in range(min(count, chosen) + 1)
    )
