"""Releases as one tidy table, in every form in which it leaves the program."""

import json
from datetime import UTC, date, datetime

import numpy as np
import pytest

import retroact as ra
from retroact.outputs.table import FIXED, NOT_PRIVATE
from retroact.statistics import KMeans, Ridge, Statistic
from retroact.statistics.statistic import EXAMPLE_SCHEMA
from retroact.stream import releases as kept

assert {KMeans.kind, Ridge.kind} <= {*Statistic.kinds}  # loaded by their names
EXAMPLES = [example for kind in Statistic.kinds.values() for example in kind.examples() if kind.kind]
# The parts of a model; the others say how to read it.
IN_THE_TABLE = {
    "ridge": ["intercept", "coefficients"], "classifier": ["intercepts", "coefficients"],
    "nearest_mean": ["counts", "means"], "categorical_nb": ["priors", "probabilities"], "covariance": ["matrix"],
    "correlation": ["matrix"], "pca": ["components", "variances"],
}  # fmt: skip
SCHEMA = {
    "day": ra.Date("2026-01-01", "2026-12-31"),
    "at": ra.Timestamp("2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z"),
    "level": ra.Category([1, 2]),
    "sort": ra.Category(["a", 1]),
    "raw": ra.Bytes(),
    "member": ra.Boolean(),
    "size": ra.Number(0, 10, step=0.5),
    "age": ra.Integer(0, 120),
    "x": ra.Number(0, 1),
}
RECORD = {
    "day": "2026-03-01", "at": "2026-03-01T12:00:00.5Z", "level": 2, "sort": "a", "raw": b"\x00\xff", "member": True,
    "size": 2.5, "age": 31, "x": 0.5,
}  # fmt: skip


def stream_of(statistics, *, schema=SCHEMA, records=400, epsilon=300.0, rounds=None, key=None, horizon=4):
    stream = ra.Stream(
        schema, statistics, epsilon=epsilon, delta=1e-4, horizon=None if rounds else horizon, rounds=rounds,
        key=key or ra.Key.for_testing(1),
    )  # fmt: skip
    stream.add({name: [RECORD[name]] * records for name in schema})
    return stream


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_every_statistic_gives_its_columns(example):
    """From a release and from its line in a journal alike; every number of the line is in the table."""
    limits = {"epsilon": 100.0, "delta": 1e-3, "horizon": 16, **example.stream}
    stream = ra.Stream(example.schema, {"it": example.statistic}, **limits, key=ra.Key.for_testing(1))
    rng = np.random.default_rng(1)
    size = 3000
    columns = {
        "amount": rng.integers(0, 100, size).astype(float), "country": rng.choice(["DE", "FR"], size),
        "city": rng.choice(["a", "b"], size), "age": rng.integers(0, 63, size), "member": rng.random(size) < 0.5,
        "place": rng.random((size, 2)) / 2,
    }  # fmt: skip
    if example.schema is not EXAMPLE_SCHEMA:
        pytest.skip("an example with a schema by itself")
    stream.add(columns)
    for _ in range(4):
        round = stream.close_round()
    for release in round.values():
        line = json.loads(json.dumps(release.to_dict()))
        table = release._table()
        assert table == stream._core.form.only("it").table([line])
        assert len(table) > 0
        assert table["round"] == [4] * len(table)
        assert set(table["testing_key"]) == {NOT_PRIVATE}
        numbers = {part for name in ("value", "standard_error", "low", "high") for part in table[name]}
        expected = {part for part in flat(line["value"]) if isinstance(part, float | int)}
        if isinstance(line["value"], dict) and "centres" in line["value"]:
            expected = set(line["value"]["weights"])
        if isinstance(line["value"], dict) and "model" in line["value"]:
            shown = [line["value"][part] for part in IN_THE_TABLE[line["value"]["model"]]]
            expected = {part for part in flat(shown) if isinstance(part, float | int)}
        assert expected <= numbers


