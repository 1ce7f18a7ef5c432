"""What every store has to do, in a folder and in a database alike."""

import secrets

import pytest

from retroact.errors import InputError, VerificationError
from retroact.store.canonical_blocks import Edit
from retroact.store.tables import INBOX, Prepared, Request, Stored

BIG = (1 << 63) - 1
BLOCKS = [((0, 0), b"first"), ((3, 7), b""), ((3, BIG), bytes(range(256)) * 80), ((BIG, 1), b"\\x00?%s\x00")]
LINE = Stored(1, "count", b'{"round":1}', b"\x00\x01")


def test_a_fresh_store_is_empty(store):
    assert (store.sealed, store.committed) == (0, 0)
    assert store.places() == store.blocks() == store.inbox() == store.releases() == store.requests() == []
    assert store.state("stream") is None
    assert store.note("anything") is None
    assert store.sources() == {}
    assert store.erased() == set()
    assert store.request(b"none") is None
    assert store.read_blocks([]) == []


def test_what_is_found_lasts(store, opened):
    store.initialise("5eed")
    store.close()
    again = opened()
    assert (again.state("format"), again.state("stream")) == (str(again.newest), "5eed")
    with pytest.raises(InputError):
        again.initialise("another")
    assert again.state("stream") == "5eed"


def test_nothing_is_made_by_looking(opened):
    with pytest.raises(InputError, match=r"expected the (folder|schema) of a stream, got none"):
        opened()
    with pytest.raises(InputError, match="got none"):
        opened()
    opened(create=True).close()
    opened().close()
    opened(create=True).close()


def test_a_second_opener_is_refused(store, opened, impatient):
    with pytest.raises(InputError, match="another process has this stream open"):
        opened()
    store.receive([(1, b"still mine")])
    store.close()
    assert opened().inbox() == [b"still mine"]


def test_the_inbox_keeps_its_order(store, opened):
    entries = {3: b"c", 1: bytes(range(256)), 1 << 40: b"", 2: secrets.token_bytes(1 << 20)}
    for number, entry in entries.items():
        store.receive([(number, entry)])
    store.close()
    store = opened()
    assert store.inbox() == [entries[number] for number in sorted(entries)]
    with pytest.raises(InputError):
        store.receive([(3, b"again")])
    assert len(store.inbox()) == 4
    store.forget_unsealed()
    store.replace_inbox([])
    assert store.inbox() == []


def test_several_entries_are_received_together_or_not_at_all(store):
    with pytest.raises(InputError):
        store.receive([(1, b"one"), (1, b"another")])
    assert store.inbox() == []
    store.receive([(1, b"one"), (2, b"another")])
    assert store.inbox() == [b"one", b"another"]


def test_a_seal_changes_blocks_and_empties_the_inbox(store, opened):
    store.receive([(1, b"entry")])
    store.seal(1, Edit([], BLOCKS))
    store.close()
    store = opened()
    assert (store.sealed, store.inbox()) == (1, [])
    assert store.blocks() == BLOCKS
    assert store.places() == [place for place, _ in BLOCKS]
    backwards = BLOCKS[::-1]
    assert store.read_blocks([place for place, _ in backwards]) == [records for _, records in backwards]
    store.seal(2, Edit([(3, 7), (0, 0)], [((0, 0), b"other")]))
    assert (store.sealed, store.blocks()) == (2, [((0, 0), b"other"), *BLOCKS[2:]])
    store.seal(3, Edit([], []))
    assert store.sealed == 3
    assert all(type(records) is bytes for _, records in store.blocks())


def test_a_block_that_is_not_there(store):
    store.seal(1, Edit([], BLOCKS))
    with pytest.raises(VerificationError, match=r"expected a block at \(3, 8\), got none"):
        store.read_blocks([(3, 7), (3, 8)])


def test_many_blocks(store):
    blocks = [((stamp, mark), secrets.token_bytes(50)) for stamp in range(30) for mark in range(40)]
    store.seal(1, Edit([], blocks))
    assert store.blocks() == blocks
    assert store.read_blocks([place for place, _ in blocks]) == [records for _, records in blocks]
    store.seal(2, Edit([place for place, _ in blocks[::2]], []))
    assert store.blocks() == blocks[1::2]


def test_a_seal_that_fails_changes_nothing(store):
    store.seal(1, Edit([], BLOCKS))
    store.receive([(1, b"entry")])
    with pytest.raises(InputError):
        store.seal(2, Edit([(3, 7)], [((5, 5), b"new"), ((0, 0), b"taken")]))
    assert (store.sealed, store.blocks(), store.inbox()) == (1, BLOCKS, [b"entry"])


