"""Two tenants, and a database with a separate pool."""

from collections.abc import AsyncIterator

import pytest

from app.services import Services
from db.session import ALL_TENANTS, Database
from tests.db.invitations import TwoTenants, build_invitation
from tests.stores import Stores
from tests.world import World


@pytest.fixture
async def tenants(world: World, services: Services) -> TwoTenants:
    own, other = await world.user(), await world.user()
    own_row = build_invitation(own.tenant_id, own.user_id)
    other_row = build_invitation(other.tenant_id, own.user_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all([own_row, other_row])
    return TwoTenants(own, other, own_row.id, other_row.id)


@pytest.fixture
async def database(stores: Stores) -> AsyncIterator[Database]:
    """A separate pool, for tests that count or break connections."""
    db = Database(stores.settings.sqlalchemy_url, pool_size=3)
    yield db
    await db.close()
