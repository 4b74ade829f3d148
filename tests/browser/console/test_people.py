"""Users, invitations, roles and tenants in the console."""

import json
import re

import pytest
from playwright.async_api import Route, expect

from app.services import Services
from tests.browser.console.console import Console
from tests.database import run_sql
from tests.identity.accounts.mfa_users import create_mfa_user
from tests.world import Client, World

_NAME = "UPDATE users SET first_name = $2, last_name = $3 WHERE id = $1 RETURNING id"
LONG = "Wolfeschlegelsteinhausenbergerdorff" * 2


async def name_user(services: Services, user: Client, first: str, last: str) -> None:
    await run_sql(services, _NAME, user.user_id, first, last)


async def test_an_administrator_finds_a_user_and_changes_their_role_with_the_keyboard(
    console: Console, services: Services, world: World, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await name_user(services, user, "Grace", "Hopper")
    keyboard = console.page.keyboard
    await console.sign_in(admin)
    await console.open("/people", title="People")
    await expect(console.row("Grace Hopper")).to_be_visible()
    await keyboard.press("/")
    await keyboard.type("hopp")
    await expect(console.page.get_by_role("row")).to_have_count(2)
    assert "search=hopp" in console.path
    await console.row("Grace Hopper").focus()
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Grace Hopper")
    await console.button("Change role").press("Enter")
    role = console.field("Role")
    # Nobody gives out a role above their own.
    await expect(role.get_by_role("option")).to_have_text(
        ["Administrator", "Developer", "User", "Viewer"]
    )
    await role.focus()
    await keyboard.press("D")
    await console.dialog("Change the role").get_by_role("button", name="Change role").focus()
    await keyboard.press("Enter")
    await expect(console.page.locator(".facts")).to_contain_text("Developer")
    await expect(console.button("Change role")).to_be_focused()
    await console.open("/people?role=agent_developer")
    await expect(console.row("Grace Hopper")).to_contain_text("Developer")


async def test_what_was_done_is_said_on_the_next_screen_too(
    console: Console, services: Services, world: World, admin: Client
) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await name_user(services, user, "Grace", "Hopper")
    await admin.post(f"/users/{user.user_id}/deactivate", {})
    requests: list[Route] = []

    def hold(route: Route) -> None:
        requests.append(route)

    await console.page.route("**/reactivate", hold)
    await console.sign_in(admin)
    await console.open(f"/people/{user.user_id}", title="Grace Hopper")
    await console.button("Actions").click()
    await console.page.get_by_role("menuitem", name="Reactivate").click()
    await console.page.get_by_role("link", name="Agents").click()
    await expect(console.heading).to_have_text("Agents")
    await requests[0].continue_()
    await expect(console.page.get_by_text("Grace Hopper can sign in again")).to_be_visible()


async def test_an_account_is_deactivated_reset_and_deleted(
    console: Console, world: World, admin: Client
) -> None:
    user = await world.user("agent_developer", admin.tenant_id)
    await create_mfa_user(user)

    async def act(name: str) -> None:
        await console.button("Actions").click()
        await console.page.get_by_role("menuitem", name=name).click()

    await console.sign_in(admin)
    await console.open(f"/people/{user.user_id}", title="Test User")
    await act("Reset two-factor sign-in")
    await console.button("Reset two-factor sign-in").click()
    await expect(console.page.locator(".facts")).to_contain_text("Off")
    await act("Deactivate")
    await console.button("Deactivate").click()
    await expect(console.page.get_by_text("Deactivated", exact=True)).to_be_visible()
    assert (await user.get("/auth/me")).status_code == 401
    await act("Reactivate")
    await expect(console.page.get_by_text("Active", exact=True)).to_be_visible()
    await act("Delete the user")
    await expect(console.dialog("Delete Test User?")).to_contain_text("for good")
    await console.button("Delete the user").click()
    await expect(console.heading).to_have_text("People")
    await expect(console.page.get_by_role("row")).to_have_count(2)
    assert (await admin.get(f"/users/{user.user_id}")).status_code == 404


async def test_an_invitation_shows_its_link_once_and_is_revoked(
    console: Console, admin: Client, anonymous: Client
) -> None:
    email = f"invited.{admin.user_id[-8:]}@example.com"
    await console.sign_in(admin)
    await console.open("/people?tab=invitations", title="People")
    await expect(console.page.get_by_text("No invitations")).to_be_visible()
    await console.button("Invite somebody").last.click()
    await console.field("E-mail").fill("nobody")
    await console.button("Send the invitation").click()
    # The browser itself knows that this is no address.
    assert await console.field("E-mail").evaluate("field => !field.validity.valid")
    await console.field("E-mail").fill(admin.email)
    await console.button("Send the invitation").click()
    await expect(console.page.get_by_role("alert")).to_contain_text("exists")
    await console.field("E-mail").fill(email)
    await console.field("Role").select_option("viewer")
    await console.button("Send the invitation").click()
    link = await console.dialog("The invitation is sent").locator("pre").inner_text()
    token = link.partition("/register?token=")[2]
    look_up = await anonymous.post("/auth/invitations/look-up", {"token": token})
    assert (look_up.json()["email"], look_up.json()["role"]) == (email, "viewer")
    await console.button("Done").click()
    row = console.row(email)
    await expect(row).to_contain_text("Open")
    assert token not in await console.page.content()
    await row.get_by_role("button", name="Revoke the invitation").click()
    await console.button("Revoke").click()
    await expect(row).to_have_count(0)
    look_up = await anonymous.post("/auth/invitations/look-up", {"token": token})
    assert look_up.json()["state"] == "revoked"


async def test_an_administrator_reads_the_roles_and_does_not_see_tenants(
    console: Console, admin: Client
) -> None:
    await console.sign_in(admin)
    await console.open("/people?tab=roles", title="People")
    await expect(
        console.page.get_by_text("Only super administrators can change roles")
    ).to_be_visible()
    row = console.page.get_by_role("row").filter(has_text="agents:delete")
    await expect(row.get_by_role("cell")).to_have_text(
        ["granted", "granted", "granted", "not granted", "not granted"]
    )
    await expect(console.page.get_by_role("checkbox")).to_have_count(0)
    await expect(console.page.get_by_role("tab")).to_have_text(["Users", "Invitations", "Roles"])
    await expect(console.page.get_by_text("All tenants")).to_have_count(0)


@pytest.mark.usefixtures("restored_grants")
async def test_a_super_administrator_changes_what_roles_may_do(
    console: Console, super_admin: Client
) -> None:
    await console.sign_in(super_admin)
    await console.open("/people?tab=roles", title="People")
    viewer = console.field("files:write: Viewer")
    await viewer.check()
    await console.field("files:read: Viewer").check()
    await expect(console.page.get_by_role("status").first).to_contain_text("Unsaved changes")
    await console.page.get_by_label("Find a permission").fill("files")
    await console.field("files:read: Viewer").uncheck()
    await console.button("Save").click()
    await expect(console.page.get_by_role("status").first).to_contain_text("Saved")
    answer = await super_admin.get("/roles/viewer/permissions")
    assert "files:write" in answer.json()["permissions"]
    assert "files:read" not in answer.json()["permissions"]
    # What reaches every tenant cannot be given to others.
    await expect(console.field("admin:tenants: Administrator")).to_have_count(0)
    await console.page.reload()
    await expect(viewer).to_be_checked()


async def test_a_super_administrator_manages_tenants_and_looks_at_one(
    console: Console, super_admin: Client, world: World, services: Services
) -> None:
    other = await world.user("viewer")
    await name_user(services, other, "Only", "Here")
    await console.sign_in(super_admin)
    await console.open("/people?tab=tenants", title="People")
    await console.button("New tenant").click()
    name = f"Tenant of {super_admin.user_id[-8:]}"
    await console.field("Name").fill(name)
    await console.button("Create the tenant").click()
    await expect(console.heading).to_have_text(name)
    await console.field("Plan").select_option("enterprise")
    await console.field("Requests per minute").fill("0")
    await console.button("Save").click()
    await expect(
        console.page.get_by_text("must be ≥ 1")
        .or_(console.page.get_by_text(re.compile("at least 1|>= 1")))
        .first
    ).to_be_visible()
    await console.field("Requests per minute").fill("90")
    await console.button("Save").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    tenant_id = console.path.rpartition("/")[2]
    answer = await super_admin.get(f"/api/v1/tenants/{tenant_id}")
    assert (answer.json()["plan"], answer.json()["limits"]) == (
        "enterprise",
        {"requests_per_minute": 90},
    )
    # Somebody else is faster: nothing is overwritten unseen.
    await console.field("Name").fill(f"{name} of mine")
    await super_admin.put(f"/api/v1/tenants/{tenant_id}", {"name": f"{name} of theirs"})
    await console.button("Save").click()
    conflict = console.dialog("Somebody else changed this")
    await expect(conflict).to_contain_text(f"{name} of theirs")
    await conflict.get_by_role("button", name="Save yours").click()
    await expect(console.heading).to_have_text(f"{name} of mine")
    await expect(console.page.get_by_role("table", name="History")).to_contain_text("Name")
    await delete_tenant(console, name)


async def delete_tenant(console: Console, name: str) -> None:
    await console.button("Delete the tenant").click()
    await console.dialog("Delete Tenant of").get_by_role("button", name="Delete").click()
    await expect(console.heading).to_have_text("People")
    await expect(console.row(name)).to_have_count(0)


async def test_the_chosen_tenant_is_shown_and_limits_what_is_read(
    console: Console, super_admin: Client, world: World, services: Services
) -> None:
    other = await world.user("viewer")
    await name_user(services, other, "Only", "Here")
    (tenant,) = await run_sql(
        services, "UPDATE tenants SET name = name WHERE id = $1 RETURNING name", other.tenant_id
    )
    await console.sign_in(super_admin)
    await console.open(f"/people/tenants/{other.tenant_id}", title=tenant["name"])
    await console.button("Look at this tenant").click()
    menu = console.page.get_by_role("button", name=f"Tenant: {tenant['name']}")
    await expect(menu).to_be_visible()
    await console.page.get_by_role("link", name="People").first.click()
    await expect(console.row("Only Here")).to_be_visible()
    await expect(console.page.get_by_role("row")).to_have_count(2)
    await menu.click()
    await console.page.get_by_role("menuitem", name="All tenants").click()
    await expect(console.row(super_admin.email)).to_be_visible()


async def test_others_see_only_their_own_account(console: Console, developer: Client) -> None:
    await console.sign_in(developer)
    await console.open("/people", title="People")
    await expect(console.field("First name")).to_have_value("Test")
    for path in (f"/people/{developer.user_id}", "/people/me", "/people?tab=roles"):
        await console.open(path)
        await expect(console.page.get_by_role("tab")).to_have_text(
            ["Profile", "Security", "Sessions"]
        )


async def test_a_list_that_fails_says_what_to_do(console: Console, admin: Client) -> None:
    async def fail(route: Route) -> None:
        error = {"code": "internal_error", "message": "Something failed", "details": None}
        await route.fulfill(
            status=500, body=json.dumps({"error": error}), headers={"x-request-id": "req_1"}
        )

    await console.page.route("**/users?*", fail)
    await console.sign_in(admin)
    await console.open("/people", title="People")
    await expect(console.page.get_by_role("alert")).to_contain_text("req_1")
    await console.page.unroute("**/users?*")
    await console.button("Try again").click()
    await expect(console.row(admin.email)).to_be_visible()
