"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import retroact.schema

NAMES = [module.name for module in pkgutil.iter_modules(retroact.schema.__path__)]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"retroact.schema.{name}"))
    assert result.failed == 0
