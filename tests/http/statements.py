"""Lists the statements that a request sends to Postgres."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

import asyncpg
import pytest

# Set in the context of the request. A worker of another test may run statements meanwhile.
_statements: ContextVar[list[str] | None] = ContextVar("statements", default=None)


@contextmanager
def count_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields the list of statements, plain ones and those of the ORM."""

    def record(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        @wraps(method)
        async def run(connection: object, sql: str, *args: object, **options: object) -> object:
            statements = _statements.get()
            if statements is not None:
                statements.append(sql)
            return await method(connection, sql, *args, **options)

        return run

    with monkeypatch.context() as patched:
        for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany", "prepare"):
            method = getattr(asyncpg.Connection, name)
            patched.setattr(asyncpg.Connection, name, record(method))
        statements: list[str] = []
        token = _statements.set(statements)
        try:
            yield statements
        finally:
            _statements.reset(token)
