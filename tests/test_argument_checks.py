"""What an argument must be: what is taken, what is refused, and in which words."""

from fractions import Fraction

import numpy as np
import pytest

from retroact import InputError
from retroact.checks import choice, flag, integer, is_int, is_integral, is_number, number, positive_int


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.int64(2)])
def test_what_is_no_whole_number_of_python(value):
    assert not is_int(value)
    with pytest.raises(InputError, match="expected a whole number, got"):
        integer(value, "k")


def test_integers_of_numpy_are_integral_but_no_python_ints():
    assert is_integral(np.uint8(2))
    assert is_integral(2)
    assert not is_integral(True)
    assert not is_integral(np.bool_(True))


@pytest.mark.parametrize("value", [0, -3, 1.5, True])
def test_positive_integers(value):
    assert positive_int(1, "k") == 1
    with pytest.raises(InputError, match=r"^expected a whole number from 1 on, got .* - at k$"):
        positive_int(value, "k")


def test_the_bounds_of_integers_are_allowed():
    assert [integer(value, "k", least=2, most=3) for value in (2, 3)] == [2, 3]
    for value in (1, 4):
        with pytest.raises(InputError, match=rf"^expected two or three, got {value} - at k$"):
            integer(value, "k", least=2, most=3, expected="two or three")


def test_numbers_and_their_bounds():
    assert number(Fraction(1, 2), "p", "a share", above=0, below=1) == Fraction(1, 2)
    assert [number(value, "p", "a share", least=0, most=1) for value in (0, 1.0)] == [0, 1.0]
    for value in (0, 1, float("nan"), True, "0.5", None, float("inf")):
        with pytest.raises(InputError, match="expected a share, got"):
            number(value, "p", "a share", above=0, below=1)
    assert not is_number(True)
    assert is_number(0.5)
    assert not is_number("0.5")


def test_a_number_without_bounds_is_no_nan():
    with pytest.raises(InputError, match="expected a number, got nan"):
        number(float("nan"), "p", "a number")


def test_flags_and_choices():
    assert flag(False, "clip") is False
    assert choice("a", ("a", "b", "c"), "x") == "a"
    with pytest.raises(InputError, match=r"^expected true or false, got 1 - at clip$"):
        flag(1, "clip")
    with pytest.raises(InputError, match=r"^expected 'a', 'b' or 'c', got 'd' - at x$"):
        choice("d", ("a", "b", "c"), "x")
    with pytest.raises(InputError, match=r"^expected 'a', got 'd' - at x$"):
        choice("d", ("a",), "x")
