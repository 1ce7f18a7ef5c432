"""k-means and k-median: regions, sensitivities, privacy and retroactivity checks, releases, bad input."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins, integer_cells
from retroact.errors import VerificationError
from retroact.ledger.definition import Update, surviving
from retroact.statistics.bound import At
from retroact.statistics.clusters.ball import RADIUS, Space
from retroact.statistics.clusters.borrowed_means import smoothed
from retroact.statistics.clusters.directions import LENGTH, independent, orthogonal
from retroact.statistics.clusters.grid import GridRegions
from retroact.statistics.clusters.hashed import Hashed
from retroact.statistics.clusters.lloyd import Objective, search
from retroact.statistics.clusters.regions import FINE, Reader, RegionScheme
from retroact.stream.choosing import Choice
from retroact.testing import CheckFailedError, Shape, check_statistic, check_twin, uniting_pairs, values_of
from support.cluster_readers import Shown
from support.tiers import in_full

COINS = Coins(bytes(32))
COUNTED = "bf0249a04df499c492c6c582c8ba7af22ab875c6a6a59678a60780a6b37d9414"
PLANE = {"x": ra.Number(-1, 1, step=0.25), "y": ra.Number(-1, 1, step=0.25)}
FOUR = {"p": ra.Vector(4, radius=1, step=0.25, clip=True)}


def ball(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    """Points of the lattice, inside and at the rim."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, dimension))
    points /= np.linalg.norm(points, axis=1)[:, None]
    points *= np.where(random.random(count) < 0.5, 1.0, random.random(count) ** (1 / dimension))[:, None]
    return np.trunc(points * RADIUS).astype(np.int64)


