"""Agents in the console: the list, the editor with its draft, and the chat beside it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser import hostile, looks
from tests.browser.console.console import Console
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.server import Server
from tests.world import PASSWORD, Client

PROMPT = "You are a pirate."


@pytest.fixture
async def second_tab(browser: Browser, server: Server) -> AsyncIterator[Console]:
    """Another browser, for a colleague or the same user elsewhere."""
    context = await browser.new_context()
    page = await context.new_page()
    yield Console(page, server.url)
    await context.close()


async def open_agent(console: Console, talk: Talker, tab: str = "") -> None:
    await console.sign_in(talk.client)
    query = f"?tab={tab}" if tab else ""
    await console.open(f"/agents/{talk.agent_id}{query}", title="Talker")


async def type_prompt(console: Console, text: str) -> None:
    await console.field("Instructions").fill(text)
    await expect(console.page.get_by_text("Unsaved changes")).to_be_visible()


async def save(console: Console) -> None:
    await console.button("Save draft").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()


async def read_live_prompt(talk: Talker) -> str:
    prompt: str = (await talk.client.get(talk.path)).json()["system_prompt"]
    return prompt


async def create_agents(user: Client, *names: str) -> None:
    for name in names:
        body = {"name": name, "primary_model": "local/smollm2", "system_prompt": "Help."}
        assert (await user.post("/api/v1/agents", body)).status_code == 201


async def test_filters_are_in_the_address_and_a_row_opens_with_enter(
    console: Console, developer: Client
) -> None:
    await create_agents(developer, "Alpha", "Beta")
    await console.sign_in(developer)
    await console.open("/agents", title="Agents")
    await expect(console.row("Beta")).to_be_visible()
    await console.page.keyboard.press("/")
    await console.page.keyboard.type("Alp")
    await expect(console.row("Beta")).to_have_count(0)
    assert console.path == "/agents?search=Alp"
    await console.row("Alpha").focus()
    await console.page.keyboard.press("Enter")
    await expect(console.heading).to_have_text("Alpha")
    await expect(console.heading).to_be_focused()
    await console.page.go_back()
    await expect(console.page.get_by_role("searchbox")).to_have_value("Alp")


async def test_an_agent_is_created_by_keyboard_alone(console: Console, talk: Talker) -> None:
    await console.sign_in(talk.client)
    await console.open(title="Home")
    keyboard = console.page.keyboard
    await keyboard.press("Control+k")
    await keyboard.type("new agent")
    await keyboard.press("Enter")
    await expect(console.dialog("New agent")).to_be_visible()
    await keyboard.type("Shop assistant")
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Shop assistant")
    await expect(console.heading).to_be_focused()


async def test_the_chat_runs_with_what_is_in_the_editor(console: Console, talk: Talker) -> None:
    talk.script(Reply(texts=["Arr, at ", "**nine**.\n\n", "- on weekdays\n- on Saturdays"]))
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await console.field("Message").fill("When do you open?")
    await console.page.keyboard.press("Enter")
    log = console.page.get_by_role("log")
    await expect(log.locator("strong")).to_have_text("nine")
    await expect(console.button("What the model saw")).to_be_visible()
    assert PROMPT in talk.asked[-1]["messages"][0]["content"]
    assert await looks.find_problems(console.page, "console-agent-answer", 1280, 360) == []
    assert await read_live_prompt(talk) == "You are a test."


async def test_what_is_in_the_editor_is_compared_with_what_is_live_and_with_what_was(
    console: Console, talk: Talker
) -> None:
    talk.script(Reply(texts=["Fine."]))
    await talk.client.put(talk.path, {"system_prompt": "You were changed."})
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await console.button("Compare side by side").click()
    sides = console.page.get_by_role("region", name="Try it").get_by_role("group")
    await console.field("Message").fill("How are you?")
    await console.page.keyboard.press("Enter")
    for side in sides.first, sides.last:
        await expect(side).to_contain_text("Fine.")
        await expect(side).to_contain_text("11 tokens in, 7 out · $0.00")
    assert {read_prompt(request) for request in talk.asked} == {PROMPT, "You were changed."}
    await expect(console.button("Stop")).to_have_count(0)
    await console.field("Compare with").select_option("version:1")
    await expect(sides.last).to_contain_text("How are you?")
    await expect(sides.last).to_contain_text("Fine.")
    assert read_prompt(talk.asked[-1]) == "You are a test."
    assert await console.find_problems_in_long_runs("console-agent-compare") == []


def read_prompt(request: dict[str, Any]) -> str:
    prompt: str = request["messages"][0]["content"]
    return prompt.partition("\n")[0]


async def test_a_saved_draft_is_live_once_it_is_published(console: Console, talk: Talker) -> None:
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await save(console)
    await expect(console.page.get_by_text("Unpublished changes")).to_be_visible()
    assert await read_live_prompt(talk) == "You are a test."
    await console.page.reload()
    await expect(console.field("Instructions")).to_have_value(PROMPT)
    await console.button("Publish").click()
    dialog = console.dialog("Publish the changes")
    await expect(dialog.locator("ins")).to_have_text(PROMPT)
    await expect(dialog.locator("del")).to_have_text("You are a test.")
    await dialog.get_by_label("What changed").fill("Talks like a pirate")
    await dialog.get_by_role("button", name="Publish").click()
    await expect(console.page.get_by_text("Unpublished changes")).to_have_count(0)
    assert await read_live_prompt(talk) == PROMPT
    await console.page.get_by_role("tab", name="Versions").click()
    await expect(console.row("Talks like a pirate")).to_be_visible()


async def test_what_a_colleague_saved_meanwhile_is_shown_before_it_is_published(
    console: Console, talk: Talker
) -> None:
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await save(console)
    await console.button("Publish").click()
    dialog = console.dialog("Publish the changes")
    await expect(dialog.locator("ins")).to_have_text(PROMPT)
    await talk.client.put(f"{talk.path}/draft", {"system_prompt": "Theirs."})
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("another draft")
    await expect(dialog.locator("ins")).to_have_text("Theirs.")
    assert await read_live_prompt(talk) == "You are a test."
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog).to_have_count(0)
    assert await read_live_prompt(talk) == "Theirs."


async def test_the_first_publishing_takes_what_is_in_the_editor(
    console: Console, talk: Talker
) -> None:
    await talk.client.put(talk.path, {"status": "draft"})
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await console.button("Publish").click()
    dialog = console.dialog("Publish")
    await dialog.get_by_role("button", name="Publish").click()
    await expect(dialog).to_have_count(0)
    agent = (await talk.client.get(talk.path)).json()
    assert (agent["status"], agent["system_prompt"]) == ("published", PROMPT)


async def test_what_was_not_saved_is_offered_after_a_reload(console: Console, talk: Talker) -> None:
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await console.page.reload()
    await expect(console.field("Instructions")).to_have_value("You are a test.")
    await console.button("Restore them").click()
    await expect(console.field("Instructions")).to_have_value(PROMPT)
    await save(console)
    await console.page.reload()
    await expect(console.button("Restore them")).to_have_count(0)


async def test_what_is_typed_beside_an_offer_is_offered_with_it(
    console: Console, talk: Talker
) -> None:
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    await console.page.reload()
    await expect(console.button("Restore them")).to_be_visible()
    await console.field("Name").fill("Porter")
    await console.page.reload()
    await console.button("Restore them").click()
    await expect(console.field("Instructions")).to_have_value(PROMPT)
    await expect(console.field("Name")).to_have_value("Porter")


async def test_a_change_of_somebody_else_is_shown_and_not_overwritten(
    console: Console, second_tab: Console, talk: Talker
) -> None:
    await open_agent(console, talk)
    await type_prompt(console, "Mine.")
    colleague = await talk.world.user("agent_developer", talk.client.tenant_id)
    # The first draft is theirs.
    await type_and_save_as(second_tab, talk, colleague, "Theirs.")
    await console.button("Save draft").click()
    dialog = console.dialog("Somebody else changed this")
    await expect(dialog.locator("del")).to_have_text("Theirs.")
    await expect(dialog.locator("ins")).to_have_text("Mine.")
    await dialog.get_by_role("button", name="Save yours").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    await second_tab.field("Instructions").fill("Later.")
    await second_tab.button("Save draft").click()
    dialog = second_tab.dialog("Somebody else changed this")
    await expect(dialog.locator("del")).to_have_text("Mine.")
    draft = (await talk.client.get(f"{talk.path}/draft")).json()
    assert draft["system_prompt"] == "Mine."


async def type_and_save_as(console: Console, talk: Talker, user: Client, text: str) -> None:
    await console.sign_in(user)
    await console.open(f"/agents/{talk.agent_id}", title="Talker")
    await console.field("Instructions").fill(text)
    await save(console)


async def test_a_session_that_ends_in_the_middle_of_an_edit_loses_nothing(
    console: Console, talk: Talker
) -> None:
    await open_agent(console, talk)
    await type_prompt(console, PROMPT)
    sessions = (await talk.client.get("/auth/sessions")).json()["data"]
    for session in sessions:
        await talk.client.delete(f"/auth/sessions/{session['id']}")
    await console.button("Save draft").click()
    dialog = console.dialog("Sign in to go on")
    await dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    await dialog.get_by_role("button", name="Sign in", exact=True).click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    await expect(console.field("Instructions")).to_have_value(PROMPT)


async def test_texts_of_strangers_are_only_texts(console: Console, talk: Talker) -> None:
    talk.script(Reply(texts=[hostile.MARKDOWN]))
    name = hostile.HTML[:100]
    await talk.client.put(talk.path, {"name": name, "description": hostile.HTML})
    await console.sign_in(talk.client)
    await console.open("/agents", title="Agents")
    await console.row("window.hacked").focus()
    await console.page.keyboard.press("Enter")
    await expect(console.heading).to_have_text(name)
    await console.field("Message").fill(hostile.HTML)
    await console.page.keyboard.press("Enter")
    await expect(console.button("What the model saw")).to_be_visible()
    assert await hostile.find_harm(console.page, []) == []


async def test_users_who_may_not_change_agents_see_no_editor(
    console: Console, talk: Talker
) -> None:
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    await console.sign_in(viewer)
    await console.open(f"/agents/{talk.agent_id}", title="Talker")
    await expect(console.button("Save draft")).to_have_count(0)
    await expect(console.page.get_by_role("link", name="Credentials")).to_have_count(0)
    await console.open("/agents", title="Agents")
    await expect(console.button("New agent")).to_have_count(0)
