"""Ids and subjects beside a batch: one for each record, and never one text for all."""

import pyarrow as pa
import pytest

import retroact as ra
from retroact.errors import InputError

SCHEMA = {"country": ra.Category(["DE", "FR"]), "amount": ra.Number(0, 500)}
ONE = {"country": "DE", "amount": 1}


def made(**more):
    return ra.Stream(SCHEMA, {"orders": ra.Count()}, epsilon=1.0, key=ra.Key.for_testing(1), **more)


@pytest.mark.parametrize("role", ["id", "subject"])
@pytest.mark.parametrize(
    "data",
    [
        pa.table({"country": ["DE", "FR"], "amount": [1, 2]}),
        pa.table({"country": ["DE"], "amount": [1]}),
        {"country": ["DE"], "amount": [1]},
        [ONE],
        [ONE, ONE],
        [],
    ],
    ids=["frame", "frame of one row", "columns of one row", "list of one", "list", "empty list"],
)
def test_one_text_for_anything_but_a_single_dict_is_refused(data, role):
    stream = made(horizon=5)
    with pytest.raises(InputError, match=rf"such as {role}=frame\['tailnum'\].*columns={{'{role}': 'tailnum'}}"):
        stream.add(data, **{role: "tailnum"})
    with pytest.raises(InputError, match="one for each record"):
        stream.delete([ONE], stamp=1, subject="tailnum")
    stream.add(ONE, **{role: "tailnum"})
    assert stream.close_round().applied.added == 1


def test_which_ids_hold_a_record():
    schema = {"age": ra.Integer(0, 120)}
    stream = ra.Stream(schema, {"people": ra.Count()}, epsilon=1.0, horizon=10)
    assert stream.holds(["a"]) == [False]
    stream.add({"age": [31, 44, 52]}, id=["a", "b", "c"], subject=["u1", "u2", "u3"])
    stream.add({"age": 60}, id="later", stamp=7)
    assert stream.holds(["a", "b", "later", "nobody"]) == [True, True, False, False]
    stream.close_round()
    stream.delete(id="b")
    stream.erase(subject="u3")
    stream.add([{"age": 60}, {"age": 61}], id=["d", "e"])
    assert stream.holds([*"abcde"]) == [True, False, False, True, True]
    stream.close_round()
    assert stream.holds([*"abcde"]) == [True, False, False, True, True]
    with pytest.raises(ra.InputError, match="expected either"):
        stream.holds()
    with pytest.raises(ra.InputError, match="got None"):
        stream.holds([None])
