from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.demo.instance import Instance
from tests.stores import Stores


@pytest.fixture
async def instance(stores: Stores) -> AsyncIterator[Instance]:
    """An instance with a super_admin and no demo yet."""
    settings = msgspec.structs.replace(
        await stores.create_database(), demo=True, base_url="https://parley.example.com"
    )
    instance = Instance(settings)
    await instance.prepare()
    yield instance
    await instance.services.close()
