"""Every decided semantics of a stream, each with a test."""

import math
import threading

import pytest

import retroact as ra
from retroact.ledger.definition import Add, Delete, Erase, unite_at
from retroact.testing import StreamAlgorithm
from support.ledger_histories import RUNNING, TWIN
from support.order_streams import ORDER, SCHEMA, stream, totals


def as_records(sequence):
    return tuple(
        tuple(type(u)((u.value,), **({"stamp": u.stamp} if isinstance(u, Delete) else {})) for u in updates)
        for updates in sequence
    )


# The paper's running example, horizon 6 -------------------------------------------------------------------------------


def test_the_running_example_and_its_twin():
    spec = ra.Specification({"v": ra.Text()}, {"n": ra.Count()}, epsilon=1.0, horizon=6)
    answers, counts = {}, {}
    for name, sequence in (("S", RUNNING), ("twin", TWIN)):
        algorithm = StreamAlgorithm(spec, ra.Key.for_testing(1))
        answers[name], counts[name] = [], []
        for updates in as_records(sequence):
            answers[name].append(algorithm.close(updates))
            counts[name].append(int(algorithm.stream._core.engine.running["n"].totals[0][0]))
    assert counts["S"] == [1, 3, 2, 2, 1, 1]
    assert counts["twin"] == [1, 1, 1, 1, 1, 1]
    assert unite_at(RUNNING, TWIN) == 5
    assert answers["S"][4:] == answers["twin"][4:]
    assert all(a != b for a, b in zip(answers["S"][1:4], answers["twin"][1:4], strict=True))


# Clock ----------------------------------------------------------------------------------------------------------------


def test_rounds_count_from_one_and_empty_rounds_close():
    s = stream()
    assert s.round == 1
    assert s.close_round().number == 1
    assert s.round == 2
    assert s.add(ORDER) == 2
    assert s.close_round()["orders"].round == 2


def test_additions_come_before_deletions_whatever_the_order_of_calls():
    s = stream()
    s.delete(ORDER, stamp=1)
    s.add(ORDER)
    assert s.close_round().applied.added == 0
    assert totals(s) == [0]


def test_a_deletion_of_a_future_addition_is_a_permanent_no_op():
    s = stream()
    s.delete(ORDER, stamp=2)
    assert s.close_round().applied.ignored_deletions == 1
    s.add(ORDER)
    s.close_round()
    assert totals(s) == [1]


def test_late_additions_count_from_their_stamp_and_future_ones_never():
    s = stream()
    s.close_round()
    s.close_round()
    assert s.add(ORDER, stamp=1) == 1
    assert s.add(ORDER, stamp=4) is None
    applied = s.close_round().applied
    assert (applied.added, applied.ignored_additions) == (1, 1)
    s.delete(ORDER, stamp=1)
    s.close_round()
    assert totals(s) == [0]
    s.close_round()
    assert totals(s) == [0]


def test_a_schedule_releases_in_multiples_and_never_repeats():
    s = stream(orders=ra.Count(), weekly=ra.Count(every=3))
    seen = [sorted(s.close_round()) for _ in range(7)]
    assert seen == [["orders"], ["orders"], ["orders", "weekly"]] * 2 + [["orders"]]


def test_a_schedule_pays_for_its_releases_only():
    spec = ra.Specification(
        SCHEMA, {"daily": ra.Count(), "weekly": ra.Count(every=7)}, epsilon=1.0, delta=1e-6, horizon=700
    )
    plan = ra.plan(spec)
    assert spec.processes["weekly"].horizon == 100
    assert plan["weekly"].standard_deviation < plan["daily"].standard_deviation
    windowed = ra.Specification(SCHEMA, {"w": ra.Count(window=30, every=7)}, epsilon=1.0, horizon=700)
    assert windowed.processes["w"].window == 5


# Ids ------------------------------------------------------------------------------------------------------------------


def test_an_id_is_a_register():
    s = stream()
    s.add(ORDER, id="o-1")
    s.add({**ORDER, "amount": 100}, id="o-1")
    s.close_round()
    assert totals(s, "revenue") == [10_000]
    s.add({**ORDER, "amount": 1}, id="o-1")
    applied = s.close_round().applied
    assert (applied.added, applied.removed) == (1, 1)
    assert totals(s, "revenue") == [100]
    s.delete(id="o-1")
    s.add({**ORDER, "amount": 2}, id="o-1")
    s.close_round()
    assert totals(s, "revenue") == [200]
    s.add({**ORDER, "amount": 3}, id="o-1")
    s.delete(id="o-1")
    s.close_round()
    assert totals(s, "revenue") == [0]


def test_numbers_are_ids_too():
    s = stream()
    s.add(ORDER, id=7)
    s.close_round()
    s.delete(id="7")
    s.close_round()
    assert totals(s) == [0]


