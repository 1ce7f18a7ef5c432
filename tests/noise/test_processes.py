"""Every identity and every sensitivity by brute force, on all intervals of small horizons."""

import math
from fractions import Fraction

import numpy as np
import pytest

from retroact.errors import InputError
from retroact.noise import (
    AnyRounds,
    Bridge,
    BySize,
    Crossfade,
    CrossfadeEpochs,
    CrossfadeWindow,
    FewChanges,
    Fresh,
    IndependentCopy,
    Lapped,
    Process,
    Rectangle,
    Schauder,
    StampedBlocks,
    Tree,
    Unbounded,
    Windowed,
)
from retroact.noise.default_process import candidates, quietest
from retroact.paper import Doubling, PaperTree
from retroact.params import words
from support.brute_force import brute_force

HORIZONS = [*range(1, 21), 23, 31, 32, 33, 47, 48, 63, 64]


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("kind", [Tree, Schauder, Bridge])
def test_claimed_sensitivity_is_the_true_one(kind, horizon):
    process = kind(horizon)
    assert brute_force(process, horizon) == (process.l1, process.l2_squared)


@pytest.mark.parametrize("radices", [(2, 2, 2, 2), (4, 4), (2, 8), (16,), (8, 2)])
def test_bridges_of_other_radices(radices):
    process = Bridge(15, radices=radices)
    assert brute_force(process, 15) == (process.l1, process.l2_squared) == (2 * len(radices), 2 * len(radices))


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 8, 16, 33, 64])
def test_the_papers_accounting_is_never_below_the_truth(horizon):
    process = PaperTree(horizon)
    assert max(brute_force(process, horizon)) <= process.l1 == 2 * (math.ceil(math.log2(horizon)) + 1)


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("inner", [Schauder, Bridge])
def test_windows(inner, window):
    process = Windowed(window, inner=inner)
    assert brute_force(process, 64, window) == (process.l1, process.l2_squared)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 12])
def test_fresh_noise_for_short_windows(window):
    process = Fresh(window)
    assert brute_force(process, 20, window) == (process.l1, process.l2_squared) == (window, window)
    assert process.shift_hiding([0] * 3 + [1] * window) == {(0, round): 1 for round in range(4, 4 + window)}
    with pytest.raises(InputError, match="within"):
        process.shift_hiding([1] * (window + 1))


@pytest.mark.parametrize(
    ("kind", "window", "expected"),
    [
        ("gaussian", 2, Fresh), ("gaussian", 4, CrossfadeWindow), ("gaussian", 1024, CrossfadeWindow),
        ("gaussian", 1025, Crossfade), ("gaussian", 16384, Crossfade),
        ("pure", 3, Fresh), ("pure", 4, Windowed), ("pure", 60_000, Lapped),
    ],
)  # fmt: skip
def test_a_window_gets_the_process_with_the_least_error(kind, window, expected):
    found = candidates(None, 65_535, window, "", kind)
    chosen = found[quietest(found, kind, 65_535)]
    assert type(chosen) is expected
    inner = Bridge if kind == "pure" else Schauder
    p = 1 if kind == "pure" else 2

    def worst(process):
        norm = process.l1**2 if p == 1 else process.l2_squared
        return float(norm) * process.variances(np.arange(1, (process.horizon or min(65_535, 4 * window)) + 1), p).max()

    others = [Windowed(window, inner=inner), Fresh(window), inner(65_535)]
    assert worst(chosen) <= 1.0001 * min(map(worst, others))


@pytest.mark.parametrize("guess", [1, 3, 5])
@pytest.mark.parametrize("inner", [Schauder, Bridge])
def test_unknown_horizon(inner, guess):
    process = Unbounded(guess, inner=inner)
    assert brute_force(process, 64) == (process.l1, process.l2_squared)


def test_the_papers_doubling_approaches_its_bound():
    found = [max(brute_force(Doubling(), rounds)) for rounds in (2, 8, 32, 64)]
    assert found == sorted(found)
    assert found[-1] > Fraction(4, 5)
    assert found[-1] <= Doubling().l1 == Doubling().l2_squared == 1


def test_a_wrong_claim_would_be_caught():
    class Cheap(Schauder):
        def shift(self, boundary):
            return {node: value for node, value in super().shift(boundary).items() if node[0]}

    with pytest.raises(AssertionError):
        brute_force(Cheap(15), 15)


