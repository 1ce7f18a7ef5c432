"""Receipts: what is signed cannot be changed, and what was not signed is refused."""

import json
from pathlib import Path

import msgspec
import pytest

from retroact.errors import InputError, VerificationError
from retroact.store.receipt import LIMIT, Receipt, public_key, sign, verify

SECRET = bytes(range(32))
RECEIPT = Receipt(
    stream="a1b2", request="0f" * 16, state="purged", received="2026-01-31T12:00:00Z", round=7,
    applied="2026-01-31T12:01:00Z", purged="2026-01-31T12:02:00.5Z", found=[True, False],
    what=["ledger", "log"], remains=["backups – old"], later="reject",
)  # fmt: skip
CHANGED = {
    "stream": "a1b3", "request": "0e" * 16, "received": "2026-01-31T12:00:01Z", "round": 8, "state": "applied",
    "applied": "2026-01-31T12:01:01Z", "purged": "2026-01-31T12:02:00Z", "what": ["ledger"], "remains": [],
    "found": [True, True], "later": "accept", "afterwards": "nothing is published",
}  # fmt: skip
FIRST_KEY = "e889cbdee20e5839c071d71f0a87e1b645b0f8eff4f0f404287dd889e467471d"
FIRST = (Path(__file__).parent / "receipt_v1.json").read_bytes()
"""Of version 1, as version 0.1.0 of the program wrote it."""


def canonical(value):
    return msgspec.json.encode(value, order="sorted") + b"\n"


def altered(**fields):
    value = json.loads(sign(RECEIPT, SECRET))
    value["receipt"].update(fields)
    return value


def test_round_trip():
    content = sign(RECEIPT, SECRET)
    assert content == sign(RECEIPT, SECRET)
    assert content.endswith(b"}\n")
    assert verify(content, place="r") == RECEIPT
    assert verify(content, place="r", public_key=public_key(SECRET)) == RECEIPT


def test_golden_vector():
    first = msgspec.structs.replace(RECEIPT, version=1, found=msgspec.UNSET)
    assert public_key(SECRET) == "9077b23a1312c350dcf1d0a654e4f29884688db26fd980d72adeedbaa2596a9f"
    assert [json.loads(sign(receipt, SECRET))["signature"] for receipt in (first, RECEIPT)] == [
        "bd43423874f4e08ef9b79f42d3dc31c815b12b8a4d1d7a50a463104e91902da8"
        "94b7e5f1b0ea74389ec53c8fb1843c909d2980afc8397187adbdbe7cbad4d507",
        "710aae4ba3b6349fccb9d14743aea9397f9fce1a8bfd731bd64f0f032daf2466"
        "b3d3fd5680884fe78b46586a9dcae024a92a8410cf910c4739493f1d622f8f08",
    ]


def test_a_receipt_of_the_first_version_still_verifies():
    receipt = verify(FIRST, place="r", public_key=FIRST_KEY)
    assert (receipt.version, receipt.state, receipt.round, receipt.missing) == (1, "purged", 2, 0)
    assert receipt.found is msgspec.UNSET
    for name, other in (("round", None), ("round", 3), ("version", 2), ("found", [True])):
        value = json.loads(FIRST)
        value["receipt"][name] = other
        with pytest.raises((InputError, VerificationError)):
            verify(canonical(value), place="r")


def test_an_erasure_after_the_last_round_has_none():
    receipt = msgspec.structs.replace(RECEIPT, round=None, afterwards="nothing is published")
    assert verify(sign(receipt, SECRET), place="r") == receipt
    for change in ({"round": 3}, {"afterwards": msgspec.UNSET}, {"version": 1, "found": msgspec.UNSET}):
        with pytest.raises(InputError, match=r"at receipt, (round|afterwards)"):
            sign(msgspec.structs.replace(receipt, **change), SECRET)


def test_what_was_only_received_tells_nothing_yet():
    later = {"round": None, "applied": None, "purged": None, "found": msgspec.UNSET}
    receipt = msgspec.structs.replace(RECEIPT, state="received", **later)
    assert verify(sign(receipt, SECRET), place="r").missing == 0
    assert "found" not in json.loads(sign(receipt, SECRET))["receipt"]
    for name, other in (("found", [True]), ("afterwards", "nothing is published"), ("round", 3)):
        with pytest.raises(InputError, match=f"at receipt, {name}"):
            sign(msgspec.structs.replace(receipt, **{name: other}), SECRET)


def test_every_field_is_signed():
    assert set(CHANGED) | {"format", "version"} == set(Receipt.__struct_fields__)
    for name, other in CHANGED.items():
        fields = {"state": {name: other, "purged": None}, "afterwards": {name: other, "round": None}}
        fields = fields.get(name, {name: other})
        with pytest.raises(VerificationError, match="does not fit - at r"):
            verify(canonical(altered(**fields)), place="r")


