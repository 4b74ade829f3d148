from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright

from tests.browser.chromium import find_program


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a real browser. An error of its scripts fails the test."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_program(), args=["--no-sandbox", "--disable-gpu"]
        )
        browser_page = await browser.new_page()
        errors: list[str] = []
        browser_page.on("pageerror", lambda error: errors.append(str(error)))
        yield browser_page
        await browser.close()
        assert errors == []
