"""The pictures and tables of docs/attacks.md: what retraining gives away, and what a stream does.

python benchmarks/attacks.py [FOLDER]

About a minute, most of it in the linear programs.
"""

import math
import sys
from pathlib import Path

import retroact as ra
from attack_pictures import deletions_picture, differencing_picture, transition_picture
from reconstruction import (
    FreshLaplace,
    FromNoise,
    PaperAttack,
    Retroactive,
    Tracker,
    exact,
    paced,
    reconstruct,
    transition,
)
from retraining import (
    average_releases,
    choose_queries,
    count_tables,
    difference_counts,
    invert_ridge,
    read_by_median,
)
from retroact.audit import Seeds
from retroact.audit.counting_attack import recovered
from retroact.audit.decoding import ceiling
from retroact.audit.reconstruction import plan_for
from retroact.audit.target import make_stream

EPSILON, DELTA = 1.0, 1e-6
SEEDS = Seeds(2026)
SIZES = {32: 20, 64: 8, 128: 3}
"""Secret bits, and how many times."""
RATIOS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5, 4.0, 10.0)
DELETIONS = (0, 4, 16, 64, 256, 512)
REPEATS = 5


def lines(n):
    """The line of the first picture for n secret bits, and that of least squares."""
    return transition(n, RATIOS, SEEDS, repeats=SIZES[n])


def daily():
    """A distinct count for every day of a year, attacked with 32 secret bits: (error over sqrt(n), recovered)."""
    spec = ra.Specification(
        {"user": ra.Text()}, {"users": ra.Distinct("user")}, epsilon=EPSILON, delta=DELTA, horizon=365
    )
    plan = plan_for(make_stream(spec), spec, "users")
    found = []
    for repeat in range(REPEATS):
        own = SEEDS.branch("daily", repeat)
        found.append(recovered(plan.answers, plan.attack(own), own))
    return plan.deviation(plan.attack(SEEDS)) / math.sqrt(plan.n), sum(found) / len(found)


def retrained():
    """The same with exact counts and Laplace noise of scale 1 on each."""
    found = []
    for repeat in range(REPEATS):
        own = SEEDS.branch("retrained", repeat)
        found.append(reconstruct(FreshLaplace(1.0), PaperAttack.of(32, 128, own), own).lp)
    return math.sqrt(2 / 32), sum(found) / len(found)


def draw_transition(sizes=tuple(SIZES)):
    rows = {n: lines(n) for n in sizes}
    for n, line in rows.items():
        for c, lp, squares in line:
            print(f"transition: n = {n}, c = {c:g}: {lp:.2f} by linear program, {squares:.2f} by least squares")
    for junk in (0.1, 0.2, 0.3):
        ((_, lp, squares),) = transition(64, (0.1,), SEEDS, repeats=5, junk=junk)
        print(f"transition: n = 64, c = 0.1, {junk:.0%} junk: {lp:.2f} by linear program, {squares:.2f} by squares")
    marks = [
        ("bad", "retraining, Laplace noise", *retrained()),
        ("own", "a stream over 365 rounds", *daily()),
    ]
    print("marks:", marks)
    shown = {n: [(c, lp) for c, lp, _ in line] for n, line in rows.items()}
    return transition_picture(shown, ceiling(EPSILON, DELTA), marks)


def draw_differencing():
    return differencing_picture(
        count_tables(SEEDS.branch("table"), records=1000, deletions=1, epsilon=EPSILON, delta=DELTA)
    )


def draw_deletions():
    rows = average_releases(SEEDS, n=64, deletions=DELETIONS, epsilon=EPSILON, delta=DELTA, repeats=8)
    for row in rows:
        print(f"deletions: {row}")
    return deletions_picture(rows, ceiling(EPSILON, DELTA))


def whole_histories():
    """The history of the paper, one update a round, through every distinct count there is."""
    ways = {
        "exact retraining": exact,
        "retraining, Laplace noise of eps = 1 each": FreshLaplace(1.0),
        "retraining, Laplace noise of eps = 0.1 each": FreshLaplace(0.1),
        "flippancy tracker": Tracker(EPSILON, DELTA),
        "retroactive, fresh": Retroactive("fresh", EPSILON, DELTA),
        "retroactive, blocks": Retroactive("blocks", EPSILON, DELTA),
    }
    for n in (32, 128):
        attack = PaperAttack.of(n, 4 * n, SEEDS.branch("whole", n))
        for name, way in ways.items():
            found = [reconstruct(way, attack, SEEDS.branch("whole", n, repeat)) for repeat in range(3)]
            lp, squares, error = (sum(row[i] for row in found) / len(found) for i in range(3))
            again = [reconstruct(way, attack, SEEDS.branch("whole", n, repeat), shift=False).lp for repeat in range(3)]
            plain = sum(again) / len(again)
            print(f"whole history: n = {n}, T = {attack.rounds:,}, {name}: {lp:.3f} (LP), {squares:.3f} (squares), "
                  f"{plain:.3f} (LP without a shift), error {error:.1f}")  # fmt: skip


def blocks_at_their_pace():
    """Blocks show a record only in the next block: the attacker waits for it. By exact counts and noise: the rounds are
    too many to run."""
    users = {"users": ra.Distinct("user", form="blocks", additions=1)}
    spec = ra.Specification({"user": ra.Text()}, users, epsilon=EPSILON, delta=DELTA, horizon=131_200, late=False)
    plan = plan_for(make_stream(spec), spec, "users")
    found = []
    for repeat in range(3):
        own = SEEDS.branch("blocks", repeat)
        found.append(reconstruct(FromNoise(plan), paced(plan.attack(own)), own))
    lp, squares, error = (sum(row[i] for row in found) / len(found) for i in range(3))
    print(f"blocks of {plan.block} rounds, n = {plan.n}, T = {plan.rounds:,}: {lp:.3f} (LP), {squares:.3f} (squares), "
          f"error {error:.1f}")  # fmt: skip


def retraining_numbers():
    print(difference_counts(SEEDS), invert_ridge(SEEDS), f"medians: {read_by_median(SEEDS)}", sep="\n")
    for epsilon in (1.0, 0.1):
        print(f"chosen queries, eps = {epsilon:g} each:",
              choose_queries(SEEDS, n=200, deletions=(200, 400, 800, 3200), epsilon=epsilon))  # fmt: skip


PICTURES = {
    "attack-transition": draw_transition,
    "attack-differencing": draw_differencing,
    "attack-deletions": draw_deletions,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw())
    whole_histories()
    blocks_at_their_pace()
    retraining_numbers()