def test_another_key_is_refused():
    content = sign(RECEIPT, bytes(32))
    assert verify(content, place="r") == RECEIPT
    with pytest.raises(VerificationError, match="expected a receipt signed by"):
        verify(content, place="r", public_key=public_key(SECRET))
    swapped = {**json.loads(content), "public_key": public_key(SECRET)}
    with pytest.raises(VerificationError):
        verify(canonical(swapped), place="r")
    assert VerificationError.exit_code == 4


def test_a_signature_is_of_receipts_only():
    from retroact.store.receipt import RECEIPTS

    value = json.loads(sign(RECEIPT, SECRET))
    bare = msgspec.json.encode(RECEIPT, order="sorted")
    with pytest.raises(VerificationError):
        verify(canonical({**value, "signature": RECEIPTS.signing_key(SECRET).sign(bare).hex()}), place="r")


def test_every_truncation_is_refused():
    content = sign(RECEIPT, SECRET)
    for end in range(len(content)):
        with pytest.raises(InputError, match="at r"):
            verify(content[:end], place="r")


def test_every_altered_bit_is_refused():
    content = sign(RECEIPT, SECRET)
    for at in range(len(content)):
        with pytest.raises((InputError, VerificationError)):
            verify(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], place="r")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (canonical(altered(count=3)), "unknown field `count`"),
        (canonical({**altered(), "more": 1}), "unknown field `more`"),
        (canonical(altered(version=3)), r"\$.receipt.version"),
        (canonical(altered(version=1)), "version 1, found one - at r, found"),
        (canonical(altered(format="other")), r"\$.receipt.format"),
        (canonical(altered(round="7")), r"\$.receipt.round"),
        (canonical(altered(round=True)), r"\$.receipt.round"),
        (canonical(altered(round=0)), "found 0 - at r, round"),
        (canonical(altered(found=None)), r"\$.receipt.found"),
        (canonical(altered(found=[])), "found none - at r, found"),
        (canonical(altered(found=[1])), r"\$.receipt.found"),
        (
            canonical(altered(purged="2026-01-31T12:00:59Z")),
            "after it was applied, .* - at r, purged",
        ),
        (canonical(altered(applied="2026-01-31T11:59:59Z")), "after it was received, .* - at r, applied"),
        (canonical(altered(received="2026-01-31T12:01:00.1Z")), "after it was received, .* - at r, applied"),
        (canonical(altered(what=[1])), r"\$.receipt.what"),
        (canonical(altered(state="done")), r"\$.receipt.state"),
        (canonical(altered(state="received")), "found one - at r, applied"),
        (canonical(altered(stream="A1")), "found 'A1' - at r, stream"),
        (canonical(altered(request="")), "found '' - at r, request"),
        (canonical(altered(received="2026-02-30T12:00:00Z")), "at r, received"),
        (canonical(altered(purged="2026-01-31T12:02:00+01:00")), "at r, purged"),
        (canonical({**altered(), "signature": "00"}), "expected 128 hexadecimal digits.*at r, signature"),
        (canonical({**altered(), "public_key": "zz" * 32}), "expected 64 hexadecimal digits.*at r, public_key"),
        (b"not json", "expected JSON"),
        (b"[]", "expected a receipt"),
        (b"", "expected JSON"),
        (b'"\xff"', "expected UTF-8, found byte 0xff at 1"),
        (b" " * (LIMIT + 1), f"at most {LIMIT} bytes, found {LIMIT + 1}"),
        (json.dumps(altered(), indent=1).encode(), "expected canonical JSON"),
        (sign(RECEIPT, SECRET)[:-1], "expected canonical JSON"),
        (sign(RECEIPT, SECRET) + b"\n", "expected canonical JSON"),
        (sign(RECEIPT, SECRET).replace(b'{"public', b'{"public_key":"00","public', 1), "expected canonical JSON"),
    ],
)
def test_what_is_no_receipt_is_refused(content, message):
    with pytest.raises(InputError, match=message):
        verify(content, place="r")


def test_what_cannot_be_verified_is_not_signed():
    with pytest.raises(InputError, match="at receipt, received"):
        sign(msgspec.structs.replace(RECEIPT, received="yesterday"), SECRET)
    with pytest.raises(InputError, match=f"at most {LIMIT} bytes"):
        sign(msgspec.structs.replace(RECEIPT, what=["x" * LIMIT]), SECRET)
    with pytest.raises(InputError, match="a secret of 32 bytes"):
        sign(RECEIPT, b"short")
