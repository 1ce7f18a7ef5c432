"""What to expect of a sample before anything is released: errors in ranks, and how many live records it takes.

Sampling is for algorithms that are expensive to run. It never needs fewer live records than running on the whole window
with less to spend in each run, and a plan says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import InputError
from ..schema import Schema
from ..statistics.grant import Grant

if TYPE_CHECKING:
    from .sample_bound import SampleBound
    from .window_sample import WindowSample

BETA = 0.05
# Sampling rates that a plan tries, and a sample size for trying them.
RATES = tuple(Fraction(1, 4**i) for i in range(1, 6))
TRIAL = 10_000


def rank_error(sample: WindowSample, schema: Schema, records: int, beta: float) -> float:
    """How many ranks of a window of ``records`` records the answer is off at most, with probability 1 - beta; not a
    number where that is unknown.

    The answer is off by r ranks of the sample; the sample of k records errs by at most sqrt(ln(4 / beta) / 2k) in any
    fraction (Dvoretzky, Kiefer, Wolfowitz and Massart; sampling without replacement errs less), half of beta each.
    """
    drawn = sampling_error(sample, records, beta)
    own = sample.of.rank_error(schema, beta / 2 if drawn else beta)
    return math.nan if own is None else min(float(records), own * records / _seen(sample, records) + drawn)


def sampling_error(sample: WindowSample, records: int, beta: float) -> float:
    """The part of it that comes from sampling, at any budget."""
    seen = _seen(sample, records)
    return 0.0 if seen >= records else records * math.sqrt(math.log(4 / beta) / (2 * seen))


def _seen(sample: WindowSample, records: int) -> float:
    """How many of ``records`` live records the algorithm sees."""
    if sample.size is not None:
        return min(sample.size, records)
    return float(sample.rate or 1) * records


def outlook(bound: SampleBound) -> Iterator[str]:
    """The lines of a plan: what one run spends by which bound, how many records it takes, and what would take fewer."""
    sample, grant, cost = bound.statistic, bound.grant, bound.cost
    spent = f"ε = {float(sample.of.contract.epsilon):.4g}"
    reach = f"{grant.reach:,} release{'s' * (grant.reach != 1)}"
    known = "" if math.isnan(rank_error(sample, grant.schema, 1, BETA)) else "errors are in ranks (records); "
    yield f"{known}each run spends {spent}; one record is in at most {reach} ({sample.form}, {cost.bound})"
    if bound.limit is not None:
        first, sure = float(bound.limit.at(1)), _sure(bound)
        yield f"⊥ until the noisy count of live records reaches {first:,.0f}; almost sure to answer from {sure:,.0f} on"
    seen = sample.of.needed(grant.schema, BETA)
    if seen is None:
        return
    if sample.size is not None and seen > sample.size:
        yield f"the sample is too small: at what a run may spend it takes {seen:,} records to find a point of the data"
    else:
        own = _needed(bound, seen)
        yield f"{own:,} live records are enough for an answer within the data (probability {1 - BETA:.2f})"
    found = {
        "the whole window": _at(sample.replaced(), grant, BETA),
        "a Poisson sample": _poisson(sample, grant),
        "a fixed size behind a gate": _fixed(sample, grant),
    }
    others = ", ".join(f"{name} {live:,}" for name, live in found.items() if live is not None)
    yield f"at best, with the same budget: {others}; sample where the algorithm is expensive to run"


def _sure(bound: SampleBound) -> int:
    """How many live records make it all but certain that a gate opens: the noise may subtract what the margin adds."""
    limit = bound.limit
    if limit is None:
        return 0
    over = float(limit.at(1) - limit.records) if limit.margin is not None else bound.noise.half_width(1, 0, 0.998)
    return math.ceil(limit.at(1) + Fraction(over))


def _needed(bound: SampleBound, seen: int) -> int:
    sample, grant, opened = bound.statistic, bound.grant, _sure(bound)
    if sample.rate is not None:
        return max(opened, drawn_from(sample.of.needed(grant.schema, BETA / 2) or seen, sample.rate))
    return max(seen, sample.occupancy or 0, opened)


def _poisson(sample: WindowSample, grant: Grant) -> int | None:
    found = [(_at(sample.replaced(rate=rate), grant, BETA / 2), rate) for rate in RATES]
    return min((drawn_from(seen, rate) for seen, rate in found if seen is not None), default=None)


def _fixed(sample: WindowSample, grant: Grant) -> int | None:
    """What one run may spend depends on the fraction of the window that is drawn, and hardly on its size: first the
    fraction, then the size, then the gate for it."""
    found = []
    for rate in RATES if grant.failure else ():
        seen = _at(sample.replaced(size=TRIAL, gate=math.ceil(TRIAL / rate)), grant, BETA)
        found += [] if seen is None else [(math.ceil(seen / rate), seen)]
    if not found:
        return None
    gate, size = min(found)
    chosen = sample.replaced(size=size, gate=gate)
    return _sure(chosen.bind(replace(grant, noise=chosen.preferred(grant))))


def _at(sample: WindowSample, grant: Grant, beta: float) -> int | None:
    """How many records the algorithm must see with what such a sample lets it spend."""
    try:
        return sample.resolved(grant).of.needed(grant.schema, beta)
    except InputError:
        return None


def drawn_from(seen: int, rate: Fraction) -> int:
    """How many live records yield ``seen`` at this rate with probability 1 - beta / 2 (normal approximation)."""
    z = 1.96
    return math.ceil((seen + z * z / 2 + z * math.sqrt(seen + z * z / 4)) / rate)
