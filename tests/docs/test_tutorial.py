"""The first hour of a new user, as docs/tutorial.md tells it: the commands, and what people see in
a browser.
"""

import email
import email.policy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.async_api import Page, expect

from tests.browser import screenshots
from tests.docs import pages
from tests.docs.shell import run_commands
from tests.local.instance import Up
from tests.ports import free_port
from tests.processes import ROOT
from tests.stores import wait_for

pytestmark = pytest.mark.timeout(300)

_LINK = re.compile(r"https?://\S+/approval\?\S*decision=approved\S*")


class Journey(msgspec.Struct):
    """What the commands of the tutorial have created and printed."""

    instance: Up
    folder: Path
    output: str
    slug: str
    # The address of the page with the tag.
    site: str


@pytest.fixture(scope="module")
def journey(instance: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "app").symlink_to(ROOT / "app")
    # The ports of the tutorial may be in use here.
    ports = {":8080": f":{free_port()}", "8099": str(free_port())}
    [receiver] = pages.read_blocks(pages.TUTORIAL, "python")
    (folder / "receiver.py").write_text(_replace(receiver, ports))
    commands = [_replace(command, ports) for command in pages.read_commands(pages.TUTORIAL)]
    output = run_commands(instance, [*commands, 'echo "$slug"'], folder)
    [html] = pages.read_blocks(pages.TUTORIAL, "html")
    tag = (folder / "tag.html").read_text()
    names = {"http://127.0.0.1:8000": instance.url, "<!-- the content of tag.html -->": tag}
    (folder / "index.html").write_text(_replace(html, names))
    site = f"http://127.0.0.1{ports[':8080']}/"
    command = [sys.executable, "-m", "http.server", ports[":8080"][1:], "--bind", "127.0.0.1"]
    server = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        yield Journey(instance, folder, output, output.split()[-1], site)
    finally:
        server.terminate()
        server.wait(10)


def _replace(text: str, values: dict[str, str]) -> str:
    for old, new in values.items():
        text = text.replace(old, new)
    return text


# Steps 1 to 8: the commands


def test_the_commands_work_as_they_are_written(journey: Journey) -> None:
    assert "Teapot" in journey.output
    assert '"status":"failed"' not in journey.output


def test_the_receiver_gets_genuine_events(journey: Journey) -> None:
    first, *lines = (journey.folder / "received.txt").read_text().splitlines()
    assert first == "listening"
    assert all(line.startswith("True ") for line in lines)
    assert {json.loads(line.removeprefix("True "))["type"] for line in lines} == {
        "form.submission.created",
        "workflow.execution.completed",
    }


# Step 3: the assistant on a web site


async def test_a_visitor_asks_the_assistant_on_a_strict_page(journey: Journey, page: Page) -> None:
    blocked: list[str] = []
    page.on("console", lambda line: blocked.append(line.text) if "Policy" in line.text else None)
    await page.goto(journey.site)
    await page.get_by_role("button", name="Open chat").click()
    panel = page.get_by_role("dialog")
    await expect(panel.get_by_text("You are talking to an AI")).to_be_visible()
    answers = page.locator("parley-chat .message.assistant:not(.greeting)")
    questions = ("What does a teapot cost?", "What do regular customers get off?")
    for number, question in enumerate(questions):
        await page.get_by_label("Your message").fill(question)
        await page.keyboard.press("Enter")
        copy = answers.nth(number).get_by_role("button", name="Copy")
        await expect(copy).to_be_visible(timeout=120_000)
    await screenshots.take(page, "tutorial-widget")
    # The note is not for customers.
    await expect(panel).not_to_contain_text("staff.txt")
    await expect(panel).not_to_contain_text("15 percent")
    assert blocked == []


# Steps 4 to 8: a commission by the form, its decision by mail, and the timeline


async def test_a_commission_is_decided_by_mail_and_told_on_one_timeline(
    journey: Journey, page: Page
) -> None:
    trace = await _commission(journey, page)
    link = _wait_for_link(journey.instance, "Grace")
    await page.goto(link)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("mug for Grace?")
    await expect(page.get_by_text("grace@example.com")).to_be_visible()
    await screenshots.take(page, "tutorial-approval")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Thank you")
    await _look_at_trace(journey, page, trace)


async def _commission(journey: Journey, page: Page) -> str:
    """Fills in both pages of the form; returns the correlation id of the submission."""
    await page.goto(f"{journey.instance.url}/f/{journey.slug}")
    await page.get_by_role("textbox", name="Your name", exact=True).fill("Grace")
    await page.get_by_label("Your e-mail address").fill("grace@example.com")
    await page.get_by_role("button", name="Next").click()
    await page.get_by_label("What shall we make?").select_option("mug")
    await page.get_by_label("How many?").fill("7")
    # Seven pieces make the question visible that a single mug does not need.
    await page.get_by_label("Large").check()
    await expect(page.get_by_role("link", name="privacy notice")).to_be_visible()
    await page.get_by_role("checkbox", name="I have read the privacy notice").check()
    await screenshots.take(page, "tutorial-form")
    async with page.expect_response("**/submit") as response:
        await page.get_by_role("button", name="Submit").click()
    correlation_id = (await (await response.value).all_headers())["x-correlation-id"]
    await expect(page.get_by_text("Your answers have been received")).to_be_visible()
    return correlation_id


def _wait_for_link(instance: Up, name: str) -> str:
    """Returns the link to approve, in the mail that asks about this customer."""
    links: list[str] = []

    def find() -> bool:
        for path in (Path(instance.env["PARLEY_DATA_DIR"]) / "mail").glob("*.eml"):
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            body = message.get_body(("plain",))
            text = body.get_content() if body else ""
            if f"for {name}?" in text and (match := _LINK.search(text)) is not None:
                links.append(match[0])
        return bool(links)

    wait_for(find, 60, "the mail that asks for a decision")
    return links[0]


async def _look_at_trace(journey: Journey, page: Page, trace: str) -> None:
    await page.goto(f"{journey.instance.url}/trace/{trace}")
    await page.get_by_label("E-mail").fill("admin@example.com")
    await page.get_by_label("Password").fill(journey.instance.password)
    await page.get_by_role("button", name="Sign in").click()
    rows = page.get_by_role("row")
    await expect(rows.filter(has_text="form.submission.created").first).to_contain_text("a visitor")
    await expect(rows.filter(has_text="Commission: ask")).to_contain_text("waited")
    await expect(rows.filter(has_text="cancelled")).to_have_count(0)
    tool = rows.filter(has_text="Quote").first
    await expect(tool).to_contain_text("completed")
    await tool.click()
    await expect(page.locator("#details")).to_contain_text('"euros": 196')
    await screenshots.take(page, "tutorial-trace")
