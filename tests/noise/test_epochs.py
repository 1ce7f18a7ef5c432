"""Noise across restarts by brute force: all intervals, all places of up to three restarts, every released round."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.noise import (
    Blocks,
    Bridge,
    Crossed,
    Doubling,
    Flips,
    Fresh,
    Mechanism,
    Patterns,
    Schauder,
    Tree,
    Unbounded,
    Windowed,
    difference,
    restarted,
)
from retroact.noise.epochs import ANCHOR, RAMP, Anchored, Restarted, Tilted, check_restarts
from retroact.privacy import Share

ONE = Fraction(1)


def cuts(rounds, restarts):
    """All ways to cut the rounds into epochs, as (first, last]; an epoch may release nothing."""
    for places in itertools.combinations_with_replacement(range(rounds + 1), restarts):
        yield list(itertools.pairwise((0, *places, rounds)))


def matrix(process, rounds):
    """Node to its weight in every round, as fractions."""
    terms = process.terms(np.arange(1, rounds + 1))
    out = {}
    for row in range(rounds):
        one = terms.of(row)
        for level, index, weight in zip(one.levels.tolist(), one.indices.tolist(), one.weights.tolist(), strict=True):
            out.setdefault((level, index), [Fraction(0)] * rounds)[row] += Fraction(weight, terms.denominator)
    return out


def costs(process, moved):
    return (
        sum((abs(v) / process.spread(level, 1) for (level, _), v in moved.items()), Fraction(0)),
        sum((v * v / process.spread(level, 2) for (level, _), v in moved.items()), Fraction(0)),
    )


def worst(process, rounds, part, window=None):
    """The largest l1 and l2_squared over all intervals and cuts; checks every part at every released round."""
    weights = [matrix(process.in_epoch(epoch), rounds) for epoch in (0, 1)]

    @lru_cache(None)
    def cost(later, start, end, first, last):
        moved = part(process.in_epoch(later), start, end, first, last)
        nodes = weights[later]
        for q in range(first + 1, last + 1):
            image = sum((value * nodes[node][q - 1] for node, value in moved.items() if node in nodes), Fraction(0))
            assert image == (start < q <= end), (process, later, (start, end), (first, last), q)
        return costs(process, moved)

    most = [Fraction(0), Fraction(0)]
    for epochs in cuts(rounds, process.restarts):
        for start in range(rounds):
            for end in range(start + 1, min(rounds, start + (window or rounds)) + 1):
                parts = [cost(min(k, 1), start, end, *epoch) for k, epoch in enumerate(epochs)]
                most = [max(old, sum(new)) for old, new in zip(most, zip(*parts, strict=True), strict=True)]
    return tuple(most)


def anchored(process, start, end, first, last):
    return process.part(start, end, first, last)


KINDS = {
    "tree": Tree,
    "paper": lambda horizon: Tree(horizon, accounting="paper"),
    "schauder": Schauder,
    "bridge": Bridge,
    "unbounded": lambda _: Unbounded(3),
    "unbounded bridge": lambda _: Unbounded(3, inner=Bridge),
}


@pytest.mark.parametrize("restarts", [1, 2, 3])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 8, 9, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_anchors_hide_every_interval_across_every_restart(kind, horizon, restarts):
    process = restarted(KINDS[kind](horizon), restarts)
    assert isinstance(process, Anchored)
    found, claimed = worst(process, horizon, anchored), (process.l1, process.l2_squared)
    assert all(a <= b for a, b in zip(found, claimed, strict=True))
    if horizon >= 7 and kind != "paper":
        assert found == claimed  # with room for three restarts the bound is attained


@pytest.mark.parametrize("radices", [(2, 2, 2), (4, 2), (2, 4), (8,)])
def test_bridges_of_other_radices(radices):
    process = restarted(Bridge(7, radices=radices), 2)
    assert worst(process, 7, anchored) == (process.l1, process.l2_squared)


def unseen(process, moved, first, last):
    """Without the nodes that no released round sees."""
    seen = process.terms(np.arange(first + 1, last + 1))
    used = seen.weights != 0
    nodes = set(zip(seen.levels[used].tolist(), seen.indices[used].tolist(), strict=True))
    return {node: value for node, value in moved.items() if node in nodes}


def clipped(process, start, end, first, last):
    """The part as an interval of its own."""
    start, end = max(start, first), min(end, last)
    return difference(process.shift(start), process.shift(end)) if start < end else {}


def free_ends(process, start, end, first, last):
    """Ends that the epoch does not see are put at borders of blocks beyond it."""
    if end <= first or last <= start:
        return {}
    length = process.inner.length
    start = start if start > first else (first // length - 1) * length
    end = end if end <= last else (last // length + 2) * length
    return unseen(process, difference(process.inner.shift(start), process.inner.shift(end)), first, last)


def pattern(process, start, end, first, last):
    """An interval is a pattern too; releases of other epochs are free."""
    inside = [int(start < q <= end and first < q <= last) for q in range(1, process.horizon + 1)]
    return unseen(process, process.hidden(inside), first, last)


def extended(process, start, end, first, last):
    """Blocks that the epoch cuts go on as they are at the cut."""
    if end <= first or last <= start:
        return {}
    full = [int(start < min(max(q, first + 1), last) <= end) for q in range(1, process.horizon + 1)]
    return unseen(process, process.hidden(full), first, last)


@pytest.mark.parametrize("restarts", [1, *(pytest.param(many, marks=pytest.mark.slow) for many in (2, 3))])
def test_nodes_alone_hide_what_is_left_in_every_epoch(restarts):
    for process, part, window in [
        (Fresh(4), clipped, 4),
        (Doubling(), clipped, None),
        (Patterns(9), pattern, None),
        (Patterns(9, window=3), pattern, 3),
        (Blocks(1, 9), extended, None),
        (Blocks(3, 9), extended, None),
        (Blocks(4, 8), extended, None),
    ]:
        made = restarted(process, restarts)
        assert type(made) is Restarted
        assert made.epochs == (made,)
        rounds = process.horizon or 9
        found, claimed = worst(made, rounds, part, window), (made.l1, made.l2_squared)
        assert all(a <= b for a, b in zip(found, claimed, strict=True)), (process, found, claimed)
    # Cutting instance 1 (rounds 2 and 3) is the dearest.
    assert worst(restarted(Doubling(), 1), 15, clipped) <= (Fraction(7, 6),) * 2


@pytest.mark.parametrize("inner", [Patterns(7), Patterns(7, window=3), Patterns(None, first=2), Blocks(1, 7),
                                   Blocks(3, 7), Blocks(4, 8)], ids=repr)  # fmt: skip
def test_all_patterns_that_are_not_intervals(inner):
    """Everything that the process hides, cut at every place."""
    rounds, length = inner.horizon or 7, getattr(inner, "length", 1)
    block = np.arange(rounds) // length
    for restarts in (1, 2):
        process = restarted(inner, restarts)
        nodes = matrix(process, rounds)
        for whole in itertools.product((0, 1), repeat=rounds):
            try:
                inner.hidden(whole)
            except InputError:
                continue
            for epochs in cuts(rounds, restarts):
                total = [Fraction(0), Fraction(0)]
                for first, last in epochs:
                    released = [first <= q < last for q in range(rounds)]
                    if not any(whole[first:last]):
                        continue
                    mine = [whole[q] if released[q] else 0 for q in range(rounds)]
                    if isinstance(inner, Blocks):
                        for q in range(rounds):
                            same = [a for a in range(first, last) if block[a] == block[q]]
                            mine[q] = whole[min(same, key=lambda a: abs(a - q))] if same else 0
                    moved = unseen(process, inner.hidden(mine), first, last)
                    for q in range(first, last):
                        assert sum(v * nodes[n][q] for n, v in moved.items() if n in nodes) == whole[q]
                    total = [a + b for a, b in zip(total, costs(process, moved), strict=True)]
                assert total[0] <= process.l1
                assert total[1] <= process.l2_squared


@pytest.mark.parametrize("restarts", [1, 2, 3])
@pytest.mark.parametrize("inner", [Schauder, Bridge])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5])
def test_windows(window, inner, restarts):
    process = restarted(Windowed(window, inner=inner), restarts)
    found = worst(process, 12, free_ends, window)
    assert found[0] <= process.l1
    assert found[1] <= process.l2_squared
    if window > restarts + 2:
        assert found[0] == process.l1


@pytest.mark.parametrize(
    "inner",
    [
        Tree(9), Schauder(9), Bridge(9), Unbounded(3), Unbounded(3, inner=Bridge), Windowed(4), Doubling(),
        Patterns(9), Blocks(3, 9), Blocks(4, 8),
    ],
    ids=repr,
)  # fmt: skip
def test_the_least_gaussian_cost_from_terms_and_spreads_alone(inner):
    """v' Sigma^-1 v of every interval, epoch by epoch: nothing of the proof's own shifts goes in."""
    rounds = min(inner.horizon or 9, 9)
    window = inner.window if isinstance(inner, Windowed) else rounds
    for restarts in (1, 2):
        process = restarted(inner, restarts)
        found = 0.0
        covariances = []
        for epoch in (0, 1):
            nodes = matrix(process.in_epoch(epoch), rounds)
            rows = np.array([[float(w) for w in row] for row in nodes.values()])
            spread = np.array([float(process.spread(level, 2)) for level, _ in nodes])
            covariances.append(rows.T @ (rows * spread[:, None]))
        for epochs in cuts(rounds, restarts):
            precision = np.zeros((rounds, rounds))
            for k, (first, last) in enumerate(epochs):
                own = slice(first, last)
                precision[own, own] = np.linalg.inv(covariances[min(k, 1)][own, own])
            for start in range(rounds):
                for end in range(start + 1, min(rounds, start + window) + 1):
                    found = max(found, float(precision[start:end, start:end].sum()))
        assert found <= float(process.l2_squared) * (1 + 1e-9)
        assert found > 0.5 * float(process.l2_squared)


def test_a_missing_anchor_or_ramp_is_found():
    def without(process, gone):
        class Forgetful(type(process)):
            def terms(self, rounds):
                terms = super().terms(rounds)
                keep = ~np.isin(terms.levels[0], gone)
                return type(terms)(
                    terms.levels[:, keep], terms.indices[:, keep], terms.weights[:, keep], terms.denominator
                )

        return Forgetful(process.inner, process.restarts)

    for process, gone in [(Tree(7), [ANCHOR]), (Schauder(7), [ANCHOR]), (Bridge(7), [RAMP]), (Unbounded(3), [ANCHOR])]:
        assert worst(without(restarted(process, 1), []), 7, anchored)[0]
        with pytest.raises(AssertionError):
            worst(without(restarted(process, 1), gone), 7, anchored)


def test_a_cheap_claim_is_found():
    process = restarted(Schauder(8), 2)
    naive = max(process.inner.l2_squared, 2 * process.inner.levels)
    assert worst(process, 8, anchored)[1] > naive


@pytest.mark.parametrize("inner", [Tree(8), Schauder(7), Bridge(7), Bridge(7, radices=(4, 2))], ids=repr)
def test_what_the_released_rounds_of_a_later_epoch_do_not_see(inner):
    """As many independent node values as docs/proofs.md, 3a, asks for, none longer than it allows."""
    process = restarted(inner, 1).in_epoch(1)
    horizon = inner.horizon
    nodes = matrix(process, horizon)
    order = list(nodes)
    place = {node: i for i, node in enumerate(order)}
    for first in range(horizon):
        for last in range(first + 1, horizon + 1):
            units = [process.part(q - 1, q, 0, horizon) for q in range(1, first + 1)]
            # An end beyond the last released round is -1/2 there where the epoch is tilted: the anchor takes it back.
            half = 1 if isinstance(process, Tilted) else 0
            free = [*units, *({**process._end(s), (ANCHOR, 0): half} for s in range(last, horizon + 1))]
            free.append({**{n: -v for n, v in process._end(0).items()}, (ANCHOR, 0): 1})
            free += [
                {(level, parent * k + i): 1 for i in range(k)}
                for level, k in enumerate(getattr(inner, "radices", ()))
                for parent in range(inner.nodes(level) // k)
            ]
            rows = []
            for vector in free:
                row = np.zeros(len(order))
                for node, value in vector.items():
                    if node in place:
                        row[place[node]] = value
                image = sum((v * np.array(nodes[n]) for n, v in vector.items() if n in nodes), np.zeros(horizon))
                assert not np.any(image[first:last])
                assert costs(process, vector)[1] <= max(process.l2_squared, process.kernel_squared)
                rows.append(row)
            image = np.array([[float(w) for w in nodes[node][first:last]] for node in order])
            assert np.linalg.matrix_rank(np.array(rows)) == len(order) - np.linalg.matrix_rank(image)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("inner", [Tree(100), Schauder(100), Bridge(100), Unbounded(7), Windowed(10)], ids=repr)
def test_releases_have_the_variance_that_they_state(kind, inner):
    process, many = restarted(inner, 2), 20_000
    share = Share(kind, Fraction(1, 4))
    p = 1 if kind == "pure" else 2
    for epoch in (0, 1, 2):
        used = process.in_epoch(epoch)
        noise = Mechanism(
            used, share, units=(1,) * many, norm1=ONE, norm2_squared=ONE, coins=Coins(bytes([epoch]) * 32)
        )
        for q in (1, 37, 100):
            numerators, denominator = noise.draw(q)
            drawn = np.array([n / denominator for n in numerators.tolist()])
            stated = noise.deviation_of(0, q) ** 2
            assert stated == pytest.approx(float(noise.variances(q)[0])) == pytest.approx(noise.tail(q, 0).variance)
            assert drawn.var() == pytest.approx(stated, rel=6 * math.sqrt(5 / many))
            norm = float(process.l1) ** 2 * 2 / 0.25**2 if p == 1 else float(process.l2_squared) / 0.25
            assert stated == pytest.approx(used.variance(q, p) * norm, rel=0.02)
            both = [one.variance(q, p) for one in process.epochs]
            assert float(noise.variances_of(0, np.array([q]))[0]) == pytest.approx(max(both) * norm, rel=0.02)


def test_an_epoch_has_one_anchor_in_all_its_rounds():
    process = restarted(Tree(16), 1)
    plain, later = (process.in_epoch(epoch) for epoch in (0, 1))
    for q in range(1, 17):
        own = {*zip(plain.at(q).levels.tolist(), plain.at(q).indices.tolist(), strict=True)}
        new = {*zip(later.at(q).levels.tolist(), later.at(q).indices.tolist(), strict=True)}
        assert new - own == {(ANCHOR, 0)}
    assert np.array_equal(plain.terms(np.arange(1, 17)).weights, Tree(16).terms(np.arange(1, 17)).weights)
    assert process.in_epoch(3) is process.in_epoch(1)


@pytest.mark.parametrize(
    ("inner", "p", "restarts", "before", "after"),
    [
        (Tree(1 << 20, accounting="paper"), 1, 1, 1.037, 1.048),
        (Tree(1 << 20, accounting="paper"), 1, 5, 1.109, 1.143),
        (Tree(1 << 20), 1, 1, 1.091, 1.103), (Tree(1 << 20), 1, 5, 1.167, 1.204),
        (Schauder(1 << 20), 2, 1, 1.053, 1.083), (Schauder(1 << 20), 2, 5, 1.142, 1.215),
        (Bridge(1 << 20), 1, 1, 1.154, 1.175), (Bridge(1 << 20), 1, 5, 1.343, 1.395),
    ],
)  # fmt: skip
def test_what_restarts_cost_in_the_worst_round(inner, p, restarts, before, after):
    """The figures of docs/proofs.md, 15."""
    process = restarted(inner, restarts)

    def error(one):
        return math.sqrt(float(one.l1**2 if p == 1 else one.l2_squared) * one.extremes(p)[0])

    found = [error(one) / error(inner) for one in process.epochs]
    assert found == pytest.approx([before, after], abs=0.001)


def test_anchors_as_wide_as_a_node_give_the_known_bound_for_the_papers_tree():
    process = restarted(Tree(1 << 20, accounting="paper"), 5)
    assert [(process.ends(1) + restarts) / process.inner.l1 for restarts in (1, 5)] == [
        Fraction(43, 42),
        Fraction(47, 42),
    ]


@pytest.mark.parametrize("inner", [Flips(7, 4), Crossed(Schauder(7), 7, lag=1)], ids=repr)
def test_what_is_not_proved_is_refused(inner):
    with pytest.raises(InputError, match="not known to hide a change across a restart"):
        restarted(inner, 1)


@pytest.mark.parametrize("restarts", [-1, 65, True, 1.0, "2"])
def test_restarts_are_few_and_counted(restarts):
    with pytest.raises(InputError, match="between 0 and 64"):
        check_restarts(restarts)
