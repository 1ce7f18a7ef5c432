"""Every decided semantics of a stream, each with a test."""

import math
import pickle
import threading

import numpy as np
import pyarrow as pa
import pytest

import retroact as ra
from retroact.ledger.definition import Add, Delete, Erase, unite_at
from retroact.testing import StreamAlgorithm

SCHEMA = {"country": ra.Text(), "amount": ra.Number(0, 500, step=0.01), "age": ra.Integer(0, 120)}
ORDER = {"country": "DE", "amount": 12.5, "age": 31}


def stream(seed=1, *, horizon=20, epsilon=1.0, delta=1e-6, schema=SCHEMA, window=None, law=None, **statistics):
    return ra.Stream(
        schema,
        statistics or {"orders": ra.Count(), "revenue": ra.Sum("amount")},
        epsilon=epsilon,
        delta=delta,
        horizon=horizon,
        window=window,
        law=law,
        key=ra.Key.for_testing(seed),
    )


def totals(one, name="orders"):
    """The true totals behind the last release."""
    return [int(t) for t in one._core.engine.running[name].totals[0]]


# The paper's running example, horizon 6 ------------------------------------------------------------------------------

EXAMPLE = (
    (Add("a"),),
    (Add("b"), Add("b")),
    (Delete("b", 2),),
    (Delete("b", 1),),
    (Delete("b", 2),),
    (Delete("b", 2),),
)
TWIN = ((Add("a"),), (), (), (), (), ())


def as_records(sequence):
    return tuple(
        tuple(type(u)((u.value,), **({"stamp": u.stamp} if isinstance(u, Delete) else {})) for u in updates)
        for updates in sequence
    )


def test_the_running_example_and_its_twin():
    spec = ra.Specification({"v": ra.Text()}, {"n": ra.Count()}, epsilon=1.0, horizon=6)
    answers, counts = {}, {}
    for name, sequence in (("S", EXAMPLE), ("twin", TWIN)):
        algorithm = StreamAlgorithm(spec, ra.Key.for_testing(1))
        answers[name], counts[name] = [], []
        for updates in as_records(sequence):
            answers[name].append(algorithm.close(updates))
            counts[name].append(int(algorithm.stream._core.engine.running["n"].totals[0][0]))
    assert counts["S"] == [1, 3, 2, 2, 1, 1]
    assert counts["twin"] == [1, 1, 1, 1, 1, 1]
    assert unite_at(EXAMPLE, TWIN) == 5
    assert answers["S"][4:] == answers["twin"][4:]
    assert all(a != b for a, b in zip(answers["S"][1:4], answers["twin"][1:4], strict=True))


# Clock --------------------------------------------------------------------------------------------------------------


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


# Ids ----------------------------------------------------------------------------------------------------------------


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


# Subjects -----------------------------------------------------------------------------------------------------------


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


# Ways in ------------------------------------------------------------------------------------------------------------


def test_one_many_columns_and_frames_are_the_same():
    records = [{"country": c, "amount": a, "age": g} for c, a, g in [("DE", 1.5, 20), ("é", 2, 30), ("DE", 0, 40)]]
    columns = {name: [r[name] for r in records] for name in SCHEMA}
    frame = pa.table(columns)
    ways = [
        lambda s: [s.add(r, subject=f"u{i}") for i, r in enumerate(records)],
        lambda s: s.add(records, subject=["u0", "u1", "u2"]),
        lambda s: s.add({k: np.array(v) for k, v in columns.items()}, subject=np.array(["u0", "u1", "u2"])),
        lambda s: s.add(frame, subject=pa.array(["u0", "u1", "u2"])),
        lambda s: s.add(frame.to_batches()[0], subject=("u0", "u1", "u2")),
    ]
    states = []
    for way in ways:
        s = stream()
        way(s)
        s.close_round()
        states.append(s.state())
    assert len(set(states)) == 1


def test_batches_delete_by_value_and_id():
    s = stream()
    s.add([ORDER, ORDER, {**ORDER, "age": 5}], id=["a", "b", "c"])
    s.add([ORDER] * 3)
    s.close_round()
    s.delete(id=["a", "c", "zz"])
    s.delete([ORDER, ORDER], stamp=[1, 1])
    applied = s.close_round().applied
    assert (applied.removed, applied.ignored_deletions) == (4, 1)


BAD_RECORDS = [
    ({"country": "DE", "amount": 12.5}, "no 'age'"),
    ({**ORDER, "extra": 1}, "unknown field 'extra'"),
    ({**ORDER, "amount": 501}, "amount"),
    ({**ORDER, "amount": -1}, "amount"),
    ({**ORDER, "amount": math.nan}, "amount"),
    ({**ORDER, "amount": math.inf}, "amount"),
    ({**ORDER, "amount": "many"}, "amount"),
    ({**ORDER, "amount": None}, "amount"),
    ({**ORDER, "age": 10**40}, "age"),
    ({**ORDER, "age": 2.5}, "age"),
    ({**ORDER, "age": True}, "age"),
    ({**ORDER, "country": 5}, "country"),
    ({**ORDER, "country": "\ud800"}, "country"),
    ({k: [v, v] if k != "age" else [v] for k, v in ORDER.items()}, "equal length"),
    ([ORDER, {**ORDER, "age": -1}], "age, row 2"),
    (42, "expected a record"),
    ("text", "expected a record"),
]


