"""Processes for other patterns than one interval: every identity and every claim by brute force over all patterns."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.noise import (
    AnyRounds,
    Bridge,
    FewChanges,
    Mechanism,
    OneSided,
    Schauder,
    StampedBlocks,
    Tree,
    Unbounded,
    Windowed,
    best_block,
)
from retroact.noise.any_rounds import balance
from retroact.noise.process import combined, difference
from retroact.paper import Doubling
from retroact.privacy import split

PURE = split(1.0, 0, {"a": "pure"}, {})["a"]
GAUSSIAN = split(1.0, 1e-6, {"a": "gaussian"}, {})["a"]


def zeros_and_ones(rounds):
    return itertools.product((0, 1), repeat=rounds)


class Map:
    """L as a matrix over the nodes that the rounds 1 .. rounds see."""

    def __init__(self, process, rounds):
        self.terms = process.weights_of(np.arange(1, rounds + 1))
        seen = self.terms.weights != 0
        pairs = zip(self.terms.levels[seen].tolist(), self.terms.indices[seen].tolist(), strict=True)
        self.nodes = {node: column for column, node in enumerate(sorted({*pairs}))}
        self.matrix = np.zeros((rounds, len(self.nodes)), dtype=np.int64)
        for row in range(rounds):
            one = self.terms.of(row)
            for level, index, weight in zip(one.levels.tolist(), one.indices.tolist(), one.weights, strict=True):
                self.matrix[row, self.nodes[level, index]] += weight

    def __call__(self, shift):
        """In units of 1 / denominator."""
        vector = np.zeros(len(self.nodes), dtype=np.int64)
        for node, value in shift.items():
            if node in self.nodes:
                vector[self.nodes[node]] = value
        return self.matrix @ vector


def charge(process, shift):
    """(sum of |shift| / spread, sum of shift^2 / spread)."""
    return tuple(
        sum((Fraction(abs(v) ** p) / process.spread(n[0], p) for n, v in shift.items()), Fraction(0)) for p in (1, 2)
    )


def brute_force(process, patterns, rounds):
    """The largest L1 and squared L2 over the patterns; checks L(shift_hiding(d)) = d in all rounds as well."""
    image = Map(process, rounds)
    most = [Fraction(0), Fraction(0)]
    for pattern in patterns:
        moved = process.shift_hiding(pattern)
        wanted = np.zeros(rounds, dtype=np.int64)
        wanted[: len(pattern)] = pattern
        assert (image(moved) == wanted * image.terms.denominator).all(), (process, pattern)
        most = [max(a, b) for a, b in zip(most, charge(process, moved), strict=True)]
    return tuple(most)


# Intervals: what every other process hides


@pytest.mark.parametrize(
    "process",
    [Tree(8), Schauder(8), Bridge(8), Windowed(8), Windowed(8, inner=Bridge), Unbounded(3), Doubling()],
    ids=repr,
)
def test_intervals(process):
    intervals = [[c * (s < r <= e) for r in range(1, 9)] for s in range(9) for e in range(s, 9) for c in (1, -1)]
    l1, l2 = brute_force(process, intervals, 8)
    assert l1 <= process.l1
    assert l2 <= process.l2_squared
    assert charge(process, process.shift_hiding([0, 3, 3])) == (
        3 * charge(process, process.shift_hiding([0, 1, 1]))[0],
        9 * charge(process, process.shift_hiding([0, 1, 1]))[1],
    )
    assert process.shift_hiding([]) == process.shift_hiding([0] * 5) == {}
    for bad in ([1, 0, 1], [1, 2], [1, -1]):
        with pytest.raises(InputError, match="pattern"):
            process.shift_hiding(bad)


def test_patterns_beyond_the_horizon():
    for process in (Schauder(4), AnyRounds(4), StampedBlocks(2, 4), FewChanges(4, 4), OneSided(4)):
        with pytest.raises(InputError, match="at most 4 rounds"):
            process.shift_hiding([0, 0, 0, 0, 0])


# Patterns


@pytest.mark.parametrize("releases", range(1, 9))
def test_any_pattern_over_known_releases(releases):
    process = AnyRounds(releases)
    assert brute_force(process, zeros_and_ones(releases), releases) == (1, 1) == (process.l1, process.l2_squared)
    negative = ([-bit for bit in pattern] for pattern in zeros_and_ones(releases))
    assert brute_force(process, negative, releases) == (1, 1)


@pytest.mark.parametrize("window", range(1, 6))
@pytest.mark.parametrize("releases", [None, 11])
def test_any_pattern_in_a_window(window, releases):
    process = AnyRounds(releases, window=window)
    within = [[*(0,) * start, *pattern] for start in range(12 - window) for pattern in zeros_and_ones(window)]
    assert brute_force(process, within, releases or 16) == (1, 1) == (process.l1, process.l2_squared)
    if releases is None:
        with pytest.raises(InputError, match=f"within {window} releases"):
            process.shift_hiding([1, *(0,) * (window - 1), 1])


@pytest.mark.parametrize("window", [4, 5, 8, 20])
def test_few_releases_are_one_block(window):
    """Twice a window is better served as a whole."""
    assert AnyRounds(8, window=window).variance(3) == AnyRounds(8).variance(3)
    assert AnyRounds(9, window=4).variance(3) == AnyRounds(None, window=4).variance(3) > AnyRounds(8).variance(3)


@pytest.mark.parametrize(
    ("first", "rounds", "blocks"), [(1, 1, 1), (1, 3, 2), (1, 7, 3), (1, 10, 4), (2, 6, 2), (3, 9, 2)]
)
def test_any_pattern_without_a_horizon(first, rounds, blocks):
    """Shares 1/2, 1/6, 1/12, ... of the blocks sum to 1 - 1/(blocks + 1): the bound is approached."""
    process = AnyRounds(None, first=first)
    expected = 1 - Fraction(1, blocks + 1)
    assert brute_force(process, zeros_and_ones(rounds), 32) == (expected, expected)
    assert expected < process.l1 == process.l2_squared == 1


def test_growing_blocks():
    process = AnyRounds(None)
    assert [process.block(i) for i in range(3)] == [(0, 1024, 2), (1024, 2048, 6), (3072, 4096, 12)]
    terms = process.weights_of(np.array([1, 1024, 1025, 3072, 3073]))
    assert terms.levels.tolist() == [[0, 1], [0, 1], [64, 65], [64, 65], [128, 129]]
    assert terms.indices.tolist() == [[0, 1], [0, 1024], [1, 1025], [1, 3072], [2, 3073]]


@pytest.mark.parametrize("n", [1, 2, 3, 12, 365, 65_536, 10**9, 1 << 40])
def test_balance(n):
    """The cost is exactly 1, the error the optimum up to a millionth."""
    common, fresh = balance(Fraction(1, 4), n, 2)
    assert 1 / common + n / fresh == 1
    assert float(common + fresh) / 4 == pytest.approx(((math.sqrt(n) + 1) / 2) ** 2, rel=1e-6)
    common, fresh = balance(Fraction(1, 4), n, 1)
    assert 1 / common + n / fresh == 1
    assert float(common) == pytest.approx(n ** (2 / 3) + 1, rel=2e-3)
    assert float(fresh) == pytest.approx(n ** (1 / 3) * (n ** (2 / 3) + 1), rel=2e-3)
    # No other division of the cost is better.
    least = common**2 + fresh**2
    for share in (common * Fraction(99, 100), common * Fraction(101, 100)):
        assert share**2 + (n / (1 - 1 / share)) ** 2 > least


def test_common_noise_halves_the_error():
    assert AnyRounds(365).variance(1) ** 0.5 / 0.2367 == pytest.approx(42.5, abs=0.05)
    assert AnyRounds(65_536).variance(1) ** 0.5 / 0.2367 == pytest.approx(543, abs=0.5)


# Blocks


def admissible(pattern, length):
    """By the definition: block by block from some position on or up to some position, but for one interval."""
    intervals = 0
    for start in range(0, len(pattern), length):
        block = "".join(map(str, pattern[start : start + length]))
        inside = block.strip("0")
        if "0" in inside:
            return False
        intervals += bool(inside) and not block.startswith("1") and not block.endswith("1")
    return intervals <= 1


@pytest.mark.parametrize("length", range(1, 8))
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 8, 9, 11, 12])
def test_blocks_hide_what_they_promise_and_nothing_else(length, horizon):
    process = StampedBlocks(length, horizon)
    good = {pattern: admissible(pattern, length) for pattern in zeros_and_ones(horizon)}
    patterns = [pattern for pattern, fine in good.items() if fine]
    assert brute_force(process, patterns, horizon) == (1, 1) == (process.l1, process.l2_squared)
    for pattern in itertools.islice((pattern for pattern, fine in good.items() if not fine), 300):
        with pytest.raises(InputError, match="block"):
            process.shift_hiding(pattern)


def test_shorter_and_negative_patterns_over_blocks():
    process = StampedBlocks(4, 12)
    patterns = [
        [-bit for bit in p]
        for rounds in range(9)
        for p in zeros_and_ones(rounds)
        if admissible((*p, *(0,) * (12 - rounds)), 4)
    ]
    assert brute_force(process, patterns, 12) == (1, 1)


@pytest.mark.parametrize("bits", range(7))
def test_moves_of_one_block(bits):
    """m + 1 for a step; for an interval 3m + 1 in the squared second norm and 3m - 1 in the first, from m = 2 on."""
    length = 1 << bits
    process = StampedBlocks(length, length)
    inner = [node for node in Map(process, length).nodes if node[0] <= process.inner.levels]
    steps, intervals = set(), [(0, 0)]
    for s, e in itertools.combinations(range(length + 1), 2):
        moved = process.shift_hiding([int(s < r <= e) for r in range(1, length + 1)])
        values = [abs(moved.get(node, 0)) for node in inner]
        found = sum(values), sum(v * v for v in values)
        steps.add(found) if s == 0 or e == length else intervals.append(found)
    assert steps == {(bits + 1, bits + 1)}
    if bits >= 2:
        assert tuple(map(max, zip(*intervals, strict=True))) == (3 * bits - 1, 3 * bits + 1)


@pytest.mark.parametrize("length", [*range(1, 9), 16, 33, 64, 127, 128, 256])
@pytest.mark.parametrize("p", [1, 2])
def test_the_worst_round_of_blocks(length, p):
    process = StampedBlocks(length, 1000)
    assert process.worst(p) == pytest.approx(process.variances(np.arange(1, 1001), p).max(), rel=1e-12)


def test_blocks_of_one_round_are_patterns():
    for p in (1, 2):
        assert StampedBlocks(1, 365).variance(7, p) == AnyRounds(365).variance(7, p)
        assert [StampedBlocks(1, 365).spread(level, p) for level in (1, 0)] == [
            AnyRounds(365).spread(at, p) for at in (0, 1)
        ]


def test_the_worst_error_of_blocks_is_the_formula():
    process = StampedBlocks(128, 65_536)
    terms = process.weights_of(np.arange(1, 129))
    largest = ((terms.weights[:, :-1] / terms.denominator) ** 2).sum(axis=1).max()
    moves = 511 * 8 + 22
    assert process.worst() == pytest.approx((0.5 + math.sqrt(largest * moves)) ** 2, rel=1e-6)


def test_the_best_block():
    def error(length, every=1, horizon=65_536):
        return StampedBlocks(length // every, horizon // every).worst() ** 0.5 / 0.2367 + (length - 1) / 2

    assert best_block(65_536, 0.2367, 1) == min((1 << i for i in range(17)), key=error) == 128
    # Other lengths waste boundaries, and are no better.
    assert min(map(error, [*range(65, 128), *range(129, 200)])) > error(128)
    assert best_block(65_536, 0.2367, 1, every=24) % 24 == 0
    assert best_block(65_536, 0.2367, 1000) == 1
    assert best_block(65_536, 0.2367, 0) == 65_536
    assert best_block(5, 1.0, 0, every=7) == 7
    laplace = min(
        (1 << i for i in range(17)), key=lambda b: math.sqrt(2 * StampedBlocks(b, 65_536).worst(1)) + (b - 1) / 2
    )
    assert best_block(65_536, 1.0, 1, p=1) == laplace > 128


# Flips


@pytest.mark.parametrize("horizon", range(1, 16))
def test_flips_are_counted_exactly(horizon):
    """All 2^T patterns against the count that goes up the tree, for every number of flips."""
    schauder = Schauder(horizon)
    nodes = sorted({node for s in range(horizon + 1) for node in schauder.shift(s)})
    shifts = np.array([[schauder.shift(s).get(node, 0) for node in nodes] for s in range(horizon + 1)])
    patterns = np.array(list(zeros_and_ones(horizon)))
    steps = np.diff(np.pad(patterns, ((0, 0), (1, 1))), axis=1)
    changes, moved = np.abs(steps).sum(axis=1), steps @ shifts
    for flips in range(2, horizon + 3):
        some = moved[changes <= flips]
        process = FewChanges(horizon, flips)
        assert process.l1 == np.abs(some).sum(axis=1).max()
        assert process.l2_squared == (some**2).sum(axis=1).max()


@pytest.mark.parametrize("horizon", range(1, 9))
@pytest.mark.parametrize("flips", [2, 3, 4, 7])
def test_flips_hide_what_they_promise_and_nothing_else(horizon, flips):
    process = FewChanges(horizon, flips)
    changes = {p: int(np.abs(np.diff([0, *p, 0])).sum()) for p in zeros_and_ones(horizon)}
    good = [pattern for pattern, count in changes.items() if count <= flips]
    assert brute_force(process, good, horizon) == (process.l1, process.l2_squared)
    for pattern in changes.keys() - {*good}:
        with pytest.raises(InputError, match=r"expected (one interval|at most \d intervals) of rounds"):
            process.shift_hiding(pattern)


def test_two_flips_are_one_interval():
    for horizon in (1, 7, 8, 1000, 65_536):
        for flips in (2, 3):
            process = FewChanges(horizon, flips)
            assert (process.l1, process.l2_squared) == (Schauder(horizon).l1, Schauder(horizon).l2_squared)


@pytest.mark.parametrize("bad", [1, 0, -2, 2.5, True, None])
def test_bad_flips(bad):
    with pytest.raises(InputError, match="from 2 on"):
        FewChanges(10, bad)


# Past


@pytest.mark.parametrize("horizon", [*range(1, 18), 31, 32, 33])
def test_the_past_has_one_end(horizon):
    process = OneSided(horizon)
    suffixes = [[c * (r >= t) for r in range(1, horizon + 1)] for t in range(1, horizon + 1) for c in (1, -1)]
    charges = {charge(process, process.shift_hiding(pattern)) for pattern in suffixes}
    assert brute_force(process, suffixes, horizon) == (process.l1, process.l2_squared)
    assert charges == {(process.l1, process.l2_squared)}
    assert process.l1 == math.ceil(math.log2(horizon)) + 1
    assert process.shift_hiding([0] * horizon) == process.shift(horizon) == {}
    for bad in ([1, *(0,) * (horizon - 1)], [1] * (horizon - 1)):
        if horizon > 1:
            with pytest.raises(InputError, match=f"to round {horizon}"):
                process.shift_hiding(bad)


# What no round can see, and what the rounds so far leave open


def later(process, t):
    """The independent vectors of the docstrings that leave the rounds 1 .. t alone."""
    if isinstance(process, OneSided):
        return [OneSided(process.length).shift(s) for s in range(t, process.length)]
    if isinstance(process, FewChanges):
        return [difference(process.shift(q - 1), process.shift(q)) for q in range(t + 1, process.length)]
    if isinstance(process, AnyRounds):
        rounds = process.horizon
        nodes = process.weights_of(np.arange(1, rounds + 1))
        pairs = [[*zip(a, b, strict=True)] for a, b in zip(nodes.levels.tolist(), nodes.indices.tolist(), strict=True)]
        out = [{fresh: 1} for _, fresh in pairs[t:]]
        for common in dict.fromkeys(common for common, _ in pairs):
            out.append({common: 1, **{fresh: -1 for other, fresh in pairs[:t] if other == common}})
        return out
    m, n = process.inner.levels, process.inner.length
    whole = OneSided(n)
    out = [{(m + 1, 0): 1, **_of_blocks(process, {b: (-1, whole.shift(0)) for b in range(process.count)})}]
    for block, q in itertools.product(range(process.count), range(1, n + 1)):
        if q > process.length or block * process.length + q > t:
            end = (1, whole.shift(0)) if q == n else (-1, whole.shift(q))
            alone = combined((1, whole.shift(q - 1)), end) if m > 1 else {(0 if q == 1 else m, 0): 1}
            out.append(_of_blocks(process, {block: (1, alone)}))
    return out


def _of_blocks(process, parts):
    return {
        (level, index + block * process.inner.nodes(level)): sign * value
        for block, (sign, shift) in parts.items()
        for (level, index), value in shift.items()
    }


def number_of_nodes(process):
    if isinstance(process, AnyRounds):
        return process.horizon + int(process._numbers(np.array([process.horizon]))[0]) + 1
    if isinstance(process, StampedBlocks):
        return process.count * process.inner.length + 1
    return process.length - isinstance(process, FewChanges)


@pytest.mark.parametrize(
    "process",
    [
        *(AnyRounds(n) for n in (1, 2, 5, 8)),
        *(AnyRounds(n, window=w) for n, w in ((8, 3), (9, 2))),
        *(StampedBlocks(b, t) for b in range(1, 10) for t in (b, b + 1, 2 * b, 14)),
        *(FewChanges(t, f) for t in (1, 5, 8) for f in (2, 5)),
        *(OneSided(t) for t in (1, 2, 5, 8, 9)),
    ],
    ids=repr,
)
def test_what_the_rounds_so_far_leave_open_is_spanned_by_short_vectors(process):
    image = Map(process, process.horizon)
    bound = max(process.l2_squared, process.kernel_squared)
    # Every round is a new equation, so what t rounds leave open has t dimensions less than there are nodes.
    assert np.linalg.matrix_rank(image.matrix) == process.horizon
    for t in range(process.horizon + 1):
        vectors = later(process, t)
        nodes = sorted({node for vector in vectors for node in vector} | {*image.nodes})
        matrix = np.array([[vector.get(node, 0) for node in nodes] for vector in vectors])
        assert len(vectors) == number_of_nodes(process) - t == np.linalg.matrix_rank(matrix)
        for vector in vectors:
            assert not image(vector)[:t].any()
            assert charge(process, vector)[1] <= bound
        # One of them moves the next round, by no more than the sensitivity.
        if t < process.horizon:
            assert min(charge(process, v)[1] for v in vectors if image(v)[t]) <= process.l2_squared


@pytest.mark.parametrize("process", [AnyRounds(4), AnyRounds(5, window=2)], ids=repr)
def test_for_patterns_they_are_a_basis(process):
    """The largest minors have no common divisor, so the vectors generate all integer solutions."""
    for t in range(process.horizon + 1):
        vectors = later(process, t)
        nodes = sorted(Map(process, process.horizon).nodes)
        matrix = np.array([[vector.get(node, 0) for node in nodes] for vector in vectors])
        minors = [
            round(np.linalg.det(matrix[:, columns]))
            for columns in itertools.combinations(range(len(nodes)), len(vectors))
        ]
        assert math.gcd(*minors) == 1


# Claims that are wrong, and the noise itself


class Cheap(AnyRounds):
    def spread(self, level, p):
        return super().spread(level, p) * Fraction(999, 1000)


class Narrow(StampedBlocks):
    def _cost(self, p):
        return self.count * (self.inner.levels + 1)


class Forgetful(StampedBlocks):
    def shift_hiding(self, pattern):
        return {node: value for node, value in super().shift_hiding(pattern).items() if node[0]}


def test_wrong_claims_would_be_caught():
    assert min(brute_force(Cheap(5), zeros_and_ones(5), 5)) > 1
    patterns = [pattern for pattern in zeros_and_ones(8) if admissible(pattern, 4)]
    assert min(brute_force(Narrow(4, 8), patterns, 8)) > 1
    with pytest.raises(AssertionError):
        brute_force(Forgetful(4, 8), patterns, 8)


@pytest.mark.parametrize("share", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@pytest.mark.parametrize(
    ("process", "rounds"),
    [
        (AnyRounds(365), (1, 365)),
        (AnyRounds(None, window=30), (30, 31, 10**6)),
        (AnyRounds(None), (7, 5000)),
        (StampedBlocks(8, 1000), (1, 3, 8, 1000)),
        (StampedBlocks(5, 12), (12,)),
        (FewChanges(100, 6), (33, 100)),
        (OneSided(100), (33, 100)),
    ],
    ids=repr,
)
def test_noise_has_the_claimed_variance(process, rounds, share):
    count = 2000
    made = Mechanism(
        process,
        share,
        units=(1,) * count,
        norm1=Fraction(1),
        norm2_squared=Fraction(1),
    ).under(Coins(bytes(32)))
    for round in rounds:
        numerators, denominator = made.draw(round)
        noise = numerators / denominator
        if share is PURE:
            claimed = 2 * float(process.l1 / share.amount) ** 2 * process.variance(round, 1)
        else:
            claimed = float(process.l2_squared / share.amount) * process.variance(round, 2)
        assert made.variances(round)[0] == pytest.approx(claimed, rel=0.01)
        kurtosis = 6 if share is PURE else 3
        assert abs(noise.var() / claimed - 1) < 5 * math.sqrt((kurtosis - 1) / count) + 0.01
        assert abs(noise.mean()) < 5 * math.sqrt(claimed / count)


@pytest.mark.parametrize(
    "process",
    [AnyRounds(100), AnyRounds(None, window=7), AnyRounds(None, first=3), StampedBlocks(8, 100), OneSided(100)],
    ids=repr,
)
def test_random_access_is_the_batch(process):
    rounds = np.array([1, 2, 3, 50, 99, 100])
    batch = process.weights_of(rounds)
    for row, round in enumerate(rounds.tolist()):
        alone, among = process.at(round), batch.of(row)
        assert alone.denominator == among.denominator
        for field in ("levels", "indices", "weights"):
            assert (getattr(alone, field) == getattr(among, field)).all()


@pytest.mark.parametrize(
    "process", [AnyRounds(12), AnyRounds(None, window=3), StampedBlocks(4, 12), OneSided(12)], ids=repr
)
def test_shifts_are_steps(process):
    image = Map(process, 12)
    for s, e in itertools.combinations(range(13), 2):
        wanted = [image.terms.denominator * (s < r <= e) for r in range(1, 13)]
        assert image(difference(process.shift(s), process.shift(e))).tolist() == wanted


@pytest.mark.parametrize("bad", [0, -1, 1.5, "8", True, 1 << 41])
def test_bad_numbers(bad):
    for make in (
        AnyRounds,
        OneSided,
        lambda n: AnyRounds(None, window=n),
        lambda n: StampedBlocks(n, 8),
        lambda n: StampedBlocks(8, n),
    ):
        with pytest.raises(InputError, match="whole number of rounds"):
            make(bad)
