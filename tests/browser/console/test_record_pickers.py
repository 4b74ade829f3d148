"""Fields that choose one of many records."""

from playwright.async_api import Locator, expect

from tests.browser import looks
from tests.browser.console.console import Console
from tests.browser.console.conversation_rows import add_conversation
from tests.scripted_agents import Talker

# More than a picker lists at once.
MANY = 24


def options(console: Console) -> Locator:
    return console.page.get_by_role("listbox", name="Choices").get_by_role("option")


async def test_one_of_many_records_is_found_by_its_name(console: Console, talk: Talker) -> None:
    others = [await talk.agent(f"Agent {number:02}") for number in range(MANY)]
    await add_conversation(others[-1], "Of the last one")
    await add_conversation(talk, "Of another one")
    await console.sign_in(talk.client)
    page, keyboard = console.page, console.page.keyboard
    await console.open("/conversations", title="Conversations")
    await expect(console.row("Of another one")).to_be_visible()
    field = page.get_by_role("combobox", name="Agent")
    await field.focus()
    await keyboard.press("ArrowDown")
    await expect(page.get_by_text("There are more")).to_be_visible()
    await expect(options(console).filter(has_text=f"Agent {MANY - 1}")).to_have_count(0)
    assert await looks.find_problems(page, "console-picker", 1280, 360) == []
    await console.widen()
    await keyboard.type(f"agent {MANY - 1}")
    await expect(options(console)).to_have_text([f"Agent {MANY - 1}"])
    await keyboard.press("Enter")
    await expect(console.row("Of another one")).to_have_count(0)
    await expect(console.row("Of the last one")).to_be_visible()
    assert f"agent_id={others[-1].agent_id}" in console.path
    await page.reload()
    await expect(field).to_have_value(f"Agent {MANY - 1}")
    await field.fill("nobody")
    await expect(page.get_by_text("Nothing fits")).to_be_visible()
    await keyboard.press("Escape")
    await expect(field).to_have_value(f"Agent {MANY - 1}")
    await field.fill("")
    await keyboard.press("Tab")
    await expect(console.row("Of another one")).to_be_visible()


async def test_escape_closes_the_choices_and_not_the_dialog(console: Console, talk: Talker) -> None:
    await talk.agent("Helper")
    await console.sign_in(talk.client)
    await console.open(f"/agents/{talk.agent_id}?tab=subAgents", title="Talker")
    await console.button("Attach an agent").click()
    dialog = console.dialog("Attach an agent")
    await dialog.get_by_label("Agent", exact=True).click()
    # An agent cannot hand tasks to itself.
    await expect(options(console)).to_have_text(["Helper"])
    await console.page.keyboard.press("Escape")
    await expect(options(console)).to_have_count(0)
    await console.pick("Agent", "Helper")
    await dialog.get_by_role("button", name="Attach").click()
    await expect(console.page.get_by_role("switch", name="Helper")).to_be_visible()
    rows = (await talk.client.get(f"{talk.path}/sub-agents")).json()["data"]
    assert [row["name"] for row in rows] == ["Helper"]
