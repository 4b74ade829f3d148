"""Knowledge in the console: documents, what is being read, a test of retrieval, sources."""

from typing import Any

import pytest
from playwright.async_api import expect

from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian, librarian_of
from tests.browser import hostile, looks
from tests.browser.console.console import Console
from tests.browser.console.document_rows import add_document
from tests.database import run_sql
from tests.scripted_agents import Talker
from workers.main import WorkerProcess

# The first document loads the embedder, which takes longer where several tests run at once.
_READ_MS = 70_000


@pytest.fixture
def librarian(talk: Talker, reader: WorkerProcess) -> Librarian:
    return librarian_of(talk)


async def open_knowledge(console: Console, talk: Talker, tab: str = "") -> None:
    await console.sign_in(talk.client)
    query = f"?tab={tab}" if tab else ""
    await console.open(f"/knowledge/{talk.agent_id}{query}", title="Talker")


def file_of(name: str, text: str) -> Any:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


async def test_a_file_is_added_found_and_opened_by_keyboard_alone(
    console: Console, librarian: Librarian
) -> None:
    await console.sign_in(librarian.client)
    await console.open("/knowledge", title="Knowledge")
    keyboard = console.page.keyboard
    await console.row("Talker").focus()
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("Talker")
    async with console.page.expect_file_chooser() as chooser:
        # The page answers after it has learnt that somebody waits for the chooser; a key could
        # come before.
        await console.button("Choose files").focus()
        await expect(console.button("Choose files")).to_be_focused()
        await keyboard.press("Enter")
    await (await chooser.value).set_files(file_of("handbook.md", HANDBOOK))
    await expect(console.row("handbook.md")).to_contain_text("Ready", timeout=_READ_MS)
    await console.page.get_by_role("tab", name="Documents").focus()
    await keyboard.press("ArrowRight")
    await keyboard.press("ArrowRight")
    await console.field("Question").focus()
    await keyboard.type("When does the shop open on Sundays?")
    await keyboard.press("Enter")
    best = console.page.get_by_role("region", name="Both").get_by_role("listitem").first
    await expect(best).to_contain_text("Quoted")
    problems = await looks.find_problems(console.page, "console-knowledge-results", 1280, 360)
    assert problems == []
    await console.widen()
    await best.get_by_role("link", name="handbook.md").focus()
    await keyboard.press("Enter")
    await expect(console.heading).to_have_text("handbook.md")
    await expect(console.heading).to_be_focused()
    await console.page.get_by_text("Opening hours").first.focus()
    await keyboard.press("Enter")
    await expect(console.page.get_by_label("Passage 1", exact=True)).to_contain_text("eleven")


async def test_several_files_and_a_text_are_added_and_one_that_is_refused_stays(
    console: Console, librarian: Librarian
) -> None:
    await console.sign_in(librarian.client)
    await console.open(f"/knowledge/{librarian.agent_id}", title="Talker")
    await expect(console.page.get_by_text("Give this agent something to read")).to_be_visible()
    problems = await looks.find_problems(console.page, "console-knowledge-first", 1280, 360)
    assert problems == []
    await console.page.get_by_label("Do not answer visitors").check()
    files = [file_of("a.txt", HANDBOOK), file_of("b.txt", "Tea."), file_of("c.exe", "MZ")]
    await console.page.locator("input[type=file]").set_input_files(files)
    for name in ("a.txt", "b.txt"):
        await expect(console.row(name)).to_contain_text("Ready", timeout=_READ_MS)
        await expect(console.row(name)).to_contain_text("Your people")
    uploads = console.page.get_by_role("list", name="Uploads")
    await expect(uploads.get_by_role("listitem")).to_have_count(1)
    await expect(uploads).to_contain_text("c.exe")
    await uploads.get_by_role("button", name="Dismiss").click()
    await expect(uploads).to_have_count(0)
    await console.button("Write a text").click()
    dialog = console.dialog("Write a text")
    await dialog.get_by_label("Name").fill("Prices")
    await dialog.get_by_label("Text", exact=True).fill("A teapot costs 20 euros.")
    await dialog.get_by_role("button", name="Add the text").click()
    await expect(console.row("Prices.md")).to_contain_text("Ready", timeout=_READ_MS)


async def test_the_reading_of_a_document_is_shown_and_failed_ones_are_retried(
    console: Console, librarian: Librarian, talk: Talker, services: Services
) -> None:
    await librarian.add(broken_md=HANDBOOK)
    sql = "UPDATE documents SET status = 'failed', error = 'broken' WHERE agent_id = $1"
    await run_sql(services, sql, librarian.agent_id)
    await add_document(services, talk, "slow.txt", "processing")
    await add_document(services, talk, "lost.txt", "processing", lease=-5)
    await open_knowledge(console, talk)
    await expect(console.row("slow.txt")).to_contain_text("Embedding")
    await expect(console.row("slow.txt").get_by_role("progressbar")).to_have_attribute(
        "value", "0.25"
    )
    await expect(console.row("lost.txt")).to_contain_text("Stuck")
    await expect(console.row("broken.md")).to_contain_text("broken")
    await console.button("Show them").click()
    await expect(console.row("slow.txt")).to_have_count(0)
    assert console.path.endswith("?status=failed")
    await console.button("Retry all failed").click()
    await expect(console.page.get_by_text("1 document is read again.")).to_be_visible()
    await console.page.get_by_label("Status").select_option("ready")
    await expect(console.row("broken.md")).to_contain_text("Ready", timeout=_READ_MS)
    await expect(console.button("Retry all failed")).to_have_count(0)


