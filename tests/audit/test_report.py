"""Reports: verdicts, signatures, what a second run is held against, and what never gets into them."""

import getpass
import json
import platform
import re
import socket
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import retroact as ra
from retroact.audit import Approximate
from retroact.audit.claims import claim_of, obligations_of
from retroact.audit.report import compare, public_key, same_programs, sign, signer, verify
from retroact.audit.result import Control, curve
from retroact.errors import InputError, VerificationError
from retroact.store.receipt import verify as verify_receipt
from retroact.store.signed_statement import canonical
from support.report_samples import (
    ADAPTIVE,
    LIKELIHOOD,
    MISSED,
    RECONSTRUCTION,
    RESULTS,
    SAMPLER,
    TWIN,
    VIOLATION,
    report,
    specification,
)

SECRET = bytes(range(32))
replace = msgspec.structs.replace


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (RESULTS, "passed"),
        ([TWIN, ADAPTIVE], "passed"),
        ([ADAPTIVE], "void"),
        ([ADAPTIVE, SAMPLER], "void"),
        ([*RESULTS, VIOLATION], "violation"),
        ([MISSED, TWIN], "void"),
        ([MISSED, VIOLATION], "violation"),
        ([SAMPLER], "void"),
    ],
)
def test_verdicts(results, verdict):
    assert report(*results).verdict == verdict


def test_counts():
    made = report(*RESULTS, VIOLATION, MISSED)
    assert (made.violations, made.voids, made.tests, made.bounds) == ([VIOLATION], [MISSED], 7, 6)
    assert made.false_alarm == pytest.approx(6 * 0.001)


def test_round_trip_and_signature():
    made = report()
    content = sign(made, SECRET)
    assert content == sign(made, SECRET)
    assert content.count(b"\n") == 1
    assert verify(content, place="r", public_key=public_key(SECRET)) == made
    assert signer(content, place="r") == public_key(SECRET)
    assert canonical(made) in content
    with pytest.raises(VerificationError, match="signed by"):
        verify(content, place="r", public_key=public_key(bytes(32)))


def test_what_is_changed_is_seen():
    made = report()
    envelope = json.loads(sign(made, SECRET))
    for name, other in {"target": "refunds", "program": "9.9", "model": [], "results": [], "obligations": []}.items():
        changed = {**envelope, "report": {**envelope["report"], name: other}}
        with pytest.raises(VerificationError, match="does not fit - at r"):
            verify(msgspec.json.encode(changed, order="sorted") + b"\n", place="r")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "Invalid enum value 2.*version"),
        ({"format": "retroact erasure receipt"}, "format"),
        ({"more": 1}, "unknown field `more`"),
        ({"results": [{}]}, "missing required field"),
        ({"results": [{**msgspec.to_builtins(TWIN), "more": 1}]}, "canonical"),
    ],
)
def test_what_is_not_a_report_is_refused(change, message):
    envelope = json.loads(sign(report(), SECRET))
    changed = msgspec.json.encode({**envelope, "report": {**envelope["report"], **change}}, order="sorted") + b"\n"
    with pytest.raises(InputError, match=message):
        verify(changed, place="r")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("confidence", text) for text in ("x", "nan", "1", "0", "0.5", "inf", "", "-0.9", "0.99999999999999999999")),
        ("effort", "x"),
        ("only", "x"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(name, value):
    made = report()
    wrong = replace(made, settings=replace(made.settings, **{name: value}))
    with pytest.raises(InputError, match=f"found '{value}' - at r, settings.{name}"):
        verify(sign(wrong, SECRET), place="r")


def test_seeds_have_at_most_64_bits():
    made = report(seed=2**64 - 1)
    assert verify(sign(made, SECRET), place="r") == made
    with pytest.raises(InputError, match=r"64 bits.* - at r, settings.seed"):
        verify(sign(report(seed=2**64), SECRET), place="r")


def test_keys_that_anybody_can_sign_for_are_refused():
    neutral = bytes([1]) + bytes(31)
    Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), b"whatever it says")
    envelope = {**json.loads(sign(report(), SECRET)), "signature": (neutral + bytes(32)).hex()}
    prime = 2**255 - 19
    eighth = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
    d = -121665 * pow(121666, -1, prime) % prime

    def doubled(y):
        """The y of twice a point, whose x follows up to its sign."""
        xx = (y * y - 1) * pow(d * y * y + 1, -1, prime) % prime
        return (y * y + xx) * pow(1 - d * xx * y * y, -1, prime) % prime

    assert [doubled(eighth), doubled(0), doubled(prime - 1)] == [0, prime - 1, 1]
    for y in (0, 1, prime - 1, prime, prime + 1, eighth, prime - eighth):
        for sign_of_x in (0, 1):
            envelope["public_key"] = (y | sign_of_x << 255).to_bytes(32, "little").hex()
            with pytest.raises(VerificationError, match="anybody can sign for"):
                verify(msgspec.json.encode(envelope, order="sorted") + b"\n", place="r")


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000, "[" * 900 + "]" * 900])
def test_deep_nesting_is_refused(text):
    with pytest.raises(InputError, match=r"^r: .* - at specification$"):
        replace(report(), specification=text).specified("r")
    with pytest.raises(InputError, match="at r"):
        verify(b'{"public_key":"","report":{"results":[{"more":' + text.encode(), place="r")


