"""The page that tests use one after another.

A page in a context of its own takes two thirds of what most tests take, as it starts a process,
and loads and compiles all scripts.
"""

from playwright.async_api import Browser, Error, Page, ViewportSize

_VIEWPORT: ViewportSize = {"width": 1280, "height": 720}
_CLEAR_STORAGE = """() => {
    for (const name of ["localStorage", "sessionStorage"]) {
        try {
            window[name].clear();
        } catch {
            // This document may not store anything.
        }
    }
}"""


class Tab:
    """Its page has no animations, which would take much of the processor time. `errors` are those
    of the page's scripts, since the page was last given out.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None
        self.errors: list[str] = []

    async def open(self) -> Page:
        """Returns a page that looks like a new one."""
        if self._page is None:
            context = await self._browser.new_context(viewport=_VIEWPORT, reduced_motion="reduce")
            self._page = await context.new_page()
            self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.errors.clear()
        return self._page

    async def clear(self) -> None:
        """Removes what a test has left; a page that does not obey is replaced."""
        page = self._page
        if page is None:
            return
        try:
            await _clear(page)
        except Error:
            await self.close()

    async def close(self) -> None:
        page, self._page = self._page, None
        if page is not None:
            await page.context.close()


async def _clear(page: Page) -> None:
    await page.unroute_all(behavior="ignoreErrors")
    for frame in page.frames:
        await frame.evaluate(_CLEAR_STORAGE)
    await page.goto("about:blank", timeout=5_000)
    await page.emulate_media(color_scheme="null")
    if page.viewport_size != _VIEWPORT:
        await page.set_viewport_size(_VIEWPORT)
    await page.context.set_offline(offline=False)
    await page.context.clear_cookies()
    await page.context.clear_permissions()
