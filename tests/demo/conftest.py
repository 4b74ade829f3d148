from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.demo.instance import Instance
from tests.stores import Stores


@pytest.fixture(scope="module")
async def emptied_instance(stores: Stores) -> AsyncIterator[Instance]:
    settings = msgspec.structs.replace(
        await stores.create_database(), demo=True, base_url="https://parley.example.com"
    )
    instance = Instance(settings)
    yield instance
    await instance.services.close()


@pytest.fixture
async def instance(emptied_instance: Instance) -> Instance:
    """An instance with a super_admin and no demo yet."""
    await emptied_instance.empty()
    await emptied_instance.prepare()
    return emptied_instance