def mixture(centres: np.ndarray, each: int, spread: float = 0.05, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.concatenate([c + spread * random.normal(size=(each, len(c))) for c in centres])


def stream(
    points: np.ndarray, k: int, *, key: int = 1, make: type[ra.KMeans] = ra.KMeans, **options: object
) -> ra.Release:
    """One release of all points."""
    schema = {"p": ra.Vector(points.shape[1], radius=1, step=2**-16, clip=True)}
    own = {"epsilon": 1000.0, "delta": 1e-6, "horizon": 7}
    given = own | {name: options.pop(name) for name in list(options) if name in own}
    one = ra.Stream(schema, {"c": make("p", k, **options)}, key=ra.Key.for_testing(key), **given)  # type: ignore[arg-type]
    one.add({"p": points})
    return one.close_round()["c"]


# Points ---------------------------------------------------------------------------------------------------------------


def test_points_are_truncated_towards_zero_and_never_leave_the_ball() -> None:
    schema = ra.Schema({"p": ra.Vector(3, radius=10, step=0.001)})
    space = Space(schema, ["p"], radius=Fraction(7))
    rows = schema.encode({"p": ball(500, 3) / RADIUS * 9.9})[0]
    points = space.points(rows)
    exact = np.array(rows.columns["p"]) * 0.001 / 7 * RADIUS
    inside = (exact**2).sum(axis=1) <= RADIUS**2
    assert ((points**2).sum(axis=1) <= RADIUS**2).all()
    assert (np.abs(points[inside]) <= np.abs(exact[inside])).all()
    assert (np.abs(points[inside] - exact[inside]) < 1 + 1e-6).all()
    clipped = exact[~inside] / np.linalg.norm(exact[~inside], axis=1)[:, None] * RADIUS
    assert np.abs(points[~inside] - clipped).max() < 2
    assert set(space.outside(rows).tolist()) <= set(np.flatnonzero(~inside).tolist())


def test_centre_and_scale_are_exact() -> None:
    schema = ra.Schema({"age": ra.Integer(0, 120), "amount": ra.Number(0, 500, step="0.01")})
    space = Space(schema, ["age", "amount"], centre=[Fraction(60), Fraction(250)], scale=[Fraction(3), Fraction(7, 2)])
    rows = schema.encode([{"age": 61, "amount": 250}, {"age": 60, "amount": "249.99"}, {"age": 0, "amount": 500}])[0]
    unit = RADIUS / space.radius
    expected = [
        [int(unit / 3), 0],
        [0, -int(unit * Fraction(1, 100) / Fraction(7, 2))],
        [-int(unit * 20), int(unit * Fraction(500, 7))],
    ]
    assert space.points(rows).tolist() == expected
    assert not space.outside(rows).size
    assert np.abs(space.decode(space.points(rows).astype(float)) - [[61, 250], [60, 249.99], [0, 500]]).max() < 0.01


def test_points_far_away_keep_their_direction() -> None:
    schema = ra.Schema({"x": ra.Integer(-(2**60), 2**60), "y": ra.Integer(-(2**60), 2**60)})
    space = Space(schema, ["x", "y"], radius=Fraction(1))
    rows = schema.encode([{"x": 3 * 2**55, "y": -(2**57)}, {"x": 1, "y": 0}])[0]
    assert np.abs(space.points(rows) - np.array([[0.6, -0.8], [1, 0]]) * RADIUS).max() <= 1


# Regions --------------------------------------------------------------------------------------------------------------

FAMILIES = [
    GridRegions(1, 2),
    GridRegions(2, 3),
    GridRegions(3, 3),
    GridRegions(2, 6),
    Hashed(4, 3).drawn(COINS),
    Hashed(4, 7).drawn(COINS),
    Hashed(31, 4).drawn(COINS),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{type(f).__name__}-{f.dimension}-{f.text[:20]}")
def test_no_record_moves_the_counters_by_more_than_the_norms(family: RegionScheme) -> None:
    points = ball(200, family.dimension)
    if family.dimension <= 3:
        corners = np.array(list(product([-RADIUS, RADIUS, 0], repeat=family.dimension)))
        points = np.concatenate([points, corners[(corners**2).sum(axis=1) <= RADIUS**2]])
    layout = family.layout
    first, second = [], []
    for point in points:
        moved = family.coordinates(family.gather(point[None], np.ones(1, dtype=np.int64)))
        parts = [Fraction(abs(amount), layout.units[kind]) for (_, kind), amount in moved.items()]
        first.append(sum(parts))
        second.append(sum(part * part for part in parts))
        for number, kind in enumerate(family.kinds):
            own = [abs(amount) for (_, k), amount in moved.items() if k == number]
            assert sum(own) <= kind.norm1, kind
            assert sum(a * a for a in own) <= kind.norm2_squared, kind
    assert max(first) <= layout.norm1
    assert max(second) <= layout.norm2_squared
    # The bound is not loose: the rim attains it (a grid's sums only at a corner of a cell).
    assert max(second) > layout.norm2_squared * (
        Fraction(1, 2) if isinstance(family, GridRegions) else Fraction(99, 100)
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{type(f).__name__}-{f.dimension}")
def test_the_shares_add_up(family: RegionScheme) -> None:
    assert sum(kind.share for kind in family.kinds) == pytest.approx(1)
    whole = family.layout.norm2_squared
    for kind in family.kinds:
        assert float(Fraction(kind.norm2_squared, kind.unit**2) / whole) == pytest.approx(kind.share, rel=0.01)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{type(f).__name__}-{f.dimension}")
def test_totals_are_a_group(family: RegionScheme) -> None:
    points, ones = ball(60, family.dimension), np.ones(60, dtype=np.int64)
    whole = family.gather(points, ones)
    parts = family.gather(points[:20], ones[:20]) + family.gather(points[20:], ones[20:])
    assert family.coordinates(whole) == family.coordinates(parts)
    assert family.coordinates(whole - parts) == {}
    order = np.random.default_rng(1).permutation(60)
    assert family.coordinates(family.gather(points[order], ones)) == family.coordinates(whole)


def test_cells_of_a_grid_hold_their_points() -> None:
    grid = GridRegions(3, 3)
    points = ball(300, 3)
    codes = grid.codes(points)
    for depth in grid.depths:
        away = points - grid.middles(codes >> np.uint64(grid.depths[-1] - depth), depth)
        assert (np.abs(away) <= grid.half(depth)).all()


def test_directions_are_orthogonal_and_exact() -> None:
    planes = orthogonal(b"seed", 9, 40)
    inner = planes.T @ planes / LENGTH**2
    assert np.abs(inner - np.eye(9)).max() < 1e-4
    assert (planes == np.rint(planes)).all()
    assert np.linalg.norm(planes, axis=0).max() * RADIUS < 2**53
    assert np.abs(independent(b"seed", 5, 40).T @ planes).max() <= 1.001 * LENGTH**2
    points = ball(50, 40)
    assert (points.astype(float) @ planes == points @ planes.astype(np.int64)).all()


def test_regions_depend_on_the_key_and_on_nothing_else() -> None:
    points = ball(100, 6).astype(float)
    one, same, other = (Hashed(6, 8).drawn(Coins(secret)).codes(points) for secret in (bytes(32), bytes(32), b"1" * 32))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("statistic", "schema"), [(ra.KMeans(["x", "y"], 2, 2), PLANE), (ra.KMeans("p", 2), FOUR)])
def test_every_kind_has_the_noise_that_its_share_asks_for(
    statistic: ra.KMeans, schema: dict[str, ra.schema.Field], delta: float
) -> None:
    spec = ra.Specification(schema, {"c": statistic}, epsilon=1.0, delta=delta, horizon=15)
    noise, layout = spec.mechanism("c", COINS), spec.bounds["c"].layout
    process, share = spec.processes["c"], float(spec.shares["c"].amount)
    for kind, unit in enumerate(layout.units):
        drawn, denominator = noise.sample(7, integer_cells(4000), [kind])
        if delta:
            claimed = float(unit**2 * layout.norm2_squared * process.l2_squared) * process.variance(7) / share
        else:
            claimed = 2 * float(unit * layout.norm1 * process.l1 / Fraction(share)) ** 2 * process.variance(7, 1)
        seen = np.array([n / denominator for n in drawn[:, 0].tolist()])
        # A fourth moment of at most 6: within five standard errors.
        assert abs(seen.var() / claimed - 1) < 5 * np.sqrt(5 / 4000), kind
        assert noise.deviation_of(kind, 7) ** 2 == pytest.approx(claimed, rel=0.01)
    both, _ = noise.sample(7, integer_cells(10), [2, 0])
    assert (both[:, 0] == noise.sample(7, integer_cells(10))[0][:, 2]).all()


@pytest.mark.parametrize(("statistic", "schema"), [(ra.KMeans(["x", "y"], 2, 2), PLANE), (ra.KMeans("p", 2), FOUR)])
def test_no_two_counters_share_their_noise(statistic: ra.KMeans, schema: dict[str, ra.schema.Field]) -> None:
    """Kinds, regions and coordinates: all have noise of their own, and the same again when read again."""
    spec = ra.Specification(schema, {"c": statistic}, epsilon=0.1, delta=1e-6, horizon=15)
    layout = spec.bounds["c"].layout
    reader = Reader(spec.mechanism("c", COINS), 7)
    regions, nothing = np.arange(64, dtype=np.uint64), np.zeros((64, 3), dtype=np.int64)
    tables = [reader.read(kind, regions, nothing) / reader.deviation(kind) for kind in range(layout.size)]
    columns = np.array([table[:, coordinate] for table in tables for coordinate in range(3)])
    assert np.abs(np.corrcoef(columns) - np.eye(len(columns))).max() < 0.6
    assert (reader.read(1, regions[5:7], nothing[:2]) / reader.deviation(1) == tables[1][5:7]).all()
    rows = np.concatenate(tables, axis=1)
    assert np.abs(np.corrcoef(rows[:, :15]) - np.eye(64)).max() < 0.99


def test_conditions_choose_the_records() -> None:
    every = mixture(np.array([[0.5, 0.1], [-0.5, 0.1]]), 500).round(2)
    right = every[every[:, 0] >= 0]
    schema = {"x": ra.Number(-1, 1, step=0.01), "y": ra.Number(-1, 1, step=0.01)}
    statistics = {"c": ra.KMeans(["x", "y"], 2, where={"x": {"min": 0}})}
    out = []
    for points in (every, right):
        one = ra.Stream(schema, statistics, epsilon=9.0, delta=1e-6, horizon=7, key=ra.Key.for_testing(1))
        one.add({"x": points[:, 0], "y": points[:, 1]})
        out.append(one.close_round().encode())
    assert out[0] == out[1]


@pytest.mark.parametrize("dimension", [1, 3])
def test_distances_are_exact(dimension: int) -> None:
    schema = ra.Schema({"p": ra.Vector(dimension, radius=1, step=2**-16, clip=True)})
    points = ball(2000, dimension)
    rows = schema.encode({"p": points / RADIUS})[0]
    found = ra.Distances("p", radius=1).offsets(rows, schema)
    assert found.tolist() == [math.isqrt(sum(k * k for k in point)) for point in points.tolist()]


def test_the_names_of_coins_cover_the_geometry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retuned code must not use the noise of an earlier version at another scale."""

    def digest() -> bytes:
        return ra.Specification(PLANE, {"c": ra.KMeans(["x", "y"], 2, 2)}, epsilon=1.0, horizon=7).digest("c")

    before = digest()
    assert digest() == before
    monkeypatch.setattr("retroact.statistics.clusters.grid.COUNTS", 0.5)
    assert digest() != before


def test_the_exact_counters_of_a_key_stay_what_they_are() -> None:
    """Integers by name, the same on every machine: a change here is a change of the names of coins or of regions."""
    digest = hashlib.sha256()
    statistics = {
        "grid": ra.KMeans(["x", "y"], 3, 2),
        "hash": ra.KMeans("p", 3),
        "finder": ra.KMedian("q", 3),
        "theorem": ra.KMeans("p", 3, mode="theorem", levels=3),
        "distances": ra.Distances("p", [0.5]),
    }
    schema = PLANE | FOUR | {"q": ra.Vector(30, radius=1, step=0.25, clip=True)}
    noise = Choice("gaussian", dict.fromkeys(statistics, "schauder"))
    spec = ra.Specification(schema, statistics, epsilon=100.0, delta=1e-6, horizon=7, choice=noise)
    one = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    random = np.random.default_rng(1)
    for _ in range(3):
        points = random.integers(-2, 3, (100, 36)) / 4
        one.add({"x": points[:, 0], "y": points[:, 1], "p": points[:, 2:6], "q": points[:, 6:]})
        for release in one.close_round().values():
            digest.update(repr((release.numerators, release.denominator)).encode())
    assert digest.hexdigest() == COUNTED


def test_other_threads_of_linear_algebra_publish_the_same_bytes() -> None:
    program = (
        "import numpy as np, retroact as ra\n"
        "s = ra.Stream({'p': ra.Vector(100, radius=1, step=2**-16, clip=True)}, {'c': ra.KMeans('p', 5)}, epsilon=20.0,"
        " delta=1e-6, horizon=7, key=ra.Key.for_testing(1))\n"
        "r = np.random.default_rng(1)\n"
        "s.add({'p': np.eye(100)[r.integers(0, 5, 3000)] * 0.8 + 0.02 * r.normal(size=(3000, 100))})\n"
        "print([s.close_round().encode().hex() for _ in range(4)])"
    )
    out = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for threads in ("1", "2")
    ]
    assert out[0] == out[1]


# The checks -----------------------------------------------------------------------------------------------------------

CHECKED = [
    (ra.KMeans(["x", "y"], 2, 1, clip=True), PLANE),
    (ra.KMedian(["x", "y"], 2, 2, levels=2, centre=[0.25, 0], scale=[1, 2], where={"x": {"min": 0}}), PLANE),
    (ra.KMeans("p", 2), FOUR),
    (ra.KMedian("p", 2, 0.5, bits=3, clip=True), FOUR),
    (ra.Distances(["x", "y"], [0.5], radius=1), PLANE),
]


@pytest.mark.parametrize(
    ("statistic", "schema"),
    [in_full(*case) if case[0] == CHECKED[3][0] else case for case in CHECKED],
    ids=lambda v: getattr(v, "kind", ""),
)
def test_private_and_retroactive(statistic: ra.KMeans, schema: dict[str, ra.schema.Field]) -> None:
    """The medians of the plane without a horizon; in full below."""
    horizon = None if isinstance(statistic, ra.KMedian) and schema is PLANE else 8
    check_statistic(
        statistic, schema, epsilon=100.0, deltas=(1e-6,), horizons=(horizon,), pairs=2, draws=200, updates=6
    )


def test_the_checks_see_that_noise_is_left_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions depend on the key, so other keys give other answers even without any noise."""

    def exact_numbers(self: Reader, kind: int, regions: np.ndarray, exact: np.ndarray) -> np.ndarray:
        self._read.append((kind, regions, exact.shape[1], exact.reshape(-1)))
        self.counts += exact.ravel().tolist() if exact.shape[1] == 1 else []
        return exact.astype(float)

    monkeypatch.setattr(Reader, "read", exact_numbers)
    with pytest.raises(VerificationError, match="is not its totals plus"):
        check_statistic(ra.KMeans("p", 2), FOUR, epsilon=100.0, deltas=(1e-6,), horizons=(8,), pairs=2, draws=0)


OPTIONS = [
    pytest.param(ra.KMeans(["x", "y"], 2, 2, window=3), PLANE, 8, marks=pytest.mark.slow),
    (ra.KMeans("p", 2, window=3), FOUR, None),
    pytest.param(ra.KMeans(["x", "y"], 2, 2, every=2), PLANE, 8, marks=pytest.mark.slow),
    pytest.param(ra.KMeans("p", 2, noise="tree"), FOUR, 8, marks=pytest.mark.slow),
    pytest.param(ra.KMeans(["x", "y"], 2, 2, noise="paper"), PLANE, 8, marks=pytest.mark.slow),
    pytest.param(ra.KMeans("p", 2, noise="doubling"), FOUR, None, marks=pytest.mark.slow),
    (ra.Restated(ra.KMeans(["x", "y"], 2, 2), [1, 3]), PLANE, 8),
]


@pytest.mark.parametrize(
    ("statistic", "schema", "horizon"), OPTIONS, ids=lambda v: repr(v) if isinstance(v, ra.KMeans) else ""
)
def test_options(statistic: ra.KMeans, schema: dict[str, ra.schema.Field], horizon: int | None) -> None:
    check_statistic(statistic, schema, epsilon=100.0, deltas=(1e-6,), pairs=2, draws=200, horizons=(horizon,))


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "schema"), CHECKED, ids=lambda v: getattr(v, "kind", ""))
def test_private_and_retroactive_in_full(statistic: ra.KMeans, schema: dict[str, ra.schema.Field]) -> None:
    check_statistic(statistic, schema, epsilon=100.0, pairs=2000, draws=20_000, updates=6)


