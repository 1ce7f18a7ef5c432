"""Array types for signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]
Integers = NDArray[np.int64] | NDArray[np.object_]
"""Exact integers: int64, or Python integers where 64 bits are too few."""
Words = tuple[U64, ...]
"""Keys of one or more words, one array per word."""
