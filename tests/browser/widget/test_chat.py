"""Chatting through the widget."""

import re

from playwright.async_api import expect

from tests.assertions import until
from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.conversations.embed.sites import Latch
from tests.model_server import Reply

MARKDOWN = """## Opening hours

We are open **every day** but *Sunday*, see [our page](https://shop.example.com/hours).

- Monday to Friday: 9 to 18
- Saturday: 10 to 14
  - in December until 18

| Day | From | To |
|---|---:|---:|
| Monday | 9 | 18 |
| Saturday | 10 | 14 |

```python
print("hello")
print("there")
```

1. Come in
2. Say `hello`
"""

_CODE = 'print("hello")\nprint("there")'


async def test_a_message_is_answered_in_markdown_whose_code_can_be_copied(shop: Shop) -> None:
    await shop.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shop.talk.script(Reply(texts=re.findall(r"\S+\s*", MARKDOWN)))
    await shop.open_chat(greeting="Hello! How can I help?", suggestions="Hours?|Returns?")
    await screenshots.take(shop.page, "widget-open")
    await shop.ask("When do you open?", "Say hello")
    reply = shop.replies.last
    await expect(reply.locator("h4")).to_have_text("Opening hours")
    await expect(reply.locator("strong")).to_have_text("every day")
    await expect(reply.locator("em")).to_have_text("Sunday")
    await expect(reply.locator("a")).to_have_attribute("href", "https://shop.example.com/hours")
    await expect(reply.locator("ul > li > ul > li")).to_have_text("in December until 18")
    await expect(reply.locator("tbody tr")).to_have_count(2)
    await expect(reply.locator("pre code")).to_have_text(_CODE, use_inner_text=True)
    await expect(reply.locator("ol > li")).to_have_count(2)
    await screenshots.take(shop.page, "widget-markdown")
    assert await find_violations(shop.page) == []
    await shop.button("Copy").click()
    await expect(shop.button("Copied")).to_be_visible()
    assert await shop.page.evaluate("navigator.clipboard.readText()") == _CODE


async def test_a_reply_grows_is_spoken_in_whole_sentences_and_can_be_stopped(shop: Shop) -> None:
    latch = Latch(first=3)
    texts = ["First **sen", "tence**. And", " the sec", "ond one. "]
    shop.talk.script(Reply(texts=texts, hold=latch))
    await shop.open_chat()
    await shop.send("Tell me")
    await expect(shop.replies.last).to_contain_text("First sentence. And the sec")
    await expect(shop.replies.last).to_have_class(re.compile("streaming"))
    await screenshots.take(shop.page, "widget-streaming")
    await latch.reached.wait()
    # What screen readers hear.
    live = shop.panel.locator("[aria-live=polite] p")
    await expect(live).to_have_text(["First sentence."])
    await expect(shop.panel.get_by_role("log")).to_have_attribute("aria-live", "off")
    latch.open()
    await expect(live).to_have_text(["First sentence.", "And the second one."])
    await _stop_a_reply(shop)


async def _stop_a_reply(shop: Shop) -> None:
    """The model is cancelled, and answers the next message."""
    latch = Latch(first=2)
    shop.talk.script(Reply(texts=["One sentence. ", "Half of", " another."], hold=latch))
    await expect(shop.button("Send")).to_be_visible()
    closed_early = shop.talk.models.closed_early
    await shop.send("Go on")
    await expect(shop.replies.last).to_contain_text("One sentence. Half of")
    await latch.reached.wait()
    await shop.button("Stop").click()
    await expect(shop.replies.last).to_contain_text("Stopped")
    # Before the latch opens: after that, the model might be faster than the news.
    await until(lambda: shop.talk.models.closed_early > closed_early)
    latch.open()
    shop.talk.script(Reply(texts=["Back again."]))
    await shop.ask("And now?", "Back again.")


async def test_a_reload_keeps_the_conversation(shop: Shop) -> None:
    shop.talk.script(Reply(texts=["The first answer."]), Reply(texts=["The second answer."]))
    await shop.open_chat()
    await shop.ask("One?", "The first answer.")
    await shop.page.reload()
    await expect(shop.questions).to_have_text(["One?"])
    await expect(shop.replies).to_contain_text(["The first answer."])
    await shop.ask("Two?", "The second answer.")
    assert [
        item["content"] for item in shop.talk.asked[-1]["messages"] if item["role"] == "user"
    ] == [
        "One?",
        "Two?",
    ]
    await shop.button("Start a new conversation").click()
    await expect(shop.questions).to_have_count(0)
    await shop.page.reload()
    await expect(shop.input).to_be_visible()
    await expect(shop.questions).to_have_count(0)


async def test_a_reply_to_a_closed_panel_is_counted_as_unread(shop: Shop) -> None:
    latch = Latch()
    shop.talk.script(Reply(texts=["While you were away."], hold=latch))
    await shop.open_chat()
    await shop.send("Slow question")
    await latch.reached.wait()
    await shop.page.keyboard.press("Escape")
    await expect(shop.panel).to_be_hidden()
    latch.open()
    await expect(shop.launcher).to_have_accessible_name("Open chat, 1 unread")
    await screenshots.take(shop.page, "widget-unread")
    await shop.page.reload()
    await expect(shop.launcher).to_have_accessible_name("Open chat, 1 unread")
    await shop.launcher.click()
    await expect(shop.replies.last).to_contain_text("While you were away.")
    await expect(shop.launcher).to_have_accessible_name("Close chat")