@pytest.mark.parametrize("dimension", [2, 5, 32])
def test_erasing_a_whole_cluster_leaves_no_trace(dimension: int) -> None:
    """Byte-equal to the twin that never had it, in the round of the erasure and in all later ones."""
    random = np.random.default_rng(dimension)
    centres = random.normal(size=(3, dimension))
    centres *= 0.7 / np.linalg.norm(centres, axis=1)[:, None]
    points = mixture(centres, 700, 0.02)
    schema = {"p": ra.Vector(dimension, radius=1, step=2**-12, clip=True)}

    def make() -> ra.Stream:
        statistics = {"means": ra.KMeans("p", 3), "medians": ra.KMedian("p", 3)}
        key = ra.Key.for_testing(5)
        return ra.Stream(schema, statistics, epsilon=20.0, delta=1e-6, horizon=15, key=key)

    whole, twin = make(), make()
    whole.add({"p": points}, subject=["erased" if i < 700 else "kept" for i in range(2100)])
    twin.add({"p": points[700:]}, subject=["kept"] * 1400)
    assert whole.close_round().encode() != twin.close_round().encode()
    whole.erase(subject="erased")
    for _ in range(3):
        one, other = whole.close_round(), twin.close_round()
        assert one.encode() == other.encode()
    assert whole.state() == twin.state()
    found = np.asarray(one["means"].value)
    assert all(np.linalg.norm(found - c, axis=1).min() < 0.1 for c in centres[1:])
    assert len(found) == 2 or np.linalg.norm(found - centres[0], axis=1).min() > 0.3


