from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.chromium import find_program
from tests.browser.tab import Tab

# Where several tests run at once, a model or a voice takes seconds to load.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_program(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
async def tab(browser: Browser) -> AsyncIterator[Tab]:
    tab = Tab(browser)
    yield tab
    await tab.close()


@pytest.fixture
async def page(tab: Tab) -> AsyncIterator[Page]:
    """A page without storage and cookies. An error of its scripts fails the test."""
    yield await tab.open()
    await tab.clear()
    assert tab.errors == []
