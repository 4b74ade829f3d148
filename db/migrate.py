"""Migrates the schema under a lock, so that several processes may start at once."""

import asyncio

from advanced_alchemy.alembic.commands import AlembicCommands
from advanced_alchemy.config import AlembicSyncConfig, SQLAlchemySyncConfig
from sqlalchemy import Connection, Engine, pool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from db import schema
from db.locks import AdvisoryLock
from db.url import DRIVER, parse_url

_LOCK_NOT_AVAILABLE = "55P03"
# A statement that waits for a lock on a table makes all later statements on that table wait.
_LOCK_SECONDS = 3.0
_RETRY_SECONDS = 2.0
_ATTEMPTS = 5


def commands(engine: Engine) -> AlembicCommands:
    migrations = AlembicSyncConfig(
        script_config="",  # alembic.ini is for the alembic command; it is not installed
        script_location=str(schema.MIGRATIONS),
        version_table_name=schema.VERSION_TABLE,
    )
    return AlembicCommands(SQLAlchemySyncConfig(engine_instance=engine, alembic_config=migrations))


def _upgrade(connection: Connection, revision: str) -> None:
    alembic = commands(connection.engine)
    alembic.config.attributes["connection"] = connection
    alembic.upgrade(revision)


def create_engine(url: str) -> AsyncEngine:
    return create_async_engine(DRIVER, connect_args=parse_url(url), poolclass=pool.NullPool)


async def lock(connection: AsyncConnection) -> None:
    """Waits for other migrations. Until the connection is closed, none begins, and a wait for any
    other lock is bounded.
    """
    await connection.exec_driver_sql(f"SELECT pg_advisory_lock({AdvisoryLock.MIGRATE:d})")
    await connection.exec_driver_sql(f"SET lock_timeout = '{_LOCK_SECONDS * 1000:.0f}ms'")
    await connection.commit()


async def upgrade(url: str, revision: str = "head") -> str | None:
    """Returns the revision that it has found. A schema that is newer than this release is left as
    it is. Raises MigrationBlocked; the migrations before that one are kept.
    """
    engine = create_engine(url)
    try:
        async with engine.connect() as connection:
            await lock(connection)
            found = await _read_revision(connection)
            if schema.compare(found) == "behind":
                await _upgrade_patiently(connection, revision)
            return found
    finally:
        await engine.dispose()


async def _read_revision(connection: AsyncConnection) -> str | None:
    raw = (await connection.get_raw_connection()).driver_connection
    assert raw is not None  # noqa: S101  # the connection is open
    return await schema.read_revision(raw)


async def _upgrade_patiently(connection: AsyncConnection, revision: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await connection.run_sync(_upgrade, revision)
        except DBAPIError as error:
            await connection.rollback()
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            if attempt == _ATTEMPTS:
                raise schema.MigrationBlocked(
                    f"schema {await _read_revision(connection)} cannot be migrated: other "
                    f"transactions hold locks that it needs; run `parley migrate` again"
                ) from None
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return
