"""Tools in the console: the list, the editor, runs, and tools from OpenAPI documents."""

from typing import Any

from playwright.async_api import expect

from tests.browser import axe, hostile
from tests.browser.console.console import Console
from tests.world import Client
from workers.main import WorkerProcess

ECHO = "def main(input):\n    return input\n"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Customer"},
        "count": {"type": "integer", "default": 2},
        "loud": {"type": "boolean"},
        "tone": {"enum": ["warm", "formal"]},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}},
            "required": ["street"],
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {},
    },
    "required": ["name"],
}
HOOK: dict[str, Any] = {
    "tool_type": "webhook",
    "category": "webhook",
    "config": {"url": "https://hooks.example.com/in", "headers": {"X-Team": "shop"}},
}
DOCUMENT = """
openapi: 3.1.0
info: {title: Pets, version: "1"}
servers: [{url: "https://pets.example.com/v1"}]
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Pets-Key}}}
security: [{key: []}]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Get a pet
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: ok}}
    delete:
      operationId: deletePet
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"204": {description: ok}}
"""


async def create_tool(user: Client, name: str = "Echo", **fields: Any) -> str:
    body = {
        "name": name,
        "category": "automation",
        "tool_type": "function",
        "config": {"runtime": "python", "code": ECHO},
        "auth_type": "none",
        **fields,
    }
    answer = await user.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def get_tool(user: Client, tool_id: str) -> dict[str, Any]:
    tool: dict[str, Any] = (await user.get(f"/v1/tools/{tool_id}")).json()["data"]
    return tool


async def create_credential(user: Client, type_: str, secrets: dict[str, str]) -> str:
    body = {"name": "Pet shop", "type": type_, "secrets": secrets}
    answer = await user.post("/v1/credentials", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_filters_of_tools_are_in_the_address(console: Console, developer: Client) -> None:
    await create_tool(developer, "Echo")
    await create_tool(developer, "Hook", **HOOK, is_enabled=False)
    await console.sign_in(developer)
    await console.open("/tools?type=webhook&state=disabled", title="Tools")
    await expect(console.row("Hook")).to_be_visible()
    await expect(console.row("Echo")).to_have_count(0)
    await console.page.get_by_role("combobox", name="Status").select_option("enabled")
    await console.button("Clear filters").click()
    await expect(console.row("Echo")).to_be_visible()
    assert console.path == "/tools"


async def test_a_tool_is_made_and_run_by_keyboard_alone(
    console: Console, developer: Client, worker: WorkerProcess
) -> None:
    await console.sign_in(developer)
    await console.open("/tools?new=1", title="Tools")
    keyboard = console.page.keyboard
    await expect(console.dialog("New tool")).to_be_visible()
    assert await axe.find_violations(console.page) == []
    await console.dialog("New tool").get_by_role("link", name="Function").focus()
    await keyboard.press("Enter")
    await expect(console.heading).to_be_focused()
    await keyboard.press("Tab")
    await keyboard.type("Greet")
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Greet")
    await console.field("Input (JSON)").focus()
    await keyboard.press("Control+a")
    await keyboard.type('{"name": "Ada"}')
    await console.button("Run the tool").focus()
    await keyboard.press("Enter")
    await expect(console.page.get_by_label("Output", exact=True)).to_contain_text("Hello, Ada!")
    await expect(console.page.get_by_text("Completed")).to_be_visible()


async def test_the_form_of_a_run_comes_from_the_schema_and_its_run_can_be_repeated(
    console: Console, developer: Client, worker: WorkerProcess
) -> None:
    tool_id = await create_tool(developer, input_schema=SCHEMA)
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}?tab=run", title="Echo")
    await console.field("Customer").fill("Ada")
    await expect(console.field("count (optional)")).to_have_value("2")
    await console.field("loud").check()
    await console.field("tone (optional)").select_option(label="formal")
    await console.field("street").fill("Main")
    await console.button("Add to tags").click()
    await console.field("1").fill("new")
    await console.field("more (optional)").fill('{"a":')
    await expect(console.button("Run the tool")).to_be_disabled()
    await console.field("more (optional)").fill('{"a": 1}')
    await console.button("Run the tool").click()
    output = console.page.get_by_label("Output", exact=True)
    await expect(output).to_contain_text('"street": "Main"')
    assert await read_inputs(developer, tool_id) == [
        {
            "name": "Ada",
            "count": 2,
            "loud": True,
            "tone": "formal",
            "address": {"street": "Main"},
            "tags": ["new"],
            "more": {"a": 1},
        }
    ]
    await console.page.get_by_role("tab", name="Runs").click()
    await console.row("Completed").press("Enter")
    drawer = console.dialog("Run of the tool")
    await expect(drawer.get_by_label("Input", exact=True)).to_contain_text('"Ada"')
    assert "execution=exe_" in console.path
    assert await axe.find_violations(console.page) == []
    await drawer.get_by_role("button", name="Run again").click()
    await expect(console.field("street")).to_have_value("Main")


async def read_inputs(user: Client, tool_id: str) -> list[Any]:
    rows = (await user.get(f"/v1/tools/{tool_id}/executions")).json()["data"]
    return [row["input"] for row in rows]


async def test_what_the_server_refuses_stands_beside_its_field(
    console: Console, developer: Client
) -> None:
    tool_id = await create_tool(developer, "Hook", **HOOK)
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}", title="Hook")
    await console.field("URL").fill("ftp://example.com")
    await console.button("Save").click()
    await expect(console.field("URL")).to_have_attribute("aria-invalid", "true")
    await console.field("URL").fill("https://hooks.example.com/other")
    await console.button("Remove X-Team").click()
    await console.page.keyboard.press("Control+s")
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    assert (await get_tool(developer, tool_id))["config"] == {
        "url": "https://hooks.example.com/other"
    }


