"""Arrows point one way: workers → app → db; kit and http know no domain."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _imports(folder: str) -> Iterator[tuple[Path, str]]:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("db", ("app", "workers", "tests")),
        ("app", ("workers", "tests")),
        ("app/kit", ("app.domain",)),
        ("app/http", ("app.domain",)),
        ("app/security", ("app.domain",)),
        ("workers", ("tests",)),
    ],
)
def test_nothing_imports_against_the_arrows(folder: str, forbidden: tuple[str, ...]) -> None:
    # The command line is the one door from `app` to the worker's entry.
    doors = {(ROOT / "app/cli.py", "workers.main")}
    wrong = [
        (str(path.relative_to(ROOT)), name)
        for path, name in _imports(folder)
        if any(name == bad or name.startswith(bad + ".") for bad in forbidden)
        and (path, name) not in doors
    ]
    assert wrong == []


def test_a_domain_never_reads_another_domains_queries() -> None:
    wrong = []
    for path, name in _imports("app/domain"):
        area = path.relative_to(ROOT / "app/domain").parts[0]
        if name.startswith("app.domain.") and name.endswith(".queries"):
            other = name.split(".")[2]
            if other != area:
                wrong.append((str(path.relative_to(ROOT)), name))
    assert wrong == []
