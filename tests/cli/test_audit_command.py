"""`retroact audit`: what it writes, how it ends, and running a report again."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from retroact.audit import run
from retroact.audit.report import Report, public_key, sign, verify
from retroact.audit.result import Control, Result
from retroact.audit.target import Target
from retroact.coins import Key
from retroact.testing.seeds import Seeds
from support.cli_program import Ended, Program

SECRET = bytes(32)
Audit = Callable[..., Ended]


def planted(verdict: str, caught: bool) -> Callable[..., Result]:
    def test(target: Target, seeds: Seeds) -> Result:
        control = Control(bug="a bug", caught=caught, how="it was looked for")
        found = f"{verdict} under {seeds.number()}"
        return Result(
            part="privacy", test="made [up]", question="?", tried="!", runs=1, verdict=verdict, found=found,
            detectable="all [of it]", control=control, measured={"seed": str(seeds.number() % 1000)},
        )  # fmt: skip

    return test


def alone(monkeypatch: pytest.MonkeyPatch, test: Callable[..., Any], **options: int) -> None:
    """One test in place of all of them, which take their time."""
    planned = run.Planned(test, options, options, options, bound=False)
    monkeypatch.setattr(run, "TESTS", {"alone": planned})


@pytest.fixture
def audit(program: Program, monkeypatch: pytest.MonkeyPatch) -> Audit:
    """The command with one of its own tests, in this process."""
    alone(monkeypatch, run.sensitivity, pairs=5)
    return lambda *arguments: program("audit", *arguments, "--workers", 1)


def test_a_report_and_its_page(audit: Audit, folder: Path) -> None:
    ended = audit("shop.toml", "--out", "report.json", "--html", "report.html", "--key-file", "audit.key", "--seed", 7)
    assert ended.code == 0, ended.err
    key = public_key(Key(bytes.fromhex((folder / "audit.key").read_text().strip())).derive("audit report"))
    report = verify((folder / "report.json").read_bytes(), place="r", public_key=key)
    assert (report.target, report.settings.seed, report.settings.effort) == ("shop", 7, "normal")
    assert report.verdict == "passed"
    for result in report.results:
        assert result.test in ended.out
    assert f"passed: {report.tests} of {report.tests} tests passed, 0 found a violation, 0 inconclusive" in ended.out
    assert key in ended.err
    assert key in (folder / "report.html").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["audit.key", "report.html", "report.json", "shop.toml"]


def test_a_throw_away_key_is_told(audit: Audit, folder: Path) -> None:
    ended = audit("shop.toml", "--out", "report.json")
    assert ended.code == 0, ended.err
    assert "throw-away key" in ended.err
    assert verify((folder / "report.json").read_bytes(), place="r").verdict == "passed"
    assert audit("shop.toml", "--out", "report.json", "--quiet").err == ""


def test_a_page_alone_names_no_key(audit: Audit, folder: Path) -> None:
    assert audit("shop.toml", "--html", "report.html").code == 0
    assert "public key:" not in (folder / "report.html").read_text()


def test_retroact_toml_is_found(audit: Audit, folder: Path) -> None:
    os.rename(folder / "shop.toml", folder / "retroact.toml")
    assert audit().code == 0


def test_the_same_again(audit: Audit, folder: Path) -> None:
    audit("shop.toml", "--out", "report.json", "--key-file", "audit.key", "--seed", 3, "--effort", "quick")
    before = (folder / "report.json").read_bytes()
    ended = audit("--reproduce", "report.json")
    assert ended.code == 0, ended.out + ended.err
    assert "reproduced: all" in ended.out
    key = json.loads(before)["public_key"]
    assert f"the signature holds, by {key}, whoever that is" in ended.out
    assert "by the expected key" in audit("--reproduce", "report.json", "--public-key", key).out
    other = audit("--reproduce", "report.json", "--public-key", public_key(SECRET))
    assert other.code == 4
    assert "signed by" in other.err
    assert (folder / "report.json").read_bytes() == before


def resigned(path: Path, **changes: Any) -> None:
    report = verify(path.read_bytes(), place="r")
    path.write_bytes(sign(msgspec.structs.replace(report, **changes), SECRET))


def test_other_results_are_not_reproduced(audit: Audit, folder: Path) -> None:
    path = folder / "report.json"
    audit("shop.toml", "--out", path)
    first, *others = verify(path.read_bytes(), place="r").results
    resigned(path, results=[msgspec.structs.replace(first, runs=first.runs + 1), *others], program="0.0.9")
    ended = audit("--reproduce", path)
    assert ended.code == 4
    assert f"{first.test}: runs: {first.runs + 1}, now {first.runs}" in ended.out
    assert "1 that differ (made by retroact 0.0.9" in ended.err


def test_a_violation_can_be_reproduced(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, planted("violation", True))
    ended = program("audit", "shop.toml", "--out", "report.json", "--html", "report.html", "--workers", 1)
    assert ended.code == 4
    assert "found a violation by: made [up]" in ended.err
    assert "violation, made [up]: violation under" in ended.out
    assert "A promise is broken." in (folder / "report.html").read_text()
    again = program("audit", "--reproduce", "report.json", "--workers", 1)
    assert again.code == 0, again.err
    assert "verdict: violation" in again.out


def test_of_several_failures_the_gravest_is_the_exit_code(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A violation, and a report that cannot be written: both are said."""
    alone(monkeypatch, planted("violation", True))

    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    ended = program("audit", "shop.toml", "--out", "r.json", "--workers", 1)
    assert ended.code == 4
    assert "error: expected every promise to hold" in ended.err
    assert "error: r.json: operation not permitted" in ended.err


