"""The smoothing compiler: what it publishes, whose error it states, and an attack on it."""

import doctest
import importlib
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import retroact as ra
from block_attack import audit_blocks, audit_tracker
from grudge import Grudge
from retroact.audit.bounds import binomial_lower
from retroact.coins import Key
from retroact.compilers.maps import GaussianMap, Map, RankMap
from retroact.compilers.smooth import Smoothed, smooth
from retroact.errors import InputError, KeyReusedError
from retroact.ledger.definition import Add, Delete
from retroact.privacy import Guarantee, PureDP
from retroact.stateful import FlippancyTracker, MedianTracker, Stateful
from support.smoothing_maps import ranks

AUDIT_RUNS = 20_000
HISTORY = ((Add("x"), Add("y")), (Delete("x", 1),), (), (Add("z"),))


def tracker(seed=1):
    return FlippancyTracker(100, epsilon=1.0, delta=1e-6, flips=1, key=Key.for_testing(seed))


# What is published ----------------------------------------------------------------------------------------------------


def test_same_key_same_bytes():
    runs = []
    for base, own in ((1, 2), (1, 2), (1, 3), (4, 2)):
        made = smooth(tracker(base), error=50, failure=0, key=Key.for_testing(own))
        runs.append([made.close(updates).encode() for updates in HISTORY])
    assert runs[0] == runs[1]
    assert all(a != b for a, b in zip(runs[0], runs[2], strict=True))
    assert all(a != b for a, b in zip(runs[0], runs[3], strict=True))


def test_the_noise_is_fresh_in_every_round_and_has_its_law():
    """The answers of the base are 0 less E, so what is left is the noise."""
    made = smooth(Grudge(Fraction(1)), error=1, failure=0, key=Key.for_testing(1))
    draws = [made.close(()) for _ in range(2000)]
    noise = np.array([float(answer.value + 1) for answer in draws]) / made.map.sigma
    assert [answer.round for answer in draws] == list(range(1, 2001))
    assert len(set(noise.tolist())) == 2000
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.12


def test_vectors():
    class Pair(Stateful):
        guarantee = Guarantee(PureDP(1.0), 1.0, unit="one operation")

        def close(self, updates):
            return (len(updates), Fraction(1, 3))

    made = smooth(Pair(), error=1, failure=0, dimension=2, key=Key.for_testing(1))
    answer = made.close(HISTORY[0])
    assert len(answer.value) == 2
    assert answer.encode() == repr((1, str(answer.value[0]), str(answer.value[1]))).encode()
    assert made.guarantee.unit == "one operation (private, marginally approximately retroactive)"
    with pytest.raises(InputError, match="expected 1 numbers, got 2"):
        smooth(Pair(), error=1, failure=0, key=Key.for_testing(1)).close(())


def test_guarantee_retroactivity_and_accuracy():
    made = smooth(tracker(), error=50, failure=1e-3, key=Key.for_testing(2))
    own = made.base.guarantee
    assert (made.guarantee.epsilon, made.guarantee.delta, made.guarantee.measure) == (
        own.epsilon,
        own.delta,
        own.measure,
    )
    assert "not retroactive" not in made.guarantee.text
    assert "E = 50 of the truth with probability 1 - 0.001 (retroactivity needs it, not privacy)" in made.guarantee.text
    text = made.retroactivity.text
    for part in ("marginally approximately retroactive", "E = 50", "promise of the caller", "1 - 0.001",
                 "as private as before", "not retroactive", "nothing will show it"):  # fmt: skip
        assert part in text
    found = made.accuracy(100, 1e-6)
    assert found.error == pytest.approx(50 + made.map.error(1e-6))
    assert found.failure == pytest.approx(1e-3 + 1e-4)
    assert made.retroactivity.alpha(1e-3 + 1e-6) == pytest.approx(1.0, rel=1e-3)
    again = smooth(tracker(), error=50, failure=1e-3, key=Key.for_testing(3))
    assert again.retroactivity == made.retroactivity
    assert smooth(tracker(), error=51, failure=0, key=Key.for_testing(3)).retroactivity != made.retroactivity


def median_tracker(**options):
    given = {"epsilon": 8.0, "delta": 1e-6, "records": 100_000, "key": Key.for_testing(1), **options}
    return MedianTracker(0, 2**16 - 1, 15, **given)


# Whose error it is ----------------------------------------------------------------------------------------------------


