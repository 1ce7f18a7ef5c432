"""Numbers of 64 bits that a promise rests on: totals, names of noise, chances of failure. Each is refused beyond what
they hold, and never wrapped around."""

from fractions import Fraction
from math import log, log1p, pi, sqrt

import msgspec
import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins
from retroact.ledger import Ledger, Stamped
from retroact.ledger.codec import Records, to_bytes
from retroact.noise import Bridge, Fresh, Mechanism
from retroact.noise.threshold import GaussianThreshold
from retroact.paper import PaperThreshold
from retroact.privacy import Share
from retroact.schema import Rows, Schema

SCHEMA = {"n": ra.Integer(0, 2**30)}
LARGEST = 2**62 // 2**30  # records of 2^30 each that a total holds


def state_of(spec, count):
    """A state in which one record has so many copies."""
    rows = Rows({"n": np.array([2**30])}, 1)
    held = Stamped(rows, np.array([1]), copies=np.array([count]))
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    stream.close_round()
    parts = list(msgspec.msgpack.decode(stream.state()))
    return msgspec.msgpack.encode([*parts[:-1], to_bytes(Schema(SCHEMA), held)])


def test_a_state_with_more_records_than_totals_hold_is_refused():
    """Not taken, with a total that has wrapped around: 2^35 copies of 2^30 are -2^63 or 0 in 64 bits."""
    spec = ra.Specification(SCHEMA, {"s": ra.Sum("n")}, epsilon=1.0, horizon=7)
    assert spec.capacity == LARGEST
    full = ra.Stream.from_state(spec, state_of(spec, LARGEST), key=ra.Key.for_testing(1))
    assert full.close_round()["s"].value == pytest.approx(2**62, rel=1e-3)
    with pytest.raises(ra.InputError, match="expected at most 4,294,967,296 records"):
        full.add({"n": 1})
    for beyond in (LARGEST + 1, 2**33, 2**34, 2**62):
        with pytest.raises(ra.InputError, match="expected at most 4,294,967,296 records"):
            ra.Stream.from_state(spec, state_of(spec, beyond), key=ra.Key.for_testing(1))


def test_copies_whose_number_leaves_64_bits_are_refused_wherever_they_come_from():
    rows = Rows({"n": np.array([1, 2])}, 2)
    held = Stamped(rows, np.array([1, 1]), copies=np.array([2**62, 2**62]))
    records = Records.of(held, Schema(SCHEMA))
    for load in (lambda: Ledger.of(records), lambda: Ledger.from_state(Schema(SCHEMA), bytes_of(held))):
        with pytest.raises(ra.InputError, match="expected counts whose sum fits 64 bits"):
            load()


def bytes_of(held):
    return to_bytes(Schema(SCHEMA), held)


def test_no_two_nodes_of_noise_share_a_name():
    """Levels and indices share a word in a block of rounds: one that does not fit would be a node of another level."""
    share, one = Share("pure", Fraction(1)), Fraction(1)
    noise = Mechanism(Fresh(3), share, units=(1,), norm1=one, norm2_squared=one).under(Coins(bytes(32)))
    noise.draw(2**48 - 1)
    with pytest.raises(ra.InputError, match=r"indices below 2\^48"):
        noise.draw(2**48)
    with pytest.raises(ValueError, match=r"levels below 2\^32"):
        Coins(bytes(32)).words([2**32], [0]).block(0)
    first, second = (Coins(bytes(32)).words([level], [0]).block(1)[0] for level in (0, 2**32 - 1))
    assert first != second


def test_weights_of_a_bridge_fit_64_bits():
    with pytest.raises(ra.InputError, match=r"a product of at most 2\^42"):
        Bridge(2**22, radices=(2**22, 2**22))
    assert Bridge(2**40).length <= 2**42


@pytest.mark.parametrize("bins", [1, 10**6, 10**180])
def test_a_threshold_is_never_below_what_its_chance_of_failure_asks_for(bins):
    """As long as that chance is a float; what is smaller than any float is refused, and not taken for one that is."""

    def variances(rounds):
        return np.ones(len(rounds))

    failure = Fraction(1, 10**6)
    found = float(GaussianThreshold(variances, 0.0, failure, 4, bins=bins).at(1))
    # The tail at x is at least exp(-x^2/2) / (x sqrt(2 pi)) (1 - 1/x^2), and must be at most the chance.
    x = found - 1
    assert -x * x / 2 - log(x * sqrt(2 * pi)) + log1p(-1 / x**2) <= log(1e-6 / 4) - log(bins)
    for make in (
        lambda: GaussianThreshold(variances, 0.0, failure, 4, bins=10**330),
        lambda: GaussianThreshold(variances, 0.0, failure / 10**330, None),
        lambda: PaperThreshold(3, Fraction(8), failure, 4, 10**330),
    ):
        with pytest.raises(ra.InputError, match="for each bin and release"):
            make()


def test_a_budget_too_small_for_a_threshold_is_refused_before_the_stream_begins():
    histogram = ra.Histogram("c", adaptive=True, most_bins=10**400)
    with pytest.raises(ra.InputError, match="for each bin and release"):
        ra.Stream({"c": ra.Text()}, {"h": histogram}, epsilon=1.0, delta=1e-6, horizon=7)