async def test_a_deleted_document_comes_back_by_undo_and_goes_otherwise(
    console: Console, librarian: Librarian
) -> None:
    [document] = await librarian.add(handbook_md=HANDBOOK)
    await console.sign_in(librarian.client)
    await console.open(f"/knowledge/{librarian.agent_id}", title="Talker")
    for is_undone in (True, False):
        await console.button("Actions for handbook.md").click()
        await console.page.get_by_role("menuitem", name="Delete the document").click()
        await expect(console.row("handbook.md")).to_have_count(0)
        if is_undone:
            await console.button("Undo").click()
            await expect(console.row("handbook.md")).to_be_visible()
    path = f"{librarian.path}/documents/{document['id']}"
    async with console.page.expect_response(lambda answer: answer.request.method == "DELETE"):
        await console.page.evaluate("dispatchEvent(new Event('pagehide'))")
    assert (await librarian.client.get(path)).status_code == 404


async def test_who_is_answered_from_a_document_is_changed_unless_somebody_else_did(
    console: Console, librarian: Librarian
) -> None:
    [document] = await librarian.add(handbook_md=HANDBOOK)
    address = f"/knowledge/{librarian.agent_id}/{document['id']}?tab=about"
    path = f"{librarian.path}/documents/{document['id']}"
    await console.sign_in(librarian.client)
    await console.open(address, title="handbook.md")
    await console.field("Tags").fill("faq, shop")
    await console.button("Save").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    assert (await librarian.document(document["id"]))["tags"] == ["faq", "shop"]
    await librarian.client.http.patch(path, json={"tags": ["theirs"]})
    await console.field("Tags").fill("mine")
    await console.button("Save").click()
    dialog = console.dialog("Somebody else changed this")
    await expect(dialog).to_contain_text("theirs")
    await dialog.get_by_role("button", name="Take theirs").click()
    await expect(console.field("Tags")).to_have_value("theirs")


async def test_retrieval_settings_are_saved_with_what_was_not_changed(
    console: Console, talk: Talker
) -> None:
    path = f"{talk.path}/retrieval"
    await talk.client.put(path, {"filter": {"tags": ["faq"]}, "rerank_timeout_ms": 900})
    await open_knowledge(console, talk, "settings")
    await console.field("Passages in a turn").fill("3")
    await console.button("Save").click()
    await expect(console.page.get_by_text("Saved", exact=True)).to_be_visible()
    stored = (await talk.client.get(path)).json()
    assert (stored["max_passages"], stored["rerank_timeout_ms"]) == (3, 900)
    assert stored["filter"]["tags"] == ["faq"]


async def test_a_source_is_added_and_its_faults_stand_beside_its_fields(
    console: Console, talk: Talker
) -> None:
    await open_knowledge(console, talk, "sources")
    await console.button("New source").click()
    dialog = console.dialog("New source")
    await dialog.get_by_label("Name").fill("Help pages")
    await dialog.get_by_label("Address").fill("not an address")
    await dialog.get_by_role("button", name="Add the source").click()
    await expect(dialog.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Address").fill("https://example.com/help")
    await dialog.get_by_role("button", name="Add the source").click()
    await expect(console.row("Help pages")).to_be_visible()
    await console.row("Help pages").focus()
    await console.page.keyboard.press("Enter")
    drawer = console.dialog("Help pages")
    await expect(drawer).to_contain_text("https://example.com/help")
    await drawer.get_by_role("button", name="Edit").click()
    await drawer.get_by_label("Address").fill("not an address")
    await drawer.get_by_label("Fetched").select_option("weekly")
    await drawer.get_by_role("button", name="Save").click()
    await expect(drawer.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    await drawer.get_by_label("Address").fill("https://example.com/faq")
    await drawer.get_by_role("button", name="Save").click()
    await expect(drawer).to_contain_text("https://example.com/faq")
    (source,) = (await talk.client.get(f"{talk.path}/sources")).json()["data"]
    assert (source["config"], source["schedule"]) == ({"url": "https://example.com/faq"}, "weekly")


async def test_texts_of_strangers_are_only_texts(console: Console, librarian: Librarian) -> None:
    name = hostile.HTML.replace("/", " ")[:120].strip() + ".md"
    text = f"# {hostile.HTML[:200]}\n\nThe shop opens at nine. {hostile.MARKDOWN}"
    answer = await librarian.client.http.post(
        f"{librarian.path}/train", files=[("files", (name, text.encode()))]
    )
    document = await librarian.wait_for(answer.json()["documents"][0]["id"])
    await console.sign_in(librarian.client)
    await console.open(f"/knowledge/{librarian.agent_id}?tab=test", title="Talker")
    await console.field("Question").fill("When does the shop open?")
    await console.page.keyboard.press("Enter")
    best = console.page.get_by_role("region", name="Both").get_by_role("listitem").first
    await expect(best).to_contain_text("window.hacked")
    await best.get_by_role("link").click()
    await expect(console.heading).to_have_text(document["name"])
    for summary in await console.page.locator("summary").all():
        await summary.click()
    await console.page.get_by_role("link", name="Talker").click()
    await expect(console.row("window.hacked")).to_be_visible()
    assert await hostile.find_harm(console.page, []) == []
