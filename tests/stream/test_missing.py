"""A record counts wherever its fields are there; only statistics that read a missing one leave it out."""

import math

import numpy as np
import pyarrow as pa
import pytest

import retroact as ra
from retroact.coins import DiscreteLaplace
from retroact.ledger.definition import Add, Delete, trajectory
from retroact.oneshot import Median, Own
from retroact.testing import StreamAlgorithm

SCHEMA = {
    "carrier": ra.Text(missing="skip"),
    "kind": ra.Category(["jet", "prop"], missing="skip"),
    "delay": ra.Integer(-60, 600, missing="skip"),
    "distance": ra.Number(-10, 10, step=0.5, missing="skip"),
    "place": ra.Vector(2, radius=5, step=1, missing="skip"),
    "day": ra.Integer(1, 31),
}
FULL = {"carrier": "LH", "kind": "prop", "delay": 12, "distance": 3.5, "place": [3, 4], "day": 7}
# Values that lie under a missing one in the ledger: records with these are others than records without.
BLANK = {"carrier": "", "kind": "jet", "delay": -60, "distance": -10, "place": [0, 0], "day": 7}


def size(columns, coins):
    """How many records were looked at, and of which fields."""
    noise = int(DiscreteLaplace(2).sample(coins.words([0], [0]))[0, 0])
    return [sorted(columns), len(next(iter(columns.values()))) + noise]


def early(columns):
    return np.stack([columns["delay"] < 0], axis=1).astype(int)


def own(**options):
    return Own(size, epsilon=0.5, **options)


STATISTICS = {
    "flights": (ra.Count(), ()),
    "late": (ra.Count(where={"delay": {"min": 0}}), ("delay",)),
    "of one carrier": (ra.Count(where={"carrier": ["LH", ""]}), ("carrier",)),
    "total": (ra.Sum("delay"), ("delay",)),
    "way": (ra.Sum("place"), ("place",)),
    "mean": (ra.Mean("delay"), ("delay",)),
    "mean of jets": (ra.Mean("delay", where={"kind": "jet"}), ("delay", "kind")),
    "variance": (ra.Variance("distance"), ("distance",)),
    "by kind": (ra.GroupBy("kind", ra.Sum("distance")), ("kind", "distance")),
    "carriers": (ra.Histogram("carrier"), ("carrier",)),
    "two fields": (ra.Histogram(["carrier", "kind"]), ("carrier", "kind")),
    "by carrier": (ra.Histogram("carrier", sum="distance"), ("carrier", "distance")),
    "kinds": (ra.Histogram("kind"), ("kind",)),
    "quantiles": (ra.Quantiles("delay", [0.5]), ("delay",)),
    "distances": (ra.Distances(["delay", "distance"], [0.5]), ("delay", "distance")),
    "distinct": (ra.Distinct("carrier"), ("carrier",)),
    "clusters": (ra.KMeans(["delay", "distance"], 2), ("delay", "distance")),
    "clusters of vectors": (ra.KMedian("place", 2), ("place",)),
    "past": (ra.Restated(ra.Mean("delay"), [0, 1]), ("delay",)),
    "mapped": (ra.Sum("delay").map(round), ("delay",)),
    "query": (ra.LinearQuery(early, size=1, norm1=1, name="early", fields=["delay"]), ("delay",)),
    "query of all": (ra.LinearQuery(early, size=1, norm1=1, name="early"), tuple(SCHEMA)),
    "whole window": (ra.WindowSample(Median("delay"), window=3), ("delay",)),
    "fresh": (ra.WindowSample(own(fields=["delay", "kind"]), window=3, size=2), ("delay", "kind")),
    "poisson": (ra.WindowSample(own(fields=["delay"]), window=3, rate=0.5), ("delay",)),
    "ranks": (ra.WindowSample(own(fields=["delay"]), window=3, size=2, persistent=True), ("delay",)),
    "coins": (ra.WindowSample(own(fields=["delay"]), window=3, rate=0.5, persistent=True), ("delay",)),
    "gated": (ra.WindowSample(own(fields=["delay"]), window=3, gate=4), ("delay",)),
    "own of all": (ra.WindowSample(own(), window=3), tuple(SCHEMA)),
    "where of a sample": (ra.WindowSample(own(fields=["delay"]), window=3, where={"kind": "prop"}), ("delay", "kind")),
}


