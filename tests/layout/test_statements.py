"""Where statements of the database stand, and which tables they write."""

import ast
import re
from functools import cache
from importlib import import_module

from db.base import Base
from tests.layout.sources import Module, find_area, is_within, read_modules

_WRITE = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)\b")
_STATEMENT = re.compile(r'"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s')
# One statement ends a conversation and stores its submission, or deletes all that a form has.
_FORMS = {"forms", "form_submissions", "form_conversations"}
_WITHOUT_TENANT = {"sql_without_tenant", "estimated_sql"}


def _owners() -> dict[str, str]:
    """Returns the area that owns each table: its model is in the file with the area's name."""
    return {
        mapper.class_.__tablename__: mapper.class_.__module__.rpartition(".")[2]
        for mapper in Base.registry.mappers
    }


def _modules_of_areas() -> list[tuple[str, str, Module]]:
    """Returns the name of the area that each module belongs to, its own name and the module."""
    modules = read_modules().items()
    return [
        (_declared_name(area.package), name, module)
        for name, module in modules
        if (area := find_area(name)) is not None
    ]


@cache
def _declared_name(package: str) -> str:
    """An area without a declaration owns no table."""
    if f"{package}.area" not in read_modules():
        return ""
    name: str = import_module(f"{package}.area").AREA.name
    return name


def test_an_area_writes_only_its_own_tables() -> None:
    owners = _owners()
    wrong = [
        (name, table)
        for area, name, module in _modules_of_areas()
        for table in _WRITE.findall(module.text)
        if owners.get(table, area) != area and not {owners[table], area} <= _FORMS
    ]
    assert wrong == []


def test_statements_are_in_the_queries_of_their_area() -> None:
    """Plain SQL and ORM statements alike."""
    wrong = [
        name
        for _, name, module in _modules_of_areas()
        if not name.endswith("queries")
        and ("sqlalchemy" in module.imports or _STATEMENT.search(module.text))
    ]
    assert wrong == []


def test_only_estimates_leave_out_the_tenant() -> None:
    """`fetch_page` explains the statement of its argument `estimated`, and never runs it."""
    wrong = []
    for name, module in read_modules().items():
        if name == "db.lists" or not any(word in module.text for word in _WITHOUT_TENANT):
            continue
        tree = ast.parse(module.text)
        estimates = {
            id(node)
            for keyword in ast.walk(tree)
            if isinstance(keyword, ast.keyword) and keyword.arg == "estimated"
            for node in ast.walk(keyword)
        }
        attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        uses = (node for node in attributes if node.attr in _WITHOUT_TENANT)
        wrong += [(name, node.lineno) for node in uses if id(node) not in estimates]
    assert wrong == []


def test_only_the_ledger_writes_work() -> None:
    writers = [
        name
        for name, module in read_modules().items()
        if not is_within(name, "db.migrations") and "work" in _WRITE.findall(module.text)
    ]
    assert writers == ["db.dead_work", "db.ledger"]
