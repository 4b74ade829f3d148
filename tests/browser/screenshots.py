"""Pictures of pages, for a person to look at."""

import os
from pathlib import Path

from playwright.async_api import Page

from tests.lengths import IS_LONG

_ROOT = Path(__file__).parents[2]


def are_wanted() -> bool:
    return bool(_name_folder())


def _name_folder() -> str:
    return os.environ.get("PARLEY_SCREENSHOTS") or (".screenshots" if IS_LONG else "")


async def take(page: Page, name: str) -> None:
    """Writes `<name>.png` to the folder that PARLEY_SCREENSHOTS names, or in long runs to
    `.screenshots`.
    """
    if not are_wanted():
        return
    folder = _ROOT / _name_folder()
    folder.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")
