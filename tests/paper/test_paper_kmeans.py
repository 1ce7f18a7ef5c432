"""The paper's clustering: regions, what a record moves, releases from noisy counters alone, every generic check."""

import importlib
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.cluster import KMeans

import retroact as ra
from retroact.coins import Coins
from retroact.errors import InputError
from retroact.ledger.definition import Add, Delete
from retroact.paper.greedy import FINE, NEAR, GridCells, Groups, exclusive, greedy, refined, within
from retroact.paper.kmeans import COUNTS, SUMS, Theorem, _shift
from retroact.statistics.clusters.ball import RADIUS
from retroact.statistics.clusters.directions import LENGTH, independent, seed_of
from retroact.statistics.clusters.regions import Sums
from retroact.statistics.tally import Tally
from retroact.testing import Shape, StreamAlgorithm, check_statistic, check_twin, uniting_pairs
from support.cluster_readers import Shown
from support.tiers import in_full

ROOT = Path(__file__).parents[2]
COINS = Coins(bytes(32))
PLANE = {"x": ra.Number(-1, 1, step=0.01), "y": ra.Number(-1, 1, step=0.01)}
# A stream whose first release has next to no noise.
PLENTY = {"epsilon": 1000.0, "delta": 1e-6}


def family(dimension=2, k=2, instances=2, levels=3, expected=50, objective="means"):
    return Theorem(dimension, k, instances if objective == "means" else 1, levels, expected, objective).drawn(COINS)


