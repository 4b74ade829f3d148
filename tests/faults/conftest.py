"""Fixtures over the stores that each module starts as `own_stores`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
from litestar import Litestar

from app.services import Services
from tests.faults.instance import start_app, start_services
from tests.processes import Processes
from tests.stores import Stores


@pytest.fixture(scope="module")
async def own_app(own_stores: Stores) -> AsyncIterator[Litestar]:
    async with start_app(own_stores) as app:
        yield app


@pytest.fixture
async def own_services(own_stores: Stores) -> AsyncIterator[Services]:
    async with start_services(own_stores) as services:
        yield services


@pytest.fixture
def processes(own_stores: Stores) -> Iterator[Processes]:
    with closing(Processes(own_stores.settings)) as processes:
        yield processes
