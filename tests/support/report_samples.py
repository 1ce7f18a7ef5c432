"""A report with every kind of verdict, control and curve, made by hand."""

import math

import msgspec

import retroact as ra
from retroact.audit.report import report_on
from retroact.audit.result import Control, Result, curve
from retroact.audit.target import Target

SCHEMA = {"zip": ra.Integer(0, 9), "age": ra.Integer(0, 120)}


def specification(**changes):
    # fields and statistics that are not in alphabetical order: their order must survive a report
    options = {"epsilon": 1.0, "horizon": 16, **changes}
    return ra.Specification(SCHEMA, {"people": ra.Count(), "mean_age": ra.Mean("age")}, **options)


def _claimed(x):
    return max(1 - math.e * x, (1 - x) / math.e, 0.0)


GRID = [i / 20 for i in range(21)]
ROUNDS = range(1, 31)
TWIN = Result(
    part="retroactivity",
    test="erased lifecycles",
    question="Do answers forget a record that came and went?",
    tried="240 pairs of histories with the same surviving records were run under 2 keys each.",
    runs=480,
    verdict="passed",
    found="All answers from the uniting round on were equal, byte for byte.",
    detectable="a fault in 1 of 105 pairs (probability of a miss: 0.01)",
    control=Control(bug="the answer tells whether a deletion ever found something", caught=True, how="pair 3 differed"),
    measured={"pairs": "240"},
    curves={
        "one": curve((r, 100 + 3 * r + (20 if r < 17 else 0)) for r in ROUNDS),
        "other": curve((r, 100 + 3 * r) for r in ROUNDS),
        "unite": curve([(17, 0)]),
    },
)
LIKELIHOOD = Result(
    part="privacy",
    test="likelihood ratio of people",
    question="Can the best attacker who knows everything but one record tell more than is claimed?",
    tried="100,000 runs on the worst pair of histories that was found; guesses by the likelihood ratio.",
    runs=100_000,
    verdict="passed",
    found="At least ε = 0.479 is shown, of 0.5 claimed.",
    detectable="noise 1.05 times too small",
    control=Control(bug="noise 1.5 times too small", caught=True, how="ε of at least 0.71 was shown"),
    measured={"epsilon": "0.479123", "claimed": "0.5"},
    curves={
        "claimed": curve((x, _claimed(x)) for x in GRID),
        "measured": curve((x, (1 + _claimed(x) - x) / 2) for x in GRID),
    },
)
ADAPTIVE = Result(
    part="privacy",
    test="adversary: toggler",
    question="Does it help to react to answers?",
    tried="An adversary toggled one value in every round.",
    runs=400,
    verdict="inconclusive",
    found="The bound is above the claim, which is for fixed histories only.",
    detectable="noise at least 16 times too small",
)
SAMPLER = Result(
    part="privacy",
    test="exact sensitivity of a sampler",
    question="Can one operation move more than is accounted for?",
    tried="Nothing: a sampler has no noise to compare with.",
    runs=0,
    verdict="not applicable",
    found="Not applicable.",
    detectable="nothing",
)
RECONSTRUCTION = Result(
    part="reconstruction",
    test="distinct counts",
    question="Can secret bits be recovered from many distinct counts?",
    tried="20 secrets of 32 bits were hidden in histories and decoded by linear programming.",
    runs=20,
    verdict="passed",
    found="0.53 of the bits were recovered; privacy allows 0.731 on average.",
    detectable="a share of 0.80",
    control=Control(bug="exact answers, as by retraining", caught=True, how="all bits were recovered"),
    measured={"recovered": "0.53", "ceiling": "0.731059"},
)
RESULTS = [TWIN, LIKELIHOOD, ADAPTIVE, SAMPLER, RECONSTRUCTION]
VIOLATION = msgspec.structs.replace(
    TWIN,
    test="no-op <deletions> & more",
    verdict="violation",
    found="Answers differ after the histories unite.",
    counterexample=["one = ((Add(1, (0, 0)),), ())", "other = ((), ())", "print('<script>alert(1)</script>')"],
)
MISSED = msgspec.structs.replace(TWIN, control=Control(bug="a stale cache", caught=False, how="no pair differed"))


def report(*results, spec=None, seconds=3.25, **changes):
    spec = specification() if spec is None else spec
    options = {"seed": 1, "effort": "quick", "confidence": 0.999, **changes}
    return report_on(Target.stream(spec, name="orders"), list(results or RESULTS), seconds=seconds, **options)