async def test_secrets_of_a_tool_are_sent_and_kept_nowhere(
    console: Console, developer: Client
) -> None:
    tool_id = await create_tool(developer, "Hook", **HOOK)
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}", title="Hook")
    await console.field("Kind").select_option("bearer")
    await console.field("Secrets").select_option("own")
    await console.field("Token").fill("planted-secret")
    await console.field("Description (optional)").fill("Sends")
    stored = "JSON.stringify({...localStorage, ...sessionStorage}) + location.href"
    assert "Sends" in await console.page.evaluate(stored)
    assert "planted" not in await console.page.evaluate(stored)
    await console.button("Save").click()
    await expect(console.page.get_by_text("Secrets are stored.")).to_be_visible()
    tool = await get_tool(developer, tool_id)
    assert (tool["auth_type"], tool["auth_source"]) == ("bearer", "own")
    assert tool["description"] == "Sends"
    assert "planted" not in await console.page.content()


async def test_a_tool_uses_a_credential_of_the_vault_when_access_is_granted(
    console: Console, developer: Client
) -> None:
    tool_id = await create_tool(developer, "Hook", **HOOK)
    credential_id = await create_credential(developer, "bearer_token", {"token": "t"})
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}", title="Hook")
    await console.field("Kind").select_option("bearer")
    await console.pick("Credential", "Pet shop")
    await console.button("Save").click()
    await console.button("Grant access").click()
    await expect(console.page.get_by_text("An access rule allows")).to_be_visible()
    assert (await get_tool(developer, tool_id))["credential_id"] == credential_id


async def test_a_colleagues_change_is_not_overwritten(console: Console, developer: Client) -> None:
    tool_id = await create_tool(developer)
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}", title="Echo")
    await console.field("Description (optional)").fill("Mine")
    await developer.put(f"/v1/tools/{tool_id}", {"description": "Theirs"})
    await console.button("Save").click()
    await expect(console.dialog("Somebody else changed this")).to_contain_text("Theirs")
    await console.button("Save yours").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    assert (await get_tool(developer, tool_id))["description"] == "Mine"


async def test_deleting_a_tool_can_be_undone(console: Console, developer: Client) -> None:
    tool_id = await create_tool(developer)
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}", title="Echo")
    await console.button("Actions").click()
    await console.page.get_by_role("menuitem", name="Delete the tool").click()
    await expect(console.heading).to_have_text("Tools")
    await expect(console.row("Echo")).to_have_count(0)
    await console.button("Undo").click()
    await expect(console.row("Echo")).to_be_visible()
    assert (await developer.get(f"/v1/tools/{tool_id}")).status_code == 200


async def test_a_tool_comes_out_of_an_openapi_document(console: Console, developer: Client) -> None:
    credential_id = await create_credential(developer, "api_key", {"api_key": "k"})
    await console.sign_in(developer)
    await console.open("/tools/import", title="New from OpenAPI")
    await console.field("Or its text, in JSON or YAML").fill("paths: [")
    await console.button("Read the document").click()
    await expect(console.field("Or its text, in JSON or YAML")).to_have_attribute(
        "aria-invalid", "true"
    )
    await console.field("Or its text, in JSON or YAML").fill(DOCUMENT)
    await console.button("Read the document").click()
    await console.page.get_by_role("checkbox", name="Get a pet").check()
    assert await axe.find_violations(console.page) == []
    await console.pick("Credential", "Pet shop")
    await console.button("Create the tool").click()
    await expect(console.heading).to_have_text("Pets")
    tool = await get_tool(developer, console.path.rpartition("/")[2])
    assert tool["config"]["endpoints"] == {"getPet": {"method": "GET", "path": "/pets/{id}"}}
    assert tool["credential_id"] == credential_id


async def test_a_viewer_sees_runs_and_no_settings(
    console: Console, world: Any, developer: Client
) -> None:
    tool_id = await create_tool(developer)
    viewer = await world.user("viewer", developer.tenant_id)
    await console.sign_in(viewer)
    await console.open(f"/tools/{tool_id}", title="Echo")
    tabs = console.page.get_by_role("tab")
    await expect(tabs).to_have_text(["Runs", "Statistics", "History"])
    await expect(console.button("Actions")).to_have_count(0)
    await console.page.goto(f"{console.url}/console/tools/new/function")
    await expect(console.heading).to_have_text("Tools")


async def test_hostile_texts_of_tools_are_texts(
    console: Console, developer: Client, worker: WorkerProcess
) -> None:
    requested: list[str] = []
    console.page.on("request", lambda request: requested.append(request.url))
    text = hostile.HTML[:90]
    schema = {
        "type": "object",
        "properties": {
            "__proto__": {"type": "string", "title": text, "description": text},
            "constructor": {"type": "object", "properties": {text: {"enum": [text]}}},
        },
    }
    description = hostile.MARKDOWN[:2000]
    tool_id = await create_tool(developer, text, description=description, input_schema=schema)
    answer = await developer.post(f"/v1/tools/{tool_id}/execute", {"input": {"x": hostile.HTML}})
    assert answer.status_code == 200
    await console.sign_in(developer)
    await console.open(f"/tools/{tool_id}?tab=executions", title=text)
    await console.row("Completed").press("Enter")
    await expect(console.dialog("Run of the tool")).to_contain_text("window.hacked")
    assert await hostile.find_harm(console.page, requested, console.url) == []
