"""Which module may import which, where statements stand, and how long files may be."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from db.base import Base

ROOT = Path(__file__).parent.parent
# From the bottom to the top: a layer imports only layers before it.
LAYERS = (
    "app.email_addresses",
    "app.settings",
    "app.kit",
    "app.security",
    "app.services",
    "app.http",
    "app.domain",
    "app.areas",
    "app.container",
    "app.demo",
    "app.web",
)
# The modules of an area that other areas may import.
PUBLIC_MODULES = {"service", "errors", "events", "schemas"}
# Imports against the direction of the packages: the command line starts the worker.
EXCEPTIONS = {("app.cli", "workers.main")}
# Libraries that read complex formats. Files come from strangers, so each is read in a process that
# has no rights, by a script or a module that only a script loads.
PARSERS = {
    *("PIL", "av", "bz2", "docx", "lxml", "lzma", "pickle", "plistlib", "pypdfium2"),
    *("semantic_text_splitter", "sqlite3", "tarfile", "xml", "zipfile"),
}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40
_WRITE = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)\b")


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _files() -> dict[str, Path]:
    folders = (ROOT / name for name in ("app", "db", "workers"))
    files = (path for folder in folders for path in folder.rglob("*.py"))
    return {_module(path): path for path in files if "migrations" not in path.parts}


@cache
def _imports(module: str) -> frozenset[str]:
    """Returns the modules that a module imports anywhere, also as `from package import module`."""
    imported = set()
    for node in ast.walk(ast.parse(_files()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = names & _files().keys()
            imported |= modules or {node.module}
    return frozenset(imported)


def _edges() -> Iterator[tuple[str, str]]:
    for module in _files():
        yield from ((module, other) for other in _imports(module))


def _reachable(start: str) -> set[str]:
    seen, waiting = set[str](), [start]
    while waiting:
        module = waiting.pop()
        if module not in seen and module in _files():
            seen.add(module)
            waiting += _imports(module)
    return seen


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _area(module: str) -> str | None:
    """Returns the area that a module belongs to; `app.domain.area` belongs to none."""
    parts = module.split(".")
    is_in_area = parts[:2] == ["app", "domain"] and len(parts) > 3
    return parts[2] if is_in_area else None


def _folder(module: str) -> str:
    """Returns the area, the package under `app` or the top module that a module belongs to."""
    parts = module.split(".")
    return ".".join(parts[:3] if parts[:2] == ["app", "domain"] else parts[:2])


@pytest.mark.parametrize(("position", "layer"), list(enumerate(LAYERS)), ids=LAYERS)
def test_a_layer_imports_no_layer_above_it(position: int, layer: str) -> None:
    above = LAYERS[position + 1 :]
    wrong = [
        (module, other)
        for module, other in _edges()
        if _is_within(module, layer) and any(_is_within(other, higher) for higher in above)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("db", ("app", "workers", "tests")), ("app", ("workers", "tests")), ("workers", ("tests",))],
)
def test_packages_import_in_one_direction(package: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        (module, other)
        for module, other in _edges()
        if _is_within(module, package)
        and any(_is_within(other, name) for name in forbidden)
        and (module, other) not in EXCEPTIONS
    ]
    assert wrong == []


def test_no_two_folders_import_each_other() -> None:
    """Neither directly nor through other folders."""
    graph: dict[str, set[str]] = {}
    for module, other in _edges():
        if _is_within(module, "app") and _is_within(other, "app"):
            graph.setdefault(_folder(module), set()).add(_folder(other))
    wrong = []
    for folder, imported in graph.items():
        seen, waiting = set[str](), list(imported - {folder})
        while waiting:
            other = waiting.pop()
            if other not in seen:
                seen.add(other)
                waiting += graph.get(other, set()) - {other}
        if folder in seen:
            wrong.append(folder)
    assert wrong == []


def test_an_area_imports_only_public_modules_of_other_areas() -> None:
    wrong = []
    for module, other in _edges():
        area, other_area = _area(module), _area(other)
        if area and other_area and area != other_area and other.split(".")[3] not in PUBLIC_MODULES:
            wrong.append((module, other))
    assert wrong == []


@pytest.mark.parametrize("entry", ["app.areas", "workers.main"])
def test_what_workers_load_imports_no_web_framework(entry: str) -> None:
    wrong = [
        module
        for module in _reachable(entry)
        if any(_is_within(other, "litestar") for other in _imports(module))
    ]
    assert wrong == []


def test_parsers_are_imported_by_scripts_of_child_processes_alone() -> None:
    wrong = [
        (module, other)
        for module, other in _edges()
        if other.partition(".")[0] in PARSERS
        and not module.endswith("_child")
        and not _is_within(module, "app.domain.knowledge.readers")
    ]
    assert wrong == []
    loaded = _reachable("app.areas") | _reachable("workers.main")
    assert [name for name in loaded if _is_within(name, "app.domain.knowledge.readers")] == []


def test_the_runner_imports_no_area() -> None:
    imports = _imports("workers.runner")
    assert [other for other in imports if _is_within(other, "app.domain")] == []


@pytest.mark.parametrize("area", sorted({area for name in _files() if (area := _area(name))}))
def test_every_area_has_a_service_and_a_folder_of_tests(area: str) -> None:
    assert f"app.domain.{area}.service" in _files()
    assert list((ROOT / "tests" / area).glob("test_*.py"))


def _tables() -> dict[str, str]:
    """Returns the area that owns each table: its model is in the file with the area's name."""
    owners = {}
    for mapper in Base.registry.mappers:
        owners[mapper.class_.__tablename__] = mapper.class_.__module__.rpartition(".")[2]
    return owners


