"""Pictures of centres: they parse, discs are as large as the weights, nothing is out of its place or unescaped."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import retroact as ra
from retroact.report.cluster_picture import MOST_POINTS, PALETTE
from retroact.statistics.clusters.centres import Centres

SVG = "{http://www.w3.org/2000/svg}"


def centres(dimension=2, count=4, **changes):
    """Made up: weights 100, 200, 300, ... and places that differ in every coordinate."""
    rng = np.random.default_rng(dimension)
    given = {
        "centres": rng.uniform(-8, 8, (count, dimension)),
        "weights": 100.0 * np.arange(1, count + 1),
        "columns": tuple("xyzuvw"[:dimension]),
        "weight_errors": np.full(count, 30.0),
        "records": 100.0 * count * (count + 1) / 2,
        "cost": 1234.5,
        "cost_error": 67.8,
        "centre": np.zeros(dimension),
        "radius": 10.0,
        "scale": np.ones(dimension),
    }
    return Centres(**(given | changes))


def parts(picture, tag, kind=None):
    found = ElementTree.fromstring(picture).iter(SVG + tag)
    return [one for one in found if kind is None or one.get("class") == kind]


def texts(picture, kind=None):
    return [one.text or "" for one in parts(picture, "text", kind)]


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def dots(picture):
    """How many points there are in each colour."""
    return {one.get("stroke"): one.get("d").count("h0") for one in parts(picture, "path", "dots")}


def test_what_a_stream_publishes_can_be_drawn():
    rng = np.random.default_rng(1)
    points = np.clip(np.concatenate([rng.normal(-0.5, 0.1, (2000, 2)), rng.normal(0.4, 0.1, (3000, 2))]), -1, 1)
    stream = ra.Stream(
        {"p": ra.Vector(2, radius=2, step=2**-10)}, {"c": ra.KMeans("p", 2)},
        epsilon=1.0, delta=1e-6, horizon=15, key=ra.Key.for_testing(1),
    )  # fmt: skip
    stream.add({"p": points})
    found = stream.close_round()["c"].value
    picture = found.picture(points)
    assert picture == found.picture(points)
    assert len(parts(picture, "circle", "disc")) == 2
    assert sum(dots(picture).values()) == MOST_POINTS
    assert {"p[0]", "p[1]"} < set(texts(picture))


def test_a_disc_is_as_large_as_its_weight_and_its_ring_one_error_larger():
    picture = centres().picture()
    discs, rings = (parts(picture, "circle", kind) for kind in ("disc", "ring"))
    assert [disc.get("fill") for disc in discs] == list(PALETTE[3::-1])
    # Radii are rounded to tenths of a pixel.
    units = [
        numbers(disc, "r")[0] / math.sqrt(weight) for disc, weight in zip(discs, (400, 300, 200, 100), strict=True)
    ]
    assert units == pytest.approx([units[0]] * 4, abs=0.006)
    for ring, weight in zip(rings, (400, 300, 200, 100), strict=True):
        assert numbers(ring, "r")[0] == pytest.approx(units[0] * math.sqrt(weight + 30), abs=0.2)
    assert parts(centres(weight_errors=np.zeros(0)).picture(), "circle", "ring") == []


def test_labels_have_numbers_and_weights_and_are_not_on_a_disc():
    picture = centres(count=9).picture()
    labels = parts(picture, "text", "halo")
    assert sorted(int(label.text.split()[-1]) for label in labels) == [100 * i for i in range(1, 10)]
    for label in labels:
        x, y = numbers(label, "x", "y")
        for disc in parts(picture, "circle", "disc"):
            cx, cy, r = numbers(disc, "cx", "cy", "r")
            assert math.hypot(max(x - cx, cx - x - 6 * len(label.text), 0), cy - y + 4) > r
    small = centres(weights=np.array([1.0, 2.0, 3.0, 1e6])).picture()
    assert {"1: 1", "2: 2", "3: 3", "1,000,000"} == set(texts(small, "halo"))


def test_everything_is_inside_the_frame():
    heavy = centres(1, weights=1e11 * np.arange(1, 5), weight_errors=np.zeros(0), radius=None)
    for found in (
        heavy,
        centres(),
        centres(count=20),
        centres(1),
        centres(count=1),
        centres(scale=np.array([1.0, 300.0])),
    ):
        picture = found.picture()
        wide, high = numbers(parts(picture, "rect", "frame")[0], "width", "height")
        for disc in parts(picture, "circle", "disc"):
            x, y, r = numbers(disc, "cx", "cy", "r")
            assert r <= x <= wide - r
            assert r <= y <= high - r
        for label in parts(picture, "text", "halo"):
            x, y = numbers(label, "x", "y")
            assert 0 <= x <= wide - 6 * len(label.text)
            assert 8 <= y <= high


def test_axes_are_in_the_units_of_the_columns():
    found = centres(centres=np.array([[0.0, 0.0], [6.0, 4.0]]), weights=np.array([5.0, 5.0]), weight_errors=np.zeros(0))
    picture = found.picture()
    (x0, y0), (x6, y4) = (numbers(disc, "cx", "cy") for disc in parts(picture, "circle", "disc"))
    assert (x6 - x0) / 6 == pytest.approx((y0 - y4) / 4, abs=0.1)  # to scale
    labels = [one for one in parts(picture, "text", "tick") if re.fullmatch(r"−?\d+(\.\d)?", one.text)]
    for side, anchor in enumerate(("middle", "end")):
        ticks = [one for one in labels if one.get("text-anchor") == anchor]
        assert len(ticks) >= 3
        for tick in ticks:
            value = float(tick.text.replace("−", "-"))
            x, y = numbers(tick, "x", "y")
            at, expected = (x, x0 + value * (x6 - x0) / 6) if side == 0 else (y - 4, y0 - value * (y0 - y4) / 4)
            assert at == pytest.approx(expected, abs=0.3)


def test_names_are_escaped():
    picture = centres(columns=("<x>", 'a & "b"\x01'), notes=("a < b & c",)).picture()
    assert "<x>" not in picture
    assert "\x01" not in picture
    assert {"<x>", 'a & "b"�', "a < b & c"} < set(texts(picture))
    long = centres(columns=("x" * 100, "y")).picture()
    assert "x" * 59 + "…" in texts(long)


def test_one_column_is_drawn_on_a_line():
    found = centres(1)
    picture = found.picture(np.linspace(-9, 9, 50)[:, None])
    assert picture == found.picture(np.linspace(-9, 9, 50)[:, None], axes=(0,))
    assert len({disc.get("cy") for disc in parts(picture, "circle", "disc")}) == 1
    assert sum(dots(picture).values()) == 50
    assert len(parts(picture, "path", "ball")) == 1
    # A single column of several, too.
    assert "z" in texts(centres(3).picture(axes=[2]))


def test_columns_are_chosen_and_a_vector_has_numbers():
    assert texts(centres(5).picture(axes=(1, 3))).count("u") == 1
    found = centres(5, columns=("p",))
    picture = found.picture(axes=(3, 1))
    assert {"p[1]", "p[3]"} < set(texts(picture))
    assert len({p for axes in ((0, 1), (1, 0), (1, 3)) for p in [found.picture(axes=axes)]}) == 3
    # Points go to the nearest centre in all coordinates, not just in those that are drawn.
    deep = centres(3, 2, centres=np.array([[0.0, 0.0, 5.0], [1.0, 1.0, -5.0]]))
    assert dots(deep.picture(np.tile([0.1, 0.1, -4.0], (7, 1)))) == {PALETTE[1]: 7}


@pytest.mark.parametrize("axes", [(0, 2), (-1, 0), (0, 0), (), (0, 1, 0), "xy", 1, (0, None)])
def test_wrong_axes_are_refused(axes):
    with pytest.raises(ra.InputError, match="from 0 to 1") as caught:
        centres().picture(axes=axes)
    assert caught.value.place == "axes"
    with pytest.raises(ra.InputError, match="from 0 to 0"):
        centres(1).picture(axes=(1,))


def test_a_few_thousand_points_are_drawn_evenly():
    points = np.random.default_rng(3).uniform(-8, 8, (30_001, 2))
    picture = centres().picture(points)
    assert sum(dots(picture).values()) == MOST_POINTS
    assert len(picture) < 100_000
    assert f"dots: {MOST_POINTS:,} of 30,001 points of your own, which are not private" in texts(picture)
    assert sum(dots(centres().picture(points[:17])).values()) == 17
    assert dots(centres().picture(points[:0])) == {}
    with pytest.raises(ra.InputError, match="2 coordinates"):
        centres().picture(points[:, :1])


def test_caption_and_notes():
    long = "the radius looks loose: " + "the records are near the centre and noise grows with it " * 4
    picture = centres(notes=(long, "second")).picture()
    assert "about 1,000 records; cost 1,234 ± 68" in texts(picture)
    warnings = texts(picture, "warning")
    assert " ".join(warnings[:-1]) == long.strip()
    assert warnings[-1] == "second"
    high = float(re.search(r'viewBox="0 0 720 (\S+)"', picture)[1])
    assert high > max(float(one.get("y")) for one in parts(picture, "text", "warning"))
    assert "about 1,000 records" in texts(centres(cost=None, cost_error=None, objective="medians").picture())
    assert texts(centres(objective="medians").picture(), "title") == ["4 centres by k-median"]
    assert texts(centres(count=1).picture(), "title") == ["1 centre by k-means"]
    assert any(
        "cost (1.23 ± 0.12) × 10¹²" in text for text in texts(centres(cost=1.23e12, cost_error=1.2e11).picture())
    )


def test_the_ball_is_outlined_or_said_to_be_out_of_view():
    near = centres().picture()
    (ball,) = parts(near, "ellipse", "ball")
    assert ball.get("rx") == ball.get("ry")
    assert not any("out of view" in text for text in texts(near))
    loose = centres(radius=1e5).picture()
    assert parts(loose, "ellipse") == []
    assert "ball of radius 100,000 around the centre, out of view" in texts(loose)
    # Partly in view: the frame cuts it off. A single centre has no other measure than the ball.
    assert parts(centres(radius=11.0).picture(), "ellipse", "ball")
    assert parts(centres(count=1, radius=1e5).picture(), "ellipse", "ball")


def test_uneven_columns_are_stretched_and_that_is_said():
    found = centres(
        centres=np.array([[0.0, 20.0], [5e4, 30.0], [1e5, 70.0]]), weights=np.ones(3), weight_errors=np.ones(3)
    )
    picture = replace(found, radius=1e5).picture()
    assert "not to scale: distances are mostly along x" in texts(picture)
    heights = [numbers(disc, "cy")[0] for disc in parts(picture, "circle", "disc")]
    assert max(heights) - min(heights) > 100
    told = replace(found, radius=1e5, scale=np.array([1000.0, 1.0])).picture()
    assert not any("scale" in text for text in texts(told))


@pytest.mark.parametrize(
    "found",
    [
        centres(count=0),
        centres(count=0, centre=None, radius=None, scale=None),
        centres(count=1, centre=None, radius=None, scale=None, weight_errors=np.zeros(0)),
        centres(weights=np.zeros(4)),
        centres(weights=np.array([-3.0, 0.0, 1.0, 2.0])),
        centres(centres=np.ones((4, 2)) * 1e-9, radius=1e-8),
        centres(centres=np.array([[1e12, 1.0], [1e12 + 1, 2.0], [1e12 + 3, 3.0], [1e12, 5.0]])),
    ],
)
def test_odd_ones_are_drawn_as_well(found):
    for points in (None, np.array([[1.0, 2.0], [2.0, 2.0]])):
        picture = found.picture(points)
        assert len(parts(picture, "circle", "disc")) == len(found)
        assert "nan" not in picture
        assert "inf" not in picture
