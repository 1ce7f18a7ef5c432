"""Kinds of other packages are loaded when they are named, and only those that state what they are."""

import sys

import pytest

from retroact.errors import InputError
from retroact.params import Parameters

GROUP = "retroact.tests"
BOX = """
from retroact_family import Shape
class Box(Shape):
    kind, theorem, version = "box", "Theorem 1", "1"
    def __init__(self, width): self.width = width
"""


@pytest.fixture
def family(monkeypatch):
    """A family of its own, that packages can import."""

    class Shape(Parameters):
        kinds, group = {}, GROUP

    class Disc(Shape):
        kind = "disc"

        def __init__(self, radius):
            self.radius = radius

    monkeypatch.setitem(sys.modules, "retroact_family", type(sys)("retroact_family"))
    sys.modules["retroact_family"].Shape = Shape
    return Shape


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes packages that consist of one file."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(module, text, **kinds):
        (tmp_path / f"{module}.py").write_text(text)
        folder = tmp_path / f"{module}-7.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 7.5\n")
        lines = [f"{kind} = {module}:{name}" for kind, name in kinds.items()]
        (folder / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


def test_a_kind_is_loaded_when_it_is_named(family, install):
    install("boxes", BOX, box="Box")
    assert family.from_spec({"type": "disc", "radius": 1}, "").radius == 1
    assert "boxes" not in sys.modules
    assert family.from_spec({"type": "box", "width": 3}, "").width == 3
    assert type(family.from_spec({"type": "box", "width": 3}, "")).__module__ == "boxes"


def test_a_kind_that_there_is_already_is_refused(family, install):
    install("boxes", BOX, box="Box")
    install("discs", BOX.replace("box", "disc"), disc="Box")
    with pytest.raises(InputError, match=r"'disc' from discs:Box, which tests\.test_entry_points has already"):
        family.from_spec({"type": "box", "width": 3}, "")
    with pytest.raises(TypeError, match="has the kind 'disc' already"):
        __import__("discs")
    assert family.from_spec({"type": "disc", "radius": 1}, "").radius == 1


def test_two_packages_with_one_kind_are_refused(family, install):
    install("boxes", BOX, box="Box")
    install("crates", BOX, box="Box")
    with pytest.raises(InputError, match="one package with the kind 'box', got boxes:Box and crates:Box"):
        family.from_spec({"type": "box", "width": 3}, "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BOX.replace('"Theorem 1"', '""'), "to state its theorem, got none"),
        (BOX.replace('"1"', "2"), "to state its version, got none"),
        (BOX.replace('"box"', '"crate"'), "a class with kind = 'box'"),
        (
            "class Box: kind, theorem, version = 'box', 'Theorem 1', '1'",
            "to be one of those that retroact.tests is for",
        ),
        ("Box = 7", "a class with kind = 'box', got 7"),
        ("import nothing_of_that_name", "to load, got ModuleNotFoundError"),
    ],
)
def test_what_is_not_what_it_says_is_refused_each_time(family, install, text, told):
    install("boxes", text, box="Box")
    for _ in range(2):
        with pytest.raises(InputError, match=told):
            family.from_spec({"type": "box", "width": 3}, "")


def test_a_kind_that_nobody_has_is_told_with_those_that_there_are(family, install):
    install("boxes", BOX, box="Box")
    with pytest.raises(InputError, match="expected one of disc, got 'disk' \\(did you mean 'disc'\\?\\)"):
        family.from_spec({"type": "disk", "radius": 1}, "")
