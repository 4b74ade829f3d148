from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar

from app.main import create_app
from tests.identity.accounts.mfa_users import MfaUser, create_mfa_user
from tests.identity.accounts.replays import ReplayedSession, replay_refresh_token
from tests.stores import Stores
from tests.world import Client, World


@pytest.fixture
async def colleague(world: World, admin: Client) -> Client:
    """A user in the tenant of `admin`."""
    return await world.user("agent_user", admin.tenant_id)


@pytest.fixture
async def stranger(world: World) -> Client:
    """A user in another tenant."""
    return await world.user("viewer")


@pytest.fixture
async def newcomer(world: World) -> Client:
    """A user whose e-mail address is not verified."""
    return await world.user("agent_user", is_verified=False)


@pytest.fixture
async def mfa_user(world: World, admin: Client) -> MfaUser:
    return await create_mfa_user(await world.user("viewer", admin.tenant_id))


@pytest.fixture
async def replayed_session(anonymous: Client, developer: Client) -> ReplayedSession:
    return await replay_refresh_token(anonymous, developer)


@pytest.fixture(scope="session")
async def _closed_app(stores: Stores, app: Litestar) -> AsyncIterator[Litestar]:
    closed_app = create_app(msgspec.structs.replace(stores.settings, allow_signup=False))
    yield closed_app
    await closed_app.state.services.close()


@pytest.fixture
def closed_instance(_closed_app: Litestar) -> Client:
    """A caller of an instance without open registration."""
    return Client(_closed_app)
