"""Roles of columns and the cut of rounds: part of the specification, stored, enforced, and in no coin name."""

import pyarrow as pa
import pytest

import retroact as ra
from retroact.errors import InputError
from retroact.stream import Specification
from retroact.stream.columns import Columns, Role
from retroact.stream.grid import Grid
from retroact.stream.rounds import Rounds
from retroact.testing import in_memory

SCHEMA = {"country": ra.Category(["DE", "FR"]), "amount": ra.Number(0, 500)}
STATISTICS = {"orders": ra.Count(), "revenue": ra.Sum("amount")}
WEEK = {"start": "2026-01-01", "length": "1d", "end": "2026-01-08"}
TABLES = {
    "epsilon": 1.0,
    "schema": {
        "country": {"type": "category", "values": ["DE", "FR"]},
        "amount": {"type": "number", "lower": 0, "upper": 500},
    },
    "statistics": {"orders": {"type": "count"}},
}


def made(**more):
    return ra.Stream(SCHEMA, STATISTICS, **{"epsilon": 1.0, "key": ra.Key.for_testing(1), **more})


# The horizon ----------------------------------------------------------------------------------------------------------


def test_the_horizon_comes_from_the_end_of_the_grid():
    spec = Specification(SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK)
    assert spec.horizon == 7
    assert spec.processes == Specification(SCHEMA, STATISTICS, epsilon=1.0, horizon=7).processes
    assert Specification(SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK, horizon=30).horizon == 30
    assert Specification(SCHEMA, STATISTICS, epsilon=1.0, rounds={**WEEK, "end": None}).horizon is None
    assert Specification.from_dict({**TABLES, "rounds": WEEK}).horizon == 7


def test_the_horizon_comes_from_a_declared_number_of_rounds():
    assert made(rounds=12).specification.horizon == 12
    with pytest.raises(InputError, match="at most 5 rounds"):
        made(rounds=12, horizon=5)


def test_a_grid_longer_than_the_horizon_is_refused_when_the_stream_is_made(tmp_path):
    with pytest.raises(InputError, match="at most 5 rounds, the horizon, got 7"):
        made(rounds=WEEK, horizon=5)
    with pytest.raises(InputError, match="got 7"):
        ra.Stream.open(tmp_path / "orders", SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK, horizon=5)
    assert made(rounds=WEEK, horizon=7).specification.horizon == 7


def test_a_successor_has_what_is_left_of_the_grid(tmp_path):
    one = made(rounds=WEEK)
    one.close_round()
    one.close_round()
    with pytest.raises(InputError, match="at most 6 rounds"):
        one.successor(epsilon=1.0, horizon=4)
    assert one.successor(epsilon=1.0).specification.horizon == 5
    with ra.Stream.open(tmp_path / "one", SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK) as kept:
        kept.close_round()
        with kept.successor(epsilon=1.0, where=tmp_path / "two") as after:
            assert after.specification.horizon == 6
    with ra.Stream.open(tmp_path / "two") as after:
        assert (after.specification.horizon, after.round, after.specification.rounds.count) == (6, 2, 7)


# Tables ---------------------------------------------------------------------------------------------------------------


def test_neither_roles_nor_rounds_are_part_of_a_coin_name():
    plain = Specification(SCHEMA, STATISTICS, epsilon=1.0, horizon=7)
    other = Specification(
        SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK, columns={"subject": "customer", "time": "at", "ignore": True}
    )
    assert plain.whole_digest == other.whole_digest


def test_without_columns_a_stream_has_the_usual_names_and_subjects():
    columns = Specification.from_dict(TABLES).columns
    assert [role for role, _ in columns.items()] == ["id", "subject", "op", "stamp", "round"]
    assert all(own == Role(role, optional=True) for role, own in columns.items())
    assert made().specification.has_subjects
    assert not columns.ignores("note")


