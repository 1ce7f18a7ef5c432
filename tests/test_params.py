"""What names coins is made of the arguments in fixed words, and of nothing else."""

from __future__ import annotations

import pytest

import retroact as ra
from retroact.noise import Process, Schauder
from retroact.oneshot import OneShot
from retroact.params import REQUIRED, Parameters
from retroact.schema import Field
from retroact.statistics import Statistic
from retroact.stream import Specification

FAMILIES = (Field, Process, Statistic, OneShot)
SCHEMA = {"age": ra.Integer(0, 120), "name": ra.Text()}


def digest(statistic, schema=SCHEMA, **options):
    return Specification(schema, {"s": statistic}, epsilon=1.0, delta=1e-6, horizon=16, **options).digest("s")


def test_an_argument_added_later_changes_no_digest():
    class Later(ra.Sum):
        def __init__(self, field, *, rounding="half even", **options):
            super().__init__(field, **options)
            self.rounding = rounding

    class LaterField(ra.Integer):
        def __init__(self, lower, upper, *, unit=None, **options):
            super().__init__(lower, upper, **options)
            self.unit = unit

    assert digest(Later("age")) == digest(ra.Sum("age"))
    assert digest(Later("age", rounding="down")) != digest(ra.Sum("age"))
    assert digest(ra.Sum("age"), {**SCHEMA, "age": LaterField(0, 120)}) == digest(ra.Sum("age"))
    assert digest(ra.Sum("age"), {**SCHEMA, "age": LaterField(0, 120, unit="a")}) != digest(ra.Sum("age"))


def test_no_class_name_is_in_a_digest():
    renamed = type("Renamed", (ra.Histogram,), {"theorem": "none"})
    assert digest(renamed("name")) == digest(ra.Histogram("name"))
    assert type("Other", (Schauder,), {})(7).spec() == Schauder(7).spec() == {"type": "schauder", "horizon": 7}


def test_what_is_left_to_its_default_and_what_is_said_are_one_digest():
    assert digest(ra.Count(every=1, weight=3)) == digest(ra.Count())
    assert digest(ra.Count(), late=True, records=10_000) == digest(ra.Count())
    assert digest(ra.Count(), late=False) != digest(ra.Count()) != digest(ra.Count(), records=10)


def test_only_a_class_itself_leaves_an_argument_out_of_its_digest():
    class Limited(ra.Sum):
        def __init__(self, field, *, limit=10, **options):
            super().__init__(field, **options)
            self.limit = limit

    assert digest(Limited("age", limit=3)) != digest(Limited("age"))
    assert digest(ra.Histogram("name", limit=3)) == digest(ra.Histogram("name"))


def test_what_is_chosen_is_in_the_digest_even_where_it_is_the_default():
    chosen = Specification(SCHEMA, {"s": ra.Count()}, epsilon=1.0, delta=1e-6, horizon=16).choice
    other = {"laplace": "gaussian", "gaussian": "laplace"}[chosen.law]
    assert digest(ra.Count(), law=chosen.law) == digest(ra.Count())
    assert digest(ra.Count(), law=other) != digest(ra.Count())
    assert digest(ra.Count(noise="tree"), law="laplace") != digest(ra.Count(noise="bridge"), law="laplace")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_class_is_made_of_its_arguments(family):
    """Each has a kind of its own, and an attribute, or a place that `argument` knows, for each argument."""
    assert family.kinds
    for kind, one in family.kinds.items():
        assert issubclass(one, family)
        assert one.kind == kind
        assert all(name in one.parameters() for name in one.unwritten), one
        assert "__repr__" not in vars(one), f"{one}: the signature says how it is shown"


def test_equal_arguments_are_equal_objects():
    assert ra.Sum("age") == ra.Sum("age", every=1) != ra.Sum("age", every=2)
    assert ra.Sum("age") != ra.Mean("age")
    assert len({ra.Sum("age"), ra.Sum("age")}) == 1
    assert ra.Count().map(len) != ra.Count().map(lambda value: 0, name="len")
    assert ra.GroupBy("name", ra.Count(window=3)) == ra.GroupBy("name", ra.Count(), window=3)
    grouped = ra.GroupBy("name", ra.Count(window=3))
    assert grouped.replace(window=None) == ra.GroupBy("name", ra.Count())
    assert Statistic.from_spec(grouped.spec(), "x") == grouped


def test_a_kind_belongs_to_one_class():
    with pytest.raises(TypeError, match="has the kind 'count' already"):
        type("Second", (Statistic,), {"kind": "count"})


def test_required_arguments_have_no_default():
    assert Parameters.parameters() == {}
    assert [n for n, one in ra.KMeans.parameters().items() if one.default is REQUIRED] == ["fields", "k"]