def test_records_with_ids_are_not_deleted_by_value():
    s = stream()
    s.add(ORDER, id="o-1")
    s.close_round()
    s.delete(ORDER, stamp=1)
    assert s.close_round().applied.ignored_deletions == 1
    assert totals(s) == [1]


def test_a_deletion_by_value_names_its_stamp():
    s = stream()
    with pytest.raises(ra.InputError, match="names its stamp"):
        s.delete(ORDER)


def test_a_deletion_by_value_names_the_subject_too():
    s = stream()
    s.add(ORDER, subject="u1")
    s.close_round()
    s.delete(ORDER, stamp=1)
    assert s.close_round().applied.ignored_deletions == 1
    s.delete(ORDER, stamp=1, subject="u1")
    assert s.close_round().applied.removed == 1


# Subjects -------------------------------------------------------------------------------------------------------------


def test_erasing_a_subject_removes_all_records_of_that_round_too():
    s = stream()
    s.add(ORDER, subject="u17")
    s.add(ORDER, subject="u17", id="o-1")
    s.add(ORDER, subject="u18")
    s.close_round()
    s.erase(subject="u17")
    s.add(ORDER, subject="u17")
    s.add(ORDER, subject="u17", id="o-2")
    applied = s.close_round().applied
    assert applied.removed == 2
    assert totals(s) == [1]
    s.add(ORDER, subject="u17")
    s.close_round()
    assert totals(s) == [2], "a later record is a new one"


def test_erasing_nobody_changes_nothing():
    s, empty = stream(), stream()
    assert not s.erase(subject="nobody").found
    round = s.close_round()
    assert round.applied.ignored_deletions == 0
    assert round.encode() == empty.close_round().encode()


def test_the_state_is_the_surviving_data():
    secret = "u17-and-nobody-else"
    s, twin = stream(), stream()
    for one in (s, twin):
        one.add(ORDER, id="o-1", subject="u18")
    s.add({**ORDER, "country": "Atlantis"}, id="o-2", subject=secret)
    s.close_round()
    s.erase(subject=secret)
    twin.close_round()
    s.close_round()
    twin.close_round()
    assert s.state() == twin.state()
    for trace in (secret, "Atlantis", "o-2"):
        assert trace.encode() not in s.state()
    again = ra.Stream.from_state(s.specification, s.state(), key=ra.Key.for_testing(1))
    assert again.close_round().encode() == twin.close_round().encode()


def test_a_state_is_tied_to_its_specification():
    make = lambda values, epsilon=1.0: ra.Specification(  # noqa: E731
        {"c": ra.Category(values)}, {"n": ra.GroupBy("c", ra.Count())}, epsilon=epsilon, horizon=5
    )
    key = ra.Key.for_testing(1)
    s = ra.Stream.from_specification(make(["a", "b"]), key=key)
    s.add({"c": "a"})
    s.close_round()
    ra.Stream.from_state(make(["a", "b"]), s.state(), key=key)
    for other in (make(["b", "a"]), make(["a", "b"], 2.0)):
        with pytest.raises(ra.InputError, match="specification"):
            ra.Stream.from_state(other, s.state(), key=key)


def test_a_stream_that_could_not_be_made_leaves_its_key_free():
    key = ra.Key.generate()
    schema = {"big": ra.Number(0, 10**12, step=10)}
    with pytest.raises(ra.InputError):
        ra.Stream(schema, {"s": ra.Sum("big")}, epsilon=1e-9, horizon=5, key=key)
    ra.Stream(schema, {"s": ra.Sum("big")}, epsilon=1.0, horizon=5, key=key)


def test_a_successor_has_coins_of_its_own():
    s = ra.Stream({"v": ra.Boolean()}, {"n": ra.Count()}, epsilon=0.01, horizon=1, key=ra.Key.for_testing(1))
    first = s.close_round()["n"]
    after = s.successor(epsilon=0.01, horizon=1, key=ra.Key.for_testing(1)).close_round()["n"]
    assert first.numerators != after.numerators


# Windows --------------------------------------------------------------------------------------------------------------


def test_records_expire_exactly_after_the_window():
    s = stream(schema={"age": ra.Integer(0, 120)}, n=ra.Count(window=3), all=ra.Count())
    s.add({"age": 1})
    counts = []
    for _ in range(5):
        s.close_round()
        counts.append(totals(s, "n")[0])
    assert counts == [1, 1, 1, 0, 0]
    assert totals(s, "all") == [1]


def test_expiry_and_deletion_in_one_round_count_once():
    s = stream(schema={"age": ra.Integer(0, 120)}, n=ra.Count(window=2))
    s.add({"age": 1}, id="a")
    s.close_round()
    s.close_round()
    s.delete(id="a")
    s.close_round()
    assert totals(s, "n") == [0]
    s.add({"age": 1}, stamp=1)
    s.add({"age": 1}, stamp=3)
    s.close_round()
    assert totals(s, "n") == [1]
    s.close_round()
    assert totals(s, "n") == [0]