def flat(value):
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from flat(part)
    else:
        yield value


def test_keys_have_their_own_types():
    names = ["day", "at", "level", "sort", "raw", "member", "size", "age"]
    stream = stream_of({name: ra.Histogram(name) for name in names} | {"pair": ra.Histogram(["day", "raw"])})
    table = stream.close_round()._table()
    found = {table["statistic"][i]: table[table["statistic"][i]][i] for i in range(len(table)) if table["value"][i] > 99
             if table["statistic"][i] != "pair"}  # fmt: skip
    assert found == {
        "day": date(2026, 3, 1), "at": datetime(2026, 3, 1, 12, tzinfo=UTC), "level": 2, "sort": "a",
        "raw": b"\x00\xff", "member": True, "size": 2.5, "age": 31,
    }  # fmt: skip
    (row,) = [i for i, name in enumerate(table["statistic"]) if name == "pair"]
    assert (table["day"][row], table["raw"][row], table["age"][row]) == (date(2026, 3, 1), b"\x00\xff", None)
    schema = {field.name: str(field.type) for field in stream.to_arrow().schema}
    assert schema["day"] == "date32[day]"
    assert schema["at"] == "timestamp[us, tz=UTC]"
    assert (schema["level"], schema["sort"], schema["raw"]) == ("int64", "string", "binary")
    assert (schema["member"], schema["size"]) == ("bool", "double")


def test_dates_and_times_have_columns_of_their_own():
    days = stream_of({"days": ra.Quantiles("day", [0.5])}).close_round()
    table = days._table()
    assert table["value"] == table["low"] == table["high"] == [None]
    assert table["value_time"] == [date(2026, 3, 1)]
    assert table["low_time"][0] <= date(2026, 3, 1) <= table["high_time"][0]
    assert str(days.to_arrow().schema.field("value_time").type) == "date32[day]"
    mixed = stream_of({"days": ra.Quantiles("day", [0.5]), "times": ra.Quantiles("at", [0.5])}).close_round()
    assert str(mixed.to_pandas()["value_time"][0]) == "2026-03-01 00:00:00+00:00"
    assert str(mixed.to_arrow().schema.field("value_time").type) == "timestamp[us, tz=UTC]"
    assert "value_time" not in stream_of({"n": ra.Count()}).close_round()._table().names


def test_quantiles_with_a_distribution_and_counts():
    stream = stream_of({"age": ra.Quantiles("age", [0.25, 0.5], cdf=[20, 40], counts=[(18, 50)])})
    table = stream.close_round()._table()
    assert table["probability"] == [0.25, 0.5, None, None, None]
    assert table["point"] == [None, None, 20, 40, None]
    assert (table["first"][4], table["last"][4]) == (18, 50)
    assert table["value"][:2] == [31, 31]
    assert table["standard_error"][0] < 31, "in years, not in ranks"


@pytest.mark.parametrize("name", FIXED)
def test_a_key_column_named_like_a_fixed_one_is_refused(name, tmp_path):
    schema = {name: ra.Category(["a", "b"]), "age": ra.Integer(0, 9)}
    for statistic in (ra.Histogram(name), ra.GroupBy(name, ra.Count())):
        with pytest.raises(ra.InputError, match=rf"got '{name}': rename the field .* - at statistics.it"):
            ra.Stream(schema, {"it": statistic}, epsilon=1.0, horizon=4)
        with pytest.raises(ra.InputError, match="rename the field"):
            ra.Stream.open(tmp_path / "store", schema, {"it": statistic}, epsilon=1.0, horizon=4)
    # a field may have that name where it is no key
    ra.Stream(schema, {"it": ra.Count(where={name: "a"})}, epsilon=1.0, horizon=4)


