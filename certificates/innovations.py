"""The squared shift of every interval of rounds, by the innovations of the noise.

    python certificates/innovations.py 10 16            # rows m of the table: horizons 2^m - 1
    python certificates/innovations.py --windows 4 8    # the endless process for windows of 2^m rounds, from below

Noise whose state is known up to a Gaussian is observed round by round (a Kalman filter). The state holds two nodes a
level, the last one before the round and the next one. If F is the variance of a round given the rounds before, and i
the innovation that the pattern v causes, then

    v' inv(Sigma) v = sum over rounds of i^2 / F.

For the rounds s < q <= e the sum up to e is carried along with the mean of the state, for all s at once; after e, where
v = 0, the rest is a quadratic form of that mean, which a recursion from the last round backwards gives for every e. So
every interval is looked at. For v = 1 without an end another recursion backwards gives the whole. The sums are floating
point without a bound for rounding: this program confirms the strict bound of the other one, by other means. In a
window, the rounds of the endless process are cut to some of them, which can only make the result smaller.
"""

from __future__ import annotations

import argparse
import json
from math import isqrt

import numpy as np

STEPS = 1 << 10
UNIT = 1 << 12
# Intervals looked at together are those of so many starting rounds: their states fit the cache.
TOGETHER = 1024
PERIODS = 16


