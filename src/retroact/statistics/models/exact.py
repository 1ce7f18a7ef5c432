"""Arithmetic for what is published: the same bytes on one machine, under any number of threads.

BLAS and LAPACK split sums among threads, and sums of floats depend on how they are split. So nothing published goes
through them: every sum here is elementwise arithmetic of numpy in a fixed order. The eigenvectors of a symmetric matrix
come from Householder reflections and implicit QL steps, whose only operations are +, -, *, / and square roots. That
takes about one second for 512 columns, where LAPACK takes half of it, and milliseconds for small matrices.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import F64

# QL steps for one eigenvalue; 30 are said to be more than are ever needed.
MOST_STEPS = 60


def product(left: F64, right: F64) -> F64:
    """A matrix times a matrix or a vector, in a fixed order.

    >>> product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    if right.ndim == 1:
        return np.asarray((left * right).sum(axis=1))
    columns = np.ascontiguousarray(right.T)
    return np.stack([product(left, column) for column in columns], axis=1) if right.size else left[:, :0]


def eigen(matrix: F64) -> tuple[F64, F64]:
    """The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns, each with its largest entry
    positive (the first of equals). Only the lower triangle counts.

    >>> values, vectors = eigen(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> np.round(values, 9).tolist(), np.round(vectors, 3).tolist()
    ([1.0, 3.0], [[0.707, 0.707], [-0.707, 0.707]])
    """
    size = len(matrix)
    if not size:
        return np.zeros(0), np.zeros((0, 0))
    # By a power of two, which is exact: squares neither overflow nor vanish.
    scale = 2.0 ** math.frexp(float(np.abs(matrix).max()))[1]
    diagonal, subdiagonal, rows = _tridiagonal(matrix / scale)
    values = _implicit_ql(diagonal, subdiagonal, rows) * scale
    order = np.argsort(values, kind="stable")
    vectors = rows[order].T
    largest = np.abs(vectors).argmax(axis=0)
    return values[order], vectors * np.where(vectors[largest, np.arange(size)] < 0, -1.0, 1.0)


def _tridiagonal(matrix: F64) -> tuple[list[float], list[float], F64]:
    """Reduce by Householder reflections: diagonal, subdiagonal, and the orthogonal matrix, by rows."""
    size = len(matrix)
    left = np.tril(matrix)
    left = left + np.tril(left, -1).T
    reflections: list[tuple[F64, float]] = []
    subdiagonal = []
    for k in range(size - 1):
        below = left[k + 1 :, k].copy()
        length = math.sqrt(float((below * below).sum()))
        turned = -length if below[0] > 0 else length
        subdiagonal.append(turned)
        below[0] -= turned
        square = float((below * below).sum())
        factor = 2.0 / square if square else 0.0
        reflections.append((below, factor))
        rest = left[k + 1 :, k + 1 :]
        image = (rest * below[:, None]).sum(axis=0) * factor
        image -= below * (factor / 2 * float((image * below).sum()))
        rest -= below[:, None] * image + image[:, None] * below
    rows = np.eye(size)
    for k in reversed(range(size - 1)):
        below, factor = reflections[k]
        part = rows[k + 1 :, k + 1 :]
        part -= (factor * below)[:, None] * (part * below[:, None]).sum(axis=0)
    return left.diagonal().tolist(), subdiagonal, np.ascontiguousarray(rows.T)


def _implicit_ql(values: list[float], subdiagonal: list[float], rows: F64) -> F64:
    """The eigenvalues of a tridiagonal matrix. Each rotation of two coordinates is applied to two ``rows`` too."""
    size, off = len(values), [*subdiagonal, 0.0]
    for first in range(size):
        for _ in range(MOST_STEPS):
            end = first
            while end < size - 1:
                near = abs(values[end]) + abs(values[end + 1])
                if near + abs(off[end]) == near:
                    break
                end += 1
            if end == first:
                break
            _step(values, off, rows, first, end)
    return np.array(values)


def _step(values: list[float], off: list[float], rows: F64, first: int, end: int) -> None:
    """One QL step on the block from ``first`` to ``end``, with the eigenvalue of its first corner as shift."""
    shape = (values[first + 1] - values[first]) / (2.0 * off[first])
    root = math.sqrt(shape * shape + 1.0)
    shift = values[end] - values[first] + off[first] / (shape + (root if shape >= 0 else -root))
    sine = cosine = 1.0
    moved = 0.0
    for k in range(end - 1, first - 1, -1):
        bulge, near = sine * off[k], cosine * off[k]
        length = math.sqrt(bulge * bulge + shift * shift)
        off[k + 1] = length
        if length == 0.0:
            # the block falls in two
            values[k + 1] -= moved
            off[end] = 0.0
            return
        sine, cosine = bulge / length, shift / length
        corner = values[k + 1] - moved
        turned = (values[k] - corner) * sine + 2.0 * cosine * near
        moved = sine * turned
        values[k + 1] = corner + moved
        shift = cosine * turned - near
        one, other = rows[k], rows[k + 1]
        kept = other * cosine
        kept += one * sine
        one *= cosine
        one -= other * sine
        other[:] = kept
    values[first] -= moved
    off[first], off[end] = shift, 0.0
