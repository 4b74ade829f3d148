"""The page with the API documentation, used in a browser."""

from playwright.async_api import Page, expect

from tests.server import Server


async def test_the_docs_page_shows_operations_without_external_resources(
    page: Page, server: Server
) -> None:
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    await page.goto(f"{server.url}/docs")
    for summary in ("Sign in", "Trace one chain of causes"):
        operation = page.get_by_text(summary, exact=True).first
        await expect(operation).to_be_visible(timeout=60_000)
    assert f"{server.url}/openapi.json" in urls
    assert not [url for url in urls if not url.startswith((f"{server.url}/", "data:"))]