def fade():
    """W(i / 1024) in whole steps of 2^-12. Over STEPS^5, W^2 = i^2 (3n - 2i) n^2 + 2 i^2 (n - i)^2 (n - 2i)."""
    n, out = STEPS, []
    for i in range(n + 1):
        numerator = i**2 * (3 * n - 2 * i) * n**2 + 2 * i**2 * (n - i) ** 2 * (n - 2 * i)
        out.append((isqrt(4 * UNIT**2 * numerator // n**5) + 1) // 2)
    return np.array(out) / UNIT


class Noise:
    """The nodes that round q sees, and when they change."""

    def __init__(self, m, window=False):
        spacing, self.levels = 4 if m % 2 else 2, []
        while spacing < 1 << m:
            self.levels.append([spacing, 49 / 64])
            spacing *= 4
        if len(self.levels) > 1 and not window:
            self.levels[-2][1] = 9 / 16
        if self.levels:
            self.levels[-1][1] = 1.0
        self.own = np.repeat([variance for _, variance in self.levels], 2)
        self.fade = fade()

    def step(self, q):
        """The levels that a new cell begins at, and the weights."""
        new = [2 * j for j, (spacing, _) in enumerate(self.levels) if q % spacing == 0]
        seen = np.empty(2 * len(self.levels))
        for j, (spacing, _) in enumerate(self.levels):
            phase = q % spacing * STEPS // spacing
            seen[2 * j : 2 * j + 2] = self.fade[STEPS - phase], self.fade[phase]
        return new, seen

    def filtered(self, first, last):
        """For each round: which nodes change before it, weights, gain over F, and F."""
        state, out = np.diag(self.own), []
        for q in range(first, last + 1):
            new, seen = self.step(q)
            for left in new:
                state[left], state[:, left] = state[left + 1], state[:, left + 1]
                state[left, left] = state[left + 1, left + 1]
                state[left + 1] = state[:, left + 1] = 0
                state[left + 1, left + 1] = self.own[left]
            gain = state @ seen
            F = 1 + seen @ gain
            state = state - np.outer(gain, gain) / F
            out.append((new, seen, gain / F, F))
        return out

    def rest(self, filtered):
        """After each round: the form that the mean of the state costs in all later rounds, where v = 0."""
        form, out = np.zeros((len(self.own), len(self.own))), []
        for new, seen, gain, F in reversed(filtered):
            out.append(form)
            moved = np.eye(len(seen)) - np.outer(gain, seen)
            form = moved.T @ form @ moved + np.outer(seen, seen) / F
            for left in new:  # the mean of the right node becomes that of the left one, which is forgotten
                form[left + 1], form[:, left + 1] = form[left], form[:, left]
                form[left + 1, left + 1] = form[left, left]
                form[left] = form[:, left] = 0
        return out[::-1]

    def without_end(self, filtered):
        """For each round: what v = 1 from it on costs. Backwards too: a form of the mean of the state and of the 1."""
        nodes = len(self.own)
        form, out = np.zeros((nodes + 1, nodes + 1)), []
        for new, seen, gain, F in reversed(filtered):
            moved = np.eye(nodes + 1)
            moved[:nodes, :nodes] -= np.outer(gain, seen)
            moved[:nodes, nodes] = gain
            innovation = np.append(-seen, 1.0)
            form = moved.T @ form @ moved + np.outer(innovation, innovation) / F
            out.append(float(form[nodes, nodes]))  # before it the mean is 0
            for left in new:
                form[left + 1], form[:, left + 1] = form[left], form[:, left]
                form[left + 1, left + 1] = form[left, left]
                form[left] = form[:, left] = 0
        return out[::-1]


def certificate(m, window=False):
    """The largest of all intervals, of those that never end, and the worst interval (s, e): the rounds s < q <= e."""
    noise, length = Noise(m, window), 1 << m
    first, last = (0, PERIODS * length - 1) if window else (1, length - 1)
    filtered = noise.filtered(first, last)
    rest = noise.rest(filtered)
    begin, end = (PERIODS * length // 2, PERIODS * length // 2 + max(1, length // 2)) if window else (first, last + 1)
    best, where = 0.0, (0, 0)
    for start in range(begin, end, TOGETHER):
        starts = min(TOGETHER, end - start)
        mean, cost = np.zeros((len(noise.own), starts)), np.zeros(starts)
        stop = min(last, start + starts + length - 2) if window else last
        for q in range(start, stop + 1):
            new, seen, gain, F = filtered[q - first]
            for left in new:
                mean[left] = mean[left + 1]
                mean[left + 1] = 0
            active = min(starts, q - start + 1)
            innovation = 1 - seen @ mean[:, :active]
            cost[:active] += innovation**2 / F
            mean[:, :active] += gain[:, None] * innovation
            total = cost[:active] + (mean[:, :active] * (rest[q - first] @ mean[:, :active])).sum(axis=0)
            if window:  # the starts that are at most a window ago
                total = total[max(0, q - length + 1 - start) :]
            at = int(total.argmax())
            if total[at] > best:
                skipped = max(0, q - length + 1 - start) if window else 0
                best, where = float(total[at]), (start + skipped + at - 1, q)
    return {
        "m": m,
        "window": length if window else None,
        "squared": best,
        "never_ends": None if window else max(noise.without_end(filtered)),
        "interval": list(where),
    }


def pivots(m, window=False):
    """For each level, the squared length of what is left of "a node up by 1, its rounds down by its weights" when the
    same of all nodes of finer levels may be added, in units of the fresh noise. That is 1 / width^2 and the least cost
    of the node's weights under the noise of the finer levels. All nodes of a level inside the horizon are alike, and
    rounds that are not there, or not yet, only make it smaller."""
    out = []
    for j, (spacing, variance) in enumerate(Noise(m, window).levels):
        finer = Noise(m, window)
        finer.levels, finer.own = finer.levels[:j], finer.own[: 2 * j]
        # Beyond two cells of the finer levels nothing is left of the node, which stands at 0.
        reach = spacing + (2 * finer.levels[-1][0] if j else 0)
        position = np.arange(-reach, reach + 1)
        phase = np.maximum(0, STEPS - abs(position) * STEPS // spacing)
        rising = np.minimum(STEPS, (position + spacing) % spacing * STEPS // spacing)
        weights = np.where(abs(position) >= spacing, 0, finer.fade[np.where(position < 0, rising, phase)])
        mean, cost = np.zeros(2 * j), 0.0
        filtered = finer.filtered(int(position[0]), int(position[-1]))
        for (new, seen, gain, F), weight in zip(filtered, weights.tolist(), strict=True):
            for left in new:
                mean[left], mean[left + 1] = mean[left + 1], 0
            innovation = weight - seen @ mean
            cost += innovation**2 / F
            mean += gain * innovation
        out.append(float(1 / variance + cost))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="+", help="m, for 2^m boundaries or windows of 2^m rounds")
    parser.add_argument("--windows", action="store_true")
    asked = parser.parse_args()
    for m in asked.rows:
        print(json.dumps(certificate(m, asked.windows)), flush=True)


if __name__ == "__main__":
    main()
