"""Checks the accessibility of a page with axe-core."""

from functools import cache
from importlib import resources
from typing import Any

from playwright.async_api import Page

_SERIOUS = frozenset({"serious", "critical"})
# Rules that depend on the colours of a page.
CONTRAST = ("color-contrast", "link-in-text-block")
_RUN = """async ([rules, part]) => {
    const runOnly = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
    const options = { resultTypes: ["violations"], ...runOnly };
    const { violations } = await axe.run(part || document, options);
    return violations.map(({ id, impact, help, nodes }) => (
        { id, impact, help, targets: nodes.map(({ target }) => target) }
    ));
}"""


@cache
def _read_script() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def find_violations(page: Page, *rules: str, part: str = "") -> list[str]:
    """Returns the serious and critical violations of the rules, by default of all, each with the
    elements that it is about. `part` selects what is looked at, which takes less time than a page.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_read_script())
    found: list[dict[str, Any]] = await page.evaluate(_RUN, [rules, part])
    return [
        f"{item['id']}: {item['help']} {item['targets']}"
        for item in found
        if item["impact"] in _SERIOUS
    ]
