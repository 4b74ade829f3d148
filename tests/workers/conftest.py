from collections.abc import AsyncIterator, Iterator

import pytest

from app.areas import AREAS
from app.services import Services
from tests.workers.factories import BRIEF, QUICK, SHARED, execute
from tests.world import World


@pytest.fixture(autouse=True, scope="module")
def _work_kinds() -> Iterator[None]:
    for kind in (QUICK, BRIEF, SHARED):
        AREAS.work_kinds[kind.name] = kind
    yield
    for kind in (QUICK, BRIEF, SHARED):
        del AREAS.work_kinds[kind.name]


@pytest.fixture
async def tenant(world: World, services: Services) -> AsyncIterator[str]:
    """A tenant, while the ledger has no other work."""
    await execute(services, "DELETE FROM work")
    yield await world.tenant()
    await execute(services, "DELETE FROM work")
