"""Fixtures of the kit's tests."""

from collections.abc import AsyncIterator

import pytest

from app.net.egress import Egress
from tests.net.egress_servers import LOOPBACK, Site, open_egress, run_site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with run_site("site") as running_site:
        yield running_site


@pytest.fixture
async def other() -> AsyncIterator[Site]:
    async with run_site("other") as running_site:
        yield running_site


@pytest.fixture
async def strict() -> AsyncIterator[Egress]:
    """The production configuration: private addresses are blocked."""
    async with open_egress() as egress:
        yield egress


@pytest.fixture
async def loopback() -> AsyncIterator[Egress]:
    async with open_egress(LOOPBACK) as egress:
        yield egress