@pytest.mark.parametrize("columns", [{}, {"id": "order"}, {"ignore": True}, {"subject": ""}])
def test_with_columns_a_stream_has_subjects_only_if_they_are_named(columns):
    assert not made(columns=columns).specification.has_subjects
    assert made(columns={**columns, "subject": "customer"}).specification.has_subjects


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ({"subjects": "c"}, "did you mean 'subject'"),
        ({"subject": 3}, "expected the name of a column, got 3 - at columns.subject"),
        ({"subject": {"name": "c"}}, "expected only column, optional, got 'name' - at columns.subject.name"),
        ({"subject": {"optional": True}}, "the name of a column, got None - at columns.subject.column"),
        ({"subject": {"column": "c", "optional": 1}}, "true or false, got 1 - at columns.subject.optional"),
        ({"ignore": "note"}, "expected true, or a list of columns, got 'note' - at columns.ignore"),
        ([], "a table such as"),
    ],
)
def test_bad_columns_are_refused_with_their_place(table, wrong):
    with pytest.raises(InputError, match=wrong):
        Specification.from_dict({**TABLES, "columns": table})
    with pytest.raises(InputError) as error:
        Specification.from_dict({**TABLES, "columns": table}, "retroact.toml")
    assert error.value.source == "retroact.toml"
    assert error.value.path.startswith("columns")


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ({"start": "2026-01-01"}, "expected start and length for a grid of rounds - at rounds.length"),
        ({"end": "2026-01-01"}, "expected start and length for a grid of rounds - at rounds.start"),
        ({**WEEK, "end": "2026-01-07T12:00:00Z"}, "whole number of lengths"),
        ({**WEEK, "lenght": "1d"}, "did you mean 'length'"),
        ({**WEEK, "time_zone": "Europe/Berlyn"}, "did you mean 'Europe/Berlin'.* - at rounds.time_zone"),
        ({**WEEK, "time_zone": "+25:00"}, "expected UTC, an offset such as .* - at rounds.time_zone"),
        ({**WEEK, "late_events": "drop"}, "expected 'stamp' or 'refuse', got 'drop' - at rounds.late_events"),
        ({**WEEK, "close_by": "end"}, "expected rounds by the grid or by end, got both - at rounds.close_by"),
        ({"close_by": "rows:100"}, "rounds never close by a count"),
        ({"contribution": 0}, "expected a whole number from 1 to 10,000, got 0 - at rounds.contribution"),
        ({"grace": "5m"}, "expected a grid"),
        ({**WEEK, "grace": "soon"}, "a length such as 30s.* - at rounds.grace"),
        ({**WEEK, "grace": "1mo"}, "a length such as 30s, 15m, 1h or 1d, got '1mo' - at rounds.grace"),
        ({"start": "2026-01-31", "length": "1mo"}, "a start on day 1 to 28 .* - at rounds.start"),
        ({**WEEK, "grace": "5m", "publish_after": "1m"}, "no less than the grace of 5m - at rounds.publish_after"),
    ],
)
def test_bad_rounds_are_refused_with_their_place(table, wrong):
    with pytest.raises(InputError, match=wrong):
        Specification.from_dict({**TABLES, "rounds": table})


def test_tables_survive_a_journey_through_a_file():
    table = {
        **WEEK,
        "time_zone": "+01:00",
        "late_events": "refuse",
        "contribution": 3,
        "grace": "5m",
        "publish_after": "1h",
    }
    rounds = Rounds.from_spec(table)
    assert Rounds.from_spec(rounds.spec()) == rounds
    assert {*rounds.spec()} == {*table}
    columns = Columns.from_spec({"subject": "c", "id": {"column": "o", "optional": True}, "ignore": ["note"]})
    assert Columns.from_spec(columns.spec()) == columns


