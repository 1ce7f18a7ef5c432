"""Whatever leaves the program is made of releases and public choices: outputs of twins are equal, byte for byte, and no
output has the exact number of records."""

import json
import tomllib
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import retroact as ra
from retroact.cli.output import OutputOptions

mpl.use("Agg")
FILES = ("out.jsonl", "out.csv", "out.parquet", "out.arrow")
UNITE, ROUNDS = 4, 6
SCHEMA = {
    "country": ra.Text(), "sort": ra.Category(["a", "b", "c"]), "amount": ra.Number(0, 500, step=0.01),
    "age": ra.Integer(0, 120), "day": ra.Date("2026-01-01", "2026-12-31"), "x": ra.Number(0, 1), "y": ra.Number(0, 1),
}  # fmt: skip
STATISTICS = {
    "orders": ra.Count(), "revenue": ra.Sum("amount"), "basket": ra.Mean("amount"),
    "countries": ra.Histogram("country"), "sums": ra.Histogram("sort", sum="amount"),
    "pairs": ra.GroupBy("sort", ra.Mean("age")), "age": ra.Quantiles("age", [0.25, 0.5], cdf=[30], counts=[(20, 40)]),
    "days": ra.Quantiles("day"), "different": ra.Distinct("age"), "places": ra.KMeans(["x", "y"], 2),
    "past": ra.Restated(ra.Count(), [0, 1]), "words": ra.Count().map(lambda value: f"about {value:.0f}", name="words"),
}  # fmt: skip
GRID = {"start": "2026-01-01", "length": "1d", "end": "2026-01-11"}


def columns(size, seed):
    rng = np.random.default_rng(seed)
    return {
        "country": rng.choice(["DE", "FR", "<b>IT</b>"], size).tolist(), "sort": rng.choice(["a", "b"], size).tolist(),
        "amount": rng.integers(0, 500, size).astype(float), "age": rng.integers(15, 80, size),
        "day": [f"2026-03-{day:02d}" for day in rng.integers(1, 28, size)], "x": rng.random(size),
        "y": rng.random(size),
    }  # fmt: skip


def history(stream, *, with_subject):
    """A subject comes in round 2, if at all, and is erased in the round on which both histories unite."""
    rounds = []
    for number in range(1, ROUNDS + 1):
        stream.add(columns(700, number), subject=[f"u{i}" for i in range(700)])
        if number == 2 and with_subject:
            stream.add(columns(300, 99), subject=["gone"] * 300)
        if number == UNITE:
            stream.erase(subject="gone")
        rounds.append(stream.close_round())
    return rounds


def drawn(plots):
    """Everything that was drawn, as numbers and texts."""
    for ax in plots if isinstance(plots, tuple) else (plots,):
        yield ax.get_title(), ax.get_xlabel(), ax.get_ylabel()
        yield from ((line.get_label(), line.get_xydata().tolist()) for line in ax.get_lines())
        yield from ([*patch.get_path().vertices.tolist(), *patch.get_extents().extents] for patch in ax.patches)
        for collection in ax.collections:
            yield from (path.vertices.tolist() for path in collection.get_paths())
            yield np.ma.getdata(collection.get_offsets()).tolist()
        yield from (label.get_text() for label in ax.get_yticklabels())
        yield from (note.get_text() for note in ax.texts)
    mpl.pyplot.close("all")


