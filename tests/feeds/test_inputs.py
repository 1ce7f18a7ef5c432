"""CSV as people have it: compressed, with other delimiters, on standard input, with texts for missing values."""

import gzip
import io
import random
import sys

import pyarrow as pa
import pytest
import zstandard

import retroact as ra
from retroact.errors import InputError
from retroact.feeds import compressed, play
from retroact.feeds.readers.csv_text import delimiter_of
from support.memory import forget_the_peak, peak_memory

SCHEMA = {"amount": ra.Number(0, 500, missing="skip"), "country": ra.Text(missing="skip")}
STATISTICS = {"orders": ra.Count(), "amount": ra.Sum("amount"), "countries": ra.Histogram("country", bins=["DE", "NA"])}
TEXT = "order,amount,country,customer\na,12.5,DE,u1\nb,3,NA,u2\nc,7,DE,u1\n"
COMPRESS = {"gzip": gzip.compress, "Zstandard": zstandard.compress}


def shop(**more):
    given = {"columns": {"id": "order", "subject": "customer"}, **more}
    return ra.Stream(SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=10, key=ra.Key.for_testing(9), **given)


def released(path, **more):
    """What one round releases, as bytes."""
    stream, rounds = shop(), []
    play(stream, path, publish=rounds.append, **more)
    return [release.encode() for released in rounds for release in released.values()]


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text(TEXT)
    return released(path)


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("name", ["orders.csv.gz", "orders.csv.zst", "orders.csv", "orders", "orders.csv.GZ"])
def test_compressed_files_are_recognised_by_content(tmp_path, plain, kind, name):
    path = tmp_path / name
    path.write_bytes(COMPRESS[kind](TEXT.encode()))
    assert released(path) == plain


def test_a_plain_file_under_the_name_of_a_compressed_one(tmp_path, plain):
    (tmp_path / "orders.csv.gz").write_text(TEXT)
    assert released(tmp_path / "orders.csv.gz") == plain


@pytest.mark.parametrize("kind", COMPRESS)
def test_several_parts_are_one_file(tmp_path, plain, kind):
    half = TEXT.index("\nb") + 3
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(b"".join(COMPRESS[kind](part.encode()) for part in (TEXT[:half], "", TEXT[half:])))
    assert released(path) == plain


def test_zstandard_by_pyarrow(tmp_path, plain, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "orders.csv.zst"
    path.write_bytes(pa.compress(TEXT.encode(), "zstd", asbytes=True))
    assert released(path) == plain
    path.write_bytes(zstandard.compress(TEXT.encode() * 9)[:-9])
    with pytest.raises(InputError, match=r"orders.csv.zst: expected a file compressed with Zstandard, got one that"):
        released(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"need zstandard: pip install 'retroact\[zstd\]'"):
        released(path)


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("cut", [1, 4, 9, 20])
def test_half_of_one_is_refused(tmp_path, kind, cut):
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(COMPRESS[kind](TEXT.encode() + b"d,7,DE,u9\n" * 9)[:-cut])
    with pytest.raises(
        InputError, match=f"orders.csv.gz: expected a file compressed with {kind}, got one that ends too early"
    ):
        released(path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_ones_are_refused(tmp_path, kind):
    rows = "".join(f"{n},{n % 500},DE,u{n}\n" for n in range(5000))
    whole = bytearray(COMPRESS[kind]((TEXT + rows).encode()))
    choose = random.Random(3)
    refused = 0
    for _ in range(40):
        other = bytearray(whole)
        other[choose.randrange(12, len(whole))] ^= 1 << choose.randrange(8)
        (tmp_path / "orders.gz").write_bytes(other)
        try:
            released(tmp_path / "orders.gz")
        except InputError as error:
            refused += "orders.gz" in str(error)
    # Zstandard has no checksum unless it is asked for one; gzip always has
    assert refused == 40 if kind == "gzip" else refused > 20


def test_a_bomb_takes_little_memory(tmp_path):
    """A gigabyte of one line, and one of many: neither is ever whole in memory."""
    for kind, compress in (("gzip", gzip.compress), ("zstd", zstandard.compress)):
        bomb = compress(b"x" * (1 << 24)) * 64
        (tmp_path / "one.csv").write_bytes(bomb)
        forget_the_peak()
        before = peak_memory()
        with pytest.raises(InputError, match="expected a line of at most 16 MB, got a longer one"):
            released(tmp_path / "one.csv", format="csv")
        assert peak_memory() - before < 300 << 10, kind


def test_what_four_bytes_may_stand_for(tmp_path):
    """A frame of Zstandard in which every block repeats one byte, as often as it can."""
    block = (1 << 1 | (128 << 10) << 3).to_bytes(3, "little") + b"x"
    last = (1 | 1 << 1 | 1 << 3).to_bytes(3, "little") + b"x"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + block * 4000 + last
    (tmp_path / "bomb.zst").write_bytes(frame)
    with (tmp_path / "bomb.zst").open("rb") as file:
        content = compressed.decompressed(file, "Zstandard", "bomb")
        assert len(content.read1(1 << 19)) <= 1 << 19
        assert content.raw._read.__self__._out.__len__() <= 33 << 20


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"PK\x03\x04rest", "a ZIP file, as workbooks are"),
        (b"BZh91AY", "a file compressed with bzip2"),
        (b"\xfd7zXZ\0", "a file compressed with xz"),
        (b"PAR1rest", "Parquet"),
        (b"ARROW1rest", "Arrow"),
        (b"SQLite format 3\0", "a database of SQLite"),
    ],
)
def test_other_files_are_named(tmp_path, start, what):
    for content in (start, gzip.compress(start)):
        (tmp_path / "orders.csv").write_bytes(content)
        with pytest.raises(InputError, match=f"orders.csv: expected .*, got {what}") as refused:
            released(tmp_path / "orders.csv")
        assert refused.value.hint