def test_a_base_that_knows_its_error_decides():
    base = median_tracker()
    own = base.error(1e-4)
    options = {"failure": 1e-4, "map": RankMap(0, 2**16 - 1), "key": Key.for_testing(2)}
    assert own > 1000
    for smaller in (1, own - 1, math.nextafter(own, 0)):
        with pytest.raises(InputError, match=r"at least 8790\.29, the error of MedianTracker .* at error"):
            smooth(base, error=smaller, **options)
    left_out, given, larger = (smooth(base, error=error, **options) for error in (None, own, 2 * own))
    assert left_out.error == given.error == Fraction(own)
    assert larger.error == 2 * Fraction(own)
    assert "what MedianTracker states about its own error" in left_out.retroactivity.text
    assert "promise of the caller" not in left_out.retroactivity.text


def test_no_error_is_taken_where_the_base_promises_none():
    """Blocks are made for a chance of failure: nothing is proven for a much smaller one."""
    for failure in (0, 1e-9):
        for error in (None, 10**9):
            with pytest.raises(InputError, match="promises nothing there - at failure"):
                smooth(median_tracker(), error=error, failure=failure, map=RankMap(0, 2**16 - 1))


def test_a_base_that_does_not_know_its_error_must_be_told_one():
    assert tracker().error(1e-4) is None
    with pytest.raises(InputError, match="since FlippancyTracker does not know its own error, got none - at error"):
        smooth(tracker(), failure=1e-4, key=Key.for_testing(2))
    assert "promise of the caller" in smooth(tracker(), error=50, failure=1e-4).retroactivity.text


PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_documented_examples_rest_on_an_error_that_holds(monkeypatch):
    """The base states it itself."""
    bases, plain = [], Smoothed.__init__

    def watched(self, base, *rest):
        bases.append(type(base).__name__)
        plain(self, base, *rest)

    monkeypatch.setattr(Smoothed, "__init__", watched)
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            if "smooth(" in block:
                exec(compile(block, page.name, "exec"), {"ra": ra})
    documented = len(bases)
    for module in ("compilers.smooth", "compilers.maps", "compilers.closeness", "audit.approximate"):
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        doctest.testmod(importlib.import_module(f"retroact.{module}"), optionflags=flags)
    assert documented >= 1
    assert set(bases) == {"MedianTracker"}


def test_the_chance_of_failure_is_not_left_out():
    with pytest.raises(TypeError, match="failure"):
        smooth(tracker(), error=50, key=Key.for_testing(2))


def test_ranks_err_by_a_finite_number_in_domains_beyond_floats():
    beta = 2.0**-20
    small, large = (ranks(0, 2**bits - 1, error=10) for bits in (1000, 4000))
    # Linear in the number of bits: one more costs ln 2 over the rate.
    assert large.error(beta) - small.error(beta) == pytest.approx(3000 * math.log(2) / float(small.rate))
    for bits in (1022, 1023, 1024, 1100):
        found = ranks(0, 2**bits - 1, error=10).error(1e-3)
        assert found == pytest.approx((bits * math.log(2) + math.log(1e3)) * 40, rel=1e-3)
    base = MedianTracker(0, 2**1100 - 1, 3, epsilon=60, delta=1e-6, records=1000, key=Key.for_testing(1))
    made = smooth(base, failure=1e-4, map=RankMap(0, 2**1100 - 1), key=Key.for_testing(2))
    assert float(made.error) < made.accuracy(3).error < math.inf


@pytest.mark.parametrize("block", [1, 16, 1000])
@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_blocks_are_calibrated(block, calibration):
    made = smooth(tracker(), error=50, failure=0, block=block, calibration=calibration, key=Key.for_testing(2))
    found = made.retroactivity.alpha(1e-6, block)
    assert found <= 1 + 1e-9
    assert found > (0.999 if calibration == "exact" else 0.7)
    assert made.retroactivity.alpha(1e-6, 4 * block) > 1
    assert f"{16 * block:,} consecutive answers" in made.retroactivity.text


def test_a_map_of_ones_own_is_held_to_the_promise():
    wide, narrow = (GaussianMap(sigma=sigma) for sigma in (850, 800))
    assert smooth(tracker(), error=100, failure=0, map=wide, key=Key.for_testing(1)).map is wide
    with pytest.raises(InputError, match=r"hides 2E = 200 .* with alpha = 1\.0[67].* at beta = 1e-06, more than 1"):
        smooth(tracker(), error=100, failure=0, map=narrow, key=Key.for_testing(1))

    class Coin(Map):
        """Forgets the answer."""

        def spec(self):
            return {"type": "coin"}

        def closeness(self, distance, block=1):
            return PureDP(0.0)

        def error(self, beta):
            return math.inf

        def apply(self, answer, coins):
            return 7

    assert smooth(tracker(), error=1, failure=0, map=Coin(), key=Key.for_testing(1)).close(()).value == 7


