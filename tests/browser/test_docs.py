"""The page with the API documentation, used in a browser."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.server import Server

_SHOWN = {
    "/auth/login": "Sign in",
    "/api/v1/event-log/trace/{correlation_id}": "Trace one chain of causes",
}


async def _keep_shown(route: Route) -> None:
    """Hands the page only the paths that the test looks for: it takes 13 seconds for all."""
    answer = await route.fetch()
    document: dict[str, Any] = await answer.json()
    document["paths"] = {path: document["paths"][path] for path in _SHOWN}
    schemas = document["components"]["schemas"]
    names = _find_schemas(document["paths"], schemas)
    document["components"]["schemas"] = {name: schemas[name] for name in names}
    await route.fulfill(response=answer, json=document)


def _find_schemas(value: Any, schemas: dict[str, Any]) -> set[str]:
    """Returns the schemas that a part of the document refers to, and those that they refer to."""
    names: set[str] = set()
    texts = [json.dumps(value)]
    while texts:
        found = set(re.findall(r"#/components/schemas/([\w.-]+)", texts.pop())) - names
        names |= found
        texts += [json.dumps(schemas[name]) for name in found]
    return names


async def _expect_operations(page: Page, server: Server) -> None:
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    await page.goto(f"{server.url}/docs")
    for summary in _SHOWN.values():
        operation = page.get_by_text(summary, exact=True).first
        await expect(operation).to_be_visible(timeout=60_000)
    assert f"{server.url}/openapi.json" in urls
    assert not [url for url in urls if not url.startswith((f"{server.url}/", "data:"))]


async def test_the_docs_page_shows_operations_without_external_resources(
    page: Page, server: Server
) -> None:
    await page.route("**/openapi.json", _keep_shown)
    await _expect_operations(page, server)


@pytest.mark.long
async def test_the_docs_page_shows_all_operations(page: Page, server: Server) -> None:
    await _expect_operations(page, server)
