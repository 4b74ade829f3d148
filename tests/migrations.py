"""Loads migrations, for tests of what they do with the rows that are stored."""

import importlib.util
from types import ModuleType

from tests.processes import ROOT


def load_migration(name: str) -> ModuleType:
    path = ROOT / "db" / "migrations" / "versions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"migration_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
