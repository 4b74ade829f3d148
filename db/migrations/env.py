"""Alembic's entry. `parley migrate` passes a connection; the alembic command makes its own."""

import asyncio
import os
from typing import Literal

from advanced_alchemy.types import DateTimeUTC
from alembic import context
from sqlalchemy import Connection

from db import migrate, models, schema
from db.base import Base, Sealed

_ = models


def _render(kind: str, item: object, _context: object) -> str | Literal[False]:
    """Migrations speak plain SQLAlchemy, so that they outlive our own types."""
    if kind == "type" and isinstance(item, DateTimeUTC):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, Sealed):
        return "sa.LargeBinary()"
    return False


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        version_table=schema.VERSION_TABLE,
        compare_type=True,
        compare_server_default=True,
        render_item=_render,
        # A migration's locks are released before the next one waits for its own.
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


async def _connect_and_run() -> None:
    engine = migrate.create_engine(os.environ["PARLEY_DATABASE_URL"])
    async with engine.connect() as connection:
        await migrate.lock(connection)
        await connection.run_sync(_run)
    await engine.dispose()


connection: Connection | None = context.config.attributes.get("connection")
if connection is not None:
    _run(connection)
else:
    asyncio.run(_connect_and_run())
