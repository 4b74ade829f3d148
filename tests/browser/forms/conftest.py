import pytest
from playwright.async_api import Page

from tests.browser.forms.form_page import FormPage
from tests.server import Server


@pytest.fixture
def form_page(page: Page, server: Server) -> FormPage:
    return FormPage(page, server.url)