# The unknown horizon --------------------------------------------------------------------------------------------------


def test_without_a_horizon() -> None:
    points = mixture(np.array([[0.5, 0.0], [-0.5, 0.2]]), 3000, 0.05)
    release = stream(points, 2, horizon=None, epsilon=5.0)
    found = np.sort(np.asarray(release.value)[:, 0])
    assert np.abs(found - [-0.5, 0.5]).max() < 0.05


class Restarting:
    """The remark on the unknown horizon: instance i starts in round 2^i with what survives then. With ``replay`` the
    survivors are fed to it one by one, each a step of its own clock; otherwise as one batch in its first step."""

    def __init__(self, key: ra.Key, replay: bool) -> None:
        self.statistic = ra.KMeans(["x", "y"], 2, 2)
        spec = ra.Specification(PLANE, {"c": self.statistic}, epsilon=50.0, delta=1e-6, horizon=256)
        self.noise = spec.mechanism("c", key.coins("restarting"))
        self.bound = spec.bounds["c"].drawn(self.noise.coins)
        self.replay, self.history = replay, ()

    def close(self, updates: tuple[Update, ...]) -> bytes:
        self.history = (*self.history, updates)
        round = len(self.history)
        start = 1 << (round.bit_length() - 1)
        survivors = surviving(self.history, start).total() if self.replay else 1
        data, schema = surviving(self.history, round), self.bound.schema
        rows = schema.encode([dict(zip(PLANE, point.value, strict=True)) for point in data])[0]
        totals = self.bound.gather(rows, np.array(list(data.values()), dtype=np.int64))
        clock = max(1, survivors) + round - start
        return str(self.bound.release([totals], self.noise, At(clock, round)).numerators).encode()