def in_ball(random, count, dimension):
    """Points of the ball in its steps, a third of them at the rim."""
    points = random.normal(size=(count, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points *= np.minimum(1, random.random((count, 1)) ** (1 / dimension) * (1 + (np.arange(count) % 3 == 0)[:, None]))
    return np.trunc(points * RADIUS).astype(np.int64)


def clusters(dimension, middles, size, seed=0, spread=0.03):
    random = np.random.default_rng(seed)
    middles = np.asarray(middles, dtype=float)
    points = np.repeat(middles, size, axis=0) + random.normal(size=(len(middles) * size, dimension)) * spread
    return points / np.maximum(1, np.linalg.norm(points, axis=1) * 1.001)[:, None]


def corners_of(dimension, k, length=0.7):
    """Middles that are far apart: a step along each axis in turn, forth and then back."""
    return [
        [length * (-1) ** (j // dimension) * (axis == j % dimension) for axis in range(dimension)] for j in range(k)
    ]


def stream_of(statistic, *, dimension=None, seed=1, horizon=8, **budget):
    schema = PLANE if dimension is None else {"p": ra.Vector(dimension, radius=1, step=2**-16)}
    spec = ra.Specification(schema, {"c": statistic}, horizon=horizon, **{**PLENTY, **budget})
    return ra.Stream.from_specification(spec, key=ra.Key.for_testing(seed))


# Regions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["means", "medians"])
@pytest.mark.parametrize(("dimension", "k"), [(1, 2), (2, 2), (3, 9), (7, 2), (7, 40)])
def test_a_record_moves_the_counters_by_at_most_the_norms(dimension, k, objective):
    own = family(dimension, k, objective=objective)
    random = np.random.default_rng(dimension)
    one, two = own.layout.norm1, own.layout.norm2_squared
    longest = [Fraction(0), Fraction(0)]
    # At the rim, along an axis and along the diagonal: where the norms are met.
    diagonal = np.full(dimension, math.isqrt(RADIUS**2 // dimension))
    rim = np.array([RADIUS * np.eye(dimension, dtype=np.int64)[0], diagonal, -diagonal])
    for point in np.vstack([rim, in_ball(random, 40, dimension)]):
        column = own.coordinates(own.gather(point[None], np.ones(1, dtype=np.int64)))
        moved = [Fraction(abs(amount), own.layout.units[kind]) for (_, kind), amount in column.items()]
        norms = sum(moved), sum(part**2 for part in moved)
        assert norms[0] <= one
        assert norms[1] <= two
        longest = [max(old, new) for old, new in zip(longest, norms, strict=True)]
    assert longest[0] > one * Fraction(9999, 10000)
    assert longest[1] > two * Fraction(9999, 10000)


def test_one_record_more_is_its_column():
    own = family(4, 2, instances=3)
    points, weights = in_ball(np.random.default_rng(1), 60, 4), np.ones(60, dtype=np.int64)
    with_it, without = (own.gather(points[:n], weights[:n]) for n in (60, 59))
    alone = own.gather(points[59:], weights[59:])
    before, after, column = (own.coordinates(totals) for totals in (without, with_it, alone))
    moved = {key: after.get(key, 0) - before.get(key, 0) for key in before.keys() | after.keys()}
    assert {key: amount for key, amount in moved.items() if amount} == column
    assert sum(kind % 3 == COUNTS for _, kind in column) == 3 * (own.levels + 1)


@pytest.mark.parametrize(("dimension", "k"), [(2, 5), (9, 3)])
def test_cells_are_those_of_exact_arithmetic(dimension, k):
    """In whole numbers and fractions of Python: the projection, the clipping, the shift, the bits of all levels."""
    own = family(dimension, k, levels=5)
    seed = seed_of(COINS, "theorem 1")
    points = in_ball(np.random.default_rng(3), 50, dimension)
    directions = independent(seed, own.width, dimension).astype(np.int64).tolist() if dimension > 2 else None
    shift = _shift(seed, own.width, own.side_bits - 1).tolist()
    scale = math.isqrt((dimension << 24) // own.width)
    wanted = []
    for point in points.tolist():
        if directions is not None:
            dots = [sum(p * row[axis] for p, row in zip(point, directions, strict=True)) for axis in range(own.width)]
            point = [min(max(dot * scale // (LENGTH << 12), -own.reach), own.reach - 1) for dot in dots]
        word = "1"
        for level in range(1, 6):
            for axis, part in enumerate(point):
                side = Fraction(4 * own.reach, 2**level)
                word += str(math.floor((part + own.reach + shift[axis]) / side) % 2)
        wanted.append(int(word, 2))
    assert own.drawn(COINS).words(points, 1).tolist() == wanted
    assert all(0 <= part < 2 * own.reach for part in shift)


def test_projections_keep_lengths_on_average():
    own = family(20, 4, instances=1)
    points = in_ball(np.random.default_rng(4), 30, 20)
    many = [own.drawn(Coins(bytes([i]) * 32)) for i in range(200)]
    lengths = np.array([(one._projected(points, 0) ** 2).sum(axis=1) / (points**2).sum(axis=1) for one in many])
    assert abs(lengths.mean() - 1) < 0.03
    assert lengths.std() == pytest.approx(math.sqrt(2 / own.width), rel=0.25)


def test_instances_and_levels():
    assert [Theorem.most_instances(t, "means") for t in (1, 2, 3, 4, 64, 1000, None)] == [1, 1, 1, 2, 6, 9, 16]
    assert {Theorem.most_instances(t, "medians") for t in (1, 1000, None)} == {1}
    assert [family(2, 2, levels=None, expected=n).levels for n in (1, 2, 50, 10**9)] == [1, 1, 6, 8]
    assert family(500, 128, levels=None, expected=10**9).levels == 62 // 9
    for horizon, instances in ((8, 3), (100, 6), (None, 16)):
        stream = stream_of(ra.KMeans(["x", "y"], 2, 1.5, mode="theorem"), horizon=horizon)
        assert stream.specification.bounds["c"].family.instances == instances
        assert len(stream.specification.bounds["c"].layout.units) == 3 * instances


def test_the_budget_is_divided_evenly():
    own = family(5, 3, instances=4)
    shares = [float(kind.norm2_squared / Fraction(kind.unit) ** 2 / own.layout.norm2_squared) for kind in own.kinds]
    assert np.allclose(shares, [1 / 12] * 12, rtol=1e-4)
    assert own.kinds[own.counts].name == "counts"
    assert own.kinds[-1].name == "sums"
    assert [kind.name for kind in family(5, 3, objective="medians").kinds] == ["counts"]


# Greedy centres and pieces -------------------------------------------------------------------------------------------


def some_cells(seed=0, levels=4, width=2):
    """A random tree of cells that are really within each other, with counts that add up to less than those around."""
    random = np.random.default_rng(seed)
    words, corners, sides, parents, counts = [1], [[0] * width], [1 << 10], [-1], [1000.0]
    for at in range(400):
        if at >= len(words) or sides[at] <= 1 << (10 - levels):
            continue
        parts = random.dirichlet(np.ones(1 << width)) * counts[at] * 0.9
        for child in range(1 << width):
            if parts[child] < 10:
                continue
            side = sides[at] // 2
            words.append(words[at] << width | child)
            corners.append([corners[at][axis] + side * (child >> (width - 1 - axis) & 1) for axis in range(width)])
            sides.append(side)
            parents.append(at)
            counts.append(float(parts[child]))
    return GridCells(
        np.array(words, dtype=np.uint64), np.array(corners), np.array(sides), np.array(parents), np.array(counts)
    )


@pytest.mark.parametrize("power", [1, 2])
def test_greedy_takes_what_is_worth_most_and_far_from_all_before(power):
    cells = some_cells()
    centres, nearest = greedy(cells, power, 6)
    assert 3 <= len(centres) <= 6
    distances = np.array([cells.distances(centre) for centre in centres])
    assert np.array_equal(distances.min(axis=0), nearest)
    values = cells.counts * cells.diameters**power
    inner = set(cells.parents.tolist())
    for number, centre in enumerate(centres):
        (at,) = np.flatnonzero((cells.middles == centre).all(axis=1) & ~np.isin(np.arange(len(values)), list(inner)))
        free = (distances[:number] > NEAR * cells.diameters).all(axis=0)
        best = int(np.argmax(np.where(free, values, -1)))
        above = [int(at)]
        while cells.parents[above[-1]] >= 0:
            above.append(int(cells.parents[above[-1]]))
        assert best in above, "it lies in the cell that is worth most"
        for child, around in pairwise(above):
            if above.index(around) <= above.index(best):
                siblings = np.flatnonzero(cells.parents == around)
                assert values[child] == values[siblings].max()


def test_cells_are_fine_around_centres_only():
    cells = some_cells(5, levels=6)
    _, nearest = greedy(cells, 2, 1)
    fine = refined(cells, nearest)
    assert 1 < len(fine.words) < len(cells.words)
    known = {int(word): i for i, word in enumerate(cells.words)}
    for i, word in enumerate(cells.words.tolist()):
        above = []
        while word > 1:
            word >>= 2
            above.append(known[word])
        wanted = all(cells.diameters[j] > FINE * nearest[j] for j in above)
        assert (int(cells.words[i]) in fine.words.tolist()) == wanted
    for i, parent in enumerate(fine.parents.tolist()):
        assert (parent == -1) == (i == 0)
        assert i == 0 or int(fine.words[parent]) == int(fine.words[i]) >> 2


def test_pieces_are_differences_of_counters():
    """Against a matrix: how the counters of cells make up the sums of groups, and how much noise that is."""
    cells = some_cells(2)
    size = len(cells.words)
    labels = np.random.default_rng(1).integers(-1, 3, size)
    matrix = np.zeros((3, size))
    for i in range(size):
        for cell, sign in [(i, 1), *((int(child), -1) for child in np.flatnonzero(cells.parents == i))]:
            if labels[i] >= 0:
                matrix[labels[i], cell] += sign
    groups = Groups(labels, cells.parents, 3)
    assert np.allclose(groups.sums(cells.counts), matrix @ cells.counts)
    assert np.array_equal(groups.noises, (matrix**2).sum(axis=1))
    assert np.array_equal(within(cells.parents), [(cells.parents == i).sum() for i in range(size)])
    assert exclusive(cells.counts, cells.parents).sum() == pytest.approx(cells.counts[0])


# A release -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimension", "objective"), [(2, "means"), (6, "means"), (2, "medians")])
def test_a_release_is_a_function_of_noisy_counters(dimension, objective):
    """With the same counters shown, other exact ones make no difference: neither to what is released nor to which
    regions are looked at."""
    own = family(dimension, 3, levels=4, objective=objective)
    points = (clusters(dimension, corners_of(dimension, 3), 300) * RADIUS).astype(np.int64)
    weights = np.ones(len(points), dtype=np.int64)
    totals = own.gather(points, weights)
    others = [own.gather(points[:5], weights[:5]), own.gather(-points, 7 * weights), totals - totals]
    readers = [Shown(own, totals, COINS) for _ in range(4)]
    wanted, *found = (
        own.cluster(exact, reader, 3, objective) for exact, reader in zip([totals, *others], readers, strict=True)
    )
    assert len(wanted.centres) == 3
    for other, reader in zip(found, readers[1:], strict=True):
        assert reader.looked_at == readers[0].looked_at
        assert np.array_equal(other.centres, wanted.centres)
        assert np.array_equal(other.weights, wanted.weights)
        assert (other.cost, other.cost_error, other.length) == (wanted.cost, wanted.cost_error, wanted.length)


def test_the_instance_with_the_smallest_cost_is_released():
    chosen = set()
    for seed in range(8):
        own = family(6, 3, instances=3, levels=4)
        points = (clusters(6, corners_of(6, 5), 200, seed=seed) * RADIUS).astype(np.int64)
        totals = own.drawn(Coins(bytes([seed]) * 32)).gather(points, np.ones(len(points), dtype=np.int64))
        reader = Shown(own, totals, COINS, (2.0, 2.0 * RADIUS**2, 2.0 * RADIUS))
        records, candidates = own.candidates(totals, reader, 3, "means")
        found = own.cluster(totals, reader, 3, "means")
        best = int(np.argmin([candidate.cost for candidate in candidates]))
        assert np.array_equal(found.centres, candidates[best].centres)
        assert found.cost == max(candidates[best].cost, 0.0)
        assert found.weights.sum() == pytest.approx(records)
        chosen.add(best)
    assert len(chosen) > 1


def test_cost_and_its_error():
    """Without noise the estimate is the cost of the pieces' clusters; its error is that of the counters in it."""
    own = family(3, 2, instances=1, levels=5)
    points = (clusters(3, corners_of(3, 2), 500) * RADIUS).astype(np.int64)
    totals = own.gather(points, np.ones(len(points), dtype=np.int64))
    found = own.cluster(totals, Shown(own, totals, COINS, (1e-9, 1e-9, 1e-9)), 2, "means")
    squares = ((points[:, None] - found.centres) ** 2).sum(axis=2).min(axis=1).sum()
    assert found.cost == pytest.approx(squares, rel=1e-6)
    assert found.length == pytest.approx(math.sqrt((points**2).sum(axis=1).mean()), rel=1e-6)
    assert found.weights == pytest.approx([500, 500])
    # In a space where all three kinds of noise matter about as much, and sums go into centres, too.
    own = family(3, 2, instances=1, levels=2)
    totals = own.gather(points, np.ones(len(points), dtype=np.int64))
    many = [
        own.cluster(totals, Shown(own, totals, COINS, (2.0, 2.0 * RADIUS**2, 2.0 * RADIUS), seed), 2, "means")
        for seed in range(150)
    ]
    truth = [((points[:, None] - one.centres) ** 2).sum(axis=2).min(axis=1).sum() for one in many]
    off = np.array([one.cost for one in many]) - truth
    deviation = np.sqrt(np.mean([one.cost_error**2 for one in many]))
    assert off.std() == pytest.approx(deviation, rel=0.25)
    assert abs(off.mean()) < 4 * deviation / math.sqrt(len(many))


def test_nothing_stands_out():
    own = family(2, 3)
    nothing = Sums(Tally.of((np.zeros(0, dtype=np.uint64),), np.zeros((0, 4), dtype=np.int64)) for _ in range(2))
    found = own.cluster(nothing, Shown(own, nothing, COINS), 3, "means")
    assert found.centres.tolist() == [[0, 0]]
    assert found.cost is None
    stream = stream_of(ra.KMeans(["x", "y"], 3, 1.5, mode="theorem"), epsilon=0.1)
    stream.add({"x": [0.5, 0.1], "y": [0.5, -0.3]})
    assert len(stream.close_round()["c"].value) == 1


@pytest.mark.parametrize(("dimension", "k", "statistic"), [(2, 4, ra.KMeans), (6, 5, ra.KMeans), (2, 4, ra.KMedian)])
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
def test_centres_are_near_the_truth_with_a_large_budget(dimension, k, statistic, delta):
    stream = stream_of(statistic("p", k, 1, mode="theorem"), dimension=dimension, delta=delta)
    middles = np.array(corners_of(dimension, k))
    points = clusters(dimension, middles, 1000)
    stream.add({"p": points})
    value = stream.close_round()["c"].value
    assert len(value) == k
    assert np.linalg.norm(middles[:, None] - value.centres, axis=2).min(axis=1).max() < 0.05
    assert value.weights == pytest.approx([1000] * k, rel=0.05)
    if statistic is ra.KMeans:
        assert value.cost == pytest.approx(-value.score(points), rel=0.3, abs=5 * value.cost_error)
        assert value.cost_error > 0
    else:
        assert value.cost is None


def test_an_unknown_horizon():
    stream = stream_of(ra.KMeans("p", 3, mode="theorem", levels=5), dimension=6, horizon=None)
    middles = np.array(corners_of(6, 3))
    stream.add({"p": clusters(6, middles, 1000)})
    for _ in range(2):
        value = stream.close_round()["c"].value
        assert np.linalg.norm(middles[:, None] - value.centres, axis=2).min(axis=1).max() < 0.05


# All the generic checks ----------------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """How many centres were released."""
    found = []
    right = Theorem.cluster

    def watched(self, totals, reader, k, objective):
        out = right(self, totals, reader, k, objective)
        found.append(len(out.centres) if out.cost is not None or objective == "medians" else 0)
        return out

    monkeypatch.setattr(Theorem, "cluster", watched)
    return found


# The corners of the plane are clipped to the rim, where a record moves the counters most.
STATISTICS = {
    "means": ra.KMeans(["x", "y"], 2, 1, mode="theorem", levels=2, expected=50, clip=True),
    "medians": ra.KMedian(["x", "y"], 2, 1, mode="theorem", levels=2, expected=50, clip=True),
}
GENERIC = {"twin", "state round trip", "sensitivity", "noise law", "oblivious noise", "bounded state"}


@pytest.mark.parametrize(
    ("name", "delta", "epsilon"),
    [
        ("means", 0.0, 400.0),
        *(in_full(*case) for case in [("means", 1e-6, 400.0), ("medians", 0.0, 25.0), ("medians", 1e-6, 150.0)]),
    ],
)
def test_every_generic_check(name, delta, epsilon, seen):
    """With so large a budget that a few records stand out: otherwise there would be nothing to compare."""
    ran = check_statistic(
        STATISTICS[name], PLANE, epsilon=epsilon, deltas=(delta,), pairs=6, draws=300, updates=6,
        horizons=(None,) if name == "medians" and delta else (8,),
    )  # fmt: skip
    assert set(ran) >= GENERIC
    assert sum(count == 2 for count in seen) > 100


@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "gaussian"])
def test_projected_points_and_no_horizon_pass_the_twin_check(delta, seen):
    schema = {f"x{i}": ra.Number(-1, 1, step=0.5) for i in range(5)}
    random = Random(1)
    values = [tuple(random.choice([-1.0, -0.5, 0.0, 0.5, 1.0]) for _ in schema) for _ in range(12)]
    statistic = ra.KMeans(list(schema), 2, mode="theorem", levels=2)
    spec = ra.Specification(schema, {"c": statistic}, epsilon=1000.0, delta=delta)
    shape = Shape(tuple(values), rounds=5, updates=12)
    assert check_twin(lambda key: StreamAlgorithm(spec, key), uniting_pairs(shape, random, 5), keys=(1,)) >= 5
    assert sum(count > 0 for count in seen) > 10


@pytest.mark.parametrize("statistic", [ra.KMeans, ra.KMedian])
def test_an_erased_cluster_leaves_no_trace(statistic):
    """From the round of its erasure on, the releases of the twin that never had it, byte by byte."""
    middles = corners_of(2, 3)
    parts = [clusters(2, [middle], 400, seed=i) for i, middle in enumerate(middles)]
    streams = [
        stream_of(statistic("p", 3, mode="theorem", levels=5), dimension=2, epsilon=200.0, seed=3) for _ in range(2)
    ]
    for number, stream in enumerate(streams):
        stream.add({"p": parts[0]})
        if number == 0:
            stream.add({"p": parts[1]}, subject=["gone"] * 400)
    before = [stream.close_round() for stream in streams]
    assert before[0].encode() != before[1].encode()
    for stream in streams:
        stream.add({"p": parts[2]})
    streams[0].erase(subject="gone")
    rounds = [[stream.close_round() for _ in range(3)] for stream in streams]
    assert [one.encode() for one in rounds[0]] == [one.encode() for one in rounds[1]]
    far = np.linalg.norm(rounds[0][-1]["c"].value.centres - middles[1], axis=1).min()
    assert far > 0.3
    assert streams[0].state() == streams[1].state()


def test_records_come_and_go():
    """Deleted one by one: the totals are empty again, and the release is that of an empty stream."""
    key = ra.Key.for_testing(1)
    spec = ra.Specification(PLANE, {"c": STATISTICS["means"]}, horizon=4, **PLENTY)
    values = [(0.1, 0.2), (-0.5, 0.9), (1.0, 1.0)]
    busy, idle = (StreamAlgorithm(spec, key) for _ in range(2))
    assert busy.close([Add(value) for value in values]) != idle.close([])
    assert busy.close([Delete(value, 1) for value in values]) == idle.close([])
    assert all(len(tally) == 0 for tally in busy.stream._core.engine.running["c"].totals[0])


# Refusals ------------------------------------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(InputError, match="at most 128 centres in mode 'theorem', got 129 - at k"):
        family(2, 129)
    with pytest.raises(InputError, match=r"at most 8 dimensions for k-median .* got 9: a cell .* - at mode"):
        family(9, 2, objective="medians")
    with pytest.raises(InputError, match="at most 10 levels for 6 axes, got 11 - at levels"):
        family(20, 10, levels=11)
    with pytest.raises(InputError, match="at most 18 levels for 2 axes, got 19 - at levels"):
        family(2, 10, levels=19)
    family(2, 10, levels=18)
    family(8, 128, objective="medians")
    with pytest.raises(InputError, match=r"at statistics\.c\.mode"):
        stream_of(ra.KMedian("p", 2, mode="theorem"), dimension=9)
    with pytest.raises(InputError, match=r"at statistics\.c\.k"):
        stream_of(ra.KMeans("p", 200, mode="theorem"), dimension=9)


def test_documented_costs_are_those_that_the_benchmark_printed():
    printed = (ROOT / "benchmarks" / "results" / "cluster_theorem.txt").read_text()
    page = (ROOT / "docs" / "clusters.md").read_text()
    rows: dict[str, list[str]] = {}
    for line in printed.splitlines()[2:-1]:
        kind, dimension, delta, _, cost, _, default = line.split()
        name = f"{kind}, {dimension} dimensions" + (", pure ε = 1" if delta == "0" else "")
        rows.setdefault(name, []).append(f"{cost} ({default})")
    assert len(rows) == 5
    for name, costs in rows.items():
        assert f"| {name} | {' | '.join(costs)} |" in page


def test_well_separated_clusters_cost_several_times_as_much_as_by_default(monkeypatch):
    """What the page says of 2^14 records in two dimensions, on one seed of the benchmark."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = importlib.import_module("cluster_theorem")
    points = benchmark.separated(2, 10, 1 << 14, 1)
    best = -KMeans(10, n_init=10, random_state=0).fit(points).score(points)
    monkeypatch.setattr(benchmark, "lloyd", lambda points, k: (None, best))
    theorem, default = benchmark.ratios(points, 1, 1e-6)
    assert 2.5 < theorem < 6
    assert 0.99 < default < 1.05


def test_the_finest_levels_fit_their_words():
    """All 62 bits in use: words stay below 2^63, and ranges of finest cells do not wrap around."""
    own = family(31, 128, instances=1, levels=6)
    assert own.width * own.levels == 54
    own = family(2, 2, instances=1, levels=18)
    points = in_ball(np.random.default_rng(1), 50, 2)
    totals = own.gather(points, np.ones(50, dtype=np.int64))
    found = own.cluster(totals, Shown(own, totals, COINS, (1e-6, 1e-6, 1e-6)), 2, "means")
    assert found.weights.sum() == pytest.approx(50)
    assert found.records == pytest.approx(50)


def test_plans_say_what_it_takes():
    stream = stream_of(ra.KMeans("p", 10, mode="theorem"), dimension=10, horizon=64)
    own = stream.specification.bounds["c"].family
    assert own.text == "6 instances of a grid of 9 levels in 6 dimensions, projected from 10"
    cited, divided = own.notes("means")
    assert "cited" in cited
    assert "is not" in cited
    assert "6 x 3 x 9 levels" in divided
    deviations = np.arange(18.0)
    assert own.error(deviations, 10) == 8 * 17.0
    medians = family(2, 3, objective="medians", levels=4)
    assert medians.text == "a grid of 5 levels in 2 dimensions"
    assert "kmedian" in medians.notes("medians")[0]
    assert medians.error(np.array([3.0]), 3) == 2 * 3.0 * RADIUS
    assert own.kinds[SUMS].width == 10
