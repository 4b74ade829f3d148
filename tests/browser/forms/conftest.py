from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.forms.form_page import FormPage
from tests.server import Server

# On a busy machine, a page takes its time.
expect.set_options(timeout=15_000)


@pytest.fixture
async def form_page(page: Page, server: Server) -> AsyncIterator[FormPage]:
    form_page = FormPage(page, server.url)
    yield form_page
    await form_page.close()
