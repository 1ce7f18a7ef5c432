"""`holds` says before the end of a round what is there after it."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

import retroact as ra

IDS, SUBJECTS = "abc", ["u1", "u2", None]
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(IDS), st.sampled_from(SUBJECTS), st.sampled_from([None, 1, 9])),
    st.tuples(st.just("delete"), st.sampled_from(IDS)),
    st.tuples(st.just("erase"), st.sampled_from(SUBJECTS[:2]), st.booleans()),
    st.tuples(st.just("close")),
)


def carry_out(stream, operation, *what):
    if operation == "add":
        id, subject, stamp = what
        stream.add({"age": 31}, id=id, subject=subject, stamp=stamp)
    elif operation == "delete":
        stream.delete(id=what[0])
    elif operation == "erase" and what[1]:
        stream.erase(sha256=sha256(what[0].encode()).digest())
    elif operation == "erase":
        stream.erase(subject=what[0])
    else:
        stream.close_round()


@given(st.lists(OPERATIONS, max_size=12))
def test_what_is_held_now_is_what_is_left_by_the_round(operations):
    stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=99)
    for operation in operations:
        carry_out(stream, *operation)
    expected = stream.holds([*IDS])
    erased = stream.holds(subject=SUBJECTS[:2])
    stream.close_round()
    assert stream.holds([*IDS]) == expected
    left = stream.holds(subject=SUBJECTS[:2])
    assert all(before or not after for before, after in zip(erased, left, strict=True))
    assert stream.holds(IDS[0]) == expected[:1]


def test_a_subject_that_waits_for_its_erasure_has_none():
    stream = ra.Stream({"age": ra.Integer(0, 120)}, {"people": ra.Count()}, epsilon=1.0, horizon=99)
    stream.add({"age": [31, 44, 45]}, subject=["u1", "u2", "u3"])
    assert stream.holds(subject=["u1", "u2", "u4"]) == [True, True, False]
    stream.erase(subject="u1")
    stream.erase(sha256=sha256(b"u2").digest())
    assert stream.holds(subject=["u1", "u2", "u3"]) == [False, False, True]
    stream.close_round()
    assert stream.holds(subject=["u1", "u2", "u3"]) == [False, False, True]
