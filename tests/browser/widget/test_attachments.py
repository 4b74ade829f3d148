"""Files that a visitor sends with a message."""

from typing import Any

from playwright.async_api import Locator, Route, expect

from tests.browser import screenshots
from tests.browser.axe import find_violations
from tests.browser.widget.shop import Shop
from tests.conversations.chat.attachment_helpers import NOTE, asked_texts
from tests.model_server import Reply

_TEXT = NOTE.decode()
# What a visitor drops on the chat, or pastes into the field.
_TRANSFER = """(element, [type, names]) => {
    const data = new DataTransfer();
    for (const name of names) data.items.add(new File(["Some words."], name));
    const init = { bubbles: true, composed: true, cancelable: true };
    const event = type === "paste"
        ? new ClipboardEvent(type, { ...init, clipboardData: data })
        : new DragEvent(type, { ...init, dataTransfer: data });
    element.dispatchEvent(event);
}"""


def _file(name: str = "note.txt", content: bytes = NOTE) -> Any:
    return {"name": name, "mimeType": "text/plain", "buffer": content}


def _chips(shop: Shop) -> Locator:
    return shop.page.locator("parley-chat .waiting .file")


async def _choose(shop: Shop, *files: Any) -> None:
    async with shop.page.expect_file_chooser() as chooser:
        await shop.button("Attach files").click()
    await (await chooser.value).set_files(list(files))


async def _open(shop: Shop) -> None:
    await shop.create_key(allow_attachments=True)
    await shop.open_chat(lang="en-US")
    await expect(shop.button("Attach files")).to_be_visible()


async def test_an_agent_answers_from_a_file(shop: Shop) -> None:
    own = shop.server.url
    shop.site.policy = f"default-src 'none'; script-src {own}; connect-src {own}"
    shop.talk.script(Reply(texts=["It is 4711."]), Reply(texts=["Still 4711."]))
    await _open(shop)
    await _choose(shop, _file())
    await expect(_chips(shop)).to_contain_text("note.txt1 kB")
    # Files that wait do not blink, as a button does.
    animation = "(chip) => getComputedStyle(chip.parentElement).animationName"
    await shop.page.emulate_media(reduced_motion="no-preference")
    assert await _chips(shop).evaluate(animation) == "none"
    await shop.page.emulate_media(reduced_motion="reduce")
    await expect(shop.panel.locator("[aria-live=polite]")).to_contain_text("note.txt is attached.")
    await expect(shop.input).to_be_focused()
    await screenshots.take(shop.page, "widget-attachment")
    assert await find_violations(shop.page) == []
    await shop.ask("What is the code?", "It is 4711.")
    await expect(_chips(shop)).to_have_count(0)
    assert _TEXT in asked_texts(shop.talk)[-1]
    sent = shop.page.get_by_role("list", name="Attached files")
    await expect(sent).to_contain_text("note.txt1 kB")
    await screenshots.take(shop.page, "widget-attached")
    assert await find_violations(shop.page) == []
    await shop.page.reload()
    await expect(sent).to_contain_text("note.txt1 kB")
    # The same question is asked again with its file.
    await shop.button("Answer again").click()
    await expect(shop.replies).to_contain_text(["Still 4711."])
    assert [text.count(_TEXT) for text in asked_texts(shop.talk)] == [1]


async def test_files_can_be_sent_without_words(shop: Shop) -> None:
    await _open(shop)
    await _choose(shop, _file(), _file("more.md", b"# More"))
    await expect(_chips(shop)).to_have_count(2)
    await shop.button("Send").click()
    await expect(shop.replies).to_contain_text("Hello there")
    await expect(shop.questions).to_have_text("See the attached files.")
    assert "More" in asked_texts(shop.talk)[-1]


async def test_a_message_waits_for_its_files(shop: Shop) -> None:
    await _open(shop)
    waiting: list[Route] = []

    async def hold(route: Route) -> None:
        waiting.append(route)

    await shop.page.route("**/attachments", hold)
    await _choose(shop, _file())
    await expect(_chips(shop).get_by_role("progressbar", name="note.txt")).to_be_visible()
    await shop.send("Hi")
    await expect(shop.questions).to_have_count(0)
    await waiting[0].continue_()
    await expect(shop.replies).to_contain_text("Hello there")
    assert _TEXT in asked_texts(shop.talk)[-1]


async def test_a_file_that_cannot_be_read_says_why_and_can_be_removed(shop: Shop) -> None:
    await _open(shop)
    await _choose(
        shop,
        _file("scan.pdf"),
        _file("photo.png"),
        _file("large.txt", b"x" * (10 * 1024 * 1024 + 1)),
        _file(),
    )
    await expect(_chips(shop)).to_contain_text(
        [
            "This file could not be read. It may be empty, damaged or protected by a password.",
            "This kind of file cannot be read.",
            "The file is larger than 10 MB.",
            "note.txt1 kB",
        ]
    )
    await screenshots.take(shop.page, "widget-attachment-refused")
    assert await find_violations(shop.page) == []
    # Nothing is sent as long as a file is missing; the first of them has the focus.
    await shop.send("Hi")
    await expect(shop.button("Remove scan.pdf")).to_be_focused()
    await expect(shop.input).to_have_value("Hi")
    for name in ("photo.png", "large.txt", "note.txt"):
        await shop.page.keyboard.press("Enter")
        await expect(shop.button(f"Remove {name}")).to_be_focused()
    await shop.page.keyboard.press("Enter")
    await expect(shop.input).to_be_focused()
    await shop.page.keyboard.press("Enter")
    await expect(shop.replies).to_contain_text("Hello there")
    assert asked_texts(shop.talk)[-1] == "Hi"


async def test_files_are_dropped_and_pasted(shop: Shop) -> None:
    await _open(shop)
    chat = shop.page.locator("parley-chat .chat")
    await chat.evaluate(_TRANSFER, ["dragover", ["a.txt"]])
    await expect(shop.page.locator("parley-chat .drop-hint")).to_be_visible()
    await screenshots.take(shop.page, "widget-drop")
    await chat.evaluate(_TRANSFER, ["drop", ["a.txt", "b.txt", "c.txt"]])
    await expect(shop.page.locator("parley-chat .drop-hint")).to_be_hidden()
    await shop.input.evaluate(_TRANSFER, ["paste", ["d.txt", "e.txt", "f.txt"]])
    await expect(_chips(shop)).to_have_count(5)
    problem = shop.notice.filter(has_text="A message can have at most 5 files.")
    await expect(problem).to_be_visible()
    await shop.ask("Hi", "Hello there")
    question = asked_texts(shop.talk)[-1]
    assert [f"{name}.txt" in question for name in "abcdef"] == [True] * 5 + [False]


async def test_a_new_conversation_has_no_files_of_the_last_one(shop: Shop) -> None:
    await _open(shop)
    await shop.ask("Hi", "Hello there")
    await _choose(shop, _file())
    await expect(_chips(shop)).to_have_count(1)
    await shop.button("Start a new conversation").click()
    await expect(_chips(shop)).to_have_count(0)


async def test_without_permission_there_are_no_files(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    await expect(shop.button("Attach files")).to_have_count(0)
    assert not any("attachments" in url for url in shop.requested_urls)