def test_the_streams_window_is_the_default():
    s = stream(window=2, n=ra.Count(), m=ra.Count(window=4))
    s.add(ORDER)
    for _ in range(3):
        s.close_round()
    assert (totals(s, "n"), totals(s, "m")) == ([0], [1])


# Failure in the middle ------------------------------------------------------------------------------------------------


def test_closing_is_all_or_nothing():
    fail = {"now": True}

    def sometimes(value):
        if fail["now"]:
            raise RuntimeError("broken")
        return value

    s = stream(orders=ra.Count(), odd=ra.Count().map(sometimes, name="sometimes"))
    twin = stream(orders=ra.Count(), odd=ra.Count().map(lambda v: v, name="sometimes"))
    for one in (s, twin):
        one.add(ORDER, id="a", subject="u1")
    with pytest.raises(RuntimeError):
        s.close_round()
    assert s.round == 1
    fail["now"] = False
    assert s.close_round().encode() == twin.close_round().encode()
    assert s.state() == twin.state()


def test_what_is_discarded_never_was_but_for_erasures():
    s, twin = stream(orders=ra.Count()), stream(orders=ra.Count())
    for one in (s, twin):
        one.add(ORDER, id="a", subject="u1")
        one.close_round()
    s.add([ORDER, ORDER])
    s.add(ORDER, id="a", subject="u2")
    for one in (s, twin):
        one.erase(subject="u1")
    assert s.discard() == 3
    assert s.discard() == 0
    assert s.round == 2
    last = s.close_round()
    assert last.applied.removed == 1
    assert last.encode() == twin.close_round().encode()
    assert s.state() == twin.state()


@pytest.mark.parametrize(("gone", "new"), [(150, 400), (200, 900), (199, 1), (10, 300)])
def test_many_ids_leave_and_more_come_in_one_round(gone, new):
    """The table of ids gives room back only when what came is in."""
    s = stream(orders=ra.Count())
    s.add([ORDER] * 200, id=[f"a{i}" for i in range(200)])
    s.close_round()
    s.delete(id=[f"a{i}" for i in range(gone)])
    s.add([ORDER] * new, id=[f"b{i}" for i in range(new)])
    s.close_round()
    assert s.records == 200 - gone + new
    s.delete(id=[f"b{i}" for i in range(new)])
    s.close_round()
    assert s.records == 200 - gone


def test_a_query_beyond_its_norm_is_refused_at_the_door():
    query = ra.LinearQuery(lambda c: c["age"][:, None], size=1, norm1=50, name="ages")
    s = stream(schema={"age": ra.Integer(0, 120)}, q=query)
    s.add({"age": 50})
    with pytest.raises(ra.InputError, match="ages, row 2"):
        s.add({"age": [50, 51]})
    floats = ra.LinearQuery(lambda c: c["age"][:, None] / 2, size=1, norm1=100, name="halves")
    with pytest.raises(ra.InputError, match="a sum of floats remembers"):
        stream(schema={"age": ra.Integer(0, 120)}, q=floats).add({"age": 5})
    s.close_round()
    assert totals(s, "q") == [50]


def test_threads():
    s = stream(horizon=400)
    done = []

    def work(k):
        for i in range(50):
            s.add(ORDER, id=f"{k}-{i}", subject=f"u{k}")
            if i % 10 == 0:
                s.close_round()
        done.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    s.close_round()
    assert len(done) == 4
    assert totals(s) == [200]
    assert s.round == 4 * 5 + 2


# Releases -------------------------------------------------------------------------------------------------------------


def test_a_release_carries_what_people_need():
    s = stream(law="gaussian")
    s.add(ORDER)
    release = s.close_round()["orders"]
    low, high = release.interval(0.95)
    assert low < release.value < high
    wider = release.interval(0.999)
    assert wider[0] < low
    assert release.standard_error > 0
    assert release.guarantee.epsilon == 1.0
    assert release.guarantee.delta == 1e-6
    assert release.to_dict().keys() == {"round", "statistic", "value", "standard_error", "interval95"}
    for bad in (0, 1, -1, 1.5, "0.95", math.nan, True):
        with pytest.raises(ra.InputError, match="level"):
            release.interval(bad)


def test_states_of_other_formats_are_refused():
    s = stream()
    for bad in (b"", b"x", s.state()[:-3], b"\x94\x02\x01\x00\xc4\x00"):
        with pytest.raises(ra.InputError, match="state"):
            ra.Stream.from_state(s.specification, bad, key=ra.Key.for_testing(1))


def test_erasure_is_a_deletion_of_every_record():
    assert unite_at(((Add(1, subject="s"), Add(2)), (Erase("s"),)), ((Add(2),), ())) == 2