def test_days_are_those_of_the_time_zone():
    there = Grid("2026-01-01", "1d", "2026-01-08", time_zone="+09:00")
    assert there.rounds == 7
    times = ["2025-12-31T15:00:00Z", "2025-12-31T14:59:59Z", "2026-01-01", "2026-01-02"]
    assert there.cells(times).tolist() == [1, 0, 1, 2]
    assert there != Grid("2025-12-31T15:00:00Z", "1d", "2026-01-07T15:00:00Z")
    assert Grid("2026-01-01", "1d", time_zone="+00:00") == Grid("2026-01-01", "1d")


# Sources --------------------------------------------------------------------------------------------------------------


def test_a_source_may_have_columns_of_its_own():
    tables = {
        **TABLES,
        "columns": {"id": "order", "subject": "customer"},
        "sources": {"shop.csv": {"columns": {"subject": "kunde", "id": "", "ignore": ["note"]}}},
    }
    spec = Specification.from_dict(tables)
    own = spec.columns_of("shop.csv")
    assert (own.column("id"), own.subject, own.ignores("note"), own.ignores("x")) == (None, Role("kunde"), True, False)
    assert spec.columns_of("other.csv") == spec.columns_of(None) == spec.columns
    assert Specification.from_dict({**tables, "sources": spec.sources}).sources == spec.sources


def test_no_source_decides_whether_there_are_subjects():
    for columns, own in (({"id": "o"}, {"subject": "c"}), ({"subject": "c"}, {"subject": ""})):
        with pytest.raises(InputError, match="have subjects, or none"):
            Specification.from_dict({**TABLES, "columns": columns, "sources": {"a": {"columns": own}}})


# Streams that last ----------------------------------------------------------------------------------------------------


def test_the_rounds_of_a_stream_that_lasts_cannot_change(tmp_path):
    def opened(**more):
        return ra.Stream.open(tmp_path / "orders", SCHEMA, STATISTICS, epsilon=1.0, **more)

    with opened(rounds=WEEK) as stream:
        stream.close_round()
    with opened(rounds={**WEEK, "length": "24h"}) as stream:
        assert stream.specification.rounds == Rounds.from_spec(WEEK)
    for other in ({**WEEK, "start": "2025-12-31", "end": "2026-01-07"}, {**WEEK, "grace": "1s"}):
        with pytest.raises(InputError, match=r"rounds\.\w+: .* in the store, .* given"):
            opened(rounds=other)
    with ra.Stream.open(tmp_path / "orders") as stream:
        assert (stream.specification.horizon, stream.specification.rounds.count, stream.round) == (7, 7, 2)


def test_the_columns_of_a_stream_that_lasts_are_kept(tmp_path):
    def opened(**more):
        return ra.Stream.open(tmp_path / "orders", SCHEMA, STATISTICS, epsilon=1.0, horizon=9, **more)

    with opened(columns={"subject": "customer"}) as stream:
        stream.close_round()
    for more in ({}, {"columns": {"subject": "customer"}}):
        with opened(**more) as stream:
            assert stream.specification.columns.spec() == {"subject": "customer"}
    with ra.Stream.open(tmp_path / "orders") as stream:
        assert stream.specification.columns.spec() == {"subject": "customer"}
    with pytest.raises(InputError, match=r"columns.subject: customer in the store, buyer given.*retroact columns"):
        opened(columns={"subject": "buyer"})


# What is added --------------------------------------------------------------------------------------------------------

FRAME = {"country": ["DE", "FR"], "amount": [1, 2], "customer": ["u1", "u2"]}
ONE = {"country": "DE", "amount": 1}


def test_a_frame_is_added_by_its_roles():
    by_role = made(horizon=5, columns={"subject": "customer", "id": {"column": "order", "optional": True}})
    by_role.add(pa.table({**FRAME, "order": ["a", "b"]}))
    by_role.add({**FRAME, "order": ["c", "d"]})
    by_role.add([{**ONE, "customer": "u3"}, {**ONE, "customer": "u1"}])
    by_role.add({**ONE, "customer": "u1"})
    by_hand = made(horizon=5)
    by_hand.add({"country": ["DE", "FR"] * 2, "amount": [1, 2] * 2}, id=list("abcd"), subject=["u1", "u2"] * 2)
    by_hand.add([ONE] * 3, subject=["u3", "u1", "u1"])
    for stream in (by_role, by_hand):
        stream.close_round()
    assert by_role.state() == by_hand.state()
    by_role.erase(subject="u1")
    assert by_role.close_round().applied.removed == 4


