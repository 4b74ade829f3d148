"""Conversations in the console: the list with its filters and views, and a conversation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser import hostile
from tests.browser.console.console import Console
from tests.browser.console.conversation_rows import (
    add_conversation,
    add_messages,
    add_turn,
    begin_to_read,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.world import Client

# What the browser does when somebody comes back to the tab.
_COME_BACK = "document.dispatchEvent(new Event('visibilitychange'))"
_LOG = "document.querySelector('.log')"
_DELETE_SOON = "dispatchEvent(new Event('pagehide'))"


async def open_list(console: Console, user: Client, filters: str = "") -> None:
    await console.sign_in(user)
    await console.open(f"/conversations{filters}", title="Conversations")


async def read_list(user: Client) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await user.get("/api/v1/conversations")).json()["data"]
    return rows


@pytest.fixture
async def mixed(talk: Talker) -> Talker:
    """An agent with conversations of several kinds. The reader begins to read before them."""
    await begin_to_read(talk)
    customer = {"id": "c-1", "name": "Ada Lovelace", "email": "ada@example.com"}
    await add_conversation(talk, "Opening hours", visitor=customer, ratings_up=1, minutes=9)
    await add_conversation(talk, "Broken order", failed_answers=1, ratings_down=2, minutes=8)
    await add_conversation(talk, "From a client", source="openai", minutes=7)
    return talk


async def test_the_list_is_filtered_and_a_conversation_opened_by_keyboard_alone(
    console: Console, mixed: Talker
) -> None:
    await open_list(console, mixed.client)
    await expect(console.row("Broken order")).to_be_visible()
    keyboard = console.page.keyboard
    await keyboard.press("/")
    await keyboard.type("O")
    await keyboard.press("Tab")
    await keyboard.press("Tab")
    await keyboard.type("Web")
    await expect(console.row("From a client")).to_have_count(0)
    assert console.path == "/conversations?search=O&source=embed"
    await console.row("Opening hours").focus()
    await keyboard.press("ArrowUp")
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Broken order")
    await expect(console.heading).to_be_focused()
    await console.page.go_back()
    await expect(console.page.get_by_role("searchbox")).to_have_value("O")


async def test_what_was_opened_is_read_and_all_can_be(console: Console, mixed: Talker) -> None:
    await open_list(console, mixed.client)
    row = console.row("Opening hours")
    await expect(row).to_contain_text("Unread:")
    await row.click()
    details = console.page.get_by_role("complementary", name="Details")
    await expect(details).to_contain_text("Ada Lovelace")
    await console.page.go_back()
    await expect(row).to_be_visible()
    await expect(row).not_to_contain_text("Unread:")
    await row.get_by_role("button", name="Mark as unread").click()
    await expect(row).to_contain_text("Unread:")
    await console.button("Mark all as read").click()
    await expect(console.page.get_by_text("Unread:")).to_have_count(0)
    assert not any(row["unread"] for row in await read_list(mixed.client))


async def test_new_rows_appear_by_themselves_if_the_filter_has_them(
    console: Console, mixed: Talker
) -> None:
    await open_list(console, mixed.client, "?source=embed")
    await expect(console.row("Broken order")).to_be_visible()
    await add_conversation(mixed, "From the site", minutes=3)
    await add_conversation(mixed, "From another client", source="openai", minutes=2)
    await console.page.evaluate(_COME_BACK)
    await expect(console.row("From the site")).to_be_visible()
    await expect(console.row("Opening hours")).to_be_visible()
    await expect(console.row("From another client")).to_have_count(0)


async def test_a_long_list_goes_on_where_it_ended(console: Console, talk: Talker) -> None:
    for number in range(60):
        await add_conversation(talk, f"Number {number}", minutes=number + 1)
    await open_list(console, talk.client)
    await expect(console.row("Number 49")).to_be_visible()
    await console.button("Show more").click()
    await expect(console.row("Number 59")).to_be_visible()
    await add_conversation(talk, "Newest")
    await console.page.evaluate(_COME_BACK)
    await expect(console.row("Newest")).to_be_visible()
    await expect(console.page.locator("tbody tr")).to_have_count(61)


async def test_filters_are_saved_shared_renamed_and_deleted(
    console: Console, mixed: Talker
) -> None:
    await open_list(console, mixed.client, "?failed=true")
    await console.button("Save as a view").click()
    dialog = console.dialog("Save as a view")
    await dialog.get_by_label("Name").fill("What failed")
    await dialog.get_by_label("Share with everybody").check()
    await console.page.keyboard.press("Enter")
    view = console.page.get_by_role("link", name="What failed")
    await expect(view).to_have_attribute("aria-current", "page")
    await console.page.get_by_role("link", name="All", exact=True).click()
    await expect(console.row("Opening hours")).to_be_visible()
    await view.click()
    await expect(console.row("Opening hours")).to_have_count(0)
    await expect(console.row("Broken order")).to_be_visible()
    await console.page.get_by_role("combobox", name="Rating").select_option("down")
    await console.button("Save changes").click()
    await expect(console.button("Save changes")).to_have_count(0)
    await console.button("Actions of the view").click()
    await console.page.get_by_role("menuitem", name="Edit the view").click()
    dialog = console.dialog("Edit the view")
    await dialog.get_by_label("Name").fill("Failed and bad")
    await dialog.get_by_role("button", name="Save").click()
    await expect(console.page.get_by_role("link", name="Failed and bad")).to_be_visible()
    [saved] = (await mixed.client.get("/api/v1/views")).json()["data"]
    assert (saved["filters"], saved["is_shared"]) == ({"failed": "true", "rating": "down"}, True)
    await console.button("Actions of the view").click()
    await console.page.get_by_role("menuitem", name="Delete the view").click()
    await expect(console.page.get_by_role("link", name="Failed and bad")).to_have_count(0)
    await console.button("Undo").click()
    await expect(console.page.get_by_role("link", name="Failed and bad")).to_be_visible()


async def test_a_shared_view_of_somebody_else_can_only_be_opened(
    console: Console, mixed: Talker
) -> None:
    view = {"kind": "conversations", "name": "Theirs", "filters": {"rating": "up"}}
    await mixed.client.post("/api/v1/views", {**view, "is_shared": True})
    colleague = await mixed.world.user("agent_developer", mixed.client.tenant_id)
    await open_list(console, colleague)
    await console.page.get_by_role("link", name="Theirs").click()
    await expect(console.row("Broken order")).to_have_count(0)
    await expect(console.row("Opening hours")).to_be_visible()
    await expect(console.button("Actions of the view")).to_have_count(0)


async def export(console: Console, kind: str, folder: Path) -> str:
    await console.button("Export").click()
    async with console.page.expect_download() as download:
        await console.page.get_by_role("menuitem", name=f"As {kind}").click()
    path = folder / f"export.{kind}"
    await (await download.value).save_as(path)
    return path.read_text("utf-8")


async def test_an_export_has_exactly_what_the_filter_shows(
    console: Console, mixed: Talker, tmp_path: Path
) -> None:
    urls: list[str] = []
    console.page.on("request", lambda request: urls.append(request.url))
    row = next(row for row in await read_list(mixed.client) if row["title"] == "Broken order")
    await add_turn(mixed, row["id"], "Where is it?", "=SUM(1)")
    await open_list(console, mixed.client, "?rating=down")
    await expect(console.row("Broken order")).to_be_visible()
    lines = (await export(console, "JSONL", tmp_path)).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row["id"]]
    assert "'=SUM(1)" in await export(console, "CSV", tmp_path)
    assert not [url for url in urls if "token" in url]


async def test_the_figures_of_an_agent_are_above_its_conversations(
    console: Console, talk: Talker
) -> None:
    await talk.say("Hi")
    await open_list(console, talk.client, f"?agent_id={talk.agent_id}")
    figures = console.page.get_by_role("region", name="Figures of the agent")
    await expect(figures).to_contain_text("18 tokens")
    await expect(console.row("Hi")).to_be_visible()


async def test_users_see_their_own_conversations_and_no_export(
    console: Console, mixed: Talker
) -> None:
    user = await mixed.world.user("agent_user", mixed.client.tenant_id)
    await open_list(console, user)
    await expect(console.page.get_by_text("No conversations yet")).to_be_visible()
    await expect(console.button("Export")).to_have_count(0)


# A conversation


async def test_a_long_conversation_opens_at_its_end_and_loads_what_is_scrolled_to(
    console: Console, talk: Talker
) -> None:
    conversation_id = await add_conversation(talk, "Long")
    await add_messages(talk, conversation_id, 5000)
    await console.sign_in(talk.client)
    await console.open(f"/conversations/{conversation_id}", title="Long")
    log = console.page.get_by_role("region", name="Messages")
    await expect(log.get_by_text("Message 5000")).to_be_in_viewport()
    await expect(log.locator("li[data-key]").nth(49)).to_have_count(0)
    for first in (4950, 4900, 4850):
        old = log.get_by_text(f"Message {first} ", exact=False)
        while not await old.count():
            await console.page.evaluate(f"{_LOG}.scrollTop -= 600")
            await console.page.wait_for_timeout(0)
    await expect(log.get_by_text("Message 5000")).to_have_count(0)
    assert await log.locator("li[data-key]").count() < 50


async def find_position(page: Page, key: str) -> float:
    position: float = await page.evaluate(
        "key => document.querySelector(`[data-key='${key}']`).getBoundingClientRect().top", key
    )
    return position


async def test_what_is_in_view_stays_there_while_older_messages_load(
    console: Console, talk: Talker
) -> None:
    conversation_id = await add_conversation(talk, "Long")
    await add_messages(talk, conversation_id, 120)
    await console.sign_in(talk.client)
    await console.page.route("**/messages?before=*", lambda _: None)
    await console.open(f"/conversations/{conversation_id}", title="Long")
    await expect(console.page.get_by_text("Message 120")).to_be_in_viewport()
    await console.page.evaluate(f"{_LOG}.scrollTop = 300")
    key = f"msg_{conversation_id}_75"
    await expect(console.page.locator(f"[data-key='{key}']")).to_have_count(1)
    before = await find_position(console.page, key)
    await console.page.unroute("**/messages?before=*")
    await console.page.evaluate(f"{_LOG}.scrollTop += 1")
    assert abs(await find_position(console.page, key) - before) < 3


async def test_an_answer_is_rated_with_a_thumb_and_a_comment(
    console: Console, talk: Talker
) -> None:
    reply = await talk.say("When do you open?")
    await console.sign_in(talk.client)
    await console.open(f"/conversations/{reply['conversation_id']}", title="When do you open?")
    thumb = console.button("Bad")
    await thumb.focus()
    await console.page.keyboard.press("Enter")
    await expect(thumb).to_have_attribute("aria-pressed", "true")
    await console.page.get_by_label("Comment (optional)").fill("Too long")
    await console.button("Save the comment").click()
    await expect(console.page.get_by_text("Too long")).to_be_visible()
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    last = (await talk.client.get(path)).json()["data"][-1]
    assert last["feedback"] == {"rating": "down", "comment": "Too long"}
    await thumb.click()
    await expect(thumb).to_have_attribute("aria-pressed", "false")


async def test_the_console_shows_what_the_model_saw_and_asks_again_in_the_draft(
    console: Console, talk: Talker
) -> None:
    talk.script(*(Reply(texts=[text]) for text in ("Hello.", "At nine.", "At ten.")))
    first = await talk.say("Good morning")
    await talk.say("When do you open?", conversation_id=first["conversation_id"])
    await console.sign_in(talk.client)
    await console.open(f"/conversations/{first['conversation_id']}", title="Good morning")
    await console.button("What the model saw").last.click()
    drawer = console.dialog("What the model saw")
    await expect(drawer.get_by_label("System message")).to_contain_text("You are a test.")
    await expect(drawer).to_contain_text("11 tokens in, 7 out")
    trace = drawer.get_by_role("link", name="Open the trace")
    await expect(trace).to_have_attribute("href", re.compile(r"^/trace/cor_\w+$"))
    await console.page.keyboard.press("Escape")
    await expect(console.button("What the model saw").last).to_be_focused()
    await console.page.get_by_role("link", name="Open in the draft").last.click()
    turns = console.page.get_by_role("log").get_by_role("listitem")
    await expect(turns).to_contain_text(["Good morning", "When do you open?"])
    await expect(turns).to_contain_text(["Hello.", "At ten."])
    assert [message["content"] for message in talk.asked[-1]["messages"][1:]] == [
        "Good morning",
        "Hello.",
        "When do you open?",
    ]
    assert await console.find_problems_in_long_runs("console-agent-replay") == []
    await console.widen()
    await console.button("What the model saw then").click()
    await expect(drawer).to_contain_text("11 tokens in, 7 out")
    await console.page.keyboard.press("Escape")
    await console.button("What the model saw").click()
    await expect(drawer.get_by_label("System message")).to_contain_text("You are a test.")


async def test_a_conversation_is_ended_and_its_deletion_undone(
    console: Console, mixed: Talker
) -> None:
    await open_list(console, mixed.client)
    row = console.row("Opening hours")
    await row.click()
    menu = console.button("Actions")
    await menu.click()
    await console.page.get_by_role("menuitem", name="End the conversation").click()
    await expect(console.page.locator(".page-head").get_by_text("Ended")).to_be_visible()
    for is_undone in (True, False):
        await menu.click()
        await console.page.get_by_role("menuitem", name="Delete the conversation").click()
        await expect(console.heading).to_have_text("Conversations")
        await expect(row).to_have_count(0)
        if is_undone:
            await console.button("Undo").click()
            await row.click()
    async with console.page.expect_response(lambda response: response.status == 204):
        await console.page.evaluate(_DELETE_SOON)
    assert len(await read_list(mixed.client)) == 2


async def test_long_texts_are_read_in_slices(console: Console, talk: Talker) -> None:
    conversation_id = await add_conversation(talk, "Long texts")
    output = "\U0001f642" + "o" * 150_000 + "The end"
    call = {"tool": "Search", "input": {"q": 1}, "output": output}
    await add_turn(talk, conversation_id, "Find it", "a" * 120_000 + "Finished", call=call)
    await console.sign_in(talk.client)
    await console.open(f"/conversations/{conversation_id}", title="Long texts")
    answer = console.page.get_by_label("Answer", exact=True)
    more = console.page.get_by_role("button", name="Show more")
    await expect(more).to_have_count(1)
    for _ in range(2):
        await more.click()
    await expect(answer).to_contain_text("aFinished")
    assert len(await answer.text_content() or "") == 120_008
    await console.page.get_by_text("Search", exact=True).click()
    text = console.page.get_by_label("Output")
    for _ in range(2):
        await more.click()
    await expect(text).to_contain_text("oThe end")
    assert await text.text_content() == output


async def test_texts_of_strangers_are_only_texts(console: Console, talk: Talker) -> None:
    visitor = {"id": hostile.HTML[:150], "name": hostile.HTML[:100], "email": hostile.HTML[:100]}
    conversation_id = await add_conversation(talk, hostile.HTML[:200], visitor=visitor)
    source = {"document_name": hostile.HTML, "chunk_preview": hostile.HTML, "relevance_score": 0.5}
    await add_turn(
        talk,
        conversation_id,
        hostile.HTML,
        hostile.MARKDOWN,
        sources=[source],
        attachments=[{"id": "att_1", "name": hostile.HTML, "size_bytes": 1}],
        call={"tool": hostile.HTML, "input": {hostile.HTML: 1}, "output": hostile.HTML},
    )
    view = {"name": hostile.HTML[:100], "filters": {"search": "script", hostile.HTML[:60]: "1"}}
    await talk.client.post("/api/v1/views", {**view, "kind": "conversations"})
    await open_list(console, talk.client)
    await (
        console.page.get_by_role("navigation", name="Saved views").get_by_role("link").last.click()
    )
    await console.row("window.hacked").last.click()
    await expect(console.page.locator(".answer")).to_be_visible()
    for fold in await console.page.locator(".log summary").all():
        await fold.click()
    await expect(console.page.get_by_label("Output")).to_be_visible()
    assert await hostile.find_harm(console.page, []) == []