def outputs(stream, rounds, first, folder):
    """By name, the bytes of everything that can be made of the rounds from ``first`` on."""
    folder.mkdir()
    releases = stream.releases(first)
    found = {}
    for name in FILES:
        with OutputOptions(out=folder / name).opened(releases.form) as writer:
            for line in releases:
                writer.write_line(line)
        found[name] = (folder / name).read_bytes()
    found["page"] = releases.page().encode()
    things = {"releases": releases, "plan": stream.plan()}
    for round in rounds[first - 1 :]:
        things[f"round {round.number}"] = round
        things |= {f"{name} {round.number}": release for name, release in round.items()}
    for name, thing in things.items():
        found[f"html of {name}"] = thing._repr_html_().encode()
        found[f"frame of {name}"] = thing.to_pandas().to_csv().encode()
        found[f"polars of {name}"] = thing.to_polars().write_csv().encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.table(thing._table()).schema) as out:
            out.write_table(pa.table(thing))
        found[f"arrow of {name}"] = sink.getvalue().to_pybytes()
    for name in ("releases", "plan", f"round {ROUNDS}", f"age {ROUNDS}"):
        found[f"plot of {name}"] = repr(list(drawn(things[name].plot()))).encode()
    return found


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "in a store"])
def test_outputs_of_twins_are_equal_from_the_round_on_which_they_unite(tmp_path, durable):
    limits = {"epsilon": 40.0, "delta": 1e-4, "rounds": GRID, "key": ra.Key.for_testing(3), "records": 4000}
    found = []
    for with_subject in (True, False):
        place = tmp_path / str(with_subject)
        if durable:
            subjects = {"columns": {"subject": "subject"}}
            stream = ra.Stream.open(place, SCHEMA, STATISTICS, **limits, **subjects)
        else:
            place.mkdir()
            stream = ra.Stream(SCHEMA, STATISTICS, **limits)
        rounds = history(stream, with_subject=with_subject)
        whole = outputs(stream, rounds, 1, place / "all") if not durable else {}
        found.append((outputs(stream, rounds, UNITE, place / "later"), whole))
        if durable:
            stream.close()
    (later, whole), (twin_later, twin_whole) = found
    assert later.keys() == twin_later.keys()
    for name, made in later.items():
        assert made == twin_later[name], f"{name} differs"
    # with the rounds before the erasure they differ
    for name, made in whole.items():
        if name in (*FILES, "page") or name.endswith((" releases", " round 2", " round 3")):
            assert made != twin_whole[name], f"{name} shows nothing"


SPEC = """
epsilon = 1.0
delta = 1e-6
horizon = 5
[schema]
country = { type = "text" }
amount = { type = "number", lower = 0, upper = 500, step = 0.01 }
day = { type = "date", lower = "2026-01-01", upper = "2026-12-31" }
[statistics]
orders = { type = "count" }
revenue = { type = "sum", field = "amount" }
basket = { type = "mean", field = "amount" }
countries = { type = "histogram", field = "country" }
days = { type = "quantiles", field = "day" }
users = { type = "distinct", field = "amount" }
"""
RECORDS = 31_337


def has_the_number(made):
    text = made if isinstance(made, str) else made.decode("latin-1")
    return str(RECORDS) in text or f"{RECORDS:,}" in text


def test_the_exact_number_of_records_is_in_no_output(tmp_path, monkeypatch, capfd):
    from retroact.cli import main

    def program(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, capfd.readouterr()

    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC)
    data = columns(RECORDS, 5)
    rows = zip(data["country"], data["amount"], data["day"], strict=True)
    Path("orders.csv").write_text("country,amount,day\n" + "".join(f"{c},{a},{d}\n" for c, a, d in rows))
    made = {}
    for place in ((), ("--store", "s")):
        for name in FILES:
            options = ("--spec", "spec.toml", "--testing-key", 2, *place, "--out", name, "--html", "page.html")
            code, shown = program("run", "orders.csv", *options)
            assert code == 0, shown.err
            if not place or name == FILES[0]:
                assert has_the_number(shown.err), "standard error is the operator's"
            assert not has_the_number(shown.out)
            made[f"{name} {place}"] = Path(name).read_bytes()
            made[f"page {place}"] = Path("page.html").read_bytes()
    for option in ((), ("--first", 1, "--last", 1), ("--first", 99)):
        code, shown = program("report", "s", "--testing-key", 2, "--html", "report.html", *option)
        assert code == 0, shown.err
        assert not has_the_number(shown.out)
        made[f"report {option}"] = Path("report.html").read_bytes()
    made["rows of Parquet"] = json.dumps(pyarrow.parquet.read_table("out.parquet").to_pylist(), default=str)
    spec = ra.Specification.from_dict(tomllib.loads(SPEC))
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(2))
    stream.add({name: data[name] for name in spec.schema.fields})
    round = stream.close_round()
    assert has_the_number(f"{round.applied.added}"), "exact, and in no output"
    for thing in (stream, stream.releases(), round, *round.values(), stream.plan()):
        made[f"html of {thing!r}"] = thing._repr_html_()
        made[f"frame of {thing!r}"] = thing.to_pandas().to_csv()
        made[f"repr of {thing!r}"] = repr(thing)
        made[f"plot of {thing!r}"] = repr(list(drawn(thing.plot())))
    for name, output in made.items():
        assert not has_the_number(output), name
    # an output that showed what a round did would be found
    monkeypatch.setattr(ra.Round, "_title", lambda self: f"Round of {self.applied.added:,} records")
    assert has_the_number(round._repr_html_())
