"""The SQL statements that a request sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from app.services import Services


@contextmanager
def record_statements(services: Services) -> Iterator[list[str]]:
    """Collects the statements that SQLAlchemy sends within the block."""
    statements: list[str] = []
    engine = services.db.engine.sync_engine

    def record(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", record)
