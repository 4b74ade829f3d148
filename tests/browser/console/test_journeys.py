"""What people do in one go, from the sign-in to the end."""

from playwright.async_api import Locator, expect

from tests.browser.console.console import Console
from tests.model_server import Reply
from tests.scripted_agents import PROVIDER, Talker
from tests.world import PASSWORD

# The model that the scripted provider lists first.
MODEL = f"{PROVIDER}/one"
PROMPT = "You know when the shop opens."
MOST_STEPS = 80


async def tab_to(console: Console, target: Locator, key: str = "Tab") -> None:
    """Moves the focus with the keyboard alone."""
    await expect(target).to_be_visible()
    for _ in range(MOST_STEPS):
        if await target.evaluate("element => element === document.activeElement"):
            return
        await console.page.keyboard.press(key)
    raise AssertionError(f"{target} cannot be reached with {key}")


async def sign_in(console: Console, talk: Talker) -> None:
    await console.open("/sign-in", title="Sign in")
    await expect(console.field("E-mail")).to_be_focused()
    await console.page.keyboard.type(talk.client.email)
    await tab_to(console, console.field("Password"))
    await console.page.keyboard.type(PASSWORD)
    await console.page.keyboard.press("Enter")
    await expect(console.heading).to_have_text("Home")


async def create_agent(console: Console) -> None:
    page, keyboard = console.page, console.page.keyboard
    # The first stop skips the rail.
    await tab_to(console, page.get_by_role("link", name="Skip to content"))
    await keyboard.press("Enter")
    await keyboard.press("g")
    await keyboard.press("a")
    await expect(console.heading).to_be_focused()
    await tab_to(console, console.button("New agent"))
    await keyboard.press("Enter")
    dialog = console.dialog("New agent")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await keyboard.type("Shop assistant")
    await tab_to(console, dialog.get_by_label("Model"))
    await keyboard.type(MODEL)
    await tab_to(console, dialog.get_by_role("button", name="Create the agent"))
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Shop assistant")


async def ask(console: Console) -> None:
    keyboard = console.page.keyboard
    await tab_to(console, console.field("Instructions"))
    await keyboard.press("Control+a")
    await keyboard.type(PROMPT)
    await tab_to(console, console.field("Message"))
    await keyboard.type("When do you open?")
    await keyboard.press("Enter")
    await expect(console.page.get_by_role("log")).to_contain_text("At nine.")
    await expect(console.field("Message")).to_be_focused()


async def publish(console: Console) -> None:
    keyboard = console.page.keyboard
    await tab_to(console, console.button("Publish"), "Shift+Tab")
    await keyboard.press("Enter")
    dialog = console.dialog("Publish the changes")
    await expect(dialog.get_by_label("What changed")).to_be_focused()
    await keyboard.type("The first version")
    await keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(console.page.get_by_text("Published", exact=True).first).to_be_visible()
    await expect(console.button("Publish")).to_be_focused()


async def test_an_agent_is_created_asked_and_published_by_keyboard_alone(
    console: Console, talk: Talker
) -> None:
    talk.models.script("one", Reply(texts=["At nine."]))
    await sign_in(console, talk)
    await create_agent(console)
    await ask(console)
    assert PROMPT in talk.models.asked("one")[-1]["messages"][0]["content"]
    await publish(console)
    agent_id = console.path.partition("?")[0].rpartition("/")[2]
    agent = (await talk.client.get(f"/api/v1/agents/{agent_id}")).json()
    assert (agent["status"], agent["primary_model"]) == ("published", MODEL)
    assert agent["system_prompt"] == PROMPT
