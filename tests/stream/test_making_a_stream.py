"""Making a stream: what is refused, headroom, keys, horizons and successors."""

import math
import pickle

import pytest

import retroact as ra
from support.order_streams import ORDER, SCHEMA, stream, totals

BAD_STREAMS = [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": -1}, "epsilon"), ({"epsilon": math.nan}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"), ({"delta": 1}, "delta"), ({"delta": -0.1}, "delta"), ({"delta": math.nan}, "delta"),
    ({"horizon": 0}, "horizon"), ({"horizon": -5}, "horizon"), ({"horizon": 2.5}, "horizon"), ({"window": 0}, "window"),
    ({"schema": {}}, "schema"), ({"schema": {"a": 5}}, "schema"), ({"statistics": {}}, "statistics"),
    ({"statistics": {"n": "count"}}, r"statistics\.n"), ({"statistics": {"": ra.Count()}}, "statistics"),
    ({"statistics": {"s": ra.Sum("nothing")}}, r"statistics\.s\.field"),
    ({"statistics": {"s": ra.Sum("country")}}, r"statistics\.s\.field"),
    ({"statistics": {"s": ra.GroupBy("country", ra.Count())}}, r"statistics\.s"),
    ({"statistics": {"s": ra.Count(where={"age": 500})}}, r"statistics\.s\.where\.age"),
    ({"statistics": {"s": ra.Count(where={"nothing": 5})}}, r"statistics\.s\.where"),
    ({"statistics": {"s": ra.Count(where={"country": {"min": "a"}})}}, r"statistics\.s\.where"),
    ({"weights": {"zz": 1}}, "weights"), ({"weights": {"orders": 0}}, r"weights\.orders"), ({"key": "secret"}, "key"),
    ({"statistics": {"n": ra.Count(noise="tree", window=3)}}, r"statistics\.n\.noise"),
    ({"horizon": None, "statistics": {"n": ra.Count(noise="tree")}}, r"statistics\.n\.noise"),
]  # fmt: skip


# Making a stream ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "place"), BAD_STREAMS)
def test_bad_streams(options, place):
    given = {"schema": SCHEMA, "statistics": {"orders": ra.Count()}, "epsilon": 1.0, "horizon": 10} | options
    with pytest.raises(ra.InputError, match=place):
        ra.Stream(**given)


@pytest.mark.parametrize("options", [{"every": 0}, {"every": 1.5}, {"window": -1}, {"noise": "white"}, {"noise": 5}])
def test_bad_options_of_a_statistic(options):
    with pytest.raises(ra.InputError, match=next(iter(options))):
        ra.Count(**options)


def test_headroom_is_proved_when_the_stream_is_made():
    schema = {"big": ra.Number(0, 10**12, step=0.001)}
    with pytest.raises(ra.InputError, match=r"64-bit integers after 4,611 records.*statistics\.sum"):
        stream(schema=schema, sum=ra.Sum("big"))
    coarse = stream(schema={"big": ra.Number(0, 10**12, step=10)}, sum=ra.Sum("big"))
    assert coarse.specification.capacity > 40_000_000


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_too_wide_for_64_bits_is_refused_when_the_stream_is_made(delta):
    with pytest.raises(ra.InputError, match=r"2\^55"):
        stream(schema={"big": ra.Number(0, 10**12, step=10)}, sum=ra.Sum("big"), epsilon=1e-9, delta=delta * 1e-6)


def test_a_key_drives_one_stream():
    key = ra.Key.generate()
    make = lambda: ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=5, key=key)  # noqa: E731
    make()
    with pytest.raises(ra.KeyReusedError, match="already drives a stream"):
        make()


def test_everything_in_the_specification_changes_the_noise():
    base = {"schema": SCHEMA, "statistics": {"n": ra.Count()}, "epsilon": 1.0, "delta": 1e-6, "horizon": 10}
    others = [
        {}, {"epsilon": 1.0000001}, {"delta": 2e-6}, {"horizon": 11}, {"statistics": {"m": ra.Count()}},
        {"statistics": {"n": ra.Count(where={"age": 3})}}, {"schema": {**SCHEMA, "age": ra.Integer(0, 121)}},
        {"statistics": {"n": ra.Count(), "s": ra.Sum("amount")}}, {"statistics": {"n": ra.Count(noise="bridge")}},
    ]  # fmt: skip
    noise = set()
    for change in others:
        s = ra.Stream(**(base | change), key=ra.Key.for_testing(1))
        releases = [next(iter(s.close_round().values())) for _ in range(2)]
        noise.add(tuple(release.numerators[0] / release.denominator for release in releases))
    assert len(noise) == len(others)


def test_nothing_secret_or_exact_in_texts():
    s = ra.Stream(SCHEMA, {"n": ra.Count()}, epsilon=1.0, horizon=5)
    s.add(ORDER, subject="u17")
    texts = [repr(s), repr(s.close_round()), repr(s.specification), str(s.plan())]
    assert not any("u17" in text or "secret" in text for text in texts)
    with pytest.raises(TypeError):
        pickle.dumps(s)


# Horizon --------------------------------------------------------------------------------------------------------------


def test_a_warning_at_four_fifths_and_an_error_at_the_end():
    s = stream(horizon=10)
    for _ in range(7):
        s.close_round()
    with pytest.warns(ra.HorizonWarning, match="round 8 of 10"):
        s.close_round()
    s.close_round()
    s.close_round()
    s.add(ORDER, id="late")
    before = s.round
    with pytest.raises(ra.ExhaustedError, match="all 10 promised rounds") as caught:
        s.close_round()
    assert caught.value.exit_code == 3
    assert "successor" in str(caught.value)
    assert s.round == before


def test_a_successor_goes_on_from_what_survives():
    s = stream(horizon=3, law="gaussian", orders=ra.Count(), recent=ra.Count(window=2))
    for _ in range(3):
        s.add(ORDER, subject="u1")
        s.close_round()
    after = s.successor(epsilon=0.5, delta=1e-6, horizon=5, key=ra.Key.for_testing(2))
    assert after.round == 4
    assert totals(after) == [3]
    after.erase(subject="u1")
    after.add(ORDER)
    released = after.close_round()
    assert released["orders"].round == 4
    assert totals(after) == [1]
    assert totals(after, "recent") == [1]
    assert after.guarantee.epsilon <= 1.5
    assert after.guarantee.delta == 2e-6
    assert "together with the streams before it" in after.guarantee.text
    spec, state, key = after.specification, after.state(), ra.Key.for_testing(2)
    with pytest.raises(ra.InputError, match="before"):
        ra.Stream.from_state(spec, state, key=key)
    again = ra.Stream.from_state(spec, state, key=key, before=after.before)
    assert again.guarantee == after.guarantee
    assert again.close_round().encode() == after.close_round().encode()
    again.add(ORDER)
    with pytest.raises(ra.InputError, match="open round"):
        again.state()


def test_what_the_open_round_holds_goes_with_the_successor():
    s = stream(horizon=1)
    s.close_round()
    s.add(ORDER, id="a")
    with pytest.raises(ra.ExhaustedError):
        s.close_round()
    after = s.successor(epsilon=1.0, delta=1e-6, horizon=5, key=ra.Key.for_testing(2))
    assert after.close_round().applied.added == 1
    assert totals(after) == [1]


def test_an_unknown_horizon_goes_on():
    s = ra.Stream({"age": ra.Integer(0, 120)}, {"n": ra.Count()}, epsilon=1.0, key=ra.Key.for_testing(1))
    for _ in range(30):
        s.close_round()
    assert s.plan()["n"].simultaneous is None