def lacking(*fields, **values):
    return {**FULL, **values, **dict.fromkeys(fields)}


def stream(statistics, *, key=3, **options):
    given = {"epsilon": 40.0, "delta": 1e-3, "horizon": 8, "late": False, **options}
    return ra.Stream(SCHEMA, statistics, key=ra.Key.for_testing(key), **given)


def rounds():
    """Three rounds of records, each of which lacks some fields."""
    names = [name for name in SCHEMA if name != "day"]
    out = []
    for day in (1, 2, 3):
        records = [lacking(day=day, delay=10 * n, distance=n % 7, carrier=f"c{n % 3}") for n in range(6)]
        records += [{**BLANK, "day": day}, {**BLANK, "day": day}]
        records += [lacking(name, day=day) for name in names]
        records += [lacking(one, other, day=day) for one in names for other in names if one < other]
        out.append([*records, lacking(*names, day=day)])
    return out


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_is_that_of_the_records_it_can_read(name):
    """Byte for byte: samples, ranks and gates too, which leave records out before anything is drawn or counted."""
    statistic, reads = STATISTICS[name]
    everything, readable = stream({"s": statistic}), stream({"s": statistic})
    left = 0
    for number, records in enumerate(rounds()):
        kept = [record for record in records if all(record[field] is not None for field in reads)]
        left += len(records) - len(kept)
        everything.add(records, id=[f"{number} {k}" for k in range(len(records))] if number else None)
        readable.add(kept, id=[f"{number} {k}" for k in range(len(kept))] if number else None)
        assert everything.close_round().encode() == readable.close_round().encode()
    assert readable.records == everything.records - left
    assert (left > 0) == bool(reads)


def test_a_count_counts_all_and_a_mean_leaves_out():
    flights = stream({"flights": ra.Count(), "delay": ra.Mean("delay")}, epsilon=500.0)
    flights.add([lacking("delay")] * 30 + [lacking(delay=20)] * 70)
    published = flights.close_round()
    assert published["flights"].value == pytest.approx(100, abs=2)
    assert published["delay"].value == pytest.approx(20, abs=2)
    assert flights.left_out() == {"flights": 0, "delay": 30}


def test_a_record_with_the_value_underneath_is_another_one():
    """Deletions by value find a record by what it lacks, and no other."""
    s = stream({"flights": ra.Count(), "sum": ra.Sum("delay")})
    s.add([BLANK, lacking("carrier", "kind", "delay", "distance", "place"), {"day": 7}])
    s.close_round()
    for record, removed in (
        ({**BLANK, "delay": None}, 0),
        ({"day": 7, "delay": -60}, 0),
        ({**BLANK, "carrier": None}, 0),
        ({"day": 7}, 1),
        (dict.fromkeys(FULL) | {"day": 7}, 1),
        ({"day": 7}, 0),
        (BLANK, 1),
    ):
        s.delete(record, stamp=s.round and 1)
        applied = s.close_round().applied if s.round < 8 else None
        if applied is not None:
            assert (applied.removed, applied.ignored_deletions) == (removed, 1 - removed), record


def test_an_id_holds_a_record_that_lacks_a_value():
    s = stream({"flights": ra.Count(), "sum": ra.Sum("delay")}, epsilon=500.0)
    s.add([FULL, FULL, FULL], id=["a", "b", "c"])
    s.close_round()
    s.add(lacking("delay"), id="a")
    s.add([lacking("delay"), lacking(delay=16), lacking("delay")], id=["b", "c", "c"])
    assert s.close_round().applied.removed == 3
    assert (s.records, s.left_out()) == (3, {"flights": 0, "sum": 3})
    s.delete(id=["a", "b", "zz"])
    applied = s.close_round().applied
    assert (applied.removed, applied.ignored_deletions, s.records) == (2, 1, 1)


