"""A strict bound for the squared shift of every interval of rounds, by bisection of time.

    python certificates/bisection.py 10 16            # rows m of the table: horizons 2^m - 1
    python certificates/bisection.py --windows 4 8    # the endless process for windows of 2^m rounds

Round q has the noise: fresh(q) + sum over levels of two nodes, the last one before q and the next one, with the weights
W(1 - f) and W(f) at phase f. A record that counts on the rounds v is hidden at the squared shift v' inv(Sigma) v, with
Sigma = I + L L'. For *any* values y of the nodes

    v' inv(Sigma) v  <=  |v - L y|^2 + |y|^2,                                                                    (1)

so a value of the right side is a bound, wherever y comes from: no solver has to be trusted, only rounding be bounded.

The rounds of a dyadic block see, at every level, the two nodes at its ends (or at those of the cell that it lies in),
and nodes that no other round sees. So a block is a quadratic form of its end nodes, with a linear and a constant part
for each pattern v: all rounds, the rounds from s on, the rounds up to e. Two halves are joined by a choice of the nodes
between them. `outside` is the form of all rounds but those of a block, with v = 0. All forms are bounds in the sense of
(1). If s lies in the left and e in the right half of a block, then for y = y_s + y_e, y_s about -inv(A) u_s

    cost(s, e) = D_s + D_e + 2 u_s'y_e + 2 r_e'y_s,    D_s = p_s + u_s'y_s + r_s'y_s,    r = u + A y:

r is the residual of the solve. All pairs of a block are one product of matrices.

**Rounding.** Weights are multiples of 2^-15, so they are exact. An entry of a form is a sum of products; its error is
at most `ROUNDING` times their number times the sum of their absolute values, in any order of summation. A matrix of
such errors is at most its largest row sum times the identity (Gershgorin): `ALLOWED` * size is added to the diagonal
and to the constants, and the program stops where errors could be larger.
"""

from __future__ import annotations

import argparse
import json
import math
from fractions import Fraction

import numpy as np

PHASES = 1024
# Twice the unit of rounding, which also covers the computation of the bounds themselves.
ROUNDING = 2.0**-52
ALLOWED = 2.0**-39
ALLOWED_IN_WINDOWS = 2.0**-36
# Pairs are looked at in squares that fit the cache.
TILE = 512
# The endless process is cut to this many windows.
WINDOWS = 8


def weights():
    """W(i / 1024) to the nearest multiple of 2^-12, where W(f)^2 = f^2 (3 - 2f) + 2 f^2 (1 - f)^2 (1 - 2f)."""
    found = []
    for i in range(PHASES + 1):
        f = Fraction(i, PHASES)
        square = 4**12 * (f**2 * (3 - 2 * f) + 2 * f**2 * (1 - f) ** 2 * (1 - 2 * f))
        near = round(math.sqrt(square))
        assert near == 0 == square or (near - Fraction(1, 2)) ** 2 < square < (near + Fraction(1, 2)) ** 2
        found.append(near / 4096)
    return np.array(found)