def test_a_key_column_of_several_statistics_has_one_type():
    schema = {"x": ra.Integer(0, 9), "y": ra.Integer(0, 9), "cluster": ra.Text()}
    both = {"places": ra.KMeans(["x", "y"], 2), "xs": ra.Histogram("x", bins=[1, 2])}
    columns = ra.Stream(schema, both, epsilon=1.0, horizon=4).close_round()._table().columns
    assert [column.kind for column in columns if column.name == "x"] == ["number"]
    more = {**both, "sorts": ra.Histogram("cluster", bins=["a"])}
    table = ra.Stream(schema, more, epsilon=1.0, horizon=4).close_round()._table()
    assert {*table["cluster"]} - {"0", "1"} == {None, "a"}


def test_an_older_stream_with_such_a_name_still_has_a_table(tmp_path, monkeypatch):
    from retroact.outputs.table import TableForm

    with monkeypatch.context() as older:
        older.setattr(TableForm, "check", lambda self: None)
        schema = {"value": ra.Category(["a", "b"])}
        with ra.Stream.open(tmp_path / "s", schema, {"it": ra.Histogram("value")}, epsilon=1.0, horizon=4) as stream:
            stream.close_round()
    with ra.Stream.open(tmp_path / "s") as stream:
        assert sorted(stream.to_pandas()["value_"]) == ["a", "b"]


GRID = {"start": "2026-01-01", "length": "1d", "end": "2026-01-05", "time_zone": "+01:00"}


def test_times_of_rounds_are_in_the_output_and_not_in_the_journal(tmp_path):
    with ra.Stream.open(tmp_path / "s", SCHEMA, {"n": ra.Count()}, epsilon=1.0, rounds=GRID) as stream:
        release = stream.close_round()["n"]
        (line,) = stream.releases()
        assert list(line) == ["round", "statistic", "value", "standard_error", "interval95"]
        assert line == release.to_dict()
        assert stream.store.releases()[0].line == json.dumps(line, separators=(",", ":")).encode()
        written = stream.releases().form.line(line)
        assert list(written)[:4] == ["round", "start", "end", "statistic"]
        assert (written["start"], written["end"]) == ("2026-01-01T00:00:00+01:00", "2026-01-02T00:00:00+01:00")
        row = stream.to_pandas().iloc[0]
        assert row["start"].isoformat() == written["start"]
        assert "testing_key" not in row.index


def test_duckdb_and_polars_read_streams_rounds_and_releases_as_they_are():
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    stream = stream_of({"n": ra.Count(), "sorts": ra.Histogram("sort")}, rounds=GRID)
    round = stream.close_round()
    assert round["n"].to_polars().equals(polars.DataFrame(round["n"]))
    found = duckdb.sql("select sort, value from round where statistic = 'sorts' order by value desc").fetchall()
    assert found == [(str(sort), count) for sort, count in round["sorts"].value.items()]
    stream.close_round()
    assert duckdb.sql("select count(distinct start) from stream").fetchall() == [(2,)]
    frame = stream.to_pandas()
    assert stream.to_arrow().num_rows == len(stream.to_polars()) == len(frame) == 6
    assert frame["value"].tolist() == stream.to_polars()["value"].to_list()


def test_a_stream_without_releases_has_a_table_without_rows():
    stream = stream_of({"n": ra.Count(every=2), "d": ra.Quantiles("day")}, rounds=GRID)
    for empty in (stream, stream.releases(5)):
        assert len(empty.to_pandas()) == len(empty.to_polars()) == empty.to_arrow().num_rows == 0
    assert stream.to_pandas().dtypes.to_dict() == stream.releases().to_pandas().dtypes.to_dict()


def test_a_stream_in_memory_keeps_its_latest_rounds(monkeypatch):
    monkeypatch.setattr(kept, "KEPT", 4 * (kept.EACH + 2) + 1)
    stream = stream_of({"sorts": ra.GroupBy("sort", ra.Count())}, horizon=8)
    for _ in range(8):
        stream.close_round()
    assert [line["round"] for line in stream.releases()] == [5, 6, 7, 8]
    assert [line["round"] for line in stream.releases(6, 7)] == [6, 7]