@pytest.mark.parametrize("process", [Tree(16), Schauder(15), Bridge(15, radices=(4, 4)), Bridge(15)], ids=repr)
def test_what_no_round_can_see(process):
    """The kernel of the map from nodes to rounds: trivial for trees, "all children of a parent" for bridges."""
    terms = process.weights_of(np.arange(1, process.horizon + 1))
    nodes = sorted({(a, b) for row in range(process.horizon) for a, b, _ in _triples(terms.of(row))})
    matrix = np.zeros((process.horizon, len(nodes)))
    for row in range(process.horizon):
        for level, index, weight in _triples(terms.of(row)):
            matrix[row, nodes.index((level, index))] = weight
    rank = np.linalg.matrix_rank(matrix)
    if not process.kernel_squared:
        assert rank == len(nodes)
        return
    families = {}
    for level, index in nodes:
        families.setdefault((level, index // process.radices[level]), []).append((level, index))
    for family in families.values():
        together = matrix[:, [nodes.index(node) for node in family]].sum(axis=1)
        assert not together.any()
        assert len(family) <= process.kernel_squared
    assert rank + len(families) == len(nodes)


def test_powers_of_two_have_the_known_closed_form():
    assert [Tree(1 << k).l1 for k in range(2, 12)] == [2 * k - 1 for k in range(2, 12)]


def processes():
    return [
        Tree(100),
        PaperTree(1000),
        Schauder(100),
        Bridge(100),
        Bridge(5000),
        Lapped(100),
        Lapped(5000),
        Windowed(10),
        Windowed(10, inner=Bridge),
        Windowed(1),
        Unbounded(7),
        Unbounded(7, inner=Bridge),
        Doubling(),
        Crossfade(100),
        CrossfadeWindow(10),
        CrossfadeEpochs(7),
    ]


@pytest.mark.parametrize("process", processes(), ids=repr)
def test_random_access_is_the_batch(process):
    rounds = np.array([1, 2, 3, 50, 99, 100])
    for p in (1, 2):
        together = process.variances(rounds, p)
        assert together == pytest.approx([process.variance(int(r), p) for r in rounds], rel=1e-12)
    batch = process.weights_of(rounds)
    for row, r in enumerate(rounds.tolist()):
        alone, among = process.at(r), batch.of(row)
        left = {(a, b): Fraction(c, alone.denominator) for a, b, c in _triples(alone)}
        assert left == {(a, b): Fraction(c, among.denominator) for a, b, c in _triples(among)}


def _triples(terms):
    return zip(terms.levels.tolist(), terms.indices.tolist(), terms.weights.tolist(), strict=True)


def test_errors_of_the_study():
    """Worst and root-mean-square factors at epsilon = 1 for horizons 2^k - 1 (noise study, section 4)."""
    for bits, worst, mean in [(8, 15.73, 12.87), (10, 22.44, 18.33), (12, 28.74, 23.48), (16, 44.1, 36.1)]:
        process = Bridge((1 << bits) - 1)
        variances = process.variances(np.arange(1, process.horizon + 1), 1)
        found = [float(process.l1) * math.sqrt(2 * v) for v in (variances.max(), variances.mean())]
        assert found == pytest.approx([worst, mean], rel=2e-3)
    for bits, worst, mean in [(8, 17.92, 15.26), (10, 21.91, 18.69), (12, 25.89, 22.13), (16, 33.9, 29.03)]:
        process = Schauder((1 << bits) - 1)
        variances = process.variances(np.arange(1, process.horizon + 1))
        found = [4.2247 * math.sqrt(process.l2_squared * v) for v in (variances.max(), variances.mean())]
        assert found == pytest.approx([worst, mean], rel=2e-3)


def test_windows_do_not_care_for_the_horizon():
    process = Windowed(100)
    near, far = process.variances(np.arange(1, 129)), process.variances(np.arange(1, 129) + 128 * 10**9)
    assert near == pytest.approx(far)


def test_unbounded_loses_little_while_the_guess_holds():
    known, unknown = Schauder(1023), Unbounded(1023)
    rounds = np.arange(1, 1024)
    ratio = math.sqrt(unknown.variances(rounds).max() * unknown.l2_squared)
    assert ratio < 1.25 * math.sqrt(known.variances(rounds).max() * known.l2_squared)
    doubling = Doubling()
    assert doubling.variances(rounds).max() > 10 * unknown.variances(rounds).max()


@pytest.mark.parametrize("kind", [Tree, Schauder, Bridge, Lapped, Windowed, Unbounded])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "8", True, None, 1 << 41])
def test_bad_horizons(kind, bad):
    with pytest.raises(InputError, match="whole number of rounds"):
        kind(bad)


@pytest.mark.parametrize("process", [Tree(10), Schauder(10), Bridge(10), Lapped(100, radices=(8,))])
@pytest.mark.parametrize("bad", [0, 101, -3])
def test_rounds_outside(process, bad):
    with pytest.raises(InputError, match="rounds"):
        process.variance(bad)


@pytest.mark.parametrize("radices", [(3, 5), (2, 2), (16, 16, 2), (1, 16)])
def test_bad_radices(radices):
    with pytest.raises(InputError, match="radices"):
        Bridge(15, radices=radices)


def test_sensitivity_knows_two_norms():
    with pytest.raises(InputError, match="1 or 2"):
        Schauder(10).sensitivity(3)


def test_every_process_is_written_down_in_words_of_its_own():
    made = [
        *processes(),
        AnyRounds(9),
        FewChanges(9, 4),
        StampedBlocks(3, 9),
        BySize(9, p=1),
        IndependentCopy(Tree(9), 2),
    ]
    made.append(Rectangle(Schauder(9), 4, lag=2))
    assert {process.kind for process in made} == {*Process.kinds} - {"fresh", "one_sided"}
    for process in made:
        assert type(process).__name__ not in words(process.spec())
        if process.kind in (
            "tree",
            "schauder",
            "bridge",
            "lapped",
            "any_rounds",
            "few_changes",
            "stamped_blocks",
            "by_size",
        ):
            assert Process.from_spec(process.spec(), "noise") == process
