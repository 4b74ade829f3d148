"""The embed keys of an agent in the console."""

from playwright.async_api import expect

from tests.browser.console.console import Console
from tests.conversations.embed.factories import create_embed_key
from tests.scripted_agents import Talker

KEYS = "/api/v1/embed/api-keys"


async def test_a_key_is_changed_and_a_colleagues_change_is_not_overwritten(
    console: Console, talk: Talker
) -> None:
    key = await create_embed_key(talk.client, talk.agent_id, name="Shop")
    await console.sign_in(talk.client)
    await console.open(f"/agents/{talk.agent_id}?tab=embedding", title="Talker")
    await console.row("Shop").click()
    dialog = console.dialog("Shop")
    await dialog.get_by_label("Name").fill("Our shop")
    # A colleague is faster.
    path = f"{KEYS}/{key['id']}"
    assert (await talk.client.put(path, {"name": "Store"})).status_code == 200
    await dialog.get_by_role("button", name="Save").click()
    conflict = console.dialog("Somebody else changed this")
    await expect(conflict).to_contain_text("Store")
    await expect(conflict).to_contain_text("Our shop")
    await conflict.get_by_role("button", name="Save yours").click()
    await expect(console.row("Our shop")).to_be_visible()
    assert (await talk.client.get(path)).json()["name"] == "Our shop"
    # What is cancelled is not offered again.
    await console.row("Our shop").click()
    dialog = console.dialog("Our shop")
    await dialog.get_by_label("Name").fill("Nothing")
    await dialog.get_by_role("button", name="Cancel").click()
    await console.row("Our shop").click()
    await expect(dialog.get_by_label("Name")).to_have_value("Our shop")
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