class Bisection:
    """Of 2^bits rounds: with `window`, some of the endless process; else 1 .. 2^bits - 1, and no round 0."""

    def __init__(self, m, window=False):
        self.m, self.window = m, 1 << m if window else None
        self.bits = m + (WINDOWS.bit_length() - 1 if window else 0)
        self.spacings = [1 << k for k in range(m - 1, 0, -2)][::-1]
        self.deviations = [7 / 8] * len(self.spacings)
        self.deviations[-1:] = [1.0] * bool(self.spacings)
        if not window and len(self.spacings) > 1:
            self.deviations[-2] = 3 / 4
        self.ends = 2 * len(self.spacings)
        self.allowed = ALLOWED_IN_WINDOWS if window else ALLOWED
        self.best, self.where, self.never_ends = 0.0, (0, 0), 0.0

    def leaves(self):
        """Single rounds: the square of v - h'y."""
        rounds, table = np.arange(1 << self.bits), weights()
        h = np.zeros((len(rounds), self.ends))
        for j, (spacing, deviation) in enumerate(zip(self.spacings, self.deviations, strict=True)):
            phase = rounds % spacing * PHASES // spacing
            h[:, 2 * j], h[:, 2 * j + 1] = table[PHASES - phase] * deviation, table[phase] * deviation
        present = np.ones(len(rounds))
        if not self.window:
            h[0], present[0] = 0, 0
        return h, present

    def places(self, size):
        """Where the end nodes of two halves of this size stand among all their nodes: first the end nodes of the whole,
        then the nodes between the halves."""
        left, right = np.arange(self.ends), np.arange(self.ends)
        fine = np.flatnonzero(np.array(self.spacings) <= size)
        left[2 * fine + 1] = right[2 * fine] = self.ends + np.arange(len(fine))
        return left, right, self.ends + np.arange(len(fine))

    def joined(self, size, left, right):
        """The form of both halves and of the nodes between them."""
        at_left, at_right, between = self.places(size)
        count = self.ends + len(between)
        out = np.zeros((max(len(left), len(right)), count, count))
        out[:, at_left[:, None], at_left] += left
        out[:, at_right[:, None], at_right] += right
        out[:, between, between] += 1
        return out

    def chosen(self, size, form, stay, gone, patterns=()):
        """The form, and the (u, p) of patterns, when the nodes that are gone take the values -X y - g."""
        inner, mixed = form[:, gone[:, None], gone], form[:, gone[:, None], stay]
        X = np.linalg.solve(inner, mixed)
        back = np.swapaxes(X, 1, 2)
        H = form[:, stay[:, None], stay] - back @ mixed - np.swapaxes(mixed, 1, 2) @ X + back @ (inner @ X)
        size_of_X, size_of_inner = np.abs(X), np.abs(inner)
        sizes = np.abs(form[:, stay[:, None], stay]) + 2 * np.swapaxes(np.abs(mixed), 1, 2) @ size_of_X
        sizes = (sizes + np.swapaxes(size_of_X, 1, 2) @ (size_of_inner @ size_of_X)).sum(axis=-1).max(initial=0)
        out = []
        for u, p in patterns:
            g = u[..., gone] @ np.linalg.inv(inner)
            flat = g @ inner
            linear = u[..., stay] - u[..., gone] @ X - g @ mixed + flat @ X
            out.append((linear, p + ((flat - 2 * u[..., gone]) * g).sum(axis=-1)))
            u, g = np.abs(u), np.abs(g)
            flat = g @ size_of_inner
            linear = u[..., stay] + (u[..., gone] + flat) @ size_of_X + g @ np.abs(mixed)
            constant = np.abs(p) + ((flat + 2 * u[..., gone]) * g).sum(axis=-1)
            sizes = max(sizes + linear.max(initial=0), (constant + linear.sum(axis=-1)).max(initial=0))
        # Parts of `form` were added before: they are blocks of non-negative matrices, so none is larger than the sum.
        error = 2 * (3 * len(gone) + 16) * ROUNDING * sizes
        if error > self.allowed * size:
            raise ArithmeticError(f"errors up to {error:.2e} where {self.allowed * size:.2e} is allowed, size {size}")
        H = (H + np.swapaxes(H, 1, 2)) / 2 + self.allowed * size * np.eye(len(stay))
        return H, [(u, p + self.allowed * size) for u, p in out]

    def run(self):
        h, present = self.leaves()
        sizes = [1 << k for k in range(self.bits)]
        inside = {1: None, 2: None}
        rank_one = h[:, :, None] * h[:, None, :]
        for size in sizes:
            H = rank_one if size == 1 else inside[size]
            form, (_, _, between) = self.joined(size, H[::2], H[1::2]), self.places(size)
            inside[2 * size], _ = self.chosen(size, form, np.arange(self.ends), between)
        outside = {2 * sizes[-1]: self.border()}
        for size in sizes[:0:-1]:
            outside[size] = self.outside(size, outside[2 * size], inside[size])
        # The patterns of blocks of one round.
        full = -h * present[:, None], present
        starts = ends = full[0][:, None], full[1][:, None]
        for size in sizes:
            H = rank_one if size == 1 else inside[size]
            starts, ends, full = self.level(size, H, outside[2 * size], starts, ends, full)
            del H, outside[2 * size]
            if size == 1:
                del rank_one
        return self

    def border(self):
        """The nodes at the ends of all rounds. In the endless process, rounds further out see them too; with 0 at the
        nodes beyond, they cost at most the number of levels times the sum over levels of y^2 times one cell."""
        spacings = np.repeat(self.spacings, 2)
        return np.diag(1.0 + (spacings * len(self.spacings) if self.window else 0 * spacings))[None]

    def outside(self, size, whole, halves):
        """For each half: the rounds outside the whole, and those of the other half."""
        left, right, _ = self.places(size)
        out = np.zeros_like(halves)
        for place, other, at in ((0, halves[1::2], left), (1, halves[::2], right)):
            zero = np.zeros((1, self.ends, self.ends))
            form = self.joined(size, zero, other) if place == 0 else self.joined(size, other, zero)
            form[:, : self.ends, : self.ends] += whole
            gone = np.setdiff1d(np.arange(form.shape[1]), at)
            out[place::2], _ = self.chosen(size, form, at, gone)
        return out

    def placed(self, pattern, at, count):
        u = np.zeros((*pattern[0].shape[:-1], count))
        u[..., at] = pattern[0]
        return u, pattern[1]

    def level(self, size, H, outside, starts, ends, full):
        """Look at all pairs with s in a left and e in a right half; then join the halves."""
        left, right, between = self.places(size)
        form = self.joined(size, H[::2], H[1::2])
        count, halves = form.shape[1], {}
        for name, (u, p) in (("starts", starts), ("ends", ends), ("full", full)):
            halves[name] = (
                self.placed((u[::2], p[::2]), left, count),
                self.placed((u[1::2], p[1::2]), right, count),
            )
        all_of_it = form.copy()
        all_of_it[:, : self.ends, : self.ends] += outside
        self.pairs(size, all_of_it, halves["starts"][0], halves["ends"][1])
        whole_left, whole_right = ((u[:, None], p[:, None]) for u, p in halves["full"])
        patterns = [
            _stacked(_sum(halves["starts"][0], whole_right), halves["starts"][1]),
            _stacked(halves["ends"][0], _sum(whole_left, halves["ends"][1])),
            _sum(whole_left, whole_right),
        ]
        _, (starts, ends, (u, p)) = self.chosen(size, form, np.arange(self.ends), between, patterns)
        return starts, ends, (u[:, 0], p[:, 0])

    def pairs(self, size, form, starts, ends):
        inverse = np.linalg.inv(form)
        solved = []
        for u, p in (starts, ends):
            y = -(u @ inverse)
            r = u + y @ form
            solved.append((u, y, r, p + ((u + r) * y).sum(axis=-1)))
        (u, y_s, _, D_s), (_, y_e, r_e, D_e) = solved
        reach = max(np.abs(y).sum(axis=-1).max(initial=0) for y in (y_s, y_e))
        largest = max(np.abs(x).max(initial=1) for x in (form, *starts, *ends))
        terms = form.shape[1] + 8
        slack = 2 * np.abs(r_e).sum(axis=-1).max(initial=0) * reach
        slack += 4 * terms**2 * ROUNDING * 2 * largest * (1 + reach) ** 2
        one = np.ones((*D_s.shape, 1))
        rows = np.concatenate([2 * u, D_s[..., None], one], axis=-1)
        columns = np.swapaxes(np.concatenate([y_e, one, D_e[..., None]], axis=-1), 1, 2)
        first = np.arange(len(form))[:, None] * 2 * size + np.arange(size)
        last = first + size
        if size == 1:  # one round alone
            self.look(D_s[..., None], first, first, slack)
            self.look(D_e[..., None], last, last, slack)
        together = max(1, TILE**2 // size**2)
        for b in range(0, len(form), together):
            for i in range(0, size, TILE):
                for j in range(0, size, TILE):
                    rounds = first[b : b + together, i : i + TILE], last[b : b + together, j : j + TILE]
                    found = rows[b : b + together, i : i + TILE] @ columns[b : b + together, :, j : j + TILE]
                    self.look(found, *rounds, slack)

    def look(self, found, first, last, slack):
        if self.window:
            if first.min() > (middle := 1 << (self.bits - 1)) + self.window or first.max() < middle:
                return
            period = (first >= middle) & (first < middle + max(1, self.window // 2))
            seen = period[:, :, None] & (last[:, None, :] - first[:, :, None] < self.window)
            found = np.where(seen, found, 0)
        elif last.max() == (1 << self.bits) - 1:
            self.never_ends = max(self.never_ends, float(found[-1, :, -1].max()) + slack)
        if (most := float(found.max())) + slack > self.best:
            b, i, j = np.unravel_index(int(found.argmax()), found.shape)
            self.best, self.where = most + slack, (max(0, int(first[b, i]) - 1), int(last[b, j]))


def _sum(one, other):
    return one[0] + other[0], one[1] + other[1]


def _stacked(one, other):
    return np.concatenate([one[0], other[0]], axis=1), np.concatenate([one[1], other[1]], axis=1)


def certificate(m, window=False):
    """The bound for all intervals, for those that never end, and the worst interval (s, e): the rounds s < q <= e."""
    found = Bisection(m, window).run()
    return {
        "m": m,
        "window": found.window,
        "squared": found.best,
        "never_ends": None if window else found.never_ends,
        "interval": list(found.where),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="+", help="m, for 2^m boundaries or windows of 2^m rounds")
    parser.add_argument("--windows", action="store_true")
    asked = parser.parse_args()
    for m in asked.rows:
        print(json.dumps(certificate(m, asked.windows)), flush=True)


if __name__ == "__main__":
    main()
