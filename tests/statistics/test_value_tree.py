"""The tree of quantiles counts exactly; its weights are what the proofs say."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.statistics import value_tree
from retroact.statistics.value_tree import ValueTree, nodes_of
from support.quantile_streams import HIGHEST, LOWEST, Silent, answer, specification, tally, totals_of


def small_domains():
    """Domains of 1 to 40 values with some records in each, also none and many of one value."""
    random = Random(1)
    for size in range(1, 41):
        for count in (0, 1, 7, 60):
            values = [random.randrange(size) for _ in range(count)]
            yield size, sorted(values) if count < 60 else sorted(values[:30] + [values[0]] * 30)


def test_records_below_every_offset():
    for size, values in small_domains():
        bits = (size - 1).bit_length()
        tree = ValueTree(tally(values), bits, Silent(denominator=3), 1)
        for offset in range((1 << bits) + 1):
            assert tree.below(offset)[0] == sum(value < offset for value in values) * 3 << bits


def test_a_descent_without_noise_ends_at_the_quantile(monkeypatch):
    monkeypatch.setattr(value_tree, "SHALLOW", 0)
    for size, values in small_domains():
        tree = ValueTree(tally(values), (size - 1).bit_length(), Silent(), 1)
        for p in [0, 1, 1 / 3, *(k / 16 for k in range(1, 16))]:
            (found,) = tree.descend([tree.rank(p)])
            exact = Fraction(p) * len(values)
            assert sum(value < found for value in values) <= exact <= sum(value <= found for value in values)
            if p < 1 and values:
                assert found == values[math.floor(exact)]


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4])
def test_weights_are_derivatives(bits):
    """Noise of one on one node moves the records below an offset by the weight of that node."""
    nodes = [(0, 0)]
    for depth in range(bits):
        nodes += [(k, depth + 1) for k in range(1 << depth)]
    truth = tally([0, (1 << bits) - 1])
    plain = ValueTree(truth, bits, Silent(), 1)
    moved = {node: ValueTree(truth, bits, Silent(planted={node: 1}), 1) for node in nodes}
    for offset in range((1 << bits) + 1):
        below, weights = plain.below(offset)
        assert {node: moved[node].below(offset)[0] - below for node in nodes} == {
            node: weights.get(node, 0) * 2**bits for node in nodes
        }


def squares_of_weights(offset, bits):
    """Of the differences, not of the root: exact."""
    widths = [1 << (bits - depth) for depth in range(bits)]
    return sum((Fraction(min(offset % width, width - offset % width), width) ** 2 for width in widths), Fraction(0))


@pytest.mark.parametrize("bits", range(1, 17))
def test_haar_weights_are_small_wherever_one_looks(bits):
    """The sum of the squares is at most b/9 + 5/36, for every offset."""
    offsets = np.arange(1 << bits, dtype=np.int64)
    total = np.zeros(1 << bits, dtype=np.int64)
    for depth in range(bits):
        width = 1 << (bits - depth)
        inside = offsets % width
        total += (np.minimum(inside, width - inside) << depth) ** 2
    assert (36 * total <= (4 * bits + 5) * 4**bits).all()
    # It is nearly attained, so the standard error is not idly large.
    assert total.max() / 4**bits > bits / 9


def test_haar_weights_of_64_bits():
    random = Random(2)
    thirds = [(2**64 - 1) // 3, 2 * (2**64 - 1) // 3]
    for offset in [0, 1, 2**63, 2**64 - 1, *thirds, *(random.randrange(2**64) for _ in range(300))]:
        squares = squares_of_weights(offset, 64)
        assert squares <= Fraction(64, 9) + Fraction(5, 36)
        tree = ValueTree(tally([]), 64, Silent(), 1)
        weights = tree.below(offset)[1]
        assert sum(w * w for node, w in weights.items() if node != (0, 0)) == pytest.approx(float(squares), rel=1e-9)


def test_the_inequality_that_the_bound_telescopes():
    def s(y):
        return min(y % 1, 1 - y % 1)

    def h(y):
        return 4 * s(y) / 9 - s(y) ** 2 / 3

    for k in range(5041):
        y = Fraction(k, 5040)
        right = Fraction(1, 9) + h(y) - h(2 * y)
        assert s(y) ** 2 <= right
        assert s(y) < Fraction(1, 4) or s(y) ** 2 == right
        assert 0 <= h(y) <= Fraction(5, 36)


def test_a_record_moves_as_many_nodes_as_declared():
    for size in range(1, 34):
        field = ra.Integer(-3, size - 4)
        bits = (size - 1).bit_length()
        layout = ra.Quantiles("v").layout(ra.Schema({"v": field}))
        for value in range(size):
            nodes = nodes_of(tally([value]), bits).values()
            assert sum(map(abs, nodes)) == layout.norm1 == bits + 1
            assert sum(amount**2 for amount in nodes) == layout.norm2_squared == bits + 1


@pytest.mark.parametrize("bits", [0, 1, 5, 63, 64])
def test_nodes_one_by_one_and_all_at_once(bits):
    random = Random(bits)
    edges = [0, (1 << bits) - 1, (1 << bits) // 2, max(0, (1 << bits) // 2 - 1)]
    counted = tally([*edges, *(random.randrange(1 << bits) for _ in range(20))])
    nodes = nodes_of(counted, bits)
    tree = ValueTree(counted, bits, Silent(), 1)
    tree._draw([node for node, _ in nodes])
    assert {(node, 0): value for node, value in tree._known.items() if value} == nodes


def test_64_bits_are_exact_at_both_ends():
    """Records 2^63 and 2^64 - 1 apart; no difference overflows."""
    values = [LOWEST] * 10 + [-(2**62)] * 10 + [2**62] * 10 + [HIGHEST] * 10
    points = [LOWEST, LOWEST + 1, -(2**62) - 1, -(2**62), -1, 0, 2**62, HIGHEST - 1, HIGHEST]
    spans = [(LOWEST, HIGHEST), (LOWEST, LOWEST), (HIGHEST, HIGHEST), (LOWEST, -1), (0, HIGHEST), (-(2**62), 2**62)]
    quantiles = ra.Quantiles("v", [0.1, 0.3, 0.6, 0.9, 0, 1], cdf=points, counts=spans)
    spec = specification(quantiles, ra.Integer(LOWEST, HIGHEST))
    value = answer(spec, totals_of(spec, values), noise=Silent()).value
    assert list(value.values()) == [LOWEST, -(2**62), 2**62, HIGHEST, LOWEST, HIGHEST]
    assert value.cdf == {point: sum(v <= point for v in values) / 40 for point in points}
    assert value.counts == {span: sum(span[0] <= v <= span[1] for v in values) for span in spans}