def garbage(values, kind, under):
    """An Arrow array with these bytes where it is null."""
    array = pa.array(values, kind)
    mask = np.array([value is None for value in values])
    filled = pa.array([under if value is None else value for value in values], kind)
    return pa.Array.from_buffers(kind, len(values), [array.buffers()[0], *filled.buffers()[1:]], int(mask.sum()))


def test_what_lies_under_a_null_never_gets_in():
    """Slots of Arrow columns and of masked arrays, filled with values that are legal, wrong, or no value at all."""
    delays, distances, carriers = [5, None, 7, None], [1.5, None, None, 2.0], ["LH", None, "LH", None]
    kinds, days = ["jet", "jet", "prop", None], [1, 2, 3, 4]
    places = [[1.0, 2.0]] * 3 + [None]
    inputs = [
        {"kind": kinds, "place": places, "day": days, "delay": delays, "distance": distances, "carrier": carriers}
    ]
    for delay, distance, carrier, code in ((5, 1.5, "LH", 0), (2**62, math.inf, "x" * 50, 99), (-60, math.nan, "", -7)):
        codes = garbage([0, 0, 1, None], pa.int8(), code)
        pairs = pa.array([1.0, 2.0] * 3 + [distance, math.nan])
        there = pa.array([1, 1, 1, None]).buffers()[0]
        frame = {
            "delay": garbage(delays, pa.int64(), delay),
            "distance": garbage(distances, pa.float64(), distance),
            "carrier": garbage(carriers, pa.string(), carrier),
            "kind": pa.DictionaryArray.from_arrays(codes, pa.array(["jet", "prop"]), safe=False),
            "place": pa.Array.from_buffers(pa.list_(pa.float64(), 2), 4, [there], 1, children=[pairs]),
            "day": pa.array(days),
        }
        inputs.append(pa.table(frame))
        masked = np.ma.masked_array([5, delay, 7, delay], [False, True, False, True])
        inputs.append(inputs[0] | {"delay": masked, "distance": np.array([1.5, math.nan, -math.nan, 2.0])})
    written = set()
    for data in inputs:
        s = stream({name: statistic for name, (statistic, _) in STATISTICS.items() if "window" not in repr(statistic)})
        s.add(data)
        published = s.close_round().encode()
        written.add((published, s.state()))
    assert len(written) == 1


LASTING = ("flights", "mean", "carriers", "query", "fresh", "past")


def lasting(where, folder, key=3):
    chosen = {name: STATISTICS[name][0] for name in LASTING}
    return ra.Stream.open(
        where, SCHEMA, chosen, epsilon=40.0, delta=1e-3, horizon=8, late=False, key=ra.Key.for_testing(key),
        fence=folder / f"{where.name}.fence",
    )  # fmt: skip


def test_missing_values_last_in_a_store_and_leave_nothing(tmp_path):
    """Closed and opened in the middle of rounds; a subject whose records lack values is erased; and the twin, in which
    she never was, has the same blocks and from then on the same releases. So has a stream in memory."""
    first, second, third = rounds()
    owners = [f"s{n % 5}" for n in range(len(first))]
    gone, found = lacking("delay", day=1), []
    for history in ("erased", "never"):
        where = tmp_path / history
        with lasting(where, tmp_path) as s:
            s.add(first, subject=owners)
            if history == "erased":
                s.add([lacking("delay", carrier="gone"), lacking("place", "carrier")], subject=["gone", "gone"])
                s.add(lacking("delay", day=9), id="x", subject="gone")
        with lasting(where, tmp_path) as s:
            s.close_round()
            s.add(second[:5])
        with lasting(where, tmp_path) as s:
            s.add(second[5:])
            s.delete(gone, stamp=1, subject=owners[first.index(gone)])
            if history == "erased":
                s.erase(subject="gone")
            s.close_round()
            s.add(third)
        with lasting(where, tmp_path) as s:
            s.close_round()
            assert not s.verify().problems
            assert s.records == len(first + second + third) - 1
            found.append((s.left_out(), s.store.blocks(), [r for r in s.releases() if r["round"] > 1]))
    assert found[0] == found[1]
    inside = stream({name: STATISTICS[name][0] for name in LASTING})
    inside.add(first, subject=owners)
    inside.close_round()
    inside.add(second)
    inside.delete(gone, stamp=1, subject=owners[first.index(gone)])
    inside.close_round()
    inside.add(third)
    published = inside.close_round()
    assert inside.left_out() == found[0][0]
    assert {r["statistic"]: r["value"] for r in found[0][2] if r["round"] == 3}["mean"] == published["mean"].value