def test_compressed_files_are_not_followed(tmp_path):
    (tmp_path / "orders.csv").write_bytes(gzip.compress(TEXT.encode()))
    with pytest.raises(InputError, match="expected a file that can grow, got one compressed with gzip - at follow"):
        play(shop(), tmp_path / "orders.csv", follow=True)


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_durable_stream_takes_up_a_compressed_file(tmp_path, kind):
    """Positions are lines of what was compressed: compressed or not, nothing is read twice. Its end ends a line."""
    path = tmp_path / "orders.csv"
    path.write_text(TEXT)
    given = {"columns": {"id": "order", "subject": "customer"}, "horizon": 10, "epsilon": 1.0, "delta": 1e-6}
    with ra.Stream.open(tmp_path / "shop", SCHEMA, STATISTICS, key=ra.Key.for_testing(4), **given) as stream:
        assert play(stream, path).added == 3
        path.write_bytes(COMPRESS[kind]((TEXT + "d,9,DE,u4").encode()))
        totals = play(stream, path)
        assert (stream.position(str(path)), stream.waiting, totals.waiting) == ((5,), 1, None)
        stream.close_round()
        assert stream.records == 4


def test_a_grid_reads_compressed_files_twice(tmp_path):
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(gzip.compress(b"amount,created\n5,2026-01-02\n7,2026-01-01\n"))
    rounds = {"start": "2026-01-01", "length": "1d", "end": "2026-01-04"}
    stream = ra.Stream({"amount": ra.Number(0, 500)}, {"n": ra.Count()}, epsilon=1.0, rounds=rounds)
    assert play(stream, path, time="created").rounds == 3


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.tsv"), ("\t", "a.csv"), ("|", "a.txt")])
def test_delimiters_are_found_in_the_header(tmp_path, plain, delimiter, name):
    path = tmp_path / name
    path.write_text(TEXT.replace(",", delimiter))
    assert released(path) == plain
    assert released(path, delimiter="tab" if delimiter == "\t" else delimiter) == plain
    path.write_text("\n\r\n" + TEXT.replace(",", delimiter).replace("\n", "\r\n"))
    assert released(path) == plain


def test_delimiters_in_quotes_and_names():
    assert delimiter_of('"a,b";amount', {"amount"}) == ";"
    assert delimiter_of("a|b,amount|x", {"a", "x"}) == "|"
    assert delimiter_of("x;y;z", ()) == ";"
    assert delimiter_of("x", ()) == ","


@pytest.mark.parametrize("wrong", [";;", "", '"', "\n", "é"])
def test_delimiters_that_are_none(tmp_path, wrong):
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(InputError, match=r"expected one character, such as ; or \| or tab, got .* - at delimiter"):
        released(tmp_path / "a.csv", delimiter=wrong)


def test_the_wrong_delimiter_is_seen_in_the_header(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT)
    with pytest.raises(InputError, match=r"a\.csv:1: "):
        released(tmp_path / "a.csv", delimiter="|")


