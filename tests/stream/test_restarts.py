"""Streams that account for restarts: what is declared stays what is spent, and no restart beyond that has noise."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import retroact as ra
from retroact.coins import Coins, DiscreteLaplace
from retroact.ledger import Ledger
from retroact.noise import Anchored, Oblivious
from retroact.statistics import Restated
from retroact.stream.running import Running

SCHEMA = {
    "country": ra.Text(),
    "kind": ra.Category(["a", "b"]),
    "amount": ra.Number(0, 500, step=0.01),
    "age": ra.Integer(0, 120),
    "at": ra.Vector(2, radius=1.0, step=0.001),
}
LINEAR = {
    "count": ra.Count(),
    "sum": ra.Sum("amount"),
    "mean": ra.Mean("amount"),
    "variance": ra.Variance("age"),
    "group": ra.GroupBy("kind", ra.Sum("age")),
    "declared": ra.Histogram("kind"),
    "quantiles": ra.Quantiles("age", [0.5]),
    "clusters": ra.KMeans("at", k=2),
    "lags": Restated(ra.Count(), [0, 2], across="lags"),
    "often": ra.Count(every=2),
}
UNDECLARED = {"bins": ra.Histogram("country"), "sums": ra.Histogram("country", sum="amount")}
COINS = ra.Key.for_testing(1).coins("stream")


def spec(statistics, *, epsilon=1.0, delta=1e-6, horizon=12, restarts=2, **options):
    return ra.Specification(
        SCHEMA, statistics, epsilon=epsilon, delta=delta, horizon=horizon, restarts=restarts, **options
    )


def spent(made, name, cut):
    """The dearest interval over this cut into epochs, in the exact scales of the laws: an epsilon, or a mu^2."""
    rounds = cut[-1][1]
    noise = [made.mechanism(name, COINS, epoch) for epoch in range(len(cut))]
    layout = made.statistics[name].layout(made.schema)
    unit = layout.units[0]
    most = Fraction(0)
    for start, end in itertools.combinations(range(rounds + 1), 2):
        total = Fraction(0)
        for one, (first, last) in zip(noise, cut, strict=True):
            moved = one.process.part(start, end, first, last)
            total += one.cost_of(0, {node: value * unit for node, value in moved.items()})
        most = max(most, total)
    norm = layout.norm1 if made.shares[name].kind == "pure" else layout.norm2_squared
    return most * norm


@pytest.mark.parametrize("restarts", [1, 2])
@pytest.mark.parametrize("noise", [None, "tree", "schauder", "bridge", "paper"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_spent_over_all_epochs_is_what_was_declared(delta, noise, restarts):
    made = spec({"n": ra.Sum("age", noise=noise)}, delta=delta, horizon=9, restarts=restarts)
    assert isinstance(made.processes["n"], Anchored)
    amount = made.shares["n"].amount
    found = max(
        spent(made, "n", list(itertools.pairwise((0, *places, 9))))
        for places in itertools.combinations_with_replacement(range(10), restarts)
    )
    assert found <= amount
    # Close to it, but for the paper's accounting and the factor for the lattice.
    assert found > amount * Fraction(7 if noise == "paper" else 9, 10)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_linear_statistics_have_noise_in_every_epoch(delta):
    made = spec(LINEAR | (UNDECLARED if delta else {}), delta=delta)
    assert made.guarantee.epsilon == 1.0
    for name in made.statistics:
        drawn = []
        for epoch in range(3):
            noise = made.mechanism(name, COINS, epoch)
            cells = np.zeros((1, 2), dtype=np.uint64)
            drawn.append(noise.sample(5, cells)[0].ravel().tolist())
            again = made.mechanism(name, COINS, epoch).sample(5, cells)[0].ravel().tolist()
            assert drawn[-1] == again
        assert drawn[0] != drawn[1] != drawn[2]


def test_without_restarts_nothing_changes():
    plain = ra.Specification(SCHEMA, LINEAR | UNDECLARED, epsilon=1.0, delta=1e-6, horizon=12)
    zero = spec(LINEAR | UNDECLARED, restarts=0)
    other = spec(LINEAR | UNDECLARED, restarts=1)
    assert plain.whole_digest == zero.whole_digest == zero.replace().whole_digest != other.whole_digest
    assert plain.guarantee == zero.guarantee
    for name in plain.statistics:
        assert repr(plain.processes[name]) == repr(zero.processes[name])
        one, two = plain.mechanism(name, COINS), zero.mechanism(name, COINS, 0)
        cells = np.arange(6, dtype=np.uint64).reshape(3, 2)
        assert one.sample(5, cells)[0].tolist() == two.sample(5, cells)[0].tolist()


def test_a_restart_too_many_is_refused():
    made = spec({"n": ra.Count()}, restarts=2)
    with pytest.raises(ra.InputError, match=r"accounts for 2 restarts \(restarts=2\); epoch 3 is one more: go on as a"):
        made.mechanism("n", COINS, 3)
    with pytest.raises(ra.InputError, match="accounts for 0 restarts"):
        spec({"n": ra.Count()}, restarts=0).mechanism("n", COINS, 1)
    for epoch in (-1, True, 0.5):
        with pytest.raises(ra.InputError, match="whole number from 0 on"):
            made.mechanism("n", COINS, epoch)
    for restarts in (-1, 65, True, "2", 1.5):
        with pytest.raises(ra.InputError, match="between 0 and 64"):
            spec({"n": ra.Count()}, restarts=restarts)


def test_files_and_copies_keep_restarts():
    data = {
        "epsilon": 1.0,
        "horizon": 12,
        "restarts": 3,
        "schema": {"age": {"type": "integer", "lower": 0, "upper": 9}},
        "statistics": {"n": {"type": "count"}},
    }
    made = ra.Specification.from_dict(data)
    assert made.restarts == made.replace(epsilon=2.0).restarts == 3
    assert made.replace(restarts=0).whole_digest == ra.Specification.from_dict({**data, "restarts": 0}).whole_digest
    with pytest.raises(ra.InputError, match="between 0 and 64"):
        ra.Specification.from_dict({**data, "restarts": -1})


def test_the_guarantee_names_what_it_rests_on():
    promises = spec({"n": ra.Count()}, restarts=3).guarantee.promises
    for words in ("at most 3 restarts", "do not depend on data", "are replayed", "no round is released twice"):
        assert any(words in promise for promise in promises)
    assert len(spec({"n": ra.Count()}, restarts=0).guarantee.promises) == len(promises) - 3


@pytest.mark.parametrize(
    ("statistic", "options", "why"),
    [
        (ra.Count(noise=Oblivious(DiscreteLaplace(4), "mine", 0.01)), {}, "a law of your own"),
        (Restated(ra.Count(), [0, 1], across="rectangle"), {}, "across='lags'"),
        (ra.Distinct("country", form="flips", flips=2), {}, "use another form"),
        (ra.WindowSample(ra.oneshot.Median("age"), window=4, size=2, persistent=True), {"late": False}, "one key"),
        (
            ra.WindowSample(ra.oneshot.Median("age"), size=5, gate=ra.Gate(100_000, noise="paper")), {"epsilon": 9.0},
            "the paper's own gate",
        ),
    ],
)  # fmt: skip
def test_what_is_not_proved_is_refused_by_name(statistic, options, why):
    assert spec({"mine": statistic}, restarts=0, **options)
    with pytest.raises(ra.InputError, match="expected restarts = 0 with 'mine'") as caught:
        spec({"mine": statistic}, restarts=1, **options)
    assert why in str(caught.value)
    mapped = statistic.map(str) if not isinstance(statistic, Restated) else statistic
    with pytest.raises(ra.InputError, match="expected restarts = 0"):
        spec({"mine": mapped}, restarts=1, **options)


@pytest.mark.parametrize(
    "statistic",
    [
        ra.Distinct("country", form="releases"),
        ra.Distinct("country", form="blocks", additions=3, block=4),
        ra.WindowSample(ra.oneshot.Median("age"), window=4, size=2),
        ra.WindowSample(ra.oneshot.Median("age"), window=4, rate=0.5),
        ra.WindowSample(ra.oneshot.Median("age"), window=4, size=2, gate=100),
        ra.Count(window=3),
        ra.Count(window=40),
    ],
    ids=repr,
)
def test_other_shapes_that_are_served(statistic):
    made = spec({"mine": statistic}, horizon=50, late=False)
    zero = made.replace(restarts=0)
    for epoch in range(3):
        assert made.mechanism("mine", COINS, epoch).process.horizon in (None, zero.processes["mine"].horizon)
    assert made.processes["mine"].l2_squared >= zero.processes["mine"].l2_squared


def test_thresholds_are_for_the_noisiest_epoch():
    made = spec(UNDECLARED, horizon=200, restarts=2)
    for name in made.statistics:
        noise = [made.mechanism(name, COINS, epoch) for epoch in range(3)]
        assert len({one.threshold.at(7) for one in noise}) == 1
        tau = float(noise[0].threshold.at(7))
        rounds = np.arange(1, 201)
        # The rounds of all epochs together fail with at most what was granted, wherever the cuts are.
        tails = [
            [0.5 * math.erfc((tau - 1 - 1 / noise[0].refinement / 2) / one.deviation_of(0, int(q)) / math.sqrt(2))
             for q in rounds]
            for one in noise[:2]
        ]  # fmt: skip
        failure = float(made.failures[name])
        assert sum(max(pair) for pair in zip(*tails, strict=True)) <= failure
        assert sum(tails[1]) > 0.5 * failure


def test_the_papers_threshold_counts_the_anchor():
    made = spec({"bins": ra.Histogram("country", noise="paper")}, horizon=100, restarts=1)
    zero = made.replace(restarts=0)
    assert made.mechanism("bins", COINS).threshold.at(1) == made.mechanism("bins", COINS, 1).threshold.at(1)
    assert made.mechanism("bins", COINS).threshold.at(1) > zero.mechanism("bins", COINS).threshold.at(1)


def fill(made, batches):
    ledger = Ledger(made.schema)
    stream = ra.Stream.from_specification(made.replace(restarts=0), key=ra.Key.for_testing(9))
    for batch in batches:
        for record, erased in batch:
            if erased:
                stream.erase(subject=record)
            else:
                stream.add({"country": "DE", "kind": "a", "amount": 1, "age": 30, "at": [0, 0]}, subject=record)
        stream.close_round()
    return stream._ledger if batches else ledger


@pytest.mark.parametrize("statistic", [ra.Count(), ra.Histogram("kind"), ra.Quantiles("age", [0.5])], ids=repr)
def test_error_bars_and_twins_after_a_restart(statistic):
    """Histories that unite before the restart give equal bytes after it, with the error of their epoch."""
    made = spec({"mine": statistic}, horizon=20, restarts=1)
    coins = ra.Key.for_testing(3).next_epoch().coins("stream")
    one = fill(made, [[("u", False), ("v", False)], [], [("u", True)]])
    two = fill(made, [[("v", False)], [], []])
    found = []
    for ledger in (one, two):
        running = Running(made, "mine", coins, ledger, 3, epoch=1)
        found.append(running.release(running.totals, 4, 4))
    assert (found[0].numerators, found[0].denominator) == (found[1].numerators, found[1].denominator)
    noise = made.mechanism("mine", coins, 1)
    if isinstance(statistic, ra.Count):
        answer = found[0].answer
        drawn, denominator = noise.draw(4)
        assert found[0].numerators == (denominator + int(drawn[0]),)
        assert answer.standard_error == pytest.approx(noise.deviation_of(0, 4))
        assert answer.standard_error != pytest.approx(made.mechanism("mine", coins, 0).deviation_of(0, 4))
        low, high = answer.interval(0.95)
        assert (high - low) / 2 == pytest.approx(1.96 * answer.standard_error, rel=0.01)


def test_intervals_cover_in_later_epochs():
    made = spec({"n": ra.Count()}, horizon=50, delta=0.0, restarts=1)
    hit = 0
    for seed in range(400):
        noise = made.mechanism("n", Coins(seed.to_bytes(32, "big")), 1)
        drawn, denominator = noise.draw(33)
        hit += abs(int(drawn[0]) / denominator) <= noise.half_width(33, 0, 0.9)
    assert abs(hit / 400 - 0.9) < 4 * math.sqrt(0.09 / 400)
