from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from litestar import Litestar

from tests.identity.accounts.mfa_users import MfaUser, create_mfa_user
from tests.world import Client, World


@pytest.fixture
async def console(app: Litestar) -> AsyncIterator[httpx.AsyncClient]:
    """A browser on the console: it keeps cookies and sends the console's header."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(cast("Any", app)),
        base_url="http://parley.test",
        headers={"x-parley-console": "1"},
    ) as client:
        yield client


@pytest.fixture
async def user(world: World) -> Client:
    return await world.user("agent_developer")


@pytest.fixture
async def mfa_user(user: Client) -> MfaUser:
    return await create_mfa_user(user)