def test_the_same_role_is_not_given_twice():
    stream = made(horizon=5, columns={"subject": "customer"})
    with pytest.raises(InputError, match="expected subject= or the column 'customer', got both"):
        stream.add(FRAME, subject=["x", "y"])


def test_a_column_that_is_a_field_may_also_have_a_role():
    stream = made(horizon=5, columns={"subject": "country"})
    stream.add([ONE, {**ONE, "country": "FR"}])
    stream.close_round()
    stream.erase(subject="FR")
    assert stream.close_round().applied.removed == 1


def test_add_leaves_events_to_play():
    stream = made(horizon=5)
    for column in ("op", "round"):
        with pytest.raises(InputError, match=r"play\(stream, data\)"):
            stream.add({"country": ["DE"], "amount": [1], column: ["delete"]})


@pytest.mark.parametrize(("ignore", "taken"), [(False, False), (["note"], True), (["other"], False), (True, True)])
def test_other_columns_are_refused_unless_they_are_ignored(ignore, taken):
    stream = made(horizon=5, columns={"ignore": ignore})
    for data in (
        pa.table({"country": ["DE"], "amount": [1], "note": ["x"]}),
        [{**ONE, "note": "x"}],
        {**ONE, "note": "x"},
    ):
        if taken:
            stream.add(data)
        else:
            with pytest.raises(InputError, match="expected the fields country, amount, got an unknown field 'note'"):
                stream.add(data)
    with pytest.raises(InputError, match="no 'amount'"):
        stream.add([{"country": "DE", "amonut": 1}])


def test_an_unknown_field_is_told_with_what_may_be_meant():
    with pytest.raises(InputError, match=r"got no 'amount' and an unknown field 'amonut' \(did you mean 'amount'\?\)"):
        made(horizon=5).add({"country": "DE", "amonut": 1})


def test_a_record_without_a_subject_is_refused_unless_the_role_is_optional():
    stream = made(horizon=5, columns={"subject": "customer"})
    for data, given in (
        (ONE, None),
        ([ONE], None),
        ([ONE, ONE], ["u1", None]),
        ({**FRAME, "customer": ["u1", None]}, None),
    ):
        with pytest.raises(InputError, match="expected whom the record belongs to, got none"):
            stream.add(data, subject=given)
    with pytest.raises(InputError, match="got none"):
        stream.upsert([ONE], id=["a"], deleted=[False])
    stream.upsert(None, id=["a"], deleted=[True])
    stream.delete(id="a")
    assert stream.close_round().applied.added == 0
    optional = made(horizon=5, columns={"subject": {"column": "customer", "optional": True}})
    optional.add({**FRAME, "customer": ["u1", None]})
    optional.add(ONE)
    assert optional.close_round().applied.added == 3


def test_a_stream_without_subjects_takes_none():
    stream = made(horizon=5, columns={"id": "order"})
    for call in (lambda: stream.add(ONE, subject="u1"), lambda: stream.add([ONE, ONE], subject=[None, "u1"])):
        with pytest.raises(InputError, match="this stream has no subjects"):
            call()
    stream.add([ONE, ONE], subject=[None, None])


def test_audits_leave_out_what_sources_look_like():
    spec = Specification(SCHEMA, STATISTICS, epsilon=1.0, rounds=WEEK, columns={"subject": "customer"})
    bare = in_memory(spec)
    assert (bare.horizon, bare.rounds, bare.columns.given) == (7, Rounds(), False)
    assert bare.whole_digest == spec.whole_digest
    stream = ra.Stream.from_specification(bare.replace(horizon=3), key=ra.Key.for_testing(1))
    stream.add(ONE)