def test_replaying_survivors_step_by_step_is_not_retroactive() -> None:
    shape = Shape(values_of(ra.Schema(PLANE), Random(1)), rounds=8)
    pairs = list(uniting_pairs(shape, Random(2), 40))
    assert check_twin(lambda key: Restarting(key, replay=False), pairs) > 0
    with pytest.raises(CheckFailedError, match="twin check"):
        check_twin(lambda key: Restarting(key, replay=True), pairs)


# What a release sees --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["means", "medians"])
@pytest.mark.parametrize(
    "family",
    [GridRegions(2, 3), GridRegions(3, 2), Hashed(4, 6).drawn(COINS), Hashed(31, 4).drawn(COINS)],
    ids=lambda f: f.text[:30],
)
def test_a_release_is_a_function_of_noisy_counters(family: RegionScheme, objective: Objective) -> None:
    """With the same counters shown, other exact ones make no difference: neither to what is released nor to which
    regions are looked at."""
    centres = np.vstack([np.eye(family.dimension)[:2], -np.eye(family.dimension)[:1]]) * 0.7
    points = (mixture(centres, 300) * RADIUS).astype(np.int64)
    weights = np.ones(len(points), dtype=np.int64)
    totals = family.gather(points, weights)
    others = [
        family.gather(points[:5], weights[:5]),
        family.gather(-points, 7 * weights),
        totals - totals,
    ]
    noise = [kind.unit / FINE for kind in family.kinds]
    readers = [Shown(family, totals, COINS, noise) for _ in range(4)]
    wanted, *found = (
        family.cluster(exact, reader, 3, objective) for exact, reader in zip([totals, *others], readers, strict=True)
    )
    assert len(wanted.centres) == 3
    for other, reader in zip(found, readers[1:], strict=True):
        assert reader.looked_at == readers[0].looked_at
        for name in ("centres", "weights", "weight_errors"):
            assert np.array_equal(getattr(other, name), getattr(wanted, name))
        assert (other.cost, other.cost_error, other.length) == (wanted.cost, wanted.cost_error, wanted.length)


