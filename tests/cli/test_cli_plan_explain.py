"""`retroact plan` and `retroact explain`: numbers as the library has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import retroact as ra
from retroact.cli.specification import read_toml
from support.cli_program import Program

OPTIONS = ("--count", "--sum", "amount:0..500", "--horizon", 100, "--delta", 1e-6)


def specification(folder: Path) -> ra.Specification:
    return ra.Specification.from_dict(read_toml(folder / "shop.toml"))


def test_plan_of_a_file(program: Program, folder: Path) -> None:
    path = folder / "shop.toml"
    path.write_text(f"records = 500\n{path.read_text()}")
    ended = program("plan", "shop.toml", "--json")
    assert ended.code == 0, ended.err
    expected = ra.plan(specification(folder))
    assert expected.records == 500
    assert json.loads(ended.out) == json.loads(json.dumps(expected.to_dict()))
    table = program("plan", "shop.toml").out
    assert expected.guarantee.text in table
    for row in expected.rows:
        assert row.statistic in table
        assert row.budget in table


def test_records_are_an_option_where_options_make_a_stream(program: Program) -> None:
    mean = ("--mean", "age:0..120", "--horizon", 100, "--delta", 1e-6, "--epsilon", 1)
    widths = {}
    for records in (100, 10_000):
        found = json.loads(program("plan", *mean, "--records", records, "--json").out)
        assert found["records"] == records
        widths[records] = found["statistics"][0]["half_width"]
    assert widths[100] > 10 * widths[10_000]
    ended = program("plan", "shop.toml", "--records", 500)
    assert ended.code == 2
    assert "got shop.toml and --records" in ended.err


def test_a_plan_names_what_the_other_law_would_give(program: Program) -> None:
    found = program("plan", "--count", "--horizon", 12, "--delta", 1e-6, "--epsilon", 1).out
    assert "lapped laplace" in found
    assert "with gaussian noise instead, at 95 % in the worst round: count ±17" in found


def test_plan_by_options(program: Program) -> None:
    ended = program("plan", *OPTIONS, "--epsilon", 1)
    assert ended.code == 0, ended.err
    assert "sum_amount" in ended.out
    assert "100 rounds" in ended.out


def test_epsilon_from_errors(program: Program) -> None:
    wanted = ("--error", "count=40", "--error", "sum_amount=5000")
    found = json.loads(program("plan", *OPTIONS, *wanted, "--json").out)
    solved = ra.solve(
        {"amount": ra.Number(0, 500)},
        {"count": ra.Count(), "sum_amount": ra.Sum("amount")},
        errors={"count": 40, "sum_amount": 5000},
        delta=1e-6,
        horizon=100,
    )
    assert found["epsilon"] == pytest.approx(solved.epsilon)
    assert found["weights"] == pytest.approx(dict(solved.weights))
    text = program("plan", *OPTIONS, *wanted).out
    shown = next(float(line.split("=")[1]) for line in text.splitlines() if line.startswith("  epsilon ="))
    assert solved.epsilon <= shown <= solved.epsilon * 1.001
    assert "weight of count" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--error", "count"), "such as orders=50, got 'count' - at --error"),
        (("--error", "count=x"), "such as orders=50, got 'count=x' - at --error"),
        (("--error", "count=40"), "expected a wanted error for every statistic, got none - at --error sum_amount"),
        (("--error", "count=40", "--error", "sum_amount=0"), "expected a number above 0"),
        (("--error", "count=40", "--error", "sum_amount=1", "--error", "x=1"), "got 'x'"),
    ],
)
def test_bad_errors(options: tuple[str, ...], message: str, program: Program) -> None:
    ended = program("plan", *OPTIONS, *options)
    assert ended.code == 2
    assert message in ended.err


def test_errors_that_no_epsilon_reaches(program: Program) -> None:
    ended = program("plan", "--sum", "a:0..1:0.000001", "--error", "sum_a=0.02", "--horizon", 1000)
    wanted = "these would cost about epsilon = 2,000, and at most 1,000 is possible - at --error"
    assert (ended.code, ended.err) == (2, f"error: expected larger errors: {wanted}\n")


@pytest.mark.parametrize("error", [0.0001, 0.5, 1, 3, 30, 300, 3000])
def test_an_error_below_a_lattice_step_and_one_far_above_are_reached(error: float) -> None:
    """With an epsilon that is needed: half of it gives a larger error."""
    found = ra.solve({"a": ra.Integer(0, 9)}, {"n": ra.Count()}, errors={"n": error}, horizon=10)
    assert found["n"].half_width <= error
    half = ra.Specification({"a": ra.Integer(0, 9)}, {"n": ra.Count()}, epsilon=found.epsilon / 2, horizon=10)
    assert ra.plan(half)["n"].half_width > error


def test_epsilon_from_errors_chooses_regions_again(program: Program, folder: Path) -> None:
    """With the epsilon that was found, the stream has the error that was asked for."""
    file = folder / "clusters.toml"

    def text(epsilon: str) -> str:
        return (
            f"epsilon = {epsilon}\ndelta = 1e-6\nhorizon = 63\n[schema]\n"
            'p = { type = "vector", dimension = 10, radius = 1, step = 0.0001 }\n'
            '[statistics]\nc = { type = "kmeans", fields = "p", k = 5 }\n'
        )

    file.write_text(text("1.0"))
    found = program("plan", str(file), "--error", "c=0.02", "--json")
    epsilon = json.loads(found.out)["epsilon"]
    file.write_text(text(str(epsilon)))
    planned = json.loads(program("plan", str(file), "--json").out)
    assert planned["statistics"][0]["half_width"] <= 0.0201


def test_explain(program: Program, folder: Path) -> None:
    guarantee = specification(folder).guarantee
    ended = program("explain", "shop.toml", "--subject-records", 7)
    assert ended.code == 0, ended.err
    text = " ".join(ended.out.split())
    assert guarantee.text in text
    assert f"ε = {guarantee.for_subject(7).epsilon:.4g} for {guarantee.for_subject(7).unit}" in text
    assert f"ε = {guarantee.for_operations(2).epsilon:.4g}" in text
    assert guarantee.for_subject(7).promises[-1] in text
    for part in ("every 2 rounds", "Adaptive.", "docs/limitations.md", "An erasure", "for 50 rounds and no more"):
        assert part in text
    for name in ("orders", "revenue", "average", "countries"):
        assert f"{name}: {specification(folder).measure_of(name)}" in text


def explained(program: Program, folder: Path, line: str) -> str:
    (folder / "other.toml").write_text(f"{line}\n{(folder / 'shop.toml').read_text()}")
    ended = program("explain", "other.toml")
    assert ended.code == 0, ended.err
    return " ".join(ended.out.split())


def test_explain_says_what_becomes_of_later_records(program: Program, folder: Path) -> None:
    assert "Later records of an erased subject are accepted" in explained(program, folder, "")
    text = explained(program, folder, 'after_erasure = "reject"')
    assert "are rejected, by a hash of the subject under the key" in text
    assert "one operation for each record that it removes, and for each that is rejected after it" in text
    assert "decides over its later records" in text  # in the guarantee, too
    assert "are accepted" not in text


def test_explain_by_options(program: Program) -> None:
    ended = program("explain", "--count", "--epsilon", 0.5, "--window", 7)
    assert ended.code == 0, ended.err
    text = " ".join(ended.out.split())
    assert "the surviving records of the last 7 rounds" in text
    assert "without a horizon" in text


def test_demo_is_wired(program: Program, folder: Path) -> None:
    ended = program("demo", "--rounds", 60, "--seed", 1, "--out", "page.html")
    assert ended.code == 0, ended.err
    assert (folder / "page.html").read_text().startswith("<!")