def test_a_missed_bug_makes_it_void(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, planted("passed", False))
    ended = program("audit", "shop.toml", "--out", "report.json", "--workers", 1)
    assert ended.code == 4
    assert "MISSED" in ended.out
    assert "says nothing: made [up]" in ended.err
    assert verify((folder / "report.json").read_bytes(), place="r").verdict == "void"


@pytest.mark.parametrize(
    ("verdict", "counts"),
    [("inconclusive", "1 inconclusive, 0 do not apply"), ("not applicable", "0 inconclusive, 1 do not apply")],
)
def test_an_audit_that_passed_nothing_says_nothing(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, counts: str
) -> None:
    alone(monkeypatch, planted(verdict, True))
    ended = program("audit", "shop.toml", "--out", "report.json", "--workers", 1)
    assert ended.code == 4
    assert f"void: 0 of 1 tests passed, 0 found a violation, {counts};" in ended.out
    assert f"says nothing: {counts}" in ended.err
    assert verify((folder / "report.json").read_bytes(), place="r").verdict == "void"


def test_words_of_other_versions_are_not_compared(audit: Audit, folder: Path) -> None:
    path = folder / "report.json"
    audit("shop.toml", "--out", path)
    report = verify(path.read_bytes(), place="r")
    results = [msgspec.structs.replace(result, found="All is well.") for result in report.results]
    resigned(path, results=results)
    ended = audit("--reproduce", path)
    assert ended.code == 4
    assert ended.out.count("found: All is well., now") == len(results)
    assert "words were not compared" not in ended.out
    environment = msgspec.structs.replace(report.environment, versions={"python": "3.0"})
    resigned(path, results=results, environment=environment)
    ended = audit("--reproduce", path)
    assert ended.code == 0, ended.err
    assert "note: words were not compared" in ended.out


def test_a_report_cannot_forge_lines(audit: Audit, folder: Path) -> None:
    path, nasty = folder / "report.json", "\nreproduced: all\x1b[2K\u202e"
    audit("shop.toml", "--out", path)
    report = verify(path.read_bytes(), place="r")
    forged = [msgspec.structs.replace(result, test=nasty, measured={nasty: nasty}) for result in report.results]
    specification = (report.specification or "").replace('"orders"', '"or\\ndone: ders"')
    specifications = [report.specification, specification, specification.replace('"count"', '"\\u001b[2K\\nfine"')]
    for number, text in enumerate(specifications):
        resigned(path, results=forged, program=nasty, target=nasty, model=[nasty], specification=text)
        ended = audit("--reproduce", path)
        assert ended.code == (4 if number == 0 else ended.code) != 0
        said = ended.out + ended.err
        assert "\\n" in said
        assert not [line for line in said.split("\n") if line.startswith(("reproduced", "done", "fine"))]
        assert not set(said) & set("\x1b\u202e\r")


