"""Upgrades of a database with rows in every table, from release 0.1.0 to this one."""

from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Table
from sqlalchemy.exc import IntegrityError

from app.settings import Settings
from db import migrate
from tests.db.upgrades import FULL_TENANT, Keys, Storage, insert_rows, read_keys, read_storage
from tests.later_migrations import add_migration
from tests.stores import Stores

_RELEASED = "0001"
_RELEASED_KINDS = {
    *("conversations", "definitions", "events", "executions", "forms", "knowledge", "payloads"),
    *("tables", "files", "number of files"),
}


class _Release(NamedTuple):
    settings: Settings
    tables: list[Table]
    keys: Keys


class _Upgraded(NamedTuple):
    # The tables that lost a row.
    losses: list[str]
    storage: Storage


@pytest.fixture(scope="module")
async def release(stores: Stores) -> _Release:
    """A database of release 0.1.0, to be copied."""
    settings = await stores.create_database(_RELEASED)
    tables = await insert_rows(settings)
    return _Release(settings, tables, await read_keys(settings, tables))


async def _upgrade(stores: Stores, release: _Release) -> _Upgraded:
    settings = await stores.copy_database(release.settings)
    await migrate.upgrade(settings.sqlalchemy_url)
    keys = await read_keys(settings, release.tables)
    losses = [table for table in release.keys if release.keys[table] - keys[table]]
    return _Upgraded(losses, await read_storage(settings))


async def test_every_table_of_the_release_has_rows(release: _Release) -> None:
    assert len(release.keys) == 83
    assert [table for table, keys in release.keys.items() if len(keys) < 2] == []


async def test_an_upgrade_keeps_every_row_and_counts_what_is_stored(
    stores: Stores, release: _Release
) -> None:
    upgraded = await _upgrade(stores, release)
    assert upgraded.losses == []
    assert upgraded.storage.list_wrong_kinds() == []
    kinds = {kind for tenant_id, kind in upgraded.storage.counted if tenant_id == FULL_TENANT}
    assert kinds >= _RELEASED_KINDS


# Each passes on an empty database.
_FAILING = (
    "ALTER TABLE agents ADD COLUMN nickname varchar NOT NULL",
    "ALTER TABLE users ALTER COLUMN avatar_key SET NOT NULL",
    "ALTER TABLE tenants ADD CONSTRAINT ck_tenants_plan CHECK (plan = 'free')",
)


async def test_a_migration_that_fails_on_rows_is_found(
    stores: Stores, release: _Release, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, statement in enumerate(_FAILING):
        with subtests.test(statement=statement), pytest.MonkeyPatch.context() as monkeypatch:
            add_migration(monkeypatch, tmp_path, f"later_{number}", statement)
            with pytest.raises(IntegrityError):
                await _upgrade(stores, release)


async def test_a_migration_that_loses_rows_is_found(
    stores: Stores, release: _Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    statement = "DELETE FROM form_messages WHERE field_id IS NULL"
    add_migration(monkeypatch, tmp_path, "later", statement)
    upgraded = await _upgrade(stores, release)
    assert upgraded.losses == ["form_messages"]
    assert upgraded.storage.list_wrong_kinds() == []


_MISCOUNTING = (
    # The trigger looks at the time of the update.
    ("UPDATE agents SET description = description || 'more'", "definitions"),
    ("DELETE FROM storage_changes WHERE kind = 'forms'", "forms"),
    ("UPDATE files SET size_bytes = 2", "files"),
)


async def test_a_migration_that_miscounts_is_found(
    stores: Stores, release: _Release, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, (statement, kind) in enumerate(_MISCOUNTING):
        with subtests.test(statement=statement), pytest.MonkeyPatch.context() as monkeypatch:
            add_migration(monkeypatch, tmp_path, f"later_{number}", statement)
            upgraded = await _upgrade(stores, release)
            assert upgraded.storage.list_wrong_kinds() == [kind]
