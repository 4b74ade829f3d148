"""Forms that visitors fill in by chat."""

import re
from typing import Any

from playwright.async_api import expect

from tests.browser.axe import find_violations
from tests.browser.forms.chat_page import Chat
from tests.browser.forms.every_field import ASKED, FIELDS, REPLIES, reply
from tests.browser.forms.form_page import FormPage, read_submission
from tests.browser.screenshots import take
from tests.forms.api import EMAIL, TEXT, TOPIC, create_form, list_submissions, update_form
from tests.world import Client

_NO_MODEL = {"conversation": {"model": "none", "greeting": "Hello!"}, "success_message": "Done."}


async def _open(form_page: FormPage, form: dict[str, Any], rest: str = "?mode=chat") -> Chat:
    """Opens the chat and waits for its first question."""
    await form_page.open(form, rest)
    chat = Chat(form_page.page)
    await chat.expect_question("Hello!")
    return chat


async def test_every_type_of_field_is_answered_by_chat(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, *FIELDS, name="Plan your visit", settings=_NO_MODEL)
    chat = await _open(form_page, form, "?mode=chat&campaign=spring")
    await chat.expect_progress(f"0 of {len(ASKED)}")
    await take(form_page.page, "chat")
    assert await find_violations(form_page.page) == []
    await reply(chat)
    await chat.expect_end()
    await chat.expect_question("Done.")
    await chat.expect_progress(f"{len(ASKED)} of {len(ASKED)}")
    await take(form_page.page, "chat-sent")
    assert await find_violations(form_page.page) == []
    submission = await read_submission(developer, form)
    data = dict(submission["data"])
    files = {file["field_id"]: file["file_id"] for file in submission["files"]}
    assert {name: data.pop(name) for name in ("document", "signature")} == files
    assert data == REPLIES
    assert form_page.external_urls == []


async def test_a_chat_survives_a_reload_and_can_be_started_over(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC, settings=_NO_MODEL)
    chat = await _open(form_page, form)
    await chat.say("Ada")
    await chat.expect_question("Your e-mail")
    await form_page.page.reload()
    await chat.expect_question("Your e-mail")
    await chat.expect_progress("1 of 3")
    await expect(form_page.page.locator(".bubble.user")).to_have_text("Ada")
    await chat.press("Skip")
    await chat.press("Sales")
    await chat.expect_end()
    await form_page.page.reload()
    await chat.expect_end()
    await form_page.page.get_by_role("button", name="Answer again").click()
    await chat.expect_progress("0 of 3")
    await expect(chat.input).to_be_visible()
    assert len(await list_submissions(developer, form)) == 1


async def test_a_wrong_answer_is_explained_and_asked_for_again(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, {**EMAIL, "required": True}, TEXT, settings=_NO_MODEL)
    chat = await _open(form_page, form)
    await chat.say("ada at example")
    await chat.expect_question("must be an e-mail address")
    # Screen readers hear the whole message at once.
    spoken = form_page.page.locator("[aria-live=polite]")
    await expect(spoken).to_contain_text(re.compile("must be an e-mail address.*Please try again"))
    await chat.say("ada@example.com")
    await chat.expect_question("Your name")
    await expect(chat.input).to_be_focused()


async def test_a_message_whose_reply_was_lost_is_not_sent_twice(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, settings=_NO_MODEL)
    chat = await _open(form_page, form)
    await form_page.lose("/messages/stream", "answer", "request")
    await chat.say("Ada")
    failure = form_page.page.get_by_role("alert")
    await expect(failure).to_contain_text("The connection was lost")
    await take(form_page.page, "chat-connection-lost")
    await failure.get_by_role("button", name="Try again").click()
    # The server has it: the question that follows is shown.
    await chat.expect_question("Your e-mail")
    await expect(form_page.page.locator(".bubble.user")).to_have_count(1)
    await chat.say("ada@example.com")
    await failure.get_by_role("button", name="Try again").click()
    await chat.expect_end()
    assert (await read_submission(developer, form))["data"] == {
        "name": "Ada",
        "email": "ada@example.com",
    }


async def test_another_message_after_a_lost_one_finds_what_the_server_has(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC, settings=_NO_MODEL)
    chat = await _open(form_page, form)
    await form_page.lose("/messages/stream", "request", "answer")
    failure, bubbles = form_page.page.get_by_role("alert"), form_page.page.locator(".bubble.user")
    # The first message is lost, the second one arrives without a reply.
    await chat.say("Bob")
    await expect(failure).to_contain_text("The connection was lost")
    await chat.say("Ada")
    await expect(bubbles).to_have_text(["Ada"])
    await expect(failure).to_contain_text("The connection was lost")
    # What is typed next was not meant for the question that follows.
    await chat.say("Ada Lovelace")
    await chat.expect_question("Your e-mail")
    await expect(bubbles).to_have_text(["Ada"])
    await expect(chat.input).to_have_value("Ada Lovelace")
    await expect(chat.input).to_be_focused()
    await chat.say("ada@example.com")
    await chat.expect_question("Topic")
    await expect(bubbles).to_have_text(["Ada", "ada@example.com"])
    await chat.press("Sales")
    await chat.expect_end()
    data = (await read_submission(developer, form))["data"]
    assert data == {"name": "Ada", "email": "ada@example.com", "topic": "sales"}


async def test_a_chat_with_a_form_that_was_closed_says_so(
    form_page: FormPage, developer: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL, settings=_NO_MODEL)
    chat = await _open(form_page, form)
    await update_form(developer, form, settings={"closes_at": "2026-01-01T00:00:00Z"})
    await chat.say("Ada")
    await expect(form_page.page.get_by_role("alert")).to_contain_text("was closed")