def test_a_report_of_another_making_is_refused(audit: Audit, folder: Path) -> None:
    path = folder / "report.json"
    audit("shop.toml", "--out", path)
    report = verify(path.read_bytes(), place="r")
    data = json.loads(path.read_bytes())
    data["report"]["version"] = 2
    path.write_bytes(msgspec.json.encode(data, order="sorted") + b"\n")
    assert_refused(audit("--reproduce", path), "report.json", "version")
    path.write_bytes(b"{}\n")
    assert_refused(audit("--reproduce", path), "report.json", "missing required field")
    path.write_bytes(b"\xff")
    assert_refused(audit("--reproduce", path), "UTF-8")
    path.write_bytes(sign(msgspec.structs.replace(report, specification=None), SECRET))
    assert_refused(audit("--reproduce", path), "report.json: ", "- at specification")
    path.write_bytes(sign(msgspec.structs.replace(report, specification='{"epsilon":0}'), SECRET))
    assert_refused(audit("--reproduce", path), "report.json: ", "- at specification.schema")
    path.write_bytes(sign(msgspec.structs.replace(report, specification="[" * 5000), SECRET))
    assert_refused(audit("--reproduce", path), "report.json: ", "- at specification", "nested too deeply")
    for name, value in {"effort": "huge", "only": "x", "confidence": "0.5"}.items():
        settings = msgspec.structs.replace(report.settings, **{name: value})
        path.write_bytes(sign(msgspec.structs.replace(report, settings=settings), SECRET))
        assert_refused(audit("--reproduce", path), f"found '{value}'", f"report.json, settings.{name}")


def test_a_changed_report_does_not_verify(audit: Audit, folder: Path) -> None:
    path = folder / "report.json"
    audit("shop.toml", "--out", path)
    path.write_bytes(path.read_bytes().replace(b'"target":"shop"', b'"target":"shap"'))
    ended = audit("--reproduce", path)
    assert ended.code == 4
    assert "signature" in ended.err


def assert_refused(ended: Ended, *texts: str) -> None:
    assert ended.code == 2, ended.out + ended.err
    assert [text for text in texts if text not in ended.err] == []


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ((), ("expected a specification file",)),
        (("none.toml",), ("none.toml",)),
        (("shop.toml", "--effort", "huge"), ("huge",)),
        (("shop.toml", "--workers", 0), ("workers",)),
        (("shop.toml", "--out", "none/report.json"), ("none/report.json", "--out")),
        (("shop.toml", "--html", "."), ("is a directory", "--html")),
        (("shop.toml", "--out", "shop.toml"), ("another file than the specification",)),
        (("shop.toml", "--out", "r", "--html", "./r"), ("another file than the one for --out", "--html")),
        (("shop.toml", "--key-file", "k", "--out", "k"), ("another file than the key file", "--out")),
        (("shop.toml", "--key-file", "k", "--html", "../{name}/k"), ("another file than the key file", "--html")),
        (("shop.toml", "--key-file", "k", "--out", "none/r"), ("none/r", "--out")),
        (("shop.toml", "--out", "/proc/none"), ("/proc/none", "--out")),
        (("shop.toml", "--open"), ("--html",)),
        (("shop.toml", "--public-key", "ab"), ("--key-file",)),
        (("shop.toml", "--reproduce", "report.json"), ("no SPEC with --reproduce",)),
        (("--reproduce", "report.json", "--seed", 0), ("no --seed with --reproduce",)),
        (("--reproduce", "none.json"), ("none.json", "no such file")),
        (("--reproduce", "."), ("directory",)),
    ],
)
def test_bad_input(program: Program, folder: Path, arguments: tuple[Any, ...], texts: tuple[str, ...]) -> None:
    given = [str(argument).format(name=folder.name) for argument in arguments]
    assert_refused(program("audit", *given), *texts)
    assert [path.name for path in folder.iterdir()] == ["shop.toml"]


def test_errors_in_a_specification_have_a_place(program: Program, folder: Path) -> None:
    path = folder / "shop.toml"
    text = path.read_text().replace('"sum"', '"som"')
    path.write_text(text)
    where = f"shop.toml:{text[: text.index('som')].count(chr(10)) + 1}: "
    assert_refused(program("audit", "shop.toml", "--key-file", "audit.key"), where, "- at statistics.revenue", "som")
    path.write_text("epsilon =\n")
    assert_refused(program("audit", "shop.toml"), "shop.toml:1")
    assert not (folder / "audit.key").exists()


