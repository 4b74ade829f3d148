"""Migrations of a database that is in use, or that a newer release has migrated."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import Connection

from app.settings import Settings
from db import migrate, schema
from tests.assertions import until
from tests.later_migrations import add_migration
from tests.stores import Stores

BEFORE = schema.newest_revision()


@pytest.fixture
async def behind(stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """A database that lacks two migrations, of which the second has to lock a table."""
    monkeypatch.setattr(migrate, "_LOCK_SECONDS", 0.02)
    monkeypatch.setattr(migrate, "_RETRY_SECONDS", 0.01)
    add_migration(monkeypatch, tmp_path, "first", "CREATE TABLE first (id integer)")
    add_migration(monkeypatch, tmp_path, "second", "ALTER TABLE work ADD COLUMN second integer")
    return await stores.create_database()


@pytest.fixture
async def raw(behind: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(behind.database_url)
    yield connection
    await connection.close()


async def test_a_blocked_migration_is_tried_again_or_gives_up_and_keeps_those_before_it(
    behind: Settings, raw: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw.transaction():
        await raw.execute("LOCK TABLE work IN ACCESS SHARE MODE")
        with pytest.raises(schema.MigrationBlocked, match="schema first cannot be migrated: other"):
            await migrate.upgrade(behind.sqlalchemy_url)
    assert await schema.read_revision(raw) == "first"

    attempts: list[str] = []
    upgrade = migrate._upgrade

    def count_attempt(connection: Connection, revision: str) -> None:
        attempts.append(revision)
        upgrade(connection, revision)

    monkeypatch.setattr(migrate, "_ATTEMPTS", 1_000)
    monkeypatch.setattr(migrate, "_upgrade", count_attempt)
    async with raw.transaction():
        await raw.execute("LOCK TABLE work IN ACCESS SHARE MODE")
        task = asyncio.create_task(migrate.upgrade(behind.sqlalchemy_url))
        await until(lambda: len(attempts) > 1)
    assert await task == "first"
    assert await schema.read_revision(raw) == schema.newest_revision()


async def test_several_processes_migrate_at_once(
    behind: Settings, raw: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_LOCK_SECONDS", 3.0)
    found = await asyncio.gather(*(migrate.upgrade(behind.sqlalchemy_url) for _ in range(3)))
    assert sorted(map(str, found)) == [BEFORE, *[schema.newest_revision()] * 2]


async def test_a_newer_schema_is_left_as_it_is(stores: Stores) -> None:
    settings = await stores.create_database()
    raw = await asyncpg.connect(settings.database_url)
    await raw.execute("UPDATE alembic_version SET version_num = '9999'")
    assert await migrate.upgrade(settings.sqlalchemy_url) == "9999"
    assert await schema.read_revision(raw) == "9999"
    await raw.close()