@pytest.mark.parametrize(("bad", "place"), BAD_RECORDS)
def test_bad_records_change_nothing(bad, place):
    s, untouched = stream(), stream()
    for one in (s, untouched):
        one.add(ORDER, id="o-1", subject="u1")
    with pytest.raises(ra.InputError, match=place):
        s.add(bad)
    with pytest.raises(ra.InputError, match=place):
        s.delete(bad, stamp=1)
    assert s.close_round().encode() == untouched.close_round().encode()
    assert s.state() == untouched.state()


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"id": 1.5}, "id"), ({"id": ""}, "id"), ({"id": True}, "id"), ({"id": ["a", "b", "c"]}, "id"),
        ({"subject": b"x"}, "subject"), ({"subject": "\udfff"}, "subject"), ({"stamp": 0}, "stamp"),
        ({"stamp": -3}, "stamp"), ({"stamp": 1.0}, "stamp"), ({"stamp": "1"}, "stamp"), ({"stamp": True}, "stamp"),
    ],
)  # fmt: skip
def test_bad_names_and_stamps_change_nothing(options, place):
    s, untouched = stream(), stream()
    with pytest.raises(ra.InputError, match=place):
        s.add(ORDER, **options)
    with pytest.raises(ra.InputError, match=place):
        s.add([ORDER, ORDER], **options)
    assert s.close_round().encode() == untouched.close_round().encode()


@pytest.mark.parametrize(
    "bad", [{}, {"id": "a", "data": ORDER}, {"id": None}, {"id": "a", "stamp": 1}, {"id": ["a", None]}]
)
def test_bad_deletions(bad):
    s = stream()
    with pytest.raises(ra.InputError):
        s.delete(**bad)


@pytest.mark.parametrize("bad", [None, "", 1.5, ["a", None], b"a", {"a": 1}])
def test_bad_erasures(bad):
    with pytest.raises(ra.InputError, match="subject"):
        stream().erase(subject=bad)


def test_huge_stamps_are_in_the_future():
    s = stream()
    assert s.add(ORDER, stamp=10**30) is None
    s.delete(ORDER, stamp=10**30)
    applied = s.close_round().applied
    assert (applied.ignored_additions, applied.ignored_deletions) == (1, 1)


# Making a stream ----------------------------------------------------------------------------------------------------

BAD_STREAMS = [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": -1}, "epsilon"), ({"epsilon": math.nan}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"), ({"delta": 1}, "delta"), ({"delta": -0.1}, "delta"), ({"delta": math.nan}, "delta"),
    ({"horizon": 0}, "horizon"), ({"horizon": -5}, "horizon"), ({"horizon": 2.5}, "horizon"), ({"window": 0}, "window"),
    ({"schema": {}}, "schema"), ({"schema": {"a": 5}}, "schema"), ({"statistics": {}}, "statistics"),
    ({"statistics": {"n": "count"}}, r"statistics\.n"), ({"statistics": {"": ra.Count()}}, "statistics"),
    ({"statistics": {"s": ra.Sum("nothing")}}, r"statistics\.s\.field"),
    ({"statistics": {"s": ra.Sum("country")}}, r"statistics\.s\.field"),
    ({"statistics": {"s": ra.GroupBy("country", ra.Count())}}, r"statistics\.s"),
    ({"statistics": {"s": ra.Count(where={"age": 500})}}, r"statistics\.s\.where\.age"),
    ({"statistics": {"s": ra.Count(where={"nothing": 5})}}, r"statistics\.s\.where"),
    ({"statistics": {"s": ra.Count(where={"country": {"min": "a"}})}}, r"statistics\.s\.where"),
    ({"weights": {"zz": 1}}, "weights"), ({"weights": {"orders": 0}}, r"weights\.orders"), ({"key": "secret"}, "key"),
    ({"statistics": {"n": ra.Count(noise="tree", window=3)}}, r"statistics\.n\.noise"),
    ({"horizon": None, "statistics": {"n": ra.Count(noise="tree")}}, r"statistics\.n\.noise"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "place"), BAD_STREAMS)
def test_bad_streams(options, place):
    given = {"schema": SCHEMA, "statistics": {"orders": ra.Count()}, "epsilon": 1.0, "horizon": 10} | options
    with pytest.raises(ra.InputError, match=place):
        ra.Stream(**given)


@pytest.mark.parametrize("options", [{"every": 0}, {"every": 1.5}, {"window": -1}, {"noise": "white"}, {"noise": 5}])
def test_bad_options_of_a_statistic(options):
    with pytest.raises(ra.InputError, match=next(iter(options))):
        ra.Count(**options)