# A release ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ra.KMeans, ra.KMedian])
@pytest.mark.parametrize("dimension", [1, 2, 3, 6, 40])
def test_clear_clusters_are_found(make: type[ra.KMeans], dimension: int) -> None:
    random = np.random.default_rng(6)
    centres = random.normal(size=(4, dimension))
    centres *= 0.8 / np.linalg.norm(centres, axis=1)[:, None]
    if dimension <= 2:
        centres = np.array([[-0.8, 0.1], [-0.2, 0.1], [0.3, 0.1], [0.8, 0.1]])[:, :dimension]
    sizes = [500, 1000, 1500, 2000]
    points = np.concatenate([mixture(c[None], n, 0.02, n) for c, n in zip(centres, sizes, strict=True)])
    value = stream(points, 4, make=make, epsilon=100.0).value
    assert len(value) == 4
    assert (np.diff(value.weights) <= 0).all()
    for centre, size in zip(centres, sizes, strict=True):
        nearest = int(np.linalg.norm(np.asarray(value) - centre, axis=1).argmin())
        assert np.linalg.norm(value[nearest] - centre) < 0.1
        assert abs(value.weights[nearest] - size) < 0.1 * size + 5 * value.weight_errors[nearest]
    assert value.weights.sum() == pytest.approx(value.records)
    exact = -value.score(points)
    if make is ra.KMeans:
        # Regions go to one centre as a whole, which costs at least as much; the cells of a grid are small.
        assert value.cost > exact - 4 * value.cost_error
        assert dimension > 3 or value.cost < exact + 4 * value.cost_error
    else:
        assert value.cost is None
    assert value.predict(points[:500]).tolist() == [int(value.predict(centres[:1])[0])] * 500
    assert value.transform(points).shape == (5000, 4)


def test_the_same_bytes_in_batches_and_in_any_order() -> None:
    points = mixture(np.array([[0.5] * 5, [-0.3] * 5]), 800)
    schema = {"p": ra.Vector(5, radius=2, step=2**-10, clip=True)}

    def run(order: np.ndarray, batch: int) -> bytes:
        one = ra.Stream(schema, {"c": ra.KMeans("p", 2)}, epsilon=9.0, delta=1e-6, horizon=9, key=ra.Key.for_testing(1))
        for start in range(0, len(order), batch):
            one.add({"p": points[order[start : start + batch]]})
        return one.close_round().encode()

    order = np.arange(1600)
    assert run(order, 1600) == run(order[::-1], 1600) == run(np.random.default_rng(1).permutation(1600), 77)


def test_nothing_but_noise_is_one_centre_in_the_middle() -> None:
    for dimension in (2, 8):
        value = stream(np.zeros((3, dimension)), 4, epsilon=1.0).value
        assert 1 <= len(value) <= 4
        assert any("few for 4 centres" in note for note in value.notes)


