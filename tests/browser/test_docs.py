"""The API reference, used in a browser."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import looks
from tests.browser.console.console import Console
from tests.server import Server
from tests.world import PASSWORD, Client, World


class Docs(Console):
    async def open(self, path: str = "", *, title: str | None = None) -> None:
        await self.page.goto(f"{self.url}/docs{path}")
        if title is not None:
            await expect(self.heading).to_have_text(title)

    @property
    def search(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Search operations")

    @property
    def response(self) -> Locator:
        return self.page.get_by_role("region", name="Response")

    def example(self, language: str) -> Locator:
        return self.page.get_by_label(language, exact=True)


@pytest.fixture
async def docs(page: Page, server: Server) -> AsyncIterator[Docs]:
    """Nobody is signed in yet. A breach of the content security policy, a request to elsewhere or
    a warning fails the test.
    """
    docs = Docs(page, server.url)
    yield docs
    docs.detach()
    assert docs.problems == []


async def test_an_operation_is_found_and_opened_by_keyboard(docs: Docs) -> None:
    await docs.open(title="API reference")
    keyboard = docs.page.keyboard
    await keyboard.press("/")
    await keyboard.type("agent_archived chat/stream")
    await expect(docs.page.get_by_text("2 operations found")).to_be_visible()
    await keyboard.press("ArrowDown")
    await keyboard.press("ArrowDown")
    await keyboard.press("ArrowUp")
    await keyboard.press("Enter")
    await expect(docs.heading).to_have_text("Chat with an agent, streamed")
    assert docs.page.url == f"{docs.url}/docs/conversations/chat_stream"
    await docs.search.fill("")
    current = docs.page.get_by_role("link", name="Chat with an agent, streamed")
    await expect(current).to_have_attribute("aria-current", "page")
    await docs.page.reload()
    await expect(docs.heading).to_have_text("Chat with an agent, streamed")


async def test_examples_are_in_the_language_that_was_chosen(docs: Docs) -> None:
    await docs.open("/agents/create_agent", title="Create an agent")
    await expect(docs.example("curl")).to_contain_text(f"curl '{docs.url}/api/v1/agents'")
    await docs.button("Python").click()
    await expect(docs.example("Python")).to_contain_text("httpx.post(")
    await docs.open("/agents/train_agent", title="Add documents")
    await expect(docs.example("Python")).to_contain_text('files={"files": file}')
    await docs.open("/conversations/chat_stream", title="Chat with an agent, streamed")
    await expect(docs.example("Python")).to_contain_text("httpx.stream(")


async def test_schemas_open_level_by_level(docs: Docs) -> None:
    await docs.open("/agents/list_agents", title="List agents")
    await docs.page.get_by_text("Fields of AgentSummary", exact=True).click()
    await expect(docs.page.get_by_text("primary_model", exact=True).last).to_be_visible()


async def test_a_request_is_sent_with_the_session_of_the_console(
    docs: Docs, developer: Client
) -> None:
    agent = await developer.post(
        "/api/v1/agents",
        {"name": "Tried agent", "primary_model": "local/smollm2", "system_prompt": "Help."},
    )
    await docs.sign_in(developer)
    await docs.open("/agents/get_agent", title="Get an agent")
    await docs.button("Send").click()
    await expect(docs.page.get_by_text("Fill in this field")).to_be_visible()
    await docs.field("agent_id").fill(agent.json()["id"])
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text("200 OK")
    await expect(docs.response).to_contain_text('"name": "Tried agent"')
    await docs.response.get_by_text("Headers (").click()
    await expect(docs.response).to_contain_text("x-request-id")

    # What deletes asks first.
    await docs.open("/agents/delete_agent", title="Delete an agent")
    await docs.field("agent_id").fill(agent.json()["id"])
    await docs.button("Send").click()
    await docs.dialog("Send this request?").get_by_role("button", name="Cancel").click()
    assert (await developer.get(f"/api/v1/agents/{agent.json()['id']}")).status_code == 200
    await docs.button("Send").click()
    await docs.button("Send and delete").click()
    await expect(docs.response).to_contain_text("204")
    await expect(docs.response).to_contain_text("The response has no body.")


async def test_a_stream_shows_what_arrives_until_it_is_stopped(
    docs: Docs, developer: Client
) -> None:
    await docs.sign_in(developer)
    await docs.open("/messaging/stream_notifications", title="Stream your notifications")
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text("200 OK")
    await docs.button("Stop").click()
    await expect(docs.button("Stop")).to_be_hidden()


async def test_a_file_is_uploaded_and_downloaded(docs: Docs, developer: Client) -> None:
    await docs.sign_in(developer)
    await docs.open("/platform/upload_file", title="Upload a file")
    content = b"a,b\n1,2\n"
    await docs.page.locator("input[type=file]").set_input_files(
        {"name": "rows.csv", "mimeType": "text/csv", "buffer": content}
    )
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text("201 Created")
    listed = (await developer.get("/api/v1/files")).json()["data"]
    await docs.open("/platform/get_file_content")
    await docs.field("file_id").fill(listed[0]["id"])
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text("200 OK")


async def test_a_role_without_the_permission_reads_what_it_may_not_do(
    docs: Docs, world: World
) -> None:
    await docs.sign_in(await world.user("viewer"))
    await docs.open("/agents/create_agent", title="Create an agent")
    await expect(docs.page.get_by_text("does not have the permission agents:write")).to_be_visible()
    await expect(docs.field("Body (JSON)")).to_have_value(re.compile('"name": "Shop assistant"'))


async def test_without_a_session_public_operations_can_be_tried_and_others_lead_to_sign_in(
    docs: Docs, developer: Client
) -> None:
    await docs.open("/platform/live")
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text("200 OK")
    await docs.open("/agents/list_agents", title="List agents")
    await docs.page.get_by_role("link", name="Sign in").click()
    await docs.field("E-mail").fill(developer.email)
    await docs.field("Password").fill(PASSWORD)
    await docs.button("Sign in").click()
    await expect(docs.heading).to_have_text("List agents")
    await docs.button("Send").click()
    await expect(docs.response).to_contain_text('"pagination"')


async def test_each_error_has_an_address_and_names_its_operations(docs: Docs) -> None:
    await docs.open("/agents/delete_agent", title="Delete an agent")
    await docs.page.get_by_role("link", name="agent_not_found").click()
    await expect(docs.heading).to_have_text("Error codes")
    chosen = docs.page.locator(".docs-error[aria-current]")
    await expect(chosen).to_be_in_viewport()
    await expect(chosen).to_contain_text("There is no such agent")
    await chosen.get_by_text("operations", exact=False).click()
    await chosen.get_by_role("link", name="Delete an agent", exact=True).click()
    await expect(docs.heading).to_have_text("Delete an agent")


async def test_an_address_of_nothing_says_so(docs: Docs) -> None:
    await docs.open("/agents/nothing_like_it", title="This operation does not exist")
    await docs.open("/errors/nothing_like_it", title="Error codes")
    await expect(docs.page.get_by_role("alert")).to_contain_text("nothing_like_it")


async def test_the_frame_is_in_german_too(docs: Docs) -> None:
    await docs.open("/agents/list_agents", title="List agents")
    await docs.button("Language").click()
    await docs.page.get_by_role("menuitem", name="Deutsch").click()
    await expect(docs.page.get_by_role("heading", name="Ausprobieren")).to_be_visible()


async def test_the_reference_is_accessible_in_both_themes_and_on_a_phone(
    docs: Docs, developer: Client
) -> None:
    await docs.sign_in(developer)
    await docs.open("/agents/create_agent", title="Create an agent")
    await expect(docs.button("Send")).to_be_visible()
    assert await looks.find_problems(docs.page, "docs-operation", 1280, 360) == []
    await docs.widen()
    await docs.open(title="API reference")
    assert await docs.find_problems_in_long_runs("docs-introduction") == []
    await docs.widen()
    await docs.open("/errors", title="Error codes")
    assert await docs.find_problems_in_long_runs("docs-errors") == []