def test_a_signed_report_is_no_receipt():
    with pytest.raises(InputError):
        verify_receipt(sign(report(), SECRET), place="r")
    envelope = json.loads(sign(report(), SECRET))
    assert public_key(SECRET) != ra.store.receipt.public_key(SECRET)
    assert set(envelope) == {"report", "public_key", "signature"}


def test_the_specification_comes_back_in_its_order():
    spec = specification()
    back = verify(sign(report(spec=spec), SECRET), place="r").specified()
    assert list(back.schema.fields) == ["zip", "age"]
    assert list(back.statistics) == ["people", "mean_age"]
    assert back.whole_digest == spec.whole_digest
    assert back.shares == spec.shares


def test_without_a_specification_nothing_is_run_again():
    spec = ra.Specification({"age": ra.Integer(0, 9)}, {"n": ra.Count().map(lambda n: n)}, epsilon=1.0, horizon=8)
    made = report(spec=spec)
    assert made.specification is None
    with pytest.raises(InputError, match=r"^r: .*found none.* - at specification$"):
        made.specified("r")
    broken = replace(made, specification='{"epsilon": 1}')
    with pytest.raises(InputError, match=r"^r: .* - at specification\.schema$"):
        broken.specified("r")
    with pytest.raises(InputError, match="expected JSON"):
        replace(made, specification="{").specified("r")


def test_nothing_of_the_machine_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = sign(report(), SECRET).decode()
    for private in (socket.gethostname(), platform.node(), str(Path.home()), str(tmp_path), SECRET.hex()):
        assert len(private) < 3 or private not in text
    assert f'"{getpass.getuser()}"' not in text


def test_claims():
    claim = report(spec=specification(delta=1e-6, law="gaussian")).claim
    assert (claim.epsilon, claim.delta, claim.adaptive) == ("1", "1e-06", True)
    assert claim.measure.startswith("μ = ")
    assert "the same bytes" in claim.retroactivity
    guarantee = specification().guarantee
    assert "not the same bytes" in claim_of(guarantee, keyed=False).retroactivity
    approximate = claim_of(guarantee, Approximate(0.5, 1e-6, 8)).retroactivity
    assert "any 8 answers in a row are (α, β)-close, with α = 0.5 and β = 1e-06" in approximate


def test_obligations_are_those_of_the_mechanism():
    # tree of horizon 16: 7 nodes at most, so the scale is 7 / epsilon (noise/tree.py)
    spec = ra.Specification({"age": ra.Integer(0, 9)}, {"n": ra.Count(noise="tree")}, epsilon=0.5, horizon=16)
    (owed,) = obligations_of(spec)
    assert owed.law == "discrete Laplace noise of scale 14 on every node"
    assert "at most 7 (in spreads)" in owed.sensitivity
    assert "Tree" in owed.noise
    assert (owed.share, owed.theorem) == ("ε = 0.5", 'Theorem "linear"')


