from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.chromium import find_program, list_arguments
from tests.browser.tab import Tab

# Where several tests run at once, a model or a voice takes seconds to load.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the browser's microphone hears; a test that speaks writes it."""
    return tmp_path_factory.mktemp("microphone") / "recording.wav"


@pytest.fixture(scope="session")
async def browser(recording: Path) -> AsyncIterator[Browser]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_program(), args=list_arguments(recording)
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