def test_more_centres_than_records() -> None:
    value = stream(np.array([[0.5, 0.5], [-0.5, -0.5]]), 6).value
    assert 1 <= len(value) <= 6
    assert any("stand out" in note for note in value.notes)


def test_a_loose_radius_is_told() -> None:
    tight = mixture(np.eye(5)[:3] * 0.5, 4000, 0.1)
    told = [[n for n in stream(points, 3, epsilon=2.0).value.notes if "loose" in n] for points in (tight, tight / 50)]
    assert not told[0]
    assert "Distances" in told[1][0]


def test_the_value_is_plain_in_a_release() -> None:
    release = stream(mixture(np.array([[0.5, 0.0], [-0.5, 0.0]]), 500), 2)
    plain = release.to_dict()
    assert len(plain["value"]["centres"]) == len(plain["value"]["weights"]) == 2
    assert plain["standard_error"]["cost"] > 0
    assert plain["interval95"] is None
    assert "Centres([" in repr(release.value)


def test_weights_and_cost_have_honest_errors() -> None:
    """Over keys, the published errors are as large as what is seen."""
    points = mixture(np.array([[0.6, 0.0], [-0.6, 0.0], [0.0, 0.6]]), 2000, 0.05)
    off = []
    for key in range(20):
        value = stream(points, 3, key=key, epsilon=3.0, horizon=63).value
        off += [(value.weights[i] - 2000) / value.weight_errors[i] for i in range(3)]
        off.append((value.cost + value.score(points)) / value.cost_error)
    assert np.abs(off).mean() < 2
    assert np.abs(off).max() < 6


# Parts of a release ---------------------------------------------------------------------------------------------------


def test_search_finds_the_best_of_many_starts() -> None:
    points = mixture(np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 5.0]]), 30, 0.1)
    found = search(points, np.ones(120), 4, "means", COINS)
    assert sorted(np.bincount(found.labels).tolist()) == [30] * 4
    median = search(np.array([[0.0], [1.0], [100.0]]), np.array([1.0, 1.0, 1.0]), 1, "medians", COINS)
    assert abs(float(median.centres[0, 0]) - 1) < 0.01
    few = search(np.zeros((2, 3)), np.ones(2), 5, "means", COINS)
    assert len(few.centres) == 1


def test_smoothing_borrows_strength() -> None:
    """With noise, means that follow the bits are found better than from each cell alone; without, nothing changes."""
    random = np.random.default_rng(0)
    signs = np.array(list(product([-1.0, 1.0], repeat=7)))
    means = signs @ random.normal(size=(7, 2))
    counts = np.full(128, 50.0)
    exact = smoothed(means * 50, counts, 1e-9, signs)
    assert np.abs(exact - means).max() < 1e-6
    noisy = means * 50 + 100 * random.normal(size=means.shape)
    assert ((smoothed(noisy, counts, 1e4, signs) - means) ** 2).mean() < ((noisy / 50 - means) ** 2).mean() / 4


# Files, plans, bad input ----------------------------------------------------------------------------------------------


def test_from_a_file() -> None:
    data = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": 63,
        "schema": {"x": {"type": "number", "lower": 0, "upper": 10}, "y": {"type": "number", "lower": 0, "upper": 10}},
        "statistics": {
            "places": {"type": "kmeans", "fields": ["x", "y"], "k": 3, "radius": 5, "clip": True, "levels": 2},
            "middles": {"type": "kmedian", "fields": ["x", "y"], "k": 3, "scale": [1, 2]},
            "far": {"type": "distances", "fields": ["x", "y"], "probabilities": [0.99]},
        },
    }
    specification = ra.Specification.from_dict(data)
    assert repr(specification.statistics["places"]) == ("KMeans(['x', 'y'], 3, radius=5, clip=True, levels=2)")
    del data["statistics"]["places"]["k"]  # type: ignore[attr-defined]
    with pytest.raises(ra.InputError, match=r"expected k.*statistics\.places\.k"):
        ra.Specification.from_dict(data)


