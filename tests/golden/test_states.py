"""States of small streams, byte by byte: how records, texts, ids, subjects and missing values are packed is frozen."""

import hashlib
import warnings

import pytest

import retroact as ra

RECORDS = [
    ({"country": "DE", "amount": 12.5, "age": 31, "at": [0.5, -0.25]}, "o-1", "u17"),
    ({"country": "Österreich", "amount": 0, "at": [0, 0]}, None, "u17"),
    ({"country": "DE", "amount": 500, "age": 0, "at": [-1, 0]}, None, None),
    ({"country": "", "amount": 499.99, "age": 120, "at": [0.25, 0.25]}, "é", "u18"),
]
PACKED = {
    0: "c69a8e8a96ef5f8b0770ba1f1889eed853f2bfbb5a192c2d66a49d82eff3ccef",
    1: "0c416caca555b89265a41643e62a26db2937373ae7f28919817ede98ee16c5b3",
    2: "d05050455ff113df87cab353bd3fdd0bc25de07657c9df34ebf30d0553a14513",
    3: "2b23f09020ceb5e7c6a934d85c0b5e55719936b2e0fd6fab73f4af1bdffbbb72",
    4: "edb3e78d4df8633bcb758bb9c5eb12399d31434b9d6ce47b295b216514cb9aeb",
}


def state(count):
    schema = {
        "country": ra.Text(),
        "amount": ra.Number(0, 500, step=0.01),
        "age": ra.Integer(0, 120, missing="skip"),
        "at": ra.Vector(2, radius=1, step=0.25),
    }
    stream = ra.Stream(
        schema, {"n": ra.Count(noise="tree")}, epsilon=1.0, horizon=8, law="laplace", key=ra.Key.for_testing(1)
    )
    for record, id, subject in RECORDS[:count]:
        stream.add(record, id=id, subject=subject)
        stream.close_round()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ra.stream.HorizonWarning)
        while stream.round < 7:
            stream.close_round()
    return stream.state()


@pytest.mark.parametrize("count", PACKED)
def test_the_state_of_a_few_records_has_the_bytes_of_old(count):
    assert hashlib.sha256(state(count)).hexdigest() == PACKED[count]