def test_a_transaction_ends_as_a_whole(store):
    def fail():
        with store.transaction("data"):
            store.insert(INBOX, [(1, b"entry")])
            assert store.inbox() == [b"entry"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.inbox() == []
    store.receive([(1, b"later")])
    assert store.inbox() == [b"later"]


def test_notes(store, opened):
    store.write_notes({"a": "1", "b": "zwölf ? %s 'quoted'"})
    store.write_notes({"a": "2"})
    store.write_notes({})
    store.close()
    store = opened()
    assert (store.note("a"), store.note("b")) == ("2", "zwölf ? %s 'quoted'")


def test_prepare_keeps_sources_requests_and_subjects(store, opened):
    request = Request(b"\x00name", b"content", "received", "2025-01-01T00:00:00Z")
    earlier = Request(b"other", b"", "received", "2024-01-01T00:00:00Z")
    store.prepare([Prepared(1, {"orders.csv": ((5, 1 << 50), b"x"), "b": ((), b"")}, [request], [b"\x01", b"\x02"])])
    # the round is not sealed: what was prepared for it does not count yet
    assert store.sources() == {}
    store.seal(1, Edit([], []))
    assert store.sources() == {"orders.csv": (5, 1 << 50), "b": ()}
    store.prepare([Prepared(2, {"orders.csv": ((6,), b"y")}, [request, earlier], [b"\x02", b"\x03"])], {"spent": "1"})
    assert store.sources() == {"orders.csv": (5, 1 << 50), "b": ()}
    store.prepare([Prepared(2, {"orders.csv": ((7,), b"z")})])
    store.seal(2, Edit([], []))
    store.close()
    store = opened()
    assert store.sources() == {"orders.csv": (7,), "b": ()}
    assert store.delivered() == [("orders.csv", b"x"), ("orders.csv", b"z")]
    assert store.requests() == [earlier._replace(prepared=2), request._replace(prepared=2)]
    assert store.request(b"\x00name") == request._replace(prepared=2)
    assert store.erased() == {b"\x01", b"\x02", b"\x03"}
    assert store.note("spent") == "1"


def test_a_request_goes_from_received_to_purged(store):
    request = Request(b"name", b"content", "received", "day 1")
    store.prepare([Prepared(4, {}, [request])])
    assert not store.unpurged
    store.commit(4, [], "day 2")
    assert store.unpurged
    assert store.request(b"name") == request._replace(state="applied", round=4, applied="day 2", prepared=4)
    store.purged("day 3")
    assert not store.unpurged
    assert store.request(b"name") == Request(b"name", b"content", "purged", "day 1", 4, "day 2", "day 3", 4)
    store.commit(5, [], "day 4")
    store.purged("day 4")
    assert store.requests()[0].purged == "day 3"


def test_a_request_that_no_round_comes_of(store, opened):
    request = Request(b"name", b"content", "amending", "day 1", outcome=b"sealed")
    store.seal(4, Edit([], BLOCKS))
    store.receive([(1, b"entry")])
    store.prepare([Prepared(5, {}, [request], [b"\x01"])])
    store.amend(Edit([(3, 7)], [((5, 5), b"new")]), [b"one", b"two"])
    assert (store.sealed, store.inbox()) == (4, [b"one", b"two"])
    assert store.blocks() == [*BLOCKS[:1], BLOCKS[2], ((5, 5), b"new"), BLOCKS[3]]
    store.applied_without_round(5, "day 2")
    store.forget_unsealed(over=True)
    store.close()
    store = opened()
    assert store.requests() == [request._replace(state="applied", applied="day 2", prepared=5)]
    assert (store.erased(), store.unpurged) == ({b"\x01"}, True)
    store.replace_inbox([b"three"])
    assert store.inbox() == [b"three"]
    store.replace_inbox([])
    assert store.inbox() == []


def test_a_commit_is_for_ever(store, opened):
    store.commit(1, [LINE], "now")
    store.commit(1, [LINE], "later")
    for other in (LINE._replace(line=b"other"), LINE._replace(exact=b"other")):
        with pytest.raises(VerificationError, match="round 1 of count was released on other data"):
            store.commit(1, [Stored(1, "also", b"", b""), other], "later")
    store.close()
    store = opened()
    assert (store.committed, store.releases()) == (1, [LINE])


def test_releases_come_in_order(store):
    names = ["b", "a", "Z", "ä", "_"]
    for round in (2, 1, 3):
        store.commit(round, [Stored(round, name, name.encode(), b"") for name in names], "now")
    assert store.committed == 3
    found = [(release.round, release.statistic) for release in store.releases()]
    assert found == [(round, name) for round in (1, 2, 3) for name in sorted(names)]
    assert {release.round for release in store.releases(2)} == {2, 3}
    assert {release.round for release in store.releases(2, 2)} == {2}
    assert store.releases(4) == []


def test_scrub_and_purge_keep_what_is_alive(store):
    store.seal(1, Edit([], BLOCKS))
    store.receive([(1, b"entry")])
    store.seal(2, Edit([(0, 0)], []))
    store.receive([(2, b"later")])
    assert store.scrub()
    assert store.purge()
    assert store.residue() == []
    assert (store.blocks(), store.inbox()) == (BLOCKS[1:], [b"later"])


def test_an_erasure_says_how_far_it_reached(store):
    for text in (*store.reached, *store.beyond):
        assert text
        assert text == text.strip()
    assert any("file system" in text for text in store.beyond)
    assert any("source" in text for text in store.beyond)
    assert store.where
