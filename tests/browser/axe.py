"""Checks the accessibility of a page with axe-core."""

from functools import cache
from importlib import resources
from typing import Any

from playwright.async_api import Page

from tests.lengths import IS_LONG

_SERIOUS = frozenset({"serious", "critical"})
# Rules that depend on the colours of a page.
CONTRAST = ("color-contrast", "link-in-text-block")
# What repeats itself, where the first ones stand for all.
_REPEATED = (
    "tr:nth-child(n+4)",
    "tbody:nth-child(n+4)",
    "li:nth-child(n+6)",
    "option:nth-child(n+3)",
    ".settings > div:nth-child(n+3)",
    ".section:nth-child(n+5) .settings",
)
_RUN = """async ([rules, part, exclude]) => {
    const runOnly = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
    const options = { resultTypes: ["violations"], ...runOnly };
    const { violations } = await axe.run(
        part ? { include: [part], exclude } : document, options
    );
    return violations.map(({ id, impact, help, nodes }) => (
        { id, impact, help, targets: nodes.map(({ target }) => target) }
    ));
}"""


@cache
def _read_script() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def find_violations(page: Page, *rules: str, part: str = "") -> list[str]:
    """Returns the serious and critical violations of the rules, by default of all, each with the
    elements that it is about. `part` selects what is looked at, which takes less time than a page;
    of what repeats itself in it, the short run looks at the first ones.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_read_script())
    found: list[dict[str, Any]] = await page.evaluate(
        _RUN, [rules, part, [] if IS_LONG else _REPEATED]
    )
    return [
        f"{item['id']}: {item['help']} {item['targets']}"
        for item in found
        if item["impact"] in _SERIOUS
    ]
