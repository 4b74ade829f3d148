"""Credentials in the console: what is typed into them stays nowhere but in the vault."""

from typing import Any

from playwright.async_api import expect

from tests.browser import axe, hostile
from tests.browser.console.console import Console
from tests.world import Client

STORED = "JSON.stringify({...localStorage, ...sessionStorage}) + location.href"


async def create_credential(user: Client, name: str = "Ticket system", **fields: Any) -> str:
    body = {"name": name, "type": "bearer_token", "secrets": {"token": "planted-1"}, **fields}
    answer = await user.post("/v1/credentials", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def create_tool(user: Client, name: str = "Hook") -> str:
    body = {
        "name": name,
        "category": "webhook",
        "tool_type": "webhook",
        "config": {"url": "https://hooks.example.com/in"},
        "auth_type": "none",
    }
    answer = await user.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def reveal(user: Client, credential_id: str) -> dict[str, Any]:
    answer = await user.get(f"/v1/credentials/{credential_id}/reveal")
    secrets: dict[str, Any] = answer.json()["secrets"]
    return secrets


async def test_a_credential_is_added_by_keyboard_alone(console: Console, admin: Client) -> None:
    await console.sign_in(admin)
    await console.open("/credentials", title="Credentials")
    keyboard = console.page.keyboard
    await console.button("New credential").first.focus()
    await keyboard.press("Enter")
    await expect(console.field("Name")).to_be_focused()
    await keyboard.type("Shop")
    # The fields of the type load after the dialog.
    await expect(console.field("Key")).to_be_visible()
    await keyboard.press("Tab")
    await keyboard.press("Tab")
    await expect(console.field("Key")).to_be_focused()
    await keyboard.type("planted-key")
    assert "planted" not in await console.page.evaluate(STORED)
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Shop")
    credential_id = console.path.rpartition("/")[2]
    assert await reveal(admin, credential_id) == {"api_key": "planted-key"}


async def test_each_type_has_the_fields_of_its_schema(console: Console, admin: Client) -> None:
    await console.sign_in(admin)
    await console.open("/credentials?new=1", title="Credentials")
    await console.field("Type").last.select_option("database")
    await expect(console.field("Host")).to_be_visible()
    assert await axe.find_violations(console.page) == []
    await console.field("Name").fill("Orders")
    await console.field("Host").fill("db.example.com")
    await console.field("Port (optional)").fill("5433")
    await console.field("Name of the database").fill("orders")
    await console.field("User name").fill("reader")
    await console.field("Password").fill("planted-password")
    await console.button("Add the credential").click()
    await expect(console.heading).to_have_text("Orders")
    secrets = await reveal(admin, console.path.rpartition("/")[2])
    assert secrets == {
        "host": "db.example.com",
        "port": 5433,
        "database": "orders",
        "username": "reader",
        "password": "planted-password",
    }


async def test_secrets_are_replaced_and_revealed_while_the_dialog_is_open(
    console: Console, admin: Client
) -> None:
    credential_id = await create_credential(admin)
    await console.sign_in(admin)
    await console.open(f"/credentials/{credential_id}", title="Ticket system")
    page = console.page
    await console.button("Actions").click()
    await page.get_by_role("menuitem", name="Replace the secrets").click()
    await console.field("Token").fill("planted-2")
    dialog = console.dialog("Replace the secrets")
    await dialog.get_by_role("button", name="Replace the secrets").click()
    await expect(dialog).to_have_count(0)
    await console.button("Actions").click()
    await page.get_by_role("menuitem", name="Reveal the secrets").click()
    await expect(page.get_by_text("planted-2")).to_have_count(0)
    await console.button("Reveal").click()
    await expect(page.get_by_text("planted-2")).to_be_visible()
    assert await axe.find_violations(page) == []
    assert "planted" not in await page.evaluate(STORED)
    await console.dialog("Reveal the secrets").get_by_role("button", name="Close").last.click()
    assert "planted" not in await page.content()
    await page.get_by_role("tab", name="Audit trail").click()
    await expect(console.row("Revealed")).to_contain_text("Test User")
    action = page.get_by_role("combobox", name="Action")
    await action.select_option("secrets_updated")
    await expect(console.row("Revealed")).to_have_count(0)
    assert "action=secrets_updated" in console.path


async def test_a_developer_does_not_see_what_the_role_forbids(
    console: Console, developer: Client
) -> None:
    credential_id = await create_credential(developer)
    await console.sign_in(developer)
    await console.open(f"/credentials/{credential_id}", title="Ticket system")
    await console.button("Actions").click()
    items = console.page.get_by_role("menuitem")
    await expect(items).to_have_text(["Replace the secrets", "Delete the credential"])


async def test_access_is_granted_and_revoked(console: Console, admin: Client) -> None:
    credential_id = await create_credential(admin)
    await create_tool(admin)
    await console.sign_in(admin)
    await console.open(f"/credentials/{credential_id}?tab=access", title="Ticket system")
    await console.button("Grant access").click()
    dialog = console.dialog("Grant access")
    await console.pick("Tool", "Hook")
    await dialog.get_by_role("button", name="Grant access").click()
    await expect(console.row("Hook")).to_be_visible()
    await console.button("Revoke the access of Hook").click()
    await expect(console.page.get_by_text("Nothing may use this credential yet")).to_be_visible()
    await console.button("Undo").click()
    await expect(console.row("Hook")).to_be_visible()


async def test_a_test_says_what_is_missing_and_details_are_saved(
    console: Console, admin: Client
) -> None:
    credential_id = await create_credential(admin)
    await console.sign_in(admin)
    await console.open(f"/credentials/{credential_id}", title="Ticket system")
    await console.button("Test").click()
    await expect(console.page.get_by_role("alert")).to_be_visible()
    await console.field("Allowed hosts (optional)").fill("api.example.com\n\n10.0.0.1\n")
    await console.button("Save").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    stored = (await admin.get(f"/v1/credentials/{credential_id}")).json()
    assert stored["metadata"] == {"allowed_hosts": ["api.example.com", "10.0.0.1"]}


async def test_a_credential_is_deleted_after_a_question(console: Console, admin: Client) -> None:
    credential_id = await create_credential(admin)
    await console.sign_in(admin)
    await console.open(f"/credentials/{credential_id}", title="Ticket system")
    await console.button("Actions").click()
    await console.page.get_by_role("menuitem", name="Delete the credential").click()
    await console.button("Delete the credential").click()
    await expect(console.heading).to_have_text("Credentials")
    await expect(console.page.get_by_text("Keep secrets in one place")).to_be_visible()
    assert (await admin.get(f"/v1/credentials/{credential_id}")).status_code == 404


async def test_the_audit_trail_names_a_deleted_credential_by_its_id(
    console: Console, admin: Client
) -> None:
    credential_id = await create_credential(admin)
    await admin.delete(f"/v1/credentials/{credential_id}")
    await console.sign_in(admin)
    await console.open("/credentials?tab=audit&action=deleted", title="Credentials")
    await expect(console.row("Deleted")).to_contain_text(credential_id)


async def test_hostile_texts_among_secrets_are_texts(console: Console, admin: Client) -> None:
    requested: list[str] = []
    console.page.on("request", lambda request: requested.append(request.url))
    text = hostile.HTML[:90]
    credential_id = await create_credential(
        admin,
        text,
        type="custom",
        secrets={text: hostile.HTML},
        description=hostile.MARKDOWN[:2000],
        metadata={text: text},
    )
    await console.sign_in(admin)
    await console.open(f"/credentials/{credential_id}", title=text)
    await console.button("Actions").click()
    await console.page.get_by_role("menuitem", name="Reveal the secrets").click()
    await console.button("Reveal").click()
    await expect(console.dialog("Reveal the secrets")).to_contain_text("window.hacked")
    assert await hostile.find_harm(console.page, requested, console.url) == []
