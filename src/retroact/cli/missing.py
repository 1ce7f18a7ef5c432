"""Erasures that found nothing: they are entered all the same, and the program ends with an exit code of its own."""

from __future__ import annotations

from retroact.errors import RetroactError


class MissingError(RetroactError):
    """No record was found of somebody who is to be erased. Nothing else went wrong."""

    exit_code = 5
