from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page

from tests.browser.console.console import Console
from tests.server import Server


@pytest.fixture
async def console(page: Page, server: Server) -> AsyncIterator[Console]:
    """Nobody is signed in yet. A breach of the content security policy, a request to elsewhere or
    a warning fails the test.
    """
    console = Console(page, server.url)
    yield console
    console.detach()
    assert console.problems == []
