"""Pictures of pages, for a person to look at."""

import os
from pathlib import Path

from playwright.async_api import Page

_ROOT = Path(__file__).parents[2]


async def take(page: Page, name: str) -> None:
    """Writes `<name>.png` to the folder that PARLEY_SCREENSHOTS names, or to `.screenshots`."""
    folder = _ROOT / os.environ.get("PARLEY_SCREENSHOTS", ".screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")
