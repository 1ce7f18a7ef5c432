"""The tree: the properties of tries that its proof stands on, its privacy by exact laws, its number of records."""

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from retroact.coins import Coins
from retroact.errors import InputError
from retroact.oneshot import BOTTOM
from retroact.oneshot.exponential import Weights, step_law
from retroact.oneshot.quantiles import interior_records
from retroact.paper import TreeLog, tree_log
from retroact.paper.treelog import WEIGHTS, LevelPlan, node_pieces, tail
from retroact.paper.trie import branching, branchings, deepest, heavy_path
from retroact.schema import Integer, Rows, Schema
from support.exact_laws import probabilities

COINS = Coins(bytes(32)).branch("treelog")
ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
# What depths 1 to 5 needed where each level left three fifths of epsilon to the next; and from where on depth 2 helps.
OLD, DEEPER = (306, 1016, 2372, 4914, 9638), 138


# Properties of tries -------------------------------------------------------------------------------------------------


def some_values(source, bits):
    """A few values in shapes that make heavy paths switch: clusters, copies, near ties."""
    size = source.randint(0, 14)
    shape = source.randrange(4)
    if shape == 0:
        return [source.randrange(1 << bits) for _ in range(size)]
    if shape == 1:
        pool = [source.randrange(1 << bits) for _ in range(3)]
        return [source.choice(pool) for _ in range(size)]
    centre = source.randrange(1 << bits)
    if shape == 2:
        return [centre ^ (1 << source.randrange(bits)) for _ in range(size)]
    return [centre ^ source.randrange(1 << source.randint(1, bits)) for _ in range(size)]


def one_more(small, large):
    """Whether the second multiset is the first and one element, or the same."""
    return not Counter(small) - Counter(large) and len(large) - len(small) <= 1


def replaced(one, other):
    gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
    return sum(gone.values()) <= 1 and sum(come.values()) <= 1


def violations(pairs, seed, slice_of):
    """How many pairs of neighbours have levels that differ by more than one insertion, or deepest values that differ by
    more than one in the place of another; of ``slice_of(gamma)`` deepest values."""
    source, found = random.Random(seed), 0
    for _ in range(pairs):
        bits = source.randint(1, 8)
        small = sorted(some_values(source, bits))
        large = sorted(
            [*small, source.randrange(1 << bits) if not small or source.random() < 0.5 else source.choice(small)]
        )
        (leaf, gamma), (other_leaf, other_gamma) = heavy_path(small), heavy_path(large)
        assert other_gamma - gamma in (0, 1)
        count = slice_of(gamma)
        levels, deep = deepest(small, leaf, bits, count)
        other_levels, other_deep = deepest(large, other_leaf, bits, count)
        found += not (one_more(levels, other_levels) and replaced(deep, other_deep))
    return found


def test_neighbours_have_neighbouring_levels_and_deepest_values():
    assert violations(20_000, 1, lambda gamma: 2 * gamma + 2) == 0


def test_a_slice_that_is_too_small_is_found_out():
    assert violations(3_000, 2, lambda gamma: gamma + 1) > 100
    assert violations(10_000, 3, lambda gamma: 2 * gamma) > 0


@pytest.mark.slow
def test_neighbours_have_neighbouring_levels_and_deepest_values_400_000_times():
    assert violations(400_000, 4, lambda gamma: 2 * gamma + 2) == 0


def nodes_of(values):
    """Branching nodes by (bit, prefix), with the weight of the lighter child."""
    found = {}
    for split, size, lighter in branchings(values, 1):
        assert size == 1
        bit = (values[split - 1] ^ values[split]).bit_length() - 1
        found[bit, values[split] >> (bit + 1)] = lighter
    return found


def test_one_value_more_gives_at_most_one_branching_node_more():
    source, grown = random.Random(5), 0
    for _ in range(5_000):
        bits = source.randint(1, 8)
        small = sorted(some_values(source, bits))
        before, after = nodes_of(small), nodes_of(sorted([*small, source.randrange(1 << bits)]))
        assert before.keys() <= after.keys()
        assert all(after[node] - weight in (0, 1) for node, weight in before.items())
        new = [after[node] for node in after.keys() - before.keys()]
        assert new in ([], [1])
        grown += len(new)
        assert max(before.values(), default=0) == heavy_path(small)[1]
    assert grown > 1000


