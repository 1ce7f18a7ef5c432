"""Stores and states from before crossfade noise became the default: three rounds, with and without a horizon, made by
the commit before, and the fourth round that it made of them."""

import base64
import json
import zlib
from pathlib import Path

import pytest

import retroact as ra

KEPT = json.loads((Path(__file__).parent / "before_crossfade.json").read_text(encoding="utf-8"))
KEY = ra.Key.for_testing(21)
SCHEMA = {"country": ra.Text(), "member": ra.Boolean(), "age": ra.Integer(0, 120)}
HORIZONS = {"a horizon": 300, "no horizon": None}


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


def specification(horizon):
    statistics = {
        "orders": ra.Count(), "age": ra.Mean("age"), "countries": ra.Histogram("country"),
        "by member": ra.GroupBy("member", ra.Count()), "recent": ra.Count(window=40),
        "ages": ra.Quantiles("age", [0.5]), "past": ra.Restated(ra.Count(), [1]), "kinds": ra.Distinct("country"),
    }  # fmt: skip
    return ra.Specification(SCHEMA, statistics, epsilon=20.0, delta=1e-3, horizon=horizon, law="gaussian")


def happen(stream, round):
    for i in range(60):
        record = {"country": ("DE", "FR", "IT")[i * round % 3], "member": i % 2 == 0, "age": (i * 7 + round) % 90}
        stream.add(record, id=f"{round}-{i}" if i % 3 == 0 else None, subject=f"u{i % 5}")


def fourth(stream):
    happen(stream, 4)
    return [release.encode().decode() for release in stream.close_round().values()]


@pytest.mark.parametrize("kind", KEPT)
def test_a_store_keeps_its_noise(kind, tmp_path):
    folder, kept = tmp_path / "orders", KEPT[kind]
    folder.mkdir()
    for name, content in kept["files"].items():
        (folder / name).write_bytes(unpacked(content))
    (tmp_path / "fence").write_text(kept["fence"])
    with ra.Stream.open(folder, key=KEY, fence=tmp_path / "fence") as stream:
        assert not any("crossfade" in noise for noise in stream.specification.choice.noise.values())
        verified = stream.verify()
        assert (verified.ok, verified.first, verified.compared) == (True, 1, 24)
        assert fourth(stream) == kept["next"]


@pytest.mark.parametrize("kind", KEPT)
def test_a_state_goes_on_with_its_noise(kind):
    spec = specification(HORIZONS[kind])
    assert sum("crossfade" in noise for noise in spec.choice.noise.values()) >= 5
    stream = ra.Stream.from_state(spec, unpacked(KEPT[kind]["state"]), key=KEY)
    assert fourth(stream) == KEPT[kind]["next"]
