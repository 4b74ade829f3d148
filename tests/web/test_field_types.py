"""The form page knows the types of fields by one table."""

import re
from pathlib import Path

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.web import assets
from tests.web.module_runner import ModuleRunner

_REGISTRY = "form/controls/registry.js"
# The name of a type of JavaScript may be that of a type of field.
_TYPEOF = re.compile(r"""typeof [\w.]+ [=!]== "\w+\"""")
_LIST_ROWS = """({ FIELD_TYPES }) => Object.entries(FIELD_TYPES).map(([name, row]) =>
    [name, Boolean(row.check), Boolean(row.buildControl), Boolean(row.buildStatic)])"""


def _list_files() -> list[Path]:
    folder = assets._STATIC / "form"
    return [file for file in folder.rglob("*.js") if file != assets._STATIC / _REGISTRY]


def test_every_type_of_the_server_has_a_row(modules: ModuleRunner) -> None:
    rows = modules.evaluate(_REGISTRY, _LIST_ROWS)
    expected = [
        [kind.name, kind.has_value, kind.has_value, not kind.has_value]
        for kind in FIELD_TYPES.values()
    ]
    assert sorted(rows) == sorted(expected)


def test_only_the_table_knows_the_names_of_types() -> None:
    """What differs between types is a property of their rows."""
    name = rf"""["'](?:{"|".join(FIELD_TYPES)})["']"""
    comparison = re.compile(rf"[=!]==?\s*{name}|{name}\s*[=!]==?|case {name}|Set\(\[\s*{name}")
    lookup = re.compile(r"\bfield\??\.type\b")
    found = [
        f"{file.name}: {line.strip()}"
        for file in _list_files()
        for line in _TYPEOF.sub("", file.read_text(encoding="utf-8")).splitlines()
        if comparison.search(line) or lookup.search(line)
    ]
    assert found == []
