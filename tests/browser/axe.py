"""Checks the accessibility of a page with axe-core."""

from functools import cache
from importlib import resources
from typing import Any

from playwright.async_api import Page

_SERIOUS = frozenset({"serious", "critical"})
_RUN = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, help, nodes }) => (
        { id, impact, help, targets: nodes.map(({ target }) => target) }
    ));
}"""


@cache
def _read_script() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def find_violations(page: Page) -> list[str]:
    """Returns the serious and critical violations, each with the elements that it is about."""
    await page.evaluate(_read_script())
    found: list[dict[str, Any]] = await page.evaluate(_RUN)
    return [
        f"{item['id']}: {item['help']} {item['targets']}"
        for item in found
        if item["impact"] in _SERIOUS
    ]
