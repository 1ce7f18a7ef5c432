"""OpenDP measurements as one-shot algorithms."""

from __future__ import annotations

import importlib
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..errors import InputError
from ..params import plain
from ..schema import Boolean, Field, Integer, Number, Rows, Schema, Text, field_of
from .base import ADD_REMOVE, SUBSTITUTION, Contract, Relation
from .declared import Unkeyed, columns_of

UNBOUNDED = ("SymmetricDistance", "InsertDeleteDistance")
BOUNDED = ("ChangeOneDistance",)
# The element types for the values of a field.
CARRIERS: dict[type[Field], tuple[str, ...]] = {
    Number: ("f64", "f32"),
    Integer: ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    Boolean: ("bool",),
    Text: ("String",),
}


class OpenDP(Unkeyed):
    """An OpenDP measurement on the values of one field: its input is a vector of them, in canonical order.

    **Privacy.** The measurement's own map: at distance 1 for symmetric and insert-delete distance (one record more or
    less), at 1 for change-one distance, and at 2 for the former on vectors of a fixed size (one record in the place of
    another). Hamming distance, which goes by position, is refused: values come sorted, and another one can shift all of
    them. OpenDP does not check that values lie in the input domain: `check` compares its bounds with those of the
    field, and `run` the number of records with its size. Zero-concentrated and smoothed measures are converted by
    OpenDP's own combinators at ``delta``.

    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> ages = dp.vector_domain(dp.atom_domain(bounds=(0, 120))), dp.symmetric_distance()
    >>> OpenDP(ages >> dp.t.then_sum() >> dp.m.then_laplace(scale=240.0), "age").contract.epsilon
    Fraction(1, 2)
    """

    kind: ClassVar[str] = "opendp"
    unwritten: ClassVar[tuple[str, ...]] = ("measurement",)

    def __init__(self, measurement: Any, field: str, *, delta: float | None = None, name: str = "opendp") -> None:
        try:
            library = importlib.import_module("opendp.prelude")
        except ImportError as error:
            raise InputError(
                f"expected the library opendp, got {error}; install retroact[opendp]", place="opendp"
            ) from error
        if not isinstance(measurement, library.Measurement):
            raise InputError(f"expected an OpenDP measurement, got {type(measurement).__name__}", place="measurement")
        if not isinstance(field, str):
            raise InputError(f"expected the name of one field, got {field!r}", place="field")
        domain = str(measurement.input_domain.type)
        if not domain.startswith("VectorDomain<AtomDomain<"):
            raise InputError(f"expected a measurement on a vector of values, got one on {domain}", place="measurement")
        self.measurement, self.field = _fixed(library, measurement, delta), field
        self.takes: int | None = measurement.input_domain.size
        super().__init__(_contract(self.measurement, self.takes), name)

    def argument(self, name: str) -> Any:
        return (self.contract.delta or None) if name == "delta" else super().argument(name)

    def spec(self, *, digest: bool = False) -> dict[str, Any]:
        """With the measurement's own description and what it spends."""
        m = self.measurement
        described = {
            "domain": str(m.input_domain),
            "metric": str(m.input_metric.type),
            "measure": str(m.output_measure.type),
            "epsilon": plain(self.contract.epsilon),
        }
        return {**super().spec(digest=digest), **described}

    def check(self, schema: Schema, place: str) -> None:
        field = field_of(schema, self.field, place=f"{place}.field")
        element = self.measurement.input_domain.element_domain
        carrier = str(element.carrier_type)
        if carrier not in CARRIERS.get(type(field), ()):
            raise InputError(f"expected a field for values of type {carrier}, got {field}", place=f"{place}.field")
        if not isinstance(field, Number | Integer):
            return
        bounds = element.bounds
        if bounds is None and carrier[0] in "iu":
            limits = np.iinfo(carrier.replace("i", "int").replace("u", "uint"))
            bounds = (int(limits.min), int(limits.max))
        first, last = field.decode(field.lower), field.decode(field.upper)
        if bounds is not None and not bounds[0] <= first <= last <= bounds[1]:
            raise InputError(
                f"expected the values of the field within the domain of the measurement, {bounds[0]} to {bounds[1]}, "
                f"got a field from {first} to {last}",
                place=f"{place}.field",
            )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        return (self.field,)

    def answer(self, rows: Rows, schema: Schema) -> Any:
        values = columns_of(rows, schema, [self.field])[self.field]
        return self.measurement(values.tolist() if isinstance(values, np.ndarray) else values)


def _fixed(library: Any, measurement: Any, delta: float | None) -> Any:
    """The measurement in epsilon, or in epsilon and delta."""
    measure = str(measurement.output_measure.type)
    if measure in ("MaxDivergence", "Approximate<MaxDivergence>"):
        return measurement
    if measure not in ("ZeroConcentratedDivergence", "SmoothedMaxDivergence"):
        raise InputError(
            f"expected a measurement in epsilon (and delta), got one in {measure}; see opendp.combinators",
            place="measure",
        )
    if delta is None:
        steps = "make_fix_delta" if measure == "SmoothedMaxDivergence" else "make_zCDP_to_approxDP and make_fix_delta"
        raise InputError(
            f"expected a measurement in epsilon and delta, got one in {measure}; give delta=, or apply {steps}",
            place="delta",
        )
    if measure == "ZeroConcentratedDivergence":
        measurement = library.c.make_zCDP_to_approxDP(measurement)
    return library.c.make_fix_delta(measurement, delta)


def _contract(measurement: Any, size: int | None) -> Contract:
    metric = str(measurement.input_metric.type)
    if metric not in UNBOUNDED + BOUNDED:
        raise InputError(f"expected a distance between data sets, got {metric}", place="measurement")
    relation: Relation = SUBSTITUTION if metric in BOUNDED or size is not None else ADD_REMOVE
    # With a fixed size, a substitution is one record that goes and one that comes.
    spent = measurement.map(2 if metric in UNBOUNDED and size is not None else 1)
    epsilon, delta = spent if isinstance(spent, tuple) else (spent, 0.0)
    if not 0 < epsilon <= 1000:
        raise InputError(f"expected a measurement of epsilon above 0 and up to 1,000, got {epsilon!r}", place="epsilon")
    # Floats are exact as fractions, and the map has rounded them up.
    return Contract(Fraction(epsilon), Fraction(delta), relation)
