"""Errors a person can act on: what was found, where, and what was expected.

Each class carries the exit code that the command line ends with.
"""

from __future__ import annotations


class RetroactError(Exception):
    """The root of every error that Retroact raises on purpose."""

    exit_code = 1


class InputError(RetroactError, ValueError):
    """Something that was handed in is not what was declared; nothing has changed.

    >>> raise InputError("expected a number between 0 and 500, got 'x'", place="amount")
    Traceback (most recent call last):
    ...
    retroact.errors.InputError: expected a number between 0 and 500, got 'x' - at amount
    """

    exit_code = 2

    def __init__(self, message: str, *, place: str | None = None) -> None:
        self.message = message
        self.place = place
        super().__init__(message if place is None else f"{message} - at {place}")


class KeyReusedError(InputError):
    """A key was about to drive a second stream, which would put the same noise on two data sets."""


class ExhaustedError(RetroactError):
    """The horizon (or the budget) that was promised in advance is used up."""

    exit_code = 3


class VerificationError(RetroactError):
    """Something that must be equal, or must hold, does not."""

    exit_code = 4
