"""The paper's definitions: its running example, Appendix A, and what we decided about ids and subjects."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retroact.errors import InputError
from retroact.ledger.definition import (
    Add,
    Delete,
    DeleteId,
    Erase,
    Point,
    live,
    neighbouring,
    revised,
    surviving,
    trajectory,
    unite_at,
)
from support.ledger_histories import RUNNING, TWIN, WORLDS, histories


def data(*points: Point) -> Counter[Point]:
    return Counter(points)


def last(*rounds: tuple) -> Counter[Point]:
    return trajectory(rounds)[-1]


def test_the_running_example() -> None:
    a, b = Point(1, "a"), Point(2, "b")
    assert trajectory(RUNNING) == [data(a), data(a, b, b), data(a, b), data(a, b), data(a), data(a)]
    assert [surviving(RUNNING, round).total() for round in range(1, 7)] == [1, 3, 2, 2, 1, 1]
    assert surviving(RUNNING, 0) == data()


def test_the_running_example_and_its_twin_unite_at_5() -> None:
    assert [counts.total() for counts in trajectory(TWIN)] == [1] * 6
    assert unite_at(RUNNING, TWIN) == 5
    assert unite_at(RUNNING, RUNNING) == 1
    assert unite_at(RUNNING, ((),) * 6) is None
    with pytest.raises(InputError, match="one horizon"):
        unite_at(RUNNING, TWIN[:5])


def test_additions_come_before_deletions_and_no_update_is_revisited() -> None:
    assert last((Delete("x", 1), Add("x"))) == data()
    assert last((Delete("x", 2),), (Add("x"),)) == data(Point(2, "x"))
    assert last((Delete("x", 1),), (Add("x", 1),)) == data(Point(1, "x"))


def test_retroactive_additions_change_the_revised_past() -> None:
    sequence = ((), (), (Add("x", 1), Add("y", 3), Add("z", 4)), (Add("y", 2),))
    assert surviving(sequence, 3) == data(Point(1, "x"), Point(3, "y"))
    assert revised(sequence, 3, 2) == data(Point(1, "x"))
    assert revised(sequence, 4, 2) == data(Point(1, "x"), Point(2, "y"))
    with pytest.raises(InputError):
        revised(sequence, 3, 4)


def test_equal_points_with_different_stamps_do_not_unite() -> None:
    assert unite_at(((), (Add("x", 1),)), ((), (Add("x", 2),))) is None


def test_live_is_younger_than_the_window() -> None:
    sequence = ((Add("x"),), (Add("y"),), (Add("z"),))
    assert live(sequence, 3, 2) == data(Point(2, "y"), Point(3, "z"))
    assert live(sequence, 3, 3) == surviving(sequence, 3)


def test_the_last_event_on_an_id_counts() -> None:
    assert last((Add("x", id=1), Add("y", id=1))) == data(Point(1, "y", 1))
    assert last((Add("x", id=1), DeleteId(1))) == data()
    assert last((DeleteId(1), Add("x", id=1))) == data(Point(1, "x", 1))
    assert last((Add("x", id=1, subject="s"),), (Add("y", id=1, subject="t"),)) == data(Point(2, "y", 1, "t"))


def test_an_addition_from_the_future_leaves_its_id_as_it_was() -> None:
    assert last((Add("x", id=1),), (Add("y", 3, id=1),)) == data(Point(1, "x", 1))


def test_deletions_by_value_name_the_subject_and_never_touch_ids() -> None:
    assert last((Add("x", id=1), Add("x", subject="s"), Delete("x", 1))) == data(
        Point(1, "x", 1), Point(1, "x", None, "s")
    )
    assert last((Add("x", subject="s"), Delete("x", 1, subject="s"))) == data()


def test_erasures_come_last() -> None:
    erased = last((Erase("s"), Add("x", subject="s"), Add("y", id=1, subject="s"), Add("z", subject="t")))
    assert erased == data(Point(1, "z", None, "t"))
    kept = last((Add("y", id=1, subject="s"),), (Add("z", id=1, subject="t"), Erase("s")))
    assert kept == data(Point(2, "z", 1, "t"))


@pytest.mark.parametrize("make", [lambda: Add("x", 0), lambda: DeleteId(None), lambda: Erase(None)])
def test_updates_that_name_nothing_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize("round", [-1, 7])
def test_rounds_beyond_the_horizon_are_refused(round: int) -> None:
    with pytest.raises(InputError):
        surviving(RUNNING, round)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (((Add("x"),),), ((),), True),
        (((Add("x"), Add("x")),), ((Add("x"),),), True),
        (((Delete("x", 1),),), ((),), True),
        (((Erase("s"),),), ((),), True),
        (((Add("x"), Delete("y", 1)),), ((Delete("y", 1), Add("x")),), False),
        (((Add("x"),),), ((Add("x"),),), False),
        (((Add("x"),),), ((Add("y"),),), False),
        (((Add("x"),), (Add("y"),)), ((), ()), False),
        (((Add("x"), Add("y")),), ((),), False),
        (((Add("x"),),), ((Add("x", 1), Add("x", 1)),), True),
        (((Add("x"),), ()), ((), (Add("x", 1),)), False),
        (((Add("x"),),), ((Add("x"),), ()), False),
        (((Add("x", id=1), Add("y", id=1)),), ((Add("x", id=1), DeleteId(1), Add("y", id=1)),), True),
        (((Add("x", id=1), Add("y", id=1)),), ((Add("y", id=1), DeleteId(1), Add("x", id=1)),), False),
        (((Add("x", id=1), Add("y", id=2)),), ((Add("y", id=2), Add("x", id=1), DeleteId(3)),), True),
        (((Add("x", id=1),),), ((Add("x"),),), False),
    ],
)
def test_neighbouring(one: tuple, other: tuple, expected: bool) -> None:
    assert neighbouring(one, other) is expected
    assert neighbouring(other, one) is expected


VALUES = WORLDS["one word"][1]


@given(histories(VALUES), st.data())
def test_one_update_without_id_or_erasure_changes_one_copy_over_one_stretch_of_rounds(sequence, chance) -> None:
    """The claim behind every sensitivity: one operation is one interval."""
    operation = chance.draw(
        st.builds(Add, st.sampled_from(VALUES), st.none() | st.integers(1, 6))
        | st.builds(Delete, st.sampled_from(VALUES), st.integers(1, 6))
    )
    round = chance.draw(st.integers(0, len(sequence) - 1))
    larger = (*sequence[:round], (*sequence[round], operation), *sequence[round + 1 :])
    assert neighbouring(sequence, larger)
    one, other = trajectory(sequence), trajectory(larger)
    differences = [(a - b) + (b - a) for a, b in zip(one, other, strict=True)]
    assert all(difference.total() <= 1 for difference in differences)
    shape = "".join("x" if difference else "." for difference in differences).strip(".")
    assert "." not in shape