def test_light_subtrees_stand_together_without_changing_the_nodes():
    source = random.Random(6)
    for _ in range(300):
        values = sorted(source.randrange(64) for _ in range(source.randint(2, 40)))
        least = source.randint(1, 6)
        whole = {split: lighter for split, _, lighter in branchings(values, 1)}
        seen = set()
        for start, size, lighter in branchings(values, least):
            inside = {s for s in whole if start < s < start + size} if not lighter else {start}
            assert not lighter or whole[start] == lighter
            assert lighter or all(whole[s] < least for s in inside)
            assert not inside & seen
            seen |= inside
        assert seen == whole.keys()


def test_pieces_hold_every_node_once_at_its_deficit():
    source, epsilon, lumped = random.Random(13), Fraction(20), 0
    cap = Weights(epsilon, 2**64).cap
    for _ in range(60):
        values = sorted(source.randrange(1 << 12) for _ in range(source.randint(2, 300)))
        whole = {split: lighter for split, _, lighter in branchings(values, 1)}
        gamma = max(whole.values())
        known, pieces = node_pieces(values, gamma, epsilon)
        deficits = {known[i]: deficit for start, size, deficit in pieces for i in range(start, start + size)}
        assert sum(size for _, size, _ in pieces) == len(known) == len(whole)
        assert {split: min(d, cap) for split, d in deficits.items()} == {
            split: min(gamma - lighter, cap) for split, lighter in whole.items()
        }
        lumped += len(pieces) < len(whole)
    assert lumped > 20


def test_the_heavy_path_by_definition():
    source = random.Random(7)
    for _ in range(500):
        values = sorted(some_values(source, 6))
        prefix, largest = 0, 0
        for bit in range(5, -1, -1):
            left, right = (sum(v >> bit == 2 * prefix + side for v in values) for side in (0, 1))
            largest = max(largest, min(left, right))
            prefix = 2 * prefix + (right > left)
        if values:
            assert heavy_path(values) == (prefix, largest)
    assert heavy_path([]) == (0, 0)


# Exact laws ----------------------------------------------------------------------------------------------------------


def at_least(epsilon, k):
    """P(X >= k) for discrete Laplace noise."""
    q = math.exp(-float(epsilon))
    return q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q)


