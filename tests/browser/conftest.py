from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright

from tests.browser.chromium import program


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a real browser; an error of its scripts fails the test."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program(), args=["--no-sandbox", "--disable-gpu"]
        )
        opened = await browser.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        yield opened
        await browser.close()
        assert errors == []
