"""Looks at a page in both themes and several widths."""

from typing import Final, Literal

from playwright.async_api import Page

from tests.browser import axe, screenshots
from tests.lengths import IS_LONG

Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")


async def find_problems(
    page: Page, name: str, *widths: int, schemes: tuple[Scheme, ...] = SCHEMES, part: str = ""
) -> list[str]:
    """Returns what is not accessible, or wider than the window. The short run applies all rules in
    the first theme and width, and those of colours in the last ones. `part` selects what is tried.
    """
    problems: list[str] = []
    looks = [(scheme, width) for scheme in schemes for width in widths]
    if not IS_LONG and not screenshots.are_wanted():
        # No width depends on the theme, and no colour on the width.
        looks = [looks[0], looks[-1]] if len(looks) > 1 else looks
    for look in looks:
        scheme, width = look
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": 800})
        await screenshots.take(page, f"{name}-{scheme}-{width}")
        if await page.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"{name} is wider than {width}")
        if IS_LONG or look == looks[0]:
            problems += await axe.find_violations(page, part=part)
        elif look == looks[-1]:
            problems += await axe.find_violations(page, *axe.CONTRAST, part=part)
    return problems