def exact_law(values, bits, plan, epsilon, depth=1):
    """The law of the tree, from its parts, level by level; in floats."""
    values = sorted(values)
    middle = values[plan.ends : max(len(values) - plan.ends, plan.ends)]
    leaf, gamma = heavy_path(middle)
    heavy, found = at_least(plan.gate, plan.heavy - gamma) if gamma else 0.0, Counter()
    splits = branchings(middle, 1)
    if splits:
        law = step_law([(split, 1, gamma - q) for split, _, q in splits], epsilon - plan.gate, 2**64)
        for split, _, _ in splits:
            bit = (middle[split - 1] ^ middle[split]).bit_length() - 1
            found[(middle[split] >> bit << bit) - 1] += heavy * float(law.probability(split))
    levels, deep = deepest(middle, leaf, bits, plan.deep)
    for level, chance in level_law(levels, bits, plan, depth):
        share = (1 - heavy) * chance
        if level is BOTTOM:
            found[BOTTOM] += share
            continue
        counts = Counter(value >> (bits - level) for value in deep)
        best = sorted(counts, key=lambda prefix: (-counts[prefix], prefix))
        first, second = ([counts[prefix] for prefix in best] + [0, 0])[:2]
        passed = at_least(plan.test, plan.certain - (first - second) // 2)
        found[BOTTOM] += share * (1 - passed)
        low, size = (best[0] if best else 0) << (bits - level), 1 << (bits - level)
        ends = sorted({low, low + size - 1, low + max(size // 2 - 1, 0), low + size // 2})
        scores = [min(sum(v <= c for v in values), sum(v >= c for v in values)) for c in ends]
        law = step_law([(c, 1, -score) for c, score in zip(ends, scores, strict=True)], plan.last, 4)
        for c in ends:
            found[c] += share * passed * float(law.probability(c))
    return found


def level_law(levels, bits, plan, depth):
    """Of the level: by the exponential mechanism, or by a tree over levels with what is left of the budget."""
    if depth == 1:
        return [*enumerate(map(float, probabilities(levels, 0, bits, Fraction(1, 2), plan.inner)))]
    below = bits.bit_length()
    inside = LevelPlan.of(below, plan.inner, plan.inner_delta, plan.inner_beta, depth - 1)
    law = exact_law(levels, below, inside, plan.inner, depth - 1)
    return [(level if level is BOTTOM else min(level, bits), chance) for level, chance in law.items()]


def excess(one, other, epsilon):
    return sum(max(0.0, mass - math.exp(epsilon) * other[answer]) for answer, mass in one.items())


def near_all_thresholds(source, plan, bits, depth):
    """The same for trees within trees: so many values on each level of a path that the inner tree is at its own."""
    if depth == 1 or source.random() < 0.3:
        return near_thresholds(source, plan, bits)
    below = bits.bit_length()
    inside = LevelPlan.of(below, plan.inner, plan.inner_delta, plan.inner_beta, depth - 1)
    levels = [min(level, bits) for level in near_all_thresholds(source, inside, below, depth - 1)]
    # A value at depth y leaves the path to 0 there; the deepest ones stay on it.
    core = [(1 << (bits - level)) >> 1 for level in levels] + [0] * (plan.deep + source.randint(-2, 2))
    return [0] * plan.ends + core + [max(core)] * plan.ends


def near_thresholds(source, plan, bits):
    """Values whose gamma, or whose two largest counts, are near where the tree decides."""
    shape = source.randrange(3)
    if shape == 0:
        light = max(1, plan.heavy + source.randint(-4, 4))
        core = [0] * (light + source.randint(0, 2)) + [1 << (bits - 1)] * light
    elif shape == 1:
        half = plan.deep // 2 + source.randint(-3, 3)
        core = [0] * half + [1] * source.randint(0, 3) + [(1 << bits) - 1] * source.randint(0, 8)
    else:
        core = [source.randrange(1 << bits) for _ in range(source.randint(0, plan.deep + 8))]
    ends = source.choice([plan.ends, plan.ends, source.randint(0, plan.ends)])
    return [min(core, default=0)] * ends + core + [max(core, default=0)] * ends


def largest_excess(pairs, seed, plan, epsilon, depth=1):
    source, bits, worst = random.Random(seed), 3, 0.0
    for _ in range(pairs):
        small = near_all_thresholds(source, plan, bits, depth)
        one, other = (
            exact_law(values, bits, plan, epsilon, depth) for values in (small, [*small, source.randrange(1 << bits)])
        )
        worst = max(worst, excess(one, other, float(epsilon)), excess(other, one, float(epsilon)))
    return worst


def test_privacy_by_exact_laws():
    for epsilon, delta in ((Fraction(2), Fraction(1, 10)), (ONE, Fraction(1, 50))):
        plan = LevelPlan.of(3, epsilon, delta, 0.5, 1)
        assert largest_excess(150, 8, plan, epsilon) <= float(delta)


def plans(bits, epsilon, delta, beta, depth):
    """Of all levels, from the outermost on, each with its bits, its budget and its depth."""
    while depth:
        plan = LevelPlan.of(bits, epsilon, delta, beta, depth)
        yield plan, bits, epsilon, delta, depth
        bits, epsilon, delta, beta, depth = bits.bit_length(), plan.inner, plan.inner_delta, plan.inner_beta, depth - 1


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_all_levels_have_the_same_share_and_spend_the_whole_budget(depth):
    beta = Fraction(1, 20)
    found = list(plans(64, ONE, MILLIONTH, beta, depth))
    assert len({(plan.gate, plan.test, plan.last) for plan, *_ in found}) == 1
    assert sum(plan.gate + plan.test + plan.last for plan, *_ in found) + found[-1][0].inner == 1
    # Half of what a level has of delta is for its gate, half for its test, and nothing is left at the bottom.
    assert len({delta - plan.inner_delta for plan, _, _, delta, _ in found}) == 1
    assert found[-1][0].inner_delta == 0
    assert beta > found[-1][0].inner_beta > 0


@pytest.mark.parametrize("depth", [2, 3])
def test_privacy_of_trees_within_trees_by_exact_laws(depth):
    """As a whole, and each inner tree by itself with what it is given: the proof adds these up."""
    epsilon, delta = Fraction(4), Fraction(1, 10)
    for plan, _, spent, failure, own in plans(3, epsilon, delta, 0.5, depth):
        assert 0 < largest_excess(60, 14, plan, spent, own) <= float(failure)


def test_exact_laws_find_a_broken_tree_with_a_tree_within_out():
    epsilon, delta = Fraction(4), Fraction(1, 10)
    plan = LevelPlan.of(3, epsilon, delta, 0.5, 2)
    assert largest_excess(60, 14, replace(plan, heavy=-50), epsilon, 2) > 0.1


def test_exact_laws_find_a_broken_tree_out():
    epsilon, delta = Fraction(2), Fraction(1, 10)
    plan = LevelPlan.of(3, epsilon, delta, 0.5, 1)
    # No test of the node; a gate that lets any branching through.
    assert largest_excess(150, 8, replace(plan, certain=-50, deep=2), epsilon) > 0.1
    assert largest_excess(150, 8, replace(plan, heavy=-50), epsilon) > 0.1


@pytest.mark.slow
def test_privacy_by_exact_laws_at_length():
    for epsilon, delta in ((Fraction(2), Fraction(1, 10)), (ONE, Fraction(1, 50)), (Fraction(4), Fraction(1, 1000))):
        for beta in (0.5, 0.05):
            plan = LevelPlan.of(3, epsilon, delta, beta, 1)
            assert largest_excess(1500, 9, plan, epsilon) <= float(delta)


def audited(small, large, bits, epsilon, delta, runs, claimed):
    """A lower estimate of delta at ``claimed``: the best event is chosen on one half of the runs and weighed on the
    other, in both directions."""
    found = []
    for which, values in enumerate((small, large)):
        answers = [
            str(tree_log(values, bits, epsilon, delta, 0.05, COINS.branch("audit", which, len(small), run)))
            for run in range(runs)
        ]
        found.append((Counter(answers[: runs // 2]), Counter(answers[runs // 2 :])))
    worst = 0.0
    for (choose, weigh), (other_choose, other_weigh) in (found, found[::-1]):
        event = [a for a in choose if choose[a] > math.exp(claimed) * other_choose[a]]
        mass, other = (sum(side[a] for a in event) / (runs // 2) for side in (weigh, other_weigh))
        worst = max(worst, mass - math.exp(claimed) * other)
    return worst


@pytest.mark.parametrize("runs", [400, pytest.param(20_000, marks=pytest.mark.slow)])
def test_an_audit_near_the_thresholds(runs):
    """Monte Carlo at (1, 0.1), with the sampler itself; one that spends eight times as much is found out."""
    source, bits, delta = random.Random(3), 8, Fraction(1, 10)
    plan = LevelPlan.of(bits, ONE, delta, 0.05, 1)
    for _ in range(3):
        small = near_thresholds(source, plan, bits)
        large = [*small, source.randrange(1 << bits)]
        assert audited(small, large, bits, ONE, delta, runs, 1.0) < 0.1 + 4 * math.sqrt(0.1 / runs)
    loud = LevelPlan.of(bits, Fraction(8), delta, 0.05, 1)
    light = [0] * (loud.ends + loud.heavy) + [200] * (loud.ends + loud.heavy - 1)
    assert audited(light, [*light, 200], bits, Fraction(8), delta, 400, 1.0) > 0.15


def test_samples_follow_the_exact_law():
    epsilon, delta, bits, draws = Fraction(2), Fraction(1, 10), 3, 500
    plan = LevelPlan.of(bits, epsilon, delta, 0.5, 1)
    source = random.Random(10)
    for shape in range(3):
        values = near_thresholds(source, plan, bits)
        law = exact_law(values, bits, plan, epsilon)
        assert sum(law.values()) == pytest.approx(1)
        found = Counter(
            tree_log(values, bits, epsilon, delta, 0.5, COINS.branch("law", shape, i)) for i in range(draws)
        )
        for answer in law.keys() | found.keys():
            deviation = math.sqrt(draws * law[answer] * (1 - law[answer])) + 1
            assert abs(found[answer] - draws * law[answer]) < 4.5 * deviation, (shape, answer)


# How many records ----------------------------------------------------------------------------------------------------


def shapes(n, bits):
    source, top = random.Random(12), (1 << bits) - 1
    middle = top // 2
    yield "uniform", [source.randint(0, top) for _ in range(n)]
    yield "two neighbours", [middle] * (n // 2) + [middle + 1] * (n - n // 2)
    yield "equal", [middle + 3] * n
    yield "many scales", [(middle + (1 << source.randrange(bits))) % (top + 1) for _ in range(n)]
    yield "comb", [top - (top >> source.randrange(bits + 1)) for _ in range(n)]
    yield "cluster", [min(top, max(0, middle + source.randint(-5, 5))) for _ in range(n)]


def misses(n, bits, runs, depth=1, delta=MILLIONTH):
    """The largest share of answers outside of the data, over the shapes."""
    worst = 0.0
    for name, values in shapes(n, bits):
        answers = [tree_log(values, bits, ONE, delta, 0.05, COINS.branch(name, bits, i), depth) for i in range(runs)]
        inside = sum(answer is not BOTTOM and min(values) <= answer <= max(values) for answer in answers)
        worst = max(worst, 1 - inside / runs)
    return worst


def test_the_number_of_records():
    found = [LevelPlan.of(bits, ONE, MILLIONTH, 0.05, 1).records for bits in (16, 32, 64, 256, 1024, 8192)]
    assert found == [294, 300, 306, 317, 329, 345]
    schema = Schema({"x": Integer(-(2**63), 2**63 - 1)})
    algorithm = TreeLog("x", delta=1e-6, epsilon=1)
    assert algorithm.needed(schema, 0.05) == algorithm.needed(schema, 0.1) == 306
    assert algorithm.needed(schema, 0.01) is None


def most_records(bits, epsilon, delta, beta, depth):
    """The bound of the proof: quadratic in the depth but for logarithms."""
    gate, test, last, choice = (float(weight) for weight in WEIGHTS)
    whole, log_delta, log_beta = depth / epsilon, math.log(2 * depth / delta), math.log(6 * depth / beta)
    half = max(
        1 + log_delta * whole / (1 - gate) * (1 + 2**-30) + 2 * (1 + log_delta * whole / gate),
        2 + (log_delta + log_beta) * whole / test,
    )
    bottom = interior_records(bits + 1, Fraction(choice / whole), beta / 4 / depth)
    return depth * 2 * (1 + log_beta * whole / last + half) + bottom


def test_what_is_needed_grows_with_the_square_of_the_depth_and_does_not_double():
    assert [LevelPlan.of(64, ONE, MILLIONTH, 0.05, depth).records for depth in range(1, 6)] == [
        306,
        999,
        2149,
        3778,
        5907,
    ]
    needed = [LevelPlan.of(64, ONE, MILLIONTH, 0.05, depth).records for depth in range(1, 41)]
    for depth, records in enumerate(needed, start=1):
        assert records <= most_records(64, 1.0, 1e-6, 0.05, depth)
    # Four times as many for twice the depth, and a little for the logarithms.
    for depth in (5, 10, 20):
        assert 3.5 < needed[2 * depth - 1] / needed[depth - 1] < 4.5
    assert all(after < 2 * before for before, after in pairwise(needed[2:]))


def test_from_which_domain_on_it_needs_fewer_records_than_the_exponential_mechanism():
    """The figures of docs/compilers.md."""
    text = " ".join((Path(__file__).parents[2] / "docs" / "compilers.md").read_text().split())
    for depth, first in enumerate((224, 721, 1552, 2735, 4258), start=1):
        for bits in (first - 1, first):
            tree = LevelPlan.of(bits, ONE, MILLIONTH, 0.05, depth).records
            assert (tree <= interior_records(2**bits, ONE, 0.05)) == (bits == first)
        needed = LevelPlan.of(64, ONE, MILLIONTH, 0.05, depth).records
        assert f"| {depth} | {OLD[depth - 1]:,} | {needed:,} | 2^{first:,} |" in text
    # No field has more than 64 bits.
    assert LevelPlan.of(64, ONE, MILLIONTH, 0.05, 1).records == 306 > 3 * interior_records(2**64, ONE, 0.05)
    # A tree within a tree needs fewer than one tree only from domains on whose number of bits is 2^138.
    for power, better in ((DEEPER - 1, False), (DEEPER, True)):
        one, two = (LevelPlan.of(1 << power, ONE, MILLIONTH, 0.05, depth).records for depth in (1, 2))
        assert (two <= one) == better
    assert f"2^(2^{DEEPER})" in text


@pytest.mark.parametrize("bits", [16, 1024])
def test_that_many_records_are_enough_and_half_are_not(bits):
    n = LevelPlan.of(bits, ONE, MILLIONTH, 0.05, 1).records
    # 40 runs of 0.05: 7 or more failures have probability 0.004.
    assert misses(n, bits, 40) <= 6 / 40
    assert misses(n // 2, bits, 12) > 0.5


def test_a_gate_that_opens_by_chance_does_no_harm_to_records_that_are_all_equal():
    """A delta far above beta: the gate says heavy often, where there is no node to choose."""
    delta, beta = Fraction(1, 2), 0.001
    needed = LevelPlan.of(32, ONE, delta, beta, 1).records
    points = [tree_log([77] * needed, 32, ONE, delta, beta, COINS.branch("equal", run)) for run in range(300)]
    assert points.count(77) >= 297


@pytest.mark.parametrize("depth", [2, 3])
def test_a_tree_within_a_tree(depth):
    n = LevelPlan.of(64, ONE, MILLIONTH, 0.05, depth).records
    assert misses(n, 64, 8, depth=depth) <= 3 / 8


@pytest.mark.slow
def test_success_rates_at_length():
    for bits in (16, 64, 1024):
        n = LevelPlan.of(bits, ONE, MILLIONTH, 0.05, 1).records
        assert misses(n, bits, 400) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


# Interface -----------------------------------------------------------------------------------------------------------


def test_it_answers_for_any_number_of_records():
    for size in (0, 1, 2, 5, 40, 41, 100, 200):
        for depth in (1, 2, 3):
            answer = tree_log([3] * size, 10, ONE, MILLIONTH, 0.05, COINS.branch(size), depth)
            assert answer is BOTTOM or 0 <= answer < 1024
    assert tree_log([0, 0], 0, ONE, MILLIONTH, 0.05, COINS) == 0


def test_it_is_a_function_of_the_multiset_and_stays_in_the_field():
    schema = Schema({"x": Integer(5, 1004)})
    algorithm = TreeLog("x", delta=1e-3, epsilon=4)
    algorithm.check(schema, "algorithm")
    values = [(1004,)] * 200 + [(700,)] * 5
    answers = set()
    for order in (values, values[::-1]):
        answers.add(algorithm.run(Rows.from_tuples(schema, order), schema, COINS))
    assert len(answers) == 1
    assert all(answer is BOTTOM or 5 <= answer <= 1004 for answer in answers)
    assert algorithm.run(Rows.empty(schema), schema, COINS) is BOTTOM


def test_contract_and_specification():
    algorithm = TreeLog("x", delta=1e-6)
    assert algorithm.at(ONE).contract.delta == MILLIONTH
    assert not algorithm.at(ONE).contract.bounded_range
    assert algorithm.spec() == {"type": "treelog", "field": "x", "delta": "0.000001"}


def test_tails():
    for epsilon in (Fraction(1, 10), ONE, Fraction(5)):
        for probability in (Fraction(2, 5), Fraction(1, 100), Fraction(1, 10**9)):
            k = tail(epsilon, probability)
            assert at_least(epsilon, k) <= probability
            assert k == 1 or at_least(epsilon, k - 1) > probability


def test_errors():
    for wrong in (0, 1, 1.5, True, "x"):
        with pytest.raises(InputError, match="expected a number from 2\\^-80 to below 1"):
            TreeLog("x", delta=wrong)
    with pytest.raises(InputError, match="expected a depth from 1 to 5, got 0"):
        TreeLog("x", delta=1e-6, depth=0)
    with pytest.raises(InputError, match="expected a number from 2\\^-100 to below 1"):
        tree_log([], 8, ONE, Fraction(0), 0.05, COINS)
    with pytest.raises(InputError, match="expected values between 0 and 255"):
        tree_log([256], 8, ONE, MILLIONTH, 0.05, COINS)
    assert branching([0, 1], 0, 2) == 1
