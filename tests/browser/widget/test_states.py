"""What visitors see when something is wrong."""

import asyncio
import itertools
import re
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.assertions import wait_until
from tests.browser import looks, screenshots
from tests.browser.widget.shop import Shop
from tests.conversations.embed.factories import KEYS_PATH, revoke_key
from tests.conversations.embed.sites import Latch
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
            await expect(shop.input).to_be_hidden()
            assert await looks.find_problems(shop.page, "widget-refused", 1280, 360) == []
            await shop.page.keyboard.press("Escape")
            await expect(shop.panel).to_be_hidden()


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
    await expect(shop.notice).to_have_text(re.compile(r"You can continue in \d+ s\."))
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
    await expect(shop.replies).to_contain_text("Something went wrong on our side.")
    spoken = shop.panel.locator("[aria-live=polite]")
    await expect(spoken).to_contain_text("Something went wrong on our side.")
    await screenshots.take(shop.page, "widget-failed")
    await shop.page.reload()
    await expect(shop.replies).to_contain_text("Something went wrong on our side.")
    # It was said when it happened.
    assert await spoken.text_content() == ""
    await shop.button("Try again").click()
    await expect(shop.replies).to_contain_text("Now it works.")
    await expect(shop.questions).to_have_count(1)
    await expect(shop.button("Send")).to_be_visible()
    await shop.send("And more?")
    await expect(shop.replies.last).to_contain_text("The answer broke off.")
    # What was said before the stream broke stays.
    await shop.page.reload()
    await expect(shop.replies.last).to_contain_text("Half an")
    await expect(shop.replies.last).to_contain_text("The answer broke off.")
    assert await looks.find_problems(shop.page, "widget-broken-off", 1280, 360) == []
    await shop.button("Try again").click()
    await expect(shop.replies.last).to_contain_text("All of it.")
    await expect(shop.button("Send")).to_be_visible()
    await shop.page.reload()
    await expect(shop.questions).to_have_text(["Hi", "And more?"])
    await expect(shop.replies).to_contain_text(["Now it works.", "All of it."])
    await expect(shop.button("Try again")).to_have_count(0)


async def _has_stored_an_answer(shop: Shop) -> bool:
    page = (await shop.talk.client.get(f"{shop.talk.path}/conversations")).json()
    return any(conversation["message_count"] == 2 for conversation in page["data"])


async def test_an_answer_that_the_visitor_stopped_says_so_after_a_reload(shop: Shop) -> None:
    latch = Latch(first=1)
    shop.talk.script(Reply(texts=["One sentence. ", "Another."], hold=latch))
    await shop.open_chat()
    await shop.send("Hi")
    await expect(shop.replies).to_contain_text("One sentence.")
    await shop.button("Stop").click()
    await wait_until(partial(_has_stored_an_answer, shop))
    latch.open()
    for _ in range(2):
        await expect(shop.replies).to_contain_text("Stopped")
        await expect(shop.replies).not_to_contain_text("broke off")
        await expect(shop.button("Answer again")).to_be_visible()
        await shop.page.reload()


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
    await expect(shop.questions).to_have_text(["One", "Two"])
    await expect(shop.replies).to_have_count(2)
    await expect(shop.input).to_have_value("")


async def test_a_message_waits_for_the_connection(shop: Shop) -> None:
    await shop.open_chat()
    await shop.page.context.set_offline(True)
    await expect(shop.notice).to_contain_text("You are offline.")
    await shop.send("Are you there?")
    await expect(shop.questions).to_have_text("Are you there?")
    await expect(shop.messages).to_contain_text("Waiting for the connection…")
    await shop.send("Hello?")
    await expect(shop.input).to_have_value("Hello?")
    await screenshots.take(shop.page, "widget-offline")
    await shop.page.context.set_offline(False)
    await expect(shop.replies.last).to_contain_text("Hello there")
    await expect(shop.messages).not_to_contain_text("Waiting for the connection…")
    await expect(shop.questions).to_have_count(1)
    await expect(shop.notice).to_be_hidden()


async def test_a_panel_shows_the_shapes_of_messages_while_it_loads(shop: Shop) -> None:
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await shop.page.route("**/session", hold)
    await shop.open_page()
    await shop.launcher.click()
    await expect(shop.messages).to_have_attribute("aria-busy", "true")
    await expect(shop.messages).to_have_text("Loading the conversation…")
    await screenshots.take(shop.page, "widget-loading")
    released.set()
    await expect(shop.messages).to_contain_text("Hello! How can I help you?")
    await expect(shop.messages).not_to_contain_text("Loading")


async def test_the_owner_of_a_site_reads_why_the_chat_is_refused(
    shop: Shop, subtests: pytest.Subtests
) -> None:
    lines: list[str] = []
    shop.page.on("console", lambda message: lines.append(message.text))
    cases = [
        ("origin", {"allowed_domains": ["https://other.example.com"]}, "", "allowed_domains"),
        ("key", {}, "emb_unknown0123456789", "POST /api/v1/embed/api-keys"),
    ]
    for name, rules, other_key, advice in cases:
        with subtests.test(name):
            await shop.create_key(**rules)
            shop.key["api_key"] = other_key or shop.key["api_key"]
            lines.clear()
            await shop.open_page()
            await shop.page.evaluate("Parley.open()")
            await expect(shop.notice).to_have_text("This chat is not set up for this website.")
            [line] = [line for line in lines if line.startswith("Parley")]
            assert shop.site.url in line
            assert f"{shop.key['api_key'][:12]}…" in line
            assert shop.key["api_key"] not in line
            assert advice in line


async def test_a_notice_covers_no_message_and_nothing_covers_the_ring_of_the_field(
    shop: Shop,
) -> None:
    """It takes its room from the log, which stays at its end."""
    await shop.create_key(max_messages_per_day=5)
    await shop.open_chat()
    for number in range(5):
        await shop.ask(f"Question {number}", "Hello there")
    await shop.send("One more")
    await expect(shop.notice).to_be_visible()
    await screenshots.take(shop.page, "widget-notice")
    await expect(shop.questions.last).to_be_in_viewport(ratio=1)
    parts = [
        shop.questions.last,
        shop.notice,
        shop.panel.locator(".composer"),
        shop.panel.locator(".small-print"),
    ]
    boxes = [await part.bounding_box() for part in parts]
    edges = [(box["y"], box["y"] + box["height"]) for box in boxes if box]
    gaps = [below[0] - above[1] for above, below in itertools.pairwise(edges)]
    assert len(gaps) == 3
    assert min(gaps) >= 4


async def test_unknown_events_of_a_stream_are_ignored(shop: Shop) -> None:
    async def add_event(route: Route) -> None:
        answer = await route.fetch()
        event = 'event: progress\ndata: {"stage": "reading"}\n\n'
        await route.fulfill(response=answer, body=event + await answer.text())

    await shop.page.route("**/chat/stream", add_event)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")


async def test_answers_are_shown_without_their_styles_which_are_asked_for_again(shop: Shop) -> None:
    await shop.page.route("**/answer.css", lambda route: route.abort())
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    copy = shop.button("Copy the answer")
    await expect(copy).to_be_visible()
    await shop.page.unroute_all()
    count = "document.querySelector('parley-chat').shadowRoot.adoptedStyleSheets.length"
    before = await shop.page.evaluate(count)
    await shop.ask("Again", "Hello there")
    await expect(copy).to_have_count(2)
    await shop.ask("And again", "Hello there")
    assert await shop.page.evaluate(count) == before + 1