def test_a_state_keeps_what_is_missing():
    s = stream({"flights": ra.Count(), "mean": ra.Mean("delay")})
    for records in rounds():
        s.add(records)
        s.close_round()
    again = ra.Stream.from_state(s.specification, s.state(), key=ra.Key.for_testing(3))
    assert (again.state(), again.left_out()) == (s.state(), s.left_out())
    assert again.close_round().encode() == s.close_round().encode()
    successor = s.successor(epsilon=1.0, horizon=8, key=ra.Key.for_testing(4))
    assert successor.left_out() == s.left_out()


def test_what_is_left_out_is_counted_from_what_survives():
    """Asking changes nothing, and nothing of it is kept or published."""
    jets = ra.Mean("delay", where={"kind": "jet"})
    s = stream({"flights": ra.Count(), "mean": jets, "recent": ra.Sum("delay", window=1)})
    assert set(s.left_out().values()) == {0}
    records = [lacking("delay", kind="jet"), lacking("delay", kind="prop"), lacking("delay", "kind"), lacking("kind")]
    s.add([*records, FULL])
    s.add(lacking("delay", kind="jet"), subject="gone")
    s.close_round()
    # one of another kind would not have counted with a delay either; of one whose kind is missing, who knows
    assert s.left_out() == {"flights": 0, "mean": 4, "recent": 4}
    state = s.state()
    assert s.left_out() == {"flights": 0, "mean": 4, "recent": 4}
    assert s.state() == state
    s.erase(subject="gone")
    published = s.close_round()
    assert s.left_out() == {"flights": 0, "mean": 3, "recent": 3}
    twin = stream(s.specification.statistics)
    twin.add([*records, FULL])
    twin.close_round()
    assert published.encode() == twin.close_round().encode()
    assert s.state() == twin.state()


def test_an_algorithm_sees_the_fields_it_declares():
    seen = []

    def look(columns):
        seen.append(sorted(columns))
        return np.ones((len(columns["day"]), 1), dtype=int)

    s = stream({"q": ra.LinearQuery(look, size=1, norm1=1, name="look", fields=["day", "kind"])})
    s.add(FULL)
    s.close_round()
    assert {tuple(names) for names in seen} == {("day", "kind")}
    answer = stream({"w": ra.WindowSample(own(fields="day"), window=2)})
    answer.add([lacking(*[name for name in SCHEMA if name != "day"])] * 3)
    assert answer.close_round()["w"].value[0] == ["day"]
    for make in (
        lambda: ra.LinearQuery(look, size=1, norm1=1, name="look", fields=["dya"]),
        lambda: ra.WindowSample(own(fields=["dya"]), window=2),
    ):
        with pytest.raises(ra.InputError, match=r"expected .*carrier, kind, delay, distance, place, day, got 'dya'"):
            stream({"s": make()})
    for wrong in ([], ["day", "day"], 7, [7]):
        with pytest.raises(ra.InputError, match="one or more different fields"):
            ra.LinearQuery(look, size=1, norm1=1, name="look", fields=wrong)
        with pytest.raises(ra.InputError, match="one or more different fields"):
            own(fields=wrong)


