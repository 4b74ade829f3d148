"""Modules that look as if they were not installed."""

import importlib
import importlib.util
import sys

import pytest

from db.imports import hide_modules

UNUSED = "this"


def test_a_hidden_module_can_be_imported_only_afterwards() -> None:
    assert UNUSED not in sys.modules
    with hide_modules(UNUSED):
        assert importlib.util.find_spec(UNUSED) is None
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(UNUSED)
    assert importlib.util.find_spec(UNUSED) is not None
    assert UNUSED not in sys.modules


def test_a_module_that_is_imported_already_is_not_hidden() -> None:
    with hide_modules("json"):
        assert importlib.import_module("json") is sys.modules["json"]
    assert "json" in sys.modules
