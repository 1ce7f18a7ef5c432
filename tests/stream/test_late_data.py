"""What a stream declares about its updates: late data or not."""

import pytest

import retroact as ra
from retroact.testing import check_statistic

SCHEMA = {"v": ra.Integer(0, 9)}


def stream(**options):
    return ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=12, key=ra.Key.for_testing(1), **options)


def test_late_data_is_taken_unless_the_stream_says_otherwise():
    one = stream()
    one.close_round()
    assert one.add({"v": 1}, stamp=1) == 1
    assert "added again with the same past stamp" in one.guarantee.text


def test_a_stream_without_late_data_refuses_past_stamps_and_changes_nothing():
    one = stream(late=False)
    one.close_round()
    before = one.state()
    for late in ({"v": 1}, {"v": [1, 2]}):
        with pytest.raises(ra.InputError, match=r"takes no late data .* expected round 2, got 1") as caught:
            one.add(late, stamp=1)
        assert caught.value.place == "stamp"
    with pytest.raises(ra.InputError, match="takes no late data"):
        one.add({"v": [1, 2]}, stamp=[2, 1])
    assert one.state() == before
    assert one.add({"v": 1}, stamp=2) == 2
    assert one.add({"v": 1}, stamp=3) is None  # the future is a no-op, as ever
    one.close_round()
    one.delete({"v": 1}, stamp=2)  # deletions name past stamps, of course
    assert one.close_round().applied.removed == 1


def test_the_guarantee_of_a_life_needs_no_promise_without_late_data():
    guarantee = stream(late=False).guarantee
    assert guarantee.promises == ()
    assert guarantee.for_subject(1).epsilon == pytest.approx(1.0)


def test_all_checks_without_late_data():
    ran = check_statistic(ra.Sum("v"), SCHEMA, pairs=8, draws=0, horizons=(8,), late=False)
    assert "bounded state" in ran


def test_they_are_part_of_the_specification():
    plain, other = stream().specification, stream(late=False).specification
    assert plain.whole_digest != other.whole_digest
    with pytest.raises(ra.InputError, match="expected the specification"):
        ra.Stream.from_state(other, stream().state(), key=ra.Key.for_testing(1))
    data = {
        "epsilon": 1.0, "horizon": 12, "late": False,
        "schema": {"v": {"type": "integer", "lower": 0, "upper": 9}}, "statistics": {"n": {"type": "count"}},
    }  # fmt: skip
    read = ra.Specification.from_dict(data)
    assert read.late is False
    for key, value in (("late", "no"), ("late", 1)):
        with pytest.raises(ra.InputError) as caught:
            ra.Specification.from_dict({**data, key: value})
        assert caught.value.place == key


def test_a_successor_keeps_the_promises_of_what_came_before():
    one = ra.Stream(SCHEMA, {"d": ra.Distinct("v", flips=4)}, epsilon=1.0, delta=1e-6, horizon=365)
    (promise,) = set(one.guarantee.promises) - set(stream().guarantee.promises)
    assert "more than 4 times" in promise
    following = one.successor(epsilon=1.0, delta=1e-6)
    assert promise in following.guarantee.promises


def test_a_successor_keeps_them():
    one = stream(late=False)
    one.close_round()
    following = one.successor(epsilon=1.0, horizon=4, key=ra.Key.for_testing(2)).specification
    assert following.late is False


def test_solving_for_wanted_errors_takes_thresholds_and_bias_into_account():
    schema = {"v": ra.Integer(0, 9), "t": ra.Text()}
    statistics = {"h": ra.Histogram("t"), "d": ra.Distinct("t", form="blocks", block=8, additions=4)}
    errors = {"h": 60, "d": 120}
    found = ra.solve(schema, statistics, errors=errors, delta=1e-6, horizon=256, late=False)
    assert all(0.97 * errors[name] <= found[name].half_width <= errors[name] for name in errors)
    again = ra.plan(
        ra.Specification(
            schema, statistics, epsilon=found.epsilon, delta=1e-6, horizon=256, late=False, weights=found.weights
        )
    )
    assert again["d"].half_width == pytest.approx(found["d"].half_width)
    with pytest.raises(ra.InputError, match="no budget makes smaller"):
        ra.solve(schema, statistics, errors={"h": 60, "d": 10}, delta=1e-6, horizon=256, late=False)
