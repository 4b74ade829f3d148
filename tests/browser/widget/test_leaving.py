"""Conversations that a visitor leaves while something of them is on its way."""

import asyncio
import itertools
from typing import Any

from playwright.async_api import Locator, Route, expect

from tests.browser.widget.customers import sign
from tests.browser.widget.shop import Shop
from tests.conversations.embed.sites import Latch
from tests.model_server import Reply


class _Hold:
    """Holds the first request of a method to a path until `release`."""

    def __init__(self, shop: Shop, method: str, path: str) -> None:
        self._page = shop.page
        self._method = method
        self._path = path
        self._is_open = asyncio.Event()
        self.reached = asyncio.Event()

    async def start(self) -> None:
        await self._page.route(self._path, self._handle)

    async def _handle(self, route: Route) -> None:
        if route.request.method == self._method and not self.reached.is_set():
            self.reached.set()
            await self._is_open.wait()
        await route.continue_()

    async def release(self) -> None:
        """Returns when the answer has arrived."""
        async with self._page.expect_response(self._path):
            self._is_open.set()


def _asked(shop: Shop) -> list[str]:
    """What visitors said in the conversation that the model answered last."""
    return [item["content"] for item in shop.talk.asked[-1]["messages"] if item["role"] == "user"]


def _entry(shop: Shop, title: str) -> Locator:
    return shop.panel.locator(".entry", has_text=title)


def _lists(shop: Shop) -> Locator:
    return shop.page.locator("parley-chat .earlier")


async def _choose_files(shop: Shop, *names: str) -> None:
    files: list[Any] = [
        {"name": name, "mimeType": "text/plain", "buffer": b"Some words."} for name in names
    ]
    async with shop.page.expect_file_chooser() as chooser:
        await shop.button("Attach files").click()
    await (await chooser.value).set_files(files)


async def test_a_message_goes_into_the_conversation_on_screen(shop: Shop) -> None:
    """Another one is chosen while one is loaded."""
    await shop.open_chat()
    restart = shop.button("Start a new conversation")
    earlier = shop.button("Earlier conversations")
    for question in ("One", "Two", "Three"):
        await shop.ask(question, "Hello there")
        await restart.click()
    for method, title in itertools.product(("GET", "POST"), ("Two", "")):
        hold = _Hold(shop, method, "**/session")
        await hold.start()
        await earlier.click()
        await _entry(shop, "One").click()
        await hold.reached.wait()
        if title:
            await earlier.click()
            await _entry(shop, title).click()
            await expect(shop.questions.first).to_have_text(title)
        else:
            await restart.click()
        await hold.release()
        await shop.ask("Go on", "Hello there")
        shown = await shop.questions.all_text_contents()
        assert _asked(shop) == shown
        assert shown[0] == (title or "Go on")
        await shop.page.reload()
        await expect(shop.questions).to_have_text(shown)
        await shop.page.unroute_all()


async def test_a_question_that_waits_is_not_sent_as_another_customer(shop: Shop) -> None:
    await shop.create_key(require_user_token=True)
    await shop.open_chat(user_token=sign(shop, sub="customer-7"))
    await shop.page.context.set_offline(True)
    await shop.send("Mine")
    await expect(shop.messages).to_contain_text("Waiting for the connection…")
    await shop.page.evaluate("Parley.close()")
    await shop.page.evaluate("(token) => Parley.identify(token)", sign(shop, sub="customer-8"))
    await shop.page.context.set_offline(False)
    await shop.page.evaluate("Parley.open()")
    await expect(shop.messages).to_contain_text("Hello! How can I help you?")
    await expect(shop.notice).to_be_hidden()
    await shop.ask("Other", "Hello there")
    await expect(shop.questions).to_have_text(["Other"])
    assert _asked(shop) == ["Other"]
    assert len(shop.talk.asked) == 1


async def test_a_question_that_waits_for_its_file_stays_with_it(shop: Shop) -> None:
    await shop.create_key(allow_attachments=True)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    hold = _Hold(shop, "POST", "**/attachments")
    await hold.start()
    await _choose_files(shop, "note.txt")
    await hold.reached.wait()
    await shop.send("What does it say?")
    await shop.button("Start a new conversation").click()
    await expect(shop.page.locator("parley-chat .waiting .file")).to_have_count(0)
    await expect(shop.input).to_have_value("What does it say?")
    await shop.ask("Without a file", "Hello there")
    await expect(shop.questions).to_have_text(["Without a file"])


async def test_files_that_are_sent_at_once_belong_to_one_session(shop: Shop) -> None:
    await shop.create_key(allow_attachments=True)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await shop.button("Start a new conversation").click()
    shop.requested_urls.clear()
    await _choose_files(shop, "a.txt", "b.txt", "c.txt")
    await shop.ask("What do they say?", "Hello there")
    assert [f"{name}.txt" in str(_asked(shop)[-1]) for name in "abc"] == [True] * 3
    assert len([url for url in shop.requested_urls if url.endswith("/session")]) == 1


async def test_an_answer_of_a_conversation_that_was_left_is_not_shown(shop: Shop) -> None:
    latch = Latch(first=1)
    shop.talk.script(
        Reply(texts=["Old."]),
        Reply(texts=["Half", " of it."], hold=latch),
        Reply(texts=["New."]),
    )
    await shop.open_chat(suggestions="Another")
    await shop.ask("Hi", "Old.")
    await shop.send("More")
    await expect(shop.replies.last).to_contain_text("Half")
    await shop.button("Start a new conversation").click()
    await expect(shop.replies).to_have_count(0)
    latch.open()
    await shop.button("Another").click()
    await expect(shop.replies).to_contain_text(["New."])
    await expect(shop.button("Send")).to_be_visible()
    await expect(shop.questions).to_have_text(["Another"])
    await expect(shop.page.locator("parley-chat .typing")).to_have_count(0)


async def test_there_is_one_list_of_conversations_and_none_of_another_customer(shop: Shop) -> None:
    await shop.create_key(require_user_token=True)
    await shop.open_chat(user_token=sign(shop, sub="customer-7"))
    earlier = shop.button("Earlier conversations")
    for question in ("One", "Two"):
        await shop.ask(question, "Hello there")
        await shop.button("Start a new conversation").click()
    hold = _Hold(shop, "GET", "**/conversations")
    await hold.start()
    await earlier.dblclick()
    await hold.release()
    await expect(_entry(shop, "One")).to_be_visible()
    await expect(_lists(shop)).to_have_count(1)
    await shop.button("Back to the conversation").click()
    await expect(_lists(shop)).to_have_count(0)
    await expect(shop.input).to_be_focused()
    for script in (
        "Parley.close().then(() => Parley.open())",
        f"Parley.identify('{sign(shop, sub='customer-8')}')",
    ):
        await shop.page.unroute_all()
        hold = _Hold(shop, "GET", "**/conversations")
        await hold.start()
        await earlier.click()
        await hold.reached.wait()
        await shop.page.evaluate(script)
        await hold.release()
        await shop.ask("Go on", "Hello there")
        await expect(_lists(shop)).to_have_count(0)