def test_a_refined_lattice_does_not_change_the_deviation():
    # Schauder of horizon 32: 14 nodes at most in the squared norm, so the deviation is about sqrt(14) / mu
    statistics, budget = {"n": ra.Count(noise="schauder")}, {"epsilon": 4.0, "delta": 1e-6, "law": "gaussian"}
    spec = ra.Specification({"age": ra.Integer(0, 9)}, statistics, horizon=32, **budget)
    (owed,) = obligations_of(spec)
    deviation, step = re.search(r"deviation (\S+), in steps of 1/(\d+)", owed.law).groups()
    assert int(step) > 1
    assert float(deviation) == pytest.approx((14 / float(spec.shares["n"].amount)) ** 0.5, rel=1e-2)


def test_every_kind_of_statistic_has_obligations():
    schema = {"age": ra.Integer(0, 120), "city": ra.Text(), "country": ra.Category(["DE", "FR"])}
    point = ra.WindowSample(ra.oneshot.InteriorPoint("age"), window=8, gate=ra.Gate(100))
    statistics = {
        "sum": ra.Sum("age"), "variance": ra.Variance("age"), "quantiles": ra.Quantiles("age"),
        "groups": ra.GroupBy("country", ra.Count()), "past": ra.Restated(ra.Count(), lags=[1, 2]),
        "distinct": ra.Distinct("city"), "cities": ra.Histogram("city"), "window": ra.Count(window=4),
        "point": point,
    }  # fmt: skip
    spec = ra.Specification(schema, statistics, epsilon=4.0, delta=1e-6, horizon=32)
    owed = {one.statistic: one for one in obligations_of(spec)}
    assert list(owed) == list(statistics)
    assert all(getattr(one, name) for one in owed.values() for name in one.__struct_fields__)
    assert owed["cities"].theorem.startswith('Theorem "histogram"')
    assert owed["point"].theorem == 'Theorem "sampling"'
    assert "Appendix A" in owed["past"].theorem


def test_a_report_names_no_theorem_that_a_statistic_did_not_declare():
    """Not that of the class it comes from either: what it changed there may be what the proof rests on."""

    class Doubled(ra.Count):
        pass

    class Toppings(ra.Count):
        theorem, version = "Theorem 3 of the toppings", "2"

    for outer in (lambda s: s, lambda s: s.map(round), lambda s: ra.GroupBy("member", s)):
        assert outer(ra.Count()).statement() == 'Theorem "linear"'
        assert outer(Doubled()).statement() == "no theorem, as Doubled declares none"
        package = __name__.partition(".")[0]
        assert outer(Toppings()).statement() == f"Theorem 3 of the toppings (declared by {package} 2)"
    assert ra.Restated(Doubled(), [1]).statement().startswith("no theorem")


def test_two_equal_runs_agree():
    assert compare(report(), report(seconds=99.0)) == []
    other = replace(report(), program="9.9", environment=replace(report().environment, cores=64))
    assert compare(report(), other) == []


def test_rounding_is_not_compared():
    measured = {**LIKELIHOOD.measured, "epsilon": "0.479200"}
    close = replace(LIKELIHOOD, found="At least ε = 0.4792 is shown, of 0.5 claimed.", measured=measured)
    assert compare(report(LIKELIHOOD), report(close)) == []