@pytest.mark.parametrize("kind", [None, *COMPRESS])
@pytest.mark.parametrize("given", [None, "csv"])
def test_csv_on_standard_input(plain, monkeypatch, kind, given):
    content = TEXT.encode() if kind is None else COMPRESS[kind](TEXT.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert released("-", format=given) == plain


def test_formats_that_are_none(tmp_path, plain):
    (tmp_path / "a.json").write_text(TEXT)
    assert released(tmp_path / "a.json", format="csv") == plain
    with pytest.raises(InputError, match="'csv', 'tsv' or 'jsonl', got 'xml' - at format"):
        released(tmp_path / "a.json", format="xml")
    with pytest.raises(InputError, match="expected no delimiter with tsv"):
        released(tmp_path / "a.json", format="tsv", delimiter=";")


def test_texts_for_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("order,amount,country,customer\na,NA,DE,u1\nb,3,NA,u2\nc,-,na,u3\nd,,,u4\n")
    stream = shop()
    play(stream, tmp_path / "a.csv", na_values=["NA", "-"])
    assert stream.left_out() == {"orders": 0, "amount": 3, "countries": 2}
    (tmp_path / "b.csv").write_text("order,amount,country,customer\na,,DE,u1\nb,3,,u2\nc,,na,u3\nd,,,u4\n")
    blank = shop()
    play(blank, tmp_path / "b.csv")
    assert stream.state() == blank.state()
    with pytest.raises(InputError, match=r"a.csv:2: expected .* got 'NA' - at amount"):
        play(shop(), tmp_path / "a.csv")


def test_they_count_in_all_columns_and_exactly(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("order,amount,country,customer\nNA,5,DE,u1\n")
    columns = {"id": {"column": "order", "optional": True}, "subject": {"column": "customer", "optional": True}}
    stream = shop(columns={**columns, "na_values": ["NA"]})
    play(stream, path)
    assert stream.state() == added({"amount": 5, "country": "DE"}, columns, subject="u1")
    path.write_text("order,amount,country,customer\na,5,na,NA\n")
    stream = shop(columns={**columns, "na_values": ["NA"]})
    play(stream, path)
    assert stream.state() == added({"amount": 5, "country": "na"}, columns, id="a")


def added(record, columns, **more):
    stream = shop(columns=columns)
    stream.add(record, **more)
    stream.close_round()
    return stream.state()


def test_a_text_that_must_be_there_is_not_replaced_by_an_empty_one(tmp_path):
    (tmp_path / "a.csv").write_text("country\nDE\nNA\n")
    stream = ra.Stream({"country": ra.Text()}, {"n": ra.Count()}, epsilon=1.0, horizon=9)
    with pytest.raises(InputError, match=r"a.csv:3: .* - at country"):
        play(stream, tmp_path / "a.csv", na_values=["NA"])


def test_they_belong_to_the_columns_of_a_durable_stream(tmp_path):
    (tmp_path / "a.csv").write_text("order,amount,country,customer\na,NA,DE,u1\n")
    given = {"columns": {"id": "order", "subject": "customer", "na_values": ["NA"]}, "horizon": 10, "epsilon": 1.0}
    more = {"delta": 1e-6, "key": ra.Key.for_testing(4)}
    with ra.Stream.open(tmp_path / "shop", SCHEMA, STATISTICS, **given, **more) as stream:
        assert play(stream, tmp_path / "a.csv").added == 1
    with ra.Stream.open(tmp_path / "shop", key=ra.Key.for_testing(4)) as stream:
        assert stream.specification.columns.na_values == ("NA",)
        with pytest.raises(InputError, match=r"expected 'NA', as this stream has it, got '-'.*- at na_values"):
            play(stream, tmp_path / "a.csv", na_values=["-"])
        stream.change_columns({"na_values": ["-"]})
        assert stream.specification.columns.spec()["na_values"] == ["-"]
    with pytest.raises(InputError, match=r"a list of texts.* - at columns\.na_values"):
        shop(columns={"na_values": "NA"})


def test_one_source_may_have_its_own(tmp_path):
    (tmp_path / "a.csv").write_text("order,amount,country,customer\na,?,DE,u1\n")
    spec = ra.Specification(
        SCHEMA, STATISTICS, epsilon=1.0, delta=1e-6, horizon=9, columns={"id": "order", "subject": "customer"},
        sources={"old": {"columns": {"na_values": ["?"]}}},
    )  # fmt: skip
    stream = ra.Stream.from_specification(spec, key=ra.Key.for_testing(1))
    assert play(stream, tmp_path / "a.csv", source_name="old").added == 1
    assert stream.left_out()["amount"] == 1
