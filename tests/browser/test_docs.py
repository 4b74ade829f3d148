from tests.browser.chromium import render_page
from tests.server import Server


def test_the_docs_page_shows_operations_without_external_resources(server: Server) -> None:
    page = render_page(f"{server.url}/docs")
    assert "Sign in" in page
    assert "Trace one chain of causes" in page
