"""The page of a form in a browser, as tests use it."""

import re
from typing import Any, Literal

from playwright.async_api import CDPSession, Locator, Page, Request, Route, expect

from tests.forms.api import list_submissions
from tests.world import Client


class FormPage:
    """`external_urls` are requests to other servers than ours; there must be none."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.external_urls: list[str] = []
        self.requests: list[Request] = []
        self._sessions: list[CDPSession] = []
        page.set_default_timeout(10_000)
        page.on("request", self._record)

    def _record(self, request: Request) -> None:
        self.requests.append(request)
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.external_urls.append(request.url)

    async def close(self) -> None:
        """Leaves the page to the next test."""
        self.page.remove_listener("request", self._record)
        for session in self._sessions:
            await session.detach()

    async def open(self, form: dict[str, Any], rest: str = "") -> None:
        await self.page.goto(f"{self.url}/f/{form['slug']}{rest}")
        await expect(self.page.locator(".place")).to_be_attached()

    def list_requests(self, method: str, path: str) -> list[Request]:
        return [
            request
            for request in self.requests
            if request.method == method and request.url.split("?")[0].endswith(path)
        ]

    def field(self, label: str) -> Locator:
        """The input with this label, which may have the mark of a required one."""
        return self.page.get_by_label(re.compile(rf"^{re.escape(label)}\*?$"))

    def choice(self, label: str) -> Locator:
        return self.page.locator(".choice", has_text=label)

    def message(self, field_id: str) -> Locator:
        """What is wrong with the answer to a field."""
        return self.page.locator(f"#problem-{field_id}")

    @property
    def summary(self) -> Locator:
        return self.page.locator(".summary")

    @property
    def submit_button(self) -> Locator:
        return self.page.locator("form [type=submit]")

    async def submit(self) -> None:
        await self.submit_button.click()

    async def draw(self, points: list[tuple[int, int]]) -> None:
        """Draws a line on the signature pad."""
        canvas = self.page.locator(".pad canvas")
        await canvas.scroll_into_view_if_needed()
        box = await canvas.bounding_box()
        assert box
        mouse = self.page.mouse
        for number, (x, y) in enumerate(points):
            await mouse.move(box["x"] + x, box["y"] + y)
            if number == 0:
                await mouse.down()
        await mouse.up()

    async def set_time_zone(self, name: str) -> None:
        session = await self._open_session()
        await session.send("Emulation.setTimezoneOverride", {"timezoneId": name})

    async def lose(self, path: str, *parts: Literal["request", "answer"]) -> None:
        """Breaks the connection of as many requests: before the server receives the request, or
        when it has answered.
        """
        losses = list(parts)

        async def handle(route: Route) -> None:
            if not losses:
                await route.continue_()
                return
            if losses.pop(0) == "answer":
                # The server may have closed the connection that is used again.
                await route.fetch(max_retries=3)
            await route.abort()

        await self.page.route(f"**{path}", handle)

    async def set_upload_speed(self, bytes_per_second: int) -> None:
        session = await self._open_session()
        conditions = {"offline": False, "latency": 0, "downloadThroughput": -1}
        await session.send(
            "Network.emulateNetworkConditions",
            {**conditions, "uploadThroughput": bytes_per_second},
        )

    async def _open_session(self) -> CDPSession:
        """What a session changes holds until it is detached."""
        session = await self.page.context.new_cdp_session(self.page)
        self._sessions.append(session)
        return session

    async def expect_success(self, message: str = "Thank you") -> None:
        await expect(self.page.locator(".outcome")).to_contain_text(message)


async def read_submission(client: Client, form: dict[str, Any]) -> dict[str, Any]:
    """Returns the only submission of a form."""
    (submission,) = await list_submissions(client, form)
    return submission
