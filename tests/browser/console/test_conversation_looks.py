"""What a conversation looks like in the console."""

from playwright.async_api import expect

from tests.browser import looks
from tests.browser.console.console import Console
from tests.browser.console.conversation_rows import add_conversation, add_turn
from tests.scripted_agents import Talker


async def test_the_looks_of_a_conversation(console: Console, talk: Talker) -> None:
    page, name = console.page, "console-conversation"
    visitor = {"id": "c-1", "name": "Ada Lovelace", "email": "ada@example.com"}
    conversation_id = await add_conversation(talk, "Opening hours", visitor=visitor)
    call = {"tool": "Calendar", "input": {"day": "Monday"}, "output": {"open": "09:00"}}
    source = {"document_name": "hours.md", "chunk_preview": "Nine to six", "relevance_score": 0.8}
    await add_turn(talk, conversation_id, "When?", "At **nine**.", call=call, sources=[source])
    failure = {"code": "model_unavailable", "message": "The model did not answer in time."}
    await add_turn(talk, conversation_id, "And on Sunday?", "", error=failure)
    await add_turn(talk, conversation_id, "Hello?", "- We are closed on Sundays.\n- Sorry!")
    await console.sign_in(talk.client)
    await console.open(f"/conversations/{conversation_id}", title="Opening hours")
    await expect(page.get_by_text("Sorry!")).to_be_visible()
    await page.get_by_text("Calendar").click()
    await console.button("Bad").last.click()
    await expect(console.button("Save the comment")).to_be_visible()
    problems = await looks.find_problems(page, name, 1280, 360)
    await console.widen()
    reply = await talk.say("When do you open?")
    await console.open(f"/conversations/{reply['conversation_id']}", title="When do you open?")
    await console.button("What the model saw").click()
    await expect(console.dialog("What the model saw")).to_contain_text("System message")
    problems += await looks.find_problems(page, f"{name}-seen", 1280, 360)
    assert problems == []
