from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page

from tests.browser.widget.shop import HostSite, Shop, serve_host
from tests.scripted_agents import Talker
from tests.server import Server


@pytest.fixture
async def host_site() -> AsyncIterator[HostSite]:
    async with serve_host() as site:
        yield site


@pytest.fixture
async def shop(page: Page, host_site: HostSite, server: Server, talk: Talker) -> Shop:
    return Shop(page, host_site, server, talk)
