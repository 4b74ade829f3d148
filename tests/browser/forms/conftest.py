import pytest
from playwright.async_api import Page, expect

from tests.browser.forms.form_page import FormPage
from tests.server import Server

# On a busy machine, a page takes its time.
expect.set_options(timeout=15_000)


@pytest.fixture
def form_page(page: Page, server: Server) -> FormPage:
    return FormPage(page, server.url)