def test_headroom_is_proved_when_the_stream_is_made():
    schema = {"big": ra.Number(0, 10**12, step=0.001)}
    with pytest.raises(ra.InputError, match=r"64-bit integers after 4,611 records.*statistics\.sum"):
        stream(schema=schema, sum=ra.Sum("big"))
    coarse = stream(schema={"big": ra.Number(0, 10**12, step=10)}, sum=ra.Sum("big"))
    assert coarse.specification.capacity > 40_000_000


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_too_wide_for_64_bits_is_refused_when_the_stream_is_made(delta):
    with pytest.raises(ra.InputError, match=r"2\^55"):
        stream(schema={"big": ra.Number(0, 10**12, step=10)}, sum=ra.Sum("big"), epsilon=1e-9, delta=delta * 1e-6)


def test_a_key_drives_one_stream():
    key = ra.Key.generate()
    make = lambda: ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=5, key=key)  # noqa: E731
    make()
    with pytest.raises(ra.KeyReusedError, match="already drives a stream"):
        make()


def test_everything_in_the_specification_changes_the_noise():
    base = {"schema": SCHEMA, "statistics": {"n": ra.Count()}, "epsilon": 1.0, "delta": 1e-6, "horizon": 10}
    others = [
        {}, {"epsilon": 1.0000001}, {"delta": 2e-6}, {"horizon": 11}, {"statistics": {"m": ra.Count()}},
        {"statistics": {"n": ra.Count(where={"age": 3})}}, {"schema": {**SCHEMA, "age": ra.Integer(0, 121)}},
        {"statistics": {"n": ra.Count(), "s": ra.Sum("amount")}}, {"statistics": {"n": ra.Count(noise="bridge")}},
    ]  # fmt: skip
    noise = set()
    for change in others:
        s = ra.Stream(**(base | change), key=ra.Key.for_testing(1))
        releases = [next(iter(s.close_round().values())) for _ in range(2)]
        noise.add(tuple(release.numerators[0] / release.denominator for release in releases))
    assert len(noise) == len(others)


def test_nothing_secret_or_exact_in_texts():
    s = ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=5)
    s.add(ORDER, subject="u17")
    texts = [repr(s), repr(s.close_round()), repr(s.specification), str(s.plan())]
    assert not any("u17" in text or "secret" in text for text in texts)
    with pytest.raises(TypeError):
        pickle.dumps(s)


# Horizon ------------------------------------------------------------------------------------------------------------


def test_a_warning_at_four_fifths_and_an_error_at_the_end():
    s = stream(horizon=10)
    for _ in range(7):
        s.close_round()
    with pytest.warns(ra.HorizonWarning, match="round 8 of 10"):
        s.close_round()
    s.close_round()
    s.close_round()
    s.add(ORDER, id="late")
    before = s.round
    with pytest.raises(ra.ExhaustedError, match="all 10 promised rounds") as caught:
        s.close_round()
    assert caught.value.exit_code == 3
    assert "successor" in str(caught.value)
    assert s.round == before


def test_a_successor_goes_on_from_what_survives():
    s = stream(horizon=3, law="gaussian", orders=ra.Count(), recent=ra.Count(window=2))
    for _ in range(3):
        s.add(ORDER, subject="u1")
        s.close_round()
    after = s.successor(epsilon=0.5, delta=1e-6, horizon=5, key=ra.Key.for_testing(2))
    assert after.round == 4
    assert totals(after) == [3]
    after.erase(subject="u1")
    after.add(ORDER)
    released = after.close_round()
    assert released["orders"].round == 4
    assert totals(after) == [1]
    assert totals(after, "recent") == [1]
    assert after.guarantee.epsilon <= 1.5
    assert after.guarantee.delta == 2e-6
    assert "together with the streams before it" in after.guarantee.text
    spec, state, key = after.specification, after.state(), ra.Key.for_testing(2)
    with pytest.raises(ra.InputError, match="before"):
        ra.Stream.from_state(spec, state, key=key)
    again = ra.Stream.from_state(spec, state, key=key, before=after.before)
    assert again.guarantee == after.guarantee
    assert again.close_round().encode() == after.close_round().encode()
    again.add(ORDER)
    with pytest.raises(ra.InputError, match="open round"):
        again.state()


def test_what_the_open_round_holds_goes_with_the_successor():
    s = stream(horizon=1)
    s.close_round()
    s.add(ORDER, id="a")
    with pytest.raises(ra.ExhaustedError):
        s.close_round()
    after = s.successor(epsilon=1.0, delta=1e-6, horizon=5, key=ra.Key.for_testing(2))
    assert after.close_round().applied.added == 1
    assert totals(after) == [1]


def test_an_unknown_horizon_goes_on():
    s = ra.Stream({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, key=ra.Key.for_testing(1))
    for _ in range(30):
        s.close_round()
    assert s.plan()["n"].simultaneous is None


# Windows ------------------------------------------------------------------------------------------------------------


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


# Failure in the middle ----------------------------------------------------------------------------------------------


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


# Releases -----------------------------------------------------------------------------------------------------------


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
