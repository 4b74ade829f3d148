from tests.browser.chromium import rendered
from tests.server import Server


def test_the_docs_page_shows_every_operation_with_nothing_from_elsewhere(server: Server) -> None:
    page = rendered(f"{server.url}/docs")
    assert "Sign in" in page
    assert "Trace one chain of causes" in page