def test_an_area_writes_only_its_own_tables() -> None:
    wrong = []
    for module, path in _files().items():
        area = _area(module)
        if area is None:
            continue
        for table in _WRITE.findall(path.read_text(encoding="utf-8")):
            owner = _tables().get(table)
            if owner is not None and owner != area:
                wrong.append((module, table))
    assert wrong == []


def test_statements_are_in_the_queries_of_their_area() -> None:
    """Plain SQL and ORM statements alike."""
    wrong = []
    for module in _files():
        area, name = _area(module), module.rpartition(".")[2]
        if area is None or name.endswith("queries"):
            continue
        if "sqlalchemy" in _imports(module):
            wrong.append(module)
        text = _files()[module].read_text(encoding="utf-8")
        if re.search(r'"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s', text):
            wrong.append(module)
    assert wrong == []


def test_only_estimates_leave_out_the_tenant() -> None:
    """`fetch_page` explains the statement of its argument `estimated`, and never runs it."""
    names, wrong = {"sql_without_tenant", "estimated_sql"}, []
    for module in _files().keys() - {"db.lists"}:
        tree = ast.parse(_files()[module].read_text(encoding="utf-8"))
        estimates = {
            id(node)
            for keyword in ast.walk(tree)
            if isinstance(keyword, ast.keyword) and keyword.arg == "estimated"
            for node in ast.walk(keyword)
        }
        attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        uses = (node for node in attributes if node.attr in names)
        wrong += [(module, node.lineno) for node in uses if id(node) not in estimates]
    assert wrong == []


def test_only_the_ledger_writes_work() -> None:
    writers = [
        module
        for module, path in _files().items()
        if "work" in _WRITE.findall(path.read_text(encoding="utf-8"))
    ]
    assert writers == ["db.ledger"]


def _source_files() -> list[Path]:
    folders = (ROOT / name for name in ("app", "db", "scripts", "tests", "workers"))
    return [path for folder in folders for path in folder.rglob("*.py")]


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _source_files()}
    assert [path for path, length in lengths.items() if length > MAX_FILE_LINES] == []


def test_no_function_is_longer_than_40_lines() -> None:
    wrong = []
    # Alembic puts a migration into one function.
    for path in (path for path in _source_files() if "migrations" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                length = node.end_lineno - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    wrong.append((path, node.name, length))
    assert wrong == []
