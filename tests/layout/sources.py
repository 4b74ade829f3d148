"""The modules of Parley: their text and what they import. Each file is parsed once."""

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("app", "db", "workers")
# The fields of statements that have statements in them.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class File(NamedTuple):
    text: str
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    # Names with lengths in lines.
    functions: tuple[tuple[str, int], ...]


class Module(NamedTuple):
    text: str
    # All that it imports anywhere, also as `from package import module`.
    imports: frozenset[str]


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Syntax trees have no reference cycles. The collector would take most of the time to parse."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _walk_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields every statement, without the expressions in them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in _BLOCKS:
            waiting += getattr(node, block, ())


@cache
def read_file(path: Path) -> File:
    text = path.read_text(encoding="utf-8")
    imports, functions = list[ast.Import | ast.ImportFrom](), list[tuple[str, int]]()
    with _paused_collector():
        for node in _walk_statements(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.append(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
    return File(text, tuple(imports), tuple(functions))


def find_files(*folders: str) -> list[Path]:
    return [path for name in folders for path in (ROOT / name).rglob("*.py")]


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package_of(node: ast.ImportFrom, path: Path) -> str:
    """Returns the module after `from`, with its full name."""
    folders = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
    return ".".join((*folders, *([node.module] if node.module else [])))


def _find_imports(path: Path, names: frozenset[str]) -> frozenset[str]:
    imports = set()
    for node in read_file(path).imports:
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        else:
            package = _package_of(node, path)
            members = {f"{package}.{alias.name}" for alias in node.names}
            imports |= {name if name in names else package for name in members}
    return frozenset(imports)


@cache
def read_modules() -> dict[str, Module]:
    paths = {_name(path): path for path in find_files(*PACKAGES)}
    names = frozenset(paths)
    return {
        name: Module(read_file(path).text, _find_imports(path, names))
        for name, path in paths.items()
    }


def list_imports() -> Iterator[tuple[str, str]]:
    """Yields every module with each module that it imports."""
    for name, module in read_modules().items():
        yield from ((name, other) for other in module.imports)


def find_loaded(start: str) -> set[str]:
    """Returns the modules that are loaded with a module."""
    loaded, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in loaded and name in read_modules():
            loaded.add(name)
            waiting += read_modules()[name].imports
    return loaded


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


class Area(NamedTuple):
    group: str
    name: str

    @property
    def package(self) -> str:
        return f"app.domain.{self.group}.{self.name}"


@cache
def list_areas() -> frozenset[Area]:
    folders = [path.parent for path in (ROOT / "app/domain").glob("*/*/__init__.py")]
    return frozenset(Area(folder.parent.name, folder.name) for folder in folders)


def find_area(module: str) -> Area | None:
    """Returns the area that a module belongs to; `app.domain.area` belongs to none."""
    package, _, name = module.partition("app.domain.")
    group, _, rest = name.partition(".")
    area = Area(group, rest.partition(".")[0])
    return area if not package and area in list_areas() else None