def test_a_promise_of_many_records_is_about_those_that_have_the_value():
    sample = ra.WindowSample(Median("delay"), window=3, size=20, occupancy=2000)
    made = ra.Specification(SCHEMA, {"s": sample}, epsilon=1.0, delta=1e-6, horizon=8)
    assert any("at least 2,000 records that have delay are live" in text for text in made.guarantee.promises)


def test_a_function_is_not_shown_what_lies_under_a_missing_value():
    """Also at the door, where its norms are checked: the point under a missing one may be none that it allows."""

    def strict(columns):
        assert (columns["delay"] > 0).all()
        return columns["delay"][:, None] // 100

    s = stream({"q": ra.LinearQuery(strict, size=1, norm1=6, name="strict", fields=["delay"])})
    s.add([lacking("delay"), FULL])
    s.add(lacking("delay"))
    s.close_round()
    far = stream({"c": ra.KMeans(["delay"], 1, 100, centre=[500])})
    far.add([lacking("delay"), lacking(delay=450)])
    far.close_round()
    with pytest.raises(ra.InputError, match=r"beyond it.* - at delay, row 2"):
        far.add([lacking("delay"), lacking(delay=-60)])


def test_a_field_that_may_be_missing_costs_others_nothing():
    """A schema without such a field has the layout it always had, one with it a bit for each in the key of a record."""
    from retroact.ledger.key_layout import KeyLayout, Widths

    def words(schema):
        return KeyLayout(ra.Schema(schema), Widths(8, {}, 0)).words

    assert words({"a": ra.Integer(0, 2**56 - 1)}) == 1
    assert words({"a": ra.Integer(0, 2**56 - 1, missing="skip")}) == 2
    plain = ra.Stream({"a": ra.Integer(0, 3)}, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    plain.add([{"a": 1}])
    plain.close_round()
    assert b"missing" not in plain.state()


def test_states_that_nobody_wrote_are_refused():
    from retroact.ledger.codec import from_bytes, to_bytes

    schema = ra.Schema({"t": ra.Text(missing="skip"), "n": ra.Integer(0, 3)})
    s = ra.Stream(schema, {"n": ra.Count()}, epsilon=1.0, horizon=4)
    s.add([{"t": None, "n": 1}, {"t": "a", "n": 1}])
    s.close_round()
    surviving = s._core.ledger.data()
    assert from_bytes(schema, to_bytes(schema, surviving)).rows().missing["t"].tolist() == [True, False]
    surviving.rows.columns["t"][0] = "hidden"
    with pytest.raises(ra.InputError, match="expected nothing where a value is missing - at t"):
        from_bytes(schema, to_bytes(schema, surviving))
    other = ra.Schema({"t": ra.Text(), "n": ra.Integer(0, 3)})
    with pytest.raises(ra.InputError, match="each field that may be missing"):
        from_bytes(schema, to_bytes(other, surviving))


def test_the_model_agrees():
    """Points with None in them are the records: what the ledger holds is what the definitions say."""
    schema = {"a": ra.Integer(0, 1, missing="skip"), "t": ra.Text(missing="skip")}
    spec = ra.Specification(schema, {"n": ra.Count(), "s": ra.Sum("a")}, epsilon=1.0, horizon=4)
    sequence = (
        (Add((None, "x")), Add((0, "x")), Add((0, None)), Add((None, None)), Add((0, ""))),
        (Delete((0, ""), 1), Delete((None, "x"), 1), Delete((None, "y"), 1)),
    )
    algorithm = StreamAlgorithm(spec, ra.Key.for_testing(1))
    for updates, expected in zip(sequence, trajectory(sequence), strict=True):
        algorithm.close(updates)
        assert algorithm.stream.records == expected.total()
        lacking = sum(n for point, n in expected.items() if point.value[0] is None)
        assert algorithm.stream.left_out() == {"n": 0, "s": lacking}
