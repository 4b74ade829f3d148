"""What a start does with the grants of an instance that was used before."""

from collections.abc import AsyncIterator

import pytest

from app import bootstrap
from app.areas import AREAS
from app.services import Services
from db.session import ALL_TENANTS, Database
from tests.stores import Stores

Grants = set[tuple[str, str]]

_NEW = "submissions:read"
# As if the release before did not have the permission.
_REMOVE_PERMISSION = f"""
UPDATE instance_state SET value = (value::jsonb - '{_NEW}')::text WHERE key = 'seeded_permissions'
"""


def _list_defaults() -> Grants:
    return {(role, key) for role, keys in AREAS.default_grants.items() for key in keys}


class _Instance:
    def __init__(self, db: Database, services: Services) -> None:
        self._db = db
        self._services = services

    async def start(self) -> None:
        await bootstrap.prepare(self._db, self._services.keyring, "free")

    async def execute(self, sql: str) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await (await tx.raw()).execute(sql)

    async def read_grants(self) -> Grants:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            rows = await (await tx.raw()).fetch("SELECT role, permission FROM role_grants")
        return {(row["role"], row["permission"]) for row in rows}

    async def read_version(self) -> int:
        sql = "SELECT number FROM instance_state WHERE key = 'grants_version'"
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            return int(await (await tx.raw()).fetchval(sql))


@pytest.fixture
async def instance(stores: Stores, services: Services) -> AsyncIterator[_Instance]:
    settings = await stores.create_database()
    db = Database(settings.sqlalchemy_url, pool_size=1)
    yield _Instance(db, services)
    await db.close()


async def test_the_next_start_keeps_changed_grants(instance: _Instance) -> None:
    await instance.start()
    assert await instance.read_grants() == _list_defaults()
    await instance.execute("DELETE FROM role_grants WHERE role <> 'viewer'")
    before = await instance.read_grants(), await instance.read_version()
    await instance.start()
    assert (await instance.read_grants(), await instance.read_version()) == before


async def test_a_new_permission_gets_its_default_grants(instance: _Instance) -> None:
    await instance.start()
    await instance.execute("DELETE FROM role_grants")
    await instance.execute(_REMOVE_PERMISSION)
    version = await instance.read_version()
    await instance.start()
    assert await instance.read_grants() == {grant for grant in _list_defaults() if grant[1] == _NEW}
    assert await instance.read_version() == version + 1
