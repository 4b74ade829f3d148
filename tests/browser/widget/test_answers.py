"""What can be done with an answer, and how its parts look."""

import re

from playwright.async_api import Route, expect

from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.conversations.embed.sites import Latch
from tests.model_server import Reply

_WIDE = "| " + " | ".join(f"Column {number}" for number in range(9)) + " |"
_TABLE = "\n".join([_WIDE, "|---" * 9 + "|", _WIDE])
_CODE = f"```\n{'long ' * 40}\n```"


async def test_an_answer_can_be_rated_and_the_rating_stays(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    good, bad = shop.button("Good answer"), shop.button("Bad answer")
    await expect(good).to_have_attribute("aria-pressed", "false")
    for button, other in ((good, bad), (bad, good)):
        async with shop.page.expect_response("**/feedback") as response:
            await button.click()
        assert (await response.value).status == 200
        await expect(button).to_have_attribute("aria-pressed", "true")
        await expect(other).to_have_attribute("aria-pressed", "false")
    await screenshots.take(shop.page, "widget-rated")
    assert await find_violations(shop.page) == []
    await shop.page.reload()
    await expect(bad).to_have_attribute("aria-pressed", "true")
    async with shop.page.expect_response("**/feedback"):
        await bad.click()
    await expect(bad).to_have_attribute("aria-pressed", "false")
    await shop.page.reload()
    await expect(bad).to_have_attribute("aria-pressed", "false")


async def test_a_rating_can_have_a_comment(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    bad = shop.button("Bad answer")
    await bad.focus()
    await shop.page.keyboard.press("Enter")
    comment = shop.page.get_by_label("What was good or wrong? (optional)")
    await expect(comment).to_be_visible()
    await expect(bad).to_be_focused()
    await screenshots.take(shop.page, "widget-comment")
    assert await find_violations(shop.page) == []
    await comment.focus()
    await shop.page.keyboard.type(" <b>We open at ten.</b> ")
    await shop.page.keyboard.press("Tab")
    await expect(shop.button("Send the comment")).to_be_focused()
    async with shop.page.expect_request("**/feedback") as request:
        await shop.page.keyboard.press("Enter")
    sent = (await request.value).post_data_json
    assert sent == {"rating": "down", "comment": "<b>We open at ten.</b>"}
    await expect(comment).to_have_count(0)
    await expect(bad).to_be_focused()
    await expect(shop.replies).to_contain_text("Thank you for your comment.")


async def test_a_comment_is_optional(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    comment = shop.page.get_by_label("What was good or wrong? (optional)")
    good = shop.button("Good answer")
    await good.click()
    await comment.press("Escape")
    await expect(comment).to_have_count(0)
    await expect(good).to_be_focused()
    await expect(good).to_have_attribute("aria-pressed", "true")
    await shop.button("Bad answer").click()
    await shop.button("Close without a comment").click()
    await expect(comment).to_have_count(0)
    await shop.button("Bad answer").click()
    await expect(shop.button("Bad answer")).to_have_attribute("aria-pressed", "false")
    await expect(comment).to_have_count(0)


async def test_a_rating_that_is_not_saved_is_taken_back(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await shop.page.route("**/feedback", lambda route: route.fulfill(status=500))
    await shop.button("Good answer").click()
    await expect(shop.replies).to_contain_text("Your rating could not be saved.")
    await expect(shop.button("Good answer")).to_have_attribute("aria-pressed", "false")


async def test_a_key_without_feedback_shows_no_ratings(shop: Shop) -> None:
    await shop.create_key(allow_feedback=False)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await expect(shop.button("Copy the answer")).to_be_visible()
    await expect(shop.button("Good answer")).to_have_count(0)


async def test_an_answer_can_be_copied(shop: Shop) -> None:
    await shop.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shop.talk.script(Reply(texts=["We open at **nine**."]))
    await shop.open_chat()
    await shop.ask("When?", "We open at nine.")
    await shop.button("Copy the answer").click()
    await expect(shop.panel.locator("[aria-live=polite]")).to_contain_text("Copied")
    copied = await shop.page.evaluate("navigator.clipboard.readText()")
    assert copied == "We open at **nine**."


async def test_the_last_answer_can_be_written_again(shop: Shop) -> None:
    shop.talk.script(*(Reply(texts=[text]) for text in ("First.", "Second.", "Better.")))
    await shop.open_chat()
    await shop.ask("One?", "First.")
    await shop.ask("Two?", "Second.")
    await shop.button("Answer again").click()
    await expect(shop.replies).to_contain_text(["First.", "Better."])
    asked = [item["content"] for item in shop.talk.asked[-1]["messages"] if item["role"] == "user"]
    assert asked == ["One?", "Two?"]
    await expect(shop.button("Answer again")).to_have_count(1)
    await expect(shop.button("Send")).to_be_visible()
    await shop.page.reload()
    await expect(shop.questions).to_have_text(["One?", "Two?"])
    await expect(shop.replies).to_contain_text(["First.", "Better."])


async def test_an_answer_that_is_refused_again_keeps_its_place(shop: Shop) -> None:
    await shop.create_key(max_messages_per_day=1)
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await shop.button("Answer again").click()
    await expect(shop.notice).to_contain_text("Please come back tomorrow.")
    await expect(shop.replies).to_contain_text("Hello there")
    await expect(shop.replies).not_to_have_class(re.compile("replaced"))
    await expect(shop.button("Answer again")).to_be_visible()


async def test_messages_have_their_time(shop: Shop) -> None:
    await shop.open_chat(lang="en-US")
    await shop.ask("Hi", "Hello there")
    time = shop.replies.locator("time")
    await expect(time).to_have_text(re.compile(r"^\d+:\d\d [AP]M$"))
    await expect(time).to_have_attribute("title", re.compile(r"day, .* \d{4} at \d+:\d\d:\d\d"))

    async def make_old(route: Route) -> None:
        answer = await route.fetch()
        text = re.sub(
            r'"created_at":"[^"]*"', '"created_at":"2020-01-02T12:00:00Z"', await answer.text()
        )
        await route.fulfill(response=answer, body=text)

    await shop.page.route("**/session", make_old)
    await shop.page.reload()
    await expect(time).to_have_text("Jan 2, 2020")
    await expect(time).to_have_attribute("datetime", "2020-01-02T12:00:00.000Z")


async def test_a_wide_table_fades_where_it_goes_on_and_copy_is_beside_the_code(shop: Shop) -> None:
    shop.talk.script(Reply(texts=[f"{_TABLE}\n\n{_CODE}"]))
    await shop.open_chat()
    await shop.ask("Table?", "Column 8")
    table = shop.replies.locator(".table")
    await expect(table).to_have_class(re.compile("more-after"))
    await screenshots.take(shop.page, "widget-wide")
    await table.evaluate("(element) => element.scrollTo(9999, 0)")
    await expect(table).to_have_class(re.compile("more-before"))
    await expect(table).not_to_have_class(re.compile("more-after"))
    copy, code = (
        await shop.button("Copy").bounding_box(),
        await shop.replies.locator("pre").bounding_box(),
    )
    assert copy
    assert code
    assert copy["y"] + copy["height"] <= code["y"]


async def test_a_long_answer_is_shown_from_its_start(shop: Shop) -> None:
    paragraphs = [f"Paragraph {number}.\n\n" for number in range(40)]
    latch = Latch(first=30)
    shop.talk.script(Reply(texts=["Short."]), Reply(texts=paragraphs, hold=latch))
    await shop.open_chat()
    await shop.ask("First", "Short.")
    await shop.send("Tell me all")
    await expect(shop.replies.last).to_contain_text("Paragraph 29.")
    question = shop.questions.last
    newer = shop.button("Show the newest messages")
    await expect(newer).to_be_visible()
    await expect(question).to_be_in_viewport(ratio=1)
    latch.open()
    await expect(shop.replies.last).to_contain_text("Paragraph 39.")
    await expect(shop.button("Send")).to_be_visible()
    await expect(question).to_be_in_viewport(ratio=1)
    await screenshots.take(shop.page, "widget-long")
    log, box = await shop.panel.get_by_role("log").bounding_box(), await question.bounding_box()
    assert log
    assert box
    assert 0 <= box["y"] - log["y"] < 30
    await newer.click()
    await expect(shop.replies.last.get_by_text("Paragraph 39.")).to_be_in_viewport()
    await expect(newer).to_be_hidden()


async def test_an_answer_leaves_the_live_region_once_it_is_read(shop: Shop) -> None:
    await shop.page.clock.install()
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    live = shop.panel.locator("[aria-live=polite] p")
    await expect(live).to_have_text(["Hello there"])
    await shop.page.clock.run_for(10_000)
    await expect(live).to_have_count(0)
    await expect(shop.replies).to_contain_text("Hello there")
