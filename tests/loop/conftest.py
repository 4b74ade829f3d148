from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.main import create_app
from tests.stores import Stores
from tests.world import World


@pytest.fixture(scope="module")
async def product(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """The application as it is served, without routes of tests."""
    world = World(create_app(stores.settings))
    yield world
    await world.services.close()
