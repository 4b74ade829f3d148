"""What visitors see when something is wrong."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.browser import screenshots
from tests.browser.widget.shop import Shop
from tests.conversations.embed.factories import KEYS_PATH, revoke_key
from tests.model_server import Reply

# Rules of a key that refuse this visitor.
_REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"allowed_domains": ["https://other.example.com"]},
        "This chat is not set up for this website.",
    ),
    ({"require_user_token": True}, "Sign in on this page to use the chat."),
]


async def test_a_chat_that_cannot_start_says_why(shop: Shop, subtests: pytest.Subtests) -> None:
    for rules, text in _REFUSALS:
        with subtests.test(text):
            await shop.create_key(**rules)
            await shop.open_page()
            # A panel that was open before opens again.
            await shop.page.evaluate("Parley.open()")
            await expect(shop.notice).to_have_text(text)
            await screenshots.take(shop.page, "widget-refused")


async def test_a_key_that_is_changed_or_revoked_holds_for_the_next_message(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    rules = {"allowed_domains": ["https://other.example.com"]}
    answer = await shop.talk.client.put(f"{KEYS_PATH}/{shop.key['id']}", rules)
    assert answer.status_code == 200, answer.text
    await shop.send("May I?")
    await expect(shop.notice).to_have_text("This chat is not set up for this website.")
    await revoke_key(shop.talk.client, shop.key["id"])
    await shop.send("Still there?")
    await expect(shop.notice).to_have_text("This chat is no longer available.")


async def test_a_used_up_day_says_when_to_come_back(shop: Shop) -> None:
    # With tokens of sessions, which such a key demands.
    await shop.create_key(max_messages_per_day=1, require_session_token=True)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await shop.send("More?")
    await expect(shop.notice).to_contain_text("Please come back tomorrow.")
    await expect(shop.button("Try again")).to_have_count(0)


async def test_a_rate_limit_counts_down(shop: Shop) -> None:
    admin = await shop.talk.world.user("super_admin")
    limits = {"limits": {"requests_per_minute": 35, "burst_multiplier": 1}, "plan": "enterprise"}
    tenant = f"/api/v1/tenants/{shop.talk.client.tenant_id}"
    answer = await admin.put(tenant, limits)
    assert answer.status_code == 200, answer.text
    await shop.open_chat()
    for number in range(10):
        await shop.send(f"Message {number}")
        await expect(shop.button("Send")).to_be_visible()
        if await shop.notice.is_visible():
            break
    await expect(shop.notice).to_have_text(re.compile(r"You can go on in \d+ s\."))
    await screenshots.take(shop.page, "widget-limited")


async def test_an_answer_that_fails_or_breaks_off_can_be_asked_for_again(shop: Shop) -> None:
    shop.talk.script(
        Reply(status=400),
        Reply(texts=["Now it works."]),
        Reply(texts=["Half an", " answer"], drop_after=1),
        Reply(texts=["All of it."]),
    )
    await shop.open_chat()
    await shop.send("Hi")
    await expect(shop.notice).to_contain_text("Something went wrong on our side.")
    await screenshots.take(shop.page, "widget-failed")
    await shop.button("Try again").click()
    await expect(shop.replies.last).to_contain_text("Now it works.")
    await expect(shop.questions).to_have_count(1)
    await expect(shop.notice).to_be_hidden()
    await shop.send("And more?")
    await expect(shop.notice).to_be_visible()
    # What was said before the stream broke stays.
    await expect(shop.replies.last).to_contain_text("Half an")
    await shop.button("Try again").click()
    await expect(shop.replies.last).to_contain_text("All of it.")


async def test_a_message_waits_for_the_messages_before_it(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("One", "Hello there")
    is_held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        is_held.set()
        await released.wait()
        await route.continue_()

    await shop.page.route("**/session", hold)
    await shop.page.reload()
    await shop.send("Two")
    await shop.input.press("Enter")
    await is_held.wait()
    released.set()
    await expect(shop.questions).to_have_text(["You: One", "You: Two"])
    await expect(shop.replies).to_have_count(2)
    await expect(shop.input).to_have_value("")


async def test_a_message_waits_for_the_connection(shop: Shop) -> None:
    await shop.open_chat()
    await shop.page.context.set_offline(True)
    await shop.send("Are you there?")
    await expect(shop.notice).to_contain_text("You are offline.")
    await screenshots.take(shop.page, "widget-offline")
    await shop.page.context.set_offline(False)
    await expect(shop.replies.last).to_contain_text("Hello there")
    await expect(shop.questions).to_have_count(1)
