"""Chatting through the widget."""

import re

from playwright.async_api import expect

from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
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
```

1. Come in
2. Say `hello`
"""


async def test_a_message_is_answered_in_markdown(shop: Shop) -> None:
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
    await expect(reply.locator("pre code")).to_have_text('print("hello")')
    await expect(reply.locator("ol > li")).to_have_count(2)
    await screenshots.take(shop.page, "widget-markdown")
    assert await find_violations(shop.page) == []