def test_another_key_than_the_expected_one(program: Program, folder: Path) -> None:
    ended = program("audit", "shop.toml", "--key-file", "audit.key", "--public-key", public_key(SECRET))
    assert_refused(ended, "expected the key of", "--key-file")


def test_what_is_not_installed_is_named(program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "scipy" else found(name, *more)
    )
    ended = program("audit", "shop.toml", "--out", "report.json", "--key-file", "audit.key")
    assert_refused(ended, "expected scipy", "install retroact[audit]")
    assert_refused(program("audit", "--reproduce", "none.json"), "install retroact[audit]")
    assert [path.name for path in folder.iterdir()] == ["shop.toml"]


def test_a_device_is_written_to_and_not_replaced(audit: Audit) -> None:
    assert audit("shop.toml", "--out", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_a_key_is_never_replaced(program: Program, folder: Path, option: str) -> None:
    key = folder / "audit.key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    (folder / "link").symlink_to("audit.key")
    os.link(key, folder / "twin")
    for path in ("audit.key", "link", "twin", key):
        ended = program("audit", "shop.toml", "--key-file", "audit.key", option, path)
        assert_refused(ended, "another file than the key file", option)
    assert_refused(program("audit", "shop.toml", "--key-file", "link", option, "audit.key"), "key file")
    assert key.read_text() == "ab" * 32
    (folder / "ahead").symlink_to("later.key")
    assert_refused(program("audit", "shop.toml", "--key-file", "later.key", option, "ahead"), "key file")
    assert not (folder / "later.key").exists()


def test_places_are_tried_before_the_work(
    program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("it has begun")

    monkeypatch.setattr(run, "audit_stream", work)
    (folder / "loop").symlink_to("loop")
    for path in ("x" * 256, "loop/r", "shop.toml/r"):
        ended = program("audit", "shop.toml", "--out", "report.json", "--html", path, "--key-file", "audit.key")
        assert_refused(ended, path, "--html")
    assert sorted(path.name for path in folder.iterdir()) == ["loop", "shop.toml"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_both_files_or_none(audit: Audit, folder: Path) -> None:
    for arguments in (("--out", "r.json", "--html", "/dev/full"), ("--out", "/dev/full", "--html", "r.html")):
        ended = audit("shop.toml", *arguments)
        assert_refused(ended, "/dev/full: no space left")
        assert "passed: " in ended.out
        assert [path.name for path in folder.iterdir()] == ["shop.toml"]


def test_the_first_file_goes_if_the_second_cannot_come(
    audit: Audit, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if Path(target).suffix == ".html":
            raise PermissionError(1, "Operation not permitted")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    assert_refused(audit("shop.toml", "--out", "r.json", "--html", "r.html"), "r.html: operation not permitted")
    assert [path.name for path in folder.iterdir()] == ["shop.toml"]


def test_a_pipe_gets_the_report(audit: Audit) -> None:
    reader, writer = os.pipe()
    try:
        ended = audit("shop.toml", "--out", f"/dev/fd/{writer}")
        assert ended.code == 0, ended.err
        os.set_blocking(reader, False)
        assert os.read(reader, 1 << 20).startswith(b'{"public_key":')
    finally:
        os.close(reader)
        os.close(writer)


def test_standard_output_is_not_replaced(folder: Path) -> None:
    program = [sys.executable, "-m", "retroact", "audit", "shop.toml", "--out", "/dev/stdout"]
    with (folder / "table.txt").open("wb") as file:
        ended = subprocess.run(program, stdout=file, stderr=subprocess.PIPE, timeout=60, check=False)
    assert ended.returncode == 2
    assert b"/dev/stdout: expected a file that nothing else is written to" in ended.stderr
    assert (folder / "table.txt").read_bytes() == b""


def test_numbers_of_a_run_follow_from_its_seed(program: Program, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    alone(monkeypatch, planted("passed", True))

    def measured(seed: int) -> list[dict[str, str]]:
        assert program("audit", "shop.toml", "--out", "report.json", "--seed", seed, "--workers", 1).code == 0
        report: Report = verify((folder / "report.json").read_bytes(), place="r")
        return [result.measured for result in report.results]

    assert measured(1) == measured(1) != measured(2)
