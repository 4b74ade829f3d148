"""Looks at a page in both themes and several widths."""

from playwright.async_api import Page

from tests.browser import axe, screenshots
from tests.lengths import IS_LONG


async def find_problems(page: Page, name: str, *widths: int) -> list[str]:
    """Returns what is not accessible, or wider than the window. The short run applies all rules in
    the light and the first width, and those of colours in the dark and the last one.
    """
    problems: list[str] = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width in widths:
            await page.set_viewport_size({"width": width, "height": 800})
            await screenshots.take(page, f"{name}-{scheme}-{width}")
            if await page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{name} is wider than {width}")
            if IS_LONG or (scheme, width) == ("light", widths[0]):
                problems += await axe.find_violations(page)
            elif (scheme, width) == ("dark", widths[-1]):
                problems += await axe.find_violations(page, *axe.CONTRAST)
    return problems
