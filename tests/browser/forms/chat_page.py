"""The chat of a form in a browser, as tests use it."""

from playwright.async_api import Page, expect


class Chat:
    """The chat of a form, as a visitor uses it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.input = page.get_by_label("Your answer")

    async def expect_question(self, text: str) -> None:
        question = self.page.locator(".bubble.assistant:not(.typing)").last
        await expect(question).to_contain_text(text)

    async def say(self, text: str) -> None:
        await self.input.fill(text)
        await self.input.press("Enter")

    async def press(self, name: str) -> None:
        await self.page.locator(".replies").get_by_role("button", name=name, exact=True).click()

    async def expect_progress(self, text: str) -> None:
        await expect(self.page.locator(".progress span")).to_have_text(text)

    async def expect_end(self) -> None:
        await expect(self.page.locator(".outcome")).to_contain_text("have been sent")
        await expect(self.input).to_have_count(0)
