"""The shipped constants of crossfade noise: recomputed, and by other means on small horizons."""

import ast
import hashlib
import importlib.util
import json
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "certificates"
NAMES = ("bisection", "innovations", "check")


@pytest.fixture(scope="module")
def programs():
    """Loaded under their own names, as `python certificates/check.py` does."""
    found = {}
    for name in NAMES:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        found[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    yield found
    for name in NAMES:
        del sys.modules[name]


def matrix(m, rounds, window=False):
    """The weights of these rounds, from decimals, for nodes of variance 1; and their sizes, exactly."""
    context, table = Context(prec=60), []
    for i in range(1025):
        f = Decimal(i) / 1024
        square = f**2 * (3 - 2 * f) + 2 * f**2 * (1 - f) ** 2 * (1 - 2 * f)
        table.append(int(context.multiply(context.sqrt(square), Decimal(4096)).to_integral_value()))
    spacings = [2 ** (m - 1 - 2 * j) for j in range(m // 2)][::-1]
    widths = [Fraction(7, 8)] * len(spacings)
    widths[-1:] = [Fraction(1)] * bool(spacings)
    if len(spacings) > 1 and not window:
        widths[-2] = Fraction(3, 4)
    columns = {}
    for row, q in enumerate(rounds):
        for j, (spacing, width) in enumerate(zip(spacings, widths, strict=True)):
            left, phase = q // spacing, q % spacing * 1024 // spacing
            for node, weight in ((left, table[1024 - phase]), (left + 1, table[phase])):
                columns.setdefault((j, node), [Fraction(0)] * len(rounds))[row] = Fraction(weight, 4096) * width
    return table, columns, spacings


def all_pairs(inverse):
    """v' inverse v of every interval of rows: from the first to the last."""
    sums = np.zeros((len(inverse) + 1, len(inverse) + 1))
    sums[1:, 1:] = inverse.cumsum(axis=0).cumsum(axis=1)
    own = np.diag(sums)
    return np.triu(own[:, None] + own[None] - sums - sums.T, 1)


def covariance(columns, count):
    weights = np.array([[float(weight) for weight in column] for column in columns.values()])
    return np.eye(count) + weights.T @ weights if len(weights) else np.eye(count)


def test_the_programs_share_no_code():
    for name in NAMES[:2]:
        tree, found = ast.parse((FOLDER / f"{name}.py").read_text()), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {one.name.split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level
                found.add(node.module.split(".")[0])
        assert found <= {"__future__", "argparse", "json", "math", "fractions", "numpy"}, name


def test_weights_are_those_of_60_digits(programs):
    table, _, _ = matrix(1, [])
    for found in (programs["bisection"].weights(), programs["innovations"].fade()):
        assert (found * 4096).tolist() == table
    written = hashlib.sha256(",".join(map(str, table)).encode()).hexdigest()
    assert written == "1d0c34c686577a86aef9c081dfe411f35a76d435397055df89061217f9296574"
    assert written == programs["check"].shipped()["WEIGHTS_SHA256"]


@pytest.mark.parametrize("m", [2, 3, 4])
def test_all_intervals_in_ratios(programs, m):
    """Exactly: the strict bound is above, the other program at the largest of all intervals."""
    count = (1 << m) - 1
    _, columns, _ = matrix(m, range(1, count + 1))
    rows = [
        [Fraction(int(i == j)) + sum(c[i] * c[j] for c in columns.values()) for j in range(count)] for i in range(count)
    ]
    inverse = inverted(rows)
    most = max(
        sum(inverse[i][j] for i in range(s, e) for j in range(s, e))
        for s in range(count)
        for e in range(s + 1, count + 1)
    )
    bound, found = (Fraction(programs[name].certificate(m)["squared"]) for name in NAMES[:2])
    assert most <= bound <= most + Fraction(1, 10**7)
    assert abs(found - most) < Fraction(1, 10**12)


def inverted(rows):
    """By elimination; the matrix is positive definite."""
    count = len(rows)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(count))] for i, row in enumerate(rows)]
    for i in range(count):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(count):
            if k != i and rows[k][i]:
                rows[k] = [value - rows[k][i] * other for value, other in zip(rows[k], rows[i], strict=True)]
    return [row[count:] for row in rows]


@pytest.mark.parametrize("m", range(2, 11))
def test_all_intervals_densely(programs, m):
    count = (1 << m) - 1
    _, columns, _ = matrix(m, range(1, count + 1))
    costs = all_pairs(np.linalg.inv(covariance(columns, count)))
    row = [float(number) for number in programs["check"].shipped()["ROWS"][m]]
    for name in NAMES[:2]:
        made = programs[name].certificate(m)
        assert made["squared"] == pytest.approx(costs.max(), abs=1e-6)
        assert made["never_ends"] == pytest.approx(costs[:, -1].max(), abs=1e-6)
        s, e = made["interval"]
        assert costs[s, e] == pytest.approx(costs.max(), abs=1e-6)
    assert costs.max() <= row[0] <= costs.max() + 2.1e-4
    assert costs[:, -1].max() <= row[1] <= costs[:, -1].max() + 2.5e-4


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7])
def test_windows_densely_from_below_and_above(programs, m):
    """Rounds that are cut off make it smaller; nodes held at 0, with all rounds that see the others, larger."""
    window, count = 1 << m, 6 << m
    _, columns, spacings = matrix(m, range(count), window=True)
    inner = {
        (j, node): column
        for (j, node), column in columns.items()
        if spacings[j] <= node * spacings[j] <= count - spacings[j]
    }
    short = np.abs(np.subtract.outer(np.arange(count + 1), np.arange(count + 1))) <= window
    middle = (np.arange(count + 1) >= 2 * window) & (np.arange(count + 1) < 2 * window + window // 2)
    below, above = (
        np.where(short & middle[:, None], all_pairs(np.linalg.inv(covariance(part, count))), 0).max()
        for part in (columns, inner)
    )
    bound, found = (programs[name].certificate(m, window=True)["squared"] for name in NAMES[:2])
    assert below - 1e-9 <= bound
    assert found <= above + 1e-9
    assert found <= bound <= found + 1e-6
    assert above - below < 1e-3
    assert bound <= float(programs["check"].shipped()["WINDOWS"][m]) <= bound + 2.1e-4


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8, 9])
def test_pivots_densely(programs, m):
    """The Gram-Schmidt lengths of "a node up, its rounds down", finest level first, with all rounds and with some."""
    count, limits = (1 << m) - 1, programs["innovations"].pivots(m)
    _, columns, spacings = matrix(m, range(1, count + 1))
    variances = [variance for _, variance in programs["innovations"].Noise(m).levels]
    order = sorted(columns)
    weights = np.array([[float(weight) for weight in columns[node]] for node in order])
    weights /= np.sqrt([variances[level] for level, _ in order])[:, None]
    for rounds in (count, count // 2, count // 3):
        gram = weights[:, :rounds] @ weights[:, :rounds].T + np.diag([1 / variances[level] for level, _ in order])
        pivots = np.diag(np.linalg.cholesky(gram)) ** 2
        for level, limit in enumerate(limits):
            own = pivots[[place for place, node in enumerate(order) if node[0] == level]]
            assert own.max() <= limit + 1e-9, (level, rounds)
    assert max(limits) <= float(programs["check"].shipped()["KERNEL"])
    assert len(limits) == len(spacings)


def test_small_rows_are_certified(programs):
    check = programs["check"]
    rows = [(m, False) for m in range(1, 9)] + [(m, True) for m in range(2, 8)]
    assert check.faults(check.shipped(), [check.row_of(m, window, check.PROGRAMS) for m, window in rows]) == []


def test_what_was_found_for_all_rows_is_noted_and_holds_for_what_is_shipped(programs):
    check = programs["check"]
    found, constants = json.loads(check.NOTES.read_text()), check.shipped()
    assert [row["m"] for row in found if not row["window"]] == list(constants["ROWS"])
    assert [row["m"] for row in found if row["window"]] == list(constants["WINDOWS"])
    assert all({*check.PROGRAMS} < {*row} for row in found)
    assert check.faults(constants, found) == []


@pytest.mark.slow
@pytest.mark.parametrize("m", range(9, 16))
def test_long_rows_are_certified(programs, m):
    check = programs["check"]
    assert check.faults(check.shipped(), [check.row_of(m, False, check.PROGRAMS)]) == []


@pytest.mark.slow
@pytest.mark.parametrize("m", [16, 17])
def test_the_longest_rows_are_bounded(programs, m):
    check = programs["check"]
    assert check.faults(check.shipped(), [check.row_of(m, False, ["bisection"])]) == []


def test_a_wrong_constant_is_caught(programs):
    check = programs["check"]
    found = [check.row_of(6, window, check.PROGRAMS) for window in (False, True)]
    right = check.shipped()
    for wrong, sentence in (
        ({"ROWS": {6: ("2.1911", "1.8214")}}, "row 6: squared is shipped as 2.1911"),
        ({"ROWS": {6: ("2.1914", "1.8212")}}, "row 6: never_ends is shipped as 1.8212"),
        ({"WINDOWS": {6: "2.5044"}}, "window 64: squared is shipped as 2.5044"),
        ({"KERNEL": "4.2"}, "row 6: a pivot of 4.3896 is above 4.2"),
    ):
        (fault,) = check.faults({**right, **wrong}, found)
        assert fault.startswith(sentence)


def test_a_number_that_a_program_did_not_compute_is_named(programs):
    check = programs["check"]
    row = check.row_of(6, False, check.PROGRAMS)
    del row["innovations"]["never_ends"]
    assert check.faults(check.shipped(), [row]) == ["row 6: never_ends was not computed by innovations"]
    assert check.faults(check.shipped(), [check.row_of(6, False, ["bisection"])]) == [], "one program alone was asked"


@pytest.mark.parametrize("m", [11, 13, 15, *(pytest.param(m, marks=pytest.mark.slow) for m in (16, 17))])
def test_long_intervals_that_never_end_agree(programs, m):
    noted = next(
        row for row in json.loads(programs["check"].NOTES.read_text()) if (row["m"], row["window"]) == (m, None)
    )
    noise = programs["innovations"].Noise(m)
    found = max(noise.without_end(noise.filtered(1, (1 << m) - 1)))
    assert noted["innovations"]["never_ends"] == pytest.approx(found, abs=1e-9)
    assert found <= noted["bisection"]["never_ends"] <= found + 1e-5


def test_a_wrong_weight_in_one_program_is_caught(programs, monkeypatch):
    check, right = programs["check"], programs["innovations"].fade()
    monkeypatch.setattr(programs["innovations"], "fade", lambda: right * np.where(np.arange(1025) == 512, 0.99, 1))
    faults = check.faults(check.shipped(), [check.row_of(6, False, check.PROGRAMS)])
    assert any("but" in fault for fault in faults), faults


def test_position_0_as_a_round_costs_more(programs, monkeypatch):
    """The rows are for rounds from 1 on: with position 0 as a round they would be broken."""
    bisection = programs["bisection"]
    leaves = bisection.Bisection.leaves

    def with_position_0(self):
        self.window, kept = 1, self.window
        found = leaves(self)
        self.window = kept
        return found

    monkeypatch.setattr(bisection.Bisection, "leaves", with_position_0)
    assert bisection.certificate(2)["squared"] == pytest.approx(1.266, abs=1e-3)
    assert bisection.certificate(3)["squared"] == pytest.approx(1.589, abs=1e-3)


def test_errors_that_could_be_larger_than_allowed_stop_it(programs, monkeypatch):
    monkeypatch.setattr(programs["bisection"], "ALLOWED", 1e-18)
    with pytest.raises(ArithmeticError, match="is allowed"):
        programs["bisection"].certificate(6)