@pytest.mark.parametrize("name", ["question", "tried", "found", "detectable", "how"])
def test_words_are_compared_where_the_same_programs_wrote_them(name):
    control = replace(LIKELIHOOD.control, how="Other words.")
    other = replace(LIKELIHOOD, **({"control": control} if name == "how" else {name: "Other words."}))
    old, new = report(LIKELIHOOD), report(other)
    (line,) = compare(old, new)
    assert line.startswith(f"privacy, likelihood ratio of people: {name}")
    assert line.endswith("now Other words.")
    elsewhere = replace(new.environment, versions={**new.environment.versions, "numpy": "0.1"})
    for later in (replace(new, program="9.9"), replace(new, environment=elsewhere)):
        assert not same_programs(old, later)
        assert compare(old, later) == []
    number = LIKELIHOOD.found.replace("0.479", "0.379")
    assert "0.379" in compare(old, report(replace(LIKELIHOOD, found=number)))[0]


def test_a_difference_late_in_a_long_text_is_shown():
    long = replace(LIKELIHOOD, found="x" * 500 + "yes")
    (line,) = compare(report(long), report(replace(long, found="x" * 500 + "no")))
    assert line.endswith("xyes, now …" + "x" * 60 + "no")


def test_a_report_cannot_forge_lines():
    nasty = "a\nreproduced: all\r\x1b[2K\u202e\u2028"
    old = report(replace(LIKELIHOOD, test=nasty, measured={nasty: nasty}, curves={nasty: [("0", "0")]}), TWIN)
    old = replace(old, target=nasty, model=[nasty], specification=nasty)
    twin = replace(TWIN, measured={nasty: nasty}, found=nasty, control=replace(TWIN.control, bug=nasty))
    found = compare(old, report(LIKELIHOOD, twin))
    assert len(found) >= 7
    assert all(line.isprintable() for line in found)
    assert any("a\\nreproduced: all\\r\\x1b[2K\\u202e\\u2028" in line for line in found)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"verdict": "violation"}, "verdict: passed, now violation"),
        ({"runs": 99_999}, "runs: 100000, now 99999"),
        ({"counterexample": ["x = 1"]}, "counterexample: [], now ['x = 1']"),
        ({"control": None}, "control: ('noise 1.5 times too small', True), now nothing"),
        ({"control": Control(bug="noise 1.5 times too small", caught=False, how="")}, "now ('noise 1.5 times"),
        ({"measured": {"epsilon": "0.4797", "claimed": "0.5"}}, "measured, epsilon: 0.479123, now 0.4797"),
        ({"measured": {"epsilon": "inf", "claimed": "0.5"}}, "measured, epsilon: 0.479123, now inf"),
        ({"measured": {"claimed": "0.5"}}, "measured, epsilon: 0.479123, now nothing"),
        ({"curves": {"claimed": LIKELIHOOD.curves["claimed"]}}, "curve measured: (0, 1) "),
    ],
)
def test_differences_are_told(changes, line):
    found = compare(report(LIKELIHOOD), report(replace(LIKELIHOOD, **changes)))
    assert any(text.startswith("privacy, likelihood ratio of people: ") and line in text for text in found), found


def test_a_point_of_a_curve_that_moves_is_told():
    moved = {**LIKELIHOOD.curves, "measured": [*LIKELIHOOD.curves["measured"][:-1], *curve([(1, 0.2)])]}
    found = compare(report(LIKELIHOOD), report(replace(LIKELIHOOD, curves=moved)))
    assert [text for text in found if "curve measured: " in text and text.endswith("(1, 0.2)")] == found != []


def test_other_settings_claims_and_tests_are_told():
    found = compare(report(), report(*RESULTS[:-1], spec=specification(epsilon=2.0), seed=2))
    assert any(line.startswith("claim: ") for line in found)
    assert any(line.startswith("settings: ") for line in found)
    assert any(line.startswith("specification: ") for line in found)
    assert f"reconstruction, {RECONSTRUCTION.test}: only in the first report" in found
    assert f"reconstruction, {RECONSTRUCTION.test}: only in the second report" in compare(report(TWIN), report())


def test_tests_of_one_name_are_told_apart():
    old, new = report(TWIN, TWIN), report(TWIN, replace(TWIN, runs=1))
    assert compare(old, new) == ["retroactivity, erased lifecycles (2): runs: 480, now 1"]