def test_a_plan_says_what_to_expect() -> None:
    vector = {"p": ra.Vector(20, radius=1, step=2**-16)}
    few = ra.Specification(vector, {"c": ra.KMeans("p", 5, expected=1000)}, epsilon=1.0, delta=1e-6, horizon=63)
    many = ra.Specification(vector, {"c": ra.KMeans("p", 5, expected=10**6)}, epsilon=1.0, delta=1e-6, horizon=63)
    assert few.bounds["c"].family.bits < many.bounds["c"].family.bits  # type: ignore[attr-defined]
    text = str(ra.plan(many.replace(records=10**6)))
    assert "hyperplanes" in text
    assert "smaller clusters are not found" in text
    more, fewer = (ra.plan(many.replace(records=records))["c"] for records in (10**6, 10**5))
    assert more.standard_deviation < fewer.standard_deviation
    # Planned anew under another budget, the regions are chosen anew.
    assert many.replace(epsilon=0.01).bounds["c"].family.bits < many.bounds["c"].family.bits  # type: ignore[attr-defined]


SPACE = {"x": ra.Number(-1, 1), "y": ra.Number(-1, 1), "t": ra.Text(), "p": ra.Vector(2, radius=1, step=0.01)}
BAD = [
    (lambda: ra.KMeans(["x", "y"], 0), "whole number from 1 on, got 0"),
    (lambda: ra.KMeans(["x", "y"], 2.5), "whole number"),  # type: ignore[arg-type]
    (lambda: ra.KMeans([], 2), "names of one or more different fields"),
    (lambda: ra.KMeans(["x", "x"], 2), "different fields"),
    (lambda: ra.KMeans(["x", "t"], 2), "type Number or Integer or Boolean or Vector, got Text"),
    (lambda: ra.KMeans(["p", "x"], 2), "one vector, or several numbers"),
    (lambda: ra.KMeans(["x", "none"], 2), "expected one of the fields"),
    (lambda: ra.KMeans(["x", "y"], 2, 0), "radius above 0"),
    (lambda: ra.KMeans(["x", "y"], 2, "wide"), "radius"),
    (lambda: ra.KMeans(["x", "y"], 2, 10**200), "fewer digits"),
    (lambda: ra.KMeans(["x", "y"], 2, centre=[1]), "2 numbers"),
    (lambda: ra.KMeans(["x", "y"], 2, "0.00000000001"), "not tiny next to the steps"),
    (lambda: ra.KMeans(["x", "y"], 2, scale=[1, 0]), "above 0"),
    (lambda: ra.KMeans(["x", "y"], 2, clip=1), "true or false"),  # type: ignore[arg-type]
    (lambda: ra.KMeans(["x", "y"], 2, expected=0), "expected"),
    (lambda: ra.KMeans(["x", "y"], 2, mode="other"), "'grid', 'hash' or 'theorem'"),  # type: ignore[arg-type]
    (lambda: ra.KMeans(["x", "y"], 2, bits=3), "none in mode 'grid'"),
    (lambda: ra.KMeans(["x", "y"], 2, mode="hash", bits=9), "at most 4 bits"),
    (lambda: ra.KMeans(["x", "y"], 2, levels=30), "levels in 2 dimensions"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_arguments(make: object, message: str) -> None:
    with pytest.raises(ra.InputError, match=message):
        ra.Specification(SPACE, {"c": make()}, epsilon=1.0, horizon=7)  # type: ignore[operator]


def test_points_outside_are_refused_or_clipped() -> None:
    schema = {"x": ra.Number(-5, 5, step=0.01), "y": ra.Number(-5, 5, step=0.01)}
    strict, lenient = (
        ra.Stream(
            schema, {"c": ra.KMeans(["x", "y"], 2, 3, clip=clip)}, epsilon=1.0, horizon=7, key=ra.Key.for_testing(1)
        )
        for clip in (False, True)
    )
    before = strict.state()
    with pytest.raises(ra.InputError, match=r"within 3 of the centre.*x, y, row 2"):
        strict.add([{"x": 1, "y": 1}, {"x": 3, "y": 3}])
    assert strict.state() == before
    strict.add({"x": 0, "y": 3})
    lenient.add([{"x": 1, "y": 1}, {"x": 3, "y": 3}])
    assert lenient.close_round()["c"].value is not None
    with pytest.raises(ra.InputError, match=r"finite|number"):
        strict.add({"x": float("nan"), "y": 0})


def test_points_of_your_own_are_checked() -> None:
    value = stream(mixture(np.array([[0.5, 0.0], [-0.5, 0.0]]), 100), 2).value
    for points, message in (([[1, 2, 3]], "2 coordinates"), ([[np.nan, 0]], "finite"), (["a"], "numbers")):
        with pytest.raises(ra.InputError, match=message):
            value.predict(points)
    with pytest.raises(ra.InputError, match="named 'p'"):
        value.predict({"q": [1.0]})
    assert value.predict(np.zeros((0, 2))).tolist() == []
