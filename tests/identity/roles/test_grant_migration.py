"""What the migration to submissions:read does with the grants of an existing instance."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app import bootstrap
from app.areas import AREAS
from app.services import Services
from db import migrate
from db.session import Database
from tests.migrations import load_migration
from tests.stores import Stores

_BEFORE = "0025"
_MIGRATION = load_migration("0026_submission_permission")
_SUBMISSIONS, _TABLES = "submissions:read", "data_tables:read"
_OLD_KEYS = AREAS.permission_keys - {_SUBMISSIONS}
_INSERT = "INSERT INTO role_grants (role, permission) VALUES ($1, $2)"
_SEED = "INSERT INTO instance_state (key, number, value) VALUES ($1, $2, $3)"

Grants = set[tuple[str, str]]


def _list_defaults() -> Grants:
    return {(role, key) for role, keys in AREAS.default_grants.items() for key in keys}


def _list_old_defaults() -> Grants:
    kept = {(role, key) for role, key in _list_defaults() if key != _SUBMISSIONS}
    return kept | {("agent_user", _TABLES)}


@pytest.fixture(scope="module")
async def raw(stores: Stores) -> AsyncIterator[asyncpg.Connection]:
    settings = await stores.create_database(_BEFORE)
    connection = await asyncpg.connect(settings.database_url)
    yield connection
    await connection.close()


async def _migrate(raw: asyncpg.Connection, grants: Grants) -> Grants:
    """Returns the grants afterwards, and undoes the migration."""
    transaction = raw.transaction()
    await transaction.start()
    seeded = ",".join(f'"{key}"' for key in sorted(_OLD_KEYS))
    await raw.execute(_SEED, "seeded_permissions", 0, f"[{seeded}]")
    await raw.execute(_SEED, "grants_version", 7, None)
    await raw.executemany(_INSERT, sorted(grants))
    for statement in _MIGRATION.STATEMENTS:
        await raw.execute(statement)
    rows = await raw.fetch("SELECT role, permission FROM role_grants")
    state = dict(await raw.fetch("SELECT key, number FROM instance_state"))
    assert state["grants_version"] == 8
    await transaction.rollback()
    return {(row["role"], row["permission"]) for row in rows}


async def test_grants_that_were_never_changed_become_the_new_defaults(
    raw: asyncpg.Connection,
) -> None:
    assert await _migrate(raw, _list_old_defaults()) == _list_defaults()


async def test_changed_grants_are_kept(raw: asyncpg.Connection) -> None:
    without_chat = _list_old_defaults() - {("agent_user", "agents:chat")}
    assert ("agent_user", _TABLES) in await _migrate(raw, without_chat)
    with_events = _list_old_defaults() | {("agent_user", "events:read")}
    assert ("agent_user", _TABLES) in await _migrate(raw, with_events)
    without_forms = _list_old_defaults() - {("agent_developer", "forms:read")}
    assert ("agent_developer", _SUBMISSIONS) not in await _migrate(raw, without_forms)


async def test_the_next_start_grants_nothing_again(stores: Stores, services: Services) -> None:
    settings = await stores.create_database(_BEFORE)
    connection = await asyncpg.connect(settings.database_url)
    seeded = ",".join(f'"{key}"' for key in sorted(_OLD_KEYS))
    await connection.execute(_SEED, "seeded_permissions", 0, f"[{seeded}]")
    await connection.executemany(_INSERT, [("viewer", "forms:read")])
    await migrate.upgrade(settings.sqlalchemy_url)
    db = Database(settings.sqlalchemy_url)
    await bootstrap.prepare(db, services.keyring, "free")
    await db.close()
    rows = await connection.fetch("SELECT role, permission FROM role_grants")
    await connection.close()
    assert [tuple(row) for row in rows] == [("viewer", "forms:read")]
