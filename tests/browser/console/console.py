"""The console in a browser."""

import os
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import ConsoleMessage, Locator, Page, Request, expect

from tests.browser import looks
from tests.lengths import IS_LONG
from tests.world import Client

_COOKIE: Final = "parley_session"
# What the browser says of answers that a test asks for, such as a 404.
_EXPECTED: Final = "Failed to load resource"


class Console:
    """Collects what no page of the console may do: break its content security policy, load
    something from elsewhere, or write a warning.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.problems: list[str] = []
        page.on("console", self._note_line)
        page.on("request", self._note_request)

    def _note_line(self, line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"} and _EXPECTED not in line.text:
            self.problems.append(f"{line.type}: {line.text}")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.problems.append(f"requests {request.url}")

    def detach(self) -> None:
        self.page.remove_listener("console", self._note_line)
        self.page.remove_listener("request", self._note_request)

    async def sign_in(self, user: Client) -> None:
        """As a browser that has signed in before. The user's refresh token is used up then."""
        await self.page.context.add_cookies(
            [
                {
                    "name": _COOKIE,
                    "value": user.refresh_token,
                    "url": self.url,
                    "httpOnly": True,
                    "sameSite": "Strict",
                }
            ]
        )

    async def open(self, path: str = "", *, title: str | None = None) -> None:
        """Opens a screen, and waits for it if its title is given."""
        await self.page.goto(f"{self.url}/console{path}")
        if title is not None:
            await expect(self.heading).to_have_text(title)

    async def find_problems_in_long_runs(self, name: str) -> list[str]:
        """For states that are made of what each run looks at elsewhere."""
        if not IS_LONG and "PARLEY_SCREENSHOTS" not in os.environ:
            return []
        return await looks.find_problems(self.page, name, 1280, 360)

    async def widen(self) -> None:
        """As wide as it was before the looks of a phone."""
        await self.page.set_viewport_size({"width": 1280, "height": 800})

    @property
    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    @property
    def path(self) -> str:
        """The address below /console, with its filters."""
        parts = urlsplit(self.page.url)
        query = f"?{parts.query}" if parts.query else ""
        return parts.path.removeprefix("/console") + query

    def row(self, name: str) -> Locator:
        return self.page.get_by_role("row").filter(has_text=name)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    async def pick(self, label: str, name: str) -> None:
        """Searches for a record by its name, and chooses it."""
        await self.field(label).last.fill(name)
        await self.page.get_by_role("listbox").get_by_role("option", name=name).click()

    def dialog(self, title: str) -> Locator:
        return self.page.get_by_role("dialog", name=title)
