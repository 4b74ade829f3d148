from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.domain.notifications import feed
from app.main import create_app
from tests.stores import Stores
from tests.world import World


@pytest.fixture(scope="module")
async def product(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """The application as it is served, without routes of tests."""
    world = World(create_app(stores.settings))
    with pytest.MonkeyPatch.context() as patch:
        # The client here waits for the end of every response.
        patch.setattr(feed, "STREAM_SECONDS", 0.0)
        yield world
    await world.services.close()