class Failing(Stateful):
    """Refuses a round once; its answers count rounds."""

    def __init__(self):
        self.rounds = 0

    @property
    def guarantee(self):
        return Guarantee(PureDP(1.0), 1.0, unit="one operation (private, not retroactive)")

    def close(self, updates):
        if updates:
            raise InputError("no", place="updates")
        self.rounds += 1
        return self.rounds


def test_where_the_base_raises_nothing_advances():
    made, undisturbed = (smooth(Failing(), error=1, failure=0, key=Key.for_testing(1)) for _ in range(2))
    first = made.close(())
    with pytest.raises(InputError, match="no - at updates"):
        made.close((Add("x"),))
    assert [first.encode(), made.close(()).encode()] == [undisturbed.close(()).encode() for _ in range(2)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"error": 0}, "error"), ({"error": -1}, "error"), ({"error": math.inf}, "error"), ({"error": "1"}, "error"),
        ({"alpha": 0}, "alpha"), ({"alpha": -1.0}, "alpha"), ({"alpha": math.nan}, "alpha"), ({"alpha": 1001}, "alpha"),
        ({"beta": 0}, "beta"), ({"beta": 1}, "beta"), ({"beta": 1e-70}, "beta"), ({"beta": True}, "beta"),
        ({"failure": 1}, "failure"), ({"failure": -0.1}, "failure"), ({"block": 0}, "block"), ({"block": 1.0}, "block"),
        ({"calibration": "loose"}, "calibration"), ({"dimension": 0}, "dimension"), ({"map": 3}, "map"),
        ({"alpha": 2, "calibration": "paper"}, "alpha"), ({"alpha": 1e-13, "beta": 1e-13}, "alpha"),
        ({"key": b"secret"}, "key"),
        ({"error": 1e-300, "map": GaussianMap(sigma=1e-301)}, "map"), ({"map": GaussianMap(), "dimension": 2}, "map"),
        ({"map": GaussianMap(), "calibration": "paper"}, "map"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_refused(change, place):
    key = Key.generate()
    options = {"error": 10, "failure": 0, "key": key, **change}
    with pytest.raises(InputError) as caught:
        smooth(tracker(), **options)
    assert caught.value.place == place
    smooth(tracker(), error=10, failure=0, key=key)  # still free


def test_a_key_drives_one():
    key = Key.generate()
    smooth(tracker(), error=10, failure=0, key=key)
    with pytest.raises(KeyReusedError):
        smooth(tracker(), error=10, failure=0, key=key)
    assert isinstance(smooth(tracker(), error=10, failure=0), Smoothed)


def test_what_is_retroactive_is_not_smoothed():
    stream = ra.Stream({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=1.0, horizon=4, key=Key.for_testing(1))
    with pytest.raises(InputError, match="already exactly retroactive, and smoothing would only add noise"):
        smooth(stream, error=10, failure=0)
    for wrong in (FlippancyTracker, 3, None, smooth(tracker(), error=10, failure=0)):
        with pytest.raises(InputError, match="expected a stateful algorithm, got") as caught:
            smooth(wrong, error=10, failure=0)
        assert caught.value.place == "stateful"


# An attack ------------------------------------------------------------------------------------------------------------


def test_an_attack_stays_below_the_claim_and_comes_near():
    rows = {row.block: row for row in audit_blocks((1, 4, 16, 64, 256), runs=AUDIT_RUNS)}
    for row, exact in zip(rows.values(), (0.78, 1.54, 3.09, 6.43, 14.39), strict=True):
        assert row.audited <= row.exact <= row.paper
        assert round(row.exact, 2) == exact
    for block in (16, 64, 256):
        assert rows[block].audited > 0.95 * rows[block].exact
    assert rows[4].audited > 0.85 * rows[4].exact


def test_an_understated_error_is_found_out():
    """The promise matters: a base that errs by three times E breaks the claim, and the attack shows it."""
    (row,) = audit_blocks((16,), runs=2000, understated=Fraction(3))
    assert row.audited > 2 * row.exact


def test_binomial_bounds():
    for successes, trials in ((0, 10), (1, 10), (57, 100), (10_000, 19_000), (50, 50)):
        expected = stats.beta.ppf(0.01, successes, trials - successes + 1) if successes else 0.0
        assert binomial_lower(successes, trials, 0.99) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_what_a_tracker_remembers_shows_until_the_noise_hides_it():
    error, (bare, little, much) = audit_tracker((0.0, 0.25, 4.0), blocks=(1, 16), horizon=1024, runs=150)
    assert min(bare.audited) > 1
    assert 0 < little.audited[1] < little.claimed[1]
    assert max(much.audited) < 0.5
    assert error > 20
